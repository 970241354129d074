#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# dpdk-sibfwd: every option does what it says, seen from outside: in the frames that leave, in the
# results, in what is printed.
. "${0%/*}/lib.sh"

results=$tmp/results
saved=$tmp/saved.pcap

# into [EAL-OPTION... --] OPTION...: a run with results.
into() {
	rm -rf "$results"
	forward "$@" --out="$results"
}

# pool: how many mbufs it had.
pool() {
	python3 - "$results/environment.json" <<'PYTHON'
import json, sys
print(json.load(open(sys.argv[1]))["before"]["ports"][0]["pool_mbufs"])
PYTHON
}

# Three lcores on two CPUs: the two that forward share one.
shared=(--lcores "0@0,1@1,2@1" --no-huge -m 256 --no-pci --no-telemetry --file-prefix="$prefix")

# Ports that receive frames marked with their number in the first byte behind the header.
python3 - "$tmp" <<'PYTHON'
import struct, sys
def write(name, frames):
    with open(f"{sys.argv[1]}/{name}", "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for frame in frames:
            file.write(struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame)
ether = bytes.fromhex("02aa0000000102bb00000002")
for port in range(4):
    write(f"{port}.pcap", [ether + b"\x88\xb5" + bytes([port] * 46)] * 8)
write("100.pcap", [ether + b"\x88\xb5" + bytes([n] * 46) for n in range(100)])
udp = bytes.fromhex("4500001c00000000401100000a0000010a00000203e803e900080000")
write("udp.pcap", [ether + b"\x08\x00" + udp + bytes(18)] * 8)
PYTHON

marked=()
for port in 0 1 2 3; do
	marked+=("--vdev=net_pcap$port,rx_pcap=$tmp/$port.pcap,infinite_rx=1")
done

peers=()
for port in 0 1 2 3; do
	peers+=("--eth-peer=$port,02:ee:00:00:00:0$port")
done

# ---- ports and their order ----

# paths EXPECTED OPTION...: by which port the frames of each port leave, as "0>1 1>0".
paths() {
	local expected=$1
	shift
	forward "${marked[@]}" -- --forward-mode=mac --burst=4 "${peers[@]}" \
		--save-pcap="$saved:64" "$@"
	worked && is "$(frames "$saved" | sed 's/^02ee0000000\(.\).\{16\}0\(.\).*/\2>\1/' | sort -u |
		xargs)" "$expected" "the way of the frames"
}

ok "paired is the default" paths "0>1 1>0 2>3 3>2"
ok "--port-topology=paired" paths "0>1 1>0 2>3 3>2" --port-topology=paired
ok "--port-topology=chained" paths "0>1 1>2 2>3 3>0" --port-topology=chained
ok "--port-topology=loop" paths "0>0 1>1 2>2 3>3" --port-topology=loop
ok "--portmask" paths "0>2 2>0" --portmask=5
ok "--portmask with its prefix" paths "1>3 3>1" --portmask=0xa
ok "--portlist" paths "1>2 2>1" --portlist=1,2
ok "--portlist keeps its order" paths "0>2 1>3 2>0 3>1" --portlist=2,0,3,1
ok "--portlist keeps its order, chained" paths "1>2 2>3 3>1" --portlist=3,1-2 \
	--port-topology=chained
ok "the last of three ports is paired with itself" paths "0>1 1>0 3>3" --portlist=0,1,3
ok "one port is paired with itself" paths "2>2" --portmask=4

default_peer() {
	forward --source=null --forward-mode=mac --save-pcap="$saved:128"
	worked && is "$(frames "$saved" | cut -c 1-12 | sort -u | xargs)" \
		"020000000000 020000000001" "the destinations"
}

ok "without --eth-peer the destination has the port's number" default_peer

one_peer() {
	forward --source=null --forward-mode=mac --save-pcap="$saved:128" \
		--eth-peer=1,DE:ad:be:EF:00:01
	worked && is "$(frames "$saved" | cut -c 1-12 | sort -u | xargs)" \
		"020000000000 deadbeef0001" "the destinations"
}

ok "--eth-peer is for its port alone" one_peer

# ---- lcores and queues ----

