/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * table.h -- every field of a snapshot, once. dump.h makes structs of the
 * table, print.c the rows that each format walks, take.c the
 * assignments; each defines the macros before the include.
 *
 *   JSON(type, name, = value)        in JSON, in the order of the rows
 *   KEPT(type, name, = value)        for templates and wrong.c
 *   METRIC(form, type, name, metric, help, = value)  in Prometheus
 *   PART(form, object, name)         an object; FLAT: the fields alone
 *   LIST(form, object, name)         objects in a block of their own
 *   ARRAY(form, object, name, max)   objects in the struct
 *
 * A form says whether JSON has the field, and how: see dump.h.
 * A value is read from the source, `it`, under the directory's lock. A row
 * without a value is filled in by a function of take.c. END has three strings:
 * the name of the object in a finding, the labels in Prometheus, the lines for
 * people. The first and the third are templates, see print.c.
 */

/* clang-format off */

#define COUNTER(object, name, help) \
	METRIC(SHOWN, NUMBER, name, #object "_" #name "_total", help, \
	       = (int64_t)it->name)
#define GAUGE(object, name, help) \
	METRIC(SHOWN, NUMBER, name, #object "_" #name, help, \
	       = (int64_t)it->name)

/* an outstanding work request */
OBJECT(wr, const struct rt_ledger_entry)
	JSON(WORD, operation, = take_opcode(it->opcode))
	JSON(HEX, context, = (int64_t)rt_wr_id_cookie(it->wr_id))
	JSON(MS, age_ms, = rt_ms_between(it->tick, dump->now_ms))
	JSON(NUMBER, queue) /* 0: a function, or a future */
	JSON(BOOL, on_error_only, = (it->wr_id & RT_ON_ERROR_ONLY) != 0)
	KEPT(BOOL, has_future)
END(wr, "", "",
	"      {operation} {context} {age_ms} ms to {queue?queue {queue}"
	"{on_error_only?, on error only}|{has_future?a future|a function}}\n")

/* the posts of one direction */
OBJECT(side, struct rt_side)
	JSON(WORD, gate, = "not yet") /* whether posts are taken */
	JSON(NUMBER, depth)
	JSON(NUMBER, outstanding)
	JSON(NUMBER, in_line) /* and in slots not published yet */
	JSON(NUMBER, retired_ms, = -1) /* -1: nothing has retired */
	JSON(BOOL, refused_credit)
	JSON(BOOL, refused_backlog)
	JSON(WORD, ledger, = "read") /* or why the ledger could not be read */
	ARRAY(INLINE, wr, oldest, RT_DUMP_WRS)
	KEPT(BOOL, is_read, = true)
	KEPT(NUMBER, more) /* outstanding, and not among the oldest */
	KEPT(BOOL, is_inside) /* a thread posts, as far as can be seen */
	KEPT(NUMBER, retired) /* in all, modulo 2^32 */
	KEPT(MS, idle_ms) /* since a completion, or the state's change */
END(side, "", "",
	"{gate}, {outstanding} of {depth} outstanding"
	"{in_line?, {in_line} in line}{is_read?|, ledger not read: {ledger}}"
	"{refused_credit?, refused for credit}"
	"{refused_backlog?, refused for backlog}\n"
	"{oldest}{more?      and {more} more\n}")

