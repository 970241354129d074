/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ratio of two programs from interleaved blocks: reads a line "a b b a" of packets/s a block,
 * prints "ratio low high half-width blocks". The block is the unit: d = mean of ln b - mean of
 * ln a. The ratio is exp of the 20 % trimmed mean of d, with the 95 % interval of Tukey and
 * McLaughlin (1963): a t interval of n - 2g - 1 degrees of freedom over the winsorized deviation,
 * g = 20 % of n. A block that the machine disturbed for longer than a visit lasts has no say then,
 * whichever side it favours.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "stats.h"

#define TRIM 0.2

static int
compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Trimmed mean of d, which is sorted, and half the width of its interval. */
static struct stats_interval
trimmed(double *d, size_t n)
{
	size_t g = (size_t)(TRIM * (double)n);
	double sum = 0, mean = 0, square = 0;

	qsort(d, n, sizeof(d[0]), compare);
	for (size_t i = g; i < n - g; i++)
		sum += d[i];
	/* Winsorized: what was trimmed counts as the last value that was not. */
	for (size_t i = 0; i < g; i++) {
		d[i] = d[g];
		d[n - 1 - i] = d[n - 1 - g];
	}
	for (size_t i = 0; i < n; i++)
		mean += d[i] / (double)n;
	for (size_t i = 0; i < n; i++)
		square += (d[i] - mean) * (d[i] - mean);
	return (struct stats_interval){
		.n = n,
		.mean = sum / (double)(n - 2 * g),
		.half = stats_t_quantile(0.975, (double)(n - 2 * g - 1)) *
				sqrt(square / (double)(n - 1)) / ((1 - 2 * TRIM) * sqrt((double)n)),
	};
}

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
	if (n < 2) {
		fprintf(stderr, "ratio: fewer than two blocks\n");
		return 1;
	}
	struct stats_interval i = trimmed(d, n);
	double ratio = exp(i.mean), low = exp(i.mean - i.half), high = exp(i.mean + i.half);

	printf("%.4f %.4f %.4f %.4f %zu\n", ratio, low, high, (high - low) / 2, n);
	return 0;
}
