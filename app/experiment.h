/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APP_EXPERIMENT_H
#define APP_EXPERIMENT_H

/*
 * What is measured when: visits and windows. It asks the loop for edges and fills in rows;
 * where the rows go is the caller's business.
 */
#include <stdbool.h>
#include <stdint.h>

#include "control.h"
#include "err.h"
#include "lcore.h"
#include "options.h"
#include "placement.h"
#include "port.h"
#include "result.h"

/*
 * Takes one finished row, and the burst histogram of its window (LCORE_BURST_MAX + 1 counts)
 * or NULL. Returns 0, or -1 with err set, which ends the experiment.
 */
typedef int (*experiment_row)(
		void *arg, const struct result_window *w, const uint64_t *bursts, struct err *err);

typedef void (*experiment_note)(void *arg, const char *text);

/* Told what the sibling does from now on, NULL: nothing of ours; and that --stats-period is over. */
typedef void (*experiment_applied)(void *arg, const struct scenario *s);
typedef void (*experiment_period)(void *arg);

/* How far a run has come after whole blocks; all 0 but for next, which is 1, at its start. */
struct checkpoint {
	uint32_t next; /* block of the schedule, from 1 */
	uint32_t blocks, visits, windows; /* measured, those of tainted blocks included */
	uint32_t blocks_again; /* of them, measured again */
};

/* Told at the end of a visit with a scenario whether it was seen to hold; returns as experiment_row does. */
typedef int (*experiment_visit)(void *arg, bool held, struct err *err);

/* Takes the checkpoint after each block; returns as experiment_row does. */
typedef int (*experiment_block)(void *arg, const struct checkpoint *done, struct err *err);

/* Which visit runs; all from 1 but for the arm, which is options_arm()'s. */
struct visit {
	uint32_t block, position, number;
	unsigned int arm;
};

struct experiment {
	const struct options *options;
	const struct placement *placement;
	struct ports *ports;
	struct lcore *lcores;
	unsigned int nb_lcores;
	struct control *control; /* of the sibling; one that never began for as-is */
	struct lcore_clock started; /* read at program start, to calibrate the TSC */
	uint32_t pkt_len; /* bytes for the rows; 0: unknown */
	const char *run_id;
	const char *host;
	experiment_row row;
	experiment_note note; /* what is done to the machine */
	experiment_applied applied;
	experiment_period period;
	experiment_visit visited;
	experiment_block block;
	void *arg; /* of all these */
	struct checkpoint done; /* where to begin; out: after the last whole block */

	struct pmu *pmus; /* a forwarding thread, NULL unless recorded */
	char edge_utc[RESULT_TEXT_MAX]; /* when the last edge was taken */
	double clock_set; /* seconds by which somebody set the clock, as far as it was said */
	double unprinted; /* seconds since the last --stats-period */
	struct visit visit;
	struct lcore_clock applied_at; /* when the visit's scenario was applied */
	unsigned int launched; /* loops that run */
	unsigned int setting; /* of these loops */
	bool tainted; /* a window of the block is */
	bool stuck; /* out: a loop does not end, so nothing can be torn down */
	uint64_t tsc_hz; /* out: see experiment_run(); taken as it is where it is not 0 */
	uint32_t windows_done; /* out: windows with rows, warm-up not counted */
	uint32_t blocks_again; /* out: blocks that were measured again, being tainted */
	bool interrupted; /* out: ended before its time */
	bool cut_short; /* out: the last window is a short one */
};

/*
 * Launch the loops (again where a visit wants another burst), visit the scenarios and measure their windows, stop the loops. Each scenario is applied
 * to the sibling of the first lcore and verified before a visit, and verified and taken back after it. A
 * block of several scenarios with a tainted window is measured again, as the next block in its order, but
 * no more such blocks in all than were asked for. tsc_hz is calibrated on the
 * controller between program start and the first edge: apart from every window, so that the
 * identity pps x cycles/packet = tsc_hz can fail. Returns 0, or -1 with err set; the rows
 * measured before a failure have been handed over.
 */
int experiment_run(struct experiment *x, struct err *err);

/* Seconds of settling, warm-up and windows that are left after a checkpoint; tainted blocks come on top. */
double experiment_seconds(const struct options *o, const struct checkpoint *done);

/* The same from within a visit, of which so many windows are measured. */
double experiment_left(const struct experiment *x, uint32_t windows);

#endif
