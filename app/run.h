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
	enum verdict verdict; /* of the last one that a command made */
	struct probe_report
			wake; /* of the sibling, under --reproduce; no rows: it was not measured */
	char *forced; /* why no effect is expected, where --reproduce runs all the same */

	/* Where commands say what to do, typed or from a file. */
	bool prompt;
	bool forwarding; /* the loops run, as "start" was said */
	struct scenario held; /* what the sibling does now; as-is: nothing of ours */
	struct err no_control; /* why the sibling cannot be controlled; empty: it can */
	const struct fwd_mode *next_mode; /* from the next start on; NULL: as it is */
	struct checkpoint sofar; /* blocks and visits of what was measured */
	uint64_t **bursts; /* of the rows, NULL each unless recorded */
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

/* ---- for commands ---- */

/* The results of all that will be measured; before the first command, and behind the last one. */
int run_begin(struct run *r, struct err *err);
int run_finish(struct run *r, int rc, struct err *err);

/*
 * Forward by the options as they are, with new streams, after so many bursts of testpmd's txonly frames; and end it.
 * Both fail where that is so already.
 */
int run_start(struct run *r, unsigned int bursts, struct err *err);
int run_stop(struct run *r, struct err *err);

/* New streams by the options as they are; and their end. Only while it does not forward. */
int run_prepare(struct run *r, struct err *err);
void run_unprepare(struct run *r);

/* While it forwards: what was changed of burst and records takes effect, or its last edge is that of now. */
int run_restart(struct run *r, struct err *err);
int run_edge(struct run *r, struct err *err);

/* Count what is forwarded from here on, for people. */
void run_clear_counts(struct run *r);

/* Have so many lcores forward, or those of a list, from the next start on. */
int run_set_lcores(struct run *r, const unsigned int *lcores, unsigned int nb, struct err *err);

/* The CPU whose idling matters; -1: the closest one. */
int run_set_sibling(struct run *r, int cpu, struct err *err);

/* Have the sibling idle as words say, verified, until other words or the end. */
int run_hold(struct run *r, const char *words, struct err *err);

/*
 * Measure windows, a visit to each of nb scenarios (0: what is held) in so many blocks, whether it forwards or not,
 * which is as before then, as is what the sibling does. *first is the first row of them.
 */
int run_windows(struct run *r, const char *const *words, unsigned int nb, uint32_t windows,
		uint32_t blocks, size_t *first, struct err *err);

/* All that was measured, to a directory of its own. */
int run_save(struct run *r, const char *dir, struct err *err);

/* Give the sibling back. rc is what the run came to, and is returned unless that fails. */
int run_end(struct run *r, int rc, struct err *err);

/* Tear down, unless a loop does not end. */
void run_close(struct run *r);

#endif
