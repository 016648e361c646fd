/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * pmem.c -- files that stand for persistent memory. A registration finds the
 * mappings below the region in /proc/self/maps, and maps the files a second
 * time, so a word can be restored after the program has unmapped the file. All
 * under the lock of power.c.
 */

#include "memory/pmem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/log.h"

#define PAGE_BYTES (LB_PMEM_PAGE_WORDS * LB_PMEM_WORD)

/* A part of a registered region in a mapping of a file. */
struct view {
	struct view *next;
	const void *region;
	uintptr_t from, to;
	struct lb_pmem *file;
	uint64_t offset; /* of from, in the file */
};

/* A line of /proc/self/maps. */
struct mapping {
	uintptr_t from, to;
	uint64_t offset;
	bool is_shared;
	char *path;
};

struct lb_pmem *lb_pmem_files;

static const char *named;
static struct view *views;

void lb_pmem_start(const char *names)
{
	named = names;
}

/* --- words */

void lb_pmem_own(struct lb_pmem *file, size_t word, uint32_t owner)
{
	if (file->owner[word] == owner)
		return;
	file->image[word] = file->now[word];
	/* a stop of the process between two stores finds a word that is
	 * persistent, or volatile with its image */
	atomic_signal_fence(memory_order_release);
	if (!file->owner[word])
		file->counts[word / LB_PMEM_PAGE_WORDS]++;
	file->owner[word] = owner;
	atomic_signal_fence(memory_order_release);
}

/* --- files */

static void *map_shared(void *at, size_t size)
{
	void *mem =
		mmap(at, size, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);

	return mem == MAP_FAILED ? NULL : mem;
}

/* The shadow is a single mapping: images, owners, counts. */
static size_t shadow_size(size_t words)
{
	return words * (sizeof(uint64_t) + sizeof(uint32_t)) +
	       words / LB_PMEM_PAGE_WORDS * sizeof(uint32_t);
}

/* Makes a file longer, or maps a file for the first time; 0 or an errno. */
static int map_words(struct lb_pmem *file, int fd, size_t words)
{
	size_t size = words * LB_PMEM_WORD, before = file->words;
	void *now = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	uint64_t *image = map_shared(NULL, shadow_size(words));
	uint32_t *owner = (uint32_t *)(image + words);
	uint32_t *counts = owner + words;

	if (now == MAP_FAILED || !image)
		return errno;
	if (before) {
		memcpy(image, file->image, before * sizeof(*image));
		memcpy(owner, file->owner, before * sizeof(*owner));
		memcpy(counts, file->counts,
		       before / LB_PMEM_PAGE_WORDS * sizeof(*counts));
		munmap(file->now, before * LB_PMEM_WORD);
		munmap(file->image, shadow_size(before));
	}
	file->now = now;
	file->image = image;
	file->owner = owner;
	file->counts = counts;
	file->words = words;
	return 0;
}

static struct lb_pmem *find(const struct stat *st)
{
	struct lb_pmem *file = lb_pmem_files;

	while (file && (file->dev != st->st_dev || file->ino != st->st_ino))
		file = file->next;
	return file;
}

static struct lb_pmem *add_file(const struct stat *st)
{
	struct lb_pmem *file = calloc(1, sizeof(*file));

	if (!file)
		return NULL;
	file->dev = st->st_dev;
	file->ino = st->st_ino;
	return file;
}

/* Returns the file behind a descriptor, mapped as a whole; NULL and errno. */
static struct lb_pmem *file_of(int fd)
{
	struct lb_pmem *file;
	struct stat st;
	size_t words;
	int err;

	if (fstat(fd, &st))
		return NULL;
	if (!S_ISREG(st.st_mode)) {
		errno = ENODEV;
		return NULL;
	}
	words = ((size_t)st.st_size + PAGE_BYTES - 1) / PAGE_BYTES *
		LB_PMEM_PAGE_WORDS;
	file = find(&st);
	if (file && file->words >= words)
		return file;
	if (!file && !(file = add_file(&st)))
		return NULL;
	err = map_words(file, fd, words);
	if (!err && !find(&st)) {
		file->next = lb_pmem_files;
		lb_pmem_files = file;
	}
	errno = err;
	return err ? NULL : file;
}

