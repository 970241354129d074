#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The prompt and command files: testpmd's words, strict files, what the sibling does afterwards, and commands at random.
# SEEDS of these (50), 200 commands each.

# With a lock and a journal of its own, where that can be had: other tests hold scenarios beside it.
if [ -z "${OWN_RUN-}" ] && unshare -m true 2>/dev/null && mkdir -p /run/sibfwd; then
	export OWN_RUN=1
	exec unshare -m --propagation private sh -c \
		'mount -t tmpfs -o mode=755 tmpfs /run/sibfwd; exec "$@"' sh bash "$0" "$@"
fi
. tests/tool/lib.sh
quick=(--source=null --force --duration=0.02 --warmup=0 --settle=0 --windows=2)

# commands LINE...: from a file, with standard input closed.
commands() {
	printf '%s\n' "$@" >"$tmp/commands"
	run "$sibfwd" "${eal[@]}" -- "${quick[@]}" "${more[@]}" --cmdline-file="$tmp/commands" <&-
}
more=()

# typed LINE...: at the prompt, down a pipe.
typed() {
	run sh -c 'printf "%s\n" "$@" | exec "$0" '"${eal[*]} -- ${quick[*]} ${more[*]} -i" "$sibfwd" "$@"
}

# ---- files ----

ok "a file runs to its end with standard input closed" eval 'commands "# nothing" "" "start" "measure 2" "stop" && worked &&
	has "$tmp/out" "Forward statistics for port 0" "as-is    1/2"'
ok "forwarding that is not stopped is, at the end" eval 'commands start && worked && has "$tmp/out" "Telling cores to stop..." "Done."'
ok "quit ends it" eval 'commands quit nonsense && worked || [ "$rc" -eq 0 ]'
bad() { # line, words: exit code 2, the file's line is named
	commands "show topology" "$1"
	ended 2 && failed_with 2 "$tmp/commands:2: $1: $2"
}
ok "no command" bad "bla bla" "Command not found"
ok "bad arguments" bad "set fwd nosuch" "Bad arguments"
ok "a number that is none" bad "set burst x" "set burst x: not a whole number"
ok "a number out of range" bad "set burst 513" "set burst 513: out of range, 1 to 512"
ok "no such port" bad "show port stats 7" "Invalid port 7"
ok "no such scenario" bad "set scenario nonsense" "scenario nonsense: nonsense is neither a word nor an idle state"
ok "no such lcore" bad "set corelist 7" "lcore 7 is not one of EAL's"
ok "the main lcore does not forward" bad "set corelist 0" "lcore 0 cannot forward: it is the main lcore"
ok "a line that is too long" eval 'commands "$(printf "show%.0s " {1..200})"; failed_with 2 "$tmp/commands:1: show show" "longer than 510 characters"'
ok "what fails and is a command has its own code" eval 'commands "stop"; failed_with 1 "$tmp/commands:1: stop: Packet forwarding not started"'
ok "nothing behind the bad line is carried out" eval 'commands "bla" "show topology"; refused 2 "bla: Command not found"'
ok "a file that is not there" eval 'run "$sibfwd" "${eal[@]}" -- "${quick[@]}" --cmdline-file=/nowhere/at/all; failed_with 1 "/nowhere/at/all: No such file"'
ok "load, with file and line of what fails there" eval 'printf "show scenario\nbla\n" >"$tmp/other"; commands "load $tmp/other"
	failed_with 2 "$tmp/other:2: bla: Command not found"'
ok "files that load each other" eval 'echo "load $tmp/self" >"$tmp/self"; commands "load $tmp/self"; failed_with 2 "files load each other"'
for option in --reproduce --null-test --calibrate=50 --burst=1,2 --scenario=as-is,busy --dry-run --resume; do
	ok "$option with a command file" eval 'run "$sibfwd" "${eal[@]}" -- "${quick[@]}" --out="$tmp/x" "$option" --cmdline-file=/dev/null
		refused 2 "--cmdline-file and --" "contradict each other"'
