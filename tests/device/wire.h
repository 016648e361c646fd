/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Two RC or UC queue pairs connected by modify, each with a separate protection
 * domain, completion channel, two CQs and a memory region, and short functions
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
	unsigned qp_access; /* rights of the other end at the QPs */
	int mr_access;	    /* of both regions */
	/* of end b, if given: */
	struct ibv_comp_channel *channel;
	struct ibv_srq *srq; /* and the domain of the SRQ: */
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
	uint8_t *buf;	   /* the memory of the end */
	struct end *peer;
	struct ibv_qp_cap cap; /* as granted */
};

struct wire {
	struct end a;
	struct end b;
};

/*
 * A WR: from a place in the region of the poster to a place in the region of
 * its peer.
 */
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
 * wire_end() makes an end in RESET, wire_new() two connected ends. NULL: the
 * defaults. If there is another process, the other process has end a of
 * wire_new(), and end b of wire_new_ex().
 */
void wire_end(const struct wire_opts *opts, struct end *end);
struct wire *wire_new(const struct wire_opts *opts);
/*
 * Makes two connected ends; far_a and far_b: in another process, if there is
 * one.
 */
struct wire *wire_new_at(const struct wire_opts *opts, bool far_a, bool far_b);
/* Makes two connected ends; end a has a QP for these ibv_wr_* operations. */
struct wire *wire_new_ex(const struct wire_opts *opts, uint64_t send_ops,
			 struct ibv_qp_ex **ex);
/* Makes an end connected to itself, with all completions in the CQ. */
void wire_self(struct end *end, struct ibv_cq *cq);

/*
 * wire_wr() fills in a WR with a single sge; wire_post() posts a WR; both
 * return the result of the verb.
 */
void wire_wr(const struct end *end, const struct op *op, struct ibv_send_wr *wr,
	     struct ibv_sge *sge);
int wire_post(const struct end *end, const struct op *op);
int wire_recv(const struct end *end, uint64_t id, uint32_t at, uint32_t len);
/* Signaled SEND of 8 bytes from offset 0, posted. */
int wire_send(const struct end *end, uint64_t id);
int wire_srq_recv(struct ibv_srq *srq, const struct ibv_mr *mr, uint64_t id);
/* Sends a message each way, to show that the connection works. */
void wire_check(struct wire *w);

#endif
