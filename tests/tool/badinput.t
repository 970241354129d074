#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# dpdk-sibfwd: what cannot be done is refused with the right exit code and one line that names
# the culprit, and leaves nothing behind. Captures are in capture.t.
. "${0%/*}/lib.sh"

never=$tmp/never

# refuse CODE WORDS ARGUMENT...: with --out, which is not to be made.
refuse() {
	local code=$1 words=$2
	shift 2
	rm -rf "$never"
	if [[ " $* " == *" -- "* ]]; then
		forward "$@" --out="$never"
	else
		forward --source=null --out="$never" "$@"
	fi
	refused "$code" "$words" && is "$(ls -d "$never" 2>/dev/null)" "" "left behind"
}

# plan ARGUMENT...: only the placement and the options, without EAL and the machine's CPUs.
plan() {
	run env HWLOC_SYNTHETIC="core:200 pu:1" "$sibfwd" -- --source=null --dry-run "$@"
}

# ---- options ----

# Every option that takes a whole number, with its range.
whole="nb-cores 1 127
rxq 1 1024
txq 1 1024
rxd 1 65535
txd 1 65535
burst 1 512
mbcache 0 512
total-num-mbufs 1 1000000000
mbuf-size 192 65535
max-pkt-len 64 65535
stats-period 0 86400
socket-num 0 7
noisy-tx-sw-buffer-size 0 1048576
noisy-tx-sw-buffer-flushtime 0 1000000
noisy-lkup-memory 0 1048576
noisy-lkup-num-reads 0 1000000
noisy-lkup-num-writes 0 1000000
noisy-lkup-num-reads-writes 0 1000000
sibling 0 65535
windows 1 1000000"

# Every option that takes a number with a point; values below and above its range.
points="duration 0.0009 86401
warmup -0.1 3601
settle -0.1 3601
taint-irqs -1 1e13
taint-ctxsw -1 1e13
taint-steal -1 1e13
taint-smi -1 1e13
taint-unsaturated -1 1e13
taint-missed -1 1e13
taint-nombuf -1 1e13
taint-freq -1 1e13"

flags="txonly-multi-flow record-core-cycles record-burst-stats no-flush-rx mlockall no-mlockall
no-numa tx-first dry-run force help"

words="forward-mode portmask portlist port-topology txpkts eth-peer display-xstats
noisy-forward-mode source save-pcap scenario out format"

# bad_values NAME VALUE...: every one is refused.
bad_values() {
	local name=$1 value
	shift
	for value in "$@"; do
		plan "--$name=$value"
		refused 2 "--$name" && continue
		echo "for --$name=$value"
		return 1
	done
}

# good_values NAME VALUE...: none is a wrong use, whatever the machine says to it.
good_values() {
	local name=$1 value
	shift
	for value in "$@"; do
		plan --noisy-lkup-memory=1 "--$name=$value"
		if [ "$rc" -eq 2 ]; then
			echo "--$name=$value:" && cat "$tmp/err"
			return 1
		fi
	done
}

# These take several numbers, which tests/tool/experiment.t is about.
lists=" burst noisy-lkup-num-reads noisy-lkup-num-writes noisy-lkup-num-reads-writes "

while read -r name least most; do
	below=-1
	several=1,2
	[[ $lists != *" $name "* ]] || several=1,2,
	[ "$least" -gt 0 ] && below=$((least - 1))
	ok "--$name takes a whole number and nothing else" \
		bad_values "$name" "" " " abc 1x x1 1.5 1e2 0x10 +5 -1 " 1" "1 " "$several" ,1 nan
	ok "--$name stays within $least to $most" \
		bad_values "$name" "$below" $((most + 1)) 4294967297 18446744073709551617 \
		99999999999999999999999999
	ok "--$name takes $least and $most" good_values "$name" "$least" "$most"
done <<<"$whole"

while read -r name below above; do
	ok "--$name takes a number and nothing else" \
		bad_values "$name" "" abc 1x x1 1,5 nan inf -inf infinity 1e999 -1e999 --
	ok "--$name stays within its range" bad_values "$name" "$below" "$above" -1
	ok "--$name takes fractions and exponents" good_values "$name" 0.25 1e1 5
