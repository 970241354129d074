/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APP_STATS_H
#define APP_STATS_H

/*
 * Statistics over arrays of doubles; knows nothing else.
 */
#include <stddef.h>
#include <stdint.h>

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

/*
 * The difference of the means of two independent samples, b less a, with its two-sided interval at the
 * given level: Welch's, whose degrees of freedom (Welch 1947, Satterthwaite 1946) go to *df. n is the
 * smaller one's. INFINITY for half, NAN for *df, where either has fewer than 2 values; where neither
 * varies, half is 0 and *df NAN.
 */
struct stats_interval stats_welch(
		const double *a, size_t na, const double *b, size_t nb, double level, double *df);

/*
 * Two-sided p value of the sign test: that as many or more of n values lie on one side of 0, were
 * either side as likely. Zeros are left out; 1 where nothing is left. Exact up to 2000 values: the
 * binomial sum.
 */
double stats_sign_test(const double *x, size_t n);

struct stats_range {
	double low, high;
};

/*
 * Two-sided interval of the mean at the given level by the studentised bootstrap (Efron 1979; Davison
 * and Hinkley, Bootstrap Methods and their Application, 1997, section 5.2): quantiles of the t of so many
 * resamples, which seed draws. NAN for n < 2 or without memory; where the values do not vary both ends
 * are the mean.
 */
struct stats_range stats_bootstrap_t(
		const double *x, size_t n, double level, unsigned int resamples, uint64_t seed);

/*
 * Two-sided interval of the median at the given level (0 < level < 1), whatever the distribution: the k-th
 * smallest and the k-th largest of n values, with the largest k for which twice the chance of fewer than k
 * heads in n tosses of a coin is at most 1 - level (Conover, Practical Nonparametric Statistics, 1999,
 * section 3.2). NAN where n is too small for the level (below 6 at 0.95), above 1000, or without memory.
 */
struct stats_range stats_median_interval(const double *x, size_t n, double level);

/* Least-squares slope of y over x; NAN where x does not vary. */
double stats_slope(const double *x, const double *y, size_t n);

/*
 * The bits that describe one group of n >= 1 values as of equal mean, after BitCountingStats of jumpavg, the
 * library that FD.io CSIT finds its trends with (csit-trending, "Trend Analysis": minimum description
 * length). Written after the method, not after its code: constants may differ. x >= 0, max the
 * largest value of the whole series and unit > 0 their resolution, all in the values' own unit; before is the
 * mean of the group before, NAN for the first. With M = max / unit, the population's deviation s (divisor n)
 * over unit, and d the distance of the mean from before over unit, the sum of
 *
 *   count      log2(n (n + 1)), a count of n having the probability 1 / n - 1 / (n + 1)
 *   mean       log2(M + 1) in the first group, uniform from 0 to max; else log2((M + 1)^2 / (d + 1)): a new
 *              group is the likelier the farther off it is. The probabilities of all d sum up to 1 at most;
 *              to make it 1 would take a norm that depends on before
 *   deviation  log2(M + 1), uniform from 0 to max; of n >= 2 only
 *   values     log2 A, of n >= 2 only: values of a normal distribution whose mean and deviation are known
 *              are uniform on a sphere in n - 1 dimensions, of radius (s + 1) sqrt(n) and of area
 *              A = 2 pi^((n - 1) / 2) / gamma((n - 1) / 2) ((s + 1) sqrt(n))^(n - 2)
 *
 * NAN for n = 0.
 */
double stats_group_bits(const double *x, size_t n, double max, double unit, double before);

/*
 * Split a series of n values, each >= 0, into groups that follow each other, so that the sum of their
 * stats_group_bits() is the least of all 2^(n - 1) ways; there is no other cost of a group. unit > 0 is the
 * resolution of the values, far below the largest. Group i ends before x[ends[i]]; ends has room for n.
 * Returns the number of groups; 0 for n = 0, without memory, or where a value or unit is outside its range.
 * By dynamic programming over the n (n + 1) / 2 groups that there can be, each behind every one that can be
 * before it: time n^3, memory n^2.
 */
size_t stats_partition(const double *x, size_t n, double unit, size_t *ends);

/*
 * The next number of a generator that seeds itself from any *state (splitmix64; Steele, Lea and Flood,
 * OOPSLA 2014), uniform below bound >= 1 but for a bias below bound / 2^64.
 */
uint64_t stats_random(uint64_t *state, uint64_t bound);

#endif
