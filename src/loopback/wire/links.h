/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* links.h -- the links of a NIC. */

#ifndef LB_WIRE_LINKS_H
#define LB_WIRE_LINKS_H

#include <stdint.h>

#include "wire/parts.h"

/*
 * The link to a process that has this number, with a reference; one in
 * contact if there was none. NULL: no memory, or too many are dead and in use.
 */
struct lb_link *lb_links_find(struct lb_nic *nic, unsigned number);
/*
 * It is dead, and not the one that lb_links_find() finds; until then it is.
 * The link thread.
 */
void lb_links_leave(struct lb_nic *nic, struct lb_link *link, uint64_t until);
/* Those who wait for some link to be up look again. The link thread. */
void lb_links_came_up(struct lb_nic *nic);
/* No link of this number is kept because nobody had it. */
void lb_links_forget_nobody(struct lb_nic *nic, unsigned number);
/* How many there are; the one of an index. Any thread, no lock. */
unsigned lb_links_count(struct lb_nic *nic);
struct lb_link *lb_links_at(struct lb_nic *nic, unsigned i);

#endif /* LB_WIRE_LINKS_H */
