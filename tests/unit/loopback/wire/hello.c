/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * hello.c -- how a link is made, and why a link is refused: contacts from both
 * sides at once, no peer, another version, other devices, memory that is no
 * segment, a socket held by a process that does not answer.
 */

#include "fixture.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "wire/hello.h"
#include "wire/port.h"
#include "wire/segment.h"
#include "wire/socket.h"
#include "wire/watch.h"

#define SEED  7u
#define TIMES 30

TEST(contact__of_both_at_once_ONE_LINK)
{
	for (int i = 0; i < TIMES; i++) {
		struct end a, b;
		struct lb_record record = end_record(0, SEED);

		end_init(&a);
		end_init(&b);
		end_meet(&a, &b); /* both begin */
		assert_true(end_request(&a, &record));
		assert_true(end_request(&b, &record));
		end_arrive(&a, &b);
		end_arrive(&b, &a);
		assert_int_equal(end_count(&a.ups), 1);
		assert_int_equal(end_count(&b.ups), 1);
		assert_int_equal(end_count(&a.deads), 0);
		end_fini(&a);
		end_fini(&b);
	}
}

/* A request put before there is a link waits, and the waiter is told. */
TEST(request__before_the_link_NOT_YET)
{
	struct end a, b;
	struct lb_record record = end_record(0, SEED);

	end_init(&a);
	end_init(&b);
	pthread_mutex_lock(&b.nic->lock); /* its thread gets nowhere */
	a.link = lb_nic_link(a.nic, lb_nic_number_of(b.nic));
	assert_int_equal(end_try(&a, &record), LB_PUT_NOT_YET);
	assert_int_equal(lb_link_cookie(a.link), 0);
	pthread_mutex_unlock(&b.nic->lock);
	end_wait(&a.rooms, 1);
	assert_int_equal(end_try(&a, &record), LB_PUT_OK);
	end_arrive(&a, &b);
	assert_int_equal(lb_link_cookie(a.link), b.nic->cookie);
	end_fini(&a);
	end_fini(&b);
}

/* Returns a number that no end has; ends made later may draw the number. */
static unsigned number_of_nobody(void)
{
	struct end gone;
	unsigned number;

	end_init(&gone);
	number = lb_nic_number_of(gone.nic);
	end_fini(&gone);
	return number;
}

TEST(nobody__is_DEAD_and_said_once)
{
	struct lb_record record = end_record(0, SEED);
	const char *said;
	unsigned number;
	char words[64];
	struct end a;

	end_init(&a);
	number = number_of_nobody();
	said_begin();
	a.link = lb_nic_link(a.nic, number);
	end_wait(&a.deads, 1);
	assert_int_equal(end_try(&a, &record), LB_PUT_DEAD);
	assert_int_equal(lb_link_send(a.link, "hello", 5), ENOTCONN);
	/* soon after: no second contact */
	lb_link_put(lb_nic_link(a.nic, number));
	said = said_end();
	snprintf(words, sizeof(words), "no process %u in this network", number);
	assert_non_null(strstr(said, words));
	assert_null(strstr(strstr(said, words) + 1, words));
	end_fini(&a);
}

TEST(number__of_this_process_NO_LINK)
{
	struct end a;

	end_init(&a);
	assert_null(lb_nic_link(a.nic, lb_nic_number_of(a.nic)));
	assert_null(lb_nic_link(a.nic, 0));
	assert_null(lb_nic_link(a.nic, 255));
	end_fini(&a);
}

/* --- a hand-made peer */

/*
 * Asserts that a hello with these bytes is refused for the reason, in the
 * words.
 */
static void refused(const void *bytes, size_t size, int pass,
		    enum lb_hello_reason reason, const char *words)
{
	struct lb_hello answer;
	struct end a;
	const char *said;
	int fd, passed;

	end_init(&a);
	while (lb_nic_number_of(a.nic) == 254) { /* the number of
						  * hand_hello() */
		end_fini(&a);
		end_init(&a);
	}
	said_begin();
	fd = hand_connect(lb_nic_number_of(a.nic));
	assert_int_equal(lb_socket_send_fd(fd, bytes, size, pass), 0);
	assert_int_equal(hand_receive(fd, &answer, &passed), sizeof(answer));
	assert_int_equal(passed, -1);
	assert_int_equal(hand_receive(fd, &(struct lb_hello){0}, &passed), 0);
	said = said_end();
	assert_int_equal(answer.kind, LB_HELLO_REFUSAL);
	assert_int_equal(answer.reason, reason);
	if (!strstr(said, words))
		fail_msg("wanted: %s\nsaid: %s", words, said);
	assert_int_equal(end_count(&a.ups), 0);
	close(fd);
	end_fini(&a);
}

