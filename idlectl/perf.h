/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IDLECTL_PERF_H
#define IDLECTL_PERF_H

/*
 * A run of perf, which ends when we end, however that comes. What perf itself has started (the sleep of perf record)
 * ends with it but for a kill -9 of ours, which nobody is left to pass on: it is idle, and ends by itself.
 */
#include <stdbool.h>
#include <sys/types.h>

#include "err.h"

struct perf {
	pid_t pid; /* 0: none runs */
	int pidfd;
};

/*
 * Start perf, without input, in a process group of its own, so that what it runs is ended with it. out and
 * messages are where it prints to. SIGCHLD must not be ignored. Returns 0, or -1 with err set.
 */
int perf_start(struct perf *p, const char *const argv[], int out, int messages, struct err *err);

/*
 * Wait until it has ended; false where a signal asks for our end before. Where out is not -1, take() is called
 * whenever there is something to be read there, and returns false at its end.
 */
bool perf_wait(const struct perf *p, int out, bool (*take)(void *arg), void *arg);

/* End what is left of it. Returns its status, as waitpid() has it; 0 where none ran. */
int perf_end(struct perf *p);

/* Set err from the status of one that failed and what it said: 4 where there is no perf, else 1. Returns -1. */
int perf_failed(const char *what, int status, const char *words, struct err *err);

#endif
