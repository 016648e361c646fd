/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* check.c -- see check.h. */

#include "check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "loader.h"
#include "say.h"
#include "target.h"

#define MAX_SCRIPTS \
	5 /* a script run by a script, and so on; the limit of the
		       * kernel */

static const char *const replaced[] = {"libibverbs.so.1", "librdmacm.so.1"};

/* Prints the reason for a verdict; returns the verdict. */
__attribute__((format(printf, 3, 4))) static enum check_verdict
check_tell(const struct check *check, enum check_verdict verdict,
	   const char *fmt, ...)
{
	char words[2 * PATH_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(words, sizeof(words), fmt, ap);
	va_end(ap);
	if (check->out)
		fprintf(check->out, "%s: %s\n", check->path, words);
	else if (verdict != CHECK_APPLIES && verdict != CHECK_NEEDS_NONE)
		say_text("%s: %s", check->path, words);
	return verdict;
}

/* --- files */

/*
 * Returns true if the kernel would raise the privileges of the file: not under
 * no_new_privs, nor from a nosuid file system.
 */
static bool check_may_raise(const struct check *check)
{
	struct statvfs fs;

	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 &&
	       (statvfs(check->path, &fs) || !(fs.f_flag & ST_NOSUID));
}

static enum check_verdict check_privileges(const struct check *check)
{
	struct stat st;

	if (stat(check->path, &st) || !check_may_raise(check))
		return CHECK_APPLIES;
	if ((st.st_mode & S_ISUID && st.st_uid != getuid()) ||
	    (st.st_mode & S_ISGID && st.st_gid != getgid()))
		return check_tell(check, CHECK_DOES_NOT,
				  "set-user-ID or set-group-ID of another: the "
				  "loader preloads nothing; use a copy "
				  "without the bit");
	if (getuid() != 0 &&
	    getxattr(check->path, "security.capability", NULL, 0) > 0)
		return check_tell(check, CHECK_DOES_NOT,
				  "has file capabilities: the loader preloads "
				  "nothing; use a copy, without capabilities");
	return CHECK_APPLIES;
}

static enum check_verdict check_elf(struct check *check)
{
	const struct elf_file *elf = &check->program;

	if (!elf_file_is_alike(elf, &check->device))
		return check_tell(
			check, CHECK_DOES_NOT,
			"ELF class %d, byte order %d, machine %d; the "
			"device has class %d, byte order %d, machine %d: "
			"build the device for the machine of the program",
			elf->class, elf->order, elf->machine,
			check->device.class, check->device.order,
			check->device.machine);
	if (!elf->loader)
		return check_tell(
			check, CHECK_DOES_NOT,
			"linked statically: nothing can be preloaded; link "
			"with shared libraries");
	if (strstr(elf->loader, "ld-musl"))
		return check_tell(
			check, CHECK_DOES_NOT,
			"the loader is %s, of musl: the device needs glibc",
			elf->loader);
	return check_privileges(check);
}

/* Checks that no directory in DT_RPATH has libibverbs or librdmacm. */
static enum check_verdict check_rpath(const struct check *check)
{
	const char *rpath = check->program.rpath;
	char file[PATH_MAX];
	size_t i, len;

	while (check->setup->replace && rpath && *rpath) {
		len = strcspn(rpath, ":");
		for (i = 0; i < 2; i++) {
			snprintf(file, sizeof(file), "%.*s/%s", (int)len, rpath,
				 replaced[i]);
			if (!access(file, F_OK))
				return check_tell(
					check, CHECK_DOES_NOT,
					"DT_RPATH has %s, which comes "
					"before the replacement: link "
					"with -Wl,--enable-new-dtags, or "
					"take the path out",
					file);
		}
		rpath += len + (rpath[len] == ':');
	}
	return CHECK_APPLIES;
}

/* Finds the file of the command, and refuses files that are not executable. */
static enum check_verdict check_find(struct check *check, const char *command)
{
	switch (target_find(command, check->path)) {
	case TARGET_NOT_FOUND:
		snprintf(check->path, sizeof(check->path), "%s", command);
		return check_tell(check, CHECK_NOT_FOUND,
				  strchr(command, '/') ? "not found"
						       : "not found in PATH");
	case TARGET_NOT_EXECUTABLE:
		return check_tell(check, CHECK_NOT_EXECUTABLE,
				  "not executable");
	default:
		return CHECK_APPLIES;
	}
}

enum check_verdict check_files(struct check *check, const char *command)
{
	enum check_verdict verdict;
	char next[PATH_MAX];
	int is_script, depth = 0;

	if (elf_file_open(&check->device, check->place->device)) {
		say_errno("%s", check->place->device);
		return CHECK_FAILED;
	}
	verdict = check_find(check, command);
	while (!verdict) {
		is_script = target_interpreter(check->path, next);
		if (is_script < 0 ||
		    elf_file_open(&check->program, check->path))
			return check_tell(
				check, CHECK_DOES_NOT,
				"cannot be read, so nothing is known");
		if (!is_script)
			break;
		elf_file_close(&check->program);
		if (++depth > MAX_SCRIPTS)
			return check_tell(check, CHECK_NOT_EXECUTABLE,
					  "a script of scripts without end");
		check_tell(check, CHECK_APPLIES, "a script, executed by %s",
			   next);
		verdict = check_find(check, next);
	}
	if (!verdict)
		verdict = check_elf(check);
	return verdict ? verdict : check_rpath(check);
}

/* --- what the loader says */

/* Says why the loader refused the program or the device. */
static enum check_verdict check_refused(const struct check *check,
					const struct loader_answer *answer)
{
	char line[PATH_MAX];

	if (loader_line(answer, "version `GLIBC_", line))
		return check_tell(
			check, CHECK_DOES_NOT,
			"the glibc of the program is too old, the device "
			"needs 2.34: %s",
			line);
	if (loader_line(answer, "cannot be preloaded", line))
		return check_tell(check, CHECK_DOES_NOT, "%s", line);
	if (loader_line(answer, "not found", line) ||
	    loader_line(answer, "error while loading", line))
		return check_tell(check, CHECK_DOES_NOT,
				  "does not start here: %s", line);
	if (!loader_line(answer, "", line))
		line[0] = '\0';
	return check_tell(check, CHECK_DOES_NOT,
			  "the loader refuses the program: %s", line);
}

/*
 * Checks that the loader takes libibverbs and librdmacm from the replacements.
 */
static enum check_verdict check_replaced(const struct check *check,
					 const struct loader_answer *answer)
{
	size_t len = strlen(check->place->replacements);
	char file[PATH_MAX], real[PATH_MAX];
	size_t i;

	for (i = 0; i < 2; i++) {
		if (!loader_file(answer, replaced[i], file))
			continue;
		if (!realpath(file, real) ||
		    strncmp(real, check->place->replacements, len) != 0)
			return check_tell(check, CHECK_DOES_NOT,
					  "loads %s, not the replacement: "
					  "DT_RPATH comes first",
					  file);
	}
	return CHECK_APPLIES;
}

static enum check_verdict check_linked(const struct check *check,
				       const struct loader_answer *answer)
{
	char file[PATH_MAX];

	if (check->setup->replace && check_replaced(check, answer))
		return CHECK_DOES_NOT;
	if (loader_file(answer, replaced[0], file) ||
	    loader_file(answer, replaced[1], file))
		return check_tell(
			check, CHECK_APPLIES,
			"the device applies: the device comes before %s", file);
	if (!elf_file_has(&check->program, "libibverbs.so") &&
	    !elf_file_has(&check->program, "librdmacm.so"))
		return check_tell(
			check, CHECK_NEEDS_NONE,
			"links to neither libibverbs nor librdmacm: the "
			"device applies to libraries and programs loaded "
			"later");
	if (check->setup->replace)
		return check_tell(
			check, CHECK_APPLIES,
			"the device applies: look-ups by dlopen() find the "
			"replacements");
	return check_tell(check, CHECK_DOES_NOT,
			  "looks libibverbs or librdmacm up by dlopen(), past "
			  "preloaded libraries: use --replace");
}

enum check_verdict check_loading(struct check *check)
{
	struct loader_answer *answer = malloc(sizeof(*answer));
	enum check_verdict verdict = CHECK_FAILED;
	char line[PATH_MAX];

	if (!answer || loader_ask(check->program.loader, check->path, answer))
		say_errno("cannot ask %s", check->program.loader);
	else if (!answer->is_good ||
		 loader_line(answer, "cannot be preloaded", line) ||
		 loader_line(answer, "not found", line))
		verdict = check_refused(check, answer);
	else
		verdict = check_linked(check, answer);
	free(answer);
	return verdict;
}
