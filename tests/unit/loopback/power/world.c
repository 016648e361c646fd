/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* world.c -- see world.h. */

#include "world.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_SEEDS 64 /* the chance that an outcome never comes is 1 in 10^7 */

#ifdef RPMA_HAVE_NATIVE_FLUSH
#define FLUSH_ACCESS (IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT)
#define NATIVE_OPS   (IBV_QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_ATOMIC_WRITE)
#else
#define FLUSH_ACCESS 0
#define NATIVE_OPS   0
#endif

#define ACCESS                                              \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
	 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

unsigned world_seeds = 6;

/* The thread sanitizer does not see the order between two processes. */
#ifdef __SANITIZE_THREAD__
#define IS_TSAN 1
#else
#define IS_TSAN 0
#endif

static const struct scenario *current;
static struct world world; /* of this run */
static char path[64];

/* --- requests */

struct ibv_send_wr request_of(enum ibv_wr_opcode opcode, struct ibv_sge *piece)
{
	return (struct ibv_send_wr){
		.wr_id = 1,
		.sg_list = piece,
		.num_sge = piece->length ? 1 : 0,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
	};
}

void link_lead(const struct link *l, struct ibv_send_wr *wr, uint32_t at)
{
	if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	    wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr->wr.atomic.remote_addr = l->addr + at;
		wr->wr.atomic.rkey = l->rkey;
	} else {
		wr->wr.rdma.remote_addr = l->addr + at;
		wr->wr.rdma.rkey = l->rkey;
	}
}

void end_run(const struct end *end, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	assert_int_equal(ibv_post_send(end->qp, wr, &bad), 0);
	end_expect(end, 1, IBV_WC_SUCCESS);
}

void link_post(struct link *l, enum ibv_wr_opcode opcode, uint32_t at,
	       uint32_t len, unsigned version)
{
	struct ibv_sge sge = {(uintptr_t)l->end->buf + at, len,
			      l->end->mr->lkey};
	struct ibv_send_wr wr = request_of(opcode, &sge);

	if (opcode != IBV_WR_RDMA_READ)
		bytes_fill(l->end->buf, at, len, version);
	link_lead(l, &wr, at);
	end_run(l->end, &wr);
}

static uint64_t word_of(uint32_t at, unsigned version)
{
	static uint8_t bytes[FILE_SIZE];
	uint64_t word;

	bytes_fill(bytes, at, sizeof(word), version);
	memcpy(&word, bytes + at, sizeof(word));
	return word;
}

void link_atomic(struct link *l, enum ibv_wr_opcode opcode, uint32_t at)
{
	uint64_t before = word_of(at, 0), after = word_of(at, 1);
	struct ibv_sge sge = {(uintptr_t)l->end->buf, 8, l->end->mr->lkey};
	struct ibv_send_wr wr = request_of(opcode, &sge);

	link_lead(l, &wr, at);
	wr.wr.atomic.compare_add =
		opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? before : after - before;
	wr.wr.atomic.swap = after;
	end_run(l->end, &wr);
}

void link_write(struct link *l, uint32_t at, uint32_t len, unsigned version)
{
	link_post(l, IBV_WR_RDMA_WRITE, at, len, version);
}

void link_read(struct link *l, uint32_t len)
{
	link_post(l, IBV_WR_RDMA_READ, 0, len, 0);
}

/* --- the file */

