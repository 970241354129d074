/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The commands that change something: scenarios are applied by this process (run), or by one that
 * stays behind (set), and given back by it or by restore.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "command.h"
#include "control.h"
#include "sysroot.h"

#define HOLDER "idlectl set"
#define MESSAGES RUN_DIR "/messages"
#define ENDING_S 10 /* that a holder may take to give everything back */

/* ---- scenarios ---- */

/* A word of the table, or of a state, as it is printed. */
struct listed {
	const struct word_row *row;
	char name[IDLE_NAME_MAX];
	bool works;
	struct err why; /* not */
};

static json_t *
word_json(const struct listed *w)
{
	json_t *json = json_pack("{s:s, s:s, s:s, s:b}", "word", w->name, "help", w->row->help,
			"needs", w->row->needs, "works", w->works);

	if (w->row->unit != NULL)
		json_object_set_new(json, "unit", json_string(w->row->unit));
	if (!w->works)
		json_object_set_new(json, "reason", json_string(w->why.text));
	return json;
}

static void
print_word(const struct options *o, json_t *all, const struct listed *w)
{
	char name[IDLE_NAME_MAX + 16];

	if (o->json) {
		json_array_append_new(all, word_json(w));
		return;
	}
	snprintf(name, sizeof(name), "%s%s%s", w->name, w->row->unit != NULL ? ":" : "",
			w->row->unit == NULL || o->words ? "" : w->row->unit);
	if (o->words)
		printf("%s\n", name);
	else
		printf("%-10s  %-16s  %s\n", name, w->row->needs, w->row->help);
	if (!o->words && !w->works)
		printf("%10s  not here: %s\n", "", w->why.text);
}

/* A row of the table: one word, or one for each idle state. */
static void
print_row(const struct options *o, json_t *all, const struct word_row *row, unsigned int cpu,
		const struct idle_states *states)
{
	struct listed w = { .row = row };

	/* The shell wants names, each time a key is pressed. */
	w.works = o->words || row->check(cpu, row, &w.why) == 0;
	if (row->name != NULL) {
		snprintf(w.name, sizeof(w.name), "%s", row->name);
		print_word(o, all, &w);
		return;
	}
	for (unsigned int i = 0; i < states->nb; i++) {
		cpuidle_word(&states->at[i], w.name);
		print_word(o, all, &w);
	}
	if (!w.works && !o->json && !o->words)
		printf("%-10s  %-16s  %s\n%10s  not here: %s\n", "STATE", row->needs, row->help, "",
				w.why.text);
}

int
command_scenarios(const struct options *o, struct err *err)
{
	struct topology t;
	struct idle_states states;
	json_t *all;
	int cpu;

	if (topology_open(&t, o->topology, err) != 0)
		return -1;
	cpu = command_cpu(o, &t, hwloc_bitmap_first(t.online), true, err);
	topology_close(&t);
	if (cpu < 0)
		return -1;
	all = json_array();
	cpuidle_read(&states, (unsigned int)cpu);
	if (!o->json && !o->words)
		printf("Words of one group exclude each other; words of several are joined by \"+\".\n");
	for (size_t i = 0; i < nb_word_rows; i++) {
		if (i > 0 && word_rows[i].kind != word_rows[i - 1].kind && !o->json && !o->words)
			printf("\n");
		print_row(o, all, &word_rows[i], (unsigned int)cpu, &states);
	}
	if (o->json)
		command_json(all, JSON_INDENT(2));
	json_decref(all);
	return 0;
}

/* ---- run and set ---- */

static void
ending_signals(sigset_t *set)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };

	sigemptyset(set);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaddset(set, signals[i]);
}

/* Stay off the CPU that is to idle, where there is another one. Returns the mask as it was. */
static cpu_set_t
leave_cpu(unsigned int cpu)
{
	cpu_set_t before, set;

	if (sched_getaffinity(0, sizeof(before), &before) != 0) {
		CPU_ZERO(&before);
		return before;
	}
	set = before;
	if (cpu < CPU_SETSIZE)
		CPU_CLR(cpu, &set);
	if (CPU_COUNT(&set) == 0)
		fprintf(stderr, "idlectl: CPU %u is the only one that this process may run on: it disturbs what it asks for\n",
				cpu);
	else
		sched_setaffinity(0, sizeof(set), &set);
	return before;
}

/* All that can be said of a scenario before anything is changed. */
static int
prepare(const struct options *o, struct scenario *s, struct err *err)
{
	struct topology t;
	struct idle_states states;
	int cpu;

	if (scenario_parse(s, o->scenario, err) != 0 || topology_open(&t, o->topology, err) != 0)
		return -1;
	cpu = command_cpu(o, &t, -1, false, err);
	topology_close(&t);
	if (cpu < 0)
		return -1;
	cpuidle_read(&states, (unsigned int)cpu);
	return scenario_check(s, (unsigned int)cpu, &states, err) == 0 ? cpu : -1;
}

