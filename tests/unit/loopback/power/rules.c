/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * rules.c -- flushes of a range, by the functions behind ibv_wr_flush(), which
 * rdma-core 44 does not have; and files of a directory. Each run is a child
 * that delivers into a file, flushes, and fails.
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../cases.h"
#include "bytes.h"
#include "memory/power.h"
#include "rpma_loopback.h"

#define AT	    1024u
#define LEAST_SEEDS 12
#define MOST_SEEDS  64

enum { QP = 7, OTHER_QP = 8 };

struct run {
	void (*body)(void); /* after a delivery of version 1 by QP at AT */
	const char *names;  /* NULL: the path of the file */
	bool persists;	    /* the region has the right to be flushed */
};

static char dir[64], path[80];
static uint8_t *file;

static void deliver(unsigned qp, unsigned version)
{
	const struct lb_span dst[2] = {{file + AT, RANGE}};

	lb_power_arrive();
	lb_power_deliver(qp, dst, 0, RANGE);
	bytes_fill(file, AT, RANGE, version);
}

static void child(const struct run *run, unsigned seed)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	char value[16];

	snprintf(value, sizeof(value), "%u", seed);
	lb_power_start(value, run->names ? run->names : path);
	file = mmap(NULL, FILE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd < 0 || file == MAP_FAILED || !freopen("/dev/null", "w", stderr))
		_exit(1);
	lb_power_register(file, file, FILE_SIZE, run->persists);
	deliver(QP, 1);
	run->body();
	rpma_loopback_power_fail();
	_exit(1);
}

static int outcome(const struct run *run, unsigned seed)
{
	uint8_t bytes[FILE_SIZE];
	int status;
	pid_t pid;

	bytes_make_file(path);
	pid = fork();
	if (pid == 0)
		child(run, seed);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	bytes_read_file(path, bytes);
	/* the second half of the range, and the first */
	return bytes_judge(bytes, AT + RANGE / 2, RANGE / 2, 0, 1) |
	       bytes_judge(bytes, AT, RANGE / 2, 0, 1) << 4;
}

static void expect(const struct run *run, int first, int second)
{
	const int all = first << 4 | second;
	int seen = 0;

	for (unsigned seed = 1;
	     seed <= LEAST_SEEDS || (seed <= MOST_SEEDS && seen != all); seed++)
		seen |= outcome(run, seed);
	assert_int_equal(seen, all);
}

static void flush_all(void)
{
	lb_power_flush(QP, file + AT, RANGE);
}

TEST(flush__makes_its_range_persistent)
{
	const struct run run = {.body = flush_all};

	expect(&run, THERE, THERE);
}

static void flush_first(void)
{
	lb_power_flush(QP, file + AT, RANGE / 2);
}

TEST(flush__leaves_bytes_beyond_its_range)
{
	const struct run run = {.body = flush_first};

	expect(&run, THERE, ANY);
}

static void flush_beside(void)
{
	lb_power_flush(QP, file + AT - RANGE, RANGE);
	lb_power_flush(QP, file + AT + RANGE, RANGE);
	lb_power_flush(QP, file + AT, 0);
}

TEST(flush__of_another_range_does_not_help)
{
	const struct run run = {.body = flush_beside};

	expect(&run, ANY, ANY);
}

static void flush_by_other(void)
{
	lb_power_flush(OTHER_QP, file + AT, RANGE);
}

TEST(flush__of_another_queue_pair_does_not_help)
{
	const struct run run = {.body = flush_by_other};

	expect(&run, ANY, ANY);
}

static void nothing(void)
{
}

TEST(delivery__into_a_file_of_a_directory_may_be_lost)
{
	const struct run run = {.body = nothing, .names = dir};

	expect(&run, ANY, ANY);
}

TEST(delivery__into_a_file_beside_the_name_stays)
{
	char names[96];
	struct run run = {.body = nothing, .names = names};

	/* the name is a beginning of the path, and no directory above it */
	snprintf(names, sizeof(names), "%.*s", (int)strlen(path) - 1, path);
	expect(&run, THERE, THERE);
}

TEST(delivery__into_a_region_for_flushes_may_be_lost)
{
	const struct run run = {
		.body = nothing, .names = "/none", .persists = true};

	expect(&run, ANY, ANY);
}

static int make_directory(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/power.rules.%d", (int)getpid());
	snprintf(path, sizeof(path), "%s/file", dir);
	return mkdir(dir, 0700);
}

static int remove_directory(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(dir);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return tests_run(make_directory, remove_directory);
}
