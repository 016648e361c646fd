/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Unit tests of the peer configuration. */

#include "mocks.h"

#include <errno.h>

static int new_cfg(void)
{
	struct rpma_peer_cfg *pcfg = NULL;
	int ret = rpma_peer_cfg_new(&pcfg);

	assert_int_equal(pcfg != NULL, ret == 0);
	ok(rpma_peer_cfg_delete(&pcfg));
	assert_null(pcfg);
	return ret;
}

static int from_descriptor(void)
{
	const uint8_t desc = 1;
	struct rpma_peer_cfg *pcfg = NULL;
	int ret = rpma_peer_cfg_from_descriptor(&desc, 1, &pcfg);

	assert_int_equal(pcfg != NULL, ret == 0);
	ok(rpma_peer_cfg_delete(&pcfg));
	return ret;
}

MOCK_TEST(new__no_memory_NOMEM)
{
	const struct failure failures[] = {
		{"malloc", 1, ENOMEM, RPMA_E_NOMEM, ""},
		{NULL, 0, 0, 0, ""},
	};

	EACH_FAILURE(new_cfg, failures);
	EACH_FAILURE(from_descriptor, failures);
}

MOCK_TEST(arguments__NULL_INVAL)
{
	struct rpma_peer_cfg *pcfg = NULL;
	const uint8_t desc = 0;
	uint8_t out;
	size_t size;
	bool flag;

	ok(rpma_peer_cfg_new(&pcfg));
	assert_int_equal(rpma_peer_cfg_new(NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_peer_cfg_delete(NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_peer_cfg_set_direct_write_to_pmem(NULL, true),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_peer_cfg_get_direct_write_to_pmem(NULL, &flag),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_peer_cfg_get_direct_write_to_pmem(pcfg, NULL),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_peer_cfg_get_descriptor(NULL, &out),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_peer_cfg_get_descriptor(pcfg, NULL),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_peer_cfg_get_descriptor_size(NULL, &size),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_peer_cfg_get_descriptor_size(pcfg, NULL),
			 RPMA_E_INVAL);
	ok(rpma_peer_cfg_delete(&pcfg));
	assert_int_equal(rpma_peer_cfg_from_descriptor(NULL, 1, &pcfg),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_peer_cfg_from_descriptor(&desc, 1, NULL),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_peer_cfg_from_descriptor(&desc, 0, &pcfg),
			 RPMA_E_INVAL);
	assert_null(pcfg);
	ok(rpma_peer_cfg_delete(&pcfg));
}

MOCK_TEST(descriptor__IS_ONE_BYTE)
{
	struct rpma_peer_cfg *pcfg = NULL;
	uint8_t desc[2] = {0xaa, 0xaa};
	size_t size = 0;
	bool flag = true;

	ok(rpma_peer_cfg_new(&pcfg));
	ok(rpma_peer_cfg_get_direct_write_to_pmem(pcfg, &flag));
	assert_false(flag);
	ok(rpma_peer_cfg_get_descriptor_size(pcfg, &size));
	assert_int_equal(size, 1);
	ok(rpma_peer_cfg_get_descriptor(pcfg, desc));
	assert_int_equal(desc[0], 0);
	assert_int_equal(desc[1], 0xaa);
	ok(rpma_peer_cfg_set_direct_write_to_pmem(pcfg, true));
	ok(rpma_peer_cfg_get_descriptor(pcfg, desc));
	assert_int_equal(desc[0], 1);
	ok(rpma_peer_cfg_delete(&pcfg));
}

/* Longer ones are read as far as they are known; any bit is a yes. */
MOCK_TEST(from_descriptor__any_byte)
{
	struct rpma_peer_cfg *pcfg = NULL;
	uint8_t desc[3] = {0, 9, 9};
	int byte;
	bool flag;

	for (byte = 0; byte < 256; byte++) {
		desc[0] = (uint8_t)byte;
		ok(rpma_peer_cfg_from_descriptor(desc, sizeof(desc), &pcfg));
		ok(rpma_peer_cfg_get_direct_write_to_pmem(pcfg, &flag));
		assert_int_equal(flag, byte != 0);
		ok(rpma_peer_cfg_delete(&pcfg));
	}
}

TEST_MAIN()
