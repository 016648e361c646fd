/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * words.h: arguments of a program as words NAME=VALUE, for programs with many
 * settings.
 */

#ifndef EXAMPLES_WORDS_H
#define EXAMPLES_WORDS_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct word {
	const char *name;
	uint64_t *number; /* NULL: a text */
	const char **text;
	uint64_t least, most; /* of a number */
	const char *help;
};

static inline bool word_read(const struct word *word, const char *value)
{
	unsigned long long number;
	char *end;

	if (word->number == NULL) {
		*word->text = value;
		return *value != 0;
	}
	errno = 0;
	number = strtoull(value, &end, 10);
	if (errno || end == value || *end || *value == '-' ||
	    number < word->least || number > word->most)
		return false;
	*word->number = number;
	return true;
}

static inline void words_help(const struct word *words)
{
	for (; words->name != NULL; words++) {
		fprintf(stderr, "  %s=", words->name);
		if (words->number != NULL)
			fprintf(stderr, "%llu",
				(unsigned long long)*words->number);
		else
			fprintf(stderr, "%s", *words->text ? *words->text : "");
		fprintf(stderr, "  %s\n", words->help);
	}
}

/* Reads the arguments ADDRESS PORT [NAME=VALUE...]; returns false, and prints
 * the words, for any other. The list ends with a name of NULL. */
static inline bool words_read(const struct word *words, int argc, char **argv)
{
	const struct word *word;
	size_t len;
	int i;

	for (i = 3; i < argc; i++) {
		len = strcspn(argv[i], "=");
		for (word = words; word->name != NULL; word++)
			if (strlen(word->name) == len &&
			    strncmp(word->name, argv[i], len) == 0)
				break;
		if (word->name != NULL && argv[i][len] == '=' &&
		    word_read(word, argv[i] + len + 1))
			continue;
		fprintf(stderr, "%s: no such word, or no such value\n",
			argv[i]);
		break;
	}
	if (argc >= 3 && i == argc)
		return true;
	fprintf(stderr, "usage: %s ADDRESS PORT [NAME=VALUE...]\n", argv[0]);
	words_help(words);
	return false;
}

#endif /* EXAMPLES_WORDS_H */
