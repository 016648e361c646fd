/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The echo example's command line. Another test checks the output.
 */

#include <getopt.h>
#include <string.h>

#include "../../cases.h"
#include "options.h"

#define MAX_WORDS 32

/* Splits at blanks, as a shell would. */
static enum parsed parse(const char *line, struct options *options)
{
	static char text[256];
	char *argv[MAX_WORDS + 1] = {"rt-echo"};
	int argc = 1;

	strncpy(text, line, sizeof(text) - 1);
	for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
		argv[argc++] = word;
	optind = 0; /* getopt starts afresh */
	return options_parse(argc, argv, options);
}

TEST(options_parse__nothing_DEFAULTS_ARE_SANE)
{
	struct options o;

	assert_int_equal(parse("", &o), PARSED_OK);
	assert_int_equal(o.role, ROLE_BOTH);
	assert_null(o.address);
	assert_string_equal(o.port, "0");
	assert_true(o.connections && o.size && o.depth && o.seconds);
	assert_int_equal(o.messages, 0);
	assert_false(o.is_manual);
}

TEST(options_parse__all_TAKEN)
{
	struct options o;

	assert_int_equal(parse("--connections 8 client --size=100 --depth 3 "
			       "--messages 77 --workers 2 --poll=manual "
			       "--address 1.2.3.4 --port 5 --seed 6",
			       &o),
			 PARSED_OK);
	assert_int_equal(o.role, ROLE_CLIENT);
	assert_int_equal(o.connections, 8);
	assert_int_equal(o.size, 100);
	assert_int_equal(o.depth, 3);
	assert_int_equal(o.messages, 77);
	assert_int_equal(o.seconds, 0);
	assert_int_equal(o.workers, 2);
	assert_true(o.is_manual);
	assert_string_equal(o.address, "1.2.3.4");
	assert_string_equal(o.port, "5");
	assert_int_equal(o.seed, 6);
}

TEST(options_parse__server_RUNS_UNTIL_STOPPED)
{
	struct options o;

	assert_int_equal(parse("server", &o), PARSED_OK);
	assert_int_equal(o.seconds, 0);
	assert_int_equal(o.messages, 0);
}

TEST(options_parse__help_HELP)
{
	struct options o;

	assert_int_equal(parse("--help", &o), PARSED_HELP);
	assert_int_equal(parse("client -h", &o), PARSED_HELP);
}

TEST(options_parse__bad_WRONG_AND_UNTOUCHED)
{
	static const char *const LINES[] = {
		"--size 0",
		"--size 23",
		"--size 1048577",
		"--size x",
		"--size -1",
		"--size 64x",
		"--size 99999999999999999999999",
		"--depth 0",
		"--depth 8193",
		"--connections 0",
		"--connections 4097",
		"--pollers 0",
		"--workers 65",
		"--seconds 0",
		"--messages 0",
		"--poll=fast",
		"--port 65536",
		"--port http",
		"--seed -1",
		"--bogus",
		"--size",
		"-x",
		"sever",
		"client server",
		"client",
		"client --address",
		"client --address 1.2.3.4 --port 0",
		"--seconds 1 --messages 1",
		"--poll=manual --pollers 1",
		"--connections 4096 --depth 8192 --size 1048576",
		"-- both",
	};
	struct options o;

	for (size_t i = 0; i < sizeof(LINES) / sizeof(LINES[0]); i++) {
		struct options before;

		memset(&o, 0x5a, sizeof(o));
		before = o;
		assert_int_equal(parse(LINES[i], &o), PARSED_WRONG);
		assert_memory_equal(&o, &before, sizeof(o));
	}
}

TEST_MAIN()
