#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# dpdk-sibfwd: which CPU is measured, whose idling matters to it, and that everything else stays
# off it. Other machines than this one are hwloc's synthetic ones, for which a plan is made.
. "${0%/*}/lib.sh"

results=$tmp/results

# plan MACHINE EXPECTED [EAL-OPTION... --] OPTION...: lines of the plan, joined by a |.
plan() {
	local machine=$1 expected=$2 before=()
	shift 2
	if [[ " $* " == *" -- "* ]]; then
		while [ "$1" != -- ]; do
			before+=("$1")
			shift
		done
		shift
	fi
	run env HWLOC_SYNTHETIC="$machine" "$sibfwd" "${before[@]}" -- --dry-run "$@"
	worked && is "$(grep -E '^(measured|controller)' "$tmp/out" | tr -s ' ' | paste -sd '|')" \
		"$expected" "the plan"
}

# no_plan MACHINE CODE WORDS [EAL-OPTION... --] OPTION...
no_plan() {
	local machine=$1 code=$2 words=$3
	shift 3
	plan "$machine" "" "$@" >/dev/null
	refused "$code" "$words"
}

threads="package:1 core:2 pu:2"       # CPUs 0,1 and 2,3 share a core
many="package:1 core:4 pu:2"
packages="package:2 core:2 pu:1"      # 0,1 and 2,3 share a package
packages_smt="package:2 core:2 pu:2"  # 0-3 and 4-7
groups="package:1 l3:2 core:2 pu:1"   # 0,1 and 2,3 share an L3 cache
pairs="package:1 l3:1 l2:2 core:2 pu:1"
linux="package:1 core:2 pu:2(indexes=0,2,1,3)" # threads of a core are numbered apart

# ---- the sibling and its relation ----

ok "the SMT sibling" plan "$threads" \
	"measured lcore 3 on CPU 3, sibling CPU 2 (smt)|controller lcore 0 on CPU 0" -l 0,3 --
ok "the SMT sibling, the other way" plan "$threads" \
	"measured lcore 2 on CPU 2, sibling CPU 3 (smt)|controller lcore 0 on CPU 0" -l 0,2 --
ok "the SMT sibling where threads of a core are numbered apart" plan "$linux" \
	"measured lcore 3 on CPU 3, sibling CPU 1 (smt)|controller lcore 0 on CPU 0" -l 0,3 --
ok "the SMT sibling beats a CPU of the same cache" plan "package:1 l3:1 l2:1 core:4 pu:2" \
	"measured lcore 5 on CPU 5, sibling CPU 4 (smt)|controller lcore 0 on CPU 0" -l 0,5 --
ok "without SMT, one that shares the L2 cache" plan "$pairs" \
	"measured lcore 3 on CPU 3, sibling CPU 2 (l2)|controller lcore 0 on CPU 0" -l 0,3 --
ok "or one that shares the L3 cache" plan "$groups" \
	"measured lcore 2 on CPU 2, sibling CPU 3 (l3)|controller lcore 0 on CPU 0" -l 0,2 --
ok "or one of the package" plan "$packages" \
	"measured lcore 2 on CPU 2, sibling CPU 3 (package)|controller lcore 0 on CPU 0" -l 0,2 --
ok "or another package's" plan "package:2 core:1 pu:1" \
	"measured lcore 1 on CPU 1, sibling CPU 0 (numa), controller beside it|controller lcore 0 on CPU 0" \
	-l 0,1 --
ok "or one of another node" plan "package:2 numa:1 core:1 pu:1" \
	"measured lcore 1 on CPU 1, sibling CPU 0 (none), controller beside it|controller lcore 0 on CPU 0" \
	-l 0,1 --
ok "the controller's CPU is the last choice for a sibling" plan "package:1 core:4 pu:1" \
	"measured lcore 2 on CPU 2, sibling CPU 0 (package)|controller lcore 1 on CPU 1" -l 1,2 --
ok "another measured CPU is no choice either" plan "package:1 core:4 pu:1" \
	"measured lcore 1 on CPU 1, sibling CPU 3 (package)|measured lcore 2 on CPU 2, sibling CPU 3 (package)|controller lcore 0 on CPU 0" \
	-l 0-2 -- --nb-cores=2