OBJECT(conn, const struct rpma_rt_conn)
	JSON(TEXT, name, = rt_dump_text("%s", rt_name_of(it)))
	JSON(HANDLE, handle, = it)
	JSON(NUMBER, slot, = it->slot)
	JSON(HEX, qp_num) /* 0: none yet */
	JSON(NUMBER, poller, = it->poller->index)
	JSON(NUMBER, queue) /* the connection's own */
	JSON(BOOL, passive, = it->passive)
	JSON(TEXT, peer) /* empty: not known yet */
	JSON(USER, user, = take_user(it))
	JSON(WORD, state)
	JSON(MS, state_ms, = AGO(ctl.shown_ms))
	JSON(NUMBER, held, = STAT(held)) /* of holders: by the program */
	JSON(WORD, reason) /* why the connection dies */
	JSON(NUMBER, holders, = STAT(target.count))
	JSON(BOOL, backlogged) /* a queue to which a route leads */
	PART(SHOWN, side, send)
	PART(SHOWN, side, recv)
	KEPT(NUMBER, phase) /* enum rt_conn_state */
	KEPT(BOOL, is_ended) /* CLOSED was delivered, the handle is held */
	KEPT(BOOL, is_decided) /* connect or reject was called */
	KEPT(BOOL, is_closing, = STAT(closing) != 0)
	KEPT(MS, closing_ms, = AGO(closing)) /* since the gates close */
	KEPT(BOOL, is_drained, = STAT(drain_ms) != 0)
	KEPT(BOOL, has_srq, = it->receives != RT_RECEIVES_OWN) /* or a pool */
	KEPT(MS, idle_ms, = out->state_ms)
	KEPT(WORD, waiting) /* the oldest send of COMPLETION_ALWAYS */
	KEPT(BOOL, is_message) /* the oldest is a message */
	KEPT(MS, waiting_ms)
	KEPT(WORD, why) /* of wrong.c */
	KEPT(BOOL, is_named, = it->is_named) /* by the program */
	KEPT(NUMBER, number, = it->number) /* in this process */
END(conn, "connection \"{name}\"{is_ended?|{peer? with {peer}}}", "",
	"connection {handle} \"{name}\": "
	"{is_ended?ended ({reason}), held {held} times by the program\n"
	"|slot {slot}, QP {qp_num}, poller {poller}, "
	"{queue?queue {queue}|no queue}, {passive?passive|active}, {state}"
	"{reason? ({reason})}, {holders} holders"
	"{backlogged?, a queue over its limit}\n"
	"    peer {peer?{peer}|not known yet}, user {user}, "
	"idle for {idle_ms} ms\n"
	"    send: {send}    recv: {recv}}")

/* a side of a connection with a name: the program asked for a series */
OBJECT(named, const struct rt_dump_conn)
	KEPT(NUMBER, connection, = it->number)
	KEPT(TEXT, name, = it->name)
	KEPT(WORD, side)
	METRIC(KEPT, NUMBER, outstanding, "connection_outstanding",
		"Work requests outstanding on a connection that was given a "
		"name.")
END(named, "", "connection name side", "")

/* sums: a series for each connection would be more than a server keeps */
OBJECT(state, const char *const)
	KEPT(WORD, state, = *it)
	METRIC(KEPT, NUMBER, count, "connections", "Connections by state.")
END(state, "", "state", "")
OBJECT(sum, const char)
	KEPT(WORD, side, = it)
	METRIC(KEPT, NUMBER, outstanding, "outstanding",
		"Work requests outstanding.")
END(sum, "", "side", "")

OBJECT(poller_stats, const struct rpma_rt_poller_stats)
	COUNTER(poller, polls, "Calls of ibv_poll_cq.")
	COUNTER(poller, empty_polls, "Those that found nothing.")
	COUNTER(poller, completions, "Work completions taken from CQs.")
	COUNTER(poller, delivered, "Items given to queues.")
	COUNTER(poller, batches, "Batches of such items.")
	COUNTER(poller, doorbells, "Consumers woken.")
	COUNTER(poller, sleeps, "Sleeps.")
	COUNTER(poller, events, "Completion events read.")
	COUNTER(poller, acks, "Calls of ibv_ack_cq_events.")
	COUNTER(poller, spilled, "Items that found their lane full.")
	COUNTER(poller, lost, "Items without room anywhere.")
	COUNTER(poller, stale, "Completions of no open route.")
	COUNTER(poller, lost_events_recovered,
		"Completions found by the back-stop alone.")
	COUNTER(poller, keepalives, "Writes of keep-alive posted.")
	COUNTER(poller, last_wqe_missing,
		"Ends of SRQ users without LAST_WQE_REACHED.")
	COUNTER(poller, spinning_ns, "Nanoseconds idle and awake, with timing.")
	COUNTER(poller, sleeping_ns, "Nanoseconds asleep, with timing.")
