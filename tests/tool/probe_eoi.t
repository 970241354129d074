#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# idlectl probe eoi --bench: two settings in turn, whether they differ, and that what they wrote is put back.
# A perf that tells made-up times stands for the real one, which runs once where it is installed.

# With a lock and a journal of its own, where that can be had: other tests hold scenarios beside it.
if [ -z "${OWN_RUN-}" ] && unshare -m true 2>/dev/null && mkdir -p /run/sibfwd; then
	export OWN_RUN=1
	exec unshare -m --propagation private sh -c \
		'mount -t tmpfs -o mode=755 tmpfs /run/sibfwd; exec "$@"' sh bash "$0" "$@"
fi
. tests/tap.sh

idlectl=$(realpath "${BUILD:-build}/idlectl/idlectl") || bail "no idlectl"
real_path=$PATH

# ---- a perf that is none ----

# It writes down what it is called with and how the machine is then; $tmp/mode says what it does else, and
# $tmp/slow how much longer it takes with the file as the setting has it, in ms.
file=/proc/sys/kernel/printk_ratelimit
mkdir "$tmp/bin"
export TEST_DIR=$tmp TEST_FILE=$file
cat >"$tmp/bin/perf" <<'PERF'
#!/bin/bash
value=$(<"$TEST_FILE")
echo "$value $*" >>"$TEST_DIR/log"
case $(<"$TEST_DIR/mode") in
fail) echo "perf: no events today" >&2; exit 3 ;;
killed) kill -TERM $$ ;;
silent) echo "# Running 'sched/nothing' benchmark:"; exit ;;
hang) touch "$TEST_DIR/hangs"; exec sleep 60 ;;
hang-deep) sleep 61 & touch "$TEST_DIR/hangs"; wait ;;
esac
# Runs vary, under both settings alike: in the same way from pair to pair.
ms=$((100 + $(wc -l <"$TEST_DIR/log") / 2 % 3))
[ "$value" != "$(<"$TEST_DIR/new")" ] || ms=$((ms + $(<"$TEST_DIR/slow")))
echo "# Running 'sched/$3' benchmark:"
printf '\n     Total time: 0.%03d [sec]\n' $ms
[ "$3" != pipe ] || printf '\n      %d.000000 usecs/op\n            100 ops/sec\n' $((ms * 1000 / $5))
PERF
chmod +x "$tmp/bin/perf"
PATH=$tmp/bin:$PATH

# perf_is MODE MS: from now on; what it wrote down goes.
perf_is() {
	echo "$1" >"$tmp/mode"
	echo "$2" >"$tmp/slow"
	rm -f "$tmp/log" "$tmp/hangs"
	touch "$tmp/log"
}

# probe OPTION...: the exit code is in rc.
probe() {
	timeout -k 5 60 "$idlectl" probe eoi "$@" >"$tmp/out" 2>"$tmp/err"
	rc=$?
}

# refuses CODE TEXT OPTION...: with one line on stderr that has the text, and nothing was run.
refuses() {
	local code=$1 text=$2
	shift 2
	perf_is run 0
	probe "$@"
	is "$rc" "$code" "exit code" && is "$(wc -l <"$tmp/err")" 1 "lines on stderr" &&
		has "$tmp/err" "$text" && [ ! -s "$tmp/out" ] && [ ! -s "$tmp/log" ] ||
		{ cat "$tmp/err" "$tmp/out" "$tmp/log"; return 1; }
}

# failed CODE TEXT: the last probe did, in one line.
failed() {
	is "$rc" "$1" "exit code" && is "$(wc -l <"$tmp/err")" 1 "lines on stderr" && has "$tmp/err" "$2" ||
		{ cat "$tmp/err"; return 1; }
}

worked() { is "$rc" 0 "exit code" && [ ! -s "$tmp/err" ] || { cat "$tmp/err"; return 1; }; }

# ---- the command line ----

