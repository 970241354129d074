#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What tests/tool/restore.t is worth: each of these changes to idlectl breaks the giving back, and each
# turns that test red.
. tests/tap.sh

flags=$(pkg-config --cflags --libs hwloc jansson) || bail "no pkg-config"

# mutant NAME FILE SED-EXPRESSION: $tmp/NAME/idlectl has that change.
mutant() {
	mkdir "$tmp/$1"
	cp -r idlectl "$tmp/src"
	sed -i "$3" "$tmp/src/$2"
	! cmp -s "idlectl/$2" "$tmp/src/$2" || { echo "the change does not apply"; return 1; }
	# shellcheck disable=SC2086 # one word each
	gcc -std=gnu11 -w -D_GNU_SOURCE -DSIBFWD_VERSION='"mutant"' -I "$tmp/src" -Ikmod \
		"$tmp"/src/*.c -o "$tmp/$1/idlectl" $flags -lm -pthread
	rc=$?
	rm -rf "$tmp/src"
	return $rc
}

# red NAME PART: that part of the test (ONLY) fails with it, and not for want of anything.
red() {
	IDLECTL=$tmp/$1/idlectl ONLY=$2 BUILD=${BUILD:-build} tests/tool/restore.t >"$tmp/said" 2>&1
	grep -q '^not ok' "$tmp/said" || { cat "$tmp/said"; return 1; }
	# The holders of a mutant may stay.
	pkill -KILL -f "^$tmp/$1/idlectl " || true
}

# The test is green with a program that is built so and not changed.
green() {
	mutant same err.c '1s/$/ /' && IDLECTL=$tmp/same/idlectl ONLY=$1 BUILD=${BUILD:-build} \
		tests/tool/restore.t >"$tmp/said" 2>&1 || { cat "$tmp/said"; return 1; }
}
ok "built so and not changed it is green" green others

while IFS='|' read -r name part file expression; do
	ok "mutant: $name" mutant "$name" "$file" "$expression"
	ok "$name turns the test red" red "$name" "$part"
done <<'EOF'
no-restore|limit:50|journal.c|s/} else if (sys_write(path, old) != 0) {/} else if (false) {/
no-supervisor|limit:50|control.c|s/rc = journal_restore(&r, &err);/rc = 0; memset(\&r, 0, sizeof(r));/
write-before-journal|limit:50|journal.c|s/if (append(j->fd, json_pack("{s:s, s:s, s:s}"/if (sys_write(path, value) != 0 || append(j->fd, json_pack("{s:s, s:s, s:s}"/
no-own-restore|limit:50|control.c|s/rc = journal_undo(&c->journal, &r, err);/rc = 0; memset(\&r, 0, sizeof(r));/
removed-unrestored|others|journal.c|s/return rc == 0 ? journal_remove(err) : rc;/journal_remove(err); return rc;/
own-by-name|others|journal.c|s/if (!load_own(&c, j->fd))/if (!load(\&c))/
failed-is-gone|others|journal.c|s/errno == ENOENT || errno == ENODEV/true/
no-guard|others|run.c|s/control_guard(c);/;/
EOF
end_tests
