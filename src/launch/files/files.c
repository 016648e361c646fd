/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * files.c -- functions of the C library that take a path. A path below
 * /dev/infiniband, /sys/class/infiniband or /sys/class/infiniband_verbs becomes
 * the path of a file of the loopback device (tree.h), which needs no privilege;
 * every other path goes on unchanged. Calls inside the C library do not come
 * here, hence scandir() beside opendir(), and fopen() beside open().
 */

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tree.h"

#define EXPORT __attribute__((visibility("default")))

/* Calls the function of the C library; a name is looked up once. */
#define NEXT(type, name, ...)                                              \
	({                                                                 \
		static _Atomic(void *) slot;                               \
		/* relaxed: each thread finds the same function */         \
		void *next =                                               \
			atomic_load_explicit(&slot, memory_order_relaxed); \
                                                                           \
		if (!next) {                                               \
			next = dlsym(RTLD_NEXT, name);                     \
			atomic_store_explicit(&slot, next,                 \
					      memory_order_relaxed);       \
		}                                                          \
		((type)next)(__VA_ARGS__);                                 \
	})

/* Returns whether the path is one of the directory, or below. */
static bool files_is_below(const char *path, const char *dir)
{
	size_t len = strlen(dir);

	return !strncmp(path, dir, len) &&
	       (path[len] == '/' || path[len] == '\0');
}

/* Returns the path to use in place of the path, perhaps in buf. */
static const char *files_shown(const char *path, char buf[PATH_MAX])
{
	const char *root;
	int len;

	if (!path || (strncmp(path, "/sys/class/inf", 14) != 0 &&
		      strncmp(path, "/dev/inf", 8) != 0))
		return path;
	if (!files_is_below(path, "/dev/infiniband") &&
	    !files_is_below(path, "/sys/class/infiniband") &&
	    !files_is_below(path, "/sys/class/infiniband_verbs"))
		return path;
	root = tree_root();
	if (!root)
		return path;
	len = snprintf(buf, PATH_MAX, "%s%s", root, path);
	return len < PATH_MAX ? buf : path;
}

/* Returns the mode behind the flags, if a call has one. */
static mode_t files_mode(int flags, va_list ap)
{
	return flags & (O_CREAT | __O_TMPFILE) ? va_arg(ap, mode_t) : 0;
}

/* --- open */

/* A function that opens a path, with parameters of their types before the path,
 * each of which ends with a comma. */
#define OPEN_BEHIND(name, parameters, types, arguments)                     \
	EXPORT int name(parameters const char *path, int flags, ...)        \
	{                                                                   \
		char buf[PATH_MAX];                                         \
		mode_t mode;                                                \
		va_list ap;                                                 \
                                                                            \
		va_start(ap, flags);                                        \
		mode = files_mode(flags, ap);                               \
		va_end(ap);                                                 \
		return NEXT(int (*)(types const char *, int, ...), #name,   \
			    arguments files_shown(path, buf), flags, mode); \
	}
#define COMMA ,

#define OPEN(name)   OPEN_BEHIND(name, , , )
#define OPENAT(name) OPEN_BEHIND(name, int dir COMMA, int COMMA, dir COMMA)

/* A function that begins with a path, has a second argument, and no more. */
#define PATH_AND(result, name, type)                              \
	EXPORT result name(const char *path, type a)              \
	{                                                         \
		char buf[PATH_MAX];                               \
                                                                  \
		return NEXT(result(*)(const char *, type), #name, \
			    files_shown(path, buf), a);           \
	}

/* A function with a number before the path, and an argument behind. */
#define NUMBER_PATH_AND(result, name, type)                               \
	EXPORT result name(int n, const char *path, type a)               \
	{                                                                 \
		char buf[PATH_MAX];                                       \
                                                                          \
		return NEXT(result(*)(int, const char *, type), #name, n, \
			    files_shown(path, buf), a);                   \
	}

