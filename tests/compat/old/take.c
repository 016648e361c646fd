/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Waiting for completions and taking them; see take.h. */

#include "take.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if RPMA_OLD <= 11

#define GARBAGE 0xa5

/* A caller's struct, and what else the caller has. */
struct guarded {
	struct rpma_completion cmpl;
	unsigned char behind[32];
};

static_assert(sizeof(void *) != 8 || sizeof(struct rpma_completion) ==
					     (RPMA_OLD <= 9 ? 24 : 32),
	      "as the release had it");

static void begin(struct guarded *guarded)
{
	memset(guarded, GARBAGE, sizeof(*guarded));
}

static int finish(const struct guarded *guarded, int ret, struct done *done)
{
	const struct rpma_completion *cmpl = &guarded->cmpl;
	size_t i;

	for (i = 0; i < sizeof(guarded->behind); i++) {
		if (guarded->behind[i] != GARBAGE) {
			printf("byte %zu behind the struct is written\n", i);
			exit(1);
		}
	}
	if (ret)
		return ret;
	memset(done, 0, sizeof(*done));
	done->context = cmpl->op_context;
	done->status = cmpl->op_status;
	if (done->status != IBV_WC_SUCCESS)
		return 0;
	done->op = (enum done_op)cmpl->op;
	done->byte_len = cmpl->byte_len;
#if RPMA_OLD >= 10
	done->has_imm = cmpl->flags & IBV_WC_WITH_IMM;
	done->imm = done->has_imm ? cmpl->imm : 0;
#endif
	return 0;
}
#endif

#if RPMA_OLD == 8
static int candidate_wait(struct rpma_conn *conn)
{
	return rpma_conn_prepare_completions(conn);
}

static int candidate_get(struct rpma_conn *conn, struct done *done)
{
	struct guarded guarded;

	begin(&guarded);
	return finish(&guarded, rpma_conn_next_completion(conn, &guarded.cmpl),
		      done);
}
#endif

#if RPMA_OLD == 9 || RPMA_OLD == 10
static int conn_get(struct rpma_conn *conn, struct done *done)
{
	struct guarded guarded;

	begin(&guarded);
	return finish(&guarded, rpma_conn_completion_get(conn, &guarded.cmpl),
		      done);
}
#endif

#if RPMA_OLD >= 10
static struct rpma_cq *cq_of(const struct rpma_conn *conn)
{
	struct rpma_cq *cq = NULL;

	if (rpma_conn_get_cq(conn, &cq))
		abort();
	return cq;
}

static int cq_fd(const struct rpma_conn *conn, int *fd)
{
	return rpma_cq_get_fd(cq_of(conn), fd);
}

static int cq_wait(struct rpma_conn *conn)
{
	return rpma_cq_wait(cq_of(conn));
}
#endif

#if RPMA_OLD == 10 || RPMA_OLD == 11
static int cq_get(struct rpma_conn *conn, struct done *done)
{
	struct guarded guarded;

	begin(&guarded);
	return finish(&guarded,
		      rpma_cq_get_completion(cq_of(conn), &guarded.cmpl), done);
}
#endif

#if RPMA_OLD >= 11
static enum done_op op_from_opcode(enum ibv_wc_opcode opcode)
{
	/*
	 * The numbers of IBV_WC_FLUSH and IBV_WC_ATOMIC_WRITE: struct ibv_wc
	 * of a device that does these itself has them.
	 */
	if ((int)opcode == 8)
		return DONE_READ;
	if ((int)opcode == 9)
		return DONE_WRITE;
	switch (opcode) {
	case IBV_WC_RDMA_READ:
		return DONE_READ;
	case IBV_WC_RDMA_WRITE:
		return DONE_WRITE;
	case IBV_WC_SEND:
		return DONE_SEND;
	case IBV_WC_RECV:
		return DONE_RECV;
	case IBV_WC_RECV_RDMA_WITH_IMM:
		return DONE_RECV_RDMA_WITH_IMM;
	default:
		printf("opcode %d\n", (int)opcode);
		exit(1);
	}
}

static int wc_get(struct rpma_conn *conn, struct done *done)
{
	struct ibv_wc wc;
	int ret = rpma_cq_get_wc(cq_of(conn), 1, &wc, NULL);

	if (ret)
		return ret;
	memset(done, 0, sizeof(*done));
	done->context = (void *)(uintptr_t)wc.wr_id;
	done->status = wc.status;
	if (done->status != IBV_WC_SUCCESS)
		return 0;
	done->op = op_from_opcode(wc.opcode);
	done->byte_len = wc.byte_len;
	done->has_imm = wc.wc_flags & IBV_WC_WITH_IMM;
	done->imm = done->has_imm ? ntohl(wc.imm_data) : 0;
	return 0;
}
#endif

const struct way ways[] = {
#if RPMA_OLD == 8
	{"rpma_conn_next_completion", rpma_conn_get_completion_fd,
	 candidate_wait, candidate_get},
#endif
#if RPMA_OLD == 9 || RPMA_OLD == 10
	{"rpma_conn_completion_get", rpma_conn_get_completion_fd,
	 rpma_conn_completion_wait, conn_get},
#endif
#if RPMA_OLD == 10 || RPMA_OLD == 11
	{"rpma_cq_get_completion", cq_fd, cq_wait, cq_get},
#endif
#if RPMA_OLD >= 11
	{"rpma_cq_get_wc", cq_fd, cq_wait, wc_get},
#endif
	{0},
};
