/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Shared by the fuzzers: the function that libFuzzer calls, an end that counts
 * as a finding, and a log function that formats every message. One thread.
 */

#ifndef FUZZ_H
#define FUZZ_H 1

#include "mocks.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* As assert(), but always there. */
#define expect(what) ((what) ? (void)0 : fuzz_found(#what, __FILE__, __LINE__))
void fuzz_found(const char *what, const char *file, int line)
	__attribute__((noreturn));

#endif /* FUZZ_H */
