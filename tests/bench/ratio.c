/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ratio of two programs from interleaved blocks: reads a line "a b b a" of packets/s a block,
 * prints "ratio low high half-width blocks". The block is the unit: d = mean of ln b - mean of
 * ln a; the ratio is exp(mean d) with its 95 % t interval.
 */
#include <math.h>
#include <stdio.h>

#include "stats.h"

int
main(void)
{
	static double d[100000];
	size_t n = 0;
	double a1, b1, b2, a2;

	while (n < sizeof(d) / sizeof(d[0]) && scanf("%lf %lf %lf %lf", &a1, &b1, &b2, &a2) == 4) {
		if (!(a1 > 0 && b1 > 0 && b2 > 0 && a2 > 0)) {
			fprintf(stderr, "ratio: block %zu holds a figure that is not above 0\n",
					n + 1);
			return 1;
		}
		d[n++] = 0.5 * (log(b1) + log(b2) - log(a1) - log(a2));
	}
	struct stats_interval i = stats_t_interval(d, n, 0.95);
	double ratio = exp(i.mean), low = exp(i.mean - i.half), high = exp(i.mean + i.half);

	printf("%.4f %.4f %.4f %.4f %zu\n", ratio, low, high, (high - low) / 2, n);
	return n < 2;
}
