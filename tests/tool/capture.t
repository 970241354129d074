#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# dpdk-sibfwd --source=pcap: what is sent is what the capture holds, and a capture that cannot be
# used is refused in one line. Run from the top of the source tree; BUILD is the build directory.
set -u

program=${BUILD:-build}/app/dpdk-sibfwd
make=tests/data/make_captures.py
burst=32
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM

mkdir "$tmp/in" && $make "$tmp/in" || { echo "Bail out! no captures"; exit 1; }
captures=$(cd "$tmp/in" && ls -- *.json)
[ -n "$captures" ] || { echo "Bail out! no captures"; exit 1; }

n=0
failed=0

# ok DESCRIPTION CONDITION...: the condition is a command; its output explains a failure.
ok() {
	local text=$1
	shift
	n=$((n + 1))
	if "$@" >"$tmp/why" 2>&1; then
		echo "ok $n - $text"
		return 0
	fi
	echo "not ok $n - $text"
	sed 's/^/# /' "$tmp/why"
	failed=$((failed + 1))
	return 1
}

# forward MIB SOURCE OPTION...: one short run. The exit code is in rc, the words in out and err.
forward() {
	local mib=$1 source=$2
	shift 2
	timeout 120 "$program" -l 0,1 --no-huge -m "$mib" --no-pci --no-telemetry \
		--file-prefix="cap$$" -- --source="pcap:$source" --forward-mode=io --force \
		--burst=$burst --duration=0.05 --windows=1 --warmup=0 --settle=0 "$@" \
		>"$tmp/out" 2>"$tmp/err"
	rc=$?
}

# ended CODE: with this exit code; otherwise the program's own words.
ended() {
	[ "$rc" -eq "$1" ] && return 0
	echo "exit code $rc, not $1"
	cat "$tmp/err"
	return 1
}

# said NAME: every word expected of the capture is on the line that names it.
said() {
	local word
	while read -r word; do
		grep -F "capture $tmp/in/$1: " "$tmp/err" | grep -qF -- "$word" && continue
		echo "not said: $word"
		cat "$tmp/err"
		return 1
	done < <($make --said "$tmp/in/$1.json")
}

one_line() {
	[ "$(wc -l <"$tmp/err")" -eq 1 ] && [[ $(<"$tmp/err") == dpdk-sibfwd:* ]] && return 0
	echo "not one line:"
	cat "$tmp/err"
	return 1
}

# Frames went through: the packets received by the one window are more than none.
forwarded() {
	awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "rx_packets") c = i }
		NR == 2 { found = $c > 0 } END { exit !found }' "$tmp/out" && return 0
	cat "$tmp/out"
	return 1
}

good_capture() {
	rm -f "$tmp/saved"
	forward 256 "$tmp/in/$1" --format=csv --save-pcap="$tmp/saved:200"
	ended 0 && forwarded && said "$1" &&
		$make --check "$tmp/saved" "$tmp/in/$1.json" 200 $burst
}

bad_capture() {
	rm -f "$tmp/saved"
	forward 256 "$tmp/in/$1" --save-pcap="$tmp/saved:200"
	ended 1 && one_line && said "$1" && [ ! -e "$tmp/saved" ]
}

good=0
bad=0
for json in $captures; do
	name=${json%.json}
	if grep -q '"error"' "$tmp/in/$json"; then
		bad=$((bad + 1))
		ok "$name is refused" bad_capture "$name"
	else
		good=$((good + 1))
		ok "$name is sent as it is" good_capture "$name"
	fi
done
ok "there were good ones and bad ones" [ $good -gt 10 -a $bad -gt 10 ]

# ---- what is not a file ----

not_a_capture() {
	forward 256 "$1"
	ended 1 && one_line && grep -qF "capture $1: $2" "$tmp/err"
}

ok "a directory is refused" not_a_capture "$tmp/in" "Is a directory"
ok "a missing file is refused" not_a_capture "$tmp/in/none.pcap" "No such file or directory"

from_pipe() {
	forward 256 /dev/stdin --save-pcap="$tmp/saved:100" < <(gzip -c "$tmp/in/zoo.pcap" | zcat)
	ended 0 && $make --check "$tmp/saved" "$tmp/in/zoo.pcap.json" 100 $burst
}

