/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * server ADDRESS PORT FILE: a replica. Has no end but a signal, SIGKILL or the
 * loss of power: whatever stops a replica, the next start goes on from the
 * file.
 */

#include <stdlib.h>

#include <rpma_rt.h>

#include "../common/peer.h"
#include "../common/persistent.h"
#include "format.h"

/* Ends the program if a call fails that has to succeed. */
#define MUST(call) must(#call, call)

static struct log_head *head; /* the file */
static struct log_answer answer;
static struct rpma_rt_conn *writer; /* accepted, until CLOSED */
static struct rpma_rt_conn *next;   /* promised, waits for that CLOSED */

static void must(const char *what, int ret)
{
	if (ret == 0)
		return;
	fprintf(stderr, "%s: failed\n", what);
	exit(1);
}

static void store(uint64_t *word, uint64_t value)
{
	MUST(persistent_store(word, value));
}

static void open_file(const char *name)
{
	head = persistent_map(name, LOG_FILE);
	MUST(head == NULL);
	if (head->magic == 0)
		store(&head->magic, LOG_MAGIC);
	MUST(head->magic != LOG_MAGIC);
}

/* Registers all but the head, and says in the answer what a writer needs. */
static void open_region(struct rpma_peer *peer)
{
	struct rpma_mr_local *mr;
	size_t size;

	MUST(rpma_mr_reg(peer, (char *)head + LOG_PAGE, LOG_REGION,
			 RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_WRITE_DST |
				 RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT,
			 &mr));
	MUST(rpma_mr_get_descriptor_size(mr, &size) ||
	     size > sizeof(answer.region));
	answer.region_len = (uint8_t)size;
	MUST(rpma_mr_get_descriptor(mr, answer.region));
	answer.magic = LOG_MAGIC;
}

/* Returns the answer to the writer of a request. */
static struct rpma_conn_private_data answer_now(void)
{
	answer.identity = head->identity;
	answer.promise = head->promise;
	memcpy(&answer.tail, (char *)head + LOG_PAGE + LOG_TAIL,
	       sizeof(answer.tail));
	return (struct rpma_conn_private_data){&answer, sizeof(answer)};
}

static void refuse(struct rpma_rt_conn *conn)
{
	struct rpma_conn_private_data pdata = answer_now();

	rpma_rt_conn_reject(conn, &pdata);
}

/* Accepts the next writer: nothing of an earlier writer arrives any more. */
static void accept_next(void)
{
	struct rpma_conn_private_data pdata = answer_now();

	writer = next;
	next = NULL;
	if (rpma_rt_conn_accept(writer, &pdata))
		rpma_rt_conn_reject(writer, NULL);
	printf("writer of term %u, log of %u bytes\n",
	       (unsigned)log_term(answer.promise),
	       (unsigned)log_low(answer.tail));
}

static void on_request(struct rpma_rt_conn *conn)
{
	struct rpma_conn_private_data pdata = {NULL, 0};
	struct log_request request = {0};

	rpma_rt_conn_get_private_data(conn, &pdata);
	if (pdata.ptr != NULL && pdata.len >= sizeof(request))
		memcpy(&request, pdata.ptr, sizeof(request));
	if (request.magic != LOG_MAGIC ||
	    (head->identity != 0 && head->identity != request.identity) ||
	    (request.promise != head->promise &&
	     log_term(request.promise) <= log_term(head->promise))) {
		refuse(conn);
		return;
	}
	store(&head->identity, request.identity);
	store(&head->promise, request.promise);
	if (next != NULL)
		refuse(next);
	next = conn;
	if (writer != NULL)
		rpma_rt_conn_close(writer);
	else
		accept_next();
}

static void on_closed(struct rpma_rt_conn *conn)
{
	if (conn == next)
		next = NULL;
	if (conn == writer)
		writer = NULL;
	rpma_rt_conn_unref(&conn);
	if (writer == NULL && next != NULL)
		accept_next();
}

int main(int argc, char **argv)
{
	struct rpma_rt_conn_cfg cfg = RPMA_RT_CONN_CFG_INIT;
	struct rpma_rt_listener *listener;
	struct rpma_rt_completion item;
	struct rpma_rt *rt;
	unsigned event;

	if (argc != 4) {
		fprintf(stderr, "usage: %s ADDRESS PORT FILE\n", argv[0]);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	open_file(argv[3]);
	MUST(open_peer(argv[1], RPMA_UTIL_IBV_CONTEXT_LOCAL, &cfg.peer));
	open_region(cfg.peer);
	MUST(rpma_rt_new(NULL, &rt));
	MUST(rpma_rt_queue_new(rt, NULL, &cfg.queue));
	MUST(rpma_rt_listen(rt, argv[1], argv[2], &cfg, &listener));
	printf("replica %s port %s: listening\n", argv[1], argv[2]);
	while (rpma_rt_queue_wait(cfg.queue, &item, 1, -1) == 1) {
		event = rpma_rt_completion_event(&item);
		if (event == RPMA_RT_EVENT_REQUEST)
			on_request(rpma_rt_completion_conn(&item));
		if (event == RPMA_RT_EVENT_CLOSED)
			on_closed(rpma_rt_completion_conn(&item));
		if (event == RPMA_RT_EVENT_LISTENER_CLOSED)
			break;
	}
	return 1;
}
