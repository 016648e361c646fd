/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * report.c -- a line of each link, when it dies, or else when the process ends.
 * The line is printed under the locks of the link: so a process that ends while
 * a link dies finds the line printed, or prints the line. A process that ends
 * by exit() in a signal handler, inside the locks, prints without the locks.
 */

#include "wire/report.h"

#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/lock.h"
#include "wire/link.h"
#include "wire/parts.h"

static bool is_wanted; /* constant since before the first link */

void lb_report_start(void)
{
	is_wanted = true;
}

static void print(const struct lb_link *link)
{
	LB_NOT_CANCELLED;
	const struct lb_link_stats *out = &link->out_stats;
	const struct lb_link_stats *in = &link->in_stats;

	fprintf(stderr,
		"loopback: process %d, link to process %d (number %u): sent "
		"%llu requests, %llu answers, %llu bytes; received %llu "
		"requests, %llu answers, %llu bytes\n",
		(int)getpid(), (int)link->pid, link->number,
		(unsigned long long)out->requests_sent,
		(unsigned long long)(out->sent - out->requests_sent),
		(unsigned long long)out->sent_bytes,
		(unsigned long long)in->requests_taken,
		(unsigned long long)(in->taken - in->requests_taken),
		(unsigned long long)in->taken_bytes);
}

void lb_report_end(struct lb_link *link)
{
	if (!is_wanted || !link->mine || link->is_reported)
		return;
	link->is_reported = true;
	print(link);
}

void lb_report_link(struct lb_link *link, void *arg)
{
	bool has_in = lb_lock_get_soon(&link->in);
	bool has_out = lb_lock_get_soon(&link->out);

	(void)arg;
	lb_report_end(link);
	if (has_out)
		lb_lock_put(&link->out);
	if (has_in)
		lb_lock_put(&link->in);
}
