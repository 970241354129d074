/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IDLECTL_COMMAND_H
#define IDLECTL_COMMAND_H

/*
 * The commands of idlectl: one function each, one row each in the table of idlectl.c, from which help,
 * man page and completion are made too.
 */
#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "err.h"
#include "probe.h"
#include "topology.h"

struct options {
	const char *command;
	const char *topology; /* --topology: hwloc's XML file, or NULL */
	bool json;
	bool ktap;
	bool words; /* scenarios: words only, for the shell's completion */
	bool leftover; /* restore: end nobody */
	int cpu; /* --cpu, -1: not given */
	const char *scenario;
	const char *svg; /* topology: file to draw to */
	double interval; /* seconds, 0: not given */
	double ttl; /* seconds, 0: not given */
	struct probe_options probe; /* topology and cpu stay above */
	bool csv;
	char *const *argv; /* what follows --, NULL-terminated; NULL: nothing */
};

/*
 * Print the answer on stdout. Return the exit code of a command that was started (run), else 0 or,
 * with err set, -1.
 */
int command_topology(const struct options *o, struct err *err);
int command_states(const struct options *o, struct err *err);
int command_doctor(const struct options *o, struct err *err);
int command_scenarios(const struct options *o, struct err *err);
int command_run(const struct options *o, struct err *err);
int command_set(const struct options *o, struct err *err);
int command_restore(const struct options *o, struct err *err);
int command_status(const struct options *o, struct err *err);
int command_probe(const struct options *o, struct err *err);

/*
 * The CPU that a command works on: o->cpu, or fallback where none was given (-1: one is needed).
 * Returns it, or -1 with err set (2) and the valid ones named where it is none of t's. off: CPUs that
 * are off line will do.
 */
int command_cpu(const struct options *o, const struct topology *t, int fallback, bool off,
		struct err *err);

/* Print a JSON value and a newline on stdout; flags are jansson's. */
void command_json(const json_t *json, size_t flags);

#endif
