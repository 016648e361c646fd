/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * tree.c -- see tree.h. The name of the directory has a hash of all files, so
 * processes with the same devices share a directory, which is made aside,
 * renamed, and stays. Files are written once and never change.
 */

#include "tree.h"

#include <dlfcn.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#define FIRST_MINOR 192 /* of /dev/infiniband/uverbs0, character device 231 */

/* A tree that is counted up or written. */
struct tree {
	char dir[PATH_MAX / 2]; /* "": only the hash is wanted */
	uint64_t hash;
	bool has_failed;
};

/* The verbs, looked up: this library is linked to no other. */
static struct verbs {
	struct ibv_device **(*list)(int *);
	void (*free_list)(struct ibv_device **);
	struct ibv_context *(*open)(struct ibv_device *);
	int (*close)(struct ibv_context *);
	int (*query)(struct ibv_context *, struct ibv_device_attr *);
	int (*gid)(struct ibv_context *, uint8_t, int, union ibv_gid *);
} verbs;

static char root[PATH_MAX / 2];
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* --- files */

static void tree_hash(struct tree *tree, const char *text)
{
	do
		tree->hash = (tree->hash ^ (uint8_t)*text) * 0x100000001b3u;
	while (*text++);
}

/* Makes the directories of a path below the tree. */
static void tree_make_parents(struct tree *tree, char *path)
{
	char *slash = path + strlen(tree->dir) + 1;

	while ((slash = strchr(slash, '/'))) {
		*slash = '\0';
		if (mkdir(path, 0755) && errno != EEXIST)
			tree->has_failed = true;
		*slash++ = '/';
	}
}

static void tree_write(struct tree *tree, const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	size_t len = strlen(text);

	if (fd < 0 || write(fd, text, len) != (ssize_t)len)
		tree->has_failed = true;
	if (fd >= 0)
		close(fd);
}

/* Adds a file with a line, or a link if the name begins with "/dev". */
__attribute__((format(printf, 3, 4))) static void
tree_add(struct tree *tree, const char *name, const char *fmt, ...)
{
	char path[PATH_MAX], text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	tree_hash(tree, name);
	tree_hash(tree, text);
	if (!tree->dir[0])
		return;
	snprintf(path, sizeof(path), "%s%s", tree->dir, name);
	tree_make_parents(tree, path);
	if (strncmp(name, "/dev", 4) != 0)
		tree_write(tree, path, text);
	else if (symlink(text, path))
		tree->has_failed = true;
}

/* --- a device */

/* Copies the name of the interface that has the address; "lo": none has. */
static void tree_interface(const union ibv_gid *gid, char name[IF_NAMESIZE])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	struct ifaddrs *list, *i;
	const void *at = NULL;
	size_t from;

	strcpy(name, "lo");
	if (getifaddrs(&list))
		return;
	for (i = list; i; i = i->ifa_next) {
		int family = i->ifa_addr ? i->ifa_addr->sa_family : AF_UNSPEC;

		if (family == AF_INET && !memcmp(gid->raw, mapped, 12))
			at = &((struct sockaddr_in *)(void *)i->ifa_addr)
				      ->sin_addr;
		else if (family == AF_INET6)
			at = &((struct sockaddr_in6 *)(void *)i->ifa_addr)
				      ->sin6_addr;
		else
			continue;
		from = family == AF_INET ? 12 : 0;
		if (!memcmp(gid->raw + from, at, 16 - from))
			snprintf(name, IF_NAMESIZE, "%s", i->ifa_name);
	}
	freeifaddrs(list);
}

static void tree_add_gid(struct tree *tree, const char *port, int row,
			 const union ibv_gid *gid)
{
	const uint8_t *g = gid->raw;
	char name[256], text[64], interface[IF_NAMESIZE];
	size_t len = 0;
	int i;

	for (i = 0; i < 16; i += 2)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
					"%s%02x%02x", i ? ":" : "", g[i],
					g[i + 1]);
	snprintf(name, sizeof(name), "%s/gids/%d", port, row);
	tree_add(tree, name, "%s\n", text);
	if (!gid->global.subnet_prefix && !gid->global.interface_id)
		return;
	snprintf(name, sizeof(name), "%s/gid_attrs/types/%d", port, row);
	tree_add(tree, name, "RoCE v2\n");
	tree_interface(gid, interface);
	snprintf(name, sizeof(name), "%s/gid_attrs/ndevs/%d", port, row);
	tree_add(tree, name, "%s\n", interface);
}

static void tree_add_port(struct tree *tree, const char *dir,
			  struct ibv_context *context)
{
	static const char *const files[][2] = {
		{"state", "4: ACTIVE"},
		{"phys_state", "5: LinkUp"},
		{"rate", "100 Gb/sec (4X EDR)"},
		{"link_layer", "Ethernet"},
		{"lid", "0x0"},
		{"lid_mask_count", "0"},
		{"sm_lid", "0x0"},
		{"sm_sl", "0"},
		{"cap_mask", "0x04010000"},
		{"pkeys/0", "0xffff"},
	};
	char port[128], name[256];
	union ibv_gid gid;
	size_t i;
	int row;

	snprintf(port, sizeof(port), "%s/ports/1", dir);
	for (i = 0; i < sizeof(files) / sizeof(*files); i++) {
		snprintf(name, sizeof(name), "%s/%s", port, files[i][0]);
		tree_add(tree, name, "%s\n", files[i][1]);
	}
	for (row = 0; !verbs.gid(context, 1, row, &gid); row++)
		tree_add_gid(tree, port, row, &gid);
}

