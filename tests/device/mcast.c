/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Multicast groups: every queue pair that is attached gets what is sent to the
 * group, the sender too, each by its own receive and Q_Key; what cannot be
 * attached; as many groups and members as the device says, and no more.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "office.h"

#define GROUP_QPN 0xffffffu

/* 239.a.b.c as a GID */
static union ibv_gid group(unsigned a, unsigned b, unsigned c)
{
	const union ibv_gid gid = {.raw = {[10] = 0xff,
					   0xff,
					   239,
					   (uint8_t)a,
					   (uint8_t)b,
					   (uint8_t)c}};

	return gid;
}

/* One of 16 that no other process has at the same time, as good as surely. */
static union ibv_gid own_group(unsigned n)
{
	unsigned pid = (unsigned)getpid();

	return group(0x80 | pid >> 12, pid >> 4 & 0xff, (pid & 15) << 4 | n);
}

static int undo_socket(void *p)
{
	return close((int)(intptr_t)p);
}

/* The network knows that this machine wants what is sent to the group. */
static void join_ip(const union ibv_gid *gid)
{
	struct ip_mreq mreq = {.imr_interface = dut.addr.sin_addr};
	int fd;

	if (dut.traits->hears_by_attach)
		return;
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	assert_true(fd >= 0);
	fx_keep((void *)(intptr_t)fd, undo_socket);
	memcpy(&mreq.imr_multiaddr, gid->raw + 12, 4);
	assert_int_equal(setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &mreq,
				    sizeof(mreq)),
			 0);
}

/* What ibv_attach_mcast() says, undone after the test if it worked. */
struct membership {
	struct ibv_qp *qp;
	union ibv_gid gid;
};

static int undo_attach(void *p)
{
	const struct membership *m = p;

	return ibv_detach_mcast(m->qp, &m->gid, 0);
}

static struct membership *attach(const struct post_office *o,
				 const union ibv_gid *gid)
{
	struct membership *m = fx_alloc(sizeof(*m));

	fx_need(dut.attr.max_mcast_grp > 0, "the device has no multicast");
	*m = (struct membership){o->e.qp, *gid};
	assert_int_equal(ibv_attach_mcast(m->qp, &m->gid, 0), 0);
	fx_keep(m, undo_attach);
	return m;
}

static void mail_group(const struct post_office *from, const union ibv_gid *gid,
		       uint64_t id)
{
	office_mail_by(from, office_ah(from->e.pd, gid), GROUP_QPN, OFFICE_QKEY,
		       id, OFFICE_LEN);
}

FX_TEST(group__reaches_its_members_the_sender_too)
{
	const union ibv_gid gid = own_group(3);
	struct post_office a;
	struct post_office b;
	struct post_office c;
	struct ibv_wc wc;

	office_open(&a, false);
	office_open(&b, false);
	office_open(&c, false);
	join_ip(&gid);
	attach(&a, &gid);
	attach(&b, &gid);
	memset(a.e.buf, 0x51, OFFICE_LEN);
	office_recv(&a, 1);
	office_recv(&b, 2);
	office_recv(&c, 3);
	mail_group(&a, &gid, 7);
	wc = office_gets(&a, 1, 7);
	assert_int_equal(wc.src_qp, a.e.qp->qp_num);
	wc = office_gets(&b, 2, 7);
	assert_true(wc.wc_flags & IBV_WC_GRH);
	assert_int_equal(wc.byte_len, OFFICE_GRH + OFFICE_LEN);
	assert_memory_equal(b.e.buf + 512 + OFFICE_GRH, a.e.buf, OFFICE_LEN);
	/* from the device's address to the group's */
	assert_memory_equal(b.e.buf + 512 + 32, dut.gid.raw + 12, 4);
	assert_memory_equal(b.e.buf + 512 + 36, gid.raw + 12, 4);
	/* c gets only what is for c */
	office_mail(&a, &c, 8);
	office_gets(&c, 3, 8);
}

FX_TEST(group__sender_need_not_be_a_member)
{
	const union ibv_gid gid = own_group(4);
	struct post_office a;
	struct post_office b;

	office_open(&a, false);
	office_open(&b, false);
	join_ip(&gid);
	attach(&b, &gid);
	office_recv(&b, 2);
	mail_group(&a, &gid, 7);
	office_gets(&b, 2, 7);
}

