/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * forked.c -- a child of fork() can only destroy the identifiers of its parent:
 * they have no port, no peer and no events, and no other thread reads or
 * acknowledges any. Event channels go on, as the child's own.
 */

#include "cm/forked.h"

#include <pthread.h>

#include "cm/channel.h"
#include "cm/cm.h"
#include "cm/event.h"
#include "cm/port.h"
#include "cm/reach.h"
#include "cm/table.h"
#include "cm/timer.h"

static void inherit(struct lb_cm_id *id)
{
	struct lb_cm_id *child;

	lb_cm_timer_stop(id);
	lb_cm_reach_stop(id);
	lb_cm_port_leave(id);
	while (lb_cm_event_drop_first(id, &child))
		; /* the child of a request is in the table */
	lb_cm_event_disown(id);
	/* threads of the parent may have waited */
	pthread_cond_init(&id->acked, NULL);
	id->state = LB_CM_GONE;
	id->link = LB_CM_LINK_IDLE;
	id->is_inherited = true;
}

void lb_cm_forked(void)
{
	struct lb_cm_id *id;
	uint32_t cursor = 0;

	lb_cm_timer_forked();
	lb_cm_channel_forked(); /* before units are taken back */
	while ((id = lb_cm_id_walk(&cursor)))
		inherit(id);
	lb_cm_port_forked();
}
