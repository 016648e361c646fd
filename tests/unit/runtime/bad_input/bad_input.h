/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Shared by the files of these tests; see bad_input.c. Each test is listed here
 * and in the table there.
 */

#ifndef RT_BAD_INPUT_H
#define RT_BAD_INPUT_H

#include "sweep.h"

#include <limits.h>

#include "rt_fake.h"

#define ALWAYS RPMA_F_COMPLETION_ALWAYS

/* Where out-parameters point. */
union bad_out {
	struct rpma_rt *rt;
	struct rpma_rt_cfg cfg;
	struct rpma_rt_queue *queue;
	struct rpma_rt_listener *listener;
	struct rpma_rt_conn *conn;
	struct rpma_rt_route *route;
	struct rpma_rt_adopted *adopted;
	struct rpma_rt_srq *srq;
	struct rpma_rt_pool *pool;
	struct rpma_rt_lease lease;
	enum rpma_rt_cancelled cancelled;
	struct rpma_rt_future future;
	struct rpma_rt_shards *shards;
	struct rpma_rt_shard *shard;
	struct rpma_rt_shard_stats shard_stats;
	struct rpma_rt_poller_stats poller_stats;
	struct rpma_rt_queue_stats queue_stats;
	struct rpma_conn_private_data pdata;
	struct rpma_rt_completion items[4];
	void *pointer;
	bool busy;
	uint32_t u32;
	uint16_t u16;
	int number;
};
extern union bad_out out;

/* Functions for routes and refills; they do nothing. */
void bad_hear(const struct rpma_rt_completion *cmpl, void *arg);
void bad_refill(struct rpma_rt_srq *srq, uint32_t room, void *arg);

/* Another runtime's queue, and that runtime; it has threads. */
struct rpma_rt_queue *foreign_queue(struct rpma_rt **rt);
void foreign_end(struct rpma_rt *rt, struct rpma_rt_queue *queue);

/* One of four receives. */
struct rpma_rt_srq_cfg bad_srq_cfg(struct rpma_rt_queue *queue);
/* An SRQ of the runtime without threads; fake_take() has its last item. */
struct rpma_rt_srq *bad_srq_open(struct fake *f);
void bad_srq_end(struct fake *f, struct rpma_rt_srq *srq);

/* bad_objects.c */
void queues(void **state);
void a_closed_queue(void **state);
void a_queue_in_use(void **state);
void making_connections(void **state);
void adoption(void **state);
void connections(void **state);
void connections_too_early_or_late(void **state);
void routes_to_be_closed(void **state);
void a_closed_connection(void **state);
void routes(void **state);
void posts(void **state);
void posts_in_words(void **state);
void posts_beyond_credit(void **state);
void making_srqs(void **state);
void srqs(void **state);
void pools(void **state);
void futures(void **state);
void no_queue(void **state);

/* bad_shard.c */
void configurations_of_shards(void **state);
void shards(void **state);

/* bad_place.c */
void waiting_on_a_poller(void **state);
void waiting_on_the_event_thread(void **state);
void of_before_a_fork(void **state);
void mistakes(void **state);

/* bad_system.c */
void no_memory(void **state);
void no_resources_for_shards(void **state);
void system_refuses(void **state);

/* bad_busy.c */
void a_queue_behind(void **state);
void adoption_of_what_is_in_use(void **state);
void a_queue_full_of_messages(void **state);
void another_thread_owns(void **state);
void a_runtime_with_handles(void **state);

/* Set up and tear down as FAKE_TEST() does; messages are logged where no lock
 * is held. */
int bad_setup(void **state);
int bad_teardown(void **state);
#define bad_test(test) \
	cmocka_unit_test_setup_teardown(test, bad_setup, bad_teardown)

#endif /* RT_BAD_INPUT_H */
