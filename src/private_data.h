/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Private data of a connection: a copy in the memory of the library. */

#ifndef RPMA_PRIVATE_DATA_H
#define RPMA_PRIVATE_DATA_H 1

#include "librpma.h"

/* Copies len bytes; without bytes *pdata becomes {NULL, 0}. Returns E_NOMEM. */
int rpma__private_data_init(struct rpma_conn_private_data *pdata,
			    const void *ptr, uint8_t len);
void rpma__private_data_fini(struct rpma_conn_private_data *pdata);

/* Returns true for NULL, and for private data with bytes. */
bool rpma__private_data_is_valid(const struct rpma_conn_private_data *pdata);

#endif /* RPMA_PRIVATE_DATA_H */
