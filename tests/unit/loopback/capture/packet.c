/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * packet.c -- packets of RoCE v2 byte by byte, against ones worked out by hand
 * from the formats of the InfiniBand Architecture Specification, and the check
 * of packets that were on a wire.
 */

#include "../../../cases.h"
#include "capture/packet.h"

#include <stdbool.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define HEADERS	     (14 + 20 + 8 + 12) /* up to BTH, with IPv4 */

static const uint8_t from_v4[16] = {[10] = 0xff, 0xff, 10, 0, 0, 1};
static const uint8_t to_v4[16] = {[10] = 0xff, 0xff, 10, 0, 0, 2};
static const uint8_t v6[16] = {0xfe, 0x80, [15] = 9};

static struct lb_packet packet(uint8_t opcode)
{
	return (struct lb_packet){
		.from = from_v4,
		.to = to_v4,
		.opcode = opcode,
		.src_qpn = 0x11,
		.dest_qpn = 0x123456,
		.psn = 0xabcdef,
	};
}

/*
 * A congestion notification that a ConnectX-4 Lx sent, which Scapy has in its
 * tests (test/contrib/roce.uts): from the IP header on, without its check,
 * which was 82 fd 00 2a.
 */
TEST(icrc__of_a_packet_of_a_card)
{
	static const uint8_t ip[] = {
		0x45, 0xc2, 0x00, 0x3c, 0x71, 0x8c, 0x40, 0x00, 0x40, 0x11,
		0x91, 0x61, 0x0a, 0x00, 0x11, 0x01, 0x0a, 0x00, 0x12, 0x01,
		0x00, 0x00, 0x12, 0xb7, 0x00, 0x28, 0x00, 0x00, 0x81, 0x00,
		0xff, 0xff, 0x40, 0x00, 0x01, 0x18, 0x00, 0x00, 0x00, 0x00,
		0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x00, 0x00, 0x00, 0x00, 0x00, 0x00};

	assert_int_equal(lb_packet_icrc(ip, sizeof(ip)), 0x2a00fd82);
}

/* From the same place: a UC SEND Only with 20 bytes, check 78 f3 53 f3. */
TEST(icrc__with_payload)
{
	static const uint8_t ip[] = {
		0x45, 0x01, 0x00, 0x40, 0x04, 0x78, 0x40, 0x00, 0x40, 0x11,
		0xb4, 0xd5, 0xc0, 0xa8, 0x00, 0x07, 0xc0, 0xa8, 0x00, 0x07,
		0xc0, 0x00, 0x12, 0xb7, 0x00, 0x2c, 0xac, 0xa2, 0x24, 0x60,
		0xff, 0xff, 0x00, 0x00, 0x00, 0xd3, 0x00, 0xcf, 0x17, 0x10,
		0x46, 0x30, 0x81, 0x8b, 0xe2, 0x89, 0x35, 0xd9, 0x0e, 0x9a,
		0x95, 0x50, 0x54, 0x01, 0xbe, 0x88, 0x5e, 0x50, 0x00, 0x00};

	assert_int_equal(lb_packet_icrc(ip, sizeof(ip)), 0xf353f378);
}

/* What routers change does not count, everything else does. */
TEST(icrc__what_counts)
{
	static const uint8_t free_v4[] = {1, 8, 10, 11, 26, 27, 32};
	struct lb_packet p = packet(LB_PACKET_ACK);
	uint8_t out[LB_PACKET_MAX], *ip = out + 14;
	size_t len = lb_packet_build(out, &p) - 14 - 4, i;
	uint32_t icrc = lb_packet_icrc(ip, len);

	for (i = 1; i < len; i++) {
		bool counts = !memchr(free_v4, (int)i, sizeof(free_v4));

		ip[i] ^= 1;
		assert_int_equal(lb_packet_icrc(ip, len) != icrc, counts);
		ip[i] ^= 1;
	}
}