static void map_file(struct world *w)
{
	const int access = current->is_native ? ACCESS | FLUSH_ACCESS : ACCESS;
	int fd = open(path, O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	w->path = path;
	w->file = mmap(NULL, FILE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		       0);
	assert_ptr_not_equal(w->file, MAP_FAILED);
	close(fd);
	for (int i = 0; i < 2; i++) {
		w->mr[i] =
			ibv_reg_mr(w->other[i]->pd, w->file, FILE_SIZE, access);
		assert_non_null(w->mr[i]);
	}
}

/* The process has the device that fails with this seed. */
static void set_environment(unsigned seed)
{
	char value[64];

	snprintf(value, sizeof(value), current->fails_at ? "%u:%llu" : "%u",
		 seed, (unsigned long long)current->fails_at);
	setenv("RPMA_LOOPBACK_POWER_FAIL", value, 1);
	setenv("RPMA_LOOPBACK_PMEM", current->is_unnamed ? "/none" : path, 1);
}

/* --- within one process */

static void near_body(const struct two_process *self)
{
	struct world *w = &world;

	if (self->number)
		return;
	for (int i = 0; i < 2; i++) {
		struct pair *pair = current->is_native ? pair_new_ex(NATIVE_OPS)
						       : pair_new(0);

		w->link[i].end = current->is_own ? &pair->b : &pair->a;
		w->other[i] = &pair->b;
		w->link[i].addr = (uintptr_t)pair->a.buf;
		w->link[i].rkey = pair->a.mr->rkey;
		bytes_fill(pair->a.buf, 0, FILE_SIZE, 1);
	}
	if (current->is_native)
		w->ex = ibv_qp_to_qp_ex(w->link[0].end->qp);
	map_file(w);
	for (int i = 0; i < 2 && !current->is_own; i++) {
		w->link[i].addr = (uintptr_t)w->file;
		w->link[i].rkey = w->mr[i]->rkey;
	}
	if (current->prepare)
		current->prepare(w);
	current->run(w);
	rpma_loopback_power_fail();
}

/* --- between two: 0 has mapped the file */

static void far_body(const struct two_process *self)
{
	static const struct meet_opts opts = {.rnr_retry = 7};
	struct {
		uint64_t addr;
		uint32_t rkey[2];
		pid_t pid;
	} mine = {.pid = getpid()}, theirs;
	struct world *w = &world;
	static struct meet meets[2];
	bool has_file = !self->number;
	bool runs = has_file == current->is_own;
	char byte;

	for (int i = 0; i < 2; i++) {
		meet_begin(&meets[i], self, &opts);
		w->other[i] = w->link[i].end = &meets[i].end;
		bytes_fill(meets[i].mem, 0, FILE_SIZE, 1);
	}
	if (has_file) {
		map_file(w);
		mine.addr = (uintptr_t)w->file;
		for (int i = 0; i < 2; i++)
			mine.rkey[i] = w->mr[i]->rkey;
	}
	if (has_file && current->prepare)
		current->prepare(w);
	two_swap(self, &mine, &theirs, sizeof(mine));
	for (int i = 0; i < 2; i++) {
		w->link[i].addr = has_file ? meets[i].other.addr : theirs.addr;
		w->link[i].rkey =
			has_file ? meets[i].other.rkey : theirs.rkey[i];
	}
	if (runs) {
		current->run(w);
		kill(has_file ? mine.pid : theirs.pid, SIGPWR);
	}
	if (has_file)
		pause();
	(void)!read(self->socket, &byte, 1); /* until the other has gone */
}

static int run_once(unsigned seed, two_body_fn *body)
{
	struct two_process p[2] = {{.signal = SIGKILL}, {.signal = 0}};
	uint8_t bytes[FILE_SIZE];

	bytes_make_file(path);
	set_environment(seed);
	two_run(p, body);
	assert_true(two_count(&p[0], "power failed") >= 1);
	bytes_read_file(path, bytes);
	return current->judge(bytes);
}

static void expect(const struct scenario *scenario, int outcomes,
		   two_body_fn *body)
{
	int seen = 0;

	current = scenario;
	snprintf(path, sizeof(path), "/tmp/power.%d", (int)getpid());
	for (unsigned seed = 1;
	     seed <= world_seeds || (seed <= MOST_SEEDS && seen != outcomes);
	     seed++)
		seen |= run_once(seed, body);
	unlink(path);
	assert_int_equal(seen, outcomes);
}

void world_expect(const struct scenario *scenario, int outcomes)
{
	expect(scenario, outcomes, near_body);
	if (!scenario->is_near && !IS_TSAN)
		expect(scenario, outcomes, far_body);
}
