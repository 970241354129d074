#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# idlectl as its users see it, the wrong ones above all. On recorded trees where no machine is needed.
. tests/tap.sh

program=$(realpath "${BUILD:-build}/idlectl/idlectl") || bail "no idlectl"
PATH=$(dirname "$program"):$PATH
machines=$PWD/tests/data/machines
tree=$tmp/tree
"$machines/unpack" skx-2s-6.1 "$tree" || bail "no tree"
chmod 755 "$tmp"

# run ARGUMENTS: what idlectl says goes to out and err, its exit code to rc.
run() {
	idlectl "$@" >"$tmp/out" 2>"$tmp/err"
	rc=$?
}

on_tree() { run --sysroot "$tree" "$@"; }

# refuses CODE TEXT ARGUMENTS: on the tree: that exit code, and one line on stderr that has the text.
refuses() {
	local code=$1 text=$2
	shift 2
	on_tree "$@"
	is "$rc" "$code" "exit code" && is "$(wc -l <"$tmp/err")" 1 "lines on stderr" &&
		has "$tmp/err" "$text" && [ ! -s "$tmp/out" ] || { cat "$tmp/err" "$tmp/out"; return 1; }
}

run_with() { on_tree run --cpu 1 --scenario "$1" -- true; }

# ---- the command line ----

ok "no command" refuses 2 "no command"
ok "an unknown command" refuses 2 "sattus: unknown command" sattus
ok "an option of another command" refuses 2 "--svg: unknown option of status" status --svg x
ok "an option without its value" refuses 2 "--cpu: needs a value" status --cpu
ok "an option that is given twice" refuses 2 "given twice" status --cpu 1 --cpu 2
ok "a word too many" refuses 2 "fast: not an argument of status" status fast
ok "run without a command" refuses 2 "no command behind --" run --cpu 1 --scenario c1
ok "run without a CPU" refuses 2 "needs --cpu" run --scenario c1 -- true
ok "set without a scenario" refuses 2 "needs --scenario" set --cpu 1
ok "a CPU that is no number" refuses 2 "--cpu one" status --cpu one
ok "a CPU that is not there: the valid ones are named" refuses 2 "there are 0-15" status --cpu 99
ok "a time that is none" refuses 2 "--interval 0" status --interval 0
ok "a tree that is not there" eval 'run --sysroot "$tmp/none" status; [ $rc -eq 2 ] &&
	has "$tmp/err" "$tmp/none"'
ok "a topology that is not there" refuses 2 "--topology /nowhere" --topology /nowhere topology
commands="topology states doctor scenarios run set restore status"
probes="probe ipi probe fence probe msr probe eoi probe resctrl probe wake"
for c in $commands; do
	ok "$c has help with an example" eval \
		'run $c --help; is $rc 0 "exit code" && has "$tmp/out" "Usage: idlectl" "Example: idlectl $c"'
done
ok "help names every command" eval 'run --help; is $rc 0 "exit code" && has "$tmp/out" $commands'
ok "no output where it cannot go" eval 'idlectl --sysroot "$tree" states >/dev/full 2>"$tmp/err"
	[ $? -eq 1 ] && has "$tmp/err" "standard output"'

# ---- scenarios ----

ok "a state of no such name: the valid ones are named" refuses 2 "poll c1 c1e c6" \
	run --cpu 1 --scenario c7 -- true
ok "states exclude each other" refuses 2 "c1 and c6 exclude" run --cpu 1 --scenario c1+c6 -- true
ok "so do loads" refuses 2 "busy and mem exclude" run --cpu 1 --scenario busy+mem -- true
ok "offline goes with nothing" refuses 2 "offline with c1" run --cpu 1 --scenario c1+offline -- true
ok "POLL does not go with the module" refuses 2 "poll with clear" \
	run --cpu 1 --scenario poll+clear -- true
