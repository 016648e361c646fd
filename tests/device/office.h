/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * UD queue pairs, address handles and datagrams for the tests. Destroyed
 * after the test like everything of fixture.h.
 */

#ifndef DEVICE_OFFICE_H
#define DEVICE_OFFICE_H

#include "wire.h"

#define OFFICE_QKEY 0x11111111u
#define OFFICE_GRH  40u /* bytes of the header of a datagram */
#define OFFICE_LEN  64u /* and of those that the tests send */

/* A UD queue pair and all that it needs. */
struct post_office {
	struct end e;
	struct ibv_ah *ah; /* to the device itself */
};

int office_undo_ah(void *ah);
struct ibv_ah *office_ah(struct ibv_pd *pd, const union ibv_gid *to);
void office_to_rts(struct ibv_qp *qp);
/* with_ops: for ibv_wr_* */
void office_open(struct post_office *o, bool with_ops);
/* Where there is another process, it has the first. */
void office_open_two(struct post_office *a, struct post_office *b);
/*
 * len bytes from the start of the buffer to the queue pair qpn, with the id
 * as immediate data; returns when they have left.
 */
void office_mail_by(const struct post_office *o, struct ibv_ah *ah,
		    uint32_t qpn, uint32_t qkey, uint64_t id, uint32_t len);
void office_mail(const struct post_office *from, const struct post_office *to,
		 uint64_t id);
/* A receive at offset 512, and what it must get. */
void office_recv(const struct post_office *o, uint64_t id);
struct ibv_wc office_gets(const struct post_office *o, uint64_t id,
			  uint32_t imm);

#endif
