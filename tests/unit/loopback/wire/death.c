/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * death.c -- a process is killed after each published word: the other process
 * takes everything published, learns of the death, and goes on.
 *
 * death [SEED [ROUNDS]]: for the kills at any time.
 */

#include "fixture.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/random.h"

#define SEED 3u

/* The diary of the dying process, in memory that outlives the process. */
struct diary {
	_Atomic uint32_t begun; /* both ends are up: the process may ask, and
				 * die */
	_Atomic uint32_t published[LB_POINTS]; /* times the point was reached */
	enum lb_point last;
	uint32_t times; /* the kill is at this time of being there */
};

static struct diary *diary;
static uint64_t seed, rounds;

/*
 * After a tail the lock is held already. Another thread may be between a tail
 * and the entry in the diary: the thread is waited for, so the diary has
 * everything published.
 */
static void die(enum lb_point point, struct lb_link *link)
{
	if (point == LB_POINT_REQ_HEAD || point == LB_POINT_ANS_HEAD ||
	    point == LB_POINT_SLEEP)
		lb_lock_get(&link->out);
	kill(getpid(), SIGKILL);
}

static void at(enum lb_point point, struct lb_link *link)
{
	uint32_t n;

	if (!end_count(&diary->begun))
		return;
	n = 1 + atomic_fetch_add_explicit(&diary->published[point], 1,
					  memory_order_acq_rel);
	if (point == diary->last && n == diary->times)
		die(point, link);
}

/* Lives as the dying process: asks and answers until killed. */
static void live(int from_parent, int to_parent)
{
	struct end self;
	unsigned number;

	end_init(&self);
	self.nic->at = at;
	number = lb_nic_number_of(self.nic);
	if (write(to_parent, &number, sizeof(number)) != sizeof(number) ||
	    read(from_parent, &number, sizeof(number)) != sizeof(number))
		_exit(1);
	self.link = lb_nic_link(self.nic, number);
	end_wait(&self.ups, 1);
	end_wait(&diary->begun, 1);
	for (;;) {
		struct lb_record record = end_record(self.sent, SEED);

		if (!end_request(&self, &record))
			_exit(2); /* the other process died first */
		lb_nic_arm(self.nic, NULL);
	}
}

static pid_t begin(struct end *end)
{
	int to_child[2], to_parent[2];
	unsigned number;
	pid_t pid;

	assert_int_equal(pipe(to_child), 0);
	assert_int_equal(pipe(to_parent), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		live(to_child[0], to_parent[1]);
		_exit(3);
	}
	end_init(end);
	assert_int_equal(read(to_parent[0], &number, sizeof(number)),
			 sizeof(number));
	end->link = lb_nic_link(end->nic, number);
	assert_non_null(end->link);
	number = lb_nic_number_of(end->nic);
	assert_int_equal(write(to_child[1], &number, sizeof(number)),
			 sizeof(number));
	close(to_child[0]);
	close(to_child[1]);
	close(to_parent[0]);
	close(to_parent[1]);
	end_wait(&end->ups, 1);
	atomic_store_explicit(&diary->begun, 1, memory_order_release);
	return pid;
}

static uint32_t published(enum lb_point point)
{
	return end_count(&diary->published[point]);
}

/* Asks until the other process is dead. */
static void ask(struct end *end)
{
	uint32_t rooms;

	for (;;) {
		struct lb_record record = end_record(end->sent, SEED);

		rooms = end_count(&end->rooms);
		switch (end_try(end, &record)) {
		case LB_PUT_DEAD:
			return;
		case LB_PUT_NO_ROOM:
			lb_nic_look(end->nic, NULL);
			end_wait(&end->rooms, rooms + 1); /* or dead */
			break;
		default:
			break;
		}
	}
}

static void *ask_all(void *end)
{
	ask(end);
	return NULL;
}

static void killed_at(enum lb_point point, uint32_t times)
{
	struct end end;
	int status;
	pid_t pid;

	memset(diary, 0, sizeof(*diary));
	diary->last = point;
	diary->times = times;
	pid = begin(&end);
	ask(&end);
	end_wait(&end.deads, 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
	/* each published request, and no other */
	assert_int_equal(end_count(&end.requests),
			 published(LB_POINT_REQ_TAIL));
	assert_int_equal(end_count(&end.answers), published(LB_POINT_ANS_TAIL));
	end_fini(&end);
}

/* Anywhere, under load in both directions; a seed chooses a number of requests
 * of the killed process. */
TEST(kill__at_any_time)
{
	for (uint64_t i = 0; i < rounds; i++) {
		struct end end;
		pthread_t asker;
		uint32_t n;
		pid_t pid;

		memset(diary, 0, sizeof(*diary));
		pid = begin(&end);
		assert_int_equal(pthread_create(&asker, NULL, ask_all, &end),
				 0);
		end_wait(&diary->published[LB_POINT_REQ_TAIL],
			 (uint32_t)(lb_random_mix(seed + i) % 4000));
		kill(pid, SIGKILL);
		pthread_join(asker, NULL);
		end_wait(&end.deads, 1);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		/* the last published request may be missing in the diary */
		n = published(LB_POINT_REQ_TAIL);
		assert_in_range(end_count(&end.requests), n, n + 1);
		n = published(LB_POINT_ANS_TAIL);
		assert_in_range(end_count(&end.answers), n, n + 1);
		end_fini(&end);
	}
}

TEST(kill__behind_a_record)
{
	killed_at(LB_POINT_RECORD, 1);
	killed_at(LB_POINT_RECORD, 30);
}

TEST(kill__behind_req_tail)
{
	killed_at(LB_POINT_REQ_TAIL, 1);
	killed_at(LB_POINT_REQ_TAIL, 20);
}

TEST(kill__behind_ans_tail)
{
	killed_at(LB_POINT_ANS_TAIL, 1);
	killed_at(LB_POINT_ANS_TAIL, 20);
}

TEST(kill__behind_req_head)
{
	killed_at(LB_POINT_REQ_HEAD, 1);
	killed_at(LB_POINT_REQ_HEAD, 5);
}

TEST(kill__behind_ans_head)
{
	killed_at(LB_POINT_ANS_HEAD, 1);
	killed_at(LB_POINT_ANS_HEAD, 5);
}

/* The process has no room, because the process asks for more than there is. */
TEST(kill__behind_want)
{
	killed_at(LB_POINT_WANT, 1);
	killed_at(LB_POINT_WANT, 2);
}

TEST(kill__behind_sleep)
{
	killed_at(LB_POINT_SLEEP, 1);
	killed_at(LB_POINT_SLEEP, 2);
}

TEST(kill__behind_a_bell)
{
	killed_at(LB_POINT_BELL, 1);
}

int main(int argc, char *argv[])
{
	diary = mmap(NULL, sizeof(*diary), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (diary == MAP_FAILED)
		return 1;
	seed = argc > 1 ? strtoull(argv[1], NULL, 0) : (uint64_t)time(NULL);
	rounds = argc > 2 ? strtoull(argv[2], NULL, 0) : 10;
	printf("seed %llu\n", (unsigned long long)seed);
	return tests_run(NULL, NULL);
}
