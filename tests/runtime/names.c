/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * names.c -- blocking look-ups of names, on a name server that answers when the
 * test says so: others connect meanwhile, at most 16 look-ups run and the next
 * waits for its turn, timeout_ms holds, a close and a stop do not wait, and a
 * look-up that ends after its runtime was deleted touches nothing of the
 * runtime. Each address of a name is tried. A numeric address has no look-up.
 * At the end the process exits while a look-up blocks.
 */

#define _GNU_SOURCE /* RTLD_NEXT, gettid */

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loop.h"
#include "heard.h"
#include "stage.h"

#define EVENT	 {.pollers = 1, .mode = RPMA_RT_MODE_EVENT, .depth = 4}
#define LONG_MS	 600000 /* nothing in this test takes so long */
#define SHORT_MS 20	/* time that passes while the name server is silent */
#define TURNS	 16
#define HELD	 20   /* held0.invalid to held19.invalid */
#define DEAD_MS	 8000 /* a quarter passes for a dead neighbour */

/* ------------------------------------------------------ the name server --- */

static struct {
	const char *addr; /* of known.invalid */
	char dead[2][32]; /* addresses without a host */
	sem_t asked[HELD];
	sem_t answer[HELD];
	_Atomic int known_asked;
	_Atomic int strange; /* numeric names, on a new thread */
	pid_t tids[64];
	int tid_count;
} server;

static void await(sem_t *semaphore)
{
	while (sem_wait(semaphore))
		CHECK(errno == EINTR);
}

static bool is_old_thread(pid_t tid)
{
	int i;

	for (i = 0; i < server.tid_count; i++) {
		if (server.tids[i] == tid)
			return true;
	}
	return false;
}

typedef int (*getaddrinfo_fn)(const char *, const char *,
			      const struct addrinfo *, struct addrinfo **);

/* Answers with several addresses. */
static int ask_for(getaddrinfo_fn real, const char *const *addrs,
		   const char *service, const struct addrinfo *hints,
		   struct addrinfo **info)
{
	int ret;

	*info = NULL;
	for (; *addrs != NULL; addrs++) {
		ret = real(*addrs, service, hints, info);
		if (ret)
			return ret;
		while (*info != NULL)
			info = &(*info)->ai_next;
	}
	return 0;
}

/* In place of the C library's. */
__attribute__((visibility("default"))) int
getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
	    struct addrinfo **info)
{
	const char *const known[] = {server.addr, NULL};
	const char *const two[] = {server.dead[0], server.addr, NULL};
	const char *const dead[] = {server.dead[0], server.dead[1], NULL};
	getaddrinfo_fn real;
	unsigned i;

	*(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
	if (name != NULL && sscanf(name, "held%u.invalid", &i) == 1) {
		CHECK(i < HELD && sem_post(&server.asked[i]) == 0);
		await(&server.answer[i]);
		return EAI_AGAIN;
	}
	if (name != NULL && strcmp(name, "known.invalid") == 0) {
		/* relaxed: read when an answer has come through the queue */
		atomic_fetch_add_explicit(&server.known_asked, 1,
					  memory_order_relaxed);
		return ask_for(real, known, service, hints, info);
	}
	if (name != NULL && strcmp(name, "two.invalid") == 0)
		return ask_for(real, two, service, hints, info);
	if (name != NULL && strcmp(name, "dead.invalid") == 0)
		return ask_for(real, dead, service, hints, info);
	if (server.tid_count > 0 && !is_old_thread(gettid()))
		/* relaxed: as above */
		atomic_fetch_add_explicit(&server.strange, 1,
					  memory_order_relaxed);
	return real(name, service, hints, info);
}

/* The loopback device has only addresses of this machine. The kernel may have a
 * route to any network, but a dead neighbour answers no ARP. */
static void choose_the_dead(void)
{
	const char *dot = strrchr(server.addr, '.');
	int len = dot != NULL ? (int)(dot - server.addr) : 0;
	int i;

	for (i = 0; i < 2; i++) {
		if (loop_get() != NULL || dot == NULL)
			snprintf(server.dead[i], sizeof(server.dead[i]),
				 "192.0.2.%d", 198 + i);
		else
			snprintf(server.dead[i], sizeof(server.dead[i]),
				 "%.*s.%d", len, server.addr, 198 + i);
	}
}

static void server_open(struct stage *s)
{
	int i;

	server.addr = s->world.addr;
	choose_the_dead();
	for (i = 0; i < HELD; i++)
		CHECK(sem_init(&server.asked[i], 0, 0) == 0 &&
		      sem_init(&server.answer[i], 0, 0) == 0);
}

static void answer(int first, int end)
{
	int i;

	for (i = first; i < end; i++)
		CHECK(sem_post(&server.answer[i]) == 0);
}

/* -------------------------------------------------------------- threads --- */

/* Returns whether the thread is the loopback device's, which come and go, or
 * has ended. */
static bool is_of_device(const char *task)
{
	char text[300];
	bool is_ended;
	FILE *stream;

	snprintf(text, sizeof(text), "/proc/self/task/%s/comm", task);
	stream = fopen(text, "r");
	is_ended = stream == NULL || fgets(text, sizeof(text), stream) == NULL;
	if (stream != NULL)
		fclose(stream);
	return is_ended || strncmp(text, "lb-", 3) == 0;
}

/* The other threads of the process; their ids where tids is not NULL. */
static int tasks(pid_t *tids)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	int count = 0;

