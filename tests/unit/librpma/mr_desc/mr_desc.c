/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Unit tests of the descriptor of a region, byte for byte. */

#include "world.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "mr.h"
#include "mr_desc.h"

/* address, size, rkey, usage; and what must not be read */
static const uint8_t bytes[] = {
	0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, 0x18, 0x17, 0x16,
	0x15, 0x14, 0x13, 0x12, 0x11, 0x24, 0x23, 0x22, 0x21, 0xb1, 0xee,
};

static int decode(void)
{
	struct rpma_mr_remote *mr = NULL;
	int ret = rpma_mr_remote_from_descriptor(bytes, sizeof(bytes), &mr);

	assert_int_equal(mr != NULL, ret == 0);
	ok(rpma_mr_remote_delete(&mr));
	assert_null(mr);
	return ret;
}

MOCK_TEST(encode__IS_21_BYTES)
{
	struct ibv_mr ibv_mr = {
		.length = 0x1112131415161718,
		.rkey = 0x21222324,
	};
	struct rpma_mr_local mr = {
		.ibv_mr = &ibv_mr,
		.addr = 0x0102030405060708,
		.usage = 0xb1,
	};
	uint8_t desc[22];
	size_t size = 0;

	memset(desc, 0xee, sizeof(desc));
	ok(rpma_mr_get_descriptor_size(&mr, &size));
	assert_int_equal(size, 21);
	ok(rpma_mr_get_descriptor(&mr, desc));
	assert_memory_equal(desc, bytes, sizeof(bytes));
}

/* The byte has no room for it: a descriptor tells that it can be read. */
MOCK_TEST(encode__atomics_ARE_READ)
{
	struct ibv_mr ibv_mr = {0};
	struct rpma_mr_local mr = {
		.ibv_mr = &ibv_mr,
		.usage = RPMA_MR_USAGE_ATOMIC,
	};
	uint8_t desc[21];

	ok(rpma_mr_get_descriptor(&mr, desc));
	assert_int_equal(desc[20], RPMA_MR_USAGE_READ_SRC);
}

MOCK_TEST(decode__EACH_FIELD)
{
	struct rpma_mr_remote *mr = NULL;
	size_t size = 0;
	int flush_type = 0;

	ok(rpma_mr_remote_from_descriptor(bytes, 21, &mr));
	assert_int_equal(mr->raddr, 0x0102030405060708);
	assert_int_equal(mr->rkey, 0x21222324);
	assert_int_equal(mr->usage, 0xb1);
	ok(rpma_mr_remote_get_size(mr, &size));
	assert_int_equal(size, 0x1112131415161718);
	ok(rpma_mr_remote_get_flush_type(mr, &flush_type));
	assert_int_equal(flush_type,
			 RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY |
				 RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT);
	ok(rpma_mr_remote_delete(&mr));
}

/* Programs compare them. */
MOCK_TEST(decode__twice_SAME_BYTES)
{
	struct rpma_mr_remote *a = NULL;
	struct rpma_mr_remote *b = NULL;

	ok(rpma_mr_remote_from_descriptor(bytes, 21, &a));
	ok(rpma_mr_remote_from_descriptor(bytes, 22, &b));
	assert_memory_equal(a, b, sizeof(*a));
	ok(rpma_mr_remote_delete(&a));
	ok(rpma_mr_remote_delete(&b));
}

MOCK_TEST(decode__every_usage_BUT_NONE)
{
	struct rpma_mr_remote *mr = NULL;
	uint8_t desc[21];
	int usage;
	int type;

	memcpy(desc, bytes, sizeof(desc));
	for (usage = 1; usage < 256; usage++) {
		desc[20] = (uint8_t)usage;
		ok(rpma_mr_remote_from_descriptor(desc, sizeof(desc), &mr));
		ok(rpma_mr_remote_get_flush_type(mr, &type));
		assert_int_equal(type, usage & 0x30);
		ok(rpma_mr_remote_delete(&mr));
	}
	desc[20] = 0;
	assert_int_equal(
		rpma_mr_remote_from_descriptor(desc, sizeof(desc), &mr),
		RPMA_E_INVAL);
	assert_null(mr);
}

MOCK_TEST(decode__no_memory_NOMEM)
{
	const struct failure failures[] = {
		{"malloc", 1, ENOMEM, RPMA_E_NOMEM, ""},
		{NULL, 0, 0, 0, ""},
	};

	EACH_FAILURE(decode, failures);
}

static char logged[256];

static void keep_message(enum rpma_log_level level, const char *file_name,
			 const int line_no, const char *function_name,
			 const char *message_format, ...)
{
	va_list args;

	(void)level;
	(void)file_name;
	(void)line_no;
	(void)function_name;
	va_start(args, message_format);
	vsnprintf(logged, sizeof(logged), message_format, args);
	va_end(args);
}

/* Upstream: half of the address, and of the wrong end on some machines. */
MOCK_TEST(decode__log_SAYS_ALL_OF_IT)
{
	ok(rpma_log_set_function(keep_message));
	ok(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_DEBUG));
	ok(decode());
	ok(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED));
	ok(rpma_log_set_function(RPMA_LOG_USE_DEFAULT_FUNCTION));
	assert_string_equal(logged, "remote region: address 0x102030405060708, "
				    "size 1230066625199609624, "
				    "rkey 0x21222324, usage 0xb1\n");
}

MOCK_TEST(arguments__INVAL)
{
	struct rpma_mr_remote *mr = NULL;
	struct rpma_mr_local local = {0};
	char desc[32];
	size_t size;
	int type;

	assert_int_equal(rpma_mr_get_descriptor(NULL, desc), RPMA_E_INVAL);
	assert_int_equal(rpma_mr_get_descriptor(&local, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_mr_get_descriptor_size(NULL, &size),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_mr_get_descriptor_size(&local, NULL),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_mr_remote_from_descriptor(NULL, 21, &mr),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_mr_remote_from_descriptor(bytes, 21, NULL),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_mr_remote_from_descriptor(bytes, 20, &mr),
			 RPMA_E_INVAL);
	assert_null(mr);
	assert_int_equal(rpma_mr_remote_delete(NULL), RPMA_E_INVAL);
	ok(rpma_mr_remote_delete(&mr));
	assert_int_equal(rpma_mr_remote_get_size(NULL, &size), RPMA_E_INVAL);
	assert_int_equal(rpma_mr_remote_get_flush_type(NULL, &type),
			 RPMA_E_INVAL);
	ok(rpma_mr_remote_from_descriptor(bytes, 21, &mr));
	assert_int_equal(rpma_mr_remote_get_size(mr, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_mr_remote_get_flush_type(mr, NULL), RPMA_E_INVAL);
	ok(rpma_mr_remote_delete(&mr));
}

TEST_MAIN()