# lcores_seen: the measured lcores and whether frames went through each.
lcores_seen() {
	values "$results/windows.csv" lcore cpu rx_packets | awk '{ print $1 "@" $2, ($3 > 0) }' | xargs
}

two_lcores() {
	local eal=("${shared[@]}")
	into --source=null --nb-cores=2
	worked && is "$(lcores_seen)" "1@1 1 2@1 1" "lcores" && "$report" check "$results"
}

ok "--nb-cores=2: a row for each lcore" two_lcores

one_of_two_lcores() {
	local eal=("${shared[@]}")
	into --source=null --nb-cores=1
	worked && is "$(lcores_seen)" "1@1 1" "lcores"
}

ok "--nb-cores=1: the first lcore forwards" one_of_two_lcores

more_lcores_than_streams() {
	local eal=("${shared[@]}")
	into --vdev=net_null0 -- --nb-cores=2
	worked && has "$tmp/err" "warning: --nb-cores=2" && is "$(lcores_seen)" "1@1 1" "lcores"
}

ok "--nb-cores above the number of streams is warned of" more_lcores_than_streams

share_of_ports() {
	local eal=("${shared[@]}")
	into "${marked[@]}" -- --nb-cores=2 --display-xstats=rx_good_packets,tx_good_packets
	ended 0 && is "$(grep -c '_good_packets: [1-9]' "$tmp/err")" 8 "ports with frames" &&
		is "$(lcores_seen)" "1@1 1 2@1 1" "lcores"
}

ok "--nb-cores=2 shares four ports out" share_of_ports

two_queues() {
	into --source=null --rxq=2 --txq=2 --display-xstats=rx_q0_packets,rx_q1_packets,tx_q1_packets
	ended 0 && is "$(grep -c ' [rt]x_q[01]_packets: [1-9]' "$tmp/err")" 6 "queues with frames"
}

ok "--rxq=2 --txq=2: frames through every queue" two_queues

queues_on_lcores() {
	local eal=("${shared[@]}")
	into --source=null --rxq=2 --txq=2 --nb-cores=2
	worked && is "$(lcores_seen)" "1@1 1 2@1 1" "lcores"
}

ok "--rxq=2 --txq=2 on two lcores" queues_on_lcores

fewer_tx_queues() {
	into --source=null --rxq=2 --txq=1 --display-xstats=rx_q0_packets,rx_q1_packets
	ended 0 && has "$tmp/err" "rx_q1_packets: 0" && hasnt "$tmp/err" "rx_q0_packets: 0"
}

ok "--rxq=2 --txq=1: as many streams as both directions have queues" fewer_tx_queues

# larger_pool OPTION OTHER: the second makes the pool larger.
larger_pool() {
	local first
	into --source=null "$1"
	worked && first=$(pool) && into --source=null "$2" && worked && [ "$(pool)" -gt "$first" ]
}

ok "--rxd sizes the pool" larger_pool --rxd=256 --rxd=4096
ok "--txd sizes the pool" larger_pool --txd=256 --txd=4096
ok "--rxq sizes the pool" larger_pool --rxq=1 --rxq=2
ok "--mbcache sizes the pool" larger_pool --mbcache=0 --mbcache=512
ok "--burst sizes the pool" larger_pool --burst=4 --burst=512

# ---- mbufs and frames ----

pool_given() {
	into --source=null --total-num-mbufs=3000
	worked && is "$(pool)" 3000 "the number of mbufs"
}

ok "--total-num-mbufs is the number of mbufs" pool_given

long_frames() {
	into --source=null:9000 --mbuf-size=9200 --save-pcap="$saved:8"
	worked && is "$(frames "$saved" | awk '{ print length($0) / 2 }' | sort -u)" 9000 "the length" &&
		is "$(values "$results/windows.csv" pkt_len)" 9000 pkt_len
}

ok "--mbuf-size makes room for long frames" long_frames

longest_packet() {
	local length
	for length in 64 1518 9018 65535; do
		forward --source=null --max-pkt-len=$length
		worked || return 1
	done
}

ok "--max-pkt-len" longest_packet

