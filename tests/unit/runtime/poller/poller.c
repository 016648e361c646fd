/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The loop of the poller by hand: budgets, arming and the reasons not to sleep,
 * events and their acknowledgement, spills, and failures of creation.
 */

#include <errno.h>
#include <limits.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "rt_fake.h"
#include "base/self.h"
#include "poller/round.h"
#include "poller/poller.h"
#include "poller/cq_pool.h"
#include "queue/impl.h"

#define ALWAYS RPMA_F_COMPLETION_ALWAYS

static struct rpma_rt_poller_stats stats_of(const struct fake *f)
{
	struct rpma_rt_poller_stats stats;

	ok(rpma_rt_poller_get_stats(f->rt, 0, &stats, sizeof(stats)));
	return stats;
}

static void send_and_complete(struct rpma_rt_conn *conn, int count)
{
	uint32_t first = fake_qp(conn)->sq_count;
	int i;

	for (i = 0; i < count; i++) {
		ok(fake_send(conn, (uint64_t)i, ALWAYS));
		fake_sent(conn, first + (uint32_t)i, IBV_WC_SUCCESS);
	}
}

/* As long as the CQ has room for both of them only: a second CQ. */
static struct rpma_rt_conn *established_on_another_cq(struct fake *f)
{
	struct rpma_rt_conn *conn;
	uint32_t room = f->rt->conns->cq->room;

	f->rt->conns->cq->room = 0;
	conn = fake_established(f);
	conn->next->cq->room = room;
	assert_ptr_not_equal(conn->cq, conn->next->cq);
	assert_ptr_equal(conn->cq->channel, conn->next->cq->channel);
	return conn;
}

/* --------------------------------------------------------------- rounds --- */

FAKE_TEST(round__budget_kept)
{
	struct rpma_rt_conn *conn = fake_established(f);

	send_and_complete(conn, 5);
	assert_int_equal(rt_round_run(f->poller, 2), 2);
	assert_int_equal(fake_take(f, f->queue), 2);
	assert_int_equal(rt_round_run(f->poller, 2), 2);
	assert_int_equal(rt_round_run(f->poller, 2), 1);
	assert_int_equal(rt_round_run(f->poller, 2), 0);
	assert_int_equal(fake_take(f, f->queue), 3);
	fake_bury(f, &conn);
}

/* With any budget, every CQ has its turn. */
FAKE_TEST(round__each_cq_in_turn)
{
	struct rpma_rt_conn *first = fake_established(f);
	struct rpma_rt_conn *second = established_on_another_cq(f);

	send_and_complete(first, 4);
	send_and_complete(second, 4);
	rt_round_run(f->poller, 1);
	rt_round_run(f->poller, 1);
	assert_int_equal(fake_take(f, f->queue), 2);
	assert_int_not_equal(f->items[0].qp_num, f->items[1].qp_num);
	fake_round(f);
	assert_int_equal(fake_take(f, f->queue), 6);
	fake_bury(f, &second);
	fake_bury(f, &first);
}

static uint64_t polls_in_a_round(struct fake *f)
{
	uint64_t before = stats_of(f).polls;

	rt_round_run(f->poller, RT_BATCH);
	return stats_of(f).polls - before;
}

static void run_until_cqs_rest(struct fake *f)
{
	int i;

	for (i = 0; i < RT_CQS_EMPTY_POLLS + f->poller->cqs_count; i++)
		rt_round_run(f->poller, RT_BATCH);
	assert_int_equal(f->poller->cqs_awake, 0);
}

/* A CQ without completions costs little, and its next completion is found
 * within as many rounds as there are such CQs. */
