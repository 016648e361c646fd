/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Copies of private data. */

#include "private_data.h"

#include <stdlib.h>
#include <string.h>

#include "log.h"

int rpma__private_data_set(struct rpma__private_data *data, const void *ptr,
			   uint8_t len)
{
	struct rpma__private_bytes *copy;

	/* relaxed: only this thread stores */
	if (ptr == NULL || len == 0 ||
	    atomic_load_explicit(&data->copy, memory_order_relaxed))
		return 0;
	copy = malloc(sizeof(*copy) + len);
	if (copy == NULL)
		return RPMA_REFUSE_NOMEM("private data");
	copy->len = len;
	memcpy(copy->bytes, ptr, len);
	/* release: the bytes; pairs with the acquire in get */
	atomic_store_explicit(&data->copy, copy, memory_order_release);
	return 0;
}

void rpma__private_data_get(const struct rpma__private_data *data,
			    struct rpma_conn_private_data *pdata)
{
	/* acquire: pairs with the release in set */
	struct rpma__private_bytes *copy =
		atomic_load_explicit(&data->copy, memory_order_acquire);

	pdata->ptr = copy ? copy->bytes : NULL;
	pdata->len = copy ? copy->len : 0;
}

void rpma__private_data_fini(struct rpma__private_data *data)
{
	/* relaxed: no other thread uses the connection any more */
	free(atomic_load_explicit(&data->copy, memory_order_relaxed));
}

bool rpma__private_data_is_valid(const struct rpma_conn_private_data *pdata)
{
	return pdata == NULL || (pdata->ptr != NULL && pdata->len != 0);
}
