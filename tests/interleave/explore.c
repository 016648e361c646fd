/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * explore.c -- see explore.h. A search in depth: each thread stops before each
 * access, and one thread goes on. If two accesses concern each other and
 * nothing orders the two, the other order is tried too (Flanagan and Godefroid,
 * "Dynamic partial-order reduction for model checking software", 2005); an
 * order tried before, as sleep sets tell, is not begun. A play with too many
 * orders has a bound on interruptions: within the bound every order is tried,
 * whether accesses concern each other or not.
 *
 * A step is an access with all following work of the thread up to the next
 * access. A buffer moves its oldest store to the memory in a separate step.
 */

#include "explore.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_STEPS  2000
#define MAX_STORES 64 /* in a buffer */
#define RANGES	   64
#define PROCS	   (2 * EXPLORE_THREADS) /* threads, then their buffers */
#define LOOKS	   16
#define ENOUGH	   2 /* looks at a word not written meanwhile */
#define STUCK_S	   600
#define PROGRESS   100000

enum kind { NONE, READ, WRITE, FENCE };

/* the next step of a thread or buffer */
struct access {
	enum kind kind;
	uintptr_t at; /* 0: no word */
	bool is_full; /* the thread's buffer has to be empty */
	int flushes;  /* 1 + the thread whose buffer has to be empty; 0: none */
	bool (*is_over)(void *arg);
	void *arg;
};

struct store {
	volatile void *at;
	uint64_t value;
	unsigned size;
	unsigned clock[PROCS]; /* of the thread of the access */
};

struct thread {
	pthread_t thread;
	pthread_cond_t turn;
	struct access next;
	bool is_done;
	struct store stores[MAX_STORES];
	unsigned first;
	unsigned count;
	/* words looked at since another thread did a step */
	struct {
		uintptr_t at;
		unsigned times;
	} looks[LOOKS];
	unsigned look_count;
};

/* for each step, the state before the step */
struct state {
	unsigned enabled; /* bits of procs, as below */
	unsigned todo;	  /* to be tried */
	unsigned done;
	unsigned asleep;
	int chosen;
	/* of a search with a bound */
	int usual;	/* choosing this proc is no interruption */
	unsigned spent; /* interruptions before the step */
	struct access next[PROCS];
	unsigned clock[PROCS]; /* behind the step */
};

static const struct explore *play;
static struct thread threads[EXPLORE_THREADS];
static struct state states[MAX_STEPS];
static unsigned depth;	    /* steps of this order */
static unsigned prescribed; /* steps repeated from the former order */
static unsigned clocks[PROCS][PROCS];
static unsigned orders;
static unsigned begun; /* orders begun, without orders tried before */
static unsigned longest;
static bool is_known; /* the rest was tried before */
static const char *replay;
static const char *program;

static struct {
	uintptr_t from;
	uintptr_t to;
} ranges[RANGES];
static unsigned range_count;
static bool stops_at_stores;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t over = PTHREAD_COND_INITIALIZER;
static int current = -1; /* the running thread; -1: the caller of run() */
static _Thread_local struct thread *self;

/* ------------------------------------------------------------ failing --- */

static void print_order(void)
{
	unsigned i;

	fprintf(stderr, "order %u of %s; again: EXPLORE_REPLAY=", orders,
		play->name);
	for (i = 0; i < depth; i++)
		fputc('0' + states[i].chosen, stderr);
	fprintf(stderr, " %s %s\n", program, play->name);
}

void explore_fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	print_order();
	fflush(NULL);
	_exit(1); /* its threads are somewhere */
}

/* ------------------------------------------------------------ watched --- */

void explore_watch(const volatile void *from, size_t size)
{
	if (range_count == RANGES)
		explore_fail("more than %d ranges are watched", RANGES);
	ranges[range_count].from = (uintptr_t)from;
	ranges[range_count++].to = (uintptr_t)from + size;
}

void explore_watch_nothing(void)
{
	range_count = 0;
	stops_at_stores = false;
}

void explore_stop_at_stores(void)
{
	stops_at_stores = true;
}

