/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * options.c: the command line: options, errors, defaults.
 */

#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "message.h"

#define DEFAULT_PORT	"7471"
#define DEFAULT_SECONDS 3

enum {
	OPT_HELP = 'h',
	OPT_POLLERS = 256,
	OPT_WORKERS,
	OPT_CONNECTIONS,
	OPT_SIZE,
	OPT_DEPTH,
	OPT_SECONDS,
	OPT_MESSAGES,
	OPT_POLL,
	OPT_ADDRESS,
	OPT_PORT,
	OPT_SEED
};

static const struct option LONG_OPTIONS[] = {
	{"help", no_argument, NULL, OPT_HELP},
	{"pollers", required_argument, NULL, OPT_POLLERS},
	{"workers", required_argument, NULL, OPT_WORKERS},
	{"connections", required_argument, NULL, OPT_CONNECTIONS},
	{"size", required_argument, NULL, OPT_SIZE},
	{"depth", required_argument, NULL, OPT_DEPTH},
	{"seconds", required_argument, NULL, OPT_SECONDS},
	{"messages", required_argument, NULL, OPT_MESSAGES},
	{"poll", required_argument, NULL, OPT_POLL},
	{"address", required_argument, NULL, OPT_ADDRESS},
	{"port", required_argument, NULL, OPT_PORT},
	{"seed", required_argument, NULL, OPT_SEED},
	{NULL, 0, NULL, 0},
};

static const char HELP[] =
	"usage: rt-echo [both|server|client] [options]\n"
	"A server that sends every message back, and its load generator;\n"
	"both (the default) runs the two in one process.\n"
	"\n"
	"  --connections C     connections (4); server: at a time (1024)\n"
	"  --size S            bytes of a message (64); server: at most\n"
	"  --depth D           messages in flight per connection (16);\n"
	"                      server: at most (64)\n"
	"  --seconds T         how long (3); server: until Ctrl-C\n"
	"  --messages N        how many in all, instead of --seconds; server:\n"
	"                      ends after so many, when nobody is connected\n"
	"  --pollers P         threads that poll the device\n"
	"  --workers W         threads of each end that handle messages\n"
	"                      (P and W: chosen by the number of CPUs)\n"
	"  --poll=adaptive     pollers spin a while, then sleep (default)\n"
	"  --poll=manual       no pollers: each worker polls for itself\n"
	"  --address A         server: listens there (the first RDMA "
	"address);\n"
	"                      client: the server's (must be given)\n"
	"  --port P            port (7471; both: any free one)\n"
	"  --seed X            of the pattern in the messages (1)\n"
	"\n"
	"Ctrl-C ends after what is outstanding; a second one at once.\n"
	"Status: 0 all is well, 1 something failed or was lost, 2 wrong "
	"usage.\n";

static bool wrong(const char *name, const char *text, const char *what)
{
	fprintf(stderr, "rt-echo: --%s %s: %s\n", name, text, what);
	return false;
}

static bool parse_number(const char *name, const char *text, uint64_t min,
			 uint64_t max, uint64_t *value)
{
	char what[80];
	char *end;

	errno = 0;
	unsigned long long number = strtoull(text, &end, 10);
	bool is_number = text[0] >= '0' && text[0] <= '9' && *end == '\0';
	if (is_number && !errno && number >= min && number <= max) {
		*value = number;
		return true;
	}
	snprintf(what, sizeof(what), "give a number from %llu to %llu",
		 (unsigned long long)min, (unsigned long long)max);
	return wrong(name, text, what);
}

static bool parse_unsigned(const char *name, const char *text, unsigned min,
			   unsigned max, unsigned *value)
{
	uint64_t number;

	if (!parse_number(name, text, min, max, &number))
		return false;
	*value = (unsigned)number;
	return true;
}

static bool parse_poll(const char *text, bool *is_manual)
{
	*is_manual = strcmp(text, "manual") == 0;
	if (*is_manual || strcmp(text, "adaptive") == 0)
		return true;
	return wrong("poll", text, "give adaptive or manual");
}

static bool parse_port(const char *text, const char **port)
{
	unsigned number;

	if (!parse_unsigned("port", text, 0, 65535, &number))
		return false;
	*port = text;
	return true;
}