TEST(hello__of_another_version_REFUSED)
{
	struct lb_hello hello = hand_hello(LB_HELLO_HELLO);
	const struct {
		uint32_t magic;
		uint16_t version, length;
		uint8_t more[100];
	} newer = {LB_HELLO_MAGIC, 9, 108, {0}};

	hello.version = LB_HELLO_VERSION + 1;
	refused(&hello, sizeof(hello), -1, LB_HELLO_VERSIONS,
		"of the wire, this one");
	/* of a length unknown to this version */
	refused(&newer, 80, -1, LB_HELLO_VERSIONS, "has version 9 of the wire");
}

TEST(hello__of_other_devices_REFUSED)
{
	struct lb_hello hello = hand_hello(LB_HELLO_HELLO);

	hello.devices = 3;
	refused(&hello, sizeof(hello), -1, LB_HELLO_DEVICES,
		"process 254 has 3 devices");
	hello = hand_hello(LB_HELLO_HELLO);
	hello.devices_hash = 43;
	refused(&hello, sizeof(hello), -1, LB_HELLO_DEVICES, "GUIDs 0x2b");
}

TEST(hello__of_nonsense_REFUSED)
{
	struct lb_hello hello = hand_hello(LB_HELLO_HELLO);

	refused("hi", 2, -1, LB_HELLO_WRONG, "what is no hello");
	hello.kind = LB_HELLO_READY;
	refused(&hello, sizeof(hello), -1, LB_HELLO_WRONG, "what is no hello");
	hello = hand_hello(LB_HELLO_HELLO);
	hello.number = 255;
	refused(&hello, sizeof(hello), -1, LB_HELLO_WRONG, "what is no hello");
	hello = hand_hello(LB_HELLO_HELLO);
	hello.cookie = 0;
	refused(&hello, sizeof(hello), -1, LB_HELLO_WRONG, "what is no hello");
	hello = hand_hello(LB_HELLO_HELLO);
	refused(&hello, sizeof(hello) - 1, -1, LB_HELLO_WRONG,
		"what is no hello");
}

/* Memory that could shrink, or of another size, is not mapped. */
TEST(hello__without_a_segment_REFUSED)
{
	const off_t size = sizeof(struct lb_segment);
	struct lb_hello hello = hand_hello(LB_HELLO_HELLO);
	const char *words = "refuses the other's memory";
	int fd = memfd_create("unsealed", MFD_ALLOW_SEALING);

	refused(&hello, sizeof(hello), -1, LB_HELLO_SEGMENT, words);
	assert_int_equal(ftruncate(fd, size), 0);
	assert_int_equal(fallocate(fd, 0, 0, size), 0);
	refused(&hello, sizeof(hello), fd, LB_HELLO_SEGMENT, words);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW),
			 0);
	refused(&hello, sizeof(hello), fd, LB_HELLO_SEGMENT, words);
	close(fd);
	/* sealed, but with holes, which need memory when they are read */
	fd = memfd_create("holes", MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(fd, size), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS,
			       F_SEAL_SHRINK | F_SEAL_GROW |
				       F_SEAL_FUTURE_WRITE | F_SEAL_SEAL),
			 0);
	refused(&hello, sizeof(hello), fd, LB_HELLO_SEGMENT, words);
	close(fd);
	fd = open("/dev/zero", O_RDONLY);
	refused(&hello, sizeof(hello), fd, LB_HELLO_SEGMENT, words);
	close(fd);
}

/* More descriptors than any peer sends: no descriptor stays open. */
TEST(record__with_many_descriptors_REFUSED)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(3 * sizeof(int))];
	} control = {.header = {.cmsg_len = CMSG_LEN(3 * sizeof(int)),
				.cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS}};
	char byte = 0;
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	int fd[2], passed, before, after;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fd), 0);
	memcpy(CMSG_DATA(&control.header), (int[3]){fd[0], fd[0], fd[0]},
	       3 * sizeof(int));
	before = dup(fd[0]);
	close(before);
	assert_int_equal(sendmsg(fd[0], &msg, 0), 1);
	assert_int_equal(lb_socket_receive(fd[1], &byte, 1, &passed),
			 -EMSGSIZE);
	assert_int_equal(passed, -1);
	after = dup(fd[0]);
	assert_int_equal(after, before);
	close(after);
	close(fd[0]);
	close(fd[1]);
}

