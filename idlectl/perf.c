/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "perf.h"
#include "probe.h"

#define POLL_MS 20 /* a signal may have reached another thread */
#define NOT_FOUND 127 /* as the shell has it */
#define NOT_RUN 126

/* In the child. */
__attribute__((noreturn)) static void
become(const char *const argv[], int out, int messages, pid_t parent)
{
	int null = open("/dev/null", O_RDONLY), saved;

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || null < 0)
		_exit(NOT_RUN);
	/* Its words and numbers are read. */
	setenv("LC_ALL", "C", 1);
	dup2(null, STDIN_FILENO);
	dup2(messages, STDERR_FILENO);
	dup2(out, STDOUT_FILENO);
	execvp(argv[0], (char *const *)argv);
	saved = errno;
	dprintf(STDERR_FILENO, "%s", strerror(saved));
	_exit(saved == ENOENT ? NOT_FOUND : NOT_RUN);
}

int
perf_start(struct perf *p, const char *const argv[], int out, int messages, struct err *err)
{
	pid_t parent = getpid();

	fflush(NULL);
	p->pidfd = -1;
	p->pid = fork();
	if (p->pid == 0)
		become(argv, out, messages, parent);
	if (p->pid > 0) {
		setpgid(p->pid, p->pid);
		p->pidfd = pidfd_open(p->pid, 0);
	}
	if (p->pidfd >= 0)
		return 0;
	err_set(err, EXIT_FAILED, "%s: %s", argv[0], strerror(errno));
	perf_end(p);
	return -1;
}

bool
perf_wait(const struct perf *p, int out, bool (*take)(void *arg), void *arg)
{
	struct pollfd fds[] = { { .fd = out, .events = POLLIN },
		{ .fd = p->pidfd, .events = POLLIN } };

	while (!probe_interrupted()) {
		if (poll(fds, 2, POLL_MS) <= 0)
			continue;
		if (fds[0].revents != 0 && !take(arg))
			fds[0].fd = -1;
		if (fds[1].revents != 0)
			return true;
	}
	return false;
}

int
perf_end(struct perf *p)
{
	int status = 0;

	if (p->pid <= 0)
		return 0;
	kill(-p->pid, SIGKILL);
	kill(p->pid, SIGKILL);
	while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR)
		;
	if (p->pidfd >= 0)
		close(p->pidfd);
	p->pid = 0;
	return status;
}

int
perf_failed(const char *what, int status, const char *words, struct err *err)
{
	const char *colon;

	words += strspn(words, " ");
	colon = words[0] != '\0' ? ": " : "";
	if (WIFSIGNALED(status))
		return err_set(err, EXIT_FAILED, "%s: ended by signal %d (%s)%s%s", what,
				WTERMSIG(status), strsignal(WTERMSIG(status)), colon, words);
	if (WEXITSTATUS(status) == NOT_FOUND)
		return err_set(err, EXIT_SKIPPED, "perf is not installed (linux-perf)");
	return err_set(err, EXIT_FAILED, "%s: exit code %d%s%s", what, WEXITSTATUS(status), colon,
			words);
}
