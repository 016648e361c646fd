/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * remote_end.c -- connections between two processes with trouble: refused
 * operations, missing peers, leaving peers, ended processes.
 */

#include "meet.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SENDER, RECEIVER };

#define HALF (MEET_SIZE / 2)

static const struct meet_opts patient = {.rnr_retry = 7};
static const struct meet_opts hasty = {.rnr_retry = 1};
static const struct meet_opts endless = {.rnr_retry = 7, .is_endless = 1};

static void post(struct meet *m, enum ibv_wr_opcode opcode, uint64_t id,
		 uint32_t length)
{
	assert_int_equal(meet_post(m, opcode, id, 0, length, 0, 0), 0);
}

static void move_to(struct meet *m, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};

	assert_int_equal(ibv_modify_qp(m->end.qp, &attr, IBV_QP_STATE), 0);
}

static void expect_async(struct meet *m, enum ibv_event_type type)
{
	struct ibv_async_event event;

	assert_int_equal(ibv_get_async_event(m->end.ctx, &event), 0);
	assert_int_equal(event.event_type, type);
	ibv_ack_async_event(&event);
}

/* --- refused */

/* Fails a message in parts, of which none moves a byte of the other memory. */
static void fail_once(const struct two_process *self, enum ibv_wr_opcode opcode,
		      uint32_t length, int is_bad_key,
		      enum ibv_wc_status status)
{
	struct meet m = {0};

	meet_begin(&m, self, &patient);
	if (is_bad_key)
		m.other.rkey ^= 2;
	assert_int_equal(meet_recv(&m, 5, HALF, 100), 0);
	two_wait(self);
	if (self->number == SENDER) {
		memset(m.mem, 1, length);
		post(&m, opcode, 1, length);
		post(&m, IBV_WR_SEND, 2, 8);
		end_expect(&m.end, 1, status);
		for (int i = 0; i < 2; i++)
			assert_int_equal(end_wait(&m.end).status,
					 IBV_WC_WR_FLUSH_ERR);
	} else {
		end_expect(&m.end, 5,
			   is_bad_key ? IBV_WC_WR_FLUSH_ERR
				      : IBV_WC_LOC_LEN_ERR);
		/* the first part says where the last would be */
		for (uint32_t i = 0; i < length; i++)
			assert_int_equal(m.mem[i], 0);
	}
	two_wait(self);
	meet_end(&m);
}

static void write_with_bad_key(const struct two_process *self)
{
	fail_once(self, IBV_WR_RDMA_WRITE, 100000, 1, IBV_WC_REM_ACCESS_ERR);
}

static void send_too_much(const struct two_process *self)
{
	fail_once(self, IBV_WR_SEND, 100000, 0, IBV_WC_REM_INV_REQ_ERR);
}

/*
 * Sends memory that the requester must not read: the send fails, after earlier
 * successes.
 */
static void send_what_is_not_mine(const struct two_process *self)
{
	struct meet m = {0};

	meet_begin(&m, self, &patient);
	assert_int_equal(meet_recv(&m, 1, HALF, 100000), 0);
	two_wait(self);
	if (self->number == SENDER) {
		post(&m, IBV_WR_SEND, 2, 100000);
		m.mr->lkey ^= 2;
		post(&m, IBV_WR_SEND, 3, 100000);
		m.mr->lkey ^= 2;
		end_expect(&m.end, 2, IBV_WC_SUCCESS);
		end_expect(&m.end, 3, IBV_WC_LOC_PROT_ERR);
	} else {
		end_expect(&m.end, 1, IBV_WC_SUCCESS);
	}
	two_wait(self);
	meet_end(&m);
}

/* --- no peer */

/* A queue pair that is not connected yet is tried again. */
static void send_before_connected(const struct two_process *self)
{
	struct meet m = {0};

	meet_make(&m, self, &endless);
	if (self->number == SENDER) {
		meet_connect(&m, &endless);
		for (uint64_t i = 0; i < 4; i++)
			post(&m, IBV_WR_SEND, i, 40000);
	}
	two_wait(self);
	if (self->number == RECEIVER) {
		meet_connect(&m, &endless);
		for (uint64_t i = 0; i < 4; i++)
			assert_int_equal(meet_recv(&m, i, HALF, 40000), 0);
	}
	for (uint64_t i = 0; i < 4; i++)
		end_expect(&m.end, i, IBV_WC_SUCCESS);
	two_wait(self);
	meet_end(&m);
}