done
ok "an empty file" eval 'run "$sibfwd" "${eal[@]}" -- "${quick[@]}" --cmdline-file=/dev/null <&-; ended 0'

# ---- measuring ----

measured() {
	rm -rf "$tmp/saved" "$tmp/out-dir"
	more=(--out="$tmp/out-dir" "${bounds[@]}")
	commands "set record-burst-stats on" "measure 3" "start" "set burst 8" "measure 1" "compare as-is busy 2" "save $tmp/saved" "measure 1"
	more=()
	worked && hasnt "$tmp/err" "not as is" || return
	run "$report" check "$tmp/saved"
	ended 0 || { cat "$tmp/out"; return 1; }
	run "$report" check "$tmp/out-dir"
	ended 0 || { cat "$tmp/out"; return 1; }
	# 3, 1, two blocks of two visits each to two scenarios, of 2 windows.
	is "$(($(wc -l <"$tmp/saved/windows.csv") - 1))" $((3 + 1 + 2 * 4 * 2)) "rows saved" &&
		is "$(($(wc -l <"$tmp/out-dir/windows.csv") - 1))" $((3 + 1 + 2 * 4 * 2 + 1)) "rows of --out" &&
		is "$(cut -d, -f 15 "$tmp/saved/windows.csv" | sort -u | tr "\n" " ")" "32 8 burst " "bursts" &&
		[ "$(wc -l <"$tmp/saved/bursts.csv")" -gt 1 ]
}
ok "measure and compare, with forwarding going on or not; save, --out" measured
ok "save into what is there" eval 'commands "measure 1" "save $tmp/saved"; failed_with 1 "$tmp/saved: "'
ok "save of nothing" eval 'commands "save $tmp/nothing"; failed_with 1 "nothing has been measured" && [ ! -e "$tmp/nothing" ]'
# With a margin the exit code is the verdict of the last comparison, as it is without commands.
verdict() {
	more=(--margin=100 "${bounds[@]}")
	commands "compare as-is busy 4"
	more=()
	ended 0 && has "$tmp/out" "busy over as-is" " same"
}
ok "a comparison within the margin is exit code 0" verdict
ok "the modes in turn, each measured as what it is" eval 'rm -rf "$tmp/modes"
	commands "set fwd mac" "measure 1" "start" "set fwd rxonly" "measure 1" "stop" "measure 1" "save $tmp/modes" && worked &&
	is "$(cut -d, -f 13 "$tmp/modes/windows.csv" | tr "\n" " ")" "mode mac mac rxonly " modes &&
	is "$(awk -F, "NR > 1 { print (\$25 > 0) }" "$tmp/modes/windows.csv" | tr "\n" " ")" "1 1 0 " "what was sent" &&
	is "$(jq -c "[.scenarios, .blocks, (.estimates.scenarios[] | [.mode, .windows])]" "$tmp/modes/result.json")" "[[\"as-is\"],3,[\"mac\",2],[\"rxonly\",1]]" estimates'

# ---- the sibling ----

# Whether nobody controls a CPU any more.
free() { [ ! -e /run/sibfwd/journal ] && idlectl status --json | jq -e '[.cpus[] | select(.mode != "stock" and .mode != null)] | length == 0' >/dev/null; }
idlectl() { "$(dirname "$sibfwd")/../idlectl/idlectl" "$@"; }
ok "a scenario is held, shown, and given back" eval 'commands "set scenario busy" "show scenario" "set scenario as-is" "show scenario" && worked &&
	is "$(cat "$tmp/out")" "busy on CPU 0
