/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * peer.c -- a connection's peer: its address, and how its memory can be
 * flushed. Any thread.
 */

#include "conn/peer.h"

#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>

#include "base/cancel.h"
#include "base/context.h"
#include "base/refuse.h"
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
		return RT_ADDR_IB;
	}
}

static bool is_other(const struct sockaddr *addr)
{
	return addr->sa_family != AF_INET && addr->sa_family != AF_INET6;
}

int rt_peer_keep_addr_control(struct rpma_rt_conn *conn)
{
	union rt_peer_addr *addr = &conn->peer_addr;
	const struct sockaddr *peer;
	struct rdma_cm_id *id;
	void *to = addr;
	int ret;

	ret = rpma_conn_req_get_cm_id(conn->setup->req, &id);
	if (ret)
		return ret;
	peer = (const struct sockaddr *)&id->route.addr.dst_storage;
	if (is_other(peer)) {
		to = malloc(RT_ADDR_IB);
		if (to == NULL)
			return RPMA_E_NOMEM;
		addr->other.family = peer->sa_family;
		addr->other.whole = to;
	}
	memcpy(to, peer, size_of(peer));
	return 0;
}

int rpma_rt_conn_get_peer_addr(const struct rpma_rt_conn *conn,
			       struct sockaddr *addr, socklen_t *len)
{
	const struct sockaddr *peer;
	socklen_t room;
	int ret;

	ret = RT_REFUSE_NULL(conn, addr, len);
	if (ret == 0)
		ret = RT_REFUSE_FORKED(conn->rt);
	if (ret)
		return ret;
	/* acquire: pairs with the release in qp_is_made() */
	if (!(atomic_load_explicit(&conn->reached, memory_order_acquire) &
	      RT_REACHED_READY))
		return RT_REFUSE(
			RPMA_E_INVAL,
			"the peer's address is not known yet: wait for "
			"RPMA_RT_EVENT_READY");
	peer = &conn->peer_addr.any;
	if (is_other(peer))
		peer = (const struct sockaddr *)conn->peer_addr.other.whole;
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
	RT_NOT_CANCELLED;
	struct rpma_peer_cfg *own;
	bool direct_write;
	int ret;

	ret = RT_REFUSE_NULL(conn, pcfg);
	if (ret == 0)
		ret = RT_REFUSE_FORKED(conn->rt);
	if (ret == 0)
		ret = rpma_peer_cfg_get_direct_write_to_pmem(pcfg,
							     &direct_write);
	if (ret)
		return ret;
	/* acquire: pairs with the release in copy_pcfg() */
	own = atomic_load_explicit(&conn->remote_cfg, memory_order_acquire);
	if (own == NULL)
		return RT_REFUSED(copy_pcfg(conn, direct_write),
				  "the peer's configuration is not applied");
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
	if (is_other(&conn->peer_addr.any))
		free(conn->peer_addr.other.whole);
}
