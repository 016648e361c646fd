/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Unit tests of copies of private data. */

#include "mocks.h"

#include <errno.h>
#include <string.h>

#include "private_data.h"

MOCK_TEST(set__COPIES_ONCE)
{
	struct rpma__private_data data = {0};
	struct rpma_conn_private_data got;
	char bytes[255];

	memset(bytes, 'a', sizeof(bytes));
	ok(rpma__private_data_set(&data, bytes, sizeof(bytes)));
	memset(bytes, 'b', sizeof(bytes));
	ok(rpma__private_data_set(&data, bytes, 1));
	rpma__private_data_get(&data, &got);
	assert_int_equal(got.len, 255);
	assert_int_equal(((char *)got.ptr)[0], 'a');
	assert_int_equal(((char *)got.ptr)[254], 'a');
	rpma__private_data_fini(&data);
}

MOCK_TEST(set__nothing_LEAVES_NOTHING)
{
	struct rpma_conn_private_data got = {(void *)7, 7};
	struct rpma__private_data data = {0};

	ok(rpma__private_data_set(&data, NULL, 5));
	ok(rpma__private_data_set(&data, "x", 0));
	rpma__private_data_get(&data, &got);
	assert_null(got.ptr);
	assert_int_equal(got.len, 0);
}

MOCK_TEST(set__no_memory_NOMEM)
{
	struct rpma_conn_private_data got = {(void *)7, 7};
	struct rpma__private_data data = {0};

	mocks_listen();
	mock_fail("malloc", 1, ENOMEM);
	assert_int_equal(rpma__private_data_set(&data, "x", 1), RPMA_E_NOMEM);
	expect_said("no memory for private data");
	rpma__private_data_get(&data, &got);
	assert_null(got.ptr);
	assert_int_equal(got.len, 0);
}

MOCK_TEST(is_valid__given_HAS_BYTES)
{
	const struct rpma_conn_private_data good = {"x", 1};
	const struct rpma_conn_private_data no_len = {"x", 0};
	const struct rpma_conn_private_data no_ptr = {NULL, 1};

	assert_true(rpma__private_data_is_valid(NULL));
	assert_true(rpma__private_data_is_valid(&good));
	assert_false(rpma__private_data_is_valid(&no_len));
	assert_false(rpma__private_data_is_valid(&no_ptr));
}

TEST_MAIN()
