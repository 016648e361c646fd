/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * config.c -- the settings, from the environment at the first use of the device
 * and by calls afterwards; what the device does at a fork. Any thread.
 */

#include "verbs/config.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/opener.h"
#include "base/process.h"
#include "base/random.h"
#include "base/service.h"
#include "base/turn.h"
#include "capture/file.h"
#include "cq/channel.h"
#include "cq/cq.h"
#include "exec/inbound.h"
#include "exec/thread.h"
#include "fault/fault.h"
#include "memory/barrier.h"
#include "memory/mr.h"
#include "memory/power.h"
#include "object/device.h"
#include "object/limits.h"
#include "qp/mcast.h"
#include "qp/number.h"
#include "qp/qp.h"
#include "qp/srq.h"
#include "rpma_loopback.h"
#include "verbs/stats.h"
#include "wire/nic.h"
#include "wire/socket.h"

#define DEFAULT_SEED 1

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* --- the environment */

/* The index of the variable's value in names, or 0 and a message. */
static int env_choice(const char *var, const char *const names[])
{
	const char *value = getenv(var);
	int i;

	if (!value)
		return 0;
	for (i = 0; names[i]; i++) {
		if (!strcmp(value, names[i]))
			return i;
	}
	fprintf(stderr, "loopback: %s=%s: known are", var, value);
	for (i = 0; names[i]; i++)
		fprintf(stderr, " %s", names[i]);
	fprintf(stderr, "; using %s\n", names[0]);
	return 0;
}

static uint64_t env_number(const char *var, uint64_t def, uint64_t max)
{
	const char *value = getenv(var);
	char *end;
	uint64_t n;

	if (!value)
		return def;
	errno = 0;
	n = strtoull(value, &end, 0);
	if (!errno && end != value && !*end && n <= max)
		return n;
	fprintf(stderr,
		"loopback: %s=%s: want a number up to %llu; using %llu\n", var,
		value, (unsigned long long)max, (unsigned long long)def);
	return def;
}

/* --- fork: a child may open devices of its own, not use its parent's */

static void fork_step(enum lb_fork_step step)
{
	if (step == LB_FORK_BEFORE)
		pthread_mutex_lock(&lb.big);
	lb_nic_fork(step);
	lb_service_fork(step);
	lb_thread_fork(step);
	lb_qp_number_fork(step);
	lb_qp_fork(step);
	lb_mcast_fork(step);
	lb_srq_fork(step);
	lb_channel_fork(step);
	lb_cq_fork(step);
	lb_mr_fork(step);
	lb_power_fork(step);
	lb_device_fork(step);
	lb_fault_fork(step);
	lb_barrier_fork(step);
	lb_gid_fork(step);
	if (step != LB_FORK_BEFORE)
		pthread_mutex_unlock(&lb.big);
}

static void before_fork(void)
{
	fork_step(LB_FORK_BEFORE);
}

static void after_fork_parent(void)
{
	fork_step(LB_FORK_PARENT);
}

static void after_fork_child(void)
{
	fork_step(LB_FORK_CHILD);
	lb_stats_forked();
	lb_file_forked();
}

/* A poll waits for the progress thread, if that executes. */
static void set_mode(int mode)
{
	/* relaxed: read by posts that come after in some other order */
	int before =
		atomic_exchange_explicit(&lb.mode, mode, memory_order_relaxed);

	lb_turn_count_others((mode == RPMA_LOOPBACK_THREAD) -
			     (before == RPMA_LOOPBACK_THREAD));
}

/* The value is a number, or the path that rpma-loopback sets. */
static void start_stats(void)
{
	const char *value = getenv("RPMA_LOOPBACK_STATS");

	if (value && (*value == '/' || env_number("RPMA_LOOPBACK_STATS", 0, 1)))
		lb_stats_start(value);
}

static void start(void)
{
	static const char *const modes[] = {"inline", "thread", NULL};
	static const char *const stricts[] = {"off", "warn", "abort", NULL};
	const char *rules = getenv("RPMA_LOOPBACK_FAULT");
	const char *file = getenv("RPMA_LOOPBACK_PCAP");

	set_mode(env_choice("RPMA_LOOPBACK_MODE", modes));
	/* relaxed, all: pthread_once() publishes them */
	atomic_store_explicit(&lb.strict,
			      env_choice("RPMA_LOOPBACK_STRICT", stricts),
			      memory_order_relaxed);
	atomic_store_explicit(&lb.log,
			      (int)env_number("RPMA_LOOPBACK_LOG", 0, 9),
			      memory_order_relaxed);
	/* relaxed: as above */
	atomic_store_explicit(
		&lb.seed,
		env_number("RPMA_LOOPBACK_SEED", DEFAULT_SEED, UINT64_MAX),
		memory_order_relaxed);
	/* relaxed: as above */
	atomic_store_explicit(&lb_opener_counts,
			      env_number("RPMA_LOOPBACK_CREDENTIALS", 0, 1),
			      memory_order_relaxed);
	lb_device_count =
		(int)env_number("RPMA_LOOPBACK_DEVICES", 1, LB_MAX_DEVICES);
	lb_socket_set_network(
		(uint32_t)env_number("RPMA_LOOPBACK_NETWORK", 0, UINT32_MAX));
	lb_mr_start();
	lb_power_start(getenv("RPMA_LOOPBACK_POWER_FAIL"),
		       getenv("RPMA_LOOPBACK_PMEM"));
	lb_barrier_start();
	lb_device_start();
	lb_gid_start();
	lb_inbound_start();
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
	if (file && *file)
		lb_file_start(file);
	start_stats();
	if (rules)
		rpma_loopback_fault(rules);
}

void lb_config_start(void)
{
	pthread_once(&once, start);
}

/* --- the same by call */

LB_EXPORT void rpma_loopback_set_mode(enum rpma_loopback_mode mode)
{
	lb_config_start();
	set_mode((int)mode);
}

LB_EXPORT enum rpma_loopback_mode rpma_loopback_get_mode(void)
{
	lb_config_start();
	/* relaxed: an option */
	return (enum rpma_loopback_mode)atomic_load_explicit(
		&lb.mode, memory_order_relaxed);
}

LB_EXPORT void rpma_loopback_set_seed(uint64_t seed)
{
	lb_config_start();
	/* relaxed: whoever needs a repeatable run sets it while all is quiet */
	atomic_store_explicit(&lb.seed, seed, memory_order_relaxed);
	lb_random_restart();
}

LB_EXPORT uint64_t rpma_loopback_get_seed(void)
{
	lb_config_start();
	/* relaxed: an option */
	return atomic_load_explicit(&lb.seed, memory_order_relaxed);
}

LB_EXPORT void rpma_loopback_set_strict(enum rpma_loopback_strict strict)
{
	lb_config_start();
	/* relaxed: an option */
	atomic_store_explicit(&lb.strict, (int)strict, memory_order_relaxed);
}