bool explore_is_watched(const volatile void *at)
{
	unsigned i;

	if (self == NULL)
		return false;
	for (i = 0; i < range_count; i++) {
		if ((uintptr_t)at >= ranges[i].from &&
		    (uintptr_t)at < ranges[i].to)
			return true;
	}
	return false;
}

/* ------------------------------------------------------------- choosing --- */

static int thread_of(int proc)
{
	return proc % EXPLORE_THREADS;
}

static bool is_buffer(int proc)
{
	return proc >= EXPLORE_THREADS;
}

static struct access next_of(int proc)
{
	const struct thread *t = &threads[thread_of(proc)];

	if (!is_buffer(proc))
		return t->next;
	if (t->count == 0)
		return (struct access){.kind = NONE};
	return (struct access){
		.kind = WRITE,
		.at = (uintptr_t)t->stores[t->first % MAX_STORES].at,
	};
}

static bool is_enabled(int proc)
{
	const struct thread *t = &threads[thread_of(proc)];

	if (is_buffer(proc))
		return t->count > 0;
	if (t->next.flushes && threads[t->next.flushes - 1].count > 0)
		return false;
	return !t->is_done && !(t->next.is_full && t->count > 0) &&
	       (t->next.is_over == NULL || t->next.is_over(t->next.arg));
}

/* Returns whether the order of the two steps makes a difference. A fence of
 * another thread concerns every step of that thread. */
static bool concern(int proc_a, const struct access *a, int proc_b,
		    const struct access *b)
{
	if (a->flushes == thread_of(proc_b) + 1 ||
	    b->flushes == thread_of(proc_a) + 1)
		return true;
	return a->at != 0 && a->at == b->at &&
	       (a->kind == WRITE || b->kind == WRITE);
}

static void join(unsigned *clock, const unsigned *other)
{
	int i;

	for (i = 0; i < PROCS; i++) {
		if (other[i] > clock[i])
			clock[i] = other[i];
	}
}

/* Sets clock to the steps before the next access of the proc, in any order:
 * former steps; for a buffer, the steps of its thread up to the store; for a
 * thread that needs the buffer empty, the steps of its buffer. */
static void clock_before(int proc, const struct access *next, unsigned *clock)
{
	const struct thread *t = &threads[thread_of(proc)];

	memcpy(clock, clocks[proc], sizeof(clocks[proc]));
	if (is_buffer(proc) && t->count > 0)
		join(clock, t->stores[t->first % MAX_STORES].clock);
	else if (!is_buffer(proc) && next->is_full)
		join(clock, clocks[proc + EXPLORE_THREADS]);
}

/* Finds an earlier step not ordered with the next step of the proc: the other
 * order is to be tried. */
static void look_back(int proc, const struct access *next)
{
	unsigned clock[PROCS];
	unsigned i;

	if (next->kind == NONE)
		return;
	clock_before(proc, next, clock);
	for (i = depth; i-- > 0;) {
		struct state *s = &states[i];
		int other = s->chosen;

		if (thread_of(other) == thread_of(proc) ||
		    !concern(other, &s->next[other], proc, next) ||
		    (i < clock[other] && !next->flushes))
			continue;
		s->todo |= s->enabled & (1u << proc) ? 1u << proc : s->enabled;
		if (!next->flushes)
			return;
		/* an earlier step may have put a store into the buffer, which
		 * keeps the fence from being the next step */
	}
}

/* Orders the chosen step after all steps that concern the step. */
static void count_step(struct state *s)
{
	const struct access *access = &s->next[s->chosen];
	unsigned *clock = clocks[s->chosen];
	unsigned before[PROCS];
	unsigned i;

	clock_before(s->chosen, access, before);
	memcpy(clock, before, sizeof(before));
	for (i = 0; i < depth; i++) {
		if (concern(states[i].chosen, &states[i].next[states[i].chosen],
			    s->chosen, access))
			join(clock, states[i].clock);
	}
	clock[s->chosen] = depth + 1;
	memcpy(s->clock, clock, sizeof(s->clock));
}

