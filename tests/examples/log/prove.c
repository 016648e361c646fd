/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * prove SERVER CLIENT WHAT FIRST COUNT SECONDS [PRELOAD]: runs the replicated
 * log of examples/32-log under failures that a seed chooses: COUNT seeds from
 * FIRST on, fewer if SECONDS have passed. WHAT is
 *
 *	power	replicas lose power, at any operation, alone or together
 *	kill	SIGKILL in place of the power failure
 *	broken	as power, and a seed has to fail: the client has an error
 *
 * A seed is some rounds on the same files: a client appends lines while
 * replicas end and come back, and ends or is killed; then replicas end, some
 * or all. In the end a client reads the log. A record that was acknowledged or
 * read has the same number ever after; every record is a line that was sent,
 * whole; in the file of a replica every record below the tail is whole.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../../examples/32-log/format.h"

#ifndef REPLICAS
#define REPLICAS 3
#endif
#define QUORUM	   (REPLICAS / 2 + 1)
#define ALL	   ((1u << REPLICAS) - 1)
#define ROUNDS	   3
#define LINES	   40 /* of a round */
#define LINES_MAX  (ROUNDS * LINES)
#define TEXT	   400 /* bytes of a line, at most */
#define OPERATIONS 240 /* a replica loses power at one of the first */
#define PATIENCE_S 300 /* of a seed: ends a hang, decides nothing else */
#define PORT	   7601
#define NEVER	   UINT64_MAX

struct replica {
	pid_t pid;	 /* 0: does not run */
	uint64_t end_at; /* acknowledged lines of the round, or NEVER */
};

static const char *server, *client, *preload;
static const char *address = "127.0.0.1"; /* or RPMA_TEST_ADDR */
static char dir[] = "/tmp/rpma-log-XXXXXX";
static bool is_power;
static uint64_t random_state;
static time_t begun; /* of the seed */
static struct replica replicas[REPLICAS];
static int running;
static char known[LINES_MAX + 1][TEXT]; /* by number; empty: not known */
static int lines_sent;
static bool has_failed; /* the seed; */
static bool is_stuck;	/* not for what the log shows, but for an end */
static unsigned long long acknowledged, ended, clients_killed;

/* ------------------------------------------------------------ helpers --- */

static uint64_t draw(uint64_t below)
{
	uint64_t x = random_state += 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return (x ^ x >> 31) % below;
}

