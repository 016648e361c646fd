/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * fault.c -- the rules by which the device fails on purpose, and the knobs.
 * Rules are a short list under a mutex of its own; one word says whether there
 * is any rule, and a call without faults reads only that word.
 */

#include "fault/fault.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/log.h"
#include "base/random.h"
#include "fault/rule.h"
#include "rpma_loopback.h"

#define MAX_RULES 64

_Atomic uint32_t lb_fault_count; /* number of rules but those of links */
_Atomic uint32_t lb_fault_links; /* number of those */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct lb_rule rules[MAX_RULES];
static uint32_t nrules;
static uint64_t total;
static _Atomic uint32_t knobs[LB_KNOBS];

/* --- the list; lock held */

static void set_knob(enum lb_fault_knob knob, uint32_t value)
{
	/* relaxed: an option */
	atomic_store_explicit(&knobs[knob], value, memory_order_relaxed);
}

/* relaxed, both: a call that reads 0 applies no rule, also if a rule was just
 * added; other calls read the rules under the lock */
static void set_counts(uint32_t others, uint32_t links)
{
	atomic_store_explicit(&lb_fault_count, others, memory_order_relaxed);
	atomic_store_explicit(&lb_fault_links, links, memory_order_relaxed);
}

static void add_rules(const struct lb_rule *parsed, uint32_t n)
{
	uint32_t i, links = 0;

	for (i = 0; i < n; i++) {
		if (parsed[i].kind == LB_FAULT_KNOB)
			set_knob((enum lb_fault_knob)parsed[i].subject,
				 parsed[i].value);
		else
			rules[nrules++] = parsed[i];
	}
	for (i = 0; i < nrules; i++)
		links += rules[i].kind == LB_FAULT_LINK;
	set_counts(nrules - links, links);
}

LB_EXPORT int rpma_loopback_fault(const char *text)
{
	struct lb_rule parsed[MAX_RULES];
	char *copy = strdup(text), *save = NULL, *one;
	uint32_t n = 0;
	int ret = copy ? 0 : -ENOMEM;

	one = copy ? strtok_r(copy, ";", &save) : NULL;
	for (; one && !ret; one = strtok_r(NULL, ";", &save)) {
		if (n == MAX_RULES)
			ret = lb_fault_rule_incomplete("too many rules");
		else
			ret = lb_fault_rule_parse(&parsed[n++], one);
	}
	free(copy);
	if (ret)
		return ret;
	pthread_mutex_lock(&lock);
	if (nrules + n <= MAX_RULES)
		add_rules(parsed, n);
	else
		ret = lb_fault_rule_incomplete("too many rules");
	pthread_mutex_unlock(&lock);
	return ret;
}

LB_EXPORT void rpma_loopback_fault_clear(void)
{
	int i;

	pthread_mutex_lock(&lock);
	nrules = 0;
	total = 0;
	for (i = 0; i < LB_KNOBS; i++)
		set_knob((enum lb_fault_knob)i, 0);
	set_counts(0, 0);
	pthread_mutex_unlock(&lock);
}

LB_EXPORT uint64_t rpma_loopback_fault_count(void)
{
	uint64_t n;

	pthread_mutex_lock(&lock);
	n = total;
	pthread_mutex_unlock(&lock);
	return n;
}

uint32_t lb_fault_knob(enum lb_fault_knob knob)
{
	/* relaxed: an option */
	return atomic_load_explicit(&knobs[knob], memory_order_relaxed);
}

/* A match of r: is it one of those that it wants? */
static bool fires(struct lb_rule *r)
{
	r->seen++;
	if (r->nth && r->seen != r->nth)
		return false;
	if (r->every && r->seen % r->every)
		return false;
	if (r->prob && lb_random() % r->prob)
		return false;
	if (r->count && r->fired >= r->count)
		return false;
	r->fired++;
	total++;
	return true;
}

static struct lb_rule *next_match(enum lb_fault_kind kind,
				  const char *const *names, const char *name,
				  struct lb_rule *r)
{
	for (; r < rules + nrules; r++) {
		if (r->kind == kind && !strcmp(names[r->subject], name) &&
		    fires(r))
			return r;
	}
	return NULL;
}

/* --- the questions that the device asks */

int lb_fault_ask_errno(const char *verb)
{
	struct lb_rule *r;
	int err = 0;

	pthread_mutex_lock(&lock);
	r = next_match(LB_FAULT_CALL, lb_fault_calls, verb, rules);
	if (r)
		err = (int)r->value;
	pthread_mutex_unlock(&lock);
	if (err)
		lb_log(1, "fault: %s fails with errno %d", verb, err);
	return err;
}

enum lb_event_action lb_fault_event(const char *event, uint32_t *delay_us)
{
	enum lb_event_action action = LB_EVENT_PASS;
	struct lb_rule *r;

	/* relaxed: rules apply to calls that come after them in some order */
	if (lb_likely(!atomic_load_explicit(&lb_fault_count,
					    memory_order_relaxed)))
		return LB_EVENT_PASS;
	pthread_mutex_lock(&lock);
	r = next_match(LB_FAULT_EVENT, lb_fault_events, event, rules);
	if (r) {
		action = (enum lb_event_action)r->value;
		*delay_us = r->delay_us;
	}
	pthread_mutex_unlock(&lock);
	if (action != LB_EVENT_PASS)
		lb_log(1, "fault: event %s: action %d", event, action);
	return action;
}

enum lb_link_action lb_fault_ask_link(uint32_t actions, uint32_t *delay_us)
{
	enum lb_link_action action = LB_LINK_PASS;
	struct lb_rule *r;

	pthread_mutex_lock(&lock);
	for (r = rules; r < rules + nrules; r++) {
		if (r->kind != LB_FAULT_LINK || !(r->subject & actions) ||
		    !fires(r))
			continue;
		action = (enum lb_link_action)r->subject;
		*delay_us = r->delay_us;
		break;
	}
	pthread_mutex_unlock(&lock);
	return action;
}

void lb_fault_wr(const struct lb_fault_of *of, struct lb_wr_fault *fault)
{
	struct lb_rule *r;

	pthread_mutex_lock(&lock);
	for (r = rules; r < rules + nrules; r++) {
		if (r->kind != LB_FAULT_WR ||
		    (r->subject != LB_FAULT_ANY && r->subject != of->opcode) ||
		    (r->qp != LB_FAULT_ANY && r->qp != of->qpn) ||
		    (r->order != LB_FAULT_ANY && r->order != of->order) ||
		    !fires(r))
			continue;
		fault->status = (int)r->value;
		fault->after = r->after;
		fault->rnr = r->rnr;
		fault->delay_us = r->delay_us;
		lb_log(1,
		       "fault: qp %#x request %#llx: status %u %s, rnr %u, "
		       "delay %u us",
		       of->qpn, (unsigned long long)of->wr_id, r->value,
		       r->after ? "after" : "before", r->rnr, r->delay_us);
		break;
	}
	pthread_mutex_unlock(&lock);
}

void lb_fault_fork(enum lb_fork_step step)
{
	if (step == LB_FORK_BEFORE)
		pthread_mutex_lock(&lock);
	else
		pthread_mutex_unlock(&lock);
}
