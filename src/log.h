/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Logging inside the library. A message reaches the log function if its level
 * passes the main threshold; the function runs in the thread that logs.
 */

#ifndef RPMA_LOG_H
#define RPMA_LOG_H 1

#include <errno.h>
#include <stdatomic.h>

#include "cancel.h"
#include "librpma.h"

/* rpma_log_function, with a format the compiler can check */
typedef void rpma__log_function(enum rpma_log_level level,
				const char *file_name, const int line_no,
				const char *function_name,
				const char *message_format, ...)
	__attribute__((format(printf, 5, 6)));

/* The settings; log.c has them. Hidden: read without the GOT. */
__attribute__((visibility("hidden"))) extern _Atomic int
	rpma__log_thresholds[RPMA_LOG_THRESHOLD_MAX];
/* The function; rpma__log_keep() while the calling thread holds messages. */
rpma__log_function *rpma__log_get_function(void);

/* of rpma_log_message(), without its newline */
#define RPMA__LOG_MESSAGE_MAX 1024

/* Between rpma_log_hold() and rpma_log_release() of the calling thread? */
bool rpma__log_is_held(void);
/* A log function: keeps the message for rpma_log_release(). */
void rpma__log_keep(enum rpma_log_level level, const char *file_name,
		    const int line_no, const char *function_name,
		    const char *message_format, ...)
	__attribute__((format(printf, 5, 6)));

/* What goes to stderr: the auxiliary threshold, and where the program has not
 * set that, what RPMA_LOG names. True: the program has set it. */
bool rpma__log_get_aux(int *level);

/*
 * The function for messages of this level; NULL: none. Inline, for each poll of
 * an empty CQ asks.
 */
static inline rpma__log_function *
rpma__log_function_for(enum rpma_log_level level)
{
	/* relaxed: a filter, no other memory depends on it */
	int threshold =
		atomic_load_explicit(&rpma__log_thresholds[RPMA_LOG_THRESHOLD],
				     memory_order_relaxed);

	if (__builtin_expect((int)level > threshold, true))
		return NULL;
	return rpma__log_get_function();
}

/* Leaves errno alone, whatever the function does. */
#define RPMA__LOG(level, format, ...)                                          \
	do {                                                                   \
		rpma__log_function *log_ = rpma__log_function_for(level);      \
		if (log_) {                                                    \
			/* a lock is held, the log's or its caller's */        \
			RPMA_NOT_CANCELLED;                                    \
			int errno_ = errno;                                    \
			log_(level, __FILE__, __LINE__, __func__, format "\n", \
			     ##__VA_ARGS__);                                   \
			errno = errno_;                                        \
		}                                                              \
	} while (0)

#define RPMA_LOG_FATAL(...)   RPMA__LOG(RPMA_LOG_LEVEL_FATAL, __VA_ARGS__)
#define RPMA_LOG_ERROR(...)   RPMA__LOG(RPMA_LOG_LEVEL_ERROR, __VA_ARGS__)
#define RPMA_LOG_WARNING(...) RPMA__LOG(RPMA_LOG_LEVEL_WARNING, __VA_ARGS__)
#define RPMA_LOG_NOTICE(...)  RPMA__LOG(RPMA_LOG_LEVEL_NOTICE, __VA_ARGS__)
#define RPMA_LOG_INFO(...)    RPMA__LOG(RPMA_LOG_LEVEL_INFO, __VA_ARGS__)
#define RPMA_LOG_DEBUG(...)   RPMA__LOG(RPMA_LOG_LEVEL_DEBUG, __VA_ARGS__)

/* Logs why a call is refused, and is the error: the compiler knows that it is
 * one. */
#define RPMA_REFUSE(err, words) \
	(rpma__log_refuse(__FILE__, __LINE__, __func__, words), (err))
/* The same where a pointer may be the reason: the first that is NULL is named;
 * words: what else it may be. RPMA_E_FORKED was logged by rpma__is_here(). */
#define RPMA_REFUSE_NULL(err, words, ...)                                \
	(rpma__log_refuse_null(__FILE__, __LINE__, __func__, err, words, \
			       #__VA_ARGS__,                             \
			       (const void *const[]){__VA_ARGS__}),      \
	 (err))
__attribute__((cold)) void rpma__log_refuse(const char *file, int line,
					    const char *function,
					    const char *words);
__attribute__((cold)) void rpma__log_refuse_null(const char *file, int line,
						 const char *function, int err,
						 const char *words,
						 const char *names,
						 const void *const *pointers);

/* Logs that there is no memory for what, a literal, and is the error. */
#define RPMA_REFUSE_NOMEM(what) RPMA_REFUSE(RPMA_E_NOMEM, "no memory for " what)

/*
 * "name() failed: text" for a call of verbs or rdma_cm that answered ret, an
 * errno, or anything else after setting errno. Leaves that in errno, where the
 * caller of a public function finds the reason of RPMA_E_PROVIDER.
 */
#define RPMA_LOG_CALL(name, ret) RPMA__LOG_CALL(name, ret, NULL)
/* Likewise for what rdma_cm needs first */
#define RPMA_LOG_CM_CALL(name) RPMA__LOG_CALL(name, -1, rpma__cm_advice)
/* Likewise for a call with an address */
#define RPMA_LOG_ADDR_CALL(name) RPMA__LOG_CALL(name, -1, rpma__addr_advice)

#define RPMA__LOG_CALL(name, ret, advice) \
	rpma__log_call(__FILE__, __LINE__, __func__, name, ret, advice)
/* advice: the end of the message, by errno, or NULL */
__attribute__((cold)) void rpma__log_call(const char *file, int line,
					  const char *function,
					  const char *name, int ret,
					  const char *(*advice)(void));

#endif /* RPMA_LOG_H */
