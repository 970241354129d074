#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What leaves each port is what dpdk-testpmd sends, byte for byte, in every forwarding mode. Both
# programs read the same capture on two net_pcap ports. Run from the top of the source tree; BUILD
# is the build directory.
#
# Fields that may differ, and no others: in the frames that txonly and flowgen generate, `data`,
# the bytes behind the UDP header, which neither program writes.
set -u

program=${BUILD:-build}/app/dpdk-sibfwd
make=tests/data/make_wire_captures.py
compare=tests/data/wire_compare.py
data=data=42
. "${0%/*}/lib.sh"
oracle=
at_exit 'kill $oracle 2>/dev/null'

command -v dpdk-testpmd >/dev/null || { echo "1..0 # SKIP no dpdk-testpmd to compare with"; exit 0; }

frames() {
	/usr/bin/python3 $compare --count "$1"
}

# The counters of both ports are at least WANT in what testpmd has said last.
reached() {
	grep -o "$1-packets: [0-9]*" "$3/log" | tail -2 |
		awk -v want="$2" '{ n += $2 >= want } END { exit n != 2 }'
}

# testpmd DIR CAPTURE COUNTER WANT DEVICE_OPTION OPTION...: forward until COUNTER (RX or TX) of
# both ports is WANT; what leaves port P is in DIR/P.pcap.
testpmd() {
	local dir=$1 capture=$2 counter=$3 want=$4 device=$5 turns=0
	shift 5
	mkdir -p "$dir"
	rm -f "$dir"/*
	mkfifo "$dir/commands"
	timeout -k 10 120 dpdk-testpmd -l 0,1 --no-huge -m 256 --no-pci --no-telemetry \
		--file-prefix="wire$$" \
		--vdev="net_pcap0,rx_pcap=$capture,tx_pcap=$dir/0.pcap$device" \
		--vdev="net_pcap1,rx_pcap=$capture,tx_pcap=$dir/1.pcap$device" \
		-- -i --no-flush-rx --total-num-mbufs=8192 "$@" <"$dir/commands" >"$dir/log" 2>&1 &
	oracle=$!
	exec 9>"$dir/commands"
	echo start >&9
	until reached "$counter" "$want" "$dir" || [ $turns -ge 600 ]; do
		kill -0 "$oracle" 2>/dev/null || break
		echo "show port stats all" >&9
		sleep 0.1
		turns=$((turns + 1))
	done
	echo quit >&9 2>/dev/null
	exec 9>&-
	wait "$oracle"
	oracle=
	reached "$counter" "$want" "$dir" && return 0
	echo "testpmd did not reach $want packets"
	tail -20 "$dir/log"
	return 1
}

# sibfwd CAPTURE N OPTION...: the first N frames sent are in $tmp/saved.
sibfwd() {
	local capture=$1 count=$2
	shift 2
	rm -f "$tmp/saved"
	timeout 120 "$program" -l 0,1 --no-huge -m 256 --no-pci --no-telemetry \
		--file-prefix="wire$$" -- --source="pcap:$capture" --save-pcap="$tmp/saved:$count" \
		--duration=0.1 --windows=1 --warmup=0 --settle=0 --force "$@" \
		>"$tmp/out" 2>"$tmp/err" && return 0
	echo "dpdk-sibfwd: exit code $?"
	cat "$tmp/err"
	return 1
}

# The capture goes through testpmd once, in one burst; through dpdk-sibfwd four times. Of two
# ports that stream N sends by, port 1 is the first; an echo leaves where it came in.
# same_by MODE CAPTURE OPTION...: the frames stay in $tmp/MODE-CAPTURE for others.
same_by() {
	local mode=$1 dir=$tmp/$1-$2 capture=$tmp/$2.pcap first=1 second=0 burst sent
	shift 2
	burst=$(frames "$capture")
	testpmd "$dir" "$capture" RX "$burst" "" --forward-mode="$mode" --burst="$burst" "$@" ||
		return 1
	[ "$mode" = icmpecho ] && first=0 second=1
	sent=$(frames "$dir/$first.pcap")
	[ "$sent" -gt 0 ] || { echo "testpmd sent nothing"; return 1; }
	sibfwd "$capture" $((4 * sent)) --forward-mode="$mode" --burst="$burst" "$@" || return 1
	$compare "$tmp/saved" "$dir/$first.pcap" "$dir/$second.pcap" "$sent" $((4 * sent)) --rounds
}

# measured MODE CAPTURE: the same frames once more, by the loop that is measured: --save-pcap has one
# of its own. Each leaves by the port it does with testpmd.
measured() {
	local dir=$tmp/$1-$2 capture=$tmp/$2.pcap port
	run "$program" -l "0,1" --no-huge -m 256 --no-pci --no-telemetry --file-prefix="wire$$" \
		--vdev="net_pcap0,rx_pcap=$capture,tx_pcap=$tmp/m0.pcap" \
		--vdev="net_pcap1,rx_pcap=$capture,tx_pcap=$tmp/m1.pcap" -- --no-flush-rx \
		--forward-mode="$1" --burst="$(frames "$capture")" --duration=0.2 --windows=1 \
		--warmup=0 --settle=0 --force --out="$tmp/measured"
	[ "$rc" -eq 0 ] || { cat "$tmp/err"; return 1; }
	[ "$1" = icmpecho ] || has "$tmp/measured/environment.json" '"measured_loop": "pair"' ||
		return 1
	rm -r "$tmp/measured"
	for port in 0 1; do
		/usr/bin/python3 - "$dir/$port.pcap" "$tmp/m$port.pcap" <<-'E' || return 1
			import struct, sys
			def frames(path):
			    data, at, out = open(path, 'rb').read(), 24, []
			    while at < len(data):
			        length = struct.unpack('<I', data[at + 8:at + 12])[0]
			        out.append(data[at + 16:at + 16 + length])
			        at += 16 + length
			    return out
			theirs, ours = map(frames, sys.argv[1:])
			if not theirs or theirs != ours:
			    sys.exit(f'{len(theirs)} frames of testpmd, {len(ours)} of ours differ')
		E
	done
}

# like MODE OPTION...: dpdk-sibfwd with these options sends what testpmd did in another mode.
like() {
	local dir=$tmp/$1-network capture=$tmp/network.pcap burst
	shift
	burst=$(frames "$capture")
	sibfwd "$capture" $((4 * burst)) --burst="$burst" "$@" || return 1
	$compare "$tmp/saved" "$dir/1.pcap" "$dir/0.pcap" "$burst" $((4 * burst)) --rounds
}

# same_for COUNT EXCEPT OPTION...: both programs forward without end; the first COUNT frames are
# the same but for the named fields.
same_for() {
	local count=$1 except=$2 capture=$tmp/network.pcap
	shift 2
	testpmd "$tmp/endless" "$capture" TX $((count / 2)) ,infinite_rx=1 "$@" || return 1
	sibfwd "$capture" "$count" "$@" || return 1
	$compare "$tmp/saved" "$tmp/endless/1.pcap" "$tmp/endless/0.pcap" 32 "$count" \
		${except:+--except "$except"}
}

# silent DEVICE_OPTION OPTION...: both receive, and neither sends a frame.
silent() {
	local device=$1 capture=$tmp/network.pcap
	shift
	testpmd "$tmp/silent" "$capture" RX "$(frames "$capture")" "$device" "$@" || return 1
	sibfwd "$capture" 64 "$@" || return 1
	$compare "$tmp/saved" "$tmp/silent/1.pcap" "$tmp/silent/0.pcap" 32 0
}

# told_apart CAPTURE: frames of macswap are not those of io, and the comparison says where.
told_apart() {
	local capture=$tmp/$1.pcap burst
	burst=$(frames "$capture")
	sibfwd "$capture" $((2 * burst)) --forward-mode=macswap --burst="$burst" || return 1
	$compare "$tmp/saved" "$tmp/io-$1/1.pcap" "$tmp/io-$1/0.pcap" "$burst" $((2 * burst)) --rounds \
		>"$tmp/words" && return 1
	grep -q "they differ at byte" "$tmp/words"
}

for capture in network liars cut; do
	$make $capture "$tmp/$capture.pcap" >/dev/null || { echo "Bail out! no captures"; exit 1; }
	for mode in io mac macswap csum 5tswap icmpecho; do
		ok "$mode sends what testpmd does: $capture" same_by $mode $capture
		ok "so does its measured loop: $mode, $capture" measured $mode $capture
	done
done
ok "frames that differ are told apart" told_apart network

for mode in io mac macswap 5tswap; do
	ok "noisy --noisy-forward-mode=$mode sends what testpmd's $mode does" like $mode \
		--forward-mode=noisy --noisy-forward-mode=$mode
	ok "noisy --noisy-forward-mode=$mode with a buffer sends what testpmd's $mode does" like $mode \
		--forward-mode=noisy --noisy-forward-mode=$mode --noisy-tx-sw-buffer-size=512
done
ok "noisy sends what testpmd does" same_for 2500 "" --forward-mode=noisy
ok "noisy sends what testpmd does: look-ups" same_for 2500 "" --forward-mode=noisy \
	--noisy-lkup-memory=1 --noisy-lkup-num-reads=2 --noisy-lkup-num-writes=2 \
	--noisy-lkup-num-reads-writes=1
ok "noisy sends what testpmd does: a buffer" same_for 2500 "" --forward-mode=noisy \
	--noisy-tx-sw-buffer-size=128
ok "noisy sends what testpmd does: a buffer whose time is not up" same_for 2500 "" \
	--forward-mode=noisy --noisy-tx-sw-buffer-size=1024 --noisy-tx-sw-buffer-flushtime=1000000
ok "noisy sends what testpmd does: nothing, with a buffer smaller than a burst" silent "" \
	--forward-mode=noisy --noisy-tx-sw-buffer-size=16

for mode in mac csum; do
	ok "$mode sends what testpmd does: --eth-peer" same_by $mode network \
		--eth-peer=0,0a:1b:2c:3d:4e:5f --eth-peer=1,ff:fe:fd:fc:fb:fa
done

ok "rxonly sends nothing, as testpmd" silent "" --forward-mode=rxonly

ok "txonly sends what testpmd does but for $data" same_for 1000 $data --forward-mode=txonly
ok "txonly sends what testpmd does but for $data: --txpkts=1514" same_for 1000 $data \
	--forward-mode=txonly --txpkts=1514
ok "txonly sends what testpmd does: --txpkts=42" same_for 1000 "" \
	--forward-mode=txonly --txpkts=42
ok "txonly sends what testpmd does but for $data: headers over four segments" same_for 1000 $data \
	--forward-mode=txonly --txpkts=10,20,7,99
ok "txonly sends what testpmd does but for $data: --txonly-multi-flow" same_for 2500 $data \
	--forward-mode=txonly --txonly-multi-flow --txpkts=100,60
ok "txonly sends what testpmd does but for $data: --eth-peer" same_for 1000 $data \
	--forward-mode=txonly --eth-peer=0,0a:1b:2c:3d:4e:5f --eth-peer=1,ff:fe:fd:fc:fb:fa

ok "flowgen sends what testpmd does but for $data" same_for 5000 $data --forward-mode=flowgen
ok "flowgen sends what testpmd does but for $data: --txpkts=1000" same_for 5000 $data \
	--forward-mode=flowgen --txpkts=1000
ok "flowgen sends what testpmd does: --txpkts=42" same_for 5000 "" \
	--forward-mode=flowgen --txpkts=42

end_tests
