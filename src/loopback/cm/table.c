/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * table.c -- the lock of the rdma_cm half, the table of handles, and what every
 * call on an identifier begins and ends with. Any thread.
 */

#include "cm/table.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cancel.h"
#include "base/base.h"
#include "base/hook.h"
#include "base/list.h"
#include "base/log.h"
#include "base/random.h"
#include "cm/cm.h"
#include "fault/fault.h"
#include "rpma_loopback.h"
#include "wire/link.h"

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
	LB_NOT_CANCELLED;

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
	id->mine.psn = (uint32_t)lb_random() & 0xffffff;
	lb_list_init(&id->channel_node);
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
	lb_list_del(&id->channel_node);
	id->channel = ch;
	if (ch)
		lb_list_push(&ch->ids, &id->channel_node);
}

void lb_cm_id_remove(struct lb_cm_id *id)
{
	if (!id->handle)
		return;
	table[id->handle & INDEX_MASK] = NULL;
	free_rows[nfree_rows++] = id->handle & INDEX_MASK;
	id->handle = 0;
}

static void free_groups(struct lb_cm_id *id)
{
	while (!lb_list_is_empty(&id->groups)) {
		struct lb_cm_group *group =
			lb_entry(id->groups.next, struct lb_cm_group, node);

		lb_list_del(&group->node);
		free(group);
	}
}

void lb_cm_id_delete(struct lb_cm_id *id)
{
	pthread_cond_destroy(&id->acked);
	free_groups(id);
	if (id->via)
		lb_link_put(id->via);
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
	sync = id->sockets.sync;
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

/* Returns 0, or EACCES: see opener.h. */
static int check_opener(const struct lb_cm_id *id)
{
	int err;

	if (!lb_opener_is_asked())
		return 0;
	lb_cm_lock();
	err = lb_opener_check(&id->opener);
	lb_cm_unlock();
	return err;
}

/* Returns 0, or ENXIO: a child can only destroy identifiers of its parent. */
static int check_inherited(const char *verb, struct lb_cm_id *id)
{
	bool is_said;

	if (lb_likely(!id->is_inherited) ||
	    !strncmp(verb, "rdma_destroy", strlen("rdma_destroy")))
		return 0;
	lb_cm_lock();
	is_said = id->is_said;
	id->is_said = true;
	lb_cm_unlock();
	if (!is_said)
		lb_log(0,
		       "%s: identifier %p was made before fork() and is the "
		       "parent process's: this process can only destroy the "
		       "identifier, and has to make one of its own",
		       verb, (void *)id);
	return ENXIO;
}

struct lb_cm_id *lb_cm_enter(const char *verb, struct rdma_cm_id *cm_id)
{
	struct lb_cm_id *id = lb_cm_id_of(cm_id);
	int err = lb_fault_errno(verb);

	if (!err && id)
		err = check_inherited(verb, id);
	if (!err && id)
		err = check_opener(id);
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
