/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * files.c -- looks at the files of each device in every way that a C program
 * has, and compares the files with the answers of the verbs. Exits with 1 after
 * naming a file that is not as the file should be.
 */

#include <dirent.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <limits.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void need(bool is, const char *what)
{
	if (is)
		return;
	fprintf(stderr, "not as it should be: %s\n", what);
	exit(1);
}

/* Reads the first line, by open() and by fopen(), which agree. */
static void line_of(const char *path, char line[128])
{
	char again[128];
	FILE *file = fopen(path, "r");
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	need(file && fd >= 0 && fgets(line, 128, file), path);
	n = read(fd, again, sizeof(again) - 1);
	need(n > 0, path);
	again[n] = '\0';
	need(!strcmp(line, again), path);
	line[strcspn(line, "\n")] = '\0';
	fclose(file);
	close(fd);
}

static void need_line(const char *dir, const char *name, const char *line)
{
	char path[512], found[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	line_of(path, found);
	need(!strcmp(found, line), path);
}

static void check_gids(const char *port, struct ibv_context *context)
{
	char name[1024], text[128];
	union ibv_gid gid;
	int row, i, n, rows = 0;

	for (row = 0; !ibv_query_gid(context, 1, row, &gid); row++) {
		for (i = n = 0; i < 16; i += 2)
			n += sprintf(text + n, "%s%02x%02x", i ? ":" : "",
				     gid.raw[i], gid.raw[i + 1]);
		snprintf(name, sizeof(name), "gids/%d", row);
		need_line(port, name, text);
		if (!gid.global.subnet_prefix && !gid.global.interface_id)
			continue;
		rows++;
		snprintf(name, sizeof(name), "gid_attrs/types/%d", row);
		need_line(port, name, "RoCE v2");
		snprintf(name, sizeof(name), "%s/gid_attrs/ndevs/%d", port,
			 row);
		line_of(name, text);
		need(if_nametoindex(text) != 0, name);
	}
	need(rows > 0, "no GID");
}

static void check_device(int n, struct ibv_device *device)
{
	struct ibv_context *context = ibv_open_device(device);
	char dir[256], path[512], real[PATH_MAX];
	struct dirent **names;
	struct stat st;

	need(context != NULL, "ibv_open_device()");
	snprintf(dir, sizeof(dir), "/sys/class/infiniband/%s", device->name);
	need(!stat(dir, &st) && S_ISDIR(st.st_mode), dir);
	need(realpath(dir, real) != NULL, dir);
	need(scandir(dir, &names, NULL, alphasort) > 2, dir);
	need_line(dir, "node_type", "1: CA");
	need_line(dir, "ports/1/state", "4: ACTIVE");
	need_line(dir, "ports/1/link_layer", "Ethernet");
	snprintf(path, sizeof(path), "%s/ports/1", dir);
	check_gids(path, context);
	snprintf(path, sizeof(path), "/dev/infiniband/uverbs%d", n);
	need(!stat(path, &st) && S_ISCHR(st.st_mode), path);
	need(!access(path, R_OK | W_OK), path);
	need(readlink(path, real, sizeof(real)) > 0, path);
	snprintf(path, sizeof(path), "/sys/class/infiniband_verbs/uverbs%d", n);
	need_line(path, "ibdev", device->name);
	ibv_close_device(context);
}

int main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	DIR *dir = opendir("/sys/class/infiniband");
	struct dirent *entry;
	int n, found = 0;

	need(list && list[0], "ibv_get_device_list()");
	need(dir != NULL, "/sys/class/infiniband");
	while ((entry = readdir(dir)))
		found += entry->d_name[0] != '.';
	closedir(dir);
	for (n = 0; list[n]; n++)
		check_device(n, list[n]);
	need(found == n, "/sys/class/infiniband has another count");
	need(access("/sys/class/infinibandit", F_OK) != 0, "another name");
	ibv_free_device_list(list);
	return 0;
}