# burst_size N: bursts of null are as large as asked for.
burst_size() {
	into --source=null --burst="$1" --record-burst-stats
	worked && is "$(values "$results/windows.csv" burst)" "$1" "the column burst" &&
		is "$(values "$results/bursts.csv" burst_size)" "$1" "the size of bursts"
}

for burst in 1 4 31 32 33 512; do
	ok "--burst=$burst" burst_size $burst
done

# ---- modes ----

every_mode() {
	local mode
	for mode in io mac macswap flowgen rxonly txonly csum icmpecho noisy 5tswap; do
		into --vdev=net_pcap0,rx_pcap="$tmp/udp.pcap",infinite_rx=1 -- --forward-mode=$mode
		worked && "$report" check "$results" || return 1
		is "$(values "$results/windows.csv" mode pkt_len | cut -d ' ' -f 1)" $mode "mode" ||
			return 1
		values "$results/windows.csv" rx_packets tx_packets tx_dropped | awk -v mode=$mode '
			{ rx = $1 > 0; tx = $2 > 0 }
			mode == "txonly" && rx { exit 1 }
			mode != "txonly" && !rx { exit 1 }
			mode ~ /rxonly|icmpecho/ && tx { exit 1 }
			mode !~ /rxonly|icmpecho/ && !tx { exit 1 }' && continue
		echo "$mode: $(values "$results/windows.csv" rx_packets tx_packets tx_dropped)"
		return 1
	done
}

ok "every --forward-mode forwards" every_mode

# txonly LENGTH OPTION...: one length on the wire and in the headers.
txonly() {
	local length=$1
	shift
	into --source=null --forward-mode=txonly --save-pcap="$saved:50" "$@"
	worked || return 1
	is "$(values "$results/windows.csv" pkt_len)" "$length" pkt_len || return 1
	# The lengths that IPv4 and UDP say: at bytes 16 and 38.
	is "$(frames "$saved" | awk '{ print length($0) / 2, substr($0, 25, 4), substr($0, 33, 4),
			substr($0, 77, 4) }' | sort -u)" \
		"$(printf '%d 0800 %04x %04x' "$length" $((length - 14)) $((length - 34)))" frames
}

ok "txonly sends 64 bytes" txonly 64
ok "--txpkts of one segment" txonly 1500 --txpkts=1500
ok "--txpkts of several segments" txonly 100 --txpkts=50,30,20
ok "--txpkts that cuts the headers" txonly 60 --txpkts=1,13,10,20,16
ok "--txpkts longer than an mbuf" txonly 6000 --txpkts=2000,2000,2000

flows() {
	txonly 64 --txonly-multi-flow && [ "$(frames "$saved" | sort -u | wc -l)" -gt 1 ] || return 1
	# The headers of IPv4 and UDP differ in the source address and its checksum, nowhere else.
	is "$(frames "$saved" | cut -c 29-48,61-84 | sort -u | wc -l)" 1 "headers but for these"
}

ok "--txonly-multi-flow" flows

one_flow() {
	txonly 64 && is "$(frames "$saved" | cut -c 29-84 | sort -u | wc -l)" 1 "the number of flows"
}

ok "without it there is one flow" one_flow

# noisy MODE FRAMES: what is done to the frames of udp.pcap.
noisy() {
	local mode=$1 expected=$2
	forward --vdev=net_pcap0,rx_pcap="$tmp/udp.pcap",infinite_rx=1 -- --forward-mode=noisy \
		--noisy-forward-mode="$mode" --eth-peer=0,02:ee:00:00:00:00 --save-pcap="$saved:50"
	worked && is "$(frames "$saved" | grep -vc "$expected")" 0 "the number of other frames" &&
		is "$(frames "$saved" | wc -l)" 50 "the number of frames"
}

ok "--noisy-forward-mode=io" noisy io "^02aa0000000102bb000000020800.*0a0000010a00000203e803e9"
ok "--noisy-forward-mode=mac" noisy mac "^02ee00000000.\{12\}0800.*0a0000010a00000203e803e9"
ok "--noisy-forward-mode=macswap" \
	noisy macswap "^02bb0000000202aa000000010800.*0a0000010a00000203e803e9"
ok "--noisy-forward-mode=5tswap" \
	noisy 5tswap "^02bb0000000202aa000000010800.*0a0000020a00000103e903e8"

