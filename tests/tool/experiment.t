#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Several scenarios in one run: the order of the visits, what is measured again, what is compared, and that
# the machine is as before after each visit. On this machine, with loads, which every machine has.
. "${0%/*}/lib.sh"

results=$tmp/results

# with OPTION...: a short run into $results.
with() {
	rm -rf "$results"
	forward --source=null --sibling=0 --out="$results" --duration=0.02 "${bounds[@]}" "$@"
}

# visits: what the rows say of the order, "block/position scenario" a visit.
visits() {
	python3 -c 'import csv, sys
last = None
for r in csv.DictReader(open(sys.argv[1], newline="")):
    if r["visit"] != last:
        print(r["block"] + "/" + r["position"], r["scenario"])
    last = r["visit"]' "$results/windows.csv"
}
order() { visits | sed 's/.* //' | tr '\n' ' '; }
# json FILTER WANTED: of result.json.
json() { is "$(jq -c "$1" "$results/result.json")" "$2" "$1"; }

ok "two scenarios, two blocks: A B B A, B A A B" eval 'with --scenario=as-is,busy --blocks=2 && worked &&
	is "$(order)" "as-is busy busy as-is busy as-is as-is busy " order'
ok "blocks and positions are numbered" is "$(visits | sed 's/ .*//' | tr '\n' ' ')" \
	"1/1 1/2 1/3 1/4 2/1 2/2 2/3 2/4 " numbers
ok "what was asked is what was done" eval 'json "[.blocks, .windows_asked, .windows_done, .scenarios]" \
	"[2,8,8,[\"as-is\",\"busy\"]]"'
ok "each visit was verified and given back" eval 'is "$(grep -c "busy applied and verified" "$results/log.txt")" 4 \
	visits && is "$(grep -c "given back" "$results/log.txt")" 4 ends && free'
ok "the two are compared" eval 'json ".comparisons[0] | [.base, .other, .n_base]" "[\"as-is\",\"busy\",2]" &&
	has "$tmp/out" "busy over as-is"'
ok "and sibfwd-report says the same" eval '"$report" check "$results" && "$report" show "$results" >"$tmp/shown" &&
	has "$tmp/shown" "$(grep "^busy over" "$tmp/out")"'
ok "without --margin there is no verdict" json .verdict null
ok "three scenarios: A B C C B A" eval 'with --scenario=as-is,busy,pause && worked &&
	is "$(order)" "as-is busy pause pause busy as-is " order'
ok "a random order is the same by the same seed" eval 'with --scenario=as-is,busy --blocks=3 --order=random:5 &&
	worked && first=$(order) && json ".seed" 5 && with --scenario=as-is,busy --blocks=3 --order=random:5 &&
	is "$(order)" "$first" order'
ok "one scenario has one visit a block" eval 'with --blocks=3 && worked && is "$(order)" "as-is as-is as-is " order'
ok "warm-up windows are flagged in every visit" eval 'with --scenario=as-is,busy --warmup=0.01 && worked &&
	is "$(python3 -c "import csv, sys
