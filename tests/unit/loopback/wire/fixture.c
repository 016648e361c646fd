/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/* fixture.c -- see fixture.h. */

#include "fixture.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/random.h"
#include "wire/socket.h"

#define MAX_ENDS 4
/* every so many requests are dropped in silence by the other end */
#define SILENT 5

static struct end *_Atomic ends[MAX_ENDS];

/*
 * Gives the process, and its children, a network without other processes: cases
 * need numbers that no process has. The device reads the variable at the first
 * call of a program; most cases make no such call.
 */
__attribute__((constructor)) static void enter_network(void)
{
	char number[16];

	snprintf(number, sizeof(number), "%d", (int)getpid());
	setenv("RPMA_LOOPBACK_NETWORK", number, 1);
	lb_socket_set_network((uint32_t)getpid());
}

static struct end *end_of(const struct lb_link *link)
{
	for (int i = 0; i < MAX_ENDS; i++) {
		struct end *end =
			atomic_load_explicit(&ends[i], memory_order_acquire);

		if (end && end->nic == link->nic)
			return end;
	}
	return NULL; /* made by lb_nic_new(), which has not returned */
}

static void count(_Atomic uint32_t *counter)
{
	atomic_fetch_add_explicit(counter, 1, memory_order_acq_rel);
}

uint32_t end_count(const _Atomic uint32_t *counter)
{
	return atomic_load_explicit(counter, memory_order_acquire);
}

void end_wait(const _Atomic uint32_t *counter, uint32_t n)
{
	while (end_count(counter) < n)
		poll(NULL, 0, 1);
}

/* --- what follows from a number */

static uint8_t byte_of(uint32_t number, uint32_t i)
{
	return (uint8_t)(number * 31 + i * 7 + (i >> 8));
}

static void fill(uint8_t *bytes, uint32_t number, uint32_t length)
{
	for (uint32_t i = 0; i < length; i++)
		bytes[i] = byte_of(number, i);
}

static bool is_filled(const struct lb_span *payload, uint32_t number,
		      uint32_t length)
{
	uint32_t i = 0;

	for (; payload->len; payload++) {
		for (uint64_t k = 0; k < payload->len; k++) {
			if (payload->addr[k] != byte_of(number, i++))
				return false;
		}
	}
	return i == length;
}

struct lb_record end_record(uint32_t number, uint32_t seed)
{
	uint64_t chance = lb_random_mix((uint64_t)seed << 32 | number);
	struct lb_record record = {
		.type = LB_RECORD_SEND,
		.psn = number,
		.life = 7,
		.from = 1,
		.to = 2,
	};
	/* few bytes, or many */
	uint32_t length = chance >> 8 & 1 ? (uint32_t)(chance >> 16) % 100
					  : (uint32_t)(chance >> 16) %
						    (LB_RECORD_PAYLOAD + 1);

	switch (chance & 7) {
	case 0:
		record.type = LB_RECORD_READ;
		record.total = length;
		break;
	case 1:
		record.type = LB_RECORD_FETCH_ADD;
		break;
	case 2:
		record.type = LB_RECORD_DATAGRAM;
		record.length = (uint16_t)length;
		break;
	default:
		record.length = (uint16_t)length;
		record.total = length;
		if (length <= LB_RECORD_SMALL)
			record.flags = LB_RECORD_INLINE;
		break;
	}
	return record;
}

static bool is_silent(const struct lb_record *request)
{
	return request->type == LB_RECORD_DATAGRAM ||
	       request->type == LB_RECORD_MULTICAST ||
	       request->flags & LB_RECORD_UNRELIABLE ||
	       request->psn % SILENT == SILENT - 1;
}

/* --- the layer above */

static void answer(struct end *end, struct lb_link *link,
		   const struct lb_record *request)
{
	uint8_t bytes[LB_RECORD_PAYLOAD];
	struct lb_span src[2] = {{bytes, 0}};
	struct lb_record record = {
		.type = LB_RECORD_ACK,
		.psn = request->psn,
		.life = request->life,
		.from = request->to,
		.to = request->from,
	};

	if (request->type == LB_RECORD_READ) {
		record.type = LB_RECORD_BYTES;
		record.length = (uint16_t)request->total;
		fill(bytes, ~request->psn, request->total);
		src[0].len = request->total;
	} else if (request->type == LB_RECORD_FETCH_ADD) {
		record.type = LB_RECORD_VALUE;
		record.operand = 3ull * request->psn;
	}
	record.total = record.type == LB_RECORD_ACK ? request->psn : 0;
	if (record.type == LB_RECORD_ACK && end->acknowledges)
		lb_link_acknowledge(link, &record);
	else if (lb_link_answer(link, &record, src, 0) != LB_PUT_OK)
		count(&end->wrongs);
}