/* The two ends do not agree on packet numbers: no end waits for ever. */
static void send_out_of_sequence(const struct two_process *self)
{
	const struct meet_opts gap = {.rnr_retry = 7, .psn_gap = 1};
	struct meet m = {0};

	meet_begin(&m, self, &gap);
	assert_int_equal(meet_recv(&m, 1, HALF, 8), 0);
	two_wait(self);
	post(&m, IBV_WR_SEND, 2, 8);
	end_expect(&m.end, 2, IBV_WC_RETRY_EXC_ERR);
	end_expect(&m.end, 1, IBV_WC_WR_FLUSH_ERR);
	two_wait(self);
	meet_end(&m);
}

/*
 * A request without a receive belongs to an ended life: in the next life, whose
 * numbers are unexpected, no end waits for ever.
 */
static void send_out_of_sequence_after_rnr(const struct two_process *self)
{
	struct meet m = {0};

	meet_begin(&m, self, &hasty);
	if (self->number == RECEIVER)
		assert_int_equal(meet_recv(&m, 1, HALF, 8), 0);
	two_wait(self);
	if (self->number == SENDER) {
		post(&m, IBV_WR_SEND, 1, 8);
		end_expect(&m.end, 1, IBV_WC_SUCCESS);
		post(&m, IBV_WR_SEND, 2, 8);
		end_expect(&m.end, 2, IBV_WC_RNR_RETRY_EXC_ERR);
		move_to(&m, IBV_QPS_RESET);
		meet_connect(&m, &hasty);
		post(&m, IBV_WR_RDMA_WRITE, 3, 8);
		end_expect(&m.end, 3, IBV_WC_RETRY_EXC_ERR);
	}
	two_wait(self);
	meet_end(&m);
}

/* A peer whose process does not exist, or not for this connection. */
static void send_to_nobody(const struct two_process *self)
{
	uint32_t own;
	struct meet m = {0};

	meet_make(&m, self, &patient);
	own = m.end.qp->qp_num >> 16;
	/* neither of the two */
	for (uint32_t n = 1; n <= 3; n++) {
		if (n != own && n != m.other.qpn >> 16)
			m.other.qpn = n << 16 | 1;
	}
	meet_connect(&m, &patient);
	post(&m, IBV_WR_SEND, 1, 8);
	end_expect(&m.end, 1, IBV_WC_RETRY_EXC_ERR);
	two_wait(self);
	meet_end(&m);
}

/* --- once more */

/* Both are reset and connected again: nothing of the former life comes. */
static void begin_again(const struct two_process *self)
{
	struct meet m = {0};

	meet_begin(&m, self, &patient);
	for (uint32_t life = 0; life < 20; life++) {
		struct ibv_wc wc;

		for (uint64_t i = 0; i < 4; i++)
			assert_int_equal(meet_recv(&m, i, HALF, 40000), 0);
		two_wait(self);
		meet_fill(&m, 0, 40000, life);
		for (uint64_t i = 0; i < 4; i++)
			post(&m, IBV_WR_SEND, i, 40000);
		/* the first completion that comes is of this life */
		do {
			wc = end_wait(&m.end);
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
		} while (wc.opcode != IBV_WC_RECV);
		meet_check(&m, HALF, 40000, life);
		two_wait(self);
		move_to(&m, IBV_QPS_RESET);
		while (ibv_poll_cq(m.end.cq, 1, &wc))
			;
		memset(m.mem, 0xff, MEET_SIZE);
		two_wait(self);
		meet_connect(&m, &patient);
		two_wait(self);
	}
	meet_end(&m);
}

