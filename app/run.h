/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APP_RUN_H
#define APP_RUN_H

/*
 * A run of dpdk-sibfwd: what is brought up, forwards, is measured and torn down again, for batch and prompt alike.
 */
#include "capture.h"
#include "compare.h"
#include "control.h"
#include "experiment.h"
#include "lcore.h"
#include "machine.h"
#include "options.h"
#include "placement.h"
#include "port.h"
#include "probe.h"
#include "result.h"
#include "resume.h"

/* Everything that is brought up, and has to be torn down in the reverse order. */
struct run {
	int argc; /* the command line */
	char **argv;
	int eal_argc; /* its part before the "--", and what we add */
	char **eal_argv;
	struct options options;
	struct capture capture;
	bool have_capture;
	struct placement placement;
	struct machine_counts busy_from[PLACEMENT_MAX];
	struct lcore_clock busy_start; /* when busy_from was read */
	struct lcore_clock started;
	char *eal_log;
	bool eal_up;
	struct ports ports;
	struct lcore *lcores; /* lcores_max: all of EAL's but the main one */
	unsigned int lcores_max;
	unsigned int nb_lcores; /* of these, those that forward */
	bool set_up; /* ports have their streams and lcores theirs */
	struct result *result;
	char run_id[64];
	char host[RESULT_TEXT_MAX];
	struct result_window *rows;
	size_t nb_rows;
	size_t printed; /* rows, where they go to stdout */
	size_t visit_rows; /* before the visit that runs */
	off_t visit_mark; /* where its rows begin in windows.csv */
	bool stdout_gone;
	int stdout_errno;
	bool progress;
	char estimate[COMPARE_ARM_MAX + 96]; /* of the whole blocks, for the progress line */
	struct control control;
	struct experiment experiment;
	struct resume resume;
	bool resumed; /* it was found in the result directory */
	struct comparisons comparisons;
	struct probe_report
			wake; /* of the sibling, under --reproduce; no rows: it was not measured */
	char *forced; /* why no effect is expected, where --reproduce runs all the same */
};

/*
 * In this order; each returns 0, or -1 with err set. After a failure only run_end() and run_close() are due.
 */

/* Whether scenarios make sense here, and what --resume finds. */
int run_check(struct run *r, struct err *err);

/* Before there are threads: the guard of what will be changed. Begins to watch whether CPUs are busy. */
int run_guard(struct run *r, struct err *err);

/* After EAL: ports, lcores and their streams. */
int run_open(struct run *r, struct err *err);

/* What the options ask for, from the first window to the results. */
int run_measure(struct run *r, struct err *err);

/* Print the options that make a packet take as long as asked. */
int run_calibrate(struct run *r, struct err *err);

/* Give the sibling back. rc is what the run came to, and is returned unless that fails. */
int run_end(struct run *r, int rc, struct err *err);

/* Tear down, unless a loop does not end. */
void run_close(struct run *r);

#endif
