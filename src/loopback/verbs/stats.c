/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * stats.c -- see stats.h. Nothing is counted for it: queue pairs count, under
 * locks that are held anyway, and are added up here. So do links, each of which
 * has a line of its own behind that of the process.
 */

#include "verbs/stats.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "rpma_loopback.h"
#include "wire/nic.h"
#include "wire/report.h"

static bool is_child; /* of a fork */

static void print(void)
{
	struct rpma_loopback_stats now;

	rpma_loopback_get_stats(&now);
	if (is_child && !now.executed && !now.received)
		return;
	fprintf(stderr,
		"loopback: process %d, in all: %llu requests (%llu failed), "
		"%llu messages received, %llu bytes\n",
		(int)getpid(), (unsigned long long)now.executed,
		(unsigned long long)now.failed,
		(unsigned long long)now.received,
		(unsigned long long)now.bytes);
	if (now.lost)
		fprintf(stderr,
			"loopback: process %d, to processes that took nothing: "
			"%llu datagrams and messages of UC lost\n",
			(int)getpid(), (unsigned long long)now.lost);
}

static void print_all(void)
{
	struct lb_nic *nic = lb_nic_self();

	print();
	if (nic)
		lb_nic_each(nic, lb_report_link, NULL);
}

void lb_stats_start(void)
{
	lb_report_start();
	if (atexit(print_all))
		fprintf(stderr,
			"loopback: no memory for RPMA_LOOPBACK_STATS\n");
}

void lb_stats_forked(void)
{
	is_child = true;
}
