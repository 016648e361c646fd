/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * main.c -- rpma-loopback: starts a program with the loopback device in place
 * of libibverbs and librdmacm, or says whether the device would apply.
 */

#include <dlfcn.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "place.h"
#include "say.h"
#include "setup.h"
#include "watch.h"

static const char help[] =
	"usage: rpma-loopback [options] COMMAND [ARGUMENT...]\n"
	"Starts COMMAND with an RDMA device in user space.\n"
	"\n"
	"  --check         say whether the device applies, start nothing\n"
	"  --replace       libibverbs.so.1 and librdmacm.so.1 too, for "
	"programs\n"
	"                  that find both by dlopen() or dlsym()\n"
	"  --stats         messages and bytes on stderr at exit\n"
	"  --pcap NAME     traffic, as packets, in NAME.PROCESS.pcapng\n"
	"  --fault RULES   faults to inject; may be given several times\n"
	"  --strict MODE   on misuse: off, warn, abort\n"
	"  --mode MODE     inline, or thread: work is done later\n"
	"  --devices N     how many devices\n"
	"  --network N     other processes with the same N are reached\n"
	"  --seed N        seed of random choices\n"
	"  --power-fail SEED[:N]\n"
	"                  power fails at the Nth remote operation, or by "
	"SIGPWR\n"
	"  --pmem PATH     this file, or all below this directory, is "
	"persistent\n"
	"                  memory; may be given several times\n"
	"  --log N         how much the device says\n"
	"  --help, --version\n"
	"\n"
	"See man 1 rpma-loopback, and man 7 rpma_loopback for the rules.\n";

enum {
	OPT_CHECK = 256,
	OPT_REPLACE,
	OPT_STATS,
	OPT_PCAP,
	OPT_FAULT,
	OPT_PMEM,
	OPT_VARIABLE, /* and following: an option for each of variables[] */
};

static const char main_two[] = "SEED or SEED:N, two numbers";

/* Options whose argument is the value of a variable. */
static const struct {
	const char *option;
	const char *name;
	/* the allowed words, or NULL: a number, or main_two: and perhaps a
	 * colon and a second number */
	const char *values;
} variables[] = {
	{"strict", "RPMA_LOOPBACK_STRICT", " off warn abort "},
	{"mode", "RPMA_LOOPBACK_MODE", " inline thread "},
	{"devices", "RPMA_LOOPBACK_DEVICES", NULL},
	{"network", "RPMA_LOOPBACK_NETWORK", NULL},
	{"seed", "RPMA_LOOPBACK_SEED", NULL},
	{"log", "RPMA_LOOPBACK_LOG", NULL},
	{"power-fail", "RPMA_LOOPBACK_POWER_FAIL", main_two},
};
#define VARIABLES (int)(sizeof(variables) / sizeof(*variables))

static const struct option options[] = {
	{"check", no_argument, NULL, OPT_CHECK},
	{"replace", no_argument, NULL, OPT_REPLACE},
	{"stats", no_argument, NULL, OPT_STATS},
	{"pcap", required_argument, NULL, OPT_PCAP},
	{"fault", required_argument, NULL, OPT_FAULT},
	{"strict", required_argument, NULL, OPT_VARIABLE},
	{"mode", required_argument, NULL, OPT_VARIABLE + 1},
	{"devices", required_argument, NULL, OPT_VARIABLE + 2},
	{"network", required_argument, NULL, OPT_VARIABLE + 3},
	{"seed", required_argument, NULL, OPT_VARIABLE + 4},
	{"log", required_argument, NULL, OPT_VARIABLE + 5},
	{"power-fail", required_argument, NULL, OPT_VARIABLE + 6},
	{"pmem", required_argument, NULL, OPT_PMEM},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{NULL, 0, NULL, 0},
};

static _Noreturn void main_usage(void)
{
	fputs("try rpma-loopback --help\n", stderr);
	exit(CHECK_FAILED);
}

/* Returns the text behind the number that begins the text; NULL: no number. */
static const char *main_skip_number(const char *text)
{
	size_t digits = strspn(text, "0123456789");

	return digits ? text + digits : NULL;
}

/*
 * Returns true for a word of the list (with a blank around each word), or for a
 * number, or for two.
 */
