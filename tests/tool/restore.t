#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# idlectl gives the machine back: whoever is killed at whatever step, what was changed is put back. On
# recorded trees; kill_at counts the steps. IDLECTL is the program, ONLY a scenario to
# try alone, or "others": what comes after the scenarios.

# With a lock and a journal of its own, where that can be had: other tests hold scenarios beside it.
if [ -z "${OWN_RUN-}" ] && unshare -m true 2>/dev/null && mkdir -p /run/sibfwd; then
	export OWN_RUN=1
	exec unshare -m --propagation private sh -c \
		'mount -t tmpfs -o mode=755 tmpfs /run/sibfwd; exec "$@"' sh bash "$0" "$@"
fi
. tests/tap.sh

idlectl=$(realpath "${IDLECTL:-${BUILD:-build}/idlectl/idlectl}") || bail "no idlectl"
kill_at=$(realpath "${BUILD:-build}/tests/kill_at")
tree=$tmp/tree
lock=$tree/run/sibfwd/lock
journal=$tree/run/sibfwd/journal
# A sanitizer cannot look for leaks in a traced process.
export ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0"
tests/data/machines/unpack skx-2s-6.1 "$tree" || bail "no tree"

idlectl() { "$idlectl" --sysroot "$tree" "$@"; }
# snapshot [DIR...]: of the whole tree, or below DIR.
snapshot() { (cd "$tree" && find "${@:-.}" -path ./run -prune -o -type f -exec grep -H . {} + | sort); }
cpu1=sys/devices/system/cpu/cpu1
snapshot >"$tmp/before"
snapshot $cpu1 >"$tmp/cpu1"

# as_before: no file differs, nothing is left behind.
as_before() {
	snapshot | diff "$tmp/before" - && [ ! -e "$journal" ] && flock -n "$lock" true
}

# step_undone: the same of the CPU alone; the whole tree is looked at after the last step.
step_undone() {
	snapshot $cpu1 | diff "$tmp/cpu1" - && [ ! -e "$journal" ] && flock -n "$lock" true
}

# The supervisor may still be at it.
wait_free() {
	local i
	for i in $(seq 500); do
		[ ! -e "$lock" ] || flock -n "$lock" true && return 0
		sleep 0.01
	done
	echo "the lock is held for 5 s"
	return 1
}

# until_step N WHO SCENARIO: kill -9 of worker, supervisor or both there; 9 if it ended before.
until_step() {
	"$kill_at" "$1" "$2" "$idlectl" --sysroot "$tree" run --cpu 1 --scenario "$3" -- true \
		>"$tmp/out" 2>&1
	rc=$?
	wait_free || return 1
	[ $rc -eq 9 ] || [ $rc -eq 0 ] || { echo "exit code $rc"; return 1; }
	case $2 in both | restorer) false ;; esac || idlectl restore >>"$tmp/out" 2>&1 || return 1
	step_undone
}

# later_step N SCENARIO: kill -9 of the supervisor there, and of the worker once there is another one.
later_step() {
	"$kill_at" "$1" supervisor "$idlectl" --sysroot "$tree" run --cpu 1 --scenario "$2" -- sh -c '
		for i in $(seq 500); do
			! pgrep -r R,S,D -x -P $PPID sibfwd-restore >/dev/null || break
			sleep 0.01
		done
		kill -KILL $PPID' >"$tmp/out" 2>&1
	rc=$?
	wait_free && step_undone
}

# lives PID: and is not one that has ended and waits to be told of.
lives() { grep -qs "^State:.[^ZX]" "/proc/$1/status"; }

