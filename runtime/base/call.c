/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* call.c -- see call.h. Any thread that may wait. */

#include "base/call.h"

#include "base/wait.h"

static void run_call(struct rt_msg *msg, void *owner)
{
	struct rt_call *call = (struct rt_call *)msg;
	int result = call->fn(call->arg);

	(void)owner;
	/* signalled under the lock: the waiter may free it once it has it */
	pthread_mutex_lock(&call->lock);
	call->result = result;
	call->done = true;
	pthread_cond_signal(&call->changed);
	pthread_mutex_unlock(&call->lock);
}

void rt_call_send(struct rt_call *call, struct rt_inbox *inbox,
		  int (*fn)(void *arg), void *arg)
{
	*call = (struct rt_call){.msg.fn = run_call, .fn = fn, .arg = arg};
	pthread_mutex_init(&call->lock, NULL);
	rt_wait_cond_init(&call->changed);
	rt_inbox_push_mt(inbox, &call->msg);
}

static int end(struct rt_call *call)
{
	pthread_mutex_unlock(&call->lock);
	pthread_cond_destroy(&call->changed);
	pthread_mutex_destroy(&call->lock);
	return call->result;
}

int rt_call_wait(struct rt_call *call, struct rt_owned *poller)
{
	struct rt_wait wait = {.pollers = poller, .which = RT_WAIT_ONE};

	pthread_mutex_lock(&call->lock);
	while (!call->done)
		rt_wait_step(&wait, &call->changed, &call->lock);
	return end(call);
}

int rt_call_sync(struct rpma_rt *rt, struct rt_inbox *inbox,
		 int (*fn)(void *arg), void *arg)
{
	struct rt_call call;

	rt_call_send(&call, inbox, fn, arg);
	if (rt != NULL)
		return rt_call_wait(&call, NULL);
	pthread_mutex_lock(&call.lock);
	while (!call.done)
		pthread_cond_wait(&call.changed, &call.lock);
	return end(&call);
}
