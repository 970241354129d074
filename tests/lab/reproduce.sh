#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# dpdk-sibfwd --reproduce inside an emulated machine that has intel_idle and kernel IBRS, two blocks: both
# scenarios take, the register is what it has to be in each, and nothing is claimed of speed. TAP.
about=reproduce
. /lib/lab/guest.sh
cpu=/sys/devices/system/cpu/cpu3
dir=/tmp/reproduce
rows() { tail -n +2 $dir/windows.csv; }
# only COLUMN SCENARIO WANTED: there are clean rows of the scenario, and the column is that in all of them.
only() {
	rows | awk -F , -v column="$1" -v scenario="$2" -v wanted="$3" '$5 == scenario && $11 == 0 {
		n++; if ($column !~ "^(" wanted ")$") { print; bad = 1 } } END { print n + 0; exit bad || !n }'
}

# What runs here stays off the measured core.
taskset -p 3 $$ >/dev/null
settings >/tmp/before
idlectl doctor --cpu 2 >/tmp/doctor 2>/tmp/err
ok "doctor expects the effect" eval 'tail -n 1 /tmp/doctor | grep "^effect expected here"'

# Bochs ends each MWAIT after some 20 us, under stock intel_idle as well, so that the share of time in the state
# asked for says little there; and 0.5 s of its time hold more of the kernel's own work than those of a machine.
dpdk-sibfwd -l 0,2 --no-huge -m 128 --no-pci --no-telemetry -- --reproduce --source=null --blocks=2 --windows=1 \
	--warmup=0 --settle=0 --duration=0.5 --taint-state=95 --taint-ctxsw=10 --out=$dir >/tmp/out 2>/tmp/err
rc=$?
cat /tmp/out
ok "exit code 0, without --force" [ $rc -eq 0 ]
ok "the result directory is complete" eval 'for file in windows.csv result.json environment.json log.txt columns.json; do
	[ -s $dir/$file ] || echo $file; done | diff /dev/null - && [ -z "$(find $dir -name "*.tmp")" ]'
ok "and holds what it should" sibfwd-report check $dir
# A tainted block is measured again.
ok "two blocks at the least, the first as ABBA" eval 'rows | cut -d , -f 5-12; [ $(($(rows | wc -l) % 4)) -eq 0 ] &&
	[ "$(rows | wc -l)" -ge 8 ] && [ "$(rows | head -n 4 | cut -d , -f 5 | tr "\n" " ")" = "c1+keep c1+clear c1+clear c1+keep " ]'
ok "the sibling is in C1 in every clean window of ibrs-on" only 42 c1+keep C1
ok "and of ibrs-off" only 42 c1+clear C1
ok "IBRS is set in every clean window of ibrs-on" only 43 c1+keep '0x[0-9a-f]*[13579bdf]'
ok "the register is 0 in every clean window of ibrs-off" only 43 c1+clear 0x0
ok "all rows are marked" eval '[ "$(rows | cut -d , -f 44 | sort -u)" = 1 ]'
for output in /tmp/out /tmp/shown; do
	[ $output = /tmp/out ] || sibfwd-report show $dir >$output 2>/tmp/err
	ok "${output#/tmp/}: the published table stands beside" eval 'grep "^ibrs-on .* 7.8M  *282.26$" $output &&
		grep "^ibrs-off .* 10.4M  *209.86$" $output'
	ok "${output#/tmp/}: emulated, and no claim of speed" eval 'grep "emulated: its figures say nothing" $output &&
		grep "emulated: the figures say nothing about speed" $output && ! grep "This machine" $output &&
		! grep -E "improvement|regression|  same$" $output'
done
ok "what clearing costs stands below" eval 'grep "^What clearing costs, by wake-ups of CPU 3" /tmp/out &&
	grep "^c1: clear over keep  *handler median" /tmp/out && grep "\"probe\": \"wake\"" $dir/result.json'
ok "the machine is given back" gone
echo "1..$n"
exit $failed
