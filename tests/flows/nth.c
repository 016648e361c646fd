/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The nth call fails. Each flow is run once for every call of the flow: of the
 * library to the allocator, and of any code to a verb; the call fails. The flow
 * ends with the error of the call, frees everything without waiting, and runs
 * through right after.
 */

#include <dirent.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <rpma_loopback.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#include "nth.h"

/* ---- the allocator of the library ---- */

static int live;	  /* allocations of the library */
static unsigned calls;	  /* since the last arming */
static unsigned failing;  /* the failing allocation; 0: no failure */
static unsigned failures; /* how many have */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void __real_free(void *memory);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void __wrap_free(void *memory);

static bool is_failing(void)
{
	if (++calls != failing)
		return false;
	failures++;
	errno = ENOMEM;
	return true;
}

void *__wrap_malloc(size_t size)
{
	if (is_failing())
		return NULL;
	live++;
	return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	if (is_failing())
		return NULL;
	live++;
	return __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
	if (is_failing())
		return NULL;
	live += memory == NULL;
	return __real_realloc(memory, size);
}

void __wrap_free(void *memory)
{
	live -= memory != NULL;
	__real_free(memory);
}

/* ---- possible failures ---- */

/*
 * Without rdma_ack_cm_event: the call fails only without an event, and after a
 * failure with an event, destroying the id would wait for ever on any device.
 */
static const char *const verbs[] = {
	"ibv_query_device",
	"ibv_alloc_pd",
	"ibv_dealloc_pd",
	"ibv_reg_mr",
	"ibv_dereg_mr",
	"ibv_create_comp_channel",
	"ibv_destroy_comp_channel",
	"ibv_create_cq",
	"ibv_destroy_cq",
	"ibv_poll_cq",
	"ibv_req_notify_cq",
	"ibv_get_cq_event",
	"ibv_create_srq",
	"ibv_destroy_srq",
	"ibv_post_srq_recv",
	"ibv_create_qp",
	"ibv_modify_qp",
	"ibv_post_send",
	"ibv_post_recv",
	"rdma_create_event_channel",
	"rdma_create_id",
	"rdma_destroy_id",
	"rdma_migrate_id",
	"rdma_bind_addr",
	"rdma_resolve_addr",
	"rdma_resolve_route",
	"rdma_listen",
	"rdma_connect",
	"rdma_accept",
	"rdma_reject",
	"rdma_disconnect",
	"rdma_get_cm_event",
	"rdma_create_qp",
	"rdma_set_option",
	"rdma_getaddrinfo",
};
#define VERBS (sizeof(verbs) / sizeof(verbs[0]))

/* Returns true if a failure leaves the object for ever, as on any device. */
static bool is_destroying(const char *verb)
{
	return strstr(verb, "_destroy_") || strstr(verb, "_de");
}

/*
 * Some failures change nothing for the caller: the connection exists although
 * its RNR timer was not set, the device of an address although the id used to
 * find the device was not destroyed.
 */
static bool is_tolerated(const char *verb)
{
	return strcmp(verb, "ibv_modify_qp") == 0 ||
	       strcmp(verb, "rdma_destroy_id") == 0;
}

/* Memory of objects that the device did not destroy is no leak of librpma. */
static void forgive_leaks(bool forgiven)
{
#ifdef __SANITIZE_ADDRESS__
	if (forgiven)
		__lsan_disable();
	else
		__lsan_enable();
#else
	(void)forgiven;
#endif
}

static int run_forgiven(const struct flow *flow)
{
	int ret;

	forgive_leaks(true);
	ret = flow_run(flow);
	forgive_leaks(false);
	return ret;
}

/* But for sockets, which the device has: a name for some ports at a time. */
static int open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	int count = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		char to[32] = "";

		if (readlinkat(dirfd(dir), entry->d_name, to, sizeof(to) - 1) <
			    0 ||
		    strncmp(to, "socket:", 7) != 0)
			count++;
	}
	closedir(dir);
	return count;
}

