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

# header_inlines FILE...: functions defined in headers, inline
header_inlines()
{
	cat "$@" | grep -A1 '^\(RPMA_RT_MUST_CHECK \)\?RPMA_RT_INLINE' |
		grep -oE '\brpma_rt_[a-z0-9_]+\(' | tr -d '(' | sort -u
}

# ctest_names BUILD: tests without flavour, each with and without what follows its
# last dots
ctest_names()
{
	ctest --test-dir "$1" -C vm -N |
		sed -n 's/^ *Test *#[0-9]*: [a-z]*\.//p' |
		awk '{ print; while (sub(/\.[^.]*$/, "")) print }' | sort -u
}

# test_cases: the functions of tests
test_cases()
{
	git ls-files -- 'tests/*.c' 'tests/*.cc' | xargs -d '\n' \
		sed -nE 's/^[a-z].*[ *]([a-z_0-9]+__[A-Za-z_0-9]+|[a-z]+(_[a-z]+)+)\(.*/\1/p
			s/^[A-Z_]+\(([A-Za-z_0-9]+)[,)].*/\1/p' |
		sort -u
}

# object_symbols TREE OBJECTS [NM-OPTION...]: "file letter name" of each symbol of
# those objects below OBJECTS that were made of the .c files of TREE
object_symbols()
{
	local tree=$1 objects=$2

	shift 2
	(cd "$tree" && find . -name '*.c' -printf '%P\n') | sort |
		while IFS= read -r file; do
			[[ ! -e $objects/$file.o ]] ||
				printf '%s\0' "$objects/$file.o"
		done | xargs -0 nm -A "$@" |
		awk -v skip="${#objects}" '{
			file = substr($0, skip + 2)
			sub(/\.o:.*/, "", file)
			print file, $(NF - 1), $NF
		}'
}

# need_objects TREE OBJECTS: ends the check if OBJECTS has no symbols of TREE
need_objects()
{
	[[ -d $2 ]] || {
		echo "build first: there are no objects in $2" >&2
		exit 1
	}
	[[ $(object_symbols "$1" "$2" --defined-only | wc -l) -gt 20 ]] || {
		echo "no functions were found in $2: they cannot be judged" >&2
		exit 1
	}
}

# quoted: of lines "row TAB text" what stands in backquotes, after its row
quoted()
{
	awk -F'\t' '{
		n = split($2, part, "`")
		for (i = 2; i <= n; i += 2)
			print $1 "\t" part[i]
	}'
}

# missing KIND FILE: rows that name what is not in FILE
missing()
{
	awk -F'\t' -v kind="$1" -v file="$2" '
		BEGIN { while ((getline < file) > 0) known[$0] = 1 }
		!($2 in known) { print "\t" $1 ": no " kind " " $2 }'
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
