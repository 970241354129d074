#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# --resume: a run that was killed at whatever moment leaves whole rows and a machine as it was; resumed, it has
# the structure of one that nobody disturbed. What is not as it was when the run began is refused.
. "${0%/*}/lib.sh"

results=$tmp/results
options=(--source=null --sibling=0 --scenario=as-is,busy --blocks=6 --windows=2 --duration=0.03 --warmup=0.01 --record-burst-stats
	"${bounds[@]}")
# with OPTION...: the run, into $results.
with() { forward "${options[@]}" --out="$results" "$@"; }

# structure: what does not depend on the machine, of rows and of result.json.
structure() {
	values "$results/windows.csv" run_id block position visit window warmup scenario burst lcore | sed 's/^[^ ]* //'
	values "$results/windows.csv" run_id | uniq | wc -l
	values "$results/bursts.csv" visit window lcore | uniq
	jq -c 'paths(type != "object") | select(.[0] | IN("command_line", "warnings") | not) | map(tostring) | join(".")' \
		"$results/result.json"
	jq -c '[.windows_asked, .windows_done, .blocks, .blocks_again, .interrupted, .error, .margin_percent]' "$results/result.json"
	(cd "$results" && ls)
}
rows() { wc -l 2>/dev/null <"$results/windows.csv" || echo 0; }
have_rows() { [ "$(rows)" -ge "$1" ]; }
visited() { [ "$(grep -c "$1" "$results/log.txt" 2>/dev/null)" -ge "$2" ]; }
# killed WHEN...: a run that is killed once that is true.
killed() {
	rm -rf "$results"
	start "${options[@]}" --out="$results" "${more[@]}"
	until_true "$@" || return 1
	kill -KILL "$pid"
	finish
	for ((i = 0; i < 200; i++)); do free && break; sleep 0.02; done
	free
}
# resumed: it ends well, is sound, and as the run that nobody disturbed.
resumed() {
	with --resume "${more[@]}"
	worked && "$report" check "$results" && structure >"$tmp/structure" && diff "$tmp/whole" "$tmp/structure" && free
}

more=()
with
structure >"$tmp/whole"
ok "a run that nobody disturbs leaves nothing to resume" eval 'worked && [ ! -e "$results/resume.json" ]'
ok "resuming it says so" eval 'with --resume; failed_with 1 "no unfinished run" "$results"'

begun() { [ -e "$results/resume.json" ]; }
for when in "begun" "have_rows 1" "have_rows 2" "visited verified 1" "have_rows 9" "visited given.back 3" "have_rows 40" \
	"visited verified 9" "have_rows 70"; do
	ok "kill -9 when $when: the machine is given back" eval 'killed $when'
	ok "kill -9 when $when: whole rows, which show reads" eval '[ ! -s "$results/windows.csv" ] ||
		{ whole_rows "$results/windows.csv" && "$report" show "$results" >/dev/null; }'
	ok "kill -9 when $when: --resume makes it whole" resumed
done
ok "twice" eval 'killed have_rows 20 && { start "${options[@]}" --out="$results" --resume
	until_true have_rows 45; kill -KILL $pid; finish; resumed; } && is "$(jq .sessions "$results/result.json")" 3 sessions'
ok "SIGINT" eval 'rm -rf "$results"; start "${options[@]}" --out="$results"; until_true have_rows 30; kill -INT $pid; finish
	is "$(jq .interrupted "$results/result.json")" true interrupted && resumed'
ok "half a row is cut off" eval 'killed have_rows 20 && printf "1,cut" >>"$results/windows.csv" && resumed'
ok "before the first row was: it begins" eval 'rm -rf "$results"; with --resume; worked && has "$tmp/err" "the run begins" &&
	structure | diff "$tmp/whole" -'
