/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * fields.c -- the rows of table.h as data, values and output. Each object of
 * the table becomes a function that returns the object's rows.
 */

#include "dump/dump.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- rows --- */

/* clang-format off */
#define OBJECT(object, source) \
static const struct rt_dump_object *fields_##object(void) \
{ \
	typedef struct rt_dump_##object record_t; \
	static const struct rt_dump_field fields[] = {
#define END(object, of_subject, of_labels, of_human) \
	}; \
	static const struct rt_dump_object rows = { \
		of_subject, of_labels, of_human, fields, \
		sizeof(fields) / sizeof(fields[0]), sizeof(record_t), \
	}; \
	return &rows; \
}
#define ROW(of_type, of_form, member, ...) \
	{.name = #member, .type = RT_DUMP_IS_##of_type, \
	 .form = RT_DUMP_##of_form, .at = offsetof(record_t, member), \
	 __VA_ARGS__},
#define JSON(type, member, ...) ROW(type, SHOWN, member)
#define KEPT(type, member, ...) ROW(type, KEPT, member)
#define METRIC(form, type, member, of_metric, text, ...) \
	ROW(type, form, member, .metric = (of_metric), .help = (text))
#define PART(form, object, member) \
	ROW(PART, form, member, .of = fields_##object)
#define LIST(form, object, member) \
	ROW(LIST, form, member, .of = fields_##object)
#define ARRAY(form, object, member, max) \
	ROW(ARRAY, form, member, .of = fields_##object, \
	    .count_at = offsetof(record_t, member##_count))
/* clang-format on */
#include "dump/table.h"

const struct rt_dump_object *rt_dump_fields(void)
{
	return fields_all();
}

const struct rt_dump_field *rt_dump_find(const struct rt_dump_object *object,
					 const char *name, size_t len)
{
	const struct rt_dump_field *field = object->fields;
	const struct rt_dump_field *end = field + object->count;

	for (; field < end; field++) {
		if (field->name[0] == name[0] &&
		    strncmp(field->name, name, len) == 0 &&
		    field->name[len] == '\0')
			return field;
	}
	return NULL;
}

/* -------------------------------------------------------------- values --- */

const char *rt_dump_items(const struct rt_dump_field *field, const void *record,
			  uint32_t *count)
{
	const struct rt_dump_list *list = rt_dump_value(field, record);

	*count = 1;
	if (field->type == RT_DUMP_IS_LIST) {
		*count = list->count;
		return list->at;
	}
	if (field->type == RT_DUMP_IS_ARRAY)
		memcpy(count, (const char *)record + field->count_at,
		       sizeof(*count));
	return rt_dump_value(field, record);
}

/* Returns the upper bound of the bucket in which the quantile lies; 0: none was
 * counted. */
static uint64_t fields_quantile(const struct rpma_rt_histogram *histogram,
				unsigned percent)
{
	uint64_t total = 0;
	uint64_t seen = 0;
	int i;

	for (i = 0; i < RPMA_RT_HISTOGRAM; i++)
		total += histogram->buckets[i];
	if (total == 0)
		return 0;
	for (i = 0; i < RPMA_RT_HISTOGRAM - 1; i++) {
		seen += histogram->buckets[i];
		if (seen * 100 >= total * percent)
			break;
	}
	return UINT64_C(2) << i;
}

bool rt_dump_is(const struct rt_dump_field *field, const void *record)
{
	const struct rt_dump_text *text = rt_dump_value(field, record);
	const void *pointer;
	uint32_t count;

	switch (field->type) {
	case RT_DUMP_IS_MS:
		return rt_dump_number(field, record) != RT_DUMP_NONE;
	case RT_DUMP_IS_TEXT:
		return text->at[0] != '\0';
	case RT_DUMP_IS_HISTOGRAM:
		return fields_quantile(rt_dump_value(field, record), 50) != 0;
	case RT_DUMP_IS_LIST:
	case RT_DUMP_IS_ARRAY:
		rt_dump_items(field, record, &count);
		return count > 0;
	case RT_DUMP_IS_WORD:
	case RT_DUMP_IS_USER:
	case RT_DUMP_IS_HANDLE:
		memcpy(&pointer, text, sizeof(pointer));
		return pointer != NULL;
	default:
		return rt_dump_number(field, record) != 0 &&
		       rt_dump_number(field, record) != RT_DUMP_NONE;
	}
}

/* ---------------------------------------------------------- the memory --- */

void *rt_dump_add(struct rt_dump_all *dump, struct rt_dump_list *list,
		  size_t size)
{
	size_t count = list->count;
	char *at = list->at;

	/* the block is full where the count is a power of two, or 0 */
	if ((count & (count - 1)) == 0)
		at = realloc(at, (count > 0 ? 2 * count : 1) * size);
	if (at == NULL) {
		dump->is_short = true;
		return NULL;
	}
	list->at = at;
	list->count++;
	return memset(at + count * size, 0, size);
}

void rt_dump_free(struct rt_dump_all *dump)
{
	const struct rt_dump_object *rows = rt_dump_fields();
	const struct rt_dump_list *list;
	uint32_t i;

	for (i = 0; i < rows->count; i++) {
		list = rt_dump_value(&rows->fields[i], dump);
		if (rows->fields[i].type == RT_DUMP_IS_LIST)
			free(list->at);
	}
}

struct rt_dump_text rt_dump_text(const char *format, ...)
{
	struct rt_dump_text text;
	va_list args;

	va_start(args, format);
	vsnprintf(text.at, sizeof(text.at), format, args);
	va_end(args);
	return text;
}

/* -------------------------------------------------------------- output --- */

void rt_dump_put_part(struct rt_dump_out *out, const char *text, size_t len)
{
	const char *end = text + len;

	if (!out->is_quoted) {
		fwrite_unlocked(text, 1, len, out->file);
		return;
	}
	for (; text < end; text++) {
		if (*text == '"' || *text == '\\')
			putc_unlocked('\\', out->file);
		putc_unlocked(*text >= ' ' && *text <= '~' ? *text : '?',
			      out->file);
	}
}

void rt_dump_put(struct rt_dump_out *out, const char *text)
{
	rt_dump_put_part(out, text, strlen(text));
}

void rt_dump_put_number(struct rt_dump_out *out, int64_t number)
{
	uint64_t left = number < 0 ? -(uint64_t)number : (uint64_t)number;
	char text[24];
	char *end = text + sizeof(text);
	char *at = end;

	do
		*--at = (char)('0' + left % 10);
	while ((left /= 10) > 0);
	if (number < 0)
		*--at = '-';
	rt_dump_put_part(out, at, (size_t)(end - at));
}

void rt_dump_printf(struct rt_dump_out *out, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(out->file, format, args);
	va_end(args);
}

void rt_dump_print(struct rt_dump_out *out, const struct rt_dump_field *field,
		   const void *record)
{
	const void *value = rt_dump_value(field, record);

	switch (field->type) {
	case RT_DUMP_IS_WORD:
		rt_dump_put(out, *(const char *const *)value);
		break;
	case RT_DUMP_IS_TEXT:
		rt_dump_put(out, value);
		break;
	case RT_DUMP_IS_USER:
	case RT_DUMP_IS_HANDLE:
		rt_dump_printf(out, "%p", *(void *const *)value);
		break;
	case RT_DUMP_IS_HISTOGRAM:
		rt_dump_printf(
			out,
			"half below %" PRIu64 " ns, 99 %% below %" PRIu64 " ns",
			fields_quantile(value, 50), fields_quantile(value, 99));
		break;
	default:
		rt_dump_put_number(out, rt_dump_number(field, record));
	}
}

void rt_dump_quote(struct rt_dump_out *out, const struct rt_dump_field *field,
		   const void *record)
{
	rt_dump_put(out, "\"");
	out->is_quoted = true;
	rt_dump_print(out, field, record);
	out->is_quoted = false;
	rt_dump_put(out, "\"");
}
