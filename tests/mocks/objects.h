/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* Mock objects that both halves of the mocks know. */

#ifndef MOCKS_OBJECTS_H
#define MOCKS_OBJECTS_H

#include <infiniband/verbs.h>

struct mock_pd {
	struct ibv_pd pd;
	int users;
};

struct mock_cq {
	struct ibv_cq cq;
	int users; /* queue pairs */
	unsigned unacked;
};

#endif /* MOCKS_OBJECTS_H */