ok "a capture can come from a pipe" from_pipe

long_frames() {
	forward 512 "$tmp/in/refusals.pcap" --mbuf-size=9344 --save-pcap="$tmp/saved:100"
	ended 0 && grep -q "6 of 11 frames, 64 to 9000 bytes" "$tmp/err"
}

ok "a longer mbuf takes longer frames" long_frames

# ---- what is saved ----

unsaved() {
	forward 256 "$tmp/in/plain.pcap" --save-pcap="$1:10"
	ended 1 && tail -n 1 "$tmp/err" | grep -qF "dpdk-sibfwd: capture $1: cannot write: $2"
}

full_disk() {
	mkdir "$tmp/full" && mount -t tmpfs -o size=16k none "$tmp/full" || return 1
	forward 256 "$tmp/in/plain.pcap" --save-pcap="$tmp/full/x.pcap:1000"
	ls -A "$tmp/full" >"$tmp/left"
	umount "$tmp/full"
	ended 1 && tail -n 1 "$tmp/err" | grep -q "cannot write: No space left" &&
		[ ! -s "$tmp/left" ]
}

ok "a full device is told" unsaved /dev/full "No space left on device"
ok "a directory that is missing is told" unsaved "$tmp/none/x.pcap" "No such file or directory"
if unshare -m true 2>/dev/null && [ "$(id -u)" -eq 0 ]; then
	ok "a full disk is told, and nothing is left on it" full_disk
else
	n=$((n + 1))
	echo "ok $n - a full disk is told # SKIP mounting needs root"
fi

few_frames() {
	forward 256 "$tmp/in/one.pcap" --save-pcap="$tmp/saved"
	ended 0 && $make --check "$tmp/saved" "$tmp/in/one.pcap.json" 64 $burst
}

ok "without a number 64 frames are saved" few_frames

# ---- captures and memory ----

# number_after WORDS: the number that follows them in the program's last line.
number_after() {
	tail -n 1 "$tmp/err" | sed -n "s/.*$1[ =]*\([0-9][0-9]*\).*/\1/p"
}

small_pool() {
	forward 64 "$tmp/in/../pool.pcap" --total-num-mbufs=1000
	ended 1 || return 1
	mbufs=$(number_after --total-num-mbufs)
	mib=$(number_after '-m')
	[ -n "$mbufs" ] && [ -n "$mib" ] && [ "$mbufs" -gt 6000 ] && return 0
	cat "$tmp/err"
	return 1
}

pool_as_asked() {
	forward "$mib" "$tmp/pool.pcap" --total-num-mbufs="$mbufs" --save-pcap="$tmp/saved:7000"
	ended 0 && $make --check "$tmp/saved" "$tmp/pool.pcap" 7000 $burst
}

one_mbuf_less() {
	forward "$mib" "$tmp/pool.pcap" --total-num-mbufs=$((mbufs - 1))
	ended 1 && [ "$(number_after --total-num-mbufs)" = "$mbufs" ]
}

mbufs=1 mib=1
$make --bulk "$tmp/pool.pcap" 3000 128
ok "a capture larger than the pool names the mbufs and the memory needed" small_pool
ok "with just these it is sent, round and round" pool_as_asked
ok "with one mbuf less it is refused" one_mbuf_less

small_memory() {
	forward 256 "$tmp/big.pcap"
	ended 1 || return 1
	mib=$(number_after '-m')
	[ -n "$mib" ] && [ "$mib" -gt 256 ] && return 0
	cat "$tmp/err"
	return 1
}

memory_as_asked() {
	forward "$mib" "$tmp/big.pcap" --save-pcap="$tmp/saved:3000"
	ended 0 && grep -q "66667 of 66667 frames, 1500 to 1500 bytes" "$tmp/err" &&
		$make --check "$tmp/saved" "$tmp/big.pcap" 3000 $burst
}

$make --bulk "$tmp/big.pcap" 66667 1500
ok "100 MB of frames of 1500 bytes name the memory needed" small_memory
ok "with just that they are sent" memory_as_asked

echo "1..$n"
[ $failed -eq 0 ]
