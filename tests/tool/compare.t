#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Comparisons of sibfwd-report: figures of runs that are made up, verdicts, exit codes, and what the
# intervals are worth on runs whose effect is known.
. tests/tap.sh

report=$(realpath "${BUILD:-build}/app/sibfwd-report") || bail "no sibfwd-report"
made_runs=$(realpath "${BUILD:-build}/tests/made_runs") || bail "no made_runs"
export PYTHONPATH=$PWD/tests/data PYTHONDONTWRITEBYTECODE=1
cd "$tmp" || exit 1

# directory NAME BLOCKS ARM...: an arm is SCENARIO:PPS:CYCLES[:SCATTER[:TAINT]]; scatter in percent is the
# same in every directory but for the name's length, so that nothing depends on chance.
directory() {
	/usr/bin/python3 - "$@" <<'PYTHON'
import os, sys
from made_windows import visits, window, write
name, blocks, arms = sys.argv[1], int(sys.argv[2]), [(a + "::").split(":") for a in sys.argv[3:]]
def rows():
    for block, position, visit, arm in visits(arms, blocks):
        # Blocks go up and down about the figure, and add up to it.
        pps = float(arm[1]) * (1 + float(arm[3] or 0) / 100 * (-1) ** (block - 1))
        yield window(arm[0], block, position, visit, pps, round(pps * float(arm[2])), taint=arm[4],
                     emulated=os.environ.get("EMULATED", 0))
write(name, rows())
PYTHON
}

# run ARGUMENTS: what the program says goes to out and err, its exit code to rc.
run() {
	"$report" "$@" >out 2>err
	rc=$?
}

# exits CODE ARGUMENTS
exits() {
	local code=$1
	shift
	run "$@"
	is $rc "$code" "exit code" || { cat out err; return 1; }
}

# refuses CODE TEXT ARGUMENTS: one line on stderr with the text, nothing on stdout.
refuses() {
	local text=$2
	exits "$1" "${@:3}" && is "$(wc -l <err)" 1 "lines on stderr" && has err "$text" && [ ! -s out ]
}

# json FILTER WANTED: of what was printed last.
json() { is "$(jq -c "$1" out)" "$2" "$1"; }

# ---- the published figures ----

directory published 10 c1+keep:7.8e6:282.26 c1+clear:10.4e6:209.86
ok "the published figures: a change of +33.33 % in packets and -25.65 % in cycles" eval '
	exits 0 show published && has out "c1+clear over c1+keep" "+33.33" "-25.65" improvement "7.8000" "282.26" \
		"10.400" "209.86"'
ok "and of -25.00 % the other way round" eval '
	directory turned 10 c1+clear:10.4e6:209.86 c1+keep:7.8e6:282.26 && exits 0 show turned &&
	has out "c1+keep over c1+clear" "-25.00" regression'
ok "beside the published ones: the same table, and the sentence" eval 'exits 0 show published &&
	has out "ibrs-on     7.800M                      282.26                   7.8M     282.26" \
		"ibrs-off    10.400M                     209.86                   10.4M    209.86" \
		"+33.3 %" "-25.7 %" "(ibrs-on is 25.0 % below ibrs-off; published: 25 %)" "This machine shows the effect: "'
ok "other scenarios have no published ones beside" eval 'directory others 3 c1:7.8e6:282.26 c6:10.4e6:209.86 &&
	exits 0 show others && hasnt out published'
ok "nor has one block a verdict" eval 'directory once 1 c1+keep:7.8e6:282.26 c1+clear:10.4e6:209.86 &&
	exits 0 show once && has out "cannot be told"'
ok "the opposite is called so" eval 'directory opposite 10 c1+keep:10.4e6:209.86 c1+clear:7.8e6:282.26 &&
	exits 0 show opposite && has out "shows the opposite"'
ok "no difference is no effect" eval 'directory noeffect 10 c1+keep:7.8e6:282.26 c1+clear:7.8e6:282.26 &&
	exits 0 show noeffect && has out "does not show the effect"'
