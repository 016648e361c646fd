/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * failure.h -- the table of failures: the step of a
 * connection's life and an errno give the reason of CLOSED, and the words of
 * the log. Only a failure of the peer or the network is reported as
 * UNREACHABLE, REJECTED or DISCONNECTED; every other failure is FAILED.
 * No state; any thread. rpma_rt_conn_new(3) shows the table to programs.
 */

#ifndef RT_BASE_FAILURE_H
#define RT_BASE_FAILURE_H

#include <stdint.h>

#include "rpma_rt.h"

/* The step in which something fails: a call, or an event that reports the end
 * of work that a call began. */
enum __attribute__((packed)) rt_step {
	RT_STEP_NONE,	   /* no step failed */
	RT_STEP_BEGIN,	   /* create id, resolve address: the calls */
	RT_STEP_ADDR,	   /* ADDR_ERROR */
	RT_STEP_ROUTE,	   /* resolve route: the call */
	RT_STEP_PATH,	   /* ROUTE_ERROR */
	RT_STEP_QP,	   /* create queue pair */
	RT_STEP_CONNECT,   /* connect: the call */
	RT_STEP_ANSWER,	   /* UNREACHABLE: no answer of the peer */
	RT_STEP_ESTABLISH, /* CONNECT_ERROR: modify queue pair */
	RT_STEP_ACCEPT,	   /* accept, which modifies the queue pair */
	RT_STEP_POST,	   /* post a send or a receive */
	RT_STEP_EVENTS,	   /* read CM events */
	RT_STEPS
};

/* An unknown errno: librdmacm reports a failed call of its own so. */
#define RT_ERRNO_UNKNOWN (-1)

/* Returns the errno behind an error of librpma, which leaves errno behind
 * RPMA_E_PROVIDER; 0: there is no errno. Called right after the call. */
int rt_failure_errno(int ret);

/* Returns the errno behind the answer of a verb: the errno itself, the negated
 * errno, as some providers answer, or -1 after setting errno. Called right
 * after the verb. */
int rt_failure_answer(int answer);

/* Returns the reason of CLOSED when the step fails with the errno err; 0: the
 * event has no errno. */
enum rpma_rt_reason rt_failure_reason(enum rt_step step, int err);

#define RT_FAILURE_WORDS 320 /* bytes that hold the words of any failure */
/* Writes the failed step, the errno and a remedy, as the end of a
 * message: "making the queue pair failed: Cannot allocate memory: ...".
 * Returns buf. */
const char *rt_failure_2str(enum rt_step step, int err,
			    char buf[static RT_FAILURE_WORDS]);

#endif /* RT_BASE_FAILURE_H */
