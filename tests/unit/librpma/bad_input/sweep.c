/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* See sweep.h. */

#include "sweep.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POISON	  0xa5
#define NAMES_MAX 512
#define TEXT_MAX  1024

/* literals, as the macros pass them */
static struct {
	const char *function;
	bool refused; /* in words, at least once */
} called[NAMES_MAX];
static size_t called_count;

static size_t find(const char *function)
{
	size_t i;

	for (i = 0; i < called_count; i++) {
		if (strcmp(called[i].function, function) == 0)
			break;
	}
	return i;
}

void sweep_begin(const char *function)
{
	size_t at = find(function);

	if (at == called_count) {
		assert_true(called_count < NAMES_MAX);
		called[called_count++].function = function;
	}
	memset(sweep_ground.out, POISON, sweep_ground.out_size);
	sweep_ground.forget();
}

static bool is_untouched(void)
{
	const unsigned char *bytes = sweep_ground.out;
	size_t i;

	for (i = 0; i < sweep_ground.out_size; i++) {
		if (bytes[i] != POISON)
			return false;
	}
	return true;
}

/* ---------------------------------------------------------- prototypes --- */

static bool is_name_char(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Returns true if the text has the bytes as a whole word. */
static bool has_word(const char *text, const char *word, size_t len)
{
	const char *at;

	for (at = text; (at = strstr(at, word)) != NULL; at++) {
		if ((at == text || !is_name_char(at[-1])) &&
		    !is_name_char(at[len]))
			return true;
	}
	return false;
}

static char *read_all(const char *path)
{
	FILE *file = fopen(path, "r");
	char *text = calloc(1, 1 << 20);

	assert_non_null(file);
	assert_non_null(text);
	assert_true(fread(text, 1, (1 << 20) - 1, file) > 0);
	fclose(file);
	return text;
}

/* "(type name, type name)" of a function, after its name; "": not there */
static void find_parameters(const char *function, char list[TEXT_MAX])
{
	const char *const *path;
	const char *at;
	char *text;
	size_t len = strlen(function);

	list[0] = '\0';
	for (path = sweep_ground.headers; *path && !list[0]; path++) {
		text = read_all(*path);
		for (at = text; (at = strstr(at, function)) != NULL; at++) {
			if (is_name_char(at[-1]) || at[len] != '(' ||
			    at[len + 1] == ')')
				continue;
			snprintf(list, TEXT_MAX, "%.*s",
				 (int)strcspn(at + len, ";{"), at + len);
			break;
		}
		free(text);
	}
}

/* The nth parameter's name; false: there are fewer. */
static bool parameter(const char *list, int nth, char name[64])
{
	const char *end = list;
	const char *begin;

	for (;;) {
		end += strcspn(end, ",)");
		if (nth-- == 0 || *end != ',')
			break;
		end++;
	}
	if (nth >= 0)
		return false;
	if (end[-1] == ']') /* an array */
		while (*end != '[')
			end--;
	for (begin = end; begin > list && is_name_char(begin[-1]);)
		begin--;
	snprintf(name, 64, "%.*s", (int)(end - begin), begin);
	return name[0] != '\0';
}

/* --------------------------------------------------------------- words --- */

static bool has_parameter(const char *function, const char *text)
{
	char list[TEXT_MAX];
	char name[64];
	int i;

	find_parameters(function, list);
	for (i = 0; parameter(list, i, name); i++) {
		if (has_word(text, name, strlen(name)))
			return true;
	}
	return false;
}

static bool is_null(const char *function, int nth, const char *text)
{
	char list[TEXT_MAX];
	char name[64];
	char words[80];

	if (!sweep_ground.names_parameters)
		return strstr(text, "is NULL") != NULL;
	find_parameters(function, list);
	if (!parameter(list, nth, name))
		return false;
	snprintf(words, sizeof(words), "%s is NULL", name);
	return has_word(text, words, strlen(words));
}

static bool has_words(const char *words, const char *text)
{
	char word[128];
	size_t len;

	for (; *words; words += len + (words[len] == '|')) {
		len = strcspn(words, "|");
		/* of an element of an array, the array */
		snprintf(word, sizeof(word), "%.*s", (int)strcspn(words, "|["),
			 words);
		if (strstr(text, word) == NULL)
			return false;
	}
	return true;
}

static void check_log(const char *function, int line, int ret,
		      const char *words, int nth)
{
	enum rpma_log_level expected;
	enum rpma_log_level level = RPMA_LOG_DISABLED;
	char text[TEXT_MAX] = "";
	bool is_right;
	int count;

	if (sweep_ground.heard == NULL) {
		called[find(function)].refused = true;
		return;
	}
	count = sweep_ground.heard(&level, text, sizeof(text));
	expected = sweep_ground.level(ret);
	if (strcmp(words, SWEEP_SILENCE) == 0)
		expected = RPMA_LOG_DISABLED;
	if (count != (expected != RPMA_LOG_DISABLED))
		fail_msg("line %d: %s answers %s with %d messages: %s", line,
			 function, sweep_ground.text(ret), count, text);
	if (count == 0)
		return;
	if (level != expected)
		fail_msg("line %d: %s answers %s at level %d: %s", line,
			 function, sweep_ground.text(ret), (int)level, text);
	if (nth >= 0)
		is_right = is_null(function, nth, text);
	else if (words[0] != '\0')
		is_right = has_words(words, text);
	else
		is_right = has_parameter(function, text);
	if (!is_right)
		fail_msg("line %d: %s says \"%s\", and not \"%s\"", line,
			 function, text, words[0] ? words : "which parameter");
	called[find(function)].refused = true;
}

void sweep_end(const char *function, int line, int ret, int expected,
	       const char *words, int nth)
{
	if (ret != expected)
		fail_msg("line %d: %s answers %s", line, function,
			 sweep_ground.text(ret));
	if (!is_untouched())
		fail_msg("line %d: %s refuses and writes", line, function);
	if (sweep_ground.trace()[0])
		fail_msg("line %d: %s refuses and calls %s", line, function,
			 sweep_ground.trace());
	check_log(function, line, ret, words, nth);
}

void sweep_log(const char *function, int line, int ret, const char *words)
{
	check_log(function, line, ret, words, -1);
}

static bool refuses_none(const char *function)
{
	const char *const *name;

	for (name = sweep_ground.refuse_none; name && *name; name++) {
		if (strcmp(*name, function) == 0)
			return true;
	}
	return false;
}

void sweep_expect_all(void)
{
	FILE *file = fopen(sweep_ground.map, "r");
	size_t names = 0;
	int missing = 0;
	size_t at;
	char line[256];
	char name[128];

	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, " %127[a-z0-9_];", name) != 1 ||
		    strncmp(name, "rpma_", 5) != 0)
			continue;
		names++;
		at = find(name);
		if (at < called_count &&
		    called[at].refused != refuses_none(name))
			continue;
		print_error("%s is not swept, or %s\n", name,
			    refuses_none(name) ? "refuses something"
					       : "refuses nothing");
		missing++;
	}
	fclose(file);
	assert_true(names >= sweep_ground.least);
	assert_int_equal(missing, 0);
}
