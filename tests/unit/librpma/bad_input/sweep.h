/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Calling functions with arguments that the function must refuse. A refused
 * call returns the expected error, calls nothing below the library, leaves its
 * out-parameters (all in one place) unchanged, and says why: with one log
 * message, at the level of the error, containing the words of the row, or the
 * wrong parameter. A call refused only for now, or a call with nothing to
 * return, logs nothing. The called functions are recorded.
 */

#ifndef SWEEP_H
#define SWEEP_H 1

#include <stdbool.h>

#include "../../../cases.h"
#include "librpma.h"

/* Parameters of a program of tests. */
struct sweep_ground {
	const char *map; /* the version script */
	size_t least;	 /* functions in the script, at least */
	void *out;	 /* where out-parameters point */
	size_t out_size;
	void (*forget)(void); /* forgets the calls beneath, and the log */
	const char *(*trace)(void);
	const char *(*text)(int error);
	/* the messages since then: how many, and the last */
	int (*heard)(enum rpma_log_level *level, char *text, size_t size);
	/* the level of the message for an error; RPMA_LOG_DISABLED: no
	 * message */
	enum rpma_log_level (*level)(int error);
	/* a NULL parameter has to be named as in the header; names in librpma
	 * differ from its header in places */
	bool names_parameters;
	const char *const *headers;	/* with the prototypes; up to NULL */
	const char *const *refuse_none; /* functions; up to NULL */
};
extern const struct sweep_ground sweep_ground;

/* What sweep_end() expects in the log. */
#define SWEEP_PARAMETER ""	 /* a name of a parameter */
#define SWEEP_SILENCE	"(none)" /* nothing */

/* Run before and after a call of the function. words: alternatives are
 * separated by "|"; each has to be in the message. nth: instead, "NAME is NULL"
 * for the parameter. */
void sweep_begin(const char *function);
void sweep_end(const char *function, int line, int ret, int expected,
	       const char *words, int nth);
/* Checks only the log of a refused call. */
void sweep_log(const char *function, int line, int ret, const char *words);
/* Fails if a function of the version script was not called, or if no call was
 * refused, unless the function refuses nothing. */
void sweep_expect_all(void);

#define SWEEP(words, nth, expected, function, ...)                      \
	do {                                                            \
		sweep_begin(#function);                                 \
		sweep_end(#function, __LINE__, (function)(__VA_ARGS__), \
			  expected, words, nth);                        \
	} while (0)

/* A call that has to be refused with the error, in the words. */
#define BAD_SAYS(words, expected, function, ...) \
	SWEEP(words, -1, expected, function, __VA_ARGS__)
/* A call refused in words that name a parameter. */
#define BAD(expected, function, ...) \
	BAD_SAYS(SWEEP_PARAMETER, expected, function, __VA_ARGS__)

/*
 * NULLS(function, arguments...): with NULL in place of each pointer argument,
 * one after the other, the call is E_INVAL. An argument allowed to be NULL is
 * written 0.
 */
#define NULLS(function, ...)                                                  \
	NULLS_PICK(__VA_ARGS__, NULLS_10, NULLS_9, NULLS_8, NULLS_7, NULLS_6, \
		   NULLS_5, NULLS_4, NULLS_3, NULLS_2, NULLS_1, unused)       \
	(function, __VA_ARGS__)
#define NULLS_PICK(a, b, c, d, e, f, g, h, i, j, name, ...) name

#define TYPE_OF(x)    __typeof__(((void)0, (x)))
#define POINTER_CLASS 5 /* the value of __builtin_classify_type() */
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

/* Calls a delete function with NULL, and with a pointer to NULL, repeatedly. */
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
