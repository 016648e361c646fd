/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* file.c -- see file.h. */

#include "capture/file.h"

#include "base/cancel.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SECTION	  0x0a0d0d0au
#define INTERFACE 1u
#define PACKET	  6u
#define ETHERNET  1u	/* the type of the link */
#define FILES_MAX 9999u /* with the same pid */

_Atomic bool lb_file_wanted;

/* one packet at a time; and the first one makes the file */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int fd = -1;
static char base[PATH_MAX];

/* Numbers are in the order of this machine, which the first block tells. */
struct head {
	uint32_t type, len;
	uint32_t magic;
	uint16_t major, minor;
	int64_t section_len;
	uint32_t len_again;

	uint32_t if_type, if_len;
	uint16_t link, reserved;
	uint32_t snap;
	uint32_t if_len_again;
} __attribute__((packed));

struct packet_head {
	uint32_t type, len;
	uint32_t interface;
	uint32_t high, low; /* of the time in microseconds */
	uint32_t captured, original;
};

/*
 * Opens name.PID.pcapng, or where that is another's name.PID.2.pcapng, and so
 * on: processes of two containers may have the same pid and directory. No file
 * and no link that exists is followed.
 */
static int open_new(char *name, size_t size)
{
	unsigned n;
	int file;

	snprintf(name, size, "%s.%d.pcapng", base, (int)getpid());
	for (n = 2;; n++) {
		file = open(name,
			    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW |
				    O_APPEND | O_CLOEXEC,
			    0666);
		if (file >= 0 || errno != EEXIST || n > FILES_MAX)
			return file;
		snprintf(name, size, "%s.%d.%u.pcapng", base, (int)getpid(), n);
	}
}

/* name.PID.pcapng, with what stands before the first packet. */
static int create(void)
{
	LB_NOT_CANCELLED;
	const struct head head = {
		.type = SECTION,
		.len = 28,
		.magic = 0x1a2b3c4d,
		.major = 1,
		.section_len = -1,
		.len_again = 28,
		.if_type = INTERFACE,
		.if_len = 20,
		.link = ETHERNET,
		.if_len_again = 20,
	};
	char name[PATH_MAX + 32];

	fd = open_new(name, sizeof(name));
	if (fd >= 0 && write(fd, &head, sizeof(head)) == sizeof(head))
		return 0;
	fprintf(stderr, "loopback: RPMA_LOOPBACK_PCAP: %s: %s\n", name,
		strerror(errno));
	return -1;
}

void lb_file_start(const char *name)
{
	snprintf(base, sizeof(base), "%s", name);
	/* relaxed: see lb_file_is_wanted() */
	atomic_store_explicit(&lb_file_wanted, true, memory_order_relaxed);
}

void lb_file_forked(void)
{
	LB_NOT_CANCELLED;

	pthread_mutex_init(&lock, NULL); /* a thread may have had it */
	if (fd < 0)
		return;
	close(fd);
	fd = -1;
}

void lb_file_write(const struct lb_packet *packet)
{
	LB_NOT_CANCELLED;
	uint8_t block[sizeof(struct packet_head) + LB_PACKET_MAX + 8] = {0};
	struct packet_head head = {.type = PACKET};
	struct timespec now;
	uint64_t us;
	size_t len;

	len = lb_packet_build(block + sizeof(head), packet);
	clock_gettime(CLOCK_REALTIME, &now);
	us = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
	head.high = (uint32_t)(us >> 32);
	head.low = (uint32_t)us;
	head.captured = head.original = (uint32_t)len;
	/* the packet, up to a multiple of 4, and the length once more */
	len = (sizeof(head) + len + 3) & ~(size_t)3;
	head.len = (uint32_t)len + 4;
	memcpy(block, &head, sizeof(head));
	memcpy(block + len, &head.len, 4);
	pthread_mutex_lock(&lock);
	if (fd < 0 && create()) /* relaxed: see lb_file_is_wanted() */
		atomic_store_explicit(&lb_file_wanted, false,
				      memory_order_relaxed);
	/* a full disk loses it, and the process goes on */
	(void)!write(fd, block, head.len);
	pthread_mutex_unlock(&lock);
}
