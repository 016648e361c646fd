/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * id.c -- identifiers: the table of their handles, how they come and go,
 * and the lock of the rdma_cm half. Any thread.
 */

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/hook.h"
#include "base/list.h"
#include "base/log.h"
#include "cm/cm.h"
#include "fault/fault.h"
#include "rpma_loopback.h"
#include "verbs/config.h"

#define ID_MAGIC   0x6c625f636d5f6964ull /* "lb_cm_id" */
#define INDEX_MASK (LB_CM_MAX_IDS - 1)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/*
 * Handles: an index of the table in the low half, and in the high half a
 * count that makes the handle of a former owner of the row invalid. [lock]
 */
static struct lb_cm_id *table[LB_CM_MAX_IDS];
static uint16_t uses[LB_CM_MAX_IDS];
static uint32_t free_rows[LB_CM_MAX_IDS]; /* a stack */
static uint32_t nfree_rows;
static uint32_t nrows; /* rows ever used */

void lb_cm_lock(void)
{
	pthread_mutex_lock(&lock);
}

void lb_cm_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void lb_cm_wait(pthread_cond_t *cond)
{
	pthread_cond_wait(cond, &lock);
}

struct lb_cm_id *lb_cm_id_of(struct rdma_cm_id *id)
{
	struct lb_cm_id *priv = (struct lb_cm_id *)(void *)id;

	if (!id || (uintptr_t)id % alignof(struct lb_cm_id) ||
	    priv->magic != ID_MAGIC) {
		errno = EINVAL;
		return NULL;
	}
	return priv;
}

struct lb_cm_id *lb_cm_id_find(uint32_t handle)
{
	struct lb_cm_id *id = table[handle & INDEX_MASK];

	return id && id->handle == handle ? id : NULL;
}

struct lb_cm_id *lb_cm_id_walk(uint32_t *cursor)
{
	while (*cursor < nrows) {
		struct lb_cm_id *id = table[(*cursor)++];

		if (id)
			return id;
	}
	return NULL;
}

struct lb_cm_id *lb_cm_id_new(enum rdma_port_space ps, enum ibv_qp_type type)
{
	struct lb_cm_id *id = calloc(1, sizeof(*id));

	if (!id)
		return NULL;
	id->magic = ID_MAGIC;
	id->id.ps = ps;
	id->id.qp_type = type;
	id->ps = ps;
	id->dev = -1;
	lb_list_init(&id->unread);
	lb_list_init(&id->unacked);
	lb_list_init(&id->bind_node);
	lb_list_init(&id->waiting);
	lb_list_init(&id->timer_node);
	lb_list_init(&id->groups);
	pthread_cond_init(&id->acked, NULL);
	return id;
}

int lb_cm_id_insert(struct lb_cm_id *id)
{
	uint32_t row;

	if (nfree_rows)
		row = free_rows[--nfree_rows];
	else if (nrows < LB_CM_MAX_IDS)
		row = nrows++;
	else
		return ENOMEM;
	if (!++uses[row])
		uses[row] = 1; /* 0 is the handle of nobody */
	id->handle = (uint32_t)uses[row] << 16 | row;
	table[row] = id;
	return 0;
}

void lb_cm_id_set_channel(struct lb_cm_id *id, struct lb_cm_channel *ch)
{
	if (id->channel)
		id->channel->nids--;
	id->channel = ch;
	if (ch)
		ch->nids++;
}

void lb_cm_id_retire(struct lb_cm_id *id)
{
	lb_cm_link_break(id);
	lb_list_del(&id->bind_node);
	lb_cm_event_drop_all(id);
	if (id->handle) {
		table[id->handle & INDEX_MASK] = NULL;
		free_rows[nfree_rows++] = id->handle & INDEX_MASK;
		id->handle = 0;
	}
	id->state = LB_CM_GONE;
	lb_cm_id_set_channel(id, NULL);
}

void lb_cm_id_delete(struct lb_cm_id *id)
{
	pthread_cond_destroy(&id->acked);
	lb_cm_group_free_all(id);
	free(id->id.route.path_rec);
	free(id->qp_init_attr);
	free(id->connect_data);
	id->magic = 0;
	free(id);
}

bool lb_cm_id_is_sync(struct lb_cm_id *id)
{
	bool sync;

	lb_cm_lock();
	sync = id->sync;
	lb_cm_unlock();
	return sync;
}

bool lb_cm_id_is_idle(struct lb_cm_id *id)
{
	bool idle;

	lb_cm_lock();
	idle = id->state == LB_CM_IDLE;
	lb_cm_unlock();
	return idle;
}

int lb_cm_id_state_errno(const struct lb_cm_id *id)
{
	return id->state == LB_CM_GONE ? ENXIO : EINVAL;
}

struct lb_cm_id *lb_cm_enter(const char *verb, struct rdma_cm_id *cm_id)
{
	struct lb_cm_id *id = lb_cm_id_of(cm_id);
	int err = lb_fail(verb);

	if (err) {
		errno = err;
		return NULL;
	}
	if (id)
		lb_hook(RPMA_LOOPBACK_CM_CALL, cm_id);
	return id;
}

