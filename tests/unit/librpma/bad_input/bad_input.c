/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Every exported function, and the arguments that the function has to refuse:
 * NULL in each pointer, values out of range, objects in the wrong state, a
 * second delete, invalid descriptors. The last test names forgotten functions.
 */

#include "sweep.h"

#include <limits.h>
#include <stdio.h>
#include <librpma_legacy.h>

#include "conn_cfg.h"
#include "srq_cfg.h"
#include "world.h"

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
	struct ibv_pd *pd;
	struct ibv_qp *qp;
	struct rdma_cm_id *id;
	struct rpma_send_wr send_wr;
	struct rpma_recv_wr recv_wr;
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
static union out out;
/* Written on failure: the first work request that was not posted. */
static struct rpma_send_wr *bad_send;
static struct rpma_recv_wr *bad_recv;

static struct {
	enum rpma_log_level level;
	char text[1024];
	int count;
} heard;

static void hear(enum rpma_log_level level, const char *file_name,
		 const int line_no, const char *function_name,
		 const char *message_format, ...)
{
	va_list args;

	assert_non_null(file_name);
	assert_non_null(function_name);
	assert_true(line_no > 0);
	va_start(args, message_format);
	vsnprintf(heard.text, sizeof(heard.text), message_format, args);
	va_end(args);
	heard.level = level;
	heard.count++;
}

static void forget(void)
{
	mocks_reset();
	heard.count = 0;
	ok(rpma_log_set_function(hear));
	ok(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_INFO));
}

static int get_heard(enum rpma_log_level *level, char *text, size_t size)
{
	*level = heard.level;
	snprintf(text, size, "%s", heard.text);
	return heard.count;
}

static enum rpma_log_level level_of(int error)
{
	switch (error) {
	case 0:
	case RPMA_E_AGAIN:
	case RPMA_E_NO_COMPLETION:
	case RPMA_E_NO_EVENT:
		return RPMA_LOG_DISABLED;
	default:
		return RPMA_LOG_LEVEL_ERROR;
	}
}

static const char *const headers[] = {RPMA_HEADERS "librpma.h",
				      RPMA_HEADERS "librpma_legacy.h", NULL};

static const char *const refuse_none[] = {
	/* texts, of any number */
	"rpma_err_2str",
	"rpma_utils_conn_event_2str",
	/* takes any function; NULL stands for the default function */
	"rpma_log_set_function",
	/* a message that cannot be logged is dropped */
	"rpma_log_message",
	/* ending a pair that was never begun does nothing */
	"rpma_log_hold",
	"rpma_log_release",
	NULL,
};

const struct sweep_ground sweep_ground = {
	.map = RPMA_MAP,
	.least = 150, /* 84 of release 1.3, and the additions of 1.4 */
	.out = &out,
	.out_size = sizeof(out),
	.forget = forget,
	.trace = mocks_trace,
	.text = rpma_err_2str,
	.heard = get_heard,
	.level = level_of,
	.headers = headers,
	.refuse_none = refuse_none,
};

static int me, other;
static const struct rpma_conn_cfg *no_cfg;
static struct rpma_conn_private_data words = {"hello", 6};

MOCK_TEST(peers)
{
	struct rpma_peer_cfg *pcfg = NULL;
	const uint8_t desc[1] = {1};
	const int local = RPMA_UTIL_IBV_CONTEXT_LOCAL;

	world_peer();
	NULLS(rpma_utils_get_ibv_context, "host", local, &out.ctx);
	BAD(RPMA_E_INVAL, rpma_utils_get_ibv_context, "host", 2, &out.ctx);
	BAD(RPMA_E_INVAL, rpma_utils_get_ibv_context, "host", -1, &out.ctx);
	NULLS(rpma_utils_ibv_context_is_odp_capable, MOCK_CTX, &out.number);
	NULLS(rpma_peer_new, MOCK_CTX, &out.peer);
	NULLS(rpma_peer_get_ibv_context, world.peer, &out.ctx);
	NULLS(rpma_peer_get_ibv_pd, world.peer, &out.pd);
	DELETES(rpma_peer_delete, rpma_peer);

	ok(rpma_peer_cfg_new(&pcfg));
	NULLS(rpma_peer_cfg_new, &out.pcfg);
	NULLS(rpma_peer_cfg_set_direct_write_to_pmem, pcfg, true);
	NULLS(rpma_peer_cfg_get_direct_write_to_pmem, pcfg, &out.flag);
	NULLS(rpma_peer_cfg_get_descriptor, pcfg, &out.pointer);
	NULLS(rpma_peer_cfg_get_descriptor_size, pcfg, &out.size);
	NULLS(rpma_peer_cfg_from_descriptor, desc, 1, &out.pcfg);
	BAD_SAYS("at least 1 byte", RPMA_E_INVAL, rpma_peer_cfg_from_descriptor,
		 desc, 0, &out.pcfg);
	DELETES(rpma_peer_cfg_delete, rpma_peer_cfg);
	ok(rpma_peer_cfg_delete(&pcfg));
	world_end();
}

