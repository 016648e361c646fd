/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* failure.c -- see failure.h. */

#include "base/failure.h"

#include <errno.h>
#include <stdio.h>

#define BIT(step) (1u << RT_STEP_##step)

#define ANY (~0u)
/* steps in which the peer, or the network between, has a part */
#define NET                                                               \
	(BIT(BEGIN) | BIT(ADDR) | BIT(ROUTE) | BIT(PATH) | BIT(CONNECT) | \
	 BIT(ANSWER))
/* events whose cause is the network, not a call */
#define FAR (BIT(ADDR) | BIT(PATH) | BIT(ANSWER))

static const char *const names[RT_STEPS] = {
	[RT_STEP_BEGIN] = "making a CM id, or resolving the address,",
	[RT_STEP_ADDR] = "resolving the address",
	[RT_STEP_ROUTE] = "resolving the route",
	[RT_STEP_PATH] = "resolving the route",
	[RT_STEP_QP] = "making the queue pair",
	[RT_STEP_CONNECT] = "connecting",
	[RT_STEP_ANSWER] = "waiting for the peer's answer",
	[RT_STEP_ESTABLISH] = "taking the peer's answer",
	[RT_STEP_ACCEPT] = "accepting",
	[RT_STEP_POST] = "posting",
	[RT_STEP_EVENTS] = "reading CM events",
};

#define ADVICE_NOTHING                                                       \
	"nothing answers there: is the address right, and the device up at " \
	"both ends?"
#define ADVICE_USER                                                       \
	"may this user use the files in /dev/infiniband? A program that " \
	"calls setuid() does so before it opens a device"

/* The first row that has the step and the errno holds. err ANY_ERRNO: each
 * errno without a row before. */
