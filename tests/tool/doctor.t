#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# idlectl doctor on recorded machines, whose answers are in tests/data/machines/NAME.doctor (UPDATE=1
# writes them anew: read what has changed), and on the same with one thing different.
. tests/tap.sh

idlectl=$(realpath "${IDLECTL:-${BUILD:-build}/idlectl/idlectl}") || bail "no idlectl"
machines=tests/data/machines
cpu=/sys/devices/system/cpu
spectre_v2=$cpu/vulnerabilities/spectre_v2

# On which tree, and --cpu where it is not the default.
root=
on=
doctor() { "$idlectl" --sysroot "$root" doctor ${on:+--cpu "$on"} "$@"; }

# recorded NAME: look at the recorded machine NAME
recorded() {
	root=$tmp/machines/$1
	[ -d "$root" ] || { mkdir -p "$tmp/machines" && $machines/unpack "$1" "$root"; } ||
		bail "no machine $1"
}

# tree NAME: the same, to change
tree() {
	recorded "$1"
	rm -rf "$tmp/tree" "$tmp/saved"
	cp -r "$root" "$tmp/tree"
	root=$tmp/tree
}

# put FILE TEXT; TEXT -: no such file. revert takes the last one back.
put() {
	changed=$root$1
	rm -rf "$tmp/saved"
	[ ! -e "$changed" ] || mv "$changed" "$tmp/saved"
	[ "$2" != - ] || return 0
	mkdir -p "${changed%/*}"
	printf '%b\n' "$2" >"$changed"
}

revert() {
	rm -rf "$changed"
	[ ! -e "$tmp/saved" ] || mv "$tmp/saved" "$changed"
}

# verdict_is BEGINNING: of the last line
verdict_is() {
	doctor >"$tmp/out" 2>"$tmp/err" || { echo "exit code $?"; cat "$tmp/err"; return 1; }
	case $(tail -n 1 "$tmp/out") in "$1"*) return 0 ;; esac
	printf 'wanted: %s\n' "$1"
	tail -n 1 "$tmp/out"
	return 1
}

# level_is ID LEVEL [WORDS]: WORDS stand in its reason
level_is() {
	local line
	doctor >"$tmp/out" 2>"$tmp/err" || { echo "exit code $?"; cat "$tmp/err"; return 1; }
	line=$(grep -E "^(ok|warn|fail|skip) +$1  " "$tmp/out")
	case $line in "$2 "*"${3-}"*) return 0 ;; esac
	printf 'wanted: %s %s %s\ngot: %s\n' "$2" "$1" "${3-}" "$line"
	return 1
}

# ---- recorded machines ----

same_as_recorded() {
	{ echo "# SPDX-License-Identifier: BSD-3-Clause"; doctor; } >"$tmp/out" 2>&1 || return 1
	[ -z "${UPDATE-}" ] || cp "$tmp/out" "$machines/$1.doctor"
	diff -u "$machines/$1.doctor" "$tmp/out"
}

# The same levels, reasons and verdict in all three forms.
forms_agree() {
	local word
	doctor >"$tmp/text" && doctor --json >"$tmp/json" && doctor --ktap >"$tmp/ktap" || return 1
	sed -nE 's/^(ok|warn|fail|skip) +([a-z0-9-]+)  +(.*)/\2 \1 \3/p' "$tmp/text" >"$tmp/rows"
	jq -r '.checks[] | "\(.id) \(.level) \(.reason)"' "$tmp/json" | diff "$tmp/rows" - || return 1
	sed -nE -e 's/^not ok [0-9]+ ([a-z0-9-]+) # (.*)/\1 fail \2/p' \
		-e 's/^ok [0-9]+ ([a-z0-9-]+) # SKIP (.*)/\1 skip \2/p;t' \
		-e 's/^ok [0-9]+ ([a-z0-9-]+) # (.*)/\1 warn \2/p' \
		-e 's/^ok [0-9]+ ([a-z0-9-]+)$/\1 ok/p' "$tmp/ktap" |
		diff <(sed -E 's/^([^ ]+ ok) .*/\1/' "$tmp/rows") - || return 1
	case $(tail -n 1 "$tmp/text") in
	"effect expected here"*) word=expected ;;
	"not expected because "*) word=not-expected ;;
	"cannot tell"*) word=unknown ;;
	esac
	is "$(jq -r .verdict "$tmp/json")" "$word" verdict &&
		is "$(jq -r .verdict_text "$tmp/json")" "$(tail -n 1 "$tmp/text")" "verdict_text" &&
		is "$(tail -n 1 "$tmp/ktap")" "# $(tail -n 1 "$tmp/text")" "the end of KTAP"
}

