/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Unit tests of the table of CQs: found by an address that is never read. */

#include "mocks.h"

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
