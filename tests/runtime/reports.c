/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * reports.c -- public bug reports of other projects that no other test has, see
 * doc/REPORTS.md: descriptors that a new program inherits, a listener at ::
 * without IPv4, memory that is read only, an edge-triggered event loop that
 * misses an edge, a process that exits while threads work.
 *
 * usage: runtime_reports [exit]
 */

#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stage.h"

#define DEPTH  8
#define FDS    1024
#define ROUNDS 200
#define EXITS  5
#define BEFORE 64 /* messages before a process exits */

static const struct stage_cfg cfg = {
	.pollers = 1, .mode = RPMA_RT_MODE_EVENT, .depth = DEPTH};

/* ---------------------------------------------------------- descriptors --- */

/* Sets is_open[fd] for each descriptor of the process. */
static void list_fds(bool is_open[FDS])
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *entry;
	int fd;

	CHECK(dir != NULL);
	memset(is_open, 0, FDS);
	while ((entry = readdir(dir)) != NULL) {
		fd = atoi(entry->d_name);
		if (fd > 0 && fd < FDS && fd != dirfd(dir))
			is_open[fd] = true;
	}
	closedir(dir);
}

/* Every descriptor that the libraries open is closed by exec(). */
static void descriptors__closed_by_exec(void)
{
	bool before[FDS];
	bool after[FDS];
	struct world_pair pair;
	struct stage s;
	int opened = 0;
	int fd;

	list_fds(before);
	stage_open(&s, &cfg);
	stage_connect(&s, &pair);
	MUST(rpma_rt_queue_get_fd(s.aq, &fd));
	list_fds(after);
	for (fd = 0; fd < FDS; fd++) {
		if (!after[fd] || before[fd])
			continue;
		opened++;
		if (!(fcntl(fd, F_GETFD) & FD_CLOEXEC))
			fprintf(stderr, "descriptor %d stays open\n", fd);
		CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	}
	CHECK(opened > 0);
	stage_disconnect(&s, &pair);
	stage_close(&s);
	printf("ok: %d descriptors are closed by exec()\n", opened);
}

/* ------------------------------------------------------------- any address */

/* A peer that knows an IPv4 address reaches a listener at ::. */
static void listen__at_any_ipv6_address_TAKES_IPV4(struct stage *s)
{
	struct rpma_rt_listener *listener;
	struct rpma_rt_completion item;
	struct rpma_rt_conn *active;
	struct rpma_rt_conn *passive;
	char port[8];
	uint16_t number;

	MUST(rpma_rt_conn_cfg_init(s->cfg, sizeof(*s->cfg)));
	s->cfg->peer = s->world.peer;
	s->cfg->queue = s->pq;
	MUST(rpma_rt_listen(s->world.rt, "::", "0", s->cfg, &listener));
	MUST(rpma_rt_listener_get_port(listener, &number));
	snprintf(port, sizeof(port), "%u", number);
	s->cfg->queue = s->aq;
	MUST(rpma_rt_conn_new(s->world.rt, s->world.addr, port, s->cfg,
			      &active));
	world_event(s->aq, RPMA_RT_EVENT_READY);
	MUST(rpma_rt_conn_connect(active, NULL));
	item = world_event(s->pq, RPMA_RT_EVENT_REQUEST);
	passive = rpma_rt_completion_conn(&item);
	MUST(rpma_rt_conn_accept(passive, NULL));
	world_event(s->aq, RPMA_RT_EVENT_ESTABLISHED);
	world_event(s->pq, RPMA_RT_EVENT_ESTABLISHED);
	MUST(rpma_rt_conn_close(active));
	world_event(s->aq, RPMA_RT_EVENT_CLOSED);
	world_event(s->pq, RPMA_RT_EVENT_CLOSED);
	MUST(rpma_rt_conn_unref(&active));
	MUST(rpma_rt_conn_unref(&passive));
	MUST(rpma_rt_listener_delete(&listener));
	world_event(s->pq, RPMA_RT_EVENT_LISTENER_CLOSED);
	printf("ok: a listener at :: takes IPv4\n");
}

