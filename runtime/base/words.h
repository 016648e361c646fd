/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * words.h -- two words as one, for records that are written in one place and
 * copied to another soon after. A copy by wide loads is fed from wide stores
 * that are on their way to the cache; from narrow ones it would wait until they
 * have arrived.
 */

#ifndef RT_BASE_WORDS_H
#define RT_BASE_WORDS_H

#include <stdint.h>

typedef uint64_t rt_two_words
	__attribute__((vector_size(16), may_alias, aligned(8)));

#endif /* RT_BASE_WORDS_H */
