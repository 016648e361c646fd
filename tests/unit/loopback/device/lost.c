/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * lost.c -- the device handles SIGSEGV and SIGBUS for registered memory that
 * the program unmapped or protected, or whose file became shorter. All other
 * faults are the program's: they go to its handler, or end the process.
 */

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
	return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
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

/* --- a peer writes where the program has lost memory, or has guarded memory */

#define WRITABLE (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

/* Writes 8 bytes from end a to the memory, which changes after registration. */
static enum ibv_wc_status write_to(void *at, void (*change)(void *at))
{
	struct pair *p = pair_new(0);
	struct ibv_mr *mr = ibv_reg_mr(p->b.pd, at, SIZE, WRITABLE);
	struct ibv_sge sge = {(uintptr_t)p->a.buf, 8, p->a.mr->lkey};
	struct ibv_send_wr *bad;
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
	};

	if (!mr)
		_exit(2);
	change(at);
	memcpy(p->a.buf, "8 bytes", 8);
	wr.wr.rdma.remote_addr = (uintptr_t)at;
	wr.wr.rdma.rkey = mr->rkey;
	if (ibv_post_send(p->a.qp, &wr, &bad))
		_exit(3);
	return end_wait(&p->a).status;
}

static int file;

static void *map_file(void)
{
	file = memfd_create("lost", MFD_CLOEXEC);
	if (file < 0 || ftruncate(file, SIZE))
		_exit(4);
	return mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
}

static void shorten(void *at)
{
	(void)at;
	if (ftruncate(file, 0))
		_exit(5);
}

static void shortened(const struct end *e)
{
	(void)e;
	signal(SIGBUS, SIG_DFL);
	if (write_to(map_file(), shorten) != IBV_WC_REM_ACCESS_ERR)
		_exit(1);
}

static void fill(int sig, siginfo_t *info, void *context)
{
	(void)sig, (void)context;
	mmap((void *)((uintptr_t)info->si_addr & -SIZE), SIZE,
	     PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
	     -1, 0);
}

static void shortened_and_handled(const struct end *e)
{
	struct sigaction action = {.sa_sigaction = fill,
				   .sa_flags = SA_SIGINFO};
	const char *at = map_file();

	(void)e;
	sigaction(SIGBUS, &action, NULL);
	if (write_to((void *)(uintptr_t)at, shorten) != IBV_WC_SUCCESS ||
	    strcmp(at, "8 bytes"))
		_exit(1);
}

static void protect(void *at)
{
	if (mprotect(at, SIZE, PROT_READ))
		_exit(5);
}

static void protected(const struct end *e)
{
	char *at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)e;
	signal(SIGSEGV, SIG_DFL);
	at[8] = 8;
	if (write_to(at, protect) != IBV_WC_SUCCESS || strcmp(at, "8 bytes") ||
	    at[8] != 8)
		_exit(1);
}

static void all_ends(void (*child)(const struct end *))
{
	rpma_loopback_set_mode(RPMA_LOOPBACK_INLINE);
	assert_int_equal(end_of(child, NULL), 0);
	rpma_loopback_set_mode(RPMA_LOOPBACK_THREAD);
	assert_int_equal(end_of(child, NULL), 0);
	rpma_loopback_set_mode(RPMA_LOOPBACK_INLINE);
}

TEST(write__to_a_file_that_became_shorter_FAILS)
{
	all_ends(shortened);
}

TEST(write__to_a_shorter_file_GOES_TO_THE_HANDLER)
{
	all_ends(shortened_and_handled);
}

TEST(write__to_protected_memory_HAS_ITS_EFFECT)
{
	all_ends(protected);
}

#endif

TEST_MAIN()
