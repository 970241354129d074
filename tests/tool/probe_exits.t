#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# idlectl probe msr --exits over what perf script wrote, and with a perf of our own in place of a KVM host.
. tests/tap.sh

program=$(realpath "${BUILD:-build}/idlectl/idlectl") || bail "no idlectl"
PATH=$(dirname "$program"):$PATH
svm=$PWD/tests/data/kvm-svm.perf-script
vmx=$PWD/tests/data/kvm-vmx-synthesised.perf-script
export TMPDIR=$tmp/places
mkdir "$TMPDIR"

# run ARGUMENTS: of idlectl probe msr; what it says goes to out and err, its exit code to rc.
run() {
	timeout 60 idlectl probe msr "$@" >"$tmp/out" 2>"$tmp/err"
	rc=$?
}

# squeezed FILE: with single spaces.
squeezed() { tr -s ' ' <"$1" >"$tmp/squeezed"; }

# refuses CODE TEXT ARGUMENTS: that exit code, and one line on stderr that has the text.
refuses() {
	local code=$1 text=$2
	shift 2
	run "$@"
	is "$rc" "$code" "exit code" && is "$(wc -l <"$tmp/err")" 1 "lines on stderr" &&
		has "$tmp/err" "$text" && [ ! -s "$tmp/out" ] || { cat "$tmp/err" "$tmp/out"; return 1; }
}

# ---- recordings ----

table() { # file, lines of the table with single spaces
	run --exits --script "$1"
	is "$rc" 0 "exit code" && is "$(cat "$tmp/err")" "" stderr && squeezed "$tmp/out" || return
	shift
	has "$tmp/squeezed" "Reason Samples Samples% Time% Min Max Avg +-" "$@"
}

# The figures of the file that was made are known by hand.
ok "VMX: the table" table "$vmx" \
	"MSR_WRITE 4 57.14% 2.40% 0.50us 0.70us 0.60us ( +- 6.80% )" \
	"EXTERNAL_INTERRUPT 2 28.57% 2.50% 1.00us 1.50us 1.25us ( +- 20.00% )" \
	"HLT 1 14.29% 95.10% 95.10us 95.10us 95.10us" \
	"6726109 90.73% 62.18% 0.48us 191.27us 0.58us case=hackbench&mitigations=on&fastpath=yes" \
	"5417390 90.01% 16.31% 0.69us 159.60us 1.08us case=hackbench&mitigations=on&fastpath=no" \
	"2953447 92.48% 62.47% 0.30us 59.09us 0.40us ( +- 0.02% ) case=hackbench&mitigations=off&fastpath=yes" \
	"2681713 92.98% 77.52% 0.38us 18.54us 0.73us ( +- 0.02% ) case=hackbench&mitigations=off&fastpath=no" \
	"without an entry behind them 1, entries without an exit before them 1;" \
	"comparable: cannot tell: the machine of the recording is not known"
ok "most samples come first" is "$(awk 'NR > 1 && NF == 0 { exit } NR > 1 { print $1 }' "$tmp/out" | xargs)" \
	"MSR_WRITE EXTERNAL_INTERRUPT HLT" reasons
ok "SVM, recorded: the table" table "$svm" "msr 38 39.18% 1.50% 15.43us 70.16us 23.74us ( +- 9.53% )" \
	"on AMD reading and writing"

