/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * dump.c -- rpma_rt_dump(): takes a snapshot, judges and prints the snapshot
 * into memory, and writes the text while no lock is held. Any thread.
 * doc/protocols/directory.md.
 */

#include "rpma_rt.h"

#include <stdlib.h>

#include "base/cancel.h"
#include "base/context.h"
#include "base/log.h"
#include "base/write.h"
#include "dump/dump.h"

static int dump_print(const struct rt_dump_all *dump,
		      enum rpma_rt_dump_format format, char **text, size_t *len)
{
	struct rt_dump_out out = {.file = open_memstream(text, len)};
	bool has_failed;

	if (out.file == NULL)
		return RPMA_E_NOMEM;
	if (format == RPMA_RT_DUMP_HUMAN)
		rt_dump_human(dump, &out);
	else if (format == RPMA_RT_DUMP_JSON)
		rt_dump_json(dump, &out);
	else
		rt_dump_prometheus(dump, &out);
	has_failed = ferror(out.file) != 0;
	if (fclose(out.file) != 0 || has_failed) {
		free(*text);
		return RPMA_E_NOMEM;
	}
	return 0;
}

int rpma_rt_dump(struct rpma_rt *rt, int fd, enum rpma_rt_dump_format format)
{
	RT_NOT_CANCELLED;
	static const char what[] = "no dump is written";
	struct rt_dump_all dump = {0};
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
	ret = rt_dump_take(rt, &dump);
	if (ret == RPMA_RT_E_BUSY)
		return RT_REFUSE(ret, "no dump is written: another thread "
				      "holds the runtime's directory for long");
	if (ret == 0)
		rt_dump_wrong_judge(&dump);
	if (ret == 0 && dump.is_short)
		ret = RPMA_E_NOMEM;
	if (ret == 0)
		ret = dump_print(&dump, format, &text, &len);
	rt_dump_free(&dump);
	if (ret)
		return RT_REFUSED(ret, what);
	ret = rt_write_all(fd, text, len);
	free(text);
	return RT_REFUSED(ret, what);
}
