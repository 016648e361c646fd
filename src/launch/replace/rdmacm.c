/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * rdmacm.c -- the replacement of librdmacm.so.1: see replace.h. Sockets over
 * RDMA fail: the device has no such sockets of its own, and the code of
 * librdmacm is not in the replacement.
 */

#include "replace.h"

#include <stddef.h>

#define NO_SOCKETS \
	"the loopback device has no sockets over RDMA, do without --replace"

#define DEVICE(name, node) REPLACE_DEVICE(name, node)
#define SOCKET(name, node)                             \
	REPLACE_REFUSAL(socket, name, NO_SOCKETS, -1L) \
	REPLACE_NAME(socket_##name, name, node);

#include "rdmacm_names.h"

#undef DEVICE
#undef SOCKET
#define DEVICE(name, node) {#name, &to_##name},
#define SOCKET(name, node)

static const struct replace_call calls[] = {
#include "rdmacm_names.h"
	{NULL, NULL},
};

__attribute__((constructor)) static void rdmacm_bind(void)
{
	replace_bind(calls);
}