/* Prints why the seed fails; the first reason only. */
__attribute__((format(printf, 1, 2))) static void fail(const char *fmt, ...)
{
	va_list ap;

	if (has_failed)
		return;
	has_failed = true;
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

static void must(bool is_done, const char *what)
{
	if (is_done)
		return;
	perror(what);
	exit(1);
}

static time_t now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

/* Writes the text of a line: the bytes follow from the number of the line. */
static void write_text(char *text, int line)
{
	int len = snprintf(text, TEXT, "line %d ", line);
	int end = len + line * 37 % (TEXT - 32);

	for (; len < end; len++)
		text[len] = (char)('a' + (line * 7 + len) % 26);
	text[len] = 0;
}

static void name_file(char *name, int i)
{
	sprintf(name, "%s/%d", dir, i);
}

/* ---------------------------------------------------------- processes --- */

/* Starts a program; in and out are its standard input and output, -1: none.
 * Errors go to the file "errors" if out is not -1. */
static pid_t start(char *const *argv, int in, int out, const char *power)
{
	pid_t pid = fork();
	char name[64];
	int null, errors;

	must(pid >= 0, "fork");
	if (pid > 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	dup2(in < 0 ? null : in, 0);
	dup2(out < 0 ? null : out, 1);
	snprintf(name, sizeof(name), "%s/errors", dir);
	errors = out < 0 ? null
			 : open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
				0600);
	dup2(errors, 2);
	if (preload != NULL)
		setenv("LD_PRELOAD", preload, 1);
	if (power != NULL) {
		setenv("RPMA_LOOPBACK_PMEM", dir, 1);
		setenv("RPMA_LOOPBACK_POWER_FAIL", power, 1);
	}
	execv(argv[0], argv);
	_exit(127);
}

static void start_replica(int i, bool may_fail)
{
	char port[16], file[64], power[48];
	char *argv[] = {(char *)server, (char *)address, port, file, NULL};
	uint64_t at = draw(OPERATIONS), chance = draw(4);
	int len;

	sprintf(port, "%d", PORT + i);
	name_file(file, i);
	replicas[i].end_at = may_fail && chance == 0 ? draw(LINES) : NEVER;
	len = sprintf(power, "%llu", (unsigned long long)draw(1u << 30));
	if (may_fail && chance > 1)
		sprintf(power + len, ":%llu", (unsigned long long)at + 1);
	if (!is_power && may_fail && chance > 1)
		replicas[i].end_at = at % LINES;
	replicas[i].pid = start(argv, -1, -1, is_power ? power : NULL);
	running++;
}

/* Checks the file of a replica that has ended: all below the tail is whole. */
static void check_file(int i)
{
	static char records[LOG_SIZE];
	uint64_t tail = 0, end, whole;
	char name[64];
	int fd;

	name_file(name, i);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return; /* ended before there was a file */
	if (pread(fd, &tail, sizeof(tail), LOG_PAGE + LOG_TAIL) < 0)
		tail = 0;
	end = log_low(tail);
	if (end > LOG_SIZE ||
	    pread(fd, records, end, LOG_PAGE + LOG_RECORDS) != (ssize_t)end) {
		fail("replica %d: a tail of %llu bytes", i,
		     (unsigned long long)end);
	} else {
		whole = records_whole(records, end);
		if (whole < end)
			fail("replica %d: torn at %llu, below the tail at "
			     "%llu",
			     i, (unsigned long long)whole,
			     (unsigned long long)end);
	}
	close(fd);
}

static void on_ended(int i)
{
	replicas[i].pid = 0;
	running--;
	ended++;
	check_file(i);
}

/* Takes replicas down, those of the set, all at once. */
static void take_down(unsigned set)
{
	int i;

	for (i = 0; i < REPLICAS; i++)
		if (set >> i & 1 && replicas[i].pid != 0)
			kill(replicas[i].pid, is_power ? SIGPWR : SIGKILL);
	for (i = 0; i < REPLICAS; i++) {
		if (!(set >> i & 1) || replicas[i].pid == 0)
			continue;
		waitpid(replicas[i].pid, NULL, 0);
		on_ended(i);
	}
}

/* Notices replicas that have lost power. */
static void notice(void)
{
	int i;

	for (i = 0; i < REPLICAS; i++)
		if (replicas[i].pid != 0 &&
		    waitpid(replicas[i].pid, NULL, WNOHANG) > 0)
			on_ended(i);
}

/* ------------------------------------------------------------ records --- */

/* Takes a record that a client printed: acknowledged, or read. */
static void on_record(int number, const char *text)
{
	char wanted[TEXT];
	int line = -1;

	if (number < 1 || number > LINES_MAX) {
		fail("record %d of %d", number, LINES_MAX);
		return;
	}
	if (known[number][0] && strcmp(known[number], text) != 0)
		fail("record %d was \"%.20s\", and is \"%.20s\"", number,
		     known[number], text);
	if (sscanf(text, "line %d ", &line) == 1 && line >= 0 &&
	    line < lines_sent)
		write_text(wanted, line);
	else
		line = -1;
	if (line < 0 || strcmp(wanted, text) != 0)
		fail("record %d is torn: \"%s\"", number, text);
	snprintf(known[number], TEXT, "%s", text);
}

/* Takes a line that a client printed; returns the number of the record. */
static int on_line(const char *line)
{
	int number = 0, at = 0;

	if ((sscanf(line, "acknowledged %d: %n", &number, &at) == 1 ||
	     sscanf(line, "record %d: %n", &number, &at) == 1) &&
	    at > 0)
		on_record(number, line + at);
	return number;
}

/* ------------------------------------------------------------- rounds --- */

struct run {
	pid_t pid;
	int in, out; /* our ends; in: -1 once all is sent */
	char buffer[4096];
	size_t len;
	int records; /* lines with a number */
	int last;    /* number */
	bool is_over;
};

static void begin(struct run *run, const char *what)
{
	char port[16], count[8], limit[16];
	char *argv[] = {(char *)client, (char *)address, port, (char *)what,
			count,		limit,		 NULL};
	int in[2], out[2];

	sprintf(port, "%d", PORT);
	sprintf(count, "%d", REPLICAS);
	sprintf(limit, "%d", PATIENCE_S * 1000);
	*run = (struct run){0};
	must(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0, "pipe");
	run->pid = start(argv, in[0], out[1], NULL);
	close(in[0]);
	close(out[1]);
	run->in = in[1];
	run->out = out[0];
}

/* Fails if the client said that a replica is not to be used: damaged, or
 * without a record that the replica had acknowledged. */
static void look_at_errors(void)
{
	char name[64], line[512];
	FILE *errors;

	snprintf(name, sizeof(name), "%s/errors", dir);
	errors = fopen(name, "r");
	while (errors != NULL && fgets(line, sizeof(line), errors) != NULL)
		if (strncmp(line, "replica ", 8) == 0)
			fail("%s", line);
	if (errors != NULL)
		fclose(errors);
}

/* Reads what the client printed, for a millisecond if there is nothing. A
 * client that does not use a replica any more may wait in vain for a quorum:
 * what the client said decides, not how long the client waits. */
static void take_lines(struct run *run)
{
	struct pollfd out = {.fd = run->out, .events = POLLIN};
	char *line = run->buffer, *end;
	ssize_t got;

	if (poll(&out, 1, 1) <= 0) {
		look_at_errors();
		return;
	}
	got = read(run->out, run->buffer + run->len,
		   sizeof(run->buffer) - run->len);
	if (got <= 0) {
		run->is_over = true;
		return;
	}
	run->len += (size_t)got;
	while ((end = memchr(line, '\n', run->len)) != NULL) {
		*end = 0;
		run->last = on_line(line);
		run->records += run->last > 0;
		run->len -= (size_t)(end + 1 - line);
		line = end + 1;
	}
	memmove(run->buffer, line, run->len);
}

/* Sends some lines, and ends the input after the last of the round. */
static void send_lines(struct run *run, int end)
{
	char text[TEXT + 1];
	uint64_t some = 1 + draw(8);
	size_t len;

	while (run->in >= 0 && some-- > 0) {
		if (lines_sent == end) {
			close(run->in);
			run->in = -1;
			break;
		}
		write_text(text, lines_sent++);
		len = strlen(text);
		text[len] = '\n';
		if (write(run->in, text, len + 1) < 0)
			some = 0; /* the client has ended */
	}
}

static void kill_client(struct run *run)
{
	kill(run->pid, SIGKILL);
	clients_killed++;
}

/* Ends replicas whose time has come, and starts others again, or ends the
 * client if that is not to be. Returns false if the client was killed. */
static bool disturb(struct run *run, bool is_mended)
{
	int i;

	for (i = 0; i < REPLICAS; i++)
		if ((uint64_t)run->records >= replicas[i].end_at)
			take_down(1u << i);
	notice();
	if (is_mended) {
		for (i = 0; i < REPLICAS; i++)
			if (replicas[i].pid == 0 && draw(16) == 0)
				start_replica(i, draw(2) == 0);
	} else if (running < QUORUM) {
		kill_client(run);
		return false;
	}
	return true;
}

static void stuck(const char *what, int status)
{
	is_stuck |= !has_failed;
	fail("%s: status %d", what, status);
}

static bool is_hanging(void)
{
	if (now_s() - begun < PATIENCE_S)
		return false;
	stuck("hangs", 0);
	return true;
}

/* Ends the run; returns the status of the client, -1 if the client was
 * killed. */
static int end_run(struct run *run)
{
	int status;

	if (run->in >= 0)
		close(run->in);
	close(run->out);
	waitpid(run->pid, &status, 0);
	look_at_errors();
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void append_round(void)
{
	bool is_mended = draw(2) == 0, is_alive = true;
	uint64_t kill_at = draw(3) == 0 ? draw(LINES) : NEVER;
	int end = lines_sent + LINES, status;
	struct run run;

	begin(&run, "append");
	while (!run.is_over && !has_failed) {
		if (is_alive)
			send_lines(&run, end);
		take_lines(&run);
		if (is_alive && (uint64_t)run.records >= kill_at) {
			kill_client(&run);
			is_alive = false;
		}
		if (is_alive)
			is_alive = disturb(&run, is_mended);
		if (is_hanging())
			break;
	}
	if (has_failed)
		kill(run.pid, SIGKILL);
	status = end_run(&run);
	if (is_alive && status != 0)
		stuck("the client that appends", status);
	acknowledged += (unsigned)run.records;
	lines_sent = end;
}

/* Reads the log: nothing that is known may be missing. */
static void read_all(void)
{
	struct run run;
	int i, status;

	begin(&run, "read");
	while (!run.is_over && !has_failed && !is_hanging())
		take_lines(&run);
	if (has_failed)
		kill(run.pid, SIGKILL);
	status = end_run(&run);
	if (status != 0)
		stuck("the client that reads", status);
	for (i = run.records + 1; i <= LINES_MAX; i++)
		if (known[i][0])
			fail("record %d is lost, of %d records", i,
			     run.records);
}

/* Runs a seed, which fails or not. */
static void run_seed(uint64_t seed)
{
	char name[64];
	int round, i, away;

	random_state = seed;
	begun = now_s();
	has_failed = false;
	lines_sent = 0;
	memset(known, 0, sizeof(known));
	for (i = 0; i < REPLICAS; i++) {
		name_file(name, i);
		unlink(name);
	}
	for (round = 0; round < ROUNDS && !has_failed; round++) {
		away = (int)draw(2 * REPLICAS); /* a replica, or none */
		for (i = 0; i < REPLICAS; i++)
			if (replicas[i].pid == 0 && i != away)
				start_replica(i, draw(3) > 0);
		append_round();
		take_down(draw(2) ? ALL : (unsigned)draw(ALL + 1));
	}
	if (!has_failed) {
		away = (int)draw(2 * REPLICAS);
		take_down(away < REPLICAS ? 1u << away : ALL);
		for (i = 0; i < REPLICAS; i++)
			if (i != away) {
				take_down(1u << i);
				start_replica(i, false);
			}
		read_all();
	}
	take_down(ALL);
	if (has_failed)
		printf("seed %llu fails\n", (unsigned long long)seed);
}

int main(int argc, char **argv)
{
	uint64_t first, count, i, failures = 0;
	char name[64];
	bool is_broken;
	time_t end;

	if (argc < 7)
		return 2;
	signal(SIGPIPE, SIG_IGN);
	setvbuf(stdout, NULL, _IOLBF, 0);
	server = argv[1];
	client = argv[2];
	if (getenv("RPMA_TEST_ADDR") != NULL)
		address = getenv("RPMA_TEST_ADDR");
	is_power = strcmp(argv[3], "kill") != 0;
	is_broken = strcmp(argv[3], "broken") == 0;
	first = strtoull(argv[4], NULL, 0);
	count = strtoull(argv[5], NULL, 0);
	end = now_s() + atoi(argv[6]);
	preload = argc > 7 ? argv[7] : NULL;
	must(mkdtemp(dir) != NULL, dir);
	for (i = 0; i < count && (i == 0 || now_s() < end) &&
		    !(is_broken && failures > 0);
	     i++) {
		run_seed(first + i);
		failures += has_failed;
	}
	printf("%llu seeds from %llu on: %llu acknowledged, %llu replicas and "
	       "%llu clients ended, %llu seeds fail\n",
	       (unsigned long long)i, (unsigned long long)first, acknowledged,
	       ended, clients_killed, (unsigned long long)failures);
	for (i = 0; i < REPLICAS; i++) {
		name_file(name, (int)i);
		unlink(name);
	}
	snprintf(name, sizeof(name), "%s/errors", dir);
	unlink(name);
	rmdir(dir);
	return is_stuck || (is_broken ? failures == 0 : failures > 0);
}
