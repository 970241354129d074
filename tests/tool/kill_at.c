/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Run a program up to its Nth step and kill it there, its supervisor, or both. A step is a system call
 * that writes, makes a process or a pipe, or locks: what a journal and its restore are made of. Or
 * kill the program when it starts its command, and its supervisor at the Nth step of what that
 * then does.
 *
 *	kill_at N worker|supervisor|both|restorer PROGRAM [ARGUMENT...]
 *	kill_at N child-worker|child-supervisor PROGRAM [ARGUMENT...]
 *
 * The second form counts the steps of the program's first child, which holds what the program set, and
 * lets the program itself end.
 *
 * Exit code 9: the one to be killed ended before. Else that of the program, 0 where it was killed.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define ENDED_BEFORE 9

static const long steps[] = { SYS_write, SYS_pwrite64, SYS_fdatasync, SYS_ftruncate, SYS_unlink,
	SYS_rename, SYS_clone, SYS_fork, SYS_vfork, SYS_pipe2, SYS_socketpair, SYS_sendto,
	SYS_flock };

static bool
is_step(pid_t pid)
{
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, pid, NULL, &regs) != 0)
		return false;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		if ((long)regs.orig_rax == steps[i])
			return true;
	return false;
}

/* Kill the children of a process that run the same program: its supervisor, not its command. */
static void
kill_supervisor(pid_t worker)
{
	char path[64], ours[4096] = "", theirs[4096] = "", list[256] = "";
	char *save = NULL;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)worker);
	if (readlink(path, ours, sizeof(ours) - 1) < 0)
		return;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)worker, (int)worker);
	f = fopen(path, "re");
	if (f == NULL || fgets(list, sizeof(list), f) == NULL)
		list[0] = '\0';
	if (f != NULL)
		fclose(f);
	for (char *pid = strtok_r(list, " \n", &save); pid != NULL;
			pid = strtok_r(NULL, " \n", &save)) {
		snprintf(path, sizeof(path), "/proc/%s/exe", pid);
		memset(theirs, 0, sizeof(theirs));
		if (readlink(path, theirs, sizeof(theirs) - 1) > 0 && strcmp(ours, theirs) == 0)
			kill(atoi(pid), SIGKILL);
	}
}

static int
finish(pid_t worker, const char *victim)
{
	int status = 0;

	if (strcmp(victim, "worker") != 0)
		kill_supervisor(worker);
	if (strcmp(victim, "supervisor") != 0)
		kill(worker, SIGKILL);
	else
		ptrace(PTRACE_DETACH, worker, NULL, 0L);
	waitpid(worker, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

/*
 * Every stop of a process, at the entry and the exit of system calls and at signals, up to its step of
 * that number, 0 for none. Returns 1 there, 0 where it made a child (*child, stopped), -1 where it ended.
 */
static int
follow(pid_t pid, int wanted, pid_t *child)
{
	bool entry = true;
	int status, seen = 0;
	long sig = 0;

	for (;;) {
		if (ptrace(PTRACE_SYSCALL, pid, NULL, sig) != 0 ||
				waitpid(pid, &status, __WALL) != pid)
			return -1;
		if (WIFEXITED(status) || WIFSIGNALED(status))
			return -1;
		sig = 0;
		if (status >> 16 != 0) {
			unsigned long born = 0;

			ptrace(PTRACE_GETEVENTMSG, pid, NULL, &born);
			*child = (pid_t)born;
			waitpid(*child, &status, __WALL);
			return 0;
		}
		if (WSTOPSIG(status) != (SIGTRAP | 0x80)) {
			sig = WSTOPSIG(status);
			continue;
		}
		if (entry && is_step(pid) && ++seen == wanted)
			return 1;
		entry = !entry;
	}
}

/* The supervisor is the first child, the command the second. */
static int
kill_restorer(pid_t worker, int wanted)
{
	pid_t supervisor, command, none;
	int status;

	ptrace(PTRACE_SETOPTIONS, worker, NULL,
			PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL | PTRACE_O_TRACEFORK);
	if (follow(worker, 0, &supervisor) != 0)
		return ENDED_BEFORE;
	ptrace(PTRACE_SETOPTIONS, supervisor, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
	if (follow(worker, 0, &command) != 0)
		return ENDED_BEFORE;
	kill(command, SIGKILL);
	waitpid(command, &status, __WALL);
	kill(worker, SIGKILL);
	waitpid(worker, &status, __WALL);
	if (follow(supervisor, wanted, &none) != 1)
		return ENDED_BEFORE;
	kill(supervisor, SIGKILL);
	waitpid(supervisor, &status, __WALL);
	return 0;
}

/* Kill the first child, or the supervisor of that, at the child's step of that number. */
static int
kill_in_child(pid_t program, int wanted, const char *victim)
{
	pid_t child, none;
	int status, rc;

	ptrace(PTRACE_SETOPTIONS, program, NULL,
			PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL | PTRACE_O_TRACEFORK);
	if (follow(program, 0, &child) != 0)
		return ENDED_BEFORE;
	ptrace(PTRACE_DETACH, program, NULL, 0L);
	ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
	rc = follow(child, wanted, &none) == 1 ? 0 : ENDED_BEFORE;
	if (rc == 0 && strcmp(victim, "supervisor") == 0) {
		kill_supervisor(child);
		ptrace(PTRACE_DETACH, child, NULL, 0L);
	} else if (rc == 0) {
		kill(child, SIGKILL);
		waitpid(child, &status, __WALL);
	}
	waitpid(program, &status, 0);
	return rc;
}

int
main(int argc, char **argv)
{
	int status;
	pid_t worker, none;

	if (argc < 4)
		return 2;
	worker = fork();
	if (worker == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execv(argv[3], argv + 3);
		_exit(127);
	}
	if (waitpid(worker, &status, 0) != worker || !WIFSTOPPED(status))
		return 1;
	if (strcmp(argv[2], "restorer") == 0)
		return kill_restorer(worker, atoi(argv[1]));
	if (strncmp(argv[2], "child-", 6) == 0)
		return kill_in_child(worker, atoi(argv[1]), argv[2] + 6);
	ptrace(PTRACE_SETOPTIONS, worker, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
	return follow(worker, atoi(argv[1]), &none) == 1 ? finish(worker, argv[2]) : ENDED_BEFORE;
}
