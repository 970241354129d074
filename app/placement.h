/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APP_PLACEMENT_H
#define APP_PLACEMENT_H

/*
 * Who runs where: the measured CPUs and their siblings, and everything else off them.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "err.h"
#include "topology.h"

#define PLACEMENT_MAX 127 /* forwarding lcores: RTE_MAX_LCORE less the main one */

/* One forwarding lcore. An lcore is DPDK's number, a CPU the kernel's; they can differ. */
struct placed {
	unsigned int lcore;
	unsigned int cpu;
	int sibling; /* CPU whose idling matters; -1: there is none */
	enum relation relation;
	bool controller; /* the main lcore runs on the measured core or on the sibling */
};

struct placement {
	struct topology topology;
	unsigned int nb; /* forwarding lcores */
	struct placed at[PLACEMENT_MAX];
	unsigned int main_lcore;
	unsigned int main_cpu; /* the first of main_cpus */
	hwloc_bitmap_t main_cpus; /* where the main lcore may run */
	hwloc_bitmap_t allowed; /* this process's CPUs as it was started */
	hwloc_bitmap_t measured; /* CPUs that forward */
	hwloc_bitmap_t housekeeping; /* where every other thread may run; empty: nowhere else */
	int sibling_asked; /* of the siblings as they are; -1: the closest */
	bool whole_core; /* housekeeping spares the whole cores of the measured CPUs */
	char eal_lcores[1024]; /* --lcores=... to add to EAL's arguments; empty: given */
};

/*
 * Before EAL: find the measured CPUs in EAL's arguments (-l, -c, --lcores, --main-lcore), or
 * choose them (isolated CPUs first, then the last cores), and find their siblings. sibling_cpu
 * is -1 for the closest CPU. Returns 0, or -1 with err set: 2 for arguments that cannot work,
 * 1 for a CPU that is off line, 4 on a machine with one CPU.
 */
int placement_plan(struct placement *p, int argc, char *const argv[], unsigned int nb_cores,
		int sibling_cpu, struct err *err);

/* Keep this thread, and every thread it makes, off the measured CPUs. Before EAL. */
int placement_restrict(const struct placement *p, struct err *err);

/*
 * After EAL: take over the lcores that DPDK really made, move every thread that may run on
 * the measured CPUs or cores away, and warn about what cannot be kept.
 */
int placement_verify(struct placement *p, unsigned int nb_cores, int sibling_cpu, struct err *err);

/*
 * After placement_verify(): have these lcores of EAL's forward, or another sibling. Nothing is moved:
 * placement_clear_threads() is due. Return 0, or -1 with err set, and all is as before.
 */
int placement_take(struct placement *p, const unsigned int *lcores, unsigned int nb,
		int sibling_cpu, struct err *err);
int placement_derive(struct placement *p, int sibling_cpu, struct err *err);

/* Move every thread off the measured CPUs or cores; warn where that fails. */
void placement_clear_threads(const struct placement *p);

/* Print the plan for --dry-run. */
void placement_print(const struct placement *p, FILE *out);

void placement_free(struct placement *p);

#endif
