#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What goes wrong during a run of several scenarios, as far as it can be done to this machine: the disk fills up,
# and threads are moved off their CPUs. tests/lab/faults.sh does the rest to emulated ones.
. "${0%/*}/lib.sh"

results=$tmp/results
options=(--source=null --sibling=0 --scenario=busy,pause --duration=0.02 --record-burst-stats "${bounds[@]}")
rows() { [ "$(wc -l <"$results/windows.csv")" -gt "$1" ]; } 2>/dev/null
# usable: what is there is whole, can be read, and nothing is left of the scenario.
usable() {
	whole_rows "$results/windows.csv" && whole_rows "$results/bursts.csv" && rows 1 &&
		"$report" check "$results" && "$report" show "$results" >/dev/null && free
}

# ---- a disk that fills up ----

# on_disk PAGES OPTION...: the run on a disk with so many pages.
on_disk() {
	local pages=$1
	shift
	mkdir -p "$tmp/disk"
	mount -t tmpfs -o size=$((4 * pages))k none "$tmp/disk" || return 1
	results=$tmp/disk/results
	forward "${options[@]}" --out="$results" "$@"
}
disk_fills_up() {
	local bad=0 pages
	for pages in 12 13 14; do
		on_disk "$pages" --blocks=500
		failed_with 1 "$results/" "No space left" && usable && [ -z "$(find "$tmp/disk" -name '*.tmp')" ] || bad=1
		umount "$tmp/disk"
		[ $bad -eq 0 ] || { echo "with $pages pages"; return 1; }
	done
}

if mkdir "$tmp/disk" && mount -t tmpfs none "$tmp/disk" 2>/dev/null && umount "$tmp/disk"; then
	at_exit 'umount "$tmp/disk" 2>/dev/null'
	ok "a disk that is large enough: the control" eval 'on_disk 256 --blocks=2 && worked && usable; rc=$?
		umount "$tmp/disk"; [ $rc -eq 0 ]'
	ok "a disk that fills up in mid-run: an error that names a file, and whole rows" disk_fills_up
else
	skip "a disk that is large enough: the control" "mounting needs root"
	skip "a disk that fills up in mid-run" "mounting needs root"
fi
results=$tmp/results

# ---- threads that are moved, as the kernel does with those of a CPU that goes off line ----

# thread PATTERN: of the run, but for its first one; fails where there is none.
thread() {
	local task comm
	for task in /proc/"$pid"/task/*; do
		read -r comm 2>/dev/null <"$task/comm" || continue
		[[ ! $comm =~ ^($1)$ ]] || [ "${task##*/}" = "$pid" ] || { echo "${task##*/}"; return; }
	done
	return 1
}
# move PATTERN: let that thread run anywhere.
move() { local tid; tid=$(thread "$1") && taskset -pc 0,1 "$tid"; }

worker="[a-z]+-worker-?1" # rte-worker-1 in DPDK 22.11, dpdk-worker1 in 23.11
ok "the forwarding thread is moved: an error that names the CPU" eval '
	start "${options[@]}" --blocks=500 --out="$results"
	until_true rows 2 && move "$worker" && finish && failed_with 1 "not bound to CPU 1 any more" && usable'
rm -rf "$results"
ok "a load is moved: the block is measured again" eval '
	start "${options[@]}" --duration=0.2 --windows=5 --out="$results" --taint-state=50
	until_true rows 1 && until_true move dpdk-sibfwd && finish && worked && usable &&
	has "$tmp/err" "let the thread off CPU 0" && has "$results/log.txt" "block 1 is tainted and measured again"'
# The load of the first visit was moved, so all its windows are said not to have been as asked, and no others.
tainted() { awk -F , 'NR > 1 { print ($8 == 1) == ($12 ~ /state/ && $11 == 1) }' "$1" | sort -u; }
ok "and no window of its visit is clean" eval 'is "$(tainted "$results/windows.csv")" 1 "the rows"'
rm -rf "$results"
ok "nor are they on stdout" eval '
	start "${options[@]}" --duration=0.2 --windows=5 --format=csv --out="$results" --taint-state=50
	until_true rows 1 && until_true move dpdk-sibfwd && finish && worked && cmp "$tmp/out" "$results/windows.csv" &&
	is "$(tainted "$tmp/out")" 1 "the rows"'

end_tests