int lb_cm_leave(const void *object, int ret)
{
	int err = errno;

	lb_hook(RPMA_LOOPBACK_CM_CALL_DONE, object);
	errno = err;
	return ret;
}

static bool is_supported(enum rdma_port_space ps, enum ibv_qp_type type)
{
	bool is_connected = type == IBV_QPT_RC || type == IBV_QPT_UC;

	switch (ps) {
	case RDMA_PS_TCP:
		return is_connected;
	case RDMA_PS_UDP:
		return type == IBV_QPT_UD;
	case RDMA_PS_IB:
		return is_connected || type == IBV_QPT_UD;
	default:
		return false;
	}
}

int lb_cm_id_create(struct lb_cm_channel *channel, struct rdma_cm_id **out,
		    void *context, enum rdma_port_space ps,
		    enum ibv_qp_type type)
{
	struct lb_cm_channel *own = NULL;
	struct lb_cm_id *id;
	int err = ENOMEM;

	lb_start();
	if (!is_supported(ps, type))
		return lb_cm_err(EOPNOTSUPP);
	if (!channel)
		channel = own = lb_cm_channel_new();
	if (!channel)
		return -1;
	id = lb_cm_id_new(ps, type);
	if (!id)
		goto err_channel;
	id->id.context = context;
	id->id.channel = &channel->ch;
	id->sync = own != NULL;
	lb_cm_lock();
	err = lb_cm_id_insert(id);
	if (!err)
		lb_cm_id_set_channel(id, channel);
	lb_cm_unlock();
	if (err)
		goto err_id;
	*out = &id->id;
	return 0;

err_id:
	lb_cm_id_delete(id);
err_channel:
	lb_cm_channel_delete(own);
	return lb_cm_err(err);
}

/* The last event of a synchronous identifier is acknowledged with it. */
static void drop_sync_event(struct lb_cm_id *id)
{
	if (id->id.event)
		lb_cm_event_ack(id->id.event);
	id->id.event = NULL;
}

void lb_cm_id_destroy(struct lb_cm_id *id)
{
	struct lb_cm_channel *own;

	lb_cm_lock();
	own = id->sync ? id->channel : NULL;
	lb_cm_id_retire(id);
	lb_cm_unlock();
	lb_cm_flush();
	drop_sync_event(id);
	lb_cm_event_wait_acked(id, NULL);
	lb_cm_channel_delete(own);
	lb_cm_id_delete(id);
}

int lb_cm_id_migrate(struct lb_cm_id *id, struct lb_cm_channel *to)
{
	struct lb_cm_channel *own = NULL;
	struct lb_cm_channel *old;
	bool was_sync;

	if (!to)
		to = own = lb_cm_channel_new();
	if (!to)
		return -1;
	lb_cm_lock();
	was_sync = id->sync;
	old = id->channel;
	if (old) {
		lb_cm_event_move_all(id, to);
		lb_cm_id_set_channel(id, to);
		id->sync = own != NULL;
	}
	lb_cm_unlock();
	if (!old) {
		lb_cm_channel_delete(own);
		return lb_cm_err(ENXIO);
	}
	if (was_sync)
		drop_sync_event(id);
	id->id.channel = &to->ch;
	/* after this nobody handles an event of id that came by the old one */
	lb_cm_event_wait_acked(id, old);
	if (was_sync)
		lb_cm_channel_delete(old);
	return 0;
}

LB_EXPORT int rdma_create_id(struct rdma_event_channel *channel,
			     struct rdma_cm_id **id, void *context,
			     enum rdma_port_space ps)
{
	struct lb_cm_channel *ch = channel ? lb_cm_channel_of(channel) : NULL;
	int err = lb_fail("rdma_create_id");

	if (err || !id || (channel && !ch))
		return lb_cm_err(err ? err : EINVAL);
	lb_hook(RPMA_LOOPBACK_CM_CALL, channel);
	return lb_cm_leave(
		channel,
		lb_cm_id_create(ch, id, context, ps,
				ps == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC));
}

LB_EXPORT int rdma_destroy_id(struct rdma_cm_id *cm_id)
{
	struct lb_cm_id *id = lb_cm_enter("rdma_destroy_id", cm_id);

	if (!id)
		return -1;
	if (cm_id->qp)
		lb_misuse("rdma_destroy_id: its QP still exists");
	lb_cm_id_destroy(id);
	return lb_cm_leave(cm_id, 0);
}

LB_EXPORT int rdma_migrate_id(struct rdma_cm_id *cm_id,
			      struct rdma_event_channel *channel)
{
	struct lb_cm_channel *to = channel ? lb_cm_channel_of(channel) : NULL;
	struct lb_cm_id *id = lb_cm_enter("rdma_migrate_id", cm_id);

	if (!id)
		return -1;
	if ((channel && !to) || (!channel && lb_cm_id_is_sync(id)))
		return lb_cm_leave(cm_id, lb_cm_err(EINVAL));
	return lb_cm_leave(cm_id, lb_cm_id_migrate(id, to));
}
