/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IDLECTL_CONTROL_H
#define IDLECTL_CONTROL_H

/*
 * A CPU made to idle as a scenario says, and given back however the process that asked for it ends.
 *
 *	control_begin	lock, journal, and a supervisor: a process that restores when this one dies
 *	control_apply	writes what the scenario wants
 *	control_verify	looks whether it took
 *	control_write	writes a file of the machine
 *	control_guard	starts the supervisor anew, should somebody have killed it
 *	control_guarded	only looks whether it lives
 *	control_restore	takes it back; may be applied again
 *	control_end	restores, and ends the supervisor
 */
#include <stdbool.h>
#include <sys/types.h>

#include "cpuidle.h"
#include "err.h"
#include "journal.h"
#include "scenario.h"
#include "sibidle_device.h"

struct load;

struct control {
	const char *who;
	int lock;
	int life; /* our end of a pair of sockets; that it closes tells the supervisor that we died */
	pid_t supervisor; /* 0: none */
	struct journal journal;
	double ttl; /* seconds after which the module ends its lease by itself, about; 0: never */

	/* What is applied. */
	unsigned int cpu;
	const struct scenario *scenario; /* NULL: nothing */
	bool written; /* files beside it */
	struct sibidle module; /* fd -1: not used */
	struct sibidle_samples at_apply; /* in the mode, before it was applied */
	struct load *load; /* NULL: none */
};

/*
 * Before threads are made. who is a word for people that outlives the control ("idlectl run").
 * Returns 0, or -1 with err set and nothing left behind.
 */
int control_begin(struct control *c, const char *who, struct err *err);

/* Whether the machine has what a scenario needs: 0, or -1 with err set as control_apply() does. */
int control_check(unsigned int cpu, const struct scenario *s, struct err *err);

/*
 * Apply a scenario, which outlives the control, to a CPU. Returns 0, or -1 with err set and everything
 * as before: 4 where the machine lacks what a word needs, 1 where something failed, 6 where it then
 * could not be put back either.
 */
int control_apply(struct control *c, unsigned int cpu, const struct scenario *s, struct err *err);

/* Whether the scenario took: reads back, and watches the CPU idle for up to 1 s. Changes nothing. */
int control_verify(struct control *c, struct err *err);

/* The other CPU that takes part in what is applied, as the one that interrupts come from; -1: none does. */
int control_sender(const struct control *c);

/*
 * Write value to a file below /sys or /proc/sys, until control_restore(). Returns 0, or -1 with err set and
 * the file as it was.
 */
int control_write(struct control *c, const char *path, const char *value, struct err *err);

/*
 * Where the supervisor has died, start another one and say so: to be called when SIGCHLD comes, and
 * before it is waited for. Returns 0, or -1 with err set where there is none.
 */
int control_guard(struct control *c, struct err *err);

/* Whether the supervisor lives: for a process that forwards packets, which does not fork. */
bool control_guarded(struct control *c);

/* Take scenario and files back. Without any nothing happens. Returns 0, or -1 with err set (6). */
int control_restore(struct control *c, struct err *err);

/* Restore and let go of lock and supervisor; a zeroed control, or one that failed to begin, is fine. */
int control_end(struct control *c, struct err *err);

#endif