ok "a limit of 0 would be none" refuses 2 "0 means no limit" run --cpu 1 --scenario limit:0 -- true
ok "a limit without a number" refuses 2 "limit:US" run --cpu 1 --scenario limit -- true
ok "a limit that forbids the state" refuses 2 "forbids" run --cpu 1 --scenario c6+limit:5 -- true
ok "a number that is none" refuses 2 "wake:often" run --cpu 1 --scenario wake:often -- true
ok "a word that takes no number" refuses 2 "takes no number" run --cpu 1 --scenario busy:5 -- true
ok "nothing between two +" refuses 2 "a word is missing" run --cpu 1 --scenario c1++clear -- true
ok "a very long one" refuses 2 "longer than" run --cpu 1 --scenario "$(printf 'c%.0s' {1..200})" -- true
ok "the module is not in a tree" refuses 4 "recorded tree" run --cpu 1 --scenario c1+clear -- true
ok "loads are not, either" refuses 4 "recorded tree" run --cpu 1 --scenario busy -- true
ok "a machine without cpuidle" eval '"$machines/unpack" vm "$tmp/vm" &&
	run --sysroot "$tmp/vm" run --cpu 1 --scenario c1 -- true; is "$rc" 4 "exit code" &&
	has "$tmp/err" "no cpuidle driver"'
ok "a sibling that is off line" eval '"$machines/unpack" smt-off-sysfs "$tmp/smt-off" &&
	off=$(sed "s/[-,].*//" "$tmp/smt-off/sys/devices/system/cpu/offline") &&
	run --sysroot "$tmp/smt-off" run --cpu "$off" --scenario c1 -- true; is "$rc" 2 "exit code" &&
	has "$tmp/err" "off line"'
ok "nothing was left by any of them" eval '[ ! -e "$tree/run/sibfwd/journal" ]'

ok "c1 holds C1, and POLL is disabled with the others" eval '
	on_tree run --cpu 1 --scenario c1 -- sh -c "cd $tree/sys/devices/system/cpu/cpu1/cpuidle &&
		grep -H . */name */disable" && [ $rc -eq 0 ] &&
	is "$(grep -h disable: "$tmp/out" | sed "s/.*://" | tr -d "\n")" 1011 "disable of POLL C1 C1E C6"'
ok "the numbers of states do not matter" eval '
	for f in name latency residency usage time; do
		cd "$tree/sys/devices/system/cpu/cpu2/cpuidle" && mv state1/$f x && mv state3/$f state1/$f &&
			mv x state3/$f && cd - >/dev/null
	done
	on_tree run --cpu 2 --scenario c1 -- sh -c "grep -L 1 $tree/sys/devices/system/cpu/cpu2/cpuidle/*/disable" &&
	has "$tmp/out" state3/disable && is "$(wc -l <"$tmp/out")" 1 "enabled states"'
ok "run returns the exit code of its command" eval '
	on_tree run --cpu 1 --scenario c1 -- sh -c "exit 42"; is $rc 42 "exit code"'
ok "a command that is not there" eval '
	on_tree run --cpu 1 --scenario c1 -- /no/such/command; is $rc 127 "exit code" &&
	has "$tmp/err" "/no/such/command"'
ok "a command that is not there, and nobody to be told" eval '
	idlectl --sysroot "$tree" run --cpu 1 --scenario c1 -- /no/such/command 2>/dev/full; is $? 127 "exit code"'
ok "nor anybody who listens" eval '{ sleep 0.2
	idlectl --sysroot "$tree" run --cpu 1 --scenario c1 -- /no/such/command; echo $? >"$tmp/code"; } 2>&1 | true
	is "$(cat "$tmp/code")" 127 "exit code"'
ok "a command that is killed" eval '
	on_tree run --cpu 1 --scenario c1 -- sh -c "kill -TERM \$\$"; is $rc 143 "exit code"'
ok "SIGTERM ends command and scenario" eval '
	idlectl --sysroot "$tree" run --cpu 1 --scenario c1 -- sleep 60 & pid=$!
	for i in $(seq 200); do pgrep -x -P $pid sleep >/dev/null && break; sleep 0.02; done
	kill -TERM $pid; wait $pid; is $? 143 "exit code" &&
	is "$(cat "$tree/sys/devices/system/cpu/cpu1/cpuidle/state0/disable")" 0 "POLL"'
ok "closed standard streams do no harm" eval '
	idlectl --sysroot "$tree" run --cpu 1 --scenario c1 -- true <&- >&- 2>&-; is $? 0 "exit code" &&
	[ ! -e "$tree/run/sibfwd/journal" ] && flock -w 5 "$tree/run/sibfwd/lock" true'
ok "scenarios lists every word" eval 'on_tree scenarios && has "$tmp/out" c1e c6 limit:US keep clear \
	wake:HZ offline && on_tree scenarios --json && jq -e "length > 10" "$tmp/out"'

