/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* names.h -- the names of counters, states and reasons of a dump. */

#ifndef RT_DUMP_NAMES_H
#define RT_DUMP_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "conn/conn.h"

/* a counter in one of the two structs of statistics */
struct rt_dump_field {
	const char *name;
	size_t offset;
	bool is_gauge;
	const char *help;
};

#define RT_DUMP_POLLER_FIELDS 17
#define RT_DUMP_QUEUE_FIELDS  10
#define RT_DUMP_STATES	      (RT_CONN_DELETING + 1)
extern const struct rt_dump_field rt_dump_poller_fields[RT_DUMP_POLLER_FIELDS];
extern const struct rt_dump_field rt_dump_queue_fields[RT_DUMP_QUEUE_FIELDS];

const char *rt_dump_state(uint32_t state);
const char *rt_dump_gate(uint32_t gate);
const char *rt_dump_reason(uint32_t reason);
const char *rt_dump_opcode(uint8_t opcode);
/* In quotation marks, as JSON and Prometheus want. What is no printable ASCII
 * becomes a question mark. */
void rt_dump_text(const char *text, FILE *out);

static inline uint64_t rt_dump_value(const void *stats,
				     const struct rt_dump_field *field)
{
	return *(const uint64_t *)((const char *)stats + field->offset);
}

#endif /* RT_DUMP_NAMES_H */