done <<<"$points"

value_missing() {
	local name
	for name in $(cut -d ' ' -f 1 <<<"$whole"$'\n'"$points") $words cmdline-file; do
		plan "--$name"
		refused 2 "--$name: its value is missing" || return 1
	done
}

ok "every option that needs a value says so" value_missing

value_for_flag() {
	local name
	for name in $flags; do
		plan "--$name=1"
		refused 2 "--$name: takes no value" || return 1
	done
}

ok "no flag takes a value" value_for_flag

empty_value() {
	local name
	for name in $words; do
		bad_values "$name" "" || return 1
	done
}

ok "no empty word is taken" empty_value

ambiguous() {
	local name
	for name in port r rx noisy noisy-lkup-num re mb taint s; do
		plan "--$name" 1
		refused 2 "--$name: unknown or ambiguous" || return 1
		plan "--$name=1"
		refused 2 "--$name: unknown or ambiguous" || return 1
	done
}

unique() {
	plan --dur=2 --burs=4 --wi=3 --warm=0 --set=0
	ended 0 && has "$tmp/out" "3 windows of 2 s"
}

ok "an ambiguous abbreviation is refused" ambiguous
ok "one that is not is taken" unique

unknown() {
	local name
	for name in --nonsense --nonsense=1 --Burst=4 --sourc-e -x --taint-foo=1 ---; do
		plan "$name"
		refused 2 "${name%%=*}" || return 1
	done
	plan -zq
	refused 2 "-z"
}

ok "an unknown option is refused" unknown

modes() {
	bad_values forward-mode foo IO io,mac "io " txonl 5tswapp &&
		has "$tmp/line" io mac macswap flowgen rxonly txonly csum icmpecho noisy 5tswap
}

ok "an unknown mode is refused, and the known ones are named" modes
ok "an unknown topology is refused" bad_values port-topology ring pair PAIRED 1
ok "an unknown format is refused" bad_values format xml CSV "csv,json"
ok "an unknown scenario is refused" bad_values scenario as-is,as-is "as is" c1+c6 \
	limit:0 limit busy+mem wake:x offline+c1 bogus
ok "an unknown mode in noisy is refused" bad_values noisy-forward-mode csum noisy txonly
ok "an unknown source is refused" bad_values source nul null0 file: pcap pcap: ring:5 dev:0
ok "a frame of the source null has a sane length" \
	bad_values source null: null:x null:0 null:13 null:-64 null:65536 null:64x null:99999999999
ok "a mask of ports is a mask" \
	bad_values portmask 0 0x0 x g 1x -1 +1 100000000 fffffffffffffffff 1,2
ok "a list of ports is a list" \
	bad_values portlist x , 0, ,0 0,,1 0-x 3-1 -1 32 0,32 0-32 0,0 0-2,1 "0 1" 4294967296 0x1
ok "an address is an address" \
	bad_values eth-peer 0 0, x 0,x ,02:00:00:00:00:01 32,02:00:00:00:00:01 \
	0,02:00:00:00:00 0,02:00:00:00:00:01:02 0,02:00:00:00:00:0g 0,02-00-00-00-00-01 \
	-1,02:00:00:00:00:01 0,020:00:00:00:00:01 0,02:00:00:00:00:
ok "lengths of segments are lengths" \
	bad_values txpkts x , 64, ,64 64,,64 0 64,0 -64 41 20,21 65536 40000,40000 64x \
	99999999999999999999 "$(printf '1,%.0s' {1..300})1"
ok "the number of saved frames is in range" \
	bad_values save-pcap :5 f:0 f:10000001 f:99999999999999999999

bound_of_no_cause() {
	bad_values taint-controller 1
}

ok "a cause of taint without a bound takes none" bound_of_no_cause

extra_argument() {
	plan foo
	refused 2 "foo: unexpected argument" || return 1
	plan -- foo
	refused 2 "foo: unexpected argument"
}

ok "an argument too many is refused" extra_argument

