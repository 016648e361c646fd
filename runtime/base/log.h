/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * log.h -- messages of the runtime, in librpma's log, with its threshold and
 * its function. Never while a lock is held: the function is the program's. A
 * place in the source logs at most ten messages a second (limit.c); the next
 * one says how many were left out.
 */

#ifndef RT_BASE_LOG_H
#define RT_BASE_LOG_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "librpma.h"
#include "rpma_rt.h"

/* ---------------------------------------------------------------- limit --- */

#define RT_LIMIT_A_SECOND 10

/*
 * May the place, a file (a literal) and a line, log a message at that time of
 * the monotonic clock? Then *left_out is how many it could not in the last
 * second that it logged in, and *is_last whether this second has no other for
 * it. Lock-free; any thread.
 */
bool rt_limit_pass(uint64_t now_ns, const char *file, int line,
		   uint32_t *left_out, bool *is_last);

/* ------------------------------------------------------------------ log --- */

/* A place in the source: what a message names, and what its limit belongs to.
 * Strings are literals. */
struct rt_log_place {
	const char *file;
	const char *function;
	int line;
};

/* static: a compound literal would be put together on the stack, and each call
 * that may be refused would make room for it */
#define RT_LOG_HERE                                                           \
	__extension__({                                                       \
		static const struct rt_log_place here_ = {__FILE__, __func__, \
							  __LINE__};          \
		&here_;                                                       \
	})

#define RT_LOG(level, ...)  rt_log(RT_LOG_HERE, level, __VA_ARGS__)
#define RT_LOG_FATAL(...)   RT_LOG(RPMA_LOG_LEVEL_FATAL, __VA_ARGS__)
#define RT_LOG_ERROR(...)   RT_LOG(RPMA_LOG_LEVEL_ERROR, __VA_ARGS__)
#define RT_LOG_WARNING(...) RT_LOG(RPMA_LOG_LEVEL_WARNING, __VA_ARGS__)
#define RT_LOG_INFO(...)    RT_LOG(RPMA_LOG_LEVEL_INFO, __VA_ARGS__)

__attribute__((cold, format(printf, 3, 4))) void
rt_log(const struct rt_log_place *place, enum rpma_log_level level,
       const char *format, ...);
/* The same at that time of the monotonic clock. */
__attribute__((format(printf, 4, 0))) void
rt_log_at(uint64_t now_ns, const struct rt_log_place *place,
	  enum rpma_log_level level, const char *format, va_list args);

/* --------------------------------------------------------------- refuse --- */

/*
 * A call that is refused says why, in the log, once. The function that decides
 * an error logs it, or, where it holds a lock, notes the reason for the
 * function that is called by the program, which logs it when the locks are
 * released. RPMA_E_AGAIN of a post, and "empty", are no refusals.
 */

/*
 * Logs the reason of an error and returns the error. It is an error in the log
 * too, which reaches stderr where no syslog listens; RPMA_RT_E_CLOSED, which
 * comes in the usual course as well, is an information.
 */
#define RT_REFUSE(err, ...) rt_refuse(RT_LOG_HERE, err, __VA_ARGS__)
__attribute__((cold, format(printf, 3, 4))) int
rt_refuse(const struct rt_log_place *place, int err, const char *format, ...);

/* 0, or RPMA_E_INVAL: one of the pointers, named as the header names them, is
 * NULL. */
#define RT_REFUSE_NULL(...)                                \
	rt_refuse_null(RT_LOG_HERE, #__VA_ARGS__,          \
		       (const void *const[]){__VA_ARGS__}, \
		       sizeof((const void *const[]){__VA_ARGS__}))
__attribute__((cold)) int rt_refuse_null_at(const struct rt_log_place *place,
					    const char *names, size_t nth);

static inline int rt_refuse_null(const struct rt_log_place *place,
				 const char *names, const void *const *pointers,
				 size_t size)
{
	size_t i;

	for (i = 0; i < size / sizeof(*pointers); i++) {
		if (__builtin_expect(pointers[i] == NULL, false))
			return rt_refuse_null_at(place, names, i);
	}
	return 0;
}

/* Under a lock: notes why the calling thread's call will be refused, and
 * returns the error. words: a literal, a format for one long. */
int rt_refuse_later(int err, const char *words, long number);
/* The same of a work request: its index in the call, and its fault, to be read
 * after "work request N". */
int rt_refuse_wr(int err, int index, const char *fault);
/* The same for a call of the system that failed: its name and errno. */
int rt_refuse_system(const char *name);
/* Drops a note: the error was handled. */
void rt_refuse_forget(void);

/*
 * At the end of a public function, without locks: logs the reason that was
 * noted, or, for RPMA_E_NOMEM, RPMA_RT_E_BUSY and RPMA_RT_E_CLOSED, which
 * nobody else logs, that what could not be done. Returns ret.
 */
#define RT_REFUSED(ret, what) rt_refuse_finish(RT_LOG_HERE, ret, what)
__attribute__((cold)) int rt_refuse_finish_at(const struct rt_log_place *place,
					      int ret, const char *what);

static inline int rt_refuse_finish(const struct rt_log_place *place, int ret,
				   const char *what)
{
	return __builtin_expect(ret < 0, false)
		       ? rt_refuse_finish_at(place, ret, what)
		       : ret;
}

/* ----------------------------------------------------------------- want --- */

/*
 * The reason of RPMA_E_AGAIN, which posters of connections and of SRQs share.
 */

/* the calling thread's rpma_rt_again_reason() */
extern _Thread_local enum rpma_rt_again rt_want_reason;

/* RPMA_E_AGAIN, for that reason */
static inline int rt_want_again(enum rpma_rt_again reason)
{
	rt_want_reason = reason;
	return RPMA_E_AGAIN;
}
/* A post begins, or failed for something else than room. */
static inline void rt_want_none(void)
{
	rt_want_reason = RPMA_RT_AGAIN_NONE;
}

#endif /* RT_BASE_LOG_H */
