/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * delivery.c -- the rules of doc/protocols/power.md, by verbs: each scenario
 * runs with several seeds, within a process and between two, and all outcomes
 * that a rule allows have to come, and no other. Arguments: the number of seeds
 * at least, and a pattern of tests.
 */

#include "world.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define AT 1024u /* where most scenarios write */

static int judge_range(const uint8_t *file)
{
	return bytes_judge(file, AT, RANGE, 0, 1);
}

static int judge_word(const uint8_t *file)
{
	return bytes_judge(file, AT, 8, 0, 1);
}

static void expect_range(void (*run)(struct world *w), int outcomes)
{
	const struct scenario s = {.run = run, .judge = judge_range};

	world_expect(&s, outcomes);
}

/* --- writes */

static void write_only(struct world *w)
{
	link_write(&w->link[0], AT, RANGE, 1);
}

TEST(write__without_flush_may_be_lost_torn_or_there)
{
	expect_range(write_only, ANY);
}

static void write_unaligned(struct world *w)
{
	link_write(&w->link[0], AT + 3, 7, 1);
}

static int judge_unaligned(const uint8_t *file)
{
	assert_int_equal(bytes_judge(file, 0, AT + 3, 0, 1), LOST);
	assert_int_equal(bytes_judge(file, AT + 10, 100, 0, 1), LOST);
	return bytes_judge(file, AT + 3, 7, 0, 1);
}

TEST(write__touches_nothing_beside)
{
	const struct scenario s = {.run = write_unaligned,
				   .judge = judge_unaligned};

	world_expect(&s, ANY);
}

static void write_word(struct world *w)
{
	link_write(&w->link[0], AT, 8, 1);
}

TEST(write__of_an_aligned_word_is_never_torn)
{
	const struct scenario s = {.run = write_word, .judge = judge_word};

	world_expect(&s, LOST | THERE);
}

static void write_twice(struct world *w)
{
	link_write(&w->link[0], AT, RANGE, 1);
	link_read(&w->link[0], 8);
	link_write(&w->link[0], AT, RANGE, 2);
}

static int judge_twice(const uint8_t *file)
{
	return bytes_judge(file, AT, RANGE, 1, 2);
}

TEST(write__over_flushed_bytes_never_loses_these)
{
	const struct scenario s = {.run = write_twice, .judge = judge_twice};

	world_expect(&s, ANY);
}

/* --- READ */

static void write_read(struct world *w)
{
	link_write(&w->link[0], AT, RANGE, 1);
	link_read(&w->link[0], 8);
}

TEST(read__behind_a_write_makes_it_persistent)
{
	expect_range(write_read, THERE);
}

static void read_write(struct world *w)
{
	link_read(&w->link[0], 8);
	link_write(&w->link[0], AT, RANGE, 1);
}

TEST(read__ahead_of_a_write_does_not_help)
{
	expect_range(read_write, ANY);
}

static void write_read_other(struct world *w)
{
	link_write(&w->link[0], AT, RANGE, 1);
	link_read(&w->link[1], 8);
}

TEST(read__of_another_queue_pair_does_not_help)
{
	expect_range(write_read_other, ANY);
}

static void write_read_nothing(struct world *w)
{
	link_write(&w->link[0], AT, RANGE, 1);
	link_read(&w->link[0], 0);
}

TEST(read__of_nothing_does_not_help)
{
	expect_range(write_read_nothing, ANY);
}

/* --- two queue pairs, the same words */

static int judge_last(const uint8_t *file)
{
	return bytes_judge(file, AT, RANGE, 1, 2);
}

static void overwrite_read_last(struct world *w)
{
	link_write(&w->link[0], AT, RANGE, 1);
	link_write(&w->link[1], AT, RANGE, 2);
	link_read(&w->link[1], 8);
}

TEST(read__of_the_last_writer_keeps_the_last_value)
{
	const struct scenario s = {.run = overwrite_read_last,
				   .judge = judge_last};

	world_expect(&s, THERE);
}

static void overwrite_read_first(struct world *w)
{
	link_write(&w->link[0], AT, RANGE, 1);
	link_write(&w->link[1], AT, RANGE, 2);
	link_read(&w->link[0], 8);
}

TEST(read__of_the_first_writer_keeps_the_first_value)
{
	const struct scenario s = {.run = overwrite_read_first,
				   .judge = judge_last};

	world_expect(&s, ANY);
}

