/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IDLECTL_JOURNAL_H
#define IDLECTL_JOURNAL_H

/*
 * Every change to a file of the machine, written down before it is made, in /run/sibfwd/journal: one
 * JSON object a line, the first of which tells whose it is. Whoever finds a journal can put the old
 * values back. Only the owner of the lock may write, change or restore.
 */
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <jansson.h>

#include "err.h"

#define RUN_DIR "/run/sibfwd"
#define JOURNAL_PATH RUN_DIR "/journal"

struct journal {
	int fd; /* -1: not open */
	off_t header; /* bytes of the first line */
};

/* Make RUN_DIR. Returns 0, or -1 with err set. */
int journal_dir(struct err *err);

/*
 * Take the lock of the machine, which keeps two controllers apart. It belongs to the open file
 * description: children keep it. who is a word for people ("idlectl run"). Returns the descriptor, or
 * -1 with err set: somebody else has it, or RUN_DIR cannot be written (no root).
 */
int journal_lock(const char *who, struct err *err);

/*
 * Who has the lock, for people; false where nobody has, or where that cannot be looked at. NULL: it is
 * not asked who.
 */
struct lock_owner {
	pid_t pid;
	unsigned long long start; /* ticks after the boot, as /proc/PID/stat has it */
	char who[64];
};
bool journal_locked(struct lock_owner *owner);

/* Whether that process has ended, its number perhaps in use again: only its supervisor has the lock. */
bool journal_owner_gone(const struct lock_owner *owner);

/*
 * When a process started, in ticks after the boot; 0: there is none of that number, or it has ended and
 * waits to be told of.
 */
unsigned long long process_start(pid_t pid);

/* Returns 0, or -1 with err set where somebody left a journal: it offers "idlectl restore". */
int journal_check(struct err *err);

/* Begin a journal. Returns 0, or -1 with err set. */
int journal_begin(struct journal *j, const char *who, struct err *err);

/*
 * Write value to a file of the machine (path as for sys_read()), after the old value has been written
 * down and flushed. path is below /sys or /proc/sys. A file that has the value already is left alone, be
 * it the word in brackets, as in "always [madvise] never". Returns 0, or -1 with err set and the file as it
 * was: also where it then reads otherwise than what was written.
 */
int journal_write(struct journal *j, const char *path, const char *value, struct err *err);

/* What a restore did. */
struct restored {
	unsigned int restored; /* files put back */
	unsigned int kept; /* files that somebody else has changed meanwhile, or that are gone */
	unsigned int failed; /* files that could not be put back: the journal stays */
	bool foreign; /* the journal was of another boot, nothing was done */
	bool torn; /* its end is missing: what is whole was put back */
	unsigned int damaged; /* a line that is none of a journal (1: the first): the journal stays */
	json_t *files; /* array of {path, result, value} */
};

/*
 * Put back what the journal tells, last change first, and remove it. Can be repeated. Without a
 * journal nothing is done. Returns 0, or -1 with err set (exit code 6) and the journal kept where a file
 * could not be put back, or a line tells nothing. restored_free() frees what is in r.
 */
int journal_restore(struct restored *r, struct err *err);
void restored_free(struct restored *r);

/* One line a file that is not as it was before, on stderr. */
void restored_print(const struct restored *r, const char *program);

/* The same for one's own journal, which stays and is empty after it. */
int journal_undo(struct journal *j, struct restored *r, struct err *err);

/* Close it, and remove it where remove says that all has been put back. */
void journal_end(struct journal *j, bool remove);

/*
 * Whether there is a journal of this boot that nobody works with: something was killed. *who is for
 * people, to be freed.
 */
bool journal_leftover(char **who);

#endif
