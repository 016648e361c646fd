/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Any bytes as the descriptor of a peer configuration: none are refused; the
 * first one is the flag, and comes out again as 0 or 1.
 */

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rpma_peer_cfg *const nothing = (void *)&size;
	struct rpma_peer_cfg *pcfg = nothing;
	int before = mocks_live();
	uint8_t again = 0xff;
	bool direct = false;
	size_t desc_size = 0;

	if (size == 0) {
		expect(rpma_peer_cfg_from_descriptor(&again, 0, &pcfg) ==
		       RPMA_E_INVAL);
		expect(pcfg == nothing);
		return 0;
	}
	expect(rpma_peer_cfg_from_descriptor(data, size, &pcfg) == 0);
	expect(rpma_peer_cfg_get_direct_write_to_pmem(pcfg, &direct) == 0);
	expect(direct == (data[0] != 0));
	expect(rpma_peer_cfg_get_descriptor_size(pcfg, &desc_size) == 0);
	expect(desc_size == sizeof(again));
	expect(rpma_peer_cfg_get_descriptor(pcfg, &again) == 0);
	expect(again == direct);
	expect(rpma_peer_cfg_delete(&pcfg) == 0);
	expect(mocks_live() == before);
	return 0;
}
