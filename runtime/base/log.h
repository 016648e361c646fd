/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * log.h -- messages of the runtime, in librpma's log, with its threshold and
 * its function. Nothing is logged while a lock is held, because the function is
 * the program's. Each place in the source logs at most ten messages a second
 * (limit.c); the next message says how many were left out.
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
 * Returns whether the place, a file (a literal) and a line, may log a message
 * at that time of the monotonic clock. If so, *left_out is the number of
 * messages that the place could not log in the last second in which the place
 * logged, and *is_last says whether this message is the last of the place in
 * this second. Lock-free; any thread.
 */
bool rt_limit_pass(uint64_t now_ns, const char *file, int line,
		   uint32_t *left_out, bool *is_last);

/* ------------------------------------------------------------------ log --- */

/* A place in the source: named by each message, and the owner of a limit. The
 * strings are literals. */
struct rt_log_place {
	const char *file;
	const char *function;
	int line;
};

/* The place is static: a compound literal would be built on the stack, and
 * every call that may be refused would reserve stack for the literal. */
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
/* Logs as rt_log() does, at the given time of the monotonic clock. */
__attribute__((format(printf, 4, 0))) void
rt_log_at(uint64_t now_ns, const struct rt_log_place *place,
	  enum rpma_log_level level, const char *format, va_list args);

/* --------------------------------------------------------------- refuse --- */

/*
 * A refused call logs the reason once. The function that decides the error logs
 * the error. Where that function holds a lock, the function notes the reason
 * instead, and the public function logs the note when the locks are released.
 * RPMA_E_AGAIN of a post, and "empty", are no refusals.
 */

/*
 * Logs the reason of an error and returns the error. The level is "error",
 * which reaches stderr where no syslog listens; RPMA_RT_E_CLOSED, which also
 * occurs in the usual course of events, is logged as an information.
 */
#define RT_REFUSE(err, ...) rt_refuse(RT_LOG_HERE, err, __VA_ARGS__)
__attribute__((cold, format(printf, 3, 4))) int
rt_refuse(const struct rt_log_place *place, int err, const char *format, ...);

/* Returns RPMA_E_INVAL, and logs the name, if one of the pointers is NULL;
 * otherwise 0. The arguments have the names of the public header. */
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

/* Notes, under a lock, why the calling thread's call will be refused, and
 * returns the error. words: a literal, a format for a single long. */
int rt_refuse_later(int err, const char *words, long number);
/* Notes why a work request is refused: the index of the work request in the
 * call, and the fault, to be read after "work request N". Returns the error. */
int rt_refuse_wr(int err, int index, const char *fault);
/* Notes that a system call failed: its name, and errno. Returns
 * RPMA_E_PROVIDER. */
int rt_refuse_system(const char *name);
/* Drops a note: the error was handled. */
void rt_refuse_forget(void);

/*
 * Ends a public function, without locks: logs the noted reason. Without a note,
 * logs for RPMA_E_NOMEM, RPMA_RT_E_BUSY and RPMA_RT_E_CLOSED, which no other
 * function logs, what the call could not do. Returns ret.
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
 * The reason of RPMA_E_AGAIN, for posters of connections and of SRQs.
 */

/* returned by the calling thread's rpma_rt_again_reason() */
extern _Thread_local enum rpma_rt_again rt_want_reason;

/* Sets the reason and returns RPMA_E_AGAIN. */
static inline int rt_want_again(enum rpma_rt_again reason)
{
	rt_want_reason = reason;
	return RPMA_E_AGAIN;
}
/* Clears the reason: a post begins, or failed for another cause than room. */
static inline void rt_want_none(void)
{
	rt_want_reason = RPMA_RT_AGAIN_NONE;
}

#endif /* RT_BASE_LOG_H */
