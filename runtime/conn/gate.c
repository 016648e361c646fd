/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * gate.c -- entering and leaving a post; see gate.h. A lock, or a marker that
 * is odd while the one poster is inside: then the gate and the marker are the
 * two words of a store-fence-load handshake [GATE-1].
 */

#include "conn/gate.h"

#include <assert.h>
#include <sched.h>
#include <time.h>

#include "base/cancel.h"
#include "base/self.h"
#include "poller/poller.h"

/* how the control thread waits for a poster: it looks, then yields, then
 * sleeps, for one that is not running will be a while */
#define LOOKS	 100
#define YIELDS	 100
#define SLEEP_NS 50000

/* A poller never waits for another thread's post, whoever runs its round. */
static bool may_wait(void)
{
	return !rt_self_is_poller();
}

/* --------------------------------------------------------- the state --- */

/* From one to the other, paused or not; else nothing. */
static void change(struct rt_gate *gate, uint8_t from, uint8_t to)
{
	/* relaxed: compared below */
	uint8_t is = atomic_load_explicit(&gate->state, memory_order_relaxed);

	/* release: pairs with the acquire in rt_gate_enter_single(); posters
	 * that lock see it by the lock. Relaxed: compared again */
	while ((is & ~RT_GATE_PAUSED) == from &&
	       !atomic_compare_exchange_weak_explicit(
		       &gate->state, &is, to | (is & RT_GATE_PAUSED),
		       memory_order_release, memory_order_relaxed))
		;
}

/* Of a gate that is open, whether some wait or not; else nothing. */
static void set_paused(struct rt_gate *gate, uint8_t paused)
{
	/* relaxed: compared below */
	uint8_t is = atomic_load_explicit(&gate->state, memory_order_relaxed);

	/* as in change() */
	while (is != RT_GATE_NOT_YET && is != RT_GATE_CLOSED &&
	       !atomic_compare_exchange_weak_explicit(
		       &gate->state, &is, (is & ~RT_GATE_PAUSED) | paused,
		       memory_order_release, memory_order_relaxed))
		;
}

/* ----------------------------------------------------------- one poster --- */

static void marker_enter(struct rt_gate *gate)
{
	uint32_t before;

#ifndef NDEBUG
	/* relaxed: ordered by the fence; tells two posters at once */
	before = atomic_fetch_add_explicit(&gate->marker, 1,
					   memory_order_relaxed);
	assert(!(before & 1)); /* one poster was declared */
#else
	/* relaxed: its own word; the fence orders the store */
	before = atomic_load_explicit(&gate->marker, memory_order_relaxed);
	atomic_store_explicit(&gate->marker, before + 1, memory_order_relaxed);
#endif
	/* pairs with look_at_marker(): either that sees the marker odd, or we
	 * see the gate that was stored before [GATE-1] */
	rt_fence_dekker();
}

static int refusal(uint32_t state)
{
	return state == RT_GATE_NOT_YET ? RT_GATE_REFUSED_YET
					: RPMA_RT_E_CLOSED;
}

int rt_gate_enter_single(struct rt_gate *gate)
{
	uint32_t state;

	for (;;) {
		marker_enter(gate);
		/* acquire: pairs with the release in change() and
		 * set_paused(): the connection behind the gate, and what
		 * waits for room */
		state = atomic_load_explicit(&gate->state,
					     memory_order_acquire);
		if (state == RT_GATE_OPEN)
			return 0;
		if (state == RT_GATE_WAITING)
			return RT_GATE_BEHIND;
		rt_gate_leave_single(gate);
		if (!(state & RT_GATE_PAUSED))
			return refusal(state);
		if (!may_wait())
			return RPMA_E_AGAIN;
		/* held by the thread that paused it */
		rt_lock_take(&gate->lock);
		rt_lock_release(&gate->lock);
	}
}

/* The gate has changed: is the poster inside, which did not see that? */
static uint32_t look_at_marker(const struct rt_gate *gate)
{
	/* pairs with marker_enter() [GATE-1] */
	rt_fence_dekker();
	/* acquire: pairs with rt_gate_leave_single() [GATE-2] */
	return atomic_load_explicit(&gate->marker, memory_order_acquire);
}

/* Until the poster that was inside when the gate changed has left. Without a
 * bound: one that is stopped inside a post would hold a lock as long. */
static void marker_wait(struct rt_gate *gate)
{
	RT_NOT_CANCELLED;
	const struct timespec nap = {.tv_nsec = SLEEP_NS};
	uint32_t first = look_at_marker(gate);
	uint32_t looks = 0;

	/* acquire: as the first. Another odd value: the poster left, and came
	 * again to find the gate */
	while ((first & 1) &&
	       atomic_load_explicit(&gate->marker, memory_order_acquire) ==
		       first) {
		if (++looks < LOOKS)
			rt_cpu_relax();
		else if (looks < LOOKS + YIELDS)
			sched_yield();
		else
			nanosleep(&nap, NULL);
	}
}

/* -------------------------------------------------------------- posters --- */

bool rt_gate_is_closed(const struct rt_gate *gate)
{
	/* relaxed: a thread that knows of HANDOVER sees this too, and then must
	 * not answer AGAIN: the poller's last steps do not wait */
	return atomic_load_explicit(&gate->state, memory_order_relaxed) ==
	       RT_GATE_CLOSED;
}

