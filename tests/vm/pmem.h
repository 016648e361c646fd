/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Persistent memory for tests: that of a virtual machine which "run" has
 * started with --pmem.
 */

#ifndef VM_PMEM_H
#define VM_PMEM_H

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define PMEM_UNIT ((size_t)2 << 20) /* a mapping is so long, or a multiple */

static inline size_t pmem_round(size_t size)
{
	return (size + PMEM_UNIT - 1) / PMEM_UNIT * PMEM_UNIT;
}

/*
 * Maps the first bytes of it, whatever they are. NULL: there is none. One that
 * cannot be mapped ends the test, which would else be skipped.
 */
static inline void *pmem_map(size_t size)
{
	const char *file = getenv("RPMA_TEST_PMEM");
	void *at = MAP_FAILED;
	int fd;

	if (file == NULL)
		return NULL;
	fd = open(file, O_RDWR);
	if (fd >= 0)
		at = mmap(NULL, pmem_round(size), PROT_READ | PROT_WRITE,
			  MAP_SHARED, fd, 0);
	if (at == MAP_FAILED) {
		perror(file);
		exit(1);
	}
	close(fd);
	return at;
}

static inline int pmem_unmap(void *at, size_t size)
{
	return munmap(at, pmem_round(size));
}

#endif /* VM_PMEM_H */
