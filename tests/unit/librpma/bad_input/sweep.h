/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Calling functions with arguments that they must refuse. A refused call
 * returns the expected error, calls nothing below the library, leaves its
 * out-parameters, all of which lie in one place, as they were, and says why:
 * one message of the log, of the level that its error has, in which the words
 * of the row are, or the parameter that is wrong. What is refused for now, or
 * has nothing to give, logs nothing. The called functions are recorded.
 */

#ifndef SWEEP_H
#define SWEEP_H 1

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "librpma.h"

/* What the program of the tests gives. */
struct sweep_ground {
	const char *map; /* the version script */
	size_t least;	 /* functions that are in it, or more */
	void *out;	 /* where out-parameters point */
	size_t out_size;
	void (*forget)(void); /* what was called beneath, and logged */
	const char *(*trace)(void);
	const char *(*text)(int error);
	/* the messages since then: how many, and the last */
	int (*heard)(enum rpma_log_level *level, char *text, size_t size);
	/* the level of an error's message; RPMA_LOG_DISABLED: none is logged */
	enum rpma_log_level (*level)(int error);
	/* a parameter that is NULL has to be named as the header names it;
	 * librpma's names differ from its header's here and there */
	bool names_parameters;
	const char *const *headers;	/* with the prototypes; up to NULL */
	const char *const *refuse_none; /* functions; up to NULL */
};
extern const struct sweep_ground sweep_ground;

/* What sweep_end() expects in the log. */
#define SWEEP_PARAMETER ""	 /* a name of a parameter */
#define SWEEP_SILENCE	"(none)" /* nothing */

/* Before and after a call of this function. words: "|" between them; each has
 * to be in the message. nth: instead, "NAME is NULL" of that parameter. */
void sweep_begin(const char *function);
void sweep_end(const char *function, int line, int ret, int expected,
	       const char *words, int nth);
/* Only what is in the log, of a call that was refused. */
void sweep_log(const char *function, int line, int ret, const char *words);
/* Fails if a function of the version script has not been called, or if none of
 * its calls was refused, unless it refuses none. */
void sweep_expect_all(void);

