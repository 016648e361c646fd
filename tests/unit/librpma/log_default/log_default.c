/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Unit tests of the default log function: its output to stderr and syslog. */

#include "mocks.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#include "log_default.h"

#define CALL(level, file, ...) \
	rpma__log_default(level, file, 12, "function", __VA_ARGS__)

static char to_syslog[2048];
static int priority;
static int syslog_calls;
static bool clock_fails;
static int identity_taken; /* calls since the process began */
static int dgram_errno;	   /* of connecting to /dev/log with a socket of */
static int stream_errno;   /* that type */
static int connects;

void __wrap_syslog(int prio, const char *format, ...);
void __wrap___syslog_chk(int prio, int flag, const char *format, ...);
int __wrap_clock_gettime(clockid_t id, struct timespec *now);
void __wrap_openlog(const char *ident, int option, int facility);
void __wrap_closelog(void);
int __real_clock_gettime(clockid_t id, struct timespec *now);
int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t len);

int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	const struct sockaddr_un *where = (const struct sockaddr_un *)addr;
	socklen_t size = sizeof(int);
	int type = 0;

	assert_int_equal(len, sizeof(*where));
	assert_string_equal(where->sun_path, "/dev/log");
	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size), 0);
	connects++;
	errno = type == SOCK_DGRAM ? dgram_errno : stream_errno;
	return errno ? -1 : 0;
}

void __wrap_openlog(const char *ident, int option, int facility)
{
	(void)ident;
	(void)option;
	(void)facility;
	identity_taken++;
}

void __wrap_closelog(void)
{
	identity_taken++;
}

static void record(int prio, const char *format, va_list args)
{
	vsnprintf(to_syslog, sizeof(to_syslog), format, args);
	priority = prio;
	syslog_calls++;
}

void __wrap_syslog(int prio, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	record(prio, format, args);
	va_end(args);
}

void __wrap___syslog_chk(int prio, int flag, const char *format, ...)
{
	va_list args;

	(void)flag;
	va_start(args, format);
	record(prio, format, args);
	va_end(args);
}

int __wrap_clock_gettime(clockid_t id, struct timespec *now)
{
	return clock_fails ? -1 : __real_clock_gettime(id, now);
}

/* What is written to stderr while fn runs. */
static const char *stderr_of(void (*fn)(void))
{
	static char text[4096];
	FILE *file = tmpfile();
	int saved = dup(STDERR_FILENO);
	size_t len;

	assert_non_null(file);
	fflush(stderr);
	dup2(fileno(file), STDERR_FILENO);
	fn();
	fflush(stderr);
	dup2(saved, STDERR_FILENO);
	close(saved);
	rewind(file);
	len = fread(text, 1, sizeof(text) - 1, file);
	text[len] = '\0';
	fclose(file);
	return text;
}

static void error_with_place(void)
{
	CALL(RPMA_LOG_LEVEL_ERROR, "/some/where/file.c", "it is %s\n", "so");
}

static void error_without_place(void)
{
	CALL(RPMA_LOG_LEVEL_ERROR, NULL, "alone\n");
}

static void aux(enum rpma_log_level level)
{
	ok(rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, level));
}

static void warning(void)
{
	CALL(RPMA_LOG_LEVEL_WARNING, "file.c", "a warning\n");
}

static void fatal(void)
{
	CALL(RPMA_LOG_LEVEL_FATAL, "file.c", "the end\n");
}

/* The program has set nothing, and this is a container. */
TEST(log__no_syslog_ERRORS_ON_STDERR)
{
	dgram_errno = ENOENT;
	errno = EADDRINUSE;
	assert_non_null(strstr(stderr_of(error_with_place), "it is so\n"));
	assert_int_equal(errno, EADDRINUSE); /* of what is logged */
	assert_non_null(strstr(stderr_of(fatal), "the end\n"));
	assert_string_equal(stderr_of(warning), "");
	dgram_errno = ECONNREFUSED; /* what listened is gone */
	assert_non_null(strstr(stderr_of(error_with_place), "it is so\n"));
	dgram_errno = EPROTOTYPE; /* it may listen on a stream */
	stream_errno = ECONNREFUSED;
	assert_non_null(strstr(stderr_of(error_with_place), "it is so\n"));
	/* and each of them to syslog, in case */
	assert_string_equal(to_syslog, "rpma: *ERROR* file.c:  12: function: "
				       "it is so\n");
}

TEST(log__syslog_listens_NOTHING_ON_STDERR)
{
	dgram_errno = 0;
	assert_string_equal(stderr_of(error_with_place), "");
	dgram_errno = EPROTOTYPE;
	stream_errno = 0;
	assert_string_equal(stderr_of(error_with_place), "");
}

