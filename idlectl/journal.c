/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "journal.h"
#include "sysroot.h"

#define LOCK_PATH RUN_DIR "/lock"
#define VERSION 1

static char *
boot_id(void)
{
	char *id = sys_read("/proc/sys/kernel/random/boot_id");

	/* A recorded tree has one boot only. */
	return id != NULL ? id : sys_format("none");
}

unsigned long long
process_start(pid_t pid)
{
	char path[64], text[1024], *at, state;
	unsigned long long start = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (f == NULL)
		return 0;
	/* The name, in parentheses, may hold anything. */
	at = fgets(text, sizeof(text), f) != NULL ? strrchr(text, ')') : NULL;
	if (at == NULL ||
			sscanf(at + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
					&state, &start) != 2 ||
			strchr("ZX", state) != NULL)
		start = 0;
	fclose(f);
	return start;
}

/* ---- the lock ---- */

/* RUN_DIR, and in a recorded tree what is above it. */
int
journal_dir(struct err *err)
{
	static const char *const dirs[] = { "/run", RUN_DIR };

	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		char *path = sys_path("%s", dirs[i]);
		int rc = mkdir(path, 0755) == 0 || errno == EEXIST ? 0 : errno;

		free(path);
		if (rc != 0)
			return err_set(err, EXIT_FAILED, "%s: %s%s", dirs[i], strerror(rc),
					rc == EACCES || rc == EPERM
							? " (changing how a CPU idles needs root; looking does not)"
							: "");
	}
	return 0;
}

/* Whoever can open it can take it, so it is for root. */
static int
open_lock(int flags)
{
	char *path = sys_path("%s", LOCK_PATH);
	int fd = open(path, flags | O_CLOEXEC, 0600);

	free(path);
	return fd;
}

static void
read_owner_text(int fd, struct lock_owner *owner)
{
	char text[256];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
	int pid = 0;

	memset(owner, 0, sizeof(*owner));
	text[n > 0 ? n : 0] = '\0';
	if (sscanf(text, "%d %llu %63[^\n]", &pid, &owner->start, owner->who) == 3)
		owner->pid = pid;
	one_line(owner->who);
}

/*
 * The text follows the lock by a moment: an owner that is gone may be the one before. Where it stays
 * so, a supervisor has the lock.
 */
static void
read_owner(int fd, struct lock_owner *owner)
{
	const struct timespec nap = { .tv_nsec = 10000000 };

	read_owner_text(fd, owner);
	for (int tries = 0; tries < 5 && journal_owner_gone(owner); tries++) {
		nanosleep(&nap, NULL);
		read_owner_text(fd, owner);
	}
}

/* Who only looks has it for a moment, so that is not the end yet. Returns 0 or an errno. */
static int
take_lock(int fd)
{
	const struct timespec nap = { .tv_nsec = 10000000 };

	for (int tries = 0; tries < 20; tries++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK)
			return errno;
		nanosleep(&nap, NULL);
	}
	return EWOULDBLOCK;
}

int
journal_lock(const char *who, struct err *err)
{
	struct lock_owner owner;
	char text[256];
	int fd, len, rc;

	if (journal_dir(err) != 0)
		return -1;
	fd = open_lock(O_RDWR | O_CREAT);
	if (fd < 0)
		return err_set(err, EXIT_FAILED, "%s: %s%s", LOCK_PATH, strerror(errno),
				errno == EACCES ? " (changing how a CPU idles needs root; looking does not)"
						: "");
	rc = take_lock(fd);
	if (rc != 0) {
		read_owner(fd, &owner);
		close(fd);
		if (rc != EWOULDBLOCK)
			return err_set(err, EXIT_FAILED, "%s: %s", LOCK_PATH, strerror(rc));
		return err_set(err, EXIT_FAILED, "in use by process %d (%s)%s", (int)owner.pid,
				owner.who,
				strcmp(owner.who, "idlectl set") == 0 ? ": idlectl restore ends it"
								      : "");
	}
	/* It may be there from an earlier version, or by a careless umask. */
	if (fchmod(fd, 0600) != 0)
		fprintf(stderr, "%s: %s: %s\n", who, LOCK_PATH, strerror(errno));
	len = snprintf(text, sizeof(text), "%d %llu %s\n", (int)getpid(), process_start(getpid()),
			who);
	if (ftruncate(fd, 0) == 0 && pwrite(fd, text, (size_t)len, 0) == len)
		return fd;
	err_set(err, EXIT_FAILED, "%s: %s", LOCK_PATH, strerror(errno));
	close(fd);
	return -1;
}

bool
journal_owner_gone(const struct lock_owner *owner)
{
	return owner->start == 0 || process_start(owner->pid) != owner->start;
}

