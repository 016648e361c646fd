/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * world.h -- a file of persistent memory, two connections that reach the file,
 * and a power failure of the process that has mapped the file. A scenario runs
 * for several seeds, in children of the test: the test itself uses no device.
 */

#ifndef POWER_WORLD_H
#define POWER_WORLD_H

#include <stdbool.h>

#include "../device/fixture.h"
#include "../device/meet.h"
#include "bytes.h"

/* A connection, as the scenario uses the connection. */
struct link {
	struct end *end;
	uint64_t addr; /* of the file */
	uint32_t rkey;
};

struct world {
	struct link link[2];
	/* the file in the process of the scenario, if mapped there: */
	uint8_t *file;
	struct end *other[2]; /* ends in the process that mapped the file */
	struct ibv_mr *mr[2]; /* regions of the file there */
	struct ibv_qp_ex *ex; /* of link 0, of a native scenario */
	const char *path;
};

struct scenario {
	void (*run)(struct world *w);
	/* Runs in the process of the file before the scenario; may be NULL. */
	void (*prepare)(struct world *w);
	/* Returns the outcome, from the file: a set with a single element. */
	int (*judge)(const uint8_t *file);
	uint64_t fails_at; /* 0: after the scenario */
	/* the process of the scenario maps the file, and a link leads to memory
	 * of the other end, which has version 1 */
	bool is_own;
	bool is_near;	 /* runs within a process alone */
	bool is_native;	 /* link 0 has native operations; only is_near */
	bool is_unnamed; /* the file is no persistent memory */
};

/* Each scenario runs with at least so many seeds. */
extern unsigned world_seeds;
/*
 * Asserts that the scenario has these outcomes and no other, within a process
 * and between two.
 */
void world_expect(const struct scenario *scenario, int outcomes);

/* Returns a signaled request with wr_id 1 for a single piece, which stays the
 * caller's. An empty piece is left out. */
struct ibv_send_wr request_of(enum ibv_wr_opcode opcode, struct ibv_sge *piece);
/* Leads a request for memory to the file of the link, from the byte at. */
void link_lead(const struct link *l, struct ibv_send_wr *wr, uint32_t at);
/* Posts the request, and waits until the request completes with success. */
void end_run(const struct end *end, struct ibv_send_wr *wr);

/* Requests of a connection, each completed with success. */
void link_post(struct link *l, enum ibv_wr_opcode opcode, uint32_t at,
	       uint32_t len, unsigned version);
void link_write(struct link *l, uint32_t at, uint32_t len, unsigned version);
void link_read(struct link *l, uint32_t len);
/* Changes an aligned word from version 0 to version 1. */
void link_atomic(struct link *l, enum ibv_wr_opcode opcode, uint32_t at);

#endif /* POWER_WORLD_H */