print([r[\"warmup\"] for r in csv.DictReader(open(sys.argv[1], newline=\"\"))])" "$results/windows.csv")" \
	"[$(printf "'\''1'\'', '\''0'\'', %.0s" 1 2 3)'\''1'\'', '\''0'\'']" warmup'
ok "a null test: one scenario under two names" eval 'with --null-test --blocks=2 && worked &&
	is "$(order)" "as-is as-is/null as-is/null as-is as-is/null as-is as-is as-is/null " order &&
	json ".comparisons[0].null_test" true && has "$tmp/out" "null test"'
ok "a null test beside other scenarios is one more arm" eval 'with --null-test --scenario=as-is,busy && worked &&
	is "$(order)" "as-is busy as-is/null as-is/null busy as-is " order &&
	json "[.comparisons[] | [.other, .null_test]]" "[[\"busy\",false],[\"as-is/null\",true]]"'
ok "whatever the order, a run begins with the scenario that others are compared with" eval '
	for seed in 1 2 3 4 5 6; do
		with --scenario=as-is,busy,pause --order=random:$seed && worked &&
			json "[.comparisons[].base] | unique" "[\"as-is\"]" && [[ $(order) = "as-is "* ]] || break
	done'
ok "a tainted block is measured again, but not for ever" eval '
	with --scenario=as-is,busy --blocks=2 --taint-irqs=0; worked &&
	json "[.blocks, .windows_asked, .windows_done, .blocks_again]" "[2,8,16,2]" &&
	is "$(order)" "$(for i in 1 2 3; do echo -n "as-is busy busy as-is "; done)busy as-is as-is busy " order &&
	has "$results/log.txt" "block 1 is tainted and measured again"'
ok "preset: windows of a visit" eval 'forward --source=null --preset=patch --dry-run && has "$tmp/out" "5 windows of 10 s"'
ok "--dry-run shows order and time" eval 'forward --source=null --sibling=0 --scenario=as-is,busy --blocks=10 --windows=3 \
	--duration=1 --warmup=1 --settle=0 --dry-run && has "$tmp/out" "block 1      as-is busy busy as-is" \
	"block 2      busy as-is as-is busy" "time        160.0 s" "10 blocks of 4 visits" && free'

# ---- bursts as arms ----

# verdict CODE: the exit code is that of the verdict in result.json.
verdict() {
	case $(jq -r .verdict "$results/result.json") in
	same | improvement) is "$rc" 0 "exit code" ;;
	regression) is "$rc" 3 "exit code" ;;
	inconclusive) is "$rc" 5 "exit code" ;;
	*) return 1 ;;
	esac
}
# bursts: of the visits, in their order.
bursts() {
	python3 -c 'import csv, sys
seen = {}
for r in csv.DictReader(open(sys.argv[1], newline="")):
    seen[int(r["visit"])] = r["burst"]
print(*[seen[v] for v in sorted(seen)])' "$results/windows.csv"
}
ok "two bursts are visited and compared like scenarios" eval 'with --burst=4,32 --blocks=2 && worked &&
	is "$(bursts)" "4 32 32 4 32 4 4 32" order && json "[.comparisons[] | [.base, .other, .n_base]]" \
	"[[\"as-is burst 4\",\"as-is burst 32\",2]]" && json "[.estimates.scenarios[].burst]" "[4,32]" &&
	"$report" check "$results" && "$report" show "$results" >"$tmp/shown" && has "$tmp/shown" "as-is burst 32"'
ok "no poll takes more than its burst" eval 'with --burst=2,16 --blocks=1 --record-burst-stats && worked &&
	is "$(python3 -c "import csv, sys
