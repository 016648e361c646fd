/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * watch.c -- see watch.h. Each process counts on a board, a memory file of the
 * launcher; a process leaves the board by printing the line itself. When the
 * program has ended, the launcher prints the lines of all others.
 */

#include "watch.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/tally.h"
#include "say.h"
#include "setup.h"

#define STATS "RPMA_LOOPBACK_STATS"

static union lb_board *board;
static sigset_t former_mask;
static struct sigaction former_child; /* the action of SIGCHLD */

/* --- the board */

/* Prints the line of a process, unless the process did nothing. */
static void watch_print_process(const struct lb_tally *sum)
{
	if (sum->pid && (sum->executed || sum->received))
		lb_tally_print(sum->pid, sum);
}

/*
 * Returns the first tally of the process that has a tally, or 0 for a claim
 * that was not finished. Reads the word of the board once: other processes may
 * write any value between a check and a use.
 */
static uint32_t watch_first_of(uint32_t n)
{
	const volatile uint32_t *word = &board->tallies[n].first;
	const uint32_t first = *word;

	return first <= n ? first : 0;
}

static void watch_print(void)
{
	struct lb_tally *sums;
	uint32_t i, first, used;

	/* relaxed: the program has ended, other processes may go on */
	used = 1 +
	       atomic_load_explicit(&board->head.used, memory_order_relaxed);
	if (used > LB_BOARD_TALLIES)
		used = LB_BOARD_TALLIES;
	sums = aligned_alloc(alignof(struct lb_tally), used * sizeof(*sums));
	if (!sums) {
		say_errno("--stats");
		return;
	}
	for (i = 1; i < used; i++) {
		sums[i] = (struct lb_tally){.pid = 0};
		first = watch_first_of(i);
		if (!first)
			continue;
		sums[first].pid = board->tallies[first].pid;
		lb_tally_add(&sums[first], &board->tallies[i]);
	}
	for (i = 1; i < used; i++)
		watch_print_process(&sums[i]);
	free(sums);
}

/* --- the program */

/* Hands a signal of another process on: a signal of the terminal has reached
 * the program, too. */
static void watch_hand_on(pid_t program, const siginfo_t *info)
{
	if (info->si_code <= 0)
		kill(program, info->si_signo);
}

/*
 * Returns the status of waitpid() for the program. The first process of a
 * container is the parent of all orphans there, which the launcher reaps.
 */
static int watch_wait(pid_t program, const sigset_t *signals)
{
	siginfo_t info;
	int status;
	pid_t pid;

	for (;;) {
		while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
			if (pid == program)
				return status;
		}
		if (sigwaitinfo(signals, &info) > 0 && info.si_signo != SIGCHLD)
			watch_hand_on(program, &info);
	}
}

static _Noreturn void watch_end_as(int status)
{
	const struct rlimit none = {0, 0};
	sigset_t signals;
	int number;

	if (WIFEXITED(status))
		_exit(WEXITSTATUS(status));
	number = WTERMSIG(status);
	setrlimit(RLIMIT_CORE, &none); /* of the program is enough */
	signal(number, SIG_DFL);
	sigemptyset(&signals);
	sigaddset(&signals, number);
	sigprocmask(SIG_UNBLOCK, &signals, NULL);
	raise(number);
	_exit(128 + number);
}

/* Makes the board, and sets the variable to the path of the board. */
static bool watch_make_board(void)
{
	char path[64];
	int fd = lb_tally_new_board(&board);

	if (fd < 0)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), fd);
	setup_set(STATS, path);
	return true;
}

/* Blocks the signals for sigwaitinfo(). */
static void watch_block(sigset_t *signals)
{
	const struct sigaction plain = {.sa_handler = SIG_DFL};

	sigfillset(signals);
	/* with these a terminal stops launcher and program together */
	sigdelset(signals, SIGTSTP);
	sigdelset(signals, SIGTTIN);
	sigdelset(signals, SIGTTOU);
	sigdelset(signals, SIGCONT);
	sigaction(SIGCHLD, &plain, &former_child);
	sigprocmask(SIG_BLOCK, signals, &former_mask);
}

/* Undoes watch_block(), for the program. */
static void watch_unblock(void)
{
	sigaction(SIGCHLD, &former_child, NULL);
	sigprocmask(SIG_SETMASK, &former_mask, NULL);
}

/* SIGKILL for the launcher kills the program, too. */
static void watch_bind_to(pid_t launcher)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != launcher)
		_exit(125);
}

void watch_fork(void)
{
	const pid_t launcher = getpid();
	sigset_t signals;
	pid_t program = -1;
	int status;

	if (watch_make_board()) {
		watch_block(&signals);
		program = fork();
		if (program > 0) {
			status = watch_wait(program, &signals);
			watch_print();
			watch_end_as(status);
		}
		watch_unblock();
	}
	if (!program) {
		watch_bind_to(launcher);
		return;
	}
	say_errno("--stats: only processes that call exit() print");
	setup_set(STATS, "1");
}
