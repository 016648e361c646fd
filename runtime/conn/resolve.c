/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * resolve.c -- look-ups of names, and the addresses of a connection. Owns the
 * threads that run getaddrinfo(), and setup->resolve of an active connection to
 * a name: any thread makes the struct, then the control thread uses it.
 */

#define _GNU_SOURCE
#include "conn/resolve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <urcu/list.h>

#include "rpma_rt.h"
#include "base/clock.h"
#include "base/lang.h"
#include "base/log.h"
#include "base/runtime.h"
#include "base/thread.h"
#include "conn/conn.h"
#include "conn/reason.h"

/* --------------------------------------------------------------- lookup --- */

/*
 * Look-ups of names for all runtimes of the process: a short-lived thread runs
 * getaddrinfo() and sends the answer to the thread that asked. A look-up that
 * blocks delays neither another look-up nor the asker, and may outlive the
 * asker's runtime. One lock of the process is for the lists of look-ups that
 * run and that wait.
 */

/* look-ups that run at the same time in the process; more wait */
#define RT_LOOKUPS_MAX 16

enum state {
	NEW,
	WAITING, /* for its turn */
	RUNNING, /* the look-up's thread is in getaddrinfo() */
	SENT,	 /* the message is in the inbox */
	TAKEN	 /* answered() has run */
};

struct rt_lookup {
	/* under the lock */
	enum state state;
	struct cds_list_head link; /* WAITING, RUNNING */
	struct rt_inbox *inbox;	   /* NULL: deleted in RUNNING */
	/* written and read by the asker's thread; asker is NULL: deleted in
	 * SENT */
	void (*answered)(void *asker);
	void *asker;
	/* written by the look-up's thread, read from SENT on by the asker's */
	struct rt_msg msg;
	struct addrinfo *info;
	int err;
	int errnum;
	uint64_t over_ns;
	/* immutable */
	char *port; /* behind the name */
	char name[];
};

static struct {
	pthread_mutex_t lock;
	struct cds_list_head waiting; /* the oldest first */
	/* also keeps deleted look-ups in sight of leak checkers */
	struct cds_list_head running;
	int threads;
} lookups = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.waiting = CDS_LIST_HEAD_INIT(lookups.waiting),
	.running = CDS_LIST_HEAD_INIT(lookups.running),
};

static void lookup_free(struct rt_lookup *lookup)
{
	if (lookup->info != NULL)
		freeaddrinfo(lookup->info);
	free(lookup);
}

/* ----------------------------------------------- the thread of look-ups --- */

static void lookup_ask(struct rt_lookup *lookup)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};

	lookup->err =
		getaddrinfo(lookup->name, lookup->port, &hints, &lookup->info);
	lookup->errnum = errno;
	lookup->over_ns = rt_now_ns();
	if (lookup->err)
		lookup->info = NULL;
}

static void lookup_run_locked(struct rt_lookup *lookup)
{
	lookup->state = RUNNING;
	cds_list_add(&lookup->link, &lookups.running);
}

/* Sends the answer; returns the look-up whose turn comes, or NULL. */
static struct rt_lookup *lookup_finish(struct rt_lookup *lookup)
{
	struct rt_lookup *next = NULL;
	bool is_deleted;

	pthread_mutex_lock(&lookups.lock);
	cds_list_del(&lookup->link);
	is_deleted = lookup->inbox == NULL;
	if (!is_deleted) {
		lookup->state = SENT;
		/* under the lock: lookup_message() does not return, so inbox
		 * and bell do not go, before this thread has rung */
		rt_inbox_push_mt(lookup->inbox, &lookup->msg);
	}
	if (cds_list_empty(&lookups.waiting)) {
		lookups.threads--;
	} else {
		next = cds_list_first_entry(&lookups.waiting, struct rt_lookup,
					    link);
		cds_list_del(&next->link);
		lookup_run_locked(next);
	}
	pthread_mutex_unlock(&lookups.lock);
	if (is_deleted)
		lookup_free(lookup);
	return next;
}

