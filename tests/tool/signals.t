#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# dpdk-sibfwd: SIGINT and SIGTERM end a run in good order at whatever moment they come, and what
# was measured until then is kept. A second signal kills. After SIGKILL no row is half.
. "${0%/*}/lib.sh"

results=$tmp/results

# begin [EAL-OPTION... --] OPTION...: a run into $results.
begin() {
	rm -rf "$results"
	start "$@" --out="$results"
}

# What result.json says of it.
interrupted_flag() {
	python3 - "$results/result.json" <<'PYTHON'
import json, sys
result = json.load(open(sys.argv[1]))
print(result["interrupted"])
PYTHON
}

# The files of a run that was interrupted: whole, and in agreement with each other. A run without
# a row leaves none.
kept() {
	[ -e "$results" ] || return 0
	whole_rows "$results/windows.csv" &&
		is "$(find "$results" -name '*.tmp*')" "" "left over" &&
		is "$(interrupted_flag)" True "interrupted" &&
		"$report" show "$results" >/dev/null && "$report" check "$results"
}

# orderly SIGNAL: the run ended in good order; or, before it could look after signals, by it.
orderly() {
	finish || return 1
	if [ "$rc" -eq $((128 + $(kill -l "$1"))) ]; then
		is "$(<"$tmp/err")" "" stderr && is "$(ls -d "$results" 2>/dev/null)" "" "left behind"
		return
	fi
	failed_with 1 interrupted && kept
}

# rows: how many there are, without the header.
rows() {
	tail -n +2 "$results/windows.csv" 2>/dev/null | wc -l
}

some_rows() {
	[ "$(rows)" -gt 0 ]
}

# ---- at any moment ----

after() {
	local signal=$1 delay=$2
	shift 2
	begin --source=null --settle=0.1 --warmup=0.2 --duration=0.1 --windows=1000 "$@"
	sleep "$delay"
	kill -s "$signal" "$pid"
	orderly "$signal"
}

for signal in INT TERM; do
	for delay in 0.001 0.01 0.02 0.05 0.1 0.15 0.2 0.25 0.3 0.4 0.5 0.6 0.7 0.85 1 1.2 1.5; do
		ok "SIG$signal after $delay s" after $signal $delay
	done
done

stdout_is_whole() {
	local format=$1 delay
	for delay in 0.3 0.6 0.9 1.2; do
		after INT $delay --format="$format" --duration=0.01 --record-burst-stats || return 1
		[ -s "$tmp/out" ] || continue
		if [ "$format" = csv ]; then
			whole_rows "$tmp/out" && cmp "$tmp/out" "$results/windows.csv"
		else
			python3 -m json.tool "$tmp/out" >/dev/null
		fi || return 1
	done
}

ok "what csv had for stdout is whole" stdout_is_whole csv
ok "what json has for stdout is whole" stdout_is_whole json

# A signal close to the end: the exit code and the results agree on whether it came in time.
at_the_end() {
	local delay
	for delay in 0.30 0.34 0.38 0.42 0.46 0.50 0.55 0.60 0.70 0.80; do
		begin --source=null --duration=0.1 --windows=2
		sleep $delay
		kill -s INT "$pid" 2>/dev/null
		finish || return 1
		if [ "$rc" -eq 0 ]; then
			is "$(interrupted_flag)" False "interrupted" &&
				is "$(rows)" 2 "the number of rows" && "$report" check "$results"
		elif [ "$rc" -ne 130 ] || [ -e "$results/result.json" ]; then
			failed_with 1 interrupted && kept
		fi || { echo "after $delay s"; return 1; }
	done
}

ok "a signal close to the end comes in time or does not, and nothing between" at_the_end

# ---- in every phase ----

# ended_by SIGNAL ROWS: so many rows are kept.
ended_by() {
	kill -s "$1" "$pid"
	finish && failed_with 1 interrupted && kept && is "$(rows)" "$2" "the number of rows"
}

while_settling() {
	begin --source=null --settle=1000
	until_true test -e "$results/columns.json" && ended_by "$1" 0
}

while_warming_up() {
	begin --source=null --warmup=1000
	until_true test -e "$results/columns.json" && sleep 1 && ended_by "$1" 1 &&
		is "$(values "$results/windows.csv" window warmup)" "0 1" "the window"
}

