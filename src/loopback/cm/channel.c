/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * channel.c -- event channels: a list of unread events and an eventfd
 * that counts them, so that poll(2), O_NONBLOCK and signals work on it as on
 * the kernel's file. Any thread.
 *
 * The count may be ahead of the list, never behind: a reader has taken its unit
 * from the eventfd and not yet its event when that event moves to another
 * channel. Such a reader finds nothing and goes back to sleep.
 */

#include "cm/channel.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/base.h"
#include "base/cancel.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/log.h"
#include "cm/cm.h"
#include "cm/table.h"
#include "fault/fault.h"

#define CHANNEL_MAGIC 0x6c625f636d5f6368ull /* "lb_cm_ch" */

struct lb_cm_channel *lb_cm_channel_of(struct rdma_event_channel *channel)
{
	struct lb_cm_channel *ch = (struct lb_cm_channel *)(void *)channel;

	if (!ch || (uintptr_t)ch % alignof(struct lb_cm_channel) ||
	    ch->magic != CHANNEL_MAGIC) {
		errno = EINVAL;
		return NULL;
	}
	return ch;
}

static struct lb_list all = {&all, &all}; /* [lock] */

struct lb_cm_channel *lb_cm_channel_new(void)
{
	struct lb_cm_channel *ch = calloc(1, sizeof(*ch));

	if (!ch)
		return NULL;
	ch->ch.fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	if (ch->ch.fd < 0) {
		free(ch);
		return NULL;
	}
	ch->magic = CHANNEL_MAGIC;
	lb_opener_note(&ch->opener);
	lb_list_init(&ch->events);
	lb_list_init(&ch->ids);
	lb_list_init(&ch->node);
	lb_cm_lock();
	lb_list_push(&all, &ch->node);
	lb_cm_unlock();
	return ch;
}

void lb_cm_channel_free(struct lb_cm_channel *ch)
{
	LB_NOT_CANCELLED;

	lb_cm_lock();
	lb_list_del(&ch->node);
	lb_cm_unlock();
	close(ch->ch.fd);
	ch->magic = 0;
	free(ch);
}

void lb_cm_channel_forked(void)
{
	struct lb_list *n;

	for (n = all.next; n != &all; n = n->next)
		lb_fd_renew(lb_entry(n, struct lb_cm_channel, node)->ch.fd);
}

void lb_cm_channel_push(struct lb_cm_channel *ch, struct lb_cm_event *event)
{
	LB_NOT_CANCELLED;
	uint64_t one = 1;

	lb_list_push(&ch->events, &event->node);
	event->delivered = true;
	/* fails only when the application closed the descriptor itself */
	if (write(ch->ch.fd, &one, sizeof(one)) < 0)
		lb_log(1, "rdma_cm: event channel: its descriptor is gone");
}

void lb_cm_channel_withdraw(struct lb_cm_channel *ch, struct lb_cm_event *event)
{
	LB_NOT_CANCELLED;
	uint64_t unit;
	struct iovec iov = {.iov_base = &unit, .iov_len = sizeof(unit)};

	lb_list_del(&event->node);
	event->delivered = false;
	/*
	 * Take its unit too, without ever waiting, whatever O_NONBLOCK is. If
	 * there is none, a reader has it, and will find out.
	 */
	(void)!preadv2(ch->ch.fd, &iov, 1, -1, RWF_NOWAIT);
}

LB_EXPORT struct rdma_event_channel *rdma_create_event_channel(void)
{
	int err = lb_fault_errno("rdma_create_event_channel");
	struct lb_cm_channel *ch;

	if (err) {
		errno = err;
		return NULL;
	}
	ch = lb_cm_channel_new();
	return ch ? &ch->ch : NULL;
}
