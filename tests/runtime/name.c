/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * name.c -- names of connections: given while other threads dump, shown by the
 * dump and, when the connection closes, by the log.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "heard.h"
#include "stage.h"

#define DEPTH 4
#define TIMES 200

struct dumps {
	struct rpma_rt *rt;
	FILE *file;
	_Atomic bool over;
};

static void *dump(void *arg)
{
	struct dumps *dumps = arg;

	/* relaxed: only the end of the test */
	while (!atomic_load_explicit(&dumps->over, memory_order_relaxed)) {
		rewind(dumps->file);
		MUST(rpma_rt_dump(dumps->rt, fileno(dumps->file),
				  RPMA_RT_DUMP_JSON));
	}
	return NULL;
}

static bool is_in_dump(struct stage *s, const char *words)
{
	static char text[1 << 16];
	FILE *file = tmpfile();
	size_t len;

	CHECK(file != NULL);
	MUST(rpma_rt_dump(s->world.rt, fileno(file), RPMA_RT_DUMP_JSON));
	rewind(file);
	len = fread(text, 1, sizeof(text) - 1, file);
	text[len] = '\0';
	fclose(file);
	return strstr(text, words) != NULL;
}

/* As many names as it likes until it connects, whoever looks on. */
static void set_name__while_others_dump(struct stage *s,
					struct rpma_rt_conn *conn)
{
	struct dumps dumps = {.rt = s->world.rt, .file = tmpfile()};
	pthread_t thread;
	char name[32];
	int i;

	CHECK(dumps.file != NULL);
	MUST(pthread_create(&thread, NULL, dump, &dumps));
	for (i = 0; i < TIMES; i++) {
		snprintf(name, sizeof(name), "number %d", i);
		MUST(rpma_rt_conn_set_name(conn, name));
	}
	/* relaxed: as above */
	atomic_store_explicit(&dumps.over, true, memory_order_relaxed);
	MUST(pthread_join(thread, NULL));
	fclose(dumps.file);
	MUST(rpma_rt_conn_set_name(conn, "the one"));
	CHECK(is_in_dump(s, "\"name\":\"the one\""));
}

int main(void)
{
	const struct stage_cfg cfg = {.pollers = 1, .depth = DEPTH};
	struct rpma_rt_listener *listener;
	struct world_pair pair;
	struct stage s;

	stage_open(&s, &cfg);
	listener = world_listen(&s.world, s.cfg, s.pq);
	MUST(world_conn_new(s.world.rt, s.world.peer, s.world.addr,
			    s.world.port, s.cfg, 0, s.aq, NULL, &pair.active));
	world_event(s.aq, RPMA_RT_EVENT_READY);
	set_name__while_others_dump(&s, pair.active);
	MUST(rpma_rt_conn_connect(pair.active, NULL));
	CHECK(rpma_rt_conn_set_name(pair.active, "late") == RPMA_E_INVAL);
	pair.passive = (struct rpma_rt_conn *)(uintptr_t)world_event(
			       s.pq, RPMA_RT_EVENT_REQUEST)
			       .context;
	MUST(rpma_rt_conn_accept(pair.passive, NULL));
	world_event(s.aq, RPMA_RT_EVENT_ESTABLISHED);
	world_event(s.pq, RPMA_RT_EVENT_ESTABLISHED);
	heard_start(RPMA_LOG_LEVEL_DEBUG);
	MUST(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_INFO));
	stage_disconnect(&s, &pair);
	CHECK(heard_count("\"the one\"") == 1);
	world_unlisten(&listener, s.pq);
	stage_close(&s);
	return 0;
}
