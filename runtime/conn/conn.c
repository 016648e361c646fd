/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * conn.c -- a connection's name, peer, private data, items about the connection
 * itself, and messages between its threads. Any thread, but where a section
 * says otherwise.
 */

#include "conn/conn.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cancel.h"
#include "base/context.h"
#include "base/log.h"
#include "base/runtime.h"
#include "poller/poller.h"

/* ------------------------------------------------------------- messages --- */

/*
 * Messages between the threads of a connection: bits in a word of the receiver.
 * The thread that makes the word non-zero sends the only message. Messages of
 * connections that end wait for messages of connections that begin, because
 * thousands of connections may end at once. doc/protocols/connection.md.
 */

void rt_conn_tell_control(struct rpma_rt_conn *conn, uint32_t bits)
{
	struct rt_thread *control = &conn->device->control;
	struct rt_inbox *inbox =
		bits & RT_CTL_CONNECT ? &control->inbox : &control->later;

	/* release: pairs with the exchange in rt_conn_control_message(),
	 * control.c */
	if (atomic_fetch_or_explicit(&conn->ctl_bits, bits,
				     memory_order_release) != 0)
		return;
	/* relaxed: the caller holds the connection */
	atomic_fetch_add_explicit(&conn->target.count, 1, memory_order_relaxed);
	rt_inbox_push_mt(inbox, &conn->ctl_msg);
}

void rt_conn_tell_poller(struct rpma_rt_conn *conn, uint32_t bits)
{
	/* release: pairs with the exchange in rt_messages_poll(), drain.c */
	if (atomic_fetch_or_explicit(&conn->poll_bits, bits,
				     memory_order_release) == 0)
		rt_inbox_push_mt(&conn->poller->inbox, &conn->poll_msg);
}

void rt_conn_ask_control(struct rpma_rt_conn *conn, uint32_t bits)
{
	/* a connection that is not DONE keeps the control thread going, and
	 * becomes DONE only under this lock */
	pthread_mutex_lock(&conn->rt->ask_lock);
	if (!conn->is_done)
		rt_conn_tell_control(conn, bits);
	pthread_mutex_unlock(&conn->rt->ask_lock);
}

void rt_conn_close_for(struct rpma_rt_conn *conn, uint32_t bit)
{
	int i;

	rt_conn_set_closing(conn);
	/* the control thread waits for a holder of the right */
	for (i = 0; i < 2; i++)
		rt_turn_close(&conn->gate[i].turn);
	rt_conn_ask_control(conn, bit);
}

/* ----------------------------------------------------------------- item --- */

/* Items besides completions: events about the connection itself, and WRITABLE.
 * On the connection's poller. */

void *rt_item_user(const struct rpma_rt_conn *conn)
{
	/* relaxed: the application orders its pointer */
	return atomic_load_explicit(&conn->user, memory_order_relaxed);
}

/* Returns the reason of the end. After a failed work request reports ERROR
 * rather than DISCONNECTED: the failure may have caused the disconnect, which
 * may be seen first. */
static enum rpma_rt_reason item_reason_of(const struct rpma_rt_conn *conn)
{
	return conn->poll.failed &&
			       conn->ctl.reason == RPMA_RT_REASON_DISCONNECTED
		       ? RPMA_RT_REASON_ERROR
		       : conn->ctl.reason;
}

struct rpma_rt_completion rt_item_event(const struct rpma_rt_conn *conn,
					enum rpma_rt_event event)
{
	struct rpma_rt_completion item = {
		.context = (uintptr_t)conn,
		.user = rt_item_user(conn),
		.qp_num = conn->poll.bind != RT_BIND_NONE ? conn->qp_num : 0,
		.kind = RPMA_RT_EVENT,
		.opcode = (uint8_t)event,
	};

	/* for a route that was closed before, the reason is LOCAL */
	if (conn->poll.state != RT_PS_HEALTHY &&
	    (event == RPMA_RT_EVENT_CLOSED ||
	     event == RPMA_RT_EVENT_ROUTE_CLOSED)) {
		item.status = (uint8_t)item_reason_of(conn);
		item.imm = conn->ctl.cm_status;
	}
	return item;
}

void rt_item_write(struct rpma_rt_conn *conn,
		   const struct rpma_rt_completion *item)
{
	struct rt_lane *lane = rt_conn_lane(conn);

	if (lane != NULL)
		rt_deliver_write(conn->poller, lane, item);
}

/* ----------------------------------------------------------------- name --- */

/* The name of a connection in the log and in a dump. A dump reads the name
 * under the directory's lock, so the name is written under that lock; from
 * connect on the name is final. Thread: the owner of the handle. */

void rt_name_copy(struct rpma_rt_conn *conn, char *name)
{
	pthread_mutex_lock(&conn->rt->directory);
	strcpy(name, rt_name_of(conn));
	pthread_mutex_unlock(&conn->rt->directory);
}

/* Checks a name, which goes unchanged into a line of the log and into a
 * dump. */
static int name_check(const char *name, size_t len)
{
	size_t i;

	if (len == 0 || len > RPMA_RT_NAME_MAX)
		return RT_REFUSE(
			RPMA_E_INVAL, "name is %s: give 1 to %d characters",
			len == 0 ? "empty" : "too long", RPMA_RT_NAME_MAX);
	for (i = 0; i < len; i++) {
		if (name[i] >= ' ' && name[i] <= '~')
			continue;
		return RT_REFUSE(
			RPMA_E_INVAL,
			"name[%zu] is %d: no printable ASCII character", i,
			name[i]);
	}
	return 0;
}