	CHECK(dir != NULL);
	while ((entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.' || is_of_device(entry->d_name))
			continue;
		CHECK(count < 64);
		if (tids != NULL)
			tids[count] = atoi(entry->d_name);
		count++;
	}
	closedir(dir);
	return count;
}

/* Waits until the threads of look-ups have ended, by themselves. */
static void await_tasks(int count)
{
	uint64_t end = world_now_ms() + WORLD_PATIENCE_MS;

	while (tasks(NULL) > count) {
		CHECK(world_now_ms() < end);
		usleep(1000);
	}
}

/* ---------------------------------------------------------- connections --- */

static struct rpma_rt_conn *begin(const struct world *w,
				  const struct rpma_rt_conn_cfg *cfg,
				  struct rpma_rt_queue *queue, const char *name)
{
	struct rpma_rt_conn *conn;

	MUST(world_conn_new(w->rt, w->peer, name, w->port, cfg, 0, queue, NULL,
			    &conn));
	return conn;
}

static struct rpma_rt_conn *begin_held(struct stage *s, int number)
{
	char name[32];

	snprintf(name, sizeof(name), "held%d.invalid", number);
	return begin(&s->world, s->cfg, s->aq, name);
}

/* Begins count connections, and waits until each look-up runs. */
static void hold(struct stage *s, struct rpma_rt_conn **conns, int count)
{
	int i;

	for (i = 0; i < count; i++)
		conns[i] = begin_held(s, i);
	for (i = 0; i < count; i++)
		await(&server.asked[i]);
}

static void is_ready(struct rpma_rt_queue *queue,
		     const struct rpma_rt_conn *conn)
{
	struct rpma_rt_completion item =
		world_event(queue, RPMA_RT_EVENT_READY);

	CHECK(rpma_rt_completion_conn(&item) == conn);
}

static void is_closed(struct rpma_rt_queue *queue, struct rpma_rt_conn **conn,
		      enum rpma_rt_reason reason, int err)
{
	struct rpma_rt_completion item =
		world_event(queue, RPMA_RT_EVENT_CLOSED);
	int value;

