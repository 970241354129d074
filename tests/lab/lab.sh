# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# For the tests in this directory: what has to be built for an emulated machine, and its TAP
# passed on. Source it from the top of the source tree; BUILD is the build directory.
set -u
BUILD=${BUILD:-build}

bail() {
	echo "Bail out! $1"
	exit 1
}

# lab_modules HEADERS OUT: our module, the test modules and the test program, for OUT/image.
lab_modules() {
	local headers=$1 out=$2
	mkdir -p "$out"
	{
		scripts/kmod --headers "$headers" --out "$out/ours" &&
			scripts/kmod --headers "$headers" --source tests/lab/modules \
				--out "$out/test" KMOD="$PWD/kmod" &&
			scripts/kmod --headers "$headers" --patch tests/lab/qemu-mwait.patch \
				--out "$out/qemu" &&
			scripts/kmod --headers "$headers" --patch tests/lab/qemu-mwait.patch \
				--patch tests/lab/naive-unload.patch --out "$out/naive"
	} >"$out/build.log" 2>&1 || { sed 's/^/# /' "$out/build.log"; bail "no modules by $headers"; }
	rm -rf "$out/image"
	mkdir -p "$out/image"
	cp "$out"/test/*.ko "$out/image/"
	cp "$out/qemu/sibidle.ko" "$out/image/sibidle-qemu.ko"
	cp "$out/naive/sibidle.ko" "$out/image/sibidle-naive.ko"
	gcc -std=gnu11 -Wall -Wextra -Werror -O2 -static -pthread -Ikmod tests/lab/sibidle_test.c \
		-o "$out/image/sibidle_test" || bail "the test program does not build"
}

# lab_kernel SERIES: install its headers and build by them; sets release and image. Tests run side
# by side, so each builds for itself.
lab_kernel() {
	release=$(scripts/headers "$1") || bail "no headers of $1"
	image=$BUILD/lab/$(basename "$0" .t)/$release/image
	lab_modules "/usr/src/linux-headers-$release" "${image%/image}"
}

n=0
failed=0

# pass_on TITLE EXIT-CODE: TAP of a machine on stdin, renumbered; its end is one more test.
pass_on() {
	local line seen=
	while IFS= read -r line; do
		case $line in
		ok\ * | not\ ok\ *)
			n=$((n + 1))
			[[ $line =~ ^(ok|not\ ok)\ [0-9]+\ -\ (.*)$ ]]
			[ "${BASH_REMATCH[1]}" = ok ] || failed=$((failed + 1))
			echo "${BASH_REMATCH[1]} $n - $1: ${BASH_REMATCH[2]}"
			;;
		1..*) seen=1 ;;
		*) echo "# ${line#\# }" ;;
		esac
	done
	ok "$1: ran to its end, without a complaint" [ "$2" -eq 0 -a -n "$seen" ]
}

# ok TEXT CONDITION...
ok() {
	local text=$1
	shift
	n=$((n + 1))
	if "$@"; then
		echo "ok $n - $text"
	else
		echo "not ok $n - $text"
		failed=$((failed + 1))
	fi
}

# lab TITLE EMULATOR OPTIONS OF scripts/lab... -- COMMAND...: run it, pass its TAP on.
lab() {
	local title=$1 rc
	shift
	scripts/lab "$1" --module "${image%/image}/ours/sibidle.ko" --modules "$image" "${@:2}" \
		>"$BUILD/lab/$1.out" 2>"$BUILD/lab/$1.err"
	rc=$?
	[ $rc -eq 0 ] || sed 's/^/# /' "$BUILD/lab/$1.err"
	pass_on "$title" $rc <"$BUILD/lab/$1.out"
}

end_tests() {
	echo "1..$n"
	[ "$failed" -eq 0 ]
	exit
}
