/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * numbers.c -- what a queue pair's number and a region's keys are made of, when
 * a number comes again, and that no two processes have the same ones.
 */

#include "fixture.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define NUMBERS 65534 /* of a process: 1 to 0xfffe */
#define KEYS	4
#define ACCESS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ)

static uint32_t number_of_next(const struct end *e)
{
	struct ibv_qp *qp = end_qp(e);
	uint32_t number = qp->qp_num;

	assert_int_equal(ibv_destroy_qp(qp), 0);
	return number;
}

FRESH(qp_number__process_above_16_BITS)
{
	struct pair *p = pair_new(0);
	uint32_t process = p->a.qp->qp_num >> 16;

	assert_in_range(process, 1, 254);
	assert_int_equal(p->b.qp->qp_num >> 16, process);
	assert_in_range(p->a.qp->qp_num & 0xffff, 1, NUMBERS);
	pair_delete(p);
}

/* A number comes again after all others that are free. */
FRESH(qp_number__again_AFTER_ALL_OTHERS)
{
	struct pair *p = pair_new(0);
	unsigned char *seen = calloc(NUMBERS + 1, 1);
	uint32_t first = 0, number;

	assert_non_null(seen);
	for (int i = 0; i < NUMBERS - 2; i++) { /* two are the pair's */
		number = number_of_next(&p->a) & 0xffff;
		assert_in_range(number, 1, NUMBERS);
		assert_false(seen[number]);
		seen[number] = 1;
		first = i ? first : number;
	}
	assert_false(seen[p->a.qp->qp_num & 0xffff]);
	assert_false(seen[p->b.qp->qp_num & 0xffff]);
	assert_int_equal(number_of_next(&p->a) & 0xffff, first);
	free(seen);
	pair_delete(p);
}

struct sample {
	uint32_t numbers[KEYS];
	uint32_t keys[KEYS];
};

/* The next numbers and keys of this process. */
static struct sample sample_take(const struct end *e)
{
	struct sample sample;
	struct ibv_mr *mr;

	for (int i = 0; i < KEYS; i++) {
		sample.numbers[i] = number_of_next(e);
		mr = ibv_reg_mr(e->pd, e->buf, BUF_SIZE, ACCESS);
		assert_non_null(mr);
		assert_int_equal(mr->lkey >> 16, mr->rkey >> 16);
		assert_int_not_equal(mr->lkey, mr->rkey);
		sample.keys[i] = mr->rkey;
		assert_int_equal(ibv_dereg_mr(mr), 0);
	}
	return sample;
}

/* Takes the sample of a child, which begins with a copy of everything. */
static struct sample sample_of_child(void)
{
	struct sample sample;
	int fd[2], status;
	pid_t pid;

	assert_int_equal(pipe(fd), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		sample = sample_take(&pair_new(0)->a);
		_exit(write(fd[1], &sample, sizeof(sample)) != sizeof(sample));
	}
	assert_int_equal(read(fd[0], &sample, sizeof(sample)), sizeof(sample));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(fd[0]);
	close(fd[1]);
	return sample;
}

FRESH(fork__child_DRAWS_ITS_OWN)
{
	struct pair *p = pair_new(0);
	struct sample child = sample_of_child();
	struct sample parent = sample_take(&p->a);

	assert_memory_not_equal(child.numbers, parent.numbers,
				sizeof(child.numbers));
	assert_memory_not_equal(child.keys, parent.keys, sizeof(child.keys));
	pair_delete(p);
}

/* A child's queue pair does not reach the copy of its parent's. */
FRESH(fork__number_of_the_parent_NOBODY_ANSWERS)
{
	static const enum ibv_qp_state way[] = {IBV_QPS_RESET, IBV_QPS_INIT,
						IBV_QPS_RTR, IBV_QPS_RTS};
	struct pair *p = pair_new(0);
	struct end serves;
	pid_t pid;
	int status;

	/* the child starts a thread: the thread sanitizer ends such a child,
	 * and the address sanitizer's allocator may be locked there for ever */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
	pair_delete(p);
	print_message("skipped: sanitizers forbid threads behind a fork\n");
	skip();
#endif
	/* other processes reach one with a queue pair for datagrams */
	end_init(&serves, 0);
	end_swap_qp(&serves, IBV_QPT_UD);
	end_to_rts(&serves, 0);
	assert_int_equal(rpma_loopback_fault("knob:retry_us=100"), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct pair *own = pair_new(0);

		for (size_t i = 0; i < sizeof(way) / sizeof(*way); i++)
			assert_int_equal(end_move(&own->a, &p->b, way[i]), 0);
		assert_int_equal(end_write(&own->a, &p->b, 1, 0, 8), 0);
		end_expect(&own->a, 1, IBV_WC_RETRY_EXC_ERR);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(end_write(&p->a, &p->b, 1, 0, 8), 0);
	end_expect(&p->a, 1, IBV_WC_SUCCESS);
	end_fini(&serves);
	pair_delete(p);
}

TEST_MAIN()