ok "but the SMT sibling stays the sibling if it is measured itself" plan "$many" \
	"measured lcore 2 on CPU 2, sibling CPU 3 (smt)|measured lcore 3 on CPU 3, sibling CPU 2 (smt)|controller lcore 0 on CPU 0" \
	-l 0,2,3 -- --nb-cores=2
ok "--sibling: the relation is the true one" plan "$packages_smt" \
	"measured lcore 1 on CPU 1, sibling CPU 2 (package)|controller lcore 4 on CPU 4" \
	-l 1,4 --main-lcore=4 -- --sibling=2
ok "--sibling of another package" plan "$packages_smt" \
	"measured lcore 1 on CPU 1, sibling CPU 5 (numa)|controller lcore 4 on CPU 4" \
	-l 1,4 --main-lcore=4 -- --sibling=5
ok "--sibling=auto" plan "$threads" \
	"measured lcore 3 on CPU 3, sibling CPU 2 (smt)|controller lcore 0 on CPU 0" -l 0,3 -- \
	--sibling=auto
ok "--sibling that does not exist" no_plan "$threads" 1 "--sibling=4" -l 0,3 -- --sibling=4
ok "--sibling that is the measured CPU" no_plan "$threads" 2 "--sibling=3" -l 0,3 -- --sibling=3

# ---- the controller ----

ok "a controller on the sibling is told" plan "$threads" \
	"measured lcore 1 on CPU 1, sibling CPU 0 (smt), controller beside it|controller lcore 0 on CPU 0" \
	-l 0,1 --
ok "a controller on the measured core is told" plan "package:1 core:2 pu:4" \
	"measured lcore 1 on CPU 1, sibling CPU 2 (smt), controller beside it|controller lcore 0 on CPU 0" \
	-l 0,1 --
ok "a controller on the chosen sibling is told" plan "$many" \
	"measured lcore 2 on CPU 2, sibling CPU 0 (package), controller beside it|controller lcore 0 on CPU 0" \
	-l 0,2 -- --sibling=0
ok "a controller on the measured CPU is told" plan "$threads" \
	"measured lcore 1 on CPU 3, sibling CPU 2 (smt), controller beside it|controller lcore 0 on CPU 3" \
	"--lcores=0@3,1@3" --
ok "--main-lcore" plan "$threads" \
	"measured lcore 0 on CPU 0, sibling CPU 1 (smt)|controller lcore 3 on CPU 3" \
	-l 0,3 --main-lcore=3 --
ok "--main-lcore as two words" plan "$threads" \
	"measured lcore 0 on CPU 0, sibling CPU 1 (smt)|controller lcore 3 on CPU 3" \
	-l 0,3 --main-lcore 3 --

# ---- CPUs that nobody named ----

ok "chosen: the last core, and the controller off it" plan "$threads" \
	"measured lcore 1 on CPU 3, sibling CPU 2 (smt)|controller lcore 0 on CPU 0"
ok "chosen: where threads of a core are numbered apart" plan "$linux" \
	"measured lcore 1 on CPU 3, sibling CPU 1 (smt)|controller lcore 0 on CPU 0"
ok "chosen: two cores for two lcores" plan "$many" \
	"measured lcore 1 on CPU 7, sibling CPU 6 (smt)|measured lcore 2 on CPU 5, sibling CPU 4 (smt)|controller lcore 0 on CPU 0" \
	--nb-cores=2
ok "chosen: three cores for three lcores, the controller on the fourth" plan "$many" \
	"measured lcore 1 on CPU 7, sibling CPU 6 (smt)|measured lcore 2 on CPU 5, sibling CPU 4 (smt)|measured lcore 3 on CPU 3, sibling CPU 2 (smt)|controller lcore 0 on CPU 0" \
	--nb-cores=3
ok "chosen: one core has both" plan "core:1 pu:2" \
	"measured lcore 1 on CPU 1, sibling CPU 0 (smt), controller beside it|controller lcore 0 on CPU 0"
