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

struct experiment {
	const struct options *options;
	const struct placement *placement;
	struct ports *ports;
	struct lcore *lcores;
	unsigned int nb_lcores;
	const struct control *control; /* of the sibling; one that never began for as-is */
	struct lcore_clock started; /* read at program start, to calibrate the TSC */
	uint32_t pkt_len; /* bytes for the rows; 0: unknown */
	const char *run_id;
	const char *host;
	experiment_row row;
	void *row_arg;

	struct pmu *pmus; /* a forwarding thread, NULL unless recorded */
	char edge_utc[RESULT_TEXT_MAX]; /* when the last edge was taken */
	double unprinted; /* seconds since the last --stats-period */
	bool stuck; /* out: a loop does not end, so nothing can be torn down */
	uint64_t tsc_hz; /* out: see experiment_run() */
	uint32_t windows_done; /* out: windows with rows, warm-up not counted */
	bool interrupted; /* out: ended before its time; the last window may be a short one */
};

/*
 * Launch the loops, measure the windows asked for, stop the loops. tsc_hz is calibrated on the
 * controller between program start and the first edge: apart from every window, so that the
 * identity pps x cycles/packet = tsc_hz can fail. Returns 0, or -1 with err set; the rows
 * measured before a failure have been handed over.
 */
int experiment_run(struct experiment *x, struct err *err);

/* Seconds that the windows asked for take, from the options alone. */
double experiment_seconds(const struct options *o);

#endif
