#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# idlectl inside an emulated machine: scenarios take, are verified, and are gone afterwards. TAP.
#
#   idlectl.sh bochs    intel_idle and kernel IBRS
#   idlectl.sh qemu     the test driver of tests/lab/modules, sysfs and hotplug only
about=idlectl
. /lib/lab/guest.sh

# run SCENARIO COMMAND...: its output goes to /tmp/out, its exit code to rc.
run() {
	scenario=$1
	shift
	idlectl run --cpu 1 --scenario "$scenario" -- "$@" >/tmp/out 2>/tmp/err
	rc=$?
}

# takes SCENARIO TEXT...: it runs, what the command prints has every text, and it is gone afterwards.
takes() {
	[ $rc -eq 0 ] || { cat /tmp/err; return 1; }
	for wanted in "$@"; do
		grep -q "$wanted" /tmp/out || { echo "no $wanted in:"; cat /tmp/out; return 1; }
	done
	gone
}

state() { # name: its counts in one line of JSON
	tr '{' '\n' </tmp/out | grep "\"name\":\"$1\""
}

case $1 in
bochs)
	settings >/tmp/before
	run c1+keep idlectl status --json --cpu 1
	ok "c1+keep: mode keep, IBRS set in C1" takes '"emulated":true' '"mode":"keep"'
	ok "and nothing but that was sampled" eval 'state C1 | grep -q "\"spec_ctrl\":\[\"0x[0-9a-f]*1\"\]"'
	run c1+clear idlectl status --json --cpu 1
	ok "c1+clear: mode clear" takes '"mode":"clear"'
	ok "the register is 0 in C1" eval 'state C1 | grep -q "\"spec_ctrl\":\[\"0x0\"\]"'
	# The kernel counts a period when it ends, so the command wakes the CPU; times mean nothing here.
	run c6 sh -c 'cd /sys/devices/system/cpu/cpu1/cpuidle
		for s in state*; do echo "$(cat $s/name) $(cat $s/usage)"; done >/tmp/first
		for i in 1 2 3 4 5; do taskset 2 true; usleep 20000; done
		for s in state*; do echo "$(cat $s/name) $(cat $s/usage)"; done | diff /tmp/first - | grep "^+[^+]"'
	ok "c6 takes, by the kernel's own counts" takes '^+C6 '
	ok "and no other state" eval '! grep -v "^+C6 " /tmp/out'
	run c1+stock idlectl status --json --cpu 1
	ok "c1+stock" takes '"mode":"stock"'
	run c6+clear true
	ok "c6+clear" takes
	idlectl doctor >/tmp/out 2>/tmp/err
	rc=$?
	ok "doctor expects the effect" eval 'tail -n 1 /tmp/out | grep "^effect expected here"'
	idlectl set --cpu 1 --scenario c1+clear >/tmp/out 2>/tmp/err
	ok "set stays" eval 'grep -q "^1 clear" /sys/class/misc/sibidle/leases'
	holder=$(sed -n 's/.*process \([0-9]*\).*/\1/p' /tmp/out)
	kill -KILL "$holder"
	for i in 1 2 3 4 5 6 7 8 9 10; do gone && break; usleep 100000; done >/dev/null 2>&1
	ok "kill -9 of it gives lease and states back" gone
	idlectl set --cpu 1 --scenario c1+clear >/tmp/out 2>/tmp/err
	holder=$(sed -n 's/.*process \([0-9]*\).*/\1/p' /tmp/out)
	supervisor=$(cat /proc/$holder/task/$holder/children)
	# Stopped, it cannot start another one, nor can that restore.
	kill -STOP "$holder" $supervisor
	kill -KILL $supervisor "$holder"
	for i in 1 2 3 4 5 6 7 8 9 10; do
		[ -z "$(cat /sys/class/misc/sibidle/leases)" ] && break
		usleep 100000
	done
	ok "kill -9 of both ends the lease" eval '[ -z "$(cat /sys/class/misc/sibidle/leases)" ] &&
		[ -s /run/sibfwd/journal ]'
	idlectl restore >/tmp/out 2>/tmp/err
	ok "and restore puts the states back" gone
	;;
qemu)
	insmod /lib/lab/sibidle_testdrv.ko
	settings >/tmp/before
	run on idlectl states --cpu 1 --interval 0.1
	ok "a state is held by name" takes "ON .* yes" "OFF .* no" "POLL .* no"
	run off+limit:5 cat $cpu/power/pm_qos_resume_latency_us
	ok "with a limit" takes '^5$'
	run offline cat $cpu/online
	ok "offline" takes '^0$'
	ok "and on line again" eval '[ "$(cat $cpu/online)" = 1 ]'
	run wake:200+on idlectl states --cpu 1 --interval 0.2
	ok "wake:200 wakes it" takes "ON .* yes"
	for load in busy pause mem syscall; do
		run $load true
		ok "$load" takes
	done
	run stock true
	ok "stock: the module counts" takes
	run keep true
	ok "keep is refused here, with the reason" eval '[ $rc -eq 4 ] && grep -q "not intel_idle" /tmp/err'
	taskset 2 sh -c 'while :; do :; done' &
	hog=$!
	sleep 1
	run on true
	ok "a state that is never entered is an error" eval '[ $rc -eq 1 ] && grep -q "did not idle so" /tmp/err'
	kill -KILL $hog
	taskset 2 idlectl run --cpu 1 --scenario offline -- true >/tmp/out 2>/tmp/err
	rc=$?
	ok "the caller's only CPU is not taken off line" eval '[ $rc -eq 2 ] && [ "$(cat $cpu/online)" = 1 ]'
	taskset 2 idlectl run --cpu 1 --scenario limit:50 -- true >/tmp/out 2>/tmp/err
	rc=$?
	ok "other words warn there" eval '[ $rc -eq 0 ] && grep -q "disturbs" /tmp/err'
	ok "all is gone" gone
	echo 1 >/sys/module/sibidle_testdrv/parameters/unregister
	rmmod sibidle_testdrv
	;;
esac
echo "1..$n"
exit $failed
