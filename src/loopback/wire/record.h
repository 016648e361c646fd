/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * record.h -- a record of a ring: a header of 64 bytes, and up to 16 KiB of
 * payload after the header, in multiples of 64, or a few bytes in the header.
 * All fields have the byte order of the machine, and fixed widths, so that
 * programs of 32 and 64 bits meet.
 */

#ifndef LB_WIRE_RECORD_H
#define LB_WIRE_RECORD_H

#include <stdbool.h>
#include <stdint.h>

enum {
	LB_RECORD_UNIT = 64,	     /* unit of positions */
	LB_RECORD_PAYLOAD = 1 << 14, /* the most in a record */
	LB_RECORD_MAX = LB_RECORD_UNIT + LB_RECORD_PAYLOAD,
	LB_RECORD_SMALL = 16, /* the most payload in a header */
};

enum lb_record_type {
	/* requests; the payload in brackets */
	LB_RECORD_SEND = 1,	/* part of a message (its bytes) */
	LB_RECORD_WRITE,	/* part of a message (its bytes) */
	LB_RECORD_READ,		/* total bytes are asked for, 16 KiB at most */
	LB_RECORD_FETCH_ADD,	/* operand */
	LB_RECORD_CMP_SWP,	/* operand: compare; swap */
	LB_RECORD_ATOMIC_WRITE, /* (8 bytes) */
	LB_RECORD_FLUSH,	/* total bytes at remote_addr; code: flush
				 * type */
	LB_RECORD_DATAGRAM,	/* (bytes of the datagram) */
	LB_RECORD_MULTICAST,	/* a datagram to all members of dgid (bytes) */
	LB_RECORD_REQUESTS,	/* after the last request */

	/* answers */
	LB_RECORD_ACK = 32, /* executed: from the PSN total to psn */
	LB_RECORD_BYTES,    /* of a READ (total bytes) */
	LB_RECORD_VALUE,    /* operand: the value before the atomic */
	LB_RECORD_RNR,	    /* no receive; code: the timer */
	LB_RECORD_NAK,	    /* code: enum ibv_wc_status of the requester */
	LB_RECORD_NOBODY,   /* no such queue pair, or a silent queue pair */
	LB_RECORD_ANSWERS,  /* after the last answer */
};

/* flags */
enum {
	LB_RECORD_FIRST = 1, /* first part of a message */
	LB_RECORD_LAST = 2,
	LB_RECORD_IMM = 4, /* imm is immediate data, */
	LB_RECORD_INV = 8, /* or a key to invalidate */
	LB_RECORD_SOLICITED = 16,
	LB_RECORD_UNRELIABLE = 32, /* of UC: without an answer */
	LB_RECORD_ALL = 64,	   /* FLUSH: the region, total is ignored */
	/* of a SEND or WRITE: the payload is in operand and swap, not behind */
	LB_RECORD_INLINE = 128,
};

struct lb_record {
	uint16_t length; /* of the payload */
	uint8_t type;	 /* enum lb_record_type */
	uint8_t flags;
	uint16_t life;	/* of the queue pair of the requester; echoed by
			 * answers */
	uint8_t device; /* index, of the sender's queue pair */
	uint8_t code;	/* see the types */
	uint32_t from;	/* the sender's queue pair */
	uint32_t to;	/* the receiver's; 0 of MULTICAST */
	uint32_t psn;	/* of the first packet; echoed by answers; of
			 * datagrams the traffic class */
	uint32_t total; /* length of the whole message, or see the types */
	uint32_t key;	/* rkey, or Q_Key of datagrams */
	uint32_t imm;
	union {
		struct {
			uint64_t remote_addr; /* of this part */
			union {
				struct {
					uint64_t operand;
					uint64_t swap;
				};
				uint8_t small[LB_RECORD_SMALL];
			};
			uint32_t offset;   /* of this part in the message */
			uint8_t to_device; /* index, as the address says */
			uint8_t path_mtu;  /* the size of packets counted by
					    * PSNs */
			uint16_t spare;
		};
		struct { /* datagrams */
			uint8_t sgid[16];
			uint8_t dgid[16];
		};
	};
};

_Static_assert(sizeof(struct lb_record) == LB_RECORD_UNIT, "one unit");

/* Returns the room in a ring for a header and the payload. */
static inline uint32_t lb_record_room(uint32_t length)
{
	return LB_RECORD_UNIT +
	       (length + LB_RECORD_UNIT - 1) / LB_RECORD_UNIT * LB_RECORD_UNIT;
}

/* Returns the room of a record. */
static inline uint32_t lb_record_size(const struct lb_record *record)
{
	return record->flags & LB_RECORD_INLINE
		       ? LB_RECORD_UNIT
		       : lb_record_room(record->length);
}

/* Returns the room of the largest answer to a request, 0 without an answer. */
uint32_t lb_record_largest_answer(const struct lb_record *request);

/* Which bit of 64 stands for a multicast group; others have the same. */
uint64_t lb_record_group(const uint8_t gid[16]);

/*
 * Returns the fault of a header written by a peer, in words to follow the name
 * of the peer, or NULL: the type must be known, be an answer or not, and have
 * fitting lengths. Other code checks numbers, keys and addresses.
 */
const char *lb_record_wrong(const struct lb_record *record, bool is_answer);

#endif /* LB_WIRE_RECORD_H */
