/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * mad.c -- see mad.h. Offsets are those of the InfiniBand Architecture
 * Specification, volume 1, chapter 12, and of annex A11 for private data of
 * the IP address service. Any thread; no state.
 */

#include "capture/mad.h"

#include <string.h>

#define HEAD	 24 /* bytes of the common header */
#define CLASS	 7
#define VERSION	 2
#define SEND	 3
#define ANY_PKEY 0xffff
#define MTU_4096 5
#define RESPONSE 20 /* 4.096 us * 2^20, and so many tries of a manager */
#define TRIES	 15

static const uint8_t v4_prefix[12] = {[10] = 0xff, [11] = 0xff};

static void put16(uint8_t *at, uint32_t v)
{
	at[0] = (uint8_t)(v >> 8);
	at[1] = (uint8_t)v;
}

static void put32(uint8_t *at, uint32_t v)
{
	put16(at, v >> 16);
	put16(at + 2, v & 0xffff);
}

static void put64(uint8_t *at, uint64_t v)
{
	put32(at, (uint32_t)(v >> 32));
	put32(at + 4, (uint32_t)v);
}

/* 24 bits and the byte behind them. */
static void put24_8(uint8_t *at, uint32_t v, uint32_t byte)
{
	put32(at, v << 8 | (byte & 0xff));
}

static void put_private(uint8_t *at, const struct lb_mad *mad, size_t len)
{
	if (mad->priv)
		memcpy(at, mad->priv, len);
}

/* Both addresses, for a listener that has several; then the program's. */
static void put_addresses(uint8_t *at, const struct lb_mad *mad, size_t len)
{
	bool is_v4 = !memcmp(mad->dgid, v4_prefix, sizeof(v4_prefix));

	at[1] = is_v4 ? 0x40 : 0x60;
	memcpy(at + 2, &mad->src_port, 2);
	if (is_v4) {
		memcpy(at + 4 + 12, mad->sgid + 12, 4);
		memcpy(at + 20 + 12, mad->dgid + 12, 4);
	} else {
		memcpy(at + 4, mad->sgid, 16);
		memcpy(at + 20, mad->dgid, 16);
	}
	put_private(at + 36, mad, len);
}

static void put_req(uint8_t *m, const struct lb_mad *mad)
{
	put64(m + 8, mad->service);
	put24_8(m + 32, mad->qpn, mad->responder_resources);
	put24_8(m + 36, 0, mad->initiator_depth);
	put24_8(m + 40, 0,
		RESPONSE << 3 | (mad->is_uc ? 1u : 0u) << 1 |
			mad->has_flow_control);
	put24_8(m + 44, mad->psn, RESPONSE << 3 | (mad->retry_count & 7));
	put16(m + 48, ANY_PKEY);
	m[50] = (uint8_t)(MTU_4096 << 4 | (mad->rnr_retry_count & 7));
	m[51] = (uint8_t)(TRIES << 4 | mad->has_srq << 3);
	put16(m + 52, 0xffff); /* no LIDs */
	put16(m + 54, 0xffff);
	memcpy(m + 56, mad->sgid, 16);
	memcpy(m + 72, mad->dgid, 16);
	m[93] = 64; /* hops */
	put_addresses(m + 140, mad, 56);
}

static void put_rep(uint8_t *m, const struct lb_mad *mad)
{
	put24_8(m + 12, mad->qpn, 0);
	put24_8(m + 20, mad->psn, 0);
	m[24] = mad->responder_resources;
	m[25] = mad->initiator_depth;
	m[26] = mad->has_flow_control;
	m[27] = (uint8_t)((mad->rnr_retry_count & 7) << 5 | mad->has_srq << 4);
	put_private(m + 36, mad, 196);
}

static void put_sidr_rep(uint8_t *m, const struct lb_mad *mad)
{
	put32(m, mad->to); /* the request's */
	m[4] = (uint8_t)mad->reason;
	put24_8(m + 8, mad->qpn, 0);
	put64(m + 12, mad->service);
	put32(m + 20, mad->qkey);
	put_private(m + 96, mad, 136);
}

void lb_mad_build(uint8_t out[LB_MAD_SIZE], const struct lb_mad *mad)
{
	uint8_t *m = out + HEAD;

	memset(out, 0, LB_MAD_SIZE);
	out[0] = 1;
	out[1] = CLASS;
	out[2] = VERSION;
	out[3] = SEND;
	put64(out + 8, (uint64_t)mad->from << 32 | mad->to);
	put16(out + 16, mad->type);
	put32(m, mad->from);
	put32(m + 4, mad->to);
	switch (mad->type) {
	case LB_MAD_REQ:
		put_req(m, mad);
		break;
	case LB_MAD_REP:
		put_rep(m, mad);
		break;
	case LB_MAD_REJ:
		put16(m + 10, mad->reason);
		put_private(m + 84, mad, 148);
		break;
	case LB_MAD_MRA:
		m[9] = RESPONSE << 3;
		break;
	case LB_MAD_DREQ:
		put24_8(m + 8, mad->qpn, 0);
		break;
	case LB_MAD_SIDR_REQ:
		put16(m + 4, ANY_PKEY);
		put64(m + 8, mad->service);
		put_addresses(m + 16, mad, 180);
		break;
	case LB_MAD_SIDR_REP:
		put_sidr_rep(m, mad);
		break;
	default:
		break;
	}
}
