/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * remote_fork.c -- a process forks while its other thread loads a queue pair of
 * another process. In each child the objects of the parent are dead: calls on
 * them say so, return an error and never wait; they can be destroyed, and the
 * child's own objects work.
 */

#include "meet.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_S 300 /* ends a hang, decides nothing else */
#define LOAD	   4   /* writes and reads under way */
#define SHORT	   20  /* forks, of which two_run() keeps all words */

static unsigned forks = SHORT;
static _Atomic int is_over;

static bool goes_on(void)
{
	/* relaxed: the word orders nothing */
	return !atomic_load_explicit(&is_over, memory_order_relaxed);
}

static void post_one(struct meet *m, unsigned i)
{
	assert_int_equal(meet_post(m,
				   i % 2 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
				   1, 0, i % 3 ? 64 : 65536, MEET_SIZE / 2, 0),
			 0);
}

static void *load(void *arg)
{
	struct meet *m = arg;
	unsigned posted = 0, done = 0;
	struct ibv_wc wc;

	while (goes_on() || done != posted) {
		while (posted - done < LOAD && goes_on())
			post_one(m, posted++);
		if (ibv_poll_cq(m->end.cq, 1, &wc) != 1)
			continue;
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		done++;
	}
	return NULL;
}

/* --- the child, which ends with the number of the line that was wrong */

#define need(condition)                            \
	do {                                       \
		if (!(condition))                  \
			_exit(is_wrong(__LINE__)); \
	} while (0)

static int is_wrong(int line)
{
	return 1 + line % 254;
}

static void use_dead(struct meet *m)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_qp_init_attr init;
	struct ibv_cq *cq;
	void *context;
	struct ibv_wc wc;

	need(ibv_poll_cq(m->end.cq, 1, &wc) < 0);
	need(meet_post(m, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, 0) == EINVAL);
	need(meet_recv(m, 1, 0, 8) == EINVAL);
	need(ibv_req_notify_cq(m->end.cq, 0) == EINVAL);
	need(ibv_get_cq_event(m->end.channel, &cq, &context) < 0);
	need(ibv_modify_qp(m->end.qp, &attr, IBV_QP_STATE));
	need(ibv_query_qp(m->end.qp, &attr, IBV_QP_STATE, &init));
	need(ibv_resize_cq(m->end.cq, 100));
}

static void destroy_dead(struct meet *m)
{
	need(!ibv_destroy_qp(m->end.qp));
	need(!ibv_destroy_cq(m->end.cq));
	need(!ibv_destroy_comp_channel(m->end.channel));
	need(!ibv_dereg_mr(m->mr));
	need(!ibv_dereg_mr(m->end.mr));
	need(!ibv_dealloc_pd(m->end.pd));
	need(!ibv_close_device(m->end.ctx));
}

static void use_own(void)
{
	struct pair *p = pair_new(0);

	need(!end_recv(&p->b, 1, 0, 8));
	need(!end_send(&p->a, 2, 0, 8));
	need(!end_wait(&p->b).status);
	need(!end_wait(&p->a).status);
	pair_delete(p);
}

static void be_child(struct meet *m, unsigned i)
{
	alarm(PATIENCE_S);
	if (i % 4 == 1)
		use_dead(m);
	if (i % 4 == 2)
		destroy_dead(m);
	if (i % 4 >= 2)
		use_own();
	_exit(0);
}

/* --- the parent */

static void fork_one(struct meet *m, unsigned i)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		be_child(m, i);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void busy_parent(const struct two_process *self)
{
	const struct meet_opts opts = {.rnr_retry = 7};
	struct meet m;
	pthread_t thread;

	meet_begin(&m, self, &opts);
	if (self->number == 0) {
		assert_int_equal(pthread_create(&thread, NULL, load, &m), 0);
		for (unsigned i = 0; i < forks; i++)
			fork_one(&m, i);
		/* relaxed: as in goes_on() */
		atomic_store_explicit(&is_over, 1, memory_order_relaxed);
		assert_int_equal(pthread_join(thread, NULL), 0);
	}
	two_wait(self);
	meet_end(&m);
}

TEST(fork__of_a_busy_parent_OBJECTS_ARE_DEAD)
{
	struct two_process p[2] = {{0}};

	/* the child starts threads: the thread sanitizer ends such a child, and
	 * the address sanitizer's allocator may be locked there for ever */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
	print_message("skipped: sanitizers forbid threads behind a fork\n");
	skip();
#endif
	two_run(p, busy_parent);
	if (forks > SHORT)
		return;
	assert_int_equal(two_count(&p[0], "queue pair 0x"), forks / 4);
	assert_int_equal(two_count(&p[0], "completion queue 0x"), forks / 4);
	assert_int_equal(two_count(&p[0], "completion channel 0x"), forks / 4);
}

/* --- a signal handler forks, inside the drain of a request */

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)

#define PAGE 4096u

static uint8_t *guarded; /* a page of the memory */

static void fork_and_unguard(int sig)
{
	int status;
	pid_t pid = fork();

	(void)sig;
	if (!pid)
		_exit(0);
	if (waitpid(pid, &status, 0) != pid || status ||
	    mprotect(guarded, PAGE, PROT_READ | PROT_WRITE))
		_exit(2);
}

static void guarded_process(const struct two_process *self)
{
	const struct sigaction action = {.sa_handler = fork_and_unguard};
	const struct meet_opts opts = {.rnr_retry = 7};
	uint8_t *at;
	uint64_t offset;
	struct meet m;

	assert_int_equal(sigaction(SIGSEGV, &action, NULL), 0);
	meet_begin(&m, self, &opts);
	at = m.mem + PAGE;
	guarded = at - (uintptr_t)at % PAGE;
	if (self->number == 0)
		assert_int_equal(mprotect(guarded, PAGE, PROT_NONE), 0);
	offset = (uint64_t)(guarded - m.mem);
	two_swap(self, &offset, &offset, sizeof(offset));
	if (self->number == 1) {
		m.mem[0] = 8;
		assert_int_equal(meet_post(&m, IBV_WR_RDMA_WRITE, 1, 0, 1,
					   (uint32_t)offset, 0),
				 0);
		end_expect(&m.end, 1, IBV_WC_SUCCESS);
	}
	two_wait(self);
	if (self->number == 0)
		assert_int_equal(*guarded, 8);
	meet_end(&m);
}

TEST(fork__in_a_handler_inside_a_drain_GOES_ON)
{
	struct two_process p[2] = {{0}};

	two_run(p, guarded_process);
}

#endif

/* usage: [FORKS] */
int main(int argc, char **argv)
{
	if (argc > 1)
		forks = (unsigned)strtoul(argv[1], NULL, 10);
	return tests_run(NULL, NULL);
}
