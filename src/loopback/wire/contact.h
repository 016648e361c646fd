/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* contact.h -- links are made, and end. All by the link thread. */

#ifndef LB_WIRE_CONTACT_H
#define LB_WIRE_CONTACT_H

#include <stdint.h>

#include "wire/parts.h"

/* Somebody has connected: nic->listener is readable. */
void lb_contact_accept(struct lb_nic *nic);
/*
 * Begin what is to be begun, give up what takes too long, bury what is broken.
 * When to call again, of lb_clock_real_now(); UINT64_MAX: not by the time.
 */
uint64_t lb_contact_tend(struct lb_nic *nic, uint64_t now);
/* The link ends. Until then lb_links_find() finds it; 0: no more. */
void lb_contact_end(struct lb_nic *nic, struct lb_link *link, uint64_t until);
/* All descriptors and memory of a handshake are given back. */
void lb_contact_drop(struct lb_nic *nic, struct lb_contact *contact);

#endif /* LB_WIRE_CONTACT_H */
