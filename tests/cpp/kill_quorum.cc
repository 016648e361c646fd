/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * kill_quorum.cc -- records that coroutines write to two replicas, each a
 * process of its own: one of two is enough. One replica is killed with writes
 * under way. Every record gets its quorum, before and behind; the dead one's
 * connection ends; and the last record is in the memory of the other one.
 *
 * Needs a device that processes share.
 *
 * usage: cpp_kill_quorum [replica FD]
 */

#include <csignal>
#include <cstring>

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scene.hpp"

#define RECORDS 200 /* before the kill, and behind it */

/* what a replica says first */
struct hello {
	char port[8];
	uint64_t size; /* of the descriptor */
	char descriptor[128];
};

/* ---------------------------------------------------------- a replica --- */

/* Until its connection is closed; then it says what was written to it. */
static int replica(int fd)
{
	auto peer = open_peer();
	auto runtime = open_runtime(RPMA_RT_MODE_ADAPTIVE);
	std::vector<uint64_t> page(512);
	auto memory = must(rt::memory::make(peer, page.data(), 4096,
					    RPMA_MR_USAGE_WRITE_DST));
	auto listener =
		must(runtime.listen(address(), "0", rt::endpoint{.via = peer}));
	auto text = must(memory.descriptor());
	hello h = {};

	snprintf(h.port, sizeof(h.port), "%u", listener.port());
	CHECK(text.size() <= sizeof(h.descriptor));
	h.size = text.size();
	memcpy(h.descriptor, text.data(), text.size());
	CHECK(write(fd, &h, sizeof(h)) == sizeof(h));
	{
		auto conn = must(listener.accept().wait());

		must(conn.closed().wait());
	}
	CHECK(write(fd, page.data(), 8) == 8);
	return 0;
}

/* --------------------------------------------------------- the writer --- */

struct target {
	pid_t pid;
	int fd;

	target()
	{
		int fds[2];

		CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
		auto number = std::to_string(fds[1]);
		pid = fork();
		CHECK(pid >= 0);
		if (pid == 0) {
			close(fds[0]);
			execl("/proc/self/exe", "cpp_kill_quorum", "replica",
			      number.c_str(), nullptr);
			_exit(127);
		}
		close(fds[1]);
		fd = fds[0];
	}
	~target() { close(fd); }
	hello get_hello() const
	{
		hello h;

		CHECK(recv(fd, &h, sizeof(h), MSG_WAITALL) == sizeof(h));
		CHECK(h.size <= sizeof(h.descriptor));
		return h;
	}
	uint64_t get_last() const
	{
		uint64_t value;

		CHECK(recv(fd, &value, 8, MSG_WAITALL) == 8);
		return value;
	}
	/* Its status, once it has ended. */
	int wait() const
	{
		int status;

		CHECK(waitpid(pid, &status, 0) == pid);
		return status;
	}
};

/* A connection to a replica, and its memory. */
struct link_to {
	rt::connection conn;
	rt::remote_memory remote;

	auto write(scene &s, uint64_t value)
	{
		auto record = s.lease();

		record.resize(8);
		memcpy(record.data(), &value, 8);
		return conn.write(remote, 0, std::move(record));
	}
};

static rt::task<link_to> connect_to(scene &s, const target &t)
{
	auto h = t.get_hello();
	auto conn = co_await s.loop.connect(address(), h.port, s.endpoint());

	co_return link_to{
		must(std::move(conn)),
		must(rt::remote_memory::make({h.descriptor, h.size}))};
}

static rt::task<void> write_all(scene &s, target &lives, target &dies)
{
	auto one = co_await connect_to(s, lives);
	auto two = co_await connect_to(s, dies);
	uint64_t value = 1;

	for (; value <= RECORDS; value++) {
		auto both = co_await rt::when_some(2, one.write(s, value),
						   two.write(s, value));
		CHECK(both);
	}
	for (; value <= 2 * RECORDS; value++) {
		if (value == RECORDS + 10)
			CHECK(kill(dies.pid, SIGKILL) == 0);
		/* of the other the write goes on, its lease with it */
		auto enough = co_await rt::when_some(1, one.write(s, value),
						     two.write(s, value));
		CHECK(enough);
	}
	/* nobody awaits the dead one's writes: its end is told all the same */
	CHECK(co_await two.conn.closed() != RPMA_RT_REASON_LOCAL);
	auto late = co_await two.write(s, value);
	CHECK(!late && late.error().what() == rt::errc::closed);
	/* in order: all of the others are there before it */
	must(co_await one.write(s, value));
	one.conn.close();
	co_await one.conn.closed();
	CHECK(lives.get_last() == value);
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "replica") == 0)
		return replica(atoi(argv[2]));
	target lives, dies;
	scene s;

	s.run(write_all(s, lives, dies));
	int status = dies.wait();
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	status = lives.wait();
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	printf("ok\n");
	return 0;
}
