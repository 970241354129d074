/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APP_CALIBRATE_H
#define APP_CALIBRATE_H

/*
 * How many look-ups of noisy mode make a packet cost so many cycles: a loop of a network function's length
 * without NIC and generator.
 */
#include "err.h"
#include "lcore.h"
#include "options.h"

struct calibration {
	uint64_t reads; /* a packet, --noisy-lkup-num-reads */
	double cycles; /* TSC cycles a packet of the whole loop with them */
};

/*
 * Search the count of reads whose cycles a packet are closest to o->calibrate, by doubling and halving; each
 * step is the median of --windows windows of --duration and a line on stdout. The lcores' loops must not run.
 * Returns 0, or -1 with err set: exit code 4 where the loop takes longer without a read, or reads do not
 * reach it.
 */
int calibrate_reads(struct lcore *lcores, unsigned int nb, const struct options *o,
		struct calibration *c, struct err *err);

#endif
