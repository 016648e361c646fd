/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * write.c -- see write.h. The signals go to the thread that writes. So they are
 * blocked in that thread for the time of a write, and those that the write
 * raised are taken before the mask is as it was. A signal that was pending
 * before stays pending: its sender is not this write.
 */

#include "base/write.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "rpma_rt.h"

static const int signals[] = {SIGPIPE, SIGXFSZ};

#define SIGNALS (sizeof(signals) / sizeof(signals[0]))

/* Writes until all is written; 0, or errno. */
static int write_on(int fd, const char *text, size_t len)
{
	ssize_t n;

	while (len > 0) {
		n = write(fd, text, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno;
		if (n == 0) /* it would be so the next time */
			return EIO;
		text += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Takes those of the signals that were not pending before. */
static void take_signals(const sigset_t *pending)
{
	const struct timespec now = {0, 0};
	sigset_t raised;
	size_t i;

	sigemptyset(&raised);
	for (i = 0; i < SIGNALS; i++) {
		if (!sigismember(pending, signals[i]))
			sigaddset(&raised, signals[i]);
	}
	while (sigtimedwait(&raised, NULL, &now) > 0)
		;
}

int rt_write_all(int fd, const char *text, size_t len)
{
	sigset_t pending;
	sigset_t blocked;
	sigset_t before;
	size_t i;
	int err;

	sigemptyset(&blocked);
	for (i = 0; i < SIGNALS; i++)
		sigaddset(&blocked, signals[i]);
	pthread_sigmask(SIG_BLOCK, &blocked, &before);
	sigpending(&pending);
	err = write_on(fd, text, len);
	if (err == EPIPE || err == EFBIG)
		take_signals(&pending);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err == 0)
		return 0;
	errno = err;
	return rt_refuse_system("write");
}
