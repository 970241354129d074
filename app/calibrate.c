/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate.h"
#include "fwd.h"
#include "stats.h"
#include "stop.h"

#define READS_MAX UINT64_C(1000000) /* as --noisy-lkup-num-reads */

/* Ticks and packets of all lcores up to an edge. */
struct total {
	uint64_t ticks, packets;
};

static int
take_total(struct lcore *lcores, unsigned int nb, struct total *t, struct err *err)
{
	*t = (struct total){ 0, 0 };
	if (lcore_take_edge(lcores, nb, err) != 0)
		return -1;
	for (unsigned int i = 0; i < nb; i++) {
		t->ticks += lcores[i].edge.clock.tsc;
		t->packets += lcores[i].edge.counts.rx_packets;
	}
	return 0;
}

/* The median of the windows, in TSC cycles a packet. */
static int
measure_windows(struct lcore *lcores, unsigned int nb, const struct options *o, double *cycles,
		struct err *err)
{
	double *windows = calloc(o->windows, sizeof(*windows));
	struct total before, now;
	int rc;

	if (windows == NULL)
		return err_set(err, EXIT_FAILED, "out of memory");
	stop_sleep(o->settle);
	rc = take_total(lcores, nb, &before, err);
	for (uint32_t i = 0; i < o->windows && rc == 0; i++) {
		stop_sleep(o->duration);
		rc = take_total(lcores, nb, &now, err);
		if (rc == 0 && stop_asked())
			rc = err_set(err, EXIT_FAILED, "--calibrate: interrupted");
		if (rc == 0 && now.packets == before.packets)
			rc = err_set(err, EXIT_FAILED, "--calibrate: no packet comes");
		if (rc == 0)
			windows[i] = (double)(now.ticks - before.ticks) /
					(double)(now.packets - before.packets);
		before = now;
	}
	if (rc == 0)
		*cycles = stats_median(windows, o->windows);
	free(windows);
	return rc;
}

static int
measure_reads(struct lcore *lcores, unsigned int nb, const struct options *o, uint64_t reads,
		struct calibration *c, struct calibration *best, struct err *err)
{
	struct options_arm arm = options_arm(o, 0);
	unsigned int launched;
	struct err stop_err;
	int rc;

	arm.lookups.reads = reads;
	rc = lcore_launch_all(lcores, nb, arm.burst, &arm.lookups, &launched, err);
	if (rc == 0)
		rc = measure_windows(lcores, nb, o, &c->cycles, err);
	if (lcore_stop(lcores, launched, rc == 0 ? err : &stop_err) != 0)
		rc = -1;
	c->reads = reads;
	if (rc == 0 &&
			(best->cycles == 0 ||
					fabs(c->cycles - o->calibrate) <
							fabs(best->cycles - o->calibrate)))
		*best = *c;
	if (rc == 0)
		printf("%10" PRIu64 " %17.2f\n", reads, c->cycles);
	return rc;
}

int
calibrate_reads(struct lcore *lcores, unsigned int nb, const struct options *o,
		struct calibration *best, struct err *err)
{
	struct calibration low, high = { 0 }, middle;

	*best = (struct calibration){ 0 };

	printf("reads      TSC cycles/packet\n");
	if (measure_reads(lcores, nb, o, 0, &low, best, err) != 0)
		return -1;
	if (low.cycles >= o->calibrate)
		return err_set(err, EXIT_SKIPPED,
				"--calibrate=%g: a packet takes %.1f cycles here without a look-up; huge pages or another --burst may be faster",
				o->calibrate, low.cycles);
	for (uint64_t reads = 1; high.cycles < o->calibrate;
			reads = RTE_MIN(2 * reads, READS_MAX)) {
		if (high.reads > 0)
			low = high;
		if (low.reads == READS_MAX)
			return err_set(err, EXIT_SKIPPED,
					"--calibrate=%g: %" PRIu64
					" reads a packet take no more than %.1f cycles",
					o->calibrate, low.reads, low.cycles);
		if (measure_reads(lcores, nb, o, reads, &high, best, err) != 0)
			return -1;
	}
	while (high.reads - low.reads > 1) {
		if (measure_reads(lcores, nb, o, (low.reads + high.reads) / 2, &middle, best,
				    err) != 0)
			return -1;
		*(middle.cycles < o->calibrate ? &low : &high) = middle;
	}
	return 0;
}