# set_step N WHO SCENARIO: kill -9 of set at its step N, or of what it leaves behind at a step of that:
# the holder, or its supervisor and, once there is another one, the holder.
set_step() {
	local holder i
	"$kill_at" "$1" "$2" "$idlectl" --sysroot "$tree" set --cpu 1 --scenario "$3" --ttl 2 \
		>"$tmp/out" 2>&1
	rc=$?
	case $2 in
	worker) idlectl restore >>"$tmp/out" 2>&1 || return 1 ;;
	child-supervisor)
		holder=$(sed -n 's/.*process \([0-9]*\).*/\1/p' "$tmp/out")
		for i in $(seq 50); do
			[ -n "$holder" ] && lives "$holder" || break
			! pgrep -x -P "$holder" -r R,S,D sibfwd-restore >/dev/null || break
			sleep 0.01
		done
		[ "$i" -lt 50 ] || { echo "no new supervisor"; return 1; }
		[ -z "$holder" ] || kill -KILL "$holder" 2>/dev/null
		;;
	esac
	wait_free && step_undone
}

# each HOW...: a function above that is called with the step and with HOW, at every step there is.
each() {
	local step how=$1 min=8
	shift
	# The supervisor alone, and set without what it leaves behind, have fewer.
	case "$how $1" in "until_step restorer" | "set_step worker") min=2 ;; esac
	rc=
	for ((step = 1; step < 1000; step++)); do
		"$how" "$step" "$@" >"$tmp/said" 2>&1 || {
			echo "at step $step:"
			cat "$tmp/said" "$tmp/out"
			# A tree that is not as before would fail all that follows.
			rm -rf "$tree"
			tests/data/machines/unpack skx-2s-6.1 "$tree"
			return 1
		}
		[ $rc -ne 9 ] || break
	done
	[ "$step" -gt "$min" ] && [ "$step" -lt 1000 ] && as_before
}

# With sanitizers every step takes a while: one scenario of several changes.
scenarios="c1 poll limit:50 offline c6+limit:200"
[ -z "${SANITIZED-}" ] || scenarios=c6+limit:200
case ${ONLY-} in "") ;; others) scenarios= ;; *) scenarios=$ONLY ;; esac
for scenario in $scenarios; do
	idlectl run --cpu 1 --scenario "$scenario" -- sh -c '
		cd "$0" && find . -path ./run -prune -o -type f -exec grep -H . {} + | sort' "$tree" >"$tmp/during"
	ok "$scenario changes the tree" eval '! cmp -s "$tmp/before" "$tmp/during"'
	ok "$scenario is gone afterwards" as_before
	for who in worker supervisor both; do
		ok "$scenario: kill -9 of $who at every step" each until_step "$who" "$scenario"
	done
	ok "$scenario: kill -9 of the worker, and of the supervisor at every step of its restore" \
		each until_step restorer "$scenario"
	# Steps of set, and what comes later, are the same whatever is changed.
	[ -z "${ONLY-}" ] && [ "$scenario" = c6+limit:200 ] || continue
	ok "$scenario: kill -9 of the supervisor at every step, and of the worker later" \
		each later_step "$scenario"
	for who in worker child-worker child-supervisor; do
		ok "$scenario: kill -9 at every step of set: $who" each set_step "$who" "$scenario"
	done
done
case ${ONLY-} in "" | others) ;; *) end_tests ;; esac

# The one that set leaves behind.
begin_set() {
	idlectl set --cpu 1 --scenario c1 >"$tmp/out" || return 1
	holder=$(sed -n 's/.*process \([0-9]*\).*/\1/p' "$tmp/out")
	supervisor=$(pgrep -P "$holder")
	! snapshot | cmp -s "$tmp/before" - && [ -n "$supervisor" ]
}
ok "set: kill -9 of the holder" eval 'begin_set && kill -KILL $holder && wait_free && as_before'
ok "set: kill -9 of its supervisor, then restore" eval 'begin_set && kill -KILL $supervisor &&
	idlectl restore && as_before'
