#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# sibfwd-report trend: series of runs that are made up, and where they are parted.
. tests/tap.sh

report=$(realpath "${BUILD:-build}/app/sibfwd-report") || bail "no sibfwd-report"
export PYTHONPATH=$PWD/tests/data PYTHONDONTWRITEBYTECODE=1
cd "$tmp" || exit 1
columns=$(/usr/bin/python3 -c 'import made_windows; print(",".join(made_windows.COLUMNS))') || bail "no columns"

EMULATED=0
# made NAME UTC SCENARIO:PPS[:TAINT]...: a directory of one run, of two blocks that are 0.01 % above PPS and
# as much below.
made() {
	local name=$1 utc=$2 visit=0 arm scenario pps taint block each
	shift 2
	mkdir "$name"
	{
		echo "$columns"
		for block in 1 2; do
			for arm; do
				IFS=: read -r scenario pps taint <<<"$arm"
				each=$((pps + (block * 2 - 3) * pps / 10000))
				visit=$((visit + 1))
				echo "1,$name,$utc,lab,$scenario,$block,1,$visit,1,0,$((${#taint} > 0)),$taint,macswap,dev,32,64,1,1,2,smt,1000000000,2000000000,2000000000,$each,$each,0,,,1000000,0,$each,,,,,,,,,,,,,$EMULATED"
			done
		done
	} >"$name/windows.csv"
}

# exits CODE ARGUMENTS
exits() {
	local code=$1
	shift
	"$report" "$@" >out 2>err
	is $? "$code" "exit code" || { cat out err; return 1; }
}

# refuses CODE TEXT ARGUMENTS: one line on stderr with the text, nothing on stdout.
refuses() {
	local text=$2
	exits "$1" "${@:3}" && is "$(wc -l <err)" 1 "lines on stderr" && has err "$text" && [ ! -s out ]
}

# json FILTER WANTED: of what was printed last.
json() { is "$(jq -c "$1" out)" "$2" "$1"; }

# series NAME PPS...: directories NAME1, NAME2..., a day after each other, 0.1 % above and below in turn.
series() {
	local name=$1 i=0 pps
	shift
	for pps; do
		i=$((i + 1))
		made "$name$i" "$(printf '2023-07-%02dT08:00:00.000Z' $i)" "as-is:$((pps + (i % 2 * 2 - 1) * pps / 1000))"
	done
}

# ---- groups ----

series fall 10000000 10000000 10000000 10000000 10000000 9000000 9000000 9000000 9000000 9000000
ok "a fall is a regression, and the exit code 0" eval 'exits 0 trend fall? fall10 &&
	has out as-is regression "2023-07-06T08:00:00.000Z  fall6" "2023-07-10T08:00:00.000Z  fall10"'
ok "so it is in JSON" eval 'exits 0 trend fall? fall10 --format json && json .margin_percent 2 &&
	json "[.arms[] | [.scenario, .left_out]]" "[[\"as-is\",[]]]" &&
	json "[.arms[0].groups[] | [.first.run_id, .last.run_id, .n, (.runs | length), .verdict]]" \
		"[[\"fall1\",\"fall5\",5,5,null],[\"fall6\",\"fall10\",5,5,\"regression\"]]"'