no_plan() {
	local option
	for option in -i --i -ia -ai --cmdline-file=/dev/null "--cmdline-file /dev/null"; do
		# shellcheck disable=SC2086 # two words are meant
		plan $option
		refused 2 "and --dry-run contradict each other" || return 1
	done
}

ok "commands cannot be planned" no_plan

# ---- options that contradict each other ----

contradict() {
	local culprit=$1
	shift
	refuse 2 "$culprit" "$@" && has "$tmp/line" "contradict each other"
}

ok "--portmask with --portlist" contradict --portlist --portmask=1 --portlist=0
ok "--portlist with --portmask" contradict --portmask --portlist=0 --portmask=1
ok "--mlockall with --no-mlockall" contradict --no-mlockall --mlockall --no-mlockall
ok "--no-mlockall with --mlockall" contradict --no-mlockall --no-mlockall --mlockall
ok "--source=null with --portlist" contradict --portlist --portlist=0
ok "--source=ring with --portmask" contradict --portmask --portmask=1 --source=ring
ok "--source with a --vdev of that name" \
	contradict net_null0 --vdev=net_null0 -- --source=null
ok "look-ups without memory" refuse 2 --noisy-lkup-memory --noisy-lkup-num-reads=1
ok "a frame longer than an mbuf" refuse 2 --source=null:4000 --source=null:4000
ok "a segment longer than an mbuf" refuse 2 --txpkts --forward-mode=txonly --txpkts=3000
ok "headers that do not fit the first segment, with flows" \
	refuse 2 --txonly-multi-flow --forward-mode=txonly --txpkts=20,50 --txonly-multi-flow
ok "a buffer of noisy that is not a power of two" refuse 2 --noisy-tx-sw-buffer-size \
	--forward-mode=noisy --noisy-tx-sw-buffer-size=100

longer_mbuf() {
	refuse 2 --mbuf-size= --source=null:4000 || return 1
	forward --source=null:4000 "--mbuf-size=$(sed -n 's/.*--mbuf-size=\([0-9]*\).*/\1/p' "$tmp/line")"
	worked
}

ok "with the --mbuf-size that is asked for the frame fits" longer_mbuf

# ---- ports ----

nulls=(--vdev=net_null0 --vdev=net_null1 --vdev=net_null2)

ok "no ports" refuse 1 "no ports" --no-pci -- --duration=1
ok "a --vdev of a driver that does not exist" \
	refuse 1 net_nonsense0 --vdev=net_nonsense0 -- --tx-first
ok "a --vdev that cannot be made" \
	refuse 1 net_pcap0 --vdev=net_pcap0,rx_pcap=/nonexistent/x.pcap -- --tx-first

one_vdev_of_two() {
	forward --vdev=net_null0 --vdev=net_pcap0,rx_pcap=/nonexistent/x.pcap -- --tx-first
	has "$tmp/err" net_pcap0
}

ok "a --vdev that cannot be made beside one that can is not passed over in silence" one_vdev_of_two
ok "--portlist with a port that does not exist" refuse 2 "--portlist: port 5" "${nulls[@]}" -- \
	--portlist=0,5
ok "--portmask with a port that does not exist" refuse 2 "--portmask: port 3" "${nulls[@]}" -- \
	--portmask=9

odd_ports() {
	forward "${nulls[@]}" -- --format=csv
	worked && has "$tmp/err" "warning: --port-topology=paired" "port 2 is paired with itself"
}

ok "an odd number of ports is warned of, and the last one is paired with itself" odd_ports

too_many_queues() {
	refuse 2 "--rxq=1024: port 0 (net_ring0) takes 1 to" --vdev=net_ring0 -- --rxq=1024 &&
		refuse 2 "--txq=1024: port 0 (net_ring0) takes 1 to" --vdev=net_ring0 -- --txq=1024
}

ok "more queues than the driver has" too_many_queues

long_packets() {
	refuse 2 "--max-pkt-len=9000: port 0 (net_memif0) takes" --vdev=net_memif0 -- \
		--max-pkt-len=9000
}