/* --------------------------------------------------------------- memory --- */

/* A receive would be written to the memory, so the registration fails. */
static void region__of_read_only_memory_REFUSED(struct stage *s)
{
	struct rpma_mr_local *mr = NULL;
	void *memory = mmap(NULL, STAGE_SIZE, PROT_READ,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(memory != MAP_FAILED);
	MUST_ANSWER(RPMA_E_PROVIDER,
		    rpma_mr_reg(s->world.peer, memory, STAGE_SIZE,
				RPMA_MR_USAGE_RECV, &mr));
	CHECK(mr == NULL);
	munmap(memory, STAGE_SIZE);
	printf("ok: a region of read-only memory is refused\n");
}

/* ---------------------------------------------------------------- edges --- */

static void *push(void *arg)
{
	struct stage *s = arg;

	MUST(rpma_rt_queue_push(s->aq,
				&(struct rpma_rt_completion){.context = 1}));
	return NULL;
}

/* Each arm that finds nothing is followed by an edge for the next item. */
static void fd__edge_triggered_EACH_ITEM(struct stage *s)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct rpma_rt_completion item;
	pthread_t thread;
	int fd;
	int i;

	CHECK(epoll >= 0);
	MUST(rpma_rt_queue_get_fd(s->aq, &fd));
	CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0);
	for (i = 0; i < ROUNDS; i++) {
		while (rpma_rt_queue_poll(s->aq, &item, 1) == 1)
			;
		if (rpma_rt_queue_arm(s->aq) != 0) {
			i--;
			continue;
		}
		CHECK(pthread_create(&thread, NULL, push, s) == 0);
		CHECK(epoll_wait(epoll, &event, 1, WORLD_PATIENCE_MS) == 1);
		CHECK(rpma_rt_queue_poll(s->aq, &item, 1) == 1);
		CHECK(pthread_join(thread, NULL) == 0);
	}
	close(epoll);
	printf("ok: an edge for each item\n");
}

/* ------------------------------------------------------------------ end --- */

/* Posts without an end; the end of the process ends it. */
static void *post_on(void *arg)
{
	struct rpma_rt_conn *conn = arg;

	for (;;)
		(void)!rpma_rt_write(conn, NULL, 0, NULL, 0, 0,
				     RPMA_F_COMPLETION_ALWAYS, 1);
	return NULL;
}

/* Exits while a poller delivers and a thread posts; nothing was deleted. */
static int exit_beside_threads(void)
{
	static struct stage s;
	static struct world_pair pair;
	struct rpma_rt_completion item;
	pthread_t thread;
	int i;

	stage_open(&s, &cfg);
	stage_connect(&s, &pair);
	CHECK(pthread_create(&thread, NULL, post_on, pair.active) == 0);
	for (i = 0; i < BEFORE; i++)
		CHECK(rpma_rt_queue_wait(s.aq, &item, 1, WORLD_PATIENCE_MS) ==
		      1);
	return 0;
}

static void exit__beside_threads_that_work(void)
{
	char *args[] = {"runtime_reports", "exit", NULL};
	int status;
	pid_t pid;
	int i;

	for (i = 0; i < EXITS; i++) {
		CHECK(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, args,
				  environ) == 0);
		CHECK(waitpid(pid, &status, 0) == pid);
		if (status != 0)
			fprintf(stderr, "exit %d: status 0x%x\n", i,
				(unsigned)status);
		CHECK(status == 0);
	}
	printf("ok: a process exits beside its threads\n");
}

int main(int argc, char **argv)
{
	struct stage s;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 1 && strcmp(argv[1], "exit") == 0)
		return exit_beside_threads();
	descriptors__closed_by_exec();
	stage_open(&s, &cfg);
	region__of_read_only_memory_REFUSED(&s);
	fd__edge_triggered_EACH_ITEM(&s);
	listen__at_any_ipv6_address_TAKES_IPV4(&s);
	stage_close(&s);
	exit__beside_threads_that_work();
	return 0;
}
