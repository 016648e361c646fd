/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * handshake.h: the private data of a connection as a struct, and a registered
 * region as a part of the struct. Meant to be copied: needs nothing but this
 * file. Both ends agree on the struct, which begins with a magic number of 8
 * bytes.
 */

#ifndef EXAMPLES_HANDSHAKE_H
#define EXAMPLES_HANDSHAKE_H

#include <stdint.h>
#include <string.h>

#include <rpma_rt.h>

/* A region for the other end: the descriptor of librpma. */
struct handshake_region {
	uint64_t len;
	char descriptor[32];
};

/* Copies the private data of the other end. Returns false if there are fewer
 * bytes, or another magic number. */
static inline bool handshake_read(const struct rpma_rt_conn *conn,
				  uint64_t magic, void *data, size_t size)
{
	struct rpma_conn_private_data pdata = {NULL, 0};

	if (rpma_rt_conn_get_private_data(conn, &pdata) || pdata.ptr == NULL ||
	    pdata.len < size || memcmp(pdata.ptr, &magic, sizeof(magic)) != 0)
		return false;
	memcpy(data, pdata.ptr, size);
	return true;
}

/* Describes a registered region. Returns 0, or an error of librpma. */
static inline int handshake_describe(const struct rpma_mr_local *mr,
				     struct handshake_region *region)
{
	size_t size;
	int ret = rpma_mr_get_descriptor_size(mr, &size);

	if (ret)
		return ret;
	if (size > sizeof(region->descriptor))
		return RPMA_E_INVAL;
	region->len = size;
	return rpma_mr_get_descriptor(mr, region->descriptor);
}

/* Makes the region that the other end has described. Returns false if the bytes
 * describe no region, or a region of another size. */
static inline bool handshake_take(const struct handshake_region *region,
				  size_t size, struct rpma_mr_remote **mr_ptr)
{
	size_t found;

	if (region->len > sizeof(region->descriptor) ||
	    rpma_mr_remote_from_descriptor(region->descriptor, region->len,
					   mr_ptr))
		return false;
	if (rpma_mr_remote_get_size(*mr_ptr, &found) == 0 && found == size)
		return true;
	rpma_mr_remote_delete(mr_ptr);
	return false;
}

#endif /* EXAMPLES_HANDSHAKE_H */
