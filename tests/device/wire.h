/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Two RC or UC queue pairs connected by modify, each with its own protection
 * domain, completion channel, two CQs and one memory region, and short ways
 * to post. Destroyed after the test like everything of fixture.h.
 */

#ifndef DEVICE_WIRE_H
#define DEVICE_WIRE_H

#include "fixture.h"

#define WIRE_PSN 0x123456u

struct wire_opts {
	uint32_t depth;	       /* of each queue */
	uint32_t cq_depth;     /* 0: as the queues */
	uint32_t sge;	       /* of each WR */
	uint32_t inline_size;  /* bytes */
	uint8_t rnr_retry;     /* 7: without end */
	uint8_t retry_cnt;     /* of lost packets */
	uint8_t timeout;       /* of lost packets: 4.096 us << timeout */
	uint8_t min_rnr_timer; /* encoded; 1: 10 us */
	int sig_all;
	bool is_uc;	    /* not RC */
	unsigned qp_access; /* what the QPs let the other end do */
	int mr_access;	    /* of both regions */
	/* of end b, if not its own: */
	struct ibv_comp_channel *channel;
	struct ibv_srq *srq; /* and its domain: */
	struct ibv_pd *srq_pd;
};

#define WIRE_DEFAULTS                          \
	{                                      \
		.depth = 16,                   \
		.sge = 1,                      \
		.rnr_retry = 7,                \
		.retry_cnt = 7,                \
		.timeout = 14,                 \
		.min_rnr_timer = 1,            \
		.qp_access = FX_REMOTE_ACCESS, \
		.mr_access = FX_ALL_ACCESS,    \
	}

struct end {
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel; /* of both CQs */
	struct ibv_cq *scq;
	struct ibv_cq *rcq;
	struct ibv_qp *qp;
	struct ibv_mr *mr; /* FX_BUF bytes */
	uint8_t *buf;	   /* its memory */
	struct end *peer;
	struct ibv_qp_cap cap; /* as granted */
};

struct wire {
	struct end a;
	struct end b;
};

/* One WR: from a place in the poster's region to one in its peer's. */
struct op {
	enum ibv_wr_opcode code;
	uint64_t id;
	unsigned flags;
	uint32_t at;  /* offset in own region */
	uint32_t len; /* bytes */
	uint32_t to;  /* offset in the peer's region */
	uint32_t imm; /* in host order */
	uint64_t add; /* to add, or to compare */
	uint64_t swap;
};

/* Attributes of the three steps; each returns the mask. */
int wire_to_init(const struct wire_opts *opts, struct ibv_qp_attr *attr);
int wire_to_rtr(const struct wire_opts *opts, uint32_t qpn,
		struct ibv_qp_attr *attr);
int wire_to_rts(const struct wire_opts *opts, struct ibv_qp_attr *attr);
/* Moves a QP from RESET to the state, the destination being qpn. */
void wire_move(const struct wire_opts *opts, struct ibv_qp *qp, uint32_t qpn,
	       enum ibv_qp_state state);
void wire_fail(struct ibv_qp *qp);
void wire_reset(struct ibv_qp *qp);

/*
 * An end in RESET; two ends connected. NULL: the defaults. Where there is
 * another process, it has end a of wire_new(), and end b of wire_new_ex().
 */
void wire_end(const struct wire_opts *opts, struct end *end);
struct wire *wire_new(const struct wire_opts *opts);
/* The same, and which ends are in another process if there is one. */
struct wire *wire_new_at(const struct wire_opts *opts, bool far_a, bool far_b);
/* The same, and end a has a QP that was made for these ibv_wr_* operations. */
struct wire *wire_new_ex(const struct wire_opts *opts, uint64_t send_ops,
			 struct ibv_qp_ex **ex);
/* An end connected to itself, with all its completions in the CQ. */
void wire_self(struct end *end, struct ibv_cq *cq);

/* Fills a WR with one sge; posts one; both return what the verb returned. */
void wire_wr(const struct end *end, const struct op *op, struct ibv_send_wr *wr,
	     struct ibv_sge *sge);
int wire_post(const struct end *end, const struct op *op);
int wire_recv(const struct end *end, uint64_t id, uint32_t at, uint32_t len);
/* Signaled SEND of 8 bytes from offset 0, posted. */
int wire_send(const struct end *end, uint64_t id);
int wire_srq_recv(struct ibv_srq *srq, const struct ibv_mr *mr, uint64_t id);
/* A message each way, to show that the connection works. */
void wire_check(struct wire *w);

#endif
