# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Runs of the programs, for the tests in this directory. Source it from the top of the source tree;
# BUILD is the build directory.
. tests/tap.sh

sibfwd=${BUILD:-build}/app/dpdk-sibfwd
report=${BUILD:-build}/app/sibfwd-report
if [ ! -x "$sibfwd" ] || [ ! -x "$report" ]; then
	bail "no programs in ${BUILD:-build}/app"
fi
sibfwd=$(realpath "$sibfwd")
report=$(realpath "$report")

limit=120        # seconds after which a run counts as hung
prefix=sibfwd$$  # of EAL's run-time directory, so that tests can run side by side
eal=(-l "0,1" --no-huge -m 256 --no-pci --no-telemetry --file-prefix="$prefix")
short=(--force --duration=0.1 --windows=1 --warmup=0 --settle=0)
at_exit 'rm -rf "/var/run/dpdk/$prefix"'
# A machine that others use taints every window; with these none is.
bounds=()
for cause in irqs ctxsw steal smi unsaturated missed nombuf freq state; do
	bounds+=(--taint-$cause=1e11)
done

# ---- runs ----

# run COMMAND...: the exit code is in rc, the words in $tmp/out and $tmp/err.
run() {
	timeout -k 5 "$limit" "$@" >"$tmp/out" 2>"$tmp/err"
	rc=$?
}

# command_for [EAL-OPTION... --] OPTION...: a short run, in the array argv.
command_for() {
	argv=("$sibfwd" "${eal[@]}")
	if [[ " $* " == *" -- "* ]]; then
		while [ "$1" != -- ]; do
			argv+=("$1")
			shift
		done
		shift
	fi
	argv+=(-- "${short[@]}" "$@")
}

# forward [EAL-OPTION... --] OPTION...
forward() {
	command_for "$@"
	run "${argv[@]}"
}

# start [EAL-OPTION... --] OPTION...: in the background, its process in pid; one at a time. Signals
# are as a terminal has them; bash alone would have SIGINT ignored.
pid=
start() {
	if jobs -pr | grep -qx "$pid"; then
		kill -9 "$pid"
		wait "$pid"
	fi 2>/dev/null
	command_for "$@"
	env --default-signal=INT,TERM "${argv[@]}" >"$tmp/out" 2>"$tmp/err" &
	pid=$!
	# Until env has given way to the program, SIGINT is ignored, as the shell has it in the background.
	local i ours comm
	read -r ours <"/proc/$$/comm"
	for ((i = 0; i < 10000; i++)); do
		read -r comm 2>/dev/null <"/proc/$pid/comm" || break
		case $comm in "$ours" | env) ;; *) break ;; esac
	done
}

# until_true CONDITION...: fails when it does not come true, or the run in the background ends.
until_true() {
	local i
	for ((i = 0; i < 20 * limit; i++)); do
		"$@" && return 0
		kill -0 "$pid" 2>/dev/null || break
		sleep 0.05
	done
	echo "in vain: $*"
	cat "$tmp/err"
	return 1
}

# finish: wait for the end of the run in the background. Fails where that has to be forced.
finish() {
	local i
	for ((i = 0; i < 20 * limit; i++)); do
		kill -0 "$pid" 2>/dev/null || break
		sleep 0.05
	done
	if [ "$i" -eq $((20 * limit)) ]; then
		echo "hung, and was killed"
		kill -9 "$pid"
	fi
	wait "$pid" 2>/dev/null
	rc=$?
	[ "$i" -lt $((20 * limit)) ]
}

# ended CODE: otherwise the program's own words.
ended() {
	[ "$rc" -eq "$1" ] && return 0
	echo "exit code $rc, not $1"
	cat "$tmp/err"
	return 1
}

# The lines of stderr that are not warnings.
errors() {
	grep -v '^dpdk-sibfwd: warning: ' "$tmp/err"
}

# failed_with CODE WORDS...: with this exit code and one line of error, which holds the words.
failed_with() {
	local line
	ended "$1" || return 1
	shift
	line=$(errors)
	if [[ $line != "dpdk-sibfwd: "* || $line == *$'\n'* ]]; then
		echo "not one line:"
		cat "$tmp/err"
		return 1
	fi
	printf '%s\n' "$line" >"$tmp/line"
	has "$tmp/line" "$@"
}

# refused CODE WORDS...: the same, and nothing on stdout.
refused() {
	failed_with "$@" && is "$(<"$tmp/out")" "" stdout
}

# worked: done without an error, and with words on stdout.
worked() {
	ended 0 && is "$(errors)" "" stderr && [ -s "$tmp/out" ]
}

# free: nobody controls how a CPU idles, and nobody left that behind.
free() {
	[ ! -e /run/sibfwd/journal ] && { [ ! -e /run/sibfwd/lock ] || flock -w 5 /run/sibfwd/lock true; }
}

# ---- results ----

# values CSV COLUMN...: of all rows, a row a line; an empty field is a dash.
values() {
	python3 - "$@" <<'PYTHON'
import csv, sys
with open(sys.argv[1], newline="") as file:
    for row in csv.DictReader(file, strict=True):
        print(*(row[name] or "-" for name in sys.argv[2:]))
PYTHON
}

# whole_rows CSV: as many fields in every row as in the header, and a line end behind the last.
whole_rows() {
	python3 - "$@" <<'PYTHON'
import csv, sys
text = open(sys.argv[1], newline="").read()
rows = list(csv.reader(text.splitlines(), strict=True))
assert text.endswith("\n"), text[-100:]
assert all(len(row) == len(rows[0]) for row in rows), rows
PYTHON
}

# frames PCAP: the frames that --save-pcap wrote, in hex, a frame a line.
frames() {
	python3 - "$@" <<'PYTHON'
import struct, sys
data = open(sys.argv[1], "rb").read()
assert struct.unpack("<I", data[:4])[0] == 0xA1B23C4D, data[:24]
at = 24
while at < len(data):
    kept, length = struct.unpack("<8xII", data[at : at + 16])
    assert kept == length and at + 16 + kept <= len(data), (at, kept, length)
    print(data[at + 16 : at + 16 + kept].hex())
    at += 16 + kept
PYTHON
}
