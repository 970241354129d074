/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control.h"
#include "mechanisms.h"

/* ---- the supervisor ---- */

/* Everything but what is needed, so that nothing of the worker is held by us when it is gone. */
static void
close_others(int life, int lock)
{
	int low = life < lock ? life : lock, high = life < lock ? lock : life;

	if (low > 3)
		close_range(3, (unsigned int)low - 1, 0);
	if (high > low + 1)
		close_range((unsigned int)low + 1, (unsigned int)high - 1, 0);
	close_range((unsigned int)high + 1, ~0U, 0);
}

/*
 * Wait for the worker's end, however it comes, and restore what it left. The lock is ours too, so that
 * nobody comes between. A session of its own: signals of the terminal are for the worker.
 */
__attribute__((noreturn)) static void
supervise(int life, int lock, const char *who)
{
	static const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1,
		SIGUSR2 };
	struct restored r;
	struct err err;
	sigset_t none;
	bool orderly = false;
	char byte;
	ssize_t n;
	int rc;

	setsid();
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		signal(ignored[i], SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_NAME, "sibfwd-restore");
	close_others(life, lock);
	/* Only the end of the file is the end of the worker; a byte before it is its farewell. */
	while ((n = read(life, &byte, 1)) > 0 || (n < 0 && errno == EINTR))
		orderly |= n > 0;
	if (n != 0)
		_exit(EXIT_FAILED);
	rc = journal_restore(&r, &err);
	/* After an orderly end there is nothing to do, or the worker has said what it could not do. */
	if (!orderly) {
		if (json_array_size(r.files) > 0)
			fprintf(stderr, "%s: it was killed; %u files put back\n", who, r.restored);
		restored_print(&r, who);
		if (rc != 0)
			fprintf(stderr, "%s: %s\n", who, err.text);
	} else if (r.restored > 0) {
		fprintf(stderr, "%s: %u files put back after all\n", who, r.restored);
	}
	restored_free(&r);
	_exit(rc == 0 ? EXIT_DONE : EXIT_UNRESTORED);
}

static int
start_supervisor(struct control *c, struct err *err)
{
	int ends[2];

	if (c->life >= 0)
		close(c->life);
	c->life = -1;
	c->supervisor = 0;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
		return err_set(err, EXIT_FAILED, "a pair of sockets: %s", strerror(errno));
	fflush(NULL);
	c->supervisor = fork();
	if (c->supervisor == 0)
		supervise(ends[0], c->lock, c->who);
	close(ends[0]);
	c->life = ends[1];
	if (c->supervisor > 0)
		return 0;
	c->supervisor = 0;
	return err_set(err, EXIT_FAILED, "a process to restore: %s", strerror(errno));
}

bool
control_guarded(struct control *c)
{
	if (c->supervisor > 0 && waitpid(c->supervisor, NULL, WNOHANG) != 0)
		c->supervisor = 0;
	return c->supervisor > 0;
}

int
control_guard(struct control *c, struct err *err)
{
	if (control_guarded(c))
		return 0;
	/* First the process, then the words: whoever reads them may be gone. */
	if (start_supervisor(c, err) != 0)
		return -1;
	fprintf(stderr, "%s: somebody ended the process that restores after a kill -9; there is a new one\n",
			c->who);
	return 0;
}

int
control_begin(struct control *c, const char *who, struct err *err)
{
	struct err ignored;

	memset(c, 0, sizeof(*c));
	c->who = who;
	c->life = c->module.fd = c->journal.fd = -1;
	c->lock = journal_lock(who, err);
	if (c->lock < 0)
		return -1;
	/* The supervisor first: there is no moment in which a journal has nobody. */
	if (journal_check(err) == 0 && start_supervisor(c, err) == 0 &&
			journal_begin(&c->journal, who, err) == 0)
		return 0;
	control_end(c, &ignored);
	return -1;
}

int
control_end(struct control *c, struct err *err)
{
	int rc;

	if (c->who == NULL || c->lock < 0)
		return 0;
	rc = control_restore(c, err);
	journal_end(&c->journal, rc == 0);
	if (c->life >= 0) {
		if (send(c->life, "", 1, MSG_NOSIGNAL) < 0 && errno != EPIPE)
			fprintf(stderr, "%s: its supervisor: %s\n", c->who, strerror(errno));
		close(c->life);
	}
	if (c->supervisor > 0)
		while (waitpid(c->supervisor, NULL, 0) < 0 && errno == EINTR)
			;
	close(c->lock);
	c->lock = -1;
	return rc;
}

/* ---- scenarios ---- */

/* Before anything is changed. */
static int
check_word(unsigned int cpu, const struct word *w, struct err *err)
{
	struct err why;

	if (w->row->check(cpu, w->row, &why) == 0)
		return 0;
	return err_set(err, why.code, "%s: %s", w->name, why.text);
}

/* What else is wrong there then follows from it. */
static int
check_online(unsigned int cpu, const struct scenario *s, struct err *err)
{
	if (scenario_word(s, WORD_OFFLINE) != NULL || hotplug_online(cpu))
		return 0;
	return err_set(err, EXIT_FAILED, "%s: CPU %u is off line", s->text, cpu);
}

int
control_check(unsigned int cpu, const struct scenario *s, struct err *err)
{
	struct idle_states states;

	if (check_online(cpu, s, err) != 0)
		return -1;
	cpuidle_read(&states, cpu);
	if (scenario_check(s, cpu, &states, err) != 0)
		return -1;
	for (unsigned int i = 0; i < s->nb; i++)
		if (check_word(cpu, &s->words[i], err) != 0)
			return -1;
	return 0;
}

int
control_apply(struct control *c, unsigned int cpu, const struct scenario *s, struct err *err)
{
	struct err undo;
	int rc = 0;

	if (control_check(cpu, s, err) != 0)
		return -1;
	c->cpu = cpu;
	c->scenario = s;
	for (unsigned int i = 0; i < s->nb && rc == 0; i++)
		rc = s->words[i].row->apply(c, &s->words[i], err);
	if (rc != 0 && control_restore(c, &undo) != 0)
		*err = undo;
	return rc;
}

int
control_verify(struct control *c, struct err *err)
{
	if (c->scenario != NULL && check_online(c->cpu, c->scenario, err) != 0)
		return -1;
	for (unsigned int i = 0; c->scenario != NULL && i < c->scenario->nb; i++) {
		const struct word *w = &c->scenario->words[i];

		if (w->row->verify(c, w, err) != 0)
			return -1;
	}
	return 0;
}

int
control_sender(const struct control *c)
{
	return c->load == NULL || load_cpu(c->load) == c->cpu ? -1 : (int)load_cpu(c->load);
}

int
control_write(struct control *c, const char *path, const char *value, struct err *err)
{
	/* Before: what fails half-way is taken back too. */
	c->written = true;
	return journal_write(&c->journal, path, value, err);
}

int
control_restore(struct control *c, struct err *err)
{
	struct restored r;
	int rc;

	if (c->scenario == NULL && !c->written)
		return 0;
	/*
	 * Files first: a load's end may be slow to come where something else has the CPU. What could
	 * not be put back is tried again at the end, and by the supervisor.
	 */
	rc = journal_undo(&c->journal, &r, err);
	sibidle_let_go(c);
	load_end(c->load);
	c->load = NULL;
	if (rc == 0) {
		c->scenario = NULL;
		c->written = false;
	}
	restored_print(&r, c->who);
	restored_free(&r);
	return rc;
}
