/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* opener.c -- see opener.h. Any thread. */

#include "base/opener.h"

#include <string.h>
#include <unistd.h>

_Atomic bool lb_opener_counts;

void lb_opener_note(struct lb_opener *opener)
{
	memset(opener, 0, sizeof(*opener));
	(void)!getresuid(&opener->uids[0], &opener->uids[1], &opener->uids[2]);
	(void)!getresgid(&opener->gids[0], &opener->gids[1], &opener->gids[2]);
}

bool lb_opener_differs(const struct lb_opener *opener)
{
	struct lb_opener now;

	lb_opener_note(&now);
	return memcmp(&now, opener, sizeof(now)) != 0;
}
