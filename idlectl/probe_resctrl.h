/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IDLECTL_PROBE_RESCTRL_H
#define IDLECTL_PROBE_RESCTRL_H

/*
 * The arithmetic of probe resctrl, apart from the machine.
 */
#include "probe.h"

/* What reading all counters of a domain took in each of n repeats, in cycles and ns. */
struct resctrl_figures {
	size_t n, counters;
	const char *unit; /* of 1e6 cycles: "Mcycles", or "M TSC cycles" */
	const double *raw, *dry; /* of the reader, with counters and without */
	const double *serving, *serving_dry; /* of the domain's other CPUs; NULL: not known */
	const double *wall_ns; /* with counters */
};

/* Add the rows of one reader. Returns the first, "reader cycles", which is the published figure. */
struct probe_row *resctrl_rows(
		struct probe_report *r, const char *name, const struct resctrl_figures *f);

/* What stands in a counter's file. */
enum resctrl_value {
	RESCTRL_NUMBER,
	RESCTRL_UNAVAILABLE, /* the hardware has no value at the moment */
	RESCTRL_ERROR, /* the kernel says that it could not read */
	RESCTRL_UNASSIGNED, /* no counter belongs to the group */
	RESCTRL_EMPTY,
	RESCTRL_OTHER,
	RESCTRL_FAILED, /* it could not be read: the group is gone */
	RESCTRL_VALUES
};

/* Read a file of a group from its start; text of len bytes is what stood in it. */
enum resctrl_value resctrl_read(int fd);
enum resctrl_value resctrl_value_of(const char *text, size_t len);

#endif
