/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The owner of a CQ's channel, and the result of each call that waits for the
 * CQ or polls it: a row of the table for every owner, a column for every call,
 * and a test ROW__COLUMN for every cell.
 *
 * A call that works is tested without a completion first, then with one. A call
 * that is refused is refused with a completion there, which the channel's owner
 * still gets afterwards.
 */

#include <stdlib.h>

#include "shared_channel.h"

#include <librpma_legacy.h>

struct column {
	const char *name;
	int (*expected)(const struct row *row);
	int (*call)(struct scene *scene, int cq);
	void (*works)(struct scene *scene, int cq);
	bool of_conn; /* knows only the CQ that rpma_conn_get_cq() gives */
};

struct cell {
	const struct row *row;
	const struct column *column;
	char name[64];
};

static int cq_fd(struct scene *scene, int cq)
{
	int fd = -1;

	ok(rpma_cq_get_fd(scene->cq[cq], &fd));
	return fd;
}

static int expect_cq_wait(const struct row *row)
{
	return row->cq_wait;
}

static int call_cq_wait(struct scene *scene, int cq)
{
	return rpma_cq_wait(scene->cq[cq]);
}

static void cq_wait_works(struct scene *scene, int cq)
{
	int fd = cq_fd(scene, cq);

	set_nonblocking(fd);
	assert_int_equal(rpma_cq_wait(scene->cq[cq]), RPMA_E_NO_COMPLETION);
	scene->row->fire(scene, cq);
	wait_readable(fd);
	scene_take_by_cq_wait(scene, cq);
}

static int call_cq_wait_event(struct scene *scene, int cq)
{
	return rpma_cq_wait_event(scene->cq[cq]);
}

/* The rest of what the plain call does is the caller's. */
static void finish_wait(struct scene *scene, int cq)
{
	struct ibv_wc wc;

	ok(rpma_cq_ack(scene->cq[cq], 1));
	ok(rpma_cq_arm(scene->cq[cq], false));
	ok(rpma_cq_get_wc(scene->cq[cq], 1, &wc, NULL));
	scene_expect_wc(scene, cq, &wc);
}

static void cq_wait_event_works(struct scene *scene, int cq)
{
	int fd = cq_fd(scene, cq);

	set_nonblocking(fd);
	assert_int_equal(call_cq_wait_event(scene, cq), RPMA_E_NO_COMPLETION);
	scene->row->fire(scene, cq);
	wait_readable(fd);
	ok(call_cq_wait_event(scene, cq));
	finish_wait(scene, cq);
}

static int expect_conn_wait(const struct row *row)
{
	return row->conn_wait;
}

static int call_conn_wait(struct scene *scene, int cq)
{
	struct rpma_cq *fired = NULL;

	(void)cq;
	return rpma_conn_wait(scene->conn, 0, &fired, NULL);
}

static void conn_wait_works(struct scene *scene, int cq)
{
	int fd = -1;

	ok(rpma_conn_get_compl_fd(scene->conn, &fd));
	set_nonblocking(fd);
	assert_int_equal(call_conn_wait(scene, cq), RPMA_E_NO_COMPLETION);
	scene->row->fire(scene, cq);
	wait_readable(fd);
	scene_take_by_conn_wait(scene, cq);
}

static int call_conn_wait_event(struct scene *scene, int cq)
{
	struct rpma_cq *fired = NULL;

	(void)cq;
	return rpma_conn_wait_event(scene->conn, &fired, NULL);
}

static void conn_wait_event_works(struct scene *scene, int cq)
{
	struct rpma_cq *fired = NULL;
	bool is_rcq = !scene->is_rcq[cq];
	int fd = -1;

	ok(rpma_conn_get_compl_fd(scene->conn, &fd));
	set_nonblocking(fd);
	assert_int_equal(call_conn_wait_event(scene, cq), RPMA_E_NO_COMPLETION);
	scene->row->fire(scene, cq);
	wait_readable(fd);
	ok(rpma_conn_wait_event(scene->conn, &fired, &is_rcq));
	assert_ptr_equal(fired, scene->cq[cq]);
	assert_int_equal(is_rcq, scene->is_rcq[cq]);
	finish_wait(scene, cq);
}

static int expect_cq_get_fd(const struct row *row)
{
	return row->cq_get_fd;
}

static int call_cq_get_fd(struct scene *scene, int cq)
{
	int fd = -1;

	return rpma_cq_get_fd(scene->cq[cq], &fd);
}

/* It is the fd of this CQ's channel: readable when that has an event. */
static void fd_works(struct scene *scene, int cq, int fd)
{
	assert_false(is_readable(fd));
	scene->row->fire(scene, cq);
	wait_readable(fd);
	scene->row->take(scene, cq);
	assert_false(is_readable(fd));
}

