/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APP_TREND_H
#define APP_TREND_H

/*
 * A series of runs in time: for each arm, as in compare.h, groups of runs of equal mean. docs/results.md
 * describes the figures.
 */
#include <stdio.h>

#include <jansson.h>

#include "result.h"

/* One arm in one run. */
struct trend_run {
	const struct result_window *first; /* window of the run: its run_id and its start */
	double pps;
	const char *why; /* it is left out; NULL where it is not */
};

/* Runs of an arm that follow each other and are taken to have one mean. */
struct trend_group {
	const struct trend_run *runs;
	size_t nb_runs;
	double mean, stdev; /* pps; stdev is NAN for one run */
	double change; /* of the mean to that of the group before, percent; NAN for the first */
};

struct trend_arm {
	char *name;
	size_t nb_runs, nb_left_out, nb_groups;
	struct trend_run *runs, *left_out;
	struct trend_group *groups;
};

struct trend {
	size_t nb;
	struct trend_arm *arms;
};

/*
 * Of runs in order of time, which live as long as the trend; each has windows. Returns 0, or -1 without
 * memory; trend_free() in both cases.
 */
int trend_make(struct trend *trend, const struct result_set *runs, size_t nb);

void trend_free(struct trend *trend);

/* The arms as a JSON array; a new reference. margin in percent. */
json_t *trend_json(const struct trend *trend, double margin);

/* As tables of at most 100 characters a line. A write error stays in out. */
void trend_print(FILE *out, const struct trend *trend, double margin);

#endif