busy on CPU 0
as-is
as-is" shown && free'
ok "one that is left is given back at the end" eval 'commands "set scenario busy" && worked && free'
ok "after a failure too" eval 'commands "set scenario busy" bla; failed_with 2 "Command not found" && free'
prompt_begins() {
	mkfifo "$tmp/keys"
	start "${quick[@]}" "$@" -i <"$tmp/keys"
}
for signal in INT TERM KILL; do
	ended_by() {
		rm -f "$tmp/keys"
		mkfifo "$tmp/keys"
		sleep 1000 >"$tmp/keys" &
		local keeper=$!
		command_for "${quick[@]}" -i
		env --default-signal=INT,TERM "${argv[@]}" <"$tmp/keys" >"$tmp/out" 2>"$tmp/err" &
		pid=$!
		printf 'set scenario busy\nstart\n' >"$tmp/keys"
		until_true grep -q "nb forwarding cores" "$tmp/out" || return
		kill -$signal $pid
		finish
		kill $keeper
		case $signal in KILL) is "$rc" 137 "exit code" ;; *) is "$rc" 0 "exit code" && has "$tmp/out" "Bye..." ;; esac || { cat "$tmp/err"; return 1; }
		for ((i = 0; i < 100; i++)); do free && return; sleep 0.1; done
		return 1
	}
	ok "SIG$signal at the prompt: forwarding ends, the sibling is given back" ended_by
done
held_elsewhere() {
	idlectl set --cpu 0 --scenario busy >"$tmp/set" || return
	commands "show scenario" "set scenario pause"
	idlectl restore >/dev/null
	failed_with 1 "$tmp/commands:2: set scenario pause: " "idlectl"
}
ok "where another program holds a scenario, only that is refused" held_elsewhere

ok "what is refused lets nothing go" eval 'typed "set scenario busy" "set corelist 7" "set corelist 0" "set sibling 1" "set sibling 9999" "set scenario nonsense" "show scenario" "show config cores" quit && ended 0 &&
	is "$(grep -c "^busy on CPU 0$" "$tmp/out")" 2 "held" && has "$tmp/out" "List of forwarding lcores:  1" && free'

# ---- frames that are there once ----

# A capture of 40 frames.
once_pcap() {
	/usr/bin/python3 -c '
import struct, sys
out = sys.stdout.buffer
out.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
for i in range(40):
    out.write(struct.pack("<IIII", i, 0, 60, 60) + bytes.fromhex("020000000001020000000000" "0800") + bytes([i]) * 46)'
}
once_pcap >"$tmp/once.pcap"

ok "the ring source has its frames again after a mode that keeps none" eval 'quick=("${quick[@]/--source=null/--source=ring}")
	commands "set fwd rxonly" start stop "set fwd io" "measure 1" "port stop 1" "port close 1" "save $tmp/ring"; quick=("${quick[@]/--source=ring/--source=null}")
	worked && [ "$(awk -F, "END { print \$25 }" "$tmp/ring/windows.csv")" -gt 0 ] && hasnt "$tmp/err" mbufs'
# Those of tx_first: 2 bursts of 32 by each of two ports.
ok "the first bursts count, as what came of them does" eval 'quick=("${quick[@]/--source=null/--no-flush-rx}")
	eal+=(--vdev=net_ring0 --vdev=net_ring1); commands "set fwd rxonly" "start tx_first 2" "measure 1" stop
	quick=("${quick[@]/--no-flush-rx/--source=null}"); unset "eal[-1]" "eal[-1]"; worked && grep -A4 Accumulated "$tmp/out" | tr -s " " >"$tmp/sum" && has "$tmp/sum" "RX-packets: 128 " "TX-packets: 128 "'
# net_null and net_pcap do not tell that they send several segments.
segments() {
	commands "set txpkts 64,64" "set fwd txonly" "measure 1"
	worked || return
	[ -c /dev/net/tun ] || return 0
	quick=("${quick[@]/--source=null/--no-flush-rx}")
	eal+=(--vdev=net_tap0)
	commands "set txpkts 128" "set txpkts 64,64"
	failed_with 1 "set txpkts 64,64: port 0 is set up for one segment"
	local rc2=$?
	more=(--txpkts=64,64)
	commands "set txpkts 64" "set txpkts 64,128" "show config txpkts"
	worked || rc2=1
	more=()
	unset "eal[-1]"
	quick=("${quick[@]/--no-flush-rx/--source=null}")
	return $rc2
}
ok "frames of several segments want ports that are set up for them" segments
# lcore 2 shares the CPU of the main one.
several() {
	rm -rf "$tmp/several"
	eal[1]=0@0,1@1,2@0
	eal[0]=--lcores
	more=(--rxq=2 --txq=2)
	commands "set nbcore 2" "measure 1" start stop "set nbcore 1" "measure 1" "set corelist 2,1" "measure 1" "set corelist 1" "measure 1" "save $tmp/several"
	eal[0]=-l
	eal[1]=0,1
	more=()
	worked && is "$(awk -F, 'NR > 1 { print $17 }' "$tmp/several/windows.csv" | tr '\n' ' ')" "1 2 1 2 1 1 " lcores
}
ok "one lcore and several, in turn" several