ok "each row keeps its identity" eval 'exits 0 check published && has out "ok:"'
# By one clock: both arms of the published table are within 1 % of 2.2 GHz, as the table is printed.
ok "both identities of the published table: packets/s x cycles/packet is the TSC of a 2.20 GHz machine, within 1 %" eval '
	exits 0 show published && awk "/^ibrs-(on|off) / { n++; off = \$2 * \$3 / 2200 - 1; if (off > 0.01 || off < -0.01) exit 1 }
		END { exit n != 2 }" out'
# held NAME STATES WAKES REGISTERS INSTRUCTIONS CORE: what the sibling and the core did, each as ON:OFF.
held() {
	/usr/bin/python3 - "$@" <<'PYTHON'
import sys
from made_windows import visits, window, write
name, arms = sys.argv[1], [("c1+keep", 7.8e6, 282.26), ("c1+clear", 10.4e6, 209.86)]
values = [text.split(":") for text in sys.argv[2:]]
columns = "sibling_state sibling_idle_entries sibling_spec_ctrl instructions_per_packet core_cycles_per_packet".split()
write(name, (window(arm[0], block, position, visit, arm[1], round(arm[1] * arm[2]),
                    sibling_idle_ns=9 * 10**8, **dict(zip(columns, [v[arm[0] == "c1+clear"] for v in values])))
             for block, position, visit, arm in visits(arms, 10)))
PYTHON
}
ok "what held the rest equal, neither work nor frequency among the causes" eval '
	held equal C1:C1 100:105 0x1:0x0 300:301 282.26:209.86 && exits 0 show equal && has out "This machine shows the effect: " \
		"what held the rest equal: idle state, wake-ups, SPEC_CTRL, instructions/packet, frequency, so neither work nor frequency" &&
	hasnt out "something else" && hasnt out "not known"'
ok "what is not known is said" eval 'held unknown C1:C1 : 0x1:0x0 : : && exits 0 show unknown &&
	has out "what held the rest equal: idle state, SPEC_CTRL" "not known: wake-ups, instructions/packet, frequency" &&
	hasnt out "neither work" && exits 0 show published && has out "nothing is known of what held the rest equal"'
unequal() { # NAME QUESTION ARGUMENTS OF held
	held "$1" "${@:3}" && exits 0 show "$1" && has out "something else than IBRS may be the cause" "as they should be: $2."
}
ok "another idle state" unequal u1 "idle state" C1:C6 100:100 0x1:0x0 300:300 282.26:209.86
ok "other wake-ups" unequal u2 wake-ups C1:C1 100:90000 0x1:0x0 300:300 282.26:209.86
ok "a register that was not switched" unequal u3 SPEC_CTRL C1:C1 100:100 0x0:0x0 300:300 282.26:209.86
ok "other work" unequal u4 instructions/packet C1:C1 100:100 "0x1;0x401:0x0" 300:200 282.26:209.86
ok "another frequency" unequal u5 frequency C1:C1 100:100 0x1:0x0 300:300 200:209.86
ok "several of them" unequal u6 "idle state, SPEC_CTRL" C1:C6 100:100 "0x1:0x0;0x1" 300:300 282.26:209.86
directory more 10 c1+keep:7.8e6:282.26:0.1 c1+clear:10.4e6:209.86:0.1 c1+keep/null:7.8e6:282.26:0.1
ok "with a null test beside, the sentence tells the level of its interval" eval 'exits 0 show more && has out "at 97.5 % from 10 blocks"'

# ---- within a run ----

directory three 10 as-is:1e6:2000:0.1 c1:1.01e6:1980:0.2 mem:0.7e6:2857:0.1
ok "every other scenario is compared with the first" eval 'exits 0 show three --format json &&
	json "[.comparisons[] | [.base, .other, .n_base, .verdict]]" \
		"[[\"as-is\",\"c1\",10,\"same\"],[\"as-is\",\"mem\",10,\"regression\"]]"'