FAKE_TEST(rest__one_poll_a_round_UNTIL_A_COMPLETION)
{
	struct rpma_rt_conn *first = fake_established(f);
	struct rpma_rt_conn *second = established_on_another_cq(f);
	struct rpma_rt_conn *conns[2] = {first, second};
	int i;

	for (i = 0; i < 2; i++) {
		run_until_cqs_rest(f);
		assert_int_equal(polls_in_a_round(f), 1);
		send_and_complete(conns[i], 1);
		rt_round_run(f->poller, RT_BATCH);
		rt_round_run(f->poller, RT_BATCH);
		assert_int_equal(fake_take(f, f->queue), 1);
		/* polled in each round from now on, beside the other */
		assert_int_equal(f->poller->cqs_awake, 1);
		assert_int_equal(polls_in_a_round(f), 2);
	}
	fake_bury(f, &second);
	fake_bury(f, &first);
}

/* A CQ with completions at all times takes up each budget, but not the turn of
 * resting CQs. */
FAKE_TEST(rest__beside_a_busy_cq_FOUND)
{
	struct rpma_rt_conn *busy = fake_established(f);
	struct rpma_rt_conn *idle = established_on_another_cq(f);

	run_until_cqs_rest(f);
	send_and_complete(busy, 4);
	while (f->poller->cqs_awake == 0)
		rt_round_run(f->poller, 1);
	assert_int_equal(fake_take(f, f->queue), 1);
	send_and_complete(idle, 1);
	rt_round_run(f->poller, 1);
	assert_int_equal(fake_take(f, f->queue), 1);
	assert_int_equal(f->items[0].qp_num, idle->qp_num);
	fake_bury(f, &idle);
	fake_bury(f, &busy);
}

/* Before the poller sleeps each CQ is polled, resting CQs too. */
FAKE_TEST(rest__polled_before_the_sleep)
{
	struct rpma_rt_conn *first = fake_established(f);
	struct rpma_rt_conn *second = established_on_another_cq(f);

	run_until_cqs_rest(f);
	send_and_complete(first, 1);
	send_and_complete(second, 1);
	assert_false(rt_arm_poller(f->poller));
	assert_int_equal(fake_take(f, f->queue), 2);
	fake_bury(f, &second);
	fake_bury(f, &first);
}

static struct rt_cq *taken_out;

static void take_out(struct rt_msg *msg, void *owner)
{
	(void)msg;
	rt_cqs_take_out_poller(owner, taken_out);
}

/* A completion of an unknown route has the poller run the inbox in the middle
 * of a round, and a message there removes the CQ that would be polled next. */
FAKE_TEST(round__next_cq_taken_out_NOT_POLLED)
{
	struct rpma_rt_conn *first = fake_established(f);
	struct rpma_rt_conn *second = established_on_another_cq(f);
	uint32_t room = first->cq->room;
	struct rt_msg msg = {.fn = take_out};
	struct rpma_rt_conn *third;
	struct rpma_rt_conn *last;

	first->cq->room = 0;
	third = established_on_another_cq(f);
	first->cq->room = room;
	rt_cqs_wake_all_poller(f->poller);
	assert_int_equal(f->poller->cqs_count, 3);
	taken_out = f->poller->cqs[2];
	last = taken_out == first->cq	 ? first
	       : taken_out == second->cq ? second
					 : third;
	send_and_complete(last, 1);
	fake_wc(f->poller->cqs[1], rt_wr_id(RT_ROUTE_COUNT - 1, 7),
		IBV_WC_SUCCESS, IBV_WC_SEND, 99);
	f->poller->cqs_first = 0; /* the round begins with the next CQ */
	rt_inbox_push_mt(&f->poller->inbox, &msg);
	rt_round_run(f->poller, RT_BATCH);
	assert_int_equal(taken_out->place, -1);
	assert_int_equal(fake_take(f, f->queue), 0);
	rt_cqs_add_message(&taken_out->add_msg, f->poller);
	fake_round(f);
	assert_int_equal(fake_take(f, f->queue), 1);
	fake_bury(f, &third);
	fake_bury(f, &second);
	fake_bury(f, &first);
}

/* An idle poller runs billions of rounds: nothing grows that names a CQ. */
FAKE_TEST(rest__idle_rounds_KEEP_THE_PLACE)
{
	struct rpma_rt_conn *first = fake_established(f);
	struct rpma_rt_conn *second = established_on_another_cq(f);
	int i;

	run_until_cqs_rest(f);
	for (i = 0; i < 10; i++) {
		rt_round_run(f->poller, RT_BATCH);
		assert_in_range(f->poller->cqs_first, 0, 1);
	}
	fake_bury(f, &second);
	fake_bury(f, &first);
}

