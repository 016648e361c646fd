/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * device.c: asks verbs for devices, ports and GIDs, and sysfs for the
 * properties unknown to verbs: whether a device is hardware, and the node of
 * the device.
 */

#include "device.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>

#include "advice.h"
#include "machine.h"

#define MAX_GIDS 64
#define MAX_PATH 512

bool device_is_of_kernel(const struct ibv_device *device)
{
	return access(device->ibdev_path, F_OK) == 0;
}

/*
 * Returns true if the device sits on a bus; Soft-RoCE and other software has no
 * bus.
 */
static bool is_hardware(const struct ibv_device *device)
{
	char path[MAX_PATH];

	snprintf(path, sizeof(path), "%s/device", device->ibdev_path);
	return access(path, F_OK) == 0;
}

static const char *transport_text(const struct ibv_device *device)
{
	switch (device->transport_type) {
	case IBV_TRANSPORT_IB:
		return "InfiniBand or RoCE";
	case IBV_TRANSPORT_IWARP:
		return "iWARP";
	default:
		return "a transport that is not RC";
	}
}

static const char *gid_type_text(uint32_t type)
{
	switch (type) {
	case IBV_GID_TYPE_IB:
		return "InfiniBand";
	case IBV_GID_TYPE_ROCE_V1:
		return "RoCE v1";
	case IBV_GID_TYPE_ROCE_V2:
		return "RoCE v2";
	default:
		return "unknown type";
	}
}

static void print_gids(struct ibv_context *context, uint8_t port)
{
	struct ibv_gid_entry entries[MAX_GIDS];
	ssize_t count = ibv_query_gid_table(context, entries, MAX_GIDS, 0);
	char text[INET6_ADDRSTRLEN];
	int here = 0;

	for (ssize_t i = 0; i < count; i++) {
		if (entries[i].port_num != port)
			continue;
		here++;
		inet_ntop(AF_INET6, entries[i].gid.raw, text, sizeof(text));
		printf("    GID %u is %s (%s).\n", entries[i].gid_index, text,
		       gid_type_text(entries[i].gid_type));
	}
	if (count < 0)
		printf("    Its GIDs cannot be read: %s.\n",
		       strerror((int)-count));
	else if (here == 0)
		advise(ADVICE_NEEDED, "ip addr add ADDRESS/24 dev INTERFACE",
		       "Port %u of %s has no GID: its network interface "
		       "needs an address.",
		       port, ibv_get_device_name(context->device));
}

/* Returns bytes; enum ibv_mtu is a code. */
static int mtu_of(enum ibv_mtu mtu)
{
	return 128 << mtu;
}

static void judge_port(struct ibv_context *context, uint8_t port,
		       const struct ibv_port_attr *attr)
{
	const char *name = ibv_get_device_name(context->device);
	bool is_ethernet = attr->link_layer == IBV_LINK_LAYER_ETHERNET;

	if (attr->state != IBV_PORT_ACTIVE)
		advise(ADVICE_NEEDED,
		       is_ethernet ? "ip link set INTERFACE up"
				   : "ibstat; systemctl start opensm",
		       "Port %u of %s is not active: %s.", port, name,
		       is_ethernet
			       ? "its network interface is down, or its cable"
			       : "a subnet manager brings it up, if its cable "
				 "is in");
	else if (is_ethernet && attr->active_mtu < attr->max_mtu &&
		 device_is_of_kernel(context->device))
		advise(ADVICE_SLOW, "ip link set INTERFACE mtu 4200",
		       "Port %u of %s sends packets of %d bytes and could "
		       "send %d: the MTU of its network interface decides, "
		       "here, at the peer and in between.",
		       port, name, mtu_of(attr->active_mtu),
		       mtu_of(attr->max_mtu));
}

static void print_port(struct ibv_context *context, uint8_t port)
{
	struct ibv_port_attr attr;
	int err = ibv_query_port(context, port, &attr);

	if (err) {
		printf("  Port %u does not answer: %s.\n", port, strerror(err));
		return;
	}
	printf("  Port %u is %s, its link layer %s, its MTU %d bytes.\n", port,
	       ibv_port_state_str(attr.state),
	       attr.link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet"
							  : "InfiniBand",
	       mtu_of(attr.active_mtu));
	judge_port(context, port, &attr);
	print_gids(context, port);
}

