/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * number.c -- the numbers of queue pairs: 8 bits of the process, 16 bits given
 * out in a circle, and the table from numbers to slots. The process is the
 * number on the wire, the start of the circle is drawn by getrandom(), when the
 * first queue pair is made, in a forked child again. Numbers are given and
 * taken under lb.big; any thread looks a number up.
 */

#include "qp/number.h"

#include <stdatomic.h>
#include <string.h>

#include "base/process.h"
#include "base/random.h"
#include "fault/fault.h"
#include "object/limits.h"
#include "qp/qp.h"
#include "wire/nic.h"

#define SHIFT	  16
#define COUNT	  (1u << SHIFT)
#define LAST	  (COUNT - 1) /* never given out; nor is 0 */
#define PROCESSES 254u	      /* 1 to 254 */

_Static_assert(LB_MAX_QP < LAST, "there is a number for each queue pair");

/* the slot of a number; memory only where numbers have been used */
static _Atomic(struct lb_qp *) table[COUNT];
static _Atomic uint32_t process; /* 0: not drawn yet */

/* under lb.big */
static uint32_t fresh;		 /* the next number never given out */
static uint32_t fresh_left;	 /* how many such numbers are left */
static uint16_t returned[COUNT]; /* other free numbers, a ring */
static uint32_t head, tail;
static bool is_inherited; /* the table belongs to the parent process */

/* The number behind n in the circle. */
static uint32_t next_of(uint32_t n)
{
	return n + 1 == LAST ? 1 : n + 1;
}

/*
 * Draws the number of the process and the start of the circle, which is
 * unpredictable.
 */
static void draw(void)
{
	uint32_t chance;

	lb_random_draw(&chance, sizeof(chance));
	if (is_inherited)
		memset(table, 0, sizeof(table));
	is_inherited = false;
	head = tail = 0;
	fresh = 1 + chance % (LAST - 1);
	fresh_left = LAST - 1;
	/* relaxed: the first number is published later, under a lock */
	atomic_store_explicit(&process, lb_nic_number(), memory_order_relaxed);
}

static uint32_t process_now(void)
{
	/* relaxed: constant from the first number on */
	return atomic_load_explicit(&process, memory_order_relaxed);
}

unsigned lb_qp_number_own(void)
{
	if (!process_now())
		draw();
	return process_now();
}

uint32_t lb_qp_number_new(struct lb_qp *qp)
{
	uint32_t n;

	lb_qp_number_own();
	if (lb_fault_knob(LB_KNOB_QPN_REUSE) && head != tail) {
		n = returned[--tail % COUNT];
	} else if (fresh_left) {
		n = fresh;
		fresh = next_of(fresh);
		fresh_left--;
	} else {
		n = returned[head++ % COUNT];
	}
	/* release: pairs with the acquire in lb_qp_at() */
	atomic_store_explicit(&table[n], qp, memory_order_release);
	return process_now() << SHIFT | n;
}

void lb_qp_number_drop(uint32_t qpn)
{
	if (qpn >> SHIFT != process_now())
		return; /* given out by the parent process */
	/* relaxed: the number is compared again under the lock of the slot */
	atomic_store_explicit(&table[qpn & LAST], NULL, memory_order_relaxed);
	returned[tail++ % COUNT] = (uint16_t)qpn;
}

struct lb_qp *lb_qp_at(uint32_t qpn)
{
	if (qpn >> SHIFT != process_now())
		return NULL;
	/* acquire: pairs with the release in lb_qp_number_new() */
	return atomic_load_explicit(&table[qpn & LAST], memory_order_acquire);
}

unsigned lb_qp_number_process(uint32_t qpn)
{
	uint32_t n = qpn >> SHIFT;

	return n && n <= PROCESSES && n != process_now() ? n : 0;
}

void lb_qp_number_fork(enum lb_fork_step step)
{
	if (step != LB_FORK_CHILD)
		return;
	is_inherited = true;
	/* relaxed: a child has a single thread */
	atomic_store_explicit(&process, 0, memory_order_relaxed);
}