FX_TEST(group__member_without_a_receive_holds_nobody_up)
{
	const union ibv_gid gid = own_group(5);
	struct post_office a;
	struct post_office b;

	office_open(&a, false);
	office_open(&b, false);
	join_ip(&gid);
	attach(&a, &gid);
	attach(&b, &gid);
	office_recv(&b, 2);
	mail_group(&a, &gid, 7);
	office_gets(&b, 2, 7);
}

FX_TEST(group__wrong_qkey_dropped)
{
	const union ibv_gid gid = own_group(6);
	struct post_office a;
	struct post_office b;

	office_open(&a, false);
	office_open(&b, false);
	join_ip(&gid);
	attach(&b, &gid);
	office_recv(&b, 2);
	office_mail_by(&a, office_ah(a.e.pd, &gid), GROUP_QPN, OFFICE_QKEY + 1,
		       7, OFFICE_LEN);
	mail_group(&a, &gid, 8);
	office_gets(&b, 2, 8);
}

FX_TEST(group__left_is_not_heard)
{
	const union ibv_gid gid = own_group(7);
	struct post_office a;
	struct post_office b;

	office_open(&a, false);
	office_open(&b, false);
	join_ip(&gid);
	attach(&a, &gid);
	assert_int_equal(fx_destroy(attach(&b, &gid)), 0);
	office_recv(&a, 1);
	office_recv(&b, 2);
	mail_group(&a, &gid, 7);
	office_gets(&a, 1, 7);
	office_mail(&a, &b, 8);
	office_gets(&b, 2, 8);
}

FX_TEST(group__of_nobody_succeeds)
{
	const union ibv_gid gid = own_group(8);
	struct post_office a;

	office_open(&a, false);
	mail_group(&a, &gid, 7);
}

FX_TEST(attach__twice_is_once)
{
	const union ibv_gid gid = own_group(9);
	struct post_office a;

	office_open(&a, false);
	join_ip(&gid);
	attach(&a, &gid);
	assert_int_equal(ibv_attach_mcast(a.e.qp, &gid, 0), 0);
	office_recv(&a, 1);
	office_recv(&a, 2);
	mail_group(&a, &gid, 7);
	office_mail(&a, &a, 8);
	office_gets(&a, 1, 7);
	office_gets(&a, 2, 8);
}

FX_TEST(attach__not_UD_or_no_group_EINVAL)
{
	const union ibv_gid gid = own_group(10);
	struct post_office a;
	struct end rc;

	office_open(&a, false);
	wire_end(NULL, &rc);
	assert_int_equal(ibv_attach_mcast(rc.qp, &gid, 0), EINVAL);
	assert_int_equal(ibv_attach_mcast(a.e.qp, &dut.gid, 0), EINVAL);
	assert_int_equal(ibv_detach_mcast(a.e.qp, &gid, 0), EINVAL);
}

FX_TEST(destroy_qp__attached_EBUSY)
{
	const union ibv_gid gid = own_group(11);
	struct post_office a;

	office_open(&a, false);
	attach(&a, &gid);
	assert_int_equal(fx_destroy(a.e.qp), EBUSY);
}

FX_TEST(attach__more_members_than_fit_ENOMEM)
{
	const union ibv_gid gid = own_group(12);
	struct post_office o;

	fx_need(dut.attr.max_mcast_qp_attach < 100, "so many are not cheap");
	for (int i = 0; i < dut.attr.max_mcast_qp_attach; ++i) {
		office_open(&o, false);
		attach(&o, &gid);
	}
	office_open(&o, false);
	assert_int_equal(ibv_attach_mcast(o.e.qp, &gid, 0), ENOMEM);
}

FX_TEST(attach__more_groups_than_fit_ENOMEM)
{
	const unsigned max = (unsigned)dut.attr.max_mcast_grp;
	struct post_office a;
	union ibv_gid gid;
	int last = 0;
	unsigned n;

	fx_need(max > 0 && max < 20000, "so many are not cheap");
	office_open(&a, false);
	for (n = 0; n <= max && !last; ++n) {
		gid = group(2, n >> 8, n & 255);
		last = ibv_attach_mcast(a.e.qp, &gid, 0);
	}
	--n; /* the one that failed */
	for (unsigned i = 0; i < n; ++i) {
		gid = group(2, i >> 8, i & 255);
		assert_int_equal(ibv_detach_mcast(a.e.qp, &gid, 0), 0);
	}
	assert_int_equal(last, ENOMEM);
	assert_int_equal(n, max);
}

FX_MAIN("mcast")