# held_back FRAMES OPTION...: of a hundred frames and no more, so many are sent.
held_back() {
	local count=$1
	shift
	into --vdev=net_pcap0,rx_pcap="$tmp/100.pcap" -- --forward-mode=noisy --no-flush-rx \
		--settle=0.3 --save-pcap="$saved:1000" "$@"
	worked && is "$(frames "$saved" | wc -l)" "$count" "the number of frames"
}

ok "--noisy-tx-sw-buffer-size holds frames back" held_back 0 --noisy-tx-sw-buffer-size=256
ok "frames that do not fit push others out" held_back 40 --noisy-tx-sw-buffer-size=64 \
	--burst=4
ok "--noisy-tx-sw-buffer-flushtime lets them go" held_back 100 --noisy-tx-sw-buffer-size=256 \
	--noisy-tx-sw-buffer-flushtime=1

# Each look-up takes more than a cycle, on whatever machine.
lookups() {
	into --source=null --forward-mode=noisy --noisy-lkup-memory=1 --record-core-cycles "$1"
	worked && values "$results/windows.csv" busy_cycles_per_packet |
		awk '$1 < 1000 { print "cycles: " $1; exit 1 }'
}

ok "--noisy-lkup-num-reads" lookups --noisy-lkup-num-reads=1000
ok "--noisy-lkup-num-writes" lookups --noisy-lkup-num-writes=1000
ok "--noisy-lkup-num-reads-writes" lookups --noisy-lkup-num-reads-writes=1000

# ---- start ----

# rings OPTION...: how many frames are received.
rings() {
	into --vdev=net_ring0 --vdev=net_ring1 -- "$@" &&
		worked && values "$results/windows.csv" rx_packets
}

tx_first() {
	[ "$(rings --tx-first)" -gt 0 ] && is "$(rings)" 0 "the number of frames without it"
}

ok "--tx-first sends the frames that circulate in rings" tx_first

# waiting FRAMES OPTION...: of those that waited at the start, so many are forwarded.
waiting() {
	local count=$1
	shift
	forward --vdev=net_pcap0,rx_pcap="$tmp/100.pcap" -- --settle=0.1 --save-pcap="$saved:1000" "$@"
	worked && is "$(frames "$saved" | wc -l)" "$count" "the number of frames"
}

ok "what waits in the queues is thrown away" waiting 0
ok "--no-flush-rx keeps it" waiting 100 --no-flush-rx

auto_start() {
	forward --source=null -a
	worked
}

ok "-a is taken" auto_start

# locked OPTION...: kilobytes of memory that are locked while it runs.
locked() {
	start --source=null --duration=1000 --out="$tmp/locked.$#" "$@"
	until_true test -e "$tmp/locked.$#/columns.json" >&2 || return 1
	sed -n 's/^VmLck:[[:space:]]*\([0-9]*\).*/\1/p' "/proc/$pid/status"
	kill "$pid"
	finish >&2
	rm -rf "$tmp/locked.$#"
}

memory_locked() {
	local default
	default=$(locked)
	[ "$default" -gt 0 ] && [ "$(locked --mlockall)" -gt 0 ] &&
		is "$(locked --no-mlockall)" 0 "locked memory"
}

# AddressSanitizer makes mlockall() do nothing.
if [ -z "${SANITIZED-}" ]; then
	ok "--mlockall is the default, --no-mlockall is not" memory_locked
else
	skip "--mlockall is the default, --no-mlockall is not" "sanitized"
fi

numa() {
	forward --source=null --no-numa
	worked && forward --source=null --socket-num=0 && worked
}

ok "--no-numa and --socket-num" numa

# ---- statistics ----

statistics() {
	forward --source=null --stats-period=1 --duration=1.2 --windows=2
	ended 0 && is "$(grep -c '^port 0 (net_null0): RX-packets [1-9]' "$tmp/err")" 2 \
		"the number of lines" && has "$tmp/err" "port 1 (net_null1): RX-packets"
}

ok "--stats-period prints the ports' statistics" statistics

no_statistics() {
	forward --source=null --duration=1.2
	worked && hasnt "$tmp/err" RX-packets
}

ok "without it there are none" no_statistics

