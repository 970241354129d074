#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The first command of the README, in a copy of the sources as a clone has them.
set -u
. "${0%/*}/lib.sh"

copy=$tmp/clone
mkdir "$copy"
git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$copy"

ends_in_results() {
	(cd "$copy" && scripts/quickstart --force --windows=2 --duration=0.1) >"$tmp/out" 2>"$tmp/err" ||
		{ cat "$tmp/err"; return 1; }
	local dir
	dir=$(sed -n 's/^CSV: *\(.*\)\/windows.csv$/\1/p' "$tmp/out")
	grep -q "^as-is" "$tmp/out" && [ -s "$copy/$dir/windows.csv" ] &&
		[ -s "$copy/$dir/windows.png" ] && [ -s "$copy/$dir/bursts.svg" ] &&
		is "$(tail -n 1 "$tmp/out")" "report:   $dir/report.html" "last line" && [ -s "$copy/$dir/report.html" ] &&
		"$copy/build/app/sibfwd-report" check "$copy/$dir"
}

ok "scripts/quickstart ends in a table, CSV, pictures and a report" ends_in_results

refuses_out() {
	(cd "$copy" && scripts/quickstart --out=x) >"$tmp/out" 2>"$tmp/err"
	[ $? -eq 2 ] && grep -q -e --out "$tmp/err"
}

ok "--out is refused, and named" refuses_out

end_tests
