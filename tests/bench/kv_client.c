/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * bench_kv_client ADDRESS PORT SECONDS CONNSxDEPTH: the load of bench_kv, by
 * verbs alone; see kv.h. Writes KEYS values of 64 bytes, then gets keys by
 * chance, DEPTH requests outstanding on each connection, and checks id, status,
 * length and the first word of each answer. Prints the rate.
 */

#include "bench.h"
#include "kv.h"

#define KEYS 10000
/* each key twice: then each is stored, though answers come in any order */
#define STORED	  (2 * KEYS)
#define KEY_LEN	  16
#define VALUE_LEN 64
#define CONNS	  256
#define WARM_UP	  0.2 /* of the seconds */
#define LOOK_EACH 64  /* batches between two looks at the clock */

static struct kv_device device;
static struct kv_end ends[CONNS];
static struct ibv_recv_wr recvs[KV_BATCH];
static struct ibv_sge recv_sges[KV_BATCH];
static uint64_t put_count, got_count, stored_count, chance = 1;

static struct kv_end *end_at(uint64_t slot)
{
	return &ends[slot / KV_SENDS];
}

/* Sends the next request: no GET before each key is stored. The id is the key,
 * and so the value. */
static void ask(struct kv_end *end)
{
	bool is_put = stored_count < STORED;
	struct kv_message *out = kv_place(end);
	uint32_t body = KV_BODY + KEY_LEN + (is_put ? VALUE_LEN : 0);
	uint64_t key, i;

	chance = chance * 6364136223846793005u + 1442695040888963407u;
	key = (is_put ? put_count++ : chance >> 33) % KEYS;
	*out = (struct kv_message){
		.body_len = body,
		.version = FRAME_VERSION,
		.kind = is_put ? KV_PUT : KV_GET,
		.id = key,
		.request = {.key_len = KEY_LEN,
			    .value_len = is_put ? VALUE_LEN : 0}};
	memcpy(out->bytes, &key, sizeof(key));
	memset(out->bytes + sizeof(key), 0, KEY_LEN - sizeof(key));
	for (i = 0; is_put && i < VALUE_LEN; i += sizeof(key))
		memcpy(out->bytes + KEY_LEN + i, &key, sizeof(key));
	kv_send(&device, end, FRAME_HEAD + body);
}

static void check(const struct kv_message *answer, uint32_t len)
{
	if (len < KV_HEAD || answer->kind != KV_ANSWER ||
	    answer->status != KV_OK)
		kv_die("no answer");
	if (len == KV_HEAD) {
		stored_count++;
		return;
	}
	if (len != KV_HEAD + VALUE_LEN ||
	    answer->answer.value_len != VALUE_LEN ||
	    memcmp(answer->bytes, &answer->id, sizeof(answer->id)) != 0)
		kv_die("another value");
	got_count++;
}

static void post_recvs(struct kv_end *end, int first, int count)
{
	struct ibv_recv_wr *bad;

	recvs[first + count - 1].next = NULL;
	if (ibv_post_recv(end->id->qp, &recvs[first], &bad))
		kv_die("ibv_post_recv");
	if (first + count < KV_BATCH)
		recvs[first + count - 1].next = &recvs[first + count];
}

/* Handles a batch: neighbours of one connection have one post of receives. */
static void turn(void)
{
	struct kv_end *end, *last = NULL;
	struct ibv_wc wcs[KV_BATCH];
	int got = ibv_poll_cq(device.cq, KV_BATCH, wcs), count = 0, first = 0,
	    i;

	for (i = 0; i < got; i++) {
		if (wcs[i].status != IBV_WC_SUCCESS)
			kv_die(ibv_wc_status_str(wcs[i].status));
		if (!(wcs[i].opcode & IBV_WC_RECV))
			continue;
		end = end_at(wcs[i].wr_id);
		if (end != last && count > first) {
			post_recvs(last, first, count - first);
			first = count;
		}
		last = end;
		recv_sges[count].addr =
			(uintptr_t)device.memory + wcs[i].wr_id * KV_STRIDE;
		recvs[count].wr_id = wcs[i].wr_id;
		check((const void *)(uintptr_t)recv_sges[count].addr,
		      wcs[i].byte_len);
		count++;
		ask(end);
	}
	if (count > first)
		post_recvs(last, first, count - first);
	kv_post(&device);
}

