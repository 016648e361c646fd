/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * hello.c -- compares what two processes say about themselves, and says what
 * does not fit. The link thread.
 */

#include "wire/hello.h"

#include <stdbool.h>
#include <string.h>

#include "base/log.h"
#include "wire/parts.h"

#define PREFIX offsetof(struct lb_hello, kind)

enum lb_hello_reason lb_hello_check(const struct lb_hello *mine,
				    const void *bytes, size_t size,
				    struct lb_hello *theirs)
{
	memset(theirs, 0, sizeof(*theirs));
	memcpy(theirs, bytes, size < sizeof(*theirs) ? size : sizeof(*theirs));
	if (size < PREFIX || theirs->magic != mine->magic)
		return LB_HELLO_WRONG;
	if (theirs->version != mine->version)
		return LB_HELLO_VERSIONS;
	if (size != sizeof(*theirs) || theirs->length != mine->length ||
	    !theirs->number || theirs->number > LB_PARTS_NUMBERS ||
	    theirs->number == mine->number || !theirs->cookie)
		return LB_HELLO_WRONG;
	if (theirs->user != mine->user)
		return LB_HELLO_USERS;
	if (theirs->devices != mine->devices ||
	    theirs->devices_hash != mine->devices_hash)
		return LB_HELLO_DEVICES;
	return LB_HELLO_OK;
}

void lb_hello_log(enum lb_hello_reason reason, const struct lb_hello *mine,
		  const struct lb_hello *theirs)
{
	switch (reason) {
	case LB_HELLO_VERSIONS:
		lb_log(0,
		       "a process has version %u of the wire, this one "
		       "(process %u) has %u: no link. Run both with one "
		       "librpma_loopback.so",
		       theirs->version, mine->number, mine->version);
		break;
	case LB_HELLO_USERS:
		lb_log(0,
		       "process %u is of user %u, this one (process %u) of "
		       "user %u: no link. Run both as one user",
		       theirs->number, theirs->user, mine->number, mine->user);
		break;
	case LB_HELLO_DEVICES:
		lb_log(0,
		       "process %u has %u devices with GUIDs %#llx, this "
		       "one (process %u) %u with %#llx: no link. "
		       "RPMA_LOOPBACK_DEVICES must be the same",
		       theirs->number, theirs->devices,
		       (unsigned long long)theirs->devices_hash, mine->number,
		       mine->devices, (unsigned long long)mine->devices_hash);
		break;
	case LB_HELLO_SEGMENT:
		lb_log(0,
		       "process %u or this one (process %u) refuses the "
		       "other's "
		       "memory: no link",
		       theirs->number, mine->number);
		break;
	default:
		lb_log(0,
		       "process %u sent what is no hello to this one (process "
		       "%u): no link",
		       theirs->number, mine->number);
		break;
	}
}
