/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The gate of a side with its lock and with the marker of a single poster: the
 * posters that enter, that closing and pausing wait for the poster inside, the
 * error of a poller thread that may not wait, the side's poller beside a
 * poster, and that two single posters are caught.
 */

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rt_fake.h"
#include "conn/gate.h"

/* what refused posters wait for */
static struct rt_side side;

static void gate_init(struct rt_gate *gate, bool single)
{
	memset(gate, 0, sizeof(*gate));
	memset(&side, 0, sizeof(side));
	gate->single = single;
	gate->side = &side;
}

static uint32_t wanted(const struct rt_gate *gate)
{
	/* relaxed: one thread */
	return atomic_load_explicit(&gate->side->want, memory_order_relaxed);
}

static void enter__as_the_gate_says(void **state)
{
	struct rt_gate gate;
	int single;

	(void)state;
	for (single = 0; single < 2; single++) {
		gate_init(&gate, single);
		assert_int_equal(rt_gate_enter(&gate), RT_GATE_REFUSED_YET);
		assert_int_equal(rt_gate_await_open(&gate, 1),
				 RT_GATE_REFUSED_YET);
		assert_int_equal(wanted(&gate), 1);
		rt_gate_open(&gate);
		ok(rt_gate_await_open(&gate, 2));
		assert_int_equal(wanted(&gate), 1);
		ok(rt_gate_enter(&gate));
		rt_gate_leave(&gate);
		rt_gate_pause(&gate);
		rt_gate_resume(&gate, false);
		ok(rt_gate_enter(&gate));
		rt_gate_leave(&gate);
		rt_gate_close(&gate);
		assert_int_equal(rt_gate_enter(&gate), RPMA_RT_E_CLOSED);
		rt_gate_open(&gate); /* never again */
		assert_int_equal(rt_gate_enter(&gate), RPMA_RT_E_CLOSED);
		ok(rt_gate_await_open(&gate, 2));
		assert_int_equal(wanted(&gate), 1);
	}
}

static void resume__over_CLOSED(void **state)
{
	struct rt_gate gate;
	int single;

	(void)state;
	for (single = 0; single < 2; single++) {
		gate_init(&gate, single);
		rt_gate_open(&gate);
		rt_gate_pause(&gate);
		rt_gate_resume(&gate, true);
		assert_int_equal(rt_gate_enter(&gate), RPMA_RT_E_CLOSED);
	}
}

/* Closed while the control thread was inside: stays so. */
static void resume__closed_meanwhile_stays_CLOSED(void **state)
{
	struct rt_gate gate;

	(void)state;
	gate_init(&gate, true);
	rt_gate_open(&gate);
	rt_gate_pause(&gate);
	/* relaxed: as rpma_rt_conn_close() does, without the lock */
	atomic_store_explicit(&gate.state, RT_GATE_CLOSED,
			      memory_order_relaxed);
	rt_gate_resume(&gate, false);
	assert_int_equal(rt_gate_enter(&gate), RPMA_RT_E_CLOSED);
}

struct closing {
	struct rt_gate gate;
	_Atomic bool begun;
	int written; /* by the poster inside; read after the close */
	bool pauses;
};

static void *close_it(void *arg)
{
	struct closing *closing = arg;

	/* relaxed: only that it runs */
	atomic_store_explicit(&closing->begun, true, memory_order_relaxed);
	if (closing->pauses)
		rt_gate_pause(&closing->gate);
	else
		rt_gate_close(&closing->gate);
	assert_int_equal(closing->written, 1);
	if (closing->pauses)
		rt_gate_resume(&closing->gate, false);
	return NULL;
}

static void close__waits_for_who_is_inside(bool single, bool pauses)
{
	struct closing closing = {.pauses = pauses};
	pthread_t thread;
	int i;

	gate_init(&closing.gate, single);
	rt_gate_open(&closing.gate);
	ok(rt_gate_enter(&closing.gate));
	ok(pthread_create(&thread, NULL, close_it, &closing));
	/* relaxed: only that it runs */
	while (!atomic_load_explicit(&closing.begun, memory_order_relaxed))
		sched_yield();
	for (i = 0; i < 1000; i++)
		sched_yield(); /* a closer that does not wait has time */
	closing.written = 1;
	rt_gate_leave(&closing.gate);
	ok(pthread_join(thread, NULL));
	assert_int_equal(rt_gate_enter(&closing.gate),
			 pauses ? 0 : RPMA_RT_E_CLOSED);
	if (pauses)
		rt_gate_leave(&closing.gate);
}

static void close__and_pause_wait_for_who_is_inside(void **state)
{
	(void)state;
	close__waits_for_who_is_inside(false, false);
	close__waits_for_who_is_inside(false, true);
	close__waits_for_who_is_inside(true, false);
	close__waits_for_who_is_inside(true, true);
}

static void *enter_and_leave(void *arg)
{
	struct closing *closing = arg;

	ok(rt_gate_enter(&closing->gate));
	assert_int_equal(closing->written, 1);
	rt_gate_leave(&closing->gate);
	return NULL;
}

/* A thread waits for the end of the pause, a poller does not. */
static void enter__paused_waits_or_AGAIN_on_a_poller(void **state)
{
	struct fake *f = *state;
	struct closing closing = {0};
	pthread_t thread;
	int single;

	for (single = 0; single < 2; single++) {
		gate_init(&closing.gate, single);
		rt_gate_open(&closing.gate);
		rt_gate_pause(&closing.gate);
		closing.written = 0;
		ok(rt_poller_enter(f->poller));
		assert_int_equal(rt_gate_enter(&closing.gate), RPMA_E_AGAIN);
		rt_poller_leave(f->poller);
		ok(pthread_create(&thread, NULL, enter_and_leave, &closing));
		closing.written = 1;
		rt_gate_resume(&closing.gate, false);
		ok(pthread_join(thread, NULL));
	}
}