/* --- other deliveries */

static void fetch_add(struct world *w)
{
	link_atomic(&w->link[0], IBV_WR_ATOMIC_FETCH_AND_ADD, AT);
}

static void cmp_swp(struct world *w)
{
	link_atomic(&w->link[0], IBV_WR_ATOMIC_CMP_AND_SWP, AT);
}

TEST(atomic__may_be_lost_and_is_never_torn)
{
	const struct scenario add = {.run = fetch_add, .judge = judge_word};
	const struct scenario swap = {.run = cmp_swp, .judge = judge_word};

	world_expect(&add, LOST | THERE);
	world_expect(&swap, LOST | THERE);
}

static void cmp_swp_read(struct world *w)
{
	cmp_swp(w);
	link_read(&w->link[0], 8);
}

TEST(atomic__is_persistent_after_a_read)
{
	const struct scenario s = {.run = cmp_swp_read, .judge = judge_word};

	world_expect(&s, THERE);
}

static void post_receive(struct world *w)
{
	struct ibv_sge sge = {(uintptr_t)w->file + AT, RANGE, w->mr[0]->lkey};
	struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};

	assert_int_equal(ibv_post_recv(w->other[0]->qp, &wr, &bad), 0);
}

static void send_message(struct world *w)
{
	link_post(&w->link[0], IBV_WR_SEND, AT, RANGE, 1);
}

TEST(send__into_the_file_may_be_lost)
{
	const struct scenario s = {.run = send_message,
				   .prepare = post_receive,
				   .judge = judge_range};

	world_expect(&s, ANY);
}

static void send_read(struct world *w)
{
	send_message(w);
	link_read(&w->link[0], 8);
}

TEST(send__is_persistent_after_a_read)
{
	const struct scenario s = {.run = send_read,
				   .prepare = post_receive,
				   .judge = judge_range};

	world_expect(&s, THERE);
}

static void fetch(struct world *w)
{
	const struct link *l = &w->link[0];
	struct ibv_sge sge = {(uintptr_t)w->file + AT, RANGE, w->mr[0]->lkey};
	struct ibv_send_wr wr = request_of(IBV_WR_RDMA_READ, &sge);

	link_lead(l, &wr, AT);
	end_run(l->end, &wr);
}

TEST(read__brings_bytes_that_may_be_lost)
{
	const struct scenario s = {
		.run = fetch, .judge = judge_range, .is_own = true};

	world_expect(&s, ANY);
}

static void fetch_word(struct world *w)
{
	const struct link *l = &w->link[0];
	struct ibv_sge sge = {(uintptr_t)w->file + AT, 8, w->mr[0]->lkey};
	struct ibv_send_wr wr = request_of(IBV_WR_ATOMIC_FETCH_AND_ADD, &sge);

	link_lead(l, &wr, AT);
	end_run(l->end, &wr);
}

TEST(atomic__brings_a_word_that_may_be_lost)
{
	const struct scenario s = {
		.run = fetch_word, .judge = judge_word, .is_own = true};

	world_expect(&s, LOST | THERE);
}

/* Over the first 40 bytes of the receive comes the header. */
#define DATAGRAM_AT (AT - 40)

static void datagram(struct world *w)
{
	struct end *from = w->link[0].end, *to = w->other[0];
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
	struct ibv_sge sge[2] = {
		{(uintptr_t)w->file + DATAGRAM_AT, RANGE + 40, w->mr[0]->lkey},
		{(uintptr_t)from->buf + AT, RANGE, from->mr->lkey}};
	struct ibv_recv_wr *bad_recv, recv = {.sg_list = sge, .num_sge = 1};
	struct ibv_send_wr wr = request_of(IBV_WR_SEND, sge + 1);

	end_swap_qp(from, IBV_QPT_UD);
	end_swap_qp(to, IBV_QPT_UD);
	end_to_rts(from, 0);
	end_to_rts(to, 0);
	assert_int_equal(ibv_post_recv(to->qp, &recv, &bad_recv), 0);
	assert_int_equal(ibv_query_gid(from->ctx, 1, 0, &attr.grh.dgid), 0);
	wr.wr.ud.ah = ibv_create_ah(from->pd, &attr);
	assert_non_null(wr.wr.ud.ah);
	wr.wr.ud.remote_qpn = to->qp->qp_num;
	wr.wr.ud.remote_qkey = QKEY;
	bytes_fill(from->buf, AT, RANGE, 1);
	end_run(from, &wr);
	while (ibv_poll_cq(to->cq, 1, &(struct ibv_wc){0}) == 0)
		;
}

