/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * verbs [reused]: a program of bare verbs for ThreadSanitizer. The main thread
 * writes a number and sends it; another thread receives the number and writes
 * into the buffer before it posts the receive again. Each buffer belongs to the
 * thread that has its completion, so the program has no race. With "reused" the
 * main thread writes into its buffer without waiting for the completion.
 */

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#define ROUNDS 100
#define WORDS  64 /* of a message: longer than what is copied in one access */

#define MUST(condition)                                            \
	do {                                                       \
		if (!(condition)) {                                \
			fprintf(stderr, "line %d: %s\n", __LINE__, \
				#condition);                       \
			exit(1);                                   \
		}                                                  \
	} while (0)

struct end {
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	uint64_t words[WORDS];
};

static struct rdma_cm_id *listener;
static struct end sender, receiver;
static _Atomic uint64_t received;

/* Makes a listener, or an end that connects to the port of the listener. */
static struct rdma_cm_id *make(const char *port, int flags)
{
	struct rdma_addrinfo hints = {.ai_flags = flags,
				      .ai_port_space = RDMA_PS_TCP};
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 4,
			.max_recv_wr = 4,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.sq_sig_all = 1,
	};
	struct rdma_addrinfo *found;
	struct rdma_cm_id *id;

	MUST(rdma_getaddrinfo("127.0.0.1", port, &hints, &found) == 0);
	MUST(rdma_create_ep(&id, found, NULL, &attr) == 0);
	rdma_freeaddrinfo(found);
	return id;
}

/* Empty polls let the other thread run. */
static void complete(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
		sched_yield();
	MUST(n == 1 && wc.status == IBV_WC_SUCCESS);
}

static void register_words(struct end *end)
{
	end->mr = rdma_reg_msgs(end->id, end->words, sizeof(end->words));
	MUST(end->mr != NULL);
}

static void post_recv(void)
{
	MUST(rdma_post_recv(receiver.id, NULL, receiver.words,
			    sizeof(receiver.words), receiver.mr) == 0);
}

static void *receive(void *unused)
{
	uint64_t i;

	(void)unused;
	MUST(rdma_get_request(listener, &receiver.id) == 0);
	register_words(&receiver);
	post_recv();
	MUST(rdma_accept(receiver.id, NULL) == 0);
	for (i = 0; i < ROUNDS; i++) {
		complete(receiver.id->recv_cq);
		MUST(receiver.words[0] == i);
		receiver.words[0] = 0;
		/* relaxed: orders nothing */
		atomic_store_explicit(&received, i + 1, memory_order_relaxed);
		if (i < ROUNDS - 1)
			post_recv();
	}
	return NULL;
}

static void end_close(struct end *end)
{
	rdma_disconnect(end->id);
	MUST(rdma_dereg_mr(end->mr) == 0);
	rdma_destroy_ep(end->id);
}

int main(int argc, char **argv)
{
	int is_reused = argc > 1 && strcmp(argv[1], "reused") == 0;
	char port[8];
	pthread_t thread;
	uint64_t i;

	listener = make("0", RAI_PASSIVE);
	MUST(rdma_listen(listener, 1) == 0);
	snprintf(port, sizeof(port), "%u", ntohs(rdma_get_src_port(listener)));
	sender.id = make(port, 0);
	register_words(&sender);
	MUST(pthread_create(&thread, NULL, receive, NULL) == 0);
	MUST(rdma_connect(sender.id, NULL) == 0);
	for (i = 0; i < ROUNDS; i++) {
		sender.words[0] = i;
		MUST(rdma_post_send(sender.id, NULL, sender.words,
				    sizeof(sender.words), sender.mr, 0) == 0);
		/* relaxed: the device has read the words, and nothing orders
		 * that before the write */
		while (is_reused &&
		       atomic_load_explicit(&received, memory_order_relaxed) <=
			       i)
			sched_yield();
		if (is_reused)
			sender.words[1] = i;
		complete(sender.id->send_cq);
	}
	pthread_join(thread, NULL);
	end_close(&sender);
	end_close(&receiver);
	rdma_destroy_ep(listener);
	puts("done");
	return 0;
}