/* A peer says hello and never READY: the next peer gets the link. */
TEST(hello__then_silence_ANOTHER_GETS_THE_LINK)
{
	struct lb_hello hello = hand_hello(LB_HELLO_HELLO), answer;
	struct end a;
	int fd[2], passed, segment;
	struct lb_segment *mine = lb_segment_new(&segment);

	end_init(&a);
	while (lb_nic_number_of(a.nic) == hello.number)
		hello.number--;
	for (int i = 0; i < 2; i++) {
		fd[i] = hand_connect(lb_nic_number_of(a.nic));
		assert_int_equal(lb_socket_send_fd(fd[i], &hello, sizeof(hello),
						   segment),
				 0);
		assert_int_equal(hand_receive(fd[i], &answer, &passed),
				 sizeof(answer));
		assert_int_equal(answer.kind, LB_HELLO_ANSWER);
		assert_true(passed >= 0);
		close(passed);
	}
	assert_int_equal(hand_receive(fd[0], &answer, &passed), 0);
	hello.kind = LB_HELLO_READY;
	assert_int_equal(lb_socket_send(fd[1], &hello, sizeof(hello)), 0);
	end_wait(&a.ups, 1);
	/* up: another life of the number has to come again */
	hello.kind = LB_HELLO_HELLO;
	hello.cookie = 100;
	close(fd[0]);
	fd[0] = hand_connect(lb_nic_number_of(a.nic));
	assert_int_equal(
		lb_socket_send_fd(fd[0], &hello, sizeof(hello), segment), 0);
	assert_int_equal(hand_receive(fd[0], &answer, &passed), sizeof(answer));
	assert_int_equal(answer.kind, LB_HELLO_REFUSAL);
	assert_int_equal(answer.reason, LB_HELLO_COME_AGAIN);
	/* and gets the link once the former life has died */
	close(fd[0]);
	close(fd[1]);
	end_wait(&a.deads, 1);
	fd[0] = hand_connect(lb_nic_number_of(a.nic));
	assert_int_equal(
		lb_socket_send_fd(fd[0], &hello, sizeof(hello), segment), 0);
	assert_int_equal(hand_receive(fd[0], &answer, &passed), sizeof(answer));
	assert_int_equal(answer.kind, LB_HELLO_ANSWER);
	close(passed);
	close(fd[0]);
	close(segment);
	end_fini(&a);
	lb_segment_unmap(mine);
}

/* A peer that refuses without a reason is no peer. */
TEST(refusal__without_a_reason_NO_LINK)
{
	struct lb_hello hello = hand_hello(LB_HELLO_REFUSAL), theirs;
	unsigned number = number_of_nobody();
	struct lb_segment *mine;
	char name[LB_PARTS_NAME];
	int listener, fd, passed, segment;
	struct pollfd pfd = {.events = POLLIN};
	struct end a;

	lb_parts_name(name, number);
	listener = lb_socket_listen(name);
	assert_true(listener >= 0);
	mine = lb_segment_new(&segment);
	assert_non_null(mine);
	end_init(&a);
	said_begin();
	a.link = lb_nic_link(a.nic, number);
	pfd.fd = listener;
	assert_int_equal(poll(&pfd, 1, 300000), 1);
	fd = lb_socket_accept(listener);
	assert_true(fd >= 0);
	assert_int_equal(hand_receive(fd, &theirs, &passed), sizeof(theirs));
	assert_true(passed >= 0);
	close(passed);
	hello.number = number;
	assert_int_equal(lb_socket_send_fd(fd, &hello, sizeof(hello), segment),
			 0);
	end_wait(&a.deads, 1);
	assert_non_null(strstr(said_end(), "what is no hello"));
	assert_int_equal(end_count(&a.ups), 0);
	close(fd);
	close(listener);
	close(segment);
	end_fini(&a);
	lb_segment_unmap(mine);
}

/* A peer can neither store to a mapped segment nor truncate the segment. */
TEST(segment__is_READ_ONLY_to_others)
{
	int fd;
	struct lb_segment *mine = lb_segment_new(&fd);

	assert_non_null(mine);
	assert_true(mmap(NULL, sizeof(*mine), PROT_READ | PROT_WRITE,
			 MAP_SHARED, fd, 0) == MAP_FAILED);
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_int_equal(pwrite(fd, "x", 1, 0), -1);
	assert_int_equal(fallocate(fd,
				   FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				   0, 4096),
			 -1);
	close(fd);
	lb_segment_unmap(mine);
}

/*
 * A process has ended, and its child still holds the socket of its name:
 * connect() succeeds, without a peer.
 */
