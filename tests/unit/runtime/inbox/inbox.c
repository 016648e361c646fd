/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* The inbox: order, messages that free or push themselves, the ring. */

#include <stdlib.h>

#include "../../../cases.h"
#include "base/inbox.h"
#include "rt_stub.h"

struct owner {
	struct rt_bell bell;
	struct rt_inbox inbox;
	int log[8]; /* ids in the order they ran */
	int ran;
};

struct numbered {
	struct rt_msg msg;
	int id;
};

static void note(struct rt_msg *msg, void *arg)
{
	struct numbered *numbered = caa_container_of(msg, struct numbered, msg);
	struct owner *owner = arg;

	owner->log[owner->ran++] = numbered->id;
}

static void note_and_free(struct rt_msg *msg, void *arg)
{
	note(msg, arg);
	free(caa_container_of(msg, struct numbered, msg));
}

static void note_and_push_again(struct rt_msg *msg, void *arg)
{
	struct owner *owner = arg;

	note(msg, arg);
	rt_inbox_push_mt(&owner->inbox, msg);
}

static int setup(void **state)
{
	struct owner *owner = calloc(1, sizeof(*owner));

	if (owner == NULL || rt_bell_init(&owner->bell) ||
	    rt_inbox_init(&owner->inbox, &owner->bell))
		return -1;
	*state = owner;
	return 0;
}

static int teardown(void **state)
{
	struct owner *owner = *state;

	rt_inbox_fini(&owner->inbox);
	rt_bell_fini(&owner->bell);
	free(owner);
	return 0;
}

#define INBOX_TEST(name) TEST_OF(struct owner *owner, name, setup, teardown)

INBOX_TEST(run__several_IN_ORDER)
{
	struct numbered messages[3];
	int i;

	for (i = 0; i < 3; i++) {
		messages[i] = (struct numbered){.msg.fn = note, .id = i};
		rt_inbox_push_mt(&owner->inbox, &messages[i].msg);
	}
	assert_false(rt_inbox_is_empty(&owner->inbox));
	assert_int_equal(rt_inbox_run_owner(&owner->inbox, owner), 3);
	for (i = 0; i < 3; i++)
		assert_int_equal(owner->log[i], i);
	assert_true(rt_inbox_is_empty(&owner->inbox));
}

INBOX_TEST(run__message_frees_itself_FINE)
{
	struct numbered *message;
	int i;

	for (i = 0; i < 3; i++) {
		message = malloc(sizeof(*message));
		assert_non_null(message);
		message->msg.fn = note_and_free;
		message->id = i;
		rt_inbox_push_mt(&owner->inbox, &message->msg);
	}
	assert_int_equal(rt_inbox_run_owner(&owner->inbox, owner), 3);
	assert_int_equal(owner->ran, 3);
}

/* one that always comes back does not keep its owner for ever */
INBOX_TEST(run__message_pushes_itself_NEXT_CALL)
{
	struct numbered again = {.msg.fn = note_and_push_again, .id = 1};
	struct numbered other = {.msg.fn = note, .id = 2};

	rt_inbox_push_mt(&owner->inbox, &again.msg);
	rt_inbox_push_mt(&owner->inbox, &other.msg);
	assert_int_equal(rt_inbox_run_owner(&owner->inbox, owner), 2);
	assert_false(rt_inbox_is_empty(&owner->inbox));
	again.msg.fn = note;
	assert_int_equal(rt_inbox_run_owner(&owner->inbox, owner), 1);
	assert_int_equal(owner->log[0], 1);
	assert_int_equal(owner->log[1], 2);
	assert_int_equal(owner->log[2], 1);
}

INBOX_TEST(push__owner_asleep_RINGS)
{
	struct numbered message = {.msg.fn = note};

	rt_bell_prepare(&owner->bell);
	rt_inbox_push_mt(&owner->inbox, &message.msg);
	assert_true(stub_is_readable(rt_bell_fd(&owner->bell)));
	rt_bell_cancel(&owner->bell);
	assert_int_equal(rt_inbox_run_owner(&owner->inbox, owner), 1);
}

TEST_MAIN()
