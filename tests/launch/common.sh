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
