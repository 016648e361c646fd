/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * nth.c -- the nth call fails. A life of the runtime, from new to delete with
 * two connections between, is run once for every allocation of either library
 * and for every verb, and the call fails, on the calling thread. The life ends
 * without help: with a documented error, or with CLOSED of a connection; each
 * accepted work request has had exactly one completion; nothing is left; and
 * the next life is a whole life. Loopback device, linked.
 *
 * usage: runtime_nth [closed | stopped | manual | shared | futures | shards]
 */

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "nth_life.h"

#define MOST 24 /* calls of a frequent verb that fail in turn */

/* ---- the allocator of the libraries: relaxed, counters only ---- */

static _Atomic int live;
static _Atomic unsigned calls;
static _Atomic unsigned failing; /* the failing allocation; 0: no failure */
static _Atomic unsigned failures;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void __real_free(void *memory);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void __wrap_free(void *memory);

static bool is_failing(void)
{
	/* relaxed: a count */
	unsigned call =
		atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed) + 1;

	/* relaxed: set while no other thread runs */
	if (call != atomic_load_explicit(&failing, memory_order_relaxed))
		return false;
	/* relaxed: a count */
	atomic_fetch_add_explicit(&failures, 1, memory_order_relaxed);
	errno = ENOMEM;
	return true;
}

static void *counted(void *memory)
{
	if (memory != NULL)
		/* relaxed: a count */
		atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
	return memory;
}

void *__wrap_malloc(size_t size)
{
	return is_failing() ? NULL : counted(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size)
{
	return is_failing() ? NULL : counted(__real_calloc(count, size));
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	return is_failing() ? NULL
			    : counted(__real_aligned_alloc(alignment, size));
}

void *__wrap_realloc(void *memory, size_t size)
{
	if (is_failing())
		return NULL;
	return memory ? __real_realloc(memory, size)
		      : counted(__real_realloc(memory, size));
}

void __wrap_free(void *memory)
{
	if (memory != NULL)
		/* relaxed: a count */
		atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
	__real_free(memory);
}

static int before; /* allocations of life_open() */

static int count_live(void)
{
	/* relaxed: the counting threads were joined */
	return atomic_load_explicit(&live, memory_order_relaxed) - before;
}

/* ---- possible failures ---- */

/* Acknowledging is left out: an acknowledgement does not fail, and with a
 * missing acknowledgement destroying would wait for ever on any device. */
static const char *const verbs[] = {
	"ibv_query_device",
	"ibv_create_comp_channel",
	"ibv_destroy_comp_channel",
	"ibv_create_cq",
	"ibv_destroy_cq",
	"ibv_poll_cq",
	"ibv_req_notify_cq",
	"ibv_get_cq_event",
	"ibv_get_async_event",
	"ibv_create_srq",
	"ibv_destroy_srq",
	"ibv_modify_srq",
	"ibv_post_srq_recv",
	"ibv_create_qp",
	"ibv_destroy_qp",
	"ibv_modify_qp",
	"ibv_post_send",
	"ibv_post_recv",
	"rdma_create_event_channel",
	"rdma_create_id",
	"rdma_destroy_id",
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
	"rdma_getaddrinfo",
};

#define VERBS (sizeof(verbs) / sizeof(verbs[0]))

/* Returns true if a failure leaves the object for ever, as on any device. */
static bool is_destroying(const char *verb)
{
	return strstr(verb, "_destroy_") != NULL;
}

#ifdef __SANITIZE_ADDRESS__
/* Memory of objects that the device did not destroy, and the channel of a
 * remaining CQ: no leaks of the libraries. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:lb_cm_id_new\nleak:lb_cm_route_publish\n"
	       "leak:rpma_channel_new\n";
}
#endif

static int open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	CHECK(dir != NULL);
	while (readdir(dir) != NULL)
		count++;
	closedir(dir);
	return count;
}

static _Noreturn void fail(const char *life, const char *what, unsigned n,
			   const char *how, int number)
{
	fprintf(stderr, "%s: %s %u fails: %s: %d\n", life, what, n, how,
		number);
	abort();
}

static void expect_whole(const struct life *life, const char *what, unsigned n)
{
	int ret = life_live(life);

	if (ret)
		fail(life->name, what, n, "the next life: error", ret);
	if (count_live() != 0)
		fail(life->name, what, n, "the next life: pieces left",
		     count_live());
}

static bool is_documented(int ret)
{
	return ret == 0 || ret == LIFE_CLOSED || ret == RPMA_E_NOMEM ||
	       ret == RPMA_E_PROVIDER;
}

static unsigned fail_allocations(const struct life *life)
{
	unsigned n;
	int files;
	int ret;

	for (n = 1;; n++) {
		files = open_files();
		life_trouble = "an allocation fails";
		/* relaxed: no other thread runs */
		atomic_store_explicit(&calls, 0, memory_order_relaxed);
		atomic_store_explicit(&failures, 0, memory_order_relaxed);
		atomic_store_explicit(&failing, n, memory_order_relaxed);
		ret = life_live(life);
		/* relaxed: likewise */
		atomic_store_explicit(&failing, 0, memory_order_relaxed);
		if (atomic_load_explicit(&failures, memory_order_relaxed) == 0)
			return n - 1;
		if (!is_documented(ret) || ret == RPMA_E_PROVIDER)
			fail(life->name, "allocation", n, "error", ret);
		if (count_live() != 0)
			fail(life->name, "allocation", n, "pieces left",
			     count_live());
		if (open_files() != files)
			fail(life->name, "allocation", n, "files left",
			     open_files() - files);
		expect_whole(life, "allocation", n);
	}
}

