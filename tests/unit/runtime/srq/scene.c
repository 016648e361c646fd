/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* scene.c -- see scene.h. */

#include "scene.h"

#include <string.h>

int scene_setup(void **state)
{
	static struct scene scene;
	struct scene *s = &scene;
	int ret = fake_setup(state);

	if (ret)
		return ret;
	memset(s, 0, sizeof(*s));
	s->f = *state;
	ok(rpma_rt_queue_new(s->f->rt, NULL, &s->queue));
	s->cfg = (struct rpma_rt_srq_cfg)RPMA_RT_SRQ_CFG_INIT;
	s->cfg.peer = &fake_peer;
	s->cfg.queue = s->queue;
	s->cfg.user = s;
	s->cfg.srq_size = SIZE;
	s->cfg.waiting = RPMA_RT_NO_WAITING;
	*state = s;
	return 0;
}

void scene_srq(struct scene *s)
{
	ok(rpma_rt_srq_new(s->f->rt, &s->cfg, &s->srq));
	s->f->rt_cfg.srqs = &s->srq;
	s->f->rt_cfg.srq_count = 1;
}

void scene_delete(struct scene *s, int out)
{
	struct fake *f = s->f;
	int i;

	f->rt_cfg.srq_count = 0;
	ok(rpma_rt_srq_delete(&s->srq));
	assert_null(s->srq);
	assert_int_equal(fake_take(f, s->queue), out + 1);
	for (i = 0; i < out; i++) {
		assert_int_equal(f->items[i].kind, RPMA_RT_COMPLETION);
		assert_int_equal(f->items[i].status, IBV_WC_GENERAL_ERR);
		assert_int_equal(f->items[i].flags, RPMA_RT_C_SYNTHESIZED);
		assert_ptr_equal(f->items[i].user, s);
	}
	assert_int_equal(f->items[out].kind, RPMA_RT_EVENT);
	assert_int_equal(f->items[out].opcode, RPMA_RT_EVENT_SRQ_CLOSED);
}

int srq_setup(void **state)
{
	int ret = scene_setup(state);

	if (ret == 0)
		scene_srq(*state);
	return ret;
}

int scene_teardown(void **state)
{
	struct scene *s = *state;
	void *f = s->f;

	if (s->srq != NULL)
		scene_delete(s, 0);
	ok(rpma_rt_queue_delete(&s->queue));
	return fake_teardown(&f);
}

int scene_post(const struct scene *s, uint64_t context)
{
	return rpma_rt_srq_recv(s->srq, NULL, 0, 0, context);
}

void scene_post_many(const struct scene *s, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		ok(scene_post(s, 100 + i));
}

void scene_complete(struct scene *s, const struct rpma_rt_conn *conn,
		    uint32_t from, uint32_t count)
{
	uint32_t i;

	for (i = from; i < from + count; i++)
		fake_srq_wc(conn, s->srq, i, IBV_WC_SUCCESS);
	fake_round(s->f);
}

void scene_drop(const struct scene *s)
{
	fake_take(s->f, s->f->queue);
}

void scene_expect(const struct fake *f, int i, uint64_t context,
		  enum ibv_wc_status status)
{
	assert_true(i < f->got);
	assert_int_equal(f->items[i].kind, RPMA_RT_COMPLETION);
	assert_int_equal(f->items[i].context, context);
	assert_int_equal(f->items[i].status, status);
}

void scene_sq_marker(struct rpma_rt_conn *conn)
{
	fake_wc(conn->cq, rt_wr_id_internal(RT_SQ_MARKER, conn->slot),
		IBV_WC_WR_FLUSH_ERR, IBV_WC_DRIVER1, conn->qp_num);
}

void scene_bury_in(struct fake *f, struct rpma_rt_conn **conn,
		   struct rpma_rt_queue *queue)
{
	ok(rpma_rt_conn_close(*conn));
	fake_finish_down(f);
	assert_int_equal(fake_qp(*conn)->rq_count, 0);
	assert_int_equal((*conn)->ctl.markers_due,
			 1u << RPMA_RT_SEND_SIDE | RT_MARK_LAST_WQE);
	scene_sq_marker(*conn);
	fake_last_wqe(*conn);
	fake_finish_down(f);
	assert_true(fake_take(f, queue) > 0);
	assert_int_equal(f->items[f->got - 1].opcode, RPMA_RT_EVENT_CLOSED);
	ok(rpma_rt_conn_unref(conn));
}

void scene_bury(struct fake *f, struct rpma_rt_conn **conn)
{
	scene_bury_in(f, conn, f->queue);
}