static unsigned still_asleep(const struct state *s)
{
	unsigned asleep = 0;
	int proc;

	for (proc = 0; proc < PROCS; proc++) {
		if ((s->asleep | s->done) & (1u << proc) && proc != s->chosen &&
		    thread_of(proc) != thread_of(s->chosen) &&
		    !concern(proc, &s->next[proc], s->chosen,
			     &s->next[s->chosen]))
			asleep |= 1u << proc;
	}
	return asleep;
}

static int first_of(unsigned procs)
{
	return __builtin_ctz(procs);
}

/* Prefers the proc that ran last; a buffer runs late. */
static int choose(const struct state *s)
{
	unsigned may = s->enabled & ~s->asleep;
	int last = depth > 0 ? states[depth - 1].chosen : -1;

	if (may == 0)
		may = s->enabled; /* known: to the end, somehow */
	if (last >= 0 && may & (1u << last))
		return last;
	return first_of(may);
}

/* Chooses without an interruption: the thread that ran last, or its buffer, if
 * the thread waits for the buffer; else another thread, else a buffer. */
static int choose_usual(const struct state *s)
{
	int last = depth > 0 ? thread_of(states[depth - 1].chosen) : 0;

	if (s->enabled & (1u << last))
		return last;
	if (threads[last].next.is_full && threads[last].count > 0)
		return last + EXPLORE_THREADS;
	if (threads[last].next.flushes)
		return threads[last].next.flushes - 1 + EXPLORE_THREADS;
	return first_of(s->enabled);
}

/* In a search with a bound, everything within the bound is tried. */
static void begin_within_bound(struct state *s)
{
	/* which thread begins is no interruption */
	const struct state *before = depth > 1 ? &states[depth - 1] : NULL;

	s->usual = choose_usual(s);
	s->chosen = s->usual;
	if (before != NULL)
		s->spent = before->spent + (before->chosen != before->usual);
	s->todo = s->spent < play->bound ? s->enabled : 1u << s->usual;
}

static int choose_replay(const struct state *s)
{
	int proc = replay[depth] ? replay[depth] - '0' : first_of(s->enabled);

	if (proc < 0 || proc >= PROCS || !(s->enabled & (1u << proc)))
		explore_fail("the replay does not fit");
	return proc;
}

/* Returns the proc of the next step; -1: all have ended. */
static int decide(void)
{
	struct state *s = &states[depth];
	bool is_any = false;
	int proc;

	if (depth == MAX_STEPS)
		explore_fail("it does not end");
	for (proc = 0; proc < play->threads; proc++)
		is_any |= !threads[proc].is_done || threads[proc].count > 0;
	if (!is_any)
		return -1;
	if (depth >= prescribed)
		*s = (struct state){.chosen = -1};
	s->enabled = 0;
	for (proc = 0; proc < PROCS; proc++) {
		s->next[proc] = next_of(proc);
		if (is_enabled(proc))
			s->enabled |= 1u << proc;
	}
	if (s->enabled == 0)
		explore_fail("every thread waits");
	if (depth < prescribed && !(s->enabled & (1u << s->chosen)))
		explore_fail("an order cannot be repeated: the play depends "
			     "on more than what it sets up");
	if (depth >= prescribed && play->bound > 0 && !replay) {
		begin_within_bound(s);
	} else if (depth >= prescribed) {
		s->asleep = depth > 0 ? still_asleep(&states[depth - 1]) : 0;
		is_known |= !(s->enabled & ~s->asleep);
		s->chosen = replay ? choose_replay(s) : choose(s);
		s->todo = 1u << s->chosen;
	}
	if (!is_known && !replay && play->bound == 0) {
		for (proc = 0; proc < PROCS; proc++)
			look_back(proc, &s->next[proc]);
	}
	count_step(s);
	return s->chosen;
}

