/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Unit tests of the table of CQs: found by an address that is never read. */

#include "mocks.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cq.h"
#include "cq_table.h"

#define MANY 10000 /* more than there are chains */

/* As far apart as a CQ of a provider is. */
static struct ibv_cq *address(size_t i)
{
	return (struct ibv_cq *)(0x7f0000001000 + i * 0x1c0);
}

static struct rpma_cq *all_of_them(void)
{
	struct rpma_cq *cqs = calloc(MANY, sizeof(*cqs));
	size_t i;

	assert_non_null(cqs);
	for (i = 0; i < MANY; i++) {
		cqs[i].cq = address(i);
		rpma__cq_table_add(&cqs[i]);
	}
	return cqs;
}

MOCK_TEST(find__among_many)
{
	struct rpma_cq *cqs = all_of_them();
	size_t i;

	for (i = 0; i < MANY; i++)
		assert_ptr_equal(rpma__cq_table_find(address(i)), &cqs[i]);
	assert_null(rpma__cq_table_find(address(MANY)));
	assert_null(rpma__cq_table_find(NULL));
	/* every other one goes */
	for (i = 0; i < MANY; i += 2)
		rpma__cq_table_remove(&cqs[i]);
	for (i = 0; i < MANY; i++)
		assert_ptr_equal(rpma__cq_table_find(address(i)),
				 i % 2 ? &cqs[i] : NULL);
	for (i = 1; i < MANY; i += 2)
		rpma__cq_table_remove(&cqs[i]);
	for (i = 0; i < MANY; i++)
		assert_null(rpma__cq_table_find(address(i)));
	free(cqs);
}

/* ---- a CQ that is being deleted ---- */

static struct ibv_cq verbs_cq;

MOCK_TEST(find__leaving_BY_ITS_CONTEXT)
{
	struct rpma_cq old = {.cq = &verbs_cq};
	struct rpma_cq young = {.cq = &verbs_cq};

	rpma__cq_table_add(&old);
	rpma__cq_table_set_leaving(&old, true);
	/* still the CQ of old, or a foreign CQ at its address */
	verbs_cq.cq_context = &old;
	assert_ptr_equal(rpma__cq_table_find(&verbs_cq), &old);
	verbs_cq.cq_context = NULL;
	assert_null(rpma__cq_table_find(&verbs_cq));
	/* a CQ that stays goes before a CQ that leaves, the youngest of several
	 * leaving CQs before the others */
	rpma__cq_table_add(&young);
	assert_ptr_equal(rpma__cq_table_find(&verbs_cq), &young);
	rpma__cq_table_set_leaving(&young, true);
	verbs_cq.cq_context = &young;
	assert_ptr_equal(rpma__cq_table_find(&verbs_cq), &young);
	rpma__cq_table_set_leaving(&old, false);
	assert_ptr_equal(rpma__cq_table_find(&verbs_cq), &old);
	rpma__cq_table_remove(&old);
	rpma__cq_table_remove(&young);
	assert_null(rpma__cq_table_find(&verbs_cq));
}

static void *refuse_delete(void *arg)
{
	rpma__cq_table_set_leaving(arg, false);
	return NULL;
}

static void *finish_delete(void *arg)
{
	rpma__cq_table_remove(arg);
	return NULL;
}

/* Pins a CQ, whose delete ends in another thread meanwhile. */
static struct rpma_cq *unpin_beside(void *(*end)(void *arg), struct rpma_cq *cq)
{
	struct rpma_cq *pinned = rpma__cq_table_pin(cq->cq);
	struct rpma_cq *found;
	pthread_t thread;

	assert_ptr_equal(pinned, cq);
	rpma__cq_table_set_leaving(cq, true);
	ok(pthread_create(&thread, NULL, end, cq));
	found = rpma__cq_table_unpin(pinned);
	ok(pthread_join(thread, NULL));
	return found;
}

MOCK_TEST(unpin__leaving_WAITS_FOR_THE_OUTCOME)
{
	struct rpma_cq cq = {.cq = &verbs_cq};

	assert_null(rpma__cq_table_pin(&verbs_cq));
	assert_null(rpma__cq_table_unpin(NULL));
	rpma__cq_table_add(&cq);
	assert_ptr_equal(unpin_beside(refuse_delete, &cq), &cq);
	assert_null(unpin_beside(finish_delete, &cq));
	assert_null(rpma__cq_table_pin(&verbs_cq));
}

static void *forget_and_unpin(void *arg)
{
	struct rpma_cq *cq = arg;

	/* as the reader of a channel that the child made would */
	rpma__cq_table_forget(cq);
	cq->pins = 0;
	rpma__cq_table_add(cq);
	return unpin_beside(refuse_delete, cq);
}

static void *unpin(void *arg)
{
	return rpma__cq_table_unpin(arg);
}

/* The reader of the parent is no reader of the child. */
MOCK_TEST(child__forgets_a_PINNED_CQ)
{
	struct rpma_cq cq = {.cq = &verbs_cq};
	pthread_t reader;
	int status = -1;
	void *found;
	pid_t pid;

	rpma__cq_table_add(&cq);
	assert_ptr_equal(rpma__cq_table_pin(&verbs_cq), &cq);
	rpma__cq_table_set_leaving(&cq, true);
	ok(pthread_create(&reader, NULL, unpin, &cq));
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(forget_and_unpin(&cq) == &cq ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	rpma__cq_table_set_leaving(&cq, false);
	ok(pthread_join(reader, &found));
	assert_ptr_equal(found, &cq);
	rpma__cq_table_remove(&cq);
}

/* A thread of the parent has removed the CQ, and not freed the CQ yet. */
MOCK_TEST(child__forgets_a_CQ_ALREADY_REMOVED)
{
	struct rpma_cq cq = {.cq = &verbs_cq};

	rpma__cq_table_add(&cq);
	rpma__cq_table_remove(&cq);
	rpma__cq_table_forget(&cq);
	assert_null(rpma__cq_table_find(&verbs_cq));
}

/* What a child inherits is found there, and the table is not locked. */
MOCK_TEST(find__in_a_child)
{
	struct rpma_cq cq = {.cq = address(1)};
	int status = -1;
	pid_t pid;

	rpma__cq_table_add(&cq);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(rpma__cq_table_find(address(1)) == &cq ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	rpma__cq_table_remove(&cq);
}

TEST_MAIN()