/* SQ_DRAINED comes when all sends are answered. */
static void drain_sends(const struct two_process *self)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD,
				   .en_sqd_async_notify = 1};
	struct meet m = {0};

	meet_begin(&m, self, &patient);
	if (self->number == SENDER) {
		post(&m, IBV_WR_RDMA_WRITE, 1, HALF);
		assert_int_equal(
			ibv_modify_qp(m.end.qp, &attr,
				      IBV_QP_STATE |
					      IBV_QP_EN_SQD_ASYNC_NOTIFY),
			0);
		expect_async(&m, IBV_EVENT_SQ_DRAINED);
		end_expect(&m.end, 1, IBV_WC_SUCCESS);
		post(&m, IBV_WR_RDMA_WRITE, 2, 8);
		move_to(&m, IBV_QPS_RTS);
		end_expect(&m.end, 2, IBV_WC_SUCCESS);
	}
	two_wait(self);
	meet_end(&m);
}

/* --- a message that is cut off */

#define LONG  2000000u /* more than is under way at once */
#define SHORT 300000u  /* in parts, and a part begins where LONG stops */

static const struct meet_opts unreliable = {.is_uc = 1};

/* Returns true if all threads of the process stand still. */
static int is_stopped(pid_t pid)
{
	char path[300], line[200], *state;
	int threads = 0, stopped = 0;
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		FILE *file;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%s/stat", (int)pid,
			 entry->d_name);
		file = fopen(path, "r");
		assert_non_null(file);
		assert_non_null(fgets(line, sizeof(line), file));
		fclose(file);
		state = strrchr(line, ')'); /* behind the name */
		assert_non_null(state);
		threads++;
		stopped += state[2] == 'T';
	}
	closedir(dir);
	return threads == stopped;
}

/* A SEND with a receive; the beginning of a WRITE; a SEND without a receive. */
static void send_and_cut_off(struct meet *m, pid_t other)
{
	memset(m->mem, 1, SHORT);
	post(m, IBV_WR_SEND, 1, SHORT);
	end_expect(&m->end, 1, IBV_WC_SUCCESS);
	two_wait(m->self);
	kill(other, SIGSTOP);
	while (!is_stopped(other))
		poll(NULL, 0, 1);
	post(m, IBV_WR_RDMA_WRITE, 2, LONG);
	move_to(m, IBV_QPS_RESET);
	meet_connect(m, &unreliable);
	memset(m->mem, 2, SHORT);
	post(m, IBV_WR_SEND, 3, SHORT);
	kill(other, SIGCONT);
	end_expect(&m->end, 3, IBV_WC_SUCCESS);
	m->mem[0] = 3; /* after everything else */
	assert_int_equal(
		meet_post(m, IBV_WR_RDMA_WRITE, 4, 0, 1, MEET_SIZE - 1, 0), 0);
	end_expect(&m->end, 4, IBV_WC_SUCCESS);
}

/* A completed receive belongs to the program, and does not complete again. */
static void cut_off_a_write(const struct two_process *self)
{
	struct meet m = {0};
	pid_t pid = getpid(), other;
	struct ibv_wc wc;

	meet_begin(&m, self, &unreliable);
	two_swap(self, &pid, &other, sizeof(pid));
	if (self->number == RECEIVER)
		assert_int_equal(meet_recv(&m, 1, HALF, SHORT), 0);
	two_wait(self);
	if (self->number == SENDER) {
		send_and_cut_off(&m, other);
	} else {
		const _Atomic uint8_t *last =
			(const _Atomic uint8_t *)(m.mem + MEET_SIZE - 1);

		end_expect(&m.end, 1, IBV_WC_SUCCESS);
		memset(m.mem + HALF, 0, SHORT);
		two_wait(self);
		/* acquire: written by the other process, through the device */
		while (!atomic_load_explicit(last, memory_order_acquire))
			;
		assert_int_equal(ibv_poll_cq(m.end.cq, 1, &wc), 0);
		for (uint32_t i = 0; i < SHORT; i++)
			assert_int_equal(m.mem[HALF + i], 0);
	}
	two_wait(self);
	meet_end(&m);
}

/* --- a region goes */

#define AREA 200000u