forward --vdev=net_memif0 -- --max-pkt-len=9000
if grep -q "net_memif0.*parse" "$tmp/err"; then
	skip "longer packets than the driver takes" "no driver with a limit here"
else
	ok "longer packets than the driver takes" long_packets
fi

ok "a NUMA node that does not exist" refuse 2 --socket-num=7 --socket-num=7

# ---- lcores and CPUs ----

on_lcores() {
	local code=$1 words=$2
	shift 2
	local eal=("$@" --no-huge -m 256 --no-pci --no-telemetry --file-prefix="$prefix")
	refuse "$code" "$words"
}

ok "one lcore only" on_lcores 2 "one lcore only" -l 0
ok "one lcore only, by its mask" on_lcores 2 "one lcore only" -c 1
ok "one lcore only, mapped" on_lcores 2 "one lcore only" --lcores=3@0
ok "fewer lcores than --nb-cores" refuse 2 --nb-cores=2 --nb-cores=2
ok "a CPU that does not exist" on_lcores 1 "CPU 99" -l 0,99
ok "a CPU that does not exist, for the main lcore" on_lcores 1 "CPU 99" -l 1,99 --main-lcore=99
ok "a CPU that does not exist, in a range" on_lcores 1 "CPU" -l 0-127
ok "a CPU that does not exist, in a mask" on_lcores 1 "CPU 63" -c 0x8000000000000001
ok "a CPU that does not exist, mapped" on_lcores 1 "CPU 99 (of lcore 1)" --lcores=0@0,1@99
ok "a CPU that does not exist, as two words" on_lcores 1 "CPU 99" --lcores "0@0,(1)@99"
ok "a CPU that does not exist, mapped to the main lcore" \
	on_lcores 1 "CPU 99 (of lcore 0)" --lcores=0@99,1@1
ok "an lcore on several CPUs" on_lcores 2 "lcore 1" "--lcores=0@0,1@(0,1)"
ok "lcores that are none" on_lcores 2 "-l" -l x
ok "a range from above" on_lcores 2 "1-0" -l 1-0
ok "a mask that is none" on_lcores 2 "-c" -c xyz
ok "a map that is none" on_lcores 2 "--lcores" --lcores=0@,1
ok "a main lcore that is not among the lcores" on_lcores 2 "ain lcore" -l 0,1 --main-lcore=7
ok "a sibling that does not exist" refuse 1 --sibling=99 --sibling=99
ok "a sibling that is the measured CPU" refuse 2 --sibling=1 --sibling=1

busy_cpu() {
	local short=(--duration=0.1 --windows=1 --warmup=0 --settle=0)
	refuse 1 "CPU 1 is busy" --forward-mode=io && has "$tmp/line" --force
}

taskset -c 1 bash -c 'while :; do :; done' &
spin=$!
ok "a busy CPU is refused" busy_cpu

busy_but_forced() {
	forward --source=null
	worked
}

ok "with --force it is measured" busy_but_forced
kill $spin
wait $spin 2>/dev/null

# ---- memory ----

# number_after WORDS: the number behind them in the line of error.
number_after() {
	sed -n "s/.*$1[ =]*\([0-9][0-9]*\).*/\1/p" "$tmp/line"
}

# forwards MIB OPTION...: frames go through with so much memory.
forwards() {
	local mib=$1
	shift
	forward -m "$mib" -- --format=csv "$@"
	worked && [ "$(values "$tmp/out" tx_packets)" -gt 0 ]
}

# small_pool OPTION...: the pool and the memory asked for are enough, and one mbuf less is not.
small_pool() {
	local mbufs mib
	refuse 2 "--total-num-mbufs=1:" --total-num-mbufs=1 "$@" || return 1
	mbufs=$(number_after "give --total-num-mbufs")
	mib=$(number_after "EAL -m")
	echo "asked for $mbufs mbufs and $mib MiB"
	forwards "$mib" --source=null "$@" --total-num-mbufs="$mbufs" &&
		refuse 2 "--total-num-mbufs=$mbufs" --total-num-mbufs=$((mbufs - 1)) "$@"
}