# another_supervisor: there is one, and not the one that was killed.
another_supervisor() {
	local i now
	for i in $(seq 200); do
		now=$(pgrep -P "$holder" -x sibfwd-restore)
		[ -n "$now" ] && [ "$now" != "$supervisor" ] && return 0
		sleep 0.02
	done
	return 1
}
ok "set: kill -9 of its supervisor, and a new one restores after kill -9 of the holder" eval \
	'begin_set && kill -KILL $supervisor && another_supervisor && kill -KILL $holder && wait_free &&
	as_before'
ok "set: what is held is not touched by restore --leftover" eval 'begin_set &&
	idlectl restore --leftover 2>"$tmp/err" && has "$tmp/err" "$holder (idlectl set) goes on" &&
	! snapshot | cmp -s "$tmp/before" - && idlectl restore && as_before'
ok "set: kill -9 of both leaves a journal" eval 'begin_set &&
	kill -STOP $supervisor && kill -KILL $holder $supervisor && wait_free && [ -e "$journal" ]'
ok "the next command finds it" eval '! idlectl run --cpu 1 --scenario c6 -- true 2>"$tmp/err" &&
	has "$tmp/err" "idlectl restore"'
for c in topology states scenarios status doctor; do
	ok "and whoever looks hears of it: $c" eval 'idlectl $c >"$tmp/out" 2>&1 && has "$tmp/out" "has ended"'
done
if setpriv --reuid=65534 --regid=65534 --clear-groups true 2>/dev/null; then
	chmod 755 "$tmp"
	ok "others than root too" eval 'setpriv --reuid=65534 --regid=65534 --clear-groups "$idlectl" \
		--sysroot "$tree" status >"$tmp/out" 2>&1 && has "$tmp/out" "has ended"'
	chmod 700 "$tmp"
else
	skip "others than root too" "no other user here"
fi

# A journal that ends anywhere: what is whole in it is put back, and nothing else happens.
cp -r "$tree" "$tmp/killed"
cp "$journal" "$tmp/journal"
# killed_again: the tree and its journal as they were then.
killed_again() {
	rm -rf "$tree/sys/devices/system/cpu/cpu1"
	cp -r "$tmp/killed/sys/devices/system/cpu/cpu1" "$tree/sys/devices/system/cpu/"
	cp "$tmp/journal" "$journal"
}
truncated() {
	local bytes=$(stat -c %s "$tmp/journal") whole step=1
	[ -z "${SANITIZED-}" ] || step=5
	[ -z "${ONLY-}" ] || step=50
	for ((n_bytes = 0; n_bytes <= bytes; n_bytes += step)); do
		killed_again
		head -c "$n_bytes" "$tmp/journal" >"$journal"
		whole=$(head -c "$n_bytes" "$tmp/journal" | grep -c '"path".*}$')
		idlectl restore --json >"$tmp/out" 2>"$tmp/err" || { cat "$tmp/err"; return 1; }
		is "$(jq '[.files[] | select(.result == "restored")] | length' "$tmp/out")" "$whole" \
			"files put back after $n_bytes bytes" || return 1
		[ ! -e "$journal" ] || return 1
	done
}
ok "a journal that ends at any byte" truncated
killed_again
ok "restore --leftover puts back what was killed" eval 'idlectl restore --leftover && as_before'
killed_again

# What somebody else has changed meanwhile stays, and is named.
state=$tree/sys/devices/system/cpu/cpu1/cpuidle/state0/disable
echo 7 >"$state"
ok "what somebody else changed is left alone, and said" eval 'idlectl restore 2>"$tmp/err" &&
	has "$tmp/err" "state0/disable is 7 now" && is "$(cat "$state")" 7 "the file"'
ok "restore can be repeated" eval 'idlectl restore >"$tmp/out" && has "$tmp/out" "nothing to restore"'
echo 0 >"$state"
ok "and the rest is as before" as_before

# What cannot be read may still be as it was left: that is not "gone".
cp "$tmp/journal" "$journal"
rm "$state"
mkdir "$state"
idlectl restore >"$tmp/out" 2>"$tmp/err"
rc=$?
ok "a file that cannot be read is exit code 6, and the journal stays" eval \
	'is $rc 6 "exit code" && has "$tmp/err" "state0/disable: Is a directory" && [ -s "$journal" ]'
