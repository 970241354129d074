#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# scripts/lab-regress: its configuration, every verdict, summaries, promotion, lock and interruption. A stub
# stands in for dpdk-sibfwd where the verdict matters, since real figures are noisy.
. tests/tool/lib.sh

lab=$(realpath scripts/lab-regress)
export PYTHONPATH=$PWD/tests/data PYTHONDONTWRITEBYTECODE=1
cd "$tmp" || exit 1
mkdir lab made

# directory NAME PPS [SCATTER]: a complete run of ten blocks, its blocks up and down about PPS.
directory() {
	/usr/bin/python3 - "$@" <<'PYTHON'
import sys
from made_windows import window, write
name, base, scatter = sys.argv[1], float(sys.argv[2]), float((sys.argv + ["0.2"])[3])
write(name, (window("as-is", n + 1, 1, n + 1, base * (1 + scatter / 100 * (-1) ** n), 2 * 10 ** 9,
                    run_id="made", mode="io") for n in range(10)))
PYTHON
	"$report" show "$1" --format json | jq '{schema: 1, interrupted: false, windows_done: 10, estimates}' \
		>"$tmp/result.json" && mv "$tmp/result.json" "$1/result.json"
}

# What the stub does stands in NAME.does, a line of "RUN-OR-DASH EXIT-CODE WORDS"; NAME is its option --stub.
cat >lab/stub <<'STUB'
#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
cd "${0%/*}/.." || exit 9
printf '%s\n' "$@" >argv
for word; do
	case $word in
	--out=*) out=${word#*=} ;;
	--stub=*) name=${word#*=} ;;
	esac
done
read -r made code words <"$name.does"
trap 'echo "dpdk-sibfwd: interrupted: 0 of 10 windows measured" >&2; echo stopped >>ended; exit 1' TERM
echo "first words"
[ "$made" = - ] || [ "$made" = wait ] || cp -r "made/$made" "$out"
if [ "$made" = wait ]; then
	mkdir "$out" && echo '  "interrupted": true,' >"$out/result.json"
	touch started
	while :; do sleep 0.05; done
fi
[ -z "$words" ] || printf '%s\n' "$words" >&2
exit "$code"
STUB
chmod +x lab/stub

ok "runs are made up" eval '
	directory made/base 1e6 && directory made/same 1.005e6 && directory made/worse 0.9e6 &&
	directory made/better 1.2e6 && directory made/unclear 0.98e6 1 && "$report" check made/base'
cp -r made/base made/broken
sed -i '3s/,1000000000,/,999,/' made/broken/windows.csv
cp -r made/base made/half
sed -i 's/"interrupted": false/"interrupted": true/' made/half/result.json

# lab_ini LINES: with [lab] in front.
lab_ini() {
	printf '[lab]\nprogram = ./stub\nreport = %s\n%s\n' "$report" "$1" >lab/lab.ini
}
# experiments NAME...
experiments() {
	local name text=
	for name in "$@"; do
		text+="[$name]"$'\n'"options = --stub=$name"$'\n'
	done
	lab_ini "$text"
}
does() { printf '%s\n' "$2" >"$1.does"; }

exits() { # CODE ARGUMENTS
	run "$lab" "${@:2}"
	ended "$1" || { cat "$tmp/out"; return 1; }
}

refuses() { # CODE TEXT ARGUMENTS: one line on stderr, nothing on stdout
	exits "$1" "${@:3}" && is "$(wc -l <"$tmp/err")" 1 "lines on stderr" && has "$tmp/err" "lab-regress: " "$2" &&
		is "$(<"$tmp/out")" "" stdout
}

results=lab/results
runs() { find "$results/$1" -maxdepth 1 -type d -name '*Z' | wc -l; }
newest() { find "$results/$1" -maxdepth 1 -type d -name '*Z' -printf '%f\n' | sort | tail -n 1; }

# ---- the command line and the configuration ----

does one "base 0"
experiments one
ok "help" eval 'exits 0 --help && has "$tmp/out" usage:'
ok "no CONFIG" refuses 2 "CONFIG missing"
ok "an unknown option" refuses 2 "--frob" --frob lab/lab.ini
ok "one argument too many" refuses 2 "two: one argument too many" one two
ok "two things to do" refuses 2 "--list: not with --dry-run" --dry-run --list lab/lab.ini
ok "--results without a value" refuses 2 "--results: value missing" --results
ok "--promote without CONFIG" refuses 2 "CONFIG missing" --promote one
ok "a CONFIG that is not there" refuses 1 "nowhere/lab.ini" nowhere/lab.ini
ok "a directory as CONFIG" refuses 1 "lab: no such file" lab

# bad TEXT CONFIGURATION: refused with exit code 2 and file:line, and nothing has run.
bad() {
	rm -f argv
	printf '%b' "$2" >bad.ini
	refuses 2 "$1" bad.ini && [ ! -e argv ] && [ ! -e results ]
}
ok "an empty file" bad "no experiment" ''
ok "[lab] alone" bad "bad.ini:2: no experiment" '[lab]\nkeep = 1\n'
ok "a line that is neither" bad "bad.ini:2: neither" '[a]\nwords\n'
ok "a key in front of a section" bad "bad.ini:2: margin" '\nmargin = 2\n'
ok "an unknown key" bad "bad.ini:3: margins" '[a]\n; comment\nmargins = 2\n'
ok "a key of an experiment in [lab]" bad "bad.ini:2: margin: no such key in [lab]" '[lab]\nmargin = 2\n'
ok "a key of [lab] in an experiment" bad "bad.ini:2: keep: no such key in [a]" '[a]\nkeep = 2\n'
ok "a section twice" bad "bad.ini:2: [a] is there already, at bad.ini:1" '[a]\n[a]\n'
ok "[lab] twice" bad "bad.ini:3: [lab]" '[lab]\n[a]\n[lab]\n'
ok "a key twice" bad "bad.ini:3: margin is there already, at bad.ini:2" '[a]\nmargin=1\nmargin=2\n'
for name in '' .. .a -a 'a b' a/b 'a]b' '$(touch x)' latest.txt summary-x "$(printf 'a%.0s' {1..101})"; do
	ok "the name ${name:0:20}" bad "bad.ini:1: [$name]" "[$name]\n"
done
for margin in '' -1 much 101 100.5 1e1 '1 %' nan '$(touch x)'; do
	ok "the margin $margin" bad "bad.ini:2: margin" "[a]\nmargin = $margin\n"
done
for keep in '' -1 many 1.5; do
	ok "keep $keep" bad "bad.ini:2: keep" "[lab]\nkeep = $keep\n[a]\n"
done
ok "a quote without its end" bad "bad.ini:2: options: a quote" "[a]\noptions = 'x\n"
ok "a double quote without its end" bad "bad.ini:2: eal: a quote" '[a]\neal = "x\\"\n'
ok "a backslash at the end" bad "bad.ini:2: eal: a quote" '[a]\neal = x\\\n'
ok "--out" bad "bad.ini:2: options: --out=x" '[a]\noptions = --burst=4 --out=x\n'
ok "--out abbreviated and quoted" bad "bad.ini:2: options: --ou" '[a]\noptions = "--ou" x\n'
ok "--" bad "bad.ini:2: eal: --" '[a]\neal = -l 0,1 --\n'
ok "a program that is not there" bad "bad.ini:2: program: ./none" '[lab]\nprogram = ./none\n[a]\n'
ok "a program that is a directory" bad "bad.ini:2: program: lab/" '[lab]\nprogram = lab/\n[a]\n'
ok "a report that is not there" bad "bad.ini:3: report: none-such" \
	"[lab]\nprogram = lab/stub\nreport = none-such\n[a]\n"
ok "results without a value" bad "bad.ini:2: results: value missing" '[lab]\nresults =\n[a]\n'
ok "a fixed baseline that is not there" bad "bad.ini:2: baseline: old" '[a]\nbaseline = old\n'
ok "the last of several is checked before the first runs" bad "bad.ini:6: margin" \
	'[lab]\nprogram=lab/stub\n[one]\noptions=--stub=one\n[two]\nmargin=x'

lab_ini $'# comment\r\n  [ one ]'
ok "blanks within brackets are part of a name" refuses 2 "lab.ini:5: [ one ]" lab/lab.ini

# ---- values are data ----

# shellcheck disable=SC2016
lab_ini '[one]
  eal   =   -l 0,1 "a b" '"'c  d'"' e\ f "g\"h\x" '"''"'
options=--stub=one $(touch x) `touch x` ; touch x; * ${HOME} ~ | & > x # no comment
'
ok "words are split by quotes and never executed" eval '
	exits 4 lab/lab.ini && is "$(head -n -1 argv | tr "\n" "|")" \
	"-l|0,1|a b|c  d|e f|g\"h\\x||--|--stub=one|\$(touch|x)|\`touch|x\`|;|touch|x;|*|\${HOME}|~|||&|>|x|#|no|comment|" argv &&
	[ ! -e x ] && [ ! -e lab/x ]'
ok "--dry-run prints the command, quoted, and runs nothing" eval '
	rm argv && exits 0 --dry-run lab/lab.ini && has "$tmp/out" "one: $PWD/lab/./stub -l 0\\,1 a\\ b" &&
	! grep -F "\$(touch x)" "$tmp/out" && [ ! -e argv ] && is "$(runs one)" 1 runs'
rm -rf "$results"
ok "--dry-run and --list make nothing" eval '
	exits 0 --dry-run lab/lab.ini && exits 0 --list lab/lab.ini && has "$tmp/out" "one: margin 2 %, baseline none" &&
	[ ! -e $results ]'

# ---- baseline and promotion ----

experiments one
ok "without a baseline a run is kept and skipped" eval '
	exits 4 lab/lab.ini && has "$tmp/out" "no baseline; promote one: lab-regress --promote one" &&
	is "$(runs one)" 1 runs && [ ! -e $results/one/baseline ] && [ ! -L $results/one/baseline ]'
first=$(newest one)
ok "its words stand beside it" has "$results/one/$first.log" "first words"
ok "promotion is never silent: nor by a second run" eval '
	exits 4 lab/lab.ini && is "$(runs one)" 2 runs && [ ! -L $results/one/baseline ]'
second=$(newest one)
ok "promoting the newest" eval 'exits 0 --promote one lab/lab.ini &&
	is "$(<"$tmp/out")" "one: the baseline is $second" stdout && is "$(readlink $results/one/baseline)" "$second" link'
ok "promoting one by its name" eval 'exits 0 --promote one "$first" lab/lab.ini &&
	has "$tmp/out" "was $second" && is "$(readlink $results/one/baseline)" "$first" link'
ok "--list names it" eval 'exits 0 --list lab/lab.ini && has "$tmp/out" "baseline $first, newest complete run $second"'
ok "promotion replaces the link by rename alone" eval '
	strace -f -o trace -e trace=unlink,unlinkat,symlink,symlinkat,rename,renameat,renameat2 \
		"$lab" --promote one "$second" lab/lab.ini && grep -q "rename.*one/baseline.new.*one/baseline\"" trace &&
	! grep -E "unlink.*one/baseline\"" trace && is "$(readlink $results/one/baseline)" "$second" link'

# not_promoted CODE TEXT ARGUMENTS: and the baseline is what it was.
not_promoted() {
	local before
	before=$(readlink "$results/one/baseline")
	refuses "$1" "$2" --promote "${@:3}" lab/lab.ini &&
		is "$(readlink "$results/one/baseline")" "$before" "the baseline"
}
ok "promoting an unknown experiment" not_promoted 2 "--promote two: no such experiment" two
ok "promoting [lab]" not_promoted 2 "--promote lab: no such experiment" lab
ok "promoting two names at once" not_promoted 2 "no such experiment" "one one"
ok "promoting what is no run" not_promoted 2 "../x is not the name of a run" one ../x
ok "promoting a run that is not there" not_promoted 1 "20200101T000000Z: no such run" one 20200101T000000Z
cp -r made/half "$results/one/20990101T000000Z"
ok "promoting one that was interrupted" not_promoted 1 "was interrupted" one 20990101T000000Z
ok "the newest complete one is not the interrupted" eval '
	exits 0 --promote one lab/lab.ini && is "$(readlink $results/one/baseline)" "$second" link'
cp -r made/broken "$results/one/20990101T000001Z"
ok "promoting one that fails its check" not_promoted 1 "the check failed" one 20990101T000001Z
rm -r "$results"/one/2099*
experiments one two
ok "promoting where there is none" refuses 1 "no complete run" --promote two lab/lab.ini
ok "a baseline that is no link" eval 'mkdir -p $results/two/baseline/x && cp -r made/base $results/two/20200101T000000Z &&
	refuses 1 "cannot be replaced" --promote two lab/lab.ini && [ -d $results/two/baseline/x ]'
rm -r "$results"

# ---- verdicts ----

# verdict MADE RUN-EXIT-CODE CODE WORD...: of one experiment against made/base.
verdict() {
	rm -rf "$results"
	does v "$1 $2 ${words-}"
	exits "$3" lab/lab.ini && has "$tmp/out" "${@:4}"
}
lab_ini $'[v]\noptions = --stub=v\nbaseline = ../made/base'
ok "the same" verdict same 0 0 "+0.50" "same"
ok "an improvement" verdict better 0 0 "+20.00" improvement
ok "a regression" verdict worse 0 3 "-10.00" "[-10.18, -9.82]" regression
ok "one that cannot be told" verdict unclear 0 5 inconclusive
words="dpdk-sibfwd: port 0 burns" ok "a program that fails" verdict - 1 1 "could not" "exit code 1: dpdk-sibfwd: port 0 burns"
words="stub: bad option" ok "a usage error of the program counts as could not" verdict - 2 1 "exit code 2"
ok "a program that dies" verdict - 137 1 "exit code 137"
words="dpdk-sibfwd: no SMT" ok "what does not apply is skipped" verdict - 4 4 skipped "no SMT"
words="dpdk-sibfwd: CPU 2 stays" ok "a machine that could not be restored" verdict - 6 6 "not restored" "CPU 2 stays"
ok "exit code 0 without a result" verdict - 0 1 "no complete run"
ok "exit code 0 of half a run" verdict half 0 1 "no complete run"
ok "the run's own regression stays one" verdict same 3 3 regression "by the run itself"
ok "and its own inconclusive verdict" verdict same 5 5 inconclusive "by the run itself"
ok "the worse of both" verdict worse 5 3 regression "-10.00"
ok "a run's own regression without a baseline" eval 'lab_ini "[v]
options = --stub=v" && verdict same 3 3 "by the run itself"'
ok "a margin of its own" eval 'lab_ini "[v]
options = --stub=v
baseline = ../made/base
margin = 15" && verdict worse 0 0 same'
ok "a baseline that went away" eval 'lab_ini "[v]
options = --stub=v" && rm -rf $results && mkdir -p $results/v && ln -s 20200101T000000Z $results/v/baseline &&
	exits 1 lab/lab.ini && has "$tmp/out" "the baseline 20200101T000000Z is not there"'
ok "a baseline that cannot be compared" eval 'mkdir -p empty && lab_ini "[v]
options = --stub=v
baseline = ../empty" && verdict same 0 1 "could not" "empty"'

# ---- exit codes of several, and the summaries ----

does same "same 0"; does worse "worse 0"; does unclear "unclear 0"; does fails "- 1 dpdk-sibfwd: <&\"'> 10 % # lost"
does skipped "- 4 dpdk-sibfwd: not here"; does unrestored "- 6"

# several CODE NAME...: all with the fixed baseline.
several() {
	local name text=
	for name in "${@:2}"; do
		text+="[$name]"$'\n'"options=--stub=$name"$'\n'"baseline=../made/base"$'\n'
	done
	lab_ini "$text"
	exits "$1" lab/lab.ini
}
rm -rf "$results"
ok "0 and 4 is 0" several 0 same skipped
ok "all skipped is 4" several 4 skipped
ok "0 and 5 is 5" several 5 same unclear
ok "5 and 3 is 3" several 3 unclear worse
ok "3 and 1 is 1" several 1 worse fails same
ok "1 and 6 is 6, and nothing runs behind it" eval 'several 6 fails unrestored same && has "$tmp/out" "not run" &&
	has $results/latest.ktap "not ok 3 - same"'
ok "all of them" several 1 same worse unclear fails skipped
ok "the summary on stdout is the one that is kept" cmp "$tmp/out" "$results/latest.txt"
ok "lines of it are at most 100 characters wide" eval '! grep -E "^.{101}" $results/latest.txt'
ok "the latest are links to dated ones" eval 'for kind in txt xml ktap; do
	[[ $(readlink $results/latest.$kind) =~ ^summary-[0-9]{8}T[0-9]{6}Z\.$kind$ ]] || exit 1; done'
ok "JUnit is well-formed and tells each" /usr/bin/python3 -c '
import sys, xml.etree.ElementTree as e
s = e.parse(sys.argv[1]).getroot()
assert [s.get(k) for k in ("tests", "failures", "errors", "skipped")] == ["5", "1", "2", "1"], s.attrib
c = {t.get("name"): t for t in s.findall("testcase")}
assert list(c) == ["same", "worse", "unclear", "fails", "skipped"]
assert [c[n][0].tag for n in c] == ["system-out", "failure", "error", "error", "skipped"]
message = c["fails"][0].get("message")
assert "<&\"\x27> 10 % # lost" in message, message
assert "-10.00 %" in c["worse"][0].get("message")' "$results/latest.xml"
ok "KTAP has its form" eval '
	is "$(head -n 2 $results/latest.ktap | tr "\n" "|")" "KTAP version 1|1..5|" "its top" &&
	is "$(grep -E "^(not )?ok " $results/latest.ktap | sed "s/ # SKIP .*/ # SKIP/" | tr "\n" "|")" \
	"ok 1 - same|not ok 2 - worse|not ok 3 - unclear|not ok 4 - fails|ok 5 - skipped # SKIP|" results &&
	is "$(tail -n 1 $results/latest.ktap)" "# worst: could not, exit code 1" "its end" &&
	! grep -vE "^(KTAP version 1|1\.\.5|(not )?ok [0-9]+ - .*|# .*)$" $results/latest.ktap'
long=$(printf 'n%.0s' {1..100})
does "$long" "same 0"
ok "a long name is cut in the table, not in JUnit" eval 'several 0 $long && ! grep -E "^.{101}" "$tmp/out" &&
	has $results/latest.xml "name=\"$long\""'
printf 'dpdk-sibfwd: \033[31m\377\001 bad\n' >words
does odd "- 1 $(<words)"
ok "control characters do not get into a summary" eval 'several 1 odd && /usr/bin/python3 -c "
import sys, xml.etree.ElementTree as e
e.parse(sys.argv[1])" $results/latest.xml && ! LC_ALL=C grep -P "[^ -~]" $results/latest.txt $results/latest.ktap'

# ---- how many are kept ----

rm -rf "$results"
lab_ini $'keep = 2\n[one]\noptions = --stub=one'
mkdir -p "$results/one"
for day in 1 2 3 4; do
	cp -r made/base "$results/one/2020010${day}T000000Z"
	echo words >"$results/one/2020010${day}T000000Z.log"
done
mkdir "$results/one/mine"
ok "the newest are kept, and the baseline" eval '
	exits 0 --promote one 20200101T000000Z lab/lab.ini && is "$(runs one)" 4 "runs after promoting" &&
	exits 0 lab/lab.ini && is "$(runs one)" 3 runs && [ -d $results/one/20200101T000000Z ] &&
	[ -d $results/one/20200104T000000Z ] && [ ! -e $results/one/20200103T000000Z.log ] && [ -d $results/one/mine ]'

# ---- where results go ----

experiments one
ok "--results" eval 'exits 4 --results elsewhere lab/lab.ini && [ -f elsewhere/latest.txt ]'
ok "results in [lab] are relative to the file" eval 'lab_ini "results = a b/c
[one]
options = --stub=one" && exits 4 lab/lab.ini && [ -f "lab/a b/c/latest.txt" ]'
ok "results that cannot be made" eval 'touch file && refuses 1 "file/x: cannot be made" --results file/x lab/lab.ini'
ok "results that cannot be written" eval 'mkdir -p locked/.lock && refuses 1 "locked: cannot be written" \
	--results locked lab/lab.ini'
ok "an experiment's directory that cannot be made" eval 'mkdir taken && touch taken/one &&
	exits 1 --results taken lab/lab.ini && has taken/latest.txt "cannot be made"'

# ---- lock and interruption ----

# begin SIGNALS: in the background, until the program has begun.
begin() {
	rm -f started ended
	env --default-signal=INT,TERM "$lab" lab/lab.ini >"$tmp/out" 2>"$tmp/err" &
	pid=$!
	until_true [ -e started ]
}
does slow "wait 0"
for signal in TERM INT; do
	experiments one slow same
	rm -rf "$results"
	ok "SIG$signal: begun" begin
	if [ "$signal" = TERM ]; then
		ok "a second one at the same time is refused" refuses 1 "results: another lab-regress uses" lab/lab.ini
		ok "and so is promotion" refuses 1 "results: another lab-regress uses" --promote one lab/lab.ini
		rm -f elsewhere/latest.txt
		does one "base 0"
	fi
	kill -"$signal" "$pid"
	ok "SIG$signal is passed on, and the end waited for" eval 'finish && ended 1 && is "$(<ended)" stopped "the program"'
	ok "SIG$signal: what there is is summed up" eval 'has $results/latest.txt "interrupted: 0 of 10" "not run" &&
		has $results/latest.ktap "ok 1 - one # SKIP" "not ok 2 - slow" "not ok 3 - same" &&
		has $results/latest.xml "tests=\"3\""'
	ok "SIG$signal: it cannot be promoted" eval 'refuses 1 "no complete run" --promote slow lab/lab.ini &&
		refuses 1 "was interrupted" --promote slow "$(newest slow)" lab/lab.ini'
done

# ---- real runs ----

if [ -z "${SANITIZED-}" ]; then
	rm -rf "$results"
	printf '[lab]\nprogram = %s\nreport = %s\n[real]\neal = %s\noptions = %s\nmargin = 100\n' "$sibfwd" "$report" \
		"${eal[*]}" "--source=null --windows=2 --blocks=3 --duration=0.05 --warmup=0 --settle=0 --force" >lab/lab.ini
	ok "a real run, to be promoted" eval 'exits 4 lab/lab.ini && exits 0 --promote real lab/lab.ini'
	# Where the machine disturbs every window there is no verdict.
	ok "and a second one, compared with it" eval 'run "$lab" lab/lab.ini; [ $rc -eq 0 ] || [ $rc -eq 5 ] || ended 0;
		is "$(runs real)" 2 runs && grep -E "^real +0 +[-+][0-9.]+ " "$tmp/out"'
else
	skip "real runs" "the same script with the release build tells"
fi

end_tests
