/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * processes.c -- processes that cannot have a link, and say so: of another
 * user, in another network namespace, without sockets; and a child, which is
 * another process than its parent.
 */

#include "fixture.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process.h"
#include "wire/hello.h"
#include "wire/links.h"
#include "wire/meet.h"
#include "wire/segment.h"
#include "wire/socket.h"

#define NOBODY_USER  65534
#define ANOTHER_USER 65533
#define A_NUMBER     200 /* of a process */

/*
 * Runs body in a child; returns the result, and the text of the child in
 * `said`. An end, if given, is made when the child exists, which then has no
 * lock of the threads of the end, and the number of the end.
 */
static unsigned in_child(void (*prepare)(void), unsigned (*body)(unsigned),
			 struct end *end, unsigned number, char *said,
			 size_t size)
{
	int out[2], tell[2], status;
	ssize_t got;
	pid_t pid;

	assert_int_equal(pipe(out), 0);
	assert_int_equal(pipe(tell), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (dup2(out[1], STDERR_FILENO) < 0)
			_exit(99);
		if (read(tell[0], &number, sizeof(number)) != sizeof(number))
			_exit(97);
		close(tell[0]);
		close(tell[1]);
		prepare();
		_exit((int)body(number));
	}
	close(out[1]);
	if (end) {
		end_init(end);
		number = lb_nic_number_of(end->nic);
	}
	assert_int_equal(write(tell[1], &number, sizeof(number)),
			 sizeof(number));
	close(tell[0]);
	close(tell[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	got = read(out[0], said, size - 1);
	said[got > 0 ? got : 0] = '\0';
	close(out[0]);
	assert_true(WIFEXITED(status));
	return (unsigned)WEXITSTATUS(status);
}

/* Wants a link to the number, in vain: returns 0. */
static unsigned want_link(unsigned number)
{
	struct end end;
	unsigned ups;

	end_init(&end);
	/* in another network namespace the number is free */
	while (lb_nic_number_of(end.nic) == number) {
		end_fini(&end);
		end_init(&end);
	}
	end.link = lb_nic_link(end.nic, number);
	if (!end.link)
		return 2;
	end_wait(&end.deads, 1);
	ups = end_count(&end.ups);
	end_fini(&end);
	return ups;
}

static void become_another(void)
{
	if (setresuid(NOBODY_USER, NOBODY_USER, NOBODY_USER))
		_exit(98);
}

/*
 * Waits until the other process has refused all guests up to now: guests come
 * in one after the other, and the other process looks up the present user of
 * each guest.
 */
static void wait_until_refused(unsigned number)
{
	int fd = hand_connect(number), passed;

	assert_int_equal(hand_receive(fd, &(struct lb_hello){0}, &passed), 0);
	close(fd);
}

/* Wants links as two users in turn. */
static unsigned want_links(unsigned number)
{
	unsigned i, ups = 0;

	for (i = 0; i < 6 && !ups; i++) {
		if (seteuid(i % 2 ? NOBODY_USER : ANOTHER_USER))
			return 98;
		ups = want_link(number);
		wait_until_refused(number);
		if (seteuid(0))
			return 98;
	}
	return ups;
}

static void leave_network(void)
{
	if (unshare(CLONE_NEWNET))
		_exit(98);
}

static void be_the_same(void)
{
}

static void root_only(void)
{
	if (!geteuid())
		return;
	print_message("skipped: to be another user, or in another namespace, "
		      "needs root\n");
	skip();
}

TEST(user__another_is_REFUSED_by_both)
{
	char said[4096];
	struct end a;

	root_only();
	said_begin();
	assert_int_equal(
		in_child(become_another, want_link, &a, 0, said, sizeof(said)),
		0);
	/* another thread answers, and prints the message afterwards */
	said_wait("a process of user 65534 wants a link to this one");
	said_end();
	if (!strstr(said, "is of user 0, this one") ||
	    !strstr(said, "of user 65534: no link. Run both as one user"))
		fail_msg("the other: %s", said);
	assert_int_equal(end_count(&a.ups), 0);
	end_fini(&a);
}

static unsigned count(const char *text, const char *words)
{
	unsigned n = 0;

	while ((text = strstr(text, words))) {
		text += strlen(words);
		n++;
	}
	return n;
}

/* A refused process does not fill the log of the other process. */
TEST(users__by_turns_are_SAID_ONCE)
{
	char said[4096];
	const char *mine;
	struct end a, b;

	root_only();
	said_begin();
	assert_int_equal(
		in_child(be_the_same, want_links, &a, 0, said, sizeof(said)),
		0);
	/* guests come in one after the other: b after all of the child */
	end_init(&b);
	b.link = lb_nic_link(b.nic, lb_nic_number_of(a.nic));
	end_wait(&a.ups, 1);
	end_wait(&b.ups, 1);
	mine = said_end();
	assert_int_equal(count(mine, "a process of user 65534 wants a link"),
			 1);
	assert_int_equal(count(mine, "a process of user 65533 wants a link"),
			 1);
	end_fini(&b);
	end_fini(&a);
}

TEST(namespace__another_is_NOBODY)
{
	char said[4096];
	struct end a;

	root_only();
	assert_int_equal(
		in_child(leave_network, want_link, &a, 0, said, sizeof(said)),
		0);
	if (!strstr(said, "in this network namespace"))
		fail_msg("said: %s", said);
	end_fini(&a);
}

/* --- the process's own NIC, and fork */

static void ignore_link(struct lb_link *link, struct lb_run *run)
{
	(void)link;
	(void)run;
}

static void with_run(void (*fn)(void *arg, struct lb_run *run), void *arg)
{
	fn(arg, NULL);
}

static const struct lb_nic_ops ops = {
	.dead = ignore_link,
	.with_run = with_run,
};
static const struct lb_nic_config config = {1, 42};

/* Simulates a system that allows nothing: a number all the same. */
static void no_descriptors(void)
{
	struct rlimit none = {0, 0};

	if (setrlimit(RLIMIT_NOFILE, &none))
		_exit(98);
}

static unsigned number_without_sockets(unsigned unused)
{
	unsigned number;

	(void)unused;
	lb_nic_attach(&ops, &config);
	number = lb_nic_number();
	if (!number || number != lb_nic_number())
		return 1;
	return lb_nic_link(lb_nic_self(), number % 254 + 1) ? 2 : 0;
}

TEST(sandbox__A_NUMBER_and_a_line)
{
	char said[4096];
	const char *words = "it reaches no other process";

	assert_int_equal(in_child(no_descriptors, number_without_sockets, NULL,
				  0, said, sizeof(said)),
			 0);
	if (!strstr(said, words) || strstr(strstr(said, words) + 1, words))
		fail_msg("said: %s", said);
}

/* Takes every number of a network that has the number of this process. */
static void take_all_numbers(void)
{
	char name[LB_PARTS_NAME];

	lb_socket_set_network((uint32_t)getpid());
	for (unsigned n = 1; n <= LB_PARTS_NUMBERS; n++) {
		lb_parts_name(name, n);
		if (lb_socket_listen(name) < 0)
			_exit(98);
	}
}

TEST(numbers__all_taken_A_LINE_with_what_to_do)
{
	char said[4096];

	assert_int_equal(in_child(take_all_numbers, number_without_sockets,
				  NULL, 0, said, sizeof(said)),
			 0);
	if (!strstr(said, "all 254 numbers of processes") ||
	    !strstr(said, "rpma-loopback --network"))
		fail_msg("said: %s", said);
}

/* Keeps links to more processes than a process may have links to; all of these
 * processes have ended. Returns 0 if the links were as many as allowed. */
static unsigned keep_links(unsigned number)
{
	struct lb_link *link;
	struct end end;
	unsigned i;

	end_init(&end);
	for (i = 0; i <= LB_PARTS_LINKS; i++) {
		link = lb_links_find(end.nic, number, true);
		if (!link)
			break;
		lb_links_leave(end.nic, link, 0);
	}
	return i != LB_PARTS_LINKS || lb_links_find(end.nic, number, true);
}

TEST(links__to_ended_processes_A_LINE_with_what_to_do)
{
	const char *words = "no link to a further process";
	char said[4096];

	assert_int_equal(in_child(be_the_same, keep_links, NULL, A_NUMBER, said,
				  sizeof(said)),
			 0);
	if (!strstr(said, words) || !strstr(said, "Destroy them") ||
	    strstr(strstr(said, words) + 1, words))
		fail_msg("said: %s", said);
}

/* Simulates a member of groups that ends between the probe and the contact. */
static void leave_a_name(void)
{
	char number[LB_PARTS_NAME], groups[64];

	lb_socket_set_network((uint32_t)getpid());
	lb_parts_name(number, A_NUMBER);
	snprintf(groups, sizeof(groups), "rpma-loopback.%u.groups.%u", A_NUMBER,
		 (unsigned)geteuid());
	/* bound, so that this process is another number; nobody listens */
	if (lb_socket_bind(number) < 0 || lb_socket_hold(groups) < 0)
		_exit(98);
}

/* Returns 0 if the process that has ended was found. */
static unsigned meet_who_is_gone(unsigned unused)
{
	struct lb_link *link;

	(void)unused;
	lb_nic_attach(&ops, &config);
	lb_nic_number();
	lb_meet_all();
	link = atomic_load_explicit(&lb_nic_self()->links[0],
				    memory_order_relaxed);
	/* a call with groups waits for a second at most */
	while (link && lb_link_state(link) == LB_LINK_CONTACT)
		poll(NULL, 0, 1);
	return !link || link->number != A_NUMBER ||
	       lb_link_state(link) != LB_LINK_DEAD;
}

static unsigned meet_and_name_who_is_gone(unsigned unused)
{
	struct lb_link *link;

	if (meet_who_is_gone(unused))
		return 1;
	link = lb_nic_link(lb_nic_self(), A_NUMBER);
	while (link && lb_link_state(link) == LB_LINK_CONTACT)
		poll(NULL, 0, 1);
	return !link;
}

/* Only a process that the program named is missed. */
TEST(groups__member_that_has_ended_NO_LINE)
{
	char said[4096];

	assert_int_equal(in_child(leave_a_name, meet_who_is_gone, NULL, 0, said,
				  sizeof(said)),
			 0);
	assert_string_equal(said, "");
}

TEST(groups__member_that_has_ended_and_is_named_A_LINE)
{
	char said[4096];

	assert_int_equal(in_child(leave_a_name, meet_and_name_who_is_gone, NULL,
				  0, said, sizeof(said)),
			 0);
	if (!strstr(said, "in this network namespace"))
		fail_msg("said: %s", said);
}

static void before(void)
{
	lb_nic_fork(LB_FORK_BEFORE);
}

static void parent(void)
{
	lb_nic_fork(LB_FORK_PARENT);
}

static void child(void)
{
	lb_nic_fork(LB_FORK_CHILD);
}

static unsigned the_test; /* the number of the test */
/*
 * the end of the test, in memory seen by the children: threads of the test
 * count, children look
 */
static struct end *test_end;

static void new_test_end(void)
{
	test_end = mmap(NULL, sizeof(*test_end), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(test_end, MAP_FAILED);
}

static void delete_test_end(void)
{
	end_fini(test_end);
	munmap(test_end, sizeof(*test_end));
}

/*
 * A link of the NIC of the process to the test, up on both sides: a process
 * that ends before counts as never there.
 */
static struct lb_link *link_to_test(uint32_t ups)
{
	struct lb_link *link = lb_nic_link(lb_nic_self(), the_test);

	while (link && lb_link_state(link) == LB_LINK_CONTACT)
		poll(NULL, 0, 1);
	if (link && lb_link_state(link) == LB_LINK_UP)
		end_wait(&test_end->ups, ups);
	return link;
}

/* In a child: the number is another, and the links of the parent are dead. */
static unsigned be_a_child(unsigned number)
{
	struct lb_link *inherited = atomic_load_explicit(
		&lb_nic_self()->links[0], memory_order_relaxed);

	if (lb_link_state(inherited) != LB_LINK_DEAD || lb_nic_has_links())
		return 1;
	if (lb_nic_link(lb_nic_self(), the_test))
		return 2; /* without a number yet */
	if (lb_nic_number() == number)
		return 3;
	return lb_link_state(link_to_test(2)) == LB_LINK_UP ? 0 : 4;
}

static unsigned forks(unsigned number)
{
	unsigned self, ret;
	struct lb_link *link;
	char said[4096];

	if (pthread_atfork(before, parent, child))
		return 10;
	the_test = number;
	lb_nic_attach(&ops, &config);
	self = lb_nic_number();
	link = link_to_test(1);
	if (lb_link_state(link) != LB_LINK_UP)
		return 11;
	ret = in_child(be_the_same, be_a_child, NULL, self, said, sizeof(said));
	if (ret)
		return ret;
	if (lb_link_state(link) != LB_LINK_UP || !lb_nic_has_links())
		return 12;
	return 0;
}

/* The link of the parent lives on while its child has another link. */
TEST(fork__child_IS_ANOTHER)
{
	char said[4096];

	new_test_end();
	assert_int_equal(
		in_child(be_the_same, forks, test_end, 0, said, sizeof(said)),
		0);
	end_wait(&test_end->deads, 2); /* exit is death */
	assert_int_equal(end_count(&test_end->ups), 2);
	delete_test_end();
}

/* --- a fork in the middle of two handshakes */

static int go[2], tell[2]; /* pipes, to the process and from the process */

/* Begins a link with the number, and is the guest of another. */
static void be_midway(unsigned number)
{
	unsigned self;
	char byte = 0;

	if (pthread_atfork(before, parent, child))
		_exit(10);
	lb_nic_attach(&ops, &config);
	self = lb_nic_number();
	if (!lb_nic_link(lb_nic_self(), number) ||
	    write(tell[1], &self, sizeof(self)) != sizeof(self) ||
	    read(go[0], &byte, 1) != 1)
		_exit(11);
	if (fork() == 0) {
		close(go[1]);
		_exit(write(tell[1], &byte, 1) != 1 || read(go[0], &byte, 1));
	}
	_exit(0);
}

static pid_t start_midway(unsigned number, unsigned *self)
{
	pid_t pid;

	assert_int_equal(pipe(go), 0);
	assert_int_equal(pipe(tell), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		be_midway(number);
	assert_int_equal(read(tell[0], self, sizeof(*self)), sizeof(*self));
	return pid;
}

/* Receives HELLO or ANSWER: asserts the kind, with a segment. */
static void expect(int fd, unsigned kind)
{
	struct lb_hello theirs;
	int passed;

	assert_int_equal(hand_receive(fd, &theirs, &passed), sizeof(theirs));
	assert_int_equal(theirs.kind, kind);
	assert_true(passed >= 0);
	close(passed);
}

static void expect_end(int fd)
{
	struct lb_hello theirs;
	int passed;

	assert_int_equal(hand_receive(fd, &theirs, &passed), 0);
	close(fd);
}

/* The child has nothing of them: both end with the process, not with it. */
TEST(fork__in_a_handshake_CHILD_HAS_NO_SOCKET)
{
	struct lb_hello hello = hand_hello(LB_HELLO_HELLO);
	int listener, began, guest, segment, status;
	struct lb_segment *mine;
	struct pollfd pfd = {.events = POLLIN};
	char name[LB_PARTS_NAME], byte = 0;
	unsigned self;
	pid_t pid;

	lb_parts_name(name, 253);
	listener = lb_socket_listen(name);
	assert_true(listener >= 0);
	mine = lb_segment_new(&segment);
	assert_non_null(mine);
	pid = start_midway(253, &self);
	pfd.fd = listener;
	assert_int_equal(poll(&pfd, 1, 300000), 1);
	began = lb_socket_accept(listener);
	assert_true(began >= 0);
	expect(began, LB_HELLO_HELLO);
	guest = hand_connect(self);
	if (self == hello.number)
		hello.number = 252;
	assert_int_equal(
		lb_socket_send_fd(guest, &hello, sizeof(hello), segment), 0);
	expect(guest, LB_HELLO_ANSWER);
	assert_int_equal(write(go[1], &byte, 1), 1);
	assert_int_equal(read(tell[0], &byte, 1), 1); /* the child lives */
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	expect_end(began);
	expect_end(guest);
	close(go[0]);
	close(go[1]);
	close(tell[0]);
	close(tell[1]);
	close(listener);
	close(segment);
	lb_segment_unmap(mine);
}

/* --- a process that sees no pid of the other */

static void leave_pids(void)
{
	if (unshare(CLONE_NEWPID))
		_exit(98);
}

/* Its child is the first of another space of pids. */
static unsigned meet_from_afar(unsigned number)
{
	struct end end;
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		end_init(&end);
		end.link = lb_nic_link(end.nic, number);
		end_wait(&end.ups, 1);
		end_wait(&test_end->ups, 1);
		_exit(end.link->pid != 0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 97;
	return (unsigned)status;
}

/* The end of file tells it of the end of the other. */
TEST(pids__of_another_space_ARE_NOT_NEEDED)
{
	char said[4096];

	root_only();
	new_test_end();
	assert_int_equal(in_child(leave_pids, meet_from_afar, test_end, 0, said,
				  sizeof(said)),
			 0);
	end_wait(&test_end->deads, 1);
	assert_int_equal(end_count(&test_end->ups), 1);
	delete_test_end();
}

TEST_MAIN()
