/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * replace.h -- the common part of both replacements. A function under a name
 * and version node of libibverbs or librdmacm calls the function of the same
 * name in the device, or fails and says why. The process has a single device,
 * whether the device was preloaded or came with a replacement.
 *
 * A call passes six arguments on, and the device takes as many as needed: every
 * argument of verbs and rdma_cm is an integer or a pointer, there are at most
 * six, and each fits a register.
 */

#ifndef REPLACE_H
#define REPLACE_H

#include <errno.h>
#include <stdatomic.h>

_Static_assert(sizeof(long) == sizeof(void *) && sizeof(long) == 8,
	       "an argument is one register");

#define REPLACE_EXPORT __attribute__((visibility("default")))

/* Exports the function here under the name and node. */
#define REPLACE_NAME(here, name, node) \
	__asm__(".symver " #here ", " #name "@@" node)
/*
 * Exports the function under the name and node only for programs linked long
 * ago.
 */
#define REPLACE_OLD_NAME(here, name, node) \
	__asm__(".symver " #here ", " #name "@" node)

typedef long replace_fn(long, long, long, long, long, long);

struct replace_call {
	const char *name;
	replace_fn **to;
};

/* Binds the calls, up to a call without a name, to the device. */
void replace_bind(const struct replace_call *calls);

/* Fails a call: prints why, once for each flag, sets errno, returns result. */
long replace_refuse(_Atomic int *is_said, const char *name, const char *why,
		    long result);

/* Defines the function name, in the default version, which calls the device. */
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
