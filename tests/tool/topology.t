#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# idlectl topology on machines of tests/data/machines, on this one, and on a record of this one.
# UPDATE=1 writes the tables that are expected anew.
. tests/tap.sh

idlectl=$PWD/${BUILD:-build}/idlectl/idlectl
machines=tests/data/machines
[ -x "$idlectl" ] || bail "there is no $idlectl"

# on MACHINE OPTION...: idlectl topology on a machine, which is unpacked first if need be.
on() {
	local machine=$1
	shift
	[ -d "$tmp/$machine" ] || "$machines/unpack" "$machine" "$tmp/$machine" || return
	"$idlectl" --sysroot "$tmp/$machine" topology "$@"
}

# ---- tables ----

golden() {
	on "$1" --cpu 2 >"$tmp/table" || return
	[ -z "${UPDATE:-}" ] || cp "$tmp/table" "$machines/$1.topology"
	diff -u "$machines/$1.topology" "$tmp/table"
}

for machine in $("$machines/unpack" --list); do
	ok "table of $machine" golden "$machine"
done

# ---- lists that are none ----

# whole TREE: every command that looks ends by itself: with an answer, or with one line that says why not.
whole() {
	local c
	for c in topology "topology --json" states scenarios doctor status; do
		timeout 60 "$idlectl" --sysroot "$1" $c >"$tmp/out" 2>"$tmp/err"
		rc=$?
		[ $rc -eq 0 ] || { is $rc 1 "exit code of $c" && is "$(wc -l <"$tmp/err")" 1 "lines on stderr"; } ||
			{ cat "$tmp/err"; return 1; }
	done
}

