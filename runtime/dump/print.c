/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * print.c -- prints a dump in three formats, by the rows of table.h. Each
 * object of the table becomes a function that returns the rows of the object.
 */

#include "dump/dump.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------- fields --- */

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

/* Returns the field's objects, and how many. */
static const char *fields_items(const struct rt_dump_field *field,
				const void *record, uint32_t *count)
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

/* Returns whether a field says anything: false of 0, NULL, RT_DUMP_NONE, an
 * empty text, list or histogram. A time of 0 says something. */
static bool fields_is(const struct rt_dump_field *field, const void *record)
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
		fields_items(field, record, &count);
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

/* ---------------------------------------------------------------- print --- */

/* where a dump is printed to */
struct rt_dump_out {
	FILE *file;
	bool is_quoted; /* in a string of JSON or Prometheus */
};

static void print_part(struct rt_dump_out *out, const char *text, size_t len)
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

/* Prints a text. In a string a quotation mark and a backslash get a backslash,
 * and a byte that is no printable ASCII becomes a question mark. */
static void print_text(struct rt_dump_out *out, const char *text)
{
	print_part(out, text, strlen(text));
}

static void print_number(struct rt_dump_out *out, int64_t number)
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
	print_part(out, at, (size_t)(end - at));
}

/* Prints numbers, and texts outside of strings: slower. */
__attribute__((format(printf, 2, 3))) static void
print_format(struct rt_dump_out *out, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(out->file, format, args);
	va_end(args);
}

/* Prints a number or a text as it is, and in quotation marks. */
static void print_value(struct rt_dump_out *out,
			const struct rt_dump_field *field, const void *record)
{
	const void *value = rt_dump_value(field, record);

	switch (field->type) {
	case RT_DUMP_IS_WORD:
		print_text(out, *(const char *const *)value);
		break;
	case RT_DUMP_IS_TEXT:
		print_text(out, value);
		break;
	case RT_DUMP_IS_USER:
	case RT_DUMP_IS_HANDLE:
		print_format(out, "%p", *(void *const *)value);
		break;
	case RT_DUMP_IS_HISTOGRAM:
		print_format(
			out,
			"half below %" PRIu64 " ns, 99 %% below %" PRIu64 " ns",
			fields_quantile(value, 50), fields_quantile(value, 99));
		break;
	default:
		print_number(out, rt_dump_number(field, record));
	}
}

static void print_quoted(struct rt_dump_out *out,
			 const struct rt_dump_field *field, const void *record)
{
	print_text(out, "\"");
	out->is_quoted = true;
	print_value(out, field, record);
	out->is_quoted = false;
	print_text(out, "\"");
}

/* ---------------------------------------------------------------- human --- */

/*
 * A dump for people, by the templates of table.h. A template is text, and in
 * braces the name of a field.
 *
 *   {name}         the value; of objects inside, the lines of each
 *   {name?yes|no}  "yes" if fields_is() is true of the field, else "no";
 *                  both are templates, and "|no" may lack
 *   {name.count}   how many objects a list has
 *   {name.s}       milliseconds as seconds with a tenth
 *   {name.of...}   a field of the object inside
 */

static void human_fill(struct rt_dump_out *out,
		       const struct rt_dump_phrase *phrase);

static void human_stats(struct rt_dump_out *out,
			const struct rt_dump_object *stats, const void *record)
{
	uint32_t i;

	print_text(out, "   ");
	for (i = 0; i < stats->count; i++) {
		print_text(out, " ");
		print_text(out, stats->fields[i].name);
		print_text(out, " ");
		print_value(out, &stats->fields[i], record);
	}
	print_text(out, "\n");
}

static void human_items(struct rt_dump_out *out,
			const struct rt_dump_field *field, const void *record)
{
	struct rt_dump_phrase phrase = {field->of()->human, field->of(), NULL};
	uint32_t count;
	const char *item = fields_items(field, record, &count);

	for (; count > 0; count--, item += phrase.object->size) {
		phrase.record = item;
		human_fill(out, &phrase);
	}
}

static void human_value(struct rt_dump_out *out,
			const struct rt_dump_field *field, const void *record)
{
	if (field->type == RT_DUMP_IS_HEX)
		print_format(out, "0x%" PRIx64, rt_dump_number(field, record));
	else if (field->type == RT_DUMP_IS_PHRASE)
		human_fill(out, rt_dump_value(field, record));
	else if (field->form == RT_DUMP_FLAT)
		human_stats(out, field->of(), rt_dump_value(field, record));
	else if (field->of != NULL)
		human_items(out, field, record);
	else
		print_value(out, field, record);
}