static void print_limits(struct ibv_context *context)
{
	struct ibv_device_attr attr;
	int err = ibv_query_device(context, &attr);

	if (err) {
		printf("  Its limits cannot be read: %s.\n", strerror(err));
		return;
	}
	printf("  Its firmware is %s, its vendor 0x%x, its part %u.\n",
	       attr.fw_ver[0] ? attr.fw_ver : "without a version",
	       attr.vendor_id, attr.vendor_part_id);
	printf("  A queue pair holds %d work requests, a CQ %d completions; "
	       "at most %d queue pairs and %d CQs.\n",
	       attr.max_qp_wr, attr.max_cqe, attr.max_qp, attr.max_cq);
	for (uint8_t port = 1; port <= attr.phys_port_cnt; port++)
		print_port(context, port);
}

static void judge_place(const struct ibv_device *device)
{
	char path[MAX_PATH];
	int node;

	snprintf(path, sizeof(path), "%s/device/numa_node", device->ibdev_path);
	node = machine_read_int(path, -1);
	if (node < 0 || machine_has_cpu_of_node(node))
		return;
	char command[MAX_PATH];
	snprintf(command, sizeof(command),
		 "numactl --cpunodebind=%d --membind=%d PROGRAM", node, node);
	advise(ADVICE_SLOW, command,
	       "Device %s sits on NUMA node %d, and this process may use no "
	       "CPU of it: each completion crosses between nodes.",
	       device->name, node);
}

static void print_open_error(const struct ibv_device *device, int err)
{
	char command[MAX_PATH];

	printf("  It cannot be opened: %s.\n", strerror(err));
	if (err == EACCES || err == EPERM) {
		snprintf(
			command, sizeof(command),
			"chmod a+rw /dev/infiniband/%s /dev/infiniband/rdma_cm",
			device->dev_name);
		advise(ADVICE_NEEDED, command,
		       "Device %s may not be opened by this user.",
		       device->name);
		return;
	}
	advise(ADVICE_NEEDED, "dmesg | tail",
	       "Device %s cannot be opened (%s): the kernel may have said why.",
	       device->name, strerror(err));
}

/* Prints a device; returns false if the device cannot be opened. */
static bool print_device(struct ibv_device *device)
{
	struct ibv_context *context = ibv_open_device(device);
	int err = errno;
	const char *kind = "in user space, for the processes of one user";

	if (device_is_of_kernel(device))
		kind = is_hardware(device) ? "hardware" : "software";
	printf("Device %s speaks %s; it is %s.\n", ibv_get_device_name(device),
	       transport_text(device), kind);
	if (!context) {
		print_open_error(device, err);
		return false;
	}
	print_limits(context);
	judge_place(device);
	ibv_close_device(context);
	return true;
}

static void advise_no_device(bool has_module)
{
	char command[MAX_PATH];

	if (!has_module)
		advise(ADVICE_NEEDED, "modprobe -a ib_uverbs rdma_ucm",
		       "The kernel offers no RDMA: its modules are not loaded, "
		       "or this is a container and they are its host's.");
	snprintf(command, sizeof(command),
		 "modprobe rdma_rxe && rdma link add rxe0 type rxe netdev %s",
		 machine_interface());
	advise(ADVICE_NEEDED, command,
	       "There is no RDMA device. The kernel can make one of a network "
	       "interface, in software (Soft-RoCE):");
	advise(ADVICE_NEEDED, "LD_PRELOAD=librpma_loopback.so PROGRAM",
	       "Or both ends run on this machine, on the loopback device, "
	       "which is software:");
	advise(ADVICE_NEEDED, "apt install ibverbs-providers",
	       "Or there is a device, and the library of its make is missing "
	       "(does /sys/class/infiniband list one?):");
}

int device_print_all(bool *is_of_kernel)
{
	int count = 0, opened = 0;
	struct ibv_device **list = ibv_get_device_list(&count);
	bool has_module = list || errno != ENOSYS;

	if (!list && has_module)
		printf("RDMA devices cannot be listed: %s.\n", strerror(errno));
	else if (count == 0)
		printf("There is no RDMA device%s.\n",
		       has_module ? ""
				  : ": this kernel offers none (its module "
				    "ib_uverbs is not loaded)");
	*is_of_kernel = false;
	for (int i = 0; i < count; i++) {
		opened += print_device(list[i]);
		*is_of_kernel |= device_is_of_kernel(list[i]);
	}
	if (count == 0)
		advise_no_device(has_module);
	if (list)
		ibv_free_device_list(list);
	return opened;
}
