#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What every file of the project keeps to.
set -u
n=0
ok() { # status, text
	n=$((n + 1))
	if [ "$1" -eq 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; fi
}
files() { git ls-files --cached --others --exclude-standard -- "$@"; }

[ -n "$(files '*.[ch]')" ]
ok $? "git tells which files there are"
out=$(files '*.[ch]' | xargs clang-format --dry-run -Werror 2>&1)
ok $? "C sources are as .clang-format wants them"
[ -z "$out" ] || head -n 20 <<<"$out" | sed 's/^/# /'

missing=$(files | grep -v -e '^LICENSE$' -e '^kmod/COPYING$' -e '\.md$' -e '\.csv$' -e '\.png$' -e '\.svg$' -e '^\.gitignore$' |
	while read -r f; do head -n 2 "$f" | grep -q SPDX-License-Identifier || echo "$f"; done)
[ -z "$missing" ]
ok $? "every source carries an SPDX line at its top"
[ -z "$missing" ] || sed 's/^/# /' <<<"$missing"

bad=0
for f in $(files scripts '*.t'); do
	head -n 1 "$f" | grep -q bash || continue
	bash -n "$f" || bad=1
	[ -x "$f" ] || { case $f in *.sh) ;; *) echo "# $f is not executable"; bad=1 ;; esac; }
done
ok $bad "shell scripts parse and can be run"

echo "1..$n"
