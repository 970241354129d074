#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# idlectl's probes, and the loads made of them, inside an emulated machine. TAP.
#
#   probes.sh qemu     x2APIC, the test driver of tests/lab/modules
#   probes.sh bochs    intel_idle, kernel IBRS, no x2APIC
#   probes.sh unstable tsc=unstable, and the module's own test of another vendor's CPU
about=probes
. /lib/lab/guest.sh

# probe ARGUMENTS...: its output goes to /tmp/out, its exit code to rc.
probe() {
	idlectl probe "$@" >/tmp/out 2>/tmp/err
	rc=$?
}

# Counts of all bins of each histogram of /tmp/out (JSON), one sum a line.
sums() {
	awk '/"bins"/ { if (n++) print sum; sum = 0 } /"count":/ { gsub(/[^0-9]/, ""); sum += $0 }
		END { print sum }' /tmp/out
}

# figure CASE METRIC: raw of that row of /tmp/out (CSV), whose case is quoted where it has a comma.
figure() { sed 's/"[^",]*\(, [^"]*\)*"/&/' /tmp/out | awk -v name="$1" -v metric="$2" 'index($0, name) {
		i = index($0, "," metric ","); if (i) { split(substr($0, i + length(metric) + 2), f, ","); print f[3] } }'; }

count() { figure "$@" | grep . || echo 0; } # the same; 0 where there is no such row

# every METRIC METRIC: as many of the one as of the other in every case, and some.
every() {
	grep ",$1," /tmp/out | awk -F"$1," '{ split($2, f, ","); print f[3] }' >/tmp/a
	grep ",$2," /tmp/out | awk -F"$2," '{ split($2, f, ","); print f[3] }' >/tmp/b
	[ -s /tmp/a ] && cmp /tmp/a /tmp/b || { cat /tmp/out; return 1; }
}

interrupts() { awk -v kind="$1:" '$1 == kind { print $3 }' /proc/interrupts; } # of CPU 1

# load SCENARIO COMMAND...: under it; exit code in rc. A loaded host may not keep the rate at once.
load() {
	scenario=$1
	shift
	for try in 1 2 3 4 5; do
		idlectl run --cpu 1 --scenario "$scenario" -- "$@" >/tmp/out 2>/tmp/err
		rc=$?
		[ $rc -eq 1 ] && grep -q "it came to" /tmp/err || break
	done
}