/* A resting CQ leaves like others. */
FAKE_TEST(rest__then_gone)
{
	struct rpma_rt_conn *first = fake_established(f);
	struct rpma_rt_conn *second = established_on_another_cq(f);

	run_until_cqs_rest(f);
	fake_bury(f, &second);
	fake_finish_down(f);
	send_and_complete(first, 1);
	fake_round(f);
	assert_int_equal(fake_take(f, f->queue), 1);
	fake_bury(f, &first);
}

FAKE_TEST(round__one_batch_one_publication)
{
	struct rpma_rt_conn *conn = fake_established(f);
	uint64_t batches = stats_of(f).batches;

	send_and_complete(conn, FAKE_SQ);
	fake_round(f);
	assert_int_equal(stats_of(f).batches, batches + 1);
	assert_int_equal(stats_of(f).completions, FAKE_SQ);
	fake_bury(f, &conn);
}

/* A single completion wakes a consumer asleep on its fd, and then brings
 * WRITABLE to the refused poster. */
FAKE_TEST(round__one_alone_RINGS_AND_ANSWERS)
{
	struct rpma_rt_conn *conn = fake_established(f);
	struct epoll_event event = {.events = EPOLLIN};
	int set = epoll_create1(0);
	int fd;
	int i;

	for (i = 0; i < FAKE_SQ; i++)
		ok(fake_send(conn, (uint64_t)i, ALWAYS));
	assert_int_equal(fake_send(conn, 0, ALWAYS), RPMA_E_AGAIN);
	ok(rpma_rt_queue_get_fd(f->queue, &fd));
	ok(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
	ok(rpma_rt_queue_arm(f->queue));
	f->poller->runner =
		0; /* of the thread that armed the ring is left out */
	fake_sent(conn, 0, IBV_WC_SUCCESS);
	assert_int_equal(rt_round_run(f->poller, RT_BATCH), 1);
	assert_int_equal(epoll_wait(set, &event, 1, 0), 1);
	assert_int_equal(fake_take(f, f->queue), 2);
	assert_int_equal(f->items[0].kind, RPMA_RT_COMPLETION);
	assert_int_equal(f->items[1].kind, RPMA_RT_WRITABLE);
	ok(fake_send(conn, 0, ALWAYS));
	assert_int_equal(stats_of(f).doorbells, 1);
	close(set);
	fake_bury(f, &conn);
}

/* A single completion is counted like a batch; a swallowed completion gives its
 * credit back all the same. */
FAKE_TEST(round__one_alone_COUNTED)
{
	struct rpma_rt_conn *conn = fake_established(f);
	struct rpma_rt_poller_stats before = stats_of(f);
	struct rpma_rt_poller_stats after;
	int i;

	send_and_complete(conn, 1);
	assert_int_equal(rt_round_run(f->poller, RT_BATCH), 1);
	after = stats_of(f);
	assert_int_equal(after.polls - after.empty_polls,
			 before.polls - before.empty_polls + 1);
	assert_int_equal(after.completions, before.completions + 1);
	assert_int_equal(after.delivered, before.delivered + 1);
	assert_int_equal(after.batches, before.batches + 1);
	assert_int_equal(fake_take(f, f->queue), 1);
	/* the last send is signaled, so that room comes back */
	for (i = 0; i < FAKE_SQ / 2; i++)
		ok(fake_send(conn, 1, RPMA_F_COMPLETION_ON_ERROR));
	fake_sent(conn, fake_qp(conn)->sq_count - 1, IBV_WC_SUCCESS);
	assert_int_equal(rt_round_run(f->poller, RT_BATCH), 1);
	assert_int_equal(stats_of(f).completions, before.completions + 2);
	assert_int_equal(stats_of(f).delivered, before.delivered + 1);
	assert_int_equal(fake_take(f, f->queue), 0);
	fake_bury(f, &conn);
}

FAKE_TEST(add_cq__no_memory_its_connections_die)
{
	struct rpma_cm_event event = {.type = RDMA_CM_EVENT_CONNECT_REQUEST};
	struct rpma_rt_conn *conn;

	event.id = &f->id;
	conn = fake_established(f);
	fake_bury(f, &conn);
	/* the array is full and must grow for the next CQ */
	f->poller->cqs_max = f->poller->cqs_count;
	f->poller->cqs[0]->room = 0;
	rt_conn_request_control(&f->listener, &event);
	conn = f->rt->conns;
	fake_fail("malloc", 1, 1);
	fake_finish_down(f);
	assert_true(fake_failed());
	assert_int_equal(fake_take(f, f->queue), 2);
	assert_int_equal(f->items[0].opcode, RPMA_RT_EVENT_REQUEST);
	assert_int_equal(f->items[1].opcode, RPMA_RT_EVENT_CLOSED);
	assert_int_equal(f->items[1].status, RPMA_RT_REASON_DEVICE);
	ok(rpma_rt_conn_unref(&conn));
}

/* ------------------------------------------------------------- sleeping --- */

FAKE_TEST(arm__every_cq_then_asleep)
{
	struct rpma_rt_conn *first = fake_established(f);
	struct rpma_rt_conn *second = established_on_another_cq(f);
	uint64_t polls = stats_of(f).polls;

	assert_true(rt_arm_poller(f->poller));
	assert_int_equal(fake_cq(first->cq)->arms, 1);
	assert_int_equal(fake_cq(second->cq)->arms, 1);
	assert_int_equal(stats_of(f).polls, polls + 2);
	assert_int_equal(stats_of(f).sleeps, 1);
	assert_true(rt_bell_is_asleep(&f->poller->bell));
	assert_int_equal(rt_channel_wake(f->poller), 0);
	assert_false(rt_bell_is_asleep(&f->poller->bell));
	fake_bury(f, &second);
	fake_bury(f, &first);
}

/*
 * The completion came between the last poll and the arm of a CQ: no event will
 * follow.
 */
FAKE_TEST(arm__completion_before_its_arm_found)
{
	struct rpma_rt_conn *first = fake_established(f);
	struct rpma_rt_conn *second = established_on_another_cq(f);
	struct rpma_rt_conn *conns[2] = {first, second};
	int i;

	for (i = 0; i < 2; i++) {
		struct rpma_cq *cq = fake_cq(conns[i]->cq);

		ok(fake_send(conns[i], 7, ALWAYS));
		cq->wc_on_arm =
			(struct ibv_wc){.wr_id = fake_sq_id(conns[i], 0),
					.opcode = IBV_WC_SEND,
					.qp_num = conns[i]->qp_num};
		cq->on_arm = true;
		assert_false(rt_arm_poller(f->poller));
		assert_int_equal(fake_take(f, f->queue), 1);
	}
	assert_int_equal(stats_of(f).sleeps, 0);
	fake_bury(f, &second);
	fake_bury(f, &first);
}

FAKE_TEST(arm__message_in_the_inbox_awake)
{
	struct rpma_rt_conn *conn = fake_established(f);

	rt_conn_tell_poller(conn,
			    RT_POLL_ESTABLISHED); /* handled by the poll */
	assert_false(rt_arm_poller(f->poller));
	assert_int_equal(fake_take(f, f->queue), 1);
	assert_false(rt_bell_is_asleep(&f->poller->bell));
	assert_true(rt_arm_poller(f->poller));
	/* rung: the fd is readable */
	rt_conn_tell_poller(conn, RT_POLL_ESTABLISHED);
	assert_false(rt_bell_is_asleep(&f->poller->bell));
	{
		struct epoll_event event;

		assert_int_equal(epoll_wait(f->poller->epfd, &event, 1, 0), 1);
		rt_channel_wake(f->poller);
		assert_int_equal(epoll_wait(f->poller->epfd, &event, 1, 0), 0);
	}
	fake_round(f);
	fake_take(f, f->queue);
	fake_bury(f, &conn);
}

FAKE_TEST(arm__stopping_awake)
{
	rt_poller_stop(f->poller);
	assert_false(rt_arm_poller(f->poller));
	assert_int_equal(stats_of(f).sleeps, 0);
}

FAKE_TEST(arm__refused_cq_dead)
{
	struct rpma_rt_conn *conn = fake_established(f);

	fake_cq(conn->cq)->notify_answer = EIO;
	rt_arm_poller(f->poller);
	assert_true(conn->cq->dead);
	rt_channel_wake(f->poller);
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 1);
	assert_int_equal(f->items[0].status, RPMA_RT_REASON_DEVICE);
	ok(rpma_rt_conn_unref(&conn));
}

