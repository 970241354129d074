#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The fuzz targets find nothing in FUZZ_SECONDS (20) each; all run at once.
set -u
targets="capture options result"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/capture" "$tmp/options" "$tmp/result" "$tmp/captures"
/usr/bin/python3 tests/data/make_captures.py "$tmp/captures"
find "$tmp/captures" -type f -size -64k ! -name '*.json' -exec cp {} "$tmp/capture" \;
build/app/dpdk-sibfwd --help | sed -n 's/^  \(--[a-z-]*=*\)\([A-Z]*\).*/\1/p' >"$tmp/options/all"

for t in $targets; do
	(cd "$tmp" && exec "$OLDPWD/build-fuzz/tests/fuzz_$t" -max_total_time="${FUZZ_SECONDS:-20}" \
		-artifact_prefix="$OLDPWD/build-fuzz/" -timeout=10 -rss_limit_mb=4096 -print_final_stats=1 "$tmp/$t" >"$tmp/$t.log" 2>&1) &
	pids="${pids-} $!"
done
set -- $pids
n=0
for t in $targets; do
	n=$((n + 1))
	if wait "$1"; then
		echo "ok $n - fuzz_$t: $(sed -n 's/^stat::number_of_executed_units: */runs: /p' "$tmp/$t.log")"
	else
		echo "not ok $n - fuzz_$t"
		tail -n 30 "$tmp/$t.log" | sed 's/^/# /'
	fi
	shift
done
echo "1..$n"
