/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * server ADDRESS PORT FILE: a replica. Has no end but a signal, SIGKILL or the
 * loss of power: whatever stops a replica, the next start goes on from the
 * file.
 */

#include "../common/exclusive.h"
#include "../common/must.h"
#include "../common/peer.h"
#include "../common/persistent.h"
#include "format.h"

static struct log_head *head; /* the file */
static struct log_answer answer;
static struct exclusive writer;

static void store(uint64_t *word, uint64_t value)
{
	MUST(persistent_store(word, value));
}

static void open_file(const char *name)
{
	head = persistent_map(name, LOG_FILE);
	if (head == NULL)
		exit(1);
	if (head->magic == 0)
		store(&head->magic, LOG_MAGIC);
	if (head->magic == LOG_MAGIC)
		return;
	fprintf(stderr, "%s: no file of a replica: name a new file\n", name);
	exit(1);
}

/* Registers all but the head, and says in the answer what a writer needs. */
static void open_region(struct rpma_peer *peer)
{
	struct rpma_mr_local *mr;

	MUST(rpma_mr_reg(peer, (char *)head + LOG_PAGE, LOG_REGION,
			 RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_WRITE_DST |
				 RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT,
			 &mr));
	MUST(handshake_describe(mr, &answer.region));
	answer.magic = LOG_MAGIC;
}

static void answer_to(struct rpma_rt_conn *conn, bool is_accepted)
{
	struct rpma_conn_private_data pdata = {&answer, sizeof(answer)};

	answer.identity = head->identity;
	answer.promise = head->promise;
	memcpy(&answer.tail, (char *)head + LOG_PAGE + LOG_TAIL,
	       sizeof(answer.tail));
	if (!is_accepted || rpma_rt_conn_accept(conn, &pdata))
		rpma_rt_conn_reject(conn, &pdata);
}

/* Accepts the next writer if nothing of an earlier writer arrives any more. */
static void accept_next(void)
{
	struct rpma_rt_conn *conn = exclusive_take(&writer);

	if (conn == NULL)
		return;
	answer_to(conn, true);
	printf("writer of term %u, log of %u bytes\n",
	       (unsigned)log_term(answer.promise),
	       (unsigned)log_low(answer.tail));
}

static void on_request(struct rpma_rt_conn *conn)
{
	struct log_request request;

	if (!handshake_read(conn, LOG_MAGIC, &request, sizeof(request)) ||
	    (head->identity != 0 && head->identity != request.identity) ||
	    (request.promise != head->promise &&
	     log_term(request.promise) <= log_term(head->promise))) {
		answer_to(conn, false);
		return;
	}
	store(&head->identity, request.identity);
	store(&head->promise, request.promise);
	conn = exclusive_admit(&writer, conn);
	if (conn != NULL)
		answer_to(conn, false);
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
		if (event == RPMA_RT_EVENT_CLOSED) {
			exclusive_closed(&writer,
					 rpma_rt_completion_conn(&item));
			accept_next();
		}
		if (event == RPMA_RT_EVENT_LISTENER_CLOSED)
			break;
	}
	return 1;
}
