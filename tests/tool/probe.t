#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# idlectl probe without the module: what it says where it cannot measure.
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
2|--script and --pid|msr --exits --script /dev/null --pid 1
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

end_tests
