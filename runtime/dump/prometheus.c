/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * prometheus.c -- a dump in the text exposition of Prometheus, where all
 * samples of one metric stand together: the rows of table.h that have a metric.
 * Pure functions.
 */

#include "dump/dump.h"

#include <inttypes.h>
#include <string.h>

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
	rt_dump_printf(out, "%s%s=", before, label->name);
	rt_dump_quote(out, label, record);
}

/* Prints the name of a sample and the labels, without the closing brace. */
static void prometheus_name(struct rt_dump_out *out, const char *metric,
			    const char *suffix,
			    const struct prometheus_item *item)
{
	const char *labels = item->object->labels;
	const char *before = "{";
	size_t len;

	rt_dump_printf(out, "rpma_rt_%s%s", metric, suffix);
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
	rt_dump_printf(out, "%" PRIu64 ".%09" PRIu64, ns / 1000000000,
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
		rt_dump_put(out, ",le=\"");
		if (i + 1 < RPMA_RT_HISTOGRAM)
			prometheus_seconds(out, UINT64_C(2) << i);
		else
			rt_dump_put(out, "+Inf");
		rt_dump_printf(out, "\"} %" PRIu64 "\n", seen);
	}
	prometheus_name(out, metric, "_sum", item);
	rt_dump_put(out, "} ");
	prometheus_seconds(out, histogram->sum_ns);
	rt_dump_put(out, "\n");
	prometheus_name(out, metric, "_count", item);
	rt_dump_printf(out, "} %" PRIu64 "\n", seen);
}

/* Prints a sample. A text is a label of a sample that is always 1. */
static void prometheus_sample(struct rt_dump_out *out,
			      const struct rt_dump_field *field,
			      const void *record,
			      const struct prometheus_item *item)
{
	bool is_text = field->type == RT_DUMP_IS_TEXT;
	bool is = rt_dump_is(field, record);

	prometheus_name(out, field->metric, "", item);
	if (is_text)
		prometheus_label(out, ",", field, record);
	rt_dump_put(out, item->object->labels[0] != '\0' ? "} " : " ");
	if (is_text)
		rt_dump_put(out, "1");
	else if (field->type != RT_DUMP_IS_MS)
		rt_dump_print(out, field, record);
	else
		prometheus_seconds(out, is ? rt_dump_number(field, record) *
							UINT64_C(1000000)
					   : 0);
	rt_dump_put(out, "\n");
}

/* Prints a metric of objects; inside: where the field's struct is in each. */
static void prometheus_metric(struct rt_dump_out *out,
			      const struct rt_dump_field *field, size_t inside,
			      struct prometheus_item item, uint32_t count)
{
	rt_dump_printf(out, "# HELP rpma_rt_%s %s\n# TYPE rpma_rt_%s %s\n",
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
		item.record = rt_dump_items(field, dump, &count);
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

void rt_dump_prometheus(const struct rt_dump_all *dump, struct rt_dump_out *out)
{
	const char *order = prometheus_order;

	for (; order[0] != '\0'; order += strcspn(order, " ") + 1)
		prometheus_field(out, order, dump);
}
