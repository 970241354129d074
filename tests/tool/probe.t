#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# idlectl probe without the module: what it says where it cannot measure, exits from texts.
. tests/tap.sh

idlectl=$PWD/${BUILD:-build}/idlectl/idlectl
[ -x "$idlectl" ] || bail "there is no $idlectl"

# probe ARGUMENTS...: output to $tmp/out and $tmp/err, exit code to rc.
probe() {
	timeout 60 "$idlectl" probe "$@" >"$tmp/out" 2>"$tmp/err"
	rc=$?
}

# ends CODE WORDS: with that exit code and one line on stderr that has the words.
ends() {
	is $rc "$1" "exit code" && is "$(wc -l <"$tmp/err")" 1 "lines on stderr" && has "$tmp/err" "$2"
}

# ---- the command line ----

while IFS='|' read -r code words arguments; do
	# shellcheck disable=SC2086 # words
	probe $arguments
	ok "probe $arguments: $words" ends "$code" "$words"
done <<'EOF'
2|which one?|
2|nothing: unknown probe|nothing
2|--repeats 0|msr --repeats 0
2|--repeats 1001|msr --repeats 1001
2|--loops -1|msr --loops -1
2|--warmup x|msr --warmup x
2|--json and --csv|msr --json --csv
2|--stores 65|fence --stores 65
2|--stores 1,,2|fence --stores 1,,2
2|--stores 1,1|fence --stores 1,1
2|--pairs near|ipi --pairs near
2|--to: needs --from|ipi --to 1
2|--from: needs --to|ipi --from 0
2|--to 0: the same|ipi --from 0 --to 0
2|--to 9999|ipi --from 0 --to 9999
2|exclude each other|ipi --self --mesh
2|--seed: needs --mesh|ipi --seed 3
2|--idle|ipi --self --idle
2|--cpu 9999|msr --cpu 9999
2|--script: needs --exits|msr --script /dev/null
2|--pid: needs --exits|msr --pid 1
2|--script: nothing is recorded|msr --exits --script /dev/null --pid 1
2|probe wake: needs --cpu|wake
2|unknown option|wake --cpu 0 --mesh
EOF

if [ ! -e /dev/sibidle ]; then
	for p in ipi fence msr eoi "wake --cpu 0"; do
		# shellcheck disable=SC2086
		probe $p
		ok "$p without the module: exit code 4" ends 4 "sibidle.ko is not loaded"
	done
fi
if [ ! -e /sys/fs/resctrl/info ]; then
	probe resctrl
	ok "no resctrl: exit code 4, and how to have it" ends 4 "mount -t resctrl"
fi
if [ ! -e /sys/kernel/tracing/events/kvm ]; then
	probe msr --exits
	ok "no guests here: exit code 4" ends 4 "--exits:"
fi

probe ipi --help
ok "help of a probe" has "$tmp/out" "probe ipi" "--mesh" "--no-wait" "Example:"
"$idlectl" --help >"$tmp/out"
ok "help lists the probes" has "$tmp/out" "probe ipi" "probe fence" "probe msr" "probe eoi" "probe resctrl" "probe wake"
"$idlectl" --completion >"$tmp/complete"
complete() { # words...
	bash -c '. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _idlectl; echo "${COMPREPLY[@]}"' "$tmp/complete" "$@"
}
ok "completion of probe" is "$(complete idlectl probe '')" "ipi fence msr eoi resctrl wake" words
ok "and of a probe's options" has <(complete idlectl probe fence --st) "--stores"

# ---- exits ----

# same_fields: every row of the CSV has as many fields as its header, quotes taken into account.
same_fields() {
	/usr/bin/python3 -c 'import csv, sys
rows = list(csv.reader(sys.stdin))
assert len(rows) > 1 and {len(r) for r in rows} == {15}, rows' <"$tmp/out"
}

# As the kernel's tracepoints have it on VMX (arch/x86/kvm/trace.h), not recorded.
for i in $(seq 100); do
	echo "CPU 0/KVM 4000 [003] 100.$(printf %06d $((i * 10))): kvm:kvm_exit: vcpu 0 reason MSR_WRITE rip 0xffffffff8106cf48 info1 0x0 info2 0x0"
	echo "CPU 0/KVM 4000 [003] 100.$(printf %06d $((i * 10 + 2))): kvm:kvm_entry: vcpu 0, rip 0xffffffff8106cf4a"
done >"$tmp/script"
for i in $(seq 20); do
	echo "CPU 1/KVM 4001 [001] 101.$(printf %06d $((i * 10))): kvm:kvm_exit: vcpu 1 reason HLT rip 0x1"
	echo "CPU 1/KVM 4001 [001] 101.$(printf %06d $((i * 10 + 8))): kvm:kvm_entry: vcpu 1, rip 0x2"
done >>"$tmp/script"
probe msr --exits --script "$tmp/script"
ok "the table has its columns" has "$tmp/out" "Reason" "Samples%" "Time%" "Avg"
ok "MSR_WRITE first, with its shares" grep -Eq "^MSR_WRITE +100 +83.33% +55.56% +2.00us +2.00us +2.00us \( \+- 0.00% \)" "$tmp/out"
ok "then HLT" grep -Eq "^HLT +20 +16.67% +44.44% +8.00us" "$tmp/out"
ok "the published rows below" grep -q "^published MSR_WRITE  *2681713  *92.98%  *77.52%  *0.38us  *18.54us  *0.73us ( +- 0.02% )" "$tmp/out"
probe msr --exits --script "$tmp/script" --csv
ok "as CSV" same_fields
probe msr --exits --script "$tmp/script" --json
ok "as JSON" jq -e '[.rows[] | select(.case == "HLT" and .metric == "samples") | .raw] == [20]' "$tmp/out"
probe msr --exits --script tests/data/kvm-svm.perf-script --csv
ok "a recorded run of KVM on SVM" eval 'is $rc 0 "exit code" && same_fields && grep -q "^msr,msr,samples,exits,1,38," "$tmp/out"'
probe msr --exits --script tests/data/kvm-svm.perf-script
ok "and it is not put beside the published machine" has "$tmp/out" "comparable: no: recorded, on a machine that the file does not tell"
head -n -1 "$tmp/script" | tail -n +2 >"$tmp/cut"
probe msr --exits --script "$tmp/cut"
ok "what has no partner is said" has "$tmp/out" "1 exits without an entry and 1 entries without an exit"
for bad in /dev/null /bin/true; do
	probe msr --exits --script $bad
	ok "$bad: no exit in it" ends 1 "$bad: no exit of a guest in it"
done
probe msr --exits --script "$tmp"
ok "a directory" ends 1 "Is a directory"
probe msr --exits --script "$tmp/none"
ok "a file that is not there" ends 1 "No such file"

end_tests
