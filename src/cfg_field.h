/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Fields of configuration objects, each listed once as
 *
 *	X(name, type, initial, is_valid, range)
 *
 * is_valid is an expression of the new value v; range says in words which
 * values are valid. From a list come the object, its plain copy, and its set
 * and get functions. Several threads may set and get fields at the same time.
 */

#ifndef RPMA_CFG_FIELD_H
#define RPMA_CFG_FIELD_H 1

#include <stdatomic.h>

#include "librpma.h"
#include "log.h"

#define RPMA__CFG_ATOMIC(name, type, initial, is_valid, range) \
	_Atomic(type) name;
#define RPMA__CFG_PLAIN(name, type, initial, is_valid, range)	type name;
#define RPMA__CFG_INITIAL(name, type, initial, is_valid, range) .name = initial,

/*
 * release: publishes the object that a pointer set here leads to; pairs with
 * the load below
 */
#define RPMA__CFG_STORE(cfg, name, v) \
	atomic_store_explicit(&(cfg)->name, v, memory_order_release)
/* acquire: pairs with the store above */
#define RPMA__CFG_LOAD(cfg, name) \
	atomic_load_explicit(&(cfg)->name, memory_order_acquire)

#define RPMA__CFG_SET(object, name, type, is_valid, range)                \
	int rpma_##object##_set_##name(struct rpma_##object *cfg, type v) \
	{                                                                 \
		if (cfg == NULL)                                          \
			return RPMA_REFUSE(RPMA_E_INVAL, "cfg is NULL");  \
		if (!(is_valid)) {                                        \
			RPMA_LOG_ERROR(#name ": " range);                 \
			return RPMA_E_INVAL;                              \
		}                                                         \
		RPMA__CFG_STORE(cfg, name, v);                            \
		return 0;                                                 \
	}

#define RPMA__CFG_GET(object, name, type)                                   \
	int rpma_##object##_get_##name(const struct rpma_##object *cfg,     \
				       type *v)                             \
	{                                                                   \
		if (cfg == NULL)                                            \
			return RPMA_REFUSE(RPMA_E_INVAL, "cfg is NULL");    \
		if (v == NULL)                                              \
			return RPMA_REFUSE(RPMA_E_INVAL, #name " is NULL"); \
		*v = RPMA__CFG_LOAD(cfg, name);                             \
		return 0;                                                   \
	}

#endif /* RPMA_CFG_FIELD_H */
