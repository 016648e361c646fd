/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * board.c -- a process of rpma-loopback --stats that has ended, and whose
 * children write wild values into the board, while the launcher reads the
 * board. A child takes the page of tally 40 away again and again, so that the
 * launcher waits where a tally says that tally 40 is the first of its process.
 */

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/tally.h"

#define HALF  (sizeof(union lb_board) / 2)
#define PAGE  4096u
#define FIRST 40u
#define WILD  0x40000000u
#define NS    300000000

static volatile struct lb_tally *tallies;

static long long now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static void punch(int fd)
{
	size_t at;

	for (at = PAGE; at < HALF; at += PAGE)
		((volatile char *)tallies)[at + LB_CACHE_LINE] = 1;
	if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, PAGE,
		      HALF - PAGE))
		_exit(1);
}

static void write_all(uint32_t first)
{
	uint32_t i;

	for (i = LB_BOARD_TALLIES / 2; i < LB_BOARD_TALLIES; i++)
		tallies[i].first = first;
}

int main(void)
{
	int fd = open(getenv("RPMA_LOOPBACK_STATS"), O_RDWR);
	union lb_board *board = mmap(NULL, sizeof(*board),
				     PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	const long long end = now() + NS;

	if (board == MAP_FAILED) {
		perror("board");
		return 1;
	}
	tallies = board->tallies;
	write_all(FIRST);
	atomic_store_explicit(&board->head.used, LB_BOARD_TALLIES - 1,
			      memory_order_release);
	if (!fork()) {
		while (now() < end)
			punch(fd);
		_exit(0);
	}
	if (!fork()) {
		while (now() < end) {
			write_all(WILD);
			write_all(FIRST);
		}
		_exit(0);
	}
	usleep(60000); /* both write by then, most likely */
	return 0;
}
