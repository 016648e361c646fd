/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Errors as text, of librpma, verbs and rdma_cm. No state; any thread.
 */

#include "err.h"

#include <errno.h>
#include <string.h>

#include "log.h"

int rpma__err_errno(int ret)
{
	if (ret > 0)
		return ret;
	return ret < -1 ? -ret : errno;
}

const char *rpma__errno_2str(int ret)
{
	/*
	 * strerror() is not thread-safe, strerror_l() wants a locale, and
	 * strerrordesc_np() glibc 2.32. For a known errno no buffer is used.
	 */
	char unknown[64];
	int saved = errno;
	const char *text =
		strerror_r(rpma__err_errno(ret), unknown, sizeof(unknown));

	errno = saved;
	return text == unknown ? "unknown errno" : text;
}

const char *rpma__cm_advice(void)
{
	switch (errno) {
	case ENODEV:
	case ENOENT:
		return ": RDMA needs a device and /dev/infiniband/rdma_cm "
		       "(kernel module rdma_ucm; rdma_rxe makes a device of a "
		       "network interface); without them, "
		       "LD_PRELOAD=librpma_loopback.so";
	case EACCES:
	case EPERM:
		return ": may this user open /dev/infiniband/rdma_cm?";
	default:
		return "";
	}
}

const char *rpma__addr_advice(void)
{
	switch (errno) {
	case EADDRNOTAVAIL:
		return ": no RDMA device of this machine has the address "
		       "(rdma link shows devices, ip addr addresses)";
	case EADDRINUSE:
		return ": another program listens at the port";
	default:
		return rpma__cm_advice();
	}
}

void rpma__log_call(const char *file, int line, const char *function,
		    const char *name, int ret, const char *(*advice)(void))
{
	errno = rpma__err_errno(ret);
	rpma_log_message(RPMA_LOG_LEVEL_ERROR, file, line, function,
			 "%s() failed: %s%s", name, rpma__errno_2str(ret),
			 advice ? advice() : "");
}

const char *rpma_err_2str(int ret)
{
	switch (ret) {
	case 0:
		return "Success";
#define RPMA__ERROR_CASE(name, text) \
	case name:                   \
		return text;
		RPMA__ERRORS(RPMA__ERROR_CASE)
#undef RPMA__ERROR_CASE
	default:
		return "Unknown error";
	}
}
