/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * port.c -- which identifier owns which port of which port space. The rules are
 * the rules of rdma_cm in the kernel: different addresses may share a port, but
 * an address and the wildcard may not. A port belongs to one process, which has
 * the name of the port, or of its block; doc/protocols/cm_wire.md. Everything
 * here is under lb_cm_lock().
 */

#include "cm/port.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/list.h"
#include "base/log.h"
#include "base/process.h"
#include "cm/addr.h"
#include "cm/cm.h"
#include "cm/table.h"
#include "wire/nic.h"
#include "wire/port.h"

#define EPHEMERAL_FIRST 32768
#define EPHEMERAL_LAST	60999
#define BLOCK		64
#define BLOCKS		((EPHEMERAL_LAST - EPHEMERAL_FIRST) / BLOCK + 1)

static struct lb_list owners[UINT16_MAX + 1]; /* of each port, in all spaces */

/* Ports given out, in a port space: 64 under one name. */
struct block {
	struct lb_port *name; /* NULL: not ours */
	unsigned users;	      /* ports with owners */
	uint64_t ours;	      /* a bit for each port found without a name */
};

/* A port space: the share of this process. */
static struct space {
	enum rdma_port_space ps;
	const char *word;
	unsigned next;	    /* to be given out */
	struct block *last; /* the present block to give out; stays without
			     * users */
	struct lb_port *names[UINT16_MAX + 1]; /* of requested ports */
	struct block blocks[BLOCKS];
} spaces[] = {
	{.ps = RDMA_PS_TCP, .word = "tcp", .next = EPHEMERAL_FIRST},
	{.ps = RDMA_PS_UDP, .word = "udp", .next = EPHEMERAL_FIRST},
	{.ps = RDMA_PS_IB, .word = "ib", .next = EPHEMERAL_FIRST},
};
static bool is_alone_said;

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

/* Returns 0, or why id cannot have the port beside its present owners. */
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

static bool is_ours(enum rdma_port_space ps, in_port_t port)
{
	struct lb_list *b = owners_of(port);

	for (struct lb_list *n = b->next; n != b; n = n->next) {
		if (lb_entry(n, struct lb_cm_id, bind_node)->ps == ps)
			return true;
	}
	return false;
}

/* ---- names --------------------------------------------------------------- */

void lb_cm_port_start(void)
{
	pthread_mutex_lock(&lb.big);
	lb_nic_number();
	pthread_mutex_unlock(&lb.big);
}

static struct space *space_of(enum rdma_port_space ps)
{
	struct space *space = spaces;

	while (space->ps != ps)
		space++;
	return space;
}

/* Returns the block of a port; port: in host byte order, as below. */
static struct block *block_of(struct space *space, unsigned port)
{
	if (port < EPHEMERAL_FIRST || port > EPHEMERAL_LAST)
		return NULL;
	return &space->blocks[(port - EPHEMERAL_FIRST) / BLOCK];
}

static void name_port(char name[LB_PORT_NAME], const struct space *space,
		      unsigned port)
{
	snprintf(name, LB_PORT_NAME, "rpma-loopback.%s.%u", space->word, port);
}

static void name_block(char name[LB_PORT_NAME], const struct space *space,
		       unsigned port)
{
	unsigned first = port - port % BLOCK;

	snprintf(name, LB_PORT_NAME, "rpma-loopback.%s.%u-%u", space->word,
		 first, first + BLOCK - 1);
}

/* Where there are no sockets every port is this process's alone. */
static int without_name(int err)
{
	if (err == EADDRINUSE || err == EMFILE || err == ENFILE ||
	    err == ENOMEM || err == ENOBUFS)
		return err;
	if (!is_alone_said)
		lb_log(0,
		       "no names for ports (%s): no other process is reached",
		       strerror(err));
	is_alone_said = true;
	return 0;
}

/* Holds a name; returns 0 or an errno, then *port is NULL. */
static int hold(struct lb_port **port, const char *name)
{
	*port = lb_port_hold(name);
	return *port ? 0 : without_name(errno);
}

/*
 * Returns true if another process took a port before this process had the
 * block, and still has the port. Once released, the port is this process's.
 */
static bool is_foreign(const struct space *space, struct block *block,
		       unsigned port)
{
	uint64_t bit = (uint64_t)1 << port % BLOCK;
	char name[LB_PORT_NAME];

	if (block->ours & bit)
		return false;
	name_port(name, space, port);
	if (lb_port_is_held(name))
		return true;
	block->ours |= bit;
	return false;
}

/* Releases a block without users, unless the block is the present block. */
static void let_go(const struct space *space, struct block *block)
{
	if (block->users || block == space->last)
		return;
	lb_port_release(block->name);
	block->name = NULL;
	block->ours = 0;
}

/*
 * Takes the block of a port to give out. Returns false if another process has
 * the block.
 */
static bool have_block(struct space *space, unsigned port)
{
	struct block *block = block_of(space, port), *last = space->last;
	char name[LB_PORT_NAME];

	name_block(name, space, port);
	if (!block->name && hold(&block->name, name))
		return false;
	space->last = block;
	if (last && last != block)
		let_go(space, last);
	return true;
}