TEST(datagram__into_the_file_may_be_lost)
{
	const struct scenario s = {
		.run = datagram, .judge = judge_range, .is_near = true};

	world_expect(&s, ANY);
}

static void fetch_sync(struct world *w)
{
	fetch(w);
	assert_int_equal(msync(w->file, FILE_SIZE, MS_SYNC), 0);
}

TEST(msync__makes_delivered_bytes_persistent)
{
	const struct scenario s = {
		.run = fetch_sync, .judge = judge_range, .is_own = true};

	world_expect(&s, THERE);
}

static void fetch_sync_beside(struct world *w)
{
	fetch(w);
	assert_int_equal(msync(w->file + 4096, 4096, MS_SYNC), 0);
}

TEST(msync__of_another_range_does_not_help)
{
	const struct scenario s = {
		.run = fetch_sync_beside, .judge = judge_range, .is_own = true};

	world_expect(&s, ANY);
}

/* --- stores of the program */

static void store_then_write(struct world *w)
{
	bytes_fill(w->file, AT, RANGE, 1);
	link_write(&w->link[0], AT, RANGE, 2);
}

TEST(store__is_persistent_at_once)
{
	const struct scenario s = {
		.run = store_then_write, .is_near = true, .judge = judge_last};

	world_expect(&s, ANY);
}

/* --- the moment */

static int judge_moment(const uint8_t *file)
{
	/* the operation at which the power failed had no effect */
	assert_int_equal(bytes_judge(file, 2 * AT, RANGE, 0, 1), LOST);
	return judge_range(file);
}

static void write_read_write(struct world *w)
{
	struct link *l = &w->link[0];
	struct ibv_sge sge = {(uintptr_t)l->end->buf, RANGE, l->end->mr->lkey};
	struct ibv_send_wr *bad, wr[3];

	for (int i = 0; i < 3; i++) {
		wr[i] = request_of(
			i == 1 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, &sge);
		link_lead(l, &wr[i], i == 2 ? 2 * AT : AT);
		wr[i].next = i < 2 ? &wr[i + 1] : NULL;
		wr[i].send_flags = i < 2 ? 0 : IBV_SEND_SIGNALED;
	}
	bytes_fill(l->end->buf, AT, RANGE, 1);
	memmove(l->end->buf, l->end->buf + AT, RANGE);
	ibv_post_send(l->end->qp, wr, &bad);
	end_wait(l->end); /* between two processes: with an error */
}

static void fails_at(uint64_t operation, int outcomes)
{
	const struct scenario s = {.run = write_read_write,
				   .judge = judge_moment,
				   .fails_at = operation};

	world_expect(&s, outcomes);
}

TEST(failure__comes_at_the_named_operation)
{
	fails_at(1, LOST);
	fails_at(2, ANY);
	fails_at(3, THERE);
}

/* --- files */

TEST(write__to_a_file_that_is_not_named_stays)
{
	const struct scenario s = {
		.run = write_only, .judge = judge_range, .is_unnamed = true};

	world_expect(&s, THERE);
}

static void write_unmap(struct world *w)
{
	link_write(&w->link[0], AT, RANGE, 1);
	for (int i = 0; i < 2; i++)
		assert_int_equal(ibv_dereg_mr(w->mr[i]), 0);
	assert_int_equal(munmap(w->file, FILE_SIZE), 0);
}

TEST(write__may_be_lost_after_the_file_was_unmapped)
{
	const struct scenario s = {
		.run = write_unmap, .is_near = true, .judge = judge_range};

	world_expect(&s, ANY);
}

