/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Private data as CM events bring it. The input is a script: how the connection
 * is made, then events, each a type, flags, a length and that many bytes. The
 * buffer of an event is exactly as long as the event says. The results of the
 * getters are compared with the data that should have been kept.
 */

#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#define TYPES	   (RDMA_CM_EVENT_TIMEWAIT_EXIT + 1)
#define EVENTS_MAX 64

/* of the first byte */
#define SHARED	0x01 /* a CM channel that several share */
#define PASSIVE 0x02
#define REJECT	0x04 /* a passive one, in place of accepting */
/* of an event */
#define NO_DATA 0x01 /* the pointer is NULL, whatever the length */

static struct {
	const uint8_t *at;
	size_t left;
} input;

static struct {
	uint8_t bytes[UINT8_MAX];
	uint8_t len;
} kept;

static struct rpma_peer *peer;
static struct rpma_cm_channel *channel;
static struct rpma_conn_cfg *cfg; /* NULL: not shared */

static uint8_t next_byte(void)
{
	if (input.left == 0)
		return 0;
	input.left--;
	return *input.at++;
}

/* NULL, or len bytes: of the input, zeroes behind its end. */
static uint8_t *next_data(uint8_t flags, uint8_t len)
{
	uint8_t *data;
	size_t i;

	if (flags & NO_DATA)
		return NULL;
	data = malloc(len);
	for (i = 0; data && i < len; i++)
		data[i] = next_byte();
	return data;
}

static void keep(const uint8_t *data, uint8_t len)
{
	if (kept.len || data == NULL)
		return;
	memcpy(kept.bytes, data, len);
	kept.len = len;
}

static void expect_kept(const struct rpma_conn_private_data *data)
{
	expect(data->len == kept.len);
	expect((data->ptr == NULL) == (kept.len == 0));
	expect(kept.len == 0 || memcmp(data->ptr, kept.bytes, kept.len) == 0);
}

/* One event into a connection, the way its channel takes it. */
static void feed(struct rpma_conn *conn, struct rdma_cm_id *id,
		 enum rdma_cm_event_type type)
{
	struct rpma_conn_private_data now = {(void *)1, 1};
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
	struct rpma_cm_event copy;
	uint8_t flags = next_byte();
	uint8_t len = next_byte();
	uint8_t *data = next_data(flags, len);

	mock_cm_event_data(type, id, data, len);
	if (cfg) {
		expect(rpma_cm_channel_get_event(channel, &copy) == 0);
		expect(rpma_cm_event_ack(&copy) == 0);
		(void)rpma_conn_handle_event(conn, &copy, &event);
	} else {
		(void)rpma_conn_next_event(conn, &event);
	}
	if (type == RDMA_CM_EVENT_ESTABLISHED || type == RDMA_CM_EVENT_REJECTED)
		keep(data, len);
	free(data);
	expect(rpma_conn_get_private_data(conn, &now) == 0);
	expect_kept(&now);
}

static struct rpma_conn_req *ask(void)
{
	struct rpma_conn_private_data now = {(void *)1, 1};
	struct rpma_conn_req *req = NULL;

	expect(rpma_conn_req_new(peer, "host", "7204", cfg, &req) == 0);
	expect(rpma_conn_req_get_private_data(req, &now) == 0);
	expect_kept(&now);
	return req;
}

static struct rpma_conn_req *take_event(struct rdma_cm_id *id)
{
	struct rpma_conn_req *req = NULL;
	struct rpma_cm_event copy;

	expect(rpma_cm_channel_get_event(channel, &copy) == 0);
	expect(copy.id == id);
	expect(rpma_conn_req_new_from_event(peer, &copy, cfg, NULL, &req) == 0);
	expect(rpma_cm_event_ack(&copy) == 0);
	return req;
}

static struct rpma_conn_req *take_next(void)
{
	struct rpma_conn_req *req = NULL;
	struct rpma_ep *ep = NULL;

	expect(rpma_ep_listen(peer, "host", "7204", &ep) == 0);
	expect(rpma_ep_next_conn_req(ep, cfg, &req) == 0);
	expect(rpma_ep_shutdown(&ep) == 0);
	return req;
}

static struct rpma_conn_req *take(void)
{
	struct rpma_conn_private_data now = {(void *)1, 1};
	struct rdma_cm_id *id = mock_new_id();
	struct rpma_conn_req *req;
	uint8_t flags = next_byte();
	uint8_t len = next_byte();
	uint8_t *data = next_data(flags, len);

	mock_cm_event_data(RDMA_CM_EVENT_CONNECT_REQUEST, id, data, len);
	req = cfg ? take_event(id) : take_next();
	keep(data, len);
	free(data);
	expect(rpma_conn_req_get_private_data(req, &now) == 0);
	expect_kept(&now);
	return req;
}

/* Our words to the other side; none are an argument that is wrong. */
static struct rpma_conn_private_data next_words(uint8_t **data)
{
	struct rpma_conn_private_data words = {.len = next_byte()};

	*data = next_data(0, words.len);
	words.ptr = *data;
	return words;
}

static void refuse(struct rpma_conn_req *req)
{
	uint8_t *data;
	struct rpma_conn_private_data words = next_words(&data);
	int ret = rpma_conn_req_reject(&req, &words);

	expect(ret == (words.len ? 0 : RPMA_E_INVAL));
	free(data);
	expect(rpma_conn_req_delete(&req) == 0);
}

static void live(struct rpma_conn_req *req)
{
	struct rdma_cm_id *id = NULL;
	struct rpma_conn *conn = NULL;
	uint8_t *data;
	struct rpma_conn_private_data words = next_words(&data);
	int ret = rpma_conn_req_connect(&req, &words, &conn);
	int i;

	free(data);
	expect(req == NULL);
	expect(ret == (words.len ? 0 : RPMA_E_INVAL));
	if (ret)
		return;
	expect(rpma_conn_get_cm_id(conn, &id) == 0);
	for (i = 0; i < EVENTS_MAX && input.left; i++)
		feed(conn, id, next_byte() % TYPES);
	expect(rpma_conn_delete(&conn) == 0);
}

static void play(void)
{
	uint8_t how = next_byte();
	struct rpma_conn_req *req;

	if (how & SHARED) {
		expect(rpma_conn_cfg_new(&cfg) == 0);
		expect(rpma_conn_cfg_set_cm_channel(cfg, channel) == 0);
	}
	req = how & PASSIVE ? take() : ask();
	if (how & PASSIVE && how & REJECT)
		refuse(req);
	else
		live(req);
	expect(rpma_conn_cfg_delete(&cfg) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int before = mocks_live();

	input.at = data;
	input.left = size;
	kept.len = 0;
	mocks_quiet();
	expect(rpma_peer_new(MOCK_CTX, &peer) == 0);
	expect(rpma_cm_channel_new(&channel) == 0);
	play();
	expect(rpma_cm_channel_delete(&channel) == 0);
	expect(rpma_peer_delete(&peer) == 0);
	expect(mocks_live() == before);
	return 0;
}