/* ------------------------------------------------- what waits for room --- */

/* The single poster inside finds that others wait while a pause begins: the end
 * of the pause leaves that. */
static void pause__leaves_WAITING(void **state)
{
	struct closing closing = {.pauses = true, .written = 1};
	pthread_t thread;

	(void)state;
	gate_init(&closing.gate, true);
	rt_gate_open(&closing.gate);
	ok(rt_gate_enter(&closing.gate));
	ok(pthread_create(&thread, NULL, close_it, &closing));
	/* relaxed: the join orders the rest */
	while (!(atomic_load_explicit(&closing.gate.state,
				      memory_order_relaxed) &
		 RT_GATE_PAUSED))
		sched_yield();
	rt_gate_set_waiting(&closing.gate, true);
	rt_gate_leave(&closing.gate);
	ok(pthread_join(thread, NULL));
	assert_int_equal(rt_gate_enter(&closing.gate), RT_GATE_BEHIND);
	rt_gate_set_waiting(&closing.gate, false);
	rt_gate_leave(&closing.gate);
	ok(rt_gate_enter(&closing.gate));
	rt_gate_leave(&closing.gate);
}

/* Whether some wait or not; the poster is as it was. */
static void enter_poller__a_poster_inside_AGAIN(void **state)
{
	struct rt_gate gate;
	int single;

	(void)state;
	for (single = 0; single < 2; single++) {
		gate_init(&gate, single);
		assert_int_equal(rt_gate_enter_poller(&gate),
				 RT_GATE_REFUSED_YET);
		rt_gate_open(&gate);
		ok(rt_gate_enter(&gate));
		assert_int_equal(rt_gate_enter_poller(&gate), RPMA_E_AGAIN);
		rt_gate_set_waiting(&gate, true);
		assert_int_equal(rt_gate_enter_poller(&gate), RPMA_E_AGAIN);
		rt_gate_leave(&gate);
		assert_int_equal(rt_gate_enter(&gate), RT_GATE_BEHIND);
		rt_gate_leave(&gate);
	}
}

/* Posters find what the poller has left. */
static void enter_poller__posters_wait_or_AGAIN_on_a_poller(void **state)
{
	struct fake *f = *state;
	struct closing closing = {0};
	pthread_t thread;
	int single;
	int entered;

	for (single = 0; single < 2; single++) {
		gate_init(&closing.gate, single);
		rt_gate_open(&closing.gate);
		rt_gate_set_waiting(&closing.gate, true);
		closing.written = 0;
		entered = rt_gate_enter_poller(&closing.gate);
		assert_true(entered == 0 || entered == RT_GATE_BEHIND);
		ok(rt_poller_enter(f->poller));
		assert_int_equal(rt_gate_enter(&closing.gate), RPMA_E_AGAIN);
		rt_poller_leave(f->poller);
		ok(pthread_create(&thread, NULL, enter_and_leave, &closing));
		closing.written = 1;
		rt_gate_set_waiting(&closing.gate, false);
		rt_gate_leave_poller(&closing.gate);
		ok(pthread_join(thread, NULL));
		rt_gate_close(&closing.gate);
		assert_int_equal(rt_gate_enter_poller(&closing.gate),
				 RPMA_RT_E_CLOSED);
	}
}

static void enter__two_single_posters_assertion(void **state)
{
	struct rt_gate gate;
	int status;
	pid_t pid;

	(void)state;
	gate_init(&gate, true);
	rt_gate_open(&gate);
	ok(rt_gate_enter(&gate));
	pid = fork();
	if (pid == 0) {
		/* quiet: the message and the report of it are meant */
		close(STDERR_FILENO);
		signal(SIGABRT, SIG_DFL);
		rt_gate_enter(&gate);
		_exit(0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	rt_gate_leave(&gate);
}

/* The whole connection: posts, dies with posts outstanding. */
static void conn__single_posts_and_dies(void **state)
{
	struct fake *f = *state;
	struct rpma_rt_conn *conn;

	f->rt_cfg.single_poster = 1;
	conn = fake_established(f);
	assert_true(conn->gate[0].single && conn->gate[1].single);
	ok(fake_send(conn, 1, RPMA_F_COMPLETION_ALWAYS));
	ok(fake_recv(conn, 2));
	fake_sent(conn, 0, IBV_WC_SUCCESS);
	fake_round(f);
	assert_int_equal(fake_take(f, f->queue), 1);
	ok(rpma_rt_conn_close(conn));
	assert_int_equal(fake_recv(conn, 3), RPMA_RT_E_CLOSED);
	fake_finish_down(f);
	fake_markers(conn);
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 2);
	assert_int_equal(f->items[0].context, 2);
	assert_int_equal(f->items[0].flags, RPMA_RT_C_SYNTHESIZED);
	assert_int_equal(f->items[1].opcode, RPMA_RT_EVENT_CLOSED);
	ok(rpma_rt_conn_unref(&conn));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(enter__as_the_gate_says),
		fake_test(resume__over_CLOSED),
		fake_test(resume__closed_meanwhile_stays_CLOSED),
		fake_test(close__and_pause_wait_for_who_is_inside),
		fake_test(enter__paused_waits_or_AGAIN_on_a_poller),
		fake_test(pause__leaves_WAITING),
		fake_test(enter_poller__a_poster_inside_AGAIN),
		fake_test(enter_poller__posters_wait_or_AGAIN_on_a_poller),
		fake_test(enter__two_single_posters_assertion),
		fake_test(conn__single_posts_and_dies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
