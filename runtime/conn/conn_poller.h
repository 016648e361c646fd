/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * conn_poller.h -- the part of a connection that belongs to its poller
 * (drain.c). doc/protocols/connection.md.
 */

#ifndef RT_CONN_CONN_POLLER_H
#define RT_CONN_CONN_POLLER_H

#include <stdbool.h>
#include <stdint.h>

#include "conn/keepalive.h"
#include "pool/feed.h"
#include "poller/schedule.h"

/* the poller's state of the connection */
enum __attribute__((packed)) rt_poll_state {
	RT_PS_HEALTHY,
	RT_PS_BROKEN,	/* keeps completions until HANDOVER */
	RT_PS_DRAINING, /* owns the ledgers, waits for the markers */
	RT_PS_DRAINED,	/* waits until its queue pair is gone */
	RT_PS_SWEEPING, /* that is gone; waits for what its CQ still holds */
	RT_PS_SWEPT
};

/* its queue pair's number */
enum __attribute__((packed)) rt_bind_state {
	RT_BIND_NONE, /* it has no queue pair yet */
	/* waits for the number's former connection to be swept */
	RT_BIND_LATE,
	RT_BIND_LATE_READY, /* and READY, which has come, with it */
	RT_BIND_DONE
};

/* a completion that waits for the ledger */
struct rt_kept {
	uint64_t wr_id;
	uint32_t byte_len;
	uint32_t imm; /* or vendor_err */
	uint8_t status;
	uint8_t opcode;
	uint8_t flags;
	uint8_t side;
};

/* what a connection brings along: its poller takes each of it over */
struct rt_conn_brought {
	/* with OPEN; NULL: what there is, is large enough */
	struct rt_spill *spill[2];
	struct rt_qp_table *qps;
	/* passive, with READY: its listener's on its poller, until REQUEST is
	 * written */
	struct rt_listener_poller *part;
};

struct rt_conn_poller {
	enum rt_poll_state state;
	enum rt_bind_state bind;
	bool failed; /* a WR did, not only flushed */
	uint8_t markers_seen;
	bool awaits_last_wqe; /* and deadline_ns is that of its coming */
	bool is_draining;     /* the task waits for the end of its time */
	bool is_long;	      /* its end takes more than one round */
	struct rt_keepalive *keepalive; /* NULL: it has none */
	/* own ones and opened ones, also closed ones as long as they owe */
	struct rpma_rt_route *routes;
	union {
		struct rt_route_opened *owing; /* closed ones that do */
		struct rpma_rt_route
			*to_close; /* after LAST: those not closed */
	};
	/* and those that do not any more; a stack that only grows, read by
	 * changes too [ROUTE-3] */
	_Atomic(struct rpma_rt_route *) buried;
	struct rt_kept *kept;
	uint32_t kept_count;
	uint32_t kept_finished; /* of them, from HANDOVER on */
	uint16_t srq_route;	/* which its SRQ's receives take */
	uint16_t routes_count;	/* of routes; each has a number of 15 bits */
	/* the directory's: buried_count of the top of buried at the change
	 * before; those below are off the directory's list */
	uint32_t seen_buried;
	union {
		struct rt_conn_brought brought; /* until READY is handled */
		/* from a drain, or HANDOVER, on: the next step of its death */
		struct rt_task dying;
	};
	union {
		uint64_t deadline_ns; /* of draining */
		uint64_t mark;	      /* after LAST: what it leaves in lanes */
	};
	union {
		struct rpma_rt_conn
			*late_next; /* while its number is another's */
		/* after LAST: routes whose leave is not announced to their
		 * queues */
		struct rpma_rt_route *to_announce;
		struct rpma_rt_conn *left_next; /* then: of rpma_rt.left */
	};
};

#endif /* RT_CONN_CONN_POLLER_H */
