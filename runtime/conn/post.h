/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* post.h -- what posters of connections and of SRQs share. */

#ifndef RT_CONN_POST_H
#define RT_CONN_POST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "rpma_rt.h"

#define RT_POST_CHUNK 32 /* work requests a doorbell, at most */

/* RPMA_E_AGAIN, for that reason; the calling thread's rpma_rt_again_reason() */
int rt_post_again(enum rpma_rt_again reason);

/*
 * A refusal's bit of want, with what was in it before, is not needed after all.
 * False: the poller has taken it, so somebody will be told, and has to have
 * been refused.
 */
bool rt_post_take_back(_Atomic uint32_t *want, uint32_t bit, uint32_t before);

#endif /* RT_CONN_POST_H */
