/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Waiting for a completion and taking it, in each way that the release has for
 * that, behind functions that are the same for all releases.
 */

#ifndef OLD_TAKE_H
#define OLD_TAKE_H

#include <librpma.h>

/* the numbers of enum rpma_op, which the last releases do not have */
enum done_op {
	DONE_READ,
	DONE_WRITE,
	DONE_SEND = 3,
	DONE_RECV,
	DONE_RECV_RDMA_WITH_IMM,
};

struct done {
	void *context;
	enum ibv_wc_status status;
	/* of a success: */
	enum done_op op;
	uint32_t byte_len;
	bool has_imm;
	uint32_t imm; /* in host order */
};

struct way {
	const char *name;
	int (*fd)(const struct rpma_conn *conn, int *fd);
	int (*wait)(struct rpma_conn *conn);
	int (*get)(struct rpma_conn *conn, struct done *done);
};

/* ends with one without a name */
extern const struct way ways[];

#endif /* OLD_TAKE_H */
