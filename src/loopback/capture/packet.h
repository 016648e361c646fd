/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * packet.h -- packets of RoCEv2, as a network card would send them: Ethernet,
 * IPv4 or IPv6, UDP to port 4791, the headers of InfiniBand, payload, ICRC. A
 * pure function of its fields.
 */

#ifndef LB_CAPTURE_PACKET_H
#define LB_CAPTURE_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Opcodes after the bits of the transport; UC and UD share some opcodes of RC.
 */
enum {
	LB_PACKET_RC = 0x00,
	LB_PACKET_UC = 0x20,
	LB_PACKET_UD = 0x60,

	LB_PACKET_SEND_FIRST = 0x00,
	LB_PACKET_SEND_MIDDLE = 0x01,
	LB_PACKET_SEND_LAST = 0x02,
	LB_PACKET_SEND_LAST_IMM = 0x03,
	LB_PACKET_SEND_ONLY = 0x04,
	LB_PACKET_SEND_ONLY_IMM = 0x05,
	LB_PACKET_WRITE_FIRST = 0x06,
	LB_PACKET_WRITE_MIDDLE = 0x07,
	LB_PACKET_WRITE_LAST = 0x08,
	LB_PACKET_WRITE_LAST_IMM = 0x09,
	LB_PACKET_WRITE_ONLY = 0x0a,
	LB_PACKET_WRITE_ONLY_IMM = 0x0b,
	LB_PACKET_READ = 0x0c,
	LB_PACKET_READ_FIRST = 0x0d, /* of the answer, and so on */
	LB_PACKET_READ_MIDDLE = 0x0e,
	LB_PACKET_READ_LAST = 0x0f,
	LB_PACKET_READ_ONLY = 0x10,
	LB_PACKET_ACK = 0x11,
	LB_PACKET_ATOMIC_ACK = 0x12,
	LB_PACKET_CMP_SWP = 0x13,
	LB_PACKET_FETCH_ADD = 0x14,
	LB_PACKET_SEND_LAST_INV = 0x16,
	LB_PACKET_SEND_ONLY_INV = 0x17,
	LB_PACKET_FLUSH = 0x1c,
	LB_PACKET_ATOMIC_WRITE = 0x1d,
};

#define LB_PACKET_PAYLOAD 4096u
/* the longest headers: IPv6 with a compare and swap */
#define LB_PACKET_MAX (14 + 40 + 8 + 12 + 32 + LB_PACKET_PAYLOAD + 4)

/* The fields of the AETH of an answer, except the credits. */
enum {
	LB_PACKET_IS_ACK = 0x1f, /* and no limit of credits */
	LB_PACKET_RNR = 0x20,	 /* with the timer */
	LB_PACKET_NAK_REQUEST = 0x61,
	LB_PACKET_NAK_ACCESS = 0x62,
	LB_PACKET_NAK_OPERATION = 0x63,
};

struct lb_packet {
	const uint8_t *from; /* GIDs */
	const uint8_t *to;
	uint8_t opcode; /* with the transport */
	bool is_solicited;
	bool wants_ack;
	uint32_t src_qpn; /* of UD in the packet; of all in the port of UDP */
	uint32_t dest_qpn;
	uint32_t psn;
	/* fields used by the opcode */
	uint64_t remote_addr;
	uint32_t rkey;
	uint32_t length; /* of the whole message */
	uint64_t swap;
	uint64_t compare_add;
	uint64_t old;  /* of an atomic's answer */
	uint32_t imm;  /* network byte order, or the rkey to invalidate */
	uint32_t qkey; /* of UD */
	uint8_t flush_type;
	uint8_t flush_level;
	uint8_t syndrome; /* of an answer */
	uint32_t msn;
	const uint8_t *payload;
	uint32_t payload_len;
};

/* Builds the packet in out; returns its length. */
size_t lb_packet_build(uint8_t out[LB_PACKET_MAX], const struct lb_packet *p);

/*
 * Returns the ICRC of a packet from its IP header to the end of its payload; on
 * the wire the lowest byte comes first. InfiniBand Architecture Specification,
 * annex A17: the CRC of Ethernet over eight bytes of ones in place of a local
 * route, and the packet with ones in place of fields changed by routers.
 */
uint32_t lb_packet_icrc(const uint8_t *ip, size_t len);

#endif /* LB_CAPTURE_PACKET_H */
