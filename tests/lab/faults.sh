#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# What may go wrong with a machine while dpdk-sibfwd runs an experiment on it, inside an emulated one: the clock
# is set, CPUs go off line, others use the sibling, the module is unloaded. The first run is the control, without
# a fault. Nothing here depends on how fast anything is. TAP.
about=faults
. /lib/lab/guest.sh
sys=/sys/devices/system/cpu
dir=/tmp/faults
leases=/sys/class/misc/sibidle/leases
# Of the causes of taint only that of the sibling is asked here, and it only where it was wrong most of the time.
bounds=$(for cause in irqs ctxsw steal smi unsaturated missed nombuf freq; do echo "--taint-$cause=1e11"; done)

# start OPTION...: a run in the background that measures on CPU 2, with CPU 3 as the sibling.
start() {
	rm -rf $dir
	dpdk-sibfwd -l 0,2 --no-huge -m 128 --no-pci --no-telemetry -- --source=null --sibling=3 --force --settle=0 \
		--warmup=0 --duration=0.1 --windows=8 --out=$dir $bounds --taint-state=50 "$@" >/tmp/out 2>/tmp/err &
	pid=$!
}

finish() {
	wait $pid
	rc=$?
}

# after CONDITION...: wait until it holds; fails where the run ends before.
after() {
	until "$@"; do
		kill -0 $pid || return 1
		usleep 10000
	done 2>/dev/null
}

rows() { [ ! -e $dir/windows.csv ] && echo 0 || echo $(($(wc -l <$dir/windows.csv) - 1)); }
measured() { [ "$(rows)" -ge "$1" ]; } # a number of windows
leased() { [ -n "$(cat $leases)" ]; }

# windows SCENARIO: number and taint of its rows
windows() { awk -F , -v scenario="$1" 'NR > 1 && $5 == scenario { print NR - 1, $12 }' $dir/windows.csv; }
# What no run may leave behind; the lock ends with its holder, and the next run takes it.
gone() {
	grep . $sys/cpu3/cpuidle/state*/disable $sys/cpu*/online | diff /tmp/before - &&
		[ ! -e /run/sibfwd/journal ] && ! pidof sibfwd-restore && { [ ! -e $leases ] || ! leased; }
}

# ended CODE WORDS: with this exit code, the words on stderr, and results that can be used.
ended() {
	[ $rc -eq "$1" ] || { echo "exit code $rc"; return 1; }
	grep -e "$2" /tmp/err || [ -z "$2" ] || return 1
	sibfwd-report check $dir && sibfwd-report show $dir >/dev/null
}

# tainted_from ROW: there are later rows, and all of them are tainted.
tainted_from() {
	awk -F , -v from="$1" 'NR - 1 > from { n++; if ($12 == "state") t++; else print } END { exit !(n > 0 && t == n) }' \
		$dir/windows.csv
}

insmod /lib/lab/sibidle_testdrv.ko
# What runs here stays off the measured core.
taskset -p 3 $$ >/dev/null
grep . $sys/cpu3/cpuidle/state*/disable $sys/cpu*/online >/tmp/before

# ---- nothing ----

start --scenario=on,as-is --windows=2
finish
ok "the control: done, no window is tainted, no warning" eval 'ended 0 && [ "$(rows)" -eq 8 ] &&
	[ -z "$(cut -d , -f 12 $dir/windows.csv | tail -n +2 | tr -d "\n")" ] && ! grep "clock was set" /tmp/err && gone'

# ---- the clock ----

start --scenario=on,as-is --blocks=2 --windows=2
after measured 2
date -s "@$(($(date +%s) + 3600))" >/dev/null
after measured 8
date -s "@$(($(date +%s) - 3600))" >/dev/null
finish
ok "the clock is set: done, and all identities hold" eval 'ended 0 && [ "$(rows)" -eq 16 ] && gone'
ok "forth and back, which is said once each" eval '[ $(grep -c "clock was set" /tmp/err) -eq 2 ] &&
	grep "set forward by 3[56]..\.. s" /tmp/err && grep "set back by 3[56]..\.. s" /tmp/err'
