/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Calling functions with what they must refuse. A refused call answers what it
 * should, asks nothing of verbs or rdma_cm, and leaves its out-parameters, all
 * of which lie in one place, as they were. Who was called is remembered.
 */

#ifndef SWEEP_H
#define SWEEP_H 1

#include "world.h"

#include <librpma_legacy.h>

/* Where out-parameters point. */
union out {
	unsigned char bytes[1024];
	struct ibv_context *ctx;
	struct rpma_peer *peer;
	struct rpma_peer_cfg *pcfg;
	struct rpma_mr_local *mr;
	struct rpma_mr_remote *remote;
	struct rpma_conn_cfg *conn_cfg;
	struct rpma_srq_cfg *srq_cfg;
	struct rpma_srq *srq;
	struct rpma_ep *ep;
	struct rpma_conn_req *req;
	struct rpma_conn *conn;
	struct rpma_cq *cq;
	struct rpma_channel *channel;
	struct rpma_cm_channel *cm_channel;
	struct ibv_comp_channel *ibv_channel;
	struct ibv_cq *ibv_cq;
	struct ibv_srq *ibv_srq;
	struct ibv_qp *qp;
	struct rdma_cm_id *id;
	struct rpma_send_wr send_wr;
	struct rpma_recv_wr recv_wr;
	struct rpma_send_wr *bad_send;
	struct rpma_recv_wr *bad_recv;
	struct rpma_cm_event cm_event;
	struct rpma_conn_private_data data;
	struct rpma_completion completion;
	struct ibv_wc wc[2];
	enum rpma_conn_event event;
	enum rpma_log_level level;
	void *pointer;
	size_t size;
	uint32_t u32;
	uint16_t u16;
	uint8_t u8;
	bool flag;
	int number;
};
extern union out out;

/* Before and after a call of this function. */
void sweep_begin(const char *function);
void sweep_end(const char *function, int line, int ret, int expected);
/* Fails if a function of the version script has not been called. */
void sweep_expect_all(const char *map);