# ---- set, restore, two at once ----

ok "set returns and stays" eval 'on_tree set --cpu 1 --scenario c6 && [ $rc -eq 0 ] &&
	is "$(cat "$tree/sys/devices/system/cpu/cpu1/cpuidle/state1/disable")" 1 "C1 disabled"'
ok "a second controller is refused, and told of the first" refuses 1 "idlectl restore" \
	run --cpu 2 --scenario c1 -- true
ok "the sibling of another is refused too" refuses 1 "in use by process" set --cpu 3 --scenario c1
ok "restore" eval 'on_tree restore && [ $rc -eq 0 ] &&
	is "$(cat "$tree/sys/devices/system/cpu/cpu1/cpuidle/state1/disable")" 0 "C1 disabled"'
ok "--ttl ends by itself" eval 'on_tree set --cpu 1 --scenario c6 --ttl 0.3 && [ $rc -eq 0 ] &&
	for i in $(seq 100); do
		sleep 0.05
		[ "$(cat "$tree/sys/devices/system/cpu/cpu1/cpuidle/state1/disable")" = 1 ] || break
	done && [ "$i" -lt 100 ] && sleep 0.1 && flock -w 5 "$tree/run/sibfwd/lock" true'
ok "JSON of set and restore" eval 'on_tree set --cpu 1 --scenario c6 --json && jq -e ".holder > 1" "$tmp/out" &&
	on_tree restore --json && jq -e ".holder > 1 and .torn == false" "$tmp/out"'
name=$tree/sys/devices/system/cpu/cpu1/cpuidle/state1/name
echo "C\"1" >"$name"
ok "JSON of a state whose name has a quote" eval 'on_tree run --cpu 1 --scenario "c\"1" --json -- true &&
	jq -e ".scenario == \"c\\\"1\" and .exit == 0" "$tmp/err" && on_tree set --cpu 1 --scenario "c\"1" --json &&
	jq -e ".scenario == \"c\\\"1\"" "$tmp/out" && on_tree restore'
printf 'C\033[31m\377\n' >"$name"
ok "a state whose name is no text is printed as text" eval 'on_tree states --cpu 1 --json &&
	jq -e ".[0].states[1].name == \"C?[31m?\"" "$tmp/out" && on_tree status --cpu 1 &&
	has "$tmp/out" "C?[31m?" && on_tree scenarios --cpu 1 && ! grep -q "$(printf "\033")" "$tmp/out"'
echo C1 >"$name"

# ---- machines that do not let it ----

as_nobody() {
	setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
}
if as_nobody true 2>/dev/null && as_nobody test -x "$program"; then
	ok "without root nothing changes, and that is said" eval '
		as_nobody "$program" --sysroot "$tree" run --cpu 1 --scenario c1 -- true 2>"$tmp/err"
		is $? 1 "exit code" && has "$tmp/err" "needs root"'
	ok "looking works" eval 'as_nobody "$program" --sysroot "$tree" states >/dev/null &&
		as_nobody "$program" --sysroot "$tree" topology >/dev/null &&
		as_nobody "$program" --sysroot "$tree" doctor >/dev/null &&
		as_nobody "$program" --sysroot "$tree" status >/dev/null'
else
	skip "without root nothing changes" "another user cannot run the program here"
fi

if mount --bind "$tree/sys" "$tree/sys" 2>/dev/null; then
	at_exit 'umount "$tree/sys" 2>/dev/null'
	mount -o remount,bind,ro "$tree/sys"
	ok "a read-only sysfs" refuses 1 "Read-only file system" run --cpu 1 --scenario c1 -- true
	ok "leaves no journal" [ ! -e "$tree/run/sibfwd/journal" ]
	umount "$tree/sys"
	mount -t tmpfs -o size=8k tmpfs "$tree/run"
	at_exit 'umount "$tree/run" 2>/dev/null'
	mkdir "$tree/run/sibfwd"
	echo >"$tree/run/sibfwd/lock"
	dd if=/dev/zero of="$tree/run/fill" bs=4k count=9 2>/dev/null
	ok "a full /run" refuses 1 "No space left" run --cpu 1 --scenario c1 -- true
	ok "changes nothing" is "$(cat "$tree"/sys/devices/system/cpu/cpu1/cpuidle/state*/disable |
		tr -d '\n')" 0000 "disable"
	umount "$tree/run"