/* Set once, the threshold rules: as in 1.3, nobody asks for syslog. */
TEST(log__aux_set_RULES_WITHOUT_SYSLOG)
{
	dgram_errno = ENOENT;
	connects = 0;
	aux(RPMA_LOG_DISABLED);
	assert_string_equal(stderr_of(error_with_place), "");
	aux(RPMA_LOG_LEVEL_FATAL);
	assert_string_equal(stderr_of(error_with_place), "");
	aux(RPMA_LOG_LEVEL_WARNING);
	assert_non_null(strstr(stderr_of(warning), "a warning\n"));
	assert_int_equal(connects, 0);
}

TEST(log__every_level_HAS_TAG_AND_SEVERITY)
{
	const char *tags[] = {"*FATAL* ", "*ERROR* ", "*WARN*  ",
			      "*NOTE*  ", "*INFO*  ", "*DEBUG* "};
	const int severities[] = {LOG_CRIT,   LOG_ERR,	LOG_WARNING,
				  LOG_NOTICE, LOG_INFO, LOG_DEBUG};
	char expected[64];
	int level;

	aux(RPMA_LOG_DISABLED);
	for (level = 0; level <= RPMA_LOG_LEVEL_DEBUG; level++) {
		CALL(level, "a/b.c", "text\n");
		snprintf(expected, sizeof(expected),
			 "rpma: %sb.c:  12: function: text\n", tags[level]);
		assert_string_equal(to_syslog, expected);
		assert_int_equal(priority, LOG_LOCAL7 | severities[level]);
	}
}

TEST(log__disabled_SAYS_NOTHING)
{
	syslog_calls = 0;
	CALL(RPMA_LOG_DISABLED, "b.c", "text\n");
	CALL(-2, "b.c", "text\n");
	CALL(6, "b.c", "text\n");
	assert_int_equal(syslog_calls, 0);
}

TEST(log__aux_below_NOTHING_ON_STDERR)
{
	aux(RPMA_LOG_LEVEL_FATAL);
	assert_string_equal(stderr_of(error_with_place), "");
}

TEST(log__aux_passes_ON_STDERR_WITH_TIME)
{
	char tail[128];
	const char *text;

	aux(RPMA_LOG_LEVEL_ERROR);
	text = stderr_of(error_with_place);
	snprintf(tail, sizeof(tail),
		 " [%d] *ERROR* file.c:  12: function: it is so\n", gettid());
	assert_non_null(strstr(text, tail));
	/* "Nov 21 10:11:12.123456" */
	assert_int_equal(strstr(text, tail) - text, 22);
	assert_int_equal(text[15], '.');
}

TEST(log__no_clock_SAYS_SO)
{
	const char *text;

	aux(RPMA_LOG_LEVEL_ERROR);
	clock_fails = true;
	text = stderr_of(error_without_place);
	clock_fails = false;
	assert_memory_equal(text, "[time error] ", 13);
	assert_string_equal(to_syslog, "rpma: *ERROR* alone\n");
}

/* The line ends all the same. */
TEST(log__long_message_IS_CUT)
{
	char text[3000];

	aux(RPMA_LOG_DISABLED);
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	CALL(RPMA_LOG_LEVEL_ERROR, NULL, "%s\n", text);
	assert_int_equal(strlen(to_syslog), strlen("rpma: *ERROR* ") + 1024);
	assert_string_equal(strchr(to_syslog, '\0') - 2, "x\n");
	/* as long as a message of rpma_log_message() can be */
	text[1023] = '\0';
	CALL(RPMA_LOG_LEVEL_ERROR, NULL, "%s\n", text);
	assert_int_equal(strlen(to_syslog), strlen("rpma: *ERROR* ") + 1024);
	assert_string_equal(strchr(to_syslog, '\0') - 2, "x\n");
}

/* A wide character that the C locale has no bytes for. */
TEST(log__unprintable_SAYS_NOTHING)
{
	const wchar_t text[] = {0x20ac, 0};

	syslog_calls = 0;
	CALL(RPMA_LOG_LEVEL_ERROR, NULL, "%ls\n", text);
	assert_int_equal(syslog_calls, 0);
}

/* Neither when the library is loaded nor by a message. */
TEST(log__program_KEEPS_ITS_IDENTITY)
{
	syslog_calls = 0;
	CALL(RPMA_LOG_LEVEL_ERROR, NULL, "text\n");
	assert_int_equal(syslog_calls, 1);
	assert_int_equal(identity_taken, 0);
}

TEST_MAIN()
