/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * device.c: finds the device, compares its limits with the options.
 */

#include "device.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool has_devices(void)
{
	int count = 0;
	struct ibv_device **list = ibv_get_device_list(&count);

	if (list)
		ibv_free_device_list(list);
	return count > 0;
}

static bool find(const struct options *o, struct device *device)
{
	struct address first;

	if (!has_devices()) {
		fprintf(stderr, "rt-echo: no RDMA device here; examples/run "
				"brings one, examples/run --check says what "
				"is missing\n");
		return false;
	}
	if (!o->address) {
		if (!address_first(&first)) {
			fprintf(stderr, "rt-echo: no address leads to an RDMA "
					"device; see examples/run --check\n");
			return false;
		}
		snprintf(device->address, sizeof(device->address), "%s",
			 first.text);
		device->context = first.device;
		return true;
	}
	if (strlen(o->address) >= sizeof(device->address)) {
		fprintf(stderr, "rt-echo: --address: longer than %zu bytes\n",
			sizeof(device->address) - 1);
		return false;
	}
	strcpy(device->address, o->address);
	int ret = rpma_utils_get_ibv_context(
		o->address,
		o->role == ROLE_CLIENT ? RPMA_UTIL_IBV_CONTEXT_REMOTE
				       : RPMA_UTIL_IBV_CONTEXT_LOCAL,
		&device->context);
	if (ret)
		fprintf(stderr,
			"rt-echo: --address %s: %s; examples/run --check lists "
			"what there is\n",
			o->address,
			o->role == ROLE_CLIENT ? "no RDMA device leads there"
					       : "no RDMA device here has it");
	return ret == 0;
}

/*
 * Checks that all work requests of a connection have room in a CQ of the
 * runtime.
 */
static bool fits(const struct options *o, struct device *device)
{
	struct ibv_device_attr attr;
	const char *name = ibv_get_device_name(device->context->device);
	int err = ibv_query_device(device->context, &attr);

	if (err) {
		fprintf(stderr, "rt-echo: device %s does not answer: %s\n",
			name, strerror(err));
		return false;
	}
	/* one more on each side, which marks the end */
	int receives = (int)(o->depth + RECEIVE_SLACK + 1);
	int entries = (int)(2 * o->depth + RECEIVE_SLACK + 2);
	if (receives > attr.max_qp_wr || entries > attr.max_cqe) {
		int by_qp = attr.max_qp_wr - (int)RECEIVE_SLACK - 1;
		int by_cq = (attr.max_cqe - (int)RECEIVE_SLACK - 2) / 2;
		fprintf(stderr,
			"rt-echo: --depth %u: %s has room for %d; lower it\n",
			o->depth, name, by_qp < by_cq ? by_qp : by_cq);
		return false;
	}
	long long room = (long long)(attr.max_cqe / entries) * attr.max_cq;
	int ends = o->role == ROLE_BOTH ? 2 : 1;
	long long most = room < attr.max_qp ? room : attr.max_qp;
	if ((long long)o->connections * ends > most) {
		fprintf(stderr,
			"rt-echo: --connections %u with --depth %u: %s has "
			"room for %lld; lower one of them\n",
			o->connections, o->depth, name, most / ends);
		return false;
	}
	device->max_cqe = (unsigned)attr.max_cqe;
	return true;
}

bool device_open(const struct options *options, struct device *device)
{
	*device = (struct device){0};
	if (!find(options, device) || !fits(options, device))
		return false;
	errno = 0;
	int ret = rpma_peer_new(device->context, &device->peer);
	if (ret)
		fprintf(stderr, "rt-echo: cannot use device %s: %s (%s)\n",
			ibv_get_device_name(device->context->device),
			rpma_err_2str(ret), strerror(errno));
	return ret == 0;
}

void device_close(struct device *device)
{
	if (device->peer)
		rpma_peer_delete(&device->peer);
}
