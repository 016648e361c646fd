/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Names of connections: which may be given and when, and where they are shown.
 */

#include <stdio.h>
#include <string.h>

#include "rt_fake.h"

#define LONGEST "1234567890123456789012345678901"

static void expect_in_dump(struct fake *f, enum rpma_rt_dump_format format,
			   const char *words, bool there)
{
	static char text[1 << 16];
	FILE *file = tmpfile();
	size_t len;

	assert_non_null(file);
	ok(rpma_rt_dump(f->rt, fileno(file), format));
	rewind(file);
	len = fread(text, 1, sizeof(text) - 1, file);
	text[len] = '\0';
	fclose(file);
	if ((strstr(text, words) != NULL) != there)
		fail_msg("\"%s\" is%s in\n%s", words, there ? " not" : "",
			 text);
}

FAKE_TEST(set_name__invalid_INVAL)
{
	struct rpma_rt_conn *conn = fake_request(f);
	char before[RPMA_RT_NAME_MAX + 1];

	strcpy(before, rpma_rt_conn_get_name(conn));
	assert_int_equal(rpma_rt_conn_set_name(NULL, "x"), RPMA_E_INVAL);
	assert_int_equal(rpma_rt_conn_set_name(conn, NULL), RPMA_E_INVAL);
	assert_int_equal(fake_logged(), 2);
	assert_int_equal(rpma_rt_conn_set_name(conn, ""), RPMA_E_INVAL);
	assert_int_equal(rpma_rt_conn_set_name(conn, LONGEST "2"),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_rt_conn_set_name(conn, "a\nb"), RPMA_E_INVAL);
	assert_int_equal(rpma_rt_conn_set_name(conn, "\xc3\xa4"), RPMA_E_INVAL);
	assert_int_equal(fake_logged(), 4);
	assert_string_equal(rpma_rt_conn_get_name(conn), before);
	assert_null(rpma_rt_conn_get_name(NULL));
	fake_bury(f, &conn);
}

FAKE_TEST(get_name__none_given_a_number_each)
{
	struct rpma_rt_conn *conn = fake_request(f);
	struct rpma_rt_conn *other = fake_request(f);
	unsigned first;
	unsigned second;

	assert_int_equal(sscanf(rpma_rt_conn_get_name(conn), "conn %u", &first),
			 1);
	assert_int_equal(
		sscanf(rpma_rt_conn_get_name(other), "conn %u", &second), 1);
	assert_int_equal(second, first + 1);
	fake_bury(f, &other);
	fake_bury(f, &conn);
}

FAKE_TEST(set_name__copied_and_kept_after_the_end)
{
	struct rpma_rt_conn *conn = fake_request(f);
	struct rpma_rt_conn *held = conn;
	char name[] = LONGEST;

	ok(rpma_rt_conn_set_name(conn, name));
	name[0] = 'x';
	assert_string_equal(rpma_rt_conn_get_name(conn), LONGEST);
	ok(rpma_rt_conn_set_name(conn, "shorter"));
	ok(rpma_rt_conn_ref(held));
	fake_bury(f, &conn);
	assert_string_equal(rpma_rt_conn_get_name(held), "shorter");
	ok(rpma_rt_conn_unref(&held));
}

/* In each form; what JSON and Prometheus end a text with is escaped. */
FAKE_TEST(dump__shows_names)
{
	struct rpma_rt_conn *conn = fake_request(f);

	ok(rpma_rt_conn_set_name(conn, "a\"b\\c"));
	expect_in_dump(f, RPMA_RT_DUMP_HUMAN, " \"a\"b\\c\": slot", true);
	expect_in_dump(f, RPMA_RT_DUMP_JSON, "{\"name\":\"a\\\"b\\\\c\",",
		       true);
	expect_in_dump(f, RPMA_RT_DUMP_PROMETHEUS, ",name=\"a\\\"b\\\\c\",",
		       true);
	fake_bury(f, &conn);
}

/* A series for each connection would be more than a server keeps. */
FAKE_TEST(dump__prometheus_only_names_that_were_given)
{
	struct rpma_rt_conn *conn = fake_request(f);

	expect_in_dump(f, RPMA_RT_DUMP_HUMAN, " \"conn ", true);
	expect_in_dump(f, RPMA_RT_DUMP_JSON, "{\"name\":\"conn ", true);
	expect_in_dump(f, RPMA_RT_DUMP_PROMETHEUS, "\"conn ", false);
	fake_bury(f, &conn);
}

TEST_MAIN()
