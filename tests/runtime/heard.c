/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* heard.c -- see heard.h. */

#include "heard.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

static struct {
	pthread_mutex_t lock;
	pthread_cond_t more;
	enum rpma_log_level most;
	char text[1 << 16];
} heard = {.lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};

static void heard_fn(enum rpma_log_level level, const char *file_name,
		     const int line_no, const char *function_name,
		     const char *message_format, ...)
{
	size_t used;
	va_list args;

	(void)file_name, (void)line_no, (void)function_name;
	if (level > heard.most)
		return;
	pthread_mutex_lock(&heard.lock);
	used = strlen(heard.text);
	va_start(args, message_format);
	vsnprintf(heard.text + used, sizeof(heard.text) - used, message_format,
		  args);
	va_end(args);
	strncat(heard.text, "\n", sizeof(heard.text) - strlen(heard.text) - 1);
	pthread_cond_broadcast(&heard.more);
	pthread_mutex_unlock(&heard.lock);
	errno = EOVERFLOW; /* as a function of a program may leave errno */
}

void heard_start(enum rpma_log_level most)
{
	heard.most = most;
	MUST(rpma_log_set_function(heard_fn));
}

void heard_forget(void)
{
	pthread_mutex_lock(&heard.lock);
	heard.text[0] = '\0';
	pthread_mutex_unlock(&heard.lock);
}

static int count_locked(const char *words)
{
	const char *at = heard.text;
	int number = 0;

	while ((at = strstr(at, words)) != NULL) {
		at += strlen(words);
		number++;
	}
	return number;
}

int heard_count(const char *words)
{
	int number;

	pthread_mutex_lock(&heard.lock);
	number = count_locked(words);
	pthread_mutex_unlock(&heard.lock);
	return number;
}

void heard_await(const char *words)
{
	pthread_mutex_lock(&heard.lock);
	while (count_locked(words) == 0)
		pthread_cond_wait(&heard.more, &heard.lock);
	pthread_mutex_unlock(&heard.lock);
}

void heard_expect(const char *words)
{
	if (heard_count(words) > 0)
		return;
	fprintf(stderr, "\"%s\" is not in the log: %s\n", words, heard_text());
	abort();
}

const char *heard_text(void)
{
	static char copy[sizeof(heard.text)];

	pthread_mutex_lock(&heard.lock);
	memcpy(copy, heard.text, strlen(heard.text) + 1);
	pthread_mutex_unlock(&heard.lock);
	return copy;
}
