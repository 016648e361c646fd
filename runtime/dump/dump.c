/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * dump.c -- rpma_rt_dump(): takes a snapshot, judges it and prints it into
 * memory, and writes that while no lock is held. Any thread.
 * doc/protocols/directory.md.
 */

#include "rpma_rt.h"

#include <stdlib.h>

#include "base/cancel.h"
#include "base/context.h"
#include "base/log.h"
#include "base/write.h"
#include "dump/printers.h"
#include "dump/snapshot.h"
#include "dump/wrong.h"

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

int rpma_rt_dump(struct rpma_rt *rt, int fd, enum rpma_rt_dump_format format)
{
	RT_NOT_CANCELLED;
	static const char what[] = "no dump is written";
	struct rt_dump dump = {0};
	char *text = NULL;
	size_t len = 0;
	int ret;

	ret = RT_REFUSE_NULL(rt);
	if (ret)
		return ret;
	if (fd < 0 || (int)format < RPMA_RT_DUMP_HUMAN ||
	    (int)format > RPMA_RT_DUMP_PROMETHEUS)
		return RT_REFUSE(RPMA_E_INVAL,
				 "fd is %d and format %d: give an open "
				 "descriptor and an enum rpma_rt_dump_format",
				 fd, (int)format);
	ret = RT_REFUSE_FORKED(rt);
	if (ret)
		return ret;
	ret = rt_dump_snapshot_take(rt, &dump);
	if (ret == RPMA_RT_E_BUSY)
		return RT_REFUSE(ret, "no dump is written: another thread "
				      "holds the runtime's directory for long");
	if (ret)
		return RT_REFUSED(ret, what);
	ret = rt_dump_wrong_judge(&dump);
	if (ret == 0)
		ret = print(&dump, format, &text, &len);
	rt_dump_snapshot_free(&dump);
	if (ret)
		return RT_REFUSED(ret, what);
	ret = rt_write_all(fd, text, len);
	free(text);
	return RT_REFUSED(ret, what);
}