END(poller_stats, "", "", "")

OBJECT(poller, struct rt_poller)
	JSON(NUMBER, poller, = it->index)
	JSON(NUMBER, cpu, = it->cpu)
	METRIC(SHOWN, BOOL, asleep, "poller_asleep", "Whether it sleeps.",
		= rt_bell_ways(&it->bell) != RT_BELL_AWAKE) /* or about to */
	JSON(BOOL, stopping, = IS(stopping)) /* or stopped */
	JSON(MS, clock_age_ms,
		= rt_ms_between(rt_poller_last_tick(it), dump->now_ms))
	JSON(NUMBER, channels)
	METRIC(SHOWN, NUMBER, unacknowledged, "poller_unacknowledged_events",
		"Events to acknowledge.")
	JSON(BOOL, manual, = !it->threaded)
	JSON(NUMBER, owner_tid) /* of the thread that owns a manual poller */
	JSON(TEXT, owner)
	JSON(BOOL, in_function)
	JSON(MS, function_ms)
	JSON(TEXT, function_of) /* empty: not known */
	PART(FLAT, poller_stats, stats)
	KEPT(BOOL, is_free) /* manual, and belongs to no thread */
	KEPT(BOOL, has_work) /* manual: for a round */
	KEPT(HANDLE, function) /* stands for the object; is never followed */
END(poller, "poller {poller}", "poller",
	"poller {poller}: cpu {cpu}, {asleep?asleep|awake}{manual?, manual}"
	"{stopping?, stopping}, clock read {clock_age_ms} ms ago, "
	"{channels} channels, {unacknowledged} events unacknowledged\n"
	"{owner_tid?    belongs to thread {owner_tid} ({owner})\n"
	"|{is_free?    belongs to no thread\n}}"
	"{in_function?    inside a function of "
	"{function_of?{function_of}|the program} for {function_ms} ms\n}"
	"{stats}")

OBJECT(cq, const struct rt_cq)
	JSON(NUMBER, poller)
	JSON(NUMBER, channel) /* of the poller, the newest is 0 */
	JSON(NUMBER, size, = it->cqe)
	JSON(NUMBER, room, = it->room) /* entries that nobody has reserved */
	JSON(NUMBER, unacknowledged, = rt_cq_unacked(it))
	JSON(BOOL, failed, = it->failed || it->channel->failed)
END(cq, "", "",
	"cq of poller {poller}, channel {channel}: room {room} of {size}, "
	"{unacknowledged} events unacknowledged{failed?, failed}\n")

OBJECT(queue_stats, const struct rpma_rt_queue_stats)
	COUNTER(queue, polls, "Calls of rpma_rt_queue_poll.")
	COUNTER(queue, waits, "Calls of rpma_rt_queue_wait.")
	COUNTER(queue, empty, "Calls that found nothing.")
	COUNTER(queue, busy, "Times that another worker was inside.")
	COUNTER(queue, batches, "Calls that found something.")
	COUNTER(queue, taken, "Items taken.")
	COUNTER(queue, messages, "Messages pushed.")
	COUNTER(queue, sleeps, "Sleeps on the futex.")
	COUNTER(queue, wakes, "Sleepers woken.")
	GAUGE(queue, backlog, "Items inside.")
END(queue_stats, "", "", "")

