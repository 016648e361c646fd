/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * remote_datagram.c -- unreliable messages between two processes: to a stopped
 * process, and to multicast groups.
 */

#include "fixture.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "two.h"

enum { SENDER, RECEIVER };

#define GRH   40u
#define GROUP 0xffffffu
#define MTU   4096u
#define BIG   60000u /* of a connection: several parts of a message */
#define MANY  150u   /* datagrams: more than two rings hold */

/* A queue pair for datagrams and an unreliable connection, and the others. */
struct side {
	const struct two_process *self;
	struct end mail;
	struct end uc;
	struct ibv_ah *ah;
	struct {
		uint32_t mail, uc;
		pid_t pid;
	} other;
};

static void side_begin(struct side *s, const struct two_process *self)
{
	struct ibv_ah_attr to = {.is_global = 1, .port_num = 1};

	s->self = self;
	end_init(&s->mail, 0);
	end_swap_qp(&s->mail, IBV_QPT_UD);
	end_init(&s->uc, 0);
	end_swap_qp(&s->uc, IBV_QPT_UC);
	s->other.mail = s->mail.qp->qp_num;
	s->other.uc = s->uc.qp->qp_num;
	s->other.pid = getpid();
	two_swap(self, &s->other, &s->other, sizeof(s->other));
	end_to_rts(&s->mail, 0);
	end_to_rts(&s->uc, s->other.uc);
	assert_int_equal(ibv_query_gid(s->mail.ctx, 1, 0, &to.grh.dgid), 0);
	s->ah = ibv_create_ah(s->mail.pd, &to);
	assert_non_null(s->ah);
	two_wait(self);
}

static void side_end(struct side *s)
{
	assert_int_equal(ibv_destroy_ah(s->ah), 0);
	end_fini(&s->uc);
	end_fini(&s->mail);
}

static void post_mail(struct side *s, struct ibv_ah *ah, uint32_t qpn,
		      uint32_t number)
{
	/* not where receives are */
	struct ibv_sge sge = {(uintptr_t)s->mail.buf + BUF_SIZE / 2, MTU,
			      s->mail.mr->lkey};
	struct ibv_send_wr *bad, wr = {
					 .wr_id = number,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND_WITH_IMM,
					 .send_flags = IBV_SEND_SIGNALED,
					 .imm_data = htonl(number),
					 .wr.ud = {.ah = ah,
						   .remote_qpn = qpn,
						   .remote_qkey = QKEY},
				 };

	assert_int_equal(ibv_post_send(s->mail.qp, &wr, &bad), 0);
}

/* Sends a datagram with a number, successful in every case. */
static void mail_by(struct side *s, struct ibv_ah *ah, uint32_t qpn,
		    uint32_t number)
{
	post_mail(s, ah, qpn, number);
	end_expect(&s->mail, number, IBV_WC_SUCCESS);
}

static void mail(struct side *s, uint32_t number)
{
	mail_by(s, s->ah, s->other.mail, number);
}

static void uc_send(struct side *s, uint8_t byte)
{
	memset(s->uc.buf, byte, BIG);
	assert_int_equal(end_send(&s->uc, byte, 0, BIG), 0);
	end_expect(&s->uc, byte, IBV_WC_SUCCESS);
}

static uint64_t lost(void)
{
	struct rpma_loopback_stats stats;

	rpma_loopback_get_stats(&stats);
	return stats.lost;
}

/* Takes datagrams, and posts receives, until the number comes. */
static void take_until(struct side *s, uint32_t number)
{
	struct ibv_wc wc;

	do {
		wc = end_wait(&s->mail);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.byte_len, GRH + MTU);
		assert_int_equal(end_recv(&s->mail, 0, 0, GRH + MTU), 0);
	} while (ntohl(wc.imm_data) != number);
}

/* Sends until a datagram is not lost: the peer goes on, as fast as possible. */
static uint32_t mail_until_it_is_taken(struct side *s, uint32_t number)
{
	uint64_t before;

	do {
		before = lost();
		mail(s, ++number);
	} while (lost() != before);
	return number;
}

static void send_to_stopped(struct side *s)
{
	uint64_t before;
	uint32_t last;

	kill(s->other.pid, SIGSTOP); /* soon stopped */
	/* the ring is full in the middle of a message */
	do {
		uc_send(s, 1);
	} while (!lost());
	before = lost();
	for (uint32_t i = 1; i <= MANY; i++)
		mail(s, i);
	assert_true(lost() - before > MANY / 2);
	kill(s->other.pid, SIGCONT);
	last = mail_until_it_is_taken(s, MANY);
	two_swap(s->self, &last, &last, sizeof(last));
	two_wait(s->self);
	uc_send(s, 99);
}

/* Messages before the last were whole, or did not come. */
static void take_what_comes(struct side *s)
{
	struct ibv_wc wc;
	uint32_t last = 0;

	two_swap(s->self, &last, &last, sizeof(last));
	take_until(s, last);
	while (ibv_poll_cq(s->uc.cq, 1, &wc)) {
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.byte_len, BIG);
		assert_int_equal(end_recv(&s->uc, 0, 0, BIG), 0);
	}
	two_wait(s->self);
	wc = end_wait(&s->uc);
	assert_int_equal(wc.byte_len, BIG);
	for (uint32_t i = 0; i < BIG; i++)
		assert_int_equal(s->uc.buf[i], 99);
}

