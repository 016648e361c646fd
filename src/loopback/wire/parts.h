/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * parts.h -- what links and NICs are made of, for the files of this room.
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
	LB_PARTS_LINKS = 1024,	/* with the dead that are in use */
	LB_PARTS_GUESTS = 32,	/* contacts of others, at a time */
	LB_PARTS_QUEUE = 16384, /* messages that wait for the socket */
	LB_PARTS_NAME = 32,	/* bytes of a process's name */
	LB_PARTS_USERS = 8,	/* that are named when refused */
	LB_PARTS_STAGED = 1024, /* bytes of requests, before the ring */
};

/* A descriptor that the link thread watches, and what it does then. */
struct lb_watch {
	void (*ready)(struct lb_nic *nic, struct lb_watch *watch,
		      uint32_t events);
	int fd; /* -1: none */
};

enum lb_stage {
	LB_STAGE_NONE,	 /* nothing is under way */
	LB_STAGE_HELLO,	 /* theirs is to come */
	LB_STAGE_ANSWER, /* theirs is to come: ours was the HELLO */
	LB_STAGE_READY,	 /* theirs is to come: ours was the ANSWER */
};

/* A handshake that is under way. The link thread's. */
struct lb_contact {
	struct lb_watch socket;
	int pidfd; /* -1: none */
	enum lb_stage stage;
	uint64_t deadline; /* lb_clock_real_now() */
	struct lb_link *link;
	struct lb_segment *mine;
	const struct lb_segment *theirs;
	uint64_t cookie; /* theirs */
	pid_t pid;
};

/* A message that waits for the socket. */
struct lb_letter {
	struct lb_list node;
	size_t size;
	uint8_t bytes[]; /* with the byte that says what it is */
};

/* Of a request that was put, in units: what it takes of the ring, and what its
 * largest answer does. */
struct lb_taken {
	uint16_t size;
	uint16_t answer;
};

/*
 * What the link thread knows of a link, beside its words. A link is awake while
 * its `sleep` is even: then no bell is rung, for somebody looks.
 */
struct lb_awake {
	bool is_rung;	     /* a bell was heard, and is to be followed */
	uint64_t finds_then; /* at the last tick */
	uint32_t idle;	     /* ticks without a find */
	uint32_t bells;	     /* heard since the program was last trusted */
	uint32_t distrust;   /* so many bells before the next trust */
};

/*
 * A link. Its memory is never given back, so anybody may take its locks; a link
 * that is dead and without references is the next one that is made.
 */
struct lb_link {
	/* both locks to write, one to read; the state by anybody */
	LB_ALIGNED _Atomic uint32_t state; /* enum lb_link_state */
	_Atomic uint32_t refs;
	struct lb_nic *nic; /* constant */
	unsigned index;	    /* in nic->links; constant */
	unsigned number;    /* constant while there is a reference */
	uint64_t cookie;
	pid_t pid;	  /* as the kernel tells it; 0: of another space */
	bool is_reported; /* report.c */
	struct lb_segment *mine;	 /* NULL: it is not up */
	const struct lb_segment *theirs; /* the same */
	struct lb_watch socket;
	struct lb_watch pidfd;

	/* under in */
	LB_ALIGNED struct lb_lock in;
	uint64_t req_head, req_tail_seen; /* of their requests */
	uint64_t ans_head, ans_tail_seen; /* of their answers */
	uint64_t behind; /* a req_head of theirs; the answers before it */
	bool is_behind;	 /* that, up to ans_tail_seen, is still to cover */
	bool is_held;	 /* an acknowledgement, until the round ends */
	struct lb_record held;
	uint32_t sleep;
	uint32_t rung_want; /* the value of theirs that was rung for */
	const char *wrong;  /* what was: nothing more is taken; or NULL */
	/* by fault rules: nothing is taken before; 0: no stall is under way */
	uint64_t stalled_until;
	bool was_stalled[2]; /* by the next request, by the next answer */
	bool is_forced;	     /* all is taken nevertheless */
	uint64_t finds;	     /* looks of the program that took something */
	struct lb_link_stats in_stats;

	/* under out */
	LB_ALIGNED struct lb_lock out;
	uint64_t req_tail, covered;
	uint64_t req_shown; /* the tail that was published; staged is behind */
	uint64_t ans_tail, ans_head_seen; /* of our answers */
	uint64_t owed;	 /* the largest answers to what is not covered */
	uint32_t want;	 /* odd: some wait */
	uint32_t rung;	 /* the value of their sleep that was rung for */
	bool is_unheard; /* a bell could not be rung */
	bool owes_look;	 /* lb_nic_look() */
	bool is_cut;	 /* by a fault rule: nothing more is put */
	bool was_denied; /* by one: some wait who had room */
	/*
	 * Since when a request that nobody answers has waited, and nothing was
	 * covered; when the link thread promised to see to that. 0: neither.
	 */
	uint64_t stuck_since, loses_at;
	struct lb_list waiting; /* of struct lb_waiter */
	struct lb_list told;	/* those of them that are being told */
	struct lb_list letters; /* of struct lb_letter */
	unsigned nletters;
	struct lb_link_stats out_stats;
	/* of requests that are not covered, by where they begin: in the ring
	 * their lines would have to come back from the peer's processor */
	struct lb_taken taken[LB_SEGMENT_RING / LB_RECORD_UNIT];
	LB_ALIGNED uint8_t staged[LB_PARTS_STAGED];

