/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * mcast.c -- multicast groups: the UD queue pairs that get datagrams to a
 * multicast GID, on any device. A group comes with its first member and goes
 * with its last. Members change under lb.big and the lock of the table; a
 * sender takes only the lock of the table, as long as the sender copies the
 * members.
 */

#include "qp/mcast.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/lock.h"
#include "base/process.h"
#include "base/random.h"
#include "fault/fault.h"
#include "object/limits.h"
#include "object/object.h"
#include "qp/qp.h"
#include "wire/meet.h"
#include "wire/nic.h"
#include "wire/record.h"

#define BUCKETS 1024 /* a power of 2 */

struct group {
	struct group *next;
	union ibv_gid gid;
	uint32_t count;
	struct lb_member members[LB_MAX_MCAST_ATTACH];
};

static struct lb_lock lock; /* a leaf */
static struct group *buckets[BUCKETS];
/* under lb.big */
static uint32_t ngroups;
static uint32_t counts[64]; /* groups, by the bit of lb_record_group() */
static uint64_t told;	    /* reported to other processes: bits with groups */

bool lb_mcast_is(const union ibv_gid *gid)
{
	static const uint8_t v4[12] = {[10] = 0xff, [11] = 0xff};

	return gid->raw[0] == 0xff || (!memcmp(gid->raw, v4, sizeof(v4)) &&
				       (gid->raw[12] & 0xf0) == 0xe0);
}

/* --- the table; lock held, or lb.big by a thread that only reads */

static struct group **bucket_of(const union ibv_gid *gid)
{
	uint64_t half[2];

	memcpy(half, gid->raw, sizeof(half));
	return &buckets[lb_random_mix(half[0] ^ lb_random_mix(half[1])) &
			(BUCKETS - 1)];
}

/* Where the pointer to the group is, or would be. */
static struct group **find(const union ibv_gid *gid)
{
	struct group **at = bucket_of(gid);

	while (*at && memcmp(&(*at)->gid, gid, sizeof(*gid)) != 0)
		at = &(*at)->next;
	return at;
}

/* Returns the index of the queue pair among the members, or their count. */
static uint32_t index_of(const struct group *group, const struct lb_qp *qp)
{
	uint32_t i = 0;

	while (i < group->count && group->members[i].qp != qp)
		i++;
	return i;
}

uint32_t lb_mcast_members(const union ibv_gid *gid,
			  struct lb_member to[LB_MAX_MCAST_ATTACH])
{
	const struct group *group;
	uint32_t n = 0;

	lb_lock_get(&lock);
	group = *find(gid);
	if (group) {
		n = group->count;
		memcpy(to, group->members, n * sizeof(to[0]));
	}
	lb_lock_put(&lock);
	return n;
}

/* --- members come and go; lb.big held */

/* Counts a group more or less for the bit: others learn of the first. */
static void count(const union ibv_gid *gid, int by)
{
	struct lb_nic *nic = lb_nic_self();
	uint64_t bit = lb_record_group(gid->raw);
	uint32_t *n = &counts[__builtin_ctzll(bit)];
	bool was_told = *n;

	*n += (uint32_t)by;
	if (was_told == (*n != 0))
		return;
	told ^= bit;
	if (nic)
		lb_nic_set_groups(nic, told);
}

static int join(struct group **at, struct lb_qp_handle *handle)
{
	struct group *group = *at;

	if (index_of(group, handle->qp) < group->count)
		return 0;
	if (group->count == LB_MAX_MCAST_ATTACH)
		return ENOMEM;
	lb_lock_get(&lock);
	group->members[group->count++] =
		(struct lb_member){handle->qp, handle->qp->order};
	lb_lock_put(&lock);
	handle->obj.refs++;
	return 0;
}

/* The first member makes the group. */
static int found(const union ibv_gid *gid, struct lb_qp_handle *handle)
{
	struct group **bucket = bucket_of(gid);
	struct group *group = NULL;

	if (ngroups < LB_MAX_MCAST_GRP)
		group = calloc(1, sizeof(*group));
	if (!group)
		return ENOMEM;
	group->gid = *gid;
	lb_lock_get(&lock);
	group->next = *bucket;
	*bucket = group;
	lb_lock_put(&lock);
	ngroups++;
	join(bucket, handle); /* there is room */
	count(gid, 1);
	return 0;
}

static int leave(struct group **at, struct lb_qp_handle *handle)
{
	struct group *group = *at;
	uint32_t i = group ? index_of(group, handle->qp) : 0;

	if (!group || i == group->count)
		return EINVAL;
	lb_lock_get(&lock);
	group->members[i] = group->members[--group->count];
	if (!group->count)
		*at = group->next;
	lb_lock_put(&lock);
	handle->obj.refs--;
	if (group->count)
		return 0;
	ngroups--;
	count(&group->gid, -1);
	free(group);
	return 0;
}

/* 0, or why the queue pair can be in no group of this GID. */
static int check(const char *verb, const struct ibv_qp *qp,
		 const union ibv_gid *gid)
{
	int err = lb_fault_errno(verb);

	if (err)
		return err;
	if (!lb_object_find(qp, LB_QP))
		return ENOENT;
	return qp->qp_type == IBV_QPT_UD && lb_mcast_is(gid) ? 0 : EINVAL;
}

LB_EXPORT int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid,
			       uint16_t lid)
{
	struct lb_qp_handle *handle = (struct lb_qp_handle *)qp;
	struct group **at;
	int err;

	(void)lid; /* the link layer is Ethernet */
	pthread_mutex_lock(&lb.big);
	err = check("ibv_attach_mcast", qp, gid);
	if (!err) {
		at = find(gid);
		err = *at ? join(at, handle) : found(gid, handle);
	}
	pthread_mutex_unlock(&lb.big);
	if (!err)
		lb_meet_all();
	return lb_error(err);
}

LB_EXPORT int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid,
			       uint16_t lid)
{
	int err;

	(void)lid;
	pthread_mutex_lock(&lb.big);
	err = check("ibv_detach_mcast", qp, gid);
	if (!err)
		err = leave(find(gid), (struct lb_qp_handle *)qp);
	pthread_mutex_unlock(&lb.big);
	return lb_error(err);
}

/* --- fork */

static void free_all(struct group *group)
{
	while (group) {
		struct group *next = group->next;

		free(group);
		group = next;
	}
}

void lb_mcast_fork(enum lb_fork_step step)
{
	uint32_t i;

	if (step != LB_FORK_CHILD)
		return;
	lb_lock_init(&lock); /* a thread of the parent may have held the lock */
	for (i = 0; i < BUCKETS; i++) {
		free_all(buckets[i]);
		buckets[i] = NULL;
	}
	ngroups = 0;
	memset(counts, 0, sizeof(counts));
	told = 0;
}
