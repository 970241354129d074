#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# dpdk-sibfwd with a scenario: applied before the first window, seen in the rows, and given back whatever
# ends the run. On this machine, with what it has: latency limits, and idle states where there are any.
. "${0%/*}/lib.sh"

results=$tmp/results
file=/sys/devices/system/cpu/cpu0/power/pm_qos_resume_latency_us
states=/sys/devices/system/cpu/cpu0/cpuidle
# CPU 0 is the sibling, and with two CPUs the main lcore's too.
settings() { cat "$file" "$states"/state*/disable 2>/dev/null; }
settings >"$tmp/before"
as_before() { settings | diff "$tmp/before" - && [ ! -e /run/sibfwd/journal ]; }
# One that every machine has, and where there are idle states one that writes to sysfs.
scenario=busy
[ ! -e "$states/state0" ] || [ ! -w "$file" ] || scenario=limit:200

# with SCENARIO OPTION...: a short run into $results.
with() {
	local scenario=$1
	shift
	rm -rf "$results"
	forward --source=null --sibling=0 --scenario="$scenario" --out="$results" "$@"
}

# column NAME: of the last row.
column() {
	python3 -c 'import csv, sys
print(list(csv.DictReader(open(sys.argv[1], newline="")))[-1][sys.argv[2]])' \
		"$results/windows.csv" "$1"
}

ok "$scenario is measured under its name" eval 'with $scenario && worked && is "$(column scenario)" $scenario scenario'
ok "it was in force, and is gone" eval 'as_before && has "$results/log.txt" "$scenario applied and verified" \
	"given back"'
ok "environment.json shows the machine before and after, not during" eval '
	jq -e ".before.measured[0].sibling_idle_states == .after.measured[0].sibling_idle_states" \
		"$results/environment.json"'
# Where something else has CPU 0 the rate is not met, and nothing is measured.
ok "a rate of wake-ups is verified, or refused" eval '
	with wake:500; if [ $rc -eq 1 ]; then failed_with 1 "was woken"; else worked; fi && as_before'
ok "--dry-run changes nothing" eval 'rm -rf "$results"
	forward --source=null --sibling=0 --scenario=$scenario --dry-run && has "$tmp/out" $scenario && as_before'
ok "a scenario that the machine lacks is skipped" eval 'with clear; [ -e /dev/sibidle ] ||
	failed_with 4 sibidle.ko && as_before'
ok "a limit without idle states to limit is skipped" eval '[ -e "$states/state0" ] || {
	with limit:200; failed_with 4 "no idle states" && as_before; }'
ok "two siblings cannot have one scenario" eval '[ "$(nproc)" -lt 3 ] || {
	forward -l 0-2 -- --source=ring --nb-cores=2 --scenario=$scenario; failed_with 2 sibling; }'

# One that CPU 0 can enter just now: it may be busy.
last=
[ ! -e "$states/state0/name" ] ||
	last=$(for d in "$states"/state*; do tr 'A-Z +:' 'a-z---' <"$d/name"; done | tail -n 1)
[ -z "$last" ] || with "$last"
if [ -n "$last" ] && ! grep -q "did not idle so" "$tmp/err"; then
	ok "an idle state is held by its name: $last" eval 'worked && as_before &&
		is "$(column scenario)" "$last" scenario && [ -n "$(column sibling_idle_entries)" ]'
else
	skip "an idle state is held by its name" "CPU 0 enters none"
fi

# Ended at any moment, by a signal or by SIGKILL.
for signal in INT TERM KILL; do
	for delay in 0.3 0.8 1.5; do
		ok "SIG$signal after $delay s: given back" eval '
			rm -rf "$results"
			start --source=null --sibling=0 --scenario=$scenario --windows=1000 --out="$results"
			sleep $delay; kill -$signal $pid; finish
			for i in $(seq 200); do as_before >/dev/null && break; sleep 0.02; done; as_before'
	done
done

end_tests