in_first_window() {
	begin --source=null --duration=1000 --windows=2
	until_true test -e "$results/columns.json" && sleep 1 && ended_by "$1" 1
}

in_only_window() {
	begin --source=null --duration=1000
	until_true test -e "$results/columns.json" && sleep 1 && ended_by "$1" 1
}

in_last_window() {
	begin --source=null --warmup=0.1 --duration=1000
	until_true some_rows && sleep 0.5 && ended_by "$1" 2
}

with_statistics() {
	begin --source=null --duration=1000 --stats-period=1
	until_true grep -q RX-packets "$tmp/err" || return 1
	kill -s "$1" "$pid"
	finish && ended 1 && has "$tmp/err" "dpdk-sibfwd: interrupted" && kept
}

while_nothing_comes() {
	begin --vdev=net_ring0 --vdev=net_ring1 -- --duration=1000 --windows=2
	until_true test -e "$results/columns.json" && sleep 1 && ended_by "$1" 1
}

for signal in INT TERM; do
	ok "SIG$signal while it settles" while_settling $signal
	ok "SIG$signal in the warm-up" while_warming_up $signal
	ok "SIG$signal in the first window" in_first_window $signal
	ok "SIG$signal in the only window" in_only_window $signal
	ok "SIG$signal in the last window" in_last_window $signal
	ok "SIG$signal between periodic statistics" with_statistics $signal
	ok "SIG$signal while nothing is received" while_nothing_comes $signal
done

# The socket of a server that nobody connects to: its link stays down.
waiting_for_link() {
	begin "--vdev=net_memif0,role=server,socket-abstract=no,socket=$tmp/memif" -- \
		--duration=1000
	until_true test -e "$tmp/memif" && sleep 1 || return 1
	kill -s "$1" "$pid"
	finish && failed_with 1 "interrupted before the first window" &&
		is "$(ls -d "$results" 2>/dev/null)" "" "left behind"
}

forward --vdev=net_memif0 -- --max-pkt-len=65535
for signal in INT TERM; do
	if grep -q "net_memif0.*parse" "$tmp/err"; then
		skip "SIG$signal while it waits for a link" "no driver without a link here"
	else
		ok "SIG$signal while it waits for a link" waiting_for_link $signal
	fi
done

# A capture that does not come: nobody has opened the pipe for writing, or nobody writes.
waiting_for_capture() {
	local signal=$1 held=$2
	rm -f "$tmp/pipe"
	mkfifo "$tmp/pipe"
	[ "$held" = yes ] && exec 9<>"$tmp/pipe"
	begin --source=pcap:"$tmp/pipe"
	[ "$held" = yes ] && exec 9<&- 9<>"$tmp/pipe"
	until_true grep -q . /proc/"$pid"/comm && sleep 0.5
	kill -s "$signal" "$pid"
	finish
	local failure=$?
	[ "$held" = yes ] && exec 9<&-
	[ $failure -eq 0 ] && failed_with 1 "$tmp/pipe" && is "$(ls "$results" 2>/dev/null)" "" results
}

for signal in INT TERM; do
	ok "SIG$signal while it opens a capture that nobody writes" waiting_for_capture $signal no
	ok "SIG$signal while it reads a capture that nobody writes" waiting_for_capture $signal yes
done

# Nobody reads what it prints: it waits in the middle of a row.
writing_to_nobody() {
	rm -f "$tmp/unread"
	mkfifo "$tmp/unread"
	exec 9<>"$tmp/unread"
	rm -rf "$results"
	command_for --source=null --format=csv --duration=0.001 --windows=100000 --out="$results"
	env --default-signal=INT,TERM "${argv[@]}" >"$tmp/unread" 2>"$tmp/err" 9>&- &
	pid=$!
	: >"$tmp/out"
	until_true grep -q pipe_w "/proc/$pid/wchan"
	kill -s "$1" "$pid"
	finish
	local failure=$?
	exec 9<&-
	[ $failure -eq 0 ] && ended 1 && is "$(errors | wc -l)" 1 "the number of errors" && kept
}

ok "SIGINT while nobody reads stdout" writing_to_nobody INT
ok "SIGTERM while nobody reads stdout" writing_to_nobody TERM