FAKE_TEST(fail__the_only_cq_POLLED_NO_MORE)
{
	struct rpma_rt_conn *conn = fake_established(f);

	assert_int_equal(polls_in_a_round(f), 1);
	rt_cqs_fail_poller(f->poller, conn->cq);
	assert_int_equal(polls_in_a_round(f), 0);
	fake_finish_down(f);
	assert_int_equal(fake_take(f, f->queue), 1);
	assert_int_equal(f->items[0].status, RPMA_RT_REASON_DEVICE);
	ok(rpma_rt_conn_unref(&conn));
}

/* Counted by the round after a sleep ended only by time. */
FAKE_TEST(timed_out__a_completion_without_event_counted)
{
	struct rpma_rt_conn *conn = fake_established(f);

	send_and_complete(conn, 1);
	rt_poller_time_out(f->poller);
	fake_round(f);
	assert_int_equal(stats_of(f).lost_events_recovered, 1);
	/* an event a little later was not lost */
	send_and_complete(conn, 1);
	fake_cq_event(conn->cq);
	rt_poller_time_out(f->poller);
	fake_round(f);
	assert_int_equal(stats_of(f).lost_events_recovered, 1);
	fake_take(f, f->queue);
	fake_bury(f, &conn);
}

/* --------------------------------------------------------------- events --- */

