/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* packet.c -- see packet.h. Any thread; no state. */

#include "capture/packet.h"

#include <string.h>

#define UDP_PORT    4791
#define UDP_PROTO   17
#define HOPS	    64
#define ETHERNET    14
#define UDP	    8
#define BTH	    12
#define ICRC	    4
#define IPV4	    20
#define IPV6	    40
#define FIRST_PORT  0xc000u /* of the sender's, for one port a queue pair */
#define NO_PARTNERS 0xffff  /* the P_Key of everybody */
#define CRC_POLY    0xedb88320u

static const uint8_t v4_prefix[12] = {[10] = 0xff, [11] = 0xff};

static uint8_t *put8(uint8_t *at, uint8_t v)
{
	*at = v;
	return at + 1;
}

static uint8_t *put16(uint8_t *at, uint32_t v)
{
	at[0] = (uint8_t)(v >> 8);
	at[1] = (uint8_t)v;
	return at + 2;
}

static uint8_t *put24(uint8_t *at, uint32_t v)
{
	return put16(put8(at, (uint8_t)(v >> 16)), v & 0xffff);
}

static uint8_t *put32(uint8_t *at, uint32_t v)
{
	return put16(put16(at, v >> 16), v & 0xffff);
}

static uint8_t *put64(uint8_t *at, uint64_t v)
{
	return put32(put32(at, (uint32_t)(v >> 32)), (uint32_t)v);
}

static uint8_t *put_bytes(uint8_t *at, const void *bytes, size_t len)
{
	if (len)
		memcpy(at, bytes, len);
	return at + len;
}

/* --- the check */

static uint32_t crc_bytes(uint32_t crc, const uint8_t *at, size_t len)
{
	int bit;

	while (len--) {
		crc ^= *at++;
		for (bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? CRC_POLY : 0);
	}
	return crc;
}

uint32_t lb_packet_icrc(const uint8_t *ip, size_t len)
{
	uint8_t head[8 + IPV6 + UDP + BTH];
	size_t ip_len = ip[0] >> 4 == 4 ? IPV4 : IPV6;
	size_t head_len = ip_len + UDP + BTH;
	uint8_t *h = head + 8;

	memset(head, 0xff, 8);
	memcpy(h, ip, head_len);
	if (ip_len == IPV4) {
		h[1] = h[8] = 0xff;   /* TOS, TTL */
		h[10] = h[11] = 0xff; /* checksum */
	} else {
		h[0] |= 0x0f; /* traffic class, flow label, hops */
		h[1] = h[2] = h[3] = h[7] = 0xff;
	}
	h += ip_len;
	h[6] = h[7] = 0xff; /* checksum of UDP */
	h[UDP + 4] = 0xff;  /* congestion bits of BTH */
	return ~crc_bytes(crc_bytes(~0u, head, 8 + head_len), ip + head_len,
			  len - head_len);
}

/* --- headers */

static bool is_v4(const struct lb_packet *p)
{
	return !memcmp(p->from, v4_prefix, sizeof(v4_prefix)) &&
	       !memcmp(p->to, v4_prefix, sizeof(v4_prefix));
}

static uint8_t *put_ethernet(uint8_t *at, const struct lb_packet *p)
{
	/* locally administered, and the end of the address */
	at = put_bytes(put16(at, 0x0200), p->to + 12, 4);
	at = put_bytes(put16(at, 0x0200), p->from + 12, 4);
	return put16(at, is_v4(p) ? 0x0800 : 0x86dd);
}

