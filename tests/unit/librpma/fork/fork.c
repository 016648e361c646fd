/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Unit tests of inherited objects: each object is made, the process becomes
 * its own child as fork.c counts it, and no call may reach verbs or rdma_cm.
 * Objects of the parent that are left afterwards are destroyed by the test.
 */

#include "world.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "channel.h"
#include "cm_channel.h"
#include "conn.h"
#include "conn_req.h"
#include "cq.h"
#include "fork.h"
#include "mr.h"
#include "peer.h"
#include "srq.h"

#define refused(call) assert_int_equal(call, RPMA_E_FORKED)

static void become_child(void)
{
	mocks_reset();
	/* relaxed: one thread */
	atomic_fetch_add_explicit(&rpma__forks, 1, memory_order_relaxed);
}

MOCK_TEST(fork__COUNTS)
{
	unsigned before = rpma__forks_now();
	int status = -1;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		exit(rpma__forks_now() == before + 1 ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(rpma__forks_now(), before);
}

MOCK_TEST(peer__INHERITED)
{
	struct rpma_cm_event event = {.type = RDMA_CM_EVENT_CONNECT_REQUEST};
	struct rpma_conn_req *req = NULL;
	struct rpma_mr_local *mr = NULL;
	struct rpma_peer *peer = NULL;
	struct rpma_srq *srq = NULL;
	struct rpma_ep *ep = NULL;
	struct ibv_context *ctx;
	struct ibv_mr ibv_mr = {0};
	struct ibv_pd *pd;
	char mem[8];

	ok(rpma_peer_new(MOCK_CTX, &peer));
	pd = peer->pd;
	event.id = mock_new_id();
	become_child();
	refused(rpma_peer_get_ibv_context(peer, &ctx));
	refused(rpma_peer_get_ibv_pd(peer, &pd));
	refused(rpma_mr_from_ibv_mr(peer, &ibv_mr, 0, RPMA_MR_USAGE_SEND, &mr));
	refused(rpma_mr_reg(peer, mem, 8, RPMA_MR_USAGE_SEND, &mr));
	refused(rpma_srq_new(peer, NULL, &srq));
	mocks_listen();
	refused(rpma_ep_listen(peer, "host", "7204", &ep));
	expect_said("an object was made before a fork, in another process: "
		    "fork first "
		    "(daemon() forks too)");
	refused(rpma_conn_req_new(peer, "host", "7204", NULL, &req));
	refused(rpma_peer_delete(&peer));
	assert_null(peer);
	expect_trace("");
	ok(ibv_dealloc_pd(pd));
	ok(rdma_destroy_id(event.id));
}

/* The id may be the parent's, who answers the request. */
MOCK_TEST(peer__inherited_REQUEST_IS_LEFT_ALONE)
{
	struct rpma_cm_event event = {.type = RDMA_CM_EVENT_CONNECT_REQUEST};
	struct ibv_comp_channel *ibv_channel;
	struct rpma_conn_cfg *cfg = NULL;
	struct rpma_conn_req *req = NULL;
	struct rpma_cq *cq = NULL;
	struct ibv_cq *ibv_cq;
	struct ibv_pd *pd;

	world_peer();
	pd = world.peer->pd;
	event.id = mock_new_id();
	event.id->context = &pd;
	ok(rpma_cq_new(MOCK_CTX, 4, NULL, 0, NULL, &cq));
	ibv_cq = cq->cq;
	ibv_channel = cq->ibv_channel;
	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_cq(cfg, cq));
	become_child();
	refused(rpma_conn_req_new_from_event(world.peer, &event, NULL, &req,
					     &req));
	/* a peer of the child, and a CQ of the parent */
	refused(rpma_peer_delete(&world.peer));
	world_peer();
	refused(rpma_conn_req_new_from_event(world.peer, &event, cfg, &req,
					     &req));
	expect_trace("");
	assert_ptr_equal(event.id->context, &pd);
	refused(rpma_cq_delete(&cq));
	ok(rpma_conn_cfg_delete(&cfg));
	world_end();
	ok(ibv_destroy_cq(ibv_cq));
	ok(ibv_destroy_comp_channel(ibv_channel));
	ok(ibv_dealloc_pd(pd));
	ok(rdma_destroy_id(event.id));
}

