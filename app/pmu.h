/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APP_PMU_H
#define APP_PMU_H

/*
 * Core cycles and instructions of a forwarding thread, by perf events (--record-perf-events).
 */
#include <stdint.h>

#include "err.h"

struct pmu {
	int fd; /* leader of the group, core cycles; -1: not open */
	int member; /* instructions */
};

struct pmu_counts {
	uint64_t core_cycles;
	uint64_t instructions;
	/* 0 when the kernel shared the counters with somebody: then the counts are estimates. */
	int exact;
};

/*
 * Count for the thread tid of this process, user and kernel. Returns 0, or -1 with err set:
 * exit code 4 where there is no PMU, as in most guests, 1 where it is not permitted.
 */
int pmu_open(struct pmu *p, int tid, struct err *err);

/*
 * Read the counts. The kernel asks the measured CPU for them by an interrupt, so this is done
 * at the edges of a window only.
 */
void pmu_read(const struct pmu *p, struct pmu_counts *c);

void pmu_close(struct pmu *p);

#endif