MOCK_TEST(regions)
{
	uint8_t desc[64] = {[20] = RPMA_MR_USAGE_READ_SRC};
	char mem[8];
	size_t size;

	world_regions(WORLD_ALL_USAGES);
	NULLS(rpma_mr_reg, world.peer, mem, 8, 1, &out.mr);
	BAD(RPMA_E_INVAL, rpma_mr_reg, world.peer, mem, 0, 1, &out.mr);
	BAD(RPMA_E_INVAL, rpma_mr_reg, world.peer, mem, 8, 0, &out.mr);
	BAD(RPMA_E_INVAL, rpma_mr_reg, world.peer, mem, 8, 0x100, &out.mr);
	BAD(RPMA_E_INVAL, rpma_mr_reg, world.peer, mem, 8, 0x102, &out.mr);
	BAD(RPMA_E_INVAL, rpma_mr_reg, world.peer, mem, 8, 0x201, &out.mr);
	BAD(RPMA_E_INVAL, rpma_mr_reg, world.peer, mem, 8, -1, &out.mr);
	BAD(RPMA_E_INVAL, rpma_mr_reg, world.peer, mem, 8, INT_MIN, &out.mr);
	NULLS(rpma_mr_from_ibv_mr, world.peer, mock_mr, 0, 1, &out.mr);
	BAD(RPMA_E_INVAL, rpma_mr_from_ibv_mr, world.peer, mock_mr, 0, 0,
	    &out.mr);
	BAD(RPMA_E_INVAL, rpma_mr_from_ibv_mr, world.peer, mock_mr, 0, 0x200,
	    &out.mr);
	NULLS(rpma_mr_get_descriptor, world.mr, &out.pointer);
	NULLS(rpma_mr_get_descriptor_size, world.mr, &out.size);
	NULLS(rpma_mr_get_ptr, world.mr, &out.pointer);
	NULLS(rpma_mr_get_size, world.mr, &out.size);
	NULLS(rpma_mr_get_lkey, world.mr, &out.u32);
	NULLS(rpma_mr_advise, world.mr, 0, 8, 0, 0);
	DELETES(rpma_mr_dereg, rpma_mr_local);

	NULLS(rpma_mr_remote_from_descriptor, desc, 21, &out.remote);
	for (size = 0; size < 21; size++)
		BAD_SAYS("21 bytes, not", RPMA_E_INVAL,
			 rpma_mr_remote_from_descriptor, desc, size,
			 &out.remote);
	desc[20] = 0;
	for (size = 21; size <= sizeof(desc); size++)
		BAD_SAYS("is of no use", RPMA_E_INVAL,
			 rpma_mr_remote_from_descriptor, desc, size,
			 &out.remote);
	NULLS(rpma_mr_remote_get_size, world.remote, &out.size);
	NULLS(rpma_mr_remote_get_flush_type, world.remote, &out.number);
	DELETES(rpma_mr_remote_delete, rpma_mr_remote);
	world_end();
}

/* Sets each field to invalid values. */
MOCK_TEST(configurations)
{
	struct rpma_conn_cfg *conn_cfg = NULL;
	struct rpma_srq_cfg *srq_cfg = NULL;

	ok(rpma_conn_cfg_new(&conn_cfg));
	ok(rpma_srq_cfg_new(&srq_cfg));
	NULLS(rpma_conn_cfg_new, &out.conn_cfg);
	NULLS(rpma_srq_cfg_new, &out.srq_cfg);
	DELETES(rpma_conn_cfg_delete, rpma_conn_cfg);
	DELETES(rpma_srq_cfg_delete, rpma_srq_cfg);
#define SWEEP_CFG(object, name, type, initial)                      \
	do {                                                        \
		type initially = (initial);                         \
                                                                    \
		BAD(RPMA_E_INVAL, rpma_##object##_set_##name, NULL, \
		    initially);                                     \
		NULLS(rpma_##object##_get_##name, object,           \
		      (type *)(void *)&out);                        \
	} while (0);
#define SWEEP_CONN(name, type, initial, is_valid, range) \
	SWEEP_CFG(conn_cfg, name, type, initial)
#define SWEEP_SRQ(name, type, initial, is_valid, range) \
	SWEEP_CFG(srq_cfg, name, type, initial)
	RPMA__CONN_CFG_FIELDS(SWEEP_CONN)
	RPMA__SRQ_CFG_FIELDS(SWEEP_SRQ)
	BAD_SAYS("timeout: 0 or more", RPMA_E_INVAL, rpma_conn_cfg_set_timeout,
		 conn_cfg, -1);
	BAD_SAYS("timeout: 0 or more", RPMA_E_INVAL, rpma_conn_cfg_set_timeout,
		 conn_cfg, INT_MIN);
	BAD(RPMA_E_INVAL, rpma_conn_cfg_set_srq, conn_cfg, NULL);
	BAD(RPMA_E_INVAL, rpma_conn_cfg_set_comp_vector, conn_cfg, -1);
	BAD_SAYS("max_send_sge: 1 or more", RPMA_E_INVAL,
		 rpma_conn_cfg_set_max_send_sge, conn_cfg, 0);
	BAD_SAYS("max_recv_sge: 1 or more", RPMA_E_INVAL,
		 rpma_conn_cfg_set_max_recv_sge, conn_cfg, 0);
	BAD_SAYS("max_inline_data: 8 or more", RPMA_E_INVAL,
		 rpma_conn_cfg_set_max_inline_data, conn_cfg, 7);
	BAD_SAYS("retry_count: 0 to 7", RPMA_E_INVAL,
		 rpma_conn_cfg_set_retry_count, conn_cfg, 8);
	BAD_SAYS("rnr_retry_count: 0 to 7", RPMA_E_INVAL,
		 rpma_conn_cfg_set_rnr_retry_count, conn_cfg, 8);
	BAD_SAYS("min_rnr_timer: 0 to 31, or unset", RPMA_E_INVAL,
		 rpma_conn_cfg_set_min_rnr_timer, conn_cfg, 32);
	BAD_SAYS("ack_timeout: 0 to 31, or unset", RPMA_E_INVAL,
		 rpma_conn_cfg_set_ack_timeout, conn_cfg, 32);
	BAD_SAYS("max_sge: 1 or more", RPMA_E_INVAL, rpma_srq_cfg_set_max_sge,
		 srq_cfg, 0);
	BAD(RPMA_E_INVAL, rpma_conn_cfg_set_tos, conn_cfg, 256);
	BAD(RPMA_E_INVAL, rpma_conn_cfg_set_tos, conn_cfg, -2);
	ok(rpma_conn_cfg_delete(&conn_cfg));
	ok(rpma_srq_cfg_delete(&srq_cfg));
}