	/* the link thread's */
	LB_ALIGNED struct lb_contact contact;
	struct lb_awake awake;
	uint64_t next_try; /* not before */
	uint64_t backoff;
};

/* Where a test may stop a process: behind each word that is published. */
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
	uint64_t patience; /* of requests that nobody answers, ns; constant */
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
	uint64_t groups;    /* what lb_segment.groups of each link is */
	int groups_fd;	    /* holds the name of lb_meet_all(); -1: none */
	_Atomic bool has_met;

	int nameless; /* why there is no listener, until that is said; or 0 */
	/* of the program's threads; some may be lost */
	LB_ALIGNED _Atomic uint64_t looks;
	_Atomic uint64_t arms;

	LB_ALIGNED struct lb_watch listener;
	struct lb_watch wake; /* an eventfd */
	int epoll;	      /* -1: none */

	/* the link thread's */
	bool has_lost_descriptors; /* the program closed them */
	uint64_t accept_at; /* the listener is not watched before; 0: it is */
	bool is_said[LB_PARTS_NUMBERS + 1]; /* that nobody has the number */
	unsigned nusers_said; /* of whom a process came, and was refused */
	uint32_t users_said[LB_PARTS_USERS];
	struct lb_contact guests[LB_PARTS_GUESTS];
};

static inline void lb_parts_at(struct lb_link *link, enum lb_point point)
{
	if (!lb_likely(!link->nic->at))
		link->nic->at(point, link);
}

/* Of two threads that store, fence, and load, one sees the other's store. */
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
	/* acquire: pairs with the release in link.c */
	return (enum lb_link_state)atomic_load_explicit(&link->state,
							memory_order_acquire);
}

/* The abstract name of a process. */
static inline void lb_parts_name(char name[LB_PARTS_NAME], unsigned number)
{
	snprintf(name, LB_PARTS_NAME, "rpma-loopback.%u", number);
}

/* --- link.c: for the link thread */

/* It is up: what the handshake found out is the link's. */
void lb_link_rise(struct lb_link *link, const struct lb_contact *contact,
		  struct lb_run *run);
/*
 * It is dead. What the peer had published is taken before, unless a record was
 * wrong; those who wait are told.
 */
void lb_link_die(struct lb_link *link, struct lb_run *run);
/* Its descriptors were closed by the program: they are not used any more. */
void lb_link_lose_descriptors(struct lb_link *link);
/* The same as lb_link_die() in a child, all locks held: what was its parent's
 * is let go. */
void lb_link_abandon(struct lb_link *link);
/* The word of that name, if it is up. */
void lb_link_set_groups(struct lb_link *link, uint64_t groups);
/* As it is before its contact; nobody has a reference. */
void lb_link_reset(struct lb_link *link, unsigned number);
/*
 * Take up to 32 records or 32 KiB of each ring, unless another thread is at it:
 * a program's thread, which looks. True if there was something.
 */
bool lb_link_drain(struct lb_link *link, struct lb_run *run);
/* The same by the link thread. True if there was something. */
bool lb_link_take(struct lb_link *link, struct lb_run *run);
/* Make sleep odd, and take all that came before. True if there was some. */
bool lb_link_arm(struct lb_link *link, struct lb_run *run);
/* Make sleep even: the link thread is awake. */
void lb_link_wake(struct lb_link *link);
/* How often a look of the program has taken something. */
uint64_t lb_link_finds(struct lb_link *link);
/* Fence, and take all that came before. */
void lb_link_look(struct lb_link *link, struct lb_run *run);
/*
 * Those whose patience is over are told, if they wait in vain. When that is to
 * be called again at the latest.
 */
uint64_t lb_link_lose(struct lb_link *link, uint64_t now, struct lb_run *run);
/* Messages that wait, and bells: false if the socket has no room for them. */
bool lb_link_flush(struct lb_link *link);
/* A bell, or a message, was read from the socket. */
void lb_link_heard(struct lb_link *link, bool is_bell);
/* Was a record wrong, or is the link cut? */
bool lb_link_is_wrong(struct lb_link *link);
/*
 * The end of a stall, once it is over by now, makes the link thread look; the
 * time when it will be, or UINT64_MAX.
 */
uint64_t lb_link_resume(struct lb_link *link, uint64_t now);

#endif /* LB_WIRE_PARTS_H */
