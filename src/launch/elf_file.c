/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* elf_file.c -- see elf_file.h. */

#include "elf_file.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define OWN_CLASS (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32)
#define OWN_ORDER \
	(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB)

/* Returns len bytes of the file at off, or NULL if the file ends before. */
static const void *elf_at(const struct elf_file *elf, uint64_t off,
			  uint64_t len)
{
	if (off > elf->size || len > elf->size - off)
		return NULL;
	return elf->map + off;
}

/* Returns the string at off, or NULL if the string has no end. */
static const char *elf_string_at(const struct elf_file *elf, uint64_t off)
{
	const char *s = elf_at(elf, off, 1);

	return s && memchr(s, '\0', elf->size - off) ? s : NULL;
}

/* Copies program header n, which may be misaligned in the file. */
static bool elf_segment(const struct elf_file *elf, const ElfW(Ehdr) * head,
			unsigned n, ElfW(Phdr) * out)
{
	const void *p = elf_at(elf, head->e_phoff + (uint64_t)n * sizeof(*out),
			       sizeof(*out));

	if (!p || head->e_phentsize != sizeof(*out))
		return false;
	memcpy(out, p, sizeof(*out));
	return true;
}

/* Returns the offset in the file of an address of the program. */
static uint64_t elf_offset_of(const struct elf_file *elf,
			      const ElfW(Ehdr) * head, uint64_t addr)
{
	ElfW(Phdr) ph;
	unsigned n;

	for (n = 0; n < head->e_phnum && elf_segment(elf, head, n, &ph); n++) {
		if (ph.p_type == PT_LOAD && addr >= ph.p_vaddr &&
		    addr - ph.p_vaddr < ph.p_filesz)
			return addr - ph.p_vaddr + ph.p_offset;
	}
	return UINT64_MAX;
}

static void elf_add_needed(struct elf_file *elf, const char *name)
{
	if (name && elf->needed_count < ELF_FILE_NEEDED)
		elf->needed[elf->needed_count++] = name;
}

/* Reads an entry of the dynamic section; strings: offset of the strings. */
static void elf_read_entry(struct elf_file *elf, const ElfW(Dyn) * dyn,
			   uint64_t strings, bool *has_runpath)
{
	const char *s = elf_string_at(elf, strings + dyn->d_un.d_val);

	if (dyn->d_tag == DT_NEEDED)
		elf_add_needed(elf, s);
	else if (dyn->d_tag == DT_RPATH)
		elf->rpath = s;
	else if (dyn->d_tag == DT_RUNPATH)
		*has_runpath = true;
}

static void elf_read_dynamic(struct elf_file *elf, const ElfW(Ehdr) * head,
			     const ElfW(Phdr) * ph)
{
	uint64_t n, count = ph->p_filesz / sizeof(ElfW(Dyn));
	const char *table = elf_at(elf, ph->p_offset, ph->p_filesz);
	uint64_t strings = UINT64_MAX;
	bool has_runpath = false;
	ElfW(Dyn) dyn;

	for (n = 0; table && n < count; n++) {
		memcpy(&dyn, table + n * sizeof(dyn), sizeof(dyn));
		if (dyn.d_tag == DT_STRTAB)
			strings = elf_offset_of(elf, head, dyn.d_un.d_ptr);
	}
	if (strings > elf->size)
		return;
	for (n = 0; n < count; n++) {
		memcpy(&dyn, table + n * sizeof(dyn), sizeof(dyn));
		if (dyn.d_tag == DT_NULL)
			break;
		elf_read_entry(elf, &dyn, strings, &has_runpath);
	}
	if (has_runpath) /* then the loader ignores DT_RPATH */
		elf->rpath = NULL;
}

static void elf_read_segments(struct elf_file *elf)
{
	ElfW(Ehdr) head;
	ElfW(Phdr) ph;
	unsigned n;

	if (!elf_at(elf, 0, sizeof(head)))
		return;
	memcpy(&head, elf->map, sizeof(head));
	for (n = 0; n < head.e_phnum && elf_segment(elf, &head, n, &ph); n++) {
		if (ph.p_type == PT_INTERP)
			elf->loader = elf_string_at(elf, ph.p_offset);
		if (ph.p_type == PT_DYNAMIC) {
			elf->is_dynamic = true;
			elf_read_dynamic(elf, &head, &ph);
		}
	}
}

static void elf_read_head(struct elf_file *elf)
{
	const ElfW(Ehdr) *head = (const void *)elf->map;

	/* e_machine has the same place in both classes */
	if (elf->size < sizeof(Elf32_Ehdr) ||
	    memcmp(elf->map, ELFMAG, SELFMAG) != 0)
		return;
	elf->is_elf = true;
	elf->class = head->e_ident[EI_CLASS];
	elf->order = head->e_ident[EI_DATA];
	elf->machine = head->e_machine;
	if (elf->class == OWN_CLASS && elf->order == OWN_ORDER)
		elf_read_segments(elf);
}

int elf_file_open(struct elf_file *elf, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *map;

	memset(elf, 0, sizeof(*elf));
	if (fd < 0)
		return -1;
	if (fstat(fd, &st)) {
		close(fd);
		return -1;
	}
	elf->size = (size_t)st.st_size;
	map = elf->size ? mmap(NULL, elf->size, PROT_READ, MAP_PRIVATE, fd, 0)
			: NULL;
	close(fd);
	if (map == MAP_FAILED)
		return -1;
	elf->map = map;
	if (map)
		elf_read_head(elf);
	return 0;
}

void elf_file_close(struct elf_file *elf)
{
	if (elf->map)
		munmap((void *)elf->map, elf->size);
	memset(elf, 0, sizeof(*elf));
}

bool elf_file_is_alike(const struct elf_file *a, const struct elf_file *b)
{
	return a->class == b->class && a->order == b->order &&
	       a->machine == b->machine;
}

const char *elf_file_needs(const struct elf_file *elf, const char *prefix)
{
	size_t i;

	for (i = 0; i < elf->needed_count; i++) {
		if (!strncmp(elf->needed[i], prefix, strlen(prefix)))
			return elf->needed[i];
	}
	return NULL;
}

bool elf_file_has(const struct elf_file *elf, const char *text)
{
	return elf->map && memmem(elf->map, elf->size, text, strlen(text));
}