static unsigned fail_verb(const struct life *life, const char *verb,
			  const char *err)
{
	bool destroying = is_destroying(verb);
	char rule[128];
	unsigned n;
	int files;
	int ret;

	for (n = 1; n <= MOST; n++) {
		files = open_files();
		life_trouble = rule;
		snprintf(rule, sizeof(rule), "call:verb=%s,nth=%u,errno=%s",
			 verb, n, err);
		CHECK(rpma_loopback_fault(rule) == 0);
		ret = life_live(life);
		if (rpma_loopback_fault_count() == 0)
			break;
		rpma_loopback_fault_clear();
		if (!is_documented(ret))
			fail(life->name, rule, n, "error", ret);
		if (destroying)
			before += count_live();
		if (count_live() != 0)
			fail(life->name, rule, n, "pieces left", count_live());
		if (!destroying && open_files() != files)
			fail(life->name, rule, n, "files left",
			     open_files() - files);
		expect_whole(life, rule, n);
	}
	rpma_loopback_fault_clear();
	return n - 1;
}

/* Trouble from a device, a kernel or a peer in a life that ends well all the
 * same, or breaks off; never an object left, or a completion too few or too
 * many. */
static const char *const troubles[] = {
	"knob:spurious=2",
	"event:of=cq,action=double",
	"event:of=cq,action=late,delay_us=1000",
	"event:of=cm.established,action=late,delay_us=2000",
	"event:of=cm.established,action=double",
	"event:of=cm.disconnected,action=double",
	"event:of=cm.disconnected,action=drop",
	"event:of=cm.msg_rep,action=late,delay_us=2000",
	("call:verb=rdma_destroy_id,nth=1;"
	 "event:of=cm.disconnected,action=late,delay_us=500"),
	"wr:op=any,nth=1,status=rem_op_err",
	"wr:op=any,nth=2,status=rem_op_err",
	"wr:op=any,nth=1,status=rem_op_err,when=after",
	"wr:op=send,nth=1,rnr=3",
	"wr:op=any,delay_us=1000",
};

#define TROUBLES (sizeof(troubles) / sizeof(troubles[0]))

static void each_trouble__nothing_lost(const struct life *life)
{
	size_t i;
	int ret;

	for (i = 0; i < TROUBLES; i++) {
		life_trouble = troubles[i];
		CHECK(rpma_loopback_fault(troubles[i]) == 0);
		ret = life_live(life);
		rpma_loopback_fault_clear();
		if (!is_documented(ret))
			fail(life->name, troubles[i], 1, "error", ret);
		if (count_live() != 0)
			fail(life->name, troubles[i], 1, "pieces left",
			     count_live());
		expect_whole(life, troubles[i], 1);
	}
}

/*
 * The asynchronous events are there and cannot be read: the thread does not try
 * for ever.
 */
static void device_gone__not_read_for_ever(const struct life *life)
{
	life_trouble = "asynchronous events cannot be read";
	CHECK(rpma_loopback_fault("call:verb=ibv_get_async_event") == 0);
	life_raise();
	CHECK(life_live(life) == 0);
	CHECK(rpma_loopback_fault_count() > 0);
	CHECK(rpma_loopback_fault_count() < 200);
	rpma_loopback_fault_clear();
	expect_whole(life, life_trouble, 1);
}

static void each_call__FAILS_ONCE(const struct life *life)
{
	unsigned verb_calls = 0;
	unsigned allocations;
	size_t i;

	/* blocks of futures, and places where threads wait for futures, stay in
	 * the process for the next ones */
	if (life->live != NULL) {
		MUST(life_live(life));
		before += count_live();
	}
	/* whole, twice: afterwards everything made once for the process
	 * exists */
	expect_whole(life, "nothing", 0);
	expect_whole(life, "nothing", 0);
	allocations = fail_allocations(life);
	for (i = 0; i < VERBS; i++) {
		verb_calls += fail_verb(life, verbs[i], "EIO");
		(void)fail_verb(life, verbs[i], "ENOMEM");
	}
	printf("%s: %u allocations, %u calls of verbs\n", life->name,
	       allocations, verb_calls);
	/* a life that calls nothing tests nothing */
	CHECK(allocations > 0 && (verb_calls > 20 || life->live != NULL));
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

int main(int argc, char **argv)
{
	size_t i;

	MUST(rpma_log_set_function(silence));
	life_open();
	before = count_live();
	for (i = 0; lives[i].name != NULL; i++) {
		if (argc > 1 && strcmp(argv[1], lives[i].name) != 0)
			continue;
		each_call__FAILS_ONCE(&lives[i]);
		each_trouble__nothing_lost(&lives[i]);
		if (lives[i].live == NULL)
			device_gone__not_read_for_ever(&lives[i]);
	}
	return 0;
}
