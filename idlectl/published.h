/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IDLECTL_PUBLISHED_H
#define IDLECTL_PUBLISHED_H

/*
 * The published figures, idlectl/published/NAME.csv, and what is known of the machines they are from.
 */
#include <stdbool.h>
#include <stddef.h>

/* A system that somebody measured. */
struct published {
	const char *name; /* of the file, without .csv */
	const char *machine; /* for people */
	const char *vendor; /* vendor_id of /proc/cpuinfo; several joined by or */
	bool guest;
	const char *date;
	const char *source;
};

/* By the name of its file; NULL: there is none. */
const struct published *published_find(const char *name);

/*
 * The figure in a column of the first row that has these values: where is "column=value" joined by &,
 * as "case=pinned x2AVIC&fence=yes". NAN where that row has none. A row or column that is not there is a
 * mistake of the caller and ends the program.
 */
double published_figure(const struct published *p, const char *where, const char *column);

/* Whether this machine's, or the recorded one's, CPUs are AMD's. */
bool published_on_amd(void);

/*
 * Whether figures of this machine can be put beside published ones: "no: " and the reasons, joined by
 * "; ", or what is left to differ, the kernel. To be freed.
 */
char *published_comparable(const struct published *p);

#endif
