/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* verb.c -- see verb.h. */

#define _GNU_SOURCE
#include "base/verb.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

/* Libraries of devices that post without a system call, by a part of the file's
 * name. The loopback device makes system calls, and disables cancellation in
 * each. */
static const char *const without[] = {
	"librpma_loopback", "libmlx5",	     "libmlx4",	 "libirdma",
	"libbnxt_re",	    "libcxgb4",	     "libefa",	 "liberdma",
	"libhns",	    "libmana",	     "libmthca", "libocrdma",
	"libqedr",	    "libvmw_pvrdma",
};

/* The name of the file that has the function; "": not known. */
static const char *file_of(int (*post)(struct ibv_qp *qp,
				       struct ibv_send_wr *wr,
				       struct ibv_send_wr **bad))
{
	const char *slash;
	void *address;
	Dl_info info;

	memcpy(&address, &post, sizeof(address));
	if (address == NULL || dladdr(address, &info) == 0 ||
	    info.dli_fname == NULL)
		return "";
	slash = strrchr(info.dli_fname, '/');
	return slash != NULL ? slash + 1 : info.dli_fname;
}

bool rt_verb_enters_kernel(const struct ibv_context *ibv_ctx)
{
	const char *file = file_of(ibv_ctx->ops.post_send);
	size_t i;

	for (i = 0; i < sizeof(without) / sizeof(without[0]); i++) {
		if (strncmp(file, without[i], strlen(without[i])) == 0)
			return false;
	}
	return true;
}