xstats() {
	forward --source=null --display-xstats=rx_good_packets,tx_good_packets
	ended 0 && is "$(grep -c '^  rx_good_packets: [1-9]' "$tmp/err")" 2 "rx_good_packets" &&
		is "$(grep -c '^  tx_good_packets: [1-9]' "$tmp/err")" 2 "tx_good_packets" &&
		hasnt "$tmp/err" rx_errors
}

ok "--display-xstats shows the ones named" xstats

unknown_xstat() {
	forward --source=null --display-xstats=rx_good_packets,nosuchthing
	has "$tmp/err" nosuchthing
}

ok "an extended statistic that no port has is not passed over in silence" unknown_xstat

core_cycles() {
	into --source=null --record-core-cycles --windows=3
	worked && values "$results/windows.csv" tsc_cycles_per_packet busy_cycles_per_packet |
		awk '{ n++ } $2 == "-" || $2 <= 0 || $2 > $1 { print; bad = 1 }
			END { exit bad || n != 3 }' || return 1
	into --source=null
	worked && is "$(values "$results/windows.csv" busy_cycles_per_packet)" - "without it"
}

ok "--record-core-cycles fills in busy_cycles_per_packet" core_cycles

burst_stats() {
	into "$@" --record-burst-stats --windows=3 --warmup=0.05
	worked && python3 - "$results" <<'PYTHON'
import csv, sys
def read(name):
    return list(csv.DictReader(open(f"{sys.argv[1]}/{name}", newline=""), strict=True))
windows, bursts = read("windows.csv"), read("bursts.csv")
assert list(bursts[0]) == "run_id visit window lcore burst_size count".split(), bursts[0]
assert [w["window"] for w in windows] == ["0", "1", "2", "3"]
for w in windows:
    mine = [(int(b["burst_size"]), int(b["count"])) for b in bursts
            if all(b[k] == w[k] for k in ("run_id", "visit", "window", "lcore"))]
    assert len(mine) == len(dict(mine)) and all(n > 0 for _, n in mine), mine
    assert sum(size * n for size, n in mine) == int(w["rx_packets"]), (w, mine)
    assert sum(n for _, n in mine) == int(w["polls"]), (w, mine)
    assert dict(mine).get(0, 0) == int(w["empty_polls"]), (w, mine)
PYTHON
}

ok "--record-burst-stats adds up to the windows" burst_stats --source=null
ok "the same with empty polls" burst_stats --vdev=net_ring0 -- --tx-first
ok "the same where nothing comes" burst_stats --vdev=net_ring0 --
ok "the same with busy cycles" burst_stats --source=null --record-core-cycles

no_bursts() {
	into --source=null
	worked && is "$(ls "$results/bursts.csv" 2>/dev/null)" "" bursts.csv
}

ok "without it there is no bursts.csv" no_bursts

# ---- sources and saved frames ----

# source LENGTH OPTION...: frames of that length go through two ports.
source_of() {
	local length=$1
	shift
	into "$@" --save-pcap="$saved:128"
	worked && is "$(frames "$saved" | awk '{ print length($0) / 2 }' | sort -u)" "$length" length &&
		is "$(values "$results/windows.csv" pkt_len source)" "$length ${1#--source=}" "row" &&
		[ "$(values "$results/windows.csv" tx_packets)" -gt 0 ]
}

ok "--source=null" source_of 64 --source=null
ok "--source=null:LEN" source_of 1500 --source=null:1500
ok "the shortest frame of null" source_of 14 --source=null:14
ok "--source=ring" source_of 64 --source=ring
ok "--source=ring with --txpkts" source_of 200 --source=ring --txpkts=200

source_dev() {
	into --vdev=net_null0 -- --source=dev
	worked && is "$(values "$results/windows.csv" source pkt_len)" "dev -" "source and length"
}

ok "--source=dev takes the ports of EAL" source_dev

# save COUNT PATH OPTION...: so many frames are in the file.
save() {
	local count=$1 path=$2
	shift 2
	rm -f "$path"
	forward "$@"
	worked && is "$(frames "$path" | wc -l)" "$count" "the number of frames"
}

