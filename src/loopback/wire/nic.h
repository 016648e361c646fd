/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * nic.h -- a process as others see it: its number, its links, and the thread
 * that makes them and looks after them. A process has one, lb_nic_self(); a
 * test may make two, whose links then have both ends in one process.
 */

#ifndef LB_WIRE_NIC_H
#define LB_WIRE_NIC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "base/process.h"
#include "base/span.h"
#include "wire/link.h"
#include "wire/record.h"

struct lb_nic;

/* The layer above. What is held when they are called stands at each. */
struct lb_nic_ops {
	/*
	 * A request has come. link.in is held, and nothing else. The record is
	 * a copy, and its type and lengths fit; nothing else of it was looked
	 * at. The payload, at most two pieces and a length of 0, lies in the
	 * ring: it is copied once, within the call, and never looked at. The
	 * answer, if it has one, is put within the call: lb_link_answer().
	 */
	void (*request)(struct lb_link *link, const struct lb_record *record,
			const struct lb_span *payload, struct lb_run *run);
	/* An answer has come; all the rest as above. */
	void (*answer)(struct lb_link *link, const struct lb_record *record,
		       const struct lb_span *payload, struct lb_run *run);
	/*
	 * The waiter need not wait any more: there is room, or the link is up,
	 * or dead. It is on no list. link.in may be held, nothing else.
	 */
	void (*room)(struct lb_link *link, struct lb_waiter *waiter,
		     struct lb_run *run);
	/*
	 * The link is dead; all that the peer had published was taken before,
	 * and all that wait were told. Once for each link, also for one that
	 * never came up. By the link thread, no lock held.
	 */
	void (*dead)(struct lb_link *link, struct lb_run *run);
	/* A message of the peer's layer above. As dead(). */
	void (*message)(struct lb_link *link, const void *data, size_t size,
			struct lb_run *run);
	/* A link is up, before its first message. As dead(). May be NULL. */
	void (*up)(struct lb_link *link, struct lb_run *run);
	/*
	 * Call fn(arg, run) with a run of its own, and pay what it owes; or do
	 * not, if the thread holds a lock.
	 */
	void (*with_run)(void (*fn)(void *arg, struct lb_run *run), void *arg);
};

/* What both ends of a link must have in common, beside the version. */
struct lb_nic_config {
	uint32_t devices;      /* how many */
	uint64_t devices_hash; /* of their GUIDs */
};

/*
 * The number of this process, which is drawn and held by the first call, under
 * lb.big. Where the system allows no socket or no shared memory it is held by
 * nobody, which is logged once, and other processes are not reached.
 */
unsigned lb_nic_number(void);
/* Before the first number, once: without it no process is ever met. */
void lb_nic_attach(const struct lb_nic_ops *ops,
		   const struct lb_nic_config *config);
struct lb_nic *lb_nic_self(void); /* NULL: no number was drawn */

/*
 * A reference to the link to a process: the one that is up, or that is
 * in contact, which it is from now on if there was none. Never waits. Takes
 * leaves only. NULL: nobody can be met, or no memory. Not of one's own number.
 */
struct lb_link *lb_nic_link(struct lb_nic *nic, unsigned number);
/*
 * Other processes may be the first to begin: of a queue pair for datagrams, of
 * a listener. 0, or an errno if nobody can be met.
 */
int lb_nic_serve(struct lb_nic *nic);
/*
 * Multicast groups with members in this process, as lb_record_group() has them:
 * what others send to them comes, before this returns. Under lb.big.
 */
void lb_nic_set_groups(struct lb_nic *nic, uint64_t groups);
/*
 * The first link that is up, or in contact: the other side may have it up
 * already. From the one with index *at on, with a reference; *at is behind it
 * then. NULL: no more.
 */
struct lb_link *lb_nic_next(struct lb_nic *nic, uint32_t *at);
/* Call fn for each link that is up, which has a reference meanwhile. */
void lb_nic_each(struct lb_nic *nic,
		 void (*fn)(struct lb_link *link, void *arg), void *arg);

/*
 * Take what has come on all links, or what of 64 records or 64 KiB has; those
 * that another thread is draining are left to it. No lock held.
 */
void lb_nic_drain(struct lb_nic *nic, struct lb_run *run);
/* What a thread owes that got LB_PUT_NO_ROOM. No lock held. */
void lb_nic_look(struct lb_nic *nic, struct lb_run *run);
/*
 * The program says that it will sleep (ibv_req_notify_cq()): whatever comes
 * from now on wakes the link thread, and what came before is taken. No lock
 * held.
 */
void lb_nic_arm(struct lb_nic *nic, struct lb_run *run);

/*
 * lb_nic_drain(), and lb_nic_arm(), of the process, with a run of its own: for
 * the layers below the one that makes those.
 */
void lb_nic_poll(void);
void lb_nic_poll_arm(void);
/* The same as lb_nic_poll() of one link; it may be one that is dead. */
void lb_nic_poll_link(struct lb_link *link);

/* The two questions of a program of one process, a load each. */
static inline bool lb_nic_has_links(void)
{
	/* relaxed: one that is being made is found by the next look */
	return !lb_likely(
		!atomic_load_explicit(&lb_link_ups, memory_order_relaxed));
}
static inline bool lb_nic_owes(void)
{
	/* relaxed: what this thread owes it has stored itself */
	return !lb_likely(
		!atomic_load_explicit(&lb_link_owed, memory_order_relaxed));
}

/* For tests: a NIC beside that of the process, with a thread; and its end. */
struct lb_nic *lb_nic_new(const struct lb_nic_ops *ops,
			  const struct lb_nic_config *config);
void lb_nic_delete(struct lb_nic *nic);
unsigned lb_nic_number_of(const struct lb_nic *nic);

/* A child has no link, no number and no thread of its parent's. */
void lb_nic_fork(enum lb_fork_step step);

#endif /* LB_WIRE_NIC_H */