json_is_whole() {
	jq -e '(.cpu | type) == "number" and (.sibling == null or (.sibling | type) == "number")
		and ([.checks[].id] | length == (unique | length)) and (.checks | length > 25)
		and all(.checks[]; (.id | test("^[a-z0-9-]+$")) and .title != "" and .reason != ""
			and (.level | IN("ok", "warn", "fail", "skip"))
			and ((.level | IN("warn", "fail") | not) or (.remedy // "") != "")
			and (.level != "ok" or .remedy == null))' "$tmp/json"
}

ktap_is_whole() {
	is "$(sed -n 1p "$tmp/ktap")" "KTAP version 1" "first line" &&
		is "$(sed -n 2p "$tmp/ktap")" "1..$(jq '.checks | length' "$tmp/json")" plan &&
		is "$(sed -nE 's/^(not )?ok ([0-9]+) .*/\2/p' "$tmp/ktap" | paste -sd' ')" \
			"$(seq -s' ' "$(jq '.checks | length' "$tmp/json")")" "numbers"
}

for name in $($machines/unpack --list); do
	recorded "$name"
	ok "$name: as recorded" same_as_recorded "$name"
	ok "$name: text, JSON and KTAP say the same" forms_agree
	ok "$name: JSON has all fields" json_is_whole
	ok "$name: KTAP is well-formed" ktap_is_whole
done

# What takes the time on a large machine are its files: so many a CPU, not a CPU and another. How long it
# takes is measured by scripts/bench-idlectl.
few_files() {
	recorded big
	ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0" strace -f -qq -e trace=file -o "$tmp/calls" \
		"$idlectl" --sysroot "$root" doctor >/dev/null || return 1
	echo "$(wc -l <"$tmp/calls") calls"
	[ "$(wc -l <"$tmp/calls")" -lt $((40 * 256)) ]
}
ok "256 CPUs take up to 40 calls to files each" few_files

# ---- the verdict ----

tree skx-2s-6.1
ok "Skylake, kernel IBRS, intel_idle, siblings: expected" verdict_is "effect expected here"

while IFS='|' read -r wanted text; do
	put $spectre_v2 "$text"
	ok "spectre_v2 \"${text:0:60}\": $wanted" verdict_is "$wanted"
done <<'END'
effect expected here|Mitigation: IBRS
effect expected here|Mitigation: IBRS; IBPB: conditional; IBRS_FW; STIBP: conditional; RSB filling
effect expected here|Mitigation: IBRS, IBPB: conditional, RSB filling
effect expected here|Mitigation: IBRS, IBPB: conditional, RSB filling - vulnerable module loaded
not expected because enhanced IBRS|Mitigation: Enhanced IBRS, IBPB: conditional, RSB filling
not expected because enhanced IBRS|Mitigation: Enhanced IBRS + Retpolines; IBPB: conditional; RSB filling
not expected because enhanced IBRS|Mitigation: Enhanced / Automatic IBRS; IBPB: conditional; RSB filling
not expected because enhanced IBRS|Mitigation: Enhanced / Automatic IBRS + LFENCE; IBPB: conditional
not expected because enhanced IBRS|Vulnerable: eIBRS with unprivileged eBPF
not expected because retpolines|Mitigation: Retpolines; IBPB: conditional; IBRS_FW; STIBP: conditional; RSB filling
not expected because retpolines|Mitigation: Full generic retpoline, IBPB: conditional, IBRS_FW, STIBP: conditional
not expected because retpolines|Mitigation: Full AMD retpoline, IBPB: conditional, STIBP: disabled
not expected because LFENCE|Mitigation: LFENCE; IBPB: conditional; IBRS_FW
not expected because there is no full|Vulnerable, IBPB: disabled, STIBP: disabled
not expected because there is no full|Vulnerable; IBPB: disabled; STIBP: disabled; IBRS_FW
not expected because the CPU is not affected|Not affected
cannot tell|Mitigation: IBRS (kernel)
cannot tell|Mitigation: IBRS_FW
cannot tell|Mitigation: IBRS always-on; IBPB: conditional
cannot tell|mitigation: ibrs
cannot tell|Enhanced IBRS
cannot tell|Mitigation: Something of Linux 9; IBRS; IBPB: conditional
cannot tell|IBPB: conditional; Mitigation: IBRS
cannot tell|
cannot tell|\0377\0376\a\t\0033[31m
END
ok "what cannot be printed is not" [ -z "$(LC_ALL=C tr -d '\n -~' <"$tmp/out")" ]

tree skx-2s-6.1
rm "$root$spectre_v2"
ok "no spectre_v2: cannot tell" verdict_is "cannot tell"
ok "no spectre_v2: its check is a skip" level_is spectre-v2 skip

tree skx-2s-6.1
sed -i 's/GenuineIntel/AuthenticAMD/' "$root/proc/cpuinfo"
ok "kernel IBRS, not Intel: not expected" verdict_is "not expected because the CPU is not from Intel"
put $cpu/cpuidle/current_driver acpi_idle
ok "... with acpi_idle: cannot tell" verdict_is "cannot tell"

tree skx-2s-6.1
for driver in acpi_idle none haltpoll; do
	put $cpu/cpuidle/current_driver $driver
	ok "kernel IBRS, idle driver $driver: cannot tell" verdict_is "cannot tell"
done
rm "$root$cpu/cpuidle/current_driver"
ok "kernel IBRS, idle driver unknown: cannot tell" verdict_is "cannot tell"
put $spectre_v2 "Mitigation: Retpolines"
ok "retpolines, idle driver unknown: not expected" verdict_is "not expected because"

for name in smt-off-sysfs smt-off-bios; do
	tree $name
	put $spectre_v2 "Mitigation: IBRS"
	ok "kernel IBRS, $name: not expected" verdict_is "not expected because CPU"
	ok "$name: smt fails" level_is smt fail "no SMT sibling"
done

tree skx-2s-6.1
put $cpu/isolated ""
put $cpu/cpuidle/current_governor haltpoll
put /sys/module/sibidle/version 9.9
ok "governor, isolation and module decide nothing" verdict_is "effect expected here"

# ---- each check ----

# ID|LEVEL|WORDS|FILE|TEXT, on a machine where all of them are ok once the files are there
tidy() {
	tree skx-isolated
	put /sys/module/sibidle/version "$("$idlectl" --version | cut -d' ' -f2)"
	put $cpu/intel_pstate/no_turbo 1
	put /sys/kernel/security/lockdown '[none] integrity confidentiality'
	mkdir -p "$root/sys/firmware/efi/efivars"
	printf '\6\0\0\0\0' >"$root/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
	put /proc/1/comm systemd
	put /sys/fs/resctrl/schemata '    MB:0=100;1=100\n    L3:0=7ff;1=7ff'
	put /sys/module/intel_idle/parameters/ibrs_off N
	put /proc/irq/29/effective_affinity_list 3
	on=2
}

only_what_moves_is_skipped() {
	doctor --json >"$tmp/json" || return 1
	is "$(jq -r '.checks[] | select(.level != "ok") | .id' "$tmp/json" | xargs)" \
		"sibling-load tsc-drift" "what is not ok"
}
tidy
ok "where all is well all checks are ok, but load and drift of a recording" only_what_moves_is_skipped

# The measured CPU is 2, its sibling 10.
while IFS='|' read -r id level words file text; do
	put "$file" "$text"
	ok "$id: $level with ${file##*/} \"${text:0:50}\"" level_is "$id" "$level" "$words"
	revert
done <<END
retbleed|warn|Vulnerable|$cpu/vulnerabilities/retbleed|Vulnerable
retbleed|skip||$cpu/vulnerabilities/retbleed|-
vendor|skip||/proc/cpuinfo|-
idle-driver|skip||$cpu/cpuidle/current_driver|-
idle-driver|fail|no idle driver|$cpu/cpuidle/current_driver|none
idle-driver|warn|acpi_idle|$cpu/cpuidle/current_driver|acpi_idle
idle-governor|warn|haltpoll|$cpu/cpuidle/current_governor|haltpoll
idle-governor|skip||$cpu/cpuidle/current_governor|-
idle-states|skip|CPU 10|$cpu/cpu10/cpuidle|-
idle-states|fail|CPU 10|$cpu/cpu10/cpuidle/state1/disable|1
resume-latency|fail|n/a|$cpu/cpu10/power/pm_qos_resume_latency_us|n/a
resume-latency|warn|5 us|$cpu/cpu10/power/pm_qos_resume_latency_us|5
resume-latency|skip||$cpu/cpu10/power/pm_qos_resume_latency_us|-
max-cstate|fail|keeps intel_idle out|/sys/module/intel_idle/parameters/max_cstate|0
max-cstate|ok|stay in C1|/sys/module/intel_idle/parameters/max_cstate|1
max-cstate|ok|C6|/sys/module/intel_idle/parameters/max_cstate|9
idle-parameter|fail|idle=poll|/proc/cmdline|ro idle=halt idle=poll quiet
idle-parameter|ok||/proc/cmdline|ro intel_idle.max_cstate=1 -- idle=poll
idle-parameter|skip||/proc/cmdline|-
ibrs-off|warn|stock clears|/sys/module/intel_idle/parameters/ibrs_off|Y
ibrs-off|skip|6.7|/sys/module/intel_idle/parameters/ibrs_off|-
kernel-version|warn|off line keeps it set|/proc/sys/kernel/osrelease|6.6.30
kernel-version|ok|so does a CPU off line|/proc/sys/kernel/osrelease|6.7.0-rc1
kernel-version|warn|not known|/proc/sys/kernel/osrelease|5.15.0-100-generic
kernel-version|skip||/proc/sys/kernel/osrelease|unknown
kernel-version|ok|6.12|/proc/sys/kernel/osrelease|-
module|warn|not loaded|/sys/module/sibidle|-
module|warn|sibidle is 9.9,|/sys/module/sibidle/version|9.9
module|skip||/sys/module/sibidle/version|-
sibling-load|skip|has no line|/proc/stat|-
sibling-irqs|warn|29 (nvme0q3)|/proc/irq/29/effective_affinity_list|10
measured-irqs|warn|29 (nvme0q3)|/proc/irq/29/effective_affinity_list|0-2
sibling-irqs|skip||/proc/irq|-
isolation|warn|CPU 10:|$cpu/isolated|2
isolation|warn|CPU 2,10:|$cpu/isolated|
nohz-full|warn|CPU 2|$cpu/nohz_full|(null)
nohz-full|skip||$cpu/nohz_full|-
rcu-nocbs|skip||/proc/cmdline|-
cpufreq-governor|warn|powersave|$cpu/cpu2/cpufreq/scaling_governor|powersave
cpufreq-governor|skip||$cpu/cpu2/cpufreq/scaling_governor|-
turbo|warn|on|$cpu/intel_pstate/no_turbo|0
turbo|skip||$cpu/intel_pstate/no_turbo|-
epp|warn|balance_power|$cpu/cpu2/cpufreq/energy_performance_preference|balance_power
epp|skip||$cpu/cpu2/cpufreq/energy_performance_preference|-
tsc|fail|no nonstop_tsc|/proc/cpuinfo|vendor_id\t: GenuineIntel\nflags\t\t: tsc constant_tsc nonstop_tsc_not
tsc|skip||/proc/cpuinfo|-
clocksource|warn|though tsc is available|/sys/devices/system/clocksource/clocksource0/current_clocksource|hpet
clocksource|skip||/sys/devices/system/clocksource/clocksource0/current_clocksource|-
hypervisor|warn|guest|/proc/cpuinfo|vendor_id\t: GenuineIntel\nflags\t\t: constant_tsc hypervisor
steal|warn|25.00 %|/proc/stat|cpu  0 0 0 0 0 0 0 0 0 0\ncpu2 0 0 0 60 15 0 0 25 0 0
steal|ok||/proc/stat|cpu  0 0 0 0 0 0 0 0 0 0\ncpu2 0 0 0 60 15 0 0 0 0 0\ncpu22 0 0 0 1 1 0 0 25 0 0
hugepages|warn|are taken|/sys/devices/system/node/node0/hugepages/hugepages-2048kB/free_hugepages|0
hugepages|warn|no huge pages|/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages|0
hugepages|ok||/sys/devices/system/node/node0/hugepages|-
nic-numa|skip||/sys/class/net|-
nmi-watchdog|warn|on|/proc/sys/kernel/nmi_watchdog|1
nmi-watchdog|skip||/proc/sys/kernel/nmi_watchdog|-
thp|warn|always|/sys/kernel/mm/transparent_hugepage/enabled|[always] madvise never
thp|skip||/sys/kernel/mm/transparent_hugepage/enabled|-
lockdown|warn|integrity|/sys/kernel/security/lockdown|none [integrity] confidentiality
lockdown|skip||/sys/kernel/security/lockdown|-
secure-boot|skip||/sys/firmware/efi|-
daemons|warn|irqbalance moves|/proc/812/comm|irqbalance
daemons|warn|power-profiles-daemon sets|/proc/99/comm|power-profiles-
daemons|ok||/proc/99/comm|tuned2
daemons|skip||/proc/1/comm|-
journal|warn|has ended|/run/sibfwd/journal|1 2 3
resctrl|warn|MB:0=100;1= 50|/sys/fs/resctrl/schemata|    L3:0=7;1=7\n    MB:0=100;1= 50
resctrl|ok||/sys/fs/resctrl/schemata|    L3:0=7;1=7
resctrl|skip||/sys/fs/resctrl/schemata|-
END

# Of what is changed below, nothing changes another check that is looked at.
printf '\6\0\0\0\1' >"$root/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
ok "secure-boot: warn where it is on" level_is secure-boot warn
printf '\6' >"$root/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
ok "secure-boot: skip where the variable is cut short" level_is secure-boot skip
rm "$root/proc/sys/kernel/osrelease"
put /proc/version "Linux version 6.1.0-43-amd64 (builder) (gcc) #1 SMP"
ok "kernel-version: from /proc/version" level_is kernel-version warn 6.1.0-43
rm "$root/proc/version"
ok "kernel-version: skip without both files" level_is kernel-version skip
rm "$root/sys/module/intel_idle/parameters/max_cstate"
put /proc/cmdline "quiet intel_idle.max-cstate=1"
ok "max-cstate: from the command line" level_is max-cstate ok "is 1"
put /proc/cmdline quiet
put /sys/module/processor/parameters/max_cstate 8
ok "max-cstate: acpi_idle's where intel_idle is not there" level_is max-cstate ok "processor.max_cstate is 8"
put /sys/module/processor/parameters/max_cstate -
ok "max-cstate: skip where nothing is known" level_is max-cstate skip
put /sys/devices/system/clocksource/clocksource0/current_clocksource hpet
put /sys/devices/system/clocksource/clocksource0/available_clocksource "hpet acpi_pm"
ok "clocksource: fail where the TSC is rejected" level_is clocksource fail rejected
rm -r "$root/sys/class/net"
put /sys/class/net/eth7/device/numa_node 1
ok "nic-numa: warn where the only NIC is on the other node" level_is nic-numa warn eth7
put /sys/bus/pci/devices/0000:3b:00.0/class 0x020000
put /sys/bus/pci/devices/0000:3b:00.0/numa_node 0
ok "nic-numa: one that DPDK has counts" level_is nic-numa ok 0000:3b:00.0
put /sys/bus/pci/devices/0000:3b:00.0/class 0x010802
ok "nic-numa: a disk does not" level_is nic-numa warn eth7

rm "$root/proc/irq/29/effective_affinity_list"
put /proc/irq/29/smp_affinity_list 2-3
ok "measured-irqs: where it may go, if the kernel does not say where it goes" level_is measured-irqs warn 29
put $cpu/isolated ""
put /sys/fs/cgroup/forward/cgroup.procs ""
put /sys/fs/cgroup/forward/cpuset.cpus.partition isolated
put /sys/fs/cgroup/forward/cpuset.cpus.effective 2,10
ok "isolation: by a cpuset partition" level_is isolation ok
put /sys/fs/cgroup/forward/cpuset.cpus.partition "isolated invalid (Cpu list in cpuset.cpus not exclusive)"
ok "isolation: an invalid partition is none" level_is isolation warn
on=

all_is_skipped() {
	tree skx-2s-6.1
	find "$root" -type f ! -path "*/topology/*" ! -path "*/cpu/online" ! -path "*/cpu/present" \
		! -path "*/cpu/possible" -delete
	verdict_is "cannot tell" && ! grep -E '^fail' "$tmp/out" && [ ! -s "$tmp/err" ] &&
		[ "$(grep -cE '^skip' "$tmp/out")" -gt 25 ]
}
ok "nothing but the topology can be read: skips, and cannot tell" all_is_skipped

survives() {
	tree skx-2s-6.1
	find "$root" -type f ! -path "*/cpu/*" ! -path "*/node/*" -exec sh -c "$1" _ {} \;
	for file in "$root$cpu"/vulnerabilities/* "$root$cpu"/cpuidle/*; do sh -c "$1" _ "$file"; done
	doctor --json >"$tmp/json" && jq -e '.checks | length > 25' "$tmp/json"
}
ok "empty files" survives ': >"$1"'
ok "files of noise" survives 'head -c 3000 /dev/urandom >"$1"'
ok "files of one long line" survives 'head -c 100000 /dev/zero | tr "\0" "[" >"$1"'

# ---- which CPU ----

measures() {
	doctor "${@:2}" --json >"$tmp/json" || return 1
	is "$(jq -c '[.cpu, .sibling]' "$tmp/json")" "$1" "CPU and sibling"
}
tree skx-isolated
ok "default: the first isolated CPU" measures "[2,10]"
put $cpu/isolated ""
ok "default: else the last with a sibling" measures "[15,7]"
ok "--cpu is the measured CPU" measures "[3,11]" --cpu 3
tree hybrid
ok "default: CPUs without sibling come after" measures "[7,6]"
tree smt-off-bios
ok "default: else the last one" measures "[3,null]"

# refuses CPU
refuses() {
	doctor --cpu "$1" >"$tmp/out" 2>"$tmp/err"
	is $? 2 "exit code" && [ ! -s "$tmp/out" ] && is "$(wc -l <"$tmp/err")" 1 "number of lines" &&
		has "$tmp/err" "--cpu $1"
}
tree smt-off-sysfs
ok "--cpu that does not exist" refuses 4711
off=$(cut -d- -f1 "$root$cpu/offline" | cut -d, -f1)
ok "--cpu that is off line" refuses "$off"

no_topology() {
	mkdir "$tmp/empty"
	"$idlectl" --sysroot "$tmp/empty" doctor >"$tmp/out" 2>"$tmp/err"
	is $? 1 "exit code" && [ ! -s "$tmp/out" ] && has "$tmp/err" topology
}
ok "a tree without topology: exit code 1" no_topology
both() {
	doctor --json --ktap 2>"$tmp/err"
	is $? 2 "exit code" && has "$tmp/err" --ktap
}
ok "--json and --ktap exclude each other" both

# ---- this machine ----

here=$(nproc --all)
last=$((here - 1))
looks_only() {
	ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0" \
		strace -f -o "$tmp/strace" -e trace=open,openat,openat2,creat "$idlectl" doctor --cpu $last >"$tmp/out" ||
		return 1
	# A build that counts coverage writes that.
	! grep -v '\.gcda"' "$tmp/strace" | grep -E 'O_WRONLY|O_RDWR|O_CREAT|creat\(' &&
		! grep -E "/dev/cpu|cpu$last/cpufreq/(scaling_cur_freq|energy_perf)|mon_data" "$tmp/strace" &&
		grep -q vulnerabilities/spectre_v2 "$tmp/strace"
}
if strace -o /dev/null true 2>/dev/null && [ -e "/sys/devices/system/cpu/cpu$last/topology" ]; then
	ok "opens nothing for writing, and nothing that interrupts the measured CPU" looks_only
else
	skip "opens nothing for writing" "no strace, or the last CPU is off line"
fi

# A made-up topology gives this machine a sibling whose load can be watched.
made_up() {
	lstopo -f --of xml --input "core:1 pu:2" "$tmp/two.xml" &&
		"$idlectl" --topology "$tmp/two.xml" doctor --cpu 1 >"$tmp/out"
}
busy() {
	local load rc=1
	taskset -c 0 sh -c 'while :; do :; done' &
	load=$!
	# Its start may take a while on a machine that is busy elsewhere.
	for _ in 1 2 3 4 5; do
		made_up && grep -qE '^warn +sibling-load +CPU 0 was busy' "$tmp/out" && rc=0 && break
	done
	kill $load
	[ $rc -eq 0 ] || grep sibling-load "$tmp/out"
	return $rc
}
if command -v lstopo >/dev/null && taskset -c 0 true 2>/dev/null; then
	ok "a topology from elsewhere is told" eval 'made_up && grep -qE "^warn +topology" "$tmp/out"'
	ok "the load of a sibling on this machine" busy
else
	skip "the load of a sibling on this machine" "no lstopo, or CPU 0 may not be used"
fi

end_tests
