/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * lookup: a program that links to neither libibverbs nor librdmacm and looks
 * everything up.
 *   lookup names LIBRARY  for each line "name node" of stdin that is not there,
 *                         or leads to another library, a complaint
 *   lookup device         one device, behind both libraries and what is
 *                         preloaded; its words
 *   lookup refusals       what is refused, is so in words
 */

#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int complaints;

static void need(int ok, const char *what)
{
	if (ok)
		return;
	printf("%s\n", what);
	complaints++;
}

static void *open_library(const char *name)
{
	void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);

	if (library)
		return library;
	printf("%s\n", dlerror());
	exit(1);
}

static void check_name(void *library, const char *file, const char *name,
		       const char *node)
{
	void *at = dlvsym(library, name, node);
	Dl_info info;

	if (at && dladdr(at, &info) && strstr(info.dli_fname, file))
		return;
	printf("%s@%s: %s\n", name, node, at ? info.dli_fname : "not there");
	complaints++;
}

static void names(const char *file)
{
	void *library = open_library(file);
	char name[128], node[128];
	int n = 0;

	for (; scanf("%127s %127s", name, node) == 2; n++)
		check_name(library, file, name, node);
	need(n > 50, "hardly any names were given");
	printf("%d names\n", n);
}

/* A function of any type, as verbs has it. */
#define FIND(library, name)              \
	__typeof__(name) *found_##name = \
		(__typeof__(name) *)dlsym(library, #name)

#undef ibv_get_device_list

static void device(void)
{
	void *ib = open_library("libibverbs.so.1");
	void *cm = open_library("librdmacm.so.1");
	struct ibv_context **(*get)(int *) = (struct ibv_context * *(*)(int *))
		dlsym(cm, "rdma_get_devices");
	const char *(*event)(int) =
		(const char *(*)(int))dlsym(cm, "rdma_event_str");
	struct ibv_device **(*preloaded)(int *) =
		(struct ibv_device * *(*)(int *))
			dlsym(RTLD_DEFAULT, "ibv_get_device_list");
	struct ibv_device **list, **other;
	struct ibv_context *verbs, **all;

	FIND(ib, ibv_get_device_list);
	FIND(ib, ibv_open_device);
	FIND(ib, ibv_get_device_name);
	FIND(ib, ibv_wc_status_str);
	FIND(ib, ibv_rate_to_mbps);
	FIND(ib, mbps_to_ibv_rate);
	list = found_ibv_get_device_list(NULL);
	need(list && list[0], "no device");
	if (complaints)
		return;
	need(!strcmp(found_ibv_get_device_name(list[0]), "loop0"), "not loop0");
	verbs = found_ibv_open_device(list[0]);
	need(verbs && verbs->device == list[0], "is not opened");
	all = get(NULL);
	need(all && all[0]->device == list[0], "rdma_cm has another device");
	other = preloaded(NULL);
	need(other[0] == list[0], "another device is preloaded");
	need(!strcmp(event(0), "RDMA_CM_EVENT_ADDR_RESOLVED"), "event");
	need(!strcmp(found_ibv_wc_status_str(IBV_WC_SUCCESS), "success"),
	     "status");
	need(found_ibv_rate_to_mbps(IBV_RATE_40_GBPS) == 40000 &&
		     found_mbps_to_ibv_rate(40000) == IBV_RATE_40_GBPS,
	     "rates");
}

static void refusals(void)
{
	void *ib = open_library("libibverbs.so.1");
	void *cm = open_library("librdmacm.so.1");
	int (*inside)(void) = (int (*)(void))dlsym(ib, "ibv_cmd_create_qp");
	void *(*old)(void *) =
		(void *(*)(void *))dlvsym(ib, "ibv_open_device", "IBVERBS_1.0");
	void (*provider)(void) =
		(void (*)(void))dlsym(ib, "verbs_register_driver_34");
	int (*rsocket)(int, int, int) =
		(int (*)(int, int, int))dlsym(cm, "rsocket");
	int (*rbind)(void) = (int (*)(void))dlsym(cm, "rbind");

	need(inside() == EOPNOTSUPP && errno == EOPNOTSUPP, "inside");
	inside(); /* says nothing more */
	errno = 0;
	need(!old(NULL) && errno == EOPNOTSUPP, "old");
	need(rsocket(2, 1, 0) == -1 && errno == EOPNOTSUPP, "rsocket");
	errno = 0;
	need(rbind() == -1 && errno == EOPNOTSUPP, "rbind");
	provider();
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "names"))
		names(argv[2]);
	else if (argc == 2 && !strcmp(argv[1], "device"))
		device();
	else if (argc == 2 && !strcmp(argv[1], "refusals"))
		refusals();
	else
		return 2;
	return complaints != 0;
}
