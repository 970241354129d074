#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# sibfwd-report as its user sees it. Run from the root of the tree; TAP on stdout.
. tests/tool/lib.sh
docs=$PWD/docs/results.md
plot=$PWD/scripts/plot
cd "$tmp" || exit 1

# What the program said, for a failure.
said() {
	sed 's/^/stdout: /' out
	sed 's/^/stderr: /' err
	return "$1"
}

# result NAME STATUS
result() {
	ok "$1" said "$2"
}

# run ARGUMENTS: what the program says goes to out and err, its exit code to rc.
run() {
	"$report" "$@" >out 2>err
	rc=$?
}

# refuses NAME CODE TEXT ARGUMENTS: that exit code, and one line on stderr that has the text.
refuses() {
	local name=$1 code=$2 text=$3
	shift 3
	run "$@"
	[ "$rc" -eq "$code" ] && [ "$(wc -l <err)" -eq 1 ] && grep -qF -- "$text" err && [ ! -s out ]
	result "$name" $?
}

header=schema,run_id,utc_start,host,scenario,block,position,visit,window,warmup,tainted,taint,mode
header+=,source,burst,pkt_len,lcore,cpu,sibling_cpu,relation,duration_ns,tsc_delta,tsc_hz
header+=,rx_packets,tx_packets,tx_dropped,rx_missed,rx_nombuf,polls,empty_polls,pps
header+=,tsc_cycles_per_packet,busy_cycles_per_packet,core_cycles_per_packet
header+=,instructions_per_packet,irqs,ctx_switches,steal_ns,smi,sibling_idle_entries
header+=,sibling_idle_ns,sibling_state,sibling_spec_ctrl,emulated,noisy_lookups

# row VISIT WINDOW LCORE PACKETS TAINTED TAINT: one second at 3 GHz.
row() {
	local warmup=0 cycles
	[ "$2" = 0 ] && warmup=1
	cycles=$(python3 -c "print(3e9 / $4)")
	echo -n "1,r1,2026-01-02T03:04:0$2.5Z,lab,as-is,1,1,$1,$2,$warmup,$5,$6,io,null,32,64,"
	echo -n "$3,$3,9,smt,1000000000,3000000000,3000000000,$4,$4,0,0,0,100,10,$4.0,"
	echo "$cycles,,,,12,0,0,0,,,,,0,"
}

# A result directory with a warm-up row, a clean and a tainted window.
make() {
	mkdir "$1"
	{
		echo "$header"
		row 1 0 1 900000 0 ''
		row 1 1 1 1000000 0 controller
		row 1 2 1 1200000 1 'irqs;ctxsw'
	} >"$1/windows.csv"
}

# change DIR SCRIPT: another directory "changed", with windows.csv edited by that sed script.
change() {
	rm -rf changed
	cp -r "$1" changed
	sed -i "$2" changed/windows.csv
}

# finds NAME TEXT: check of the directory "changed" names that fault, and only by exit code 1.
finds() {
	run check changed
	[ "$rc" -eq 1 ] && grep -qF -- "$2" out && [ ! -s err ] && ! grep -q '^ok' out
	result "$1" $?
}

make good

# ---- the command line

run --help
[ "$rc" -eq 0 ] && grep -q 'show DIR' out && grep -q 'csv DIR' out && grep -q 'check DIR' out
result 'help names the commands' $?
run --version
[ "$rc" -eq 0 ] && grep -Eq '^sibfwd-report [0-9]+\.[0-9]+' out
result 'version' $?
refuses 'no command' 2 'command missing'
refuses 'unknown command' 2 'shew: unknown command' shew good
refuses 'unknown option' 2 '--colour: unknown option' show good --colour
refuses 'unknown short option' 2 '-x: unknown option' show good -x
refuses 'missing directory' 2 'show: DIR missing' show
refuses 'one argument too many' 2 'surplus: one argument too many' csv good surplus
refuses 'missing value' 2 '--format: value missing' show good --format
refuses 'unknown format' 2 'yaml is not table or json' show good --format yaml
refuses 'format where there is none' 2 '--format: not for csv' csv good --format json
refuses 'value where there is none' 2 '--help=me: takes no value' --help=me

# ---- show

run show good
[ "$rc" -eq 0 ] && grep -q 'as-is .*1/2 .*irqs;ctxsw' out && grep -q '1/warm-up' out &&
	grep -Eq '^as-is +all +2 +1 +1\.1000 +2727\.3' out &&
	grep -Eq '^as-is +untainted +1 +0 +1\.0000 +3000\.0 ' out && [ ! -s err ]
