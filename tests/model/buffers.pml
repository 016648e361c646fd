/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Memory with store buffers, for the models that include this after they
 * defined THREADS, DEPTH and WORDS.
 *
 * Stores go through a buffer of their thread. They leave it in any order, but
 * for the same word in order, and a release store only when nothing is before
 * it: what a machine with weak order may do to stores. Loads are in program
 * order and see the own buffer first; those that matter are acquire loads. A
 * fence waits until the own buffer is empty, and so does an exchange.
 */

#define SLOTS (THREADS * DEPTH)

byte mem[WORDS];
byte b_word[SLOTS]; /* DEPTH for each thread, at most 3 */
byte b_value[SLOTS];
bool b_release[SLOTS];
byte b_count[THREADS];

#define AT(t, i) ((t)*DEPTH + (i))

/* What a thread sees in a word. */
#define LOAD(t, w)                                                            \
	((b_count[t] > 2 && b_word[AT(t, 2)] == (w))->b_value[AT(t, 2)]       \
	 : ((b_count[t] > 1 && b_word[AT(t, 1)] == (w))->b_value[AT(t, 1)]    \
	    : ((b_count[t] > 0 && b_word[AT(t, 0)] == (w))->b_value[AT(t, 0)] \
	       : mem[w])))

#define FENCE(t) (b_count[t] == 0)

inline put(t, w, v, release)
{
	atomic
	{
		b_count[t] < DEPTH->b_word[AT(t, b_count[t])] = w;
		b_value[AT(t, b_count[t])] = v;
		b_release[AT(t, b_count[t])] = release;
		b_count[t]++
	}
}

inline exchange(t, w, v, old)
{
	atomic
	{
		FENCE(t)->old = mem[w];
		mem[w] = v
	}
}

/* Removes entry i of a buffer, which has reached memory. */
inline leave(t, i)
{
	mem[b_word[AT(t, i)]] = b_value[AT(t, i)];
	j = i;
	do
		::j + 1 < b_count[t]->b_word[AT(t, j)] = b_word[AT(t, j + 1)];
	b_value[AT(t, j)] = b_value[AT(t, j + 1)];
	b_release[AT(t, j)] = b_release[AT(t, j + 1)];
	j++ ::else->break od;
	b_count[t]--;
	/* nothing left behind that only tells states apart */
	b_word[AT(t, b_count[t])] = 0;
	b_value[AT(t, b_count[t])] = 0;
	b_release[AT(t, b_count[t])] = false;
	j = 0
}

proctype buffer(byte t)
{
	byte j;

end:
	do
		::d_step
		{
			b_count[t] > 0->leave(t, 0)
		}
	::d_step
	{
		b_count[t] > 1 && !b_release[AT(t, 1)] &&
			b_word[AT(t, 1)] != b_word[AT(t, 0)]->leave(t, 1)
	}
	::d_step{b_count[t] > 2 && !b_release[AT(t, 2)] &&
		 b_word[AT(t, 2)] != b_word[AT(t, 0)] &&
		 b_word[AT(t, 2)] != b_word[AT(t, 1)]->leave(t, 2)} od
}
