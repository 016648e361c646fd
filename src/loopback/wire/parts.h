/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * parts.h -- the structs of links and NICs, for the files of this room.
 */

#ifndef LB_WIRE_PARTS_H
#define LB_WIRE_PARTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/base.h"
#include "base/list.h"
#include "base/lock.h"
#include "wire/link.h"
#include "wire/nic.h"
#include "wire/record.h"
#include "wire/segment.h"

enum {
	LB_PARTS_NUMBERS = 254, /* of processes, from 1 */
	LB_PARTS_LINKS = 1024,	/* including dead links in use */
	LB_PARTS_GUESTS = 32,	/* contacts of others, at a time */
	LB_PARTS_QUEUE = 16384, /* messages waiting for the socket */
	LB_PARTS_NAME = 32,	/* bytes of a process's name */
	LB_PARTS_USERS = 8,	/* named at a refusal */
	LB_PARTS_STAGED = 1024, /* bytes of requests, before the ring */
};

/* A descriptor watched by the link thread, and the function for its events. */
struct lb_watch {
	void (*ready)(struct lb_nic *nic, struct lb_watch *watch,
		      uint32_t events);
	int fd; /* -1: no descriptor */
};

enum lb_stage {
	LB_STAGE_NONE,	 /* nothing is under way */
	LB_STAGE_HELLO,	 /* theirs is to come */
	LB_STAGE_ANSWER, /* theirs is to come: ours was the HELLO */
	LB_STAGE_READY,	 /* theirs is to come: ours was the ANSWER */
};

/* An unfinished handshake. Private to the link thread. */
struct lb_contact {
	struct lb_watch socket;
	int pidfd; /* -1: no descriptor */
	enum lb_stage stage;
	uint64_t deadline; /* lb_clock_real_now() */
	struct lb_link *link;
	struct lb_segment *mine;
	const struct lb_segment *theirs;
	uint64_t cookie; /* theirs */
	pid_t pid;
};

/* A message waiting for the socket. */
struct lb_letter {
	struct lb_list node;
	size_t size;
	uint8_t bytes[]; /* with the leading byte of the kind */
};

/* The size of a request in the ring, and of its largest answer, in units. */
struct lb_taken {
	uint16_t size;
	uint16_t answer;
};

/*
 * The knowledge of the link thread about a link, beside the words of the link.
 * A link is awake while its `sleep` is even: then no bell is rung, because a
 * thread looks.
 */
struct lb_awake {
	bool is_rung;	     /* a bell was heard, and is to be followed */
	bool was_asleep;     /* before that bell */
	uint64_t finds_then; /* at the last tick */
	uint32_t idle;	     /* ticks without a find */
	uint32_t bells;	     /* heard since the program was last trusted */
	uint32_t distrust;   /* so many bells before the next trust */
};

/*
 * A link. The memory is never freed, so any thread may take the locks; a dead
 * link without references is used for the next link.
 */
struct lb_link {
	/* both locks to write, either to read; any thread reads the state */
	LB_ALIGNED _Atomic uint32_t state; /* enum lb_link_state */
	_Atomic uint32_t refs;
	struct lb_nic *nic; /* constant */
	unsigned index;	    /* in nic->links; constant */
	unsigned number;    /* constant while there is a reference */
	uint64_t cookie;
	pid_t pid;	  /* from the kernel; 0: of another namespace */
	bool is_reported; /* report.c */
	/* the program named the process; others were only found by meet.c */
	_Atomic bool is_named;
	struct lb_segment *mine;	 /* NULL: not up */
	const struct lb_segment *theirs; /* the same */
	struct lb_watch socket;
	struct lb_watch pidfd;

	/* under in */
	LB_ALIGNED struct lb_lock in;
	uint64_t req_head, req_tail_seen; /* of their requests */
	uint64_t ans_head, ans_tail_seen; /* of their answers */
	uint64_t behind; /* a req_head of the peer; covered by the answers
			  * before */
	bool is_behind;	 /* `behind`, up to ans_tail_seen, is still to be
			  * covered */
	bool is_held;	 /* an acknowledgement, until the round ends */
	struct lb_record held;
	uint32_t sleep;
	uint32_t rung_want; /* the last rung value of the peer's want */
	const char *wrong;  /* the fault: nothing more is taken; or NULL */
	/* by fault rules: nothing is taken before; 0: no stall is under way */
	uint64_t stalled_until;
	bool was_stalled[2]; /* by the next request, by the next answer */
	bool is_forced;	     /* all is taken nevertheless */
	uint64_t finds;	     /* successful looks of the program */
	struct lb_link_stats in_stats;

