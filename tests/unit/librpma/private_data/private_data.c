/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Unit tests of copies of private data. */

#include "mocks.h"

#include <errno.h>
#include <string.h>

#include "private_data.h"

MOCK_TEST(init__COPIES)
{
	struct rpma_conn_private_data data;
	char bytes[255];

	memset(bytes, 'a', sizeof(bytes));
	ok(rpma__private_data_init(&data, bytes, sizeof(bytes)));
	memset(bytes, 'b', sizeof(bytes));
	assert_int_equal(data.len, 255);
	assert_int_equal(((char *)data.ptr)[254], 'a');
	rpma__private_data_fini(&data);
	assert_null(data.ptr);
	assert_int_equal(data.len, 0);
}

MOCK_TEST(init__nothing_LEAVES_NOTHING)
{
	struct rpma_conn_private_data data = {(void *)7, 7};

	ok(rpma__private_data_init(&data, NULL, 5));
	assert_null(data.ptr);
	assert_int_equal(data.len, 0);
	ok(rpma__private_data_init(&data, "x", 0));
	assert_null(data.ptr);
	rpma__private_data_fini(&data);
}

MOCK_TEST(init__no_memory_NOMEM)
{
	struct rpma_conn_private_data data = {(void *)7, 7};

	mocks_listen();
	mock_fail("malloc", 1, ENOMEM);
	assert_int_equal(rpma__private_data_init(&data, "x", 1), RPMA_E_NOMEM);
	expect_said("no memory for private data");
	assert_null(data.ptr);
	assert_int_equal(data.len, 0);
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