MOCK_TEST(queues)
{
	struct rpma_channel *channel = NULL;
	struct rpma_recv_wr wr = {0};
	struct rpma_srq *srq = NULL;
	struct ibv_cq strange = {0};
	struct rpma_cq *cq = NULL;
	struct rpma_cq *none = NULL;

	world_regions(WORLD_ALL_USAGES);
	ok(rpma_srq_new(world.peer, NULL, &srq));
	NULLS(rpma_srq_new, world.peer, 0, &out.srq);
	NULLS(rpma_srq_recv, srq, world.mr, 0, 8, 0);
	BAD(RPMA_E_INVAL, rpma_srq_recv, srq, NULL, 1, 0, NULL);
	NULLS(rpma_srq_post_recv, srq, &wr, &bad_recv);
	BAD(RPMA_E_INVAL, rpma_srq_set_limit, NULL, 1);
	BAD(RPMA_E_INVAL, rpma_srq_set_limit, srq, 21);
	BAD(RPMA_E_INVAL, rpma_srq_set_limit, srq, UINT32_MAX);
	NULLS(rpma_srq_get_rcq, srq, &out.cq);
	NULLS(rpma_srq_get_ibv_srq, srq, &out.ibv_srq);
	DELETES(rpma_srq_delete, rpma_srq);
	ok(rpma_srq_delete(&srq));

	ok(rpma_channel_new(MOCK_CTX, &channel));
	ok(rpma_cq_new(MOCK_CTX, 4, channel, 0, NULL, &cq));
	NULLS(rpma_channel_new, MOCK_CTX, &out.channel);
	NULLS(rpma_channel_get_fd, channel, &out.number);
	NULLS(rpma_channel_get_ibv_channel, channel, &out.ibv_channel);
	NULLS(rpma_channel_wait, channel, &out.cq);
	DELETES(rpma_channel_delete, rpma_channel);

	NULLS(rpma_cq_new, MOCK_CTX, 4, 0, 0, 0, &out.cq);
	BAD(RPMA_E_INVAL, rpma_cq_new, MOCK_CTX, 0, NULL, 0, NULL, &out.cq);
	BAD(RPMA_E_INVAL, rpma_cq_new, MOCK_CTX, -1, NULL, 0, NULL, &out.cq);
	BAD(RPMA_E_INVAL, rpma_cq_new, MOCK_CTX, 4, NULL, -1, NULL, &out.cq);
	BAD(RPMA_E_INVAL, rpma_cq_new, MOCK_CTX, 4, NULL, 2, NULL, &out.cq);
	NULLS(rpma_cq_get_fd, cq, &out.number);
	BAD_SAYS("the CQ has a shared channel, or is claimed",
		 RPMA_E_SHARED_CHANNEL, rpma_cq_get_fd, cq, &out.number);
	BAD(RPMA_E_INVAL, rpma_cq_wait, NULL);
	BAD_SAYS("the CQ has a shared channel, or is claimed",
		 RPMA_E_SHARED_CHANNEL, rpma_cq_wait, cq);
	BAD(RPMA_E_INVAL, rpma_cq_wait_event, NULL);
	BAD_SAYS("the CQ has a shared channel, or is claimed",
		 RPMA_E_SHARED_CHANNEL, rpma_cq_wait_event, cq);
	NULLS(rpma_cq_get_wc, cq, 1, out.wc, 0);
	BAD(RPMA_E_INVAL, rpma_cq_get_wc, cq, 0, out.wc, &out.number);
	BAD(RPMA_E_INVAL, rpma_cq_get_wc, cq, 0, out.wc, NULL);
	BAD(RPMA_E_INVAL, rpma_cq_get_wc, cq, -1, out.wc, NULL);
	BAD(RPMA_E_INVAL, rpma_cq_get_wc, cq, INT_MIN, out.wc, NULL);
	BAD(RPMA_E_INVAL, rpma_cq_get_wc, cq, 2, out.wc, NULL);
	NULLS(rpma_cq_arm, cq, false);
	NULLS(rpma_cq_ack, cq, 1);
	NULLS(rpma_cq_get_context, cq, &out.pointer);
	NULLS(rpma_cq_get_ibv_cq, cq, &out.ibv_cq);
	NULLS(rpma_cq_from_ibv_cq, &strange, &out.cq);
	BAD_SAYS("not of this library", RPMA_E_INVAL, rpma_cq_from_ibv_cq,
		 &strange, &out.cq);
	NULLS(rpma_cq_claim, cq, &me);
	NULLS(rpma_cq_release, cq, &me);
	BAD(RPMA_E_INVAL, rpma_cq_release, cq, &me);
	DELETES(rpma_cq_delete, rpma_cq);

	ok(rpma_cq_claim(cq, &me));
	BAD(RPMA_E_CLAIMED, rpma_cq_claim, cq, &other);
	BAD(RPMA_E_CLAIMED, rpma_cq_release, cq, &other);
	BAD_SAYS("only the owner of the claim polls the CQ",
		 RPMA_E_SHARED_CHANNEL, rpma_cq_get_wc, cq, 1, out.wc, NULL);
	BAD_SAYS("only the owner of the claim polls the CQ",
		 RPMA_E_SHARED_CHANNEL, rpma_cq_get_wc, cq, 1, out.wc,
		 &out.number);
	none = cq;
	BAD_SAYS("another owner has claimed the CQ", RPMA_E_CLAIMED,
		 rpma_cq_delete, &none);
	assert_ptr_equal(none, cq);
	ok(rpma_cq_release(cq, &me));
	ok(rpma_cq_delete(&cq));
	ok(rpma_channel_delete(&channel));
	world_end();
}

