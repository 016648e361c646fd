/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * lost.c -- see lost.h. The handler runs in a thread that executes, so the keys
 * and the rows of regions stay: ibv_dereg_mr() waits for the thread.
 */

#include "memory/lost.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"

#define KEPT 8 /* different actions of the program */

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

/*
 * The actions that the handler has replaced. The program may set a handler of
 * its own at any time, so the device looks again at each registration.
 */
static struct sigaction replaced[KEPT]; /* under lb.big; constant once used */
static unsigned nreplaced;
/* the action before, among these */
static struct watched {
	int sig;
	_Atomic(const struct sigaction *) before;
} watched[] = {{.sig = SIGSEGV}, {.sig = SIGBUS}};

/* what became of the memory, for the line */
static const char unmapped[] = "unmapped, as free() does: an access fails";
static const char shortened[] = "behind the end of a file: an access fails";
static const char protected[] =
	"protected: the device has removed the protection, because a card "
	"accesses the page all the same";

static lb_lost_find *find;
static uintptr_t page_size;
static _Atomic uint32_t last_key; /* of the region that was printed last */
/* the signal that this thread has passed on, and from which frame */
static _Thread_local const siginfo_t *passed_on;
static _Thread_local uintptr_t passed_from;

/* Prints a region, once in a row. Nothing else of the thread is printing. */
static void say(const struct lb_lost_region *region, const void *addr,
		const char *what)
{
	/* relaxed: only decides what is new */
	if (atomic_exchange_explicit(&last_key, region->lkey,
				     memory_order_relaxed) == region->lkey)
		return;
	lb_log(0,
	       "region with lkey %#x, %zu bytes at %p: before ibv_dereg_mr() "
	       "%p was %s",
	       region->lkey, region->length, region->base, addr, what);
}

/* Adds a page to the pages of the thread; a page apart stays mapped. */
static void note(struct lb_executor *self, uintptr_t page)
{
	if (self->lost_from == self->lost_to) {
		self->lost_from = page;
		self->lost_to = page + page_size;
	} else if (page == self->lost_to) {
		self->lost_to += page_size;
	} else if (page + page_size == self->lost_from) {
		self->lost_from = page;
	}
	/* relaxed: read by this thread */
	atomic_store_explicit(&self->is_lost, true, memory_order_relaxed);
}

/* Puts an empty page where there is no memory. */
static bool put_empty(struct lb_executor *self, uintptr_t page, int fixed)
{
	void *at = mmap((void *)page, page_size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | fixed, -1, 0);

	if (at == MAP_FAILED)
		return errno == EEXIST; /* mapped by another thread */
	if (at != (void *)page) {	/* a kernel before 4.17 */
		munmap(at, page_size);
		return false;
	}
	note(self, page);
	return true;
}

/* Returns true if the program handles the signal. */
static bool is_handled(const struct watched *w)
{
	/* acquire: pairs with the release in watch() */
	const struct sigaction *action =
		atomic_load_explicit(&w->before, memory_order_acquire);

	return action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
}

/*
 * Fixes the page of an access; returns what was wrong with the page, or NULL.
 * Where the program still has a mapping, a handler of the program comes first:
 * the program may fill pages by such signals, or see which pages are written.
 */
static const char *fix_page(const struct watched *w, const siginfo_t *info)
{
	struct lb_executor *self = &lb_barrier_executor;
	uintptr_t page = (uintptr_t)info->si_addr & ~(page_size - 1);

	if (w->sig == SIGSEGV && info->si_code == SEGV_MAPERR)
		return put_empty(self, page, MAP_FIXED_NOREPLACE) ? unmapped
								  : NULL;
	if (is_handled(w))
		return NULL;
	if (w->sig == SIGBUS && info->si_code == BUS_ADRERR)
		return put_empty(self, page, MAP_FIXED) ? shortened : NULL;
	if (w->sig == SIGSEGV && info->si_code == SEGV_ACCERR &&
	    !mprotect((void *)page, page_size, PROT_READ | PROT_WRITE))
		return protected;
	return NULL;
}

