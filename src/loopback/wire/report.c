/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * report.c -- a line of each link, when it dies, or else when the process ends.
 * It is printed under the locks of the link: so a process that ends while one
 * dies finds it printed, or prints it.
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
	(void)arg;
	lb_lock_get(&link->in);
	lb_lock_get(&link->out);
	lb_report_end(link);
	lb_lock_put(&link->out);
	lb_lock_put(&link->in);
}