MOCK_TEST(listening)
{
	struct rpma_cm_event event = {.type = RDMA_CM_EVENT_ESTABLISHED};
	struct rpma_cm_channel *channel = NULL;
	struct rdma_cm_id id = {0};
	struct rpma_ep *ep = NULL;

	world_peer();
	ok(rpma_ep_listen(world.peer, "host", "7204", &ep));
	NULLS(rpma_ep_listen, world.peer, "host", "7204", &out.ep);
	NULLS(rpma_ep_listen_ex, world.peer, "host", "7204", 0, 0, 0, &out.ep);
	BAD(RPMA_E_INVAL, rpma_ep_listen_ex, world.peer, "host", "7204", -1,
	    NULL, NULL, &out.ep);
	NULLS(rpma_ep_get_fd, ep, &out.number);
	NULLS(rpma_ep_get_port, ep, &out.u16);
	NULLS(rpma_ep_next_conn_req, ep, 0, &out.req);
	DELETES(rpma_ep_shutdown, rpma_ep);

	ok(rpma_cm_channel_new(&channel));
	NULLS(rpma_cm_channel_new, &out.cm_channel);
	NULLS(rpma_cm_channel_get_fd, channel, &out.number);
	NULLS(rpma_cm_channel_get_event, channel, &out.cm_event);
	BAD(RPMA_E_INVAL, rpma_cm_event_ack, NULL);
	event.type = RDMA_CM_EVENT_CONNECT_REQUEST;
	event.id = &id;
	NULLS(rpma_cm_event_reject, &event, 0);
	event.id = NULL;
	BAD(RPMA_E_INVAL, rpma_cm_event_reject, &event, NULL);
	event.type = RDMA_CM_EVENT_ESTABLISHED;
	/* an event acknowledged before */
	BAD(0, rpma_cm_event_ack, &event);
	DELETES(rpma_cm_channel_delete, rpma_cm_channel);
	ok(rpma_cm_channel_delete(&channel));

	NULLS(rpma_conn_req_new_from_event, world.peer, &event, 0, 0, &out.req);
	BAD(RPMA_E_INVAL, rpma_conn_req_new_from_event, world.peer, &event,
	    no_cfg, NULL, &out.req);
	event.id = &id;
	BAD(RPMA_E_INVAL, rpma_conn_req_new_from_event, world.peer, &event,
	    no_cfg, NULL, &out.req);
	ok(rpma_ep_shutdown(&ep));
	world_end();
}

