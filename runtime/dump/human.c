/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * human.c -- a dump for people, by the templates of table.h. A template is
 * text, and in braces the name of a field. Pure functions.
 *
 *   {name}         the value; of objects inside, the lines of each
 *   {name?yes|no}  "yes" if rt_dump_is() is true of the field, else "no";
 *                  both are templates, and "|no" may lack
 *   {name.count}   how many objects a list has
 *   {name.s}       milliseconds as seconds with a tenth
 *   {name.of...}   a field of the object inside
 */

#include "dump/dump.h"

#include <inttypes.h>
#include <string.h>

static void human_stats(struct rt_dump_out *out,
			const struct rt_dump_object *stats, const void *record)
{
	uint32_t i;

	rt_dump_put(out, "   ");
	for (i = 0; i < stats->count; i++) {
		rt_dump_put(out, " ");
		rt_dump_put(out, stats->fields[i].name);
		rt_dump_put(out, " ");
		rt_dump_print(out, &stats->fields[i], record);
	}
	rt_dump_put(out, "\n");
}

static void human_items(struct rt_dump_out *out,
			const struct rt_dump_field *field, const void *record)
{
	struct rt_dump_phrase phrase = {field->of()->human, field->of(), NULL};
	uint32_t count;
	const char *item = rt_dump_items(field, record, &count);

	for (; count > 0; count--, item += phrase.object->size) {
		phrase.record = item;
		rt_dump_human_fill(out, &phrase);
	}
}

static void human_value(struct rt_dump_out *out,
			const struct rt_dump_field *field, const void *record)
{
	if (field->type == RT_DUMP_IS_HEX)
		rt_dump_printf(out, "0x%" PRIx64,
			       rt_dump_number(field, record));
	else if (field->type == RT_DUMP_IS_PHRASE)
		rt_dump_human_fill(out, rt_dump_value(field, record));
	else if (field->form == RT_DUMP_FLAT)
		human_stats(out, field->of(), rt_dump_value(field, record));
	else if (field->of != NULL)
		human_items(out, field, record);
	else
		rt_dump_print(out, field, record);
}

/* Prints what the suffix makes of a field. */
static void human_suffix(struct rt_dump_out *out, const char *suffix,
			 const struct rt_dump_field *field, const void *record)
{
	uint32_t count;
	int64_t ms;

	if (*suffix == 'c') {
		rt_dump_items(field, record, &count);
		rt_dump_put_number(out, count);
	} else {
		ms = rt_dump_number(field, record);
		rt_dump_printf(out, "%" PRId64 ".%" PRId64, ms / 1000,
			       ms % 1000 / 100);
	}
}

static const char *human_braces(struct rt_dump_out *out,
				const struct rt_dump_phrase *phrase,
				const char *at);

/* Prints a template from there to the end, "|" or "}", and returns the end.
 * out NULL: prints nothing. */
static const char *human_text(struct rt_dump_out *out,
			      const struct rt_dump_phrase *phrase,
			      const char *at)
{
	size_t len;

	while (*at != '\0' && *at != '|' && *at != '}') {
		if (*at == '{') {
			at = human_braces(out, phrase, at + 1);
			continue;
		}
		len = strcspn(at, "{|}");
		if (out != NULL)
			rt_dump_put_part(out, at, len);
		at += len;
	}
	return at;
}

/* Prints what is in braces, and returns what is behind. */
static const char *human_braces(struct rt_dump_out *out,
				const struct rt_dump_phrase *phrase,
				const char *at)
{
	const void *record = phrase->record;
	size_t len = strcspn(at, "?.}");
	const struct rt_dump_field *field =
		rt_dump_find(phrase->object, at, len);
	bool is;

	at += len;
	if (field->type == RT_DUMP_IS_PART && *at == '.') {
		record = rt_dump_value(field, record);
		len = strcspn(++at, "?.}");
		field = rt_dump_find(field->of(), at, len);
		at += len;
	}
	if (*at == '?') {
		is = rt_dump_is(field, record);
		at = human_text(is ? out : NULL, phrase, at + 1);
		if (*at == '|')
			at = human_text(is ? NULL : out, phrase, at + 1);
		return at + 1;
	}
	if (out != NULL && *at == '.')
		human_suffix(out, at + 1, field, record);
	else if (out != NULL)
		human_value(out, field, record);
	return at + strcspn(at, "}") + 1;
}

void rt_dump_human_fill(struct rt_dump_out *out,
			const struct rt_dump_phrase *phrase)
{
	human_text(out, phrase, phrase->text);
}

void rt_dump_human(const struct rt_dump_all *dump, struct rt_dump_out *out)
{
	const struct rt_dump_phrase phrase = {rt_dump_fields()->human,
					      rt_dump_fields(), dump};

	rt_dump_human_fill(out, &phrase);
}