# The same figures by another way: pairs and means in awk.
expected() {
	awk '/kvm_exit:/ { split($4, t, ":"); at[$2] = t[1] * 1e6; why[$2] = $9 }
		/kvm_entry:/ && why[$2] != "" { split($4, t, ":"); n[why[$2]]++
			sum[why[$2]] += t[1] * 1e6 - at[$2]; why[$2] = "" }
		END { for (r in n) printf "%s %d %.2f\n", r, n[r], sum[r] / n[r] }' "$1" | sort
}
json_figures() {
	run --exits --script "$1" --json
	is "$rc" 0 "exit code" || return
	jq -r '.rows | map(select(.net != null)) | group_by(.case)[] |
		[.[0].case, (.[] | select(.metric == "samples") | .net),
		(.[] | select(.metric == "mean") | .net * 100 | round / 100)] | join(" ")' "$tmp/out" |
		awk '{ printf "%s %d %.2f\n", $1, $2, $3 }' | sort >"$tmp/figures"
	is "$(<"$tmp/figures")" "$(expected "$1")" figures
}
ok "SVM, as JSON: samples and means are what awk finds" json_figures "$svm"
ok "the guest's program wrote two MSRs a round" is "$(sed -n 's/^msr \([0-9]*\) .*/\1/p' "$tmp/figures")" 38 writes
facts() {
	run --exits --script "$svm" --json
	is "$(jq -c '[.probe, .where, .emulated, .facts.threads, .facts.exits, .facts.exits_without_entry,
		.facts.entries_without_exit, .facts.other_lines, (.rows | map(.metric) | unique | length)]' \
		"$tmp/out")" '["msr","recorded",false,2,99,2,2,0,7]' facts
}
ok "JSON has what was left out" facts
csv() {
	run --exits --script "$1" --csv
	is "$rc" 0 "exit code" && python3 - "$tmp/out" <<'PYTHON'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1], newline=""), strict=True))
assert rows and all(None not in row and None not in row.values() for row in rows), rows
ours = [row for row in rows if row["case"] == "MSR_WRITE" and row["repeats"]]
assert [row["metric"] for row in ours] == ["samples", "samples share", "time share", "min", "max", "mean", "rse"], ours
assert ours[5]["net"] == "0.6" and ours[5]["published"] == "", ours[5]
below = [row["published"] for row in rows if row["metric"] == "mean" and not row["repeats"]]
assert sorted(below) == ["0.4", "0.58", "0.73", "1.08"], below
assert all(row["comparable"].startswith("no: ") for row in rows if row["published"]), rows
PYTHON
}
ok "CSV has as many fields in every row" csv "$vmx"
histogram() {
	run --exits --script "$vmx" --histogram
	is "$rc" 0 "exit code" && has "$tmp/out" "MSR_WRITE, ns:"
}
ok "histograms" histogram

shortened() { # times in whole microseconds
	sed 's/\(\.[0-9]\{6\}\)[0-9]\{3\}:/\1:/' "$vmx" >"$tmp/us"
	table "$tmp/us" "times are whole microseconds"
}
ok "times in microseconds: said so" shortened
in_a_tree() {
	tests/data/machines/unpack vm "$tmp/vm" &&
		idlectl --sysroot "$tmp/vm" probe msr --exits --script "$vmx" >"$tmp/out" && has "$tmp/out" MSR_WRITE
}
ok "on a recorded tree too" in_a_tree
ok "from a pipe" eval 'run --exits --script <(cat "$svm"); is "$rc" 0 "exit code"'

# ---- files that are none ----

: >"$tmp/empty"
head -c 3000000 /dev/zero >"$tmp/zeros"
head -c 3000000 /dev/urandom >"$tmp/random"
head -c 3000000 /dev/zero | tr '\0' x >"$tmp/one-line"
grep entry "$svm" >"$tmp/entries"
grep exit "$svm" | awk '!seen[$2]++' >"$tmp/exits"
for name in empty zeros random one-line entries; do
	ok "a file without an exit: $name" refuses 1 "no exit of a guest" --exits --script "$tmp/$name"
done
ok "exits without entries" refuses 1 "an entry behind it" --exits --script "$tmp/exits"
ok "a directory" refuses 1 "Is a directory" --exits --script "$tmp"
ok "no such file" refuses 1 "$tmp/none: No such file" --exits --script "$tmp/none"
ok "a file that cannot be read" refuses 1 "Input/output error" --exits --script /proc/self/mem
mixed() { # a good file between two bad ones
	cat "$tmp/random" <(echo) "$vmx" "$tmp/zeros" >"$tmp/mixed"
	table "$tmp/mixed" "MSR_WRITE 4 57.14%" "lines that are no kvm_exit or kvm_entry"
}
ok "what is good between what is not" mixed

# ---- options ----

for o in "--script $vmx" "--pid 1" "--duration 1"; do
	# shellcheck disable=SC2086 # an option and its value
	ok "$o without --exits" refuses 2 "${o%% *}: needs --exits" $o
