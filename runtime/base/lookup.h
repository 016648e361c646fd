/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * lookup.h -- look-ups of names for all runtimes of the process: a short-lived
 * thread runs getaddrinfo() and sends the answer to the thread that asked. A
 * look-up that blocks delays neither another look-up nor the asker, and may
 * outlive the asker's runtime. doc/protocols/name.md.
 */

#ifndef RT_BASE_LOOKUP_H
#define RT_BASE_LOOKUP_H

#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/inbox.h"

/* look-ups that run at the same time in the process; more wait */
#define RT_LOOKUPS_MAX 16

struct rt_lookup;

/* Returns a look-up of that name and port, or NULL without memory. */
struct rt_lookup *rt_lookup_new(const char *name, const char *port);
/*
 * Begins the look-up, or lets the look-up wait for its turn. answered(asker)
 * runs in the inbox when the look-up is over, unless the look-up is deleted
 * before. The caller is the owner of the inbox.
 * ERRORS: RPMA_E_PROVIDER with errno, not logged: no thread could be started
 */
int rt_lookup_begin(struct rt_lookup *lookup, struct rt_inbox *inbox,
		    void (*answered)(void *asker), void *asker);
/* Deletes the look-up in any state, without waiting for the name server. The
 * caller is the owner of the inbox, unless the look-up was not begun or
 * answered() has run. */
void rt_lookup_delete(struct rt_lookup *lookup);

/* Returns the name that the look-up was made with. */
const char *rt_lookup_name(const struct rt_lookup *lookup);
/* Returns whether the look-up waits for the end of others. */
bool rt_lookup_is_waiting(const struct rt_lookup *lookup);

/* The following are valid from answered() on. */

/* Returns the addresses, or NULL: the look-up failed. */
const struct addrinfo *rt_lookup_addresses(const struct rt_lookup *lookup);
/* Returns the error of getaddrinfo(); of EAI_SYSTEM, *errnum is the cause. */
int rt_lookup_error(const struct rt_lookup *lookup, int *errnum);
/* Returns when getaddrinfo() returned, by the monotonic clock. */
uint64_t rt_lookup_over_ns(const struct rt_lookup *lookup);

/* In the child of a fork: no look-up runs or waits. */
void rt_lookup_forked(void);

#endif /* RT_BASE_LOOKUP_H */
