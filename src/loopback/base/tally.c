/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* tally.c -- see tally.h. Also a part of the launcher, which reads a board. */

#include "base/tally.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static union lb_board *board; /* constant since before the first queue pair */
static uint32_t first;	      /* of this process; 0: none; under lb.big */

/* --- counts */

void lb_tally_add(struct lb_tally *sum, const struct lb_tally *tally)
{
	sum->executed += tally->executed;
	sum->failed += tally->failed;
	sum->flushed += tally->flushed;
	sum->bytes += tally->bytes;
	sum->rnr += tally->rnr;
	sum->retries += tally->retries;
	sum->lost += tally->lost;
	sum->received += tally->received;
	sum->flushed_receives += tally->flushed_receives;
}

void lb_tally_print(int pid, const struct lb_tally *sum)
{
	fprintf(stderr,
		"loopback: process %d, in all: %llu requests (%llu failed), "
		"%llu messages received, %llu bytes\n",
		pid, (unsigned long long)sum->executed,
		(unsigned long long)sum->failed,
		(unsigned long long)sum->received,
		(unsigned long long)sum->bytes);
	if (sum->lost)
		fprintf(stderr,
			"loopback: process %d, to processes that took nothing: "
			"%llu datagrams and messages of UC lost\n",
			pid, (unsigned long long)sum->lost);
}

/* --- the board */

static union lb_board *tally_map(int fd)
{
	void *mem = mmap(NULL, sizeof(union lb_board), PROT_READ | PROT_WRITE,
			 MAP_SHARED, fd, 0);

	return mem != MAP_FAILED ? mem : NULL;
}

/*
 * Gives the file the size of the board. Returns false, with EFBIG, behind a
 * smaller limit of the process, whose signal would end the process.
 */
static bool tally_resize(int fd)
{
	const struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct sigaction former;
	bool is_done;

	sigaction(SIGXFSZ, &ignore, &former);
	is_done = !ftruncate(fd, sizeof(union lb_board));
	sigaction(SIGXFSZ, &former, NULL);
	return is_done;
}

int lb_tally_new_board(union lb_board **made)
{
	int fd = memfd_create("rpma-loopback-stats",
			      MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int err;

	if (fd < 0)
		return -1;
	if (tally_resize(fd) && !fcntl(fd, F_ADD_SEALS, SEALS) &&
	    (*made = tally_map(fd))) {
		(*made)->head.magic = LB_BOARD_MAGIC;
		return fd;
	}
	err = errno;
	close(fd);
	errno = err;
	return -1;
}

/*
 * The path names a descriptor of the launcher, and another process may have the
 * number of a launcher that has ended: a file that is no board stays untouched.
 */
static bool tally_is_board(int fd)
{
	struct lb_board_head head;
	struct stat st;

	return fcntl(fd, F_GET_SEALS) == SEALS && !fstat(fd, &st) &&
	       st.st_size == sizeof(union lb_board) &&
	       pread(fd, &head, sizeof(head), 0) == sizeof(head) &&
	       head.magic == LB_BOARD_MAGIC;
}

bool lb_tally_open_board(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return false;
	if (tally_is_board(fd))
		board = tally_map(fd);
	else
		errno = EINVAL;
	close(fd);
	return board;
}

struct lb_tally *lb_tally_claim(void)
{
	struct lb_tally *tally;
	uint32_t n;

	if (!board)
		return NULL;
	/* relaxed: a number of its own; the launcher reads when the process
	 * has ended, or as much as there is */
	n = 1 + atomic_fetch_add_explicit(&board->head.used, 1,
					  memory_order_relaxed);
	if (n >= LB_BOARD_TALLIES) {
		/* relaxed: as above; the count does not go around */
		atomic_store_explicit(&board->head.used, LB_BOARD_TALLIES,
				      memory_order_relaxed);
		return NULL;
	}
	if (!first)
		first = n;
	tally = &board->tallies[n];
	tally->pid = (int32_t)getpid();
	tally->first = first;
	return tally;
}

void lb_tally_leave(void)
{
	if (first)
		board->tallies[first].pid = 0;
}

void lb_tally_forked(void)
{
	first = 0;
}