/* ---- writing ---- */

/* A line, as a whole or not at all. */
static int
append(int fd, json_t *line)
{
	char *text = line != NULL ? json_dumps(line, JSON_COMPACT) : NULL;
	off_t end = lseek(fd, 0, SEEK_END);
	struct {
		char *text;
		size_t len;
	} whole;
	int rc = 0;

	json_decref(line);
	if (text == NULL) {
		errno = ENOMEM;
		return -1;
	}
	whole.text = sys_format("%s\n", text);
	whole.len = strlen(whole.text);
	errno = EIO;
	if (end < 0 || write(fd, whole.text, whole.len) != (ssize_t)whole.len ||
			fdatasync(fd) != 0) {
		int saved = errno;

		if (end >= 0 && ftruncate(fd, end) != 0)
			saved = errno;
		errno = saved == 0 ? ENOSPC : saved;
		rc = -1;
	}
	free(whole.text);
	free(text);
	return rc;
}

void
journal_end(struct journal *j, bool remove)
{
	char *path = sys_path("%s", JOURNAL_PATH);

	if (j->fd >= 0) {
		close(j->fd);
		if (remove)
			unlink(path);
	}
	j->fd = -1;
	free(path);
}

int
journal_begin(struct journal *j, const char *who, struct err *err)
{
	char *path = sys_path("%s", JOURNAL_PATH), *boot = boot_id();
	json_t *header = json_pack("{s:i, s:s, s:i, s:I, s:s}", "journal", VERSION, "boot", boot,
			"pid", (int)getpid(), "start", (json_int_t)process_start(getpid()), "who",
			who);
	int rc = 0;

	j->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (j->fd < 0 || append(j->fd, header) != 0) {
		rc = err_set(err, EXIT_FAILED, "%s: %s", JOURNAL_PATH, strerror(errno));
		if (j->fd < 0)
			json_decref(header);
		journal_end(j, true);
	} else {
		j->header = lseek(j->fd, 0, SEEK_END);
	}
	free(boot);
	free(path);
	return rc;
}

/*
 * What has to be written to a file so that it is as it is: what it holds, or of a choice, as
 * "always [madvise] never", the word in brackets. As sys_read().
 */
static char *
read_value(const char *path)
{
	char *text = sys_read("%s", path), *open = text != NULL ? strchr(text, '[') : NULL, *close;

	if (open == NULL || (open > text && open[-1] != ' '))
		return text;
	close = strchr(open, ']');
	if (close == NULL || (close[1] != '\0' && close[1] != ' ') || strchr(close, '[') != NULL)
		return text;
	*close = '\0';
	memmove(text, open + 1, (size_t)(close - open));
	return text;
}

/*
 * Read back what was written. A kernel that took it for something else has that undone at once: whoever
 * restores would take it for somebody else's.
 */
static int
check_written(const char *path, const char *old, const char *value, struct err *err)
{
	char *now = read_value(path);
	int rc = 0;

	if (now == NULL || strcmp(now, value) != 0) {
		rc = err_set(err, EXIT_FAILED, "%s: reads %s after %s was written", path,
				now != NULL ? now : strerror(errno), value);
		if (sys_write(path, old) != 0)
			err_set(err, EXIT_UNRESTORED, "%s: %s cannot be put back: %s", path, old,
					strerror(errno));
	}
	free(now);
	return rc;
}

int
journal_write(struct journal *j, const char *path, const char *value, struct err *err)
{
	char *old = read_value(path);
	json_t *text;
	int rc = 0;

	if (old == NULL)
		return err_set(err, EXIT_FAILED, "%s: %s", path, strerror(errno));
	text = json_string(old);
	if (text == NULL)
		rc = err_set(err, EXIT_FAILED,
				"%s: holds what is no text, and could not be put back; nothing is changed",
				path);
	if (rc != 0 || strcmp(old, value) == 0) {
		json_decref(text);
		free(old);
		return rc;
	}
	if (append(j->fd, json_pack("{s:s, s:o, s:s}", "path", path, "old", text, "new", value)) !=
			0)
		rc = err_set(err, EXIT_FAILED, "%s: %s; nothing is changed", JOURNAL_PATH,
				strerror(errno));
	else if (sys_write(path, value) != 0)
		rc = err_set(err, EXIT_FAILED, "%s: %s", path, strerror(errno));
	else
		rc = check_written(path, old, value, err);
	free(old);
	return rc;
}

/* ---- reading and restoring ---- */

struct contents {
	json_t *header; /* NULL: not even that is whole */
	json_t *entries; /* array, in the order they were made */
	unsigned int damaged; /* number of a whole line that is none of a journal, 0: none */
	bool torn; /* the last line has no end: its writer was killed, and changed nothing after it */
};