static void give_oldest(struct thread *t)
{
	struct store *s = &t->stores[t->first++ % MAX_STORES];

	t->count--;
	/* relaxed, all: one thread runs at a time */
	if (s->size == 1)
		__atomic_store_n((volatile uint8_t *)s->at, (uint8_t)s->value,
				 __ATOMIC_RELAXED);
	else if (s->size == 2)
		__atomic_store_n((volatile uint16_t *)s->at, (uint16_t)s->value,
				 __ATOMIC_RELAXED);
	else if (s->size == 4)
		__atomic_store_n((volatile uint32_t *)s->at, (uint32_t)s->value,
				 __ATOMIC_RELAXED);
	else
		__atomic_store_n((volatile uint64_t *)s->at, s->value,
				 __ATOMIC_RELAXED);
}

/* REQUIRES: the lock, and the turn; the turn goes to the next thread */
static void pass_on(void)
{
	int proc;
	int i;

	for (;;) {
		proc = decide();
		if (proc < 0)
			break;
		for (i = 0; i < play->threads; i++) {
			if (i != thread_of(proc))
				threads[i].look_count = 0;
		}
		depth++;
		if (!is_buffer(proc))
			break;
		give_oldest(&threads[thread_of(proc)]);
	}
	current = proc;
	if (proc < 0)
		pthread_cond_signal(&over);
	else if (&threads[proc] != self)
		pthread_cond_signal(&threads[proc].turn);
}

static void take_turn(struct thread *t)
{
	while (current != (int)(t - threads))
		pthread_cond_wait(&t->turn, &lock);
}

static void stop_before(struct access next)
{
	pthread_mutex_lock(&lock);
	self->next = next;
	pass_on();
	take_turn(self);
	pthread_mutex_unlock(&lock);
}

/* ------------------------------------------------------------- accesses --- */

/* Returns true if a thread looks at a word again and again, while no other
 * thread did a step: counts as a single look. */
static bool is_repeated(uintptr_t at)
{
	unsigned i;

	for (i = 0; i < self->look_count; i++) {
		if (self->looks[i].at == at)
			return ++self->looks[i].times > ENOUGH;
	}
	if (i < LOOKS) {
		self->looks[i].at = at;
		self->looks[i].times = 1;
		self->look_count++;
	}
	return false;
}

bool explore_load(const volatile void *at, uint64_t *value)
{
	unsigned i;

	for (i = self->count; i-- > 0;) {
		const struct store *s =
			&self->stores[(self->first + i) % MAX_STORES];

		if (s->at == at) {
			*value = s->value;
			return true;
		}
	}
	if (!is_repeated((uintptr_t)at))
		stop_before((struct access){.kind = READ, .at = (uintptr_t)at});
	return false;
}

void explore_store(volatile void *at, uint64_t value, unsigned size)
{
	struct store *s;

	if (stops_at_stores)
		stop_before((struct access){.kind = WRITE});
	s = &self->stores[(self->first + self->count) % MAX_STORES];
	if (self->count == MAX_STORES)
		explore_fail("a buffer is full");
	s->at = at;
	s->value = value;
	s->size = size;
	memcpy(s->clock, clocks[self - threads], sizeof(s->clock));
	self->count++;
	self->look_count = 0;
}

void explore_modify(const volatile void *at)
{
	if (self == NULL)
		return;
	self->look_count = 0;
	if (explore_is_watched(at))
		stop_before((struct access){
			.kind = WRITE, .at = (uintptr_t)at, .is_full = true});
	else
		explore_fence();
}

void explore_fence(void)
{
	if (self != NULL && self->count > 0)
		stop_before((struct access){.kind = FENCE, .is_full = true});
}

void explore_fence_all(void)
{
	int i;

	explore_fence();
	for (i = 0; self != NULL && i < play->threads; i++) {
		if (&threads[i] != self)
			stop_before((struct access){.kind = FENCE,
						    .is_full = true,
						    .flushes = i + 1});
	}
}

void explore_touch(const void *at)
{
	if (self != NULL)
		stop_before((struct access){
			.kind = WRITE, .at = (uintptr_t)at, .is_full = true});
}

void explore_wait(const void *at, bool (*is_over)(void *arg), void *arg)
{
	stop_before((struct access){.kind = WRITE,
				    .at = (uintptr_t)at,
				    .is_full = true,
				    .is_over = is_over,
				    .arg = arg});
}

