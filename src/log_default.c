/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Messages to stderr and syslog. The openlog() of the program is left alone:
 * facility and name are part of each message. An error goes to stderr where
 * otherwise no reader would find the error. Any thread, one at a time.
 */

#include "log_default.h"

#include <errno.h>
#include <paths.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "log.h"

#define MESSAGE_MAX (RPMA__LOG_MESSAGE_MAX + 1) /* with the newline */
#define PLACE_MAX   256
#define TIME_MAX    64

static const struct {
	const char *tag;
	int severity;
} levels[] = {
	[RPMA_LOG_LEVEL_FATAL] = {"*FATAL* ", LOG_CRIT},
	[RPMA_LOG_LEVEL_ERROR] = {"*ERROR* ", LOG_ERR},
	[RPMA_LOG_LEVEL_WARNING] = {"*WARN*  ", LOG_WARNING},
	[RPMA_LOG_LEVEL_NOTICE] = {"*NOTE*  ", LOG_NOTICE},
	[RPMA_LOG_LEVEL_INFO] = {"*INFO*  ", LOG_INFO},
	[RPMA_LOG_LEVEL_DEBUG] = {"*DEBUG* ", LOG_DEBUG},
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Formats "Nov 21 10:11:12.123456 ". */
static void log_format_time(char *buf, size_t size)
{
	char date[TIME_MAX / 2];
	struct timespec now;
	struct tm tm;

	if (clock_gettime(CLOCK_REALTIME, &now) ||
	    !localtime_r(&now.tv_sec, &tm) ||
	    !strftime(date, sizeof(date), "%b %d %H:%M:%S", &tm)) {
		snprintf(buf, size, "[time error] ");
		return;
	}
	snprintf(buf, size, "%s.%06ld ", date, now.tv_nsec / 1000);
}

/* Formats "file.c: 12: function: ". */
static void log_format_place(char *buf, size_t size, const char *file_name,
			     int line_no, const char *function_name)
{
	const char *base = strrchr(file_name, '/');

	snprintf(buf, size, "%s: %3d: %s: ", base ? base + 1 : file_name,
		 line_no, function_name);
}

/*
 * Connects a socket of the type to /dev/log; returns 0 if a process listens
 * there, or errno.
 */
static int log_try_syslog(int type)
{
	const struct sockaddr_un addr = {.sun_family = AF_UNIX,
					 .sun_path = _PATH_LOG};
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	int err = 0;

	if (fd < 0)
		return errno;
	if (connect(fd, (const struct sockaddr *)&addr, sizeof(addr)))
		err = errno;
	close(fd);
	return err;
}

static bool log_has_syslog(void)
{
	int err = log_try_syslog(SOCK_DGRAM);

	if (err == EPROTOTYPE)
		err = log_try_syslog(SOCK_STREAM);
	return err == 0;
}

static bool log_goes_to_stderr(enum rpma_log_level level)
{
	int aux;
	bool is_set = rpma__log_threshold_get_aux(&aux);

	if ((int)level <= aux)
		return true;
	/* asked each time: the syslog of a container may start later */
	return !is_set && level <= RPMA_LOG_LEVEL_ERROR && !log_has_syslog();
}

/* The signal mask before a write, and whether SIGPIPE was pending. */
struct pipe_state {
	sigset_t mask;
	bool was_pending;
};

static bool log_is_sigpipe_pending(void)
{
	sigset_t pending;

	sigpending(&pending);
	return sigismember(&pending, SIGPIPE) == 1;
}

/* Blocks SIGPIPE: a stderr whose reader has gone must not end the program. */
static void log_block_sigpipe(struct pipe_state *state)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &set, &state->mask);
	state->was_pending = log_is_sigpipe_pending();
}

/* Takes a SIGPIPE raised by a write of this thread meanwhile. */
static void log_restore_sigpipe(const struct pipe_state *state)
{
	const struct timespec now = {0, 0};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	if (!state->was_pending && log_is_sigpipe_pending())
		sigtimedwait(&set, NULL, &now);
	pthread_sigmask(SIG_SETMASK, &state->mask, NULL);
}

static void log_write_message(enum rpma_log_level level, const char *place,
			      const char *message)
{
	struct pipe_state pipe;
	char when[TIME_MAX];

	if (log_goes_to_stderr(level)) {
		log_format_time(when, sizeof(when));
		log_block_sigpipe(&pipe);
		fprintf(stderr, "%s[%ld] %s%s%s", when,
			(long)syscall(SYS_gettid), levels[level].tag, place,
			message);
		log_restore_sigpipe(&pipe);
	}
	syslog(LOG_LOCAL7 | levels[level].severity, "rpma: %s%s%s",
	       levels[level].tag, place, message);
}

void rpma__log_default_lock(void)
{
	pthread_mutex_lock(&lock);
}

void rpma__log_default_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void rpma__log_default(enum rpma_log_level level, const char *file_name,
		       const int line_no, const char *function_name,
		       const char *message_format, ...)
{
	char message[MESSAGE_MAX];
	char place[PLACE_MAX] = "";
	int err = errno; /* callers may read errno after logging an error */
	va_list args;
	int len;

	if ((int)level < RPMA_LOG_LEVEL_FATAL ||
	    (int)level > RPMA_LOG_LEVEL_DEBUG)
		return;

	va_start(args, message_format);
	len = vsnprintf(message, sizeof(message), message_format, args);
	va_end(args);
	if (len < 0)
		return;
	if ((size_t)len >= sizeof(message)) /* cut, with the newline */
		message[sizeof(message) - 2] = '\n';
	if (file_name)
		log_format_place(place, sizeof(place), file_name, line_no,
				 function_name);

	rpma__log_default_lock();
	log_write_message(level, place, message);
	rpma__log_default_unlock();
	errno = err;
}