done
ok "--script and --pid" refuses 2 "--script and --pid" --exits --script "$vmx" --pid 1
ok "--script and --duration" refuses 2 "--script and --duration" --exits --script "$vmx" --duration 1
ok "--exits and --cpu" refuses 2 "--cpu and --exits" --exits --script "$vmx" --cpu 0
ok "a process that is no number" refuses 2 "--pid x" --exits --pid x

# ---- hosts ----

recorded_tree() {
	idlectl --sysroot "$tmp/vm" probe msr --exits >"$tmp/out" 2>"$tmp/err"
	is $? 4 "exit code" && has "$tmp/err" "a recorded tree runs no guests"
}
ok "a tree runs no guests" recorded_tree
if [ -e /sys/class/misc/kvm ]; then
	skip "no KVM here" "there is"
else
	ok "no KVM here" refuses 4 "this machine runs no KVM guests" --exits
fi

# A machine with KVM's files, and a perf that writes down how it is called.
mkdir "$tmp/bin"
cat >"$tmp/bin/perf" <<'EOP'
#!/bin/bash
echo "$@" >>"$LOG"
case $1 in
record)
	[ -z "${FAILS-}" ] || { printf 'Error:\n  %s\n' "$FAILS" >&2; exit 129; }
	while [ "$1" != -- ]; do [ "$1" != -o ] || echo data >"$2"; shift; done
	shift
	echo "Warning: processed 3 events" >&2
	echo "[ perf record: Woken up 1 times to write data ]" >&2
	"$@"
	[ -z "${ENDS-}" ] || kill -TERM $$ ;;
script)
	[ "$(<"$3")" = data ] || exit 1
	[ -z "${HANGS-}" ] || { sleep "$HANGS"; }
	cat "$SCRIPT"
	[ -z "${SCRIPT_FAILS-}" ] || { echo "incompatible file format" >&2; exit 255; } ;;
esac
EOP
cat >"$tmp/bin/host" <<'EOP'
#!/bin/bash
for dir in module class kernel; do
	mount -t tmpfs none /sys/$dir || exit 99
done
[ -n "${NO_MODULE-}" ] || mkdir /sys/module/kvm
[ -n "${NO_DEVICE-}" ] || mkdir -p /sys/class/misc/kvm
mkdir -p /sys/kernel/tracing/events/kvm/kvm_exit
[ -n "${NO_TRACEFS-}" ] || echo 1 >/sys/kernel/tracing/events/kvm/kvm_exit/id
exec "$@"
EOP
chmod +x "$tmp/bin/perf" "$tmp/bin/host"
export LOG=$tmp/log SCRIPT=$vmx
host() { PATH=$tmp/bin:$PATH unshare -m host "$@"; }
live() { # arguments of probe msr --exits
	: >"$LOG"
	host timeout 60 idlectl probe msr --exits "$@" >"$tmp/out" 2>"$tmp/err"
	rc=$?
}
left() { is "$(ls -A "$TMPDIR")" "" "what is left"; }