/* A function with a number before the path, and two arguments behind. */
#define NUMBER_PATH_AND_2(result, name, type, type_2)                          \
	EXPORT result name(int n, const char *path, type a, type_2 b)          \
	{                                                                      \
		char buf[PATH_MAX];                                            \
                                                                               \
		return NEXT(result(*)(int, const char *, type, type_2), #name, \
			    n, files_shown(path, buf), a, b);                  \
	}

/* Names in capitals are those of headers without a prototype. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dir, const char *path, int flags);
int __openat64_2(int dir, const char *path, int flags);
int __xstat(int version, const char *path, struct stat *st);
int __lxstat(int version, const char *path, struct stat *st);
int __xstat64(int version, const char *path, struct stat64 *st);
int __lxstat64(int version, const char *path, struct stat64 *st);
char *__realpath_chk(const char *path, char *out, size_t size);
ssize_t __readlink_chk(const char *path, char *out, size_t len, size_t size);

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
PATH_AND(int, __open_2, int)
PATH_AND(int, __open64_2, int)
NUMBER_PATH_AND(int, __openat_2, int)
NUMBER_PATH_AND(int, __openat64_2, int)
PATH_AND(FILE *, fopen, const char *)
PATH_AND(FILE *, fopen64, const char *)

/* --- attributes */

PATH_AND(int, stat, struct stat *)
PATH_AND(int, lstat, struct stat *)
PATH_AND(int, stat64, struct stat64 *)
PATH_AND(int, lstat64, struct stat64 *)
NUMBER_PATH_AND(int, __xstat, struct stat *)
NUMBER_PATH_AND(int, __lxstat, struct stat *)
NUMBER_PATH_AND(int, __xstat64, struct stat64 *)
NUMBER_PATH_AND(int, __lxstat64, struct stat64 *)
NUMBER_PATH_AND_2(int, fstatat, struct stat *, int)
NUMBER_PATH_AND_2(int, fstatat64, struct stat64 *, int)
PATH_AND(int, access, int)
PATH_AND(int, euidaccess, int)
NUMBER_PATH_AND_2(int, faccessat, int, int)

EXPORT int statx(int dir, const char *path, int flags, unsigned mask,
		 struct statx *st)
{
	char buf[PATH_MAX];

	return NEXT(int (*)(int, const char *, int, unsigned, struct statx *),
		    "statx", dir, files_shown(path, buf), flags, mask, st);
}

/* --- directories and links */

EXPORT DIR *opendir(const char *path)
{
	char buf[PATH_MAX];

	return NEXT(DIR * (*)(const char *), "opendir", files_shown(path, buf));
}

EXPORT int scandir(const char *path, struct dirent ***names,
		   int (*choose)(const struct dirent *),
		   int (*order)(const struct dirent **, const struct dirent **))
{
	char buf[PATH_MAX];

	return NEXT(__typeof__(scandir) *, "scandir", files_shown(path, buf),
		    names, choose, order);
}

EXPORT int scandir64(const char *path, struct dirent64 ***names,
		     int (*choose)(const struct dirent64 *),
		     int (*order)(const struct dirent64 **,
				  const struct dirent64 **))
{
	char buf[PATH_MAX];

	return NEXT(__typeof__(scandir64) *, "scandir64",
		    files_shown(path, buf), names, choose, order);
}

EXPORT ssize_t readlink(const char *path, char *out, size_t size)
{
	char buf[PATH_MAX];

	return NEXT(__typeof__(readlink) *, "readlink", files_shown(path, buf),
		    out, size);
}

EXPORT ssize_t __readlink_chk(const char *path, char *out, size_t len,
			      size_t size)
{
	char buf[PATH_MAX];

	return NEXT(__typeof__(__readlink_chk) *, "__readlink_chk",
		    files_shown(path, buf), out, len, size);
}

EXPORT char *realpath(const char *path, char *out)
{
	char buf[PATH_MAX];

	return NEXT(__typeof__(realpath) *, "realpath", files_shown(path, buf),
		    out);
}

EXPORT char *__realpath_chk(const char *path, char *out, size_t size)
{
	char buf[PATH_MAX];

	return NEXT(__typeof__(__realpath_chk) *, "__realpath_chk",
		    files_shown(path, buf), out, size);
}