static void write_grow(struct world *w)
{
	struct ibv_mr *mr;
	uint8_t *more;

	link_write(&w->link[0], AT, RANGE, 1);
	assert_int_equal(truncate(w->path, 2 * FILE_SIZE), 0);
	more = mremap(w->file, FILE_SIZE, 2 * FILE_SIZE, MREMAP_MAYMOVE);
	assert_ptr_not_equal(more, MAP_FAILED);
	mr = ibv_reg_mr(w->other[0]->pd, more, 2 * FILE_SIZE,
			IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(mr);
}

TEST(write__may_be_lost_after_the_file_has_grown)
{
	const struct scenario s = {
		.run = write_grow, .is_near = true, .judge = judge_range};

	world_expect(&s, ANY);
}

/* A thread that would notice restored words, and act. */
#define MARK (2 * AT)

static void *watch(void *arg)
{
	const struct world *w = arg;
	uint8_t bytes[FILE_SIZE];

	bytes_fill(bytes, AT, RANGE, 1);
	while (!memcmp(w->file + AT, bytes + AT, RANGE))
		/* what the compiler has read is read again */
		__asm__ volatile("" ::: "memory");
	bytes_fill(w->file, MARK, RANGE, 1);
	return NULL;
}

static void write_watch(struct world *w)
{
	pthread_t thread;

	link_write(&w->link[0], AT, RANGE, 1);
	assert_int_equal(pthread_create(&thread, NULL, watch, w), 0);
}

static int judge_watched(const uint8_t *file)
{
	assert_int_equal(bytes_judge(file, MARK, RANGE, 0, 1), LOST);
	return judge_range(file);
}

TEST(failure__is_noticed_by_no_thread)
{
	const struct scenario s = {
		.run = write_watch, .judge = judge_watched, .is_near = true};

	world_expect(&s, ANY);
}

static bool is_continued; /* the next SIGSTOP is undone by another process */
/* shared with the child that ends a process: the child lives until this is 0 */
static _Atomic int *stays;

/* Replaces the function of the C library, for the device too. */
__attribute__((visibility("default"))) int kill(pid_t pid, int number)
{
	int ret = (int)syscall(SYS_kill, pid, number);

	if (number == SIGSTOP && is_continued) {
		is_continued = false;
		syscall(SYS_kill, pid, SIGCONT);
	}
	/* acquire: pairs with the release in fail_with_name() */
	while (number == SIGKILL && stays != NULL &&
	       atomic_load_explicit(stays, memory_order_acquire))
		sched_yield();
	return ret;
}

static void write_and_be_continued(struct world *w)
{
	link_write(&w->link[0], AT, RANGE, 1);
	is_continued = true;
}

TEST(failure__of_a_process_that_is_continued_ENDS_IT)
{
	const struct scenario s = {.run = write_and_be_continued,
				   .is_near = true,
				   .judge = judge_range};

	world_expect(&s, ANY);
}

/* A child has the file too, and none of the parent's volatile words. */
static void write_fork(struct world *w)
{
	int status;
	pid_t pid;

	link_write(&w->link[0], AT, RANGE, 1);
	pid = fork();
	if (pid == 0)
		rpma_loopback_power_fail();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(bytes_judge(w->file, AT, RANGE, 0, 1), THERE);
}

TEST(failure__of_a_child_leaves_its_parent)
{
	const struct scenario s = {
		.run = write_fork, .is_near = true, .judge = judge_range};

	world_expect(&s, ANY);
}

/* Returns a socket with the name, or -1: the name is in use. */
static int have_name(const char *text)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int len;

	assert_true(fd >= 0);
	len = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "%s",
		       text);
	if (!bind(fd, (struct sockaddr *)&name,
		  (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			      (size_t)len)))
		return fd;
	assert_int_equal(errno, EADDRINUSE);
	close(fd);
	return -1;
}

static void fail_with_name(struct world *w)
{
	int status, fd;
	pid_t pid;

	stays = mmap(NULL, sizeof(*stays), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(stays, MAP_FAILED);
	/* relaxed: no child is there yet */
	atomic_store_explicit(stays, 1, memory_order_relaxed);
	pid = fork();
	if (pid == 0 && have_name(w->path) >= 0)
		rpma_loopback_power_fail();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	fd = have_name(w->path);
	/* release: pairs with the load in kill() */
	atomic_store_explicit(stays, 0, memory_order_release);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_true(fd >= 0);
	close(fd);
}

/* A server starts again at the port as soon as its process has ended. */
TEST(failure__leaves_nothing_OPEN)
{
	const struct scenario s = {
		.run = fail_with_name, .is_near = true, .judge = judge_range};

	world_expect(&s, LOST);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		world_seeds = (unsigned)atoi(argv[1]);
	if (argc > 2)
		cmocka_set_test_filter(argv[2]);
	return tests_run(NULL, NULL);
}
