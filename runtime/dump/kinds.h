/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * kinds.h -- the kinds of findings: a name, and a template (see print.c) that
 * says what is wrong and what to do, with fields of the object.
 * wrong.c defines KIND before each include.
 */

/* clang-format off */

KIND(queue_not_polled,
	"items wait for {waiting_ms.s} s and no thread {take_tid?takes them; "
	"thread {take_tid}{take_thread? ({take_thread})|, which has ended,} "
	"was the last to take some, {take_ms.s} s ago: see what it does, and "
	"have it poll|has ever taken any: call rpma_rt_queue_poll() or "
	"rpma_rt_queue_wait()}")
KIND(worker_stuck,
	"items wait for {waiting_ms.s} s, and {inside_tid?thread {inside_tid}"
	"{inside_thread? ({inside_thread})|, which has ended,}|a thread} is "
	"inside a call that takes from it and does not go on: it is stopped "
	"in a debugger or in a handler of a signal")
KIND(function_long,
	"it has been inside a function of {function_of?{function_of}|the "
	"program} for {function_ms.s} s, and all its connections wait: a "
	"function returns at once, a thread of the program does what takes "
	"long")
KIND(poller_stuck,
	"its thread has not gone on for {clock_age_ms.s} s: it is stopped in "
	"a debugger, gets no time on its CPU, or is in a call of the device "
	"that does not return: look at its stack")
KIND(poller_not_run,
	"it has work, {owner_tid?and thread {owner_tid} ({owner}), which it "
	"belongs to, has not run it for {clock_age_ms.s} s: call "
	"rpma_rt_poller_run() there, or rpma_rt_poller_release()|belongs to "
	"no thread, and was not run for {clock_age_ms.s} s: call "
	"rpma_rt_poller_run()}")
KIND(request_ignored,
	"the request of a peer is not answered for {state_ms.s} s: take "
	"RPMA_RT_EVENT_REQUEST {queue?from its queue|by "
	"rpma_rt_next_future()} and call rpma_rt_conn_accept() or "
	"rpma_rt_conn_reject()")
KIND(connect_missing,
	"it has been ready for {state_ms.s} s: take RPMA_RT_EVENT_READY "
	"{queue?from its queue|by rpma_rt_conn_future()} and call "
	"rpma_rt_conn_connect()")
KIND(no_answer,
	"its peer has not answered for {state_ms.s} s: does a program listen "
	"there, and answer its requests?")
KIND(send_waits,
	"a {is_message?message to its peer waits for {waiting_ms.s} s: the "
	"peer has posted no receive for it, or does not answer any more|"
	"{waiting} waits for {waiting_ms.s} s: the device of its peer does "
	"not answer}")
KIND(receives_missing,
	"{recv.retired?its receives are used up, and none was posted for "
	"{recv.idle_ms.s} s: a peer that sends waits until one is: post one "
	"for each that completes|nothing was ever posted on it, "
	"{recv.idle_ms.s} s after it was established: a peer that sends waits "
	"for a receive. Post some; if no messages come, an rq_size of 1 says "
	"so}")
KIND(credit_used_up,
	"its {send.depth} sends are all out, a post was refused, and none has "
	"completed for {send.idle_ms.s} s: see why its peer does not answer")
KIND(closing_long,
	"it has been closing for {closing_ms.s} s: {why}")
KIND(delete_busy,
	"" /* in wrong.c, of each kind of object */)
KIND(srq_dry,
	"it has had no receive for {retired_ms.s} s{messages?, and messages "
	"wait in their place: ask for those with rpma_rt_next_future()|"
	"{behind?, and none can be posted as a queue that gets its messages "
	"is over its backlog_limit: take from that queue|: the peers of its "
	"connections wait until some are posted}}")
KIND(pool_dry,
	"none of its {receives} slots for receives is free, and a receive "
	"queue that takes from it has been less than a quarter full for "
	"{low_for_ms.s} s: the peers wait. Give leases back, or make "
	"rpma_rt_pool_cfg.count larger")
KIND(pool_short,
	"the pool {why}")
KIND(listener_refuses,
	"it has refused {refused} requests, the last {refused_ms.s} s ago: "
	"{why}")
KIND(cm_deaf,
	"events of rdma_cm can be read no more (errno {cm_errno}): no "
	"connection can be made; stop the runtime and make another one")

/* clang-format on */

#undef KIND