static int main_is_value(const char *value, const char *values)
{
	const char *rest = main_skip_number(value);
	char word[64];

	if (values == main_two && rest && *rest == ':')
		rest = main_skip_number(rest + 1);
	if (!values || values == main_two)
		return rest && !*rest;
	snprintf(word, sizeof(word), " %s ", value);
	return !strchr(value, ' ') && strstr(values, word);
}

static void main_set_variable(int n, const char *value)
{
	if (!main_is_value(value, variables[n].values)) {
		say_text("--%s %s: want %s", variables[n].option, value,
			 variables[n].values ? variables[n].values
					     : "a number");
		main_usage();
	}
	setup_set(variables[n].name, value);
}

static void main_take_option(struct setup *setup, int option)
{
	switch (option) {
	case OPT_CHECK:
		setup->check = true;
		break;
	case OPT_REPLACE:
		setup->replace = true;
		break;
	case OPT_STATS:
		setup->stats = true;
		break;
	case OPT_PCAP:
		setup_set("RPMA_LOOPBACK_PCAP", optarg);
		break;
	case OPT_FAULT:
		setup_add_fault(optarg);
		break;
	case OPT_PMEM:
		setup_add_pmem(optarg);
		break;
	case 'h':
		fputs(help, stdout);
		exit(0);
	case 'V':
		puts("rpma-loopback " LAUNCH_VERSION);
		exit(0);
	default:
		if (option < OPT_VARIABLE || option >= OPT_VARIABLE + VARIABLES)
			main_usage(); /* getopt_long() has printed the reason */
		main_set_variable(option - OPT_VARIABLE, optarg);
	}
}

static void main_take_options(struct setup *setup, int argc, char **argv)
{
	int option;

	/* "+": options behind the command belong to the command */
	while ((option = getopt_long(argc, argv, "+h", options, NULL)) != -1)
		main_take_option(setup, option);
	if (optind == argc) {
		say_text("no command");
		main_usage();
	}
	setup->command = argv + optind;
}

/*
 * Gives the rules to the device, which prints the fault in a wrong rule. Runs
 * in a child, because loading the device starts the device.
 */
static _Noreturn void main_try_faults(const char *device_file,
				      const char *rules)
{
	int (*fault)(const char *);
	void *device;

	unsetenv("RPMA_LOOPBACK_FAULT"); /* the start of the device would read
					  * the rules too */
	device = dlopen(device_file, RTLD_NOW);
	*(void **)&fault = device ? dlsym(device, "rpma_loopback_fault") : NULL;
	if (!fault)
		say_text("%s", dlerror());
	_exit(!fault || fault(rules));
}

/* Refuses rules that the device does not understand. */
static int main_check_faults(const struct place *place)
{
	const char *rules = getenv("RPMA_LOOPBACK_FAULT");
	int status = -1;
	pid_t pid;

	if (!rules)
		return 0;
	pid = fork();
	if (pid == 0)
		main_try_faults(place->device, rules);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		say_errno("cannot look at the faults");
	return status ? -1 : 0;
}

static int main_run(struct check *check)
{
	char **command = check->setup->command;
	enum check_verdict verdict;

	/* reported now: the program would only find no device */
	verdict = check_files(check, command[0]);
	if (verdict && verdict != CHECK_DOES_NOT)
		return verdict;
	if (setup_environment(check->setup, check->place, &check->program))
		return CHECK_FAILED;
	if (check->setup->stats)
		watch_fork();
	execvp(command[0], command);
	verdict = errno == ENOENT ? CHECK_NOT_FOUND : CHECK_NOT_EXECUTABLE;
	say_errno("%s", command[0]);
	return verdict;
}

static int main_judge(struct check *check)
{
	enum check_verdict verdict;

	check->out = stdout;
	verdict = check_files(check, check->setup->command[0]);
	if (verdict)
		return verdict;
	if (setup_environment(check->setup, check->place, &check->program))
		return CHECK_FAILED;
	verdict = check_loading(check);
	if (verdict == CHECK_APPLIES)
		printf("%s: files of the device in /dev/infiniband and "
		       "/sys/class/infiniband are shown by %s, no privilege "
		       "is needed\n",
		       check->path, check->place->files);
	return verdict;
}

int main(int argc, char **argv)
{
	struct setup setup = {.check = false};
	struct place place;
	struct check check = {.setup = &setup, .place = &place};

	main_take_options(&setup, argc, argv);
	if (place_find(&place) || main_check_faults(&place))
		return CHECK_FAILED;
	return setup.check ? main_judge(&check) : main_run(&check);
}
