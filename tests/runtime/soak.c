/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * soak.c -- exactly one completion under stress: many connections over several
 * pollers and queues, which are made, work, and die of every cause, on a device
 * that misbehaves. Each work request is ticked off in its own record, in the
 * queue its route named, in order; a failure is reported with its seed.
 *
 * usage: runtime_soak [wrs=N] [seed=N] [epochs=N] [only=TROUBLE] [manual] [two]
 *                [calm] [patience=SECONDS]
 * RPMA_SOAK_SEED in the environment is the seed where none is given.
 */

#include "soak.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_WRS	 100000
#define DEFAULT_SEED	 1
#define WRS_OF_AN_EPOCH	 40000
#define LEAST_EPOCHS	 8
#define WATCH_MS	 500
#define DEFAULT_PATIENCE (2 * WORLD_PATIENCE_MS / 1000)

static _Atomic uint64_t alive;
static struct soak_epoch *watched;
static struct soak_cfg cfg = {.wrs = DEFAULT_WRS,
			      .seed = DEFAULT_SEED,
			      .patience_s = DEFAULT_PATIENCE};

uint32_t soak_random(uint64_t *state, uint32_t n)
{
	uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)(((x ^ (x >> 31)) >> 32) * n >> 32);
}

void soak_alive(void)
{
	/* relaxed: a sign of life */
	atomic_fetch_add_explicit(&alive, 1, memory_order_relaxed);
}

static void tell_again(const struct soak_epoch *epoch)
{
	fprintf(stderr,
		"runtime_soak: in epoch %u, trouble \"%s\", %d poller(s), %d "
		"runtime(s); again with: wrs=%lu epochs=%u seed=%lu%s%s%s\n",
		epoch->number, soak_trouble_name(epoch->trouble),
		epoch->pollers, epoch->sites_count, (unsigned long)cfg.wrs,
		cfg.epochs, (unsigned long)cfg.seed,
		cfg.manual ? " manual" : "", cfg.two ? " two" : "",
		cfg.calm ? " calm" : "");
}

_Noreturn void soak_wrong(const struct soak_end *end, int side, uint32_t seq,
			  int queue, const char *what)
{
	if (side < 0)
		fprintf(stderr, "runtime_soak: end %d.%u: %s\n", end->index,
			end->gen, what);
	else
		fprintf(stderr,
			"runtime_soak: end %d.%u (%s%s), %s %u of %u posted, "
			"queue %d: %s\n",
			end->index, end->gen,
			end->passive ? "passive" : "active",
			end->ordered ? "" : ", unordered",
			side ? "receive" : "send", seq,
			/* relaxed: a number to tell */
			atomic_load_explicit(&end->side[side].next,
					     memory_order_relaxed),
			queue, what);
	tell_again(end->epoch);
	abort();
}

/* Aborts when nothing has gone on for long. */
static void *watch(void *arg)
{
	const struct timespec ts = {.tv_nsec = WATCH_MS * 1000000L};
	uint64_t seen = 0;
	uint64_t now;
	int quiet = 0;

	(void)arg;
	for (;;) {
		nanosleep(&ts, NULL);
		/* relaxed: a sign of life */
		now = atomic_load_explicit(&alive, memory_order_relaxed);
		quiet = now == seen ? quiet + 1 : 0;
		seen = now;
		if ((uint64_t)quiet * WATCH_MS < cfg.patience_s * 1000)
			continue;
		fprintf(stderr, "runtime_soak: nothing goes on, %d are left\n",
			watched->alive);
		soak_ends_print(watched);
		tell_again(watched);
		abort();
	}
	return NULL;
}

static enum soak_trouble trouble_of(uint32_t number, const struct loop *loop)
{
	if (loop == NULL || cfg.calm)
		return SOAK_NONE;
	if (cfg.only)
		return (enum soak_trouble)(cfg.only - 1);
	return (enum soak_trouble)(number % SOAK_TROUBLES);
}

static void run(struct soak_sum *sum)
{
	static struct soak_epoch epoch;
	uint32_t i;

	for (i = 0; i < cfg.epochs; i++) {
		memset(&epoch, 0, sizeof(epoch));
		epoch.cfg = &cfg;
		epoch.sum = sum;
		epoch.loop = loop_get();
		epoch.number = i;
		epoch.trouble = trouble_of(i, epoch.loop);
		epoch.seed = cfg.seed + i * UINT64_C(0x100000001b3);
		epoch.target = cfg.wrs / cfg.epochs;
		watched = &epoch;
		soak_epoch_run(&epoch);
	}
}