static void *lookup_main(void *arg)
{
	struct rt_lookup *lookup = arg;

	while (lookup != NULL) {
		lookup_ask(lookup);
		lookup = lookup_finish(lookup);
	}
	return NULL;
}

/* ------------------------------------------------------------ the asker --- */

static void lookup_message(struct rt_msg *msg, void *owner)
{
	struct rt_lookup *lookup = RT_FROM(struct rt_lookup, msg, msg);

	(void)owner;
	pthread_mutex_lock(&lookups.lock);
	lookup->state = TAKEN;
	pthread_mutex_unlock(&lookups.lock);
	if (lookup->asker == NULL)
		lookup_free(lookup);
	else
		lookup->answered(lookup->asker);
}

/* Returns a look-up of that name and port, or NULL without memory. */
static struct rt_lookup *rt_lookup_new(const char *name, const char *port)
{
	size_t name_size = strlen(name) + 1;
	size_t port_size = strlen(port) + 1;
	struct rt_lookup *lookup;

	lookup = calloc(1, sizeof(*lookup) + name_size + port_size);
	if (lookup == NULL)
		return NULL;
	lookup->port = lookup->name + name_size;
	memcpy(lookup->name, name, name_size);
	memcpy(lookup->port, port, port_size);
	lookup->msg.fn = lookup_message;
	return lookup;
}

/* Not joined: the thread may be in getaddrinfo() when the runtime is gone. */
static int lookup_start_locked(struct rt_lookup *lookup)
{
	pthread_t thread;
	int ret;

	lookup_run_locked(lookup);
	ret = rt_spawn(&thread, "rt-name", RPMA_RT_CPU_ANY, lookup_main,
		       lookup);
	if (ret) {
		cds_list_del(&lookup->link);
		lookup->state = NEW;
		return ret;
	}
	pthread_detach(thread);
	lookups.threads++;
	return 0;
}

/*
 * Begins the look-up, or lets the look-up wait for its turn. answered(asker)
 * runs in the inbox when the look-up is over, unless the look-up is deleted
 * before. The caller is the owner of the inbox.
 * ERRORS: RPMA_E_PROVIDER with errno, not logged: no thread could be started
 */
static int rt_lookup_begin(struct rt_lookup *lookup, struct rt_inbox *inbox,
			   void (*answered)(void *asker), void *asker)
{
	int ret = 0;

	lookup->inbox = inbox;
	lookup->answered = answered;
	lookup->asker = asker;
	pthread_mutex_lock(&lookups.lock);
	if (lookups.threads < RT_LOOKUPS_MAX) {
		ret = lookup_start_locked(lookup);
	} else {
		lookup->state = WAITING;
		cds_list_add_tail(&lookup->link, &lookups.waiting);
	}
	pthread_mutex_unlock(&lookups.lock);
	return ret;
}

/* Deletes the look-up in any state, without waiting for the name server. The
 * caller is the owner of the inbox, unless the look-up was not begun or
 * answered() has run. */
static void rt_lookup_delete(struct rt_lookup *lookup)
{
	enum state state;

	pthread_mutex_lock(&lookups.lock);
	state = lookup->state;
	if (state == WAITING)
		cds_list_del(&lookup->link);
	/* RUNNING: the look-up's thread frees from here on */
	lookup->inbox = NULL;
	if (state == SENT)
		lookup->asker = NULL; /* lookup_message() frees */
	pthread_mutex_unlock(&lookups.lock);
	if (state == NEW || state == WAITING || state == TAKEN)
		lookup_free(lookup);
}

/* Returns whether the look-up waits for the end of others. */
static bool rt_lookup_is_waiting(const struct rt_lookup *lookup)
{
	bool is_waiting;

	pthread_mutex_lock(&lookups.lock);
	is_waiting = lookup->state == WAITING;
	pthread_mutex_unlock(&lookups.lock);
	return is_waiting;
}

void rt_lookup_forked(void)
{
	pthread_mutex_init(&lookups.lock, NULL);
	CDS_INIT_LIST_HEAD(&lookups.waiting);
	lookups.threads = 0;
}