static void cq_get_fd_works(struct scene *scene, int cq)
{
	fd_works(scene, cq, cq_fd(scene, cq));
}

static int expect_compl_fd(const struct row *row)
{
	return row->conn_get_compl_fd;
}

static int call_compl_fd(struct scene *scene, int cq)
{
	int fd = -1;

	(void)cq;
	return rpma_conn_get_compl_fd(scene->conn, &fd);
}

static void compl_fd_works(struct scene *scene, int cq)
{
	int fd = -1;

	ok(rpma_conn_get_compl_fd(scene->conn, &fd));
	assert_int_equal(fd, cq_fd(scene, cq));
	fd_works(scene, cq, fd);
}

static int expect_cq_get_wc(const struct row *row)
{
	return row->cq_get_wc;
}

static int call_cq_get_wc(struct scene *scene, int cq)
{
	struct ibv_wc wc;

	return rpma_cq_get_wc(scene->cq[cq], 1, &wc, NULL);
}

static void cq_get_wc_works(struct scene *scene, int cq)
{
	struct ibv_wc wc;
	int ret;

	assert_int_equal(call_cq_get_wc(scene, cq), RPMA_E_NO_COMPLETION);
	scene->row->fire(scene, cq);
	do
		ret = rpma_cq_get_wc(scene->cq[cq], 1, &wc, NULL);
	while (ret == RPMA_E_NO_COMPLETION);
	ok(ret);
	scene_expect_wc(scene, cq, &wc);
}

/* --- the calls of before 1.0 */

static void expect_completion(const struct scene *scene, int cq,
			      const struct rpma_completion *cmpl)
{
	const struct ibv_wc wc = {
		.wr_id = (uintptr_t)cmpl->op_context,
		.status = cmpl->op_status,
	};

	scene_expect_wc(scene, cq, &wc);
	assert_int_equal(cmpl->op,
			 scene->is_rcq[cq] ? RPMA_OP_RECV : RPMA_OP_SEND);
}

static int call_completion_wait(struct scene *scene, int cq)
{
	(void)cq;
	return rpma_conn_completion_wait(scene->conn);
}

static void completion_wait_works(struct scene *scene, int cq)
{
	struct rpma_completion cmpl;
	int fd = cq_fd(scene, cq);

	set_nonblocking(fd);
	assert_int_equal(call_completion_wait(scene, cq), RPMA_E_NO_COMPLETION);
	scene->row->fire(scene, cq);
	wait_readable(fd);
	ok(rpma_conn_completion_wait(scene->conn));
	ok(rpma_conn_completion_get(scene->conn, &cmpl));
	expect_completion(scene, cq, &cmpl);
}

static int call_completion_fd(struct scene *scene, int cq)
{
	int fd = -1;

	(void)cq;
	return rpma_conn_get_completion_fd(scene->conn, &fd);
}

static void completion_fd_works(struct scene *scene, int cq)
{
	int fd = -1;

	ok(rpma_conn_get_completion_fd(scene->conn, &fd));
	assert_int_equal(fd, cq_fd(scene, cq));
	fd_works(scene, cq, fd);
}

static int call_conn_get(struct scene *scene, int cq)
{
	struct rpma_completion cmpl;

	(void)cq;
	return rpma_conn_completion_get(scene->conn, &cmpl);
}

static void conn_get_works(struct scene *scene, int cq)
{
	struct rpma_completion cmpl;
	int ret;

	assert_int_equal(call_conn_get(scene, cq), RPMA_E_NO_COMPLETION);
	scene->row->fire(scene, cq);
	do
		ret = rpma_conn_completion_get(scene->conn, &cmpl);
	while (ret == RPMA_E_NO_COMPLETION);
	ok(ret);
	expect_completion(scene, cq, &cmpl);
}

static int call_cq_get(struct scene *scene, int cq)
{
	struct rpma_completion cmpl;

	return rpma_cq_get_completion(scene->cq[cq], &cmpl);
}

static void cq_get_works(struct scene *scene, int cq)
{
	struct rpma_completion cmpl;
	int ret;

	assert_int_equal(call_cq_get(scene, cq), RPMA_E_NO_COMPLETION);
	scene->row->fire(scene, cq);
	do
		ret = rpma_cq_get_completion(scene->cq[cq], &cmpl);
	while (ret == RPMA_E_NO_COMPLETION);
	ok(ret);
	expect_completion(scene, cq, &cmpl);
}

/* --- the table */