FAKE_TEST(events__acknowledged_at_64)
{
	struct rpma_rt_conn *conn = fake_established(f);
	struct rpma_cq *cq = fake_cq(conn->cq);
	int i;

	for (i = 0; i < RT_ACK_BATCH - 1; i++)
		fake_cq_event(conn->cq);
	assert_int_equal(rt_channel_wake(f->poller), RT_ACK_BATCH - 1);
	assert_int_equal(cq->acked, 0);
	fake_cq_event(conn->cq);
	fake_cq_event(conn->cq);
	assert_int_equal(rt_channel_wake(f->poller), 2);
	assert_int_equal(cq->acked, RT_ACK_BATCH);
	assert_int_equal(rt_cq_unacked(conn->cq), 1);
	assert_int_equal(stats_of(f).acks, 1);
	assert_int_equal(stats_of(f).events, RT_ACK_BATCH + 1);
	fake_bury(f, &conn);
	/* the end of the CQ acknowledges the last event, as the fake checks */
}

FAKE_TEST(events__EINTR_read_again)
{
	struct rpma_rt_conn *conn = fake_established(f);

	fake_channel(conn->cq->channel)->errno_next = EINTR;
	fake_cq_event(conn->cq);
	assert_int_equal(rt_channel_wake(f->poller), 1);
	assert_false(conn->cq->channel->dead);
	fake_bury(f, &conn);
}

FAKE_TEST(events__of_nobody_acknowledged_singly)
{
	struct rpma_rt_conn *conn = fake_established(f);

	fake_fail("cq_get_context", 1, RPMA_E_INVAL);
	fake_cq_event(conn->cq);
	assert_int_equal(rt_channel_wake(f->poller), 1);
	assert_int_equal(fake_cq(conn->cq)->acked, 1);
	assert_int_equal(rt_cq_unacked(conn->cq), 0);
	fake_bury(f, &conn);
}

