#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# dpdk-sibfwd as a wire between two network namespaces: two pairs of veth, whose ends outside
# the namespaces are its ports (net_af_packet). What real stacks send must come out as it went
# in. Also a port that goes away in mid-run.
. "${0%/*}/lib.sh"

a=sfwA$$ b=sfwB$$ # namespaces; the device in each is called "wire"
port_a=sfa$$ port_b=sfb$$ # the other ends: the forwarder's ports
address_a=198.18.0.1 address_b=198.18.0.2 # of the net for benchmarks, RFC 2544
address6_a=2001:db8::1 address6_b=2001:db8::2 # RFC 3849
jumbo=,framesz=16384,blocksz=16384,framecnt=128 # of net_af_packet; its default ends at 2048

bail() {
	echo "Bail out! $1"
	exit 1
}

for tool in ip ethtool ping; do
	command -v "$tool" >/dev/null || bail "$tool is not installed"
done
at_exit 'ip netns del $a 2>/dev/null; ip netns del $b 2>/dev/null'
at_exit 'ip link del $port_a 2>/dev/null; ip link del $port_b 2>/dev/null'
if ! { ip netns add "$a" && ip netns add "$b" &&
	ip link add "$port_a" type veth peer name wire netns "$a" &&
	ip link add "$port_b" type veth peer name wire netns "$b"; } 2>"$tmp/why"; then
	echo "1..0 # SKIP no namespaces joined by veth here: $(head -n 1 "$tmp/why")"
	exit 0
fi

# ---- wires ----

# Checksums and segments that a stack leaves to its device would never be made: there is none.
plain='tx off gso off tso off gro off'

set_up_port() {
	local v6=/proc/sys/net/ipv6/conf/$1/disable_ipv6

	ethtool -K "$1" $plain >/dev/null && ip link set "$1" mtu "$2" || return 1
	# The stack on this side must not speak on the wire.
	[ ! -e "$v6" ] || echo 1 >"$v6"
	ip link set "$1" up
}

set_up_end() {
	ip netns exec "$1" ethtool -K wire $plain >/dev/null && ip -n "$1" link set wire mtu "$2" &&
		ip -n "$1" link set wire up && ip -n "$1" addr replace "$3/24" dev wire &&
		ip -n "$1" addr replace "$4/64" dev wire nodad
}

set_up_wires() {
	set_up_port "$port_a" "$1" && set_up_port "$port_b" "$1" &&
		set_up_end "$a" "$1" $address_a $address6_a &&
		set_up_end "$b" "$1" $address_b $address6_b
}

# ---- the forwarder ----

# Forwarding has begun, within a minute.
forwards() {
	local end=$((SECONDS + 60))

	until ip netns exec "$a" ping -n -c 1 -W 1 $address_b; do
		[ $SECONDS -lt $end ] && kill -0 "$pid" 2>/dev/null && continue
		cat "$tmp/err"
		return 1
	done
}

# start_wire NAME DEVICE-ARGUMENTS OPTION...: until it forwards. The results are in NAME.
start_wire() {
	local name=$1 device=$2

	shift 2
	start -m 512 --vdev="net_af_packet0,iface=$port_a$device" \
		--vdev="net_af_packet1,iface=$port_b$device" -- --source=dev --forward-mode=io \
		--duration=0.5 --windows=2000 --out="$tmp/$name" "$@"
	forwards
}

# As a user's ^C does; there are windows missing then.
stop_wire() {
	kill -INT "$pid"
	finish && ended 1 && has <(errors) "dpdk-sibfwd: interrupted"
}

rows() {
	echo $(($(wc -l <"$tmp/$1/windows.csv") - 1))
}

has_rows() {
	[ "$(rows "$1")" -ge "$2" ]
}

# ---- traffic ----

# pings FROM ADDRESS OPTION...: none of them lost.
pings() {
	local from=$1 to=$2

	shift 2
	ip netns exec "$from" ping -n -q -c 5 -i 0.2 -W 5 "$@" "$to" >"$tmp/ping"
	cat "$tmp/ping"
	grep -q '5 received' "$tmp/ping"
}

both_ways() {
	pings "$a" $address_b "$@" && pings "$b" $address_a "$@"
}

both_ways6() {
	pings "$a" $address6_b "$@" && pings "$b" $address6_a "$@"
}

cat >"$tmp/tcp.py" <<'EOF'
import hashlib, random, socket, sys, time

SIZE = 50_000_000
role, address = sys.argv[1:]
if role == 'receive':
    with socket.create_server((address, 5001)) as server:
        server.settimeout(30)
        peer, _ = server.accept()
    peer.settimeout(30)
    digest = hashlib.sha256()
    while data := peer.recv(1 << 16):
        digest.update(data)
else:
    data = random.Random(address).randbytes(SIZE)
    digest = hashlib.sha256(data)
    for i in range(100):
        try:
            peer = socket.create_connection((address, 5001), timeout=30)
            break
        except ConnectionRefusedError:  # not listening yet
            time.sleep(0.1)
    peer.sendall(data)
    peer.close()
print(digest.hexdigest())
EOF

# transfer FROM TO ADDRESS: 50 MB by TCP are the same at the other end.
transfer() {
	local receiver

	ip netns exec "$2" timeout 100 python3 "$tmp/tcp.py" receive "$3" >"$tmp/received" &
	receiver=$!
	ip netns exec "$1" timeout 100 python3 "$tmp/tcp.py" send "$3" >"$tmp/sent"
	wait $receiver
	[ -s "$tmp/sent" ] && cmp "$tmp/sent" "$tmp/received"
}

