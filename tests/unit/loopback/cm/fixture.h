/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * fixture.h -- a listener and a client in one thread, and steps of their
 * life. Every helper asserts that its calls succeed.
 */

#ifndef LOOPBACK_CM_FIXTURE_H
#define LOOPBACK_CM_FIXTURE_H

#include <errno.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>

#include "../../../cases.h"
#include "rpma_loopback.h"

/* sizes on the wire */
#define REQ_PRIV 56
#define REP_PRIV 196
#define REJ_PRIV 148

#define TIMEOUT_MS 60000

struct pair {
	struct rdma_event_channel *lch; /* of the listener and the server */
	struct rdma_event_channel *cch; /* of the client */
	struct rdma_cm_id *listener;
	struct rdma_cm_id *client; /* route resolved, with a QP */
	struct rdma_cm_id *server; /* made by request(), with a QP */
	struct ibv_cq *ccq;
	struct ibv_cq *scq;
};

/* An address; port in host order. */
struct sockaddr_in v4(const char *ip, uint16_t port);
struct sockaddr_in6 v6(const char *ip, uint16_t port);
#define SA(addr) ((struct sockaddr *)&(addr))

/* Asserts that a call fails with -1 and errno. */
#define assert_fails(call, err)                 \
	do {                                    \
		errno = 0;                      \
		assert_int_equal((call), -1);   \
		assert_int_equal(errno, (err)); \
	} while (0)

struct rdma_event_channel *new_channel(void);
/* From now on reading an empty channel is EAGAIN. */
void set_nonblock(const struct rdma_event_channel *ch);
bool is_readable(const struct rdma_event_channel *ch);
/* Asserts that a channel has no event; leaves the channel non-blocking. */
void assert_quiet(struct rdma_event_channel *ch);
/*
 * Read the next event, asserted to be of the type; take_event() acknowledges
 * the event.
 */
struct rdma_cm_event *next_event(struct rdma_event_channel *ch,
				 enum rdma_cm_event_type type);
void take_event(struct rdma_event_channel *ch, enum rdma_cm_event_type type);
void take_status(struct rdma_event_channel *ch, enum rdma_cm_event_type type,
		 int status);

struct rdma_cm_id *new_id(struct rdma_event_channel *ch);
/* Listens on 127.0.0.1 and a free port. */
struct rdma_cm_id *new_listener(struct rdma_event_channel *ch, int backlog);
uint16_t port_of(struct rdma_cm_id *id);
/* Resolved to 127.0.0.1:port, address and route. */
struct rdma_cm_id *new_client(struct rdma_event_channel *ch, uint16_t port);
struct ibv_cq *add_qp(struct rdma_cm_id *id);
void drop_qp(struct rdma_cm_id *id, struct ibv_cq *cq);
enum ibv_qp_state state_of(const struct rdma_cm_id *id);

/* listener and client, nothing sent */
void pair_setup(struct pair *p);
/* the client has asked, the server has the request */
void pair_request(struct pair *p);
/* both are ESTABLISHED, and both know */
void pair_connect(struct pair *p);
void pair_teardown(struct pair *p);

/* Adds a fault rule, which must be valid. */
void add_rule(const char *rule);
/* Runs before and after each test: no rules, no hook. */
int reset(void **state);

/* Set-up and teardown of a case that begins with a pair. */
int pair_is_set_up(void **state);
int pair_has_asked(void **state);
int pair_is_connected(void **state);
int pair_goes(void **state);

/* Begin a case with a pair that has sent nothing, whose client has asked, that
 * is connected. */
#define PAIR_TEST(name) TEST_OF(struct pair *p, name, pair_is_set_up, pair_goes)
#define REQUEST_TEST(name) \
	TEST_OF(struct pair *p, name, pair_has_asked, pair_goes)
#define CONNECTED_TEST(name) \
	TEST_OF(struct pair *p, name, pair_is_connected, pair_goes)

#endif /* LOOPBACK_CM_FIXTURE_H */
