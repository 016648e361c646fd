/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* two.c -- starts two processes, and hears what they say. */

#include "two.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* A fault of any thread of a child is to end it with its signal. */
static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};
static struct sigaction before[sizeof(faults) / sizeof(*faults)];

/* cmocka's handlers end a process with 255, and no word, but in its thread. */
__attribute__((constructor)) static void keep_handlers(void)
{
	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
		sigaction(faults[i], NULL, &before[i]);
}

static void restore_handlers(void)
{
	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
		assert_int_equal(sigaction(faults[i], &before[i], NULL), 0);
}

/* The child: exits with 0 once its body has returned. */
static void run(const struct two_process *self, int log, two_body_fn *body)
{
	restore_handlers();
	assert_int_equal(dup2(log, STDERR_FILENO), STDERR_FILENO);
	close(log);
	close(self->other); /* or it would not see the other one's end */
	body(self);
	_exit(0);
}

static void start(struct two_process *p, two_body_fn *body)
{
	int log[2];

	assert_int_equal(pipe(log), 0);
	p->log = log[0];
	p->pid = fork();
	assert_true(p->pid >= 0);
	if (p->pid == 0)
		run(p, log[1], body);
	close(log[1]);
}

/* Reads what it says until it ends; what is beyond TWO_LOG nobody keeps. */
static int finish(struct two_process *p)
{
	char rest[512];
	size_t len = 0;
	ssize_t got;
	int status;

	while ((got = read(p->log, p->said + len, TWO_LOG - 1 - len)) > 0)
		len += (size_t)got;
	p->said[len] = '\0';
	while (got >= 0 && read(p->log, rest, sizeof(rest)) > 0)
		;
	close(p->log);
	assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
	return status;
}

static bool is_well(const struct two_process *p, int status)
{
	return p->signal ? WIFSIGNALED(status) && WTERMSIG(status) == p->signal
			 : WIFEXITED(status) && !WEXITSTATUS(status);
}

void two_run(struct two_process p[2], two_body_fn *body)
{
	int sockets[2], status[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	for (int i = 0; i < 2; i++) {
		p[i].number = i;
		p[i].socket = sockets[i];
		p[i].other = sockets[!i];
		start(&p[i], body);
	}
	close(sockets[0]);
	close(sockets[1]);
	status[0] = finish(&p[0]);
	status[1] = finish(&p[1]);
	/* one that ends too early takes the other with it: both are printed */
	if (!is_well(&p[0], status[0]) || !is_well(&p[1], status[1]))
		fail_msg("status %#x: %s\nstatus %#x: %s", status[0], p[0].said,
			 status[1], p[1].said);
}

int two_count(const struct two_process *p, const char *text)
{
	const char *at = p->said;
	int n = 0;

	while ((at = strstr(at, text))) {
		at += strlen(text);
		n++;
	}
	return n;
}

void two_swap(const struct two_process *self, const void *mine, void *theirs,
	      size_t size)
{
	assert_int_equal(send(self->socket, mine, size, MSG_NOSIGNAL), size);
	assert_int_equal(recv(self->socket, theirs, size, MSG_WAITALL), size);
}

void two_wait(const struct two_process *self)
{
	char here = 0;

	two_swap(self, &here, &here, sizeof(here));
}