static unsigned long get(const _Atomic uint64_t *count)
{
	/* relaxed: nobody counts any more */
	return (unsigned long)atomic_load_explicit(count, memory_order_relaxed);
}

/* Each work request was reported, or silent as it was asked to be. */
static void report(struct soak_sum *sum)
{
	printf("posted %lu ticked %lu silent %lu errors %lu synthesized %lu "
	       "not posted %lu\n",
	       get(&sum->posted), get(&sum->ticked), get(&sum->silent),
	       get(&sum->errors), get(&sum->synthesized),
	       get(&sum->not_posted));
	printf("refused: credit %lu backlog %lu; writable %lu "
	       "messages %lu; to functions %lu, batches of shared queues %lu\n",
	       get(&sum->refused[RPMA_RT_AGAIN_CREDIT]),
	       get(&sum->refused[RPMA_RT_AGAIN_BACKLOG]), get(&sum->writables),
	       get(&sum->messages), get(&sum->called), get(&sum->taken_shared));
	printf("pairs %lu; closed: local %lu disconnected %lu rejected %lu "
	       "unreachable %lu error %lu device %lu failed %lu stopped %lu\n",
	       get(&sum->in_use), get(&sum->reasons[0]), get(&sum->reasons[1]),
	       get(&sum->reasons[2]), get(&sum->reasons[3]),
	       get(&sum->reasons[4]), get(&sum->reasons[5]),
	       get(&sum->reasons[6]), get(&sum->reasons[7]));
	printf("faults %lu spilled %lu stale %lu recovered %lu sleeps %lu\n",
	       get(&sum->faults), (unsigned long)sum->spilled,
	       (unsigned long)sum->stale, (unsigned long)sum->recovered,
	       (unsigned long)sum->sleeps);
	CHECK(get(&sum->posted) == get(&sum->ticked) + get(&sum->silent));
}

static bool number_of(const char *arg, const char *name, uint64_t *value)
{
	size_t n = strlen(name);

	if (strncmp(arg, name, n) != 0 || arg[n] != '=')
		return false;
	*value = strtoull(arg + n + 1, NULL, 0);
	return true;
}

static bool flag_of(const char *arg, const char *name, bool *flag)
{
	bool is_given = strcmp(arg, name) == 0;

	*flag |= is_given;
	return is_given;
}

static bool only_of(const char *arg)
{
	int i;

	if (strncmp(arg, "only=", 5) != 0)
		return false;
	for (i = 0; i < SOAK_TROUBLES; i++) {
		if (!strcmp(arg + 5, soak_trouble_name((enum soak_trouble)i)))
			cfg.only = 1 + (uint32_t)i;
	}
	return cfg.only != 0;
}

static void parse(int argc, char **argv)
{
	uint64_t epochs = 0;
	int i;

	if (getenv("RPMA_SOAK_SEED"))
		cfg.seed = strtoull(getenv("RPMA_SOAK_SEED"), NULL, 0);
	for (i = 1; i < argc; i++) {
		if (number_of(argv[i], "wrs", &cfg.wrs) ||
		    number_of(argv[i], "seed", &cfg.seed) ||
		    number_of(argv[i], "epochs", &epochs) ||
		    number_of(argv[i], "patience", &cfg.patience_s) ||
		    flag_of(argv[i], "manual", &cfg.manual) ||
		    flag_of(argv[i], "two", &cfg.two) ||
		    flag_of(argv[i], "calm", &cfg.calm) || only_of(argv[i]))
			continue;
		/* another soak than the caller wants would pass, too */
		fprintf(stderr, "soak: no argument is called %s\n", argv[i]);
		exit(2);
	}
	if (epochs == 0)
		epochs = cfg.wrs / WRS_OF_AN_EPOCH;
	if (epochs < LEAST_EPOCHS)
		epochs = LEAST_EPOCHS;
	cfg.epochs = (uint32_t)epochs;
}

int main(int argc, char **argv)
{
	static struct soak_sum sum;
	struct world world;
	pthread_t watcher;

	parse(argc, argv);
	world_open(&world); /* or skips */
	MUST(rpma_peer_delete(&world.peer));
	printf("seed %lu, %lu work requests in %u epochs\n",
	       (unsigned long)cfg.seed, (unsigned long)cfg.wrs, cfg.epochs);
	fflush(stdout);
	CHECK(!pthread_create(&watcher, NULL, watch, NULL));
	run(&sum);
	CHECK(!pthread_cancel(watcher));
	CHECK(!pthread_join(watcher, NULL));
	report(&sum);
	printf("ok: each exactly once\n");
	return 0;
}
