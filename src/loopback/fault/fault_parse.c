/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * fault_parse.c -- the language of fault rules: its words, and a reader that
 * answers an unknown one with those that it knows.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "base/newer.h"
#include "fault/fault.h"
#include "fault/rule.h"

struct name {
	const char *name;
	uint32_t value;
};

/* --- names */

static const struct name kinds[] = {
	{"wr", LB_FAULT_WR},	   {"call", LB_FAULT_CALL},
	{"event", LB_FAULT_EVENT}, {"link", LB_FAULT_LINK},
	{"knob", LB_FAULT_KNOB},   {NULL, 0},
};

static const struct name ops[] = {
	{"any", LB_FAULT_ANY},
	{"send", IBV_WR_SEND},
	{"send_imm", IBV_WR_SEND_WITH_IMM},
	{"write", IBV_WR_RDMA_WRITE},
	{"write_imm", IBV_WR_RDMA_WRITE_WITH_IMM},
	{"read", IBV_WR_RDMA_READ},
	{"fetch_add", IBV_WR_ATOMIC_FETCH_AND_ADD},
	{"cmp_swp", IBV_WR_ATOMIC_CMP_AND_SWP},
	{"atomic_write", IBV_WR_ATOMIC_WRITE},
	{"flush", LB_WR_FLUSH},
	{"send_inv", IBV_WR_SEND_WITH_INV},
	{"local_inv", IBV_WR_LOCAL_INV},
	{"bind_mw", IBV_WR_BIND_MW},
	{NULL, 0},
};

static const struct name statuses[] = {
	{"loc_len_err", IBV_WC_LOC_LEN_ERR},
	{"loc_qp_op_err", IBV_WC_LOC_QP_OP_ERR},
	{"loc_prot_err", IBV_WC_LOC_PROT_ERR},
	{"wr_flush_err", IBV_WC_WR_FLUSH_ERR},
	{"mw_bind_err", IBV_WC_MW_BIND_ERR},
	{"bad_resp_err", IBV_WC_BAD_RESP_ERR},
	{"loc_access_err", IBV_WC_LOC_ACCESS_ERR},
	{"rem_inv_req_err", IBV_WC_REM_INV_REQ_ERR},
	{"rem_access_err", IBV_WC_REM_ACCESS_ERR},
	{"rem_op_err", IBV_WC_REM_OP_ERR},
	{"retry_exc_err", IBV_WC_RETRY_EXC_ERR},
	{"rnr_retry_exc_err", IBV_WC_RNR_RETRY_EXC_ERR},
	{"rem_abort_err", IBV_WC_REM_ABORT_ERR},
	{"fatal_err", IBV_WC_FATAL_ERR},
	{"resp_timeout_err", IBV_WC_RESP_TIMEOUT_ERR},
	{"general_err", IBV_WC_GENERAL_ERR},
	{NULL, 0},
};

static const struct name whens[] = {
	{"before", 0},
	{"after", 1},
	{NULL, 0},
};

static const struct name actions[] = {
	{"drop", LB_EVENT_DROP},
	{"double", LB_EVENT_DOUBLE},
	{"late", LB_EVENT_LATE},
	{NULL, 0},
};

static const struct name link_actions[] = {
	{"break", LB_LINK_BREAK},
	{"deny", LB_LINK_DENY},
	{"stall", LB_LINK_STALL},
	{NULL, 0},
};

static const struct name errnos[] = {
	{"EACCES", EACCES},
	{"EAGAIN", EAGAIN},
	{"EBUSY", EBUSY},
	{"EFAULT", EFAULT},
	{"EINTR", EINTR},
	{"EINVAL", EINVAL},
	{"EIO", EIO},
	{"ENODEV", ENODEV},
	{"ENOMEM", ENOMEM},
	{"ENOSPC", ENOSPC},
	{"EOPNOTSUPP", EOPNOTSUPP},
	{"EPERM", EPERM},
	{"EADDRINUSE", EADDRINUSE},
	{"EADDRNOTAVAIL", EADDRNOTAVAIL},
	{"ECONNREFUSED", ECONNREFUSED},
	{"ECONNRESET", ECONNRESET},
	{"EHOSTUNREACH", EHOSTUNREACH},
	{"ETIMEDOUT", ETIMEDOUT},
	{NULL, 0},
};

static const struct name knob_names[] = {
	{"qpn_reuse", LB_KNOB_QPN_REUSE},
	{"destroy_cleans", LB_KNOB_DESTROY_CLEANS},
	{"arm_pending", LB_KNOB_ARM_PENDING},
	{"after_cq_err", LB_KNOB_AFTER_CQ_ERR},
	{"plain_errors", LB_KNOB_PLAIN_ERRORS},
	{"spurious", LB_KNOB_SPURIOUS},
	{"last_wqe", LB_KNOB_NO_LAST_WQE},
	{"retry_us", LB_KNOB_RETRY_US},
	{NULL, 0},
};