TEST(send__every_byte)
{
	static const uint8_t expected[] = {
		/* Ethernet */
		0x02, 0x00, 10, 0, 0, 2, 0x02, 0x00, 10, 0, 0, 1, 0x08, 0x00,
		/* IPv4: 20 + 8 + 12 + 4 + 4 bytes */
		0x45, 0x00, 0x00, 0x30, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11,
		0x26, 0xbb, 10, 0, 0, 1, 10, 0, 0, 2,
		/* UDP */
		0xc0, 0x11, 0x12, 0xb7, 0x00, 0x1c, 0x00, 0x00,
		/* BTH: RC SEND Only, solicited, one byte of padding */
		0x04, 0xd0, 0xff, 0xff, 0x00, 0x12, 0x34, 0x56, 0x80, 0xab,
		0xcd, 0xef,
		/* payload, padding */
		'a', 'b', 'c', 0x00};
	struct lb_packet p = packet(LB_PACKET_RC | LB_PACKET_SEND_ONLY);
	uint8_t out[LB_PACKET_MAX];
	uint32_t icrc;

	p.is_solicited = true;
	p.wants_ack = true;
	p.payload = (const uint8_t *)"abc";
	p.payload_len = 3;
	assert_int_equal(lb_packet_build(out, &p), sizeof(expected) + 4);
	assert_memory_equal(out, expected, sizeof(expected));
	icrc = lb_packet_icrc(out + 14, sizeof(expected) - 14);
	assert_int_equal(out[sizeof(expected)], icrc & 0xff);
	assert_int_equal(out[sizeof(expected) + 3], icrc >> 24);
}