ok "two comparisons have intervals for two" eval 'json "[.comparisons[].verdict_level]" "[0.975,0.975]" &&
	jq -e ".comparisons[0] | (.verdict_interval_percent[1] > .interval_percent[1])" out'
ok "a margin of 0.5 makes another verdict of the first" eval 'exits 0 show three --format json --margin 0.5 &&
	json ".comparisons[0].verdict" "\"improvement\""'
ok "with fewer than 20 blocks no bootstrap is told" json '.comparisons[0].bootstrap_interval_percent' \
	'[null,null]'
directory many 20 a:1e6:2000:0.3 b:1.05e6:1900:0.1
ok "with 20 blocks it is" eval 'exits 0 show many --format json &&
	jq -e ".comparisons[0].bootstrap_interval_percent | (.[0] > 4 and .[1] < 6)" out'
ok "one scenario alone has no comparison" eval 'directory alone 5 as-is:1e6:2000 &&
	exits 0 show alone --format json && json ".comparisons" "[]"'
ok "one block has no interval, and says so" eval 'directory short 1 a:1e6:2000 b:1.5e6:1333 &&
	exits 0 show short && has out "one unit has no interval" inconclusive'
directory dirty 5 a:1e6:2000 b:1.5e6:1333:0:irqs
ok "tainted windows alone make no verdict" eval 'exits 0 show dirty && has out "tainted only" inconclusive'
EMULATED=1 directory emulated 10 c1+keep:7.8e6:282.26 c1+clear:10.4e6:209.86
ok "an emulated machine has no verdict" eval 'exits 0 show emulated && hasnt out improvement && hasnt out "This machine shows" &&
	has out "machine     emulated" "c1+clear: emulated: no verdict" inconclusive "the figures say nothing about speed" &&
	exits 0 show emulated --format json && json ".comparisons[0] | [.emulated, .verdict]" "[true,\"inconclusive\"]"'
directory null 10 c1:1e6:2000:0.1 c1/null:1e6:2000:0.9
ok "a null test has no verdict" eval 'exits 0 show null --format json &&
	json ".comparisons[0] | [.null_test, .verdict]" "[true,null]" && exits 0 show null && has out "null test"'

ok "nor a margin below it" eval 'refuses 2 "noise floor" show null --margin 0.5'
ok "one that does not lie about 0 is as far off as it reaches" eval '
	directory biased 10 c1:1e6:2000:0.1 c1/null:1.05e6:1905:0.1 && refuses 2 "below 5." show biased --margin 2'
ok "one block has no interval, and is no floor" eval 'directory short0 1 c1:1e6:2000 c1/null:1e6:2000 &&
	exits 0 compare short0 null --margin 100; is "$rc" 5 "exit code"'
ok "what the run warned of, its margin and its causes of taint are shown" eval 'directory told 10 c1:1e6:2000:0.1 c6:0.97e6:2062:0.1:irqs &&
	directory told2 10 c1:1e6:2000:0.1 c6:0.97e6:2062:0.1 &&
	echo "{\"warnings\": [\"frost is <cold>\"], \"margin_percent\": 5}" | tee told/result.json >told2/result.json &&
	exits 0 show told && has out "warning: frost is <cold>" "causes of taint" "irqs         20 of 20 windows" &&
	exits 0 show told2 --format json && json "[.margin_percent, .comparisons[0].verdict, .warnings]" \
		"[5,\"same\",[\"frost is <cold>\"]]" && exits 0 show told2 --margin 1 && has out regression'

ok "texts of any length are read, and shown" eval 'directory long 10 c1+keep:7.8e6:282.26 c1+clear:10.4e6:209.86 &&
	/usr/bin/python3 -c "
