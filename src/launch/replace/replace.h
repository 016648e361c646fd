/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * replace.h -- what both replacements are made of: functions under the names
 * and version nodes of libibverbs and librdmacm that call the device's function
 * of that name, or refuse in words. There is one device in the process, whether
 * it was preloaded or came with a replacement.
 *
 * A call passes six arguments on, of which the device takes as many as it has:
 * every argument of verbs and rdma_cm is an integer or a pointer, there are no
 * more than six, and each goes in a register.
 */

#ifndef REPLACE_H
#define REPLACE_H

#include <errno.h>
#include <stdatomic.h>

_Static_assert(sizeof(long) == sizeof(void *) && sizeof(long) == 8,
	       "an argument is one register");

#define REPLACE_EXPORT __attribute__((visibility("default")))

/* The function of here has that name and node in the library. */
#define REPLACE_NAME(here, name, node) \
	__asm__(".symver " #here ", " #name "@@" node)
/* The same for programs that were linked long ago only. */
#define REPLACE_OLD_NAME(here, name, node) \
	__asm__(".symver " #here ", " #name "@" node)

typedef long replace_fn(long, long, long, long, long, long);

struct replace_call {
	const char *name;
	replace_fn **to;
};

/* Let the calls, up to one without a name, lead to the device. */
void replace_bind(const struct replace_call *calls);

/* Says once for each flag why the call fails, sets errno, returns result. */
long replace_refuse(_Atomic int *is_said, const char *name, const char *why,
		    long result);

/* name, in the default version, is the device's. */
#define REPLACE_DEVICE(name, node)                                        \
	static replace_fn *to_##name;                                     \
	REPLACE_EXPORT long device_##name(long a, long b, long c, long d, \
					  long e, long f);                \
	REPLACE_EXPORT long device_##name(long a, long b, long c, long d, \
					  long e, long f)                 \
	{                                                                 \
		return to_##name(a, b, c, d, e, f);                       \
	}                                                                 \
	REPLACE_NAME(device_##name, name, node);

#define REPLACE_REFUSAL(kind, name, why, result)                     \
	REPLACE_EXPORT long kind##_##name(void);                     \
	REPLACE_EXPORT long kind##_##name(void)                      \
	{                                                            \
		static _Atomic int is_said;                          \
                                                                     \
		return replace_refuse(&is_said, #name, why, result); \
	}

#endif /* REPLACE_H */
