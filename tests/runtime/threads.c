/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * threads.c -- the threads started by the library, as seen in /proc: names;
 * blocked signals, so that a handler of the program runs on a thread of the
 * program; allowed CPUs, which are the CPUs of the process, even if the thread
 * that makes the runtime is pinned. And the way to stop on a signal: the
 * handler wakes the consumer of a queue.
 */

#define _GNU_SOURCE /* gettid, RTLD_NEXT */

#include <dirent.h>
#include <dlfcn.h>
#include <netdb.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "stage.h"

#define POLLERS	    2
#define SIGNALS	    200
#define MOST	    32
#define NAME_SIZE   16
#define LAST_SIGNAL 64

/* ----------------------------------------------- the view of /proc --- */

struct seen {
	char name[NAME_SIZE];
	uint64_t blocked; /* bit i - 1: signal i */
	cpu_set_t cpus;
	bool is_expected;
};

static int read_file(const char *task, const char *file, char *text, size_t len)
{
	char path[300];
	FILE *stream;
	size_t got;

	snprintf(path, sizeof(path), "/proc/self/task/%s/%s", task, file);
	stream = fopen(path, "r");
	if (stream == NULL)
		return -1;
	got = fread(text, 1, len - 1, stream);
	text[got] = '\0';
	fclose(stream);
	return 0;
}

/* Returns whether it is a thread of the library, which has not ended. */
static bool look_at(const char *task, struct seen *seen)
{
	char text[4096];
	char *line;

	if (read_file(task, "comm", text, sizeof(text)) ||
	    strncmp(text, "rt-", 3) != 0)
		return false;
	text[strcspn(text, "\n")] = '\0';
	snprintf(seen->name, sizeof(seen->name), "%.15s", text);
	if (read_file(task, "status", text, sizeof(text)))
		return false;
	line = strstr(text, "\nSigBlk:");
	if (line == NULL ||
	    sched_getaffinity(atoi(task), sizeof(seen->cpus), &seen->cpus))
		return false;
	seen->blocked = strtoull(line + strlen("\nSigBlk:"), NULL, 16);
	seen->is_expected = false;
	return true;
}

/* Lists threads with names of the library; returns how many. */
static int look(struct seen seen[MOST])
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	int count = 0;

	CHECK(dir != NULL);
	while ((entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		CHECK(count < MOST);
		count += look_at(entry->d_name, &seen[count]);
	}
	closedir(dir);
	return count;
}

/* Waits for the kernel, which shows a thread for a moment when the thread was
 * joined. */
static void await_no_thread(void)
{
	struct seen seen[MOST];

	while (look(seen) > 0)
		sched_yield();
}

static struct seen *find(struct seen *seen, int count, const char *name)
{
	int i;

	for (i = 0; i < count; i++) {
		if (strcmp(seen[i].name, name) == 0 && !seen[i].is_expected)
			return &seen[i];
	}
	world_die(__FILE__, __LINE__, name, 0);
}

/* ------------------------------------------------------- names, signals --- */

/* in place of the name server's answer */
static sem_t asked;
static sem_t answer;

static void wait_for(sem_t *semaphore)
{
	while (sem_wait(semaphore))
		;
}

/* No name server is asked: the look-up has a thread until the test answers. */
__attribute__((visibility("default"))) int
getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
	    struct addrinfo **info)
{
	int (*real)(const char *, const char *, const struct addrinfo *,
		    struct addrinfo **);

	if (name != NULL && strcmp(name, "nobody.invalid") == 0) {
		CHECK(!sem_post(&asked));
		wait_for(&answer);
		return EAI_NONAME;
	}
	*(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
	return real(name, service, hints, info);
}

static struct rpma_rt_conn *ask_for_a_name(struct stage *s)
{
	struct rpma_rt_conn *conn;

