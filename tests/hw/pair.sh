# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rpma authors
#
# Read by "run": the steps between two hosts. In each step the server starts a
# program and says at which port, the client runs the other end, and both say
# how the programs ended. "run" sets the variables and has the functions that
# are not here.
#
# shellcheck disable=SC2154 # set by "run"

# The steps: migration CLIENT SERVER, an echo on verbs or librpma_rt with every
# byte compared; echo POLL CONNECTIONS DEPTH SIZE, of the example; perftest.
pair_steps()
{
	cat <<-END
	migration.verbs.verbs
	migration.verbs.migrated
	migration.migrated.verbs
	migration.migrated.migrated
	echo.adaptive.1.1.64
	echo.adaptive.4.16.64
	echo.adaptive.4.16.4096
	echo.adaptive.2.4.1048576
	echo.manual.1.1.64
	echo.manual.4.16.64
	echo.manual.4.16.4096
	ib_send_lat
	ib_write_lat
	ib_read_lat
	ib_atomic_lat
	ib_send_bw
	ib_write_bw
	ib_read_bw
	END
}

# pair_program SIDE STEP PORT: one end, in place of this shell
pair_program()
{
	local side=$1 step part options=()

	IFS=. read -ra part <<<"$2"
	step=${part[0]}
	case $step in
	migration)
		[[ $side == server ]] ||
			program "migration_${part[1]}" client "$server" "$3" \
				"$seconds"
		program "migration_${part[2]}" server "$address"
		;;
	echo)
		options=("--poll=${part[1]}" --connections "${part[2]}"
			--depth "${part[3]}" --size "${part[4]}")
		[[ $side == server ]] ||
			program rt-echo client "${options[@]}" --seconds \
				"$seconds" --address "$server" --port "$3"
		program rt-echo server "${options[@]}" --address "$address" \
			--port 0
		;;
	*)
		options=(-F -d "$device" ${gid:+-x "$gid"} -p "$3" -n 1000)
		[[ $step != *_lat || $step == *atomic* ]] || options+=(-s 64)
		[[ $side == server ]] || options+=("$server")
		program "$step" "${options[@]}"
		;;
	esac
}

# pair_start SIDE STEP PORT: in the background, output in $work/step; sets "pid"
pair_start()
{
	(
		exec {to}>&- {from}<&-
		pair_program "$@"
	) >"$work/step" 2>&1 </dev/null &
	pid=$!
}

# pair_await SECONDS: how the program ended; if it does not end, it is killed
pair_await()
{
	local tries

	for ((tries = 0; tries < $1 * 20; tries++)); do
		kill -0 "$pid" 2>/dev/null || break
		sleep 0.05
	done
	kill -KILL "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
}

# pair_port STEP: prints where the server listens; fails while it does not
pair_port()
{
	local at=$((port + 1))

	case $1 in
	ib_*)
		grep -qiE ": [0-9A-F]+:$(printf %04X "$at") [0-9A-F]+:0000 0A " \
			/proc/net/tcp /proc/net/tcp6 2>/dev/null && echo "$at"
		;;
	*)
		sed -n -E 's/^(server: .* )?port //p' "$work/step" | grep .
		;;
	esac
}

# pair_words: the last line of the program
pair_words()
{
	tail -n 1 "$work/step" | tr -cd '[:print:]' | cut -c 1-300
}

# pair_serve STEP: what the client asks for
pair_serve()
{
	local pid at='' tries

	if ! pair_steps | grep -qxF -- "$1"; then
		tell "failed: there is no step \"$1\""
		return
	fi
	say "step $1"
	pair_start server "$1" $((port + 1))
	for ((tries = 0; tries < 1200; tries++)); do
		at=$(pair_port "$1") && break
		kill -0 "$pid" 2>/dev/null || break
		sleep 0.05
	done
	if [[ ! $at ]]; then
		pair_await 0
		tell "failed: the server's program does not listen: $(pair_words)"
		return
	fi
	tell "ready $at"
	if ! hear 120 || [[ $line != "ended" ]]; then
		pair_await 0
		lost
	fi
	[[ $1 != echo.* ]] || kill -INT "$pid" 2>/dev/null
	if pair_await 60; then
		tell passed
	else
		tell "failed: the server's program: $(pair_words)"
	fi
}

# pair_figures STEP: what the client's program measured
pair_figures()
{
	case $1 in
	migration.*) sed -n 's/^rate //p' "$work/step" ;;
	echo.*)
		sed -n 's/.* messages_per_second=\([0-9]*\) p50_ns=\([0-9]*\) p99_ns=\([0-9]*\)$/\1 \2 \3/p' \
			"$work/step" |
			awk '{ printf "%.1f Kops/s, half of them within %.1f us, 99 %% within %.1f us\n",
				$1 / 1000, $2 / 1000, $3 / 1000 }'
		;;
	*_lat)
		awk '/^ *[0-9]+ +[0-9]+ +[0-9.]+/ {
			printf "%d bytes: typical %s us, average %s us, 99 %% within %s us\n",
				$1, $5, $6, $8 }' "$work/step"
		;;
	*_bw)
		awk '/^ *[0-9]+ +[0-9]+ +[0-9.]+/ {
			printf "%d bytes: %s MB/s\n", $1, $4 }' "$work/step"
		;;
	esac
}

# pair_step STEP: prints its lines; fails if the step does
pair_step()
{
	local pid status=0

	if [[ $1 == ib_* && ! -e $here/bin/$1 ]]; then
		echo "skipped  $1  the folder was made without perftest"
		return 0
	fi
	tell "step $1"
	hear 120 || lost
	if [[ ! $line =~ ^ready\ [0-9]{1,5}$ ]]; then
		echo "FAILED   $1  $line"
		return 1
	fi
	pair_start client "$1" "${line#ready }"
	pair_await 60 || status=$?
	tell ended
	hear 120 || lost
	if [[ $status == 0 && $line == passed ]]; then
		echo "passed   $1  $(pair_figures "$1")"
		return 0
	fi
	echo "FAILED   $1  client: status $status; server: $line"
	tail -n 6 "$work/step" | tr -cd '[:print:]\n' | cut -c 1-300 |
		sed 's/^/  | /'
	return 1
}

# pair_ask: the lines of all steps
pair_ask()
{
	local step reason="" begun=$SECONDS

	for step in $(pair_steps | grep -E -- "$steps"); do
		((SECONDS - begun <= pair_limit)) || reason="the time is over"
		if [[ $reason ]]; then
			echo "not run  $step  $reason"
			continue
		fi
		say "step $step"
		pair_step "$step" || [[ $step != migration.verbs.verbs ]] || {
			reason="no connection by RDMA"
			say "TCP reaches the other host, RDMA does not: RoCE" \
				"v2 needs UDP port 4791 both ways"
		}
	done
}
