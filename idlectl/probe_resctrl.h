/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IDLECTL_PROBE_RESCTRL_H
#define IDLECTL_PROBE_RESCTRL_H

/*
 * The arithmetic of probe resctrl, apart from the machine.
 */
#include <hwloc.h>

#include "probe.h"

/* What it took to read all counters of a domain, in each of n repeats. */
struct resctrl_figures {
	size_t n;
	bool tsc; /* cycles are the TSC's, not the core's */
	bool gaps; /* some reads gave no number */
	double *counters; /* how many of them gave a number */
	double *raw, *dry; /* cycles of the reader, with counters and without */
	double *serving, *serving_dry; /* of the CPU that serves, in the kernel; NULL: not known */
	double *wall_ns; /* with counters */
};

/*
 * Add the rows of one reader: cycles in millions, then per counter, or per number where some reads gave none, and the
 * rate of reading.
 */
void resctrl_rows(struct probe_report *r, const char *name, const struct resctrl_figures *f);

/*
 * Put the published figures beside the rows that were measured by the same vendor's CPU in the same way,
 * where they are in cycles too, and the others below. kernel is a release, as "6.12.1".
 */
void resctrl_publish(struct probe_report *r, bool amd, const char *kernel);

/*
 * Which CPU of a domain reads its counters for others, and from 6.9 on for itself too: the first one outside
 * nohz_full, as cpumask_any_housekeeping() has it, or, before 6.9, the first one, as smp_call_function_any() has it for
 * a caller outside the domain; -1 for no CPUs.
 */
int resctrl_serving_cpu(
		hwloc_const_bitmap_t cpus, hwloc_const_bitmap_t nohz_full, const char *kernel);

/* What stands in a counter's file. */
enum resctrl_value {
	RESCTRL_NUMBER,
	RESCTRL_UNAVAILABLE, /* the hardware has no value at the moment */
	RESCTRL_ERROR, /* the hardware refuses */
	RESCTRL_UNASSIGNED, /* the group has none of the hardware's counters */
	RESCTRL_EMPTY,
	RESCTRL_OTHER,
	RESCTRL_FAILED, /* the file cannot be read: the group is gone */
	RESCTRL_VALUES
};

/* By the first len bytes of the file; never RESCTRL_FAILED. */
enum resctrl_value resctrl_value_of(const char *text, size_t len);

#endif