/* the index is the subject of an event rule */
const char *const lb_fault_events[] = {
	"cq",
	"cm.addr_resolved",
	"cm.addr_error",
	"cm.route_resolved",
	"cm.route_error",
	"cm.connect_request",
	"cm.connect_response",
	"cm.connect_error",
	"cm.unreachable",
	"cm.rejected",
	"cm.established",
	"cm.disconnected",
	"cm.device_removal",
	"cm.multicast_join",
	"cm.multicast_error",
	"cm.addr_change",
	"cm.timewait_exit",
	"cm.msg_req",
	"cm.msg_mra",
	"cm.msg_rej",
	"cm.msg_rep",
	"cm.msg_rtu",
	"cm.msg_dreq",
	"cm.msg_drep",
	NULL,
};

/* the index is the subject of a call rule */
const char *const lb_fault_calls[] = {
	"ibv_get_device_list",
	"ibv_open_device",
	"ibv_close_device",
	"ibv_query_device",
	"ibv_query_port",
	"ibv_alloc_pd",
	"ibv_alloc_parent_domain",
	"ibv_dealloc_pd",
	"ibv_reg_mr",
	"ibv_dereg_mr",
	"ibv_create_ah",
	"ibv_destroy_ah",
	"ibv_attach_mcast",
	"ibv_detach_mcast",
	"ibv_alloc_mw",
	"ibv_bind_mw",
	"ibv_dealloc_mw",
	"ibv_create_comp_channel",
	"ibv_destroy_comp_channel",
	"ibv_create_cq",
	"ibv_resize_cq",
	"ibv_destroy_cq",
	"ibv_poll_cq",
	"ibv_req_notify_cq",
	"ibv_get_cq_event",
	"ibv_create_srq",
	"ibv_modify_srq",
	"ibv_query_srq",
	"ibv_destroy_srq",
	"ibv_post_srq_recv",
	"ibv_create_qp",
	"ibv_modify_qp",
	"ibv_query_qp",
	"ibv_destroy_qp",
	"ibv_post_send",
	"ibv_post_recv",
	"ibv_wr_complete",
	"ibv_get_async_event",
	"rdma_create_event_channel",
	"rdma_create_id",
	"rdma_destroy_id",
	"rdma_migrate_id",
	"rdma_create_ep",
	"rdma_get_request",
	"rdma_bind_addr",
	"rdma_resolve_addr",
	"rdma_resolve_route",
	"rdma_listen",
	"rdma_connect",
	"rdma_accept",
	"rdma_reject",
	"rdma_reject_ece",
	"rdma_establish",
	"rdma_disconnect",
	"rdma_notify",
	"rdma_create_qp",
	"rdma_create_qp_ex",
	"rdma_create_srq",
	"rdma_create_srq_ex",
	"rdma_init_qp_attr",
	"rdma_join_multicast",
	"rdma_join_multicast_ex",
	"rdma_leave_multicast",
	"rdma_set_option",
	"rdma_get_cm_event",
	"rdma_ack_cm_event",
	"rdma_getaddrinfo",
	"cm.resolve_addr",
	"cm.resolve_route",
	NULL,
};

/* --- parsing */

static int unknown(const char *what, const char *word)
{
	fprintf(stderr, "loopback: fault rules: unknown %s \"%s\"; known are",
		what, word);
	return -EINVAL;
}

static int find_name(const struct name *names, const char *what,
		     const char *word, uint32_t *value)
{
	const struct name *n;

	for (n = names; n->name; n++) {
		if (!strcmp(n->name, word)) {
			*value = n->value;
			return 0;
		}
	}
	unknown(what, word);
	for (n = names; n->name; n++)
		fprintf(stderr, " %s", n->name);
	fputc('\n', stderr);
	return -EINVAL;
}

static int find_string(const char *const *names, const char *what,
		       const char *word, uint32_t *index)
{
	uint32_t i;

	for (i = 0; names[i]; i++) {
		if (!strcmp(names[i], word)) {
			*index = i;
			return 0;
		}
	}
	unknown(what, word);
	for (i = 0; names[i]; i++)
		fprintf(stderr, " %s", names[i]);
	fputc('\n', stderr);
	return -EINVAL;
}

static int get_number(const char *key, const char *word, uint32_t *value)
{
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(word, &end, 0);
	if (errno || end == word || *end || n > UINT32_MAX) {
		fprintf(stderr, "loopback: fault rules: %s=%s: want a number\n",
			key, word);
		return -EINVAL;
	}
	*value = (uint32_t)n;
	return 0;
}

/* How often: keys of every kind of rule. 1: not one of them. */
static int parse_choice(struct lb_rule *r, const char *key, const char *word)
{
	static const char *const keys[] = {"nth", "every", "prob", "count"};
	uint32_t *const at[] = {&r->nth, &r->every, &r->prob, &r->count};
	size_t i;

	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (!strcmp(key, keys[i]))
			return get_number(key, word, at[i]);
	}
	return 1;
}

static int bad_key(const char *key, const char *known)
{
	unknown("key", key);
	fprintf(stderr, " %s\n", known);
	return -EINVAL;
}

