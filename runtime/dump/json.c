/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * json.c -- a dump as a JSON object: the rows of table.h that JSON has, in the
 * order of the table. Pure functions.
 */

#include "dump/dump.h"

#include <inttypes.h>

static void json_value(struct rt_dump_out *out,
		       const struct rt_dump_field *field, const void *record);

/* Prints the members of an object; before: the text before the first. */
static void json_members(struct rt_dump_out *out,
			 const struct rt_dump_object *object,
			 const void *record, const char *before)
{
	const struct rt_dump_field *field = object->fields;
	const struct rt_dump_field *end = field + object->count;
	bool has_lines = object == rt_dump_fields();

	for (; field < end; field++) {
		if (field->form == RT_DUMP_KEPT)
			continue;
		if (field->form == RT_DUMP_FLAT) {
			json_members(out, field->of(),
				     rt_dump_value(field, record), before);
			continue;
		}
		rt_dump_put(out, before);
		rt_dump_put(out, has_lines && field->of ? "\n\"" : "\"");
		rt_dump_put(out, field->name);
		rt_dump_put(out, "\":");
		json_value(out, field, record);
		before = ",";
	}
}

static void json_object(struct rt_dump_out *out,
			const struct rt_dump_object *object, const void *record)
{
	rt_dump_put(out, "{");
	json_members(out, object, record, "");
	rt_dump_put(out, "}");
}

/* Prints objects as an array or as a map. */
static void json_items(struct rt_dump_out *out,
		       const struct rt_dump_field *field, const void *record)
{
	const struct rt_dump_object *object = field->of();
	const char *line = field->form == RT_DUMP_SHOWN ? "\n" : "";
	bool is_map = field->form == RT_DUMP_MAP;
	uint32_t count;
	const char *item = rt_dump_items(field, record, &count);
	uint32_t i;

	rt_dump_put(out, is_map ? "{" : "[");
	for (i = 0; i < count; i++, item += object->size) {
		rt_dump_put(out, i ? "," : "");
		rt_dump_put(out, line);
		if (is_map) {
			rt_dump_quote(out, &object->fields[0], item);
			rt_dump_put(out, ":");
			json_value(out, &object->fields[1], item);
		} else {
			json_object(out, object, item);
		}
	}
	rt_dump_put(out, is_map ? "}" : "]");
}

static void json_phrase(struct rt_dump_out *out,
			const struct rt_dump_phrase *phrase)
{
	rt_dump_put(out, "\"");
	out->is_quoted = true;
	rt_dump_human_fill(out, phrase);
	out->is_quoted = false;
	rt_dump_put(out, "\"");
}

static void json_histogram(struct rt_dump_out *out,
			   const struct rpma_rt_histogram *histogram)
{
	int i;

	rt_dump_put(out, "{\"sum_ns\":");
	rt_dump_put_number(out, (int64_t)histogram->sum_ns);
	rt_dump_put(out, ",\"buckets\":[");
	for (i = 0; i < RPMA_RT_HISTOGRAM; i++) {
		rt_dump_put(out, i ? "," : "");
		rt_dump_put_number(out, (int64_t)histogram->buckets[i]);
	}
	rt_dump_put(out, "]}");
}

static void json_value(struct rt_dump_out *out,
		       const struct rt_dump_field *field, const void *record)
{
	const void *value = rt_dump_value(field, record);
	bool is = rt_dump_is(field, record);

	switch (field->type) {
	case RT_DUMP_IS_BOOL:
		rt_dump_put(out, is ? "true" : "false");
		break;
	case RT_DUMP_IS_USER:
		rt_dump_printf(out, "%" PRIuPTR,
			       (uintptr_t)*(void *const *)value);
		break;
	case RT_DUMP_IS_WORD:
		if (!is) {
			rt_dump_put(out, "null");
			break;
		}
		/* fall through */
	case RT_DUMP_IS_HANDLE:
	case RT_DUMP_IS_TEXT:
		rt_dump_quote(out, field, record);
		break;
	case RT_DUMP_IS_PHRASE:
		json_phrase(out, value);
		break;
	case RT_DUMP_IS_HISTOGRAM:
		json_histogram(out, value);
		break;
	case RT_DUMP_IS_PART:
		json_object(out, field->of(), value);
		break;
	case RT_DUMP_IS_LIST:
	case RT_DUMP_IS_ARRAY:
		json_items(out, field, record);
		break;
	default:
		if (rt_dump_number(field, record) == RT_DUMP_NONE)
			rt_dump_put(out, "null");
		else
			rt_dump_print(out, field, record);
	}
}

void rt_dump_json(const struct rt_dump_all *dump, struct rt_dump_out *out)
{
	json_object(out, rt_dump_fields(), dump);
	rt_dump_put(out, "\n");
}
