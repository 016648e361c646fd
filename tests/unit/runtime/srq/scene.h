/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* scene.h -- a runtime with an SRQ for every connection, on a made-up
 * device. */

#ifndef SRQ_SCENE_H
#define SRQ_SCENE_H

#include "rt_fake.h"
#include "srq/srq.h"

#define SIZE 8

/* a runtime with an SRQ for every connection */
struct scene {
	struct fake *f;
	struct rpma_rt_queue *queue; /* the SRQ's */
	struct rpma_rt_srq *srq;
	struct rpma_rt_srq_cfg cfg;
};

int scene_setup(void **state);
/* Makes the SRQ, for later connections. */
void scene_srq(struct scene *s);
/* Deletes the SRQ; its queue gets outstanding receives, then SRQ_CLOSED. */
void scene_delete(struct scene *s, int out);
/* No receive is outstanding if the case has left the SRQ. */
int scene_teardown(void **state);
int scene_post(const struct scene *s, uint64_t context);
void scene_post_many(const struct scene *s, uint32_t count);
/* Completes receives, by the order of posting, at the connection, and
 * everything that follows. */
void scene_complete(struct scene *s, const struct rpma_rt_conn *conn,
		    uint32_t from, uint32_t count);
/* Drops the items of the connections. */
void scene_drop(const struct scene *s);
/* Asserts the i-th item taken. */
void scene_expect(const struct fake *f, int i, uint64_t context,
		  enum ibv_wc_status status);
void scene_sq_marker(struct rpma_rt_conn *conn);
/* Buries a connection whose last items go to the queue; only the marker of
 * sends is due. */
void scene_bury_in(struct fake *f, struct rpma_rt_conn **conn,
		   struct rpma_rt_queue *queue);
void scene_bury(struct fake *f, struct rpma_rt_conn **conn);
int srq_setup(void **state);

/* Begin a case without an SRQ, and with the SRQ of the scene. */
#define SCENE_TEST(name) \
	TEST_OF(struct scene *s, name, scene_setup, scene_teardown)
#define SRQ_TEST(name) TEST_OF(struct scene *s, name, srq_setup, scene_teardown)

#endif /* SRQ_SCENE_H */
