/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Unit tests of the emulated flush's buffer. */

#include "world.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "flush.h"

static size_t mapped;
static void *mapped_at;

void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd,
		  off_t offset);
void *__real_mmap(void *addr, size_t len, int prot, int flags, int fd,
		  off_t offset);
int __wrap_munmap(void *addr, size_t len);
int __real_munmap(void *addr, size_t len);
long __wrap_sysconf(int name);
long __real_sysconf(int name);

void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd,
		  off_t offset)
{
	errno = mock_enter("mmap", "%s", "");
	if (errno)
		return MAP_FAILED;
	assert_int_equal(flags, MAP_SHARED | MAP_ANONYMOUS);
	mapped += len;
	mapped_at = __real_mmap(addr, len, prot, flags, fd, offset);
	return mapped_at;
}

int __wrap_munmap(void *addr, size_t len)
{
	errno = mock_enter("munmap", "%s", "");
	mapped -= len;
	assert_int_equal(__real_munmap(addr, len), 0);
	return errno ? -1 : 0;
}

long __wrap_sysconf(int name)
{
	errno = mock_enter("sysconf", "%s", "");
	return errno ? -1 : __real_sysconf(name);
}

static int new_flush(void)
{
	struct rpma__flush *flush = NULL;
	int ret = rpma__flush_new(world.peer, NULL, &flush);

	assert_int_equal(flush != NULL, ret == 0);
	ok(rpma__flush_delete(&flush));
	assert_null(flush);
	assert_int_equal(mapped, 0);
	return ret;
}

static int delete_flush(void)
{
	struct rpma__flush *flush = NULL;
	int ret;

	ok(rpma__flush_new(world.peer, NULL, &flush));
	assert_int_equal(mapped, __real_sysconf(_SC_PAGESIZE));
	ret = rpma__flush_delete(&flush);
	assert_null(flush);
	assert_int_equal(mapped, 0);
	return ret;
}

#define MADE_ONCE "sysconf mmap reg_mr(8, 0x1)"
#define MADE	  MADE_ONCE " "

MOCK_TEST(new__EACH_FAILURE)
{
	const struct failure failures[] = {
		{"malloc", 1, ENOMEM, RPMA_E_NOMEM, ""},
		{"malloc", 2, ENOMEM, RPMA_E_NOMEM, ""},
		{"sysconf", 1, EINVAL, RPMA_E_PROVIDER, "sysconf"},
		{"mmap", 1, ENOMEM, RPMA_E_NOMEM, "sysconf mmap"},
		{"malloc", 3, ENOMEM, RPMA_E_NOMEM, "sysconf mmap munmap"},
		{"reg_mr", 1, ENOMEM, RPMA_E_PROVIDER, MADE "munmap"},
		{NULL, 0, 0, 0, MADE "dereg_mr munmap"},
	};

	world_peer();
	EACH_FAILURE(new_flush, failures);
	world_end();
}

MOCK_TEST(delete__EACH_FAILURE)
{
	const struct failure failures[] = {
		{"dereg_mr", 1, EIO, RPMA_E_PROVIDER, MADE "dereg_mr munmap"},
		{"munmap", 1, EINVAL, RPMA_E_INVAL, MADE "dereg_mr munmap"},
	};

	world_peer();
	EACH_FAILURE(delete_flush, failures);
	mock_fail("dereg_mr", 1, EIO);
	mock_fail("munmap", 1, EINVAL);
	assert_int_equal(delete_flush(), RPMA_E_PROVIDER);
	world_end();
}

/* However many connections a peer has: one page, one region. */
MOCK_TEST(new__ONE_BUFFER_A_PEER)
{
	const size_t page = (size_t)__real_sysconf(_SC_PAGESIZE);
	struct rpma__flush *flushes[100] = {NULL};
	struct rpma__flush *other = NULL;
	struct rpma_peer *peer = NULL;
	int i;

	world_peer();
	for (i = 0; i < 100; i++)
		ok(rpma__flush_new(world.peer, NULL, &flushes[i]));
	expect_trace(MADE_ONCE);
	assert_int_equal(mapped, page);
	ok(rpma_peer_new(MOCK_CTX, &peer));
	mocks_reset();
	ok(rpma__flush_new(peer, NULL, &other));
	expect_trace(MADE_ONCE);
	assert_ptr_not_equal(other->raw, flushes[0]->raw);
	assert_int_equal(mapped, 2 * page);
	for (i = 0; i < 99; i++)
		ok(rpma__flush_delete(&flushes[i]));
	expect_trace(MADE_ONCE);
	ok(rpma__flush_delete(&flushes[99]));
	expect_trace(MADE_ONCE " dereg_mr munmap");
	ok(rpma__flush_delete(&other));
	assert_int_equal(mapped, 0);
	ok(rpma_peer_delete(&peer));
	world_end();
}

MOCK_TEST(fill__READS_INTO_THE_BUFFER)
{
	struct rpma__flush *flush = NULL;
	struct rpma_send_wr wr = {0};

	world_regions(WORLD_ALL_USAGES);
	ok(rpma__flush_new(world.peer, NULL, &flush));
	rpma__flush_fill(flush, world.remote, 24, 4096,
			 RPMA_FLUSH_TYPE_PERSISTENT, RPMA_F_COMPLETION_ALWAYS,
			 5, &wr);
	assert_int_equal(wr.native, 0);
	assert_int_equal(wr.wr.opcode, IBV_WR_RDMA_READ);
	assert_int_equal(wr.wr.send_flags, IBV_SEND_SIGNALED);
	assert_int_equal(wr.sge.addr, (uintptr_t)mapped_at);
	assert_int_equal(wr.sge.length, 8);
	assert_int_equal(wr.wr.wr.rdma.remote_addr, (uintptr_t)world.mem + 24);
	ok(rpma__flush_delete(&flush));
	world_end();
}

TEST_MAIN()