int rt_gate_refuse_locked(struct rt_gate *gate)
{
	/* relaxed: the lock orders it */
	uint32_t state =
		atomic_load_explicit(&gate->state, memory_order_relaxed);

	if (state == RT_GATE_WAITING)
		return RT_GATE_BEHIND;
	rt_lock_release(&gate->lock);
	return refusal(state);
}

int rt_gate_try_enter(struct rt_gate *gate)
{
	if (!rt_lock_try(&gate->lock))
		return rt_gate_is_closed(gate) ? RPMA_RT_E_CLOSED
					       : RPMA_E_AGAIN;
	return rt_gate_is_open(gate) ? 0 : rt_gate_refuse_locked(gate);
}

/* False: a poller, and another thread has the lock. */
static bool take_lock(struct rt_gate *gate)
{
	if (!may_wait())
		return rt_lock_try(&gate->lock);
	rt_lock_take(&gate->lock);
	return true;
}

/* The lock is taken for each change of the gate, a single poster's too. */
int rt_gate_hold(struct rt_gate *gate)
{
	if (!take_lock(gate))
		return RPMA_E_AGAIN;
	if (!rt_gate_is_closed(gate))
		return 0;
	rt_lock_release(&gate->lock);
	return RPMA_RT_E_CLOSED;
}

void rt_gate_let_go(struct rt_gate *gate)
{
	rt_lock_release(&gate->lock);
}

int rt_gate_await_open(struct rt_gate *gate, uint32_t want)
{
	bool is_not_yet;

	if (!take_lock(gate))
		return rt_gate_is_closed(gate) ? 0 : RPMA_E_AGAIN;
	/* relaxed, both: rt_gate_open() takes the lock before the message of
	 * the opening, after which the poller looks at want */
	is_not_yet = atomic_load_explicit(&gate->state, memory_order_relaxed) ==
		     RT_GATE_NOT_YET;
	if (is_not_yet)
		atomic_fetch_or_explicit(&gate->side->want, want,
					 memory_order_relaxed);
	rt_lock_release(&gate->lock);
	return is_not_yet ? RT_GATE_REFUSED_YET : 0;
}

void rt_gate_set_waiting(struct rt_gate *gate, bool is_waiting)
{
	change(gate, is_waiting ? RT_GATE_OPEN : RT_GATE_WAITING,
	       is_waiting ? RT_GATE_WAITING : RT_GATE_OPEN);
}

void rt_gate_close_inside(struct rt_gate *gate)
{
	/* relaxed: posters look under the lock; behind a closed gate a single
	 * one reads nothing */
	atomic_store_explicit(&gate->state, RT_GATE_CLOSED,
			      memory_order_relaxed);
}

void rt_gate_refuse(struct rt_gate *gate, uint32_t count)
{
	rt_gate_close_inside(gate);
	rt_ledger_refuse(&gate->ledger, count);
}

/* ----------------------------------------------------------- the poller --- */

static int enter_beside_single(struct rt_gate *gate)
{
	int ret = RPMA_E_AGAIN;
	uint32_t state;

	set_paused(gate, RT_GATE_PAUSED);
	if (!(look_at_marker(gate) & 1)) {
		/* relaxed: nobody else is inside */
		state = atomic_load_explicit(&gate->state,
					     memory_order_relaxed);
		if (state & RT_GATE_PAUSED)
			return 0;
		ret = refusal(state);
	}
	rt_gate_leave_poller(gate);
	return ret;
}

int rt_gate_enter_poller(struct rt_gate *gate)
{
	if (!gate->single)
		return rt_gate_try_enter(gate);
	if (!rt_lock_try(&gate->lock))
		return rt_gate_is_closed(gate) ? RPMA_RT_E_CLOSED
					       : RPMA_E_AGAIN;
	return enter_beside_single(gate);
}

void rt_gate_leave_poller(struct rt_gate *gate)
{
	if (gate->single)
		set_paused(gate, 0);
	rt_lock_release(&gate->lock);
}

/* --------------------------------------------------- the control thread --- */

void rt_gate_open(struct rt_gate *gate)
{
	rt_lock_take(&gate->lock);
	change(gate, RT_GATE_NOT_YET, RT_GATE_OPEN);
	rt_lock_release(&gate->lock);
}

void rt_gate_close(struct rt_gate *gate)
{
	rt_lock_take(&gate->lock);
	/* relaxed: posters look under the lock, or behind the fence */
	atomic_store_explicit(&gate->state, RT_GATE_CLOSED,
			      memory_order_relaxed);
	if (gate->single)
		marker_wait(gate);
	rt_lock_release(&gate->lock);
}

void rt_gate_pause(struct rt_gate *gate)
{
	rt_lock_take(&gate->lock);
	if (gate->single) {
		set_paused(gate, RT_GATE_PAUSED);
		marker_wait(gate);
	}
}

void rt_gate_resume(struct rt_gate *gate, bool is_over)
{
	if (is_over)
		/* relaxed: nobody is inside, and from PAUSED or under the lock
		 * nobody sees it open in between */
		atomic_store_explicit(&gate->state, RT_GATE_CLOSED,
				      memory_order_relaxed);
	else
		set_paused(gate, 0);
	rt_lock_release(&gate->lock);
}
