#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What tests/tool/restore.t is worth: each of these changes to idlectl breaks the giving back, and each
# turns that test red.
. tests/tap.sh

flags=$(pkg-config --cflags --libs hwloc jansson) || bail "no pkg-config"

# mutant NAME FILE SED-EXPRESSION: idlectl with that change, in $tmp/NAME.
mutant() {
	cp -r idlectl "$tmp/src"
	sed -i "$3" "$tmp/src/$2"
	! cmp -s "idlectl/$2" "$tmp/src/$2" || { echo "the change does not apply"; return 1; }
	# shellcheck disable=SC2086 # one word each
	gcc -std=gnu11 -w -D_GNU_SOURCE -DSIBFWD_VERSION='"mutant"' -I "$tmp/src" -Ikmod \
		"$tmp"/src/*.c -o "$tmp/$1" $flags -lm -pthread
	rm -rf "$tmp/src"
}

# red NAME SCENARIO: the test fails with it, and not for want of anything.
red() {
	IDLECTL=$tmp/$1 ONLY=$2 BUILD=${BUILD:-build} tests/tool/restore.t >"$tmp/said" 2>&1
	grep -q '^not ok' "$tmp/said" || { cat "$tmp/said"; return 1; }
}

while IFS='|' read -r name file expression; do
	ok "mutant: $name" mutant "$name" "$file" "$expression"
	ok "$name turns the test red" red "$name" limit:50
done <<'EOF'
no-restore|journal.c|s/} else if (sys_write(path, old) != 0) {/} else if (false) {/
no-supervisor|control.c|s/rc = journal_restore(&r, &err);/rc = 0; memset(\&r, 0, sizeof(r));/
write-before-journal|journal.c|s/if (append(j->fd, json_pack("{s:s, s:s, s:s}"/if (sys_write(path, value) != 0 || append(j->fd, json_pack("{s:s, s:s, s:s}"/
no-own-restore|control.c|s/rc = journal_undo(&c->journal, &r, err);/rc = 0; memset(\&r, 0, sizeof(r));/
EOF
end_tests