two=(--base as-is --other as-is)
echo 0 >"$tmp/new"
ok "--base without --bench" refuses 2 "--base needs --bench" --base as-is
ok "--other without --bench" refuses 2 "--other needs --bench" --other as-is
ok "--bench without --base" refuses 2 "needs --base" --bench pipe --other as-is
ok "--bench without --other" refuses 2 "needs --other" --bench pipe --base as-is
ok "an unknown benchmark" refuses 2 "--bench mutex: there are messaging and pipe" --bench mutex "${two[@]}"
ok "a scenario without a CPU" refuses 2 "--other busy: a scenario needs --cpu" --bench pipe --base as-is --other busy
ok "a scenario that is none" refuses 2 "--base c1+: " --bench pipe --cpu 0 --base c1+ --other as-is
for setting in /etc/passwd=1 /sys/../etc/passwd=1 /proc/sys/kernel/..=1 /proc/1/oom_score_adj=1 kernel/x=1 /proc/sys=1; do
	ok "not a file to write to: $setting" refuses 2 "--other ${setting%=1}: not a file below" \
		--bench pipe --base as-is --other "$setting"
done
for setting in /sys/kernel=1 /proc/sys/kernel=1 /sys/fs/cgroup/cgroup.procs=1; do
	[ -e "${setting%=1}" ] || continue
	ok "nor is this one: $setting" refuses 2 "--base ${setting%=1}: not a file of sysfs" \
		--bench pipe --base "$setting" --other as-is
done
ok "a file that is not there" refuses 2 "/proc/sys/kernel/nothing: No such file" \
	--bench pipe --base as-is --other /proc/sys/kernel/nothing=1
ok "a file without a value" refuses 2 "--base $file=: FILE=VALUE" --bench pipe --base "$file=" --other as-is
ok "a file and nothing else" refuses 2 "--base $file: FILE=VALUE" --bench pipe --base "$file" --other as-is
ok "--json and --csv" refuses 2 "contradict" --bench pipe "${two[@]}" --json --csv
ok "no loops" refuses 2 "--loops 0" --bench pipe "${two[@]}" --loops 0
ok "help tells of it" eval 'probe --help; has "$tmp/out" --bench --base --other'

tests/data/machines/unpack skx-2s-6.1 "$tmp/tree" || bail "no tree"
ok "a recorded tree" eval '"$idlectl" --sysroot "$tmp/tree" probe eoi --bench pipe "${two[@]}" >"$tmp/out" 2>"$tmp/err"
	rc=$?; failed 4 "recorded tree" && [ ! -s "$tmp/out" ]'

# What follows runs something, with the lock of the machine.
if [ "$(id -u)" -ne 0 ] || ! mkdir -p /run/sibfwd || [ -e /run/sibfwd/journal ]; then
	skip "what runs" "no root, or somebody's journal is there"
	end_tests
fi

ok "perf is not installed" eval 'mkdir "$tmp/empty"; perf_is run 0
	PATH=$tmp/empty "$idlectl" probe eoi --bench pipe "${two[@]}" >"$tmp/out" 2>"$tmp/err"
	rc=$?; failed 4 "perf is not installed (linux-perf)" && [ ! -s "$tmp/out" ]'

# ---- what is run, and what is told ----

free() { flock -w 5 /run/sibfwd/lock true && [ ! -e /run/sibfwd/journal ]; }

perf_is run 0
ok "as it is, twice" eval 'probe --bench messaging "${two[@]}" --repeats 6; worked'
ok "a null test is below the noise" has "$tmp/out" "below the noise: less than three standard errors"
ok "each repeat is two runs, and so is the warm-up" is "$(wc -l <"$tmp/log")" 14 runs
ok "messaging has perf's own loops" eval 'is "$(cut -d" " -f 2- "$tmp/log" | sort -u)" "bench sched messaging" arguments'
ok "the published times stand beside" has "$tmp/out" 0.4147 0.3954 "patched=no" 172.2
perf_is run 0
ok "pipe has the loops of the published figures" eval 'probe --bench pipe "${two[@]}" --repeats 1 --warmup 0; worked &&
	is "$(cut -d" " -f 2- "$tmp/log" | sort -u)" "bench sched pipe -l 10000" arguments'
ok "one run has no verdict" has "$tmp/out" "no verdict: one run has no standard error"
perf_is run 0
ok "or those that are asked for" eval 'probe --bench pipe "${two[@]}" --repeats 2 --loops 50 --json; worked &&
	is "$(cut -d" " -f 2- "$tmp/log" | sort -u)" "bench sched pipe -l 50" arguments'
