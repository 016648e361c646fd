/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * GIDs follow the addresses of the machine while the device is open: a GID for
 * a new address, no GID for a removed address, and the others stay in place.
 * The addresses are changed on the interface of the device, in a private
 * network namespace unless the machine is there for tests only.
 */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "cm.h"

/* An unused address for tests, as seen by the machine and by devices */
struct address {
	int family;
	const char *text;
	uint8_t length; /* bits of its network: only the address itself */
	union ibv_gid gid;
};

static struct address v4 = {.family = AF_INET,
			    .text = "198.51.100.7",
			    .length = 32,
			    .gid = {.raw = {[10] = 0xff, 0xff}}};
static struct address v6 = {
	.family = AF_INET6, .text = "2001:db8:7::7", .length = 128};

/* ---- the machine's addresses ---- */

/* A request to the kernel, from a program allowed to change addresses. */
struct request {
	struct nlmsghdr head;
	struct ifaddrmsg addr;
	uint8_t attrs[64];
};

static void add_attr(struct request *r, uint16_t type, const void *data,
		     uint16_t size)
{
	struct rtattr attr = {.rta_len = (uint16_t)RTA_LENGTH(size),
			      .rta_type = type};
	uint8_t *at = (uint8_t *)r + NLMSG_ALIGN(r->head.nlmsg_len);

	memcpy(at, &attr, sizeof(attr));
	memcpy(at + RTA_LENGTH(0), data, size);
	r->head.nlmsg_len =
		NLMSG_ALIGN(r->head.nlmsg_len) + (uint32_t)RTA_LENGTH(size);
}

/* Returns the index of the interface of the device. */
static unsigned interface(void)
{
	unsigned found = 0;
	struct ifaddrs *list;

	assert_int_equal(getifaddrs(&list), 0);
	for (struct ifaddrs *i = list; i && !found; i = i->ifa_next) {
		const struct sockaddr_in *in = (const void *)i->ifa_addr;

		if (in && in->sin_family == AF_INET &&
		    in->sin_addr.s_addr == dut.addr.sin_addr.s_addr)
			found = if_nametoindex(i->ifa_name);
	}
	freeifaddrs(list);
	assert_true(found);
	return found;
}

/* Sends RTM_NEWADDR or RTM_DELADDR; returns the errno of the kernel. */
static int change(uint16_t type, const struct address *address)
{
	const uint16_t size = address->family == AF_INET ? 4 : 16;
	const uint8_t *data = address->gid.raw + 16 - size;
	struct request r = {
		.head = {.nlmsg_len = NLMSG_LENGTH(sizeof(r.addr)),
			 .nlmsg_type = type,
			 .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK},
		.addr = {.ifa_family = (uint8_t)address->family,
			 .ifa_prefixlen = address->length,
			 .ifa_flags = IFA_F_NODAD,
			 .ifa_index = interface()},
	};
	struct {
		struct nlmsghdr head;
		struct nlmsgerr error;
		uint8_t rest[256];
	} answer;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (type == RTM_NEWADDR)
		r.head.nlmsg_flags |= NLM_F_CREATE | NLM_F_EXCL;
	add_attr(&r, IFA_LOCAL, data, size);
	add_attr(&r, IFA_ADDRESS, data, size);
	assert_true(fd >= 0);
	assert_true(send(fd, &r, r.head.nlmsg_len, 0) > 0);
	assert_true(recv(fd, &answer, sizeof(answer), 0) > 0);
	close(fd);
	assert_int_equal(answer.head.nlmsg_type, NLMSG_ERROR);
	return -answer.error.error;
}

static int undo_address(void *address)
{
	return change(RTM_DELADDR, address);
}

static void add_address(struct address *address)
{
	assert_int_equal(change(RTM_NEWADDR, address), 0);
	fx_keep(address, undo_address);
}

/* The address with port 0. */
static struct sockaddr *to_sockaddr(const struct address *address,
				    struct sockaddr_storage *to)
{
	struct sockaddr_in *in = (void *)to;
	struct sockaddr_in6 *in6 = (void *)to;

	memset(to, 0, sizeof(*to));
	to->ss_family = (sa_family_t)address->family;
	if (address->family == AF_INET)
		memcpy(&in->sin_addr, address->gid.raw + 12, 4);
	else
		memcpy(&in6->sin6_addr, address->gid.raw, 16);
	return (struct sockaddr *)to;
}

/* ---- the device's ---- */

/* Returns the row of the GID, or -1. */
static int row_of(const union ibv_gid *gid)
{
	struct ibv_gid_entry rows[64];
	ssize_t n = ibv_query_gid_table(dut.verbs, rows, 64, 0);

	assert_true(n >= 0);
	for (ssize_t i = 0; i < n; ++i) {
		if (rows[i].gid_type == IBV_GID_TYPE_ROCE_V2 &&
		    !memcmp(rows[i].gid.raw, gid->raw, sizeof(gid->raw)))
			return (int)rows[i].gid_index;
	}
	return -1;
}

/* A kernel's device follows the machine soon, not at once. */
static int wait_row(const union ibv_gid *gid, bool there)
{
	struct fx_deadline deadline = fx_deadline();
	int row;

	while ((row = row_of(gid)) >= 0 ? !there : there)
		fx_check(&deadline, there ? "a GID" : "the end of a GID");
	return row;
}

static struct ibv_ah *try_ah(int row, const union ibv_gid *to)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};

	attr.grh.dgid = *to;
	attr.grh.sgid_index = (uint8_t)row;
	attr.grh.hop_limit = 64;
	return ibv_create_ah(fx_pd(), &attr);
}