ok "--save-pcap saves 64 frames" save 64 "$saved" --source=null --save-pcap="$saved"
ok "--save-pcap=FILE:N saves N" save 1000 "$saved" --source=null --save-pcap="$saved:1000"
ok "a colon in the file's name" save 3 "$tmp/a:b" --source=null --save-pcap="$tmp/a:b:3"
ok "fewer frames than asked for" save 100 "$saved" --vdev=net_pcap0,rx_pcap="$tmp/100.pcap" -- \
	--no-flush-rx --settle=0.1 --save-pcap="$saved:500"
ok "no frame at all" save 0 "$saved" --vdev=net_ring0 -- --save-pcap="$saved"

saved_in_order() {
	save 100 "$saved" --vdev=net_pcap0,rx_pcap="$tmp/100.pcap" -- --no-flush-rx --settle=0.1 \
		--save-pcap="$saved:100" || return 1
	is "$(frames "$saved" | cut -c 29-30 | xargs)" \
		"$(for ((i = 0; i < 100; i++)); do printf '%02x ' $i; done | xargs)" "the order"
}

ok "the first frames, in their order" saved_in_order

# ---- windows ----

windows() {
	into --source=null --windows=3 --warmup=0.05 --duration=0.15
	worked && is "$(values "$results/windows.csv" visit window warmup | xargs)" \
		"1 0 1 1 1 0 1 2 0 1 3 0" "visit, window and warmup" || return 1
	values "$results/windows.csv" warmup duration_ns | awk '
		$2 < ($1 ? 0.0499e9 : 0.1499e9) { print; bad = 1 } END { exit bad }'
}

ok "--windows, --warmup and --duration" windows

many_windows() {
	into --source=null --windows=500 --duration=0.001
	worked && is "$(values "$results/windows.csv" window | tail -n 1)" 500 "the last window" &&
		"$report" check "$results"
}

ok "many short windows" many_windows

# The columns as the design has them, and what came after it at their end.
header=schema,run_id,utc_start,host,scenario,block,position,visit,window,warmup,tainted,taint,mode,\
source,burst,pkt_len,lcore,cpu,sibling_cpu,relation,duration_ns,tsc_delta,tsc_hz,rx_packets,\
tx_packets,tx_dropped,rx_missed,rx_nombuf,polls,empty_polls,pps,tsc_cycles_per_packet,\
busy_cycles_per_packet,core_cycles_per_packet,instructions_per_packet,irqs,ctx_switches,steal_ns,smi,\
sibling_idle_entries,sibling_idle_ns,sibling_state,sibling_spec_ctrl,emulated,noisy_lookups

csv_columns() {
	into --source=null --windows=2 --warmup=0.05 --format=csv
	worked && is "$(head -n 1 "$tmp/out")" "$header" header && cmp "$tmp/out" "$results/windows.csv"
}

ok "--format=csv prints what windows.csv holds, in the columns of the design" csv_columns

# identities OPTION...: figures follow from counts, and the clocks agree.
identities() {
	into --windows=3 --warmup=0.1 "$@"
	worked && python3 - "$results/windows.csv" <<'PYTHON'
import csv, re, sys
for w in csv.DictReader(open(sys.argv[1], newline=""), strict=True):
    sent = w["mode"] in ("txonly", "flowgen")
    packets = int(w["tx_packets" if sent else "rx_packets"])
    ns, tsc, hz = int(w["duration_ns"]), int(w["tsc_delta"]), int(w["tsc_hz"])
    pps, cycles = float(w["pps"]), float(w["tsc_cycles_per_packet"])
    assert packets > 0 and abs(pps * ns / 1e9 / packets - 1) < 1e-9, w
    assert abs(cycles * packets / tsc - 1) < 1e-9, w
    assert abs(pps * cycles / hz - 1) < 1e-3, w
    assert int(w["empty_polls"]) <= int(w["polls"]), w
    assert w["scenario"] == "as-is" and w["schema"] == "1" and w["emulated"] in "01", w
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", w["utc_start"]), w
    causes = [t for t in w["taint"].split(";") if t not in ("", "controller")]
    assert w["tainted"] == str(int(bool(causes))), w
    assert w["core_cycles_per_packet"] != "0", w
    # Unknown is empty, and both are known or neither is.
    assert (w["sibling_idle_ns"] == "") == (w["sibling_idle_entries"] == ""), w
PYTHON
}

