/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * silent.c -- a loop that polls and never sleeps makes no system call: manual
 * mode, one message in flight, queues whose descriptors were asked for. A
 * filter in the kernel traps every system call of the thread but those that end
 * the program.
 */

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "stage.h"

#define MESSAGES 5000

static volatile sig_atomic_t trapped; /* system calls */
static volatile sig_atomic_t number;  /* of the last one */

static void on_trap(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	trapped = trapped + 1;
	number = info->si_syscall;
}

/* From here on this thread may write to the standard output and end. */
static void forbid_system_calls(void)
{
	static struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 5, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 0, 2),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, STDOUT_FILENO, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(filter) / sizeof(filter[0]),
				     .filter = filter};
	struct sigaction action = {.sa_sigaction = on_trap,
				   .sa_flags = SA_SIGINFO};

	CHECK(sigaction(SIGSYS, &action, NULL) == 0);
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		printf("skipped: the kernel has no filters of system calls: "
		       "%s\n",
		       strerror(errno));
		exit(77);
	}
}

/* What a shard does all day: it looks, for the most part in vain. */
static struct rpma_rt_completion next(struct stage *s,
				      struct rpma_rt_queue *queue)
{
	struct rpma_rt_completion item;
	int got;

	while ((got = rpma_rt_queue_poll(queue, &item, 1)) == 0)
		CHECK(rpma_rt_poller_run(s->world.rt, 0, 32) >= 0);
	MUST_ANSWER(1, got);
	return item;
}

static void say(const char *text)
{
	ssize_t ret = write(STDOUT_FILENO, text, strlen(text));

	(void)ret;
}

int main(void)
{
	const struct stage_cfg cfg = {
		.pollers = 1, .mode = RPMA_RT_MODE_MANUAL, .depth = 16};
	struct rpma_rt_completion item;
	struct world_pair pair;
	struct stage s;
	char text[64];
	uint64_t i;
	int fd;

	stage_open(&s, &cfg);
	/* the poller is this thread's: what it waits for runs it */
	MUST(rpma_rt_poller_attach(s.world.rt, 0));
	MUST(rpma_rt_queue_get_fd(s.aq, &fd));
	MUST(rpma_rt_queue_get_fd(s.pq, &fd));
	stage_connect(&s, &pair);
	MUST(rpma_rt_recv(pair.passive, s.mr, 0, 64, 0));
	forbid_system_calls();
	for (i = 0; i < MESSAGES; i++) {
		MUST(rpma_rt_send(pair.active, s.mr, 64, 64,
				  RPMA_F_COMPLETION_ALWAYS, i));
		item = next(&s, s.aq);
		CHECK(item.context == i && item.status == IBV_WC_SUCCESS);
		item = next(&s, s.pq);
		CHECK(item.status == IBV_WC_SUCCESS);
		CHECK(rpma_rt_queue_poll(s.pq, &item, 1) == 0);
		MUST(rpma_rt_recv(pair.passive, s.mr, 0, 64, 0));
	}
	if (trapped != 0) {
		snprintf(text, sizeof(text),
			 "FAILED: %d system calls, number %d the last\n",
			 (int)trapped, (int)number);
		say(text);
		_exit(1);
	}
	say("ok\n");
	_exit(0);
}
