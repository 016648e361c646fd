/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * elf_file.h -- what the launcher wants to know of a program's file. Nothing
 * in a file is believed: an offset that leads out of it is as if it were not
 * there.
 */

#ifndef LAUNCH_ELF_FILE_H
#define LAUNCH_ELF_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ELF_FILE_NEEDED 64

struct elf_file {
	bool is_elf;
	/* of any class */
	uint8_t class;
	uint8_t order; /* ELFDATA2LSB or MSB */
	uint16_t machine;
	/* of the launcher's own class and order only; strings are in map */
	const char *loader; /* PT_INTERP, or NULL: linked statically */
	const char *rpath;  /* DT_RPATH, if there is no DT_RUNPATH */
	const char *needed[ELF_FILE_NEEDED];
	size_t needed_count;
	bool is_dynamic;

	const char *map; /* the whole file */
	size_t size;
};

/* Returns 0, or -1 with errno. A file that is no ELF is no error. */
int elf_file_open(struct elf_file *elf, const char *path);
void elf_file_close(struct elf_file *elf);

/* Would one process take both? */
bool elf_file_is_alike(const struct elf_file *a, const struct elf_file *b);

/* What it links to whose name begins so, or NULL. */
const char *elf_file_needs(const struct elf_file *elf, const char *prefix);

/* Does the text stand anywhere in it? */
bool elf_file_has(const struct elf_file *elf, const char *text);

#endif /* LAUNCH_ELF_FILE_H */
