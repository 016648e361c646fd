/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * region ADDRESS KIND [FD]: registers a page with verbs in a way that
 * rpma_mr_reg() does not offer, makes a region of the page, and prints the
 * descriptor of the region.
 */

#include <stdlib.h>
#include <string.h>

#include "../common/peer.h"

#define PAGE 4096
#define ACCESS                                              \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
	 IBV_ACCESS_REMOTE_READ)
#define USAGE (RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_READ_SRC)

struct memory {
	char *page;
	struct ibv_dm *dm;
	struct ibv_mr *ibv_mr;
	uint64_t iova; /* address of the first byte in work requests */
};

static void make(struct memory *memory, struct ibv_pd *pd, const char *kind,
		 int fd)
{
	struct ibv_alloc_dm_attr attr = {.length = PAGE};
	void *page = memory->page;

	memory->iova = (uintptr_t)page;
	if (strcmp(kind, "plain") == 0) {
		memory->ibv_mr = ibv_reg_mr(pd, page, PAGE, ACCESS);
	} else if (strcmp(kind, "relaxed") == 0) {
		/* writes may overtake each other on the way to memory */
		memory->ibv_mr = ibv_reg_mr(
			pd, page, PAGE, ACCESS | IBV_ACCESS_RELAXED_ORDERING);
	} else if (strcmp(kind, "odp") == 0) {
		/* the page is not pinned */
		memory->ibv_mr = ibv_reg_mr(pd, page, PAGE,
					    ACCESS | IBV_ACCESS_ON_DEMAND);
	} else if (strcmp(kind, "dmabuf") == 0) {
		/* memory of a GPU, for example, exported as fd */
		memory->ibv_mr = ibv_reg_dmabuf_mr(pd, 0, PAGE, memory->iova,
						   fd, ACCESS);
	} else if (strcmp(kind, "device") == 0) {
		/* memory on the NIC: addresses begin at 0 */
		memory->iova = 0;
		memory->dm = ibv_alloc_dm(pd->context, &attr);
		if (memory->dm)
			memory->ibv_mr =
				ibv_reg_dm_mr(pd, memory->dm, 0, PAGE,
					      ACCESS | IBV_ACCESS_ZERO_BASED);
	}
}

static int show(struct rpma_peer *peer, const struct memory *memory)
{
	struct rpma_mr_local *mr = NULL;
	unsigned char descriptor[32];
	size_t size = 0;
	int ret = 1;
	size_t i;

	if (!check("rpma_mr_from_ibv_mr",
		   rpma_mr_from_ibv_mr(peer, memory->ibv_mr, memory->iova,
				       USAGE, &mr)) &&
	    !rpma_mr_get_descriptor_size(mr, &size) &&
	    size <= sizeof(descriptor) &&
	    !check("rpma_mr_get_descriptor",
		   rpma_mr_get_descriptor(mr, descriptor))) {
		printf("descriptor: ");
		for (i = 0; i < size; i++)
			printf("%02x", descriptor[i]);
		printf("\n");
		ret = 0;
	}
	rpma_mr_dereg(&mr);
	return ret;
}

int main(int argc, char **argv)
{
	struct memory memory = {0};
	struct rpma_peer *peer = NULL;
	struct ibv_pd *pd;
	int ret = 1;

	if (argc < 3) {
		fprintf(stderr,
			"usage: %s ADDRESS plain|relaxed|odp|dmabuf|device "
			"[FD]\n",
			argv[0]);
		return 2;
	}
	memory.page = aligned_alloc(PAGE, PAGE);
	if (memory.page &&
	    !open_peer(argv[1], RPMA_UTIL_IBV_CONTEXT_LOCAL, &peer) &&
	    !check("rpma_peer_get_ibv_pd", rpma_peer_get_ibv_pd(peer, &pd))) {
		make(&memory, pd, argv[2], argc > 3 ? atoi(argv[3]) : -1);
		if (memory.ibv_mr)
			ret = show(peer, &memory);
		else
			fprintf(stderr, "%s: not with this device\n", argv[2]);
	}
	/* the program owns the ibv_mr: freed after the region, before the
	 * peer */
	if (memory.ibv_mr)
		ibv_dereg_mr(memory.ibv_mr);
	if (memory.dm)
		ibv_free_dm(memory.dm);
	rpma_peer_delete(&peer);
	free(memory.page);
	return ret;
}