MOCK_TEST(requests)
{
	struct rpma_conn_private_data bad_words = {"hello", 0};
	struct rpma_cm_event event = {.type = RDMA_CM_EVENT_ADDR_RESOLVED};
	struct rpma_conn_cfg *cfg = NULL;
	struct rpma_conn_req *req = NULL;
	struct rpma_conn_req *same;
	struct rpma_recv_wr wr = {0};

	world_regions(WORLD_ALL_USAGES);
	ok(rpma_conn_cfg_new(&cfg));
	NULLS(rpma_conn_req_new, world.peer, "host", "7204", 0, &out.req);
	NULLS(rpma_conn_req_new_async, world.peer, "host", "7204", cfg, 0,
	      &out.req);
	/* the configuration names no CM channel */
	BAD_SAYS("no CM channel", RPMA_E_INVAL, rpma_conn_req_new_async,
		 world.peer, "host", "7204", cfg, NULL, &out.req);
	ok(rpma_conn_req_new(world.peer, "host", "7204", NULL, &req));
	same = req;
	NULLS(rpma_conn_req_advance, req, &event);
	BAD(RPMA_E_INVAL, rpma_conn_req_advance, req, &event);
	NULLS(rpma_conn_req_recv, req, world.mr, 0, 8, 0);
	NULLS(rpma_conn_req_post_recv, req, 0, &wr, &bad_recv);
	BAD(RPMA_E_SHARED_CHANNEL, rpma_conn_req_post_recv, req, &me, &wr,
	    &bad_recv);
	NULLS(rpma_conn_req_get_private_data, req, &out.data);
	NULLS(rpma_conn_req_get_qp, req, &out.qp);
	NULLS(rpma_conn_req_get_cm_id, req, &out.id);
	NULLS(rpma_conn_req_claim, req, &me);
	NULLS(rpma_conn_req_release, req, &me);
	BAD(RPMA_E_INVAL, rpma_conn_req_release, req, &me);
	BAD(RPMA_E_INVAL, rpma_conn_req_qp_to_err, NULL, NULL);
	BAD(RPMA_E_INVAL, rpma_conn_req_destroy_qp, NULL, NULL);
	/* an outgoing request: no other side waits to be rejected */
	BAD_SAYS("an outgoing request", RPMA_E_INVAL, rpma_conn_req_reject,
		 &req, &words);
	BAD(RPMA_E_INVAL, rpma_conn_req_reject, NULL, &words);
	DELETES(rpma_conn_req_delete, rpma_conn_req);
	assert_ptr_equal(req, same);

	ok(rpma_conn_req_claim(req, &me));
	BAD(RPMA_E_CLAIMED, rpma_conn_req_claim, req, &other);
	BAD(RPMA_E_CLAIMED, rpma_conn_req_release, req, &other);
	BAD_SAYS("another owner has claimed the request", RPMA_E_CLAIMED,
		 rpma_conn_req_delete, &req);
	BAD(RPMA_E_CLAIMED, rpma_conn_req_qp_to_err, req, &other);
	BAD(RPMA_E_CLAIMED, rpma_conn_req_destroy_qp, req, NULL);
	BAD_SAYS("only the owner of the claim posts", RPMA_E_SHARED_CHANNEL,
		 rpma_conn_req_recv, req, world.mr, 0, 8, NULL);
	ok(rpma_conn_req_release(req, &me));

	/* a request connected without a connection to write to is consumed */
	BAD(RPMA_E_INVAL, rpma_conn_req_connect, NULL, NULL, &out.conn);
	assert_int_equal(rpma_conn_req_connect(&req, NULL, NULL), RPMA_E_INVAL);
	assert_null(req);
	BAD(RPMA_E_INVAL, rpma_conn_req_connect, &req, NULL, &out.conn);
	BAD(RPMA_E_INVAL, rpma_conn_req_reject, &req, NULL);
	ok(rpma_conn_req_new(world.peer, "host", "7204", NULL, &req));
	assert_int_equal(rpma_conn_req_connect(&req, &bad_words, &world.conn),
			 RPMA_E_INVAL);
	assert_null(req);
	assert_null(world.conn);
	ok(rpma_conn_cfg_delete(&cfg));
	world_end();
}