MOCK_TEST(mr__INHERITED)
{
	struct ibv_mr *ibv_mr;
	struct ibv_pd *pd;
	char desc[32];
	size_t size;
	uint32_t key;
	void *ptr;

	world_regions(WORLD_ALL_USAGES);
	ibv_mr = world.mr->ibv_mr;
	pd = ibv_mr->pd;
	become_child();
	refused(rpma_mr_get_ptr(world.mr, &ptr));
	refused(rpma_mr_get_size(world.mr, &size));
	refused(rpma_mr_get_lkey(world.mr, &key));
	refused(rpma_mr_get_descriptor(world.mr, desc));
	refused(rpma_mr_get_descriptor_size(world.mr, &size));
	refused(rpma_mr_advise(world.mr, 0, 1, 0, 0));
	/* the other side's region is but its description */
	ok(rpma_mr_remote_get_size(world.remote, &size));
	refused(rpma_mr_dereg(&world.mr));
	assert_null(world.mr);
	refused(rpma_peer_delete(&world.peer));
	ok(rpma_mr_remote_delete(&world.remote));
	expect_trace("");
	ok(ibv_dereg_mr(ibv_mr));
	ok(ibv_dealloc_pd(pd));
}

MOCK_TEST(cq__INHERITED)
{
	struct rpma_channel *channel = NULL;
	struct ibv_comp_channel *ibv_channel = NULL;
	struct ibv_cq *ibv_cq = NULL;
	struct rpma_cq *other = NULL;
	struct rpma_cq *cq = NULL;
	struct ibv_wc wc;
	void *context;
	int fd;

	ok(rpma_channel_new(MOCK_CTX, &channel));
	ok(rpma_channel_get_ibv_channel(channel, &ibv_channel));
	ok(rpma_cq_new(MOCK_CTX, 4, channel, 0, NULL, &cq));
	ok(rpma_cq_get_ibv_cq(cq, &ibv_cq));
	become_child();
	refused(rpma_cq_get_fd(cq, &fd));
	refused(rpma_cq_wait(cq));
	refused(rpma_cq_get_wc(cq, 1, &wc, NULL));
	refused(rpma_cq_arm(cq, false));
	refused(rpma_cq_ack(cq, 1));
	refused(rpma_cq_get_context(cq, &context));
	refused(rpma_cq_get_ibv_cq(cq, &ibv_cq));
	refused(rpma_cq_from_ibv_cq(ibv_cq, &other));
	refused(rpma_cq_claim(cq, &fd));
	refused(rpma_cq_release(cq, &fd));
	refused(rpma_channel_get_fd(channel, &fd));
	refused(rpma_channel_get_ibv_channel(channel, &ibv_channel));
	refused(rpma_channel_wait(channel, &other));
	refused(rpma_cq_new(MOCK_CTX, 4, channel, 0, NULL, &other));
	/* in either order: no lock of the channel is touched */
	refused(rpma_channel_delete(&channel));
	refused(rpma_cq_delete(&cq));
	assert_null(channel);
	assert_null(cq);
	expect_trace("");
	ok(ibv_destroy_cq(ibv_cq));
	ok(ibv_destroy_comp_channel(ibv_channel));
}