# ---- two signals ----

two_at_once() {
	local first second delay
	for first in INT TERM; do
		for second in INT TERM; do
			for delay in 0.1 0.4 0.8; do
				begin --source=null --warmup=0.1 --duration=0.1 --windows=1000
				sleep $delay
				kill -s $first "$pid"
				kill -s $second "$pid" 2>/dev/null
				finish || return 1
				case $rc in
				1) failed_with 1 interrupted && kept || return 1 ;;
				130 | 143) ;;
				*) ended 1 || return 1 ;;
				esac
				[ ! -e "$results/windows.csv" ] || whole_rows "$results/windows.csv" ||
					return 1
			done
		done
	done
}

ok "two signals at once: it ends in good order or by one of them" two_at_once

# hold TID: stop one thread of the run, and no other, until the run is over.
hold() {
	python3 - "$1" <<'PYTHON'
import ctypes, os, sys
PTRACE_SEIZE, PTRACE_INTERRUPT, WALL = 0x4206, 0x4207, 0x40000000
tid = int(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long] * 4
for request in PTRACE_SEIZE, PTRACE_INTERRUPT:
    if libc.ptrace(request, tid, 0, 0) != 0:
        sys.exit(os.strerror(ctypes.get_errno()))
while True:
    _, status = os.waitpid(tid, WALL)
    if not os.WIFSTOPPED(status):
        break
    print("held", flush=True)
PYTHON
}

# stuck_run: one whose forwarding thread does not come out of its driver.
stuck_run() {
	local task
	begin --source=null --duration=0.2 --windows=100000
	until_true some_rows || return 1
	rm -f "$tmp/held"
	for task in /proc/"$pid"/task/*; do
		grep -q worker "$task/comm" || continue
		hold "${task##*/}" >"$tmp/held" 2>&1 &
		holder=$!
	done
	until_true test -s "$tmp/held"
	has "$tmp/held" held
}

stuck_is_told() {
	stuck_run || return 1
	[ "$1" = none ] || kill -s "$1" "$pid"
	finish || return 1
	kill "$holder" 2>/dev/null
	failed_with 1 "lcore 1 (CPU 1) has not answered" && kept
}

second_kills() {
	stuck_run || return 1
	kill -s "$1" "$pid"
	sleep 0.5
	kill -s "$2" "$pid"
	finish || return 1
	kill "$holder" 2>/dev/null
	ended $((128 + $(kill -l "$2"))) && whole_rows "$results/windows.csv"
}

begin --source=null --duration=1000
sleep 0.5
hold "$pid" >"$tmp/held" 2>&1 &
until_true test -s "$tmp/held" >/dev/null
kill -9 "$pid"
finish >/dev/null
if grep -q held "$tmp/held"; then
	ok "a forwarding thread that is stuck is told" stuck_is_told none
	ok "SIGINT ends a run that is stuck" stuck_is_told INT
	ok "SIGINT twice kills a run that is stuck" second_kills INT INT
	ok "SIGTERM twice kills a run that is stuck" second_kills TERM TERM
	ok "SIGINT and SIGTERM kill a run that is stuck" second_kills INT TERM
	ok "SIGTERM and SIGINT kill a run that is stuck" second_kills TERM INT
else
	for text in "is told" "ends by SIGINT" "is killed by a second signal"; do
		skip "a forwarding thread that is stuck $text" "threads cannot be held"
	done
fi

# ---- SIGKILL ----

killed() {
	local delay
	for delay in 0.1 0.3 0.4 0.5 0.6 0.7 0.8 0.9; do
		begin --source=null --duration=0.001 --windows=100000 --record-burst-stats
		sleep $delay
		kill -9 "$pid"
		finish
		is "$rc" 137 "the exit code" || return 1
		[ -s "$results/windows.csv" ] || continue
		whole_rows "$results/windows.csv" && "$report" show "$results" || return 1
		[ ! -s "$results/bursts.csv" ] || whole_rows "$results/bursts.csv" || return 1
	done
	[ "$(rows)" -gt 0 ]
}

ok "after SIGKILL all rows are whole and can be shown" killed

after_killed() {
	forward --source=null
	worked
}

ok "after SIGKILL another run starts" after_killed

end_tests