static int
apply(struct control *c, unsigned int cpu, const struct scenario *s, struct err *err)
{
	struct err undo;

	/* Nothing begins without a supervisor, which may have been lost by now. */
	if (control_apply(c, cpu, s, err) == 0 && control_verify(c, err) == 0 &&
			control_guard(c, err) == 0)
		return 0;
	if (control_end(c, &undo) != 0)
		*err = undo;
	return -1;
}

/* What the command is to find as we found it. */
struct inherited {
	sigset_t mask;
	void (*sigpipe)(int);
	cpu_set_t cpus;
};

static pid_t
start(char *const *argv, const struct inherited *from)
{
	pid_t pid, parent = getpid();
	int saved;

	fflush(NULL);
	pid = fork();
	if (pid != 0)
		return pid;
	/* Without us the scenario ends, and what the command does means something else. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(126);
	if (CPU_COUNT(&from->cpus) > 0)
		sched_setaffinity(0, sizeof(from->cpus), &from->cpus);
	signal(SIGPIPE, from->sigpipe);
	sigprocmask(SIG_SETMASK, &from->mask, NULL);
	execvp(argv[0], argv);
	saved = errno;
	signal(SIGPIPE, SIG_IGN);
	fprintf(stderr, "idlectl: %s: %s\n", argv[0], strerror(saved));
	/* As the shell has it: 127 not found, 126 cannot be run. */
	_exit(saved == ENOENT ? 127 : 126);
}

/* A process that runs goes on without a supervisor; it says so, once for each that was lost. */
static void
guard(struct control *c)
{
	struct err err;

	if (control_guard(c, &err) != 0)
		fprintf(stderr, "%s: %s\n", c->who, err.text);
}

