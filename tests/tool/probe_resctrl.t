#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# idlectl probe resctrl on trees that are made here: two vendors, several domains, hundreds of groups.
. tests/tap.sh

program=$(realpath "${BUILD:-build}/idlectl/idlectl") || bail "no idlectl"
PATH=$(dirname "$program"):$PATH
machines=$PWD/tests/data/machines

# ---- trees ----

# machine NAME DIR LINE...: a machine like NAME but for the lines.
machine() {
	local name=$1 dir=$2
	shift 2
	printf '%s\n' "like = $name" "$@" >"$tmp/machine"
	"$machines/unpack" "$tmp/machine" "$dir" || bail "no tree"
}

# groups DIR DOMAINS GROUP...: with both counters in each of the domains; the root is "".
groups() {
	local root=$1/sys/fs/resctrl domains=$2 group d dirs=()
	shift 2
	mkdir -p "$root/info/L3_MON" "$root/mon_groups"
	echo 256 >"$root/info/L3_MON/num_rmids"
	for group in "$@"; do
		for d in $domains; do
			dirs+=("$root/$group/mon_data/mon_L3_$d")
		done
	done
	mkdir -p "${dirs[@]}"
	for d in "${dirs[@]}"; do
		echo 12345 >"$d/mbm_local_bytes"
		echo 67890 >"$d/mbm_total_bytes"
		echo 4096 >"$d/llc_occupancy"
	done
}

# Two packages of an Intel machine, 4 groups.
intel=$tmp/intel
machine skx-2s-6.12 "$intel"
groups "$intel" "00 04" "" mon_groups/one control control/mon_groups/two
mkdir "$intel/sys/fs/resctrl/mon_data/mon_PERF_PKG_00" # other monitors have no bandwidth

# Four core complexes of an AMD machine, 250 groups.
amd=$tmp/amd
machine zen3 "$amd" "l3-cores = 2" "threads = 1"
groups "$amd" "00 02 04 06" "" mon_groups/{1..199} control{1..5} control1/mon_groups/{1..45}

# run TREE OPTION...: 10 repeats after one to warm up.
run() {
	local tree=$1
	shift
	idlectl --sysroot "$tree" probe resctrl "$@" >"$tmp/out" 2>"$tmp/err"
	rc=$?
}

# worked [TREE OPTION...]
worked() {
	run "$@"
	is "$rc" 0 "exit code" && is "$(<"$tmp/err")" "" stderr || { cat "$tmp/err"; return 1; }
}

# refused CODE TEXT TREE OPTION...: nothing on stdout, one line on stderr.
refused() {
	local code=$1 text=$2
	shift 2
	run "$@"
	is "$rc" "$code" "exit code" && is "$(<"$tmp/out")" "" stdout &&
		is "$(wc -l <"$tmp/err")" 1 "lines on stderr" && has "$tmp/err" "$text"
}

# gives WANTED FILTER: what jq makes of the last run's JSON.
gives() { is "$(jq -c "$2" "$tmp/out")" "$1" "$2"; }

counts='.facts[] | [.groups, .counters, .numbers]'

# ---- counters ----

ok "two domains of an Intel machine" worked "$intel" --json
ok "the root, control groups and monitoring groups of both, in 11 turns of 2 readers" \
	gives "$(printf '[4,8,176]\n[4,8,176]')" "$counts"
ok "the CPUs of a domain are those whose cache has its number; the second reads, the first serves" \
	gives "$(printf '[1,4]\n[5,0]')" '.facts[] | [.local_cpu, .remote_cpu]'
ok "a row a metric for each of two readers in two domains" gives \
	'["domain 0, local","domain 0, remote","domain 4, local","domain 4, remote"]' \
	'[.rows[] | select(.repeats == 10).case] | unique'
ok "reader cycles, per counter and rate; cycles of those who serve take a PMU" gives \
	'["per counter","read rate","reader cycles"]' '[.rows[].metric] | unique'
ok "raw, overhead, net and its interval are there" gives true '[.rows[] | select(.repeats == 10 and
	.metric != "read rate") | .raw > 0 and .overhead > 0 and .net != null and .low <= .high] | all'