case $1 in
qemu)
	insmod /lib/lab/sibidle_testdrv.ko
	settings >/tmp/before
	probe msr --cpu 1 --loops 200 --repeats 3 --json
	ok "msr" [ $rc -eq 0 ]
	ok "msr: emulated" grep -q '"emulated": true' /tmp/out
	ok "msr: histograms hold every loop" [ "$(sums | sort -u)" = 600 ]
	ok "msr: what is not there is named" grep -q "SPEC_CTRL: not here: the CPU has no IA32_SPEC_CTRL" /tmp/out
	ok "msr: TSC_DEADLINE too" grep -q "TSC_DEADLINE: not here: the APIC timer has no TSC-deadline mode" /tmp/out
	probe fence --cpu 1 --loops 100 --repeats 2 --stores 0,64
	ok "fence, with the answer in one line" grep -q "^before an x2APIC write the fence costs .* behind 0 stores, .* behind 64$" /tmp/out
	ok "fence: all six of both numbers of stores" [ "$(grep -c "stores: .*TSC cycles" /tmp/out)" -eq 12 ]
	probe eoi --cpu 2 --loops 200
	ok "eoi: direct and through the callback" eval 'grep -q "^direct " /tmp/out && grep -q "^callback " /tmp/out'
	probe ipi --loops 100 --repeats 3 --csv
	ok "ipi: a pair of each relation" eval '[ $rc -eq 0 ] && grep -q "smt 0-1, wait" /tmp/out && grep -q "l3 0-2, wait" /tmp/out'
	ok "ipi: as many interrupts as were sent" every sent "interrupts counted"
	ok "ipi: loops times repeats of them" [ "$(figure "smt 0-1, wait" sent)" = 300 ]
	probe ipi --mesh --loops 50 --repeats 2 --seed 5 --csv
	ok "mesh: as many interrupts as were sent" every sent "interrupts counted"
	ok "mesh: of two pairs" [ "$(figure "mesh of 2 pairs, wait" sent)" = 200 ]
	ok "mesh: start skew, and throughput both ways" eval 'grep -q "start skew" /tmp/out &&
		grep -q "throughput (wall time)" /tmp/out && grep -q "throughput (sum of 1/call)" /tmp/out'
	probe ipi --self --from 1 --loops 100 --repeats 2 --csv
	ok "self: by interrupt" every sent "interrupts counted"
	probe ipi --broadcast --from 1 --loops 10 --repeats 2 --csv
	ok "broadcast: one for every other CPU" [ "$(figure "broadcast from 1 to 3, wait" "interrupts counted")" = 60 ]
	probe ipi --from 0 --to 1 --idle --no-wait --loops 100 --repeats 2 --csv
	# Its driver halts, which needs an interrupt, unless it is found on its way there or back: how often, a loaded host decides.
	ok "idle: all were sent, some by interrupt, and what is told apart adds up" eval '
		[ "$(figure "0-1, no wait" sent)" -eq 200 ] && [ "$(figure "0-1, no wait" "interrupts counted")" -gt 0 ] &&
		[ $(($(figure "0-1, no wait" "interrupts counted") + $(count "0-1, no wait" "wake-ups without one") -
			$(count "0-1, no wait" "interrupts of others"))) -eq 200 ] || { cat /tmp/out; false; }'
	probe wake --cpu 1 --states hlt --loops 20 --repeats 2 --json
	ok "wake" [ $rc -eq 0 ]
	ok "wake: histograms hold every loop" [ "$(sums | sort -u)" = 40 ]
	probe wake --cpu 1 --states hlt --loops 20 --repeats 2 --csv
	ok "wake: it idled as often as it woke up, at least" [ "$(figure hlt+stock "idle entries")" -ge 40 ]
	ok "wake leaves nothing" gone
	idlectl probe wake --cpu 1 --loops 200 --repeats 1000 >/tmp/out 2>/tmp/err &
	sleep 1
	kill -KILL $!
	sleep 1
	ok "wake, killed, leaves nothing" gone
	for kind in msr ipi wake; do
		case $kind in ipi) cpu_of= ;; *) cpu_of="--cpu 1" ;; esac
		idlectl probe $kind $cpu_of --loops 1000 --repeats 1000 >/tmp/out 2>/tmp/err &
		sleep 1
		kill -INT $!
		wait $!
		rc=$?
		ok "$kind: SIGINT ends it, which is said" eval '[ $rc -eq 1 ] && grep -q "idlectl: interrupted" /tmp/err && gone'
	done
	taskset 2 sh -c 'while :; do :; done' &
	hog=$!
	before=$(interrupts CAL)
	load ipi:20 sleep 3
	ok "ipi:20 interrupts CPU 1" eval '[ $rc -eq 0 ] && [ $(($(interrupts CAL) - before)) -gt 30 ]'
	kill -KILL $hog
	load wrmsr:20+on true
	ok "wrmsr:20 with a state" [ $rc -eq 0 ]
	load mbm:100 true
	ok "mbm without resctrl: exit code 4, and why" eval '[ $rc -eq 4 ] && grep -q "mbm: .*mbm_total_bytes" /tmp/err'
	mount -t tmpfs tmpfs /sys/fs
	domain=$(cat $cpu/cache/index3/id)
	mkdir -p /sys/fs/resctrl/mon_data/mon_L3_0$domain
	echo 12345 >/sys/fs/resctrl/mon_data/mon_L3_0$domain/mbm_total_bytes
	load mbm:20 true
	ok "mbm:20" [ $rc -eq 0 ]
	umount /sys/fs
	taskset 2 idlectl run --cpu 1 --scenario ipi:100 -- true >/tmp/out 2>/tmp/err
	rc=$?
	ok "ipi without a CPU to send from: exit code 4" eval '[ $rc -eq 4 ] && grep -q "ipi: needs a CPU outside the core of CPU 1" /tmp/err'
	taskset 3 idlectl run --cpu 1 --scenario ipi:100 -- true >/tmp/out 2>/tmp/err
	rc=$?
	ok "nor from the other thread of its core, which may be measured" eval '[ $rc -eq 4 ] && grep -q "outside the core of CPU 1" /tmp/err'
	load ipi:20 sh -c 'grep -h Cpus_allowed_list /proc/$PPID/task/*/status'
	ok "it sends from a CPU of another core" grep -q "^Cpus_allowed_list:.2$" /tmp/out
	ok "all is gone" gone
	echo 1 >/sys/module/sibidle_testdrv/parameters/unregister
	rmmod sibidle_testdrv
	/lib/lab/probe_test x2apic "${2:-100000}" | sed "s/ - / - probe_test: /" >/tmp/test
	;;