static bool
is_entry(const json_t *line)
{
	const char *path = json_string_value(json_object_get(line, "path"));

	/* Nothing but these directories is ever written to. */
	return path != NULL &&
			(strncmp(path, "/sys/", 5) == 0 || strncmp(path, "/proc/sys/", 10) == 0) &&
			strstr(path, "/../") == NULL &&
			json_is_string(json_object_get(line, "old")) &&
			json_is_string(json_object_get(line, "new"));
}

static void
parse(struct contents *c, const char *text, size_t size)
{
	const char *end = text + size, *line_end;

	c->entries = json_array();
	for (unsigned int n = 1; text < end; n++, text = line_end + 1) {
		json_t *json;

		line_end = memchr(text, '\n', (size_t)(end - text));
		if (line_end == NULL)
			line_end = end;
		json = json_loadb(text, (size_t)(line_end - text), 0, NULL);
		if (n == 1 && json_is_string(json_object_get(json, "boot"))) {
			c->header = json;
			continue;
		}
		if (is_entry(json)) {
			json_array_append_new(c->entries, json);
			continue;
		}
		json_decref(json);
		if (line_end == end)
			c->torn = true;
		else
			c->damaged = c->damaged == 0 ? n : c->damaged;
	}
	c->torn |= size == 0;
}

/* One's own, whatever has become of its name. Returns false with errno set where it cannot be read. */
static bool
load_own(struct contents *c, int fd)
{
	off_t size = lseek(fd, 0, SEEK_END);
	char *text = size < 0 ? NULL : malloc((size_t)size + 1);
	bool read = text != NULL && pread(fd, text, (size_t)size, 0) == size;

	memset(c, 0, sizeof(*c));
	if (read)
		parse(c, text, (size_t)size);
	free(text);
	return read;
}

/* The journal that is there. Returns false with errno set: ENOENT where there is none. */
static bool
load(struct contents *c)
{
	char *path = sys_path("%s", JOURNAL_PATH);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool read;

	free(path);
	memset(c, 0, sizeof(*c));
	if (fd < 0)
		return false;
	read = load_own(c, fd);
	close(fd);
	return read;
}

static void
unload(struct contents *c)
{
	json_decref(c->header);
	json_decref(c->entries);
}

/* Whose journal it is; false where not even that is whole. */
static bool
owner_of(const struct contents *c, struct lock_owner *owner)
{
	const char *who = json_string_value(json_object_get(c->header, "who"));

	memset(owner, 0, sizeof(*owner));
	owner->pid = (pid_t)json_integer_value(json_object_get(c->header, "pid"));
	owner->start = (unsigned long long)json_integer_value(json_object_get(c->header, "start"));
	snprintf(owner->who, sizeof(owner->who), "%s", who != NULL ? who : "unknown");
	one_line(owner->who);
	return c->header != NULL;
}

/* The same of the journal that is there. */
static bool
read_owner_of_journal(struct lock_owner *owner)
{
	struct contents c;
	bool found = load(&c) && owner_of(&c, owner);

	unload(&c);
	return found;
}

bool
journal_locked(struct lock_owner *owner)
{
	int fd = open_lock(O_RDONLY);
	struct lock_owner ignored;
	bool locked;

	/* Others than root see the journal, which is there as long as anything is changed. */
	if (fd < 0) {
		owner = owner != NULL ? owner : &ignored;
		return errno == EACCES && read_owner_of_journal(owner) &&
				!journal_owner_gone(owner);
	}
	/* A shared lock, for a moment: enough to see an exclusive one. */
	locked = flock(fd, LOCK_SH | LOCK_NB) != 0;
	if (locked && owner != NULL)
		read_owner(fd, owner);
	close(fd);
	return locked;
}

static bool
of_this_boot(const struct contents *c)
{
	char *boot = boot_id();
	const char *theirs = json_string_value(json_object_get(c->header, "boot"));
	bool same = theirs == NULL || strcmp(theirs, boot) == 0;

	free(boot);
	return same;
}

static int
journal_remove(struct err *err)
{
	char *path = sys_path("%s", JOURNAL_PATH);
	int rc = 0;

	if (unlink(path) != 0 && errno != ENOENT)
		rc = err_set(err, EXIT_UNRESTORED, "%s: %s", JOURNAL_PATH, strerror(errno));
	free(path);
	return rc;
}

int
journal_check(struct err *err)
{
	struct contents c;
	bool ours;

	if (!load(&c))
		return 0;
	ours = of_this_boot(&c);
	unload(&c);
	/* What another boot left is gone with it. */
	if (!ours)
		return journal_remove(err);
	return err_set(err, EXIT_FAILED,
			"%s is there: an earlier run has ended and left its changes (idlectl restore puts them back)",
			JOURNAL_PATH);
}

