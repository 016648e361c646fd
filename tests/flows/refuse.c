/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Refusals, on a device: the refused side reads the reason, with the plain
 * calls for events; the other side need not make a request object to refuse.
 */

#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <string.h>

#include "pair.h"

/* The reasons of InfiniBand, which RoCE has too: tables of CM REJ */
#define REASON_NOBODY_LISTENS 8
#define REASON_CONSUMER	      28

static struct rpma_conn_private_data words = {"too many guests", 16};

static void connect_to(const char *port, struct rpma_conn **conn)
{
	struct rpma_conn_req *req = NULL;

	ok(rpma_conn_req_new(the_peer, the_addr, port, NULL, &req));
	ok(rpma_conn_req_connect(&req, NULL, conn));
}

/* The next event is a refusal with this reason and these words, or any. */
static void expect_refusal(struct rpma_conn *conn, int reason,
			   const char *expected)
{
	struct rpma_conn_private_data data = {0};
	int status = 0;

	assert_int_equal(rpma_conn_get_event_status(conn, &status),
			 RPMA_E_AGAIN);
	expect_event(conn, RPMA_CONN_REJECTED);
	ok(rpma_conn_get_event_status(conn, &status));
	assert_int_equal(status, reason);
	ok(rpma_conn_get_private_data(conn, &data));
	if (expected == NULL)
		return;
	assert_true(data.len > strlen(expected));
	assert_string_equal((char *)data.ptr, expected);
}

TEST(next_event__request_rejected_BRINGS_WHY)
{
	struct rpma_conn_req *req = NULL;
	struct rpma_conn *conn = NULL;
	struct rpma_ep *ep;
	char port[8];

	ep = pair_listen(port);
	connect_to(port, &conn);
	ok(rpma_ep_next_conn_req(ep, NULL, &req));
	ok(rpma_conn_req_reject(&req, &words));
	expect_refusal(conn, REASON_CONSUMER, "too many guests");
	ok(rpma_conn_delete(&conn));
	ok(rpma_ep_shutdown(&ep));
}

/* A peer that has given up before the answer is no failure of the answer. */
TEST(req_delete_and_reject__peer_has_given_up_DONE)
{
	struct rpma_conn_req *req = NULL;
	struct rpma_conn *conn = NULL;
	struct rpma_ep *ep;
	char port[8];
	int i;

	ep = pair_listen(port);
	for (i = 0; i < 3; i++) {
		connect_to(port, &conn);
		ok(rpma_ep_next_conn_req(ep, NULL, &req));
		ok(rpma_conn_delete(&conn));
		ok(i == 0   ? rpma_conn_req_delete(&req)
		   : i == 1 ? rpma_conn_req_reject(&req, NULL)
			    : rpma_conn_req_reject(&req, &words));
	}
	ok(rpma_ep_shutdown(&ep));
}

TEST(next_event__nobody_listens_BRINGS_WHY)
{
	struct rpma_conn *conn = NULL;
	struct rpma_ep *ep;
	char port[8];

	ep = pair_listen(port);
	ok(rpma_ep_shutdown(&ep));
	connect_to(port, &conn);
	expect_refusal(conn, REASON_NOBODY_LISTENS, NULL);
	ok(rpma_conn_delete(&conn));
}

/* A listener on a CM channel, and a request that has come to it. */
struct door {
	struct rpma_cm_channel *channel;
	struct rpma_ep *ep;
	struct rpma_conn *conn; /* the one that asks */
	struct rpma_cm_event event;
};

static void open_door(struct door *door)
{
	uint16_t number = 0;
	char port[8];

	*door = (struct door){0};
	ok(rpma_cm_channel_new(&door->channel));
	ok(rpma_ep_listen_ex(the_peer, the_addr, "0", 4, door->channel, door,
			     &door->ep));
	ok(rpma_ep_get_port(door->ep, &number));
	snprintf(port, sizeof(port), "%u", number);
	connect_to(port, &door->conn);
	ok(rpma_cm_channel_get_event(door->channel, &door->event));
	assert_int_equal(door->event.type, RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_ptr_equal(door->event.context, door);
}

static void close_door(struct door *door)
{
	ok(rpma_cm_event_ack(&door->event));
	ok(rpma_conn_delete(&door->conn));
	ok(rpma_ep_shutdown(&door->ep));
	/* nothing of the request is left on it */
	ok(rpma_cm_channel_delete(&door->channel));
}

TEST(event_reject__nothing_is_made_BRINGS_WHY)
{
	struct door door;

	open_door(&door);
	ok(rpma_cm_event_reject(&door.event, &words));
	assert_null(door.event.id);
	expect_refusal(door.conn, REASON_CONSUMER, "too many guests");
	/* it is gone */
	assert_int_equal(rpma_cm_event_reject(&door.event, &words),
			 RPMA_E_INVAL);
	close_door(&door);
}

/* A client that gives up before the answer is no failure of the answer. */
TEST(event_reject__peer_has_given_up_DONE)
{
	struct door door;
	int i;

	for (i = 0; i < 2; i++) {
		open_door(&door);
		ok(rpma_conn_delete(&door.conn));
		ok(rpma_cm_event_reject(&door.event, i == 0 ? NULL : &words));
		close_door(&door);
	}
}

/* The order of acknowledging and refusing is free. */
TEST(event_reject__acknowledged_before_WITHOUT_WORDS)
{
	struct door door;

	open_door(&door);
	ok(rpma_cm_event_ack(&door.event));
	ok(rpma_cm_event_reject(&door.event, NULL));
	expect_refusal(door.conn, REASON_CONSUMER, NULL);
	close_door(&door);
}

/* Bytes that mean nothing yet are 0; the event is still there to be used. */
TEST(event__reserved_bytes_INVAL)
{
	struct rpma_conn_req *req = NULL;
	struct door door;

	open_door(&door);
	door.event.reserved[sizeof(door.event.reserved) - 1] = 1;
	assert_int_equal(rpma_conn_req_new_from_event(the_peer, &door.event,
						      NULL, NULL, &req),
			 RPMA_E_INVAL);
	assert_null(req);
	assert_int_equal(rpma_cm_event_reject(&door.event, &words),
			 RPMA_E_INVAL);
	door.event.reserved[sizeof(door.event.reserved) - 1] = 0;
	ok(rpma_cm_event_reject(&door.event, &words));
	expect_refusal(door.conn, REASON_CONSUMER, "too many guests");
	close_door(&door);
}

/* A refused one does not keep the next one out. */
TEST(event_reject__next_request_IS_TAKEN)
{
	struct rpma_conn_req *req = NULL;
	struct rpma_conn *second = NULL;
	uint16_t number = 0;
	struct door door;
	char port[8];

	open_door(&door);
	ok(rpma_cm_event_reject(&door.event, NULL));
	expect_event(door.conn, RPMA_CONN_REJECTED);
	ok(rpma_cm_event_ack(&door.event));

	ok(rpma_ep_get_port(door.ep, &number));
	snprintf(port, sizeof(port), "%u", number);
	connect_to(port, &second);
	ok(rpma_cm_channel_get_event(door.channel, &door.event));
	ok(rpma_conn_req_new_from_event(the_peer, &door.event, NULL, NULL,
					&req));
	ok(rpma_conn_req_delete(&req));
	expect_event(second, RPMA_CONN_REJECTED);
	ok(rpma_conn_delete(&second));
	close_door(&door);
}

PAIR_MAIN()
