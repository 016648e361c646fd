/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Any bytes as the descriptor of a region: refused, with nothing written; or
 * the getters return the values in the bytes.
 */

#include "fuzz.h"

#include <string.h>

#define SIZE	  21
#define AT_LENGTH 8
#define AT_USAGE  20
/* what programs compare of two regions of one descriptor */
#define ALIKE 14

static uint64_t little_endian(const uint8_t *bytes)
{
	uint64_t v = 0;
	int i;

	for (i = 7; i >= 0; i--)
		v = v << 8 | bytes[i];
	return v;
}

static void expect_refused(const uint8_t *data, size_t size)
{
	struct rpma_mr_remote *const before = (void *)data;
	struct rpma_mr_remote *mr = before;

	expect(rpma_mr_remote_from_descriptor(data, size, &mr) == RPMA_E_INVAL);
	expect(mr == before);
}

static void expect_decoded(const uint8_t *data, size_t size)
{
	struct rpma_mr_remote *mr = NULL;
	struct rpma_mr_remote *twin = NULL;
	size_t length = 0;
	int type = -1;

	expect(rpma_mr_remote_from_descriptor(data, size, &mr) == 0);
	expect(rpma_mr_remote_from_descriptor(data, SIZE, &twin) == 0);
	expect(memcmp(mr, twin, ALIKE) == 0);
	expect(rpma_mr_remote_get_size(mr, &length) == 0);
	expect(length == little_endian(data + AT_LENGTH));
	expect(rpma_mr_remote_get_flush_type(mr, &type) == 0);
	expect(type ==
	       (data[AT_USAGE] & (RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY |
				  RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT)));
	expect(rpma_mr_remote_delete(&mr) == 0);
	expect(rpma_mr_remote_delete(&twin) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int before = mocks_live();

	if (size < SIZE || data[AT_USAGE] == 0)
		expect_refused(data, size);
	else
		expect_decoded(data, size);
	expect(mocks_live() == before);
	return 0;
}
