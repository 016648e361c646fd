/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * bench_kv_server ADDRESS: the key-value server of examples/30-kv by verbs
 * alone, as fast as possible; see kv.h. Speaks the protocol for values that
 * have room in a message. One thread, which never sleeps: the table has no
 * lock, and the value of an answer is copied once, from the table into the
 * message. SIGTERM ends the server.
 */

#include <fcntl.h>
#include <signal.h>

#include "kv.h"

#define BUCKETS	  65536
#define RECEIVES  512 /* of the SRQ */
#define CLIENTS	  256
#define WINDOW	  16
#define LOOK_EACH 256 /* rounds between two looks at the events */

struct entry {
	struct entry *next;
	uint32_t key_len, value_len;
	uint8_t bytes[]; /* key and value */
};

static struct kv_device device;
static struct kv_end clients[CLIENTS];
static uint32_t client_count;
static struct kv_end *by_qp[65536]; /* the low bits of qp_num */
static struct ibv_srq *srq;
static struct ibv_recv_wr recvs[KV_BATCH];
static struct ibv_sge recv_sges[KV_BATCH];
static struct entry *buckets[BUCKETS];
static volatile sig_atomic_t is_over;

static void on_signal(int number)
{
	(void)number;
	is_over = 1;
}

/* --------------------------------------------------------- the table --- */

static struct entry **find(const uint8_t *key, uint32_t len)
{
	uint64_t hash = len, word = 0;
	struct entry **link;
	uint32_t i;

	for (i = 0; i + sizeof(word) <= len; i += sizeof(word)) {
		memcpy(&word, key + i, sizeof(word));
		hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
	}
	word = 0;
	memcpy(&word, key + i, len - i);
	hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
	link = &buckets[hash >> 48];
	while (*link && ((*link)->key_len != len ||
			 memcmp((*link)->bytes, key, len) != 0))
		link = &(*link)->next;
	return link;
}

static uint8_t put(struct entry **link, const struct kv_message *request)
{
	uint32_t key_len = request->request.key_len;
	uint32_t value_len = request->request.value_len;
	struct entry *entry = *link, *next = entry ? entry->next : NULL;

	entry = realloc(entry, sizeof(*entry) + key_len + value_len);
	if (entry == NULL)
		return KV_FULL;
	*entry = (struct entry){next, key_len, value_len};
	memcpy(entry->bytes, request->bytes, key_len + value_len);
	*link = entry;
	return KV_OK;
}

/* ---------------------------------------------------------- requests --- */

static bool is_request(const struct kv_message *request, uint32_t len)
{
	uint32_t value_len =
		request->kind == KV_PUT ? request->request.value_len : 0;

	return len >= KV_HEAD && request->body_len == len - FRAME_HEAD &&
	       request->version == FRAME_VERSION && request->kind >= KV_GET &&
	       request->kind <= KV_DELETE && request->request.key_len > 0 &&
	       request->request.key_len <= KV_KEY_MAX &&
	       request->request.value_len == value_len &&
	       len - KV_HEAD == (uint64_t)request->request.key_len + value_len;
}

static void answer(struct kv_end *client, const struct kv_message *request)
{
	struct kv_message *out = kv_place(client);
	struct entry **link, *entry;
	uint32_t value_len = 0;

	link = find(request->bytes, request->request.key_len);
	entry = *link;
	*out = (struct kv_message){
		.version = FRAME_VERSION, .kind = KV_ANSWER, .id = request->id};
	if (request->kind == KV_PUT) {
		out->status = put(link, request);
	} else if (entry == NULL) {
		out->status = KV_NONE;
	} else if (request->kind == KV_GET) {
		value_len = entry->value_len;
		memcpy(out->bytes, entry->bytes + entry->key_len, value_len);
	} else {
		*link = entry->next;
		free(entry);
	}
	out->answer.value_len = value_len;
	out->body_len = KV_BODY + value_len;
	kv_send(&device, client, (uint32_t)KV_HEAD + value_len);
}