cat >"$tmp/tagged.py" <<'EOF'
import ctypes, os, socket, struct, sys

SOL_PACKET, PACKET_AUXDATA, TP_STATUS_VLAN_VALID = 263, 8, 1 << 4
CLONE_NEWNET, ETH_P_ALL, KIND = 0x40000000, 3, 0x88b5  # a type for experiments


def packet_socket(namespace):
    fd = os.open('/run/netns/' + namespace, os.O_RDONLY)
    if ctypes.CDLL(None, use_errno=True).setns(fd, CLONE_NEWNET) != 0:
        sys.exit('setns: ' + os.strerror(ctypes.get_errno()))
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    s.bind(('wire', 0))
    s.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
    s.settimeout(20)
    return s


def frame(i):
    return bytes.fromhex('020000000002020000000001') + struct.pack(
        '>HHHI', 0x8100, i << 13 | 100 + i, KIND, i) + bytes(range(60))


def receive(s):
    """A frame as on the wire: the kernel takes the tag out and hands it over beside."""
    data, extra, _, _ = s.recvmsg(65536, 256)
    for level, kind, aux in extra:
        status, _, _, _, _, tci, tpid = struct.unpack('=IIIHHHH', aux)
        if (level, kind) == (SOL_PACKET, PACKET_AUXDATA) and status & TP_STATUS_VLAN_VALID:
            data = data[:12] + struct.pack('>HH', tpid, tci) + data[12:]
    return data


sender, receiver = packet_socket(sys.argv[1]), packet_socket(sys.argv[2])
for i in range(8):
    sender.send(frame(i))
    data = b''
    while struct.pack('>H', KIND) not in data[12:18]:
        data = receive(receiver)
    if data != frame(i):
        sys.exit('sent %s\ngot  %s' % (frame(i).hex(), data.hex()))
EOF

# tagged FROM TO: frames with 802.1Q tags, of all VLANs and priorities that there are bits for.
tagged() {
	timeout 60 python3 "$tmp/tagged.py" "$1" "$2"
}

set_up_vlans() {
	local i=0 space

	for space in "$a" "$b"; do
		i=$((i + 1))
		ip -n "$space" link add link wire name wire.5 type vlan id 5 2>"$tmp/why" &&
			ip -n "$space" addr add 198.18.5.$i/24 dev wire.5 &&
			ip -n "$space" link set wire.5 up || return 1
	done
}

tagged_stacks() {
	pings "$a" 198.18.5.2 && pings "$b" 198.18.5.1
}

# ---- frames of the usual size ----

ok "the wires are up" set_up_wires 1500 || bail "no wires"
ok "frames are forwarded" start_wire usual '' || bail "nothing is forwarded"
ok "ping, both ways" both_ways
ok "ping with the longest frames, both ways" both_ways -s 1472 -M "do"
ok "ping over IPv6, both ways" both_ways6
ok "50 MB by TCP from A to B are the same there" transfer "$a" "$b" $address_b
ok "50 MB by TCP from B to A are the same there" transfer "$b" "$a" $address_a
ok "VLAN tags are kept from A to B" tagged "$a" "$b"
ok "VLAN tags are kept from B to A" tagged "$b" "$a"
if set_up_vlans; then
	ok "ping from VLAN device to VLAN device, both ways" tagged_stacks
else
	skip "ping from VLAN device to VLAN device" "none here: $(head -n 1 "$tmp/why")"
fi
ok "^C ends it" stop_wire
ok "the windows that were whole are kept" has_rows usual 1

# ---- jumbo frames ----

ok "the wires take jumbo frames" set_up_wires 9000 || bail "no wires"
ok "jumbo frames are forwarded" start_wire jumbo $jumbo --mbuf-size=16512 --mbcache=32 \
	--total-num-mbufs=8192 || bail "nothing is forwarded"
ok "ping with jumbo frames, both ways" both_ways -s 8000 -M "do"
ok "ping with the longest jumbo frames, both ways" both_ways -s 8972 -M "do"
ok "50 MB by TCP in jumbo frames are the same there" transfer "$a" "$b" $address_b
ok "^C ends it" stop_wire

# ---- a port that goes away ----

# Frames are on their way to the port all the time.
remove_port() {
	local noise

	ip netns exec "$a" ping -n -q -i 0.01 -c 6000 $address_b &
	noise=$!
	until_true has_rows gone 3 && ip link del "$port_b" && finish && ended 1
	set -- $?
	kill $noise
	wait $noise
	return "$1"
}

# No row is half a row, and they are not all that were asked for.
keeps_windows() {
	whole_rows "$tmp/gone/windows.csv" && has_rows gone 3 && ! has_rows gone 2000 &&
		"$report" check "$tmp/gone"
}

ok "the wires are up again" set_up_wires 1500 || bail "no wires"
ok "frames are forwarded again" start_wire gone '' || bail "nothing is forwarded"
ok "a port that goes away ends the run" remove_port
ok "one line names the port" is "$(errors)" "dpdk-sibfwd: port 1 (net_af_packet1) went away" stderr
ok "the windows measured so far are kept" keeps_windows

end_tests
