/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IDLECTL_DRAW_H
#define IDLECTL_DRAW_H

/*
 * A picture of the machine: packages, caches and cores as boxes in each other, CPUs as numbers.
 */
#include "err.h"
#include "topology.h"

struct drawing {
	const struct topology *topology;
	hwloc_const_bitmap_t offline; /* CPUs that are there but off line */
	hwloc_const_bitmap_t isolated;
	int measured; /* -1: nobody */
	int sibling; /* of the measured CPU, -1: it has none */
	enum relation relation; /* of the two */
};

/*
 * Write the picture to a file, as SVG; a file that is there is replaced once the new one is complete.
 * Returns 0, or -1 with err set and the file as it was.
 */
int draw_svg(const struct drawing *d, const char *file, struct err *err);

#endif
