/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * advice.c: a list of sentences for each kind of advice.
 */

#include "advice.h"

#include <stdarg.h>
#include <stdio.h>

#define KINDS	   2
#define MAX_ADVICE 32
#define MAX_TEXT   400

struct item {
	char why[MAX_TEXT];
	char type[MAX_TEXT];
};

static struct item items[KINDS][MAX_ADVICE];
static int counts[KINDS];

void advise(enum advice kind, const char *type, const char *why, ...)
{
	va_list args;

	if (counts[kind] == MAX_ADVICE)
		return;
	struct item *item = &items[kind][counts[kind]++];
	va_start(args, why);
	vsnprintf(item->why, sizeof(item->why), why, args);
	va_end(args);
	snprintf(item->type, sizeof(item->type), "%s", type);
}

static void print_list(enum advice kind, const char *title)
{
	if (counts[kind] == 0)
		return;
	printf("\n%s\n", title);
	for (int i = 0; i < counts[kind]; i++)
		printf("  %d. %s\n         %s\n", i + 1, items[kind][i].why,
		       items[kind][i].type);
}

void advice_print(void)
{
	print_list(ADVICE_NEEDED, "What is missing, and what to type:");
	print_list(ADVICE_SLOW, "What will be slow, and what to type:");
	if (counts[ADVICE_NEEDED] == 0 && counts[ADVICE_SLOW] == 0)
		printf("\nNothing is missing.\n");
}