cp -r "$tmp/skx-isolated" "$tmp/lists"
mkdir -p "$tmp/lists/sys/devices/system/node"
for list in sys/devices/system/cpu/{present,possible,online,isolated,nohz_full} sys/devices/system/node/online \
	$(cd "$tmp/lists" && ls proc/irq/*/{effective_affinity,smp_affinity}_list 2>/dev/null | head -n 2); do
	for text in 0- -1 3-1 0-1, 08-15 0-2147483647 99999999999999999999999 all "0-1;2" digits; do
		cp "$tmp/lists/$list" "$tmp/list" 2>/dev/null || : >"$tmp/list"
		printf '%s\n' "$text" >"$tmp/lists/$list"
		[ "$text" != digits ] || printf '%0200000d\n' 1 >"$tmp/lists/$list"
		ok "$list is \"$text\"" whole "$tmp/lists"
		cp "$tmp/list" "$tmp/lists/$list"
	done
done
ok "one that is named is named" eval 'echo 0- >"$tmp/lists/sys/devices/system/cpu/online"
	! "$idlectl" --sysroot "$tmp/lists" topology 2>"$tmp/err" && has "$tmp/err" "cpu/online: not a list"'
rm "$tmp/lists/sys/devices/system/cpu/isolated"
cp "$tmp/skx-isolated/sys/devices/system/cpu/online" "$tmp/lists/sys/devices/system/cpu/online"
mkfifo "$tmp/lists/sys/devices/system/cpu/isolated"
ok "a pipe to which nobody writes" whole "$tmp/lists"
rm "$tmp/lists/sys/devices/system/cpu/online"
mkfifo "$tmp/lists/sys/devices/system/cpu/online"
ok "one that hwloc would read" whole "$tmp/lists"

# ---- JSON ----

# json WANTED MACHINE FILTER [OPTION...]
json() {
	local wanted=$1 machine=$2 filter=$3
	shift 3
	on "$machine" --json "$@" >"$tmp/json" || return
	is "$(jq -c "$filter" "$tmp/json")" "$wanted" "$filter"
}

siblings='[.cpus[] | select(.siblings != []) | [.cpu] + .siblings | sort] | unique'

ok "JSON: siblings of two sockets" json \
	'[[0,8],[1,9],[2,10],[3,11],[4,12],[5,13],[6,14],[7,15]]' skx-2s-6.1 "$siblings"
ok "JSON: siblings 128 apart" json true big \
	"($siblings) == [range(128) | [., . + 128]]"
ok "JSON: siblings around holes" json '[[0,1],[6,7],[10,11]]' holes "$siblings"
ok "JSON: P-cores have siblings, E-cores none" json '[[0,1],[2,3],[4,5],[6,7]]' hybrid "$siblings"
ok "JSON: siblings that are off line are none" json '[]' smt-off-sysfs "$siblings"
ok "JSON: no siblings by the firmware" json '[]' smt-off-bios "$siblings"
ok "JSON: CPUs off line are there, and nothing is known of where" json \
	'[[1,false,null,null,null,[],[]],[3,false,null,null,null,[],[]]]' smt-off-sysfs \
	'[.cpus[:4][] | select(.online | not) | [.cpu, .online, .package, .node, .core, .l2, .l3]]'
ok "JSON: CPUs that are absent are not" json '[0,1,2,3,6,7,8,9,10,11]' holes '[.cpus[].cpu]'
ok "JSON: an L2 cache of four E-cores" json '[8,9,10,11]' hybrid '.cpus[9].l2'
ok "JSON: L3 caches of a package" json '[[0,1,2,3,8,9,10,11],[4,5,6,7,12,13,14,15]]' zen3 \
	'[.cpus[].l3] | unique'
ok "JSON: core numbers are the kernel's" json '[0,2,8,11]' skx-2s-6.12 '[.cpus[].core] | unique'
ok "JSON: measured CPU and its sibling" json '[130,2,"smt"]' big '[.measured,.sibling,.relation]' \
	--cpu 130
ok "JSON: the closest CPU where there is no sibling" json '[2,0,"l3"]' smt-off-sysfs \
	'[.measured,.sibling,.relation]' --cpu 2
ok "JSON: nobody is measured without --cpu" json '[false,false]' big '[has("measured","sibling")]'
ok "JSON: isolcpus and nohz_full" json '[[2,3,10,11],[2,3,10,11]]' skx-isolated \
	'[[.cpus[] | select(.isolcpus) | .cpu], [.cpus[] | select(.nohz_full) | .cpu]]'
ok "JSON: rcu_nocbs, the kernel's way to write every second CPU" json '[2,3,10,11,12,14]' \
	skx-isolated '[.cpus[] | select(.rcu_nocbs) | .cpu]'
ok "JSON: isolated partitions, the invalid one left out" json '[5,13]' skx-isolated \
	'[.cpus[] | select(.partition) | .cpu]'
ok "JSON: interrupts on isolated CPUs" json '[[3,28,"eth0-TxRx-4"],[10,29,"nvme0q3"]]' skx-isolated \
	'[.cpus[] | select(.isolcpus) | .cpu as $cpu | .irqs[] | [$cpu, .irq, .name]]'
ok "JSON: nobody is isolated elsewhere" json '[]' skx-2s-6.1 \
	'[.cpus[] | select(.isolcpus or .nohz_full or .rcu_nocbs or .partition)]'
ok "JSON: a node without CPUs" json '[[0,true],[1,false]]' memory-node \
	'[.nodes[] | [.node, .cpus != []]]'

rcu_list() {
	[ -d "$tmp/rcu" ] || "$machines/unpack" skx-2s-6.12 "$tmp/rcu" || return
	echo "ro rcu_nocbs=$1" >"$tmp/rcu/proc/cmdline"
	json "$2" rcu '[.cpus[] | select(.rcu_nocbs) | .cpu]'
}

ok "rcu_nocbs=all" rcu_list all "$(seq -s , 0 15 | sed 's/.*/[&]/')"
ok "rcu_nocbs up to the last CPU" rcu_list 14-N '[14,15]'
ok "rcu_nocbs of CPUs that are not there" rcu_list 15-99999999 '[15]'
ok "rcu_nocbs that is no list" rcu_list 3,x,5 '[3]'
ok "rcu_nocbs twice: the last one counts" rcu_list "3 rcu_nocbs=4" '[4]'

irqs_by_directory() {
	"$machines/unpack" zen3 "$tmp/directories" && rm "$tmp/directories/proc/interrupts" || return
	json '["mlx5_comp1@pci:0000:41:00.0"]' directories '[.cpus[12].irqs[].name]'
}

ok "interrupts without /proc/interrupts" irqs_by_directory

irqs_allowed() {
	"$machines/unpack" clx "$tmp/allowed" || return
	rm "$tmp"/allowed/proc/irq/24/effective_affinity_list
	echo >"$tmp"/allowed/proc/irq/25/effective_affinity_list
	echo 4-5 >"$tmp"/allowed/proc/irq/24/smp_affinity_list
	echo 5-6 >"$tmp"/allowed/proc/irq/25/smp_affinity_list
	json '[[24],[24,25],[25]]' allowed '[.cpus[4:7][] | [.irqs[].irq] - [9]]'
}

ok "interrupts of which only is known where they may go" irqs_allowed

# ---- words ----

words() {
	is "$(on "$1" --words | xargs)" "$2" words
}

ok "words: CPUs on line" words smt-off-sysfs "0 2 4 6"
ok "words: holes" words holes "0 1 2 6 7 9 10 11"

# ---- --cpu ----

# refused MACHINE CPU WORDS
refused() {
	on "$1" --cpu "$2" >"$tmp/out" 2>"$tmp/err"
	is $? 2 "exit code" && is "$(wc -l <"$tmp/err")" 1 "number of lines" &&
		is "$(<"$tmp/out")" "" "output" && has "$tmp/err" "--cpu $2" "$3"
}

ok "a CPU that is not there: those that are" refused smt-off-bios 4 0-3
ok "a CPU that is off line" refused holes 3 0-2,6-7,9-11

# ---- the picture ----

# svg MACHINE CPU: an SVG that Python reads; prints what is drawn of each CPU.
svg() {
	rm -f "$tmp/svg"
	on "$1" --cpu "$2" --svg "$tmp/svg" >/dev/null || return
	python3 - "$tmp/svg" <<-'P'
		import sys
		import xml.etree.ElementTree as ET
		root = ET.parse(sys.argv[1]).getroot()
		assert root.tag == '{http://www.w3.org/2000/svg}svg', root.tag
		width, height = int(root.get('width')), int(root.get('height'))
		for g in root.iter('{http://www.w3.org/2000/svg}g'):
		    if g.get('class').startswith('cpu'):
		        print(g[1].text, g.get('class').split()[1])
		seen = {}
		for rect in root.iter('{http://www.w3.org/2000/svg}rect'):
		    x, y = int(rect.get('x', 0)), int(rect.get('y', 0))
		    w, h = int(rect.get('width')), int(rect.get('height'))
		    assert x + w <= width and y + h <= height, 'outside'
		    seen.setdefault((w, h), []).append((x, y))
		for (w, h), at in seen.items():  # boxes of one size are never in each other
		    for i, (x, y) in enumerate(at):
		        assert all(abs(x - a) >= w or abs(y - b) >= h for a, b in at[i + 1:]), (w, h, x, y)
	P
}

# draws MACHINE CPU EXPECTED...: each a CPU and what it is drawn as; and how many CPUs.
draws() {
	local machine=$1 cpu=$2 nb=$3
	shift 3
	svg "$machine" "$cpu" >"$tmp/cpus" && is "$(wc -l <"$tmp/cpus")" "$nb" "number of CPUs" &&
		is "$(grep -v ordinary "$tmp/cpus" | sort -n | paste -sd ,)" "$*" "CPUs that are marked"
}

ok "SVG: measured and sibling" draws skx-2s-6.1 2 16 "2 measured,10 sibling"
ok "SVG: 256 CPUs" draws big 255 256 "127 sibling,255 measured"
ok "SVG: one CPU a package" draws vm 1 4 "0 sibling,1 measured"
ok "SVG: cores of two kinds" draws hybrid 15 16 "12 sibling,15 measured"
ok "SVG: CPUs off line" draws holes 0 10 "0 measured,1 sibling,3 offline,8 offline"
ok "SVG: isolated CPUs" draws skx-isolated 2 16 \
	"2 measured,3 isolated,5 isolated,10 sibling,11 isolated,13 isolated"

legend() {
	svg "$1" 0 >/dev/null && shift && has "$tmp/svg" "$@"
}

ok "SVG: the legend" legend holes ">measured<" ">its SMT sibling<" ">off line<"
ok "SVG: the legend where there is no sibling" legend smt-off-bios ">closest: shares the L3 cache<"
ok "SVG: a node without CPUs" legend memory-node ">node 1 without CPUs, 128 GB<"

unwritable() {
	on clx --svg "$1" >"$tmp/out" 2>"$tmp/err"
	is $? 1 "exit code" && is "$(wc -l <"$tmp/err")" 1 "number of lines" &&
		is "$(<"$tmp/out")" "" "output" && has "$tmp/err" "--svg $1: $2"
}

full() {
	unwritable /dev/full "No space left" && [ -c /dev/full ] && [ ! -e /dev/full.tmp ]
}

replaced() {
	echo old >"$tmp/picture" && on clx --svg "$tmp/picture" >/dev/null &&
		has "$tmp/picture" "</svg>" && [ ! -e "$tmp/picture.tmp" ]
}

ok "SVG: a file that cannot be written" unwritable "$tmp/nowhere/svg" "No such file"
ok "SVG: a directory" unwritable "$tmp" ""
ok "SVG: a full device, which stays one" full
ok "SVG: an old file is replaced" replaced

# ---- topologies from elsewhere ----

elsewhere() {
	"$idlectl" --topology tests/data/topology.xml topology --cpu 1 --json >"$tmp/json" &&
		is "$(jq -c '[.sibling, .relation, (.cpus | length), ([.cpus[].irqs[]] | length)]' \
			"$tmp/json")" '[5,"smt",8,0]' "the answer"
}

ok "--topology: hwloc's file, and no interrupts of this machine" elsewhere

# ---- a record of this machine ----

secrets() {
	cat /etc/machine-id /sys/class/dmi/id/*_{serial,uuid} /sys/class/net/*/address 2>/dev/null |
		grep -v -E '^[0:]*$' | grep -E '^.{6,}$' | grep '[0-9]'
	uname -n
	hostname
}

# What may differ: where interrupts go now, and how much memory is free.
known='del(.cpus[].irqs)'

recorded() {
	scripts/record-machine "$tmp/record.gz" && "$machines/unpack" "$tmp/record.gz" "$tmp/record" &&
		on record --json >"$tmp/json" && "$idlectl" topology --json >"$tmp/live" &&
		is "$(jq -c "$known" "$tmp/json")" "$(jq -c "$known" "$tmp/live")" "the record"
}

no_secrets() {
	zcat "$tmp/record.gz" >"$tmp/text" && [ -s "$tmp/text" ] || return
	! secrets | sort -u | grep -v '^$' | grep -qwiF -f - "$tmp/text"
}

# A host whose name stands everywhere, and one that is asked for as a parameter.
named() {
	mkdir -p "$tmp/bin"
	printf '#!/bin/sh\necho %s\n' "$1" | tee "$tmp/bin/hostname" >"$tmp/bin/uname"
	chmod +x "$tmp"/bin/*
	PATH=$tmp/bin:$PATH scripts/record-machine "$tmp/named" || return
	! grep -qw "$1" <(grep -v '^#' "$tmp/named" | sed 's/^[^	]* =//') && rm -rf "$tmp/unnamed" &&
		"$machines/unpack" "$tmp/named" "$tmp/unnamed" && on unnamed >"$tmp/table" &&
		"$idlectl" topology --words | diff - <(on unnamed --words)
}

unwritable_record() {
	scripts/record-machine "$tmp/nowhere/record" 2>"$tmp/err"
	is $? 1 "exit code" && has "$tmp/err" "$tmp/nowhere/record: could not be written"
}

same_states() {
	local cpu
	for cpu in $("$idlectl" topology --words); do
		"$idlectl" states --cpu "$cpu" --json >"$tmp/live" &&
			"$idlectl" --sysroot "$tmp/record" states --cpu "$cpu" --json >"$tmp/json" || return
		is "$(jq -c '[.. | .name? // empty]' "$tmp/json")" \
			"$(jq -c '[.. | .name? // empty]' "$tmp/live")" "names of states" || return
	done
}

ok "record: the same CPUs as here" recorded
ok "record: no name, serial number or address of this machine" no_secrets
ok "record: a host's name that is a word of the record" named Mitigation
ok "record: a host's name with dots" named node0.rack-7.example
ok "record: a file that cannot be written" unwritable_record
if "$idlectl" states --json >"$tmp/live" 2>&1; then
	ok "record: the same idle states as here" same_states
else
	skip "record: the same idle states as here" "idlectl states: $(<"$tmp/live")"
fi

# ---- unpacking ----

climbs() {
	printf '/sys/../../escaped = x\n' >"$tmp/climbs.machine"
	! "$machines/unpack" "$tmp/climbs.machine" "$tmp/climbs" 2>"$tmp/err" &&
		[ ! -e "$tmp/escaped" ] && has "$tmp/err" "not a path below"
}

mixed() {
	mkdir -p "$tmp/mixed/sys" && ! "$machines/unpack" vm "$tmp/mixed" 2>"$tmp/err" &&
		has "$tmp/err" "not empty"
}

ok "unpack: no file outside of the tree" climbs
ok "unpack: not over another tree" mixed

end_tests
