/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* target.c -- see target.h. */

#include "target.h"

#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum target_kind target_kind_of(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return TARGET_NOT_FOUND;
	if (!S_ISREG(st.st_mode) || access(path, X_OK))
		return TARGET_NOT_EXECUTABLE;
	return TARGET_FILE;
}

enum target_kind target_find(const char *cmd, char path[PATH_MAX])
{
	const char *dirs = getenv("PATH");
	enum target_kind kind, found = TARGET_NOT_FOUND;
	char name[PATH_MAX];

	if (strchr(cmd, '/')) {
		snprintf(path, PATH_MAX, "%s", cmd);
		return target_kind_of(path);
	}
	if (!dirs)
		dirs = "/bin:/usr/bin";
	while (*cmd) {
		size_t len = strcspn(dirs, ":");

		/* an empty directory is the working directory */
		snprintf(name, sizeof(name), "%.*s/%s", len ? (int)len : 1,
			 len ? dirs : ".", cmd);
		kind = target_kind_of(name);
		if (kind != TARGET_NOT_FOUND && found == TARGET_NOT_FOUND) {
			found = kind; /* the first match, named in messages */
			memcpy(path, name, sizeof(name));
		}
		if (kind == TARGET_FILE) {
			memcpy(path, name, sizeof(name));
			return kind;
		}
		dirs += len;
		if (!*dirs++)
			break;
	}
	return found;
}

/* Returns the next word of a "#!" line, or NULL. */
static char *target_next_word(char **line)
{
	char *w;

	do {
		w = strsep(line, " \t");
	} while (w && !*w);
	return w;
}

static bool target_is_env(const char *path)
{
	const char *slash = strrchr(path, '/');

	return !strcmp(slash ? slash + 1 : path, "env");
}

/*
 * Returns the command that env(1) starts: the first word that is neither option
 * nor assignment.
 */
static char *target_behind_env(char **line)
{
	char *w;

	do {
		w = target_next_word(line);
	} while (w && (*w == '-' || strchr(w, '=')));
	return w;
}

static void target_interpreter_of(char *line, char out[PATH_MAX])
{
	char *first = target_next_word(&line), *then;

	then = first && target_is_env(first) ? target_behind_env(&line) : NULL;
	snprintf(out, PATH_MAX, "%s", then ? then : first ? first : "/bin/sh");
}

int target_interpreter(const char *path, char interpreter[PATH_MAX])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char head[512];
	ssize_t len;

	if (fd < 0)
		return -1;
	len = read(fd, head, sizeof(head) - 1);
	close(fd);
	if (len < 0)
		return -1;
	head[len] = '\0';
	if (len >= SELFMAG && !memcmp(head, ELFMAG, SELFMAG))
		return 0;
	head[strcspn(head, "\n")] = '\0';
	if (!strncmp(head, "#!", 2))
		target_interpreter_of(head + 2, interpreter);
	else
		snprintf(interpreter, PATH_MAX, "/bin/sh");
	return 1;
}
