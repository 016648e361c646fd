/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * random.h -- numbers by chance.
 */

#ifndef LB_BASE_RANDOM_H
#define LB_BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

uint64_t lb_random(void); /* any thread; follows from the seed */
void lb_random_draw(void *buf,
		    size_t size);   /* any thread; nobody can foretell */
void lb_random_restart(void);	    /* draw the numbers of the seed again */
uint64_t lb_random_mix(uint64_t x); /* a bijection that scatters */

#endif /* LB_BASE_RANDOM_H */