ok "identities of a window" identities --source=null
ok "identities of txonly" identities --source=null --forward-mode=txonly
ok "identities of flowgen" identities --source=null --forward-mode=flowgen
ok "identities of ring" identities --source=ring --burst=4

# ---- formats ----

json() {
	into --source=null --windows=2 --warmup=0.05 --format=json
	worked && python3 - "$tmp/out" "$results" <<'PYTHON'
import csv, json, sys
out = json.load(open(sys.argv[1]))
result = json.load(open(sys.argv[2] + "/result.json"))
rows = list(csv.DictReader(open(sys.argv[2] + "/windows.csv", newline=""), strict=True))
assert len(out["windows"]) == len(rows) == 3
for window, row in zip(out["windows"], rows):
    assert list(window) == list(row)
    for name, text in row.items():
        value = window[name]
        if text == "":
            assert value in (None, ""), (name, value)
        elif isinstance(value, str):
            assert value == text, (name, value, text)
        else:
            assert value == float(text), (name, value, text)
for name in result:
    assert out[name] == result[name], name
for name, value in (("windows_asked", 2), ("windows_done", 2), ("interrupted", False),
        ("scenarios", ["as-is"]), ("verdict", None), ("error", None), ("schema", 1)):
    assert result[name] == value, (name, result[name])
assert result["command_line"][-1].startswith("--out=")
environment = json.load(open(sys.argv[2] + "/environment.json"))
assert set(environment) == {"before", "after"} and out["environment"] == environment
for when in environment.values():
    assert when["kernel"] and when["cpu_online"], when
    assert isinstance(when["measured"][0]["sibling_idle_states"], list), when["measured"]
PYTHON
}

ok "--format=json holds windows, result and environment" json

table() {
	into --source=null --windows=2 --warmup=0.05
	worked && has "$tmp/out" "io" "null" "warm-up" "1/2" &&
		is "$(awk 'length > 100' "$tmp/out")" "" "too long" || return 1
	forward --source=null --format=table
	worked && has "$tmp/out" "1/1"
}

ok "--format=table is the default, and fits 100 columns" table

same_table() {
	into --source=null --windows=2
	worked && "$report" show "$results" >"$tmp/shown" && head -n "$(wc -l <"$tmp/out")" "$tmp/shown" | diff "$tmp/out" - &&
		tail -n 1 "$tmp/shown" | grep "^warning: "
}

ok "sibfwd-report show prints the same table, and what was warned of" same_table

# ---- taint ----

# taint_of OPTION...: 1 or 0, and the causes.
taint_of() {
	into "$@"
	worked && values "$results/windows.csv" tainted taint
}

calm=(--taint-irqs=1e9 --taint-ctxsw=1e9 --taint-steal=1e9 --taint-smi=1e9 --taint-unsaturated=1e9
	--taint-missed=1e9 --taint-nombuf=1e9 --taint-freq=1e9)

# taint CAUSE BOUND [EAL-OPTION... --] OPTION...: the bound makes the difference.
taint() {
	local cause=$1 bound=$2 found
	shift 2
	found=$(taint_of "$@" "${calm[@]}")
	[[ $found == "0 "* ]] || is "$found" "0 ..." "without the bound" || return 1
	found=$(taint_of "$@" "${calm[@]}" "--taint-$cause=$bound")
	[[ $found == "1 $cause"* ]] || is "$found" "1 $cause..." "with the bound"
}

ok "--taint-unsaturated" taint unsaturated 99 --vdev=net_ring0 --
ok "--taint-irqs" taint irqs 0 --source=null --duration=0.5

taskset -c 1 bash -c 'while :; do :; done' &
spin=$!
ok "--taint-ctxsw" taint ctxsw 0 --source=null --duration=0.5
kill $spin
wait $spin 2>/dev/null

bound_is_reached() {
	[[ $(taint_of --vdev=net_ring0 -- "${calm[@]}" --taint-unsaturated=100) != *unsaturated* ]]
}

ok "a bound that is reached and not passed does not taint" bound_is_reached