/* Also as that of a configuration of the child's own. */
MOCK_TEST(srq__INHERITED)
{
	struct rpma_conn_cfg *cfg = NULL;
	struct rpma_srq_cfg *srq_cfg = NULL;
	struct rpma_conn_req *req = NULL;
	struct rpma_srq *other = NULL;
	struct rpma_srq *srq = NULL;
	struct rpma_cq *rcq = NULL;
	struct ibv_cq *ibv_cq;
	struct ibv_srq *ibv_srq;
	struct ibv_comp_channel *ibv_channel;
	struct ibv_pd *pd;

	world_peer();
	pd = world.peer->pd;
	ok(rpma_srq_new(world.peer, NULL, &srq));
	ok(rpma_srq_get_rcq(srq, &rcq));
	ibv_cq = rcq->cq;
	ibv_channel = rcq->ibv_channel;
	ibv_srq = srq->ibv_srq;
	become_child();
	refused(rpma_srq_recv(srq, NULL, 0, 0, NULL));
	refused(rpma_srq_get_rcq(srq, &rcq));
	refused(rpma_srq_get_ibv_srq(srq, &ibv_srq));
	refused(rpma_peer_delete(&world.peer));
	world_peer();
	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_srq(cfg, srq));
	refused(rpma_conn_req_new(world.peer, "host", "7204", cfg, &req));
	ok(rpma_srq_cfg_new(&srq_cfg));
	ok(rpma_srq_cfg_set_rcq(srq_cfg, rcq));
	mocks_reset();
	refused(rpma_srq_new(world.peer, srq_cfg, &other));
	refused(rpma_srq_delete(&srq));
	assert_null(srq);
	expect_trace("");
	ok(rpma_srq_cfg_delete(&srq_cfg));
	ok(rpma_conn_cfg_delete(&cfg));
	ok(ibv_destroy_cq(ibv_cq));
	ok(ibv_destroy_comp_channel(ibv_channel));
	ok(ibv_destroy_srq(ibv_srq));
	ok(ibv_dealloc_pd(pd));
	world_end();
}

MOCK_TEST(ep__INHERITED)
{
	struct rpma_cm_channel *cm_channel = NULL;
	struct rdma_event_channel *evch;
	struct rdma_event_channel *shared;
	struct rpma_conn_cfg *cfg = NULL;
	struct rpma_conn_req *req = NULL;
	struct rpma_cm_event event;
	struct rpma_ep *other = NULL;
	struct rpma_ep *ep = NULL;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	uint16_t port;
	int fd;

	world_peer();
	pd = world.peer->pd;
	ok(rpma_ep_listen(world.peer, "host", "7204", &ep));
	id = mock_id;
	evch = id->channel;
	ok(rpma_cm_channel_new(&cm_channel));
	shared = rpma__cm_channel_get_rdma(cm_channel);
	become_child();
	refused(rpma_ep_get_fd(ep, &fd));
	refused(rpma_ep_get_port(ep, &port));
	refused(rpma_ep_next_conn_req(ep, NULL, &req));
	refused(rpma_cm_channel_get_fd(cm_channel, &fd));
	refused(rpma_cm_channel_get_event(cm_channel, &event));
	refused(rpma_peer_delete(&world.peer));
	expect_trace("");
	/* a peer of the child's own does not help */
	world_peer();
	refused(rpma_ep_listen_ex(world.peer, "host", "7204", 0, cm_channel,
				  NULL, &other));
	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_cm_channel(cfg, cm_channel));
	refused(rpma_conn_req_new_async(world.peer, "host", "7204", cfg, NULL,
					&req));
	refused(rpma_ep_shutdown(&ep));
	refused(rpma_cm_channel_delete(&cm_channel));
	assert_null(ep);
	assert_null(cm_channel);
	expect_trace("");
	ok(rpma_conn_cfg_delete(&cfg));
	ok(rdma_destroy_id(id));
	rdma_destroy_event_channel(evch);
	rdma_destroy_event_channel(shared);
	ok(ibv_dealloc_pd(pd));
	world_end();
}

/* The id, its QP and CQs, and their channels: what a parent has left. */
static void destroy_parents(struct rdma_cm_id *id, struct ibv_cq *cq,
			    struct ibv_cq *rcq, struct ibv_pd *pd)
{
	struct ibv_comp_channel *cq_channel = cq->channel;
	struct ibv_comp_channel *rcq_channel = rcq->channel;
	struct rdma_event_channel *evch = id->channel;

	rdma_destroy_qp(id);
	ok(ibv_destroy_cq(rcq));
	ok(ibv_destroy_cq(cq));
	ok(ibv_destroy_comp_channel(rcq_channel));
	ok(ibv_destroy_comp_channel(cq_channel));
	ok(rdma_destroy_id(id));
	if (evch)
		rdma_destroy_event_channel(evch);
	ok(ibv_dealloc_pd(pd));
}

