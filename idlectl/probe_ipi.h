/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IDLECTL_PROBE_IPI_H
#define IDLECTL_PROBE_IPI_H

/*
 * The arithmetic of probe ipi, apart from the machine.
 */
#include <stddef.h>
#include <stdint.h>

#include "probe.h"
#include "topology.h"

/* What one sender did in one repeat. */
struct ipi_sender {
	double call_ns; /* mean time of a call */
	uint64_t sends; /* calls */
	uint64_t began, ended; /* TSC before its first call and after its last */
};

struct ipi_throughput {
	double sum; /* calls a second: the sum over senders of 1 / call time */
	double wall; /* calls a second: all calls / time from the first begin to the last end */
	double skew_ns; /* from the first begin to the last begin */
};

/* Of n >= 1 senders whose TSC has tsc_khz. The definitions are those of the published figures. */
struct ipi_throughput ipi_throughput(const struct ipi_sender *s, size_t n, double tsc_khz);

/* Calls of other CPUs, and what these counted. */
struct ipi_counts {
	uint64_t sent, interrupts;
	uint64_t without; /* that found their target idle, as it counted fewer interrupts than calls */
	uint64_t foreign; /* interrupts that it counted beyond, of other calls */
};

/*
 * Add what one sender did in one repeat. Within it, foreign interrupts hide as many idle targets; from one to the
 * next they do not.
 */
void ipi_count(struct ipi_counts *c, uint64_t sent, uint64_t interrupts);

struct ipi_pair {
	unsigned int from, to;
};

/*
 * Disjoint pairs out of the CPUs that this process may use, in pairs, which has room for half of them; returns
 * how many. By relation ("smt", "l3", "package", "cross"; NULL: any), in order of their numbers; or at
 * random by a seed (splitmix64).
 */
size_t ipi_pairs_of(const struct topology *t, const char *relation, struct ipi_pair *pairs);
size_t ipi_pairs_random(const struct topology *t, uint64_t seed, struct ipi_pair *pairs);

#endif
