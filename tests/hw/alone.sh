# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rpma authors
#
# Read by "run": the tests and the benchmarks on one host, whose card is both
# ends. "run" sets the variables and has the functions that are not here.
#
# shellcheck disable=SC2154 # set by "run"

# details LOG: the end of what a test printed, and which of its parts failed
details()
{
	{
		grep -aE '^\[  FAILED  \] [a-z]' "$1" | sort -u | head -n 20
		tail -n 6 "$1"
	} | tr -cd '[:print:]\n' | cut -c 1-300 | sed 's/^/  | /'
}

# verdict NAME STATUS LOG: the lines of a test that had "limit" seconds
verdict()
{
	local parts

	case $2 in
	0)
		parts=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1 tests/p' \
			"$3" | head -n 1)
		echo "passed   $1${parts:+  $parts}"
		grep -aE '^\[  SKIPPED \] [a-z]' "$3" | sort -u |
			sed 's/^\[  SKIPPED \]/  | skipped:/'
		;;
	77)
		echo "skipped  $1  $(grep -ai skipped "$3" | head -n 1 |
			tr -cd '[:print:]' | cut -c 1-300)"
		;;
	124 | 137)
		if ((limit < longest)); then
			echo "not run  $1  the time is over"
		else
			echo "FAILED   $1  no end in $limit s"
			details "$3"
		fi
		;;
	*) echo "FAILED   $1  status $2" && details "$3" ;;
	esac
}

# test_one NAME [VARIABLE=VALUE...] PROGRAM [ARGUMENT...]
test_one()
{
	local name=$1 limit=$((deadline - SECONDS)) status=0 variables=()

	shift
	while [[ $1 == *=* ]]; do
		variables+=("$1")
		shift
	done
	if ((limit <= 0)); then
		echo "not run  $name  the time is over"
		return
	fi
	((limit < longest)) || limit=$longest
	(
		exec {to}>&- {from}<&-
		cd "$work" || exit
		LD_PRELOAD=$preload exec env "${variables[@]}" \
			timeout -k 5 "$limit" "$here/bin/$1" "${@:2}"
	) >"$work/log" 2>&1 </dev/null || status=$?
	verdict "$name" "$status" "$work/log"
}

# two_cpus: of those near the card, or of all that this process may use
two_cpus()
{
	local near

	near=$(cat "/sys/class/infiniband/$device/device/local_cpulist" \
		2>/dev/null) || near=
	for near in $near "$(sed -n 's/^Cpus_allowed_list:\s*//p' \
		/proc/self/status)"; do
		awk -v list="$near" 'BEGIN {
			count = split(list, ranges, ",")
			for (i = 1; i <= count; i++) {
				split(ranges[i] "-" ranges[i], ends, "-")
				for (cpu = ends[1]; cpu <= ends[2]; cpu++)
					print cpu
			}
		}'
	done | while read -r cpu; do
		! taskset -c "$cpu" true 2>/dev/null || echo "$cpu"
	done | head -n 2 | paste -sd ,
}

benchmarks()
{
	local cpus

	cpus=$(two_cpus)
	[[ $cpus == *,* ]] || {
		echo "no figures: they need two CPUs"
		return
	}
	echo "CPUs $cpus, load $(cut -d ' ' -f 1-3 /proc/loadavg);" \
		"the columns: bench/README.md of the sources"
	(
		exec {to}>&- {from}<&-
		LD_PRELOAD=$preload "$here/bench/run" --card --build "$here" \
			--cpus "$cpus" --max-runs 9 --limit "$bench_limit"
	) 2>&1 </dev/null | tr -cd '[:print:]\n'
}

# alone: prints the report
alone()
{
	local deadline=$((SECONDS + test_limit)) words count=0 all
	local longest=$((test_limit / 4)) # of a test

	all=$(wc -l <"$here/list")
	# two hosts of a trial share the ports of this one
	[[ -z $preload ]] || local -x RPMA_LOOPBACK_NETWORK=$$
	while read -ra words; do
		say "test $((++count)) of $all: ${words[0]}"
		test_one "${words[@]}"
	done <"$here/list"
	if ((bench_limit > 0)); then
		say "benchmarks, for $bench_limit s at most"
		benchmarks
	fi
}
