#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What every file of the project keeps to.
. tests/tap.sh
files() { git ls-files --cached --others --exclude-standard -- "$@"; }

ok "git tells which files there are" [ -n "$(files '*.[ch]')" ]
files '*.[ch]' | xargs clang-format --dry-run -Werror >"$tmp/format" 2>&1
ok "C sources are as .clang-format wants them" is "$(head -n 20 "$tmp/format")" "" complaints

missing=$(files | grep -v -e '^LICENSE$' -e '^kmod/COPYING$' -e '\.md$' -e '\.csv$' -e '\.png$' -e '\.svg$' -e '\.topology$' -e '^\.gitignore$' |
	while read -r f; do head -n 2 "$f" | grep -q SPDX-License-Identifier || echo "$f"; done)
ok "every source carries an SPDX line at its top" is "$missing" "" "list of those without"

bad=
for f in $(files scripts '*.t'); do
	head -n 1 "$f" | grep -q bash || continue
	bash -n "$f" || bad="$bad $f"
	case $f in *.sh) ;; *) [ -x "$f" ] || bad="$bad $f" ;; esac
done
ok "shell scripts parse and can be run" is "$bad" "" "list of those that cannot"

end_tests