static void on_request(struct lb_link *link, const struct lb_record *record,
		       const struct lb_span *payload, struct lb_run *run)
{
	struct end *end = end_of(link);

	(void)run;
	if (!end)
		return;
	if (record->psn != end_count(&end->requests) ||
	    !is_filled(payload, record->psn, record->length))
		count(&end->wrongs);
	if (is_silent(record))
		count(&end->silences);
	else
		answer(end, link, record);
	count(&end->requests);
}

static void on_answer(struct lb_link *link, const struct lb_record *record,
		      const struct lb_span *payload, struct lb_run *run)
{
	struct end *end = end_of(link);

	(void)run;
	if (!end)
		return;
	if (record->psn < end->ended || record->life != 7 ||
	    record->to % 2 != 1)
		count(&end->wrongs);
	end->ended = record->psn + 1;
	end->last[end_count(&end->answers) % 8] = *record;
	if (record->type == LB_RECORD_BYTES &&
	    !is_filled(payload, ~record->psn, record->length))
		count(&end->wrongs);
	if (record->type == LB_RECORD_VALUE &&
	    record->operand != 3ull * record->psn)
		count(&end->wrongs);
	count(&end->answers);
}

static void on_room(struct lb_link *link, struct lb_waiter *waiter,
		    struct lb_run *run)
{
	struct end *end = end_of(link);

	(void)run;
	if (waiter != &end->waiter)
		count(&end->wrongs);
	count(&end->rooms);
}

static void on_dead(struct lb_link *link, struct lb_run *run)
{
	struct end *end = end_of(link);

	(void)run;
	if (end)
		count(&end->deads);
}

static void on_up(struct lb_link *link, struct lb_run *run)
{
	struct end *end = end_of(link);

	(void)run;
	if (end)
		count(&end->ups);
}

/* Messages are numbered, too. */
static void on_message(struct lb_link *link, const void *data, size_t size,
		       struct lb_run *run)
{
	struct end *end = end_of(link);
	uint32_t number;

	(void)run;
	if (!end)
		return;
	memcpy(&number, data, sizeof(number));
	if (size < sizeof(number) || number != end_count(&end->messages))
		count(&end->wrongs);
	count(&end->messages);
}

static void with_run(void (*fn)(void *arg, struct lb_run *run), void *arg)
{
	fn(arg, NULL);
}

static const struct lb_nic_ops ops = {
	.request = on_request,
	.answer = on_answer,
	.room = on_room,
	.dead = on_dead,
	.message = on_message,
	.up = on_up,
	.with_run = with_run,
};

/* --- ends */

void end_init(struct end *end)
{
	const struct lb_nic_config config = {1, 42};

	memset(end, 0, sizeof(*end));
	lb_link_waiter_init(&end->waiter);
	end->nic = lb_nic_new(&ops, &config);
	assert_non_null(end->nic);
	end_patience(end, 3600000000000u);
	for (int i = 0; i < MAX_ENDS; i++) {
		struct end *none = NULL;

		if (atomic_compare_exchange_strong_explicit(
			    &ends[i], &none, end, memory_order_acq_rel,
			    memory_order_acquire))
			return;
	}
	fail_msg("more ends than the fixture has room for");
}

void end_patience(struct end *end, uint64_t ns)
{
	pthread_mutex_lock(&end->nic->lock);
	end->nic->patience = ns;
	pthread_mutex_unlock(&end->nic->lock);
}

void end_fini(struct end *end)
{
	if (end->link)
		lb_link_put(end->link);
	end->link = NULL;
	lb_nic_delete(end->nic);
	for (int i = 0; i < MAX_ENDS; i++) {
		struct end *self = end;

		atomic_compare_exchange_strong_explicit(&ends[i], &self, NULL,
							memory_order_acq_rel,
							memory_order_acquire);
	}
	assert_int_equal(end_count(&end->wrongs), 0);
}

