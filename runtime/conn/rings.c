/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* rings.c -- the rings of a connection, see rings.h. */

#include "conn/rings.h"

#include "base/line.h"
#include "conn/conn.h"

/* Returns the size of a side's line. Receives of an SRQ or of a pool stand in
 * no line of the connection. */
static struct rt_line_size rings_line_of(const struct rpma_rt_conn *conn,
					 int side, uint32_t depth,
					 uint32_t waiting)
{
	bool has_slots =
		side == RPMA_RT_SEND_SIDE || conn->receives == RT_RECEIVES_OWN;
	struct rt_line_size line = {
		.places = has_slots ? rt_line_places(depth, waiting) : 0};

	if (side == RPMA_RT_SEND_SIDE)
		line.stride = sizeof(struct rt_line_send) +
			      rt_line_behind(conn->max_sge, conn->max_inline);
	else
		line.stride = sizeof(struct rt_line_recv) +
			      rt_line_behind(conn->max_sge, 0);
	return line;
}

/* Takes `bytes` bytes of the block, in whole cache lines. */
static void *rings_carve(char **block, size_t bytes)
{
	void *memory = *block;

	*block += rt_line_round_up(bytes);
	return memory;
}

int rt_rings_new(struct rpma_rt_conn *conn, const uint32_t depths[2],
		 uint32_t waiting)
{
	size_t kept = ((size_t)depths[0] + depths[1]) * sizeof(struct rt_kept);
	size_t bytes = rt_line_round_up(kept);
	struct rt_line_size sizes[2];
	char *block;
	int i;

	for (i = 0; i < 2; i++) {
		sizes[i] = rings_line_of(conn, i, depths[i], waiting);
		bytes += rt_line_round_up(rt_ledger_bytes(depths[i])) +
			 rt_line_bytes(&sizes[i]);
	}
	block = rt_line_alloc(bytes);
	if (block == NULL)
		return RPMA_E_NOMEM;
	for (i = 0; i < 2; i++)
		rt_ledger_init(&conn->gate[i].ledger, depths[i],
			       rings_carve(&block, rt_ledger_bytes(depths[i])));
	for (i = 0; i < 2; i++)
		rt_line_init(&conn->gate[i].turn, &sizes[i],
			     rings_carve(&block, rt_line_bytes(&sizes[i])));
	conn->poll.kept = rings_carve(&block, kept);
	return 0;
}

void rt_rings_free(struct rpma_rt_conn *conn)
{
	/* the block begins with the first ledger */
	rt_line_release(conn->gate[0].ledger.entries);
}
