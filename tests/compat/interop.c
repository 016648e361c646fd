/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * One side of a connection between two processes, for each side with a librpma
 * of its own: interop server|client ADDR PORT. Uses what librpma 1.2 has. The
 * client writes, flushes, writes atomically and says so with a number; the
 * server looks at its memory and answers; the client reads it back.
 */

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <librpma.h>

#define MEM   4096
#define IMM   0x600dcafe
#define TRIES 100 /* until the server listens, 0.1 s each */

/* offsets in each side's memory */
enum { AT_WRITE = 0, AT_ATOM = 64, AT_MESSAGE = 128, AT_READ = 256 };

#define ALWAYS RPMA_F_COMPLETION_ALWAYS

#define must(condition)                                                      \
	do {                                                                 \
		if (!(condition)) {                                          \
			fprintf(stderr, "%s: line %d: %s\n", role, __LINE__, \
				#condition);                                 \
			exit(1);                                             \
		}                                                            \
	} while (0)
#define ok(call) must((call) == 0)

/* What each side tells the other of its memory. */
struct hello {
	uint8_t mr_desc_size;
	uint8_t pcfg_desc_size;
	char descriptors[24];
};

static const char *role;
static struct rpma_peer *peer;
static struct rpma_conn *conn;
static struct rpma_mr_local *mr;
static struct rpma_mr_remote *remote;
static struct hello hello;
static char mem[MEM] __attribute__((aligned(4096)));

static void make_hello(void)
{
	struct rpma_peer_cfg *pcfg = NULL;
	size_t size;

	ok(rpma_mr_reg(peer, mem, sizeof(mem), 0xff, &mr));
	ok(rpma_mr_get_descriptor_size(mr, &size));
	hello.mr_desc_size = (uint8_t)size;
	ok(rpma_mr_get_descriptor(mr, hello.descriptors));
	ok(rpma_peer_cfg_new(&pcfg));
	ok(rpma_peer_cfg_set_direct_write_to_pmem(pcfg, true));
	ok(rpma_peer_cfg_get_descriptor(pcfg, hello.descriptors +
						      hello.mr_desc_size));
	hello.pcfg_desc_size = 1;
	ok(rpma_peer_cfg_delete(&pcfg));
}

static void take_hello(void)
{
	struct rpma_conn_private_data data;
	struct rpma_peer_cfg *pcfg = NULL;
	struct hello other;

	ok(rpma_conn_get_private_data(conn, &data));
	must(data.ptr && data.len >= sizeof(other));
	memcpy(&other, data.ptr, sizeof(other));
	ok(rpma_mr_remote_from_descriptor(other.descriptors, other.mr_desc_size,
					  &remote));
	ok(rpma_peer_cfg_from_descriptor(other.descriptors + other.mr_desc_size,
					 other.pcfg_desc_size, &pcfg));
	ok(rpma_conn_apply_remote_peer_cfg(conn, pcfg));
	ok(rpma_peer_cfg_delete(&pcfg));
}

static void expect_event(enum rpma_conn_event expected)
{
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;

	ok(rpma_conn_next_event(conn, &event));
	must(event == expected);
}

static struct ibv_wc next_wc(void)
{
	struct rpma_cq *cq = NULL;
	struct ibv_wc wc;
	int ret;

	ok(rpma_conn_get_cq(conn, &cq));
	while ((ret = rpma_cq_get_wc(cq, 1, &wc, NULL)) == RPMA_E_NO_COMPLETION)
		ok(rpma_cq_wait(cq));
	ok(ret);
	must(wc.status == IBV_WC_SUCCESS);
	return wc;
}

static void serve(const char *addr, const char *port)
{
	struct rpma_conn_private_data pdata = {&hello, sizeof(hello)};
	struct rpma_conn_req *req = NULL;
	struct rpma_ep *ep = NULL;
	struct ibv_wc wc;

	ok(rpma_ep_listen(peer, addr, port, &ep));
	ok(rpma_ep_next_conn_req(ep, NULL, &req));
	ok(rpma_conn_req_recv(req, mr, AT_MESSAGE, 64, NULL));
	ok(rpma_conn_req_connect(&req, &pdata, &conn));
	expect_event(RPMA_CONN_ESTABLISHED);
	take_hello();

	wc = next_wc();
	must(wc.opcode == IBV_WC_RECV && ntohl(wc.imm_data) == IMM);
	must(strcmp(mem + AT_MESSAGE, "look") == 0);
	must(strcmp(mem + AT_WRITE, "written") == 0);
	must(strcmp(mem + AT_ATOM, "8 bytes") == 0);
	strcpy(mem + AT_READ, "answer");
	ok(rpma_send(conn, NULL, 0, 0, ALWAYS, NULL));
	must(next_wc().opcode == IBV_WC_SEND);

	expect_event(RPMA_CONN_CLOSED);
	ok(rpma_conn_disconnect(conn));
	ok(rpma_conn_delete(&conn));
	ok(rpma_ep_shutdown(&ep));
}

/* Tries until the server listens: until then it is refused. */
static void connect_to(const char *addr, const char *port)
{
	struct rpma_conn_private_data pdata = {&hello, sizeof(hello)};
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
	struct rpma_conn_req *req = NULL;
	int i;

	for (i = 0; i < TRIES; i++) {
		ok(rpma_conn_req_new(peer, addr, port, NULL, &req));
		ok(rpma_conn_req_recv(req, mr, AT_MESSAGE, 64, NULL));
		ok(rpma_conn_req_connect(&req, &pdata, &conn));
		ok(rpma_conn_next_event(conn, &event));
		if (event == RPMA_CONN_ESTABLISHED)
			return;
		must(event == RPMA_CONN_REJECTED);
		ok(rpma_conn_delete(&conn));
		usleep(100000);
	}
	must(!"the server listens");
}

static void ask(const char *addr, const char *port)
{
	connect_to(addr, port);
	take_hello();

	strcpy(mem + AT_WRITE, "written");
	ok(rpma_write(conn, remote, AT_WRITE, mr, AT_WRITE, 8, 1, NULL));
	ok(rpma_flush(conn, remote, AT_WRITE, 8, RPMA_FLUSH_TYPE_PERSISTENT,
		      ALWAYS, NULL));
	(void)next_wc();
	ok(rpma_atomic_write(conn, remote, AT_ATOM, "8 bytes", 1, NULL));
	ok(rpma_flush(conn, remote, AT_ATOM, 8, RPMA_FLUSH_TYPE_VISIBILITY,
		      ALWAYS, NULL));
	(void)next_wc();
	strcpy(mem + AT_READ, "look");
	ok(rpma_send_with_imm(conn, mr, AT_READ, 5, 1, IMM, NULL));
	must(next_wc().opcode == IBV_WC_RECV);
	ok(rpma_read(conn, mr, AT_READ, remote, AT_READ, 7, ALWAYS, NULL));
	must(next_wc().opcode == IBV_WC_RDMA_READ);
	must(strcmp(mem + AT_READ, "answer") == 0);

	ok(rpma_conn_disconnect(conn));
	expect_event(RPMA_CONN_CLOSED);
	ok(rpma_conn_delete(&conn));
}

int main(int argc, char *argv[])
{
	struct ibv_context *ctx = NULL;

	if (argc != 4) {
		fprintf(stderr, "usage: interop server|client ADDR PORT\n");
		return 2;
	}
	role = argv[1];
	if (rpma_utils_get_ibv_context(argv[2], RPMA_UTIL_IBV_CONTEXT_LOCAL,
				       &ctx) ||
	    ctx == NULL) {
		printf("skipped: no RDMA device has the address %s\n", argv[2]);
		return 77;
	}
	ok(rpma_peer_new(ctx, &peer));
	make_hello();
	if (strcmp(role, "server") == 0)
		serve(argv[2], argv[3]);
	else
		ask(argv[2], argv[3]);
	ok(rpma_mr_remote_delete(&remote));
	ok(rpma_mr_dereg(&mr));
	ok(rpma_peer_delete(&peer));
	return 0;
}
