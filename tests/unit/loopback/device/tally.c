/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * tally.c -- what processes count on a board, and who is left on the board when
 * processes have ended: the reader is this program, in place of the launcher.
 */

#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/tally.h"

#define PATIENCE_S 300 /* ends a hang, decides nothing else */

static union lb_board *board;

/* Adds up what stands on the board for a process. */
static struct lb_tally count_of(pid_t pid)
{
	struct lb_tally sum = {.pid = pid};
	uint32_t i;

	for (i = 1; i < LB_BOARD_TALLIES && board->tallies[i].first; i++) {
		if (board->tallies[board->tallies[i].first].pid == pid)
			lb_tally_add(&sum, &board->tallies[i]);
	}
	return sum;
}

/* Messages of 8 bytes over queue pairs of their own. */
static void talk(unsigned messages)
{
	struct pair *p = pair_new(0);

	while (messages--) {
		end_recv(&p->b, 1, 0, 8);
		end_send(&p->a, 2, 0, 8);
		end_expect(&p->b, 1, IBV_WC_SUCCESS);
		end_expect(&p->a, 2, IBV_WC_SUCCESS);
	}
	pair_delete(p);
}

static pid_t child_of(unsigned messages, void (*end)(int))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		alarm(PATIENCE_S);
		talk(messages);
		talk(messages);
		end(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	return pid;
}

FRESH(child__without_exit_IS_ON_THE_BOARD)
{
	struct lb_tally mine, child;
	pid_t pid;

	talk(3);
	mine = count_of(getpid());
	pid = child_of(2, _exit);
	child = count_of(pid);
	assert_int_equal(child.executed, 4);
	assert_int_equal(child.received, 4);
	assert_int_equal(child.bytes, 32);
	child = count_of(getpid());
	assert_int_equal(child.executed, mine.executed);
	assert_int_equal(child.received, mine.received);
	talk(5);
	child = count_of(getpid());
	assert_int_equal(child.executed, mine.executed + 5);
}

FRESH(child__that_printed_IS_NOT_ON_THE_BOARD)
{
	pid_t pid = child_of(2, exit);

	assert_int_equal(count_of(pid).executed, 0);
}

int main(void)
{
	char path[64];
	int fd = lb_tally_new_board(&board);

	if (fd < 0)
		return 1;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), fd);
	setenv("RPMA_LOOPBACK_STATS", path, 1);
	return tests_run(NULL, NULL);
}