result 'show prints windows, and estimates with and without taint' $?
[ "$(wc -L <out)" -le 100 ]
result 'the table fits 100 columns' $?
run show --format=json good
[ "$rc" -eq 0 ] && jq -e '(.windows | length) == 3 and .windows[1].pps == 1e6 and
	.windows[1].busy_cycles_per_packet == null and .windows[2].tainted == 1 and
	.estimates.scenarios[0].all.windows == 2 and
	.estimates.scenarios[0].untainted.pps == 1e6' out >jq.out
result 'show --format json has the same figures' $?
run show good/windows.csv
[ "$rc" -eq 0 ] && grep -q '1/warm-up' out
result 'a windows.csv by its own name' $?
change good 's/,0,$/,1,/'
run show changed
[ "$rc" -eq 0 ] && grep -q emulated out
result 'an emulated machine is called so' $?
change good '3,4d'
printf '1,r1,2026-01' >>changed/windows.csv
run show changed
[ "$rc" -eq 0 ] && grep -q 'ends within a row' err && [ "$(wc -l <err)" -eq 1 ]
result 'an incomplete last row is left out and said' $?
head -n 1 good/windows.csv >head.csv
run show head.csv
[ "$rc" -eq 0 ] && [ "$(cat out)" = 'no windows' ]
result 'a run without windows' $?

# ---- csv

run csv good
[ "$rc" -eq 0 ] && [ "$(head -n 1 out)" = "$header" ] && [ "$(wc -l <out)" -eq 4 ] &&
	grep -q '"\?irqs;ctxsw' out
result 'csv prints the columns in their order' $?
cp out first.csv
run csv first.csv
cmp -s out first.csv
result 'csv of csv is the same' $?
sed 's/$/\r/' first.csv >crlf.csv
run csv crlf.csv
[ "$rc" -eq 0 ] && cmp -s out first.csv
result 'CRLF is read, LF is written' $?
{ cat good/windows.csv; for _ in {1..20000}; do tail -n 1 good/windows.csv; done; } >large.csv
for how in DFL IGN; do
	python3 -c "
import signal, subprocess, sys
signal.signal(signal.SIGPIPE, signal.SIG_$how)
p = subprocess.Popen(['$report', 'csv', 'large.csv'], stdout=subprocess.PIPE,
        stderr=open('err', 'w'), restore_signals=False)
p.stdout.readline()
p.stdout.close()
p.wait()" >out
	[ ! -s err ]
	result "a reader that goes away ends it quietly (SIGPIPE $how)" $?
done
for command in show csv check; do
	"$report" $command good >/dev/full 2>err
	[ $? -eq 1 ] && [ "$(wc -l <err)" -eq 1 ] && grep -q 'standard output: No space left' err
	result "$command says that its output is full" $?
done

# ---- directories that are none

refuses 'a directory that is not there' 1 'nowhere: No such file' show nowhere
mkdir void
refuses 'a directory without results' 1 'void/windows.csv: No such file' check void
head -c 5000 /dev/urandom >garbage.csv
refuses 'garbage' 1 'garbage.csv' csv garbage.csv
change good 's/,1000000,/,many,/'
refuses 'a word for a number, by line and column' 1 \
	'changed/windows.csv:3: column rx_packets: "many"' show changed
change good '4s/,$//'
refuses 'a field too few' 1 'changed/windows.csv:4: 44 fields, the header has 45' check changed

# ---- check

run check good
[ "$rc" -eq 0 ] && grep -q '^ok: 2 windows, 1 warm-up, 3 rows$' out && [ ! -s err ]
result 'check accepts good results' $?
change good 's/,3000000000,3000000000,1000000,/,3000000000,3010000000,1000000,/'
finds 'a TSC frequency that does not fit' 'off tsc_hz'
change good 's/,3000000000,3000000000,/,3000000000,3000003000,/'
run check changed
[ "$rc" -eq 0 ]
result 'a TSC frequency that fits within the bound' $?
change good 's/,1000000\.0,/,1000001.0,/'
finds 'a rate that is not packets over time' 'pps is 1000001'
change good 's/,0,controller,/,1,controller,/'
finds 'taint without a cause' 'visit 1 window 1 lcore 1: tainted is 1, taint is "controller"'
change good '4p'
finds 'a row twice' 'stands there twice'
change good '3d'
finds 'a window left out' 'follows window 0'
change good 's/,100,10,/,100,101,/'
finds 'more empty polls than polls' '101 empty polls of 100'
change good 's/^1,r1/2,r1/'
finds 'another schema' 'schema is 2'
change good '1s/smi,sibling_idle_entries/sibling_idle_entries,smi/'
finds 'columns in another order' 'windows.csv: column 39 is sibling_idle_entries'

# The other files of a directory.
jq -n --arg c "$header" '{schema: 1, "windows.csv": ($c | split(",") | map({name: .})),
	"bursts.csv": ("run_id,visit,window,lcore,burst_size,count" | split(",") |
		map({name: .}))}' >good/columns.json
