/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Native and emulated flush. */

#include "flush.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "err.h"
#include "log.h"
#include "verbs_compat.h"

/* A page of its own, so that a fork does not share it with anything else. */
static int map_raw(struct rpma__flush *flush)
{
	long page = sysconf(_SC_PAGESIZE);
	void *raw;

	if (page < 0) {
		RPMA_LOG_FATAL("sysconf(_SC_PAGESIZE) failed: %s",
			       rpma__errno_2str(-1));
		return RPMA_E_PROVIDER;
	}
	raw = mmap(NULL, (size_t)page, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (raw == MAP_FAILED)
		return RPMA_E_NOMEM;
	flush->raw = raw;
	flush->raw_size = (size_t)page;
	return 0;
}

static int init_emulated(struct rpma__flush *flush, struct rpma_peer *peer)
{
	int ret = map_raw(flush);

	if (ret)
		return ret;
	ret = rpma_mr_reg(peer, flush->raw, RPMA__RAW_SIZE,
			  RPMA_MR_USAGE_READ_DST, &flush->raw_mr);
	if (ret)
		(void)munmap(flush->raw, flush->raw_size);
	return ret;
}

int rpma__flush_new(struct rpma_peer *peer, struct ibv_qp *qp,
		    struct rpma__flush **flush_ptr)
{
	struct rpma__flush *flush = calloc(1, sizeof(*flush));
	int ret = 0;

	if (flush == NULL)
		return RPMA_E_NOMEM;
	if (!rpma__qp_has_flush(qp))
		ret = init_emulated(flush, peer);
	if (ret) {
		free(flush);
		return ret;
	}
	*flush_ptr = flush;
	return 0;
}

int rpma__flush_delete(struct rpma__flush **flush_ptr)
{
	struct rpma__flush *flush = *flush_ptr;
	int ret = 0;

	if (flush == NULL)
		return 0;

	if (flush->raw) {
		ret = rpma_mr_dereg(&flush->raw_mr);
		if (munmap(flush->raw, flush->raw_size)) {
			RPMA_LOG_CALL("munmap", -1);
			rpma__err_first(&ret, RPMA_E_INVAL);
		}
	}
	free(flush);
	*flush_ptr = NULL;
	return ret;
}

void rpma__flush_abandon(struct rpma__flush **flush_ptr)
{
	struct rpma__flush *flush = *flush_ptr;

	if (flush == NULL)
		return;
	/* its memory only: the region itself is the parent's too */
	free(flush->raw_mr);
	if (flush->raw)
		(void)munmap(flush->raw, flush->raw_size);
	free(flush);
	*flush_ptr = NULL;
}