/* ------------------------------------------------------------- an order --- */

static void *thread_main(void *arg)
{
	struct thread *t = arg;
	int index = (int)(t - threads);

	for (;;) {
		pthread_mutex_lock(&lock);
		take_turn(t);
		pthread_mutex_unlock(&lock);
		self = t;
		play->body[index]();
		pthread_mutex_lock(&lock);
		t->is_done = true;
		t->next = (struct access){.kind = NONE};
		self = NULL;
		pass_on();
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

static void wait_for_end(void)
{
	while (current >= 0)
		pthread_cond_wait(&over, &lock);
}

static void run_order(void)
{
	int i;

	alarm(STUCK_S);
	memset(clocks, 0, sizeof(clocks));
	depth = 0;
	is_known = false;
	play->setup();
	pthread_mutex_lock(&lock);
	for (i = 0; i < EXPLORE_THREADS; i++) {
		threads[i].is_done = i >= play->threads;
		threads[i].next = (struct access){.kind = NONE};
		threads[i].first = threads[i].count = 0;
		threads[i].look_count = 0;
	}
	begun++;
	orders += !is_known;
	pass_on();
	wait_for_end();
	pthread_mutex_unlock(&lock);
	if (depth > longest)
		longest = depth;
	play->check();
}

/*
 * Goes back to the last step with an untried choice; returns false if there is
 * no such step.
 */
static bool go_back(void)
{
	while (depth > 0) {
		struct state *s = &states[depth - 1];
		unsigned left;

		s->done |= 1u << s->chosen;
		left = s->todo & ~s->done & ~s->asleep;
		if (left != 0) {
			s->chosen = first_of(left);
			prescribed = depth;
			return true;
		}
		depth--;
	}
	return false;
}

static void explore_play(const struct explore *p)
{
	play = p;
	orders = begun = longest = prescribed = 0;
	do {
		run_order();
		if (begun % PROGRESS == 0)
			printf("%s: %u runs\n", p->name, begun);
		if (replay)
			return;
	} while (go_back());
	printf("%s: all orders", p->name);
	if (p->bound > 0)
		printf(" of up to %u interruptions", p->bound);
	printf(", in %u runs of up to %u steps\n", begun, longest);
}

/* -------------------------------------------------------------- program --- */

static void start_threads(void)
{
	int i;

	for (i = 0; i < EXPLORE_THREADS; i++) {
		pthread_cond_init(&threads[i].turn, NULL);
		if (pthread_create(&threads[i].thread, NULL, thread_main,
				   &threads[i])) {
			fprintf(stderr, "no threads\n");
			_exit(2);
		}
	}
}

/* In a process where nothing was before. */
static bool fails(const struct explore *p)
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		execl("/proc/self/exe", program, p->name, (char *)NULL);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return false;
	return !WIFEXITED(status) || WEXITSTATUS(status) == 1;
}

/* only: name of the single play; NULL: all that are not long */
static int find(const struct explore *plays, const char *only)
{
	for (; plays->name; plays++) {
		if (only ? strcmp(only, plays->name) != 0 : plays->is_long)
			continue;
		if (fails(plays))
			return 0;
	}
	fprintf(stderr, "nothing was found\n");
	return 1;
}

int explore_main(int argc, char **argv, const struct explore *plays)
{
	const char *what = argc > 1 ? argv[1] : NULL;
	bool is_all = what && strcmp(what, "all") == 0;
	static bool is_started;
	bool is_any = false;

	program = argv[0];
	replay = getenv("EXPLORE_REPLAY");
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (what && strcmp(what, "found") == 0)
		return find(plays, argc > 2 ? argv[2] : NULL);
	if (!is_started)
		start_threads();
	is_started = true;
	for (; plays->name; plays++) {
		if (what && !is_all ? strcmp(what, plays->name) != 0
				    : plays->is_long && !is_all)
			continue;
		is_any = true;
		explore_play(plays);
	}
	if (!is_any)
		fprintf(stderr, "usage: %s [all | found [PLAY] | PLAY]\n",
			program);
	return is_any ? 0 : 2;
}
