/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Encoding and decoding memory regions. No state; any thread. */

#include "mr_desc.h"

#include <endian.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "mr.h"

/* offsets in a descriptor */
enum {
	AT_ADDR = 0,
	AT_SIZE = 8,
	AT_RKEY = 16,
	AT_USAGE = 20,
	DESCRIPTOR_SIZE = 21,
};

#define FLUSH_TYPES                            \
	(RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | \
	 RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT)

static void mr_desc_put_u64(uint8_t *desc, size_t at, uint64_t v)
{
	v = htole64(v);
	memcpy(desc + at, &v, sizeof(v));
}

static uint64_t mr_desc_get_u64(const uint8_t *desc, size_t at)
{
	uint64_t v;

	memcpy(&v, desc + at, sizeof(v));
	return le64toh(v);
}

static void mr_desc_put_u32(uint8_t *desc, size_t at, uint32_t v)
{
	v = htole32(v);
	memcpy(desc + at, &v, sizeof(v));
}

static uint32_t mr_desc_get_u32(const uint8_t *desc, size_t at)
{
	uint32_t v;

	memcpy(&v, desc + at, sizeof(v));
	return le32toh(v);
}

int rpma_mr_get_descriptor(const struct rpma_mr_local *mr, void *desc)
{
	uint8_t *bytes = desc;

	if (desc == NULL || !rpma__mr_is_valid(mr))
		return RPMA_REFUSE_NULL(rpma__mr_refusal(mr), "", desc, mr);

	mr_desc_put_u64(bytes, AT_ADDR, mr->addr);
	mr_desc_put_u64(bytes, AT_SIZE, mr->ibv_mr->length);
	mr_desc_put_u32(bytes, AT_RKEY, mr->ibv_mr->rkey);
	bytes[AT_USAGE] = (uint8_t)mr->usage;
	return 0;
}

int rpma_mr_get_descriptor_size(const struct rpma_mr_local *mr,
				size_t *desc_size)
{
	if (desc_size == NULL || !rpma__mr_is_valid(mr))
		return RPMA_REFUSE_NULL(rpma__mr_refusal(mr), "", desc_size,
					mr);

	*desc_size = DESCRIPTOR_SIZE;
	return 0;
}

int rpma_mr_remote_from_descriptor(const void *desc, size_t desc_size,
				   struct rpma_mr_remote **mr_ptr)
{
	const uint8_t *bytes = desc;
	struct rpma_mr_remote *mr;

	if (desc == NULL || mr_ptr == NULL)
		return RPMA_REFUSE_NULL(RPMA_E_INVAL, "", desc, mr_ptr);
	if (desc_size < DESCRIPTOR_SIZE) {
		RPMA_LOG_ERROR("a region's descriptor has %d bytes, not %zu",
			       DESCRIPTOR_SIZE, desc_size);
		return RPMA_E_INVAL;
	}
	if (bytes[AT_USAGE] == 0) {
		RPMA_LOG_ERROR("the region of a descriptor is of no use");
		return RPMA_E_INVAL;
	}

	mr = malloc(sizeof(*mr));
	if (mr == NULL)
		return RPMA_REFUSE_NOMEM("a remote region");
	mr->raddr = mr_desc_get_u64(bytes, AT_ADDR);
	mr->size = mr_desc_get_u64(bytes, AT_SIZE);
	mr->rkey = mr_desc_get_u32(bytes, AT_RKEY);
	mr->usage = bytes[AT_USAGE];

	RPMA_LOG_DEBUG("remote region: address 0x%" PRIx64 ", size %" PRIu64
		       ", rkey 0x%" PRIx32 ", usage 0x%x",
		       mr->raddr, mr->size, mr->rkey, (unsigned)mr->usage);
	*mr_ptr = mr;
	return 0;
}

int rpma_mr_remote_get_size(const struct rpma_mr_remote *mr, size_t *size)
{
	if (mr == NULL || size == NULL)
		return RPMA_REFUSE_NULL(RPMA_E_INVAL, "", mr, size);

	*size = mr->size;
	return 0;
}

int rpma_mr_remote_get_flush_type(const struct rpma_mr_remote *mr,
				  int *flush_type)
{
	if (mr == NULL || flush_type == NULL)
		return RPMA_REFUSE_NULL(RPMA_E_INVAL, "", mr, flush_type);

	*flush_type = mr->usage & FLUSH_TYPES;
	return 0;
}

int rpma_mr_remote_delete(struct rpma_mr_remote **mr_ptr)
{
	if (mr_ptr == NULL)
		return RPMA_REFUSE_NULL(RPMA_E_INVAL, "", mr_ptr);

	free(*mr_ptr);
	*mr_ptr = NULL;
	return 0;
}
