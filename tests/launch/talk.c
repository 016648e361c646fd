/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * talk COUNT END: two queue pairs of one process, COUNT messages of 8 bytes and
 * a write of 100 from one to the other. The program ends by "return", by
 * "_exit", by "signal", when the program kills itself, by "exec", when the
 * program becomes another, by "sleep", when the program says so and waits for a
 * signal, or by "fault", when the handler of a fault inside a post calls
 * exit(). After "fork", and after "worker", a child does the same with a single
 * message, and ends by exit() or by _exit(). Exits with 1 and says why if a
 * call fails.
 */

#include <infiniband/verbs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

static struct ibv_context *verbs;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static char memory[256];

static void need(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	_exit(1);
}

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	need(list && list[0], "ibv_get_device_list");
	verbs = ibv_open_device(list[0]);
	need(verbs != NULL, "ibv_open_device");
	ibv_free_device_list(list);
	pd = ibv_alloc_pd(verbs);
	need(pd != NULL, "ibv_alloc_pd");
	mr = ibv_reg_mr(pd, memory, sizeof(memory), ACCESS);
	need(mr != NULL, "ibv_reg_mr");
	cq = ibv_create_cq(verbs, 16, NULL, NULL, 0);
	need(cq != NULL, "ibv_create_cq");
}

static struct ibv_qp *make(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {4, 4, 1, 1, 0},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	need(qp != NULL, "ibv_create_qp");
	return qp;
}

static void to_connect(struct ibv_qp *qp, uint32_t to)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = ACCESS,
	};

	need(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    IBV_QP_ACCESS_FLAGS),
	     "INIT");
	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = IBV_MTU_1024;
	attr.dest_qp_num = to;
	attr.ah_attr.is_global = 1;
	attr.ah_attr.port_num = 1;
	need(!ibv_query_gid(verbs, 1, 0, &attr.ah_attr.grh.dgid), "gid");
	need(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				    IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER),
	     "RTR");
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = 14;
	attr.retry_cnt = 7;
	attr.rnr_retry = 7;
	need(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				    IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				    IBV_QP_MAX_QP_RD_ATOMIC),
	     "RTS");
}

static void take(int completions)
{
	struct ibv_wc wc;
	int n;

	while (completions) {
		n = ibv_poll_cq(cq, 1, &wc);
		need(n >= 0 && (!n || wc.status == IBV_WC_SUCCESS), "poll");
		completions -= n;
	}
}

static void post_to(struct ibv_qp *qp, enum ibv_wr_opcode opcode, uint32_t len,
		    const char *to)
{
	struct ibv_sge sge = {(uintptr_t)memory, len, mr->lkey};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {(uintptr_t)to, mr->rkey},
	};
	struct ibv_send_wr *bad;

	need(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
}

static void post(struct ibv_qp *qp, enum ibv_wr_opcode opcode, uint32_t len)
{
	post_to(qp, opcode, len, memory + 128);
}

static void message(struct ibv_qp *from, struct ibv_qp *to)
{
	struct ibv_sge sge = {(uintptr_t)memory + 128, 8, mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;

	need(!ibv_post_recv(to, &wr, &bad), "ibv_post_recv");
	post(from, IBV_WR_SEND, 8);
	take(2);
}

static void talk(int count)
{
	struct ibv_qp *a, *b;

	open_device();
	a = make();
	b = make();
	to_connect(a, b->qp_num);
	to_connect(b, a->qp_num);
	while (count--)
		message(a, b);
	post(a, IBV_WR_RDMA_WRITE, 100);
	take(1);
	need(!ibv_destroy_qp(a), "ibv_destroy_qp"); /* b stays */
}

static void end_in_handler(int sig)
{
	(void)sig;
	exit(3);
}

/* Ends by exit() inside the device, which holds locks then. */
static void fault(void)
{
	struct sigaction action = {.sa_handler = end_in_handler};
	struct ibv_qp *qp = make();
	struct ibv_mr *whole;
	char *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	sigaction(SIGSEGV, &action, NULL);
	whole = ibv_reg_mr(pd, at, 4096, ACCESS);
	need(whole && !mprotect(at, 4096, PROT_NONE), "region");
	to_connect(qp, qp->qp_num);
	mr->rkey = whole->rkey;
	post_to(qp, IBV_WR_RDMA_WRITE, 8, at);
	take(1);
}

static int make_child(void (*end)(int))
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		talk(1);
		end(0);
	}
	need(waitpid(pid, &status, 0) == pid && !status, "child");
	return 0;
}

int main(int argc, char **argv)
{
	const char *end = argv[argc - 1];

	if (argc != 3)
		return 2;
	talk(atoi(argv[1]));
	if (!strcmp(end, "_exit"))
		_exit(3);
	if (!strcmp(end, "signal"))
		raise(SIGKILL);
	if (!strcmp(end, "exec"))
		execlp("true", "true", NULL);
	if (!strcmp(end, "fault"))
		fault();
	if (!strcmp(end, "sleep")) {
		puts("sleeps");
		fflush(stdout);
		pause();
	}
	if (!strcmp(end, "fork"))
		return make_child(exit);
	return !strcmp(end, "worker") ? make_child(_exit) : 0;
}