/* Prints what the suffix makes of a field. */
static void human_suffix(struct rt_dump_out *out, const char *suffix,
			 const struct rt_dump_field *field, const void *record)
{
	uint32_t count;
	int64_t ms;

	if (*suffix == 'c') {
		fields_items(field, record, &count);
		print_number(out, count);
	} else {
		ms = rt_dump_number(field, record);
		print_format(out, "%" PRId64 ".%" PRId64, ms / 1000,
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
			print_part(out, at, len);
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
		is = fields_is(field, record);
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

/* Prints a template. */
static void human_fill(struct rt_dump_out *out,
		       const struct rt_dump_phrase *phrase)
{
	human_text(out, phrase, phrase->text);
}

static void human_print(const struct rt_dump_all *dump, struct rt_dump_out *out)
{
	const struct rt_dump_phrase phrase = {rt_dump_fields()->human,
					      rt_dump_fields(), dump};

	human_fill(out, &phrase);
}

/* ----------------------------------------------------------------- json --- */

/* A dump as a JSON object: the rows of table.h that JSON has, in the order of
 * the table. */

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
		print_text(out, before);
		print_text(out, has_lines && field->of ? "\n\"" : "\"");
		print_text(out, field->name);
		print_text(out, "\":");
		json_value(out, field, record);
		before = ",";
	}
}

static void json_object(struct rt_dump_out *out,
			const struct rt_dump_object *object, const void *record)
{
	print_text(out, "{");
	json_members(out, object, record, "");
	print_text(out, "}");
}

/* Prints objects as an array or as a map. */
static void json_items(struct rt_dump_out *out,
		       const struct rt_dump_field *field, const void *record)
{
	const struct rt_dump_object *object = field->of();
	const char *line = field->form == RT_DUMP_SHOWN ? "\n" : "";
	bool is_map = field->form == RT_DUMP_MAP;
	uint32_t count;
	const char *item = fields_items(field, record, &count);
	uint32_t i;

	print_text(out, is_map ? "{" : "[");
	for (i = 0; i < count; i++, item += object->size) {
		print_text(out, i ? "," : "");
		print_text(out, line);
		if (is_map) {
			print_quoted(out, &object->fields[0], item);
			print_text(out, ":");
			json_value(out, &object->fields[1], item);
		} else {
			json_object(out, object, item);
		}
	}
	print_text(out, is_map ? "}" : "]");
}

static void json_phrase(struct rt_dump_out *out,
			const struct rt_dump_phrase *phrase)
{
	print_text(out, "\"");
	out->is_quoted = true;
	human_fill(out, phrase);
	out->is_quoted = false;
	print_text(out, "\"");
}

static void json_histogram(struct rt_dump_out *out,
			   const struct rpma_rt_histogram *histogram)
{
	int i;

	print_text(out, "{\"sum_ns\":");
	print_number(out, (int64_t)histogram->sum_ns);
	print_text(out, ",\"buckets\":[");
	for (i = 0; i < RPMA_RT_HISTOGRAM; i++) {
		print_text(out, i ? "," : "");
		print_number(out, (int64_t)histogram->buckets[i]);
	}
	print_text(out, "]}");
}

static void json_value(struct rt_dump_out *out,
		       const struct rt_dump_field *field, const void *record)
{
	const void *value = rt_dump_value(field, record);
	bool is = fields_is(field, record);

	switch (field->type) {
	case RT_DUMP_IS_BOOL:
		print_text(out, is ? "true" : "false");
		break;
	case RT_DUMP_IS_USER:
		print_format(out, "%" PRIuPTR,
			     (uintptr_t)*(void *const *)value);
		break;
	case RT_DUMP_IS_WORD:
		if (!is) {
			print_text(out, "null");
			break;
		}
		/* fall through */
	case RT_DUMP_IS_HANDLE:
	case RT_DUMP_IS_TEXT:
		print_quoted(out, field, record);
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
			print_text(out, "null");
		else
			print_value(out, field, record);
	}
}

static void json_print(const struct rt_dump_all *dump, struct rt_dump_out *out)
{
	json_object(out, rt_dump_fields(), dump);
	print_text(out, "\n");
}

/* ----------------------------------------------------------- prometheus --- */

/* A dump in the text exposition of Prometheus, where all samples of one metric
 * stand together: the rows of table.h that have a metric. */

/* the metrics in order, by field: "LIST.FIELD", or a field of the runtime; a
 * space behind each */
static const char prometheus_order[] =
	"pollers.stats pollers.unacknowledged pollers.asleep queues.stats "
	"queues.name queues.dispatch queues.wakeup requests_refused cm_errno "
	"states.count sums.outstanding oldest_send named.outstanding "
	"queues.waiting_ms srqs.out pools.out pools.times_low shards.waiting "
	"shards.asleep listeners.refused wrong_counts.count ";

/* an object that has a sample */
struct prometheus_item {
	const struct rt_dump_object *object;
	const char *record;
};

static const char *prometheus_type(const struct rt_dump_field *field)
{
	const char *total = strstr(field->metric, "_total");

	if (field->type == RT_DUMP_IS_HISTOGRAM)
		return "histogram";
	return total != NULL && total[6] == '\0' ? "counter" : "gauge";
}

static void prometheus_label(struct rt_dump_out *out, const char *before,
			     const struct rt_dump_field *label,
			     const void *record)
{
	print_format(out, "%s%s=", before, label->name);
	print_quoted(out, label, record);
}

/* Prints the name of a sample and the labels, without the closing brace. */
static void prometheus_name(struct rt_dump_out *out, const char *metric,
			    const char *suffix,
			    const struct prometheus_item *item)
{
	const char *labels = item->object->labels;
	const char *before = "{";
	size_t len;

	print_format(out, "rpma_rt_%s%s", metric, suffix);
	while ((len = strcspn(labels, " ")) > 0) {
		prometheus_label(out, before,
				 rt_dump_find(item->object, labels, len),
				 item->record);
		labels += len + (labels[len] != '\0');
		before = ",";
	}
}

/* Prints seconds by hand: printf() would ask the locale for the point. */
static void prometheus_seconds(struct rt_dump_out *out, uint64_t ns)
{
	print_format(out, "%" PRIu64 ".%09" PRIu64, ns / 1000000000,
		     ns % 1000000000);
}

static void prometheus_histogram(struct rt_dump_out *out, const char *metric,
				 const struct rpma_rt_histogram *histogram,
				 const struct prometheus_item *item)
{
	uint64_t seen = 0;
	int i;

	for (i = 0; i < RPMA_RT_HISTOGRAM; i++) {
		seen += histogram->buckets[i];
		prometheus_name(out, metric, "_bucket", item);
		print_text(out, ",le=\"");
		if (i + 1 < RPMA_RT_HISTOGRAM)
			prometheus_seconds(out, UINT64_C(2) << i);
		else
			print_text(out, "+Inf");
		print_format(out, "\"} %" PRIu64 "\n", seen);
	}
	prometheus_name(out, metric, "_sum", item);
	print_text(out, "} ");
	prometheus_seconds(out, histogram->sum_ns);
	print_text(out, "\n");
	prometheus_name(out, metric, "_count", item);
	print_format(out, "} %" PRIu64 "\n", seen);
}

/* Prints a sample. A text is a label of a sample that is always 1. */
static void prometheus_sample(struct rt_dump_out *out,
			      const struct rt_dump_field *field,
			      const void *record,
			      const struct prometheus_item *item)
{
	bool is_text = field->type == RT_DUMP_IS_TEXT;
	bool is = fields_is(field, record);

	prometheus_name(out, field->metric, "", item);
	if (is_text)
		prometheus_label(out, ",", field, record);
	print_text(out, item->object->labels[0] != '\0' ? "} " : " ");
	if (is_text)
		print_text(out, "1");
	else if (field->type != RT_DUMP_IS_MS)
		print_value(out, field, record);
	else
		prometheus_seconds(out, is ? rt_dump_number(field, record) *
							UINT64_C(1000000)
					   : 0);
	print_text(out, "\n");
}

/* Prints a metric of objects; inside: where the field's struct is in each. */
static void prometheus_metric(struct rt_dump_out *out,
			      const struct rt_dump_field *field, size_t inside,
			      struct prometheus_item item, uint32_t count)
{
	print_format(out, "# HELP rpma_rt_%s %s\n# TYPE rpma_rt_%s %s\n",
		     field->metric, field->help, field->metric,
		     prometheus_type(field));
	for (; count > 0; count--, item.record += item.object->size) {
		if (field->type == RT_DUMP_IS_HISTOGRAM)
			prometheus_histogram(out, field->metric,
					     rt_dump_value(field, item.record),
					     &item);
		else
			prometheus_sample(out, field, item.record + inside,
					  &item);
	}
}

/* Prints the metrics of the first field in the order. */
static void prometheus_field(struct rt_dump_out *out, const char *order,
			     const void *dump)
{
	struct prometheus_item item = {rt_dump_fields(), dump};
	size_t len = strcspn(order, ". ");
	const struct rt_dump_field *field =
		rt_dump_find(item.object, order, len);
	uint32_t count = 1;
	uint32_t i;

	if (order[len] == '.') {
		order += len + 1;
		item.record = fields_items(field, dump, &count);
		item.object = field->of();
		field = rt_dump_find(item.object, order, strcspn(order, " "));
	}
	if (field->form != RT_DUMP_FLAT) {
		prometheus_metric(out, field, 0, item, count);
		return;
	}
	for (i = 0; i < field->of()->count; i++)
		prometheus_metric(out, &field->of()->fields[i], field->at, item,
				  count);
}

static void prometheus_print(const struct rt_dump_all *dump,
			     struct rt_dump_out *out)
{
	const char *order = prometheus_order;

	for (; order[0] != '\0'; order += strcspn(order, " ") + 1)
		prometheus_field(out, order, dump);
}

/* -------------------------------------------------------- all formats --- */

int rt_dump_write(const struct rt_dump_all *dump,
		  enum rpma_rt_dump_format format, char **text, size_t *len)
{
	struct rt_dump_out out = {.file = open_memstream(text, len)};
	bool has_failed;

	if (out.file == NULL)
		return RPMA_E_NOMEM;
	if (format == RPMA_RT_DUMP_HUMAN)
		human_print(dump, &out);
	else if (format == RPMA_RT_DUMP_JSON)
		json_print(dump, &out);
	else
		prometheus_print(dump, &out);
	has_failed = ferror(out.file) != 0;
	if (fclose(out.file) != 0 || has_failed) {
		free(*text);
		return RPMA_E_NOMEM;
	}
	return 0;
}
