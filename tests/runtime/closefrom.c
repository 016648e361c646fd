/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * closefrom.c -- the program closes descriptors of a running runtime: all
 * descriptors, in each mode, or any single descriptor. No thread spins, and the
 * stop returns. Where all are closed, every connection and the listener end
 * with FAILED and EBADF, and the log has a single FATAL line. And the program
 * closes all descriptors of a runtime that lives on: a runtime that is made
 * later works.
 *
 * Each case is a separate process; all processes run at the same time. A raw
 * system call closes, because the sanitizer would report the fault of the
 * program.
 */

#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loop.h"
#include "stage.h"

#define MOST_FDS 64
#define LOOK_MS	 1500 /* the time in which spinning is looked for */
#define SPUN_MS	 750  /* this much CPU time is spinning */
#define ALL	 (-1)
#define BESIDE	 (-2)

static _Atomic int fatals;

static void count_fatal(enum rpma_log_level level, const char *file,
			const int line, const char *function,
			const char *format, ...)
{
	(void)file;
	(void)line;
	(void)function;
	(void)format;
	/* relaxed: read after joining the threads that log */
	if (level == RPMA_LOG_LEVEL_FATAL)
		atomic_fetch_add_explicit(&fatals, 1, memory_order_relaxed);
}

/* Writes the numbers of the open descriptors behind stderr; how many. */
static int open_fds(int fds[MOST_FDS])
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *entry;
	int count = 0;
	int fd;

	CHECK(dir);
	while ((entry = readdir(dir)) != NULL) {
		fd = atoi(entry->d_name);
		if (fd <= STDERR_FILENO || fd == dirfd(dir))
			continue;
		CHECK(count < MOST_FDS);
		fds[count++] = fd;
	}
	closedir(dir);
	return count;
}

static uint64_t cpu_ms(void)
{
	struct rusage usage;

	CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
	return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) *
		       1000 +
	       (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) /
		       1000;
}

struct site {
	struct stage stage;
	struct world_pair pair;
	struct rpma_rt_listener *listener;
	enum rpma_rt_mode mode;
};

static void open_site(struct site *s, enum rpma_rt_mode mode, bool backstop)
{
	const struct stage_cfg cfg = {.pollers = 1,
				      .mode = mode,
				      .depth = 8,
				      .backstop_ms = backstop ? 500 : 0};

	stage_open(&s->stage, &cfg);
	if (mode == RPMA_RT_MODE_MANUAL) /* from here on the poller belongs to
					  * this thread */
		CHECK(rpma_rt_poller_run(s->stage.world.rt, 0, 64) >= 0);
	stage_connect(&s->stage, &s->pair);
	s->listener = world_listen(&s->stage.world, s->stage.cfg, s->stage.pq);
	s->mode = mode;
	MUST(rpma_log_set_function(count_fatal));
}

static void check_reason(const struct rpma_rt_completion *item)
{
	int detail = 0;

	CHECK(item->status == RPMA_RT_REASON_FAILED);
	CHECK(rpma_rt_completion_detail(item, &detail) == RPMA_RT_DETAIL_ERRNO);
	CHECK(detail == EBADF);
}

/* Polls the queues and naps, like a program in manual mode that can no longer
 * sleep on a descriptor. */
static void idle(const struct site *s, uint64_t ms)
{
	uint64_t end = world_now_ms() + ms;

	while (world_now_ms() < end) {
		if (s->mode == RPMA_RT_MODE_MANUAL)
			CHECK(rpma_rt_poller_run(s->stage.world.rt, 0, 64) >=
			      0);
		usleep(10000);
	}
}

static void check_silence(const struct site *s)
{
	uint64_t before = cpu_ms();

	idle(s, LOOK_MS);
	if (s->mode != RPMA_RT_MODE_BUSY)
		CHECK(cpu_ms() - before < SPUN_MS);
}

