/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* rdmacm_words.c -- the names of events, which need no device. */

#include <rdma/rdma_cma.h>

#include "replace.h"

#define NAME(event) [event] = #event

static const char *const names[] = {
	NAME(RDMA_CM_EVENT_ADDR_RESOLVED),
	NAME(RDMA_CM_EVENT_ADDR_ERROR),
	NAME(RDMA_CM_EVENT_ROUTE_RESOLVED),
	NAME(RDMA_CM_EVENT_ROUTE_ERROR),
	NAME(RDMA_CM_EVENT_CONNECT_REQUEST),
	NAME(RDMA_CM_EVENT_CONNECT_RESPONSE),
	NAME(RDMA_CM_EVENT_CONNECT_ERROR),
	NAME(RDMA_CM_EVENT_UNREACHABLE),
	NAME(RDMA_CM_EVENT_REJECTED),
	NAME(RDMA_CM_EVENT_ESTABLISHED),
	NAME(RDMA_CM_EVENT_DISCONNECTED),
	NAME(RDMA_CM_EVENT_DEVICE_REMOVAL),
	NAME(RDMA_CM_EVENT_MULTICAST_JOIN),
	NAME(RDMA_CM_EVENT_MULTICAST_ERROR),
	NAME(RDMA_CM_EVENT_ADDR_CHANGE),
	NAME(RDMA_CM_EVENT_TIMEWAIT_EXIT),
};

REPLACE_EXPORT const char *word_rdma_event_str(unsigned event);
REPLACE_EXPORT const char *word_rdma_event_str(unsigned event)
{
	return event < sizeof(names) / sizeof(*names) ? names[event]
						      : "UNKNOWN EVENT";
}
REPLACE_NAME(word_rdma_event_str, rdma_event_str, "RDMACM_1.0");