/* Wait for the command; signals that are not from the terminal, where it gets them too, are passed on. */
static int
wait_for(struct control *c, pid_t pid, const sigset_t *signals)
{
	int status;

	for (;;) {
		siginfo_t info;
		int sig = sigwaitinfo(signals, &info);

		if (sig == SIGCHLD && waitpid(pid, &status, WNOHANG) != 0)
			break;
		if (sig == SIGCHLD)
			guard(c);
		if (sig > 0 && sig != SIGCHLD && info.si_code <= 0)
			kill(pid, sig);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int
command_run(const struct options *o, struct err *err)
{
	const struct timespec now = { 0 };
	struct control c;
	struct scenario s;
	struct inherited from;
	sigset_t signals;
	pid_t pid;
	int rc, cpu = prepare(o, &s, err);

	if (cpu < 0)
		return -1;
	/* From here on a signal ends in good order; SIGKILL is the supervisor's. */
	ending_signals(&signals);
	sigaddset(&signals, SIGCHLD);
	/* Ignored, as a parent may have left it, no child's end would be told. */
	signal(SIGCHLD, SIG_DFL);
	sigprocmask(SIG_BLOCK, &signals, &from.mask);
	/* Nor is a reader of our words that is gone a reason to die. */
	from.sigpipe = signal(SIGPIPE, SIG_IGN);
	from.cpus = leave_cpu((unsigned int)cpu);
	if (control_begin(&c, "idlectl run", err) != 0 ||
			apply(&c, (unsigned int)cpu, &s, err) != 0)
		return -1;
	sigdelset(&signals, SIGCHLD);
	rc = sigtimedwait(&signals, NULL, &now);
	sigaddset(&signals, SIGCHLD);
	if (rc > 0) {
		rc += 128;
	} else if ((pid = start(o->argv, &from)) < 0) {
		struct err undo;

		err_set(err, EXIT_FAILED, "%s: %s", o->argv[0], strerror(errno));
		if (control_end(&c, &undo) != 0)
			*err = undo;
		return -1;
	} else {
		rc = wait_for(&c, pid, &signals);
	}
	if (control_end(&c, err) != 0)
		return -1;
	/* stdout is the command's. */
	if (o->json) {
		json_t *json = json_pack(
				"{s:i, s:s, s:i}", "cpu", cpu, "scenario", s.text, "exit", rc);

		json_dumpf(json, stderr, 0);
		fputc('\n', stderr);
		json_decref(json);
	}
	return rc;
}

/* What the holder says to the command that started it. */
struct answer {
	int rc;
	struct err err;
};

static double
now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

/* Until one of the signals comes; with a time-to-live, not longer than that. */
static void
wait_end(struct control *c, const sigset_t *signals, double ttl)
{
	double end = now() + ttl;

	for (;;) {
		int sig;
		double left = end - now();
		struct timespec ts = { .tv_sec = (time_t)left,
			.tv_nsec = (long)(1e9 * (left - (double)(time_t)left)) };

		if (ttl > 0 && left <= 0)
			return;
		sig = ttl > 0 ? sigtimedwait(signals, NULL, &ts) : sigwaitinfo(signals, NULL);
		if (sig == SIGCHLD)
			guard(c);
		else if (sig > 0)
			return;
	}
}

/* Where a holder and its supervisor say what is for "idlectl restore". Returns -1 with err set. */
static int
open_messages(struct err *err)
{
	char *path;
	int fd;

	if (journal_dir(err) != 0)
		return -1;
	path = sys_path(MESSAGES);
	/* Behind what nobody has read yet. */
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	free(path);
	return fd >= 0 ? fd : err_set(err, EXIT_FAILED, "%s: %s", MESSAGES, strerror(errno));
}

/* With the lock: pass on what holders said, which nobody has read yet. */
static void
print_messages(void)
{
	char *text = sys_read(MESSAGES), *path = sys_path(MESSAGES), *save = NULL;

	for (char *line = text == NULL ? NULL : strtok_r(text, "\n", &save); line != NULL;
			line = strtok_r(NULL, "\n", &save))
		fprintf(stderr, "%s\n", one_line(line));
	/* The name stays: the next holder may have it open. */
	if (text != NULL && truncate(path, 0) != 0)
		fprintf(stderr, "idlectl: %s: %s\n", MESSAGES, strerror(errno));
	free(path);
	free(text);
}

/* The process that stays: until a signal, or for so many seconds. */
__attribute__((noreturn)) static void
hold(const struct options *o, unsigned int cpu, const struct scenario *s, int tell)
{
	struct answer a = { 0 };
	struct control c;
	sigset_t signals;
	bool told;
	int messages = open_messages(&a.err), null = open("/dev/null", O_RDWR | O_CLOEXEC);

	setsid();
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_NAME, "sibfwd-hold");
	ending_signals(&signals);
	/* The supervisor's end is told too, whatever the parent left. */
	signal(SIGCHLD, SIG_DFL);
	sigaddset(&signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	if (chdir("/") != 0)
		null = -1;
	leave_cpu(cpu);
	/* Nothing of the caller's is kept. */
	for (int fd = 0; fd <= 2 && null >= 0; fd++)
		dup2(fd == STDERR_FILENO && messages >= 0 ? messages : null, fd);
	if (tell > 3)
		close_range(3, (unsigned int)tell - 1, 0);
	close_range((unsigned int)tell + 1, ~0U, 0);
	a.rc = messages >= 0 ? control_begin(&c, HOLDER, &a.err) : -1;
	if (a.rc == 0) {
		c.ttl = o->ttl;
		a.rc = apply(&c, cpu, s, &a.err);
	}
	told = write(tell, &a, sizeof(a)) == sizeof(a);
	close(tell);
	if (a.rc != 0)
		_exit(EXIT_FAILED);
	/* Nobody is left who would know of it. */
	if (!told)
		_exit(control_end(&c, &a.err) == 0 ? EXIT_FAILED : EXIT_UNRESTORED);
	wait_end(&c, &signals, o->ttl);
	if (control_end(&c, &a.err) == 0)
		_exit(EXIT_DONE);
	fprintf(stderr, "%s: %s\n", HOLDER, a.err.text);
	_exit(EXIT_UNRESTORED);
}

/* Nobody hears of a scenario that is held: it is given back. Returns -1 with err set. */
static int
unsaid(pid_t holder, struct err *err)
{
	int status = 0;

	err_set(err, EXIT_FAILED, "standard output: %s; the CPU is given back", strerror(errno));
	kill(holder, SIGTERM);
	while (waitpid(holder, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_DONE)
		return -1;
	return err_set(err, EXIT_UNRESTORED,
			"standard output cannot be written, and the CPU could not be given back: idlectl restore tries again");
}

int
command_set(const struct options *o, struct err *err)
{
	json_t *json;
	struct answer a;
	struct scenario s;
	int ends[2], cpu = prepare(o, &s, err);
	pid_t pid;
	ssize_t n;

	if (cpu < 0)
		return -1;
	/* Neither a reader that is gone nor what a parent ignored may keep us from giving the CPU back. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	fflush(NULL);
	if (pipe2(ends, O_CLOEXEC) != 0 || (pid = fork()) < 0)
		return err_set(err, EXIT_FAILED, "a process to hold the scenario: %s",
				strerror(errno));
	if (pid == 0) {
		close(ends[0]);
		hold(o, (unsigned int)cpu, &s, ends[1]);
	}
	close(ends[1]);
	while ((n = read(ends[0], &a, sizeof(a))) < 0 && errno == EINTR)
		;
	close(ends[0]);
	if (n != sizeof(a))
		return err_set(err, EXIT_FAILED, "the process that holds the scenario died");
	if (a.rc != 0) {
		*err = a.err;
		return -1;
	}
	if (o->json) {
		json = json_pack("{s:i, s:s, s:i}", "cpu", cpu, "scenario", s.text, "holder",
				(int)pid);
		command_json(json, 0);
		json_decref(json);
	} else {
		printf("CPU %d: %s, held by process %d%s\n", cpu, s.text, (int)pid,
				o->ttl > 0 ? "" : " until \"idlectl restore\"");
	}
	return fflush(stdout) == 0 && !ferror(stdout) ? 0 : unsaid(pid, err);
}

/* ---- restore ---- */

static bool
wait_unlocked(double seconds)
{
	const struct timespec nap = { .tv_nsec = 5000000 };

	for (double waited = 0; waited < seconds; waited += 5e-3) {
		if (!journal_locked(NULL))
			return true;
		nanosleep(&nap, NULL);
	}
	return false;
}

/*
 * A handle on the process that has the lock, or -1 where it is gone. Its number may be in use again, so
 * the start time is looked at after the handle is there.
 */
static int
open_owner(const struct lock_owner *owner)
{
	int fd = pidfd_open(owner->pid, 0);

	if (fd < 0 || !journal_owner_gone(owner))
		return fd;
	close(fd);
	return -1;
}

/* End the process that holds a scenario. Its supervisor restores if it does not do so itself. */
static int
end_holder(const struct lock_owner *owner, struct err *err)
{
	int rc = 0, fd = open_owner(owner);

	/* The lock is held, but maybe by the supervisor of a process that is gone. */
	if (fd < 0)
		return wait_unlocked(ENDING_S)
				? 0
				: err_set(err, EXIT_FAILED,
						  "process %d is gone, but its lock is held",
						  (int)owner->pid);
	if (pidfd_send_signal(fd, SIGTERM, NULL, 0) != 0 && errno != ESRCH) {
		rc = err_set(err, EXIT_FAILED, "process %d, which holds the scenario: %s",
				(int)owner->pid, strerror(errno));
	} else if (!wait_unlocked(ENDING_S)) {
		pidfd_send_signal(fd, SIGKILL, NULL, 0);
		if (!wait_unlocked(ENDING_S))
			rc = err_set(err, EXIT_UNRESTORED, "process %d does not end",
					(int)owner->pid);
	}
	close(fd);
	return rc;
}

static void
print_restored(const struct options *o, const struct restored *r, pid_t holder)
{
	json_t *json;

	if (o->json) {
		json = json_pack("{s:o, s:b, s:b, s:o, s:O}", "holder",
				holder > 0 ? json_integer(holder) : json_null(), "foreign",
				r->foreign, "torn", r->torn, "damaged",
				r->damaged > 0 ? json_integer(r->damaged) : json_null(), "files",
				r->files);
		command_json(json, JSON_INDENT(2));
		json_decref(json);
		return;
	}
	restored_print(r, "idlectl");
	if (holder > 0)
		printf("process %d gave its CPU back\n", (int)holder);
	else if (r->restored + r->kept > 0)
		printf("%u files put back, %u left as they are\n", r->restored, r->kept);
	else if (r->failed == 0 && r->damaged == 0)
		printf("nothing to restore\n");
}

/*
 * Make the lock free, as far as we may. Returns 0 with *holder the process that was ended (0: none), 1
 * where it is somebody's who goes on, or -1 with err set.
 */
static int
free_lock(const struct options *o, pid_t *holder, struct err *err)
{
	struct lock_owner owner;
	bool gone;

	*holder = 0;
	if (!journal_locked(&owner))
		return 0;
	gone = journal_owner_gone(&owner);
	if (o->leftover && !gone) {
		fprintf(stderr, "idlectl: process %d (%s) goes on\n", (int)owner.pid, owner.who);
		return 1;
	}
	/* A supervisor that is still at it is waited for, whoever it works for. */
	if ((gone || strcmp(owner.who, HOLDER) == 0) && end_holder(&owner, err) != 0)
		return -1;
	*holder = gone ? 0 : owner.pid;
	return 0;
}

int
command_restore(const struct options *o, struct err *err)
{
	struct restored r = { 0 };
	pid_t holder;
	int lock, rc;

	/* Who reads what is said may be gone; what is put back is not to depend on it. */
	signal(SIGPIPE, SIG_IGN);
	rc = free_lock(o, &holder, err);
	if (rc < 0)
		return -1;
	if (rc > 0) {
		r.files = json_array();
		print_restored(o, &r, 0);
		restored_free(&r);
		return 0;
	}
	lock = journal_lock("idlectl restore", err);
	if (lock < 0)
		return -1;
	rc = journal_restore(&r, err);
	print_messages();
	print_restored(o, &r, holder);
	restored_free(&r);
	close(lock);
	return rc;
}