#define SWEEP(words, nth, expected, function, ...)                      \
	do {                                                            \
		sweep_begin(#function);                                 \
		sweep_end(#function, __LINE__, (function)(__VA_ARGS__), \
			  expected, words, nth);                        \
	} while (0)

/* One call that has to be refused so, in these words. */
#define BAD_SAYS(words, expected, function, ...) \
	SWEEP(words, -1, expected, function, __VA_ARGS__)
/* In words that name a parameter. */
#define BAD(expected, function, ...) \
	BAD_SAYS(SWEEP_PARAMETER, expected, function, __VA_ARGS__)

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
#define TRY(fn, nth, x, ...) \
	do { \
		if (IS_POINTER(x)) \
			SWEEP("", nth, RPMA_E_INVAL, fn, __VA_ARGS__); \
	} while (0)

#define NULLS_1(fn, a) TRY(fn, 0, a, Z(a))
#define NULLS_2(fn, a, b) \
	TRY(fn, 0, a, Z(a), b); \
	TRY(fn, 1, b, a, Z(b))
#define NULLS_3(fn, a, b, c) \
	TRY(fn, 0, a, Z(a), b, c); \
	TRY(fn, 1, b, a, Z(b), c); \
	TRY(fn, 2, c, a, b, Z(c))
#define NULLS_4(fn, a, b, c, d) \
	TRY(fn, 0, a, Z(a), b, c, d); \
	TRY(fn, 1, b, a, Z(b), c, d); \
	TRY(fn, 2, c, a, b, Z(c), d); \
	TRY(fn, 3, d, a, b, c, Z(d))
#define NULLS_5(fn, a, b, c, d, e) \
	TRY(fn, 0, a, Z(a), b, c, d, e); \
	TRY(fn, 1, b, a, Z(b), c, d, e); \
	TRY(fn, 2, c, a, b, Z(c), d, e); \
	TRY(fn, 3, d, a, b, c, Z(d), e); \
	TRY(fn, 4, e, a, b, c, d, Z(e))
#define NULLS_6(fn, a, b, c, d, e, f) \
	TRY(fn, 0, a, Z(a), b, c, d, e, f); \
	TRY(fn, 1, b, a, Z(b), c, d, e, f); \
	TRY(fn, 2, c, a, b, Z(c), d, e, f); \
	TRY(fn, 3, d, a, b, c, Z(d), e, f); \
	TRY(fn, 4, e, a, b, c, d, Z(e), f); \
	TRY(fn, 5, f, a, b, c, d, e, Z(f))
#define NULLS_7(fn, a, b, c, d, e, f, g) \
	TRY(fn, 0, a, Z(a), b, c, d, e, f, g); \
	TRY(fn, 1, b, a, Z(b), c, d, e, f, g); \
	TRY(fn, 2, c, a, b, Z(c), d, e, f, g); \
	TRY(fn, 3, d, a, b, c, Z(d), e, f, g); \
	TRY(fn, 4, e, a, b, c, d, Z(e), f, g); \
	TRY(fn, 5, f, a, b, c, d, e, Z(f), g); \
	TRY(fn, 6, g, a, b, c, d, e, f, Z(g))
#define NULLS_8(fn, a, b, c, d, e, f, g, h) \
	TRY(fn, 0, a, Z(a), b, c, d, e, f, g, h); \
	TRY(fn, 1, b, a, Z(b), c, d, e, f, g, h); \
	TRY(fn, 2, c, a, b, Z(c), d, e, f, g, h); \
	TRY(fn, 3, d, a, b, c, Z(d), e, f, g, h); \
	TRY(fn, 4, e, a, b, c, d, Z(e), f, g, h); \
	TRY(fn, 5, f, a, b, c, d, e, Z(f), g, h); \
	TRY(fn, 6, g, a, b, c, d, e, f, Z(g), h); \
	TRY(fn, 7, h, a, b, c, d, e, f, g, Z(h))
#define NULLS_9(fn, a, b, c, d, e, f, g, h, i) \
	TRY(fn, 0, a, Z(a), b, c, d, e, f, g, h, i); \
	TRY(fn, 1, b, a, Z(b), c, d, e, f, g, h, i); \
	TRY(fn, 2, c, a, b, Z(c), d, e, f, g, h, i); \
	TRY(fn, 3, d, a, b, c, Z(d), e, f, g, h, i); \
	TRY(fn, 4, e, a, b, c, d, Z(e), f, g, h, i); \
	TRY(fn, 5, f, a, b, c, d, e, Z(f), g, h, i); \
	TRY(fn, 6, g, a, b, c, d, e, f, Z(g), h, i); \
	TRY(fn, 7, h, a, b, c, d, e, f, g, Z(h), i); \
	TRY(fn, 8, i, a, b, c, d, e, f, g, h, Z(i))
#define NULLS_10(fn, a, b, c, d, e, f, g, h, i, j) \
	TRY(fn, 0, a, Z(a), b, c, d, e, f, g, h, i, j); \
	TRY(fn, 1, b, a, Z(b), c, d, e, f, g, h, i, j); \
	TRY(fn, 2, c, a, b, Z(c), d, e, f, g, h, i, j); \
	TRY(fn, 3, d, a, b, c, Z(d), e, f, g, h, i, j); \
	TRY(fn, 4, e, a, b, c, d, Z(e), f, g, h, i, j); \
	TRY(fn, 5, f, a, b, c, d, e, Z(f), g, h, i, j); \
	TRY(fn, 6, g, a, b, c, d, e, f, Z(g), h, i, j); \
	TRY(fn, 7, h, a, b, c, d, e, f, g, Z(h), i, j); \
	TRY(fn, 8, i, a, b, c, d, e, f, g, h, Z(i), j); \
	TRY(fn, 9, j, a, b, c, d, e, f, g, h, i, Z(j))
/* clang-format on */

/* A delete function: no address, and nothing there, as often as one likes. */
#define DELETES(function, type)                             \
	do {                                                \
		struct type *nothing = NULL;                \
                                                            \
		SWEEP("", 0, RPMA_E_INVAL, function, NULL); \
		BAD(0, function, &nothing);                 \
		BAD(0, function, &nothing);                 \
		assert_null(nothing);                       \
	} while (0)

#endif /* SWEEP_H */