static void
note(struct restored *r, const char *path, const char *result, const char *value)
{
	char *where = one_line(sys_format("%s", path)), *text = one_line(sys_format("%s", value));

	json_array_append_new(r->files,
			json_pack("{s:s, s:s, s:s}", "path", where, "result", result, "value",
					text));
	free(where);
	free(text);
}

static void
put_back(struct restored *r, const json_t *entry)
{
	const char *path = json_string_value(json_object_get(entry, "path"));
	const char *old = json_string_value(json_object_get(entry, "old"));
	const char *ours = json_string_value(json_object_get(entry, "new"));
	char *now = read_value(path);

	if (now == NULL && (errno == ENOENT || errno == ENODEV)) {
		r->kept++;
		note(r, path, "gone", strerror(errno));
	} else if (now == NULL) {
		r->failed++;
		note(r, path, "failed", strerror(errno));
	} else if (strcmp(now, old) == 0) {
		/* Written down and not made, or put back before. */
	} else if (strcmp(now, ours) != 0) {
		r->kept++;
		note(r, path, "changed", now);
	} else if (sys_write(path, old) != 0) {
		r->failed++;
		note(r, path, "failed", strerror(errno));
	} else {
		r->restored++;
		note(r, path, "restored", old);
	}
	free(now);
}

/* Put back what a journal tells, from its end. */
static int
undo(struct contents *c, struct restored *r, struct err *err)
{
	r->torn = c->torn;
	r->foreign = !of_this_boot(c);
	r->damaged = r->foreign ? 0 : c->damaged;
	for (size_t i = json_array_size(c->entries); i-- > 0 && !r->foreign;)
		put_back(r, json_array_get(c->entries, i));
	unload(c);
	if (r->failed != 0)
		return err_set(err, EXIT_UNRESTORED,
				"%u files could not be put back; idlectl restore tries again",
				r->failed);
	if (r->damaged != 0)
		return err_set(err, EXIT_UNRESTORED,
				"%s: line %u tells nothing: see by hand what it was about, and remove the file; all other lines are put back",
				JOURNAL_PATH, r->damaged);
	return 0;
}

int
journal_restore(struct restored *r, struct err *err)
{
	struct contents c;
	int rc;

	memset(r, 0, sizeof(*r));
	r->files = json_array();
	if (!load(&c))
		return errno == ENOENT ? 0
				       : err_set(err, EXIT_UNRESTORED, "%s: %s", JOURNAL_PATH,
							 strerror(errno));
	rc = undo(&c, r, err);
	return rc == 0 ? journal_remove(err) : rc;
}

int
journal_undo(struct journal *j, struct restored *r, struct err *err)
{
	struct contents c;
	int rc;

	memset(r, 0, sizeof(*r));
	r->files = json_array();
	if (!load_own(&c, j->fd))
		return err_set(err, EXIT_UNRESTORED, "%s: %s", JOURNAL_PATH, strerror(errno));
	rc = undo(&c, r, err);
	if (rc == 0 && ftruncate(j->fd, j->header) != 0)
		rc = err_set(err, EXIT_UNRESTORED, "%s: %s", JOURNAL_PATH, strerror(errno));
	return rc;
}

void
restored_free(struct restored *r)
{
	json_decref(r->files);
	memset(r, 0, sizeof(*r));
}

void
restored_print(const struct restored *r, const char *program)
{
	size_t i;
	json_t *file;

	if (r->foreign)
		fprintf(stderr, "%s: the journal was of another boot: removed, nothing changed\n",
				program);
	if (r->torn)
		fprintf(stderr, "%s: the journal's end was missing; what is whole was looked at\n",
				program);
	json_array_foreach (r->files, i, file) {
		const char *path = json_string_value(json_object_get(file, "path"));
		const char *result = json_string_value(json_object_get(file, "result"));
		const char *value = json_string_value(json_object_get(file, "value"));

		if (strcmp(result, "changed") == 0)
			fprintf(stderr, "%s: %s is %s now, which somebody else wrote: left alone\n",
					program, path, value);
		else if (strcmp(result, "restored") != 0)
			fprintf(stderr, "%s: %s: %s\n", program, path, value);
	}
}

bool
journal_leftover(char **who)
{
	struct contents c;
	struct lock_owner owner;
	bool left;

	if (journal_locked(&owner) || !load(&c))
		return false;
	left = of_this_boot(&c);
	if (left)
		*who = owner_of(&c, &owner)
				? sys_format("process %d (%s)", (int)owner.pid, owner.who)
				: sys_format("a process");
	unload(&c);
	return left;
}
