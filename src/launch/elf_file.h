/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * elf_file.h -- the properties of a program file that the launcher reads. No
 * value in a file is trusted: an offset that leads out of the file counts as
 * missing.
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
	/* only for a file of the class and order of the launcher; strings are
	 * in map */
	const char *loader; /* PT_INTERP, or NULL: linked statically */
	const char *rpath;  /* DT_RPATH, if there is no DT_RUNPATH */
	const char *needed[ELF_FILE_NEEDED];
	size_t needed_count;
	bool is_dynamic;

	const char *map; /* the whole file */
	size_t size;
};

/*
 * Opens and reads a file. Returns 0, or -1 with errno. A file other than ELF is
 * no error.
 */
int elf_file_open(struct elf_file *elf, const char *path);
void elf_file_close(struct elf_file *elf);

/* Returns true if one process can load both files. */
bool elf_file_is_alike(const struct elf_file *a, const struct elf_file *b);

/* Returns the needed library whose name begins with prefix, or NULL. */
const char *elf_file_needs(const struct elf_file *elf, const char *prefix);

/* Returns true if the text occurs anywhere in the file. */
bool elf_file_has(const struct elf_file *elf, const char *text);

#endif /* LAUNCH_ELF_FILE_H */