MOCK_TEST(connections)
{
	struct rpma_cm_event event = {.type = RDMA_CM_EVENT_ESTABLISHED};
	struct rpma_peer_cfg *pcfg = NULL;
	struct rpma_conn *same;

	world_conn(NULL);
	ok(rpma_peer_cfg_new(&pcfg));
	same = world.conn;
	NULLS(rpma_conn_get_event_fd, world.conn, &out.number);
	NULLS(rpma_conn_next_event, world.conn, &out.event);
	NULLS(rpma_conn_handle_event, world.conn, &event, &out.event);
	BAD_SAYS("no shared CM channel", RPMA_E_NOT_SHARED_CHNL,
		 rpma_conn_handle_event, world.conn, &event, &out.event);
	NULLS(rpma_conn_get_private_data, world.conn, &out.data);
	NULLS(rpma_conn_apply_remote_peer_cfg, world.conn, pcfg);
	NULLS(rpma_conn_get_qp_num, world.conn, &out.u32);
	NULLS(rpma_conn_get_cq, world.conn, &out.cq);
	NULLS(rpma_conn_get_rcq, world.conn, &out.cq);
	NULLS(rpma_conn_get_qp, world.conn, &out.qp);
	NULLS(rpma_conn_get_cm_id, world.conn, &out.id);
	BAD(RPMA_E_INVAL, rpma_conn_disconnect, NULL);
	NULLS(rpma_conn_get_compl_fd, world.conn, &out.number);
	BAD_SAYS("no shared completion channel", RPMA_E_NOT_SHARED_CHNL,
		 rpma_conn_get_compl_fd, world.conn, &out.number);
	NULLS(rpma_conn_wait, world.conn, 0, &out.cq, 0);
	BAD_SAYS("no shared completion channel", RPMA_E_NOT_SHARED_CHNL,
		 rpma_conn_wait, world.conn, 0, &out.cq, NULL);
	NULLS(rpma_conn_wait_event, world.conn, &out.cq, 0);
	BAD_SAYS("no shared completion channel", RPMA_E_NOT_SHARED_CHNL,
		 rpma_conn_wait_event, world.conn, &out.cq, NULL);
	NULLS(rpma_conn_get_event_status, world.conn, &out.number);
	BAD(RPMA_E_AGAIN, rpma_conn_get_event_status, world.conn, &out.number);
	NULLS(rpma_conn_claim, world.conn, &me);
	NULLS(rpma_conn_release, world.conn, &me);
	BAD(RPMA_E_INVAL, rpma_conn_release, world.conn, &me);
	BAD(RPMA_E_INVAL, rpma_conn_qp_to_err, NULL, NULL);
	BAD(RPMA_E_INVAL, rpma_conn_destroy_qp, NULL, NULL);
	DELETES(rpma_conn_delete, rpma_conn);
	ok(rpma_conn_claim(world.conn, &me));
	BAD(RPMA_E_CLAIMED, rpma_conn_claim, world.conn, &other);
	BAD(RPMA_E_CLAIMED, rpma_conn_release, world.conn, &other);
	BAD_SAYS("another owner has claimed the connection", RPMA_E_CLAIMED,
		 rpma_conn_delete, &world.conn);
	BAD(RPMA_E_CLAIMED, rpma_conn_qp_to_err, world.conn, &other);
	BAD(RPMA_E_CLAIMED, rpma_conn_qp_to_err, world.conn, NULL);
	BAD(RPMA_E_CLAIMED, rpma_conn_destroy_qp, world.conn, &other);
	assert_ptr_equal(world.conn, same);
	ok(rpma_conn_release(world.conn, &me));
	ok(rpma_peer_cfg_delete(&pcfg));
	world_end();
}

static const char bytes[8];

static void refuse_operations(struct rpma_conn *conn, int expected,
			      const char *says)
{
	struct rpma_mr_remote *remote = world.remote;
	struct rpma_mr_local *mr = world.mr;

	BAD_SAYS(says, expected, rpma_read, conn, mr, 0, remote, 0, 8, 1, NULL);
	BAD_SAYS(says, expected, rpma_write, conn, remote, 0, mr, 0, 8, 1,
		 NULL);
	BAD_SAYS(says, expected, rpma_write_with_imm, conn, remote, 0, mr, 0, 8,
		 1, 1, NULL);
	BAD_SAYS(says, expected, rpma_atomic_write, conn, remote, 0, bytes, 1,
		 NULL);
	BAD_SAYS(says, expected, rpma_flush, conn, remote, 0, 8,
		 RPMA_FLUSH_TYPE_VISIBILITY, 1, NULL);
	BAD_SAYS(says, expected, rpma_send, conn, mr, 0, 8, 1, NULL);
	BAD_SAYS(says, expected, rpma_send_with_imm, conn, mr, 0, 8, 1, 1,
		 NULL);
	BAD_SAYS(says, expected, rpma_recv, conn, mr, 0, 8, NULL);
}

