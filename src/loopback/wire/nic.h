/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * nic.h -- a process as seen by others: the number, the links, and the thread
 * that makes links and looks after links. A process has one NIC, lb_nic_self();
 * a test may make two NICs, whose links then have both ends in one process.
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

/* The layer above. Each comment says which locks are held during the call. */
struct lb_nic_ops {
	/*
	 * Handles a request. link.in is held, and nothing else. The record is a
	 * copy with fitting type and lengths; other fields are unchecked. The
	 * payload, at most two pieces and a length of 0, lies in the ring: fn
	 * copies the payload once, within the call, and never looks at the ring
	 * again. The answer, if any, is put within the call: lb_link_answer().
	 */
	void (*request)(struct lb_link *link, const struct lb_record *record,
			const struct lb_span *payload, struct lb_run *run);
	/* An answer has come; all the rest as above. */
	void (*answer)(struct lb_link *link, const struct lb_record *record,
		       const struct lb_span *payload, struct lb_run *run);
	/*
	 * Ends a wait: there is room, or the link is up, or dead. The waiter is
	 * on no list. link.in may be held, nothing else.
	 */
	void (*room)(struct lb_link *link, struct lb_waiter *waiter,
		     struct lb_run *run);
	/*
	 * Handles the death of a link; everything published by the peer was
	 * taken before, and all waiters were told. Once for each link, also for
	 * a link that never came up. By the link thread, no lock held.
	 */
	void (*dead)(struct lb_link *link, struct lb_run *run);
	/* A message of the peer's layer above. As dead(). */
	void (*message)(struct lb_link *link, const void *data, size_t size,
			struct lb_run *run);
	/* A link is up, before its first message. As dead(). May be NULL. */
	void (*up)(struct lb_link *link, struct lb_run *run);
	/*
	 * Calls fn(arg, run) with a run, and pays the debts of the run; or does
	 * not, if the thread holds a lock.
	 */
	void (*with_run)(void (*fn)(void *arg, struct lb_run *run), void *arg);
};

/* The properties that both ends of a link must share, beside the version. */
struct lb_nic_config {
	uint32_t devices;      /* how many */
	uint64_t devices_hash; /* of their GUIDs */
};

/*
 * Returns the number of this process, drawn and held by the first call, under
 * lb.big. Where the system allows no socket or no shared memory the number is
 * not held, which is logged once, and other processes are unreachable.
 */
unsigned lb_nic_number(void);
/*
 * Attaches the layer above, before the first number, once: without the layer no
 * process is ever met.
 */
void lb_nic_attach(const struct lb_nic_ops *ops,
		   const struct lb_nic_config *config);
struct lb_nic *lb_nic_self(void); /* NULL: no number was drawn */

/*
 * Returns a reference to the link to a process: up, or in contact; starts a
 * contact if there was no link. Never waits. Takes only leaf locks. NULL: no
 * process can be met, or no memory. number is not the number of this process.
 */
struct lb_link *lb_nic_link(struct lb_nic *nic, unsigned number);
/*
 * lb_nic_link() to a process that the program did not name: if the process has
 * ended meanwhile, no line says so.
 */
struct lb_link *lb_nic_link_found(struct lb_nic *nic, unsigned number);
/*
 * Allows other processes to begin: for a queue pair for datagrams, or a
 * listener. Returns 0, or an errno if no process can be met.
 */
int lb_nic_serve(struct lb_nic *nic);
/*
 * Sets the multicast groups with members in this process, in the form of
 * lb_record_group(): messages of others to the groups come here, before the
 * return. Under lb.big.
 */
void lb_nic_set_groups(struct lb_nic *nic, uint64_t groups);
/*
 * Returns the first link that is up, or in contact (the other side may see the
 * link up already), with a reference, from index *at on; sets *at behind the
 * link. NULL: no more.
 */
struct lb_link *lb_nic_next(struct lb_nic *nic, uint32_t *at);
/* Calls fn for each link that is up, with a reference meanwhile. */
void lb_nic_each(struct lb_nic *nic,
		 void (*fn)(struct lb_link *link, void *arg), void *arg);

/*
 * Takes pending records of all links, up to 64 records or 64 KiB; links drained
 * by another thread are left to the thread. No lock held.
 */
void lb_nic_drain(struct lb_nic *nic, struct lb_run *run);
/* Pays the debt of a thread after LB_PUT_NO_ROOM. No lock held. */
void lb_nic_look(struct lb_nic *nic, struct lb_run *run);
/*
 * Prepares for the sleep of the program (ibv_req_notify_cq()): later records
 * wake the link thread, and earlier records are taken. No lock held.
 */
void lb_nic_arm(struct lb_nic *nic, struct lb_run *run);

/*
 * lb_nic_drain() and lb_nic_arm() for the process, with a separate run: for the
 * layers below the layer with runs.
 */
void lb_nic_poll(void);
void lb_nic_poll_arm(void);
/* Polls a single link, which may be dead. */
void lb_nic_poll_link(struct lb_link *link);

/* The two questions in a program of one process, a load each. */
static inline bool lb_nic_has_links(void)
{
	/* relaxed: a link in the making is found by the next look */
	return !lb_likely(
		!atomic_load_explicit(&lb_link_ups, memory_order_relaxed));
}
static inline bool lb_nic_owes(void)
{
	/* relaxed: this thread has stored its own debts */
	return !lb_likely(
		!atomic_load_explicit(&lb_link_owed, memory_order_relaxed));
}

/*
 * For tests: make a NIC beside the NIC of the process, with a thread; and end
 * the NIC.
 */
struct lb_nic *lb_nic_new(const struct lb_nic_ops *ops,
			  const struct lb_nic_config *config);
void lb_nic_delete(struct lb_nic *nic);
unsigned lb_nic_number_of(const struct lb_nic *nic);

/* Removes the link, number and thread of the parent in a child. */
void lb_nic_fork(enum lb_fork_step step);

#endif /* LB_WIRE_NIC_H */