FAKE_TEST(events__channel_broken_its_cqs_dead)
{
	struct rpma_rt_conn *first = fake_established(f);
	struct rpma_rt_conn *second = established_on_another_cq(f);
	/* the channel outlives its CQs, which go after their connections */
	struct rt_channel *channel = first->cq->channel;
	struct epoll_event event;
	int i;

	fake_channel(channel)->errno_empty = EIO;
	rt_channel_wake(f->poller);
	assert_true(channel->dead);
	assert_true(first->cq->dead && second->cq->dead);
	/* and the fd is out of the set: the fd would be readable for ever */
	assert_int_equal(
		epoll_ctl(f->poller->epfd, EPOLL_CTL_DEL, channel->fd, &event),
		-1);
	assert_int_equal(errno, ENOENT);
	fake_finish_down(f);
	/* no further connection comes to the channel */
	assert_true(channel->failed);
	assert_int_equal(fake_take(f, f->queue), 2);
	for (i = 0; i < 2; i++) {
		assert_int_equal(f->items[i].opcode, RPMA_RT_EVENT_CLOSED);
		assert_int_equal(f->items[i].status, RPMA_RT_REASON_DEVICE);
	}
	ok(rpma_rt_conn_unref(&first));
	ok(rpma_rt_conn_unref(&second));
}

/* --------------------------------------------------------------- spills --- */

struct narrow {
	struct rpma_rt_queue *queue;
	struct rpma_rt_conn *conn;
	struct rpma_rt_route *route;
	uint32_t sent;
};

/* Another queue, of the smallest lane and backlog, and a route there. */
static void narrow_new(struct fake *f, struct narrow *n)
{
	struct rpma_rt_queue_cfg cfg = RPMA_RT_QUEUE_CFG_INIT;

	cfg.lane_size = 64;
	cfg.backlog_limit = 4;
	ok(rpma_rt_queue_new(f->rt, &cfg, &n->queue));
	n->conn = fake_established(f);
	n->sent = 0;
	ok(rpma_rt_route_open(n->conn, RPMA_RT_SEND_SIDE, n->queue, &n->route));
}

static int narrow_post(struct narrow *n)
{
	struct rpma_rt_wr wr = {.op = RPMA_RT_OP_SEND,
				.flags = ALWAYS,
				.context = n->sent,
				.route = n->route};

	return fake_post_send(n->conn, &wr);
}

/* Posts and completes so many messages, without taking any. */
static void narrow_fill(struct fake *f, struct narrow *n, uint32_t count)
{
	for (; count > 0; count--) {
		ok(narrow_post(n));
		fake_sent(n->conn, n->sent++, IBV_WC_SUCCESS);
		fake_round(f);
	}
}

static void narrow_delete(struct fake *f, struct narrow *n)
{
	fake_bury(f, &n->conn);
	assert_int_equal(fake_take(f, n->queue), 1);
	assert_int_equal(f->items[0].opcode, RPMA_RT_EVENT_ROUTE_CLOSED);
	ok(rpma_rt_queue_delete(&n->queue));
}

FAKE_TEST(spill__order_kept_backlog_refuses_one_writable)
{
	struct narrow n;
	int total;
	int i;

	narrow_new(f, &n);
	narrow_fill(f, &n, 64 + 4);
	assert_int_equal(stats_of(f).spilled, 4);
	assert_int_equal(narrow_post(&n), RPMA_E_AGAIN);
	assert_int_equal(rpma_rt_again_reason(), RPMA_RT_AGAIN_BACKLOG);
	/* the queue of the connection is not behind */
	ok(fake_send(n.conn, 5, ALWAYS));
	fake_sent(n.conn, n.sent++, IBV_WC_SUCCESS);
	fake_round(f);
	assert_int_equal(fake_take(f, f->queue), 1);
	/* the consumer comes */
	total = fake_take(f, n.queue);
	assert_int_equal(total, 64);
	for (i = 0; i < total; i++)
		assert_int_equal(f->items[i].context, i);
	fake_round(f);
	assert_int_equal(fake_take(f, n.queue), 4);
	for (i = 0; i < 4; i++)
		assert_int_equal(f->items[i].context, 64 + i);
	fake_round(f);
	assert_int_equal(fake_take(f, f->queue), 1);
	assert_int_equal(f->items[0].kind, RPMA_RT_WRITABLE);
	assert_null(f->poller->spilling);
	ok(narrow_post(&n));
	fake_sent(n.conn, n.sent++, IBV_WC_SUCCESS);
	fake_round(f);
	assert_int_equal(fake_take(f, n.queue), 1);
	narrow_delete(f, &n);
}

