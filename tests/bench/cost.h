/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The ways of bench_cost to do the same operations: through the librpma that
 * the program is linked with, and with verbs alone. Both post to and poll from
 * a device whose operations do nothing, so what is left is their own cost.
 */

#ifndef BENCH_COST_H
#define BENCH_COST_H

#include <stdint.h>

#include <infiniband/verbs.h>

enum cost_op {
	COST_READ,
	COST_WRITE,
	COST_WRITE_IMM,
	COST_ATOMIC_WRITE,
	COST_FLUSH,
	COST_SEND,
	COST_SEND_IMM,
	COST_RECV,
	COST_SRQ_RECV,
	COST_GET_WC,
	COST_GET_WC_EMPTY,
	COST_GET_WC_SOME, /* one, where several may come */
	COST_OPS
};

#define COST_MEM   4096 /* bytes that are registered */
#define COST_LEN   64	/* and how many an operation moves */
#define COST_BATCH 16	/* completions that are asked for at once */

struct cost_way {
	/* on the device at 127.0.0.1, which still does what it says */
	void (*open)(void);
	void (*close)(void);
	struct ibv_context *(*context)(void);
	/* does it so many times */
	void (*run[COST_OPS])(uint64_t times);
};

extern const struct cost_way cost_librpma;
extern const struct cost_way cost_verbs;

/* Keeps what is polled from being thrown away by the compiler. */
extern uint64_t cost_sum;

#endif /* BENCH_COST_H */
