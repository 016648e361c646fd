/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Calling functions with arguments that they must refuse. A refused call
 * returns the expected error, calls nothing below the library, and leaves its
 * out-parameters, all of which lie in one place, as they were. The called
 * functions are recorded.
 */

#ifndef SWEEP_H
#define SWEEP_H 1

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* What the program of the tests gives. */
struct sweep_ground {
	const char *map; /* the version script */
	size_t least;	 /* functions that are in it, or more */
	void *out;	 /* where out-parameters point */
	size_t out_size;
	void (*forget)(void); /* what was called beneath, */
	const char *(*trace)(void);
	const char *(*text)(int error);
};
extern const struct sweep_ground sweep_ground;

/* Before and after a call of this function. */
void sweep_begin(const char *function);
void sweep_end(const char *function, int line, int ret, int expected);
/* Fails if a function of the version script has not been called. */
void sweep_expect_all(void);

/* One call that has to be refused so. */
#define BAD(expected, function, ...)                                    \
	do {                                                            \
		sweep_begin(#function);                                 \
		sweep_end(#function, __LINE__, (function)(__VA_ARGS__), \
			  expected);                                    \
	} while (0)

/*
 * NULLS(function, arguments...): with NULL in place of each argument that is a
 * pointer, one after the other, the call is E_INVAL. An argument that may be
 * NULL is written 0.
 */
#define NULLS(function, ...)                                                  \
	NULLS_PICK(__VA_ARGS__, NULLS_10, NULLS_9, NULLS_8, NULLS_7, NULLS_6, \
		   NULLS_5, NULLS_4, NULLS_3, NULLS_2, NULLS_1, unused)       \
	(function, __VA_ARGS__)
#define NULLS_PICK(a, b, c, d, e, f, g, h, i, j, name, ...) name

#define TYPE_OF(x)    __typeof__(((void)0, (x)))
#define POINTER_CLASS 5 /* as __builtin_classify_type() says it */
#define IS_POINTER(x) (__builtin_classify_type((TYPE_OF(x))0) == POINTER_CLASS)
#define Z(x)	      ((TYPE_OF(x))0)
/* clang-format off */
#define TRY(fn, x, ...) \
	do { if (IS_POINTER(x)) BAD(RPMA_E_INVAL, fn, __VA_ARGS__); } while (0)

#define NULLS_1(fn, a) TRY(fn, a, Z(a))
#define NULLS_2(fn, a, b) \
	TRY(fn, a, Z(a), b); TRY(fn, b, a, Z(b))
#define NULLS_3(fn, a, b, c) \
	TRY(fn, a, Z(a), b, c); TRY(fn, b, a, Z(b), c); \
	TRY(fn, c, a, b, Z(c))
#define NULLS_4(fn, a, b, c, d) \
	TRY(fn, a, Z(a), b, c, d); TRY(fn, b, a, Z(b), c, d); \
	TRY(fn, c, a, b, Z(c), d); TRY(fn, d, a, b, c, Z(d))
#define NULLS_5(fn, a, b, c, d, e) \
	TRY(fn, a, Z(a), b, c, d, e); TRY(fn, b, a, Z(b), c, d, e); \
	TRY(fn, c, a, b, Z(c), d, e); TRY(fn, d, a, b, c, Z(d), e); \
	TRY(fn, e, a, b, c, d, Z(e))
#define NULLS_6(fn, a, b, c, d, e, f) \
	TRY(fn, a, Z(a), b, c, d, e, f); TRY(fn, b, a, Z(b), c, d, e, f); \
	TRY(fn, c, a, b, Z(c), d, e, f); TRY(fn, d, a, b, c, Z(d), e, f); \
	TRY(fn, e, a, b, c, d, Z(e), f); TRY(fn, f, a, b, c, d, e, Z(f))
#define NULLS_7(fn, a, b, c, d, e, f, g) \
	TRY(fn, a, Z(a), b, c, d, e, f, g); \
	TRY(fn, b, a, Z(b), c, d, e, f, g); \
	TRY(fn, c, a, b, Z(c), d, e, f, g); \
	TRY(fn, d, a, b, c, Z(d), e, f, g); \
	TRY(fn, e, a, b, c, d, Z(e), f, g); \
	TRY(fn, f, a, b, c, d, e, Z(f), g); \
	TRY(fn, g, a, b, c, d, e, f, Z(g))
#define NULLS_8(fn, a, b, c, d, e, f, g, h) \
	TRY(fn, a, Z(a), b, c, d, e, f, g, h); \
	TRY(fn, b, a, Z(b), c, d, e, f, g, h); \
	TRY(fn, c, a, b, Z(c), d, e, f, g, h); \
	TRY(fn, d, a, b, c, Z(d), e, f, g, h); \
	TRY(fn, e, a, b, c, d, Z(e), f, g, h); \
	TRY(fn, f, a, b, c, d, e, Z(f), g, h); \
	TRY(fn, g, a, b, c, d, e, f, Z(g), h); \
	TRY(fn, h, a, b, c, d, e, f, g, Z(h))
#define NULLS_9(fn, a, b, c, d, e, f, g, h, i) \
	TRY(fn, a, Z(a), b, c, d, e, f, g, h, i); \
	TRY(fn, b, a, Z(b), c, d, e, f, g, h, i); \
	TRY(fn, c, a, b, Z(c), d, e, f, g, h, i); \
	TRY(fn, d, a, b, c, Z(d), e, f, g, h, i); \
	TRY(fn, e, a, b, c, d, Z(e), f, g, h, i); \
	TRY(fn, f, a, b, c, d, e, Z(f), g, h, i); \
	TRY(fn, g, a, b, c, d, e, f, Z(g), h, i); \
	TRY(fn, h, a, b, c, d, e, f, g, Z(h), i); \
	TRY(fn, i, a, b, c, d, e, f, g, h, Z(i))
#define NULLS_10(fn, a, b, c, d, e, f, g, h, i, j) \
	TRY(fn, a, Z(a), b, c, d, e, f, g, h, i, j); \
	TRY(fn, b, a, Z(b), c, d, e, f, g, h, i, j); \
	TRY(fn, c, a, b, Z(c), d, e, f, g, h, i, j); \
	TRY(fn, d, a, b, c, Z(d), e, f, g, h, i, j); \
	TRY(fn, e, a, b, c, d, Z(e), f, g, h, i, j); \
	TRY(fn, f, a, b, c, d, e, Z(f), g, h, i, j); \
	TRY(fn, g, a, b, c, d, e, f, Z(g), h, i, j); \
	TRY(fn, h, a, b, c, d, e, f, g, Z(h), i, j); \
	TRY(fn, i, a, b, c, d, e, f, g, h, Z(i), j); \
	TRY(fn, j, a, b, c, d, e, f, g, h, i, Z(j))
/* clang-format on */

/* A delete function: no address, and nothing there, as often as one likes. */
#define DELETES(function, type)                    \
	do {                                       \
		struct type *nothing = NULL;       \
                                                   \
		BAD(RPMA_E_INVAL, function, NULL); \
		BAD(0, function, &nothing);        \
		BAD(0, function, &nothing);        \
		assert_null(nothing);              \
	} while (0)

#endif /* SWEEP_H */
