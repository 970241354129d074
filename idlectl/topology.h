/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IDLECTL_TOPOLOGY_H
#define IDLECTL_TOPOLOGY_H

/*
 * Which CPUs share what, by hwloc. CPUs are the kernel's numbers everywhere (hwloc: OS index).
 */
#include <stdbool.h>
#include <stdint.h>

#include <hwloc.h>

#include "err.h"

/* What two CPUs share, from the closest on. */
enum relation {
	RELATION_SMT, /* threads of one core */
	RELATION_L2, /* a second-level cache */
	RELATION_L3, /* a third-level cache */
	RELATION_PACKAGE, /* a package, no cache */
	RELATION_NUMA, /* a NUMA node, not the package */
	RELATION_NONE, /* nothing, or there is no other CPU */
};

/* The word for a relation, as in windows.csv. */
const char *relation_word(enum relation relation);

struct topology {
	hwloc_topology_t hwloc;
	hwloc_bitmap_t online; /* CPUs that exist and are on line */
	hwloc_bitmap_t open; /* of these, what this process's cpuset allows */
	hwloc_bitmap_t isolated; /* of isolcpus=; empty where unknown */
};

/*
 * Read the topology of the machine or tree that sysroot.h looks at, of hwloc's file xml, or the one
 * that hwloc's environment variables name.
 * Returns 0, or -1 with err set. topology_close() frees it; a zeroed one is fine.
 */
int topology_open(struct topology *t, const char *xml, struct err *err);
void topology_close(struct topology *t);

/* What CPUs a and b share. RELATION_NONE where one of them is not on line. */
enum relation topology_relation(const struct topology *t, unsigned int a, unsigned int b);

/*
 * The CPU closest to cpu: its SMT sibling, else the closest by shared cache; among equals one
 * that is not in avoid (may be NULL), then the lowest number. An SMT sibling is taken even if
 * it is in avoid. Returns -1 where cpu is the only one on line; *relation is always set.
 */
int topology_closest(const struct topology *t, unsigned int cpu, hwloc_const_bitmap_t avoid,
		enum relation *relation);

/* Add all threads of the core that cpu belongs to, cpu included, to set. */
void topology_add_core(const struct topology *t, unsigned int cpu, hwloc_bitmap_t set);

/*
 * The kernel's number of the third-level cache of a CPU, which resctrl calls a domain. False where it has none,
 * or no number.
 */
bool topology_l3_id(unsigned int cpu, uint64_t *id);

/*
 * Look from elsewhere: take the core of cpu (-1: none) and all isolated CPUs from those that this
 * process runs on. Where none would be left, or the topology is not this machine's, nothing changes:
 * looking disturbs then.
 */
void topology_keep_off(const struct topology *t, int cpu);

#endif
