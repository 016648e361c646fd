/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* See death.h. */

#include "death.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define WORDS 4096

static _Noreturn void child(int words_fd, void (*mistake)(void *arg), void *arg)
{
	const struct rlimit no_core = {0, 0};

	setrlimit(RLIMIT_CORE, &no_core);
	signal(SIGABRT, SIG_DFL); /* the test's own handler is the parent's */
	dup2(words_fd, STDERR_FILENO);
	close(words_fd);
	mistake(arg);
	_exit(0);
}

/* Everything that is written there until its writer is gone. */
static void read_words(int fd, char words[WORDS])
{
	size_t used = 0;
	ssize_t n;

	while (used < WORDS - 1) {
		n = read(fd, words + used, WORDS - 1 - used);
		if (n <= 0)
			break;
		used += (size_t)n;
	}
	words[used] = '\0';
}

/* "FILE:LINE:" somewhere in it */
static void expect_place(const char *words, const char *file)
{
	const char *found = strstr(words, file);
	char colon = 0;
	int line = 0;

	if (found == NULL ||
	    sscanf(found + strlen(file), ":%d%c", &line, &colon) != 2 ||
	    line <= 0 || colon != ':')
		fail_msg("no %s:LINE: in \"%s\"", file, words);
}

void death_expect(const char *file, void (*mistake)(void *arg), void *arg)
{
	char words[WORDS];
	int status;
	int fds[2];
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		child(fds[1], mistake, arg);
	close(fds[1]);
	read_words(fds[0], words);
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	/* a sanitizer may end it with a status of its own */
	assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	expect_place(words, file);
}
