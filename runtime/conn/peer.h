/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * peer.h -- a connection's peer. Its address is copied when the connection
 * becomes ready, for the CM id goes before the handle. A program may say how
 * the peer's memory can be flushed before librpma has a connection, and while
 * threads post: the record keeps it, and a poster hands it on, inside the send
 * side's gate, where librpma's connection is known to exist.
 */

#ifndef RT_CONN_PEER_H
#define RT_CONN_PEER_H

struct rpma_rt_conn;

/* Control thread, with a request that has a queue pair, before that is
 * reported. ERRORS: of librpma */
int rt_peer_keep_addr_control(struct rpma_rt_conn *conn);
/* Poster, inside the send side's gate, before a persistent flush. */
int rt_peer_apply_poster(struct rpma_rt_conn *conn);
/* Freed with the record: no other thread uses it. */
void rt_peer_fini(struct rpma_rt_conn *conn);

#endif /* RT_CONN_PEER_H */
