/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* The SRQ configuration object, generated from the list of fields. */

#include "srq_cfg.h"
#include "log.h"

#include <stdlib.h>

struct rpma_srq_cfg {
	RPMA__SRQ_CFG_FIELDS(RPMA__CFG_ATOMIC)
};

static const struct rpma_srq_cfg defaults = {
	RPMA__SRQ_CFG_FIELDS(RPMA__CFG_INITIAL)};

void rpma__srq_cfg_read(const struct rpma_srq_cfg *cfg,
			struct rpma__srq_cfg *values)
{
	if (cfg == NULL)
		cfg = &defaults;
#define READ(name, type, initial, is_valid, range) \
	values->name = RPMA__CFG_LOAD(cfg, name);
	RPMA__SRQ_CFG_FIELDS(READ)
#undef READ
}

int rpma_srq_cfg_new(struct rpma_srq_cfg **cfg_ptr)
{
	struct rpma_srq_cfg *cfg;

	if (cfg_ptr == NULL)
		return RPMA_REFUSE_NULL(RPMA_E_INVAL, "", cfg_ptr);

	cfg = malloc(sizeof(*cfg));
	/* written also when there is no memory, as in release 1.3 */
	*cfg_ptr = cfg;
	if (cfg == NULL)
		return RPMA_REFUSE_NOMEM("a configuration of an SRQ");
#define INIT(name, type, initial, is_valid, range) \
	atomic_init(&cfg->name, initial);
	RPMA__SRQ_CFG_FIELDS(INIT)
#undef INIT
	return 0;
}

int rpma_srq_cfg_delete(struct rpma_srq_cfg **cfg_ptr)
{
	if (cfg_ptr == NULL)
		return RPMA_REFUSE_NULL(RPMA_E_INVAL, "", cfg_ptr);

	free(*cfg_ptr);
	*cfg_ptr = NULL;
	return 0;
}

#define SET_AND_GET(name, type, initial, is_valid, range)   \
	RPMA__CFG_SET(srq_cfg, name, type, is_valid, range) \
	RPMA__CFG_GET(srq_cfg, name, type)
RPMA__SRQ_CFG_FIELDS(SET_AND_GET)