MOCK_TEST(operations)
{
	const int flush = RPMA_FLUSH_TYPE_VISIBILITY;
	struct rpma_send_wr send_wr = {0};
	struct rpma_recv_wr recv_wr = {0};
	struct rpma_sge list[1];
	struct ibv_sge sge[1];
	struct rpma_mr_remote *remote;
	struct rpma_mr_local *mr;
	struct rpma_conn *conn;

	world_regions(WORLD_ALL_USAGES);
	world_conn(NULL);
	remote = world.remote;
	mr = world.mr;
	conn = world.conn;
	NULLS(rpma_read, conn, mr, 0, remote, 0, 8, 1, 0);
	NULLS(rpma_write, conn, remote, 0, mr, 0, 8, 1, 0);
	NULLS(rpma_write_with_imm, conn, remote, 0, mr, 0, 8, 1, 7, 0);
	NULLS(rpma_atomic_write, conn, remote, 0, bytes, 1, 0);
	NULLS(rpma_flush, conn, remote, 0, 8, flush, 1, 0);
	NULLS(rpma_send, conn, mr, 0, 8, 1, 0);
	NULLS(rpma_send_with_imm, conn, mr, 0, 8, 1, 7, 0);
	NULLS(rpma_recv, conn, mr, 0, 8, 0);
	NULLS(rpma_wr_read, conn, mr, 0, remote, 0, 8, 1, 7, &out.send_wr);
	NULLS(rpma_wr_write, conn, remote, 0, mr, 0, 8, 1, 7, &out.send_wr);
	NULLS(rpma_wr_write_with_imm, conn, remote, 0, mr, 0, 8, 1, 7, 7,
	      &out.send_wr);
	NULLS(rpma_wr_atomic_write, conn, remote, 0, bytes, 1, 7, &out.send_wr);
	NULLS(rpma_wr_flush, conn, remote, 0, 8, flush, 1, 7, &out.send_wr);
	NULLS(rpma_wr_send, conn, mr, 0, 8, 1, 7, &out.send_wr);
	NULLS(rpma_wr_send_with_imm, conn, mr, 0, 8, 1, 7, 7, &out.send_wr);
	NULLS(rpma_wr_recv, mr, 0, 8, 7, &out.recv_wr);
	NULLS(rpma_wr_atomic_cmp_swp, conn, mr, 0, remote, 0, 1, 2, 1, 7,
	      &out.send_wr);
	NULLS(rpma_wr_atomic_fetch_add, conn, mr, 0, remote, 0, 1, 1, 7,
	      &out.send_wr);
	list[0] = (struct rpma_sge){mr, 0, 8};
	NULLS(rpma_wr_set_sge_list, list, 1, sge, &send_wr);
	NULLS(rpma_wr_recv_set_sge_list, list, 1, sge, &recv_wr);
	NULLS(rpma_conn_post_send, conn, 0, &send_wr, &bad_send);
	NULLS(rpma_conn_post_recv, conn, 0, &recv_wr, &bad_recv);
	BAD(RPMA_E_SHARED_CHANNEL, rpma_conn_post_send, conn, &me, &send_wr,
	    &bad_send);
	BAD(RPMA_E_SHARED_CHANNEL, rpma_conn_post_recv, conn, &me, &recv_wr,
	    &bad_recv);

	/* no flags; no regions, but bytes; misaligned offsets */
	BAD(RPMA_E_INVAL, rpma_read, conn, mr, 0, remote, 0, 8, 0, NULL);
	BAD(RPMA_E_INVAL, rpma_write, conn, remote, 0, mr, 0, 8, 0, NULL);
	BAD(RPMA_E_INVAL, rpma_write_with_imm, conn, remote, 0, mr, 0, 8, 0, 7,
	    NULL);
	BAD(RPMA_E_INVAL, rpma_atomic_write, conn, remote, 0, bytes, 0, NULL);
	BAD(RPMA_E_INVAL, rpma_flush, conn, remote, 0, 8, flush, 0, NULL);
	BAD(RPMA_E_INVAL, rpma_send, conn, mr, 0, 8, 0, NULL);
	BAD(RPMA_E_INVAL, rpma_send_with_imm, conn, mr, 0, 8, 0, 7, NULL);
	BAD(RPMA_E_INVAL, rpma_read, conn, NULL, 1, NULL, 0, 0, 1, NULL);
	BAD(RPMA_E_INVAL, rpma_read, conn, NULL, 0, NULL, 1, 0, 1, NULL);
	BAD(RPMA_E_INVAL, rpma_write, conn, NULL, 0, NULL, 0, 1, 1, NULL);
	BAD(RPMA_E_INVAL, rpma_send, conn, NULL, 1, 0, 1, NULL);
	BAD(RPMA_E_INVAL, rpma_recv, conn, NULL, 0, SIZE_MAX, NULL);
	BAD(RPMA_E_INVAL, rpma_atomic_write, conn, remote, 1, bytes, 1, NULL);
	BAD(RPMA_E_INVAL, rpma_atomic_write, conn, remote, SIZE_MAX, bytes, 1,
	    NULL);
	BAD(RPMA_E_INVAL, rpma_wr_atomic_cmp_swp, conn, mr, 0, remote, 0, 1, 2,
	    0, 7, &out.send_wr);
	BAD_SAYS("multiple of 8", RPMA_E_INVAL, rpma_wr_atomic_fetch_add, conn,
		 mr, 0, remote, 4, 1, 1, 7, &out.send_wr);
	/* flags that the operation does not take, and more than 8 bytes
	 * inline */
	BAD_SAYS("RPMA_F_INLINE: only sends and writes", RPMA_E_INVAL,
		 rpma_read, conn, mr, 0, remote, 0, 8, RPMA_F_INLINE, NULL);
	BAD_SAYS("RPMA_F_SOLICITED: only sends and writes", RPMA_E_INVAL,
		 rpma_read, conn, mr, 0, remote, 0, 8, RPMA_F_SOLICITED, NULL);
	BAD_SAYS("RPMA_F_SOLICITED: only sends and writes", RPMA_E_INVAL,
		 rpma_write, conn, remote, 0, mr, 0, 8, RPMA_F_SOLICITED, NULL);
	BAD_SAYS("RPMA_F_INLINE: 9 bytes|max_inline_data", RPMA_E_INVAL,
		 rpma_write, conn, remote, 0, mr, 0, 9, RPMA_F_INLINE, NULL);
	BAD_SAYS("RPMA_F_INLINE: only sends and writes", RPMA_E_INVAL,
		 rpma_atomic_write, conn, remote, 0, bytes, RPMA_F_INLINE,
		 NULL);
	BAD_SAYS("RPMA_F_INLINE: only sends and writes", RPMA_E_INVAL,
		 rpma_flush, conn, remote, 0, 8, flush, RPMA_F_INLINE, NULL);
	BAD_SAYS("RPMA_F_INLINE: 4294967295 bytes|max_inline_data",
		 RPMA_E_INVAL, rpma_send, conn, mr, 0, UINT32_MAX,
		 RPMA_F_INLINE, NULL);
	BAD_SAYS("RPMA_F_INLINE: 9 bytes|max_inline_data", RPMA_E_INVAL,
		 rpma_wr_send_with_imm, conn, mr, 0, 9, RPMA_F_INLINE, 7, 7,
		 &out.send_wr);
	BAD_SAYS("RPMA_F_INLINE: only sends and writes", RPMA_E_INVAL,
		 rpma_wr_atomic_fetch_add, conn, mr, 0, remote, 0, 1,
		 RPMA_F_INLINE, 7, &out.send_wr);
	BAD_SAYS("RPMA_F_SOLICITED: only sends and writes", RPMA_E_INVAL,
		 rpma_wr_atomic_cmp_swp, conn, mr, 0, remote, 0, 1, 2,
		 RPMA_F_SOLICITED, 7, &out.send_wr);
	/* the peer has not announced direct writes to persistent memory */
	BAD_SAYS("does not write directly", RPMA_E_NOSUPP, rpma_flush, conn,
		 remote, 0, 8, RPMA_FLUSH_TYPE_PERSISTENT, 1, NULL);

	ok(rpma_conn_claim(conn, &me));
	refuse_operations(conn, RPMA_E_SHARED_CHANNEL, "claimed");
	BAD(RPMA_E_SHARED_CHANNEL, rpma_conn_post_send, conn, &other, &send_wr,
	    &bad_send);
	ok(rpma_conn_release(conn, &me));
	ok(rpma_conn_destroy_qp(conn, NULL));
	refuse_operations(conn, RPMA_E_INVAL, "no queue pair any more");
	BAD_SAYS("no queue pair any more", RPMA_E_INVAL, rpma_conn_post_send,
		 conn, NULL, &send_wr, &bad_send);
	BAD_SAYS("no queue pair any more", RPMA_E_INVAL, rpma_conn_get_qp, conn,
		 &out.qp);
	BAD_SAYS("no queue pair any more", RPMA_E_INVAL, rpma_conn_get_qp_num,
		 conn, &out.u32);
	world_end();
}