/* Returns true if the instruction can be tried again. */
static bool survive(const struct watched *w, const siginfo_t *info)
{
	struct lb_lost_region region;
	const char *what;

	/* relaxed: only this thread writes the word */
	if (!(atomic_load_explicit(&lb_barrier_executor.word,
				   memory_order_relaxed) &
	      1) ||
	    info->si_code <= 0 || !find(info->si_addr, &region))
		return false;
	what = fix_page(w, info);
	if (what)
		say(&region, info->si_addr, what);
	return what;
}

/* Ends the process as if nothing handled the signal. */
static void give_in(int sig, const siginfo_t *info)
{
	signal(sig, SIG_DFL); /* the instruction fails again */
	if (info->si_code <= 0)
		raise(sig);
}

/*
 * Returns true if the handler of the program, to which this signal was passed
 * on, has called the handler before its own, which is this one. A handler that
 * left by siglongjmp() is no longer below the frame.
 */
static bool is_passed_on(const siginfo_t *info, uintptr_t frame)
{
	bool is_again = passed_on == info && frame < passed_from;

	passed_on = info;
	passed_from = frame;
	return is_again;
}

/* Does what the program wants at the signal. */
static void pass_on(const struct watched *w, siginfo_t *info, void *context)
{
	const uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
	/* acquire: pairs with the release in watch() */
	const struct sigaction *to =
		atomic_load_explicit(&w->before, memory_order_acquire);
	const int sig = w->sig;

	if (to->sa_handler == SIG_IGN && info->si_code <= 0)
		return; /* sent by a process, and ignored */
	if (to->sa_handler == SIG_DFL || to->sa_handler == SIG_IGN ||
	    is_passed_on(info, frame))
		give_in(sig, info);
	else if (to->sa_flags & SA_SIGINFO)
		to->sa_sigaction(sig, info, context);
	else
		to->sa_handler(sig);
}

static void handle(int sig, siginfo_t *info, void *context)
{
	const struct watched *w = &watched[sig == SIGBUS];
	int err = errno;

	if (!survive(w, info))
		pass_on(w, info, context);
	errno = err;
}

/* Returns the place of an action among the replaced ones, or NULL: no room. */
static const struct sigaction *keep(const struct sigaction *action)
{
	unsigned i;

	for (i = 0; i < nreplaced; i++) {
		if (replaced[i].sa_sigaction == action->sa_sigaction &&
		    replaced[i].sa_flags == action->sa_flags)
			return &replaced[i];
	}
	if (nreplaced == KEPT)
		return NULL;
	replaced[nreplaced] = *action;
	return &replaced[nreplaced++];
}

static void watch(struct watched *w)
{
	struct sigaction action = {.sa_sigaction = handle,
				   .sa_flags = SA_SIGINFO | SA_ONSTACK};
	struct sigaction present;
	const struct sigaction *kept;

	if (sigaction(w->sig, NULL, &present) || present.sa_sigaction == handle)
		return;
	kept = keep(&present);
	if (!kept)
		return;
	/* release: pairs with the acquires in is_handled() and pass_on() */
	atomic_store_explicit(&w->before, kept, memory_order_release);
	sigemptyset(&action.sa_mask);
	sigaction(w->sig, &action, NULL);
}

void lb_lost_watch(lb_lost_find *by)
{
	if (!find) {
		page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
		find = by;
	}
	watch(&watched[0]);
	watch(&watched[1]);
}

bool lb_lost_take(const struct lb_span *spans)
{
	struct lb_executor *self = &lb_barrier_executor;
	uintptr_t from = self->lost_from, to = self->lost_to;
	bool is_theirs = false;

	for (; spans->len; spans++) {
		uintptr_t at = (uintptr_t)spans->addr;

		is_theirs |= at < to && from < at + spans->len;
	}
	munmap((void *)from, to - from);
	self->lost_from = self->lost_to = 0;
	/* relaxed: read by this thread */
	atomic_store_explicit(&self->is_lost, false, memory_order_relaxed);
	return is_theirs;
}

void lb_lost_touch(const struct lb_span *spans)
{
	uint64_t at;

	lb_lost_touch_ends(spans);
	for (; spans->len; spans++) {
		for (at = page_size; at < spans->len; at += page_size)
			(void)*(const volatile uint8_t *)(spans->addr + at);
	}
}