/* After ibv_dereg_mr() not a byte moves, though the other goes on writing. */
static void write_to_dying_region(const struct two_process *self)
{
	struct meet m = {0};
	struct ibv_wc wc = {0};

	meet_begin(&m, self, &patient);
	memset(m.mem, self->number == SENDER, AREA);
	two_wait(self);
	while (self->number == SENDER && wc.status == IBV_WC_SUCCESS) {
		post(&m, IBV_WR_RDMA_WRITE, 1, AREA);
		wc = end_wait(&m.end);
	}
	if (self->number == SENDER) {
		assert_int_equal(wc.status, IBV_WC_REM_ACCESS_ERR);
	} else {
		const _Atomic uint64_t *end =
			(const _Atomic uint64_t *)(void *)(m.mem + AREA) - 1;

		/* acquire: written by the other process, through the device */
		while (!atomic_load_explicit(end, memory_order_acquire))
			;
		assert_int_equal(ibv_dereg_mr(m.mr), 0);
		m.mr = NULL;
		memset(m.mem, 7, AREA);
		expect_async(&m, IBV_EVENT_QP_ACCESS_ERR);
		for (uint32_t i = 0; i < AREA; i++)
			assert_int_equal(m.mem[i], 7);
	}
	two_wait(self);
	meet_end(&m);
}

/* --- the other process ends */

static void send_to_killed(const struct two_process *self)
{
	struct meet m = {0};

	meet_begin(&m, self, &patient);
	if (self->number == RECEIVER) {
		assert_int_equal(meet_recv(&m, 1, HALF, 8), 0);
		end_expect(&m.end, 1, IBV_WC_SUCCESS);
		/* the answer to the first send is on its way until then */
		two_wait(self);
		raise(SIGKILL);
	}
	post(&m, IBV_WR_SEND, 1, 8);
	for (uint64_t i = 2; i < 10; i++)
		post(&m, IBV_WR_SEND, i, 100000);
	end_expect(&m.end, 1, IBV_WC_SUCCESS);
	two_wait(self);
	end_expect(&m.end, 2, IBV_WC_RETRY_EXC_ERR);
	for (uint64_t i = 3; i < 10; i++)
		end_expect(&m.end, i, IBV_WC_WR_FLUSH_ERR);
	meet_end(&m);
}

/* Everything published before the end has arrived. */
static void receive_from_killed(const struct two_process *self)
{
	struct meet m = {0};

	meet_begin(&m, self, &patient);
	if (self->number == RECEIVER) {
		for (uint64_t i = 0; i < 9; i++)
			assert_int_equal(meet_recv(&m, i, HALF, 8), 0);
		two_wait(self);
		for (uint64_t i = 0; i < 9; i++)
			end_expect(&m.end, i, IBV_WC_SUCCESS);
		meet_end(&m);
		return;
	}
	two_wait(self);
	/* after the answer, posted work no longer waits */
	post(&m, IBV_WR_SEND, 0, 8);
	end_expect(&m.end, 0, IBV_WC_SUCCESS);
	for (uint64_t i = 1; i < 9; i++)
		post(&m, IBV_WR_SEND, i, 8);
	raise(SIGKILL);
}

/* A stopped process is waited for, with any number of tries. */
static void send_to_stopped(const struct two_process *self)
{
	struct meet m = {0};
	pid_t pid = getpid(), other;

	meet_begin(&m, self, &patient);
	two_swap(self, &pid, &other, sizeof(pid));
	if (self->number == RECEIVER) {
		for (uint64_t i = 0; i < 8; i++)
			assert_int_equal(meet_recv(&m, i, HALF, 100000), 0);
		two_wait(self);
		for (uint64_t i = 0; i < 8; i++)
			end_expect(&m.end, i, IBV_WC_SUCCESS);
	} else {
		two_wait(self);
		kill(other, SIGSTOP);
		for (uint64_t i = 0; i < 8; i++)
			post(&m, IBV_WR_SEND, i, 100000);
		/* longer than all tries of a silent peer */
		assert_int_equal(poll(NULL, 0, 400), 0);
		kill(other, SIGCONT);
		for (uint64_t i = 0; i < 8; i++)
			end_expect(&m.end, i, IBV_WC_SUCCESS);
	}
	two_wait(self);
	meet_end(&m);
}

