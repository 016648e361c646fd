/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * fixture.h -- an end of a link: a NIC with a layer above that knows the next
 * request. Requests are numbered, by their PSN; each byte of a request, and of
 * an answer, follows from its number.
 */

#ifndef WIRE_FIXTURE_H
#define WIRE_FIXTURE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "../../../cases.h"
#include "wire/hello.h"
#include "wire/link.h"
#include "wire/nic.h"
#include "wire/parts.h"

/* An end of a link. The test's thread sends requests; other threads, as the
 * link threads, take requests and answer. */
struct end {
	struct lb_nic *nic;
	struct lb_link *link; /* to the other end, with a reference */
	struct lb_waiter waiter;
	bool acknowledges; /* as the device does; else each by itself */
	uint32_t sent;	   /* requests; the number of the next */
	uint32_t ended;	   /* requests before the last answer */

	/* arrivals, under link.in */
	_Atomic uint32_t requests;
	_Atomic uint32_t answers;
	struct lb_record last[8]; /* the last records */
	/* answers deliberately not given by this end */
	_Atomic uint32_t silences;
	_Atomic uint32_t rooms;
	_Atomic uint32_t ups;
	_Atomic uint32_t deads;
	_Atomic uint32_t messages;
	_Atomic uint32_t wrongs; /* of anything: must stay 0 */
};

void end_init(struct end *end);
void end_fini(struct end *end);
/*
 * Sets the patience for unanswered requests; by default an hour. Before there
 * is a link.
 */
void end_patience(struct end *end, uint64_t ns);
/* Make contact, from a; return once both are up. */
void end_meet(struct end *a, struct end *b);

/* Returns the nth request: type and length follow from the number. */
struct lb_record end_record(uint32_t number, uint32_t seed);
/* Puts a record; waits for room. Returns false if the link is dead. */
bool end_request(struct end *end, const struct lb_record *record);
/* Tries once to put a record. */
enum lb_put_result end_try(struct end *end, const struct lb_record *record);
/* Waits until everything sent by a has come to b, with all answers. */
void end_arrive(struct end *a, struct end *b);

/* A hand-made peer, process 254: its hello, with 1 device, 42. */
struct lb_hello hand_hello(unsigned kind);
int hand_connect(unsigned number);
/* Receives within seconds; 0: the end. */
ssize_t hand_receive(int fd, struct lb_hello *answer, int *passed);

/* Wait until a count is at least n. */
void end_wait(const _Atomic uint32_t *count, uint32_t n);
uint32_t end_count(const _Atomic uint32_t *count);

/* Keeps stderr from here on; said_end() returns the text. */
void said_begin(void);
/* Waits until stderr has the words. */
void said_wait(const char *words);
const char *said_end(void);

#endif /* WIRE_FIXTURE_H */