# ---- typing ----

ok "a mistake does not end a prompt; the end of the input does" eval 'typed "bla" "set fwd nosuch" "set burst 0" "show port stats 9" "show config cores" &&
	ended 0 && has "$tmp/out" "Command not found" "Bad arguments" "List of forwarding lcores:  1" "Bye..." &&
	has "$tmp/err" "set burst 0: out of range, 1 to 512" "Invalid port 9"'
ok "all is out of order, twice, or while forwarding" eval 'typed stop start start "set fwd mac" "set corelist 1" "set portlist 0" "set txpkts 64" "port stop 0" "port close 0" \
	stop stop "port stop all" start "port start all" "port start all" "port close 1" "port stop 1" "port close 1" start "set portlist 0" start stop quit && ended 0 &&
	has "$tmp/err" "Packet forwarding not started" "Packet forwarding already started" "Please stop forwarding first" \
		"Please remove port 0 from forwarding configuration." "Not all ports were started: port 0" "Port 0 is already started" \
		"Cannot close started device (port 1)" "Not all ports were started: port 1"'
ok "a port that does not forward is closed while another one does" eval 'typed "set portlist 0" start "port stop 1" "port close 1" "show fwd stats all" stop start quit && ended 0 &&
	is "$(grep -c "^Done.$" "$tmp/out")" 2 stops'
ok "-a forwards before the first command" eval 'more=(-a); typed "show fwd stats all" quit; more=(); ended 0 && has "$tmp/out" "io packet forwarding - ports=2" "Accumulated forward statistics"'
ok "help has every command" eval 'typed help && ended 0 && is "$(grep -c "^[a-z][a-z ].*  [a-z]" "$tmp/out")" 32 commands'
ok "--stats-period shows figures of loop and sibling" eval 'more=(--stats-period=1); run sh -c "{ echo start; sleep 3; } | $sibfwd ${eal[*]} -- ${quick[*]} ${more[*]} -i"; more=()
	ended 0 && grep -Eq "^lcore 1  [0-9.]+ Mpps  [0-9.]+ cycles/packet  [0-9.]+ % empty  [0-9]+ dropped/s$" "$tmp/out" && grep -q "^sibling 0  as-is" "$tmp/out"'
ok "show live without a terminal: lines, none longer than 80" eval 'commands start "show live 2" && worked && is "$(grep -c "Mpps" "$tmp/out")" 2 lines &&
	! grep -E "^(lcore|sibling) .{75,}" "$tmp/out"'

# ---- testpmd's words ----

# session PROGRAM PROMPT ARGUMENTS...: what both are told under tmux, and what they say, in $tmp/PROMPT.
tmux() { command tmux -L "sibfwd$$" "$@"; }
at_exit 'command tmux -L "sibfwd$$" kill-server 2>/dev/null'
testpmd_lines=(start "show port stats all" "set fwd macswap" "set burst 16" "stop" "show fwd stats all" "start" "stop" "clear port stats all" "show config rxtx"
	"show config cores" "show config txpkts" "show port summary all" "show port xstats 0" "stop" "set fwd bla" "bla")