static void close_all(struct site *s)
{
	struct rpma_rt_listener *another;
	struct rpma_rt_completion item;
	int fds[MOST_FDS];
	int count = open_fds(fds);

	while (count-- > 0)
		syscall(SYS_close, fds[count]);
	item = world_event(s->stage.aq, RPMA_RT_EVENT_CLOSED);
	check_reason(&item);
	/* of the passive end and of the listener, in any order */
	for (int i = 0; i < 2; i++) {
		item = world_next(s->stage.pq);
		CHECK(item.kind == RPMA_RT_EVENT);
		CHECK(item.opcode == RPMA_RT_EVENT_CLOSED ||
		      item.opcode == RPMA_RT_EVENT_LISTENER_CLOSED);
		check_reason(&item);
	}
	check_silence(s);
	MUST_ANSWER(RPMA_E_PROVIDER,
		    world_listen_at(s->stage.world.rt, s->stage.world.peer,
				    s->stage.world.addr, "0", 64, s->stage.cfg,
				    RPMA_RT_POLLER_ANY, s->stage.pq, NULL,
				    &another));
	MUST(rpma_rt_stop(s->stage.world.rt));
	/* relaxed: the threads that log are joined */
	CHECK(atomic_load_explicit(&fatals, memory_order_relaxed) == 1);
}

static void close_one(struct site *s, int nth)
{
	int fds[MOST_FDS];
	int count = open_fds(fds);

	if (nth >= count)
		_exit(77);
	syscall(SYS_close, fds[nth]);
	check_silence(s);
	MUST(rpma_rt_stop(s->stage.world.rt));
	/* relaxed: the threads that log are joined */
	CHECK(atomic_load_explicit(&fatals, memory_order_relaxed) <= 1);
}

static bool is_among(const int *fds, int count, int fd)
{
	while (count > 0 && fds[count - 1] != fd)
		count--;
	return count > 0;
}

/* Makes a runtime, the first of the process, and closes its descriptors and
 * those of the event thread. The descriptors of the site get the numbers. */
static void close_beside(struct rpma_rt **beside)
{
	int before[MOST_FDS];
	int fds[MOST_FDS];
	int others = open_fds(before);
	int count;

	MUST(rpma_log_set_function(count_fatal));
	MUST(rpma_rt_new(NULL, beside));
	count = open_fds(fds);
	while (count-- > 0) {
		if (!is_among(before, others, fds[count]))
			syscall(SYS_close, fds[count]);
	}
	/* until the threads have noticed */
	usleep(LOOK_MS * 1000);
}

/* The event thread reads the event: an event that is never read would keep a
 * thread busy. */
static void live_beside(enum rpma_rt_mode mode)
{
	const struct loop *loop = loop_get();
	struct rpma_rt *beside;
	struct site site;

	close_beside(&beside);
	open_site(&site, mode, false);
	if (loop != NULL)
		MUST(loop->raise(IBV_EVENT_PORT_ERR, site.stage.world.ibv_ctx));
	check_silence(&site);
	MUST(rpma_rt_stop(site.stage.world.rt));
	MUST(rpma_rt_delete(&beside));
}

static pid_t begin(enum rpma_rt_mode mode, bool backstop, int nth)
{
	struct site site;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid > 0)
		return pid;
	alarm(WORLD_PATIENCE_MS / 1000 * 2);
	if (nth == BESIDE) {
		live_beside(mode);
		_exit(0);
	}
	open_site(&site, mode, backstop);
	if (nth == ALL)
		close_all(&site);
	else
		close_one(&site, nth);
	_exit(0);
}

/* False: there is no such descriptor. */
static bool end(pid_t pid, const char *what, int nth)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		return false;
	if (status != 0) {
		fprintf(stderr, "%s, descriptor %d: status 0x%x\n", what, nth,
			(unsigned)status);
		exit(1);
	}
	return true;
}

int main(void)
{
	static const struct {
		const char *name;
		enum rpma_rt_mode mode;
		bool backstop;
	} all[] = {
		{"adaptive", RPMA_RT_MODE_ADAPTIVE, true},
		{"event, no back-stop", RPMA_RT_MODE_EVENT, false},
		{"busy", RPMA_RT_MODE_BUSY, false},
		{"manual", RPMA_RT_MODE_MANUAL, false},
	};
	enum { CASES = sizeof(all) / sizeof(all[0]) };
	pid_t pids[MOST_FDS];
	int count = 0;

	for (int i = 0; i < CASES; i++)
		pids[i] = begin(all[i].mode, all[i].backstop, ALL);
	for (int i = 0; i < CASES; i++)
		CHECK(end(pids[i], all[i].name, ALL));
	CHECK(end(begin(RPMA_RT_MODE_EVENT, false, BESIDE), "beside", BESIDE));
	for (int i = 0; i < MOST_FDS; i++)
		pids[i] = begin(RPMA_RT_MODE_ADAPTIVE, false, i);
	for (int i = 0; i < MOST_FDS; i++)
		count += end(pids[i], "one", i);
	CHECK(count > 0);
	printf("%d descriptors\n", count);
	return 0;
}