/* --- the tests */

static void run(two_body_fn *body)
{
	struct two_process p[2] = {0};

	two_run(p, body);
	assert_string_equal(p[0].said, "");
	assert_string_equal(p[1].said, "");
}

static void run_killed(two_body_fn *body, int who)
{
	struct two_process p[2] = {0};

	p[who].signal = SIGKILL;
	two_run(p, body);
}

/* --- a link that ends, while its processes live */

/*
 * Asserts that some requests have arrived, one is silent, the rest is flushed.
 */
static void expect_break(struct meet *m)
{
	struct ibv_wc wc = end_wait(&m->end);
	uint64_t id = 0;

	for (; wc.status == IBV_WC_SUCCESS; wc = end_wait(&m->end))
		assert_int_equal(wc.wr_id, id++);
	assert_in_range(id, 0, 4);
	assert_int_equal(wc.wr_id, id++);
	assert_int_equal(wc.status, IBV_WC_RETRY_EXC_ERR);
	while (id < 8)
		end_expect(&m->end, id++, IBV_WC_WR_FLUSH_ERR);
}

static void break_and_connect_again(const struct two_process *self)
{
	struct meet m = {0};

	meet_begin(&m, self, &patient);
	if (self->number == SENDER) {
		assert_int_equal(rpma_loopback_fault("link:action=break,nth=5"),
				 0);
		for (uint64_t i = 0; i < 8; i++)
			post(&m, IBV_WR_RDMA_WRITE, i, 8);
		expect_break(&m);
		assert_int_equal(rpma_loopback_fault_count(), 1);
		rpma_loopback_fault_clear();
	}
	two_wait(self);
	move_to(&m, IBV_QPS_RESET);
	two_wait(self);
	meet_connect(&m, &patient);
	two_wait(self);
	post(&m, IBV_WR_RDMA_WRITE, 9, 50000);
	end_expect(&m.end, 9, IBV_WC_SUCCESS);
	two_wait(self);
	meet_end(&m);
}

TEST(break__is_SILENCE_AND_A_NEW_LINK_COMES)
{
	struct two_process p[2] = {0};

	two_run(p, break_and_connect_again);
}

TEST(write__bad_key_REM_ACCESS_ERR)
{
	run(write_with_bad_key);
}

TEST(send__too_long_BOTH_FAIL)
{
	run(send_too_much);
}

TEST(send__bad_lkey_FAILS_BEHIND_THOSE_BEFORE)
{
	run(send_what_is_not_mine);
}

TEST(send__before_it_is_connected_ARRIVES)
{
	run(send_before_connected);
}

TEST(psn__another_one_RETRY_EXC_ERR)
{
	run(send_out_of_sequence);
}

TEST(psn__another_one_after_rnr_RETRY_EXC_ERR)
{
	run(send_out_of_sequence_after_rnr);
}

TEST(reset__both_AGAIN_AND_NOTHING_OLD_COMES)
{
	run(begin_again);
}

TEST(uc__cut_off_write_NO_RECEIVE_COMPLETES_TWICE)
{
	run(cut_off_a_write);
}

TEST(sqd__DRAINED_WHEN_ANSWERED)
{
	run(drain_sends);
}

TEST(dereg__under_remote_writes_NOTHING_MOVES_AFTER)
{
	run(write_to_dying_region);
}

TEST(stopped__IS_WAITED_FOR)
{
	run(send_to_stopped);
}

TEST(nobody__RETRY_EXC_ERR)
{
	struct two_process p[2] = {0};

	two_run(p, send_to_nobody);
}

TEST(killed__receiver_SENDS_FAIL_IN_ORDER)
{
	run_killed(send_to_killed, RECEIVER);
}

TEST(killed__sender_WHAT_IT_PUBLISHED_COMES)
{
	run_killed(receive_from_killed, SENDER);
}

TEST_MAIN()