static bool parse_option(int opt, const char *arg, struct options *o)
{
	switch (opt) {
	case OPT_POLLERS:
		return parse_unsigned("pollers", arg, 1, MAX_THREADS,
				      &o->pollers);
	case OPT_WORKERS:
		return parse_unsigned("workers", arg, 1, MAX_THREADS,
				      &o->workers);
	case OPT_CONNECTIONS:
		return parse_unsigned("connections", arg, 1, MAX_CONNECTIONS,
				      &o->connections);
	case OPT_SIZE:
		return parse_unsigned("size", arg, MESSAGE_MIN, MESSAGE_MAX,
				      &o->size);
	case OPT_DEPTH:
		return parse_unsigned("depth", arg, 1, MAX_DEPTH, &o->depth);
	case OPT_SECONDS:
		return parse_number("seconds", arg, 1, 31536000, &o->seconds);
	case OPT_MESSAGES:
		return parse_number("messages", arg, 1, UINT64_C(1) << 48,
				    &o->messages);
	case OPT_POLL:
		return parse_poll(arg, &o->is_manual);
	case OPT_ADDRESS:
		o->address = arg;
		return arg[0] || wrong("address", "''", "give an address");
	case OPT_PORT:
		return parse_port(arg, &o->port);
	case OPT_SEED:
		return parse_number("seed", arg, 0, UINT64_MAX, &o->seed);
	default:
		return false;
	}
}

static bool parse_role(const char *text, enum role *role)
{
	static const char *const NAMES[] = {"both", "server", "client"};

	for (unsigned i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++) {
		if (strcmp(text, NAMES[i]) == 0) {
			*role = (enum role)i;
			return true;
		}
	}
	fprintf(stderr,
		"rt-echo: no role \"%s\": give both, server or "
		"client\n",
		text);
	return false;
}

static bool contradict(const char *what)
{
	fprintf(stderr, "rt-echo: %s\n", what);
	return true;
}

static bool has_contradiction(const struct options *o)
{
	bool is_client = o->role == ROLE_CLIENT;

	if (o->seconds && o->messages)
		return contradict("--seconds and --messages: give only one");
	if (o->is_manual && o->pollers)
		return contradict("--pollers with --poll=manual: there every "
				  "worker polls; give --workers only");
	if (is_client && !o->address)
		return contradict("client: where is the server? give "
				  "--address");
	if (is_client && o->port && strtoul(o->port, NULL, 10) == 0)
		return contradict("client: --port 0: give the server's port");
	return false;
}

/*
 * Checks the size of all buffers. A server makes buffers only for connected
 * clients, and counts then.
 */
static bool is_too_large(const struct options *o)
{
	uint64_t bytes = buffer_bytes(o->connections, o->depth, o->size);

	if (o->role == ROLE_SERVER || bytes <= MEMORY_MAX)
		return false;
	fprintf(stderr,
		"rt-echo: --connections %u --depth %u --size %u: that is "
		"%.1f GiB of buffers, at most 1; lower one of them\n",
		o->connections, o->depth, o->size, (double)bytes / MEMORY_MAX);
	return true;
}

static void fill_defaults(struct options *o)
{
	bool is_server = o->role == ROLE_SERVER;

	if (!o->connections)
		o->connections = is_server ? 1024 : 4;
	if (!o->size)
		o->size = is_server ? MESSAGE_MAX : 64;
	if (!o->depth)
		o->depth = is_server ? 64 : 16;
	if (!o->port)
		o->port = o->role == ROLE_BOTH ? "0" : DEFAULT_PORT;
	if (!o->seconds && !o->messages && !is_server)
		o->seconds = DEFAULT_SECONDS;
}

/* Parses an option, or a role, which comes as option 1; prints an error. */
static bool parse_next(int opt, char **argv, bool *is_role_given,
		       struct options *o)
{
	if (opt == '?' || opt == ':') {
		fprintf(stderr, "rt-echo: %s: %s; see --help\n",
			argv[optind - 1],
			opt == ':' ? "needs a value" : "no such option");
		return false;
	}
	if (opt != 1)
		return parse_option(opt, optarg, o);
	if (*is_role_given) {
		fprintf(stderr, "rt-echo: %s: one role only\n", optarg);
		return false;
	}
	*is_role_given = true;
	return parse_role(optarg, &o->role);
}

enum parsed options_parse(int argc, char **argv, struct options *options)
{
	struct options o = {.seed = 1};
	bool is_role_given = false;
	int opt;

	opterr = 0;
	/* "-": a role may stand anywhere; ":": a missing value is reported as
	 * ':' */
	while ((opt = getopt_long(argc, argv, "-:h", LONG_OPTIONS, NULL)) !=
	       -1) {
		if (opt == OPT_HELP) {
			fputs(HELP, stdout);
			return PARSED_HELP;
		}
		if (!parse_next(opt, argv, &is_role_given, &o))
			return PARSED_WRONG;
	}
	if (optind < argc) {
		fprintf(stderr, "rt-echo: %s: see --help\n", argv[optind]);
		return PARSED_WRONG;
	}
	if (has_contradiction(&o))
		return PARSED_WRONG;
	fill_defaults(&o);
	if (is_too_large(&o))
		return PARSED_WRONG;
	*options = o;
	return PARSED_OK;
}
