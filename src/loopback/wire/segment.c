/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * segment.c -- makes and maps segments. A segment is allocated in full and
 * sealed against every change of its size and every store of others, and its
 * receiver maps nothing else: so a load from it never ends with SIGBUS, and the
 * kernel keeps the rule of one writer. Any thread.
 */

#include "wire/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/list.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)
#define SIZE  sizeof(struct lb_segment)

/* A segment that this process has made. */
struct own {
	struct lb_list node;
	struct lb_segment *segment;
	dev_t device;
	ino_t inode;
	unsigned users; /* 2: both ends are here */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct lb_list owns = {&owns, &owns};

/* A mapping that no child has: a second writer would not exist even then. */
static void *map(int fd, int protection)
{
	void *at = mmap(NULL, SIZE, protection, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		return NULL;
	madvise(at, SIZE, MADV_DONTFORK);
	return at;
}

/* Descriptor fd as a segment: its size is its own from now on. */
static struct lb_segment *make(int fd, struct own *own)
{
	struct stat st;

	own->segment = NULL;
	if (ftruncate(fd, SIZE) || fallocate(fd, 0, 0, SIZE) || fstat(fd, &st))
		return NULL;
	own->device = st.st_dev;
	own->inode = st.st_ino;
	own->users = 1;
	own->segment = map(fd, PROT_READ | PROT_WRITE);
	if (own->segment && fcntl(fd, F_ADD_SEALS, SEALS)) {
		munmap(own->segment, SIZE);
		own->segment = NULL;
	}
	if (own->segment)
		/* relaxed: a socket is between this and its first reader */
		atomic_store_explicit(&own->segment->groups, UINT64_MAX,
				      memory_order_relaxed);
	return own->segment;
}

struct lb_segment *lb_segment_new(int *out)
{
	LB_NOT_CANCELLED;
	struct own *own = malloc(sizeof(*own));
	int fd = memfd_create("rpma-loopback", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int err;

	if (!own || fd < 0 || !make(fd, own)) {
		err = own ? errno : ENOMEM;
		free(own);
		if (fd >= 0)
			close(fd);
		errno = err;
		return NULL;
	}
	pthread_mutex_lock(&lock);
	lb_list_push(&owns, &own->node);
	pthread_mutex_unlock(&lock);
	*out = fd;
	return own->segment;
}

/* All that a segment promises, of a descriptor that somebody sent. */
static bool is_segment(int fd, struct stat *st)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & SEALS) == SEALS && !fstat(fd, st) &&
	       S_ISREG(st->st_mode) && st->st_size == (off_t)SIZE &&
	       st->st_blocks * 512 >= (blkcnt_t)SIZE;
}

static struct own *own_of(const struct stat *st)
{
	struct lb_list *node;

	for (node = owns.next; node != &owns; node = node->next) {
		struct own *own = lb_entry(node, struct own, node);

		if (own->inode == st->st_ino && own->device == st->st_dev)
			return own;
	}
	return NULL;
}

const struct lb_segment *lb_segment_map(int fd)
{
	const struct lb_segment *segment = NULL;
	struct own *own;
	struct stat st;

	if (!is_segment(fd, &st)) {
		errno = EBADF;
		return NULL;
	}
	pthread_mutex_lock(&lock);
	own = own_of(&st);
	if (own) {
		own->users++;
		segment = own->segment;
	}
	pthread_mutex_unlock(&lock);
	return segment ? segment : map(fd, PROT_READ);
}

void lb_segment_unmap(const struct lb_segment *segment)
{
	struct lb_list *node;
	struct own *own = NULL;
	bool is_used = false;

	if (!segment)
		return;
	pthread_mutex_lock(&lock);
	for (node = owns.next; node != &owns && !own; node = node->next) {
		own = lb_entry(node, struct own, node);
		if (own->segment != segment)
			own = NULL;
	}
	if (own) {
		is_used = --own->users;
		if (!is_used)
			lb_list_del(&own->node);
	}
	pthread_mutex_unlock(&lock);
	if (is_used)
		return;
	free(own);
	munmap((void *)(uintptr_t)segment, SIZE);
}

void lb_segment_fork(enum lb_fork_step step)
{
	if (step == LB_FORK_BEFORE)
		pthread_mutex_lock(&lock);
	if (step == LB_FORK_CHILD)
		lb_list_init(&owns); /* nothing of it is mapped here */
	if (step != LB_FORK_BEFORE)
		pthread_mutex_unlock(&lock);
}
