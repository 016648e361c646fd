/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Logging inside the library. A message reaches the log function if the level
 * of the message passes the main threshold; the function runs in the thread
 * that logs.
 */

#ifndef RPMA_LOG_H
#define RPMA_LOG_H 1

#include <errno.h>
#include <stdatomic.h>

#include "cancel.h"
#include "librpma.h"
#include "log_threshold.h"

/* rpma_log_function, with a format for the compiler to check */
typedef void rpma__log_function(enum rpma_log_level level,
				const char *file_name, const int line_no,
				const char *function_name,
				const char *message_format, ...)
	__attribute__((format(printf, 5, 6)));

/*
 * Returns the log function, or rpma__log_held_keep() while the calling thread
 * holds messages.
 */
rpma__log_function *rpma__log_get_function(void);

/* size of the longest message, without the newline */
#define RPMA__LOG_MESSAGE_MAX 1024

/*
 * Returns the log function for messages of the level, or NULL. Inline, because
 * each poll of an empty CQ calls rpma__log_function_for().
 */
static inline rpma__log_function *
rpma__log_function_for(enum rpma_log_level level)
{
	/* relaxed: a filter, no other memory depends on the threshold */
	int threshold =
		atomic_load_explicit(&rpma__log_thresholds[RPMA_LOG_THRESHOLD],
				     memory_order_relaxed);

	if (__builtin_expect((int)level > threshold, true))
		return NULL;
	return rpma__log_get_function();
}

/* Logs a message; leaves errno alone, whatever the log function does. */
#define RPMA__LOG(level, format, ...)                                          \
	do {                                                                   \
		rpma__log_function *log_ = rpma__log_function_for(level);      \
		if (log_) {                                                    \
			/* a lock is held, of the log or of the caller */      \
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

/* Logs why a call is refused; the value is the error. Because err is a
 * constant, the compiler knows that the value is an error. */
#define RPMA_REFUSE(err, words) \
	(rpma__log_refuse(__FILE__, __LINE__, __func__, words), (err))
/* Logs why a call is refused, where a NULL pointer may be the reason: names the
 * first pointer that is NULL; words: any other reason. rpma__is_here() has
 * logged RPMA_E_FORKED already. */
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

/*
 * Logs that there is no memory for an object (a literal); the value is the
 * error.
 */
#define RPMA_REFUSE_NOMEM(what) RPMA_REFUSE(RPMA_E_NOMEM, "no memory for " what)

/*
 * Logs "name() failed: text" for a call of verbs or rdma_cm. ret: the result of
 * the call, as rpma__err_errno() takes the result. Leaves
 * the reason in errno, where the caller of a public function finds the reason
 * of RPMA_E_PROVIDER.
 */
#define RPMA_LOG_CALL(name, ret) RPMA__LOG_CALL(name, ret, NULL)
/* RPMA_LOG_CALL() with advice on what rdma_cm needs */
#define RPMA_LOG_CM_CALL(name) RPMA__LOG_CALL(name, -1, rpma__cm_advice)
/* RPMA_LOG_CALL() with advice on addresses */
#define RPMA_LOG_ADDR_CALL(name) RPMA__LOG_CALL(name, -1, rpma__addr_advice)

#define RPMA__LOG_CALL(name, ret, advice) \
	rpma__log_call(__FILE__, __LINE__, __func__, name, ret, advice)
/*
 * Logs a failed call; advice() returns the end of the message, from errno;
 * advice may be NULL.
 */
__attribute__((cold)) void rpma__log_call(const char *file, int line,
					  const char *function,
					  const char *name, int ret,
					  const char *(*advice)(void));

#endif /* RPMA_LOG_H */
