# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# For the tests in this directory: what has to be built for an emulated machine, and its TAP
# passed on. Source it from the top of the source tree; BUILD is the build directory.
. tests/tap.sh
BUILD=${BUILD:-build}

# Variants of our module for tests, and the patches that make them.
declare -A variants=(
	[qemu]=qemu-mwait
	[naive]="qemu-mwait naive-unload"
	[leak]="qemu-mwait leak"
	[norestore]=no-restore
)

# lab_modules HEADERS OUT VARIANT...: our module, the test modules and the test program, for
# OUT/image.
lab_modules() {
	local headers=$1 out=$2 variant patch options program
	shift 2
	rm -rf "$out/image"
	mkdir -p "$out/image"
	(
		scripts/kmod --headers "$headers" --out "$out/ours" || exit
		scripts/kmod --headers "$headers" --source tests/lab/modules --out "$out/test" \
			KMOD="$PWD/kmod" || exit
		cp "$out"/test/*.ko "$out/image/" || exit
		for variant in "$@"; do
			options=()
			for patch in ${variants[$variant]}; do
				options+=(--patch "tests/lab/$patch.patch")
			done
			scripts/kmod --headers "$headers" --out "$out/$variant" "${options[@]}" || exit
			cp "$out/$variant/sibidle.ko" "$out/image/sibidle-$variant.ko" || exit
		done
		cp tests/lab/both tests/lab/guest.sh tests/lab/{idlectl,faults,probes,reproduce}.sh "$out/image/" || exit
		for program in sibidle_test probe_test; do
			gcc -std=gnu11 -Wall -Wextra -Werror -O2 -static -pthread -Ikmod \
				"tests/lab/$program.c" -o "$out/image/$program" || exit
		done
	) >"$out/build.log" 2>&1 || { sed 's/^/# /' "$out/build.log"; bail "no modules by $headers"; }
}

# lab_kernel SERIES VARIANT...: install its headers and build by them; sets release and image. Tests
# run side by side, so each builds for itself.
lab_kernel() {
	release=$(scripts/headers "$1") || bail "no headers of $1"
	image=$BUILD/lab/$(basename "$0" .t)/$release/image
	shift
	lab_modules "/usr/src/linux-headers-$release" "${image%/image}" "$@"
}

# pass_on TITLE EXIT-CODE: TAP of a machine on stdin, renumbered; its end is one more test.
pass_on() {
	local line seen= why=
	while IFS= read -r line; do
		case $line in
		ok\ * | not\ ok\ *)
			n=$((n + 1))
			[[ $line =~ ^(ok|not\ ok)\ [0-9]+\ -\ (.*)$ ]]
			why=
			if [ "${BASH_REMATCH[1]}" != ok ]; then
				why=yes
				failed=$((failed + 1))
				diag "$1: ${BASH_REMATCH[2]}" </dev/null
			fi
			echo "${BASH_REMATCH[1]} $n - $1: ${BASH_REMATCH[2]}"
			;;
		1..*) seen=1 ;;
		*)
			echo "# ${line#\# }"
			# What a failed check has to say comes after it.
			[ -z "$why" ] || echo "# ${line#\# }" >&2
			;;
		esac
	done
	ok "$1: ran to its end, without a complaint" [ "$2" -eq 0 -a -n "$seen" ]
}

# machine EMULATOR OPTIONS OF scripts/lab... -- COMMAND...: run it; sets rc, log, out and err.
# 40 minutes, which a slow machine may need, unless LIMIT says otherwise. TAG keeps the logs of two runs of a test apart.
runs=0
machine() {
	local emulator=$1
	shift
	runs=$((runs + 1))
	log=$BUILD/lab/$(basename "$0" .t)${TAG:+-$TAG}-$runs.log out=${log%.log}.out err=${log%.log}.err
	scripts/lab "$emulator" --module "${image%/image}/ours/sibidle.ko" --modules "$image" \
		--build "$BUILD" --log "$log" --timeout "${LIMIT:-2400}" "$@" >"$out" 2>"$err"
	rc=$?
}

# lab TITLE ARGUMENTS OF machine...: run it, pass its TAP on.
lab() {
	local title=$1
	shift
	machine "$@"
	[ $rc -eq 0 ] || diag "$title: exit code $rc" <"$err"
	pass_on "$title" $rc <"$out"
}
