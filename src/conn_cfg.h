/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The connection configuration: a list of values, read once when a request is
 * made. The configuration owns no object that a value names.
 */

#ifndef RPMA_CONN_CFG_H
#define RPMA_CONN_CFG_H 1

#include "cfg_field.h"

/* the bytes that the emulated atomic write sends inline */
#define RPMA__MIN_INLINE_DATA 8

/* clang-format off */
#define RPMA__CONN_CFG_FIELDS(X)                                            \
	X(timeout, int, RPMA_DEFAULT_TIMEOUT_MS, v >= 0, "0 or more")       \
	X(cq_size, uint32_t, 10, true, "any")                               \
	X(rcq_size, uint32_t, 0, true, "any")                               \
	X(sq_size, uint32_t, 10, true, "any")                               \
	X(rq_size, uint32_t, 10, true, "any")                               \
	X(compl_channel, bool, false, true, "any")                          \
	X(srq, struct rpma_srq *, NULL, v != NULL, "an SRQ")                \
	X(cq, struct rpma_cq *, NULL, true, "any")                          \
	X(rcq, struct rpma_cq *, NULL, true, "any")                         \
	X(channel, struct rpma_channel *, NULL, true, "any")                \
	X(cm_channel, struct rpma_cm_channel *, NULL, true, "any")          \
	X(comp_vector, int, 0, v >= 0, "0 or more")                         \
	X(max_send_sge, uint32_t, 1, v >= 1, "1 or more")                   \
	X(max_recv_sge, uint32_t, 1, v >= 1, "1 or more")                   \
	X(max_inline_data, uint32_t, RPMA__MIN_INLINE_DATA,                 \
	  v >= RPMA__MIN_INLINE_DATA, "8 or more")                          \
	X(responder_resources, uint8_t, 255, true, "any")                   \
	X(initiator_depth, uint8_t, 255, true, "any")                       \
	X(retry_count, uint8_t, 7, v <= 7, "0 to 7")                        \
	X(rnr_retry_count, uint8_t, 7, v <= 7, "0 to 7")                    \
	X(min_rnr_timer, uint8_t, RPMA_MIN_RNR_TIMER_UNSET,                 \
	  v <= 31 || v == RPMA_MIN_RNR_TIMER_UNSET, "0 to 31, or unset")    \
	X(ack_timeout, uint8_t, RPMA_ACK_TIMEOUT_UNSET,                     \
	  v <= 31 || v == RPMA_ACK_TIMEOUT_UNSET, "0 to 31, or unset")      \
	X(tos, int, RPMA_TOS_UNSET,                                         \
	  (v >= 0 && v <= 255) || v == RPMA_TOS_UNSET, "0 to 255, or unset") \
	X(src_addr, const char *, NULL, true, "any")
/* clang-format on */

/* The values with which one request was made. */
struct rpma__conn_cfg {
	RPMA__CONN_CFG_FIELDS(RPMA__CFG_PLAIN)
};

/* Reads all values; cfg NULL: reads the defaults. */
void rpma__conn_cfg_read(const struct rpma_conn_cfg *cfg,
			 struct rpma__conn_cfg *values);

#endif /* RPMA_CONN_CFG_H */