/* Adds the parts of a device that need no context, and the port. */
static void tree_add_device(struct tree *tree, int number, const char *device,
			    struct ibv_context *context)
{
	struct ibv_device_attr attr;
	char dir[64], name[128];
	uint64_t guid;

	if (verbs.query(context, &attr)) {
		tree->has_failed = true;
		return;
	}
	guid = be64toh(attr.node_guid);
	snprintf(dir, sizeof(dir), "/sys/class/infiniband/%s", device);
#define ADD(file, ...)                                         \
	do {                                                   \
		snprintf(name, sizeof(name), "%s/" file, dir); \
		tree_add(tree, name, __VA_ARGS__);             \
	} while (0)
	ADD("node_type", "1: CA\n");
	ADD("node_desc", "%s\n", device);
	ADD("fw_ver", "%s\n", attr.fw_ver);
	ADD("node_guid", "%04x:%04x:%04x:%04x\n", (unsigned)(guid >> 48),
	    (unsigned)(guid >> 32) & 0xffff, (unsigned)(guid >> 16) & 0xffff,
	    (unsigned)guid & 0xffff);
	ADD("sys_image_guid", "%04x:%04x:%04x:%04x\n", (unsigned)(guid >> 48),
	    (unsigned)(guid >> 32) & 0xffff, (unsigned)(guid >> 16) & 0xffff,
	    (unsigned)guid & 0xffff);
	ADD("device/vendor", "0x%04x\n", attr.vendor_id);
	ADD("device/device", "0x%04x\n", attr.vendor_part_id);
	ADD("device/numa_node", "-1\n");
	tree_add_port(tree, dir, context);
	snprintf(dir, sizeof(dir), "/sys/class/infiniband_verbs/uverbs%d",
		 number);
	ADD("ibdev", "%s\n", device);
	ADD("abi_version", "1\n");
	ADD("dev", "231:%d\n", FIRST_MINOR + number);
#undef ADD
	snprintf(name, sizeof(name), "/dev/infiniband/uverbs%d", number);
	tree_add(tree, name, "/dev/null");
}

static void tree_add_all(struct tree *tree)
{
	struct ibv_device **list = verbs.list(NULL);
	struct ibv_context *context;
	int i;

	tree_add(tree, "/sys/class/infiniband_verbs/abi_version", "6\n");
	tree_add(tree, "/dev/infiniband/rdma_cm", "/dev/null");
	for (i = 0; list && list[i]; i++) {
		context = verbs.open(list[i]);
		if (!context)
			continue;
		tree_add_device(tree, i, list[i]->name, context);
		verbs.close(context);
	}
	if (!list || !list[0])
		tree->has_failed = true;
	if (list)
		verbs.free_list(list);
}

/* --- the directory */

static int tree_remove_file(const char *path, const struct stat *st, int type,
			    struct FTW *at)
{
	(void)st, (void)type, (void)at;
	return remove(path);
}

/* Returns whether the directory is this user's, and nobody else may write. */
static bool tree_is_own(const char *dir)
{
	struct stat st;

	return !lstat(dir, &st) && S_ISDIR(st.st_mode) &&
	       st.st_uid == geteuid() && !(st.st_mode & 022);
}

static bool tree_make(const char *dir)
{
	struct tree tree = {.hash = 0};

	snprintf(tree.dir, sizeof(tree.dir), "%s.XXXXXX", dir);
	if (!mkdtemp(tree.dir))
		return false;
	tree_add_all(&tree);
	if (!tree.has_failed && !chmod(tree.dir, 0755) &&
	    !rename(tree.dir, dir))
		return true;
	/* another process was first, or there is no room */
	nftw(tree.dir, tree_remove_file, 8, FTW_DEPTH | FTW_PHYS);
	return tree_is_own(dir);
}

/* Returns whether the loopback device is there, and looks its verbs up. */
static bool tree_find_verbs(void)
{
	static const struct {
		const char *name;
		void *to;
	} wanted[] = {
		{"ibv_get_device_list", &verbs.list},
		{"ibv_free_device_list", &verbs.free_list},
		{"ibv_open_device", &verbs.open},
		{"ibv_close_device", &verbs.close},
		{"ibv_query_device", &verbs.query},
		{"ibv_query_gid", &verbs.gid},
	};
	size_t i;

	/* the real libibverbs would look at the files that are to be made */
	if (!dlsym(RTLD_DEFAULT, "rpma_loopback_fault"))
		return false;
	for (i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
		*(void **)wanted[i].to = dlsym(RTLD_DEFAULT, wanted[i].name);
		if (!*(void **)wanted[i].to)
			return false;
	}
	return true;
}

static void tree_start(void)
{
	struct tree tree = {.hash = 0xcbf29ce484222325u};
	const char *tmp = getenv("TMPDIR");
	char dir[PATH_MAX / 4];

	if (!tree_find_verbs())
		return;
	tree_add_all(&tree);
	if (tree.has_failed)
		return;
	snprintf(dir, sizeof(dir), "%s/rpma-loopback-%u-%016llx",
		 tmp && *tmp ? tmp : "/tmp", (unsigned)geteuid(),
		 (unsigned long long)tree.hash);
	if (tree_is_own(dir) || tree_make(dir))
		strcpy(root, dir);
}

const char *tree_root(void)
{
	int err = errno;

	pthread_once(&once, tree_start);
	errno = err;
	return root[0] ? root : NULL;
}
