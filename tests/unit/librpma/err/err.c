/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Unit tests of errors as text. */

#include "mocks.h"

#include <errno.h>
#include <string.h>

#include "err.h"

MOCK_TEST(err_2str__every_error_HAS_ITS_TEXT)
{
#define CHECK(name, text) assert_string_equal(rpma_err_2str(name), text);
	RPMA__ERRORS(CHECK)
#undef CHECK
	assert_string_equal(rpma_err_2str(0), "Success");
}

MOCK_TEST(err_2str__numbers_ARE_THOSE_OF_1_3)
{
	assert_int_equal(RPMA_E_UNKNOWN, -100000);
	assert_int_equal(RPMA_E_NOSUPP, -100001);
	assert_int_equal(RPMA_E_PROVIDER, -100002);
	assert_int_equal(RPMA_E_NOMEM, -100003);
	assert_int_equal(RPMA_E_INVAL, -100004);
	assert_int_equal(RPMA_E_NO_COMPLETION, -100005);
	assert_int_equal(RPMA_E_NO_EVENT, -100006);
	assert_int_equal(RPMA_E_AGAIN, -100007);
	assert_int_equal(RPMA_E_SHARED_CHANNEL, -100008);
	assert_int_equal(RPMA_E_NOT_SHARED_CHNL, -100009);
	/* and what came with 1.4 */
	assert_int_equal(RPMA_E_CLAIMED, -100010);
	assert_int_equal(RPMA_E_FORKED, -100011);
}

MOCK_TEST(err_2str__anything_else_IS_UNKNOWN)
{
	assert_string_equal(rpma_err_2str(1), "Unknown error");
	assert_string_equal(rpma_err_2str(-100012), "Unknown error");
	assert_string_equal(rpma_err_2str(-99999), "Unknown error");
}

MOCK_TEST(errno_2str__number_or_errno)
{
	errno = EINVAL;
	assert_string_equal(rpma__errno_2str(ENOMEM), strerror(ENOMEM));
	assert_string_equal(rpma__errno_2str(-1), strerror(EINVAL));
	assert_string_equal(rpma__errno_2str(99999), "unknown errno");
	assert_string_equal(rpma__errno_2str(-ENOMEM), strerror(ENOMEM));
	assert_int_equal(errno, EINVAL);
}

MOCK_TEST(cm_advice__NAMES_WHAT_IS_MISSING)
{
	errno = ENODEV;
	assert_non_null(strstr(rpma__cm_advice(), "/dev/infiniband/rdma_cm"));
	assert_non_null(strstr(rpma__cm_advice(), "rdma_ucm"));
	assert_non_null(strstr(rpma__cm_advice(), "librpma_loopback.so"));
	errno = EACCES;
	assert_non_null(strstr(rpma__cm_advice(), "/dev/infiniband/rdma_cm"));
	errno = EINVAL;
	assert_string_equal(rpma__cm_advice(), "");
	assert_int_equal(errno, EINVAL);
}

MOCK_TEST(err_first__KEEPS_THE_FIRST)
{
	int ret = 0;

	rpma__err_first(&ret, 0);
	assert_int_equal(ret, 0);
	rpma__err_first(&ret, RPMA_E_PROVIDER);
	rpma__err_first(&ret, RPMA_E_INVAL);
	rpma__err_first(&ret, 0);
	assert_int_equal(ret, RPMA_E_PROVIDER);
}

TEST_MAIN()