session() {
	local program=$1 name=$2 i line
	shift 2
	tmux new-session -d -s "$name" -x 160 -y 50 "$program $* 2>&1" || return
	tmux set-option -t "$name" history-limit 100000 >/dev/null
	for line in "${lines[@]}" quit; do
		# Each is typed when the one before is done.
		for ((i = 0; i < 600; i++)); do
			[ "$(tmux capture-pane -p -t "$name" | grep -v "^ *$" | tail -n 1)" = "$name>" ] && break
			sleep 0.1
		done
		[ "$line" != quit ] || tmux capture-pane -p -t "$name" -S - >"$tmp/$name"
		tmux send-keys -t "$name" "$line" Enter
		sleep 0.2
	done
	[ -s "$tmp/$name" ]
}
# Words without numbers, from the first command on; addresses are drawn at random.
words_of() { sed -nE '/^[a-z]+> start/,$p' "$tmp/$1" | sed -E 's/^(testpmd|sibfwd)>/>/; s/([0-9A-F]{2}:){5}[0-9A-F]{2}/MAC/g; s/[0-9]+/N/g; s/ +/ /g; s/ $//' | grep .; }
same_words() {
	words_of testpmd >"$tmp/theirs"
	words_of sibfwd >"$tmp/ours"
	[ "$(wc -l <"$tmp/theirs")" -gt 60 ] || { cat "$tmp/testpmd"; return 1; }
	diff "$tmp/theirs" "$tmp/ours"
}
# Of the first "stop": both ports' frames are those of all, what came in went out, and ports agree with each other.
sums() { awk -v name="$1" '/^[a-z]+> stop/ { at = 1 } at && /Forward statistics/ { kind = "port" } at && /Accumulated/ { kind = "all" }
	at && /RX-packets:/ { rx[kind] += $2; total += ($2 + $4 != $6) } at && /TX-packets:/ { tx[kind] += $2; total += ($2 + $4 != $6) }
	/Done\./ { exit } END { if (total || rx["port"] != rx["all"] || tx["port"] != tx["all"] || tx["all"] < 1 || tx["all"] > rx["all"]) { print name, rx["port"], rx["all"], tx["port"], tx["all"], total; exit 1 } }' "$tmp/$1"; }
if command -v tmux >/dev/null && command -v dpdk-testpmd >/dev/null; then
	common="--no-huge --no-pci --no-telemetry --vdev=net_null0 --vdev=net_null1 -l 0,1"
	lines=("${testpmd_lines[@]}")
	# A server whose last session has ended ends, and takes a new one with it.
	tmux new-session -d -s keeper "sleep 1000"
	ok "testpmd under tmux" session dpdk-testpmd testpmd "$common -m 1024 --file-prefix=${prefix}t -- -i"
	ok "dpdk-sibfwd under tmux, the same keys" session "$sibfwd" sibfwd "$common -m 256 --file-prefix=$prefix -- -i --force"
	ok "the same words, line for line" same_words
	ok "numbers that mean the same: testpmd's add up" sums testpmd
	ok "numbers that mean the same: ours add up" sums sibfwd
	# Of frames that come once, both have to tell the same numbers.
	once="--no-huge --no-pci --no-telemetry -l 0,1"
	for i in 0 1; do
		once+=" --vdev=net_pcap$i,rx_pcap=$tmp/once.pcap,tx_pcap=$tmp/sent$i.pcap"
	done
	lines=(start "show port stats all" stop "show fwd stats all" "show port stats 1")
	same_numbers() {
		session dpdk-testpmd testpmd "$once -m 1024 --file-prefix=${prefix}o -- -i --no-flush-rx" &&
			session "$sibfwd" sibfwd "$once -m 256 --file-prefix=$prefix -- -i --force --no-flush-rx" || return
		local name
		for name in testpmd sibfwd; do
			sed -nE '/^[a-z]+> stop/,$p' "$tmp/$name" | grep -E "(RX|TX)-(packets|total|dropped|missed|errors|nombuf|bytes)" | sed -E 's/ +/ /g; s/ $//' >"$tmp/$name.numbers"
		done
		grep -q "RX-packets: 40 RX-dropped: 0 RX-total: 40" "$tmp/testpmd.numbers" && diff "$tmp/testpmd.numbers" "$tmp/sibfwd.numbers"
	}
	ok "40 frames a port: all numbers of testpmd's are ours" same_numbers
	ctrl_c() {
		tmux new-session -d -s keys -x 100 -y 40 "trap : INT; $sibfwd $common -m 256 --file-prefix=${prefix}k -- -i --force --duration=0.2 2>$tmp/keys.err; echo ended \$? >$tmp/keys.end; stty -a >>$tmp/keys.end" || return
		shown() { tmux capture-pane -p -t keys | grep -v "^ *$" | tail -n 1 | grep -qx "sibfwd>"; }
		waits() { local i; for ((i = 0; i < 600; i++)); do "$@" && return; sleep 0.05; done 2>/dev/null; tmux capture-pane -p -t keys; return 1; }
		printf 'measure 5000\n' >"$tmp/long"
		local line main
		for line in "measure 5000" "compare as-is busy 5000" "load $tmp/long"; do
			waits shown || return
			tmux send-keys -t keys "$line" Enter
			sleep 1
			! shown || { echo "$line: it does not measure"; return 1; }
			tmux send-keys -t keys C-c
		done
		waits shown || return
		# One signal behind the other: it is killed, and the terminal is as it was.
		tmux send-keys -t keys "measure 5000" Enter
		sleep 1
		main=$(pgrep -o -f "^[^ ]*dpdk-sibfwd .*--file-prefix=${prefix}k ") || return
		kill -STOP "$main"
		kill -INT "$main"
		kill -TERM "$main"
		kill -CONT "$main"
		waits grep -q icanon "$tmp/keys.end" || return
		grep -Eq "^ended (130|143)$" "$tmp/keys.end" && ! grep -Eq -- "-(icanon|echo|isig) " "$tmp/keys.end" || { cat "$tmp/keys.end"; return 1; }
	}
	ok "Ctrl-C ends what takes long, and the prompt goes on; a second one leaves the terminal as it was" ctrl_c
	screen_fits() { # columns, rows
		tmux new-session -d -s "screen$1" -x "$1" -y "$2" "$sibfwd $common -m 256 --file-prefix=${prefix}s$1 -- -i --force 2>/dev/null" || return
		local i
		for line in start "show live"; do
			for ((i = 0; i < 600; i++)); do
				[ "$(tmux capture-pane -p -t "screen$1" | grep -v "^ *$" | tail -n 1)" = "sibfwd>" ] && break
				sleep 0.1
			done
			tmux send-keys -t "screen$1" "$line" Enter
		done
		for ((i = 0; i < 100; i++)); do
			tmux capture-pane -p -t "screen$1" >"$tmp/screen"
			grep -q "any key ends this" "$tmp/screen" && break
			sleep 0.1
		done
		tmux send-keys -t "screen$1" x
		for ((i = 0; i < 100; i++)); do
			tmux capture-pane -p -t "screen$1" | grep -v "^ *$" | tail -n 1 | grep -q "sibfwd>" && break
			sleep 0.1
		done
		tmux send-keys -t "screen$1" "quit" Enter
		has "$tmp/screen" "cycles/packet" "RX Mpps" "sibling CPU 0" "any key ends this" && [ "$i" -lt 100 ] &&
			[ "$(wc -l <"$tmp/screen")" -le "$2" ] && head -n 1 "$tmp/screen" | grep -q "^dpdk-sibfwd "
	}
	ok "the screen fits 80x24, and a key ends it" screen_fits 80 24
	ok "the screen fits 200x60, and a key ends it" screen_fits 200 60
else
	skip "testpmd's words" "tmux or dpdk-testpmd is not installed"
fi

# ---- man page and completion ----

ok "the man page has every option and command, and examples" eval 'run "$sibfwd" --man; worked &&
	is "$(grep -c "^\.SH" "$tmp/out")" 8 sections && has "$tmp/out" ".SH EXAMPLES" "compare <scenario> <scenario> [blocks]" "prom\-file=FILE" &&
	! { command -v groff >/dev/null && groff -man -Tutf8 -ww "$tmp/out" 2>&1 >/dev/null | grep .; }'
"$sibfwd" --completion >"$tmp/completion"
mkdir -p "$tmp/path"
ln -s "$(dirname "$sibfwd")/../idlectl/idlectl" "$tmp/path/idlectl"
completes() { # wanted, words...
	local wanted=$1
	shift
	PATH=$tmp/path:$PATH bash -c '. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _dpdk_sibfwd; printf "%s\n" "${COMPREPLY[@]}"' "$tmp/completion" "$@" >"$tmp/words"
	grep -qxF -- "$wanted" "$tmp/words" || { cat "$tmp/words"; return 1; }
}
ok "completion of options" completes --prom-file dpdk-sibfwd -l 0,1 -- --pr
ok "of EAL's before the --" completes --no-huge dpdk-sibfwd --no
ok "of values, as bash splits them" completes macswap dpdk-sibfwd -- --forward-mode = macs
ok "right behind the =" completes paired dpdk-sibfwd -- --port-topology =
ok "of presets" completes bisect dpdk-sibfwd -- --preset = b
ok "of scenarios, behind a comma and a +" completes as-is,limit:+busy dpdk-sibfwd -- --scenario = as-is,limit:+bu
ok "of files" completes "$tmp/completion" dpdk-sibfwd -- --cmdline-file = "$tmp/compl"

# ---- telemetry and Prometheus ----

told() { # command, filter, wanted
	is "$(echo "$1" | dpdk-telemetry.py -f "$prefix" 2>/dev/null | grep '^{"/sibfwd' | tail -n 1 | jq -c "$2")" "$3" "$1"
}
telemetry() {
	rm -f "$tmp/keys"
	mkfifo "$tmp/keys"
	sleep 1000 >"$tmp/keys" &
	local keeper=$! rc2
	argv=("$sibfwd" "${eal[@]/--no-telemetry/}" -- "${quick[@]}" --prom-file="$tmp/sibfwd.prom" -i)
	for i in "${!argv[@]}"; do [ -n "${argv[$i]}" ] || unset "argv[$i]"; done
	"${argv[@]}" <"$tmp/keys" >"$tmp/out" 2>"$tmp/err" &
	pid=$!
	printf 'set record-burst-stats on\nmeasure 3\nset scenario busy\nshow scenario\n' >"$tmp/keys"
	until_true grep -q "^busy on CPU" "$tmp/out" || { kill $keeper; return 1; }
	told /sibfwd/windows '.[] | [.windows, .emulated]' "[3,0]" &&
		told /sibfwd/window,latest '.[].lcore_1 | [.scenario, .window, .rx_packets == .tx_packets, (.pps | tonumber) > 0]' '["as-is",3,true,true]' &&
		told /sibfwd/window,1 '.[].lcore_1.window' 1 && told /sibfwd/window,4 '.[]' null && told /sibfwd/window,x '.[]' null &&
		told /sibfwd/scenario '.[]' '{"scenario":"busy","cpu":0}' &&
		told /sibfwd/placement '.[].lcore_1.cpu' 1 && told /sibfwd/burst '.[] | keys' '["32"]'
	rc2=$?
	# What is given back is told too.
	printf 'set corelist 1\nshow scenario\n' >"$tmp/keys"
	until_true grep -q "^as-is$" "$tmp/out" && told /sibfwd/scenario '.[]' '{"scenario":"as-is"}' || rc2=1
	# Its threads stay off the measured CPU.
	for task in /proc/$pid/task/*; do
		mask=$(awk '$1 == "Cpus_allowed:" { print $2 }' "$task/status")
		case $(<"$task/comm") in *worker*) ;; *) ((0x${mask##*,} & 2)) && { echo "$(<"$task/comm") may run on CPU 1"; rc2=1; } ;; esac
	done
	echo quit >"$tmp/keys"
	finish
	kill $keeper
	return $rc2
}
if command -v dpdk-telemetry.py >/dev/null; then
	ok "telemetry tells windows, scenario, placement and bursts, off the measured CPU" telemetry
	ok "the file for Prometheus has the window, in its format" eval 'grep -q "^sibfwd_windows_total 3$" "$tmp/sibfwd.prom" &&
		grep -Eq "^sibfwd_packets_per_second\{lcore=\"1\",cpu=\"1\",mode=\"io\",scenario=\"as-is\"\} [0-9.e+]+$" "$tmp/sibfwd.prom" &&
		! grep -Ev "^(# (HELP|TYPE) sibfwd_[a-z_]+ .*|sibfwd_[a-z_]+(\{[^}]*\})? [-0-9.e+]+)$" "$tmp/sibfwd.prom" && [ "$(ls "$tmp"/sibfwd.prom*)" = "$tmp/sibfwd.prom" ]'
else
	skip "telemetry" "dpdk-telemetry.py is not installed"
fi
ok "a file for Prometheus that cannot be written" eval 'forward --source=null --prom-file=/nowhere/x; refused 1 "--prom-file=/nowhere/x: No such file"'

# ---- again and again ----

cycles=1000
[ -z "${SANITIZED-}" ] || cycles=100
many() {
	local i modes=(io mac macswap rxonly txonly flowgen csum icmpecho noisy 5tswap)
	for ((i = 0; i < cycles; i++)); do
		printf 'start\nstop\n'
	done >"$tmp/many"
	for ((i = 0; i < cycles / 10; i++)); do
		printf 'start\nset fwd %s\nset burst %d\nstop\n' "${modes[i % 10]}" $((1 + i % 64))
	done >>"$tmp/many"
	rm -f "$tmp/keys"
	mkfifo "$tmp/keys"
	sleep 1000 >"$tmp/keys" &
	local keeper=$! files
	"$sibfwd" "${eal[@]}" -- "${quick[@]}" -i <"$tmp/keys" >"$tmp/out" 2>"$tmp/err" &
	pid=$!
	printf 'start\nstop\nshow topology\n' >"$tmp/keys"
	until_true grep -q "^controller " "$tmp/out" || { kill $keeper; return 1; }
	files=$(ls /proc/$pid/fd | wc -l)
	printf 'load %s\nset fwd io\nshow scenario\n' "$tmp/many" >"$tmp/keys"
	until_true grep -q "^as-is$" "$tmp/out" || { kill $keeper; return 1; }
	is "$(ls /proc/$pid/fd | wc -l)" "$files" descriptors &&
		is "$(grep -c "^Done.$" "$tmp/out")" $((1 + cycles + cycles / 10)) "stops"
	local rc2=$?
	echo quit >"$tmp/keys"
	finish
	kill $keeper
	# What is not given back is warned of.
	[ $rc2 -eq 0 ] && ended 0 && ! grep "mbufs" "$tmp/err"
}
ok "$cycles times start and stop, and $((cycles / 10)) other modes: no mbuf and no descriptor is lost" many

# ---- at random ----

run "$sibfwd" "${eal[@]}" -- "${quick[@]}" --cmdline-file=<(echo help)
cp "$tmp/out" "$tmp/grammar"
at_random() { # seed
	/usr/bin/python3 tests/tool/prompt_lines.py "$tmp/grammar" "$1" 200 >"$tmp/lines" || return
	echo quit >>"$tmp/lines"
	run "$sibfwd" "${eal[@]}" -- --source=null --force --duration=0.005 --warmup=0 --settle=0 --windows=1 -i <"$tmp/lines"
	ended 0 && free && has "$tmp/out" "Bye..."
}
seeds=${SEEDS:-50}
[ -n "${SANITIZED-}" ] || seeds=$(((seeds + 9) / 10))
all_seeds() {
	local seed
	for ((seed = 1; seed <= seeds; seed++)); do
		at_random $seed || { echo "seed $seed"; tail -n 5 "$tmp/out"; return 1; }
	done
}
ok "200 commands at random, $seeds times: no crash, and the machine is as it was" all_seeds

end_tests