/* ---------------------------------------- the addresses of a connection --- */

#define MS_NS UINT64_C(1000000)

/* setup->resolve */
struct rt_resolve {
	struct rpma_rt_conn *conn;
	void (*over)(struct rpma_rt_conn *conn, enum rpma_rt_reason reason,
		     int err);
	struct rt_lookup *lookup;    /* NULL: given up */
	struct rt_timer limit;	     /* set while the look-up goes on */
	uint64_t until_ns;	     /* the limit of all that follows */
	bool is_over;		     /* the look-up is */
	const struct addrinfo *next; /* not tried yet */
	uint64_t left_ns;	     /* of the limit, when since_ns was */
	uint64_t since_ns;
};

/* -------------------------------------------------------------- numbers --- */

/* As in getaddrinfo(): also "127.1", and no blank behind the number. */
static bool resolve_is_ipv4(const char *addr)
{
	struct in_addr bytes;

	return addr[strspn(addr, "0123456789abcdefABCDEFxX.")] == '\0' &&
	       inet_aton(addr, &bytes) == 1;
}

/* With or without a scope. */
static bool resolve_is_ipv6(const char *addr)
{
	char text[INET6_ADDRSTRLEN];
	size_t len = strcspn(addr, "%");
	struct in6_addr bytes;

	if (len >= sizeof(text))
		return false;
	memcpy(text, addr, len);
	text[len] = '\0';
	return inet_pton(AF_INET6, text, &bytes) == 1;
}

bool rt_resolve_is_numeric(const char *addr, const char *port)
{
	return port[0] != '\0' && port[strspn(port, "0123456789")] == '\0' &&
	       (resolve_is_ipv4(addr) || resolve_is_ipv6(addr));
}

int rt_resolve_check_port(const struct rt_log_place *place, const char *port)
{
	if (port[strspn(port, "0123456789")] != '\0' ||
	    strtoul(port, NULL, 10) <= UINT16_MAX)
		return 0;
	return rt_refuse(place, RPMA_E_INVAL,
			 "port is \"%s\", it may be 0..65535 or the name of a "
			 "service",
			 port);
}

/* -------------------------------------------------------------- look-up --- */

struct rt_resolve *rt_resolve_new(struct rpma_rt_conn *conn, const char *addr,
				  const char *port,
				  const struct rpma_conn_cfg *verbs)
{
	struct rt_resolve *resolve = calloc(1, sizeof(*resolve));
	int timeout_ms;

	if (resolve == NULL)
		return NULL;
	resolve->lookup = rt_lookup_new(addr, port);
	if (resolve->lookup == NULL) {
		free(resolve);
		return NULL;
	}
	rpma_conn_cfg_get_timeout(verbs, &timeout_ms);
	resolve->conn = conn;
	resolve->until_ns = rt_now_ns() + (uint64_t)timeout_ms * MS_NS;
	return resolve;
}

void rt_resolve_free(struct rt_resolve *resolve)
{
	if (resolve == NULL)
		return;
	if (resolve->lookup != NULL)
		rt_lookup_delete(resolve->lookup);
	free(resolve);
}

/* Logs the cause, which the death then does not log again. */
static void resolve_fail(struct rpma_rt_conn *conn, enum rpma_rt_reason reason,
			 int err, const char *why, const char *advice)
{
	struct rt_conn_setup *setup = conn->setup;

	RT_LOG_ERROR("there is no address for host \"%s\", port \"%s\": %s. %s",
		     setup->resolve->lookup->name, setup->port, why, advice);
	setup->addr[0] = '\0';
	setup->resolve->over(conn, reason, err);
}

static void resolve_time_over(struct rpma_rt_conn *conn)
{
	char why[128] = "the name server has not answered within timeout_ms";

	if (rt_lookup_is_waiting(conn->setup->resolve->lookup))
		snprintf(why, sizeof(why),
			 "timeout_ms has passed, and %d look-ups of this "
			 "process, the most at a time, have no answer",
			 RT_LOOKUPS_MAX);
	resolve_fail(conn, RPMA_RT_REASON_UNREACHABLE, ETIMEDOUT, why,
		     "Raise rpma_rt_conn_cfg.timeout_ms, or give an IP address "
		     "and a "
		     "port as numbers");
}