/* One call that has to be refused so. */
#define BAD(expected, function, ...)                                    \
	do {                                                            \
		sweep_begin(#function);                                 \
		sweep_end(#function, __LINE__, (function)(__VA_ARGS__), \
			  expected);                                    \
	} while (0)

/*
 * NULLS(function, arguments...): with NULL in place of each argument that is a
 * pointer, one after the other, the call is E_INVAL. An argument that may be
 * NULL is written 0.
 */
#define NULLS(function, ...)                                                  \
	NULLS_PICK(__VA_ARGS__, NULLS_10, NULLS_9, NULLS_8, NULLS_7, NULLS_6, \
		   NULLS_5, NULLS_4, NULLS_3, NULLS_2, NULLS_1, unused)       \
	(function, __VA_ARGS__)
#define NULLS_PICK(a, b, c, d, e, f, g, h, i, j, name, ...) name

#define TYPE_OF(x)    __typeof__(((void)0, (x)))
#define POINTER_CLASS 5 /* as __builtin_classify_type() says it */
#define IS_POINTER(x) (__builtin_classify_type((TYPE_OF(x))0) == POINTER_CLASS)
#define Z(x)	      ((TYPE_OF(x))0)
/* clang-format off */
#define TRY(fn, x, ...) \
	do { if (IS_POINTER(x)) BAD(RPMA_E_INVAL, fn, __VA_ARGS__); } while (0)

#define NULLS_1(fn, a) TRY(fn, a, Z(a))
#define NULLS_2(fn, a, b) \
	TRY(fn, a, Z(a), b); TRY(fn, b, a, Z(b))
#define NULLS_3(fn, a, b, c) \
	TRY(fn, a, Z(a), b, c); TRY(fn, b, a, Z(b), c); \
	TRY(fn, c, a, b, Z(c))
#define NULLS_4(fn, a, b, c, d) \
	TRY(fn, a, Z(a), b, c, d); TRY(fn, b, a, Z(b), c, d); \
	TRY(fn, c, a, b, Z(c), d); TRY(fn, d, a, b, c, Z(d))
#define NULLS_5(fn, a, b, c, d, e) \
	TRY(fn, a, Z(a), b, c, d, e); TRY(fn, b, a, Z(b), c, d, e); \
	TRY(fn, c, a, b, Z(c), d, e); TRY(fn, d, a, b, c, Z(d), e); \
	TRY(fn, e, a, b, c, d, Z(e))
#define NULLS_6(fn, a, b, c, d, e, f) \
	TRY(fn, a, Z(a), b, c, d, e, f); TRY(fn, b, a, Z(b), c, d, e, f); \
	TRY(fn, c, a, b, Z(c), d, e, f); TRY(fn, d, a, b, c, Z(d), e, f); \
	TRY(fn, e, a, b, c, d, Z(e), f); TRY(fn, f, a, b, c, d, e, Z(f))
#define NULLS_7(fn, a, b, c, d, e, f, g) \
	TRY(fn, a, Z(a), b, c, d, e, f, g); \
	TRY(fn, b, a, Z(b), c, d, e, f, g); \
	TRY(fn, c, a, b, Z(c), d, e, f, g); \
	TRY(fn, d, a, b, c, Z(d), e, f, g); \
	TRY(fn, e, a, b, c, d, Z(e), f, g); \
	TRY(fn, f, a, b, c, d, e, Z(f), g); \
	TRY(fn, g, a, b, c, d, e, f, Z(g))
#define NULLS_8(fn, a, b, c, d, e, f, g, h) \
	TRY(fn, a, Z(a), b, c, d, e, f, g, h); \
	TRY(fn, b, a, Z(b), c, d, e, f, g, h); \
	TRY(fn, c, a, b, Z(c), d, e, f, g, h); \
	TRY(fn, d, a, b, c, Z(d), e, f, g, h); \
	TRY(fn, e, a, b, c, d, Z(e), f, g, h); \
	TRY(fn, f, a, b, c, d, e, Z(f), g, h); \
	TRY(fn, g, a, b, c, d, e, f, Z(g), h); \
	TRY(fn, h, a, b, c, d, e, f, g, Z(h))
#define NULLS_9(fn, a, b, c, d, e, f, g, h, i) \
	TRY(fn, a, Z(a), b, c, d, e, f, g, h, i); \
	TRY(fn, b, a, Z(b), c, d, e, f, g, h, i); \
	TRY(fn, c, a, b, Z(c), d, e, f, g, h, i); \
	TRY(fn, d, a, b, c, Z(d), e, f, g, h, i); \
	TRY(fn, e, a, b, c, d, Z(e), f, g, h, i); \
	TRY(fn, f, a, b, c, d, e, Z(f), g, h, i); \
	TRY(fn, g, a, b, c, d, e, f, Z(g), h, i); \
	TRY(fn, h, a, b, c, d, e, f, g, Z(h), i); \
	TRY(fn, i, a, b, c, d, e, f, g, h, Z(i))
#define NULLS_10(fn, a, b, c, d, e, f, g, h, i, j) \
	TRY(fn, a, Z(a), b, c, d, e, f, g, h, i, j); \
	TRY(fn, b, a, Z(b), c, d, e, f, g, h, i, j); \
	TRY(fn, c, a, b, Z(c), d, e, f, g, h, i, j); \
	TRY(fn, d, a, b, c, Z(d), e, f, g, h, i, j); \
	TRY(fn, e, a, b, c, d, Z(e), f, g, h, i, j); \
	TRY(fn, f, a, b, c, d, e, Z(f), g, h, i, j); \
	TRY(fn, g, a, b, c, d, e, f, Z(g), h, i, j); \
	TRY(fn, h, a, b, c, d, e, f, g, Z(h), i, j); \
	TRY(fn, i, a, b, c, d, e, f, g, h, Z(i), j); \
	TRY(fn, j, a, b, c, d, e, f, g, h, i, Z(j))
/* clang-format on */

/* A delete function: no address, and nothing there, as often as one likes. */
#define DELETES(function, type)                    \
	do {                                       \
		struct type *nothing = NULL;       \
                                                   \
		BAD(RPMA_E_INVAL, function, NULL); \
		BAD(0, function, &nothing);        \
		BAD(0, function, &nothing);        \
		assert_null(nothing);              \
	} while (0)

#endif /* SWEEP_H */