ok "a pool too small: mbufs and memory asked for are enough" small_pool
ok "the same with large bursts" small_pool --burst=512
ok "the same with large caches" small_pool --mbcache=512
ok "the same with small caches" small_pool --mbcache=0 --burst=1
ok "the same for the source ring" small_pool --source=ring
ok "the same for long frames" small_pool --source=null:9000 --mbuf-size=9200
ok "the same for a mode that holds frames" \
	small_pool --forward-mode=noisy --noisy-tx-sw-buffer-size=4096
ok "the same for a mode that sends segments" small_pool --forward-mode=txonly --txpkts=64,64,64

# small_memory OPTION...: what the line asks for is enough.
small_memory() {
	local mib
	refuse 1 "EAL -m" -m 1 -- --source=null "$@" || return 1
	mib=$(number_after "EAL -m")
	echo "asked for $mib MiB"
	forwards "$mib" --source=null "$@"
}

ok "EAL memory too small for the pool: what is asked for is enough" small_memory
ok "the same with many descriptors" small_memory --rxd=8192 --txd=8192
ok "the same with several queues" small_memory --rxq=4 --txq=4
ok "the same with long mbufs" small_memory --mbuf-size=9344
ok "the same with very long mbufs" small_memory --mbuf-size=65535
ok "the same with tiny mbufs" small_memory --mbuf-size=192
ok "the same for a pool of a given size" small_memory --total-num-mbufs=50000
ok "the same for a mode that needs memory too" \
	small_memory --forward-mode=noisy --noisy-lkup-memory=64 --noisy-lkup-num-reads=1

no_hugepages() {
	local eal=(-l "0,1" --no-pci --no-telemetry --file-prefix="$prefix")
	refuse 1 "no huge pages" && has "$tmp/line" nr_hugepages --no-huge
}

if [ "$(cat /sys/kernel/mm/hugepages/*/free_hugepages 2>/dev/null | sort -u)" = 0 ]; then
	ok "no huge pages: the remedy is named" no_hugepages
else
	skip "no huge pages: the remedy is named" "there are huge pages"
fi

# ---- EAL ----

short_option() {
	local eal=(-l "0,1" --no-hug -m 256 --no-pci --no-telemetry --file-prefix="$prefix")
	forward --source=null
	worked
}

ok "options of EAL may be shortened, as EAL has it" short_option

ok "an unknown option of EAL" refuse 2 --nonsense --nonsense -- --source=null
ok "an option of EAL without its value" refuse 2 --vdev --vdev -- --source=null
ok "a bad value for EAL" refuse 2 "channel" -n x -- --source=null
ok "a bad word for EAL" refuse 2 --iova-mode --iova-mode=x -- --source=null

own_option_for_eal() {
	run "$sibfwd" "${eal[@]}" --source=null
	refused 2 "--source=null"
}

ok "options before the --" own_option_for_eal

second_instance() {
	local failure
	start --source=null --windows=1000 --out="$tmp/first" || return 1
	until_true test -s "$tmp/first/windows.csv" && refuse 1 "EAL"
	failure=$?
	kill "$pid" && finish && ended 1 && return $failure
}

ok "a second run with EAL's same --file-prefix, and the first goes on" second_instance

# ---- result directories ----

listing() {
	(cd "$1" && find . -type f -exec md5sum {} + | sort)
}

used_directory() {
	forward --source=null --out="$tmp/used"
	worked || return 1
	listing "$tmp/used" >"$tmp/before"
	forward --source=null --out="$tmp/used"
	refused 1 "$tmp/used: holds other results" && listing "$tmp/used" | diff "$tmp/before" -
}

ok "a directory with results is refused and left as it is" used_directory

foreign_directory() {
	mkdir "$tmp/foreign" && echo mine >"$tmp/foreign/.hidden" || return 1
	forward --source=null --out="$tmp/foreign"
	refused 1 "$tmp/foreign" && is "$(ls -A "$tmp/foreign")" .hidden "the directory"
}

ok "a directory with anything else is refused and left as it is" foreign_directory

empty_directory() {
	mkdir "$tmp/empty"
	forward --source=null --out="$tmp/empty/"
	worked && "$report" check "$tmp/empty"
}