bochs)
	settings >/tmp/before
	probe msr --cpu 1 --loops 100 --repeats 2 --json
	ok "msr of SPEC_CTRL" eval '[ $rc -eq 0 ] && grep -q "\"case\": \"SPEC_CTRL\"" /tmp/out'
	ok "msr: no self-IPI without x2APIC" grep -q "self-IPI: not here: the APIC is not in x2APIC mode" /tmp/out
	ok "msr: histograms hold every loop" [ "$(sums | sort -u)" = 200 ]
	probe eoi --cpu 1
	ok "eoi without x2APIC: exit code 4, and why" eval '[ $rc -eq 4 ] && grep -q "not in x2APIC mode" /tmp/err'
	probe ipi --from 0 --to 1 --loops 50 --repeats 1 --csv
	ok "ipi: as many interrupts as were sent" every sent "interrupts counted"
	probe wake --cpu 1 --states c1 --loops 10 --repeats 2 --csv
	ok "wake in stock, keep and clear" eval '[ $rc -eq 0 ] && [ "$(figure c1+stock "idle entries")" -ge 20 ] &&
		[ "$(figure c1+keep "idle entries")" -ge 20 ] && [ "$(figure c1+clear "idle entries")" -ge 20 ]'
	ok "wake: what clearing costs" grep -q "c1: clear over keep" /tmp/out
	ok "wake leaves nothing" gone
	/lib/lab/probe_test xapic "${2:-1000}" | sed "s/ - / - probe_test: /" >/tmp/test
	;;
unstable)
	for kind in ipi fence msr eoi; do
		probe $kind --loops 10 --repeats 1
		ok "$kind: not by a TSC that the kernel does not trust" eval '[ $rc -eq 4 ] &&
			grep -q "^idlectl: the kernel does not trust the TSC$" /tmp/err'
	done
	for scenario in ipi:100 wrmsr:100; do
		load $scenario true
		ok "$scenario: neither" eval '[ $rc -eq 4 ] && grep -q "${scenario%:*}: the kernel does not trust the TSC" /tmp/err'
	done
	/lib/lab/sibidle_test other_cpu >/tmp/test
	;;
esac
# The test program's own numbers go on from ours.
[ "$(grep -c "^1\.\." /tmp/test)" -eq 1 ] || { echo "not ok $((n + 1)) - $about: the test program ends"; failed=1; }
! grep -q "^not ok" /tmp/test || failed=1
awk -v n="$n" '/^(not )?ok / { sub(/ok [0-9]+/, "ok " ++n); print; next } /^1\.\./ { print "1.." n; next } { print }' /tmp/test
exit $failed