void end_meet(struct end *a, struct end *b)
{
	a->link = lb_nic_link(a->nic, lb_nic_number_of(b->nic));
	b->link = lb_nic_link(b->nic, lb_nic_number_of(a->nic));
	assert_non_null(a->link);
	assert_non_null(b->link);
	end_wait(&a->ups, 1);
	end_wait(&b->ups, 1);
	assert_int_equal(lb_link_state(a->link), LB_LINK_UP);
	assert_int_equal(lb_link_state(b->link), LB_LINK_UP);
}

enum lb_put_result end_try(struct end *end, const struct lb_record *record)
{
	static _Thread_local uint8_t bytes[LB_RECORD_PAYLOAD + 10];
	const uint32_t length = record->length, cut = length / 3;
	const struct lb_span src[] = {
		{bytes, 10 + cut}, {bytes + 10 + cut, length - cut}, {NULL, 0}};
	enum lb_put_result ret;

	fill(bytes + 10, record->psn, length);
	ret = lb_link_request(end->link, record, src, 10, &end->waiter);
	if (ret == LB_PUT_OK) {
		end->sent++;
		lb_link_show(end->link);
	}
	return ret;
}

bool end_request(struct end *end, const struct lb_record *record)
{
	for (;;) {
		uint32_t rooms = end_count(&end->rooms);

		switch (end_try(end, record)) {
		case LB_PUT_OK:
			return true;
		case LB_PUT_DEAD:
		case LB_PUT_NOBODY:
		case LB_PUT_LOST:
			return false;
		case LB_PUT_NO_ROOM:
			lb_nic_look(end->nic, NULL);
			break;
		case LB_PUT_NOT_YET:
			break;
		}
		end_wait(&end->rooms, rooms + 1);
	}
}

void end_arrive(struct end *a, struct end *b)
{
	end_wait(&b->requests, a->sent);
	end_wait(&a->answers, a->sent - end_count(&b->silences));
	assert_int_equal(end_count(&b->requests), a->sent);
	assert_int_equal(end_count(&a->wrongs), 0);
	assert_int_equal(end_count(&b->wrongs), 0);
}

/* --- a peer that is made by hand */

struct lb_hello hand_hello(unsigned kind)
{
	return (struct lb_hello){
		.magic = LB_HELLO_MAGIC,
		.version = LB_HELLO_VERSION,
		.length = sizeof(struct lb_hello),
		.kind = kind,
		.number = 254,
		.cookie = 99,
		.devices = 1,
		.devices_hash = 42,
		.user = geteuid(),
	};
}

int hand_connect(unsigned number)
{
	char name[LB_PARTS_NAME];
	int fd;

	lb_parts_name(name, number);
	fd = lb_socket_connect(name);
	assert_true(fd >= 0);
	return fd;
}

ssize_t hand_receive(int fd, struct lb_hello *answer, int *passed)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};

	assert_int_equal(poll(&pfd, 1, 300000), 1);
	return lb_socket_receive(fd, answer, sizeof(*answer), passed);
}

/* --- what was said */

static FILE *kept;
static int real_stderr = -1;

void said_begin(void)
{
	kept = tmpfile();
	assert_non_null(kept);
	fflush(stderr);
	real_stderr = dup(STDERR_FILENO);
	assert_int_equal(dup2(fileno(kept), STDERR_FILENO), STDERR_FILENO);
}

void said_wait(const char *words)
{
	char text[4096];
	ssize_t got;

	do {
		poll(NULL, 0, 1);
		got = pread(fileno(kept), text, sizeof(text) - 1, 0);
		assert_true(got >= 0);
		text[got] = '\0';
	} while (!strstr(text, words));
}

const char *said_end(void)
{
	static char text[65536];
	size_t size;

	fflush(stderr);
	assert_int_equal(dup2(real_stderr, STDERR_FILENO), STDERR_FILENO);
	close(real_stderr);
	rewind(kept);
	size = fread(text, 1, sizeof(text) - 1, kept);
	text[size] = '\0';
	fclose(kept);
	return text;
}
