/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * mail.c -- the messages of the layer above, which go over the socket of a
 * link, and wait in a queue while the link is in contact or the socket is full.
 * Any thread, under link.out.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/list.h"
#include "base/lock.h"
#include "wire/link.h"
#include "wire/nic.h"
#include "wire/parts.h"
#include "wire/socket.h"

/* --- link --- */

/* under out; the caller keeps the letter on failure */
static int enqueue(struct lb_link *link, struct lb_letter *letter)
{
	if (link->nletters == LB_PARTS_QUEUE)
		return ENOBUFS;
	link->nletters++;
	lb_list_push(&link->letters, &letter->node);
	return 0;
}

/* under out */
static int send_or_keep(struct lb_link *link, struct lb_letter *letter)
{
	int err;

	if (lb_parts_state(link) == LB_LINK_DEAD)
		return ENOTCONN;
	if (!link->mine || link->nletters)
		return enqueue(link, letter);
	err = lb_socket_send(link->socket.fd, letter->bytes, letter->size);
	if (err == EPIPE || err == ECONNRESET)
		return ENOTCONN;
	if (err) {
		err = enqueue(link, letter);
		lb_fd_ring(link->nic->wake.fd, 1);
		return err;
	}
	link->out_stats.messages_sent++;
	free(letter);
	return 0;
}

int lb_link_send(struct lb_link *link, const void *data, size_t size)
{
	struct lb_letter *letter = malloc(sizeof(*letter) + 1 + size);
	int err;

	if (!letter)
		return ENOMEM;
	letter->size = 1 + size;
	letter->bytes[0] = LB_SOCKET_MESSAGE;
	memcpy(letter->bytes + 1, data, size);
	lb_lock_get(&link->out);
	err = send_or_keep(link, letter);
	lb_lock_put(&link->out);
	if (err)
		free(letter);
	if (err == ENOBUFS)
		lb_link_break(link, "queue of messages, which it does not "
				    "take,");
	return err;
}

/* under out */
static bool flush(struct lb_link *link)
{
	while (!lb_list_is_empty(&link->letters)) {
		struct lb_letter *letter =
			lb_entry(link->letters.next, struct lb_letter, node);

		if (lb_socket_send(link->socket.fd, letter->bytes,
				   letter->size))
			return false; /* full, or found dead later */
		lb_list_del(&letter->node);
		link->nletters--;
		link->out_stats.messages_sent++;
		free(letter);
	}
	if (link->is_unheard && !lb_link_ring(link))
		return false;
	link->is_unheard = false;
	return true;
}

bool lb_link_flush(struct lb_link *link)
{
	bool all = true;

	lb_lock_get(&link->out);
	if (link->mine)
		all = flush(link);
	lb_lock_put(&link->out);
	return all;
}