tainted_only() {
	into --vdev=net_ring0 -- --windows=2
	worked && has "$tmp/out" "tainted only"
}

ok "without a clean window the table says so" tainted_only

# ---- without measuring ----

dry_run() {
	rm -rf "$results"
	run strace -f -o "$tmp/trace" "$sibfwd" "${eal[@]}" --file-prefix="$prefix.dry" -- --dry-run \
		--source=null --settle=1 --warmup=2 --windows=3 --duration=4 --out="$results" \
		--save-pcap="$saved.dry"
	worked && has "$tmp/out" "lcore 1 on CPU 1" "lcore 0 on CPU 0" as-is "3 windows of 4 s" "15.0 s" ||
		return 1
	is "$(ls -d "$results" "$saved.dry" "/var/run/dpdk/$prefix.dry" 2>/dev/null)" "" "made" &&
		is "$(grep -E '(mkdir(at)?|v?fork|clone3?|sched_setaffinity)\(|O_CREAT|/dev/(vfio|uio|hugepages)' \
			"$tmp/trace")" "" "done to the machine"
}

# The leak sanitizer does not work under strace.
if command -v strace >/dev/null && [ -z "${SANITIZED-}" ]; then
	ok "--dry-run prints the plan and changes nothing" dry_run
else
	skip "--dry-run prints the plan and changes nothing" "no strace, or sanitized"
fi

dry_run_without_memory() {
	run "$sibfwd" -- --dry-run
	worked && has "$tmp/out" measured controller
}

ok "--dry-run needs no ports, huge pages or options of EAL" dry_run_without_memory

sibling() {
	into --source=null --sibling=0
	worked && is "$(values "$results/windows.csv" sibling_cpu)" 0 sibling_cpu &&
		into --source=null --sibling=auto && worked &&
		is "$(values "$results/windows.csv" sibling_cpu)" 0 sibling_cpu
}

ok "--sibling" sibling

help() {
	local name
	run "$sibfwd" "$@"
	worked || return 1
	for name in forward-mode nb-cores portmask portlist port-topology rxq txq rxd txd burst \
		mbcache total-num-mbufs mbuf-size max-pkt-len txpkts txonly-multi-flow eth-peer \
		stats-period display-xstats record-core-cycles record-burst-stats no-flush-rx \
		mlockall no-mlockall no-numa socket-num noisy-forward-mode noisy-tx-sw-buffer-size \
		noisy-tx-sw-buffer-flushtime noisy-lkup-memory noisy-lkup-num-reads \
		noisy-lkup-num-writes noisy-lkup-num-reads-writes tx-first source save-pcap sibling \
		scenario duration windows warmup settle out format dry-run force help taint-irqs \
		taint-ctxsw taint-steal taint-smi taint-unsaturated taint-missed taint-nombuf taint-freq \
		cmdline-file prom-file; do
		grep -Eq "^ +--$name([= ]|\$)" "$tmp/out" || { echo "not in --help: $name"; return 1; }
	done
}

ok "--help lists every option" help --help
ok "--help behind the --" help -- --help
ok "-h" help -h
ok "--help goes before what is missing" help -l 0,1 -- --source=null --help

version() {
	run "$sibfwd" --version
	worked && grep -Eq '^dpdk-sibfwd [0-9]+\.[0-9]+.*DPDK [0-9]+' "$tmp/out"
}

ok "--version" version

# Where there is a PMU its figures, elsewhere a reason, and no directory without a row.
perf_events() {
	into --source=null --record-perf-events
	if [ "$rc" -eq 4 ]; then
		refused 4 "--record-perf-events: this machine has no" && [ ! -e "$results" ]
	else
		worked && ! values "$results/windows.csv" core_cycles_per_packet \
			instructions_per_packet | grep -e -
	fi
}

ok "--record-perf-events" perf_events

lengths() {
	into --source=null --forward-mode=flowgen && worked &&
		is "$(values "$results/windows.csv" pkt_len)" 60 "flowgen's pkt_len" &&
		into --source=null --forward-mode=txonly && worked &&
		is "$(values "$results/windows.csv" pkt_len)" 64 "txonly's pkt_len"
}

ok "pkt_len is the length on the wire, without the check sequence" lengths

end_tests