recorded() {
	live --duration 0.2
	is "$rc" 0 "exit code" && squeezed "$tmp/out" && has "$tmp/squeezed" "MSR_WRITE 4 57.14%" &&
		has "$LOG" "-e kvm:kvm_exit,kvm:kvm_entry" "-a -- sleep 0.200" "script -i " && left
}
one_process() {
	live --duration 0.2 --pid $$
	is "$rc" 0 "exit code" && has "$LOG" "-p $$ -- sleep 0.200" && hasnt "$LOG" " -a " && left
}
ended_early() {
	ENDS=1 live --duration 0.1 --pid $$
	is "$rc" 0 "exit code" && has "$tmp/out" "process $$ ended before the time was over" && left
}
failed() { # exit code, words on stderr
	local line
	line=$(<"$tmp/err")
	is "$rc" "$1" "exit code" && is "$(wc -l <"$tmp/err")" 1 "lines on stderr" || { echo "$line"; return 1; }
	has "$tmp/err" "$2" && is "$(<"$tmp/out")" "" stdout && left
}
# stopped SIGNAL [SECONDS]: idlectl while perf records, or when it has for so long and perf script hangs; it
# has to end at once, with all that it started.
stopped() {
	local began took pid i hangs=$((100000 + $$ % 800000))
	: >"$LOG"
	env HANGS=${2:+$hangs} PATH="$tmp/bin:$PATH" unshare -m host env --default-signal=INT idlectl probe msr \
		--exits --duration "${2:-$hangs}" >"$tmp/out" 2>"$tmp/err" &
	pid=$!
	for ((i = 0; i < 400; i++)); do
		pgrep -f "^sleep $hangs" >/dev/null && break
		sleep 0.05
	done
	began=$(date +%s%N)
	kill -"$1" $pid
	wait $pid
	rc=$?
	took=$((($(date +%s%N) - began) / 1000000))
	failed 1 interrupted || return
	[ "$i" -lt 400 ] || { echo "it never ran"; return 1; }
	pgrep -fa "^sleep $hangs" && return 1
	[ -z "${TOOK-}" ] || echo "$1 $took ms" >>"$TOOK"
	# 100 ms, and what a busy machine adds.
	[ $took -lt 500 ] || { echo "$took ms"; return 1; }
}
# killed: nobody can clean up behind it, so that nothing may need it.
killed() {
	local pid i k rc survivors hangs=$((100000 + $$ % 800000))
	: >"$LOG"
	PATH="$tmp/bin:$PATH" unshare -m host idlectl probe msr --exits --duration $hangs >"$tmp/out" 2>"$tmp/err" &
	pid=$!
	for ((i = 0; i < 400; i++)); do
		pgrep -f "^sleep $hangs" >/dev/null && break
		sleep 0.05
	done
	kill -KILL $pid
	wait $pid 2>/dev/null
	rc=$?
	for ((k = 0; k < 100; k++)); do
		survivors=$(pgrep -fa "perf record .* -- sleep $hangs") || break
		sleep 0.05
	done
	pkill -f "^sleep $hangs" # what perf was told to run, and outlives it
	is "$rc" 137 "exit code" && is "$survivors" "" "perf that is left" && left || return
	[ "$i" -lt 400 ] || { echo "it never ran"; return 1; }
}
if unshare -m "$tmp/bin/host" true 2>/dev/null; then
	ok "all guests" recorded
	ok "one process" one_process
	ok "a process that ends first" ended_early
	ok "no such process" eval 'live --pid 2147483647; failed 1 "--pid 2147483647: no such process"'
	ok "what perf record says" eval 'FAILS="No permission to enable kvm:kvm_exit" live
		failed 1 "perf record: exit code 129: Error: No permission to enable kvm:kvm_exit"'
	ok "what perf script says" eval 'SCRIPT_FAILS=1 live --duration 0.1
		failed 1 "perf script: exit code 255: incompatible file format"'
	ok "a guest that did nothing" eval 'SCRIPT=/dev/null live --duration 0.1; failed 1 "no exit of a guest"'
	ok "kvm is not loaded" eval 'NO_MODULE=1 live; failed 4 "kvm is not loaded"'
	ok "a CPU that cannot run guests" eval 'NO_DEVICE=1 live; failed 4 "there is no /dev/kvm"'
	ok "no tracefs" eval 'NO_TRACEFS=1 live; failed 4 "tracepoints of kvm cannot be read"'
	ok "no perf" eval '
		PATH=$tmp/bin:$PATH unshare -m host env PATH=/nowhere "$program" probe msr --exits \
			>"$tmp/out" 2>"$tmp/err"; rc=$?; failed 4 "perf is not installed (linux-perf)"'
	ok "nowhere to write" eval 'TMPDIR=/nowhere live; is "$rc" 1 "exit code" && has "$tmp/err" "/nowhere/"'
	for signal in INT TERM HUP; do
		ok "SIG$signal while perf records" stopped $signal
	done
	ok "SIGKILL while perf records" killed
	ok "SIGTERM while perf script runs" stopped TERM 0.1
else
	skip "a machine with KVM's files" "no mount namespace to be had"
fi

end_tests
