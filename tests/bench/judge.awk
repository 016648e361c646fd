# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rpma authors
#
# Judges one figure: reads pairs of runs, "value unit value unit", or "value
# unit" where there is no baseline, and prints the line of tests/bench/run.
# README.md has the rule. Exit status: 0 ok or without a target, 1 MISS, 2 no
# figure, with the reason on stderr, 3 undecided. Variables: name, target,
# against (1: the baseline is another build), lost_file ("percent distance" of
# each pair), busy_above (percent).

function sort(array, n,   i, j, value) {
	for (i = 2; i <= n; i++) {
		value = array[i]
		for (j = i - 1; j > 0 && array[j] > value; j--)
			array[j + 1] = array[j]
		array[j + 1] = value
	}
}

function at(array, n, share) {
	return array[int((n - 1) * share + 0.5) + 1]
}

# The chance of at most k heads in n tosses of a coin with that chance of one.
function at_most(k, n, chance,   i, term, sum) {
	term = (1 - chance) ^ n
	for (i = 0; i <= k; i++) {
		sum += term
		term *= (n - i) / (i + 1) * chance / (1 - chance)
	}
	return sum
}

# Is a ratio on the wrong side of the target? Compared as it is printed, with
# two decimals: less is what the clock cannot tell.
function is_wrong(value) {
	if (target ~ /^>=/)
		return value + 0.005 < limit
	return value - 0.005 > limit
}

# MISS: the whole middle half of all possible ratios is on the wrong side, that
# is three in four of them or more. How many of ours are tells, with 99 %
# confidence, whether that is so; "ok" wants our median on the right side too.
function decide(n,   i, wrong) {
	if (target == "-")
		return "-"
	for (i = 1; i <= n; i++)
		wrong += is_wrong(ratio[i])
	if (2 * wrong <= n && at_most(wrong, n, 0.75) <= 0.01)
		return "ok"
	if (1 - at_most(wrong - 1, n, 0.75) <= 0.01)
		return "MISS"
	return "undecided"
}

function read_lost(   line, word, n) {
	while ((getline line < lost_file) > 0) {
		split(line, word, " ")
		lost[++n] = word[1] + 0
		apart[n] = word[2] + 0
	}
	sort(lost, n)
	sort(apart, n)
	return n
}

# Ends without a verdict: a comparison with what is no number would be "ok".
function refuse(why) {
	print "judge.awk: " name ": " why >"/dev/stderr"
	refused = 1
	exit 2
}

function is_number(word) {
	return word ~ /^-?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?$/
}

# The ratio of a figure to a figure that may be 0.
function divide(value, by) {
	if (by != 0)
		return value / by
	if (value != 0 && target != "-" && !is_cost)
		refuse("a baseline of 0")
	return value == 0 ? 1 : 1e9
}

BEGIN {
	if (target !~ /^([<>]=[0-9.]+|-)$/)
		refuse("no target: \"" target "\"")
	limit = substr(target, 3) + 0
}

NF != 2 && NF != 4 || NR > 1 && NF != fields {
	refuse("no pair: \"" $0 "\"")
}

!is_number($1) || NF == 4 && !is_number($3) {
	refuse("no number: \"" $0 "\"")
}

{
	fields = NF
	a[NR] = $1
	a_unit = $2
	has_b = NF >= 4
	b[NR] = $3
	b_unit = $4
	# a cost: less is better, and the ratio says how much cheaper it is
	is_cost = against && a_unit ~ /^([nmu]?s|%|instructions)$/
	if (is_cost)
		ratio[NR] = divide($3, $1)
	else
		ratio[NR] = has_b ? divide($1, $3) : $1
}

END {
	if (refused)
		exit 2
	if (NR == 0)
		refuse("no pair")
	looks = read_lost()
	verdict = decide(NR)
	sort(a, NR)
	sort(b, NR)
	sort(ratio, NR)
	printf "%-33s %8.2f %-6s ", name, at(a, NR, 0.5), a_unit
	if (has_b)
		printf "%8.2f %-6s %5.2f ", at(b, NR, 0.5), b_unit,
			at(ratio, NR, 0.5)
	else
		printf "%8s %-6s %5s ", "-", "", "-"
	printf "[%.2f %.2f] %-7s %4.0f ns %3d  %s", at(ratio, NR, 0.25),
		at(ratio, NR, 0.75), target, at(apart, looks, 0.5), NR, verdict
	# one disturbed look in four is the machine, not its load
	print(at(lost, looks, 0.75) > busy_above ? " (busy)" : "")
	if (verdict == "MISS")
		exit 1
	if (verdict == "undecided")
		exit 3
}