#define ANY_ERRNO INT32_MAX
static const struct row {
	uint32_t steps;
	int32_t err;
	enum rpma_rt_reason reason;
	const char *advice; /* "": no advice */
} rows[] = {
	{NET, ENETUNREACH, RPMA_RT_REASON_UNREACHABLE,
	 "no route leads to that network: ip route shows the routes"},
	{NET, ENETDOWN, RPMA_RT_REASON_UNREACHABLE,
	 "the network interface is down: ip link shows the interfaces"},
	{NET, EHOSTUNREACH, RPMA_RT_REASON_UNREACHABLE, ADVICE_NOTHING},
	{NET, EHOSTDOWN, RPMA_RT_REASON_UNREACHABLE, ADVICE_NOTHING},
	{NET, ETIMEDOUT, RPMA_RT_REASON_UNREACHABLE, ADVICE_NOTHING},
	{NET, EADDRNOTAVAIL, RPMA_RT_REASON_UNREACHABLE,
	 "no RDMA device of this machine has, or leads to, that address: "
	 "rdma link shows devices, ip addr addresses"},
	{NET, ECONNREFUSED, RPMA_RT_REASON_REJECTED,
	 "no program listens at that port there"},
	{NET | BIT(ACCEPT), ECONNRESET, RPMA_RT_REASON_DISCONNECTED,
	 "the peer gave up meanwhile"},
	/* of an SA that knows no path */
	{BIT(PATH), EINVAL, RPMA_RT_REASON_UNREACHABLE, ADVICE_NOTHING},
	{FAR, 0, RPMA_RT_REASON_UNREACHABLE, ADVICE_NOTHING},

	{ANY, RT_ERRNO_UNKNOWN, RPMA_RT_REASON_FAILED,
	 "a call inside librdmacm, which passes no errno on: are memory, "
	 "descriptors and the device as they should be?"},
	{BIT(POST), ENOMEM, RPMA_RT_REASON_FAILED,
	 "the device has no memory, or fewer places in the queue than it "
	 "promised"},
	{ANY, ENOMEM, RPMA_RT_REASON_FAILED,
	 "no memory, of the process or of the device: have ulimit -l, the "
	 "container's memory limit or smaller queues changed"},
	{ANY, EMFILE, RPMA_RT_REASON_FAILED,
	 "the process has no free descriptor: close some, or raise ulimit -n"},
	{ANY, ENFILE, RPMA_RT_REASON_FAILED,
	 "the system has no free descriptor: raise fs.file-max"},
	{ANY, EPERM, RPMA_RT_REASON_FAILED, ADVICE_USER},
	{ANY, EACCES, RPMA_RT_REASON_FAILED, ADVICE_USER},
	{BIT(BEGIN), ENODEV, RPMA_RT_REASON_FAILED,
	 "no RDMA device leads there, or /dev/infiniband/rdma_cm is missing: "
	 "rdma link shows devices, the kernel module is rdma_ucm"},
	{BIT(BEGIN), ENOENT, RPMA_RT_REASON_FAILED,
	 "/dev/infiniband/rdma_cm is missing: the kernel module is rdma_ucm"},
	{FAR | BIT(ROUTE), ENODEV, RPMA_RT_REASON_FAILED,
	 "no RDMA device of this machine leads there: rdma link shows devices"},
	{ANY, ENODEV, RPMA_RT_REASON_FAILED,
	 "the device is gone: rdma link shows devices"},
	{ANY, EIO, RPMA_RT_REASON_FAILED,
	 "the device is gone or broken: dmesg may say why"},
	{BIT(BEGIN), EADDRINUSE, RPMA_RT_REASON_FAILED,
	 "the local address or port is in use"},
	{BIT(BEGIN) | BIT(ADDR), EAFNOSUPPORT, RPMA_RT_REASON_FAILED,
	 "the machine does not have that family of addresses"},
	{BIT(QP), EINVAL, RPMA_RT_REASON_FAILED,
	 "the device does not take the sizes of rpma_rt_conn_cfg: ibv_devinfo "
	 "-v shows its limits"},
	{BIT(CONNECT), EINVAL, RPMA_RT_REASON_FAILED,
	 "are the private data too long, or responder_resources or "
	 "initiator_depth too many?"},
	{BIT(ACCEPT), EINVAL, RPMA_RT_REASON_FAILED,
	 "has the peer given up, are the private data too long, or "
	 "responder_resources or initiator_depth too many?"},
	{BIT(POST), EINVAL, RPMA_RT_REASON_FAILED,
	 "the device does not take the operation, its memory or its flags"},
	{ANY, ANY_ERRNO, RPMA_RT_REASON_FAILED, ""},
};

static const struct row *failure_row_of(enum rt_step step, int err)
{
	const struct row *row = rows;

	while (!(row->steps & (1u << step)) ||
	       (row->err != err && row->err != ANY_ERRNO))
		row++;
	return row;
}

int rt_failure_errno(int ret)
{
	switch (ret) {
	case RPMA_E_PROVIDER:
		return errno;
	case RPMA_E_NOMEM:
		return ENOMEM;
	case RPMA_E_INVAL:
		return EINVAL;
	case RPMA_E_NOSUPP:
		return EOPNOTSUPP;
	default:
		return 0;
	}
}

int rt_failure_answer(int answer)
{
	if (answer > 0)
		return answer;
	return answer < -1 ? -answer : errno;
}

enum rpma_rt_reason rt_failure_reason(enum rt_step step, int err)
{
	return failure_row_of(step, err)->reason;
}

const char *rt_failure_2str(enum rt_step step, int err,
			    char buf[static RT_FAILURE_WORDS])
{
	const char *advice = failure_row_of(step, err)->advice;
	char text[64] = "";

	errno = err;
	if (err > 0)
		snprintf(text, sizeof(text), ": %m");
	snprintf(buf, RT_FAILURE_WORDS, "%s failed%s%s%s", names[step], text,
		 advice[0] != '\0' ? ": " : "", advice);
	return buf;
}