static void serve(void)
{
	struct ibv_recv_wr *bad;
	struct ibv_wc wcs[KV_BATCH];
	const struct kv_message *request;
	int got = ibv_poll_cq(device.cq, KV_BATCH, wcs), count = 0, i;

	for (i = 0; i < got; i++) {
		struct kv_end *client = by_qp[wcs[i].qp_num % 65536];

		if (wcs[i].status == IBV_WC_WR_FLUSH_ERR)
			continue; /* the client has gone */
		if (wcs[i].status != IBV_WC_SUCCESS)
			kv_die(ibv_wc_status_str(wcs[i].status));
		if (!(wcs[i].opcode & IBV_WC_RECV))
			continue;
		request = (const void *)(uintptr_t)wcs[i].wr_id;
		if (!is_request(request, wcs[i].byte_len))
			kv_die("no request");
		answer(client, request);
		recv_sges[count].addr = wcs[i].wr_id;
		recvs[count++].wr_id = wcs[i].wr_id;
	}
	if (count == 0)
		return;
	kv_post(&device);
	recvs[count - 1].next = NULL;
	if (ibv_post_srq_recv(srq, recvs, &bad))
		kv_die("ibv_post_srq_recv");
	if (count < KV_BATCH)
		recvs[count - 1].next = &recvs[count];
}

/* ------------------------------------------------------- connections --- */

static void open_srq(struct ibv_context *verbs)
{
	struct ibv_srq_init_attr attr = {.attr = {RECEIVES, 1, 0}};
	struct ibv_recv_wr *bad;
	int i;

	kv_open(&device, verbs,
		((size_t)RECEIVES + CLIENTS * KV_SENDS) * KV_STRIDE);
	srq = ibv_create_srq(device.pd, &attr);
	if (srq == NULL)
		kv_die("ibv_create_srq");
	for (i = 0; i < KV_BATCH; i++) {
		recv_sges[i].length = KV_MESSAGE;
		recv_sges[i].lkey = device.mr->lkey;
		recvs[i].sg_list = &recv_sges[i];
		recvs[i].num_sge = 1;
		recvs[i].next = &recvs[i + 1];
	}
	for (i = 0; i < RECEIVES; i++) {
		recv_sges[0].addr = (uintptr_t)kv_take(&device, KV_STRIDE);
		recvs[0].wr_id = recv_sges[0].addr;
		recvs[0].next = NULL;
		if (ibv_post_srq_recv(srq, recvs, &bad))
			kv_die("ibv_post_srq_recv");
	}
	recvs[0].next = &recvs[1];
}

static void on_connect(struct rdma_cm_id *id)
{
	const struct kv_hello hello = {.window = WINDOW,
				       .value_max = KV_MESSAGE};
	uint8_t bytes[KV_HELLO];
	struct rdma_conn_param param = {.private_data = bytes,
					.private_data_len = sizeof(bytes),
					.rnr_retry_count = 7};
	struct kv_end *client = &clients[client_count++];

	if (client_count > CLIENTS)
		kv_die("too many clients");
	if (device.pd == NULL)
		open_srq(id->verbs);
	kv_end_open(&device, client, id, srq, 0);
	by_qp[id->qp->qp_num % 65536] = client;
	kv_hello_write(&hello, bytes);
	if (rdma_accept(id, &param))
		kv_die("rdma_accept");
}

static void look_at_events(void)
{
	struct rdma_cm_event *event;

	if (rdma_get_cm_event(device.events, &event))
		return; /* there is none */
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		on_connect(event->id);
	else if (event->event == RDMA_CM_EVENT_DISCONNECTED)
		rdma_disconnect(event->id);
	rdma_ack_cm_event(event);
}

int main(int argc, char **argv)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE,
				      .ai_port_space = RDMA_PS_TCP};
	struct rdma_addrinfo *at;
	struct rdma_cm_id *listener;
	uint32_t round;

	if (argc != 2)
		return 2;
	signal(SIGTERM, on_signal);
	device.events = rdma_create_event_channel();
	if (!device.events || rdma_getaddrinfo(argv[1], "0", &hints, &at) ||
	    rdma_create_id(device.events, &listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(listener, at->ai_src_addr) ||
	    rdma_listen(listener, CLIENTS) ||
	    fcntl(device.events->fd, F_SETFL, O_NONBLOCK))
		kv_die("rdma_listen");
	printf("server: at %s port %u\n", argv[1],
	       ntohs(rdma_get_src_port(listener)));
	fflush(stdout);
	for (round = 0; !is_over; round++) {
		if (round % LOOK_EACH == 0 || client_count == 0)
			look_at_events();
		if (client_count > 0)
			serve();
	}
	return 0;
}