ok "an empty directory is taken" empty_directory

new_directory() {
	forward --source=null --out="$tmp/a/b/c"
	worked && "$report" check "$tmp/a/b/c"
}

ok "a directory is made with its parents" new_directory

is_file() {
	echo mine >"$tmp/file"
	forward --source=null --out="$tmp/file"
	refused 1 "$tmp/file" && is "$(<"$tmp/file")" mine "the file"
}

ok "a file as a directory is refused and left as it is" is_file

below_file() {
	forward --source=null --out="$tmp/file/results"
	refused 1 "$tmp/file" && is "$(<"$tmp/file")" mine "the file"
}

ok "so is one in the way to it" below_file

below_proc() {
	forward --source=null --out=/proc/results
	refused 1 /proc/results
}

ok "a file system that takes no directory" below_proc

long_name() {
	forward --source=null --out="$tmp/$(printf 'x%.0s' {1..300})"
	refused 1 "too long"
}

ok "a name that is too long" long_name

read_only() {
	forward --source=null --out="$tmp/ro/results"
	refused 1 "$tmp/ro/results" "Read-only" || return 1
	forward --source=null --out="$tmp/ro"
	refused 1 "$tmp/ro" "Read-only" && is "$(ls -A "$tmp/ro")" "" "the directory"
}

mkdir "$tmp/ro" "$tmp/full"
if mount -t tmpfs none "$tmp/ro" 2>/dev/null && mount -o remount,ro "$tmp/ro"; then
	at_exit "umount $tmp/ro"
	ok "a directory that cannot be written" read_only
else
	skip "a directory that cannot be written" "mounting needs root"
fi

# ---- a disk that fills up ----

# fill_up PAGES OPTION...: a run on a disk with so many pages left.
fill_up() {
	local pages=$1
	shift
	mount -t tmpfs -o size=128k none "$tmp/full" || return 1
	dd if=/dev/zero of="$tmp/full/filler" bs=4k count=$((32 - pages)) 2>/dev/null
	forward --source=null --duration=0.005 --windows=40 --out="$tmp/full/r" "$@"
}

# One line that names a file of the directory; what was written is whole.
filled_up() {
	failed_with 1 "$tmp/full/r" "No space left" || return 1
	is "$(find "$tmp/full" -name '*.tmp*')" "" "left over" || return 1
	find "$tmp/full" -size 0
	[ -e "$tmp/full/r" ] || return 0
	whole_rows "$tmp/full/r/windows.csv" && "$report" show "$tmp/full/r" >/dev/null &&
		"$report" check "$tmp/full/r"
}

# Fewer and fewer pages: the disk fills up at every file in turn.
disk_fills_up() {
	local pages failures=0 rows=0 bad=0
	for pages in {10..0}; do
		fill_up "$pages" "$@"
		if [ "$rc" -ne 0 ]; then
			failures=$((failures + 1))
			[ -e "$tmp/full/r/windows.csv" ] &&
				[ "$(wc -l <"$tmp/full/r/windows.csv")" -gt 1 ] && rows=$((rows + 1))
			filled_up || { echo "with $pages pages left"; bad=1; }
		elif ! "$report" check "$tmp/full/r"; then
			echo "with $pages pages left" && bad=1
		fi
		umount "$tmp/full"
		[ $bad -eq 0 ] || return 1
	done
	echo "$failures runs failed, $rows of them in the middle"
	[ $failures -ge 3 ] && [ $rows -ge 1 ]
}

full_for_lcores() {
	local eal=(--lcores "0@0,1@1,2@1" --no-huge -m 256 --no-pci --no-telemetry
		--file-prefix="$prefix")
	disk_fills_up --nb-cores=2
}

if mount -t tmpfs none "$tmp/full" 2>/dev/null && umount "$tmp/full"; then
	at_exit "umount $tmp/full 2>/dev/null"
	ok "a disk that fills up, at whatever file" disk_fills_up
	ok "the same with the histogram of bursts" disk_fills_up --record-burst-stats
	ok "the same with several lcores" full_for_lcores