more=(--taint-irqs=0)
with --out="$tmp/tainted" "${more[@]}"
results=$tmp/tainted structure >"$tmp/whole"
ok "tainted blocks: as many again" eval 'killed have_rows 60 && resumed'
more=(--order=random:7)
with --out="$tmp/random" "${more[@]}"
results=$tmp/random structure >"$tmp/whole"
ok "a random order goes on" eval 'killed have_rows 30 && resumed'
more=(--format=csv)
ok "the rows on stdout are all of them" eval 'killed have_rows 30; with --resume "${more[@]}"; worked &&
	cmp "$tmp/out" "$results/windows.csv"'

more=()
ok "nothing of an earlier end is left beside a run that goes on" eval '
	rm -rf "$results"; start "${options[@]}" --out="$results"; until_true have_rows 20 && kill -INT "$pid" && finish
	[ -e "$results/result.json" ] && start "${options[@]}" --out="$results" --resume && until_true have_rows 40 &&
	kill -KILL "$pid" && finish; [ ! -e "$results/result.json" ] && "$report" check "$results"'

# ---- what is refused, and changes nothing ----

more=()
killed have_rows 30
cp -r "$results" "$tmp/kept"
# unchanged: the run that was killed is there as it was.
unchanged() { diff -r "$tmp/kept" "$results"; }
# edited FILTER: the run that was killed, with another resume.json.
edited() { rm -rf "$results" && cp -r "$tmp/kept" "$results" && jq "$1" "$tmp/kept/resume.json" >"$results/resume.json"; }
ok "without --resume it is left alone" eval 'with; failed_with 1 "unfinished run" --resume && unchanged'
ok "other options, which are named" eval 'with --resume --margin=1; failed_with 1 "command_line was [], is [\"--margin=1\"]" && unchanged'
for what in boot_id microcode module_version program dpdk kernel kernel_command_line cpus; do
	ok "another $what" eval 'edited ".machine.$what = \"another one\""
		with --resume; failed_with 1 "$what was another one"'
done
ok "several that differ are all named" eval 'edited ".machine.microcode = \"0x1\" | .machine.boot_id = \"b\""
	with --resume; failed_with 1 "microcode was 0x1" "boot_id was b"'
for filter in 'del(.visits)' '.blocks = -1' '.visits = 1e3' '.windows = "x"' '.run_id = 5' '.machine = []' \
	'.next_block = 0' 'del(.before)' '[]' '.tsc_hz = null'; do
	ok "resume.json that is none: $filter" eval 'edited "$filter"; with --resume; failed_with 1 resume.json'
done
ok "no JSON" eval 'edited . && echo "{" >"$results/resume.json"; with --resume; failed_with 1 resume.json'
# still NAME: that file is as it was before it was refused.
still() { cmp "$tmp/before" "$results/$1"; }
ok "rows that are missing" eval 'edited . && sed -i "3,5d" "$results/windows.csv" && cp "$results/windows.csv" "$tmp/before"
	with --resume; failed_with 1 windows.csv && still windows.csv'
ok "rows of another run" eval 'edited ".run_id = \"r\"" && cp "$results/windows.csv" "$tmp/before"
	with --resume; failed_with 1 windows.csv && still windows.csv'
ok "bursts that are none" eval 'edited . && sed -i "2s/.*/x/" "$results/bursts.csv" && cp "$results/windows.csv" "$tmp/before"
	with --resume; failed_with 1 bursts.csv && still windows.csv'
ok "no windows.csv" eval 'edited . && rm "$results/windows.csv"; with --resume; failed_with 1 windows.csv'
ok "a directory of something else" eval 'rm -rf "$results" && mkdir "$results" && touch "$results/x"
	with --resume; failed_with 1 "no unfinished run" && [ -e "$results/x" ]'
ok "without --out" eval 'forward "${options[@]}" --resume; failed_with 2 --resume --out'
ok "--dry-run says how much is left" eval 'edited . && with --resume --dry-run && worked && has "$tmp/out" "were measured" &&
	unchanged'

end_tests
