/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * port.c -- which identifier owns which port of which port space. The rules
 * are those of the kernel's rdma_cm: a port may be shared by different
 * addresses, not by one address and the wildcard. Everything here is under
 * lb_cm_lock().
 */

#include "cm/port.h"

#include <arpa/inet.h>
#include <errno.h>

#include "base/list.h"
#include "cm/addr.h"
#include "cm/cm.h"
#include "cm/table.h"

#define EPHEMERAL_FIRST 32768
#define EPHEMERAL_LAST	60999

static struct lb_list owners[UINT16_MAX + 1]; /* of each port, in all spaces */
static unsigned next_ephemeral = EPHEMERAL_FIRST;

static struct lb_list *owners_of(in_port_t port)
{
	struct lb_list *b = &owners[ntohs(port)];

	if (!b->next)
		lb_list_init(b);
	return b;
}

static struct lb_cm_addr src_of(const struct lb_cm_id *id)
{
	struct lb_cm_addr addr = {0};

	lb_cm_addr_from(&addr, (const struct sockaddr *)&id->src);
	return addr;
}

/* 0, or why id cannot have the port next to the owners it has already */
static int port_check(const struct lb_cm_id *id, const struct lb_cm_addr *addr,
		      bool reuse)
{
	struct lb_list *b = owners_of(addr->port);

	for (struct lb_list *n = b->next; n != b; n = n->next) {
		struct lb_cm_id *o = lb_entry(n, struct lb_cm_id, bind_node);
		struct lb_cm_addr other = src_of(o);

		if (o == id || o->ps != id->ps)
			continue;
		if (reuse && o->reuseaddr)
			continue;
		if (id->afonly && o->afonly && addr->v4 != other.v4)
			continue;
		if (addr->any || other.any)
			return EADDRNOTAVAIL;
		if (lb_cm_addr_is_same_ip(addr, &other))
			return EADDRINUSE;
	}
	return 0;
}

static bool port_is_free(const struct lb_cm_id *id, in_port_t port)
{
	struct lb_list *b = owners_of(port);

	for (struct lb_list *n = b->next; n != b; n = n->next) {
		struct lb_cm_id *o = lb_entry(n, struct lb_cm_id, bind_node);

		if (o->ps == id->ps)
			return false;
	}
	return true;
}

/* A port that nobody has on any address; 0 if there is none. */
static in_port_t port_any(const struct lb_cm_id *id)
{
	for (unsigned i = EPHEMERAL_FIRST; i <= EPHEMERAL_LAST; i++) {
		in_port_t port = htons((uint16_t)next_ephemeral);

		if (++next_ephemeral > EPHEMERAL_LAST)
			next_ephemeral = EPHEMERAL_FIRST;
		if (port_is_free(id, port))
			return port;
	}
	return 0;
}

int lb_cm_port_bind(struct lb_cm_id *id)
{
	struct lb_cm_addr addr = src_of(id);
	int err = 0;

	if (addr.port)
		err = port_check(id, &addr, id->reuseaddr);
	else
		addr.port = port_any(id);
	if (err || !addr.port)
		return err ? err : EADDRNOTAVAIL;
	lb_cm_addr_set_port(&id->src, addr.port);
	lb_list_push(owners_of(addr.port), &id->bind_node);
	return 0;
}

int lb_cm_port_listen(struct lb_cm_id *id)
{
	struct lb_cm_addr addr = src_of(id);
	int err;

	if (!id->reuseaddr)
		return 0;
	err = port_check(id, &addr, false);
	if (!err)
		id->reuseaddr = false;
	return err;
}

/* Does id listen at this address? By the rules above at most one id does. */
static bool listens_at(const struct lb_cm_id *id, const struct lb_cm_addr *to)
{
	struct lb_cm_addr at = src_of(id);

	if (id->state != LB_CM_LISTEN)
		return false;
	if (at.any)
		return at.v4 == to->v4 || !id->afonly;
	return lb_cm_addr_is_same_ip(&at, to);
}

struct lb_cm_id *lb_cm_port_listener(enum rdma_port_space ps,
				     const struct sockaddr_storage *dst)
{
	struct lb_list *b;
	struct lb_cm_addr to;

	if (!lb_cm_addr_from(&to, (const struct sockaddr *)dst))
		return NULL;
	b = owners_of(to.port);
	for (struct lb_list *n = b->next; n != b; n = n->next) {
		struct lb_cm_id *id = lb_entry(n, struct lb_cm_id, bind_node);

		if (id->ps == ps && listens_at(id, &to))
			return id;
	}
	return NULL;
}
