/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* ibverbs_words.c -- names and rates, which need no device. */

#include <infiniband/verbs.h>
#include <stddef.h>

#include "replace.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static const char *ibverbs_word_of(const char *const table[], size_t count,
				   size_t n)
{
	return n < count && table[n] ? table[n] : "unknown";
}

/* Defines a function from a number to a word, under the name and node. */
#define WORD(name, node, table)                                 \
	REPLACE_EXPORT const char *word_##name(unsigned n);     \
	REPLACE_EXPORT const char *word_##name(unsigned n)      \
	{                                                       \
		return ibverbs_word_of(table, COUNT(table), n); \
	}                                                       \
	REPLACE_NAME(word_##name, name, node);

static const char *const statuses[] = {
	[IBV_WC_SUCCESS] = "success",
	[IBV_WC_LOC_LEN_ERR] = "local length error",
	[IBV_WC_LOC_QP_OP_ERR] = "local QP operation error",
	[IBV_WC_LOC_EEC_OP_ERR] = "local EE context operation error",
	[IBV_WC_LOC_PROT_ERR] = "local protection error",
	[IBV_WC_WR_FLUSH_ERR] = "work request flushed",
	[IBV_WC_MW_BIND_ERR] = "memory window bind error",
	[IBV_WC_BAD_RESP_ERR] = "bad response",
	[IBV_WC_LOC_ACCESS_ERR] = "local access error",
	[IBV_WC_REM_INV_REQ_ERR] = "remote invalid request",
	[IBV_WC_REM_ACCESS_ERR] = "remote access error",
	[IBV_WC_REM_OP_ERR] = "remote operation error",
	[IBV_WC_RETRY_EXC_ERR] = "transport retries exceeded",
	[IBV_WC_RNR_RETRY_EXC_ERR] = "receiver not ready, retries exceeded",
	[IBV_WC_LOC_RDD_VIOL_ERR] = "local RDD violation",
	[IBV_WC_REM_INV_RD_REQ_ERR] = "remote invalid RD request",
	[IBV_WC_REM_ABORT_ERR] = "remote abort",
	[IBV_WC_INV_EECN_ERR] = "invalid EE context number",
	[IBV_WC_INV_EEC_STATE_ERR] = "invalid EE context state",
	[IBV_WC_FATAL_ERR] = "fatal error",
	[IBV_WC_RESP_TIMEOUT_ERR] = "response timeout",
	[IBV_WC_GENERAL_ERR] = "general error",
	[IBV_WC_TM_ERR] = "tag matching error",
	[IBV_WC_TM_RNDV_INCOMPLETE] = "tag matching rendezvous incomplete",
};
WORD(ibv_wc_status_str, "IBVERBS_1.1", statuses)

static const char *const events[] = {
	[IBV_EVENT_CQ_ERR] = "CQ error",
	[IBV_EVENT_QP_FATAL] = "QP fatal error",
	[IBV_EVENT_QP_REQ_ERR] = "QP request error",
	[IBV_EVENT_QP_ACCESS_ERR] = "QP access error",
	[IBV_EVENT_COMM_EST] = "communication established",
	[IBV_EVENT_SQ_DRAINED] = "send queue drained",
	[IBV_EVENT_PATH_MIG] = "path migrated",
	[IBV_EVENT_PATH_MIG_ERR] = "path migration error",
	[IBV_EVENT_DEVICE_FATAL] = "device fatal error",
	[IBV_EVENT_PORT_ACTIVE] = "port active",
	[IBV_EVENT_PORT_ERR] = "port error",
	[IBV_EVENT_LID_CHANGE] = "LID changed",
	[IBV_EVENT_PKEY_CHANGE] = "P_Key changed",
	[IBV_EVENT_SM_CHANGE] = "subnet manager changed",
	[IBV_EVENT_SRQ_ERR] = "SRQ error",
	[IBV_EVENT_SRQ_LIMIT_REACHED] = "SRQ limit reached",
	[IBV_EVENT_QP_LAST_WQE_REACHED] = "last WQE reached",
	[IBV_EVENT_CLIENT_REREGISTER] = "client reregistration",
	[IBV_EVENT_GID_CHANGE] = "GID changed",
	[IBV_EVENT_WQ_FATAL] = "WQ fatal error",
};
WORD(ibv_event_type_str, "IBVERBS_1.1", events)

static const char *const nodes[] = {
	[IBV_NODE_CA] = "channel adapter",
	[IBV_NODE_SWITCH] = "switch",
	[IBV_NODE_ROUTER] = "router",
	[IBV_NODE_RNIC] = "iWARP NIC",
	[IBV_NODE_USNIC] = "usNIC",
	[IBV_NODE_USNIC_UDP] = "usNIC over UDP",
	[IBV_NODE_UNSPECIFIED] = "unspecified",
};
WORD(ibv_node_type_str, "IBVERBS_1.1", nodes)

static const char *const states[] = {
	[IBV_PORT_NOP] = "no state",
	[IBV_PORT_DOWN] = "down",
	[IBV_PORT_INIT] = "init",
	[IBV_PORT_ARMED] = "armed",
	[IBV_PORT_ACTIVE] = "active",
	[IBV_PORT_ACTIVE_DEFER] = "active, deferred",
};
WORD(ibv_port_state_str, "IBVERBS_1.1", states)

static const char *const opcodes[] = {
	[IBV_WR_RDMA_WRITE] = "RDMA write",
	[IBV_WR_RDMA_WRITE_WITH_IMM] = "RDMA write with immediate",
	[IBV_WR_SEND] = "send",
	[IBV_WR_SEND_WITH_IMM] = "send with immediate",
	[IBV_WR_RDMA_READ] = "RDMA read",
	[IBV_WR_ATOMIC_CMP_AND_SWP] = "atomic compare and swap",
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = "atomic fetch and add",
	[IBV_WR_LOCAL_INV] = "local invalidate",
	[IBV_WR_BIND_MW] = "bind memory window",
	[IBV_WR_SEND_WITH_INV] = "send with invalidate",
	[IBV_WR_TSO] = "TSO",
};
WORD(ibv_wr_opcode_str, "IBVERBS_PRIVATE_34", opcodes)

/* --- rates: multiples of 2.5 Gbit/s, if exact, and Mbit/s */

static const struct {
	int mult;
	int mbps;
} rates[] = {
	[IBV_RATE_2_5_GBPS] = {1, 2500},     [IBV_RATE_5_GBPS] = {2, 5000},
	[IBV_RATE_10_GBPS] = {4, 10000},     [IBV_RATE_20_GBPS] = {8, 20000},
	[IBV_RATE_30_GBPS] = {12, 30000},    [IBV_RATE_40_GBPS] = {16, 40000},
	[IBV_RATE_60_GBPS] = {24, 60000},    [IBV_RATE_80_GBPS] = {32, 80000},
	[IBV_RATE_120_GBPS] = {48, 120000},  [IBV_RATE_14_GBPS] = {0, 14062},
	[IBV_RATE_56_GBPS] = {0, 56250},     [IBV_RATE_112_GBPS] = {0, 112500},
	[IBV_RATE_168_GBPS] = {0, 168750},   [IBV_RATE_25_GBPS] = {0, 25781},
	[IBV_RATE_100_GBPS] = {0, 103125},   [IBV_RATE_200_GBPS] = {0, 206250},
	[IBV_RATE_300_GBPS] = {0, 309375},   [IBV_RATE_28_GBPS] = {0, 28125},
	[IBV_RATE_50_GBPS] = {0, 53125},     [IBV_RATE_400_GBPS] = {0, 425000},
	[IBV_RATE_600_GBPS] = {0, 637500},   [IBV_RATE_800_GBPS] = {0, 850000},
	[IBV_RATE_1200_GBPS] = {0, 1275000},
};

REPLACE_EXPORT int word_ibv_rate_to_mult(unsigned rate);
REPLACE_EXPORT int word_ibv_rate_to_mult(unsigned rate)
{
	return rate < COUNT(rates) && rates[rate].mult ? rates[rate].mult : -1;
}
REPLACE_NAME(word_ibv_rate_to_mult, ibv_rate_to_mult, "IBVERBS_1.0");

REPLACE_EXPORT int word_ibv_rate_to_mbps(unsigned rate);
REPLACE_EXPORT int word_ibv_rate_to_mbps(unsigned rate)
{
	return rate < COUNT(rates) && rates[rate].mbps ? rates[rate].mbps : -1;
}
REPLACE_NAME(word_ibv_rate_to_mbps, ibv_rate_to_mbps, "IBVERBS_1.1");

REPLACE_EXPORT enum ibv_rate word_mult_to_ibv_rate(int mult);
REPLACE_EXPORT enum ibv_rate word_mult_to_ibv_rate(int mult)
{
	size_t n;

	for (n = 0; n < COUNT(rates); n++) {
		if (mult > 0 && rates[n].mult == mult)
			return (enum ibv_rate)n;
	}
	return IBV_RATE_MAX;
}
REPLACE_NAME(word_mult_to_ibv_rate, mult_to_ibv_rate, "IBVERBS_1.0");

REPLACE_EXPORT enum ibv_rate word_mbps_to_ibv_rate(int mbps);
REPLACE_EXPORT enum ibv_rate word_mbps_to_ibv_rate(int mbps)
{
	size_t n;

	for (n = 0; n < COUNT(rates); n++) {
		if (mbps > 0 && rates[n].mbps == mbps)
			return (enum ibv_rate)n;
	}
	return IBV_RATE_MAX;
}
REPLACE_NAME(word_mbps_to_ibv_rate, mbps_to_ibv_rate, "IBVERBS_1.1");

REPLACE_EXPORT const char *word_ibv_get_sysfs_path(void);
REPLACE_EXPORT const char *word_ibv_get_sysfs_path(void)
{
	return "/sys";
}
REPLACE_NAME(word_ibv_get_sysfs_path, ibv_get_sysfs_path, "IBVERBS_1.0");