ok "times are by usecs/op, and what is published stands below" jq -e '
	.facts.bench == "pipe" and ([.facts.base.seconds[], .facts.other.seconds[]] | all(. > 0.0999 and . < 0.103)) and
	([.rows[] | select(.repeats > 0) | .published] | all(. == null)) and
	([.rows[] | select(.metric == "pipe, elapsed mean" and .repeats == 0) | .published] == [0.307019664, 0.304738024])' "$tmp/out"
perf_is run 0
ok "JSON" eval 'probe --bench messaging "${two[@]}" --repeats 6 --json; worked && jq -e "
	(.probe == \"eoi\") and (.facts.verdict.verdict == \"below the noise\") and (.facts.base.seconds | length == 6) and
	([.rows[] | select(.metric == \"messaging\" and .repeats == 6)] | length == 2) and
	([.rows[] | select(.metric == \"messaging, elapsed mean\") | .published] == [0.414666797, 0.395370891]) and
	([.rows[] | select(.metric == \"pipe, elapsed rse\") | .published] == [0.10, 0.08])" "$tmp/out"'
ok "CSV has as many fields in each row" eval 'probe --bench messaging "${two[@]}" --repeats 2 --csv; is "$rc" 0 "exit code" &&
	has "$tmp/err" "idlectl: messaging: difference " &&
	python3 -c "import csv, sys
rows = list(csv.reader(open(sys.argv[1], newline=\"\"), strict=True))
assert len(rows) > 14 and all(len(row) == 17 for row in rows), rows" "$tmp/out"'

for mode in "fail:1:perf bench: exit code 3: perf: no events today" "killed:1:perf bench: ended by signal 15" \
	"silent:1:perf told no time"; do
	IFS=: read -r how code words <<<"$mode"
	ok "perf: $how" eval 'perf_is $how 0; probe --bench pipe "${two[@]}"; failed $code "$words" && [ ! -s "$tmp/out" ] &&
		is "$(wc -l <"$tmp/log")" 1 runs && free'
done

# ---- scenarios ----

perf_is run 0
ok "a load on a CPU, in turn with none" eval 'probe --bench pipe --cpu 0 --base as-is --other busy --repeats 1 --warmup 0
	worked && has "$tmp/out" "base: as-is" "other: busy" && is "$(wc -l <"$tmp/log")" 2 runs && free'
ok "one that this machine has not" eval '[ -e /sys/devices/system/cpu/cpu0/cpuidle/state0 ] ||
	refuses 4 "--base limit:20: " --bench pipe --cpu 0 --base limit:20 --other as-is'

# ---- files ----

# There is one such file: a run of this test in another tree waits.
if ! { exec 9<"$file" && flock -w 600 9; } 2>/dev/null; then
	skip "files that are written" "$file cannot be read"
	end_tests
fi
old=$(cat "$file" 2>/dev/null)
if ! echo "$old" 2>/dev/null >"$file"; then
	skip "files that are written" "$file cannot be"
	end_tests
fi
at_exit 'echo $old >$file'
new=$((old + 1))
echo $new >"$tmp/new"
files=(--base as-is --other "$file=$new")
as_before() { is "$(<"$file")" "$old" "the file" && free; }

perf_is run 50
ok "a file is another one in every second run" eval 'probe --bench messaging "${files[@]}" --repeats 4 --warmup 0; worked && as_before'
ok "A B, B A, A B, B A" is "$(cut -d" " -f 1 "$tmp/log" | tr '\n' ' ')" "$old $new $new $old $old $new $new $old " order
ok "what is slower is told" eval 'has "$tmp/out" "beyond three standard errors: base as-is is faster by 3" &&
	has "$tmp/out" "other: $file=$new"'
perf_is run 50
ok "the other way round" eval 'probe --bench messaging --base $file=$new --other as-is --repeats 4 --warmup 1 --json; worked && as_before &&
	jq -e ".facts.verdict | .verdict == \"beyond three standard errors\" and .difference_s < -0.049 and .standard_errors < -3" "$tmp/out"'
ok "the warm-up comes first, and backward" is "$(cut -d" " -f 1 "$tmp/log" | tr '\n' ' ')" \
	"$old $new $new $old $old $new $new $old $old $new " order
perf_is run 50
ok "the same file and value twice is a null test" eval 'probe --bench messaging --base $file=$new --other $file=$new \
	--repeats 6; worked && as_before && has "$tmp/out" "below the noise"'
ok "a value that the kernel reads otherwise" eval 'perf_is run 0
	probe --bench pipe --base as-is --other $file=0$new; failed 1 "$file: reads $new after 0$new was written" && as_before'
ok "a value that the kernel refuses" eval 'perf_is run 0
	probe --bench pipe --base as-is --other $file=many; failed 1 "$file: Invalid argument" && as_before'
ok "perf fails: put back" eval 'perf_is fail 0
	probe --bench pipe --base $file=$new --other as-is --warmup 0; failed 1 "no events" && is "$(cut -d" " -f 1 "$tmp/log")" $new value &&
	as_before'

flag=/sys/kernel/mm/transparent_hugepage/khugepaged/defrag
perf_is run 0
choice=/sys/kernel/mm/transparent_hugepage/shmem_enabled
if grep -q '\[' $choice 2>/dev/null; then
	ok "a choice of words" eval 'held=$(<$choice); probe --bench pipe --base $choice=never --other $choice=advise --repeats 1
		worked && is "$(<$choice)" "$held" "the file" && free'
else
	skip "a choice of words" "no $choice"
fi
[ ! -w $flag ] || ok "a file of sysfs" eval 'held=$(<$flag); probe --bench pipe --base as-is --other $flag=$((1 - held)) --repeats 1
	worked && is "$(<$flag)" "$held" "the file" && free'

# ---- ended in the middle ----

# begin MODE: a run in the background that hangs with the file changed.
begin() {
	local i
	perf_is "$1" 0
	"$idlectl" probe eoi --bench pipe --base "$file=$new" --other as-is --warmup 0 >"$tmp/out" 2>"$tmp/err" &
	pid=$!
	for i in $(seq 500); do
		[ ! -e "$tmp/hangs" ] || break
		sleep 0.02
	done
	is "$(<"$file")" $new "the file meanwhile"
}
# gone PATTERN: no process of the fake is left.
gone() {
	local i
	for i in $(seq 100); do
		pgrep -fx "$1" >/dev/null || return 0
		sleep 0.02
	done
	pgrep -afx "$1"
	return 1
}
for signal in INT TERM HUP; do
	for mode in hang hang-deep; do
		ok "SIG$signal, $mode: at once, all ended, put back" eval 'begin $mode; began=$(date +%s%3N); kill -$signal $pid; wait $pid; rc=$?
			took=$(($(date +%s%3N) - began)); failed 1 interrupted && as_before && gone "sleep 6[01]" && [ ! -s "$tmp/out" ] &&
			{ [ $took -lt 1000 ] || { echo "took $took ms"; false; }; }'
	done
done
ok "kill -9: put back by the supervisor, and perf ended" eval 'begin hang && kill -KILL $pid && { wait $pid 2>/dev/null; free; } &&
	as_before && gone "sleep 60" && has "$tmp/err" "it was killed; 1 files put back"'
ok "kill -9 of its supervisor and of itself: restore puts back" eval 'begin hang && killed=$(pgrep -P $pid -x sibfwd-restore) &&
	kill -KILL $killed $pid && { wait $pid 2>/dev/null; flock -w 5 /run/sibfwd/lock true; } && is "$(<"$file")" $new "the file" &&
	"$idlectl" restore >"$tmp/out" && has "$tmp/out" "1 files put back" && as_before'
ok "while a scenario is held it does not begin" eval 'perf_is run 0; "$idlectl" set --cpu 0 --scenario busy >"$tmp/set" &&
	{ probe --bench pipe "${files[@]}"; failed 1 "in use by process"; } && [ ! -s "$tmp/log" ] && "$idlectl" restore && as_before'

# ---- perf itself ----

PATH=$real_path
if command -v perf >/dev/null; then
	for bench in pipe messaging; do
		ok "perf bench sched $bench" eval 'probe --bench $bench "${files[@]}" --loops 2 --repeats 2 --warmup 0; worked && as_before &&
			has "$tmp/out" "standard error"'
	done
else
	skip "perf bench sched" "perf is not installed"
fi

end_tests
