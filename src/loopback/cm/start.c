/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * start.c -- what the first identifier starts: messages arrive, and removals of
 * devices.
 */

#include "cm/start.h"

#include <pthread.h>

#include "cm/cm.h"
#include "cm/peer.h"
#include "cm/receive.h"
#include "cm/removal.h"
#include "cm/table.h"
#include "cm/wire.h"
#include "verbs/config.h"
#include "verbs/removal.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void start(void)
{
	lb_config_start();
	lb_removal_listen(lb_cm_removal);
	lb_cm_lock();
	lb_cm_wire_attach(lb_cm_receive);
	lb_cm_unlock();
	lb_cm_peer_start();
}

void lb_cm_start(void)
{
	pthread_once(&once, start);
}