/* Takes a requested port without an owner here. Returns 0 or an errno. */
static int have_port(struct space *space, unsigned port)
{
	struct block *block = block_of(space, port);
	char name[LB_PORT_NAME];
	int err;

	if (block && block->name)
		return is_foreign(space, block, port) ? EADDRINUSE : 0;
	name_port(name, space, port);
	err = hold(&space->names[port], name);
	if (err || !block)
		return err;
	/* first the port, then the block; have_block() in the other order */
	name_block(name, space, port);
	if (!lb_port_is_held(name))
		return 0;
	lb_port_release(space->names[port]);
	space->names[port] = NULL;
	return EADDRINUSE;
}

/* Returns a port free on every address, or 0. */
static in_port_t port_any(struct space *space)
{
	unsigned i, port;

	for (i = EPHEMERAL_FIRST; i <= EPHEMERAL_LAST; i++) {
		port = space->next;
		if (++space->next > EPHEMERAL_LAST)
			space->next = EPHEMERAL_FIRST;
		if (is_ours(space->ps, htons((uint16_t)port)))
			continue;
		if (!have_block(space, port))
			space->next = port - port % BLOCK + BLOCK;
		else if (!is_foreign(space, block_of(space, port), port))
			return htons((uint16_t)port);
		if (space->next > EPHEMERAL_LAST)
			space->next = EPHEMERAL_FIRST;
	}
	return 0;
}

/*
 * Drops the names, which belong to the parent: the child gives out another
 * block.
 */
void lb_cm_port_forked(void)
{
	size_t i, k;

	for (i = 0; i < sizeof(spaces) / sizeof(*spaces); i++) {
		spaces[i].last = NULL;
		for (k = 0; k < BLOCKS; k++) {
			struct block *block = &spaces[i].blocks[k];

			lb_port_release(block->name);
			block->name = NULL;
			block->ours = 0;
		}
	}
}

/* ---- binding ------------------------------------------------------------- */

static void own(struct lb_cm_id *id, in_port_t port)
{
	struct space *space = space_of(id->ps);
	struct block *block = block_of(space, ntohs(port));

	if (block && !is_ours(id->ps, port))
		block->users++;
	lb_list_push(owners_of(port), &id->bind_node);
}

void lb_cm_port_leave(struct lb_cm_id *id)
{
	struct space *space = space_of(id->ps);
	in_port_t port = src_of(id).port;
	struct block *block = block_of(space, ntohs(port));

	if (lb_list_is_empty(&id->bind_node))
		return;
	lb_list_del(&id->bind_node);
	if (is_ours(id->ps, port))
		return;
	lb_port_release(space->names[ntohs(port)]);
	space->names[ntohs(port)] = NULL;
	if (block && !--block->users)
		let_go(space, block);
}

int lb_cm_port_bind(struct lb_cm_id *id)
{
	struct space *space = space_of(id->ps);
	struct lb_cm_addr addr = src_of(id);
	int err = 0;

	if (!addr.port)
		addr.port = port_any(space);
	else if (is_ours(id->ps, addr.port))
		err = port_check(id, &addr, id->reuseaddr);
	else
		err = have_port(space, ntohs(addr.port));
	if (err || !addr.port)
		return err ? err : EADDRNOTAVAIL;
	lb_cm_addr_set_port(&id->src, addr.port);
	own(id, addr.port);
	return 0;
}

/* Other processes may ask for the port. 0 or an errno. */
static int listen_for_others(const struct lb_cm_id *id, unsigned number)
{
	struct space *space = space_of(id->ps);
	struct block *block = block_of(space, number);
	struct lb_port *port = space->names[number];
	struct lb_nic *nic = lb_nic_self();

	if (!port && block)
		port = block->name;
	if (!port || !nic || lb_nic_serve(nic))
		return 0; /* which was said */
	return lb_port_listen(port, nic);
}

int lb_cm_port_listen(struct lb_cm_id *id)
{
	struct lb_cm_addr addr = src_of(id);
	int err;

	err = id->reuseaddr ? port_check(id, &addr, false) : 0;
	if (!err)
		err = listen_for_others(id, ntohs(addr.port));
	if (!err)
		id->reuseaddr = false;
	return err;
}

/* ---- finding ------------------------------------------------------------- */

bool lb_cm_port_is_ours(enum rdma_port_space ps,
			const struct sockaddr_storage *addr)
{
	struct lb_cm_addr to;

	return lb_cm_addr_from(&to, (const struct sockaddr *)addr) &&
	       is_ours(ps, to.port);
}

void lb_cm_port_names(struct lb_cm_port_names *names, enum rdma_port_space ps,
		      const struct sockaddr_storage *addr)
{
	struct space *space = space_of(ps);
	struct lb_cm_addr to = {0};
	const struct block *block;

	lb_cm_addr_from(&to, (const struct sockaddr *)addr);
	block = block_of(space, ntohs(to.port));
	name_port(names->port, space, ntohs(to.port));
	name_block(names->block, space, ntohs(to.port));
	names->each[0] = names->port;
	names->each[1] = block && !block->name ? names->block : NULL;
	names->each[2] = NULL;
}

/*
 * Returns true if id listens at the address; by the rules above at most one id
 * does.
 */
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