rows = {(r[\"visit\"], r[\"window\"]): r[\"burst\"] for r in csv.DictReader(open(sys.argv[1] + \"/windows.csv\"))}
print(sorted({(int(rows[b[\"visit\"], b[\"window\"]]), int(b[\"burst_size\"])) for b in csv.DictReader(open(sys.argv[1] + \"/bursts.csv\"))}))" "$results")" \
	"[(2, 2), (16, 16)]" sizes'
ok "bursts and scenarios: each with each" eval 'with --burst=4,32 --scenario=as-is,busy && worked &&
	is "$(bursts)/$(order)" "4 4 32 32 32 32 4 4/as-is busy as-is busy busy as-is busy as-is " order && free'
ok "a margin for two bursts" eval 'with --burst=4,32 --blocks=2 --margin=100 && verdict'
ok "a burst twice" eval 'with --burst=4,4; failed_with 2 "4 is there twice"'
ok "nothing between two commas of bursts" eval 'with --burst=4,,8; failed_with 2 "--burst="'
ok "a burst that is none among others" eval 'with --burst=4,x; failed_with 2 "--burst=x"'
ok "one that is too large" eval 'with --burst=4,600; failed_with 2 "--burst=600"'
ok "too many arms" eval 'with --burst=1,2,3,4,5,6,7,8,9 --scenario=as-is,busy; failed_with 2 "more than 16"'
ok "a null test of two bursts" eval 'with --null-test --burst=4,32; failed_with 2 "--null-test" "--burst"'

# ---- look-ups as arms ----

# lookups: of the visits, in their order.
lookups() { values "$results/windows.csv" visit noisy_lookups | uniq | cut -d ' ' -f 2 | tr '\n' ' '; }
noisy=(--forward-mode=noisy --noisy-lkup-memory=1)
ok "counts of look-ups are visited and compared like scenarios" eval 'with "${noisy[@]}" --noisy-lkup-num-reads=0,50 \
	--blocks=2 && worked && is "$(lookups)" "0 50 50 0 50 0 0 50 " order && json "[.comparisons[] | [.base, .other, .n_base]]" \
	"[[\"as-is look-ups 0\",\"as-is look-ups 50\",2]]" && json "[.estimates.scenarios[].noisy_lookups]" "[0,50]" &&
	"$report" check "$results" && "$report" show "$results" >"$tmp/shown" && has "$tmp/shown" "as-is look-ups 50"'
ok "more look-ups take more cycles" eval 'jq -e ".comparisons[0] | .tsc_cycles_per_packet_other > .tsc_cycles_per_packet_base" "$results/result.json"'
ok "with bursts: each with each, and other look-ups in all" eval 'with "${noisy[@]}" --noisy-lkup-num-writes=1,2 --burst=4,32 \
	--noisy-lkup-num-reads=3 && worked && is "$(lookups)/$(bursts)" "4 4 5 5 5 5 4 4 /4 32 4 32 32 4 32 4" order'
ok "other modes look nothing up" eval 'with --blocks=1 && worked && is "$(lookups)" "- " column'
ok "two lists" eval 'with "${noisy[@]}" --noisy-lkup-num-reads=1,2 --noisy-lkup-num-writes=1,2
	failed_with 2 noisy-lkup-num-reads noisy-lkup-num-writes'
ok "a list for a mode without look-ups" eval 'with --noisy-lkup-memory=1 --noisy-lkup-num-reads=1,2
	failed_with 2 noisy-lkup-num-reads noisy'
ok "a list without memory" eval 'with --forward-mode=noisy --noisy-lkup-num-reads=1,2; failed_with 2 noisy-lkup-memory'
ok "a count twice" eval 'with "${noisy[@]}" --noisy-lkup-num-reads=1,1; failed_with 2 "1 is there twice"'
ok "a null test of two counts" eval 'with "${noisy[@]}" --null-test --noisy-lkup-num-reads=1,2; failed_with 2 null-test'

# ---- look-ups for a given length of the loop ----

# near CYCLES: the count printed is that of the line closest to them, of lines that were measured.
near() {
	awk -v want="$1" '$1 ~ /^[0-9]+$/ && NF == 2 { off = $2 > want ? $2 - want : want - $2
		if (best == "" || off < least) { best = $1; least = off } }
		/^--noisy-lkup-num-reads=/ { split($0, at, "="); found = at[2] }
		END { print "printed " found ", closest " best; exit found == "" || found != best }' "$tmp/out"
}
search() { forward --source=null "${noisy[@]}" --duration=0.02 "$@"; }
ok "--calibrate finds the count of reads" eval 'search --calibrate=2000 && worked && near 2000 && has "$tmp/out" "for 2000 asked"'
ok "what takes longer without a look-up: 4" eval 'search --calibrate=1; failed_with 4 "--calibrate=1" "without a look-up"'
ok "what reads do not reach: 4" eval 'search --calibrate=1e9 --duration=0.001 --burst=1; failed_with 4 "--calibrate=1e+09" "no more than"'
ok "a mode without look-ups" eval 'forward --source=null --forward-mode=mac --calibrate=210; failed_with 2 --calibrate mac'
ok "look-ups without memory" eval 'forward --source=null --forward-mode=noisy --calibrate=210; failed_with 2 noisy-lkup-memory'
for useless in --reproduce --null-test --scenario=as-is,busy --burst=4,8 --noisy-lkup-num-reads=1 --out="$tmp/none" --format=csv; do
	ok "a search with $useless" eval 'search --calibrate=210 $useless; failed_with 2 --calibrate "${useless%%=*}" && [ ! -e "$tmp/none" ]'
done
ok "a search that is interrupted" eval 'start --source=null "${noisy[@]}" --calibrate=210 --duration=5
	sleep 3; kill -INT $pid; finish; failed_with 1 interrupted'

# ---- the measured core ----

# spared: of the run's threads, and of the process that restores, only the forwarding one may run on CPU 1.
spared() {
	local task comm cpus
	for task in /proc/"$pid"/task/* $(pgrep -P "$pid" | sed 's,.*,/proc/&/task/*,'); do
		read -r comm 2>/dev/null <"$task/comm" && cpus=$(sed -n 's/^Cpus_allowed_list:\t//p' "$task/status") || continue
		echo "$([[ $comm = *worker* ]] && echo worker || echo other) $cpus"
	done | sort -u
}
measured_core() {
	rm -rf "$results"
	start --source=null --sibling=0 --duration=0.02 "${bounds[@]}" --scenario=as-is,busy --blocks=200 --out="$results"
	until_true [ -s "$results/windows.csv" ] || return 1
	for i in {1..40}; do spared; sleep 0.02; done | sort -u >"$tmp/spared"
	kill "$pid"
	finish
	is "$(cat "$tmp/spared")" "other 0"$'\n'"worker 1" "CPUs of the threads"
}
ok "between windows nothing of ours runs on the measured core that does not run during them" measured_core

# ---- verdicts ----

ok "with --margin the exit code is the verdict" eval 'with --scenario=as-is,busy --blocks=3 --margin=100 && verdict'
ok "--dry-run judges nothing" eval 'forward --source=null --scenario=as-is,busy --margin=2 --dry-run; worked'
ok "a null test within the margin: 0" eval 'with --null-test --blocks=4 --margin=100; worked && json .verdict "\"same\""'
ok "a null test that shows more noise than the margin: 5" eval 'with --null-test --blocks=2 --margin=0
	is "$rc" 5 "exit code" && json .verdict "\"inconclusive\""'
ok "nor is a verdict made by a margin below the noise" eval 'with --null-test --scenario=as-is,busy --blocks=2 --margin=0
	is "$rc" 5 "exit code"'
ok "more windows than there are numbers for" eval 'with --blocks=100000 --windows=1000000; failed_with 2 "--blocks=100000"'
ok "one block makes no verdict: 5" eval 'with --scenario=as-is,busy --margin=2; is "$rc" 5 "exit code" && verdict'
ok "tainted windows alone make none" eval 'with --scenario=as-is,busy --blocks=2 --margin=100 --taint-irqs=0
	is "$rc" 5 "exit code" && json .verdict "\"inconclusive\"" && has "$tmp/out" "tainted only"'

# ---- wrong ----

ok "a scenario twice" eval 'with --scenario=busy,busy; failed_with 2 "busy is there twice"'
ok "a scenario that is none, among others" eval 'with --scenario=as-is,often:5; failed_with 2 often'
ok "nothing between two commas" eval 'with --scenario=as-is,,busy; failed_with 2 scenario'
ok "too many" eval 'with --scenario=$(seq -s, -f "wake:%g" 1 17); failed_with 2 "more than 16"'
ok "a margin for one scenario" eval 'with --margin=2; failed_with 2 "--margin"'
ok "an order that is none" eval 'with --order=abab; failed_with 2 "--order=abab"'
ok "a seed that is none" eval 'with --order=random:x; failed_with 2 "random"'
ok "a preset that is none" eval 'with --preset=fast; failed_with 2 "--preset=fast"'
ok "one that the machine lacks ends the run before the first window" eval 'with --scenario=as-is,clear
	[ -e /dev/sibidle ] || { failed_with 4 sibidle.ko && [ ! -e "$results" ]; }'

# ---- the published experiment ----

expected() { "$idlectl" doctor | tail -n 1 | grep -q "^effect expected"; }
idlectl=$(realpath "${BUILD:-build}/idlectl/idlectl")
ok "--reproduce where no effect is expected: 4, the reason, and nothing written" eval 'expected || {
	(short=(); with --reproduce; failed_with 4 "$("$idlectl" doctor | tail -n 1 | cut -c 1-40)" "--force" &&
		[ ! -e "$results" ]); }'
ok "--reproduce of other scenarios" eval 'with --reproduce --scenario=as-is,busy; failed_with 2 "--reproduce"'
ok "--reproduce with a null test beside: one more arm" eval 'forward --source=null --reproduce --null-test --dry-run
	[ $rc -eq 4 ] || { [ $rc -eq 2 ] && has "$tmp/err" "c1 is neither a word nor an idle state"; } || { has "$tmp/out" "c1+keep/null" "10 blocks of 6 visits"; }'

# ---- ended before its time ----

for signal in INT KILL; do
	ok "SIG$signal between visits: whole rows, and the machine is given back" eval '
		rm -rf "$results"
		start --source=null --sibling=0 --scenario=busy,pause --blocks=500 --duration=0.02 --out="$results" "${bounds[@]}"
		sleep 2.5; kill -$signal $pid; finish
		for i in $(seq 200); do free && break; sleep 0.02; done; free && "$report" show "$results" >/dev/null &&
		[ "$(visits | wc -l)" -gt 3 ]'
done
ok "what SIGINT ended says so" eval 'rm -rf "$results"
	start --source=null --sibling=0 --scenario=busy,pause --blocks=500 --duration=0.02 --out="$results" "${bounds[@]}"
	sleep 2; kill -INT $pid; finish; json .interrupted true && "$report" check "$results"'

end_tests