OBJECT(queue, const struct rt_queue_state)
	JSON(NUMBER, queue, = it->id)
	METRIC(SHOWN, TEXT, name, "queue_info", "Its name.",
		= rt_dump_text("%s", it->name))
	JSON(BOOL, shared, = it->shared)
	JSON(BOOL, closed, = it->closed)
	JSON(BOOL, finished, = it->finished)
	JSON(BOOL, consumer_inside, = it->inside)
	JSON(BOOL, asleep, = it->asleep)
	JSON(NUMBER, waiters, = it->waiters)
	JSON(NUMBER, lanes, = it->lanes)
	JSON(NUMBER, spilled, = it->spilled)
	JSON(NUMBER, backlogged, = it->backlogged)
	JSON(TEXT, inside_thread) /* empty: the thread has ended */
	JSON(NUMBER, take_tid, = NONE_IF(it->take.tid == 0, it->take.tid))
	JSON(MS, take_ms, = NONE_IF(it->take.tid == 0, it->take.ago_ms))
	JSON(TEXT, take_thread)
	JSON(NUMBER, look_tid, = NONE_IF(it->look.tid == 0, it->look.tid))
	JSON(MS, look_ms, = NONE_IF(it->look.tid == 0, it->look.ago_ms))
	METRIC(SHOWN, MS, waiting_ms, "queue_waiting_seconds",
		"For how long at least an item waits to be taken.",
		= NONE_IF(!it->has_waiting, it->waiting_ms))
	PART(FLAT, queue_stats, stats)
	METRIC(SHOWN, HISTOGRAM, dispatch, "queue_dispatch_seconds",
		"From poll to taken.")
	METRIC(SHOWN, HISTOGRAM, wakeup, "queue_wakeup_seconds",
		"From the call to awake.")
	KEPT(BOOL, is_named) /* by the program */
	KEPT(NUMBER, inside_tid, = it->inside_tid) /* 0: not known yet */
	KEPT(BOOL, delete_refused, = it->delete_refused)
	KEPT(BOOL, is_of_shard)
END(queue, "queue \"{name}\"", "queue",
	"queue {queue}{is_named? \"{name}\"}:{shared? shared}{closed? closed}"
	"{finished? finished}{consumer_inside? consumer inside}"
	"{asleep? asleep} {lanes} lanes, {spilled} spilled, "
	"{backlogged} lanes over the limit{shared?, {waiters} waiters}"
	"{waiting_ms?, items wait for {waiting_ms} ms}\n"
	"{take_tid?    taken from {take_ms} ms ago by thread {take_tid} "
	"({take_thread?{take_thread}|it has ended})\n}"
	"{look_tid?    looked at in vain {look_ms} ms ago by thread "
	"{look_tid}\n}"
	"{stats}{dispatch?    dispatch: {dispatch}\n}"
	"{wakeup?    wake-up: {wakeup}\n}")

OBJECT(listener, const struct rpma_rt_listener)
	JSON(NUMBER, listener, = it->number)
	JSON(NUMBER, port, = it->port)
	JSON(BOOL, over, = IS(is_over))
	JSON(NUMBER, queue) /* 0: one a poller */
	METRIC(SHOWN, NUMBER, refused, "listener_refused_total",
		"Requests refused.", = STAT(refused))
	JSON(USER, user, = it->cfg.user)
	KEPT(MS, refused_ms, = AGO(refused_ms)) /* since the last refusal */
	KEPT(NUMBER, refused_for) /* an error, or a positive errno */
	KEPT(NOTE, why)
END(listener, "listener {listener} at port {port}", "listener port",
	"listener {listener}: port {port}, {over?over|listens}, user {user}, "
	"{refused} requests refused\n")

OBJECT(srq, const struct rpma_rt_srq)
	JSON(NUMBER, srq, = it->number) /* of the poller */
	JSON(NUMBER, poller, = it->poller->index)
	JSON(NUMBER, queue)
	JSON(NUMBER, size, = it->cfg.srq_size)
	METRIC(SHOWN, NUMBER, out, "srq_receives", "Receives out.")
	JSON(NUMBER, messages, = STAT(messages_listed)) /* for futures */
	JSON(MS, retired_ms, = AGO(retired_ms))
	JSON(NUMBER, connections) /* listed connections */
	JSON(BOOL, behind, = IS(behind)) /* a lane over its limit */
	JSON(BOOL, over, = IS(is_over)) /* only the handle is left */
	JSON(USER, user, = it->user)
	KEPT(HANDLE, handle, = it)
	KEPT(BOOL, delete_refused, = IS(delete_refused))