static struct lb_pmem *open_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct lb_pmem *file = fd >= 0 ? file_of(fd) : NULL;

	if (!file)
		lb_log(0, "%s is not taken for persistent memory: %s", path,
		       strerror(errno));
	if (fd >= 0)
		close(fd);
	return file;
}

/* --- mappings */

/* Returns true for the file of this name, or a file below the directory. */
static bool covers(const char *name, const char *path)
{
	char full[PATH_MAX];
	size_t len;

	if (!realpath(name, full))
		return false;
	len = strlen(full);
	return !strncmp(full, path, len) && (!path[len] || path[len] == '/');
}

static bool is_named(const char *path)
{
	char *names = named ? strdup(named) : NULL, *rest = names, *name;
	bool found = false;

	while (!found && (name = strsep(&rest, ":")))
		found = *name && covers(name, path);
	free(names);
	return found;
}

/* Reads a line of /proc/self/maps; false: not the mapping of a file. */
static bool parse(char *line, struct mapping *m)
{
	unsigned long from, to, inode;
	unsigned long long offset;
	char rights[5];
	int at = 0;

	if (sscanf(line, "%lx-%lx %4s %llx %*s %lu %n", &from, &to, rights,
		   &offset, &inode, &at) != 5 ||
	    !at)
		return false;
	m->from = from;
	m->to = to;
	m->offset = offset;
	m->is_shared = rights[3] == 's';
	m->path = line + at;
	m->path[strcspn(m->path, "\n")] = '\0';
	return inode && *m->path == '/';
}

/* Adds what a region has of a mapping. */
static void add_view(const void *region, const struct mapping *m,
		     uintptr_t from, uintptr_t to)
{
	struct lb_pmem *file = open_file(m->path);
	struct view *view = file ? malloc(sizeof(*view)) : NULL;

	if (!view)
		return;
	view->region = region;
	view->from = from > m->from ? from : m->from;
	view->to = to < m->to ? to : m->to;
	view->offset = m->offset + (view->from - m->from);
	view->file = file;
	view->next = views;
	views = view;
}

void lb_pmem_add(const void *region, const void *addr, size_t len, bool any)
{
	LB_NOT_CANCELLED;
	uintptr_t from = (uintptr_t)addr, to = from + len;
	FILE *maps = fopen("/proc/self/maps", "re");
	struct mapping m;
	char *line = NULL;
	size_t room = 0;

	if (!maps) {
		lb_log(0, "/proc/self/maps: %s: no memory is persistent",
		       strerror(errno));
		return;
	}
	while (getline(&line, &room, maps) > 0) {
		if (parse(line, &m) && m.is_shared && m.from < to &&
		    from < m.to && (any || is_named(m.path)))
			add_view(region, &m, from, to);
	}
	free(line);
	fclose(maps);
}

void lb_pmem_remove(const void *region)
{
	struct view **at = &views, *view;

	while ((view = *at)) {
		if (view->region != region) {
			at = &view->next;
			continue;
		}
		*at = view->next;
		free(view);
	}
}

void lb_pmem_each(const void *addr, uint64_t len,
		  void (*fn)(struct lb_pmem *file, size_t from, size_t to,
			     void *arg),
		  void *arg)
{
	uintptr_t from = (uintptr_t)addr, to = from + len;
	const struct view *view;

	for (view = views; view; view = view->next) {
		uintptr_t a = from > view->from ? from : view->from;
		uintptr_t b = to < view->to ? to : view->to;
		uint64_t offset = view->offset + (a - view->from);

		if (a < b)
			fn(view->file, offset / LB_PMEM_WORD,
			   (offset + (b - a) + LB_PMEM_WORD - 1) / LB_PMEM_WORD,
			   arg);
	}
}

void lb_pmem_forked(void)
{
	struct lb_pmem *file;

	/* the shadow so far is the parent's */
	for (file = lb_pmem_files; file; file = file->next)
		map_shared(file->image, shadow_size(file->words));
}
