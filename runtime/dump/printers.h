/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* printers.h -- the forms in which a snapshot of a runtime is printed. */

#ifndef RT_DUMP_PRINTERS_H
#define RT_DUMP_PRINTERS_H

#include <stdio.h>

#include "dump/snapshot.h"

void rt_dump_human(const struct rt_dump *dump, FILE *out);
void rt_dump_json(const struct rt_dump *dump, FILE *out);
void rt_dump_prometheus(const struct rt_dump *dump, FILE *out);

#endif /* RT_DUMP_PRINTERS_H */
