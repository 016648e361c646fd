/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * tsan.c -- see tsan.h: the way to the sanitizer, which changes no register but
 * r11, where the address is. Each of the three libraries has the functions;
 * weak and hidden, because a program may be linked with the objects of several
 * libraries.
 */

#include "tsan.h"

#ifdef __x86_64__

/* fxsave needs 512 bytes, aligned to 16. The pushes do not keep the flags: the
 * caller does not need the flags. */
#define TSAN_WAY(what)                                                  \
	__asm__(".pushsection .text.unlikely.tsan, \"ax\", @progbits\n" \
		".weak rpma__tsan_" what "\n"                           \
		".hidden rpma__tsan_" what "\n"                         \
		".type rpma__tsan_" what ", @function\n"                \
		"rpma__tsan_" what ":\n"                                \
		".cfi_startproc\n\t"                                    \
		"pushq %rbp\n\t"                                        \
		".cfi_def_cfa_offset 16\n\t"                            \
		".cfi_offset rbp, -16\n\t"                              \
		"movq %rsp, %rbp\n\t"                                   \
		".cfi_def_cfa_register rbp\n\t"                         \
		"pushq %rax\n\tpushq %rcx\n\tpushq %rdx\n\t"            \
		"pushq %rsi\n\tpushq %rdi\n\t"                          \
		"pushq %r8\n\tpushq %r9\n\tpushq %r10\n\t"              \
		"subq $512, %rsp\n\t"                                   \
		"andq $-16, %rsp\n\t"                                   \
		"fxsave64 (%rsp)\n\t"                                   \
		"movq %r11, %rdi\n\t"                                   \
		"call *__tsan_" what "@GOTPCREL(%rip)\n\t"              \
		"fxrstor64 (%rsp)\n\t"                                  \
		"leaq -64(%rbp), %rsp\n\t"                              \
		"popq %r10\n\tpopq %r9\n\tpopq %r8\n\t"                 \
		"popq %rdi\n\tpopq %rsi\n\t"                            \
		"popq %rdx\n\tpopq %rcx\n\tpopq %rax\n\t"               \
		"popq %rbp\n\t"                                         \
		".cfi_def_cfa rsp, 8\n\t"                               \
		"ret\n"                                                 \
		".cfi_endproc\n"                                        \
		".size rpma__tsan_" what ", . - rpma__tsan_" what "\n"  \
		".weak __tsan_" what "\n"                               \
		".popsection")

TSAN_WAY("acquire");
TSAN_WAY("release");

#endif
