/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * machine.c: reads limits, capabilities, CPUs and nodes of this process.
 */

#include "machine.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <linux/capability.h>

#include "advice.h"

/* more than a program with default settings registers */
#define CPU_SETS       16 /* of 1,024 CPUs each */
#define ENOUGH_MEMLOCK (64ul << 20)
#define CM_FILE	       "/dev/infiniband/rdma_cm"
#define MEMLOCK_TYPE                                                           \
	"ulimit -l unlimited   (for good: memlock in /etc/security/limits.d, " \
	"LimitMEMLOCK= of systemd, --ulimit memlock=-1 of docker)"
#define GOVERNOR "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"

int machine_read_int(const char *path, int other)
{
	FILE *file = fopen(path, "r");
	int value = other;

	if (!file)
		return other;
	if (fscanf(file, "%d", &value) != 1)
		value = other;
	fclose(file);
	return value;
}

bool machine_has_cpu_of_node(int node)
{
	cpu_set_t allowed[CPU_SETS];
	char path[96];

	if (sched_getaffinity(0, sizeof(allowed), allowed))
		return true;
	for (int cpu = 0; cpu < CPU_SETS * CPU_SETSIZE; cpu++) {
		snprintf(path, sizeof(path),
			 "/sys/devices/system/node/node%d/cpu%d", node, cpu);
		if (CPU_ISSET_S(cpu, sizeof(allowed), allowed) &&
		    access(path, F_OK) == 0)
			return true;
	}
	return false;
}

const char *machine_interface(void)
{
	static char name[IF_NAMESIZE] = "eth0";
	struct ifaddrs *list = NULL;

	if (getifaddrs(&list))
		return name;
	for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
		if (i->ifa_flags & IFF_UP && !(i->ifa_flags & IFF_LOOPBACK) &&
		    i->ifa_addr && i->ifa_addr->sa_family == AF_INET) {
			snprintf(name, sizeof(name), "%s", i->ifa_name);
			break;
		}
	}
	freeifaddrs(list);
	return name;
}

/*
 * Returns true with CAP_IPC_LOCK: then the limit of locked memory does not
 * apply.
 */
static bool may_lock_all(void)
{
	FILE *file = fopen("/proc/self/status", "r");
	unsigned long long effective = 0;
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "CapEff: %llx", &effective) == 1)
			break;
	if (file)
		fclose(file);
	return effective >> CAP_IPC_LOCK & 1;
}

void machine_print_memlock(bool is_of_kernel)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit)) {
		printf("The limit of locked memory cannot be read: %s.\n",
		       strerror(errno));
		return;
	}
	if (limit.rlim_cur == RLIM_INFINITY) {
		printf("Locked memory (RLIMIT_MEMLOCK) is not limited.\n");
		return;
	}
	printf("Locked memory (RLIMIT_MEMLOCK) is limited to %lu KiB%s.\n",
	       (unsigned long)limit.rlim_cur >> 10,
	       may_lock_all() ? "; CAP_IPC_LOCK lifts the limit" : "");
	if (limit.rlim_cur >= ENOUGH_MEMLOCK || may_lock_all())
		return;
	if (!is_of_kernel)
		printf("  A device in user space does not mind; for one of the "
		       "kernel, type\n         " MEMLOCK_TYPE "\n");
	else
		advise(ADVICE_NEEDED, MEMLOCK_TYPE,
		       "Registering memory locks it, and only %lu KiB may be "
		       "locked: rpma_mr_reg() will fail.",
		       (unsigned long)limit.rlim_cur >> 10);
}

static void judge_governor(void)
{
	FILE *file = fopen(GOVERNOR, "r");
	char text[32] = "";

	if (!file)
		return;
	if (fscanf(file, "%31s", text) == 1 && strcmp(text, "powersave") == 0)
		advise(ADVICE_SLOW, "cpupower frequency-set -g performance",
		       "CPUs save power: a poller that sleeps wakes up on a "
		       "slow one.");
	fclose(file);
}

void machine_print_cpus(void)
{
	cpu_set_t allowed[CPU_SETS];

	if (sched_getaffinity(0, sizeof(allowed), allowed)) {
		printf("The CPUs allowed cannot be read: %s.\n",
		       strerror(errno));
		return;
	}
	int count = CPU_COUNT_S(sizeof(allowed), allowed);

	printf("This process may use %d CPUs:", count);
	for (int cpu = 0; cpu < CPU_SETS * CPU_SETSIZE; cpu++)
		if (CPU_ISSET_S(cpu, sizeof(allowed), allowed))
			printf(" %d", cpu);
	printf(".\n");
	if (count < 2)
		advise(ADVICE_SLOW,
		       "cfg.mode = RPMA_RT_MODE_EVENT, or taskset -c 0,1 "
		       "PROGRAM",
		       "There is one CPU for pollers and workers: a poller "
		       "that spins takes it from them.");
	judge_governor();
}

void machine_judge_cm(bool is_of_kernel)
{
	if (!is_of_kernel || access(CM_FILE, R_OK | W_OK) == 0)
		return;
	if (errno == ENOENT)
		advise(ADVICE_NEEDED,
		       "modprobe rdma_ucm   (a container: "
		       "--device=/dev/infiniband)",
		       CM_FILE " is not there: no connection can be made.");
	else
		advise(ADVICE_NEEDED, "chmod a+rw " CM_FILE,
		       CM_FILE " may not be opened by this user.");
}