ok "the windows are as long as they were, and begin one after the other" eval '
	tail -n +2 $dir/windows.csv | cut -d , -f 3 | sort -c && awk -F , "NR > 1 {
		split(\$3, t, /[T:Z]/); now = 3600 * t[2] + 60 * t[3] + t[4]
		if (\$21 > 1e11 || (NR > 2 && (now - last + 86400) % 86400 > 100)) { print; bad = 1 }
		last = now } END { exit bad }" $dir/windows.csv'

# ---- CPUs off line ----

start --scenario=on,as-is
after measured 1
echo 0 >$sys/cpu3/online
seen=$(rows)
finish
echo 1 >$sys/cpu3/online
ok "the sibling goes off line: an error that says so" ended 1 "on: CPU 3 is off line"
ok "every window that began after that is tainted" tainted_from $((seen + 1))
ok "and the machine is as before" gone

start --scenario=on,as-is
after measured 1
echo 0 >$sys/cpu2/online
seen=$(rows)
finish
echo 1 >$sys/cpu2/online
ok "the measured CPU goes off line: an error that says so" ended 1 "not bound to CPU 2 any more"
ok "and no window after that" [ "$(rows)" -le $((seen + 1)) ]
ok "and the machine is as before" gone

start --scenario=offline,as-is --windows=5
after measured 1
echo 1 >$sys/cpu3/online
finish
ok "somebody puts an offline sibling on line: measured again" eval 'ended 0 "after a visit offline: CPU 3 is on line" &&
	grep "block 1 is tainted and measured again" $dir/log.txt && gone'
ok "all windows of that visit are tainted" eval 'awk -F , "NR > 1 && (\$8 == 1) != (\$12 ~ /state/) { print; bad = 1 }
	END { exit bad }" $dir/windows.csv'

# ---- the sibling is somebody else's ----

start --scenario=on,as-is
after measured 1
taskset 8 sh -c 'while :; do :; done' &
hog=$!
finish
kill -KILL $hog
ok "the sibling is busy: no visit begins, which is an error" eval 'ended 1 "on: CPU 3 did not idle so" && gone'
ok "the windows of the visit before are tainted" eval 'windows on | grep state'
ok "as-is asks for nothing" eval 'windows as-is | grep . && ! windows as-is | grep state'

start --scenario=on,as-is --windows=2
after measured 1
taskset 8 sh -c 'while :; do /bin/busybox true; usleep 1; done' &
hog=$!
finish
kill -KILL $hog
ok "somebody keeps waking it: measured to the end, and tainted" eval 'ended 0 && windows on | tail -n 1 | grep state &&
	grep "block 1 is tainted and measured again" $dir/log.txt && ! windows as-is | grep state && gone'

# ---- the module ----

start --scenario=stock,as-is --windows=4
after leased
rmmod sibidle 2>/tmp/refusal
refused=$?
finish
ok "a module with a lease is not unloaded" eval '[ $refused -ne 0 ] && cat /tmp/refusal'
ok "and the run is as without" eval 'ended 0 && [ "$(rows)" -eq 16 ] && ! windows stock | grep state && gone'

start --scenario=stock,as-is --windows=4
after leased
until rmmod sibidle 2>/dev/null; do :; done
finish
ok "unloaded between two visits: an error, not a skip" eval 'ended 1 "stock: .*sibidle.ko is not loaded" && gone'
ok "and the windows until then are clean" eval 'windows stock | grep . && ! windows stock | grep state'

for scenario in stock keep clear; do
	start --scenario=$scenario,as-is
	finish
	ok "unloaded before the run: $scenario is skipped" eval '[ $rc -eq 4 ] &&
		grep "$scenario: .*sibidle.ko is not loaded" /tmp/err && [ ! -e $dir ] && gone'
done
insmod /lib/sibfwd/sibidle.ko

echo 1 >/sys/module/sibidle_testdrv/parameters/unregister
rmmod sibidle_testdrv
echo "1..$n"
exit $failed
