/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * persistent.h: a file of persistent memory, mapped; and words that the program
 * itself stores there. Meant to be copied: needs nothing but this file.
 */

#ifndef EXAMPLES_PERSISTENT_H
#define EXAMPLES_PERSISTENT_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Opens the file for this process alone. Returns the descriptor, or -1. */
static inline int persistent_open(const char *name, size_t size)
{
	int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	/* ends with the process; a lock by flock() may end later */
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	struct stat stat;

	if (fd < 0 || fstat(fd, &stat))
		perror(name);
	else if (fcntl(fd, F_SETLK, &lock))
		fprintf(stderr,
			"%s: in use by another process: end that process, or "
			"name another file\n",
			name);
	else if (stat.st_size != 0 && stat.st_size != (off_t)size)
		fprintf(stderr,
			"%s: has %lld bytes, not %zu: name another file\n",
			name, (long long)stat.st_size, size);
	else
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/*
 * Maps size bytes of the file, which is made, and is filled with zeros, at the
 * first start. An ordinary file is taken too, with a line on stderr: the file
 * survives the end of the process, and not a loss of power. The file stays open
 * and locked until the process ends, so no two processes store words there.
 * Returns NULL, and prints why, if the file cannot be mapped.
 */
static inline void *persistent_map(const char *name, size_t size)
{
	int fd = persistent_open(name, size), error;
	void *map = MAP_FAILED;

	if (fd < 0)
		return NULL;
	error = posix_fallocate(fd, 0, (off_t)size);
	if (error == 0)
		map = mmap(NULL, size, PROT_READ | PROT_WRITE,
			   MAP_SHARED_VALIDATE | MAP_SYNC, fd, 0);
	if (error == 0 && map == MAP_FAILED) {
		fprintf(stderr,
			"%s: an ordinary file, not persistent memory: survives "
			"the end of processes, not a loss of power\n",
			name);
		map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			   0);
		error = errno;
	}
	if (map != MAP_FAILED)
		return map;
	fprintf(stderr, "%s: %s\n", name, strerror(error));
	close(fd);
	return NULL;
}

/* Stores a word of a mapped file. Returns 0: the word is persistent. */
static inline int persistent_store(uint64_t *word, uint64_t value)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *begin = (char *)word - (uintptr_t)word % page;

	*word = value;
	return msync(begin, page, MS_SYNC);
}

#endif /* EXAMPLES_PERSISTENT_H */