static void set_checksum(uint8_t *ip)
{
	uint32_t sum = 0;
	int i;

	for (i = 0; i < IPV4; i += 2)
		sum += (uint32_t)ip[i] << 8 | ip[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum += sum >> 16;
	put16(ip + 10, ~sum & 0xffff);
}

static uint8_t *put_ip(uint8_t *ip, const struct lb_packet *p, size_t len)
{
	uint8_t *at;

	if (!is_v4(p)) {
		at = put16(put32(ip, 0x60000000), (uint32_t)len);
		at = put8(put8(at, UDP_PROTO), HOPS);
		return put_bytes(put_bytes(at, p->from, 16), p->to, 16);
	}
	at = put16(put16(ip, 0x4500), (uint32_t)len + IPV4);
	at = put32(at, 0x4000); /* not to be cut */
	at = put16(put8(put8(at, HOPS), UDP_PROTO), 0);
	at = put_bytes(put_bytes(at, p->from + 12, 4), p->to + 12, 4);
	set_checksum(ip);
	return at;
}

static uint8_t *put_udp(uint8_t *at, const struct lb_packet *p, size_t len)
{
	at = put16(at, FIRST_PORT | (p->src_qpn & 0x3fff));
	return put16(put16(put16(at, UDP_PORT), (uint32_t)len), 0);
}

static uint8_t *put_bth(uint8_t *at, const struct lb_packet *p, uint32_t pad)
{
	at = put8(at, p->opcode);
	/* solicited, migrated, pad */
	at = put8(at, (uint8_t)(p->is_solicited << 7 | 1 << 6 | pad << 4));
	at = put16(at, NO_PARTNERS);
	at = put32(at, p->dest_qpn & 0xffffff);
	return put24(put8(at, (uint8_t)(p->wants_ack << 7)), p->psn);
}

static uint8_t *put_reth(uint8_t *at, const struct lb_packet *p)
{
	return put32(put32(put64(at, p->remote_addr), p->rkey), p->length);
}

static uint8_t *put_aeth(uint8_t *at, const struct lb_packet *p)
{
	return put24(put8(at, p->syndrome), p->msn);
}

static uint8_t *put_atomic(uint8_t *at, const struct lb_packet *p, bool swaps)
{
	at = put32(put64(at, p->remote_addr), p->rkey);
	at = put64(at, swaps ? p->swap : p->compare_add);
	return put64(at, swaps ? p->compare_add : 0);
}

/* The headers behind BTH that the opcode has. */
static uint8_t *put_extended(uint8_t *at, const struct lb_packet *p)
{
	if (p->opcode >= LB_PACKET_UD)
		at = put32(put32(at, p->qkey), p->src_qpn & 0xffffff);
	switch (p->opcode & 0x1f) {
	case LB_PACKET_WRITE_FIRST:
	case LB_PACKET_WRITE_ONLY:
	case LB_PACKET_READ:
	case LB_PACKET_ATOMIC_WRITE:
		return put_reth(at, p);
	case LB_PACKET_WRITE_ONLY_IMM:
		return put_bytes(put_reth(at, p), &p->imm, 4);
	case LB_PACKET_SEND_LAST_IMM:
	case LB_PACKET_SEND_ONLY_IMM:
	case LB_PACKET_WRITE_LAST_IMM:
		return put_bytes(at, &p->imm, 4);
	case LB_PACKET_SEND_LAST_INV:
	case LB_PACKET_SEND_ONLY_INV:
		return put32(at, p->imm);
	case LB_PACKET_READ_FIRST:
	case LB_PACKET_READ_LAST:
	case LB_PACKET_READ_ONLY:
	case LB_PACKET_ACK:
		return put_aeth(at, p);
	case LB_PACKET_ATOMIC_ACK:
		return put64(put_aeth(at, p), p->old);
	case LB_PACKET_CMP_SWP:
	case LB_PACKET_FETCH_ADD:
		return put_atomic(at, p,
				  (p->opcode & 0x1f) == LB_PACKET_CMP_SWP);
	case LB_PACKET_FLUSH: /* what to flush, and what of it */
		at = put32(at, (uint32_t)p->flush_level << 4 | p->flush_type);
		return put_reth(at, p);
	default:
		return at;
	}
}

size_t lb_packet_build(uint8_t out[LB_PACKET_MAX], const struct lb_packet *p)
{
	uint32_t pad = -p->payload_len & 3, icrc;
	uint8_t extended[32];
	size_t more = (size_t)(put_extended(extended, p) - extended);
	size_t len = UDP + BTH + more + p->payload_len + pad + ICRC;
	uint8_t *ip = put_ethernet(out, p);
	uint8_t *at = put_udp(put_ip(ip, p, len), p, len);

	at = put_bytes(put_bth(at, p, pad), extended, more);
	at = put_bytes(at, p->payload, p->payload_len);
	while (pad--)
		at = put8(at, 0);
	icrc = lb_packet_icrc(ip, (size_t)(at - ip));
	at = put8(put8(at, (uint8_t)icrc), (uint8_t)(icrc >> 8));
	at = put8(put8(at, (uint8_t)(icrc >> 16)), (uint8_t)(icrc >> 24));
	return (size_t)(at - out);
}
