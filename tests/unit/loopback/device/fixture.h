/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * fixture.h -- two connected QPs of one context for the tests of the loopback
 * device, with one CQ and one channel each.
 */

#ifndef LOOPBACK_FIXTURE_H
#define LOOPBACK_FIXTURE_H

#include <infiniband/verbs.h>

#include "../../../cases.h"
#include "rpma_loopback.h"

#define BUF_SIZE 65536
#define DEPTH	 16
#define QKEY	 0x1234u

struct end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_srq *srq; /* NULL: none */
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *buf;
};

struct pair {
	struct end a, b;
};

struct pair *pair_new(int with_srq);
struct pair *pair_new_uc(void); /* unreliable connections */
/* Makes a pair whose end a has an extended queue pair, for the operations. */
struct pair *pair_new_ex(uint64_t ops);
void pair_delete(struct pair *pair);

void end_init(struct end *end, int with_srq);
void end_fini(struct end *end);
struct ibv_qp *end_qp(const struct end *end);
struct ibv_qp *end_qp_ex(const struct end *end, enum ibv_qp_type type,
			 uint64_t ops);
int end_move(const struct end *end, const struct end *peer,
	     enum ibv_qp_state to);
int end_send(const struct end *end, uint64_t wr_id, uint32_t offset,
	     uint32_t length);
int end_write(const struct end *end, const struct end *peer, uint64_t wr_id,
	      uint32_t offset, uint32_t length);
int end_recv(const struct end *end, uint64_t wr_id, uint32_t offset,
	     uint32_t length);
/* Its queue pair is a new one of that type, in RESET and without an SRQ. */
void end_swap_qp(struct end *end, enum ibv_qp_type type);
/* From RESET to RTS: of UC, connected to the number qpn; of UD if that is 0. */
void end_to_rts(const struct end *end, uint32_t qpn);
/* The next completion; waits for it. */
struct ibv_wc end_wait(const struct end *end);
void end_expect(const struct end *end, uint64_t wr_id,
		enum ibv_wc_status status);
/* Returns true if the channel is readable now. */
int end_has_event(const struct end *end);
void end_take_event(const struct end *end);

/* The scheduler tries all orders in the inline mode, */
void search_inline(struct rpma_loopback_sched *sched);
/* and some of those that slices of the progress thread make. */
void search_thread(struct rpma_loopback_sched *sched);

/* setup and teardown of every test: no rule, hook or mode is left */
int fresh(void **state);
#define FRESH(name) TEST_WITH(name, fresh, fresh)

#endif /* LOOPBACK_FIXTURE_H */