int rpma_rt_conn_set_name(struct rpma_rt_conn *conn, const char *name)
{
	char *given;
	size_t len;
	int ret;

	ret = RT_REFUSE_NULL(conn, name);
	if (ret == 0)
		ret = RT_REFUSE_WAIT(conn->rt);
	if (ret)
		return ret;
	/* relaxed: the calling thread set the bit */
	if (atomic_load_explicit(&conn->reached, memory_order_relaxed) &
	    RT_REACHED_DECISION)
		return RT_REFUSE(RPMA_E_INVAL,
				 "\"%s\" was connected or rejected: give it "
				 "its name before that",
				 rt_name_of(conn));
	len = strnlen(name, RPMA_RT_NAME_MAX + 1);
	ret = name_check(name, len);
	if (ret)
		return ret;
	if (conn->is_named)
		given = conn->name.given;
	else
		given = malloc(RPMA_RT_NAME_MAX + 1);
	if (given == NULL)
		return RT_REFUSED(RPMA_E_NOMEM, "the name is as before");
	pthread_mutex_lock(&conn->rt->directory);
	memcpy(given, name, len);
	given[len] = '\0';
	conn->name.given = given;
	conn->is_named = true;
	pthread_mutex_unlock(&conn->rt->directory);
	return 0;
}

const char *rpma_rt_conn_get_name(const struct rpma_rt_conn *conn)
{
	return conn == NULL ? NULL : rt_name_of(conn);
}

/* --------------------------------------------------------- private data --- */

static bool conn_is_nothing(const uint8_t *bytes, uint8_t len)
{
	uint8_t i = 0;

	while (i < len && bytes[i] == 0)
		i++;
	return i == len;
}

/* Keeps private data. librdmacm pads private data to a fixed length: without
 * data there are zeros, which the getter returns without memory of the
 * connection. */
void rt_conn_keep_private_data(struct rpma_rt_conn *conn,
			       const struct rpma_cm_event *event)
{
	uint8_t len = event->private_data_len;
	uint8_t *cut;

	if (len == 0 || conn->pdata_in_len != 0 || conn->pdata_in == NULL)
		return;
	conn->pdata_in_len = len;
	if (conn_is_nothing(event->private_data, len)) {
		free(conn->pdata_in);
		conn->pdata_in = NULL;
	} else {
		memcpy(conn->pdata_in, event->private_data, len);
		cut = realloc(conn->pdata_in, len);
		if (cut != NULL)
			conn->pdata_in = cut;
	}
	/* release: pairs with the acquire in rpma_rt_conn_get_private_data(),
	 * calls.c */
	atomic_store_explicit(&conn->pdata_valid, true, memory_order_release);
}

struct rpma_cm_event rt_conn_bare_event(const struct rpma_cm_event *event)
{
	struct rpma_cm_event bare = *event;

	bare.private_data_len = 0;
	return bare;
}

/* ----------------------------------------------------------------- peer --- */

static socklen_t peer_size_of(const struct sockaddr *addr)
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

static bool peer_is_other(const struct sockaddr *addr)
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
	if (peer_is_other(peer)) {
		to = malloc(RT_ADDR_IB);
		if (to == NULL)
			return RPMA_E_NOMEM;
		addr->other.family = peer->sa_family;
		addr->other.whole = to;
	}
	memcpy(to, peer, peer_size_of(peer));
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
	/* acquire: pairs with the release in rt_conn_qp_is_made_control(),
	 * control.c */
	if (!(atomic_load_explicit(&conn->reached, memory_order_acquire) &
	      RT_REACHED_READY))
		return RT_REFUSE(
			RPMA_E_INVAL,
			"the peer's address is not known yet: wait for "
			"RPMA_RT_EVENT_READY");
	peer = &conn->peer_addr.any;
	if (peer_is_other(peer))
		peer = (const struct sockaddr *)conn->peer_addr.other.whole;
	room = *len;
	*len = peer_size_of(peer);
	memcpy(addr, peer, room < *len ? room : *len);
	return 0;
}

/* ---------------------------------------------------- the peer's memory --- */

/* Makes the connection's own copy of the configuration, in the first call. */
static int peer_copy_pcfg(struct rpma_rt_conn *conn, bool direct_write)
{
	struct rpma_peer_cfg *before = NULL;
	struct rpma_peer_cfg *pcfg;
	int ret = rpma_peer_cfg_new(&pcfg);

	if (ret)
		return ret;
	rpma_peer_cfg_set_direct_write_to_pmem(pcfg, direct_write);
	/* release: pairs with the acquire in rt_peer_apply_poster(); acquire:
	 * pairs with the release of the thread whose copy is there already */
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
	/* acquire: pairs with the release in peer_copy_pcfg() */
	own = atomic_load_explicit(&conn->remote_cfg, memory_order_acquire);
	if (own == NULL)
		return RT_REFUSED(peer_copy_pcfg(conn, direct_write),
				  "the peer's configuration is not applied");
	return rpma_peer_cfg_set_direct_write_to_pmem(own, direct_write);
}

int rt_peer_apply_poster(struct rpma_rt_conn *conn)
{
	/* acquire: pairs with the release in peer_copy_pcfg() */
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
	if (peer_is_other(&conn->peer_addr.any))
		free(conn->peer_addr.other.whole);
}