rmdir "$state"
ok "one that is gone is said, and no hindrance" eval 'idlectl restore 2>"$tmp/err" &&
	has "$tmp/err" "state0/disable: No such file" && [ ! -e "$journal" ]'
echo 0 >"$state"
ok "and the rest is as before" as_before

# A line that tells nothing takes none of the others with it.
# damaged TEXT SED-EXPRESSION FILES: of the journal's lines; so many files are not put back.
damaged() {
	local line=${2%%[!0-9]*} files=$3
	killed_again
	sed -i "$2" "$journal"
	idlectl restore >"$tmp/out" 2>"$tmp/err"
	rc=$?
	ok "$1: exit code 6, the line is named, the journal stays" eval \
		'is $rc 6 "exit code" && has "$tmp/err" "line $line " "remove the file" && [ -s "$journal" ]'
	ok "$1: the other lines are put back" eval 'snapshot | diff "$tmp/before" - >"$tmp/differ"
		is "$(grep -c "^>" "$tmp/differ")" "$files" "files that differ"'
}
damaged "garbage in the middle" '2s/.*/nothing/' 1
damaged "NUL bytes in the middle" '2s/.*/\x00\x00\x00/' 1
damaged "a path outside of /sys" '2s,"/sys/,"/etc/,' 1
damaged "a damaged header" '1s/journal/\x00/' 0
rm "$journal"
rm -r "$tree/sys/devices/system/cpu/cpu1"
cp -r "$tmp/killed/sys/devices/system/cpu/cpu1" "$tree/sys/devices/system/cpu/"
cp "$tmp/journal" "$journal"
ok "and the whole of it is put back" eval 'idlectl restore && as_before'

# Texts of files are printed as one line of plain text.
killed_again
printf '7\n\033[31m\377' >"$state"
ok "a value that is no text is named, and printed plainly" eval 'idlectl restore 2>"$tmp/err" &&
	has "$tmp/err" "state0/disable is 7 ?[31m? now" && idlectl restore --json >"$tmp/out" && jq . "$tmp/out"'
printf '\377\n' >"$state"
ok "one that could not be put back is not changed" eval \
	'! idlectl run --cpu 1 --scenario c1 -- true 2>"$tmp/err" && has "$tmp/err" "state0/disable: holds what" &&
	is "$(od -An -tx1 "$state")" " ff 0a" "the file"'
echo 0 >"$state"
sed 's/"who":"[^"]*"/"who":"\\u001b[31m"/' "$tmp/journal" >"$journal"
ok "nor do names of journals reach the terminal as they are" eval 'idlectl status >"$tmp/out" 2>&1
	has "$tmp/out" "?[31m" && ! grep -q "$(printf "\033")" "$tmp/out"'
rm "$journal"
ok "and the rest is as before" as_before

# Another boot's journal says nothing of this one.
sed 's/"boot":"[^"]*"/"boot":"another"/' "$tmp/journal" >"$journal"
ok "a journal of another boot is removed, and nothing changed" eval \
	'idlectl restore 2>"$tmp/err" && has "$tmp/err" "another boot" && as_before'

cp "$tmp/journal" "$journal"
sed -i 's/"boot":"[^"]*"/"boot":"another"/' "$journal"
ok "nor does it hinder the next command" eval 'idlectl run --cpu 1 --scenario c1 -- true && as_before'

# The journal's name goes away meanwhile: its owner still has it.
ok "a journal that somebody removed" eval \
	'idlectl run --cpu 1 --scenario c1 -- rm "$journal" && as_before'

# What somebody changed after set is said by restore, though it is the holder that gives back.
ok "what somebody changed after set is said by restore" eval 'idlectl set --cpu 1 --scenario c1 &&
	echo 7 >"$state" && idlectl restore 2>"$tmp/err" && has "$tmp/err" "state0/disable is 7 now"'
