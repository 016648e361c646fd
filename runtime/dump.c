/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * dump.c -- rpma_rt_dump(): takes a snapshot, prints it into memory, and writes
 * that while no lock is held. Any thread. doc/protocols/directory.md.
 */

#include "rpma_rt.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/context.h"
#include "dump_printers.h"
#include "dump_snapshot.h"

static int print(const struct rt_dump *dump, enum rpma_rt_dump_format format,
		 char **text, size_t *len)
{
	FILE *out = open_memstream(text, len);
	bool failed;

	if (out == NULL)
		return RPMA_E_NOMEM;
	if (format == RPMA_RT_DUMP_HUMAN)
		rt_dump_human(dump, out);
	else if (format == RPMA_RT_DUMP_JSON)
		rt_dump_json(dump, out);
	else
		rt_dump_prometheus(dump, out);
	failed = ferror(out) != 0;
	if (fclose(out) != 0 || failed) {
		free(*text);
		return RPMA_E_NOMEM;
	}
	return 0;
}

static int write_all(int fd, const char *text, size_t len)
{
	ssize_t n;

	while (len > 0) {
		n = write(fd, text, len);
		if (n < 0 && errno == EINTR)
			continue;
		/* none at all: it would be so the next time */
		if (n <= 0)
			return RPMA_E_PROVIDER;
		text += n;
		len -= (size_t)n;
	}
	return 0;
}

int rpma_rt_dump(struct rpma_rt *rt, int fd, enum rpma_rt_dump_format format)
{
	struct rt_dump dump = {0};
	char *text = NULL;
	size_t len = 0;
	int ret;

	if (rt == NULL || fd < 0 || (int)format < RPMA_RT_DUMP_HUMAN ||
	    (int)format > RPMA_RT_DUMP_PROMETHEUS)
		return RPMA_E_INVAL;
	ret = rt_context_check(rt);
	if (ret)
		return ret;
	ret = rt_dump_snapshot_take(rt, &dump);
	if (ret)
		return ret;
	ret = print(&dump, format, &text, &len);
	rt_dump_snapshot_free(&dump);
	if (ret)
		return ret;
	ret = write_all(fd, text, len);
	free(text);
	return ret;
}
