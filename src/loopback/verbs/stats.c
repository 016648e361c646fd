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
#include <string.h>
#include <unistd.h>

#include "base/tally.h"
#include "qp/qp.h"
#include "wire/nic.h"
#include "wire/report.h"

static bool is_child; /* of a fork */

static void print(void)
{
	struct lb_tally now;

	lb_qp_tally(&now);
	if (!is_child || now.executed || now.received)
		lb_tally_print((int)getpid(), &now);
	lb_tally_leave();
}

static void print_all(void)
{
	struct lb_nic *nic = lb_nic_self();

	print();
	if (nic)
		lb_nic_each(nic, lb_report_link, NULL);
}

void lb_stats_start(const char *value)
{
	if (*value == '/' && !lb_tally_open_board(value))
		fprintf(stderr,
			"loopback: RPMA_LOOPBACK_STATS=%s: %s; process %d "
			"prints its line only if it calls exit()\n",
			value, strerror(errno), (int)getpid());
	lb_report_start();
	if (atexit(print_all))
		fprintf(stderr,
			"loopback: no memory for RPMA_LOOPBACK_STATS\n");
}

void lb_stats_forked(void)
{
	is_child = true;
}
