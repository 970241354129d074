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

# What scenarios change of a CPU (1), and whether the machine is as it was when settings went to /tmp/before: no
# journal, no lease.
cpu=/sys/devices/system/cpu/cpu1

settings() { grep . $cpu/cpuidle/state*/disable $cpu/power/pm_qos_resume_latency_us $cpu/online; }

gone() {
	settings | cmp /tmp/before - && [ ! -e /run/sibfwd/journal ] &&
		[ -z "$(cat /sys/class/misc/sibidle/leases)" ]
}