static void connect_one(const char *address, const char *port, uint32_t number,
			uint32_t depth)
{
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP}, *at;
	const struct kv_hello mine = {0};
	struct kv_end *end = &ends[number];
	uint8_t bytes[KV_HELLO];
	struct rdma_conn_param param = {.private_data = bytes,
					.private_data_len = sizeof(bytes),
					.retry_count = 7,
					.rnr_retry_count = 7};
	struct kv_hello theirs;
	struct rdma_cm_id *id;
	uint32_t i;

	if (rdma_getaddrinfo(address, port, &hints, &at) ||
	    rdma_create_id(device.events, &id, NULL, RDMA_PS_TCP) ||
	    rdma_resolve_addr(id, NULL, at->ai_dst_addr, KV_RESOLVE_MS))
		kv_die("rdma_resolve_addr");
	rdma_freeaddrinfo(at);
	kv_expect(&device, RDMA_CM_EVENT_ADDR_RESOLVED, NULL);
	if (rdma_resolve_route(id, KV_RESOLVE_MS))
		kv_die("rdma_resolve_route");
	kv_expect(&device, RDMA_CM_EVENT_ROUTE_RESOLVED, NULL);
	if (number == 0) {
		kv_open(&device, id->verbs,
			(size_t)2 * CONNS * KV_SENDS * KV_STRIDE);
		/* receives lie first: a slot is a place in the memory */
		kv_take(&device, (size_t)CONNS * KV_SENDS * KV_STRIDE);
		for (i = 0; i < KV_BATCH; i++)
			recv_sges[i].lkey = device.mr->lkey;
	}
	kv_end_open(&device, end, id, NULL, KV_SENDS);
	for (i = 0; i <= depth; i++) { /* one for KV_BYE */
		recvs[0].wr_id = number * KV_SENDS + i;
		recv_sges[0].addr =
			(uintptr_t)device.memory + recvs[0].wr_id * KV_STRIDE;
		post_recvs(end, 0, 1);
	}
	kv_hello_write(&mine, bytes);
	if (rdma_connect(id, &param))
		kv_die("rdma_connect");
	kv_expect(&device, RDMA_CM_EVENT_ESTABLISHED, &theirs);
	if (theirs.window < depth)
		kv_die("the window is smaller");
}

int main(int argc, char **argv)
{
	uint32_t conns = 0, depth = 0, i;
	uint64_t before;
	double begin, seconds, now;

	if (argc != 5 || sscanf(argv[4], "%ux%u", &conns, &depth) != 2 ||
	    conns < 1 || conns > CONNS || depth < 1 || depth > KV_SENDS / 2)
		return 2;
	for (i = 0; i < KV_BATCH; i++) {
		recv_sges[i].length = KV_MESSAGE;
		recvs[i].sg_list = &recv_sges[i];
		recvs[i].num_sge = 1;
		recvs[i].next = &recvs[i + 1];
	}
	device.events = rdma_create_event_channel();
	if (!device.events)
		kv_die("rdma_create_event_channel");
	for (i = 0; i < conns; i++)
		connect_one(argv[1], argv[2], i, depth);
	for (i = 0; i < conns * depth; i++)
		ask(&ends[i / depth]);
	kv_post(&device);
	seconds = atof(argv[3]);
	while (stored_count < STORED)
		turn();
	for (begin = bench_now(); bench_now() < begin + WARM_UP * seconds;)
		turn();
	begin = bench_now();
	before = got_count;
	do {
		for (i = 0; i < LOOK_EACH; i++)
			turn();
		now = bench_now();
	} while (now < begin + seconds);
	bench_report("get", (double)(got_count - before) / (now - begin) / 1e3,
		     "kops/s");
	return 0;
}
