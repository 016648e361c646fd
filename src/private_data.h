/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Private data of a connection: a copy in the memory of the library. All zero:
 * no data. A single thread sets, any thread gets.
 */

#ifndef RPMA_PRIVATE_DATA_H
#define RPMA_PRIVATE_DATA_H 1

#include <stdatomic.h>

#include "librpma.h"

/* Immutable. */
struct rpma__private_bytes {
	uint8_t len;
	char bytes[];
};

struct rpma__private_data {
	_Atomic(struct rpma__private_bytes *) copy;
};

/*
 * Copies len bytes, once; without bytes, or with data already, does nothing.
 * Returns E_NOMEM, logged.
 */
int rpma__private_data_set(struct rpma__private_data *data, const void *ptr,
			   uint8_t len);
/* Stores address and length of the copy; NULL and 0 without data. */
void rpma__private_data_get(const struct rpma__private_data *data,
			    struct rpma_conn_private_data *pdata);
void rpma__private_data_fini(struct rpma__private_data *data);

/* Returns true for NULL, and for private data with bytes. */
bool rpma__private_data_is_valid(const struct rpma_conn_private_data *pdata);

#endif /* RPMA_PRIVATE_DATA_H */