ok "the figures of the groups by python3" eval '/usr/bin/python3 - out <<"PYTHON"
import json, math, statistics, sys
before = None
for group, (level, first) in zip(json.load(open(sys.argv[1]))["arms"][0]["groups"], ((10 ** 7, 1), (9 * 10 ** 6, 6))):
    pps = [level + (i % 2 * 2 - 1) * level // 1000 for i in range(first, first + 5)]
    pps = [math.sqrt((p - p // 10000) * (p + p // 10000)) for p in pps] # geometric mean of two blocks
    mean = statistics.mean(pps)
    wanted = [mean, statistics.stdev(pps)] + pps
    for a, b in zip([group["pps_mean"], group["pps_stdev"]] + [r["pps"] for r in group["runs"]], wanted):
        assert abs(a - b) <= 1e-6 * b, (a, b)
    if before is None:
        assert group["change_percent"] is None
    else:
        assert abs(group["change_percent"] - 100 * (mean / before - 1)) < 1e-6
    before = mean
PYTHON'
ok "operands in any order are put in that of time" eval 'mv out sorted &&
	exits 0 trend fall10 fall3 fall1 fall9 fall2 fall8 fall4 fall7 fall5 fall6 --format json && cmp out sorted'
ok "within a margin of 15 % it is none" eval 'exits 0 trend fall? fall10 --margin 15 && has out "within margin" &&
	hasnt out regression'
series rise 9000000 9000000 9000000 9000000 9000000 9000000 9900000 9900000 9900000 9900000 9900000 9900000
ok "a rise is a progression" eval 'exits 0 trend rise? rise1? && has out progression "+10.0"'
series even 5000000 5000000 5000000 5000000 5000000 5000000 5000000 5000000
ok "scatter makes one group" eval 'exits 0 trend even? --format json && json "[.arms[0].groups[].n]" "[8]"'
ok "two runs too" eval 'exits 0 trend even1 even2 --format json && json "[.arms[0].groups[].n]" "[2]"'
series out 5000000 5000000 5000000 5000000 5000000 2000000 5000000 5000000 5000000 5000000 5000000
ok "a run that is off is a group of its own, without a deviation" eval 'exits 0 trend out? out1? --format json &&
	json "[.arms[0].groups[] | [.n, .verdict]]" "[[5,null],[1,\"regression\"],[5,\"progression\"]]" &&
	json ".arms[0].groups[1] | [.pps_stdev, .first.run_id, .last.run_id]" "[null,\"out6\",\"out6\"]"'

# ---- arms ----

made a 2023-08-01T00:00:00Z as-is:1000000 c1:2000000
made b 2023-08-01T00:00:00.5Z as-is:1000000 c1:2000000:irqs
made c 2023-08-02T00:00:00Z c1:2000000 as-is:1000000
made d 2023-08-03T00:00:00Z as-is:1000000 mem:700000:steal
ok "each arm has its series, and tells which runs it lacks" eval 'exits 0 trend d c b a --format json &&
	json "[.arms[] | [.scenario, [.groups[].runs[].run_id], [.left_out[].run_id]]]" \
		"[[\"as-is\",[\"a\",\"b\",\"c\",\"d\"],[]],[\"c1\",[\"a\",\"c\"],[\"b\"]],[\"mem\",[],[\"d\"]]]"'
ok "the table tells it too" eval 'exits 0 trend a b c d && has out \
	"left out 2023-08-01T00:00:00.5Z  no untainted window  b" "left out 2023-08-03T00:00:00Z  no untainted window  d"'
EMULATED=1 made e 2023-08-05T00:00:00Z as-is:9000000
ok "a run that is emulated is left out, and listed" eval 'exits 0 trend a c e && has out \
	"left out 2023-08-05T00:00:00Z  emulated  e" && hasnt out progression && exits 0 trend a c e --format json &&
	json "[.arms[0] | [.groups[].runs[].run_id], .left_out[].reason]" "[[\"a\",\"c\"],\"emulated\"]"'
long=$(printf '%0200d' 1)
made "$long" 2023-08-04T00:00:00Z "$long:1000000" as-is:1000000
ok "lines are at most 100 characters wide" eval 'exits 0 trend a "$long" fall? && ! grep -E "^.{101}" out'
ok "a windows.csv by its own name" exits 0 trend a/windows.csv b/windows.csv

# ---- what is refused ----

ok "no DIR" refuses 2 "trend: DIR missing" trend
ok "one DIR" refuses 2 "trend: second DIR missing" trend a
ok "a directory that is not there" refuses 1 nowhere trend a nowhere b
ok "a directory without windows" eval 'mkdir empty && head -n 1 a/windows.csv >empty/windows.csv &&
	refuses 1 "empty: no windows" trend a empty'
ok "a run twice" refuses 1 "b and ./b: the same run, b" trend a b ./b
ok "a run without a time" eval 'made timeless yesterday as-is:1 &&
	refuses 1 "timeless: utc_start is \"yesterday\"" trend a timeless'
ok "commas do not join" refuses 1 "a,b" trend a,b c
ok "no Markdown" refuses 2 "--format: markdown" trend a b --format markdown
ok "no JUnit" refuses 2 "--junit: not for trend" trend a b --junit x
ok "compare still takes two" refuses 2 "compare: c: one argument too many" compare a b c
ok "a full disk" eval '"$report" trend a b >/dev/full 2>err; is $? 1 "exit code" && has err "standard output"'
ok "help has it" eval 'exits 0 --help && has out "trend DIR"'

end_tests