static int parse_wr(struct lb_rule *r, const char *key, const char *word)
{
	uint32_t when;
	int ret;

	if (!strcmp(key, "op"))
		return find_name(ops, "op", word, &r->subject);
	if (!strcmp(key, "status"))
		return find_name(statuses, "status", word, &r->value);
	if (!strcmp(key, "when")) {
		ret = find_name(whens, "when", word, &when);
		if (!ret)
			r->after = when;
		return ret;
	}
	if (!strcmp(key, "qp"))
		return *word == '#' ? get_number(key, word + 1, &r->order)
				    : get_number(key, word, &r->qp);
	if (!strcmp(key, "rnr"))
		return get_number(key, word, &r->rnr);
	if (!strcmp(key, "delay_us"))
		return get_number(key, word, &r->delay_us);
	return bad_key(key,
		       "op status when qp rnr delay_us nth every prob count");
}

static int parse_call(struct lb_rule *r, const char *key, const char *word)
{
	if (!strcmp(key, "verb"))
		return find_string(lb_fault_calls, "verb", word, &r->subject);
	if (!strcmp(key, "errno"))
		return *word >= '0' && *word <= '9'
			       ? get_number(key, word, &r->value)
			       : find_name(errnos, "errno", word, &r->value);
	return bad_key(key, "verb errno nth every prob count");
}

static int parse_event(struct lb_rule *r, const char *key, const char *word)
{
	if (!strcmp(key, "of"))
		return find_string(lb_fault_events, "event", word, &r->subject);
	if (!strcmp(key, "action"))
		return find_name(actions, "action", word, &r->value);
	if (!strcmp(key, "delay_us"))
		return get_number(key, word, &r->delay_us);
	return bad_key(key, "of action delay_us nth every prob count");
}

static int parse_link(struct lb_rule *r, const char *key, const char *word)
{
	if (!strcmp(key, "action"))
		return find_name(link_actions, "action", word, &r->subject);
	if (!strcmp(key, "delay_us"))
		return get_number(key, word, &r->delay_us);
	return bad_key(key, "action delay_us nth every prob count");
}

static int parse_knob(struct lb_rule *r, const char *key, const char *word)
{
	int ret = find_name(knob_names, "knob", key, &r->subject);

	return ret ? ret : get_number(key, word, &r->value);
}

static int parse_pair(struct lb_rule *r, char *pair)
{
	char *word = strchr(pair, '=');
	int ret;

	if (!word) {
		fprintf(stderr,
			"loopback: fault rules: \"%s\": want key=value\n",
			pair);
		return -EINVAL;
	}
	*word++ = '\0';
	if (r->kind == LB_FAULT_KNOB)
		return parse_knob(r, pair, word);
	ret = parse_choice(r, pair, word);
	if (ret <= 0)
		return ret;
	switch (r->kind) {
	case LB_FAULT_WR:
		return parse_wr(r, pair, word);
	case LB_FAULT_CALL:
		return parse_call(r, pair, word);
	case LB_FAULT_LINK:
		return parse_link(r, pair, word);
	default:
		return parse_event(r, pair, word);
	}
}

int lb_fault_rule_incomplete(const char *what)
{
	fprintf(stderr, "loopback: fault rules: %s\n", what);
	return -EINVAL;
}

static int check_rule(const struct lb_rule *r)
{
	if (r->kind == LB_FAULT_WR && !r->value && !r->rnr && !r->delay_us)
		return lb_fault_rule_incomplete(
			"wr wants status, rnr or delay_us");
	if (r->kind == LB_FAULT_CALL && r->subject == LB_FAULT_ANY)
		return lb_fault_rule_incomplete("call wants verb");
	if (r->kind == LB_FAULT_EVENT &&
	    (r->subject == LB_FAULT_ANY || !r->value))
		return lb_fault_rule_incomplete("event wants of and action");
	if (r->kind == LB_FAULT_LINK && r->subject == LB_FAULT_ANY)
		return lb_fault_rule_incomplete("link wants action");
	if (r->kind == LB_FAULT_LINK && r->subject == LB_LINK_STALL &&
	    !r->delay_us)
		return lb_fault_rule_incomplete("stall wants delay_us");
	return 0;
}

int lb_fault_rule_parse(struct lb_rule *r, char *text)
{
	char *pairs = strchr(text, ':'), *save = NULL, *pair;
	uint32_t kind;
	int ret;

	memset(r, 0, sizeof(*r));
	r->subject = LB_FAULT_ANY;
	r->qp = LB_FAULT_ANY;
	r->order = LB_FAULT_ANY;
	if (pairs)
		*pairs++ = '\0';
	ret = find_name(kinds, "kind", text, &kind);
	if (ret)
		return ret;
	r->kind = (enum lb_fault_kind)kind;
	if (r->kind == LB_FAULT_CALL)
		r->value = EIO;
	pair = pairs ? strtok_r(pairs, ",", &save) : NULL;
	if (!pair)
		return lb_fault_rule_incomplete("a rule is kind:key=value,...");
	for (; pair && !ret; pair = strtok_r(NULL, ",", &save))
		ret = parse_pair(r, pair);
	return ret ? ret : check_rule(r);
}