ok "chosen: one CPU is too few" no_plan "core:1 pu:1" 4 "may use 1"
ok "chosen: fewer CPUs than lcores" no_plan "$threads" 4 "4 forwarding lcores" --nb-cores=4

every_lcore_its_cpu() {
	run env HWLOC_SYNTHETIC="core:4 pu:2" "$sibfwd" -- --dry-run --nb-cores=7
	worked && is "$(sed -n 's/.* on CPU \([0-9]*\).*/\1/p' "$tmp/out" | sort -n | xargs)" \
		"0 1 2 3 4 5 6 7" "the CPUs"
}

ok "chosen: as many lcores as there are CPUs, each its own" every_lcore_its_cpu

# ---- how EAL's options name lcores ----

both="measured lcore 1 on CPU 3, sibling CPU 2 (smt)|controller lcore 0 on CPU 1"
ok "-l LIST" plan "$threads" \
	"measured lcore 2 on CPU 2, sibling CPU 3 (smt)|controller lcore 1 on CPU 1" -l 1,2 --
ok "-lLIST" plan "$threads" \
	"measured lcore 2 on CPU 2, sibling CPU 3 (smt)|controller lcore 1 on CPU 1" -l1,2 --
ok "-l RANGE" plan "$threads" \
	"measured lcore 2 on CPU 2, sibling CPU 3 (smt)|controller lcore 1 on CPU 1" -l 1-2 --
ok "-c MASK" plan "$threads" \
	"measured lcore 2 on CPU 2, sibling CPU 3 (smt)|controller lcore 1 on CPU 1" -c 6 --
ok "-c 0xMASK" plan "$threads" \
	"measured lcore 3 on CPU 3, sibling CPU 2 (smt)|controller lcore 0 on CPU 0" -c 0x9 --
ok "--lcores=MAP" plan "$threads" "$both" "--lcores=0@1,1@3" --
ok "--lcores MAP" plan "$threads" "$both" --lcores "0@1,1@3" --
ok "--lcores with groups" plan "$threads" "$both" --lcores "(0)@(1),(1)@(3)" --
ok "--lcores without a map" plan "$threads" \
	"measured lcore 2 on CPU 2, sibling CPU 3 (smt)|controller lcore 1 on CPU 1" --lcores "1,2" --
ok "the controller may run on several CPUs" plan "$threads" \
	"measured lcore 1 on CPU 3, sibling CPU 2 (smt)|controller lcore 0 on CPU 0" \
	--lcores "0@(0-1),1@3" --
ok "a measured lcore may not" no_plan "$threads" 2 "lcore 1" --lcores "0@0,1@(2,3)" --
ok "--lcores, shortened as EAL takes it" plan "$threads" "$both" "--lcore=0@1,1@3" --

few_allowed() {
	run taskset -c 0 "$sibfwd" -- --dry-run
	refused 4 "affinity mask"
}

if [ "$(nproc)" = 2 ]; then
	ok "an affinity mask of one CPU is named as the reason, and not the machine" few_allowed
else
	skip "an affinity mask of one CPU is named as the reason, and not the machine" \
		"there are not two CPUs"
fi

# ---- the rows ----

# What follows expects CPUs 0 and 1 and no more: the closest CPU of each is the other.
on_two() {
	if [ "$(nproc --all)" = 2 ]; then
		ok "$@"
	else
		skip "$1" "expects a machine with 2 CPUs"
	fi
}

# row EXPECTED EAL-OPTION...: lcore, CPU and sibling of a real run.
row() {
	local expected=$1
	shift
	local eal=("$@" --no-huge -m 256 --no-pci --no-telemetry --file-prefix="$prefix")
	rm -rf "$results"
	forward --source=null --out="$results"
	worked && is "$(values "$results/windows.csv" lcore cpu sibling_cpu)" "$expected" \
		"lcore, CPU and sibling" && "$report" check "$results"
}