else
	skip "a disk that fills up, at whatever file" "mounting needs root"
	skip "the same with the histogram of bursts" "mounting needs root"
	skip "the same with several lcores" "mounting needs root"
fi

# ---- the standard streams ----

stdin_closed() {
	forward --source=null --out="$tmp/stdin" <&-
	worked && "$report" check "$tmp/stdin"
}

ok "stdin closed" stdin_closed

stdout_closed() {
	command_for --source=null --out="$tmp/stdout.$1" --format="$1"
	timeout "$limit" "${argv[@]}" >&- 2>"$tmp/err"
	rc=$?
	[ $rc -le 1 ] || ended 0 || return 1
	is "$(errors | grep -cv '^dpdk-sibfwd: standard output')" 0 "the number of other errors" &&
		"$report" check "$tmp/stdout.$1" && python3 -m json.tool "$tmp/stdout.$1/result.json"
}

for format in table csv json; do
	ok "stdout closed, $format: the results are written, and nothing else into them" \
		stdout_closed $format
done

stderr_closed() {
	command_for --source=null --out="$tmp/stderr" --format=csv
	timeout "$limit" "${argv[@]}" >"$tmp/out" 2>&-
	rc=$?
	is $rc 0 "the exit code" && whole_rows "$tmp/out" && "$report" check "$tmp/stderr"
}

ok "stderr closed" stderr_closed

all_closed() {
	command_for --source=null --out="$tmp/closed"
	timeout "$limit" "${argv[@]}" <&- >&- 2>&-
	rc=$?
	[ $rc -le 1 ] && "$report" check "$tmp/closed"
}

ok "all three closed" all_closed

# full_stdout OPTION...
full_stdout() {
	command_for --source=null --windows=3 "$@"
	timeout "$limit" "${argv[@]}" >/dev/full 2>"$tmp/err"
	rc=$?
	: >"$tmp/out"
	refused 1 "standard output" "No space left"
}

for format in table csv json; do
	ok "stdout full, $format" full_stdout --format=$format
done

full_stdout_with_results() {
	full_stdout --format="$1" --out="$tmp/devfull.$1" && "$report" check "$tmp/devfull.$1"
}

for format in table csv json; do
	ok "stdout full, $format, with a directory that gets its results all the same" \
		full_stdout_with_results $format
done

dry_run_full() {
	command_for --source=null --dry-run
	timeout "$limit" "${argv[@]}" >/dev/full 2>"$tmp/err"
	rc=$?
	: >"$tmp/out"
	refused 1 "standard output"
}

ok "stdout full, the plan" dry_run_full

# The reader of a pipe goes away. Without results to write that ends the run long before its
# thousand windows.
reader_leaves() {
	command_for --source=null --format=csv --windows=100000 --duration=0.01 "$@"
	timeout -k 5 "$limit" "${argv[@]}" 2>"$tmp/err" | head -n 1 >"$tmp/out"
	rc=${PIPESTATUS[0]}
	[ "$rc" -ne 0 ] && [ "$rc" -ne 124 ] || ended 1 || return 1
	is "$(errors | grep -cv "^dpdk-sibfwd: standard output: Broken pipe$")" 0 \
		"the number of other errors" && has "$tmp/out" schema,run_id,
}

ok "--format=csv | head ends the run" reader_leaves

reader_leaves_results() {
	command_for --source=null --windows=5 --out="$tmp/pipe.$1" --format="$1"
	timeout -k 5 "$limit" "${argv[@]}" 2>"$tmp/err" | :
	rc=${PIPESTATUS[0]}
	[ "$rc" -le 1 ] || ended 0 || return 1
	is "$(errors | grep -cv "^dpdk-sibfwd: standard output: Broken pipe$")" 0 \
		"the number of other errors" && "$report" check "$tmp/pipe.$1" &&
		is "$(wc -l <"$tmp/pipe.$1/windows.csv")" 6 "the number of lines"
}

for format in table csv json; do
	ok "a reader that goes away, $format: the directory gets all results" \
		reader_leaves_results $format
done

end_tests
