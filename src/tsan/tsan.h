/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * tsan.h -- shows ThreadSanitizer, in a program compiled with
 * -fsanitize=thread, the order made by a library without instrumentation. The
 * two functions of the sanitizer are weak: without the sanitizer both are NULL,
 * and a call here costs a comparison with zero and a jump, never taken.
 * doc/THREAD-SAFETY.md, "ThreadSanitizer".
 *
 * On x86-64 the call is hidden from the compiler. For a visible call, a small
 * function would save registers, although the call never happens: an empty look
 * at a queue pair took a fifth longer. The comparison jumps to a place outside
 * of the function, from where tsan.c calls the sanitizer and changes no
 * register but the scratch register r11. The red zone below the stack pointer
 * stays as the function left the red zone. A build with the address sanitizer,
 * whose locals may have addresses that no lea takes, has the call in C, like
 * builds for other processors.
 */

#ifndef RPMA_TSAN_H
#define RPMA_TSAN_H

#include <stddef.h>
#include <stdint.h>

/* in a build with the sanitizer, which sees the accesses themselves */
#if defined(__SANITIZE_THREAD__)
#define TSAN_IS_BUILT_IN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TSAN_IS_BUILT_IN 1
#endif
#endif

/* as in <sanitizer/tsan_interface.h>, which not every machine has */
extern __attribute__((weak, visibility("default"))) void
__tsan_acquire(void *at);
extern __attribute__((weak, visibility("default"))) void
__tsan_release(void *at);

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
/* The address is an operand computed only on the rare way; clang 14 knows no
 * such operand. The assembler warns of an address in the memory of a thread,
 * which has to be in a register: the CMakeLists.txt turn the warning into an
 * error. */
#ifdef __clang__
#define TSAN_TO_R11 "movq %0, %%r11"
#define TSAN_AT	    "r"
#else
#define TSAN_TO_R11 "leaq %a0, %%r11"
#define TSAN_AT	    "p"
#endif
#define TSAN_CALL(what, at)                                             \
	__asm__ __volatile__ __inline__(                                \
		"cmpq $0, __tsan_" what "@GOTPCREL(%%rip)\n\t"          \
		"jne 1f\n"                                              \
		"2:\n\t"                                                \
		".pushsection .text.unlikely.tsan, \"ax\", @progbits\n" \
		"1:\t" TSAN_TO_R11 "\n\t"                               \
		"leaq -128(%%rsp), %%rsp\n\t"                           \
		"call rpma__tsan_" what "\n\t"                          \
		"leaq 128(%%rsp), %%rsp\n\t"                            \
		"jmp 2b\n\t"                                            \
		".popsection\n\t"                                       \
		".weak __tsan_" what                                    \
		:                                                       \
		: TSAN_AT(at)                                           \
		: "r11", "cc", "memory")
/* Calls with the address stored in the object `at`: only the rare way loads the
 * address. */
#define TSAN_CALL_STORED(what, at)                                      \
	__asm__ __volatile__ __inline__(                                \
		"cmpq $0, __tsan_" what "@GOTPCREL(%%rip)\n\t"          \
		"jne 1f\n"                                              \
		"2:\n\t"                                                \
		".pushsection .text.unlikely.tsan, \"ax\", @progbits\n" \
		"1:\tmovq %0, %%r11\n\t"                                \
		"leaq -128(%%rsp), %%rsp\n\t"                           \
		"call rpma__tsan_" what "\n\t"                          \
		"leaq 128(%%rsp), %%rsp\n\t"                            \
		"jmp 2b\n\t"                                            \
		".popsection\n\t"                                       \
		".weak __tsan_" what                                    \
		:                                                       \
		: "m"(at)                                               \
		: "r11", "cc", "memory")
#endif

/* Orders everything done before by the calling thread before everything done by
 * other threads after tsan_acquire() of the same address. */
static inline void tsan_release(const volatile void *at)
{
#ifdef TSAN_CALL
	TSAN_CALL("release", at);
#else
	if (__builtin_expect(__tsan_release != NULL, 0))
		__tsan_release((void *)(uintptr_t)at);
#endif
}

/* Orders everything done by other threads before tsan_release() of the address
 * before everything done by the calling thread from here on. */
static inline void tsan_acquire(const volatile void *at)
{
#ifdef TSAN_CALL
	TSAN_CALL("acquire", at);
#else
	if (__builtin_expect(__tsan_acquire != NULL, 0))
		__tsan_acquire((void *)(uintptr_t)at);
#endif
}

/*
 * Show the order that a device makes: everything done before a post comes
 * before everything done after the completion. tsan_posts() before a post
 * releases the address of the context of the device, tsan_polled() after a poll
 * acquires the address, so each post comes before each later completion of the
 * same device. object is a queue pair, a shared receive queue or a CQ of the
 * device. A finer address would have to be found for each completion, and would
 * not order the two ends of a connection in one process.
 *
 * Both macros do nothing in a build with the sanitizer, where the loopback
 * device shows a finer order: races of the libraries themselves are not hidden.
 */
#ifdef TSAN_IS_BUILT_IN
#define tsan_is_shown()	    false
#define tsan_posts(object)  ((void)(object))
#define tsan_polled(object) ((void)(object))
#else
/* Returns whether the two macros do something in this program. */
#define tsan_is_shown() (__tsan_release != NULL)
#ifdef TSAN_CALL_STORED
#define tsan_posts(object)  TSAN_CALL_STORED("release", (object)->context)
#define tsan_polled(object) TSAN_CALL_STORED("acquire", (object)->context)
#else
#define tsan_posts(object)  tsan_release((object)->context)
#define tsan_polled(object) tsan_acquire((object)->context)
#endif
#endif

#endif /* RPMA_TSAN_H */
