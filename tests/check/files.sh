# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rpma authors
#
# Read by the checks: goes to the top of the tree and tells its files apart.
# A check is a pipe of filters that end in fail(): a filter that lets nothing
# through is no failure, so pipefail is off.

set -eu
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."

# Every file of the project. Without git, every file that is there.
tree_files()
{
	if git ls-files -- . 2>/dev/null | grep -q .; then
		git ls-files -- . | while IFS= read -r file; do
			[[ ! -f $file ]] || echo "$file"
		done
	else
		find . -path ./.git -prune -o -path ./.build -prune -o \
			-type f -printf '%P\n' | sort
	fi
}

c_files()
{
	tree_files | grep -E '\.(c|h|hpp|cc)$'
}

is_script()
{
	local first

	IFS= read -r first <"$1" || true
	[[ $first == '#!'*sh || $first == '#!'*bash ]]
}

scripts()
{
	tree_files | while IFS= read -r file; do
		case $file in
		*.c | *.h | *.md | *.txt | *.[37]) ;;
		*.sh) echo "$file" ;;
		*) ! is_script "$file" 2>/dev/null || echo "$file" ;;
		esac
	done
}

# header_functions FILE...: functions declared in headers, comments aside
header_functions()
{
	cat "$@" | sed -e 's,/\*.*\*/,,' -e '/^[[:space:]]*\/\?\*/d' |
		tr '\n' ' ' | sed 's/;/;\n/g' | grep -v typedef |
		grep -oE '\brpma_[a-z0-9_]+\(' | tr -d '(' | sort -u
}

# need PROGRAM PACKAGE: ends the check if PROGRAM is not installed
need()
{
	command -v "$1" >/dev/null || exec tests/missing "$1" "$2"
}

# fail WHAT: reads complaints; if there are any, says what they are and exits
fail()
{
	local complaints

	complaints=$(cat)
	[[ -n $complaints ]] || return 0
	echo "$*:"
	echo "$complaints"
	exit 1
}

# finds CHECK WORDS [ARGUMENT...]: a complaint unless the check, given what is
# wrong, fails and says these words
finds()
{
	local check=$1 words=$2 said

	shift 2
	if said=$("$check" "$@" 2>&1); then
		echo "	${check##*/} passes what it should find: $words"
	elif [[ $said != *"$words"* ]]; then
		echo "	${check##*/} does not say: $words"
	fi
}