MOCK_TEST(conn__INHERITED)
{
	struct rpma_conn_cfg *cfg = NULL;
	struct rpma_send_wr wr = {0};
	struct rpma_send_wr *bad;
	struct rdma_cm_id *id;
	struct ibv_cq *rcq;
	struct ibv_cq *cq;
	struct ibv_mr *raw;
	struct ibv_pd *pd;

	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_rcq_size(cfg, 7));
	world_conn(cfg);
	ok(rpma_conn_cfg_delete(&cfg));
	pd = world.peer->pd;
	id = world.conn->id;
	cq = world.conn->cq->cq;
	rcq = world.conn->rcq->cq;
	raw = mock_mr;
	become_child();
	refused(rpma_send(world.conn, NULL, 0, 0, 1, NULL));
	refused(rpma_recv(world.conn, NULL, 0, 0, NULL));
	refused(rpma_conn_post_send(world.conn, NULL, &wr, &bad));
	assert_ptr_equal(bad, &wr);
	refused(rpma_conn_disconnect(world.conn));
	refused(rpma_conn_delete(&world.conn));
	assert_null(world.conn);
	refused(rpma_peer_delete(&world.peer));
	expect_trace("");
	ok(ibv_dereg_mr(raw));
	destroy_parents(id, cq, rcq, pd);
}

static void end_req(int (*end)(struct rpma_conn_req **req_ptr))
{
	struct rpma_conn_cfg *cfg = NULL;
	struct rpma_conn_req *req = NULL;
	struct rdma_cm_id *id;
	struct ibv_cq *rcq;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_pd *pd;

	ok(rpma_conn_cfg_new(&cfg));
	ok(rpma_conn_cfg_set_rcq_size(cfg, 7));
	world_peer();
	ok(rpma_conn_req_new(world.peer, "host", "7204", cfg, &req));
	ok(rpma_conn_cfg_delete(&cfg));
	pd = world.peer->pd;
	id = req->conn->id;
	cq = req->conn->cq->cq;
	rcq = req->conn->rcq->cq;
	become_child();
	refused(rpma_conn_req_get_qp(req, &qp));
	refused(end(&req));
	assert_null(req);
	refused(rpma_peer_delete(&world.peer));
	expect_trace("");
	destroy_parents(id, cq, rcq, pd);
}

static int connect_req(struct rpma_conn_req **req_ptr)
{
	struct rpma_conn *conn = NULL;
	int ret = rpma_conn_req_connect(req_ptr, NULL, &conn);

	assert_null(conn);
	return ret;
}

static int reject_req(struct rpma_conn_req **req_ptr)
{
	return rpma_conn_req_reject(req_ptr, NULL);
}

MOCK_TEST(req__INHERITED)
{
	end_req(rpma_conn_req_delete);
	end_req(connect_req);
	end_req(reject_req);
}

/* What flushes natively has no buffer. */
MOCK_TEST(flush__abandoned_TWICE)
{
	struct rpma__flush *flush = NULL;

	rpma__flush_abandon(&flush);
	assert_null(flush);
	expect_trace("");
}

/* The connections of a peer share the bytes that a flush reads. */
MOCK_TEST(flush__abandoned_BYTES_STAY_FOR_THE_OTHER)
{
	struct rpma__flush *flush = NULL;
	struct rpma__flush *other = NULL;
	struct ibv_mr *raw;
	struct ibv_pd *pd;

	world_peer();
	pd = world.peer->pd;
	ok(rpma__flush_new(world.peer, NULL, &flush));
	ok(rpma__flush_new(world.peer, NULL, &other));
	raw = mock_mr;
	become_child();
	rpma__flush_abandon(&flush);
	assert_null(flush);
	memset(other->raw, 1, 8);
	rpma__flush_abandon(&other);
	refused(rpma_peer_delete(&world.peer));
	expect_trace("");
	ok(ibv_dereg_mr(raw));
	ok(ibv_dealloc_pd(pd));
}

TEST_MAIN()
