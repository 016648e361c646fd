# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rpma authors
#
# Read by the tests of rpma-loopback, with the build directory as their argument.

set -euo pipefail

here=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
command -v ibv_devinfo >/dev/null ||
	exec "$here/../missing" ibv_devinfo ibverbs-utils
build=$(cd "${1:?usage: $0 BUILD}" && pwd)
# shellcheck disable=SC2034 # by the tests
launch=$build/src/launch/rpma-loopback
# shellcheck disable=SC2034 # by the tests
programs=$build/tests/launch
# shellcheck disable=SC2034 # by the tests
network=${RPMA_LOOPBACK_NETWORK-} # that no other test has
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset "${!RPMA_LOOPBACK_@}" LD_PRELOAD LD_LIBRARY_PATH
# shellcheck disable=SC2034 # by the tests
failed=0

# complain WORDS: the test goes on, and fails
complain()
{
	echo "FAILED: $*"
	# shellcheck disable=SC2034 # by the tests
	failed=1
}

# gives STATUS WORDS COMMAND...: it exits so, and what it says has these words
gives()
{
	local status=$1 words=$2 got=0 said

	shift 2
	said=$("$@" 2>&1) || got=$?
	[[ $got == "$status" ]] ||
		complain "exit status $got, not $status: $*: $said"
	[[ $said == *"$words"* ]] || complain "does not say \"$words\": $*: $said"
}

# without STATUS WORDS COMMAND...: it exits so, and does not say these words
without()
{
	local status=$1 words=$2 got=0 said

	shift 2
	said=$("$@" 2>&1) || got=$?
	[[ $got == "$status" && $said != *"$words"* ]] ||
		complain "exit status $got, not $status, or \"$words\": $*: $said"
}

# installed LIBRARY: the path of the distribution's
installed()
{
	local path

	path=$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p |
		sed -nE "s/^[[:space:]]*$1 .* => (.*)/\1/p" | head -n 1)
	[[ -n $path ]] || exec "$here/../missing" "$1" rdma-core
	echo "$path"
}

# --- two processes

# is_listened_at PORT: by anybody on this machine
is_listened_at()
{
	grep -qiE ": [0-9A-F]+:$(printf %04X "$1") [0-9A-F]+:0000 0A " \
		/proc/net/tcp /proc/net/tcp6
}

# A TCP port on which nobody listens, below those that are given out.
free_port()
{
	port=$((20000 + RANDOM % 12000))
	while is_listened_at "$port"; do
		port=$((20000 + RANDOM % 12000))
	done
}

# of_link WAY FILE: what a process sent or received over links, as --stats says
# on stderr: no line of the program is before it
of_link()
{
	sed -nE "s/^loopback: .*link to process .*$1 ([^;]*bytes).*/\1/p" "$2"
}

# new_ports: nobody listens, for on_device()
new_ports()
{
	rm -rf "$work/ports"
	mkdir "$work/ports"
}

# on_device COMMAND...: with --stats; rdma_connect() waits for a listener; the
# library in $preload is loaded too
on_device()
{
	LD_PRELOAD=$programs/launch_connect.so${preload:+:$preload} \
		LAUNCH_PORTS=$work/ports timeout 300 "$launch" --stats "$@"
}

# ends SERVER CLIENT [PORT]: two commands, both on_device(). They say what is in
# server, client, and .out beside those, and have to exit with 0. The client
# begins when a program listens at that TCP port.
ends()
{
	local status=0 pid server client

	new_ports
	read -ra server <<<"$1"
	read -ra client <<<"$2"
	on_device "${server[@]}" >"$work/server.out" 2>"$work/server" &
	pid=$!
	while [[ ${3-} ]] && kill -0 "$pid" 2>/dev/null &&
		! is_listened_at "$3"; do
		sleep 0.02
	done
	on_device "${client[@]}" >"$work/client.out" 2>"$work/client" ||
		status=$?
	[[ $status == 0 ]] || kill "$pid" 2>/dev/null || true
	wait "$pid" || status=$?
	return "$status"
}

# two PORT_OPTION COMMAND...: a program as server and client, by ends(); the
# client gets 127.0.0.1 behind the port
two()
{
	local tries status

	for ((tries = 0; tries < 5; tries++)); do
		free_port
		status=0
		ends "${*:2} $1 $port" "${*:2} $1 $port 127.0.0.1" "$port" ||
			status=$?
		# another program took the port in between
		grep -qE "(Couldn't|Unable to) (listen|bind)" "$work"/server{,.out} ||
			return "$status"
	done
	return 1
}

# The two ends agree on what went over the link between them, and it was some.
agree()
{
	local sent received

	sent=$(of_link sent "$work/client")
	received=$(of_link received "$work/client")
	[[ "$sent $received" == *[1-9]*requests* &&
		$sent == "$(of_link received "$work/server")" &&
		$received == "$(of_link sent "$work/server")" ]]
}

# The same, but the client's program ended without waiting for what it sent: it
# may not have taken the answers to that.
agree_but_for_answers()
{
	local end

	for end in client server; do
		sed -i -E 's/, [0-9]+ answers//g' "$work/$end"
	done
	agree
}

# took N FROM TO: TO took N requests at least, and no more than FROM sent
took()
{
	local sent received

	sent=$(of_link sent "$2")
	received=$(of_link received "$3")
	((${received%% *} >= $1 && ${received%% *} <= ${sent%% *}))
}

# got_most N CLIENT SERVER: each end took N requests at least. For programs that
# end when messages are still under way.
got_most()
{
	took "$1" "$2" "$3" && took "$1" "$3" "$2"
}

# got_some N CLIENT SERVER: the same of the server; it may send none itself
got_some()
{
	took "$1" "$2" "$3" && took 0 "$3" "$2"
}

# judged JUDGE...: how the last two() ended, and what the judge says of it
judged()
{
	if [[ $ended == 0 ]] && "$@"; then
		echo "ok: $command"
		return
	fi
	complain "exit status $ended, or figures that differ: $command"
	tail -n 5 "$work"/{server,client}{,.out}
}

# talks PORT_OPTION COMMAND...: two(), and they agree
talks()
{
	command=${*:2} ended=0
	two "$@" || ended=$?
	judged agree
}

# meets SERVER CLIENT [PORT]: ends(), and they agree
meets()
{
	command=$2 ended=0
	ends "$@" || ended=$?
	judged agree
}

# talks_of TURNS PORT_OPTION COMMAND...: two(), and got_most()
talks_of()
{
	command=${*:3} ended=0
	two "${@:2}" || ended=$?
	judged got_most "$1" "$work/client" "$work/server"
}