	CHECK(rpma_rt_completion_conn(&item) == *conn);
	if (item.status != reason) {
		fprintf(stderr, "closed for %s\n",
			rpma_rt_reason_2str(item.status));
		abort();
	}
	CHECK(rpma_rt_completion_detail(&item, &value) ==
	      (err ? RPMA_RT_DETAIL_ERRNO : RPMA_RT_DETAIL_NONE));
	CHECK(value == err);
	MUST(rpma_rt_conn_unref(conn));
}

static void end(struct stage *s, struct rpma_rt_conn **conn)
{
	MUST(rpma_rt_conn_close(*conn));
	is_closed(s->aq, conn, RPMA_RT_REASON_LOCAL, 0);
}

/* Returns when the control thread has begun each connection made before. */
static void numeric_is_ready(struct stage *s)
{
	struct rpma_rt_conn *conn =
		begin(&s->world, s->cfg, s->aq, s->world.addr);

	is_ready(s->aq, conn);
	end(s, &conn);
}

static void name_is_ready(struct stage *s, const char *name)
{
	struct rpma_rt_conn *conn = begin(&s->world, s->cfg, s->aq, name);

	is_ready(s->aq, conn);
	end(s, &conn);
}

static void look_up__blocks_OTHERS_CONNECT(struct stage *s)
{
	int before = tasks(NULL);
	struct rpma_rt_conn *held;
	struct world_pair pair;

	hold(s, &held, 1);
	numeric_is_ready(s);
	name_is_ready(s, "known.invalid");
	stage_connect(s, &pair); /* listens, connects, accepts */
	stage_ping(s, &pair, 3);
	stage_disconnect(s, &pair);
	end(s, &held); /* the look-up still blocks */
	answer(0, 1);
	await_tasks(before);
}

static void look_ups__the_17th_WAITS_FOR_ITS_TURN(struct stage *s)
{
	struct rpma_rt_conn *conns[TURNS];
	struct rpma_rt_completion item;
	struct rpma_rt_conn *next[2];
	int before = tasks(NULL);
	int asked;
	int i;

	hold(s, conns, TURNS);
	/* relaxed: the answers were seen */
	asked = atomic_load_explicit(&server.known_asked, memory_order_relaxed);
	next[0] = begin(&s->world, s->cfg, s->aq, "known.invalid");
	next[1] = begin_held(s, TURNS);
	numeric_is_ready(s);
	CHECK(tasks(NULL) == before + TURNS);
	/* relaxed: no thread exists that could ask */
	CHECK(atomic_load_explicit(&server.known_asked, memory_order_relaxed) ==
	      asked);
	answer(0, 1); /* CLOSED, and the turn is the next's, in any order */
	for (i = 0; i < 2; i++) {
		item = world_next(s->aq);
		CHECK(item.kind == RPMA_RT_EVENT);
		CHECK(rpma_rt_completion_conn(&item) ==
		      (item.opcode == RPMA_RT_EVENT_READY ? next[0]
							  : conns[0]));
	}
	MUST(rpma_rt_conn_unref(&conns[0]));
	await(&server.asked[TURNS]);
	CHECK(tasks(NULL) == before + TURNS);
	end(s, &next[0]);
	end(s, &next[1]);
	for (i = 1; i < TURNS; i++)
		end(s, &conns[i]);
	answer(1, TURNS + 1);
	await_tasks(before);
}

static void look_up__closed_while_it_waits_NOBODY_IS_ASKED(struct stage *s)
{
	struct rpma_rt_conn *conns[TURNS];
	struct rpma_rt_conn *waits;
	int before = tasks(NULL);
	int asked;
	int i;

	hold(s, conns, TURNS);
	/* relaxed: as above */
	asked = atomic_load_explicit(&server.known_asked, memory_order_relaxed);
	waits = begin(&s->world, s->cfg, s->aq, "known.invalid");
	numeric_is_ready(s);
	end(s, &waits);
	for (i = 0; i < TURNS; i++)
		end(s, &conns[i]);
	answer(0, TURNS);
	await_tasks(before);
	/* relaxed: the threads have ended */
	CHECK(atomic_load_explicit(&server.known_asked, memory_order_relaxed) ==
	      asked);
}

static void timeout__look_up_blocks_UNREACHABLE(struct stage *s)
{
	struct rpma_rt_conn_cfg brief = *s->cfg;
	struct rpma_rt_conn *conns[TURNS];
	struct rpma_rt_conn *conn;
	int before = tasks(NULL);
	int i;

	brief.timeout_ms = SHORT_MS;
	heard_forget();
	conn = begin(&s->world, &brief, s->aq, "held17.invalid");
	await(&server.asked[17]);
	is_closed(s->aq, &conn, RPMA_RT_REASON_UNREACHABLE, ETIMEDOUT);
	heard_expect("\"held17.invalid\"");
	heard_expect("name server has not answered within timeout_ms");
	answer(17, 18);
	await_tasks(before);

	hold(s, conns, TURNS); /* the same while waiting for a turn */
	heard_forget();
	conn = begin(&s->world, &brief, s->aq, "known.invalid");
	is_closed(s->aq, &conn, RPMA_RT_REASON_UNREACHABLE, ETIMEDOUT);
	heard_expect("\"known.invalid\"");
	heard_expect("16 look-ups");
	for (i = 0; i < TURNS; i++)
		end(s, &conns[i]);
	answer(0, TURNS);
	await_tasks(before);
}

/* With running look-ups, and with look-ups waiting for their turn. */
static void stop__look_ups_block_AND_END_LATER(struct stage *s, int last)
{
	struct rpma_rt_conn *conns[TURNS + 2];
	struct rpma_rt_completion item;
	struct world other = s->world;
	struct rpma_rt_queue *queue;
	int before = tasks(NULL);
	char name[32];
	int i;

	world_start(&other, 1, RPMA_RT_MODE_EVENT);
	MUST(rpma_rt_queue_new(other.rt, NULL, &queue));
	for (i = 0; i < last; i++) {
		snprintf(name, sizeof(name), "held%d.invalid", i);
		conns[i] = begin(&other, s->cfg, queue, name);
	}
	for (i = 0; i < last && i < TURNS; i++)
		await(&server.asked[i]);
	MUST(rpma_rt_stop(other.rt)); /* no look-up was answered */
	for (i = 0; i < last; i++) {
		item = world_event(queue, RPMA_RT_EVENT_CLOSED);
		CHECK(item.status == RPMA_RT_REASON_STOPPED);
		MUST(rpma_rt_conn_unref(&conns[i]));
	}
	MUST(rpma_rt_queue_delete(&queue));
	MUST(rpma_rt_delete(&other.rt));
	numeric_is_ready(s);
	answer(0, last < TURNS ? last : TURNS);
	await_tasks(before);
}

static void *listen_to_a_name(void *arg)
{
	struct world *w = arg;
	struct rpma_rt_listener *listener;
	struct rpma_rt_queue *queue;

	MUST(rpma_rt_queue_new(w->rt, NULL, &queue));
	/* the answer: there is no address for now */
	CHECK(world_listen_at(w->rt, w->peer, "held0.invalid", "1", 1, NULL, 0,
			      queue, NULL, &listener) == RPMA_E_PROVIDER);
	MUST(rpma_rt_queue_delete(&queue));
	return NULL;
}

/* The caller of the listen waits for the name server, and the stop does not. */
static void stop__while_a_listen_looks_up(struct stage *s)
{
	struct world other = s->world;
	pthread_t thread;

	world_start(&other, 1, RPMA_RT_MODE_EVENT);
	CHECK(!pthread_create(&thread, NULL, listen_to_a_name, &other));
	await(&server.asked[0]);
	MUST(rpma_rt_stop(other.rt));
	answer(0, 1);
	CHECK(!pthread_join(thread, NULL));
	MUST(rpma_rt_delete(&other.rt));
}

static void address__first_is_dead_THE_NEXT(struct stage *s)
{
	struct sockaddr_storage addr;
	socklen_t len = sizeof(addr);
	struct rpma_rt_conn_cfg cfg = *s->cfg;
	struct rpma_rt_conn *conn;
	char text[64];

	cfg.timeout_ms = DEAD_MS;
	conn = begin(&s->world, &cfg, s->aq, "two.invalid");
	is_ready(s->aq, conn);
	MUST(rpma_rt_conn_get_peer_addr(conn, (struct sockaddr *)&addr, &len));
	CHECK(getnameinfo((struct sockaddr *)&addr, len, text, sizeof(text),
			  NULL, 0, NI_NUMERICHOST) == 0);
	CHECK(strcmp(text, s->world.addr) == 0);
	end(s, &conn);
}

static void addresses__all_are_dead_UNREACHABLE(struct stage *s)
{
	struct rpma_rt_conn_cfg cfg = *s->cfg;
	struct rpma_rt_completion item;
	struct rpma_rt_conn *conn;
	char words[96];

	cfg.timeout_ms = DEAD_MS;
	heard_forget();
	conn = begin(&s->world, &cfg, s->aq, "dead.invalid");
	item = world_event(s->aq, RPMA_RT_EVENT_CLOSED);
	CHECK(item.status == RPMA_RT_REASON_UNREACHABLE);
	MUST(rpma_rt_conn_unref(&conn));
	snprintf(words, sizeof(words), "dead.invalid (%s, %s)", server.dead[0],
		 server.dead[1]);
	heard_expect(words);
}

/* A new thread asks for nothing, whatever becomes of the connection. */
static void numeric__NO_LOOK_UP(struct stage *s)
{
	const char *const numeric[] = {s->world.addr, "::1", "fe80::1%lo",
				       "127.1"};
	struct rpma_rt_completion item;
	struct rpma_rt_conn *conn;
	size_t i;

	server.tid_count = tasks(server.tids);
	for (i = 0; i < sizeof(numeric) / sizeof(numeric[0]); i++) {
		conn = begin(&s->world, s->cfg, s->aq, numeric[i]);
		MUST(rpma_rt_conn_close(conn));
		do
			item = world_next(s->aq);
		while (item.opcode != RPMA_RT_EVENT_CLOSED);
		MUST(rpma_rt_conn_unref(&conn));
	}
	CHECK(tasks(NULL) == server.tid_count);
	server.tid_count = 0;
	/* relaxed: the connections have ended */
	CHECK(atomic_load_explicit(&server.strange, memory_order_relaxed) == 0);
}

/* ----------------------------------------------------------------- fork --- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MAKES_A_RUNTIME \
	0 /* sanitizers have no threads in a child: see
			   * fork_new.c */
#else
#define MAKES_A_RUNTIME 1
#endif

_Noreturn static void child(struct stage *s)
{
	static const struct stage_cfg cfg = EVENT;
	struct rpma_rt_listener *listener;
	struct rpma_rt_conn *conn;
	struct stage own;

	alarm(60); /* a hanging child is a failure, not a wait */
	CHECK(world_conn_new(s->world.rt, s->world.peer, "known.invalid", "1",
			     s->cfg, 0, s->aq, NULL,
			     &conn) == RPMA_RT_E_FORKED);
	CHECK(rpma_rt_stop(s->world.rt) == RPMA_RT_E_FORKED);
	if (MAKES_A_RUNTIME && loop_get() != NULL) {
		stage_open(&own, &cfg);
		own.cfg->timeout_ms = LONG_MS;
		listener = world_listen(&own.world, own.cfg, own.pq);
		name_is_ready(&own, "known.invalid"); /* has its turn */
		world_unlisten(&listener, own.pq);
		stage_close(&own);
	}
	_exit(0);
}

static void fork__while_look_ups_block(struct stage *s)
{
	struct rpma_rt_conn *conns[TURNS];
	struct rpma_rt_conn *waits;
	int before = tasks(NULL);
	int status;
	pid_t pid;
	int i;

	hold(s, conns, TURNS);
	waits = begin(&s->world, s->cfg, s->aq, "known.invalid");
	numeric_is_ready(s);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		child(s);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	end(s, &waits);
	for (i = 0; i < TURNS; i++)
		end(s, &conns[i]);
	answer(0, TURNS);
	await_tasks(before);
}

/* The process exits when the runtime is gone, and the look-up still runs. */
static void exit__while_a_look_up_blocks(struct stage *s)
{
	struct rpma_rt_conn *held;

	hold(s, &held, 1);
	end(s, &held);
}

int main(void)
{
	static const struct stage_cfg cfg = EVENT;
	struct rpma_rt_listener *listener;
	struct stage s;

	stage_open(&s, &cfg);
	s.cfg->timeout_ms = LONG_MS;
	server_open(&s);
	heard_start(RPMA_LOG_LEVEL_ERROR);
	/* a listener as destination, which accepts no request */
	listener = world_listen(&s.world, s.cfg, s.pq);
	numeric_is_ready(&s);
	numeric__NO_LOOK_UP(&s);
	look_ups__the_17th_WAITS_FOR_ITS_TURN(&s);
	look_up__closed_while_it_waits_NOBODY_IS_ASKED(&s);
	timeout__look_up_blocks_UNREACHABLE(&s);
	stop__look_ups_block_AND_END_LATER(&s, 3);
	stop__look_ups_block_AND_END_LATER(&s, TURNS + 2);
	stop__while_a_listen_looks_up(&s);
	address__first_is_dead_THE_NEXT(&s);
	addresses__all_are_dead_UNREACHABLE(&s);
	fork__while_look_ups_block(&s);
	world_unlisten(&listener, s.pq);
	look_up__blocks_OTHERS_CONNECT(&s);
	exit__while_a_look_up_blocks(&s);
	stage_close(&s);
	printf("ok\n");
	return 0;
}
