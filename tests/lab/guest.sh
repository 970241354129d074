# shellcheck shell=sh
# SPDX-License-Identifier: BSD-3-Clause
#
# TAP for the shell scripts that run inside an emulated machine. Source it with $about set, the word that
# every check begins with.
n=0
failed=0

ok() { # text, condition...
	text=$1
	shift
	n=$((n + 1))
	if "$@" >/tmp/why 2>&1; then
		echo "ok $n - $about: $text"
	else
		echo "not ok $n - $about: $text"
		sed 's/^/# /' /tmp/why /tmp/err
		failed=1
	fi
}
