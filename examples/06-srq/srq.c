/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * srq ADDRESS: a server with two clients, and a shared receive queue for both.
 * A message takes the next receive; the completion goes to the CQ of the shared
 * receive queue, and names the connection of the message.
 */

#include "../common/ends.h"

#define CLIENTS	 2
#define MESSAGES 2 /* per client */
#define SIZE	 64
#define OUT	 2048 /* in the page: the clients send from here */

static int post_receive(struct ends *ends, struct rpma_srq *srq, size_t slot)
{
	/* the completion returns the context, the address of the message */
	return TRY(rpma_srq_recv(srq, ends->mr, slot * SIZE, SIZE,
				 ends->page + slot * SIZE));
}

static int say(struct ends *ends, struct rpma_conn *client, int number)
{
	struct rpma_cq *cq;
	struct ibv_wc wc;

	snprintf(ends->page + OUT, SIZE, "hello, I am client %d", number);
	return TRY(rpma_conn_get_cq(client, &cq)) ||
	       TRY(rpma_send(client, ends->mr, OUT, SIZE,
			     RPMA_F_COMPLETION_ALWAYS, NULL)) ||
	       wait_wc(cq, &wc);
}

/* Returns the connection of the queue pair. */
static int find(const struct link *links, uint32_t qp_num)
{
	uint32_t its;

	for (int i = 0; i < CLIENTS; i++)
		if (!rpma_conn_get_qp_num(links[i].server, &its) &&
		    its == qp_num)
			return i;
	return -1;
}

static int hear(const struct link *links, struct rpma_cq *rcq)
{
	struct ibv_wc wc;

	if (wait_wc(rcq, &wc))
		return 1;
	printf("server: on connection %d: %s\n", find(links, wc.qp_num),
	       (const char *)(uintptr_t)wc.wr_id);
	return 0;
}

static int talk(struct ends *ends, struct link *links, struct rpma_srq *srq)
{
	struct rpma_cq *rcq;

	if (TRY(rpma_srq_get_rcq(srq, &rcq)))
		return 1;
	for (size_t slot = 0; slot < (size_t)CLIENTS * MESSAGES; slot++)
		if (post_receive(ends, srq, slot))
			return 1;
	for (int i = 0; i < CLIENTS * MESSAGES; i++)
		if (say(ends, links[i % CLIENTS].client, i % CLIENTS) ||
		    hear(links, rcq))
			return 1;
	return 0;
}

static int run(struct ends *ends)
{
	struct link links[CLIENTS] = {{0}};
	struct rpma_conn_cfg *cfg = NULL;
	struct rpma_srq *srq = NULL;
	int ret;

	ret = TRY(rpma_srq_new(ends->peer, NULL, &srq)) ||
	      TRY(rpma_conn_cfg_new(&cfg)) ||
	      TRY(rpma_conn_cfg_set_srq(cfg, srq));
	for (int i = 0; i < CLIENTS && !ret; i++)
		ret = ends_connect(ends, NULL, cfg, &links[i]);
	ret = ret || talk(ends, links, srq);
	for (int i = 0; i < CLIENTS; i++)
		ret = ends_part(&links[i]) || ret;
	/* after the connections that use the SRQ */
	ret = TRY(rpma_srq_delete(&srq)) || ret;
	TRY(rpma_conn_cfg_delete(&cfg));
	return ret;
}

int main(int argc, char **argv)
{
	return ends_main(argc, argv, run);
}
