/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* loader.c -- see loader.h. */

#include "loader.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Reads the pipe to its end; keeps as many bytes as there is room for. */
static void loader_read_all(int fd, char text[LOADER_TEXT])
{
	char rest[4096];
	size_t len = 0;
	ssize_t got;

	do {
		got = len < LOADER_TEXT - 1
			      ? read(fd, text + len, LOADER_TEXT - 1 - len)
			      : read(fd, rest, sizeof(rest));
		if (got > 0 && len < LOADER_TEXT - 1)
			len += (size_t)got;
	} while (got > 0 || (got < 0 && errno == EINTR));
	text[len] = '\0';
}

static void loader_run(const char *loader, const char *program, int out)
{
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	execl(loader, loader, "--list", program, (char *)NULL);
	printf("%s: %s\n", loader, strerror(errno));
	fflush(stdout);
	_exit(127);
}

int loader_ask(const char *loader, const char *program,
	       struct loader_answer *answer)
{
	int ends[2], status;
	pid_t pid;

	if (pipe(ends))
		return -1;
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		close(ends[0]);
		loader_run(loader, program, ends[1]);
	}
	close(ends[1]);
	if (pid > 0)
		loader_read_all(ends[0], answer->text);
	close(ends[0]);
	if (pid < 0)
		return -1;
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -1;
	}
	answer->is_good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
	return 0;
}

bool loader_line(const struct loader_answer *answer, const char *text,
		 char line[PATH_MAX])
{
	const char *at = strstr(answer->text, text), *begin;

	if (!at)
		return false;
	for (begin = at; begin > answer->text && begin[-1] != '\n'; begin--)
		;
	begin += strspn(begin, " \t");
	snprintf(line, PATH_MAX, "%.*s", (int)strcspn(begin, "\n"), begin);
	return true;
}

bool loader_file(const struct loader_answer *answer, const char *library,
		 char path[PATH_MAX])
{
	char wanted[256], line[PATH_MAX];
	const char *file, *end;

	snprintf(wanted, sizeof(wanted), "\t%s => /", library);
	if (!loader_line(answer, wanted, line))
		return false;
	file = strchr(line, '/');
	end = strstr(file, " ("); /* " (" and the load address follow the
				   * path */
	snprintf(path, PATH_MAX, "%.*s",
		 end ? (int)(end - file) : (int)strlen(file), file);
	return true;
}
