/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * rdmacm_names.h -- the exports of librdmacm.so.1 up to rdma-core 65, by
 * version node, and the kind of each replacement. rdmacm.c defines the macros
 * and includes the list. Exports missing here are in rdmacm_words.c.
 */

/* clang-format off */

/* RDMACM_1.0 */
SOCKET(raccept, "RDMACM_1.0")
SOCKET(rbind, "RDMACM_1.0")
SOCKET(rclose, "RDMACM_1.0")
SOCKET(rconnect, "RDMACM_1.0")
DEVICE(rdma_accept, "RDMACM_1.0")
DEVICE(rdma_ack_cm_event, "RDMACM_1.0")
DEVICE(rdma_bind_addr, "RDMACM_1.0")
DEVICE(rdma_connect, "RDMACM_1.0")
DEVICE(rdma_create_ep, "RDMACM_1.0")
DEVICE(rdma_create_event_channel, "RDMACM_1.0")
DEVICE(rdma_create_id, "RDMACM_1.0")
DEVICE(rdma_create_qp, "RDMACM_1.0")
DEVICE(rdma_create_qp_ex, "RDMACM_1.0")
DEVICE(rdma_create_srq, "RDMACM_1.0")
DEVICE(rdma_create_srq_ex, "RDMACM_1.0")
DEVICE(rdma_destroy_ep, "RDMACM_1.0")
DEVICE(rdma_destroy_event_channel, "RDMACM_1.0")
DEVICE(rdma_destroy_id, "RDMACM_1.0")
DEVICE(rdma_destroy_qp, "RDMACM_1.0")
DEVICE(rdma_destroy_srq, "RDMACM_1.0")
DEVICE(rdma_disconnect, "RDMACM_1.0")
DEVICE(rdma_free_devices, "RDMACM_1.0")
DEVICE(rdma_freeaddrinfo, "RDMACM_1.0")
DEVICE(rdma_get_cm_event, "RDMACM_1.0")
DEVICE(rdma_get_devices, "RDMACM_1.0")
DEVICE(rdma_get_dst_port, "RDMACM_1.0")
DEVICE(rdma_get_request, "RDMACM_1.0")
DEVICE(rdma_get_src_port, "RDMACM_1.0")
DEVICE(rdma_getaddrinfo, "RDMACM_1.0")
DEVICE(rdma_join_multicast, "RDMACM_1.0")
DEVICE(rdma_leave_multicast, "RDMACM_1.0")
DEVICE(rdma_listen, "RDMACM_1.0")
DEVICE(rdma_migrate_id, "RDMACM_1.0")
DEVICE(rdma_notify, "RDMACM_1.0")
DEVICE(rdma_reject, "RDMACM_1.0")
DEVICE(rdma_resolve_addr, "RDMACM_1.0")
DEVICE(rdma_resolve_route, "RDMACM_1.0")
DEVICE(rdma_set_option, "RDMACM_1.0")
SOCKET(rfcntl, "RDMACM_1.0")
SOCKET(rgetpeername, "RDMACM_1.0")
SOCKET(rgetsockname, "RDMACM_1.0")
SOCKET(rgetsockopt, "RDMACM_1.0")
SOCKET(riomap, "RDMACM_1.0")
SOCKET(riounmap, "RDMACM_1.0")
SOCKET(riowrite, "RDMACM_1.0")
SOCKET(rlisten, "RDMACM_1.0")
SOCKET(rpoll, "RDMACM_1.0")
SOCKET(rread, "RDMACM_1.0")
SOCKET(rreadv, "RDMACM_1.0")
SOCKET(rrecv, "RDMACM_1.0")
SOCKET(rrecvfrom, "RDMACM_1.0")
SOCKET(rrecvmsg, "RDMACM_1.0")
SOCKET(rselect, "RDMACM_1.0")
SOCKET(rsend, "RDMACM_1.0")
SOCKET(rsendmsg, "RDMACM_1.0")
SOCKET(rsendto, "RDMACM_1.0")
SOCKET(rsetsockopt, "RDMACM_1.0")
SOCKET(rshutdown, "RDMACM_1.0")
SOCKET(rsocket, "RDMACM_1.0")
SOCKET(rwrite, "RDMACM_1.0")
SOCKET(rwritev, "RDMACM_1.0")

/* RDMACM_1.1 */
DEVICE(rdma_join_multicast_ex, "RDMACM_1.1")

/* RDMACM_1.2 */
DEVICE(rdma_establish, "RDMACM_1.2")
DEVICE(rdma_init_qp_attr, "RDMACM_1.2")

/* RDMACM_1.3 */
DEVICE(rdma_get_remote_ece, "RDMACM_1.3")
DEVICE(rdma_reject_ece, "RDMACM_1.3")
DEVICE(rdma_set_local_ece, "RDMACM_1.3")

/* RDMACM_1.4 */
DEVICE(rdma_query_addrinfo, "RDMACM_1.4")
DEVICE(rdma_resolve_addrinfo, "RDMACM_1.4")
DEVICE(rdma_write_cm_event, "RDMACM_1.4")

/* RDMACM_1.5 */
SOCKET(repoll_create, "RDMACM_1.5")
SOCKET(repoll_ctl, "RDMACM_1.5")
SOCKET(repoll_wait, "RDMACM_1.5")
