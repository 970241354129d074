#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# dpdk-sibfwd --source=pcap: what is sent is what the capture holds, and a capture that cannot be
# used is refused in one line.
. "${0%/*}/lib.sh"

make=tests/data/make_captures.py
burst=32
saved=$tmp/saved

mkdir "$tmp/in" "$tmp/full"
at_exit 'umount "$tmp/full" 2>/dev/null'
$make "$tmp/in" || { echo "Bail out! no captures"; exit 1; }

# forward_capture FILE OPTION...: and save the first frames.
forward_capture() {
	local file=$1
	shift
	rm -f "$saved"
	forward --source="pcap:$file" --forward-mode=io --burst="$burst" --duration=0.2 "$@"
}

# sent EXPECTED FRAMES: so many were saved, each port's the usable ones round and round.
sent() {
	$make --check "$saved" "$1" "$2" "$burst"
}

# says NAME: the line that names the capture has all that there is to say of it.
says() {
	local words
	grep -F "capture $tmp/in/$1: " "$tmp/err" >"$tmp/line"
	mapfile -t words < <($make --said "$tmp/in/$1.json")
	has "$tmp/line" "${words[@]}"
}

# ends_with WORDS...: on the program's last line.
ends_with() {
	tail -n 1 "$tmp/err" >"$tmp/line"
	has "$tmp/line" "$@"
}

# ---- every capture that make_captures.py makes ----

good_capture() {
	forward_capture "$tmp/in/$1" --format=csv --save-pcap="$saved:200"
	ended 0 && says "$1" && sent "$tmp/in/$1.json" 200 &&
		[ "$(values "$tmp/out" rx_packets)" -ge 200 ]
}

bad_capture() {
	forward_capture "$tmp/in/$1" --save-pcap="$saved:200"
	refused 1 "capture $tmp/in/$1: " && says "$1" && [ ! -e "$saved" ]
}

good=0
bad=0
# The single liars are for the unit test; here all of them are in one capture.
for name in $(cd "$tmp/in" && ls -I 'liar-*' -I '*.json'); do
	if grep -q '"error"' "$tmp/in/$name.json"; then
		bad=$((bad + 1))
		ok "$name is refused" bad_capture "$name"
	else
		good=$((good + 1))
		ok "$name is sent as it is" good_capture "$name"
	fi
done
ok "there were good ones and bad ones" test $((good > 10 && bad > 10)) -eq 1

# ---- what is not such a file ----

not_a_capture() {
	forward_capture "$1"
	refused 1 "capture $1: $2"
}

from_pipe() {
	forward_capture /dev/stdin --save-pcap="$saved:100" < <(gzip -c "$tmp/in/zoo.pcap" | zcat)
	ended 0 && sent "$tmp/in/zoo.pcap.json" 100
}

long_frames() {
	forward_capture "$tmp/in/refusals.pcap" --mbuf-size=9344
	ended 0 && has "$tmp/err" "6 of 11 frames, 64 to 9000 bytes"
}

ok "a directory is refused" not_a_capture "$tmp/in" "Is a directory"
ok "a missing file is refused" not_a_capture "$tmp/none.pcap" "No such file or directory"
ok "a capture can come from a pipe" from_pipe
ok "a longer mbuf takes longer frames" long_frames

# ---- where the frames sent are saved ----

few_frames() {
	forward_capture "$tmp/in/one.pcap" --save-pcap="$saved"
	ended 0 && sent "$tmp/in/one.pcap.json" 64
}

# The run is done by then: its figures are there all the same.
unsaved() {
	forward_capture "$tmp/in/plain.pcap" --save-pcap="$1:1000"
	ended 1 && ends_with "dpdk-sibfwd: capture $1: cannot write: $2" &&
		has "$tmp/out" "cycles/packet"
}

full_disk() {
	unsaved "$tmp/full/x.pcap" "No space left on device" &&
		is "$(ls -A "$tmp/full")" "" "what was left behind"
}

ok "without a number 64 frames are saved" few_frames
# A fault could have root replace the machine's own device by a file: it gets one to spare.
device=/dev/full
mknod "$tmp/device" c 1 7 2>/dev/null && device=$tmp/device
ok "a device that is full is told" unsaved "$device" "No space left on device"
ok "and is still a device" [ -c "$device" ]
ok "a directory that is missing is told" unsaved "$tmp/none/x" "No such file or directory"
if mount -t tmpfs -o size=16k none "$tmp/full" 2>"$tmp/why"; then
	ok "a disk that is full is told, and nothing left on it" full_disk
else
	skip "a disk that is full is told, and nothing left on it" "$(head -n 1 "$tmp/why")"
fi

# ---- captures and memory ----

# number_after WORDS: the number that follows them in the program's last line.
number_after() {
	tail -n 1 "$tmp/err" | sed -n "s/.*$1[ =]*\([0-9][0-9]*\).*/\1/p"
}

# What the program asks for, in mbufs and mib; nothing where it does not ask.
mbufs=none mib=none

small_pool() {
	forward_capture "$tmp/pool.pcap" --total-num-mbufs=1000
	mbufs=$(number_after --total-num-mbufs)
	mib=$(number_after '-m')
	ended 1 && ends_with "$mbufs mbufs are needed" && [ "$mbufs" -gt 6000 ] && [ "$mib" -gt 0 ]
}

pool_as_asked() {
	forward -m "$mib" -- "${pool_options[@]}" --total-num-mbufs="$mbufs" \
		--save-pcap="$saved:7000"
	ended 0 && sent "$tmp/pool.pcap" 7000
}

one_mbuf_less() {
	forward -m "$mib" -- "${pool_options[@]}" --total-num-mbufs=$((mbufs - 1))
	ended 1 && ends_with "$mbufs mbufs are needed"
}

small_memory() {
	forward_capture "$tmp/big.pcap"
	mib=$(number_after '-m')
	ended 1 && [ "$mib" -gt 256 ]
}

memory_as_asked() {
	forward -m "$mib" -- --source="pcap:$tmp/big.pcap" --burst="$burst" --duration=2 \
		--save-pcap="$saved:3000"
	ended 0 && has "$tmp/err" "66667 of 66667 frames, 1500 to 1500 bytes" &&
		sent "$tmp/big.pcap" 3000
}

pool_options=(--source="pcap:$tmp/pool.pcap" --burst="$burst" --duration=2)
$make --bulk "$tmp/pool.pcap" 3000 128
ok "a capture larger than the pool names the mbufs and the memory needed" small_pool
ok "with just these it is sent, round and round" pool_as_asked
ok "with one mbuf less it is refused" one_mbuf_less

$make --bulk "$tmp/big.pcap" 66667 1500
ok "100 MB of frames of 1500 bytes name the memory needed" small_memory
ok "with just that they are sent" memory_as_asked

end_tests