/* ---- tests ---- */

/* Waits until the device has noticed the removals of the previous test. */
static void begin(void)
{
	wait_row(&v4.gid, false);
	wait_row(&v6.gid, false);
}

static void appears(struct address *address)
{
	struct ibv_gid_entry entry;
	union ibv_gid gid;
	struct ibv_ah *ah;
	int row;

	add_address(address);
	row = wait_row(&address->gid, true);
	assert_int_not_equal(row, dut.gid_index);
	assert_int_equal(row_of(&dut.gid), dut.gid_index);
	assert_int_equal(ibv_query_gid(dut.verbs, 1, row, &gid), 0);
	assert_memory_equal(gid.raw, address->gid.raw, sizeof(gid.raw));
	assert_int_equal(
		ibv_query_gid_ex(dut.verbs, 1, (uint32_t)row, &entry, 0), 0);
	assert_memory_equal(entry.gid.raw, address->gid.raw, sizeof(gid.raw));
	ah = try_ah(row, &address->gid);
	assert_non_null(ah);
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

FX_TEST(gid__of_an_address_that_comes)
{
	begin();
	appears(&v4);
	appears(&v6);
}

FX_TEST(gid__of_an_address_that_went_is_none)
{
	static const union ibv_gid none;
	struct ibv_gid_entry entry;
	union ibv_gid gid;
	int row;

	begin();
	add_address(&v4);
	row = wait_row(&v4.gid, true);
	assert_int_equal(fx_destroy(&v4), 0);
	wait_row(&v4.gid, false);
	assert_int_equal(row_of(&dut.gid), dut.gid_index);
	assert_int_equal(
		ibv_query_gid_ex(dut.verbs, 1, (uint32_t)row, &entry, 0),
		ENODATA);
	assert_int_equal(ibv_query_gid(dut.verbs, 1, row, &gid), 0);
	assert_memory_equal(gid.raw, none.raw, sizeof(gid.raw));
	assert_null(try_ah(row, &dut.gid));
}

FX_TEST(gid__of_those_that_stay_is_where_it_was)
{
	int row;

	begin();
	add_address(&v4);
	wait_row(&v4.gid, true);
	add_address(&v6);
	row = wait_row(&v6.gid, true);
	assert_int_equal(fx_destroy(&v4), 0);
	wait_row(&v4.gid, false);
	assert_int_equal(row_of(&v6.gid), row);
	add_address(&v4);
	assert_int_not_equal(wait_row(&v4.gid, true), row);
	assert_int_equal(row_of(&v6.gid), row);
}

FX_TEST(gid__comes_and_goes_again_and_again)
{
	int row;

	begin();
	add_address(&v4);
	row = wait_row(&v4.gid, true);
	for (int i = 0; i < 5; ++i) {
		assert_int_equal(fx_destroy(&v4), 0);
		wait_row(&v4.gid, false);
		add_address(&v4);
		assert_int_equal(wait_row(&v4.gid, true), row);
	}
}

FX_TEST(change__raises_GID_CHANGE)
{
	fx_need(dut.traits->gid_event, "the device raises no such event");
	begin();
	add_address(&v4);
	fx_expect_async(dut.verbs, IBV_EVENT_GID_CHANGE);
	wait_row(&v4.gid, true);
}

FX_TEST(bind__to_an_address_that_comes_and_goes)
{
	struct rdma_event_channel *channel = cm_channel();
	struct sockaddr_storage addr;
	struct sockaddr *sa = to_sockaddr(&v4, &addr);
	struct rdma_cm_id *id = cm_id(channel);

	begin();
	assert_int_equal(rdma_bind_addr(id, sa), -1);
	add_address(&v4);
	wait_row(&v4.gid, true);
	assert_int_equal(rdma_bind_addr(id, sa), 0);
	assert_non_null(id->verbs);
	assert_memory_equal(id->route.addr.addr.ibaddr.sgid.raw, v4.gid.raw,
			    sizeof(v4.gid.raw));
	assert_int_equal(fx_destroy(id), 0);
	assert_int_equal(fx_destroy(&v4), 0);
	wait_row(&v4.gid, false);
	assert_int_equal(rdma_bind_addr(cm_id(channel), sa), -1);
}

static void connects_over(struct address *address)
{
	struct sockaddr_storage addr;
	struct cm_link *l;

	begin();
	add_address(address);
	wait_row(&address->gid, true);
	l = cm_link_new_at(to_sockaddr(address, &addr));
	assert_memory_equal(l->client.id->route.addr.addr.ibaddr.dgid.raw,
			    address->gid.raw, sizeof(address->gid.raw));
	cm_check(l);
	cm_hang_up(l);
}

FX_TEST(connect__over_an_address_that_came)
{
	connects_over(&v4);
}

FX_TEST(connect__over_ipv6)
{
	connects_over(&v6);
}

/* ---- start ---- */

/* Enters a network where changed addresses disturb no other program. */
static bool own_network(void)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int fd;
	int ret;

	if (getenv("RPMA_TEST_VM"))
		return true;
	if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return false;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ret = ioctl(fd, SIOCSIFFLAGS, &lo);
	close(fd);
	return ret == 0;
}

int main(int argc, char **argv)
{
	if (!own_network()) {
		printf("SKIPPED: no network namespace of its own: %s\n",
		       strerror(errno));
		return 77;
	}
	inet_pton(AF_INET, v4.text, v4.gid.raw + 12);
	inet_pton(AF_INET6, v6.text, v6.gid.raw);
	return fx_main(argc, argv, "gid", tests_listed, tests_count);
}
