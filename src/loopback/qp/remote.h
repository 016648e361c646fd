/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * remote.h -- how far the requester of a queue pair is with a peer in another
 * process. doc/protocols/wire.md has the rules.
 */

#ifndef LB_QP_REMOTE_H
#define LB_QP_REMOTE_H

#include <stdatomic.h>
#include <stdint.h>

#include "wire/link.h"

#define LB_PSN_MASK 0xffffffu

/* A place between two parts of messages. */
struct lb_place {
	uint32_t pos;	 /* of the request, in the send queue */
	uint32_t offset; /* earlier bytes of the message */
	uint32_t psn;	 /* of the packet behind */
};

/*
 * Under sq.lock; link and device are written with all locks, and read with any.
 * Outstanding requests lie between acked and sent.
 */
struct lb_remote {
	struct lb_link *link; /* a reference; NULL: not another process's */
	struct lb_link *way;  /* of the last datagram, a reference */
	/* link or way, for a post that looks before taking a lock: never freed,
	 * and perhaps of another peer by then */
	_Atomic(struct lb_link *) look;
	struct lb_waiter waiter;
	/* of a datagram to a group: 0, or 1 and the number of finished links */
	uint32_t fan;
	uint8_t device; /* index: the device of the peer, from the address */
	uint16_t life;	/* a new number after each reset */
	uint32_t reads; /* outstanding requests with lb_wqe_is_counted() */
	struct lb_place sent;
	struct lb_place acked; /* pos is sq_exec */
};

/* Sets the link that a post looks at, or no link; all locks, or sq.lock. */
static inline void lb_remote_look_at(struct lb_remote *remote,
				     struct lb_link *link)
{
	/* relaxed: a post may look at the link before */
	atomic_store_explicit(&remote->look, link, memory_order_relaxed);
}

/* Packets of a part of a message. */
static inline uint32_t lb_psn_count(uint32_t length, unsigned path_mtu)
{
	uint32_t mtu = 128u << path_mtu;

	return length <= mtu ? 1 : (length + mtu - 1) / mtu;
}

#endif /* LB_QP_REMOTE_H */