echo 0 >"$state"
ok "and the rest is as before" as_before

ok "or where the holder was killed" eval 'begin_set && echo 7 >"$state" && kill -KILL $holder && wait_free &&
	idlectl restore 2>"$tmp/err" && has "$tmp/err" "was killed" "state0/disable is 7 now"'
echo 0 >"$state"
two_sets() {
	local value
	for value in 7 8; do
		idlectl set --cpu 1 --scenario c1 --ttl 0.5 && echo $value >"$state" && sleep 0.6 && wait_free || return 1
		echo 0 >"$state"
	done
	idlectl restore 2>"$tmp/err" && has "$tmp/err" "state0/disable is 7 now" "state0/disable is 8 now" &&
		idlectl restore 2>"$tmp/err" && [ ! -s "$tmp/err" ]
}
ok "and after two sets have ended by themselves" two_sets
ok "and the rest is as before" as_before

# Somebody who reads what idlectl says goes away, then the supervisor, then the worker.
unread() {
	mkfifo "$tmp/words"
	cat "$tmp/words" >"$tmp/read" &
	reader=$!
	"$idlectl" --sysroot "$tree" run --cpu 1 --scenario c1 -- sh -c 'kill -KILL $1 && killed=$(pgrep -x -P $PPID sibfwd-restore) &&
		kill -KILL $killed
		for i in $(seq 500); do
			now=$(pgrep -r R,S,D -x -P $PPID sibfwd-restore)
			[ -n "$now" ] && [ "$now" != "$killed" ] && break
			sleep 0.01
		done
		kill -KILL $PPID' sh $reader 2>"$tmp/words"
	is $? 137 "exit code" && wait_free && as_before
}
ok "words that nobody reads are no reason to die" unread
ok "the command has SIGPIPE as it was" eval 'idlectl run --cpu 1 --scenario c1 -- sh -c "kill -PIPE \$\$"
	is $? 141 "exit code"'
ok "what set cannot say is not held" eval '! idlectl set --cpu 1 --scenario c1 2>"$tmp/err" >/dev/full &&
	has "$tmp/err" "standard output" "given back" && as_before'
gone() { # what set says goes to a pipe that nobody reads any more
	mkfifo "$tmp/gone"
	sleep 60 <"$tmp/gone" &
	exec 7>"$tmp/gone"
	kill -KILL $!
	wait $! 2>/dev/null
	"$@" >&7 7>&-
	rc=$?
	exec 7>&-
	rm "$tmp/gone"
}
ok "nor what a reader that is gone does not hear" eval 'gone "$idlectl" --sysroot "$tree" set --cpu 1 --scenario c1 \
	2>"$tmp/err"; is $rc 1 "exit code" && has "$tmp/err" "given back" && as_before'
ok "restore restores, whoever hears of it" eval 'begin_set && kill -STOP $supervisor &&
	kill -KILL $holder $supervisor && wait_free && echo words >"$tree/run/sibfwd/messages" &&
	gone sh -c "exec \"\$0\" --sysroot \"\$1\" restore 2>&1" "$idlectl" "$tree"; as_before'
ok "what a holder could not do is said by restore" eval 'begin_set && echo damaged >>"$journal" &&
	kill -TERM $holder && wait_free && ! idlectl restore --json >"$tmp/out" 2>"$tmp/err" &&
	has "$tmp/err" "idlectl set: /run/sibfwd/journal: line 5 tells nothing" && jq -e ".damaged == 5" "$tmp/out" &&
	rm "$journal" && as_before'

# A parent that ignores SIGCHLD.
ok "run ends where SIGCHLD was ignored" eval 'timeout 20 perl -e "\$SIG{CHLD} = \"IGNORE\"; exec @ARGV" \
	"$idlectl" --sysroot "$tree" run --cpu 1 --scenario c1 -- true && as_before'

