/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* bytes.c -- see bytes.h. */

#include "bytes.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

void bytes_fill(uint8_t *mem, uint32_t at, uint32_t len, unsigned version)
{
	for (uint32_t i = at; i < at + len; i++)
		mem[i] = (uint8_t)(i * 7 + version * 64 + 1);
}

int bytes_judge(const uint8_t *file, uint32_t at, uint32_t len, unsigned before,
		unsigned after)
{
	static uint8_t old[FILE_SIZE], new[FILE_SIZE];
	unsigned olds = 0, news = 0;

	bytes_fill(old, at, len, before);
	bytes_fill(new, at, len, after);
	for (uint32_t i = at, n; i < at + len; i += n) {
		n = 8 - i % 8;
		n = n < at + len - i ? n : at + len - i;
		if (!memcmp(file + i, old + i, n))
			olds++;
		else if (!memcmp(file + i, new + i, n))
			news++;
		else
			fail_msg("offset %u: half a word", i);
	}
	return olds && news ? TORN : olds ? LOST : THERE;
}

void bytes_make_file(const char *path)
{
	static uint8_t bytes[FILE_SIZE];
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	bytes_fill(bytes, 0, FILE_SIZE, 0);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, FILE_SIZE), FILE_SIZE);
	close(fd);
}

void bytes_read_file(const char *path, uint8_t *bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(read(fd, bytes, FILE_SIZE), FILE_SIZE);
	close(fd);
}