	/* under out */
	LB_ALIGNED struct lb_lock out;
	uint64_t req_tail, covered;
	uint64_t req_shown; /* the published tail; staged bytes follow */
	uint64_t ans_tail, ans_head_seen; /* of our answers */
	uint64_t owed;	 /* the largest answers to uncovered requests */
	uint32_t want;	 /* odd: some wait */
	uint32_t rung;	 /* the last rung value of the peer's sleep */
	bool is_unheard; /* a bell could not be rung */
	bool owes_look;	 /* lb_nic_look() */
	bool is_cut;	 /* by a fault rule: nothing more is put */
	bool was_denied; /* by a fault rule: waiters had room */
	/*
	 * Times since when an unanswered request has waited, without a cover;
	 * and when the link thread promised to look. 0: neither.
	 */
	uint64_t stuck_since, loses_at;
	struct lb_list waiting; /* of struct lb_waiter */
	struct lb_list told;	/* waiters being told */
	struct lb_list letters; /* of struct lb_letter */
	unsigned nletters;
	struct lb_link_stats out_stats;
	/* sizes of uncovered requests, by start: in the ring the lines would
	 * have to come back from the processor of the peer */
	struct lb_taken taken[LB_SEGMENT_RING / LB_RECORD_UNIT];
	LB_ALIGNED uint8_t staged[LB_PARTS_STAGED];

	/* the link thread's */
	LB_ALIGNED struct lb_contact contact;
	struct lb_awake awake;
	uint64_t next_try; /* not before */
	uint64_t backoff;
};

/* Places for a test to stop a process: after each published word. */
enum lb_point {
	LB_POINT_RECORD, /* in the ring, and not published */
	LB_POINT_REQ_TAIL,
	LB_POINT_ANS_TAIL,
	LB_POINT_REQ_HEAD,
	LB_POINT_ANS_HEAD,
	LB_POINT_WANT,
	LB_POINT_SLEEP,
	LB_POINT_BELL,
	LB_POINTS,
};

struct lb_nic {
	const struct lb_nic_ops *ops;
	struct lb_nic_config config;
	unsigned number;
	uint64_t cookie;   /* 0: not drawn */
	uint64_t patience; /* of unanswered requests, ns; constant */
	/* a test's, set before the first link */
	void (*at)(enum lb_point point, struct lb_link *link);

	/* a leaf; the list of links only grows */
	pthread_mutex_t lock;
	_Atomic(struct lb_link *) links[LB_PARTS_LINKS];
	_Atomic unsigned nlinks;
	/* a bit for each link of which `sleep` is even; a hint */
	_Atomic uint64_t awake[LB_PARTS_LINKS / 64];
	struct lb_link *current[LB_PARTS_NUMBERS + 1]; /* by number; a ref */
	uint64_t nobody_until[LB_PARTS_NUMBERS + 1]; /* current is dead till */
	bool is_threaded;
	bool is_stopping;
	pthread_t thread;   /* if is_threaded */
	pthread_cond_t met; /* a link is not in contact any more */
	uint64_t groups;    /* value of lb_segment.groups of each link */
	int groups_fd;	    /* holds the name of lb_meet_all(); -1: not held */
	_Atomic bool has_met;

	int nameless; /* why there is no listener, until printed; or 0 */
	/* of the program's threads; some may be lost */
	LB_ALIGNED _Atomic uint64_t looks;
	_Atomic uint64_t arms;

	LB_ALIGNED struct lb_watch listener;
	struct lb_watch wake; /* an eventfd */
	int epoll;	      /* -1: no descriptor */

	/* the link thread's */
	bool has_lost_descriptors; /* the program closed them */
	uint64_t accept_at; /* the listener is not watched before; 0: watched */
	bool is_said[LB_PARTS_NUMBERS + 1]; /* for numbers without a process */
	unsigned nusers_said; /* of whom a process came, and was refused */
	uint32_t users_said[LB_PARTS_USERS];
	struct lb_contact guests[LB_PARTS_GUESTS];
};

static inline void lb_parts_at(struct lb_link *link, enum lb_point point)
{
	if (!lb_likely(!link->nic->at))
		link->nic->at(point, link);
}

/*
 * Orders a store before a load: of two threads that store, fence, and load, one
 * thread sees the store of the other.
 */