struct look {
	struct fake *f;
	struct narrow *narrow;
	int taken;
	uint32_t leaving;
};

/* Answers the round that moves the last item, before the round is over. */
static void take_and_look(void *arg)
{
	struct look *look = arg;

	look->taken = fake_take(look->f, look->narrow->queue);
	look->leaving = look->narrow->queue->leaving;
}

static int take_of_all(struct fake *f, const struct narrow *lanes, int count)
{
	int taken = 0;
	int i;

	for (i = 0; i < count; i++)
		taken += fake_take(f, lanes[i].queue);
	return taken;
}

/* One lane more than a round serves; the next round leaves no lane out. */
FAKE_TEST(spill__of_65_lanes_64_IN_A_ROUND)
{
	enum { LANES = 64 + 1 };
	struct narrow lanes[LANES];
	int i;

	for (i = 0; i < LANES; i++) {
		narrow_new(f, &lanes[i]);
		narrow_fill(f, &lanes[i], 64 + 1);
	}
	assert_int_equal(take_of_all(f, lanes, LANES), LANES * 64);
	fake_round(f);
	assert_int_equal(take_of_all(f, lanes, LANES), 64);
	fake_round(f);
	assert_int_equal(take_of_all(f, lanes, LANES), 1);
	assert_null(f->poller->spilling);
	for (i = 0; i < LANES; i++)
		narrow_delete(f, &lanes[i]);
}

/*
 * A consumer that takes the last item of a spill does not find the queue held
 * by the spill.
 */
FAKE_TEST(spill__announced_before_its_last_item)
{
	struct narrow n;
	struct look look = {.f = f, .narrow = &n};
	struct rt_waiter *waiter = rt_waiter_new(take_and_look, &look);

	assert_non_null(waiter);
	narrow_new(f, &n);
	narrow_fill(f, &n, 64 + 4);
	rt_lane_wait_poller(n.queue->lanes[0], waiter);
	fake_round(f);
	assert_int_equal(n.queue->leaving, 0);
	assert_int_equal(fake_take(f, n.queue), 64);
	fake_round(f);
	assert_int_equal(look.taken, 4);
	assert_int_equal(look.leaving, 1);
	assert_int_equal(n.queue->leaving, 0);
	rt_waiter_delete(waiter);
	narrow_delete(f, &n);
}

/* ----------------------------------------------------- making, entering --- */

FAKE_TEST(init__each_failure_nothing_left)
{
	static const struct {
		const char *call;
		int nth;
		int ret;
	} failures[] = {
		{"epoll_create1", 1, RPMA_E_PROVIDER},
		{"eventfd", 1, RPMA_E_PROVIDER},
		{"epoll_ctl", 1, RPMA_E_PROVIDER},
	};
	struct rt_poller *poller;
	int before;
	size_t i;

	poller = aligned_alloc(RT_CACHE_LINE, sizeof(*poller));
	assert_non_null(poller);
	before = fake_memory();
	for (i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
		fake_fail(failures[i].call, failures[i].nth, EMFILE);
		assert_int_equal(rt_poller_init(poller, f->rt, 1, 0),
				 failures[i].ret);
		assert_true(fake_failed());
		assert_int_equal(fake_memory(), before);
	}
	free(poller);
}

FAKE_TEST(start__no_thread_PROVIDER)
{
	fake_fail("pthread_create", 1, EAGAIN);
	assert_int_equal(rt_poller_start(f->poller), RPMA_E_PROVIDER);
}

TEST_MAIN()