import json
json.dump({\"forced\": \"f\" * 20000000, \"warnings\": [\"w\" * 20000000, 5, None], \"margin_percent\": -1e300}, open(\"long/result.json\", \"w\"))" &&
	exits 0 show long && has out "forced: fff" "warning: www" "margin of 2 %" && ! grep -q "^forced.\{100\}" out'

# ---- windows without a packet, and blocks that are not whole ----

directory dead 10 as-is:1e6:2000:0.1 busy:0:0
ok "a scenario that forwards nothing is a regression" eval 'exits 0 show dead --format json &&
	json ".comparisons[0] | [.verdict, .dead_base, .dead_other, .n_base, .tainted_only]" "[\"regression\",0,10,0,false]" &&
	exits 0 show dead && has out "busy: blocks without a packet" && hasnt out "tainted only"'
directory dying 10 busy:0:0 as-is:1e6:2000:0.1
ok "one that the others are compared with makes no verdict" eval 'exits 0 show dying && has out inconclusive "10 of the first"'
# edit FROM NAME PROGRAM: the windows.csv of another directory, through an awk program.
edit() { mkdir "$2" && awk -F , -v OFS=, "$3" "$1/windows.csv" >"$2/windows.csv"; }
directory lively 10 as-is:1e6:2000 busy:1e6:2000
ok "its time counts: every other window without a packet is half the rate" eval '
	edit lively half "NR > 1 && \$5 == \"busy\" && \$7 == 2 - (\$6 % 2 == 0) { \$24 = \$25 = \$31 = 0; \$32 = \"\" } 1" && exits 0 show half --format json &&
	json ".comparisons[0] | [(.change_percent | round), .n_base, .dead_other, .verdict]" "[-50,10,0,\"regression\"]"'
ok "a block that was ended in its midst is left out" eval '
	directory drift 3 a:1e6:2000 b:1e6:2000 && edit drift cut "NR == 1 || \$8 <= 10 { if (NR > 1) \$31 = \$24 = \$25 = \$24 * (1 + \$8 / 100); print }" &&
	exits 0 show cut --format json && json ".comparisons[0] | .n_base" 2'
ok "a window that lacks an lcore is none" eval '
	directory whole 5 a:1e6:2000 && edit whole lcores "{ print } NR > 1 { \$17 = 2; print }" && sed "\$d" lcores/windows.csv >half.csv &&
	exits 0 show half.csv --format json && json ".estimates.scenarios[0] | [.windows, .all.pps]" "[9,2000000]" && has err "1 windows lack"'

ok "visits may have other lcores, as commands have it: none of their windows is left out" eval '
	edit whole fewer "{ print } NR > 1 && NR <= 6 { \$17 = 2; print }" && exits 0 show fewer --format json && hasnt err "windows lack" &&
	json ".estimates.scenarios[0] | .windows" 10'

# ---- between runs ----

directory base 10 as-is:1e6:2000:0.2
directory same 10 as-is:1.005e6:1990:0.2
directory worse 10 as-is:0.9e6:2222:0.2
directory better 10 as-is:1.2e6:1667:0.2
directory unclear 10 as-is:0.98e6:2041:1
ok "the same is exit code 0" eval 'exits 0 compare base same && has out same "+0.50"'
ok "a regression is exit code 3" eval 'exits 3 compare base worse && has out regression "-10.00"'
ok "an improvement is exit code 0" eval 'exits 0 compare base better && has out improvement'
ok "one that cannot be told is exit code 5" eval 'exits 5 compare base unclear && has out inconclusive'
ok "by another margin it can" exits 0 compare base unclear --margin 5
ok "one run a side says what it cannot see" eval 'exits 0 compare base same && has out "boot to boot"'
ok "Welch's interval by scipy" eval 'exits 0 compare base same --format json &&
	/usr/bin/python3 - out <<"PYTHON"
import json, math, sys
from scipy import stats
c = json.load(open(sys.argv[1]))["comparisons"][0]
# pps stands in windows.csv as a whole number
a, b = ([math.log(round(p * (1 + s * (-1) ** k))) for k in range(10)] for p, s in ((1e6, 0.002), (1.005e6, 0.002)))
t, p = stats.ttest_ind(b, a, equal_var=False)
d = sum(b) / 10 - sum(a) / 10
half = abs(d / t) * stats.t.ppf(0.975, c["welch_df"])
got = c["interval_percent"]
for x, y in zip(got, (d - half, d + half)):
    assert abs(x - 100 * math.expm1(y)) < 1e-9, (x, 100 * math.expm1(y))
assert abs(c["welch_df"] - 18) < 0.01
PYTHON'
for i in 1 2 3; do
	directory base$i 4 as-is:1.0${i}e6:2000:0.1
	directory new$i 4 as-is:0.8${i}e6:2500:0.1
done
ok "of several runs a side each is one unit" eval 'exits 3 compare base1,base2,base3 new1,new2,new3 --format json &&
	json ".comparisons[0] | [.n_base, .n_other]" "[3,3]" && json ".caveat" "\"The unit is the run.\""'
ok "the worst of several scenarios is the verdict" eval 'directory two 10 a:1e6:2000:0.1 b:1e6:2000:0.1 &&
	directory bad 10 a:1e6:2000:0.1 b:0.8e6:2500:0.1 && exits 3 compare two bad'
ok "no scenario in common" refuses 1 "no scenario in common" compare base published
ok "tainted windows alone are exit code 5" eval 'directory taint 10 as-is:0.8e6:2500:0:steal &&
	exits 5 compare base taint && has out "tainted only"'
EMULATED=1 directory emulator 10 as-is:0.5e6:4000:0.2
for sides in "base emulator" "emulator base" "emulator emulated,emulator"; do
	ok "nor has an emulated run: $sides" eval 'exits 5 compare $sides && has out "as-is: emulated: no verdict"'
done
ok "in JUnit that is an error" eval 'exits 5 compare base emulator --junit e.xml && has e.xml "errors=\"1\"" && hasnt e.xml "<failure"'
ok "a margin below the noise floor is refused" eval 'directory floor 10 as-is:1e6:2000:0.1 as-is/null:1e6:2000:3 &&
	refuses 2 "noise floor" compare floor floor --margin 1'
ok "what differs in the environment is told" eval '
	echo "{\"before\": {\"microcode\": \"0x1\", \"load_average\": \"1\", \"l\": [1, 2]}}" >base/environment.json &&
	echo "{\"before\": {\"microcode\": \"0x2\", \"load_average\": \"2\", \"l\": [1, 3], \"new\": 1}}" \
		>same/environment.json && exits 0 compare base same &&
	has out "microcode: \"0x1\" -> \"0x2\"" "l[1]: 2 -> 3" "new: none -> 1" && hasnt out load_average'

ok "and what differs in the settings" eval '
	edit base other "NR > 1 { \$13 = \"io\"; \$14 = \"null\"; \$15 = 4; \$16 = 1500 } 1" && exits 0 compare base other &&
	has out "mode: \"macswap\" -> \"io\"" "source: \"dev\" -> \"null\"" "burst: \"32\" -> \"4\"" "pkt_len: \"64\" -> \"1500\"" &&
	exits 0 compare base other --format markdown && has out "* mode: \"macswap\" -> \"io\""'
directory one 10 a:1e6:2000:0.1
ok "a scenario that NEW lacks is no success: 5" eval 'exits 5 compare two one && has out "b: not in NEW" &&
	exits 5 compare two one --format json && json "[.comparisons[] | [.other, .lacks, .verdict]]" \
		"[[\"a\",null,\"same\"],[\"b\",\"new\",\"inconclusive\"]]"'
ok "one that BASE lacks has nothing to be judged by" eval 'exits 0 compare one two --junit j.xml && has out "only in NEW" &&
	has j.xml "skipped=\"1\"" "errors=\"0\""'
ok "of several runs a side, one that not all have is compared" eval 'exits 0 compare one,two same,two --format json; is "$rc" 5 "exit code" &&
	json "[.comparisons[].other]" "[\"a\",\"b\",\"as-is\"]"'
ok "a scenario that forwards nothing any more is a regression" eval 'directory alive 10 as-is:1e6:2000:0.1 busy:1e6:2000:0.1 &&
	exits 3 compare alive dead && has out "busy: blocks without a packet"'
ok "the same run twice on one side" refuses 1 "the same run, base" compare base,base worse
ok "bursts of which one run has several are told apart in the other" eval '
	edit base bursts "{ print } NR > 1 { \$15 = 4; \$8 += 100; print }" && edit base burst4 "NR > 1 { \$15 = 4 } 1" &&
	exits 5 compare bursts burst4 --format json && json "[.comparisons[] | [.other, .lacks]]" \
		"[[\"as-is burst 32\",\"new\"],[\"as-is burst 4\",null]]"'

# ---- formats ----

ok "JUnit: a regression is a failure" eval 'exits 3 compare base worse --junit junit.xml &&
	/usr/bin/python3 -c "
import xml.etree.ElementTree as e
s = e.parse(\"junit.xml\").getroot()
assert s.get(\"tests\") == \"1\" and s.get(\"failures\") == \"1\" and s.get(\"errors\") == \"0\"
assert s.find(\"testcase\").get(\"name\") == \"as-is\" and s.find(\"testcase/failure\") is not None"'
ok "JUnit: what cannot be told is an error" eval 'exits 5 compare base unclear --junit junit.xml &&
	has junit.xml "errors=\"1\"" "<error"'
ok "JUnit: all is well" eval 'exits 0 compare base same --junit junit.xml && has junit.xml "failures=\"0\" errors=\"0\""'
ok "JUnit that cannot be written" eval 'exits 1 compare base same --junit /nowhere/x && has err "/nowhere/x"'
ok "Markdown" eval 'exits 3 compare base worse --format markdown && has out "| as-is | 10, 10 |" "| regression |"'
ok "Markdown is not for show" refuses 2 "markdown" show base --format markdown
ok "no JUnit of show" refuses 2 "--junit: not for show" show base --junit x
ok "a margin that is none" refuses 2 "--margin: much" compare base same --margin much
ok "NEW is missing" refuses 2 "NEW missing" compare base
ok "a directory that is not there" refuses 1 "nowhere" compare base nowhere
ok "lines are at most 100 characters wide" eval 'exits 0 show three && ! grep -E "^.{101}" out'

# ---- what the intervals are worth ----

# made FILTER ARGUMENTS: of a thousand runs that were made up.
made() {
	"$made_runs" "${@:2}" 1000 >made.json && jq -e "$1" made.json >/dev/null || { cat made.json; return 1; }
}
if [ -z "${SANITIZED-}" ]; then
	# 25 % is the published effect seen from the faster side; a drift of 0.05 % a visit is 1 % in five minutes.
	for effect in 33.3333 -25 2 0; do
		for drift in 0 0.05; do
			ok "an effect of $effect %, drift $drift % a visit: the t interval has it in 930 to 970 of 1000 runs" \
				made '.t >= 930 and .t <= 970' $effect $drift abba 10
		done
		ok "and so has the studentised bootstrap" made '.bootstrap >= 930 and .bootstrap <= 970' $effect 0.05 abba 20
	done
	ok "no effect: at most 40 false regressions in 1000 at margin 0" made '.regressions <= 40' 0 0 abba 10
	ok "a drift that is larger than the effect does not fool ABBA" \
		made '.t >= 930 and (.change - 0.5 | fabs) < 0.02' 0.5 0.1 abba 10
	ok "AABB is fooled by it" made '.t < 900 and (.change - 0.5 | fabs) > 0.1' 0.5 0.1 aabb 10
	ok "and it is warned of" made '.drifts > 990' 2 0.1 abba 10
else
	skip "what the intervals are worth" "the same code without sanitizers tells"
fi

end_tests
