#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What tests/tool/restore.t is worth: each of these changes to idlectl breaks the giving back, and each
# turns that test red.
. tests/tap.sh

flags=$(pkg-config --cflags --libs hwloc jansson) || bail "no pkg-config"

# compile FILE OBJECT
compile() {
	# shellcheck disable=SC2086 # one word each
	gcc -std=gnu11 -w -D_GNU_SOURCE -DSIBFWD_VERSION='"mutant"' -Iidlectl -Ikmod -Iapp -I"${BUILD:-build}/idlectl" $flags -c "$1" -o "$2"
}
mkdir "$tmp/objects"
for file in idlectl/*.c app/stats.c; do
	compile "$file" "$tmp/objects/$(basename "$file" .c).o" || bail "$file does not compile"
done

# mutant NAME FILE SED-EXPRESSION: $tmp/NAME/idlectl has that change.
mutant() {
	cp -r "$tmp/objects" "$tmp/$1"
	sed "$3" "idlectl/$2" >"$tmp/$1/$2"
	! cmp -s "idlectl/$2" "$tmp/$1/$2" || { echo "the change does not apply"; return 1; }
	# shellcheck disable=SC2086 # one word each
	compile "$tmp/$1/$2" "$tmp/$1/${2%.c}.o" && gcc "$tmp/$1"/*.o -o "$tmp/$1/idlectl" $flags -lm -pthread
}

# red NAME PART: that part of the test (ONLY) fails with it, and not for want of anything.
red() {
	FIRST=1 IDLECTL=$tmp/$1/idlectl ONLY=$2 BUILD=${BUILD:-build} tests/tool/restore.t >"$tmp/said" 2>&1
	grep -q '^not ok' "$tmp/said" || { cat "$tmp/said"; return 1; }
	# The holders of a mutant may stay.
	pkill -KILL -f "^$tmp/$1/idlectl " || true
}

# That part of the test is green with a program that is built so and not changed.
green() {
	IDLECTL=$tmp/same/idlectl ONLY=$1 BUILD=${BUILD:-build} tests/tool/restore.t >"$tmp/said" 2>&1 ||
		{ cat "$tmp/said"; return 1; }
}
ok "not changed" mutant same err.c '1s/$/ /'
ok "it is green: others" green others
ok "it is green: limit:50" green limit:50

while IFS='|' read -r name part file expression; do
	ok "mutant: $name" mutant "$name" "$file" "$expression"
	ok "$name turns the test red" eval '[ -x "$tmp/$name/idlectl" ] && red "$name" "$part"'
done <<'EOF'
no-restore|limit:50|journal.c|s/} else if (sys_write(path, old) != 0) {/} else if (false) {/
no-supervisor|limit:50|control.c|s/rc = journal_restore(&r, &err);/rc = 0; memset(\&r, 0, sizeof(r));/
write-before-journal|limit:50|journal.c|s/if (append(j->fd, json_pack("{s:s, s:o, s:s}"/if (sys_write(path, value) != 0 || append(j->fd, json_pack("{s:s, s:o, s:s}"/
no-own-restore|limit:50|control.c|s/rc = journal_undo(&c->journal, &r, err);/rc = 0; memset(\&r, 0, sizeof(r));/
removed-unrestored|others|journal.c|s/return rc == 0 ? journal_remove(err) : rc;/journal_remove(err); return rc;/
own-by-name|others|journal.c|s/if (!load_own(&c, j->fd))/if (!load(\&c))/
failed-is-gone|others|journal.c|s/errno == ENOENT || errno == ENODEV/true/
no-guard|others|run.c|s/guard(c);/;/
parse-stops|others|journal.c|s/c->damaged = c->damaged == 0 ? n : c->damaged;/break;/
guard-dies-of-its-words|others|run.c|s/signal(SIGPIPE, SIG_IGN);/SIG_DFL;/
messages-cut|others|run.c|s/O_CREAT | O_APPEND/O_CREAT | O_TRUNC | O_APPEND/
messages-of-the-holder-only|others|run.c|s/dup2(fd == STDERR_FILENO \&\& messages >= 0 ? messages : null, fd)/dup2(null, fd)/
EOF
end_tests