/* The calls from before 1.0. */
MOCK_TEST(legacy)
{
	struct rpma_cq *cq = NULL;

	world_regions(WORLD_ALL_USAGES);
	world_conn(NULL);
	ok(rpma_conn_get_cq(world.conn, &cq));
	NULLS(rpma_conn_completion_get, world.conn, &out.completion);
	BAD(RPMA_E_INVAL, rpma_conn_completion_wait, NULL);
	NULLS(rpma_conn_get_completion_fd, world.conn, &out.number);
	NULLS(rpma_conn_next_completion, world.conn, &out.completion);
	BAD(RPMA_E_INVAL, rpma_conn_prepare_completions, NULL);
	NULLS(rpma_cq_get_completion, cq, &out.completion);
	NULLS(rpma_write_atomic, world.conn, world.remote, 0, world.mr, 0, 1,
	      0);
	BAD(RPMA_E_INVAL, rpma_write_atomic, world.conn, world.remote, 1,
	    world.mr, 0, 1, NULL);
	BAD(RPMA_E_INVAL, rpma_write_atomic, world.conn, world.remote, 0,
	    world.mr, 0, 0, NULL);
	world_end();
}

MOCK_TEST(logs_and_texts)
{
	BAD(RPMA_E_INVAL, rpma_log_set_threshold, RPMA_LOG_THRESHOLD_MAX,
	    RPMA_LOG_LEVEL_ERROR);
	BAD(RPMA_E_INVAL, rpma_log_set_threshold, -1, RPMA_LOG_LEVEL_ERROR);
	BAD(RPMA_E_INVAL, rpma_log_set_threshold, RPMA_LOG_THRESHOLD, -2);
	BAD(RPMA_E_INVAL, rpma_log_set_threshold, RPMA_LOG_THRESHOLD, 6);
	BAD(RPMA_E_INVAL, rpma_log_get_threshold, RPMA_LOG_THRESHOLD_MAX,
	    &out.level);
	BAD(RPMA_E_INVAL, rpma_log_get_threshold, -1, &out.level);
	NULLS(rpma_log_get_threshold, RPMA_LOG_THRESHOLD, &out.level);
	BAD(0, rpma_log_set_function, NULL);
	sweep_begin("rpma_log_message");
	rpma_log_message(RPMA_LOG_DISABLED, NULL, 0, NULL, "nobody hears");
	rpma_log_message(RPMA_LOG_LEVEL_DEBUG + 1, NULL, 0, NULL, "this");
	sweep_begin("rpma_log_hold");
	rpma_log_hold();
	sweep_begin("rpma_log_release");
	rpma_log_release();
	rpma_log_release();
	sweep_begin("rpma_err_2str");
	assert_string_equal(rpma_err_2str(1), "Unknown error");
	assert_string_equal(rpma_err_2str(INT_MIN), "Unknown error");
	sweep_begin("rpma_utils_conn_event_2str");
	assert_string_equal(rpma_utils_conn_event_2str(-2),
			    "Unsupported connection event");
	assert_string_equal(rpma_utils_conn_event_2str(INT_MAX),
			    "Unsupported connection event");
}

/* Runs last: checks that the other tests called every function. */
MOCK_TEST(every_function_WAS_SWEPT)
{
	sweep_expect_all();
}

TEST_MAIN()
