/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * cfg.c -- what a connection of the runtime is made with. Plain data of
 * its owner until rpma_rt_listen() or rpma_rt_conn_new() copies it.
 */

#include "conn/cfg.h"

#include <stdlib.h>
#include <string.h>

#include "poller/poller.h"
#include "srq/srq.h"

#define MAX_KEEPALIVE_MS 3600000

/* Copies one value by its getter and setter. */
#define COPY(from, to, name, type)                      \
	do {                                            \
		type value;                             \
		rpma_conn_cfg_get_##name(from, &value); \
		rpma_conn_cfg_set_##name(to, value);    \
	} while (0)

static void copy_values(const struct rpma_conn_cfg *from,
			struct rpma_conn_cfg *to)
{
	COPY(from, to, timeout, int);
	COPY(from, to, sq_size, uint32_t);
	COPY(from, to, rq_size, uint32_t);
	COPY(from, to, max_send_sge, uint32_t);
	COPY(from, to, max_recv_sge, uint32_t);
	COPY(from, to, max_inline_data, uint32_t);
	COPY(from, to, responder_resources, uint8_t);
	COPY(from, to, initiator_depth, uint8_t);
	COPY(from, to, retry_count, uint8_t);
	COPY(from, to, rnr_retry_count, uint8_t);
	COPY(from, to, min_rnr_timer, uint8_t);
	COPY(from, to, ack_timeout, uint8_t);
	COPY(from, to, tos, int);
}

/* Does it name what is the runtime's to choose? */
static bool names_ours(const struct rpma_conn_cfg *cfg)
{
	struct rpma_cq *cq;
	struct rpma_cq *rcq;
	struct rpma_channel *channel;
	struct rpma_cm_channel *cm;
	struct rpma_srq *srq;
	bool shared;

	rpma_conn_cfg_get_cq(cfg, &cq);
	rpma_conn_cfg_get_rcq(cfg, &rcq);
	rpma_conn_cfg_get_channel(cfg, &channel);
	rpma_conn_cfg_get_cm_channel(cfg, &cm);
	rpma_conn_cfg_get_srq(cfg, &srq);
	rpma_conn_cfg_get_compl_channel(cfg, &shared);
	return cq || rcq || channel || cm || srq || shared;
}

/* from NULL: the defaults */
static int values_new(const struct rpma_conn_cfg *from,
		      struct rpma_conn_cfg **to_ptr)
{
	int ret = rpma_conn_cfg_new(to_ptr);

	if (ret == 0 && from != NULL)
		copy_values(from, *to_ptr);
	return ret;
}

int rt_conn_cfg_copy(const struct rpma_rt_conn_cfg *cfg,
		     struct rpma_rt_conn_cfg **copy_ptr)
{
	struct rpma_rt_conn_cfg *copy;
	int ret = rpma_rt_conn_cfg_new(&copy);

	if (ret)
		return ret;
	if (cfg != NULL) {
		*copy = *cfg;
		copy->conn_cfg = NULL;
		if (cfg->conn_cfg != NULL)
			ret = values_new(cfg->conn_cfg, &copy->conn_cfg);
	}
	if (ret) {
		rpma_rt_conn_cfg_delete(&copy);
		return ret;
	}
	*copy_ptr = copy;
	return 0;
}

bool rt_conn_cfg_is_of(const struct rpma_rt_conn_cfg *cfg,
		       const struct rpma_rt *rt)
{
	int i;

	for (i = 0; cfg != NULL && i < RPMA_RT_MAX_POLLERS; i++) {
		if (cfg->srqs[i] != NULL && cfg->srqs[i]->rt != rt)
			return false;
	}
	return true;
}

int rt_conn_cfg_verbs(const struct rpma_rt_conn_cfg *cfg,
		      struct rpma_cm_channel *cm,
		      struct rpma_conn_cfg **verbs_ptr)
{
	struct rpma_conn_cfg *verbs;
	int ret = values_new(cfg == NULL ? NULL : cfg->conn_cfg, &verbs);