static void stop_and_go_on(const struct two_process *self)
{
	struct side s;

	side_begin(&s, self);
	if (self->number == RECEIVER) {
		for (int i = 0; i < DEPTH; i++) {
			assert_int_equal(end_recv(&s.mail, 0, 0, GRH + MTU), 0);
			assert_int_equal(end_recv(&s.uc, 0, 0, BIG), 0);
		}
		two_wait(self);
		take_until(&s, 0);
		two_wait(self);
		take_what_comes(&s);
	} else {
		two_wait(self);
		mail(&s, 0);
		two_wait(self);
		send_to_stopped(&s);
	}
	two_wait(self);
	side_end(&s);
}

/* --- groups */

/* Returns a group that no other test has at the same time. */
static union ibv_gid group_of(const struct side *s)
{
	pid_t pid = s->self->number == SENDER ? getpid() : s->other.pid;
	union ibv_gid gid = {.raw = {0xff, 0x15}};

	memcpy(gid.raw + 12, &pid, sizeof(pid));
	return gid;
}

static struct ibv_ah *group_ah(struct side *s)
{
	struct ibv_ah_attr to = {.is_global = 1, .port_num = 1};
	struct ibv_ah *ah;

	to.grh.dgid = group_of(s);
	ah = ibv_create_ah(s->mail.pd, &to);
	assert_non_null(ah);
	return ah;
}

static void attach(struct side *s)
{
	union ibv_gid gid = group_of(s);

	assert_int_equal(ibv_attach_mcast(s->mail.qp, &gid, 0), 0);
}

static void detach(struct side *s)
{
	union ibv_gid gid = group_of(s);

	assert_int_equal(ibv_detach_mcast(s->mail.qp, &gid, 0), 0);
}

static void post_receives(struct side *s)
{
	for (int i = 0; i < DEPTH; i++)
		assert_int_equal(end_recv(&s->mail, 1000, 0, GRH + MTU), 0);
}

/* Asserts the number of the next datagram. */
static void take(struct side *s, uint32_t number)
{
	struct ibv_wc wc = end_wait(&s->mail);

	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, 1000);
	assert_int_equal(wc.byte_len, GRH + MTU);
	assert_int_equal(ntohl(wc.imm_data), number);
	assert_int_equal(wc.src_qp,
			 number & 1 ? s->mail.qp->qp_num : s->other.mail);
	/* for the group, which IPv6 has in its last 16 bytes */
	assert_memory_equal(s->mail.buf + 24, group_of(s).raw, 16);
	assert_int_equal(end_recv(&s->mail, 1000, 0, GRH + MTU), 0);
}

/* Takes own datagrams to a group with the sender as member: odd numbers. */
static void take_own(struct side *s, struct ibv_ah *ah, uint32_t number)
{
	post_mail(s, ah, GROUP, number);
	take(s, number);
	end_expect(&s->mail, number, IBV_WC_SUCCESS);
}

/* Either the first attaches first, or the second has its address first. */
static void to_groups(const struct two_process *self, bool attach_first)
{
	struct ibv_ah *ah = NULL;
	struct side s;

	side_begin(&s, self);
	post_receives(&s);
	if (self->number == SENDER && !attach_first)
		ah = group_ah(&s);
	two_wait(self);
	if (self->number == RECEIVER)
		attach(&s);
	two_wait(self);
	if (self->number == RECEIVER) {
		take(&s, 2);
		two_wait(self); /* the sender is in the group, too */
		two_wait(self);
		struct ibv_wc wc = end_wait(&s.mail);

		assert_int_equal(ntohl(wc.imm_data), 5);
		detach(&s);
		two_wait(self);
		/* datagrams sent to the group before do not come */
		wc = end_wait(&s.mail);
		assert_int_equal(ntohl(wc.imm_data), 8);
	} else {
		if (attach_first)
			ah = group_ah(&s);
		mail_by(&s, ah, GROUP, 2);
		two_wait(self);
		attach(&s);
		two_wait(self);
		take_own(&s, ah, 5);
		two_wait(self);
		take_own(&s, ah, 7);
		mail(&s, 8);
		detach(&s);
	}
	two_wait(self);
	if (ah)
		assert_int_equal(ibv_destroy_ah(ah), 0);
	side_end(&s);
}

static void attach_and_send(const struct two_process *self)
{
	to_groups(self, true);
}

static void send_and_attach(const struct two_process *self)
{
	to_groups(self, false);
}

/* Members in the process of the sender get each datagram, once. */
static void group_with_a_stopped(const struct two_process *self)
{
	struct side s;
	struct ibv_ah *ah;
	struct ibv_wc wc;
	uint32_t i = 1;

	side_begin(&s, self);
	post_receives(&s);
	attach(&s);
	ah = group_ah(&s);
	two_wait(self);
	if (self->number == SENDER) {
		kill(s.other.pid, SIGSTOP);
		for (; !lost(); i += 2)
			take_own(&s, ah, i);
		assert_int_equal(ibv_poll_cq(s.mail.cq, 1, &wc), 0);
		kill(s.other.pid, SIGCONT);
	}
	two_wait(self);
	detach(&s);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	side_end(&s);
}

/* --- the tests */

static void run(two_body_fn *body)
{
	struct two_process p[2] = {0};

	two_run(p, body);
	assert_string_equal(p[0].said, "");
	assert_string_equal(p[1].said, "");
}

FRESH(stopped__HOLDS_UP_NO_DATAGRAM)
{
	run(stop_and_go_on);
}

FRESH(group__attached_BEFORE_THE_SENDER_HAS_ITS_ADDRESS)
{
	run(attach_and_send);
}

FRESH(group__attached_AFTER_THE_SENDER_HAS_ITS_ADDRESS)
{
	run(send_and_attach);
}

FRESH(group__with_one_who_is_stopped_OTHERS_GET_EACH_ONCE)
{
	run(group_with_a_stopped);
}

TEST_MAIN()