END(srq, "SRQ {srq} of poller {poller}", "poller srq",
	"SRQ {srq} of poller {poller}: {out} of {size} receives out, "
	"{connections} connections, queue {queue}, {messages} messages wait, "
	"user {user}{behind?, a queue over its limit}{over?, over}\n")

OBJECT(adopted, const struct rpma_rt_adopted)
	JSON(HANDLE, handle, = it)
	JSON(NUMBER, poller, = it->poller->index)
	JSON(NUMBER, queue) /* 0: given back in a stop */
	JSON(BOOL, over, = IS(is_over))
	JSON(USER, user, = it->raw.user)
END(adopted, "an adopted connection", "",
	"adopted {handle}: poller {poller}, queue {queue}, user {user}"
	"{over?, given back}\n")

OBJECT(pool, const struct rpma_rt_pool)
	JSON(TEXT, pool, = rt_dump_text("%s", it->name))
	JSON(NUMBER, slots, = it->count)
	JSON(NUMBER, slot_size, = it->slot_size)
	METRIC(SHOWN, NUMBER, out, "pool_slots_out",
		"Slots of a pool that are not free.",
		= rt_pool_out(it, it->count))
	JSON(NUMBER, sends, = it->count - it->receives) /* slots for sends */
	JSON(NUMBER, sends_out)
	JSON(BOOL, low, = STAT(lows) > 0)
	METRIC(SHOWN, NUMBER, times_low, "pool_low_total",
		"Times that a pool became low.", = STAT64(times_low))
	KEPT(NUMBER, receives, = it->receives) /* slots for receives */
	KEPT(NUMBER, receives_out, = rt_pool_out(it, it->receives))
	KEPT(NUMBER, fills, = STAT(fills)) /* receives in full queues */
	KEPT(MS, low_for_ms) /* of the queue that is low longest */
	KEPT(BOOL, delete_refused, = IS(delete_refused))
	KEPT(NOTE, why)
END(pool, "pool \"{pool}\"", "pool",
	"pool \"{pool}\": {out} of {slots} slots out "
	"({sends_out} of {sends} for sends), {slot_size} bytes each, "
	"{times_low} times low{low?, low: a receive queue waits for leases}\n")

/* messages from one shard to another, published and not taken */
OBJECT(lane, const struct rt_shard_lane)
	JSON(NUMBER, from)
	JSON(NUMBER, waiting)
	JSON(BOOL, wants_room) /* the sender was refused */
END(lane, "", "",
	"{waiting?    from shard {from}: {waiting} messages wait"
	"{wants_room?, and it was refused}\n}")

OBJECT(shard, const struct rpma_rt_shard)
	JSON(NUMBER, set) /* 0.., in the order in which they were made */
	JSON(NUMBER, shard, = it->index)
	JSON(NUMBER, queue, = it->queue ? rt_queue_id(it->queue) : 0)
	METRIC(SHOWN, BOOL, asleep, "shard_asleep",
		"1: it sleeps, or is about to.")
	JSON(BOOL, run) /* a thread is inside rpma_rt_shard_run() */
	JSON(NUMBER, phase) /* enum rt_shard_phase */
	JSON(NUMBER, timers, = STAT64(counters.timers_set))
	JSON(NUMBER, unanswered)
	JSON(NUMBER, owed)
	JSON(NUMBER, refused)
	METRIC(SHOWN, NUMBER, waiting, "shard_waiting",
		"Messages to a shard that it has not taken.")
	ARRAY(SHOWN, lane, lanes, RPMA_RT_MAX_POLLERS)
	KEPT(WORD, stop)
END(shard, "", "set shard",
	"shard {shard} of set {set}: {asleep?asleep|{run?awake|not run}}, "
	"queue {queue}, {waiting} messages wait, {timers} timers, "
	"{unanswered} requests without an answer, {owed} to answer{stop}\n"
	"{lanes}")

