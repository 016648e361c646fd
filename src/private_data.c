/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Copies of private data. No state. */

#include "private_data.h"

#include <stdlib.h>
#include <string.h>

#include "log.h"

int rpma__private_data_init(struct rpma_conn_private_data *pdata,
			    const void *ptr, uint8_t len)
{
	*pdata = (struct rpma_conn_private_data){0};
	if (ptr == NULL || len == 0)
		return 0;

	pdata->ptr = malloc(len);
	if (pdata->ptr == NULL)
		return RPMA_REFUSE_NOMEM("private data");
	memcpy(pdata->ptr, ptr, len);
	pdata->len = len;
	return 0;
}

void rpma__private_data_fini(struct rpma_conn_private_data *pdata)
{
	free(pdata->ptr);
	*pdata = (struct rpma_conn_private_data){0};
}

bool rpma__private_data_is_valid(const struct rpma_conn_private_data *pdata)
{
	return pdata == NULL || (pdata->ptr != NULL && pdata->len != 0);
}