	CHECK(!sem_init(&asked, 0, 0) && !sem_init(&answer, 0, 0));
	s->cfg->timeout_ms = 600000;
	MUST(world_conn_new(s->world.rt, s->world.peer, "nobody.invalid", "1",
			    s->cfg, 0, s->aq, NULL, &conn));
	wait_for(&asked);
	return conn;
}

static void answer_the_question(struct stage *s, struct rpma_rt_conn *conn)
{
	CHECK(!sem_post(&answer));
	world_event(s->aq, RPMA_RT_EVENT_CLOSED);
	MUST(rpma_rt_conn_unref(&conn));
}

static bool is_fault(int number)
{
	return number == SIGSEGV || number == SIGBUS || number == SIGFPE ||
	       number == SIGILL || number == SIGTRAP || number == SIGSYS;
}

static void expect_blocked(const struct seen *seen)
{
	bool is_blocked;
	int i;

	for (i = 1; i <= LAST_SIGNAL; i++) {
		/* never blocked; the C library's own */
		if (i == SIGKILL || i == SIGSTOP || (i >= 32 && i < SIGRTMIN))
			continue;
		is_blocked = seen->blocked >> (i - 1) & 1;
		CHECK(is_blocked == !is_fault(i));
	}
}

static void threads__named_and_every_signal_blocked(void)
{
	static const char *const names[] = {"rt-poll0", "rt-poll1", "rt-event",
					    "rt-ctl0",	"rt-del0",  "rt-name"};
	const size_t expected = sizeof(names) / sizeof(names[0]);
	struct seen seen[MOST];
	struct seen *thread;
	int count = look(seen);
	size_t i;

	for (i = 0; i < expected; i++) {
		thread = find(seen, count, names[i]);
		thread->is_expected = true;
		expect_blocked(thread);
	}
	for (i = 0; i < (size_t)count; i++) {
		if (!seen[i].is_expected)
			world_die(__FILE__, __LINE__, seen[i].name, 0);
	}
}

/* -------------------------------------------------------------- handler --- */

#ifdef __SANITIZE_THREAD__

/* TSan keeps a signal back until its thread calls a libc function known to
 * TSan: the handler of a thread asleep on a futex never runs. */
static void signals__on_the_programs_thread(struct stage *s)
{
	(void)s;
	fputs("skipped: handlers of signals, which TSan keeps back: see the "
	      "other builds\n",
	      stderr);
}

#else

static struct {
	struct rpma_rt_queue *queue;
	pid_t tid; /* of the thread waiting on the queue */
	sem_t waits;
	sem_t handled;
	atomic_int elsewhere; /* times that another thread ran the handler */
	volatile sig_atomic_t stop;
} worker;

static void on_signal(int number)
{
	worker.stop = number == SIGINT;
	if (gettid() != worker.tid)
		/* relaxed: ordered by the semaphore */
		atomic_fetch_add_explicit(&worker.elsewhere, 1,
					  memory_order_relaxed);
	if (number == SIGINT)
		rpma_rt_queue_wake(worker.queue);
	sem_post(&worker.handled);
}

/* The only thread of the program that takes the signals. */
static void *work(void *arg)
{
	struct rpma_rt_completion item;
	sigset_t set;
	int ret;

	(void)arg;
	worker.tid = gettid();
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGUSR1);
	CHECK(!pthread_sigmask(SIG_UNBLOCK, &set, NULL));
	sem_post(&worker.waits);
	do { /* also for a stop before the first wait: takes the wake */
		ret = rpma_rt_queue_wait(worker.queue, &item, 1, -1);
	} while (ret == 0 && !worker.stop);
	CHECK(ret == 0);
	return NULL;
}

static void signals__on_the_programs_thread(struct stage *s)
{
	const struct sigaction action = {.sa_handler = on_signal};
	pthread_t thread;
	sigset_t set;
	int i;

	worker.queue = s->aq;
	CHECK(!sem_init(&worker.waits, 0, 0) &&
	      !sem_init(&worker.handled, 0, 0));
	CHECK(!sigaction(SIGUSR1, &action, NULL));
	CHECK(!sigaction(SIGINT, &action, NULL));
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGUSR1);
	CHECK(!pthread_sigmask(SIG_BLOCK, &set, NULL));
	CHECK(!pthread_create(&thread, NULL, work, NULL));
	wait_for(&worker.waits);
	for (i = 0; i < SIGNALS; i++) {
		CHECK(!kill(getpid(), SIGUSR1));
		wait_for(&worker.handled);
	}
	CHECK(!kill(getpid(), SIGINT));
	CHECK(!pthread_join(thread, NULL));
	wait_for(&worker.handled);
	/* relaxed: joined */
	CHECK(atomic_load_explicit(&worker.elsewhere, memory_order_relaxed) ==
	      0);
}

#endif

/* ----------------------------------------------------------------- CPUs --- */

static void expect_cpus(const char *name, const cpu_set_t *cpus)
{
	struct seen seen[MOST];
	int count = look(seen);

	CHECK(CPU_EQUAL(&find(seen, count, name)->cpus, cpus));
}

/* Pins this thread to a CPU while the thread makes a runtime. */
static int pin(const cpu_set_t *all)
{
	cpu_set_t one;
	int cpu = 0;

	while (!CPU_ISSET(cpu, all))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	CHECK(!sched_setaffinity(0, sizeof(one), &one));
	return cpu;
}

static void pinned_caller__CPUs_of_the_process(const cpu_set_t *all)
{
	expect_cpus("rt-poll0", all);
	expect_cpus("rt-poll1", all);
	expect_cpus("rt-event", all);
	expect_cpus("rt-ctl0", all);
}

static void named_cpu__there_and_nowhere_else(const cpu_set_t *all)
{
	struct rpma_rt_cfg cfg = RPMA_RT_CFG_INIT;
	struct rpma_rt *rt;
	int32_t cpus[1];
	cpu_set_t one;
	int i;

	cfg.cpus = cpus;
	cfg.cpu_count = 1;
	for (i = 0; i < CPU_SETSIZE; i++) {
		if (!CPU_ISSET(i, all))
			continue;
		cpus[0] = i;
		CPU_ZERO(&one);
		CPU_SET(i, &one);
		MUST(rpma_rt_new(&cfg, &rt));
		expect_cpus("rt-poll0", &one);
		MUST(rpma_rt_delete(&rt));
		await_no_thread();
	}
}

int main(void)
{
	static const struct stage_cfg cfg = {
		.pollers = POLLERS, .mode = RPMA_RT_MODE_EVENT, .depth = 8};
	struct rpma_rt_conn *asking;
	struct world_pair pair;
	struct stage s;
	cpu_set_t all;

	CHECK(!sched_getaffinity(0, sizeof(all), &all));
	pin(&all);
	named_cpu__there_and_nowhere_else(&all);
	stage_open(&s, &cfg);
	asking = ask_for_a_name(&s);
	stage_connect(&s, &pair); /* afterwards: the thread has its name */
	pinned_caller__CPUs_of_the_process(&all);
	threads__named_and_every_signal_blocked();
	answer_the_question(&s, asking);
	CHECK(!sched_setaffinity(0, sizeof(all), &all));
	signals__on_the_programs_thread(&s);
	stage_disconnect(&s, &pair);
	stage_close(&s);
	printf("ok\n");
	return 0;
}
