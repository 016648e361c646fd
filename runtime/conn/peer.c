/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * peer.c -- a connection's peer: its address, and how its memory can be
 * flushed. Any thread.
 */

#include "conn/peer.h"

#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <string.h>

#include "base/context.h"
#include "conn/conn.h"

/* -------------------------------------------------------------- address --- */

static socklen_t size_of(const struct sockaddr *addr)
{
	switch (addr->sa_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	default:
		return sizeof(struct sockaddr_storage);
	}
}

int rt_peer_keep_addr_control(struct rpma_rt_conn *conn)
{
	struct rdma_cm_id *id;
	int ret = rpma_conn_req_get_cm_id(conn->ctl.req, &id);

	if (ret == 0)
		conn->peer_addr = id->route.addr.dst_storage;
	return ret;
}

int rpma_rt_conn_get_peer_addr(const struct rpma_rt_conn *conn,
			       struct sockaddr *addr, socklen_t *len)
{
	const struct sockaddr *peer;
	socklen_t room;
	int ret;

	if (conn == NULL || addr == NULL || len == NULL)
		return RPMA_E_INVAL;
	ret = rt_context_check(conn->rt);
	if (ret)
		return ret;
	/* acquire: pairs with the release in qp_is_made() */
	if (!(atomic_load_explicit(&conn->reached, memory_order_acquire) &
	      RT_REACHED_READY))
		return RPMA_E_INVAL;
	peer = (const struct sockaddr *)&conn->peer_addr;
	room = *len;
	*len = size_of(peer);
	memcpy(addr, peer, room < *len ? room : *len);
	return 0;
}

/* --------------------------------------------------------------- memory --- */

/* The connection's own copy, made by the first call. */
static int copy_pcfg(struct rpma_rt_conn *conn, bool direct_write)
{
	struct rpma_peer_cfg *before = NULL;
	struct rpma_peer_cfg *pcfg;
	int ret = rpma_peer_cfg_new(&pcfg);

	if (ret)
		return ret;
	rpma_peer_cfg_set_direct_write_to_pmem(pcfg, direct_write);
	/* release: pairs with the acquire in rt_peer_apply_poster(); acquire:
	 * the one that is there already */
	if (atomic_compare_exchange_strong_explicit(&conn->remote_cfg, &before,
						    pcfg, memory_order_release,
						    memory_order_acquire))
		return 0;
	rpma_peer_cfg_delete(&pcfg);
	return rpma_peer_cfg_set_direct_write_to_pmem(before, direct_write);
}

int rpma_rt_conn_apply_remote_peer_cfg(struct rpma_rt_conn *conn,
				       const struct rpma_peer_cfg *pcfg)
{
	struct rpma_peer_cfg *own;
	bool direct_write;
	int ret;

	if (conn == NULL)
		return RPMA_E_INVAL;
	ret = rt_context_check(conn->rt);
	if (ret == 0) /* refuses NULL */
		ret = rpma_peer_cfg_get_direct_write_to_pmem(pcfg,
							     &direct_write);
	if (ret)
		return ret;
	/* acquire: pairs with the release in copy_pcfg() */
	own = atomic_load_explicit(&conn->remote_cfg, memory_order_acquire);
	if (own == NULL)
		return copy_pcfg(conn, direct_write);
	return rpma_peer_cfg_set_direct_write_to_pmem(own, direct_write);
}

int rt_peer_apply_poster(struct rpma_rt_conn *conn)
{
	/* acquire: pairs with the release in copy_pcfg() */
	const struct rpma_peer_cfg *pcfg =
		atomic_load_explicit(&conn->remote_cfg, memory_order_acquire);

	return pcfg == NULL ? 0
			    : rpma_conn_apply_remote_peer_cfg(conn->conn, pcfg);
}

void rt_peer_fini(struct rpma_rt_conn *conn)
{
	/* relaxed: no other thread uses the connection */
	struct rpma_peer_cfg *pcfg =
		atomic_load_explicit(&conn->remote_cfg, memory_order_relaxed);

	rpma_peer_cfg_delete(&pcfg);
}
