/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * rpma-check: prints in sentences what an RDMA program finds on this machine.
 * With --address it only prints the address that the examples would use.
 * Status: 0 there is a device with an address, 1 there is none.
 */

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include <arpa/inet.h>
#include <infiniband/verbs.h>

#include "../common/address.h"

#define MAX_ADDRESSES 64
#define MAX_GIDS      64
/* what a main job with its defaults registers, with room to spare */
#define ENOUGH_MEMLOCK (64ul << 20)

static const char *node_text(const struct ibv_device *device)
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

	for (ssize_t i = 0; i < count; i++) {
		if (entries[i].port_num != port)
			continue;
		inet_ntop(AF_INET6, entries[i].gid.raw, text, sizeof(text));
		printf("    GID %u is %s (%s).\n", entries[i].gid_index, text,
		       gid_type_text(entries[i].gid_type));
	}
	if (count == 0)
		printf("    It has no GID: give its network interface an "
		       "address.\n");
	if (count < 0)
		printf("    Its GIDs cannot be read: %s.\n",
		       strerror((int)-count));
}

static void print_port(struct ibv_context *context, uint8_t port)
{
	struct ibv_port_attr attr;
	int err = ibv_query_port(context, port, &attr);

	if (err) {
		printf("  Port %u does not answer: %s.\n", port, strerror(err));
		return;
	}
	printf("  Port %u is %s%s, its link layer %s.\n", port,
	       ibv_port_state_str(attr.state),
	       attr.state == IBV_PORT_ACTIVE ? "" : " and not usable so",
	       attr.link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet"
							  : "InfiniBand");
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
	printf("  A queue pair holds %d work requests, a CQ %d completions; "
	       "at most %d queue pairs and %d CQs.\n",
	       attr.max_qp_wr, attr.max_cqe, attr.max_qp, attr.max_cq);
	for (uint8_t port = 1; port <= attr.phys_port_cnt; port++)
		print_port(context, port);
}

static void print_device(struct ibv_device *device)
{
	struct ibv_context *context = ibv_open_device(device);
	const char *name = ibv_get_device_name(device);

	printf("Device %s speaks %s.\n", name, node_text(device));
	if (!context) {
		printf("  It cannot be opened: %s; may you read "
		       "/dev/infiniband?\n",
		       strerror(errno));
		return;
	}
	print_limits(context);
	ibv_close_device(context);
}

static void print_devices(void)
{
	int count = 0;
	struct ibv_device **list = ibv_get_device_list(&count);

	if (!list && errno == ENOSYS)
		printf("There is no RDMA device: this kernel offers none (its "
		       "module ib_uverbs is not loaded).\n");
	else if (!list)
		printf("RDMA devices cannot be listed: %s.\n", strerror(errno));
	else if (count == 0)
		printf("There is no RDMA device.\n");
	for (int i = 0; list && i < count; i++)
		print_device(list[i]);
	if (list)
		ibv_free_device_list(list);
}

static void print_addresses(void)
{
	struct address list[MAX_ADDRESSES];
	int count = address_list(list, MAX_ADDRESSES);

	for (int i = 0; i < count; i++)
		printf("Address %s (%s) leads to %s.\n", list[i].text,
		       list[i].interface,
		       list[i].device
			       ? ibv_get_device_name(list[i].device->device)
			       : "no RDMA device");
	if (count <= 0)
		printf("No network interface has an address.\n");
}

static void print_memlock(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit)) {
		printf("The limit of locked memory cannot be read: %s.\n",
		       strerror(errno));
		return;
	}
	if (limit.rlim_cur == RLIM_INFINITY)
		printf("Locked memory (RLIMIT_MEMLOCK) is not limited.\n");
	else
		printf("Locked memory (RLIMIT_MEMLOCK) is limited to %lu "
		       "KiB%s.\n",
		       (unsigned long)limit.rlim_cur >> 10,
		       limit.rlim_cur < ENOUGH_MEMLOCK
			       ? ", which a kernel's device may find too "
				 "little: raise it with ulimit -l"
			       : "");
}

static void print_cpus(void)
{
	cpu_set_t allowed;

	if (sched_getaffinity(0, sizeof(allowed), &allowed)) {
		printf("The CPUs allowed cannot be read: %s.\n",
		       strerror(errno));
		return;
	}
	printf("This process may use %d CPUs:", CPU_COUNT(&allowed));
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &allowed))
			printf(" %d", cpu);
	printf(".\n");
}

int main(int argc, char **argv)
{
	struct address first;
	bool is_there = address_first(&first);

	if (argc == 2 && strcmp(argv[1], "--address") == 0) {
		if (is_there)
			printf("%s\n", first.text);
		return is_there ? 0 : 1;
	}
	if (argc > 1) {
		fprintf(stderr, "usage: rpma-check [--address]\n");
		return 2;
	}
	print_devices();
	print_addresses();
	print_memlock();
	print_cpus();
	if (is_there)
		printf("An example would use %s at %s.\n",
		       ibv_get_device_name(first.device->device), first.text);
	return is_there ? 0 : 1;
}
