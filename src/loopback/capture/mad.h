/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * mad.h -- messages of connection managers as the datagrams to queue pair 1
 * that a network card would send. A pure function of its fields.
 */

#ifndef LB_CAPTURE_MAD_H
#define LB_CAPTURE_MAD_H

#include <stdbool.h>
#include <stdint.h>

enum {
	LB_MAD_SIZE = 256,
	LB_MAD_QPN = 1,
	LB_MAD_QKEY = 0x80010000u,
};

/* Attributes of the class "communication management". */
enum lb_mad_type {
	LB_MAD_REQ = 0x10,
	LB_MAD_MRA = 0x11,
	LB_MAD_REJ = 0x12,
	LB_MAD_REP = 0x13,
	LB_MAD_RTU = 0x14,
	LB_MAD_DREQ = 0x15,
	LB_MAD_DREP = 0x16,
	LB_MAD_SIDR_REQ = 0x17, /* for datagrams */
	LB_MAD_SIDR_REP = 0x18,
};

struct lb_mad {
	enum lb_mad_type type;
	uint32_t from; /* identifier; of SIDR that of the request */
	uint32_t to;   /* of all but REQ and SIDR */
	uint64_t service;
	uint32_t qpn;
	uint32_t psn;
	uint32_t qkey;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	bool has_flow_control;
	bool has_srq;
	bool is_uc;
	uint16_t reason; /* REJ; status of SIDR_REP */
	/* where REQ and SIDR_REQ come from and go to */
	const uint8_t *sgid;
	const uint8_t *dgid;
	uint16_t src_port;   /* network byte order */
	const uint8_t *priv; /* as long as the type has it */
};

void lb_mad_build(uint8_t out[LB_MAD_SIZE], const struct lb_mad *mad);

#endif /* LB_CAPTURE_MAD_H */
