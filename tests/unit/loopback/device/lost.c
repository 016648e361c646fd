/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * lost.c -- the device handles SIGSEGV for registered memory that the program
 * unmapped. All other faults are the program's: they go to its handler, or end
 * the process.
 */

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"

#define SIZE 4096
/* where the kernel puts nothing by itself: no thread gets the addresses */
#define NOWHERE ((void *)0x7e9000000000)

static sigjmp_buf back;

static void jump_back(int sig)
{
	(void)sig;
	siglongjmp(back, 1);
}

static volatile uint8_t *nowhere(void)
{
	void *at = mmap(NOWHERE, SIZE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_equal(at, NOWHERE);
	assert_int_equal(munmap(at, SIZE), 0);
	return at;
}

/* Registers memory, which makes the device look at the handler. */
static struct ibv_mr *region_of(const struct end *e)
{
	void *at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;

	assert_true(at != MAP_FAILED);
	mr = ibv_reg_mr(e->pd, at, SIZE,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	assert_non_null(mr);
	return mr;
}

static void delete_region(struct ibv_mr *mr)
{
	void *at = mr->addr;

	assert_int_equal(ibv_dereg_mr(mr), 0);
	munmap(at, SIZE);
}

TEST(signal__of_the_program_goes_to_its_handler)
{
	struct sigaction action = {.sa_handler = jump_back,
				   .sa_flags = SA_NODEFER};
	struct sigaction old;
	struct pair *p;
	struct ibv_mr *mr;
	volatile int faults = 0;

	assert_int_equal(sigaction(SIGSEGV, &action, &old), 0);
	p = pair_new(0);
	mr = region_of(&p->b);
	/* also the second time: the handler has not returned the first time */
	if (sigsetjmp(back, 1))
		faults++;
	if (faults < 3)
		(void)*nowhere();
	assert_int_equal(faults, 3);
	delete_region(mr);
	pair_delete(p);
	assert_int_equal(sigaction(SIGSEGV, &old, NULL), 0);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

static struct sigaction before;

static void call_before(int sig, siginfo_t *info, void *context)
{
	if (before.sa_flags & SA_SIGINFO)
		before.sa_sigaction(sig, info, context);
	else
		signal(sig, SIG_DFL);
}

/* Returns the signal that ends a child, or 0. */
static int end_of(void (*child)(const struct end *), const struct end *e)
{
	pid_t pid = fork();
	int status = 0;

	if (!pid) {
		child(e);
		_exit(0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void fault_by_default(const struct end *e)
{
	signal(SIGSEGV, SIG_DFL);
	region_of(e);
	(void)*nowhere();
}

static void send_by_default(const struct end *e)
{
	signal(SIGSEGV, SIG_DFL);
	region_of(e);
	raise(SIGSEGV);
}

static void ignore(const struct end *e)
{
	signal(SIGSEGV, SIG_IGN);
	region_of(e);
	raise(SIGSEGV);
}

/* Each of both handlers has the other as the handler before. */
static void fault_in_a_circle(const struct end *e)
{
	struct sigaction action = {.sa_sigaction = call_before,
				   .sa_flags = SA_SIGINFO};

	signal(SIGSEGV, SIG_DFL);
	region_of(e);
	sigaction(SIGSEGV, &action, &before);
	region_of(e);
	(void)*nowhere();
}

TEST(signal__of_a_program_without_handler_ENDS_THE_PROCESS)
{
	struct pair *p = pair_new(0);

	assert_int_equal(end_of(fault_by_default, &p->b), SIGSEGV);
	assert_int_equal(end_of(send_by_default, &p->b), SIGSEGV);
	assert_int_equal(end_of(fault_in_a_circle, &p->b), SIGSEGV);
	assert_int_equal(end_of(ignore, &p->b), 0);
	pair_delete(p);
}

#endif

TEST_MAIN()