/* What stands between BTH and the check, without payload. */
TEST(extended__of_each_opcode)
{
	static const uint8_t reth[] = {1,    2,	   3,	 4,    5, 6, 7, 8,
				       0xaa, 0xbb, 0xcc, 0xdd, 0, 0, 1, 0};
	static const uint8_t reth_imm[] = {1, 2,    3,	  4,	5,    6,   7,
					   8, 0xaa, 0xbb, 0xcc, 0xdd, 0,   0,
					   1, 0,    0x11, 0x22, 0x33, 0x44};
	static const uint8_t imm[] = {0x11, 0x22, 0x33, 0x44};
	static const uint8_t aeth[] = {0x1f, 0, 0, 5};
	static const uint8_t atomic_ack[] = {0x1f, 0, 0, 5, 0, 0,
					     0,	   0, 0, 0, 0, 6};
	static const uint8_t swap[] = {1,    2,	   3, 4, 5, 6, 7, 8, 0xaa, 0xbb,
				       0xcc, 0xdd, 0, 0, 0, 0, 0, 0, 0,	   8,
				       0,    0,	   0, 0, 0, 0, 0, 7};
	static const uint8_t add[] = {1,    2,	  3, 4, 5, 6, 7, 8, 0xaa, 0xbb,
				      0xcc, 0xdd, 0, 0, 0, 0, 0, 0, 0,	  7,
				      0,    0,	  0, 0, 0, 0, 0, 0};
	static const uint8_t flush[] = {0,    0,    0, 0x12, 1, 2,    3,
					4,    5,    6, 7,    8, 0xaa, 0xbb,
					0xcc, 0xdd, 0, 0,    1, 0};
	static const uint8_t deth[] = {0, 0, 0, 9, 0, 0, 0, 0x11};
	static const uint8_t deth_imm[] = {0, 0,    0,	  9,	0,    0,
					   0, 0x11, 0x11, 0x22, 0x33, 0x44};
	static const struct {
		uint8_t opcode;
		size_t len;
		const uint8_t *bytes;
	} rows[] = {
		{LB_PACKET_SEND_FIRST, 0, NULL},
		{LB_PACKET_SEND_MIDDLE, 0, NULL},
		{LB_PACKET_SEND_LAST, 0, NULL},
		{LB_PACKET_SEND_LAST_IMM, sizeof(imm), imm},
		{LB_PACKET_SEND_ONLY, 0, NULL},
		{LB_PACKET_SEND_ONLY_IMM, sizeof(imm), imm},
		{LB_PACKET_WRITE_FIRST, sizeof(reth), reth},
		{LB_PACKET_WRITE_MIDDLE, 0, NULL},
		{LB_PACKET_WRITE_LAST, 0, NULL},
		{LB_PACKET_WRITE_LAST_IMM, sizeof(imm), imm},
		{LB_PACKET_WRITE_ONLY, sizeof(reth), reth},
		{LB_PACKET_WRITE_ONLY_IMM, sizeof(reth_imm), reth_imm},
		{LB_PACKET_READ, sizeof(reth), reth},
		{LB_PACKET_READ_FIRST, sizeof(aeth), aeth},
		{LB_PACKET_READ_MIDDLE, 0, NULL},
		{LB_PACKET_READ_LAST, sizeof(aeth), aeth},
		{LB_PACKET_READ_ONLY, sizeof(aeth), aeth},
		{LB_PACKET_ACK, sizeof(aeth), aeth},
		{LB_PACKET_ATOMIC_ACK, sizeof(atomic_ack), atomic_ack},
		{LB_PACKET_CMP_SWP, sizeof(swap), swap},
		{LB_PACKET_FETCH_ADD, sizeof(add), add},
		{LB_PACKET_SEND_LAST_INV, sizeof(imm), imm},
		{LB_PACKET_SEND_ONLY_INV, sizeof(imm), imm},
		{LB_PACKET_FLUSH, sizeof(flush), flush},
		{LB_PACKET_ATOMIC_WRITE, sizeof(reth), reth},
		{LB_PACKET_UC | LB_PACKET_SEND_ONLY, 0, NULL},
		{LB_PACKET_UC | LB_PACKET_WRITE_ONLY, sizeof(reth), reth},
		{LB_PACKET_UD | LB_PACKET_SEND_ONLY, sizeof(deth), deth},
		{LB_PACKET_UD | LB_PACKET_SEND_ONLY_IMM, sizeof(deth_imm),
		 deth_imm},
	};
	uint8_t out[LB_PACKET_MAX];
	size_t i;

	for (i = 0; i < COUNT(rows); i++) {
		struct lb_packet p = packet(rows[i].opcode);

		p.remote_addr = 0x0102030405060708;
		p.rkey = 0xaabbccdd;
		p.length = 256;
		p.swap = 8;
		p.compare_add = 7;
		p.old = 6;
		p.syndrome = LB_PACKET_IS_ACK;
		p.msn = 5;
		p.qkey = 9;
		p.flush_type = 2;
		p.flush_level = 1;
		/* immediate data is in network order, a key is a number */
		if (rows[i].opcode == LB_PACKET_SEND_LAST_INV ||
		    rows[i].opcode == LB_PACKET_SEND_ONLY_INV)
			p.imm = 0x11223344;
		else
			memcpy(&p.imm, imm, sizeof(imm));
		assert_int_equal(lb_packet_build(out, &p),
				 HEADERS + rows[i].len + 4);
		assert_int_equal(out[HEADERS - 12], rows[i].opcode);
		if (rows[i].len)
			assert_memory_equal(out + HEADERS, rows[i].bytes,
					    rows[i].len);
	}
}

TEST(ipv6__unless_both_are_v4)
{
	struct lb_packet p = packet(LB_PACKET_ACK);
	uint8_t out[LB_PACKET_MAX];
	size_t len;

	p.to = v6;
	len = lb_packet_build(out, &p);
	assert_int_equal(len, HEADERS + 20 + 4 + 4);
	assert_int_equal(out[12] << 8 | out[13], 0x86dd);
	assert_int_equal(out[14], 0x60);
	assert_int_equal(out[18] << 8 | out[19], 8 + 12 + 4 + 4);
	assert_int_equal(out[20], 17);
	assert_memory_equal(out + 22, from_v4, 16);
	assert_memory_equal(out + 38, v6, 16);
}

TEST(longest__fits)
{
	static uint8_t payload[LB_PACKET_PAYLOAD];
	struct lb_packet p = packet(LB_PACKET_WRITE_ONLY_IMM);
	static uint8_t out[LB_PACKET_MAX + 1];

	out[LB_PACKET_MAX] = 0x5a;
	p.to = v6;
	p.payload = payload;
	p.payload_len = LB_PACKET_PAYLOAD;
	assert_true(lb_packet_build(out, &p) <= LB_PACKET_MAX);
	assert_int_equal(out[LB_PACKET_MAX], 0x5a);
}

TEST_MAIN()