/* a holder of a queue whose delete was refused */
OBJECT(hold, const char)
	KEPT(TEXT, by, = rt_dump_text("%s", it))
	KEPT(NUMBER, queue)
END(hold, "", "", "")

/* what looks wrong: an object, and the number of a kind */
OBJECT(finding, const char)
	JSON(WORD, kind, = it)
	JSON(NUMBER, ms) /* for how long, or how long ago; 0: no time is said */
	JSON(PHRASE, object)
	JSON(PHRASE, text)
END(finding, "", "", "    {object}: {text}\n")
OBJECT(tally, const char)
	KEPT(WORD, kind, = it)
	METRIC(SHOWN, NUMBER, count, "wrong", "What looks wrong, by kind.")
	KEPT(NUMBER, more) /* counted, and not listed */
END(tally, "", "kind", "{more?    and {more} more: {kind}\n}")

OBJECT(all, struct rpma_rt)
	JSON(BOOL, stopped, = rt_context_is_stopped(it))
	METRIC(SHOWN, NUMBER, requests_refused, "requests_refused_total",
		"Requests of peers that became no connection.",
		= STAT64(requests_refused))
	METRIC(SHOWN, NUMBER, cm_errno, "cm_errno",
		"CM events are read no more for this errno; 0: they are.")
	LIST(SHOWN, poller, pollers)
	LIST(SHOWN, cq, cqs) /* in the order of their pollers */
	LIST(SHOWN, queue, queues)
	LIST(SHOWN, conn, connections) /* with ended connections */
	LIST(SHOWN, listener, listeners)
	LIST(SHOWN, srq, srqs)
	LIST(SHOWN, adopted, adopted)
	LIST(SHOWN, pool, pools)
	LIST(SHOWN, shard, shards)
	LIST(SHOWN, finding, wrong)
	LIST(SHOWN, finding, wrong_younger) /* findings of a moment ago */
	ARRAY(MAP, tally, wrong_counts, RT_DUMP_KINDS)
	ARRAY(KEPT, tally, younger_counts, RT_DUMP_KINDS)
	LIST(KEPT, hold, holds)
	LIST(KEPT, named, named)
	ARRAY(KEPT, state, states, RT_DUMP_STATES)
	ARRAY(KEPT, sum, sums, 2)
	METRIC(KEPT, MS, oldest_send, "oldest_send_seconds",
		"Age of the oldest one sent.")
	KEPT(WORD, cm_error) /* cm_errno in words */
	KEPT(BOOL, delete_refused, = IS(delete_refused))
	/* after a stop: no block of futures is made any more */
	KEPT(NUMBER, futures_held,
		= out->delete_refused ? rt_future_held(it) : 0)
	KEPT(BOOL, has_refused) /* a queue whose delete was refused */
	KEPT(BOOL, is_short) /* there was no memory */
	KEPT(NUMBER, now_ms) /* when the snapshot was taken, modulo 2^32 */
END(all, "runtime", "",
	"runtime: {pollers.count} pollers, {queues.count} queues, "
	"{connections.count} connections{stopped?, stopped}\n"
	"{requests_refused?requests of peers that became no connection: "
	"{requests_refused}\n}"
	"{cm_errno?CM events can be read no more: {cm_error}. No connection "
	"begins, and none notices that its peer leaves\n}"
	"{pollers}{cqs}{queues}{connections}{listeners}{srqs}{adopted}{pools}"
	"{shards}what looks wrong:"
	"{wrong?|{wrong_younger? nothing older than 5 s; younger:| nothing}}\n"
	"{wrong}{wrong_counts}"
	"{wrong?{wrong_younger?younger than 5 s:\n}}"
	"{wrong_younger}{younger_counts}")

/* clang-format on */

#undef OBJECT
#undef JSON
#undef METRIC
#undef KEPT
#undef PART
#undef LIST
#undef ARRAY
#undef END
#undef COUNTER
#undef GAUGE
