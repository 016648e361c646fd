/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * setuid.c -- a daemon opens the device as root and then drops its privileges.
 * The kernel takes sends and calls of rdma_cm from the credentials that opened
 * the descriptors only: each fails with EACCES, the log names the errno, the
 * connection ends with FAILED, and the stop returns. In the order that the
 * manual names, setuid() first, everything works.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stage.h"

#define NOBODY 65534

static _Atomic unsigned denied; /* lines that name the errno */

static void look_for_errno(enum rpma_log_level level, const char *file,
			   const int line, const char *function,
			   const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (level <= RPMA_LOG_LEVEL_WARNING)
		fprintf(stderr, "%s:%d: %s: %s", file, line, function, text);
	/* relaxed: a count */
	if (strstr(text, strerror(EACCES)) != NULL)
		atomic_fetch_add_explicit(&denied, 1, memory_order_relaxed);
}

static void become_nobody(void)
{
	CHECK(setresgid(NOBODY, NOBODY, NOBODY) == 0);
	CHECK(setresuid(NOBODY, NOBODY, NOBODY) == 0);
}

static void check_closed(struct rpma_rt_queue *queue)
{
	struct rpma_rt_completion item;
	int err;

	do {
		item = world_next(queue);
	} while (rpma_rt_completion_event(&item) != RPMA_RT_EVENT_CLOSED);
	CHECK(item.status == RPMA_RT_REASON_FAILED);
	CHECK(rpma_rt_completion_detail(&item, &err) == RPMA_RT_DETAIL_ERRNO);
	CHECK(err == EACCES);
}

static void setuid__after_the_device_was_opened(void)
{
	static const struct stage_cfg cfg = {
		.pollers = 1, .mode = RPMA_RT_MODE_ADAPTIVE, .depth = 8};
	struct world_pair pair;
	struct rpma_rt_conn *late;
	struct rpma_mr_local *mr;
	struct stage s;

	stage_open(&s, &cfg);
	stage_connect(&s, &pair);
	stage_ping(&s, &pair, 1);
	become_nobody();
	MUST(rpma_log_set_function(look_for_errno));
	MUST(rpma_mr_reg(s.world.peer, s.memory, STAGE_SIZE, RPMA_MR_USAGE_RECV,
			 &mr));
	MUST(rpma_rt_recv(pair.passive, s.mr, 0, 64, 2));
	MUST(rpma_rt_send(pair.active, s.mr, 64, 64, RPMA_F_COMPLETION_ALWAYS,
			  2));
	stage_completion(s.aq, 2, IBV_WC_GENERAL_ERR);
	check_closed(s.aq);
	MUST(world_conn_new(s.world.rt, s.world.peer, s.world.addr, "7471",
			    s.cfg, RPMA_RT_POLLER_ANY, s.aq, NULL, &late));
	check_closed(s.aq);
	MUST(rpma_rt_stop(s.world.rt));
	/* relaxed: the threads that log are joined */
	CHECK(atomic_load_explicit(&denied, memory_order_relaxed) > 0);
}

static void setuid__first(void)
{
	static const struct stage_cfg cfg = {
		.pollers = 1, .mode = RPMA_RT_MODE_ADAPTIVE, .depth = 8};
	struct world_pair pair;
	struct stage s;

	become_nobody();
	stage_open(&s, &cfg); /* ends with 77 where only root may */
	stage_connect(&s, &pair);
	stage_ping(&s, &pair, 1);
	stage_disconnect(&s, &pair);
	stage_close(&s);
}

static int run(void (*fn)(void))
{
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		alarm(2 * WORLD_PATIENCE_MS / 1000);
		fn();
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

int main(void)
{
	int ret;

	if (geteuid() != 0) {
		printf("SKIP: only root becomes another user\n");
		return 77;
	}
	CHECK(setenv("RPMA_LOOPBACK_CREDENTIALS", "1", 1) == 0);
	ret = run(setuid__after_the_device_was_opened);
	if (ret != 0)
		return ret;
	ret = run(setuid__first);
	CHECK(ret == 0 || ret == 77);
	printf("ok%s\n", ret ? ", but the device is for root only" : "");
	return 0;
}
