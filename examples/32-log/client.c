/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * client ADDRESS PORT append|read [REPLICAS [MS]]: appends each line of the
 * standard input, or prints all records. ADDRESS is a list with commas; a
 * replica without an address is at the last of the list. The ports are PORT,
 * PORT + 1, and so on. MS is the deadline of the quorum.
 */

#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <librpma.h>

#include "log.h"

#define REPLICAS 3 /* of which more than half are a quorum */
#define TEND_MS	 100

static struct log *the_log;
static int deadline_ms = 10000;

/* Prints the records from the position to the end, each with the word, or
 * counts the records if word is NULL. */
static void print(const char *word, uint64_t *position, uint64_t end)
{
	static unsigned number;
	const char *data;
	uint32_t len;

	while (*position < end) {
		data = log_read(the_log, position, &len);
		number++;
		if (word != NULL)
			printf("%s %u: %.*s\n", word, number, (int)len, data);
	}
}

static int fail(int status, const struct log_cfg *cfg)
{
	static const char *const why[] = {
		"", "no quorum in time", "the log is full",
		"the log has another writer", "the log cannot be opened"};
	int i;

	fflush(stdout);
	fprintf(stderr, "%s\n", why[-status]);
	for (i = 0; status == LOG_LATE && i < cfg->replicas; i++)
		fprintf(stderr,
			"  replica %d: does a server run at %s port %s?\n",
			i + 1, cfg->addresses[i], cfg->ports[i]);
	return 1;
}

/* Appends lines as they come, and prints what is acknowledged meanwhile. */
static int append(const struct log_cfg *cfg)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	uint64_t printed = 0;
	ssize_t len = 1;
	size_t room = 0;
	char *line = NULL;
	bool is_idle;
	int ret = LOG_OK;

	setvbuf(stdin, NULL, _IONBF, 0); /* poll() sees all that is there */
	print(NULL, &printed, log_end(the_log));
	do {
		is_idle = log_acknowledged(the_log) == log_end(the_log);
		if (len > 0 && poll(&in, 1, is_idle ? TEND_MS : 0) > 0) {
			len = getline(&line, &room, stdin);
			if (len > 0)
				ret = log_append(the_log, line,
						 (uint32_t)strcspn(line, "\n"));
		} else {
			ret = log_wait(the_log,
				       is_idle ? 0
					       : log_acknowledged(the_log) + 1,
				       deadline_ms);
		}
		print("acknowledged", &printed, log_acknowledged(the_log));
		fflush(stdout);
	} while (ret == LOG_OK &&
		 (len > 0 || log_acknowledged(the_log) < log_end(the_log)));
	free(line);
	return ret == LOG_OK ? 0 : fail(ret, cfg);
}

int main(int argc, char **argv)
{
	struct log_cfg cfg = {.replicas = argc > 4 ? atoi(argv[4]) : REPLICAS};
	char ports[LOG_MAX_REPLICAS][16], *next;
	bool is_read = argc > 3 && strcmp(argv[3], "read") == 0;
	uint64_t position = 0;
	int ret, i;

	if (argc < 4 || (!is_read && strcmp(argv[3], "append") != 0) ||
	    cfg.replicas < 1 || cfg.replicas > LOG_MAX_REPLICAS) {
		fprintf(stderr,
			"usage: %s ADDRESS PORT append|read [REPLICAS [MS]]\n"
			"REPLICAS: 1 to %d\n",
			argv[0], LOG_MAX_REPLICAS);
		return 2;
	}
	if (argc > 5)
		deadline_ms = atoi(argv[5]);
	for (i = 0, next = argv[1]; i < cfg.replicas; i++) {
		cfg.addresses[i] =
			next ? strsep(&next, ",") : cfg.addresses[i - 1];
		cfg.ports[i] = ports[i];
		snprintf(ports[i], sizeof(ports[i]), "%d", atoi(argv[2]) + i);
	}
	/* that replicas are away and come back is no error here */
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_FATAL);
	ret = log_open(&cfg, deadline_ms, &the_log);
	if (ret != LOG_OK)
		return fail(ret, &cfg);
	if (is_read)
		print("record", &position, log_end(the_log));
	else
		ret = append(&cfg);
	log_close(&the_log);
	return ret;
}
