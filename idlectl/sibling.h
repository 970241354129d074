/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IDLECTL_SIBLING_H
#define IDLECTL_SIBLING_H

/*
 * How a CPU idled between two moments, and whether that is what its scenario asks for.
 */
#include "control.h"

struct sibling_counts {
	struct idle_states states; /* as the kernel counts */
	bool leased; /* the module counts too */
	bool offline;
	bool asleep; /* it could not be woken: the period that runs is in no count */
	uint64_t turns; /* of the load */
	struct sibidle_stats stats;
};

/*
 * Read the counts of a CPU. The kernel counts a period when it ends, so that a CPU that sleeps through
 * a window would show none: with wake it is woken first, whatever the scenario, so that all are
 * disturbed alike. c may be one that never began.
 */
void sibling_read(const struct control *c, unsigned int cpu, bool wake,
		struct sibling_counts *counts);

struct sibling_use {
	uint64_t entries; /* into idle states, POLL included; UINT64_MAX: unknown */
	uint64_t idle_ns; /* UINT64_MAX: unknown */
	char state[IDLE_NAME_MAX]; /* in which it spent most of that; empty: none */
	char spec_ctrl[128]; /* distinct values sampled, hex, joined by ";" */
	double wrong; /* percent of time, entries or samples not as the scenario asks; NAN: nothing asked */
};

/* What happened between two readings that are duration_ns apart. */
void sibling_compare(const struct control *c, const struct sibling_counts *before,
		const struct sibling_counts *now, uint64_t duration_ns, struct sibling_use *use);

#endif
