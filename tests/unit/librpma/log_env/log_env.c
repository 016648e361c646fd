/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Unit tests of RPMA_LOG. It is read when the library is loaded, so each value
 * has a child of its own: this program again, which prints its thresholds and
 * logs a message of each level.
 */

#include "mocks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

#include "log.h"

#define CHILD	    "RPMA_TEST_LOG_CHILD"
#define SETUID_LIKE "RPMA_TEST_LOG_SETUID"
#define WORDS	    4096

int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t len);
char *__real_secure_getenv(const char *name);
char *__wrap_secure_getenv(const char *name);
void __wrap_syslog(int prio, const char *format, ...);
void __wrap___syslog_chk(int prio, int flag, const char *format, ...);

/* As in a setuid program. */
char *__wrap_secure_getenv(const char *name)
{
	return getenv(SETUID_LIKE) ? NULL : __real_secure_getenv(name);
}

void __wrap_syslog(int prio, const char *format, ...)
{
	(void)prio;
	(void)format;
}

void __wrap___syslog_chk(int prio, int flag, const char *format, ...)
{
	(void)prio;
	(void)flag;
	(void)format;
}

/* No syslog listens. */
int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	(void)fd;
	(void)addr;
	(void)len;
	errno = ENOENT;
	return -1;
}

static void log_all(const char *when)
{
	enum rpma_log_level level;

	rpma_log_get_threshold(RPMA_LOG_THRESHOLD, &level);
	fprintf(stderr, "%s %d\n", when, (int)level);
	RPMA_LOG_WARNING("%s warning", when);
	RPMA_LOG_INFO("%s info", when);
	RPMA_LOG_DEBUG("%s debug", when);
}

static int child(void)
{
	log_all("first");
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_WARNING);
	log_all("own");
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_DISABLED);
	log_all("quiet");
	return 0;
}

static _Noreturn void exec_child(const char *value, bool is_setuid, int fd)
{
	setenv(CHILD, "1", 1);
	setenv("RPMA_LOG", value, 1);
	if (is_setuid)
		setenv(SETUID_LIKE, "1", 1);
	dup2(fd, STDERR_FILENO);
	execl("/proc/self/exe", "log_env", NULL);
	_exit(1);
}

/* What a process that begins with this value writes to stderr. */
static const char *words_of(const char *value, bool is_setuid)
{
	static char words[WORDS];
	FILE *file = tmpfile();
	size_t len;
	int status;
	pid_t pid;

	assert_non_null(file);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		exec_child(value, is_setuid, fileno(file));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	rewind(file);
	len = fread(words, 1, sizeof(words) - 1, file);
	words[len] = '\0';
	fclose(file);
	return words;
}

#define SAYS(words, text)  assert_non_null(strstr(words, text))
#define HIDES(words, text) assert_null(strstr(words, text))

TEST(env__level_RAISED_AND_ON_STDERR)
{
	const char *words = words_of("info", false);

	SAYS(words, "first 4\n");
	SAYS(words, "first warning\n");
	SAYS(words, "first info\n");
	HIDES(words, "first debug\n");
	words = words_of("debug", false);
	SAYS(words, "first 5\n");
	SAYS(words, "first debug\n");
}

/* A threshold that the program sets is the program's. */
TEST(env__program_sets_RULES)
{
	const char *words = words_of("debug", false);

	SAYS(words, "own 2\n");
	SAYS(words, "own warning\n");
	HIDES(words, "own info\n");
	HIDES(words, "quiet warning\n");
}

TEST(env__less_than_the_default_NOT_LOWERED)
{
	const char *words = words_of("fatal", false);

	SAYS(words, "first 2\n");
	HIDES(words, "first warning\n"); /* it went to syslog */
}

TEST(env__empty_AS_NONE)
{
	const char *words = words_of("", false);

	SAYS(words, "first 2\n");
	HIDES(words, "RPMA_LOG");
}

TEST(env__bad_value_SAID_ONCE)
{
	static const char *const bad[] = {"verbose", "Debug", "5", "debug "};
	const char *words;
	const char *said;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		words = words_of(bad[i], false);
		SAYS(words, bad[i]);
		SAYS(words, "first 2\n");
		said = strstr(words, "RPMA_LOG is");
		assert_non_null(said);
		assert_non_null(strstr(said, "notice"));
		assert_null(strstr(said + 1, "RPMA_LOG is"));
	}
}

TEST(env__setuid_IGNORED)
{
	const char *words = words_of("debug", true);

	SAYS(words, "first 2\n");
	HIDES(words, "first info\n");
	HIDES(words_of("verbose", true), "verbose");
}

int main(void)
{
	if (getenv(CHILD))
		return child();
	return tests_run(NULL, NULL);
}