else
	skip "a read-only sysfs" "nothing can be mounted here"
fi

# ---- looking ----

ok "states of a CPU" eval 'on_tree states --cpu 1 && has "$tmp/out" POLL C1E C6 "latency us"'
ok "states as JSON" eval 'on_tree states --json &&
	jq -e "length == 16 and .[3].states[1].name == \"C1\" and .[3].states[1].latency_us == 2" "$tmp/out"'
ok "status as JSON" eval 'on_tree status --json --cpu 3 &&
	jq -e ".emulated == false and .cpus[0].cpu == 3 and .cpus[0].mode == null and
		(.cpus[0].states | map(.name) | index(\"C6\")) and
		(.cpus[0].states[0] | has(\"entries\") and has(\"idle_ns\") and has(\"samples\") and
		has(\"spec_ctrl\"))" "$tmp/out"'
ok "status goes on at an interval until it is ended" eval '
	timeout -s INT 1 idlectl --sysroot "$tree" status --json --interval 0.2 --cpu 1 >"$tmp/out"
	[ "$(wc -l <"$tmp/out")" -ge 2 ] && jq -e ".cpus" "$tmp/out" >/dev/null'

# Nothing that would run on another CPU, or interrupt it: files and the module's memory only.
traced() { # ARGUMENTS...: the system calls of idlectl that may disturb, to $tmp/trace
	rm -f "$tmp/calls"
	strace -f -qq -o "$tmp/calls" \
		-e trace=sched_setaffinity,tgkill,tkill,membarrier,perf_event_open \
		timeout -s INT 1 idlectl "$@" >/dev/null 2>&1
	[ -e "$tmp/calls" ]
}
ok "looking wakes no CPU" eval 'traced status --interval 0.2 && ! grep "(" "$tmp/calls" &&
	traced states && ! grep "(" "$tmp/calls"'
last_cpu=$(($(nproc --all) - 1))
if [ "$last_cpu" -gt 0 ] && taskset -c "0,$last_cpu" true 2>/dev/null; then
	for c in "status --interval 0.2" states doctor; do
		ok "whoever looks at a CPU keeps off it: $c" eval 'traced $c --cpu $last_cpu &&
			has "$tmp/calls" sched_setaffinity &&
			! grep -E "sched_setaffinity.*[^0-9]$last_cpu[^0-9]*\\]" "$tmp/calls"'
	done
else
	skip "whoever looks at a CPU keeps off it" "there is one CPU only"
fi

# ---- the document, man page and completion ----

mkdir "$tmp/bin"
printf '#!/bin/sh\nexec "%s" --sysroot "%s" "$@"\n' "$program" "$tmp/example" >"$tmp/bin/idlectl"
chmod +x "$tmp/bin/idlectl"
ok "the examples of docs/idlectl.md are what it prints" eval '
	"$machines/unpack" skx-2s-6.1 "$tmp/example" &&
	PATH=$tmp/bin:$PATH tests/tool/examples.py docs/idlectl.md'

ok "the man page is well-formed and has every command" eval 'run --man;
	is "$(grep "^\.SS " "$tmp/out" | cut -c 5- | tr "\n" " ")" "$commands $probes " "sections" &&
	! { command -v groff >/dev/null && groff -man -Tutf8 -ww "$tmp/out" 2>&1 >/dev/null | grep .; }'

run --completion
cp "$tmp/out" "$tmp/completion"
# complete WORDS...: what bash would offer for the last word.
complete_words() {
	bash -c '. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _idlectl; printf "%s\n" "${COMPREPLY[@]}"' \
		"$tmp/completion" "$@"
}
completes() {
	local wanted=$1
	shift
	complete_words "$@" >"$tmp/words"
	grep -qxF -- "$wanted" "$tmp/words" || { cat "$tmp/words"; return 1; }
}
ok "completion of commands" completes status idlectl sta
ok "of options" completes --scenario idlectl run --sc
ok "of CPU numbers" completes 15 idlectl --sysroot "$tree" run --cpu 1
ok "of words" completes clear idlectl --sysroot "$tree" run --cpu 1 --scenario cl
ok "of idle states, behind a +" completes clear+c1e idlectl --sysroot "$tree" run --cpu 1 --scenario clear+c1

end_tests