/* err: of getaddrinfo(). A want of memory and an errno are troubles of this
 * machine, and say nothing of the name. */
static void resolve_not_found(struct rpma_rt_conn *conn, int err, int errnum)
{
	enum rpma_rt_reason reason = RPMA_RT_REASON_UNREACHABLE;
	const char *why = gai_strerror(err);
	int detail = 0;
	char text[128];

	if (err == EAI_SYSTEM || err == EAI_MEMORY) {
		reason = RPMA_RT_REASON_FAILED;
		detail = err == EAI_MEMORY ? ENOMEM : errnum;
	}
	if (err == EAI_SYSTEM)
		why = strerror_r(errnum, text, sizeof(text));
	resolve_fail(
		conn, reason, detail, why,
		"Give a name that the resolver knows, or an IP address, and a "
		"port");
}

/* ------------------------------------------------------------ addresses --- */

static int resolve_addr_text(const struct addrinfo *info, char *addr,
			     char *port)
{
	return getnameinfo(info->ai_addr, info->ai_addrlen, addr, RT_ADDR_SIZE,
			   port, port != NULL ? RT_PORT_SIZE : 0,
			   NI_NUMERICHOST | NI_NUMERICSERV);
}

int rt_resolve_wait(const struct rt_log_place *place, const char *name,
		    const char *service, char *addr, char *port)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct addrinfo *info;
	int err = getaddrinfo(name, service, &hints, &info);
	int errnum = errno;
	char text[128];

	if (err == 0) {
		err = resolve_addr_text(info, addr, port);
		errnum = errno;
		freeaddrinfo(info);
	}
	if (err == 0)
		return 0;
	return rt_refuse(place, RPMA_E_PROVIDER,
			 "there is no address for host \"%s\", port \"%s\": %s",
			 name, service,
			 err == EAI_SYSTEM
				 ? strerror_r(errnum, text, sizeof(text))
				 : gai_strerror(err));
}

static uint64_t resolve_addr_count(const struct addrinfo *info)
{
	uint64_t n = 0;

	for (; info != NULL; info = info->ai_next)
		n++;
	return n;
}

/* Puts the next address into the setup, and half of the address's share of the
 * time into the configuration: librpma limits two steps by the time-out, the
 * address and the route. Returns 0, or an error of getaddrinfo() without an
 * address. */
static int resolve_take_next(struct rt_resolve *resolve)
{
	struct rt_conn_setup *setup = resolve->conn->setup;
	const struct addrinfo *info = resolve->next;
	uint64_t now = rt_now_ns();
	uint64_t used = now - resolve->since_ns;
	uint64_t ms;

	if (info == NULL)
		return EAI_NONAME;
	resolve->left_ns -= used < resolve->left_ns ? used : resolve->left_ns;
	resolve->since_ns = now;
	ms = resolve->left_ns / MS_NS / 2 / resolve_addr_count(info);
	rpma_conn_cfg_set_timeout(setup->cfg, ms > 0 ? (int)ms : 1);
	resolve->next = info->ai_next;
	return resolve_addr_text(info, setup->addr, setup->port);
}

/* Returns whether the address leads to another device than the connection's. */
static bool resolve_is_elsewhere(const struct rpma_rt_conn *conn)
{
	struct rdma_cm_id *id;

	return conn->setup->req != NULL &&
	       rpma_conn_req_get_cm_id(conn->setup->req, &id) == 0 &&
	       id->verbs != NULL && id->verbs != conn->device->ibv_ctx;
}

/* Destroys the id of an address that failed. The id has no queue pair, and this
 * thread has acknowledged each event of the id. */
static void resolve_delete_request(struct rpma_rt_conn *conn)
{
	if (conn->setup->req != NULL && rpma_conn_req_delete(&conn->setup->req))
		rt_cm_keep_control(conn->device->cm, &conn->target);
}

