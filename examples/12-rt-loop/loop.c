/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * loop ADDRESS: one thread and its own event loop, with no poller in the
 * background. The runtime is in manual mode: the loop runs its poller, and
 * sleeps in epoll on the poller's descriptor and on a timer, which stands for
 * the other descriptors that a loop waits for.
 */

#include <stdio.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "../common/both.h"

#define TICKS  3
#define BUDGET 64 /* completions a round, so that the rest has its turn */
#define BATCH  16

static struct both both;
static struct end server, client;
static struct rpma_rt_queue *queue;
static bool may_say; /* connected, and answered what it said last */
static int ticks;

/* With every tick the client says something; the server answers. */
static int on_tick(int timer)
{
	char text[MESSAGE];
	uint64_t passed;

	if (read(timer, &passed, sizeof(passed)) < 0 || !may_say)
		return 0;
	if (++ticks > TICKS)
		return rpma_rt_conn_close(client.conn);
	may_say = false;
	snprintf(text, sizeof(text), "tick %d", ticks);
	return end_send(&both, &client, text);
}

static int on_event(const struct rpma_rt_completion *event)
{
	struct end *end = event->user;

	switch (event->opcode) {
	case RPMA_RT_EVENT_REQUEST:
		return server.conn ? both_refuse(conn_of(event))
				   : end_accept(&both, &server, conn_of(event));
	case RPMA_RT_EVENT_READY:
		return end_connect(&both, end);
	case RPMA_RT_EVENT_ESTABLISHED:
		may_say |= end == &client;
		return end_up(&both, end);
	default: /* CLOSED; without an end: of one that was refused */
		if (end != NULL)
			end->is_closed = true;
		return 0;
	}
}

static int on_message(struct end *end)
{
	printf("%s: %s\n", end == &server ? "server" : "client",
	       end_heard(&both, end));
	may_say = end == &client;
	return end_receive(&both, end) ||
	       (end == &server && end_say(&both, end, "heard"));
}

/* Everything that is there; *any = was there something? */
static int take(bool *any)
{
	struct rpma_rt_completion cmpl[BATCH];
	int got, i, ret = 0;

	while (!ret && (got = rpma_rt_queue_poll(queue, cmpl, BATCH)) > 0) {
		*any = true;
		for (i = 0; i < got && !ret; i++) {
			if (cmpl[i].kind == RPMA_RT_EVENT)
				ret = on_event(&cmpl[i]);
			else if (is_message(&cmpl[i]))
				ret = on_message(cmpl[i].user);
		}
	}
	return ret;
}

/* A round of the poller, then what it brought. Sleeps only when armed: 0 says
 * that the descriptor will wake us, and the look of arming may itself have
 * brought something. */
static int turn(int epoll, int timer)
{
	struct epoll_event event;
	bool any = false;
	int done = TRY(rpma_rt_poller_run(both.rt, 0, BUDGET));
	int ret = done < 0 || take(&any);

	if (ret || any || done > 0 || rpma_rt_poller_arm(both.rt, 0))
		return ret;
	ret = take(&any);
	if (ret || any || epoll_wait(epoll, &event, 1, -1) != 1)
		return ret;
	return event.data.fd == timer ? on_tick(timer) : 0;
}

static int watch(int epoll, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

static int run(int epoll, int timer)
{
	int ret, fd;

	end_init(&both, &server, 0);
	end_init(&both, &client, 1);
	ret = TRY(rpma_rt_poller_get_fd(both.rt, 0, &fd)) || watch(epoll, fd) ||
	      watch(epoll, timer) || both_listen(&both, queue) ||
	      both_connect(&both, queue, &client);
	while (!ret && !(server.is_closed && client.is_closed))
		ret = turn(epoll, timer);
	return ret;
}

int main(int argc, char **argv)
{
	const struct itimerspec every = {{0, 10000000}, {0, 10000000}};
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	int epoll = epoll_create1(0);
	struct rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;
	int ret;

	cfg.mode = RPMA_RT_MODE_MANUAL;
	ret = both_usage(argc, argv) || both_open(&both, argv[1], &cfg) ||
	      TRY(rpma_rt_queue_new(both.rt, NULL, &queue)) ||
	      timerfd_settime(timer, 0, &every, NULL) || run(epoll, timer);
	both_stop(&both); /* runs the poller itself */
	rpma_rt_conn_unref(&server.conn);
	rpma_rt_conn_unref(&client.conn);
	rpma_rt_queue_delete(&queue);
	both_close(&both);
	close(epoll);
	close(timer);
	return ret;
}