on_two "row: lcore 1 on CPU 1" row "1 1 0" -l 0,1
on_two "row: nobody named CPUs" row "1 1 0"
on_two "row: the main lcore is the second" row "0 0 1" -l 0,1 --main-lcore=1
on_two "row: lcore 1 on CPU 0" row "1 0 1" "--lcores=0@1,1@0"
on_two "row: lcores with other numbers" row "7 1 0" "--lcores=5@0,7@1"
on_two "row: lcores with other numbers, the other way" row "7 0 1" "--lcores=5@1,7@0"
on_two "row: the main lcore has the higher number" row "5 0 1" "--lcores=5@0,7@1" --main-lcore=7
on_two "row: both lcores on one CPU" row "1 1 0" "--lcores=0@1,1@1"

has_row() {
	[ "$(tail -n +2 "$results/windows.csv" 2>/dev/null | wc -l)" -gt 0 ]
}

real_cpu() {
	local eal=("--lcores=5@0,7@1" --no-huge -m 256 --no-pci --no-telemetry
		--file-prefix="$prefix") worker cpu
	rm -rf "$results"
	start --source=null --duration=1000 --warmup=0.1 --out="$results"
	until_true has_row || return 1
	worker=$(grep -l worker /proc/"$pid"/task/*/comm)
	cpu=$(sed -n 's/^Cpus_allowed_list:\t//p' "${worker%comm}status")
	kill "$pid"
	finish && is "$(values "$results/windows.csv" cpu | sort -u)" "$cpu" "the CPU of lcore 7"
}

on_two "the CPU of a row is where the thread really is" real_cpu

# ---- who else may run on the measured CPU ----

# nobody_else EAL-OPTION...: while it forwards, only the forwarding thread may run on CPU 1.
nobody_else() {
	local eal=(-l "0,1" --no-huge -m 256 --no-pci "$@") task cpus name others=""
	rm -rf "$results"
	start --source=null --duration=1000 --out="$results"
	until_true test -e "$results/columns.json" || return 1
	sleep 0.5
	for task in /proc/"$pid"/task/*; do
		cpus=$(sed -n 's/^Cpus_allowed_list:\t//p' "$task/status")
		name=$(<"$task/comm")
		echo "$name: $cpus"
		case $cpus,$name in
		1,*worker*) ;;
		0,*) ;;
		*) others="$others $name" ;;
		esac
	done
	kill "$pid"
	finish && is "$others" "" "who else may run on the measured CPU"
}

on_two "while it forwards no other thread may run on the measured CPU" \
	nobody_else --no-telemetry --file-prefix="$prefix"
on_two "nor with telemetry on" nobody_else --file-prefix="$prefix"
on_two "nor without a shared configuration" nobody_else --no-shconf --file-prefix="$prefix"

started_on_measured() {
	taskset -pc 1 $$ && nobody_else --no-telemetry --file-prefix="$prefix"
	local failure=$?
	taskset -pc 0,1 $$ && return $failure
}

on_two "nor when it is started on the measured CPU" started_on_measured

# ---- the standing condition ----

calm=(--taint-irqs=1e9 --taint-ctxsw=1e9 --taint-steal=1e9 --taint-smi=1e9 --taint-unsaturated=1e9
	--taint-missed=1e9 --taint-nombuf=1e9 --taint-freq=1e9)

standing() {
	rm -rf "$results"
	forward --source=null --out="$results" "${calm[@]}"
	worked && is "$(values "$results/windows.csv" tainted taint)" "0 controller" "taint" &&
		has "$tmp/err" "warning: controller" && grep -q '"controller: ' "$results/result.json"
}

on_two "the controller beside the measured CPU is said, and taints nothing" standing

warned_of_relation() {
	rm -rf "$results"
	forward --source=null --out="$results"
	worked && has "$tmp/err" "warning: CPU 1 has no SMT sibling" &&
		is "$(values "$results/windows.csv" relation)" \
			"$(sed -n 's/.*CPU 0 (\(.*\)) stands in.*/\1/p' "$tmp/err")" "the relation"
}

if [ "$(cat /sys/devices/system/cpu/cpu1/topology/thread_siblings_list)" = 1 ]; then
	ok "a sibling that is none is said, with its relation" warned_of_relation
else
	skip "a sibling that is none is said, with its relation" "there is SMT here"
fi

end_tests
