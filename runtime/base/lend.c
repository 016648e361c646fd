/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* lend.c -- the consumers of a poller that lends; see lend.h. */

#include "base/lend.h"

void rt_lend_init(struct rt_lending *lending,
		  bool (*serve)(struct rt_owned *owned),
		  bool (*arm)(struct rt_owned *owned))
{
	lending->serve = serve;
	lending->arm = arm;
	pthread_mutex_init(&lending->lock, NULL);
	CDS_INIT_LIST_HEAD(&lending->bells);
}

void rt_lend_fini(struct rt_lending *lending)
{
	if (lending->serve != NULL)
		pthread_mutex_destroy(&lending->lock);
}

void rt_lend_add_bell(struct rt_lending *lending, struct rt_lend_bell *place,
		      const struct rt_bell *bell)
{
	place->bell = bell;
	pthread_mutex_lock(&lending->lock);
	cds_list_add_tail(&place->link, &lending->bells);
	pthread_mutex_unlock(&lending->lock);
}

void rt_lend_remove_bell(struct rt_lending *lending, struct rt_lend_bell *place)
{
	pthread_mutex_lock(&lending->lock);
	cds_list_del(&place->link);
	pthread_mutex_unlock(&lending->lock);
}

bool rt_lend_has_sleeper(struct rt_lending *lending)
{
	const struct rt_lend_bell *place;
	bool is_any = false;

	pthread_mutex_lock(&lending->lock);
	cds_list_for_each_entry(place, &lending->bells, link) is_any |=
		rt_bell_is_due(place->bell);
	pthread_mutex_unlock(&lending->lock);
	return is_any;
}
