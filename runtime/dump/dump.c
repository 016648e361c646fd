/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * dump.c -- rpma_rt_dump(): takes a snapshot, judges and prints the snapshot
 * into memory, and writes the text while no lock is held. Any thread.
 * doc/protocols/directory.md.
 */

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "rpma_rt.h"
#include "base/cancel.h"
#include "base/context.h"
#include "base/log.h"
#include "dump/dump.h"

/* ---------------------------------------------------------------- write --- */

/*
 * Writes to a descriptor of the program. A reader that has gone, or a file at
 * the limit, is an error of the call; the signal that the kernel sends as well,
 * SIGPIPE or SIGXFSZ, does not reach the program.
 *
 * The kernel sends the signals to the writing thread. So the thread blocks the
 * signals during a write, and takes the signals raised by the write before the
 * mask is restored. A signal that was pending before stays pending, because
 * another sender sent the signal.
 */

static const int signals[] = {SIGPIPE, SIGXFSZ};

#define SIGNALS (sizeof(signals) / sizeof(signals[0]))

/* Writes the whole text. Returns 0, or errno. */
static int write_on(int fd, const char *text, size_t len)
{
	ssize_t n;

	while (len > 0) {
		n = write(fd, text, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno;
		if (n == 0) /* the next write would return 0, too */
			return EIO;
		text += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Takes the pending signals that were not pending before. */
static void dump_take_signals(const sigset_t *pending)
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

/* Writes the whole text. ERRORS: RPMA_E_PROVIDER, noted for the log */
static int rt_write_all(int fd, const char *text, size_t len)
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
		dump_take_signals(&pending);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err == 0)
		return 0;
	errno = err;
	return rt_refuse_system("write");
}

/* ----------------------------------------------------------------- dump --- */

int rpma_rt_dump(struct rpma_rt *rt, int fd, enum rpma_rt_dump_format format)
{
	RT_NOT_CANCELLED;
	static const char what[] = "no dump is written";
	struct rt_dump_all dump = {0};
	char *text = NULL;
	size_t len = 0;
	int ret;

	ret = RT_REFUSE_NULL(rt);
	if (ret)
		return ret;
	if (fd < 0 || (int)format < RPMA_RT_DUMP_HUMAN ||
	    (int)format > RPMA_RT_DUMP_PROMETHEUS)
		return RT_REFUSE(RPMA_E_INVAL,
				 "fd is %d and format %d: give an open "
				 "descriptor and an enum rpma_rt_dump_format",
				 fd, (int)format);
	ret = RT_REFUSE_FORKED(rt);
	if (ret)
		return ret;
	ret = rt_dump_take(rt, &dump);
	if (ret == RPMA_RT_E_BUSY)
		return RT_REFUSE(ret, "no dump is written: another thread "
				      "holds the runtime's directory for long");
	if (ret == 0)
		rt_dump_wrong_judge(&dump);
	if (ret == 0 && dump.is_short)
		ret = RPMA_E_NOMEM;
	if (ret == 0)
		ret = rt_dump_write(&dump, format, &text, &len);
	rt_dump_free(&dump);
	if (ret)
		return RT_REFUSED(ret, what);
	ret = rt_write_all(fd, text, len);
	free(text);
	return RT_REFUSED(ret, what);
}
