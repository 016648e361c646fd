/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * rpma-check: prints in sentences what an RDMA program finds on this machine,
 * then what is missing and what is slow, with commands to type. With --address
 * the program only prints the address that the examples would use. Status: 0 if
 * there is a device with an address, 1 if there is none.
 */

#include <stdio.h>
#include <string.h>

#include "../common/address.h"
#include "advice.h"
#include "device.h"
#include "machine.h"

#define MAX_ADDRESSES 64

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

static void check_machine(bool is_there, const struct address *first)
{
	bool is_of_kernel;
	int opened = device_print_all(&is_of_kernel);

	if (is_there)
		is_of_kernel = device_is_of_kernel(first->device->device);
	print_addresses();
	if (opened > 0 && !is_there)
		advise(ADVICE_NEEDED,
		       "rdma link; ip addr add ADDRESS/24 dev INTERFACE",
		       "No address of this machine leads to a device: give "
		       "one to the network interface of the device.");
	machine_judge_cm(is_of_kernel);
	machine_print_memlock(is_of_kernel);
	machine_print_cpus();
	if (is_there)
		printf("An example would use %s at %s.\n",
		       ibv_get_device_name(first->device->device), first->text);
	advice_print();
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
	check_machine(is_there, &first);
	return is_there ? 0 : 1;
}
