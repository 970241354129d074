/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APP_STATS_H
#define APP_STATS_H

/*
 * Statistics over arrays of doubles; knows nothing else.
 */
#include <stddef.h>

/* Arithmetic mean of n >= 1 values; NAN for n = 0. */
double stats_mean(const double *x, size_t n);

/* Sample standard deviation, divisor n - 1; NAN for n < 2. */
double stats_sd(const double *x, size_t n);

/* Median; the mean of the middle two for even n; NAN for n = 0. x is not changed. */
double stats_median(const double *x, size_t n);

/*
 * Quantile of Student's t distribution: the value that a t variable with df >= 1 degrees of
 * freedom stays below with probability p (0 < p < 1); df need not be whole. The relative error is
 * below 1e-11 up to df = 1e6. NAN outside these ranges. The source of the formula stands with it.
 */
double stats_t_quantile(double p, double df);

struct stats_interval {
	size_t n;
	double mean;
	double half; /* half-width; INFINITY for n < 2 */
};

/* Mean of n values with its two-sided t interval at the given level (0.95). */
struct stats_interval stats_t_interval(const double *x, size_t n, double level);

/*
 * The 20 % trimmed mean of n values with its two-sided interval at the given level: a t interval of
 * n - 2g - 1 degrees of freedom over the winsorized deviation, g = n / 5 cut at either end (Tukey and
 * McLaughlin 1963; the share kept is (n - 2g) / n as it is, not 0.6). Sorts and changes x.
 */
struct stats_interval stats_trimmed_interval(double *x, size_t n, double level);

#endif
