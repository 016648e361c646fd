/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* post.h -- what posters of connections and of SRQs share. */

#ifndef RT_POST_H
#define RT_POST_H

#include "rpma_rt.h"

#define RT_POST_CHUNK 32 /* work requests a doorbell, at most */

/* RPMA_E_AGAIN, for that reason; the calling thread's rpma_rt_again_reason() */
int rt_post_again(enum rpma_rt_again reason);

#endif /* RT_POST_H */