	if (ret)
		return ret;
	rpma_conn_cfg_set_cm_channel(verbs, cm);
	*verbs_ptr = verbs;
	return 0;
}

int rpma_rt_conn_cfg_new(struct rpma_rt_conn_cfg **cfg_ptr)
{
	struct rpma_rt_conn_cfg *cfg;

	if (cfg_ptr == NULL)
		return RPMA_E_INVAL;
	cfg = calloc(1, sizeof(*cfg));
	if (cfg == NULL)
		return RPMA_E_NOMEM;
	*cfg_ptr = cfg;
	return 0;
}

int rpma_rt_conn_cfg_delete(struct rpma_rt_conn_cfg **cfg_ptr)
{
	if (cfg_ptr == NULL)
		return RPMA_E_INVAL;
	if (*cfg_ptr != NULL)
		rpma_conn_cfg_delete(&(*cfg_ptr)->conn_cfg);
	free(*cfg_ptr);
	*cfg_ptr = NULL;
	return 0;
}

int rpma_rt_conn_cfg_set_conn_cfg(struct rpma_rt_conn_cfg *cfg,
				  const struct rpma_conn_cfg *conn_cfg)
{
	struct rpma_conn_cfg *copy = NULL;
	int ret;

	if (cfg == NULL || (conn_cfg != NULL && names_ours(conn_cfg)))
		return RPMA_E_INVAL;
	if (conn_cfg != NULL) {
		ret = values_new(conn_cfg, &copy);
		if (ret)
			return ret;
	}
	rpma_conn_cfg_delete(&cfg->conn_cfg);
	cfg->conn_cfg = copy;
	return 0;
}

int rpma_rt_conn_cfg_set_single_poster(struct rpma_rt_conn_cfg *cfg,
				       bool single)
{
	if (cfg == NULL)
		return RPMA_E_INVAL;
	cfg->single_poster = single;
	return 0;
}

int rpma_rt_conn_cfg_set_keepalive_ms(struct rpma_rt_conn_cfg *cfg, uint32_t ms)
{
	if (cfg == NULL || ms > MAX_KEEPALIVE_MS)
		return RPMA_E_INVAL;
	cfg->keepalive_ms = ms;
	return 0;
}

int rpma_rt_conn_cfg_set_srqs(struct rpma_rt_conn_cfg *cfg,
			      struct rpma_rt_srq *const *srqs, int count)
{
	struct rpma_rt_srq *of_poller[RPMA_RT_MAX_POLLERS] = {NULL};
	int poller;
	int i;

	if (cfg == NULL || count < 0 || (count > 0 && srqs == NULL))
		return RPMA_E_INVAL;
	for (i = 0; i < count; i++) {
		if (srqs[i] == NULL || srqs[i]->rt != srqs[0]->rt)
			return RPMA_E_INVAL;
		poller = srqs[i]->poller->index;
		if (of_poller[poller] != NULL)
			return RPMA_E_INVAL;
		of_poller[poller] = srqs[i];
	}
	memcpy(cfg->srqs, of_poller, sizeof(of_poller));
	return 0;
}

/* ---------------------------------------------------------------- SRQs --- */

uint64_t rt_conn_cfg_srq_pollers(const struct rpma_rt_conn_cfg *cfg)
{
	uint64_t pollers = 0;
	int i;

	for (i = 0; cfg != NULL && i < RPMA_RT_MAX_POLLERS; i++) {
		if (cfg->srqs[i] != NULL)
			pollers |= UINT64_C(1) << i;
	}
	return pollers;
}

void rt_conn_cfg_ref_srqs(const struct rpma_rt_conn_cfg *cfg)
{
	int i;

	for (i = 0; i < RPMA_RT_MAX_POLLERS; i++) {
		if (cfg->srqs[i] != NULL)
			cfg->srqs[i]->users++;
	}
}

void rt_conn_cfg_unref_srqs(const struct rpma_rt_conn_cfg *cfg)
{
	int i;

	for (i = 0; i < RPMA_RT_MAX_POLLERS; i++) {
		if (cfg->srqs[i] != NULL)
			cfg->srqs[i]->users--;
	}
}