# The command does not go on without the scenario.
outlives() {
	local i
	idlectl run --cpu 1 --scenario c1 -- sh -c 'echo $$ >"$0"; exec sleep 60' "$tmp/pid" &
	for i in $(seq 200); do [ -s "$tmp/pid" ] && break; sleep 0.02; done
	kill -KILL $(pgrep -x idlectl -P $!) $! 2>/dev/null
	for i in $(seq 200); do kill -0 "$(cat "$tmp/pid")" 2>/dev/null || break; sleep 0.02; done
	wait_free && as_before && ! kill -0 "$(cat "$tmp/pid")" 2>/dev/null
}
ok "kill -9 of run ends its command too" outlives

# On this machine, whose loads are threads of the worker.
free_here() { flock -w 5 /run/sibfwd/lock true && [ ! -e /run/sibfwd/journal ]; }
# kill_live WHO: run with a load, its worker, supervisor or both killed while its command sleeps.
kill_live() {
	local worker supervisor i
	rm -f "$tmp/pid"
	"$idlectl" run --cpu 0 --scenario busy -- sh -c 'echo $$ >"$0"; exec sleep 60' "$tmp/pid" \
		2>"$tmp/err" &
	worker=$!
	for i in $(seq 250); do [ -s "$tmp/pid" ] && break; sleep 0.02; done
	supervisor=$(pgrep -P $worker -x sibfwd-restore)
	[ -s "$tmp/pid" ] && [ -n "$supervisor" ] || return 1
	case $1 in
	worker) kill -KILL $worker ;;
	both) kill -KILL $supervisor $worker ;;
	supervisor)
		kill -KILL "$supervisor"
		for i in $(seq 200); do
			grep -q "there is a new one" "$tmp/err" && break
			sleep 0.02
		done
		kill -TERM $worker
		;;
	esac
	wait $worker
	rc=$?
	[ "$1" != supervisor ] || is $rc 143 "exit code" || return 1
	[ "$1" != both ] || "$idlectl" restore || return 1
	free_here
}
if [ -w /run ] && [ "$(id -u)" -eq 0 ] && [ ! -e /run/sibfwd/journal ]; then
	for who in worker supervisor both; do
		ok "a load on this machine: kill -9 of $who" kill_live $who
	done
else
	skip "a load on this machine: kill -9" "no right to one, or it is in use"
fi

# What cannot be put back is exit code 6, and can be tried again.
if mount --bind "$tree/sys" "$tree/sys" 2>/dev/null; then
	at_exit 'umount "$tree/sys" 2>/dev/null'
	idlectl run --cpu 1 --scenario c1 -- mount -o remount,bind,ro "$tree/sys" 2>"$tmp/err"
	rc=$?
	ok "what cannot be put back is exit code 6" is $rc 6 "exit code"
	ok "and says how to go on" eval 'has "$tmp/err" "idlectl restore" && hasnt "$tmp/err" "was killed"'
	wait_free
	ok "the journal stays" [ -s "$journal" ]
	idlectl restore >"$tmp/out" 2>"$tmp/err"
	rc=$?
	ok "restore says the same as long as it is so" is $rc 6 "exit code"
	mount -o remount,bind,rw "$tree/sys"
	ok "and then puts it back" eval 'idlectl restore && as_before'
	umount "$tree/sys"
else
	skip "what cannot be put back" "nothing can be mounted here"
fi

# What takes long and no mutant is about.
[ -z "${ONLY-}" ] || end_tests

# A process that bears the holder's number but is not it.
sleep 60 &
innocent=$!
exec 8>"$lock"
flock 8
echo "$innocent 1 idlectl set" >"$lock"
ok "a process that has the holder's number by chance is not killed" eval \
	'! idlectl restore 8>&- 2>"$tmp/err" && kill -0 $innocent && has "$tmp/err" "is gone"'
exec 8>&-
kill $innocent

end_tests
