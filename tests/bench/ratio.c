/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ratio of two programs from interleaved blocks: reads a line "a b b a" of packets/s a block,
 * prints "ratio low high half-width blocks mean-ratio mean-half-width". The block is the unit: d =
 * mean of ln b - mean of ln a. The ratio is exp of the 20 % trimmed mean of d with its 95 % interval,
 * so that a few blocks do not decide, whichever side they favour; beside it stands the plain mean
 * with its t interval, in which they do.
 */
#include <math.h>
#include <stdio.h>

#include "stats.h"

static double
half_width(struct stats_interval i)
{
	return (exp(i.mean + i.half) - exp(i.mean - i.half)) / 2;
}

int
main(void)
{
	static double d[100000];
	char line[256];
	size_t n = 0;
	double a1, b1, b2, a2;

	while (n < sizeof(d) / sizeof(d[0]) && fgets(line, sizeof(line), stdin) != NULL) {
		if (sscanf(line, "%lf %lf %lf %lf", &a1, &b1, &b2, &a2) != 4 ||
				!(a1 > 0 && b1 > 0 && b2 > 0 && a2 > 0)) {
			fprintf(stderr, "ratio: block %zu is not four figures above 0\n", n + 1);
			return 1;
		}
		d[n++] = 0.5 * (log(b1) + log(b2) - log(a1) - log(a2));
	}
	if (n < 2) {
		fprintf(stderr, "ratio: fewer than two blocks\n");
		return 1;
	}
	struct stats_interval mean = stats_t_interval(d, n, 0.95);
	struct stats_interval i = stats_trimmed_interval(d, n, 0.95);

	printf("%.6f %.6f %.6f %.6f %zu %.6f %.6f\n", exp(i.mean), exp(i.mean - i.half),
			exp(i.mean + i.half), half_width(i), n, exp(mean.mean), half_width(mean));
	return 0;
}