TEST(socket__held_by_a_child_NOBODY)
{
	int go[2], held[2], status;
	char name[LB_PARTS_NAME], byte = 0;
	unsigned number = number_of_nobody();
	const char *said;
	struct end a;
	pid_t pid;

	assert_int_equal(pipe(go), 0);
	assert_int_equal(pipe(held), 0);
	lb_parts_name(name, number);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		close(go[1]);
		if (lb_socket_listen(name) < 0)
			_exit(1);
		if (fork() == 0) {
			if (write(held[1], &byte, 1) != 1 ||
			    read(go[0], &byte, 1) != 0)
				_exit(1);
		}
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(read(held[0], &byte, 1), 1);
	end_init(&a);
	said_begin();
	a.link = lb_nic_link(a.nic, number);
	end_wait(&a.deads, 1);
	said = said_end();
	assert_non_null(strstr(said, "no process"));
	close(go[0]);
	close(go[1]);
	close(held[0]);
	close(held[1]);
	end_fini(&a);
}

/* --- no descriptor is left */

static _Atomic int refusals;	    /* remaining refusals of accept4() */
static _Atomic uint64_t refused_at; /* the first, lb_clock_real_now() */

/* Replaces the function of the C library; called by the link thread. */
int accept4(int fd, __SOCKADDR_ARG addr, socklen_t *restrict length, int flags)
{
	(void)addr, (void)length; /* no caller asks for the address */
	if (atomic_load_explicit(&refusals, memory_order_acquire) == 0)
		return (int)syscall(SYS_accept4, fd, NULL, NULL, flags);
	if (atomic_load_explicit(&refused_at, memory_order_acquire) == 0)
		atomic_store_explicit(&refused_at, lb_clock_real_now(),
				      memory_order_release);
	atomic_fetch_sub_explicit(&refusals, 1, memory_order_acq_rel);
	errno = EMFILE;
	return -1;
}

/* Whoever wants in waits, and the link thread does not turn meanwhile. */
TEST(guest__no_descriptor_GETS_IN_LATER)
{
	struct lb_hello hello = hand_hello(LB_HELLO_HELLO), answer;
	int fd, passed, segment;
	struct lb_segment *mine = lb_segment_new(&segment);
	struct end a;

	end_init(&a);
	while (lb_nic_number_of(a.nic) == hello.number)
		hello.number--;
	atomic_store_explicit(&refusals, 2, memory_order_release);
	fd = hand_connect(lb_nic_number_of(a.nic));
	assert_int_equal(lb_socket_send_fd(fd, &hello, sizeof(hello), segment),
			 0);
	assert_int_equal(hand_receive(fd, &answer, &passed), sizeof(answer));
	assert_int_equal(answer.kind, LB_HELLO_ANSWER);
	/* each of the two refusals costs some time: few a second */
	assert_true(lb_clock_real_now() -
			    atomic_load_explicit(&refused_at,
						 memory_order_acquire) >
		    100000000u);
	close(passed);
	close(fd);
	close(segment);
	end_fini(&a);
	lb_segment_unmap(mine);
}

/* --- ports */

static _Atomic unsigned answer;

static void take_number(struct lb_ask *ask, uint32_t token, unsigned number)
{
	(void)ask, (void)token;
	atomic_store_explicit(&answer, number, memory_order_release);
}

/* A port that is asked for waits, like a guest. */
TEST(port__no_descriptor_ANSWERS_LATER)
{
	const char *names[] = {"rpma-loopback.hello_test.1", NULL};
	struct lb_port *port = lb_port_hold(names[0]);
	struct end a, b;

	assert_non_null(port);
	end_init(&a);
	end_init(&b);
	assert_int_equal(lb_port_listen(port, a.nic), 0);
	atomic_store_explicit(&refused_at, 0, memory_order_release);
	atomic_store_explicit(&refusals, 2, memory_order_release);
	assert_non_null(lb_port_ask(b.nic, names, take_number, 0));
	end_wait(&answer, 1);
	assert_int_equal(end_count(&answer), lb_nic_number_of(a.nic));
	assert_true(lb_clock_real_now() -
			    atomic_load_explicit(&refused_at,
						 memory_order_acquire) >
		    100000000u);
	lb_port_release(port);
	end_fini(&a);
	end_fini(&b);
}

/* Returns true if the link thread would be woken, and woken again. */
static bool is_ready(const struct end *end)
{
	struct epoll_event event;

	return epoll_wait(end->nic->epoll, &event, 1, 0) != 0;
}

/*
 * A child without fork handlers has copies of the descriptors, as has dup():
 * events of closed descriptors do not wake the link thread for ever.
 */