static inline void lb_parts_fence(void)
{
#ifdef __SANITIZE_THREAD__
	_Atomic int orders_only = 0;

	/* seq_cst: stands for the fence below, unseen by the sanitizer */
	atomic_fetch_add_explicit(&orders_only, 1, memory_order_seq_cst);
#else
	/* seq_cst [WIRE-3] [WIRE-4]: pairs with the fence of the other side */
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

static inline enum lb_link_state lb_parts_state(const struct lb_link *link)
{
	/* acquire: pairs with the release in set_state() */
	return (enum lb_link_state)atomic_load_explicit(&link->state,
							memory_order_acquire);
}

/* The abstract name of a process. */
static inline void lb_parts_name(char name[LB_PARTS_NAME], unsigned number)
{
	snprintf(name, LB_PARTS_NAME, "rpma-loopback.%u", number);
}

/* --- link.c, put.c, drain.c, mail.c: for each other */

/* Notes whether `sleep` is even. */
void lb_link_set_awake(struct lb_link *link, bool is_awake);
/* Notes a wrong record or word, so that nothing more is taken; under in. */
void lb_link_spoil(struct lb_link *link, const char *what);
/*
 * Rings the peer. Either lock is held, so that the socket stays open. Returns
 * true if the bell was heard, or is not needed.
 */
bool lb_link_ring(struct lb_link *link);
/* Notes an owed bell, which the link thread repeats; under out. */
void lb_link_ring_later(struct lb_link *link);
/* Rings a peer that sleeps, after a tail was published; under out. */
void lb_link_ring_sleeper(struct lb_link *link);
/* Publishes `want`; under out. */
void lb_link_set_want(struct lb_link *link, uint32_t want);
/*
 * Asks for another bell: a bell for the present value may have come too early,
 * for a head covered before some had to wait. [WIRE-4]
 */
void lb_link_renew_want(struct lb_link *link);
/* Puts the held acknowledgement; under in. */
void lb_link_put_held(struct lb_link *link);
/*
 * Covers requests up to `behind`: the requests were executed, and their answers
 * taken. Returns NULL, or the fault.
 */
const char *lb_link_cover(struct lb_link *link, struct lb_run *run);
/* Calls lb_nic_ops.room once for each waiter. No lock held but in. */
void lb_link_tell(struct lb_link *link, struct lb_run *run);
/* Drains everything present at the beginning; under in. Returns true if there
 * was a record. */
bool lb_link_drain_all(struct lb_link *link, struct lb_run *run);

/* --- and for the link thread */

/* Raises a link: the link takes the results of the handshake. */
void lb_link_rise(struct lb_link *link, const struct lb_contact *contact,
		  struct lb_run *run);
/*
 * Ends a link. Everything published by the peer is taken before, unless a
 * record was wrong; waiters are told.
 */
void lb_link_die(struct lb_link *link, struct lb_run *run);
/* Drops descriptors closed by the program. */
void lb_link_lose_descriptors(struct lb_link *link);
/* Ends a link in a child, whatever threads of the parent were doing with the
 * link. Waiters are on no list then, and are made anew. */
void lb_link_abandon(struct lb_link *link);
/* Sets lb_segment.groups, if the link is up. */
void lb_link_set_groups(struct lb_link *link, uint64_t groups);
/* Resets a link to the state before contact, without references. */
void lb_link_reset(struct lb_link *link, unsigned number);
/*
 * Takes up to 32 records or 32 KiB of each ring, unless another thread drains:
 * for a looking thread of the program. Returns true if there was a record.
 */
bool lb_link_drain(struct lb_link *link, struct lb_run *run);
/* Drains in the link thread. Returns true if there was a record. */
bool lb_link_take(struct lb_link *link, struct lb_run *run);
/*
 * Makes sleep odd, and takes everything before. Returns true if there was a
 * record.
 */
bool lb_link_arm(struct lb_link *link, struct lb_run *run);
/* Make sleep even: the link thread is awake. */
void lb_link_wake(struct lb_link *link);
/* How often a look of the program has taken something. */
uint64_t lb_link_finds(struct lb_link *link);
/* Fences, and takes everything before. */
void lb_link_look(struct lb_link *link, struct lb_run *run);
/*
 * Tells waiters at the end of their patience, if waiting in vain. Returns the
 * latest time of the next call.
 */
uint64_t lb_link_lose(struct lb_link *link, uint64_t now, struct lb_run *run);
/* Sends waiting messages and bells; returns false if the socket is full. */
bool lb_link_flush(struct lb_link *link);
/* A bell, or a message, was read from the socket. */
void lb_link_heard(struct lb_link *link, bool is_bell);
/* Returns true if a record was wrong, or the link is cut. */
bool lb_link_is_wrong(struct lb_link *link);
/*
 * Ends a stall that is over by now, by a look of the link thread; returns the
 * time of the end, or UINT64_MAX.
 */
uint64_t lb_link_resume(struct lb_link *link, uint64_t now);

#endif /* LB_WIRE_PARTS_H */
