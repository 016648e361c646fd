/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * rt-echo: a multi-threaded echo server over RDMA with a load generator, on
 * librpma_rt; README.md says where to start. main.c: start and end.
 */

#include <sched.h>
#include <signal.h>
#include <stddef.h>

#include "options.h"
#include "run.h"

static void on_signal(int signo)
{
	(void)signo;
	echo_interrupt();
}

static void catch_signals(void)
{
	struct sigaction action = {.sa_handler = on_signal};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

static unsigned count_cpus(void)
{
	cpu_set_t allowed[16]; /* of 1,024 CPUs each */

	if (sched_getaffinity(0, sizeof(allowed), allowed))
		return 1;
	return (unsigned)CPU_COUNT_S(sizeof(allowed), allowed);
}

int main(int argc, char **argv)
{
	struct options options;
	struct echo echo;

	switch (options_parse(argc, argv, &options)) {
	case PARSED_HELP:
		return 0;
	case PARSED_WRONG:
		return 2;
	case PARSED_OK:
		break;
	}
	options_plan(&options, count_cpus());
	catch_signals();
	bool is_ok = echo_open(&echo, &options) && echo_run(&echo);
	return echo_close(&echo) && is_ok ? 0 : 1;
}