ok "cycles of a tree are the TSC's" gives '["M TSC cycles"]' \
	'[.rows[] | select(.repeats == 10 and .metric == "reader cycles").unit] | unique'
ok "it says that nothing is pinned" gives 1 '[.notes[] | select(test("recorded tree: nothing is pinned"))] | length'
ok "all published figures are shown" gives '[1.22,2.21,2.98,3.25,4.49,4.62,7.91,8.05]' \
	'[.rows[].published | select(. != null)] | sort'
ok "and are not comparable" gives '"no: a recorded tree"' .published.comparable
ok "more warm-up and repeats are more reads" eval 'worked "$intel" --json --warmup 3 --repeats 6 &&
	gives "$(printf "[4,8,144]\n[4,8,144]")" "$counts"'

ok "four domains of an AMD machine" worked "$amd" --json --warmup 0
ok "250 groups in each" gives "$(yes '[250,500,10000]' | head -n 4)" "$counts"
ok "their CPUs" gives "$(printf '[1,2]\n[3,0]\n[5,0]\n[7,0]')" '.facts[] | [.local_cpu, .remote_cpu]'
ok "one domain of four" eval 'worked "$amd" --json --domain 4 && gives "[\"mon_L3_04\"]" ".facts | keys"'
ok "as it is written in the file system" eval 'worked "$amd" --json --domain 04 &&
	gives "[\"mon_L3_04\"]" ".facts | keys"'
ok "a domain that is not there: those that are, are named" refused 2 "there are 0 2 4 6" "$amd" --domain 3
ok "a domain that is no number" refused 2 "--domain x: there are 0 2 4 6" "$amd" --domain x
ok "an option of another probe" refused 2 "--mesh" "$amd" --mesh

# ---- formats ----

rows_are_whole() {
	python3 - "$tmp/out" <<'PYTHON'
import csv, sys
rows = list(csv.reader(open(sys.argv[1], newline=""), strict=True))
assert rows[0][:5] == ["probe", "case", "metric", "unit", "repeats"], rows[0]
assert len(rows) == 1 + 2 * 2 * 3 + 8, len(rows)
assert all(len(row) == len(rows[0]) for row in rows), rows
PYTHON
}
ok "CSV has a header and rows as long as that, and tells where it is from" eval 'run "$intel" --csv; is "$rc" 0 "exit code" &&
	rows_are_whole && is "$(grep -c ",0,recorded,$" "$tmp/out")" 12 "rows of ours"'
ok "its notes go to standard error" has "$tmp/err" "idlectl: a recorded tree: nothing is pinned"
ok "the table has readers, published figures and notes" eval 'worked "$intel" && has "$tmp/out" \
	"domain 4, remote" "reader cycles" "cpu=AMD EPYC 7B12&groups=250&domain=local&patched=yes" \
	"published: EPYC 7B12, Xeon Gold 6268CL" "a recorded tree"'

# ---- values that are none ----

