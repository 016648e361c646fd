/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A scene: a connection whose CQs are on the channel of an owner. A row of the
 * table in shared_channel.c is one kind of owner; shared_channel_rows.c has
 * them.
 */

#ifndef COMPAT_SHARED_CHANNEL_H
#define COMPAT_SHARED_CHANNEL_H

#include "pair.h"
#include "world.h"

#define SIGNALED RPMA_F_COMPLETION_ALWAYS
#define SEND_ID	 1
#define RECV_ID	 2
#define CQS	 2

struct row;

struct scene {
	const struct row *row;
	struct pair pair;
	struct rpma_conn *conn; /* whose CQs they are */
	struct rpma_cq *cq[CQS];
	bool is_rcq[CQS];
	int cqs;
	/* what a row needs besides */
	struct rpma_srq *srq;
	struct rpma_channel *channel;
	struct world world;
	struct world_pair rt_pair;
	struct rpma_rt_queue *queue[2]; /* of the active and the passive end */
	struct rpma_rt_adopted *adopted[2]; /* of the connection and the SRQ */
};

struct row {
	const char *name;
	void (*open)(struct scene *scene);
	void (*close)(struct scene *scene);
	/* makes one completion in a CQ */
	void (*fire)(struct scene *scene, int cq);
	/* the reader of the channel gets the event */
	void (*take)(struct scene *scene, int cq);
	/* the table: what is answered, 0 where it works */
	int cq_wait;
	int conn_wait;
	int cq_get_fd;
	int conn_get_compl_fd;
	int cq_get_wc;
};

extern const struct row scene_rows[];
extern const size_t scene_row_count;

/* The connection of a poller: no row's call is needed to make one. */
void scene_open_poller(struct scene *scene);
void scene_close_poller(struct scene *scene);
void scene_fire_poller(struct scene *scene, int cq);
void scene_take_from_queue(struct scene *scene, int cq);

/* Waits, as the call's name says, for the completion that was made, and takes
 * it. */
void scene_take_by_cq_wait(struct scene *scene, int cq);
void scene_take_by_conn_wait(struct scene *scene, int cq);
/* It is the one that fire() makes in this CQ. */
void scene_expect_wc(const struct scene *scene, int cq,
		     const struct ibv_wc *wc);

#endif /* COMPAT_SHARED_CHANNEL_H */
