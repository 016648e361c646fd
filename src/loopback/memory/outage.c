/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * outage.c -- the end of a process by power failure. A child stops all threads
 * of the process, writes the persistent values of volatile words to the files,
 * and kills the process, so a parent that waited for the process finds the
 * restored files, and nothing that the process had open. Other threads may have
 * held locks when the child was made, so the child calls only functions that
 * take no lock. If no child can be made, the process writes the values and
 * kills itself.
 */

#include "memory/outage.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "memory/pmem.h"

#define LOOK_NS 200000 /* between two looks at the threads */

static _Atomic bool begun;
static pid_t victim; /* of the child: the process */

/* --- the child: all threads stop */

/* Returns true if a thread runs no more code of the program. */
static bool is_stopped(int tasks, const char *thread)
{
	char path[NAME_MAX + 8], text[512];
	const char *state;
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "%s/stat", thread);
	fd = openat(tasks, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true; /* the thread has ended */
	got = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (got <= 0)
		return true;
	text[got] = '\0';
	state = strrchr(text, ')'); /* behind the name */
	return state && state[1] && strchr("TtZX", state[2]);
}

/* Looks at each thread once. tasks is the directory of the threads. */
static bool are_stopped(int tasks)
{
	_Alignas(struct dirent64) char buf[4096];
	const struct dirent64 *entry;
	long got, at;

	lseek(tasks, 0, SEEK_SET);
	while ((got = syscall(SYS_getdents64, tasks, buf, sizeof(buf))) > 0) {
		for (at = 0; at < got; at += entry->d_reclen) {
			entry = (const struct dirent64 *)(buf + at);
			if (*entry->d_name != '.' &&
			    !is_stopped(tasks, entry->d_name))
				return false;
		}
	}
	return true;
}

static void stop(pid_t pid)
{
	const struct timespec nap = {.tv_nsec = LOOK_NS};
	char path[64];
	int tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	kill(pid, SIGSTOP);
	while (tasks >= 0 && !are_stopped(tasks)) {
		nanosleep(&nap, NULL);
		/* another process may have continued the process */
		kill(pid, SIGSTOP);
	}
}

/* --- the child: words */

/* Returns how many words of a page were restored. */
static uint64_t restore_page(struct lb_pmem *file, size_t page)
{
	size_t word = page * LB_PMEM_PAGE_WORDS, i;
	uint64_t lost = 0;

	for (i = 0; i < LB_PMEM_PAGE_WORDS; i++, word++) {
		if (!file->owner[word])
			continue;
		lost += file->now[word] != file->image[word];
		file->now[word] = file->image[word];
	}
	return lost;
}

static uint64_t restore(void)
{
	struct lb_pmem *file;
	uint64_t lost = 0;
	size_t page;

	for (file = lb_pmem_files; file; file = file->next) {
		for (page = 0; page < file->words / LB_PMEM_PAGE_WORDS; page++)
			if (file->counts[page])
				lost += restore_page(file, page);
	}
	return lost;
}

/* The child has a copy of each descriptor of the process, and may end later
 * than the process: a port whose socket the child still has would be in use. */
static void kill_process(void)
{
	close_range(0, UINT_MAX, 0);
	kill(victim, SIGKILL);
}

/* The program made the file shorter: words behind the end are nowhere. */
static void on_bus(int signal)
{
	(void)signal;
	kill_process();
	_exit(1);
}

static _Noreturn void end_process(pid_t pid, uint64_t operations, uint64_t seed)
{
	const struct sigaction action = {.sa_handler = on_bus};
	char line[160];
	int len;

	victim = pid;
	sigaction(SIGBUS, &action, NULL);
	stop(pid);
	len = snprintf(line, sizeof(line),
		       "loopback: process %d: power failed at operation %llu, "
		       "seed %llu: %llu words lost\n",
		       (int)pid, (unsigned long long)operations,
		       (unsigned long long)seed, (unsigned long long)restore());
	(void)!write(STDERR_FILENO, line, (size_t)len);
	kill_process();
	_exit(0);
}

/* --- the process */

bool lb_outage_has_begun(void)
{
	/* seq_cst: pairs with lb_outage(), which tells, then makes the child */
	return atomic_load_explicit(&begun, memory_order_seq_cst);
}

void lb_outage(uint64_t operations, uint64_t seed)
{
	pid_t self = getpid(), child = 1;

	/* seq_cst: pairs with lb_outage_has_begun(); one thread makes the
	 * child, the others wait */
	if (!atomic_exchange_explicit(&begun, true, memory_order_seq_cst))
		child = _Fork();
	if (child == 0)
		end_process(self, operations, seed);
	if (child < 0) /* no child to be had: threads may see restored words */
		restore();
	if (child < 0)
		kill(self, SIGKILL);
	for (;;)
		pause();
}
