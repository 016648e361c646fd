/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * peer.h -- what a connection is told of its peer. A program may say it before
 * there is a connection of librpma, and while threads post: the record keeps
 * it, and a poster hands it on, inside the send side's gate, where librpma's
 * connection is known to exist.
 */

#ifndef RT_CONN_PEER_H
#define RT_CONN_PEER_H

struct rpma_rt_conn;

/* Poster, inside the send side's gate, before a persistent flush. */
int rt_peer_apply_poster(struct rpma_rt_conn *conn);
/* With the record; nobody holds it. */
void rt_peer_fini(struct rpma_rt_conn *conn);

#endif /* RT_CONN_PEER_H */
