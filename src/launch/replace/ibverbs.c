/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * ibverbs.c -- the replacement of libibverbs.so.1: see replace.h. Functions for
 * programs linked before 2007 use other structs, and fail; so do the internal
 * functions of the library, which are for providers of devices.
 */

#include "replace.h"

#include <stdbool.h>
#include <stddef.h>

#define OLD "the program was linked with libibverbs 1.0; link the program again"
#define INSIDE                                                         \
	"only providers of kernel devices call the function, and the " \
	"loopback "                                                    \
	"device has no provider"

#define DEVICE(name, node)	   REPLACE_DEVICE(name, node)
#define ALSO(name, node)	   REPLACE_OLD_NAME(device_##name, name, node);
#define INSIDE_CODE(name, node)	   INSIDE_OF(name, node, EOPNOTSUPP)
#define INSIDE_POINTER(name, node) INSIDE_OF(name, node, 0)
#define INSIDE_NOTHING(name, node) INSIDE_OF(name, node, 0)
#define INSIDE_OF(name, node, result)                 \
	REPLACE_REFUSAL(inside, name, INSIDE, result) \
	REPLACE_NAME(inside_##name, name, node);
#define OLD_CODE(name, node)	OLD_OF(name, node, EOPNOTSUPP)
#define OLD_POINTER(name, node) OLD_OF(name, node, 0)
#define OLD_NOTHING(name, node) OLD_OF(name, node, 0)
#define OLD_OF(name, node, result)              \
	REPLACE_REFUSAL(old, name, OLD, result) \
	REPLACE_OLD_NAME(old_##name, name, node);
/* a provider is loaded although no device belongs to the provider */
#define SILENT(name, node)                       \
	REPLACE_EXPORT void silent_##name(void); \
	REPLACE_EXPORT void silent_##name(void)  \
	{                                        \
	}                                        \
	SILENT_##name(node)
#define SILENT_ibv_register_driver(node) \
	REPLACE_OLD_NAME(silent_ibv_register_driver, ibv_register_driver, node);
#define SILENT_verbs_register_driver_34(node)         \
	REPLACE_NAME(silent_verbs_register_driver_34, \
		     verbs_register_driver_34, node);
#define DATA(name, node)                 \
	REPLACE_EXPORT bool data_##name; \
	REPLACE_NAME(data_##name, name, node);

#include "ibverbs_names.h"

#undef DEVICE
#undef ALSO
#undef INSIDE_CODE
#undef INSIDE_POINTER
#undef INSIDE_NOTHING
#undef OLD_CODE
#undef OLD_POINTER
#undef OLD_NOTHING
#undef SILENT
#undef DATA
#define DEVICE(name, node) {#name, &to_##name},
#define ALSO(name, node)
#define INSIDE_CODE(name, node)
#define INSIDE_POINTER(name, node)
#define INSIDE_NOTHING(name, node)
#define OLD_CODE(name, node)
#define OLD_POINTER(name, node)
#define OLD_NOTHING(name, node)
#define SILENT(name, node)
#define DATA(name, node)

static const struct replace_call calls[] = {
#include "ibverbs_names.h"
	{NULL, NULL},
};

__attribute__((constructor)) static void ibverbs_bind(void)
{
	replace_bind(calls);
}
