/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * dump.h -- a snapshot of a runtime: taken under the directory's lock
 * (take.c), judged (wrong.c) and printed (print.c) after the lock is released;
 * table.h has the fields. doc/protocols/directory.md.
 */

#ifndef RT_DUMP_DUMP_H
#define RT_DUMP_DUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpma_rt.h"
#include "conn/conn.h"

#define RT_DUMP_WRS    16 /* outstanding work requests shown of each side */
#define RT_DUMP_HOLDS  64 /* holders of queues that are noted */
#define RT_DUMP_KINDS  18 /* kinds of findings */
#define RT_DUMP_STATES (RT_CONN_DELETING + 1)

#define RT_DUMP_NONE INT64_MIN /* no number; in JSON null */

/* ------------------------------------------------------ the snapshot --- */

struct rt_dump_text {
	char at[64];
};

struct rt_dump_note {
	char at[320];
};

/* objects in a block of their own */
struct rt_dump_list {
	void *at;
	uint32_t count;
};

/* a template, as print.c describes, and the object that has the fields */
struct rt_dump_phrase {
	const char *text;
	const struct rt_dump_object *object;
	const void *record;
};

/* the types of fields */
#define RT_DUMP_BOOL	  int64_t
#define RT_DUMP_NUMBER	  int64_t
#define RT_DUMP_HEX	  int64_t /* for people in hex */
#define RT_DUMP_MS	  int64_t /* milliseconds; for Prometheus seconds */
#define RT_DUMP_USER	  const void * /* a pointer, in JSON a number */
#define RT_DUMP_HANDLE	  const void * /* a pointer, in JSON a string */
#define RT_DUMP_WORD	  const char * /* a constant; NULL: in JSON null */
#define RT_DUMP_TEXT	  struct rt_dump_text
#define RT_DUMP_NOTE	  struct rt_dump_note
#define RT_DUMP_HISTOGRAM struct rpma_rt_histogram
#define RT_DUMP_PHRASE	  struct rt_dump_phrase

#define OBJECT(object, source)		      struct rt_dump_##object {
#define JSON(type, name, ...)		      RT_DUMP_##type name;
#define KEPT(type, name, ...)		      RT_DUMP_##type name;
#define METRIC(form, type, name, metric, ...) RT_DUMP_##type name;
#define PART(form, object, name)	      struct rt_dump_##object name;
#define LIST(form, object, name)	      struct rt_dump_list name;
#define ARRAY(form, object, name, max)     \
	struct rt_dump_##object name[max]; \
	uint32_t name##_count;
/* clang-format off */
#define END(object, subject, labels, human) };
/* clang-format on */
#include "dump/table.h"

extern const char *const rt_dump_states[RT_DUMP_STATES];

/* Runs a loop over the objects of a list. */
#define RT_DUMP_FOR(record, list)                                            \
	for (uint32_t left_ = ((record) = (list)->at, (list)->count); left_; \
	     left_--, (record)++)

/* Appends a zeroed object of that size to a list and returns the object. NULL:
 * there is no memory, and dump->is_short is set. */
void *rt_dump_add(struct rt_dump_all *dump, struct rt_dump_list *list,
		  size_t size);
__attribute__((format(printf, 1, 2))) struct rt_dump_text
rt_dump_text(const char *format, ...);

/*
 * Fills dump, which is zeroed; the caller frees the contents in any case.
 * ERRORS: RPMA_RT_E_BUSY (the directory's lock was not free in a second),
 * RPMA_E_NOMEM
 */
int rt_dump_take(struct rpma_rt *rt, struct rt_dump_all *dump);
void rt_dump_free(struct rt_dump_all *dump);
/* Lists what looks wrong; without memory for a finding sets dump->is_short. */
void rt_dump_wrong_judge(struct rt_dump_all *dump);

/* --------------------------------------------------------- the formats --- */

enum rt_dump_type {
	RT_DUMP_IS_BOOL,
	RT_DUMP_IS_NUMBER,
	RT_DUMP_IS_HEX,
	RT_DUMP_IS_MS,
	RT_DUMP_IS_USER,
	RT_DUMP_IS_HANDLE,
	RT_DUMP_IS_WORD,
	RT_DUMP_IS_TEXT,
	RT_DUMP_IS_NOTE = RT_DUMP_IS_TEXT,
	RT_DUMP_IS_HISTOGRAM,
	RT_DUMP_IS_PHRASE,
	RT_DUMP_IS_PART,
	RT_DUMP_IS_LIST,
	RT_DUMP_IS_ARRAY
};

/* how a field stands in JSON */
enum rt_dump_form {
	RT_DUMP_KEPT, /* not at all */
	RT_DUMP_SHOWN,
	RT_DUMP_FLAT,	/* the fields of a PART, without braces */
	RT_DUMP_INLINE, /* an ARRAY, without line ends */
	RT_DUMP_MAP /* an ARRAY as object: each first field names the next */
};

/* a row of table.h */
struct rt_dump_field {
	const char *name;
	const char *metric; /* NULL: Prometheus does not have the field */
	const char *help;
	const struct rt_dump_object *(*of)(void); /* of the objects inside */
	size_t at;	 /* of the field in the struct */
	size_t count_at; /* of the number of objects of an ARRAY */
	enum rt_dump_type type;
	enum rt_dump_form form;
};

struct rt_dump_object {
	const char *subject; /* the strings of END, see table.h */
	const char *labels;
	const char *human;
	const struct rt_dump_field *fields;
	uint32_t count;
	size_t size; /* of the struct */
};

/* Returns the rows of a runtime, which lead to all others. */
const struct rt_dump_object *rt_dump_fields(void);
/* Returns the row with a name of len bytes, or NULL. */
const struct rt_dump_field *rt_dump_find(const struct rt_dump_object *object,
					 const char *name, size_t len);

static inline const void *rt_dump_value(const struct rt_dump_field *field,
					const void *record)
{
	return (const char *)record + field->at;
}

static inline int64_t rt_dump_number(const struct rt_dump_field *field,
				     const void *record)
{
	return *(const int64_t *)rt_dump_value(field, record);
}

/* Prints the dump into new memory, which the caller frees. ERRORS:
 * RPMA_E_NOMEM */
int rt_dump_write(const struct rt_dump_all *dump,
		  enum rpma_rt_dump_format format, char **text, size_t *len);

#endif /* RT_DUMP_DUMP_H */
