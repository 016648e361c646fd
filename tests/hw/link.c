/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * A TCP connection between the scripts of two hosts: lines from standard input
 * go to the peer, lines from the peer to standard output. Whatever prevents the
 * connection is said in words, with the cure.
 */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define EXIT_USAGE 2
#define ANSWER_MS  10000 /* a SYN without an answer is given up then */
#define PATIENCE_S 120	 /* for a peer that does not listen yet */
#define CHUNK	   4096
#define LEAST_PORT 1024

static const char usage[] = "usage: hw_link listen ADDRESS PORT\n"
			    "       hw_link connect ADDRESS PORT OWN-ADDRESS\n";

__attribute__((format(printf, 1, 2), noreturn)) static void
die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("tests/hw: ", stderr);
	vfprintf(stderr, format, args);
	fputs("\n", stderr);
	va_end(args);
	exit(EXIT_FAILURE);
}

static struct sockaddr_in parse_address(const char *text, const char *port)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	char *end;
	long number = port ? strtol(port, &end, 10) : 0;

	if (inet_pton(AF_INET, text, &at.sin_addr) != 1)
		die("\"%s\" is no IPv4 address", text);
	if (port && (*end || number < LEAST_PORT || number > UINT16_MAX))
		die("port \"%s\": give a number from %d to %d", port,
		    LEAST_PORT, UINT16_MAX);
	at.sin_port = htons((uint16_t)number);
	return at;
}

/* Returns a socket that is bound to an address of this host. */
static int bind_to(const struct sockaddr_in *at, const char *address)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int on = 1;

	if (fd < 0)
		die("no socket: %s", strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (const struct sockaddr *)at, sizeof(*at)) == 0)
		return fd;
	if (errno == EADDRNOTAVAIL)
		die("%s is no address of this host (\"ip address\" lists them)",
		    address);
	if (errno == EADDRINUSE)
		die("port %d of %s is in use: give another --port, the same on "
		    "both hosts",
		    ntohs(at->sin_port), address);
	die("cannot use %s: %s", address, strerror(errno));
}

static int listen_once(const char *address, const char *port)
{
	struct sockaddr_in at = parse_address(address, port);
	struct sockaddr_in from;
	socklen_t size = sizeof(from);
	int listener = bind_to(&at, address);
	char text[INET_ADDRSTRLEN];
	int fd;

	if (listen(listener, 1))
		die("cannot listen on port %s of %s: %s", port, address,
		    strerror(errno));
	do
		fd = accept4(listener, (struct sockaddr *)&from, &size,
			     SOCK_CLOEXEC);
	while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
	if (fd < 0)
		die("cannot accept on port %s of %s: %s", port, address,
		    strerror(errno));
	close(listener);
	inet_ntop(AF_INET, &from.sin_addr, text, sizeof(text));
	fprintf(stderr, "tests/hw: connected from %s\n", text);
	return fd;
}

/* Returns 0, or the error of a connection that did not come about. */
static int try_to_connect(int fd, const struct sockaddr_in *to)
{
	struct pollfd out = {.fd = fd, .events = POLLOUT};
	int flags = fcntl(fd, F_GETFL);
	int error = 0;
	socklen_t size = sizeof(error);

	fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	if (connect(fd, (const struct sockaddr *)to, sizeof(*to))) {
		if (errno != EINPROGRESS)
			return errno;
		if (poll(&out, 1, ANSWER_MS) != 1)
			return ETIMEDOUT;
		if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size))
			return errno;
	}
	fcntl(fd, F_SETFL, flags);
	return error;
}

static int connect_to(const char *address, const char *port, const char *own)
{
	struct sockaddr_in to = parse_address(address, port);
	struct sockaddr_in from = parse_address(own, NULL);
	const struct timespec second = {1, 0};

	for (int tries = 0; tries < PATIENCE_S; tries++) {
		int fd = bind_to(&from, own);
		int error = try_to_connect(fd, &to);

		if (error == 0)
			return fd;
		close(fd);
		if (error == ENETUNREACH || error == EHOSTUNREACH)
			die("no route from %s to %s: %s", own, address,
			    strerror(error));
		if (error == ETIMEDOUT)
			die("no answer from %s at TCP port %s within %d s: a "
			    "firewall drops the packets, or the host is off",
			    address, port, ANSWER_MS / 1000);
		if (error != ECONNREFUSED)
			die("cannot connect to %s port %s: %s", address, port,
			    strerror(error));
		if (tries == 0)
			fprintf(stderr,
				"tests/hw: nobody listens at %s port %s yet: "
				"start there: ./run server %s\n",
				address, port, address);
		nanosleep(&second, NULL);
	}
	die("nobody listened at %s port %s for %d s", address, port,
	    PATIENCE_S);
}

/* Copies what there is; returns false at the end of what is read. */
static bool copy(int from, int to)
{
	char bytes[CHUNK];
	ssize_t got = read(from, bytes, sizeof(bytes));
	ssize_t done = 0;

	if (got < 0 && errno == EINTR)
		return true;
	while (done < got) {
		ssize_t put = write(to, bytes + done, (size_t)(got - done));

		if (put < 0 && errno != EINTR)
			return false;
		done += put > 0 ? put : 0;
	}
	return got > 0;
}

static void relay(int fd)
{
	struct pollfd in[2] = {{.fd = STDIN_FILENO, .events = POLLIN},
			       {.fd = fd, .events = POLLIN}};

	for (;;) {
		if (poll(in, 2, -1) < 0 && errno != EINTR)
			die("cannot wait: %s", strerror(errno));
		if (in[0].revents && !copy(STDIN_FILENO, fd)) {
			shutdown(fd, SHUT_WR);
			in[0].fd = -1;
		}
		if (in[1].revents && !copy(fd, STDOUT_FILENO))
			return;
	}
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "listen") == 0) {
		relay(listen_once(argv[2], argv[3]));
	} else if (argc == 5 && strcmp(argv[1], "connect") == 0) {
		relay(connect_to(argv[2], argv[3], argv[4]));
	} else {
		fputs(usage, stderr);
		return EXIT_USAGE;
	}
	return EXIT_SUCCESS;
}