TEST(port__released_with_a_copy_NO_EVENTS)
{
	const char *names[] = {"rpma-loopback.hello_test.2", NULL};
	struct lb_port *port = lb_port_hold(names[0]);
	struct lb_ask *ask;
	int copies[2], fd;
	struct end a, b;

	assert_non_null(port);
	end_init(&a);
	end_init(&b);
	assert_int_equal(lb_port_listen(port, a.nic), 0);
	copies[0] = dup(((struct lb_watch *)port)->fd);
	lb_port_release(port);
	ask = lb_port_ask(b.nic, names, take_number, 0);
	assert_non_null(ask);
	copies[1] = dup(((struct lb_watch *)ask)->fd);
	lb_port_cancel(ask);
	assert_false(is_ready(&a)); /* the copy has a connection */
	fd = accept4(copies[0], NULL, NULL, 0);
	assert_true(fd >= 0);
	close(fd);
	assert_false(is_ready(&b)); /* the copy is at its end */
	close(copies[0]);
	close(copies[1]);
	end_fini(&a);
	end_fini(&b);
}

/* Takes a refusal, if there is one left: two threads never take the last. */
static bool is_refused(_Atomic int *left)
{
	int n = atomic_load_explicit(left, memory_order_acquire);

	while (n > 0 && !atomic_compare_exchange_weak_explicit(
				left, &n, n - 1, memory_order_acq_rel,
				memory_order_acquire))
		;
	return n > 0;
}

static _Atomic int memfd_refusals; /* remaining refusals of memfd_create() */

/* Replaces the function of the C library, like accept4() above. */
int memfd_create(const char *name, unsigned flags)
{
	if (!is_refused(&memfd_refusals))
		return (int)syscall(SYS_memfd_create, name, flags);
	errno = EMFILE;
	return -1;
}

/*
 * A step that fails three times is tried again, by the side that needs the
 * step.
 */
static void made_later(_Atomic int *refusals_of)
{
	struct end a, b;

	end_init(&a);
	end_init(&b);
	atomic_store_explicit(refusals_of, 3, memory_order_release);
	end_meet(&a, &b);
	assert_int_equal(
		atomic_load_explicit(refusals_of, memory_order_acquire), 0);
	assert_int_equal(end_count(&a.deads), 0);
	assert_int_equal(end_count(&b.deads), 0);
	end_fini(&a);
	end_fini(&b);
}

TEST(segment__no_descriptor_IS_MADE_LATER)
{
	made_later(&memfd_refusals);
}

/* --- no memory is left */

static _Atomic int mmap_refusals; /* of shared memory, remaining */

/* Replaces the function of the C library, or of the sanitizer, as above. */
void *mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset)
{
	void *(*real)(void *, size_t, int, int, int, off_t);

	if (!(flags & MAP_SHARED) || !is_refused(&mmap_refusals)) {
		*(void **)&real = dlsym(RTLD_NEXT, "mmap");
		return real(addr, length, prot, flags, fd, offset);
	}
	errno = ENOMEM;
	return MAP_FAILED;
}

TEST(segment__no_memory_IS_MADE_LATER)
{
	made_later(&mmap_refusals);
}

/* Makes a segment as another process would: no page is mapped here. */
static int foreign_segment(void)
{
	int fd = memfd_create("foreign", MFD_ALLOW_SEALING);

	assert_int_equal(ftruncate(fd, sizeof(struct lb_segment)), 0);
	assert_int_equal(fallocate(fd, 0, 0, sizeof(struct lb_segment)), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS,
			       F_SEAL_SHRINK | F_SEAL_GROW |
				       F_SEAL_FUTURE_WRITE | F_SEAL_SEAL),
			 0);
	return fd;
}

/*
 * The segments of peers cannot be mapped: peers are told; the next time mapping
 * succeeds.
 */
TEST(hello__no_memory_for_a_segment_REFUSED)
{
	struct lb_hello hello = hand_hello(LB_HELLO_HELLO), answer;
	int segment = foreign_segment(), fd, passed;
	struct end a;

	atomic_store_explicit(&mmap_refusals, 1, memory_order_release);
	refused(&hello, sizeof(hello), segment, LB_HELLO_SEGMENT,
		"refuses the other's memory");
	end_init(&a);
	while (lb_nic_number_of(a.nic) == hello.number)
		hello.number--;
	fd = hand_connect(lb_nic_number_of(a.nic));
	assert_int_equal(lb_socket_send_fd(fd, &hello, sizeof(hello), segment),
			 0);
	assert_int_equal(hand_receive(fd, &answer, &passed), sizeof(answer));
	assert_int_equal(answer.kind, LB_HELLO_ANSWER);
	close(passed);
	close(fd);
	close(segment);
	end_fini(&a);
}

TEST_MAIN()
