/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * rule.h -- a fault rule, shared by the parser of the language (fault_parse.c)
 * and the list of rules (fault.c).
 */

#ifndef LB_FAULT_RULE_H
#define LB_FAULT_RULE_H

#include <stdbool.h>
#include <stdint.h>

#define LB_FAULT_ANY UINT32_MAX

enum lb_fault_kind {
	LB_FAULT_WR,
	LB_FAULT_CALL,
	LB_FAULT_EVENT,
	LB_FAULT_LINK,
	LB_FAULT_KNOB,
};

struct lb_rule {
	enum lb_fault_kind kind;
	uint32_t subject; /* opcode, index of a verb, event or knob, action */
	uint32_t qp;	  /* the number of one, or LB_FAULT_ANY */
	uint32_t order;	  /* of creation of one, or LB_FAULT_ANY */
	uint32_t value;	  /* status, errno, action, or value of the knob */
	uint32_t rnr;
	uint32_t delay_us;
	bool after;
	/* which of the matches: all, or the nth, every nth, one in prob */
	uint32_t nth, every, prob, count;
	uint64_t seen, fired;
};

/* What call and event rules name; the index is the subject. NULL at the end. */
extern const char *const lb_fault_calls[];
extern const char *const lb_fault_events[];

/* One rule from text, which is changed. 0, or -EINVAL with a message. */
int lb_fault_rule_parse(struct lb_rule *rule, char *text);
/* -EINVAL with a message that something is missing. */
int lb_fault_rule_incomplete(const char *what);

#endif /* LB_FAULT_RULE_H */
