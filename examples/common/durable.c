/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* durable.c: see durable.h. */

#include "durable.h"

#define PART (RPMA_RT_F_LINKED | RPMA_RT_F_PART)

int durable_begin(struct durable *durable, struct rpma_rt_conn *conn,
		  struct rpma_mr_remote *region, const struct rpma_mr_local *mr,
		  size_t word_at)
{
	struct rpma_peer_cfg *cfg;
	int ret = rpma_peer_cfg_new(&cfg);

	if (ret)
		return ret;
	*durable = (struct durable){
		.conn = conn, .region = region, .mr = mr, .word_at = word_at};
	ret = rpma_peer_cfg_set_direct_write_to_pmem(cfg, true);
	if (ret == 0)
		ret = rpma_rt_conn_apply_remote_peer_cfg(conn, cfg);
	rpma_peer_cfg_delete(&cfg);
	return ret;
}

int durable_post(struct durable *durable, size_t to, size_t from, size_t len,
		 uint64_t word)
{
	struct durable_step *step =
		&durable->steps[(durable->first + durable->count) %
				DURABLE_STEPS];
	struct rpma_mr_remote *region = durable->region;
	struct rpma_rt_wr wrs[4], *wr = wrs;
	int ret;

	if (durable->count == DURABLE_STEPS)
		return RPMA_E_AGAIN;
	if (len > 0) {
		rpma_rt_prep_write(wr++, region, to, durable->mr, from, len,
				   PART, 0);
		rpma_rt_prep_flush(wr++, region, to, len,
				   RPMA_FLUSH_TYPE_PERSISTENT, PART, 0);
	}
	rpma_rt_prep_atomic_write(wr++, region, durable->word_at,
				  (const char *)&word, PART | RPMA_RT_F_FENCE,
				  0);
	rpma_rt_prep_flush(wr, region, durable->word_at, sizeof(word),
			   RPMA_FLUSH_TYPE_PERSISTENT, 0, 0);
	wr++->future = &step->future;
	ret = rpma_rt_post_send(durable->conn, wrs, (int)(wr - wrs));
	if (ret < 0)
		return ret;
	step->word = word;
	durable->count++;
	return 0;
}

int durable_collect(struct durable *durable, uint64_t *word)
{
	struct rpma_rt_completion cmpl;
	struct durable_step *step;

	while (durable->count > 0) {
		step = &durable->steps[durable->first];
		if (rpma_rt_future_poll(&step->future, &cmpl) != 1)
			return 0;
		if (!rpma_rt_completion_is_ok(&cmpl))
			return -1;
		rpma_rt_future_drop(&step->future);
		*word = step->word;
		durable->first = (durable->first + 1) % DURABLE_STEPS;
		durable->count--;
	}
	return 0;
}

const struct rpma_rt_future *durable_next(const struct durable *durable)
{
	return durable->count ? &durable->steps[durable->first].future : NULL;
}

void durable_drop(struct durable *durable)
{
	for (; durable->count > 0; durable->count--) {
		rpma_rt_future_drop(&durable->steps[durable->first].future);
		durable->first = (durable->first + 1) % DURABLE_STEPS;
	}
}
