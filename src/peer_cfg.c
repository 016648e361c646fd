/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The peer configuration object. Several threads may set and read the flag;
 * everything else belongs to the caller.
 */

#include "peer_cfg.h"

#include <stdlib.h>

#include "log.h"

#define DESCRIPTOR_SIZE 1

static int peer_cfg_new(bool direct_write, struct rpma_peer_cfg **pcfg_ptr)
{
	struct rpma_peer_cfg *pcfg = malloc(sizeof(*pcfg));

	if (pcfg == NULL)
		return RPMA_REFUSE_NOMEM("a configuration of a peer");

	atomic_init(&pcfg->direct_write_to_pmem, direct_write);
	*pcfg_ptr = pcfg;
	return 0;
}

/*
 * Returns the flag. relaxed here and below: a flag by itself, nothing is
 * published with the flag
 */
static bool peer_cfg_get(const struct rpma_peer_cfg *pcfg)
{
	return atomic_load_explicit(&pcfg->direct_write_to_pmem,
				    memory_order_relaxed);
}

int rpma_peer_cfg_new(struct rpma_peer_cfg **pcfg_ptr)
{
	if (pcfg_ptr == NULL)
		return RPMA_REFUSE_NULL(RPMA_E_INVAL, "", pcfg_ptr);
	return peer_cfg_new(false, pcfg_ptr);
}

int rpma_peer_cfg_delete(struct rpma_peer_cfg **pcfg_ptr)
{
	if (pcfg_ptr == NULL)
		return RPMA_REFUSE_NULL(RPMA_E_INVAL, "", pcfg_ptr);

	free(*pcfg_ptr);
	*pcfg_ptr = NULL;
	return 0;
}

int rpma_peer_cfg_set_direct_write_to_pmem(struct rpma_peer_cfg *pcfg,
					   bool supported)
{
	if (pcfg == NULL)
		return RPMA_REFUSE_NULL(RPMA_E_INVAL, "", pcfg);

	/* relaxed: as in peer_cfg_get() */
	atomic_store_explicit(&pcfg->direct_write_to_pmem, supported,
			      memory_order_relaxed);
	return 0;
}

int rpma_peer_cfg_get_direct_write_to_pmem(const struct rpma_peer_cfg *pcfg,
					   bool *supported)
{
	if (pcfg == NULL || supported == NULL)
		return RPMA_REFUSE_NULL(RPMA_E_INVAL, "", pcfg, supported);

	*supported = peer_cfg_get(pcfg);
	return 0;
}

int rpma_peer_cfg_get_descriptor(const struct rpma_peer_cfg *pcfg, void *desc)
{
	if (pcfg == NULL || desc == NULL)
		return RPMA_REFUSE_NULL(RPMA_E_INVAL, "", pcfg, desc);

	*(uint8_t *)desc = peer_cfg_get(pcfg);
	return 0;
}

int rpma_peer_cfg_get_descriptor_size(const struct rpma_peer_cfg *pcfg,
				      size_t *desc_size)
{
	if (pcfg == NULL || desc_size == NULL)
		return RPMA_REFUSE_NULL(RPMA_E_INVAL, "", pcfg, desc_size);

	*desc_size = DESCRIPTOR_SIZE;
	return 0;
}

int rpma_peer_cfg_from_descriptor(const void *desc, size_t desc_size,
				  struct rpma_peer_cfg **pcfg_ptr)
{
	bool direct_write;
	int ret;

	if (desc == NULL || pcfg_ptr == NULL)
		return RPMA_REFUSE_NULL(RPMA_E_INVAL, "", desc, pcfg_ptr);
	if (desc_size < DESCRIPTOR_SIZE) {
		RPMA_LOG_ERROR("a peer configuration has at least %d byte",
			       DESCRIPTOR_SIZE);
		return RPMA_E_INVAL;
	}

	direct_write = *(const uint8_t *)desc != 0;
	ret = peer_cfg_new(direct_write, pcfg_ptr);
	if (ret == 0)
		RPMA_LOG_INFO("peer configuration: direct write to pmem: %s",
			      direct_write ? "yes" : "no");
	return ret;
}
