/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * dump_pipe.c -- rpma_rt_dump() to a reader that has gone, a pipe or a socket,
 * and to a file at its limit: an error of the call and no signal, whether the
 * program blocks the signal, ignores it, handles it, or does nothing. A signal
 * that was pending before is pending afterwards.
 */

#define _GNU_SOURCE
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "world.h"

static _Atomic int handled;

static void handle(int signal)
{
	(void)signal;
	/* relaxed: of this thread alone */
	atomic_fetch_add_explicit(&handled, 1, memory_order_relaxed);
}

static void act(int signal, void (*handler)(int))
{
	struct sigaction action = {.sa_handler = handler};

	CHECK(sigaction(signal, &action, NULL) == 0);
}

static bool is_pending(int signal)
{
	sigset_t pending;

	CHECK(sigpending(&pending) == 0);
	return sigismember(&pending, signal) == 1;
}

static bool is_blocked(int signal)
{
	sigset_t mask;

	CHECK(pthread_sigmask(SIG_BLOCK, NULL, &mask) == 0);
	return sigismember(&mask, signal) == 1;
}

static void block(int signal, int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, signal);
	CHECK(pthread_sigmask(how, &set, NULL) == 0);
}

static int pipe_without_reader(void)
{
	int fds[2];

	CHECK(pipe(fds) == 0);
	close(fds[0]);
	return fds[1];
}

static int socket_without_reader(void)
{
	int fds[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
	close(fds[0]);
	return fds[1];
}

static int file_at_its_limit(void)
{
	struct rlimit limit = {.rlim_cur = 16};
	FILE *file = tmpfile();

	CHECK(file);
	CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
	limit.rlim_cur = 16;
	CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	return dup(fileno(file));
}

static void check(struct rpma_rt *rt, int fd, int signal)
{
	static void (*const handlers[])(int) = {SIG_DFL, SIG_IGN, handle};
	const enum rpma_rt_dump_format format = RPMA_RT_DUMP_JSON;

	for (unsigned i = 0; i < sizeof(handlers) / sizeof(handlers[0]); i++) {
		act(signal, handlers[i]);
		MUST_ANSWER(RPMA_E_PROVIDER, rpma_rt_dump(rt, fd, format));
		CHECK(!is_blocked(signal) && !is_pending(signal));
		block(signal, SIG_BLOCK);
		MUST_ANSWER(RPMA_E_PROVIDER, rpma_rt_dump(rt, fd, format));
		CHECK(is_blocked(signal) && !is_pending(signal));
		block(signal, SIG_UNBLOCK);
	}
	/* relaxed: of this thread alone */
	CHECK(atomic_load_explicit(&handled, memory_order_relaxed) == 0);
	/* of somebody else, who gets it */
	block(signal, SIG_BLOCK);
	CHECK(raise(signal) == 0);
	MUST_ANSWER(RPMA_E_PROVIDER, rpma_rt_dump(rt, fd, format));
	CHECK(is_pending(signal));
	block(signal, SIG_UNBLOCK);
	/* relaxed: of this thread alone */
	CHECK(atomic_exchange_explicit(&handled, 0, memory_order_relaxed) == 1);
	act(signal, SIG_DFL);
	close(fd);
}

/* A line of the log where stderr has no reader. */
static void log__to_a_stderr_without_a_reader(void)
{
	int before = dup(STDERR_FILENO);
	int fd = pipe_without_reader();

	CHECK(before >= 0);
	MUST(rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX,
				    RPMA_LOG_LEVEL_ERROR));
	CHECK(dup2(fd, STDERR_FILENO) >= 0);
	CHECK(rpma_mr_get_ptr(NULL, NULL) == RPMA_E_INVAL);
	CHECK(dup2(before, STDERR_FILENO) >= 0);
	CHECK(!is_blocked(SIGPIPE) && !is_pending(SIGPIPE));
	close(before);
	close(fd);
}

int main(void)
{
	struct rpma_rt *rt;

	log__to_a_stderr_without_a_reader();
	MUST(rpma_rt_new(NULL, &rt));
	check(rt, pipe_without_reader(), SIGPIPE);
	check(rt, socket_without_reader(), SIGPIPE);
	check(rt, file_at_its_limit(), SIGXFSZ);
	MUST(rpma_rt_delete(&rt));
	return 0;
}