static const struct column columns[] = {
	{"cq_wait", expect_cq_wait, call_cq_wait, cq_wait_works, false},
	{"conn_completion_wait", expect_cq_wait, call_completion_wait,
	 completion_wait_works, true},
	{"conn_wait", expect_conn_wait, call_conn_wait, conn_wait_works, false},
	{"cq_wait_event", expect_cq_wait, call_cq_wait_event,
	 cq_wait_event_works, false},
	{"conn_wait_event", expect_conn_wait, call_conn_wait_event,
	 conn_wait_event_works, false},
	{"cq_get_fd", expect_cq_get_fd, call_cq_get_fd, cq_get_fd_works, false},
	{"conn_get_completion_fd", expect_cq_get_fd, call_completion_fd,
	 completion_fd_works, true},
	{"conn_get_compl_fd", expect_compl_fd, call_compl_fd, compl_fd_works,
	 false},
	{"cq_get_wc", expect_cq_get_wc, call_cq_get_wc, cq_get_wc_works, false},
	{"conn_completion_get", expect_cq_get_wc, call_conn_get, conn_get_works,
	 true},
	{"cq_get_completion", expect_cq_get_wc, call_cq_get, cq_get_works,
	 false},
};

#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

static void test_cell(void **state)
{
	const struct cell *cell = *state;
	struct scene scene = {.row = cell->row};
	int expected = cell->column->expected(cell->row);
	struct rpma_cq *main_cq = NULL;
	int i;

	cell->row->open(&scene);
	ok(rpma_conn_get_cq(scene.conn, &main_cq));
	for (i = 0; i < scene.cqs; i++) {
		if (cell->column->of_conn && scene.cq[i] != main_cq)
			continue;
		if (expected == 0) {
			cell->column->works(&scene, i);
			continue;
		}
		cell->row->fire(&scene, i);
		assert_int_equal(cell->column->call(&scene, i), expected);
		cell->row->take(&scene, i);
	}
	cell->row->close(&scene);
}

/* Every plain operation on a connection of a poller. */
static void poller_channel__every_post_SHARED_CHANNEL(void **state)
{
	const int refused = RPMA_E_SHARED_CHANNEL;
	struct scene scene = {0};
	struct rpma_mr_remote *remote = NULL;
	struct rpma_mr_local *mr;
	char *mem = aligned_alloc(PAIR_MEM, PAIR_MEM);
	struct rpma_conn *conn;
	char desc[32];

	(void)state;
	scene_open_poller(&scene);
	conn = scene.conn;
	assert_non_null(mem);
	mr = pair_reg(mem);
	ok(rpma_mr_get_descriptor(mr, desc));
	ok(rpma_mr_remote_from_descriptor(desc, sizeof(desc), &remote));
	assert_int_equal(rpma_read(conn, mr, 0, remote, 64, 8, SIGNALED, NULL),
			 refused);
	assert_int_equal(rpma_write(conn, remote, 0, mr, 64, 8, SIGNALED, NULL),
			 refused);
	assert_int_equal(rpma_write_with_imm(conn, remote, 0, mr, 64, 8,
					     SIGNALED, 1, NULL),
			 refused);
	assert_int_equal(
		rpma_atomic_write(conn, remote, 0, mem, SIGNALED, NULL),
		refused);
	assert_int_equal(rpma_flush(conn, remote, 0, 8,
				    RPMA_FLUSH_TYPE_VISIBILITY, SIGNALED, NULL),
			 refused);
	assert_int_equal(rpma_send(conn, mr, 0, 8, SIGNALED, NULL), refused);
	assert_int_equal(rpma_send_with_imm(conn, mr, 0, 8, SIGNALED, 1, NULL),
			 refused);
	assert_int_equal(rpma_recv(conn, mr, 0, 8, NULL), refused);
	scene_fire_poller(&scene, 0);
	scene_take_from_queue(&scene, 0);
	ok(rpma_mr_remote_delete(&remote));
	ok(rpma_mr_dereg(&mr));
	free(mem);
	scene_close_poller(&scene);
}

int main(void)
{
	size_t count = scene_row_count * COLUMNS;
	struct cell *cells = calloc(count, sizeof(*cells));
	struct CMUnitTest *tests = calloc(count + 1, sizeof(*tests));
	int status;
	size_t i;

	if (!cells || !tests)
		return 1;
	for (i = 0; i < count; i++) {
		struct cell *cell = &cells[i];

		cell->row = &scene_rows[i / COLUMNS];
		cell->column = &columns[i % COLUMNS];
		snprintf(cell->name, sizeof(cell->name), "%s__%s",
			 cell->row->name, cell->column->name);
		tests[i] = (struct CMUnitTest){
			.name = cell->name,
			.test_func = test_cell,
			.initial_state = cell,
		};
	}
	tests[i] = (struct CMUnitTest)cmocka_unit_test(
		poller_channel__every_post_SHARED_CHANNEL);
	status = pair_main("compat_shared_channel", tests, count + 1);
	free(tests);
	free(cells);
	return status;
}