odd=$tmp/odd
cp -r "$intel" "$odd"
data=$odd/sys/fs/resctrl/mon_data/mon_L3_00
echo Unavailable >"$data/mbm_local_bytes"
echo Error >"$data/mbm_total_bytes"
echo Unassigned >"$odd/sys/fs/resctrl/control/mon_data/mon_L3_00/mbm_local_bytes"
: >"$odd/sys/fs/resctrl/control/mon_data/mon_L3_00/mbm_total_bytes"
echo many >"$odd/sys/fs/resctrl/mon_groups/one/mon_data/mon_L3_00/mbm_total_bytes"
ok "values that are none are counted by kind" eval 'worked "$odd" --json --domain 0 &&
	gives "[66,22,22,22,22,22,0]" ".facts.mon_L3_00 |
		[.numbers, .Unavailable, .Error, .Unassigned, .empty, .\"no number\", .unreadable]"'
ok "and told below" eval 'worked "$odd" && has "$tmp/out" "mon_L3_00: 22 reads: Unavailable" \
	"mon_L3_00: 22 reads: Error" "mon_L3_00: 22 reads: Unassigned" "mon_L3_00: 22 reads: empty" &&
	hasnt "$tmp/out" "mon_L3_04: 22"'
# Nodes of a cache that is shared have files of their own below the one that sums them up.
mkdir "$data/mon_sub_L3_00" "$data/mon_sub_L3_01"
cp "$data"/mbm_* "$data/mon_sub_L3_00"
cp "$data"/mbm_* "$data/mon_sub_L3_01"
ok "parts of a domain are not counted twice" eval 'worked "$odd" --json --domain 0 &&
	gives 8 .facts.mon_L3_00.counters'
rm "$data/mbm_local_bytes"
mkdir "$data/mbm_local_bytes"
ok "a counter that cannot be read is left, its group is named" eval 'worked "$odd" --json --domain 0 &&
	gives 1 .facts.mon_L3_00.unreadable &&
	gives 1 "[.notes[] | select(test(\"resctrl cannot be read any more: Is a directory\"))] | length"'
ok "none that can be read" eval 'rm "$odd"/sys/fs/resctrl/{,control/,control/mon_groups/two/,mon_groups/one/}mon_data/mon_L3_04/mbm_*
	mkdir "$data/../mon_L3_04/mbm_total_bytes"
	refused 1 "none of 1 counters could be read" "$odd" --domain 4'

# ---- what there may be too little of ----

ok "no more descriptors than the limit" eval '(ulimit -n 100
	refused 1 "mon_L3_00: Too many open files after 9" "$amd") && has "$tmp/err" "ulimit -n"'
ok "a soft limit is raised" eval '(ulimit -Sn 100; worked "$amd" --domain 0)'

single=$tmp/single
machine clx "$single"
groups "$single" 00 "" mon_groups/one
ok "one domain has no remote reader, and that is said" eval 'worked "$single" --json &&
	gives "[\"domain 0, local\"]" "[.rows[] | select(.repeats == 10).case] | unique" &&
	gives "[\"mon_L3_00: no remote reader: no CPU of another domain may be used\"]" \
		"[.notes[] | select(test(\"remote\"))]"'

none=$tmp/none
machine clx "$none"
ok "no resctrl" refused 4 "mount -t resctrl resctrl /sys/fs/resctrl" "$none"
mkdir -p "$none/sys/fs/resctrl"
ok "resctrl that is not mounted" refused 4 "not mounted: mount -t resctrl resctrl /sys/fs/resctrl" "$none"
mkdir -p "$none/sys/fs/resctrl/info/L3"
ok "a CPU that allocates but does not monitor" refused 4 "does not monitor bandwidth" "$none"
groups "$none" 00 ""
rm "$none"/sys/fs/resctrl/mon_data/mon_L3_00/mbm_*
ok "one that monitors occupancy only" refused 4 "no group has an mbm_local_bytes" "$none"
rm -r "$none/sys/fs/resctrl/mon_data/mon_L3_00"
ok "one without a domain" refused 4 "there is no mon_L3_NN" "$none"
groups "$none" 00 ""
rm "$none"/sys/devices/system/cpu/cpu*/cache/index3/id
ok "one whose caches have no number" refused 4 "tells the number of its third-level cache" "$none"
if [ -d /sys/fs/resctrl/info ]; then
	skip "this machine has none" "it has"
else
	ok "this machine has none" eval 'idlectl probe resctrl >"$tmp/out" 2>"$tmp/err"; is $? 4 "exit code" &&
		has "$tmp/err" "mount -t resctrl"'
fi

# ---- signals ----

# Once it has opened the counters of a domain it reads them.
interrupted() {
	local i rc
	env --default-signal=INT idlectl --sysroot "$amd" probe resctrl --repeats 1000 >"$tmp/out" 2>"$tmp/err" &
	for ((i = 0; i < 1000; i++)); do
		[ "$(find /proc/$!/fd -lname '*/mbm_*' 2>/dev/null | wc -l)" -lt 500 ] || break
		sleep 0.01
	done
	kill -INT $!
	wait $!
	rc=$?
	is "$rc" 1 "exit code" && has "$tmp/err" interrupted && is "$(<"$tmp/out")" "" stdout
}
ok "SIGINT ends it, without a table" interrupted

end_tests
