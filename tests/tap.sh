# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# TAP and tidying up for tests in shell. Source it from the top of the source tree.
set -u

# ---- cleaning up ----

tmp=$(mktemp -d) || exit 1
exit_commands=()

# at_exit COMMAND: a line of shell for the end; the last one given comes first.
at_exit() {
	exit_commands=("$1" "${exit_commands[@]}")
}

# Also ends what still runs in the background. A child that a signal finds on its way to exec has
# this trap too, and is not to clean up.
clean_up() {
	local line
	[ "$BASHPID" = $$ ] || return
	# shellcheck disable=SC2046 # one word each
	kill -9 $(jobs -pr) 2>/dev/null
	for line in "${exit_commands[@]}"; do
		eval "$line"
	done
	rm -rf "$tmp"
}

trap clean_up EXIT
trap 'exit 1' INT TERM

# ---- TAP ----

n=0
failed=0

# diag TEXT: what failed and, on stdin, why; on stderr, where prove does not hold it back.
diag() {
	{
		printf '# %s: not ok: %s\n' "${0##*/}" "$1"
		sed 's/^/# /'
	} >&2
}

# ok TEXT CONDITION...: the condition is a command; its output explains a failure. With FIRST the test
# ends at the first one.
ok() {
	local text=$1
	shift
	n=$((n + 1))
	if "$@" >"$tmp/why" 2>&1; then
		echo "ok $n - $text"
		return 0
	fi
	echo "not ok $n - $text"
	diag "$text" <"$tmp/why"
	failed=$((failed + 1))
	[ -z "${FIRST-}" ] || end_tests
	return 1
}

bail() {
	echo "Bail out! $1"
	exit 1
}

# skip TEXT REASON
skip() {
	n=$((n + 1))
	echo "ok $n - $1 # SKIP $2"
}

end_tests() {
	echo "1..$n"
	[ "$failed" -eq 0 ]
	exit
}

# is GOT WANTED WHAT
is() {
	[ "$1" = "$2" ] && return 0
	printf '%s is "%s", not "%s"\n' "$3" "$1" "$2"
	return 1
}

# has FILE WORDS...: all of them stand in the file.
has() {
	local file=$1 words
	shift
	for words in "$@"; do
		grep -qF -- "$words" "$file" && continue
		printf 'missing: %s\n' "$words"
		cat "$file"
		return 1
	done
}

# hasnt FILE WORDS
hasnt() {
	grep -F -- "$2" "$1" || return 0
	printf 'not wanted: %s\n' "$2"
	return 1
}