"$report" show good --format json | jq '{schema, windows_done: 2, estimates}' >result.json
mv result.json good
{
	echo run_id,visit,window,lcore,burst_size,count
	printf 'r1,1,1,1,%s\n' 0,10 11111,89 11121,1 # 100 polls, 1000000 packets
} >good/bursts.csv
run check good
[ "$rc" -eq 0 ] && grep -q 'columns.json agrees; bursts.csv agrees; result.json agrees' out
result 'check accepts all files of a directory' $?
# As versions before the last column was added wrote it.
change good 's/,[^,]*$//'
jq 'del(."windows.csv"[-1])' good/columns.json >changed/columns.json
run check changed
[ "$rc" -eq 0 ] && grep -q 'columns.json agrees' out
result 'check accepts an older directory, which lacks the last column' $?
run show changed
mv out older
run show good
cmp -s out older
result 'show says the same of it' $?
sed -i 's/,[^,]*$//' changed/windows.csv
rm changed/columns.json
run check changed
[ "$rc" -eq 1 ] && grep -qF 'column 44 is missing' out
result 'one that lacks a column of the first version is refused' $?
change good ''
sed -i 's/,0,10$/,0,11/' changed/bursts.csv
run check changed
[ "$rc" -eq 1 ] && grep -q 'window 1 lcore 1: 100 polls, 101 in bursts.csv' out
result 'bursts that do not add up' $?
change good ''
jq '.windows_done = 3 | .estimates.scenarios[0].all.windows = 5' good/result.json >changed/result.json
run check changed
[ "$rc" -eq 1 ] && grep -q 'windows_done is 3, windows.csv has 2' out &&
	grep -qF 'estimates.scenarios[0].all.windows is 5, windows.csv gives 2' out
result 'counts of result.json that are not those of windows.csv' $?

# ---- pictures

# draws NAME FILE...: these pictures are there, and of the kind that their names say.
draws() {
	local name=$1 file bad=0
	shift
	[ "$rc" -eq 0 ] || bad=1
	for file in "$@"; do
		case $file in
		*.png) head -c 8 "$file" | grep -q PNG || bad=1 ;;
		*.svg) grep -q '</svg>' "$file" || bad=1 ;;
		esac
	done
	result "$name" $bad
}

# unplotted NAME CODE TEXT ARGUMENTS: refused with that exit code in one line.
unplotted() {
	local name=$1 code=$2 text=$3
	shift 3
	"$plot" "$@" >out 2>err
	[ $? -eq "$code" ] && [ "$(wc -l <err)" -eq 1 ] && grep -qF -- "$text" err && [ ! -s out ]
	result "$name" $?
}

if /usr/bin/python3 -c 'import matplotlib' 2>/dev/null; then
	MPLCONFIGDIR=$tmp/mpl
	export MPLCONFIGDIR
	"$plot" good >out 2>err
	rc=$?
	draws 'plot draws into the directory' good/{windows,bursts}.{png,svg}
	grep -q 'rate (Mpps)' good/windows.svg && grep -q 'TSC cycles/packet' good/windows.svg &&
		grep -q 'tainted: irqs, ctxsw' good/windows.svg &&
		grep -q 'warm-up' good/windows.svg && grep -q 'lab, 2026-01-02' good/windows.svg &&
		! grep -q emulated good/windows.svg
	result 'units, taint, warm-up, host and date are in the picture' $?
	change good 's/,0,$/,1,/'
	rm changed/*.png changed/*.svg
	"$plot" changed --out pictures >out 2>err
	rc=$?
	draws 'plot --out draws elsewhere' pictures/{windows,bursts}.{png,svg}
	grep -q emulated pictures/windows.svg && grep -q emulated pictures/bursts.svg &&
		[ ! -e changed/windows.png ]
	result 'an emulated machine is called so in the pictures' $?
	unplotted 'plot of nothing' 1 'nowhere/windows.csv: No such file' nowhere
	unplotted 'plot without a directory' 2 'DIR'
	unplotted 'plot with an unknown option' 2 '--colour' good --colour
	change good '3s/,1000000\.0,/,many,/'
	unplotted 'plot of a word for a number' 1 "column pps: 'many'" changed
	head -n 1 good/windows.csv >changed/windows.csv
	unplotted 'plot of a run without windows' 1 'no windows' changed
else
	skip pictures "no matplotlib"
fi

# ---- the documentation

missing=0
for column in ${header//,/ }; do
	grep -q "^| \`$column\` |" "$docs" || { missing=1; echo "# not in docs: $column"; }
done
result 'docs/results.md has every column' $missing
end_tests