static void expect_untouched(const struct flow *flow)
{
	int ret;

	ret = flow_run(flow);
	if (ret)
		print_error("%s, right after: %s\n", flow->name,
			    rpma_err_2str(ret));
	assert_int_equal(ret, 0);
	assert_int_equal(live, 0);
}

/* Runs the flow for each call of the verb, with the errno. */
static unsigned fail_verb(const struct flow *flow, const char *verb,
			  const char *err)
{
	bool destroying = is_destroying(verb);
	char rule[128];
	unsigned n;

	for (n = 1;; n++) {
		int files = open_files();
		int ret;

		snprintf(rule, sizeof(rule), "call:verb=%s,nth=%u,errno=%s",
			 verb, n, err);
		assert_int_equal(rpma_loopback_fault(rule), 0);
		ret = destroying ? run_forgiven(flow) : flow_run(flow);
		if (rpma_loopback_fault_count() == 0)
			break;
		rpma_loopback_fault_clear();
		if (!flow_is_documented(ret, err) &&
		    !(ret == 0 && is_tolerated(verb)))
			fail_msg("%s: %s: %s", flow->name, rule,
				 rpma_err_2str(ret));
		if (!destroying && open_files() != files)
			fail_msg("%s: %s: %d files are left", flow->name, rule,
				 open_files() - files);
		/* a channel stays, and says so, while the channel has a CQ */
		if (live != 0 && !(flow_bury() && destroying))
			fail_msg("%s: %s: %d objects are left", flow->name,
				 rule, live);
		live = 0;
		expect_untouched(flow);
	}
	rpma_loopback_fault_clear();
	/* nothing failed in the last run */
	assert_int_equal(live, 0);
	return n - 1;
}

static unsigned fail_malloc(const struct flow *flow)
{
	unsigned n;

	for (n = 1;; n++) {
		int files = open_files();
		int ret;

		calls = 0;
		failures = 0;
		failing = n;
		ret = flow_run(flow);
		failing = 0;
		if (failures == 0)
			break;
		if (ret != RPMA_E_NOMEM)
			fail_msg("%s: allocation %u fails: %s", flow->name, n,
				 rpma_err_2str(ret));
		if (live != 0 || open_files() != files)
			fail_msg("%s: allocation %u fails: %d objects, %d "
				 "files are left",
				 flow->name, n, live, open_files() - files);
		expect_untouched(flow);
	}
	return n - 1;
}

static void each_call__FAILS_ONCE(void **state)
{
	const struct flow *flow = *state;
	unsigned verb_calls = 0;
	unsigned allocations;
	size_t i;

	expect_untouched(flow);
	allocations = fail_malloc(flow);
	for (i = 0; i < VERBS; i++) {
		verb_calls += fail_verb(flow, verbs[i], "EIO");
		(void)fail_verb(flow, verbs[i], "ENOMEM");
	}
	print_message("%s: %u allocations, %u calls of verbs\n", flow->name,
		      allocations, verb_calls);
	/* a flow that calls nothing tests nothing */
	assert_true(allocations > 0 && verb_calls > 20);
}

static void silence(enum rpma_log_level level, const char *file_name,
		    const int line_no, const char *function_name,
		    const char *message_format, ...)
{
	(void)level;
	(void)file_name;
	(void)line_no;
	(void)function_name;
	(void)message_format;
}

int main(void)
{
	struct CMUnitTest tests[FLOWS_MAX];
	size_t count;

	(void)rpma_log_set_function(silence);
	for (count = 0; flows[count].name; count++)
		tests[count] = (struct CMUnitTest){
			.name = flows[count].name,
			.test_func = each_call__FAILS_ONCE,
			.initial_state = (void *)&flows[count],
		};
	return _cmocka_run_group_tests("each_call__FAILS_ONCE", tests, count,
				       NULL, NULL);
}