/* Returns whether another address may be reached all the same. ENODEV: no RDMA
 * device leads to this address; EAFNOSUPPORT: the kernel has no such addresses.
 */
static bool resolve_is_of_address(const struct rpma_rt_conn *conn,
				  const struct rt_reason *why)
{
	return why->reason == RPMA_RT_REASON_UNREACHABLE ||
	       why->err == ENODEV || why->err == EAFNOSUPPORT ||
	       resolve_is_elsewhere(conn);
}

bool rt_resolve_next_control(struct rpma_rt_conn *conn,
			     const struct rt_reason *why)
{
	struct rt_resolve *resolve = conn->setup->resolve;

	if (resolve == NULL || resolve->next == NULL ||
	    !resolve_is_of_address(conn, why))
		return false;
	resolve_delete_request(conn);
	return resolve_take_next(resolve) == 0;
}

void rt_resolve_target(const struct rt_conn_setup *setup, char *text,
		       size_t size)
{
	const struct rt_resolve *resolve = setup->resolve;
	const struct addrinfo *info;
	const char *before = " (";
	char addr[RT_ADDR_SIZE];
	size_t len;

	if (resolve == NULL || !resolve->is_over) {
		snprintf(text, size, "%s", setup->addr);
		return;
	}
	snprintf(text, size, "%s", resolve->lookup->name);
	info = resolve->lookup->info;
	for (; info != resolve->next; info = info->ai_next) {
		len = strlen(text);
		if (resolve_addr_text(info, addr, NULL))
			continue;
		snprintf(text + len, size - len, "%s%s", before, addr);
		before = ", ";
	}
	len = strlen(text);
	snprintf(text + len, size - len, ")");
}

/* ------------------------------------------------- the way of a look-up --- */

/* The look-up is over. */
static void resolve_answered(void *asker)
{
	struct rpma_rt_conn *conn = asker;
	struct rt_resolve *resolve = conn->setup->resolve;
	const struct rt_lookup *lookup = resolve->lookup;
	int err = lookup->err;

	rt_thread_cancel_timer(&conn->device->control, &resolve->limit);
	resolve->is_over = true;
	if (err) {
		resolve_not_found(conn, err, lookup->errnum);
		return;
	}
	if (lookup->over_ns >= resolve->until_ns) {
		resolve_time_over(conn);
		return;
	}
	resolve->left_ns = resolve->until_ns - lookup->over_ns;
	resolve->since_ns = rt_now_ns();
	resolve->next = lookup->info;
	err = resolve_take_next(resolve);
	if (err)
		resolve_not_found(conn, err, errno);
	else
		resolve->over(conn, RPMA_RT_REASON_LOCAL, 0);
}

static void resolve_limit_due(struct rt_timer *timer)
{
	resolve_time_over(RT_FROM(struct rt_resolve, limit, timer)->conn);
}

void rt_resolve_begin_control(struct rpma_rt_conn *conn,
			      void (*over)(struct rpma_rt_conn *conn,
					   enum rpma_rt_reason reason, int err))
{
	struct rt_resolve *resolve = conn->setup->resolve;
	struct rt_thread *control = &conn->device->control;
	int err;

	resolve->over = over;
	if (rt_lookup_begin(resolve->lookup, &control->inbox, resolve_answered,
			    conn)) {
		err = errno;
		rt_refuse_forget();
		resolve_not_found(conn, EAI_SYSTEM, err);
		return;
	}
	resolve->limit.due = resolve_limit_due;
	rt_thread_set_timer(control, &resolve->limit, resolve->until_ns);
}

void rt_resolve_end_control(struct rpma_rt_conn *conn)
{
	struct rt_resolve *resolve = NULL;

	if (conn->setup != NULL) /* it is not established */
		resolve = conn->setup->resolve;
	if (resolve == NULL || resolve->is_over || resolve->lookup == NULL)
		return;
	rt_thread_cancel_timer(&conn->device->control, &resolve->limit);
	rt_lookup_delete(resolve->lookup);
	resolve->lookup = NULL;
}
