/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Finds the device under test by the address in RPMA_TEST_ADDR and opens it,
 * runs the group of tests and the setup and teardown of each. Runs in the
 * main thread.
 */

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "far.h"
#include "fixture.h"

#define DEFAULT_ADDR "127.0.0.1"
/* A test that hangs ends its process after so many seconds. */
#define WATCHDOG_S   600
#define EXIT_SKIPPED 77

struct device dut;

/* Counts the tests so far, and tests with an end in another process. */
static struct {
	unsigned tests;
	unsigned tests_split;
} done;

static bool is_address(const struct ibv_gid_entry *entry, in_addr_t addr)
{
	static const uint8_t v4_mapped[12] = {[10] = 0xff, [11] = 0xff};

	return entry->gid_type == IBV_GID_TYPE_ROCE_V2 &&
	       memcmp(entry->gid.raw, v4_mapped, sizeof(v4_mapped)) == 0 &&
	       memcmp(entry->gid.raw + 12, &addr, sizeof(addr)) == 0;
}

static bool find_gid(struct ibv_context *verbs)
{
	struct ibv_gid_entry entries[64];
	ssize_t n = ibv_query_gid_table(verbs, entries, 64, 0);

	for (ssize_t i = 0; i < n; ++i) {
		if (is_address(&entries[i], dut.addr.sin_addr.s_addr)) {
			dut.gid = entries[i].gid;
			dut.gid_index = (uint8_t)entries[i].gid_index;
			return true;
		}
	}
	return false;
}

static const struct traits *find_traits(const char *name)
{
	for (unsigned i = 0; i < device_traits_count; ++i) {
		const struct traits *t = &device_traits[i];

		if (strncmp(name, t->prefix, strlen(t->prefix)) == 0)
			return t;
	}
	return NULL;
}

static struct ibv_context *open_by_gid(void)
{
	struct ibv_context *found = NULL;
	struct ibv_device **list = ibv_get_device_list(NULL);

	for (struct ibv_device **dev = list; list && *dev && !found; ++dev) {
		struct ibv_context *verbs = ibv_open_device(*dev);

		if (verbs && find_gid(verbs))
			found = verbs;
		else if (verbs)
			ibv_close_device(verbs);
	}
	if (list)
		ibv_free_device_list(list);
	return found;
}

static int open_device(void)
{
	const char *addr = getenv("RPMA_TEST_ADDR");
	const char *name;

	dut.addr.sin_family = AF_INET;
	if (!inet_aton(addr ? addr : DEFAULT_ADDR, &dut.addr.sin_addr)) {
		printf("SKIPPED: RPMA_TEST_ADDR=%s is no IPv4 address\n", addr);
		return -1;
	}
	dut.verbs = open_by_gid();
	if (!dut.verbs) {
		printf("SKIPPED: no RDMA device has the RoCE v2 address %s\n",
		       inet_ntoa(dut.addr.sin_addr));
		return -1;
	}
	name = ibv_get_device_name(dut.verbs->device);
	dut.traits = find_traits(name);
	if (!dut.traits) {
		printf("SKIPPED: traits.c knows nothing about %s\n", name);
		return -1;
	}
	if (ibv_query_device(dut.verbs, &dut.attr) ||
	    ibv_query_port(dut.verbs, 1, &dut.port)) {
		printf("SKIPPED: %s cannot be queried\n", name);
		return -1;
	}
	printf("device %s, address %s\n", name, inet_ntoa(dut.addr.sin_addr));
	return 0;
}

int fx_setup(void **state)
{
	(void)state;
	fx_split();
	alarm(WATCHDOG_S);
	return 0;
}

int fx_teardown(void **state)
{
	const char *name = *state;

	fx_release(0);
	alarm(0);
	done.tests++;
	if (fx_split())
		done.tests_split++;
	else if (far_context())
		printf("in one process: %s\n", name);
	return 0;
}

void fx_need(bool condition, const char *reason)
{
	if (condition)
		return;
	print_message("SKIPPED: %s\n", reason);
	skip();
}

/* A device of the kernel does what that kernel does; see traits.h. */
static bool is_older_than_group(const char *group)
{
	const char *const *name = dut.traits->groups_of_kernel;
	struct utsname kernel;
	int major;
	int minor;

	if (name == NULL || uname(&kernel) ||
	    sscanf(kernel.release, "%d.%d", &major, &minor) != 2 ||
	    major * 1000 + minor >= dut.traits->kernel)
		return false;
	while (*name != NULL && strcmp(*name, group) != 0)
		name++;
	if (*name == NULL)
		return false;
	printf("SKIPPED: %s is written for Linux %d.%d, this is %s\n", group,
	       dut.traits->kernel / 1000, dut.traits->kernel % 1000,
	       kernel.release);
	return true;
}

/* The tests, each with its name as its state. */
static int run(const char *group, const struct CMUnitTest *tests, size_t count)
{
	struct CMUnitTest *named = calloc(count, sizeof(*named));
	int failed;

	assert_non_null(named);
	for (size_t i = 0; i < count; ++i) {
		named[i] = tests[i];
		named[i].initial_state = (void *)(uintptr_t)tests[i].name;
	}
	failed = _cmocka_run_group_tests(group, named, count, NULL, NULL);
	if (far_context())
		printf("%u of %u tests had an end in another process\n",
		       done.tests_split, done.tests);
	free(named);
	return failed;
}

int fx_main(int argc, char **argv, const char *group,
	    const struct CMUnitTest *tests, size_t count)
{
	int failed;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (getenv("RPMA_TEST_SPLIT"))
		far_start();
	if (open_device())
		return EXIT_SKIPPED;
	if (is_older_than_group(group)) {
		ibv_close_device(dut.verbs);
		return EXIT_SKIPPED;
	}
	if (getenv("RPMA_TEST_SPLIT") &&
	    far_open(ibv_get_device_name(dut.verbs->device))) {
		printf("the other process cannot open the device\n");
		return EXIT_FAILURE;
	}
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	failed = run(group, tests, count);
	if (done.tests == 0) {
		printf("no test is called %s\n", argc > 1 ? argv[1] : group);
		failed = 1;
	}
	if (far_context() && argc == 1 && done.tests_split == 0) {
		printf("no test had an end in another process\n");
		failed = 1;
	}
	if (far_context() && (far_close() || far_end())) {
		printf("the other process has something left over\n");
		failed = 1;
	}
	if (ibv_close_device(dut.verbs)) {
		printf("the device could not be closed\n");
		failed = 1;
	}
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
