/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "stats.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static void
assert_close(double got, double wanted, double bound)
{
	if (fabs(got - wanted) <= bound * fabs(wanted))
		return;
	print_error("%.17g is not %.17g within %g\n", got, wanted, bound);
	fail();
}

/* ---- the trimmed mean ---- */

/* By scipy.stats: trim_mean(x, 0.2) and mstats.trimmed_mean_ci(x, (0.2, 0.2), alpha=0.05). */
static void
trimmed_interval_is_that_of_scipy(void **state)
{
	double x[] = { 3, 1, 4, 1.5, 9, 2.6, 5.3, 5.8, 9.7, 93 }, y[] = { 2, 8 }, z[] = { 7 };
	struct stats_interval i = stats_trimmed_interval(x, 10, 0.95);

	(void)state;
	assert_float_equal(i.mean, 4.95, 1e-9);
	assert_float_equal(i.half, 3.7829584660374134, 1e-9);
	i = stats_trimmed_interval(y, 2, 0.95);
	assert_float_equal(i.mean, 5, 1e-12);
	assert_float_equal(i.half, 12.706204736174693 * 3, 1e-9);
	assert_true(isinf(stats_trimmed_interval(z, 1, 0.95).half));
}

/* ---- Student's t ---- */

struct quantile {
	double p, df, t;
};

/* To 17 digits by mpmath with 40: the root of the hypergeometric form of the distribution. */
static const struct quantile quantiles[] = {
	{ 0.975, 1, 12.706204736174693 },
	{ 0.001, 1, -318.30883898555044 },
	{ 0.9999, 1, 3183.0987571185015 },
	{ 0.75, 1, 1 },
	{ 0.5001, 1, 0.00031415927569437069 },
	{ 0.975, 1.5, 6.0166631044279283 },
	{ 0.01, 1.5, -11.197316179568398 },
	{ 0.975, 2, 4.3026527297494618 },
	{ 0.9999, 2, 70.700071074968172 },
	{ 0.9, 2.7, 1.688108175146643 },
	{ 0.975, 3, 3.1824463052837084 },
	{ 0.995, 4, 4.604094871349992 },
	{ 0.6, 5, 0.26718086570414507 },
	{ 0.975, 9, 2.262157162798205 },
	{ 0.001, 9, -4.2968056627299185 },
	{ 0.9999, 9.5, 5.8405730577197778 },
	{ 0.7, 19, 0.53331388164220481 },
	{ 0.975, 29, 2.0452296421327039 },
	{ 0.499, 30, -0.0025276030072151389 },
	{ 0.99, 99.3, 2.3644884787826659 },
	{ 0.975, 100, 1.9839715185235519 },
	{ 0.9999, 150.25, 3.812852308519007 },
	{ 0.75, 199, 0.67572459561064572 },
	{ 0.75, 199.9, 0.67571902703608408 },
	{ 0.75, 200, 0.6757184114042202 },
	{ 0.975, 200, 1.971896223633909 },
	{ 0.999, 200.5, 3.1313757052697393 },
	{ 0.001, 201, -3.1312721205201907 },
	{ 0.975, 999.5, 1.9623402703838454 },
	{ 0.9, 10000, 1.2816362297304777 },
	{ 0.995, 12345.6, 2.5762276044252137 },
	{ 0.975, 100000, 1.9599877075346093 },
	{ 0.4, 100000, -0.25334777715717989 },
	{ 0.001, 1000000, -3.0902404563165196 },
	{ 0.975, 1000000, 1.9599663568141067 },
	{ 0.9999, 1000000, 3.7190302747625712 },
	{ 0.50000001, 1000000, 2.5066289138833546e-8 },
};

static void
t_quantile_is_that_of_mpmath(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(quantiles); i++)
		assert_close(stats_t_quantile(quantiles[i].p, quantiles[i].df), quantiles[i].t,
				1e-11);
}

/*
 * scipy's quantile is itself off by up to 5e-9; one Newton step with its distribution function,
 * which is better, makes it a reference.
 */
static const char scipy[] = "/usr/bin/python3 -c '"
			    "import random\n"
			    "from scipy.stats import t\n"
			    "random.seed(4)\n"
			    "for i in range(2000):\n"
			    "    p = random.uniform(0.001, 0.9999)\n"
			    "    df = 10 ** random.uniform(0, 6)\n"
			    "    if i % 4 == 0:\n"
			    "        p, df = random.choice([0.95, 0.975, 0.995]), i // 4 + 1\n"
			    "    x = t.ppf(p, df)\n"
			    "    x -= (t.cdf(x, df) - p) / t.pdf(x, df)\n"
			    "    print(repr(p), repr(df), repr(float(x)))\n"
			    "' 2>/dev/null";

static void
t_quantile_is_that_of_scipy(void **state)
{
	FILE *in = popen(scipy, "r");
	struct quantile q;
	unsigned int n = 0;

	(void)state;
	assert_non_null(in);
	while (fscanf(in, "%lf %lf %lf", &q.p, &q.df, &q.t) == 3) {
		/* Near the median only absolute accuracy is in scipy's figures. */
		if (fabs(q.t) > 1e-4)
			assert_close(stats_t_quantile(q.p, q.df), q.t, 1e-9);
		n++;
	}
	pclose(in);
	if (n == 0)
		skip(); /* no scipy here */
	assert_int_equal(n, 2000);
}

static void
t_quantile_is_odd_and_increasing(void **state)
{
	static const double dfs[] = { 1, 1.25, 2, 7.5, 60, 199.5, 200, 1e4, 1e6 };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(dfs); i++) {
		double last = -INFINITY;

		for (double p = 1.0 / 64; p < 1; p += 1.0 / 64) {
			double t = stats_t_quantile(p, dfs[i]);

			assert_true(t > last);
			assert_true(stats_t_quantile(1 - p, dfs[i]) == -t);
			last = t;
		}
		assert_true(stats_t_quantile(0.5, dfs[i]) == 0);
	}
}

static void
t_quantile_outside_its_range_is_nan(void **state)
{
	(void)state;
	assert_true(isnan(stats_t_quantile(0, 3)));
	assert_true(isnan(stats_t_quantile(1, 3)));
	assert_true(isnan(stats_t_quantile(-0.5, 3)));
	assert_true(isnan(stats_t_quantile(NAN, 3)));
	assert_true(isnan(stats_t_quantile(0.9, 0.5)));
	assert_true(isnan(stats_t_quantile(0.9, NAN)));
	assert_true(isnan(stats_t_quantile(0.9, INFINITY)));
}

/* ---- moments ---- */

static void
mean_and_sd_of_small_samples(void **state)
{
	static const double x[] = { 2, 4, 4, 4, 5, 5, 7, 9 };

	(void)state;
	assert_true(stats_mean(x, COUNT_OF(x)) == 5);
	assert_close(stats_sd(x, COUNT_OF(x)), sqrt(32.0 / 7), 1e-15);
	assert_true(stats_mean(x, 1) == 2);
	assert_close(stats_sd(x, 2), sqrt(2), 1e-15);
}

static void
too_few_values_are_nan(void **state)
{
	static const double x[] = { 3 };

	(void)state;
	assert_true(isnan(stats_mean(x, 0)));
	assert_true(isnan(stats_median(x, 0)));
	assert_true(isnan(stats_sd(x, 0)));
	assert_true(isnan(stats_sd(x, 1)));
	assert_true(stats_median(x, 1) == 3);
}

/* Packets a second are large and near each other: where the one-pass formula fails. */
static void
sd_survives_a_large_mean(void **state)
{
	double x[1000];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(x); i++)
		x[i] = 1e12 + (i % 2 == 0 ? 0.5 : -0.5);
	assert_true(stats_mean(x, COUNT_OF(x)) == 1e12);
	assert_close(stats_sd(x, COUNT_OF(x)), 0.5 * sqrt(1000.0 / 999), 1e-12);
}

static void
median_of_odd_and_even_samples(void **state)
{
	static const double x[] = { 5, 1, 4, 2, 3, 100 };
	double copy[COUNT_OF(x)];

	(void)state;
	memcpy(copy, x, sizeof(copy));
	assert_true(stats_median(copy, 5) == 3);
	assert_true(stats_median(copy, 6) == 3.5);
	assert_memory_equal(copy, x, sizeof(copy));
}

/* ---- the interval ---- */

static void
t_interval_of_a_known_sample(void **state)
{
	static const double x[] = { 10, 12, 14 };
	struct stats_interval i = stats_t_interval(x, COUNT_OF(x), 0.95);

	(void)state;
	assert_int_equal(i.n, 3);
	assert_true(i.mean == 12);
	/* 4.3027 x 2 / sqrt(3) */
	assert_close(i.half, 4.3026527297494618 * 2 / sqrt(3), 1e-12);
	assert_true(stats_t_interval(x, COUNT_OF(x), 0.99).half > i.half);
}

static void
t_interval_of_too_few_is_infinite(void **state)
{
	static const double x[] = { 10 };
	struct stats_interval one = stats_t_interval(x, 1, 0.95);
	struct stats_interval none = stats_t_interval(x, 0, 0.95);

	(void)state;
	assert_true(one.mean == 10 && isinf(one.half) && one.n == 1);
	assert_true(isnan(none.mean) && isinf(none.half) && none.n == 0);
}

/* What the interval promises: it holds the true mean in 95 of 100 samples. */
static void
t_interval_covers_the_mean(void **state)
{
	unsigned int covered = 0, runs = 20000;
	unsigned short seed[3] = { 1, 2, 3 };

	(void)state;
	for (unsigned int r = 0; r < runs; r++) {
		double x[5];
		struct stats_interval i;

		for (size_t k = 0; k < COUNT_OF(x); k++)
			x[k] = sqrt(-2 * log(1 - erand48(seed))) * cos(2 * M_PI * erand48(seed));
		i = stats_t_interval(x, COUNT_OF(x), 0.95);
		covered += fabs(i.mean) <= i.half;
	}
	/* 0.95 within four standard errors */
	assert_true(fabs(covered / (double)runs - 0.95) < 4 * sqrt(0.95 * 0.05 / runs));
}

/* ---- the interval of the median ---- */

/* By scipy.stats.binom: the largest k with 2 * cdf(k - 1, n, 0.5) <= 1 - level, and the values at its ends. */
static const char median_ranks[] =
		"/usr/bin/python3 -c '"
		"from scipy.stats import binom\n"
		"for level in (0.5, 0.9, 0.95, 0.99):\n"
		"    for n in list(range(1, 60)) + [100, 999, 1000]:\n"
		"        k = 0\n"
		"        while k < n // 2 and 2 * binom.cdf(k, n, 0.5) <= 1 - level: k += 1\n"
		"        print(level, n, k)\n"
		"' 2>/dev/null";

static void
median_interval_is_by_the_ranks_of_scipy(void **state)
{
	FILE *in = popen(median_ranks, "r");
	double x[1000], level;
	size_t n, k, rows = 0;

	(void)state;
	assert_non_null(in);
	while (fscanf(in, "%lf %zu %zu", &level, &n, &k) == 3) {
		struct stats_range r;

		/* 1 to n, not in order. */
		for (size_t i = 0; i < n; i++)
			x[i] = (double)(n - i);
		r = stats_median_interval(x, n, level);
		if (k == 0) {
			assert_true(isnan(r.low) && isnan(r.high));
		} else {
			assert_true(r.low == (double)k);
			assert_true(r.high == (double)(n + 1 - k));
		}
		rows++;
	}
	if (pclose(in) != 0)
		skip(); /* no scipy here */
	assert_int_equal(rows, 4 * 62);
}

static void
median_interval_of_too_many_is_nan(void **state)
{
	static double x[1001];

	(void)state;
	assert_true(isnan(stats_median_interval(x, 1001, 0.95).low));
	assert_true(isnan(stats_median_interval(x, 0, 0.95).low));
}

/* ---- comparisons ---- */

#define SAMPLE_MAX 40

/*
 * Pairs of samples, of 1 to 40 values, equal values among them, and what scipy says of them: interval and
 * degrees of freedom of Welch's test; sign test, slope, median, and t intervals at 95 % and, as for two
 * comparisons, at 97.5 % of the second sample; and the studentised bootstrap of the second by numpy, whose resamples are others than ours.
 */
static const char comparisons[] =
		"/usr/bin/python3 -c '"
		"import numpy as np\n"
		"from scipy import stats\n"
		"r = np.random.default_rng(5)\n"
		"for i in range(400):\n"
		"    na, nb = (int(r.integers(1, 4)) if i % 4 == 0 else int(r.integers(2, 41)) for _ in 2 * [0])\n"
		"    scale = 10.0 ** r.uniform(-6, 6)\n"
		"    a, b = r.normal(3, 1, na) * scale, r.standard_t(4, nb) * scale\n"
		"    if i % 10 == 1: a[:] = a[0]; b[:] = b[0]\n"
		"    if i % 10 == 2: b = np.round(b / scale) * scale\n"
		"    half, df = np.inf, np.nan\n"
		"    if na > 1 and nb > 1:\n"
		"        va, vb = a.var(ddof=1) / na, b.var(ddof=1) / nb\n"
		"        half = 0.0\n"
		"        if np.ptp(a) + np.ptp(b) > 0:\n"
		"            df = (va + vb) ** 2 / (va ** 2 / (na - 1) + vb ** 2 / (nb - 1))\n"
		"            t, p = stats.ttest_ind(b, a, equal_var=False)\n"
		"            assert abs(p - 2 * stats.t.sf(abs(t), df)) < 1e-9\n"
		"            half = abs((b.mean() - a.mean()) / t) * stats.t.ppf(0.975, df)\n"
		"    up, down = int((b > 0).sum()), int((b < 0).sum())\n"
		"    sign = stats.binomtest(up, up + down).pvalue if up + down else 1.0\n"
		"    x = np.arange(nb) * 0.5\n"
		"    slope = stats.linregress(x, b).slope if nb > 1 else np.nan\n"
		"    low = high = np.nan\n"
		"    if i % 20 == 3 and nb >= 20:\n"
		"        draws = b[r.integers(0, nb, (100000, nb))]\n"
		"        t = (draws.mean(1) - b.mean()) / draws.std(1, ddof=1) * nb ** 0.5\n"
		"        se = b.std(ddof=1) / nb ** 0.5\n"
		"        low, high = b.mean() - se * np.quantile(t, [0.975, 0.025])\n"
		"    t95, t975 = np.inf, np.inf\n"
		"    if nb > 1:\n"
		"        t95, t975 = (stats.sem(b) * stats.t.ppf((1 + p) / 2, nb - 1) for p in (0.95, 0.975))\n"
		"    if nb > 2 and np.ptp(b) > 0:\n"
		"        assert abs(stats.t.interval(0.95, nb - 1, b.mean(), stats.sem(b))[1] - b.mean() - t95) <= 1e-9 * scale\n"
		"    print(na, nb, *map(repr, map(float, [half, df, sign, slope, low, high, t95, t975, np.median(b), *a, *b])))\n"
		"' 2>/dev/null";

static bool
read_doubles(FILE *in, double *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (fscanf(in, "%lf", &x[i]) != 1)
			return false;
	return true;
}

/* Both unknown, both infinite, or equal within the bound. */
static void
assert_same(double got, double wanted, double bound)
{
	if (isnan(wanted) || isinf(wanted))
		assert_true(isnan(got) == isnan(wanted) && isinf(got) == isinf(wanted));
	else if (fabs(got - wanted) > 1e-300)
		assert_close(got, wanted, bound);
}

static void
comparisons_are_those_of_scipy(void **state)
{
	FILE *in = popen(comparisons, "r");
	unsigned int n = 0, bootstraps = 0;
	int na, nb;

	(void)state;
	assert_non_null(in);
	while (fscanf(in, "%d %d", &na, &nb) == 2) {
		/* half, df, sign, slope, low, high, t95, t975, median */
		double wanted[9], a[SAMPLE_MAX], b[SAMPLE_MAX], x[SAMPLE_MAX], df;
		struct stats_interval welch;
		struct stats_range range;

		assert_true(read_doubles(in, wanted, 9) && read_doubles(in, a, (size_t)na) &&
				read_doubles(in, b, (size_t)nb));
		for (int i = 0; i < nb; i++)
			x[i] = 0.5 * i;
		welch = stats_welch(a, (size_t)na, b, (size_t)nb, 0.95, &df);
		assert_int_equal(welch.n, na < nb ? na : nb);
		assert_same(welch.half, wanted[0], 1e-7);
		assert_same(df, wanted[1], 1e-9);
		assert_close(stats_sign_test(b, (size_t)nb), wanted[2], 1e-9);
		/* Of equal values rounding leaves scipy a slope. */
		if (fabs(wanted[3]) > 1e-12 * fabs(b[0]) || isnan(wanted[3]))
			assert_same(stats_slope(x, b, (size_t)nb), wanted[3], 1e-9);
		/* Nor a deviation. */
		if (!(wanted[6] <= 1e-12 * fabs(b[0]))) {
			assert_same(stats_t_interval(b, (size_t)nb, 0.95).half, wanted[6], 1e-7);
			assert_same(stats_t_interval(b, (size_t)nb, 0.975).half, wanted[7], 1e-7);
		}
		assert_same(stats_median(b, (size_t)nb), wanted[8], 1e-12);
		if (!isnan(wanted[4])) {
			range = stats_bootstrap_t(b, (size_t)nb, 0.95, 10000, n);
			/* Two sets of resamples differ by a few percent of the width. */
			assert_true(fabs(range.low - wanted[4]) < 0.1 * (wanted[5] - wanted[4]));
			assert_true(fabs(range.high - wanted[5]) < 0.1 * (wanted[5] - wanted[4]));
			bootstraps++;
		}
		n++;
	}
	pclose(in);
	if (n == 0)
		skip(); /* no scipy here */
	assert_int_equal(n, 400);
	assert_true(bootstraps >= 5);
}

static void
welch_has_the_sign_of_b_less_a(void **state)
{
	static const double a[] = { 1, 2, 3 }, b[] = { 11, 12, 13 }, same[] = { 4, 4 };
	double df;

	(void)state;
	assert_true(stats_welch(a, 3, b, 3, 0.95, &df).mean == 10);
	assert_close(df, 4, 1e-12);
	assert_true(stats_welch(same, 2, same, 2, 0.95, &df).half == 0 && isnan(df));
	assert_true(isinf(stats_welch(a, 3, b, 1, 0.95, &df).half));
}

static void
bootstrap_of_few_and_of_equal_values(void **state)
{
	static const double x[] = { 1, 2 }, same[] = { 7, 7, 7 };
	struct stats_range r = stats_bootstrap_t(x, 1, 0.95, 100, 1);

	(void)state;
	assert_true(isnan(r.low) && isnan(r.high));
	r = stats_bootstrap_t(same, 3, 0.95, 100, 1);
	assert_true(r.low == 7 && r.high == 7);
	/* Half of the resamples of two values do not vary: nothing is excluded. */
	r = stats_bootstrap_t(x, 2, 0.95, 1000, 1);
	assert_true(isinf(r.low) && r.low < 0 && isinf(r.high) && r.high > 0);
}

static void
bootstrap_is_the_same_by_the_same_seed(void **state)
{
	static const double x[] = { 3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4 };
	struct stats_range a = stats_bootstrap_t(x, COUNT_OF(x), 0.95, 1000, 1);
	struct stats_range b = stats_bootstrap_t(x, COUNT_OF(x), 0.95, 1000, 1);
	struct stats_range c = stats_bootstrap_t(x, COUNT_OF(x), 0.95, 1000, 2);

	(void)state;
	assert_true(a.low == b.low && a.high == b.high && a.low != c.low);
}

static void
random_numbers_are_even(void **state)
{
	unsigned int counts[7] = { 0 };
	uint64_t seed = 1;

	(void)state;
	for (unsigned int i = 0; i < 70000; i++)
		counts[stats_random(&seed, 7)]++;
	/* five standard deviations of a binomial */
	for (unsigned int i = 0; i < 7; i++)
		assert_true(fabs(counts[i] - 10000.0) < 5 * sqrt(70000.0 * 6 / 49));
	/* Steele, Lea and Flood's generator from 0, its first number. */
	seed = 0;
	assert_true(stats_random(&seed, UINT64_MAX) == 0xe220a8397b1dcdae);
}

/* ---- groups of equal mean ---- */

#define SERIES_MAX 10

/* By hand, from the parts that stats.h lists. */
static void
bits_of_small_groups(void **state)
{
	static const double one[] = { 5 }, two[] = { 3, 5 }, three[] = { 2, 4, 6 },
			    same[] = { 7, 7, 7, 7 };

	(void)state;
	/* count 1: 1 bit; mean among 0 .. 7: 3 bits */
	assert_close(stats_group_bits(one, 1, 7, 1, NAN), 4, 1e-15);
	/* behind a mean of 2, three off: 6 bits less log2 4 */
	assert_close(stats_group_bits(one, 1, 7, 1, 2), 5, 1e-15);
	/* count log2 6, mean and deviation log2 6 each, and which of the two is the larger one: 1 bit */
	assert_close(stats_group_bits(two, 2, 5, 1, NAN), 8.754887502163468, 1e-14);
	/* log2 12 + 3 + 3; a circle about a radius of (sqrt(8/3) + 1) sqrt(3), 2 pi 4.560478 */
	assert_close(stats_group_bits(three, 3, 7, 1, NAN),
			3.584962500721156 + 6 + log2(2 * M_PI * (sqrt(8) + sqrt(3))), 1e-14);
	/* log2 20 + 3 + 3; a sphere of radius 1 sqrt(4): 16 pi */
	assert_close(stats_group_bits(same, 4, 7, 1, NAN), 4.321928094887363 + 6 + 4 + log2(M_PI),
			1e-14);
	/* Bits are of values over their unit. */
	assert_close(stats_group_bits(three, 3, 7, 0.5, NAN),
			3.584962500721156 + 2 * log2(15) + log2(2 * M_PI * (2 * sqrt(8) + sqrt(3))),
			1e-14);
	assert_true(isnan(stats_group_bits(one, 0, 7, 1, NAN)));
}

static void
assert_groups(const double *x, size_t n, const size_t *wanted, size_t nb)
{
	size_t ends[32];

	assert_true(n <= COUNT_OF(ends));
	assert_int_equal(stats_partition(x, n, 1, ends), nb);
	for (size_t i = 0; i < nb; i++)
		assert_int_equal(ends[i], wanted[i]);
}

static void
equal_values_are_one_group(void **state)
{
	double x[32];

	(void)state;
	for (size_t n = 1; n <= COUNT_OF(x); n++) {
		x[n - 1] = 1e7;
		assert_groups(x, n, &n, 1);
	}
}

/* Five below a million and five above a tenth less, all within 0.1 %. */
static void
a_step_parts_two_groups(void **state)
{
	static const double x[] = { 1000500, 999600, 1000100, 999200, 1000700, 900400, 899500,
		900900, 899800, 900100 };

	(void)state;
	assert_groups(x, 10, (const size_t[]){ 5, 10 }, 2);
	/* Too few to be worth another mean and another deviation. */
	assert_groups(x + 3, 4, (const size_t[]){ 4 }, 1);
}

static void
scatter_parts_nothing(void **state)
{
	static const double x[] = { 1000500, 999600, 1000100, 999200, 1000700, 1000400, 999500,
		1000900, 999800, 1000100 };

	(void)state;
	assert_groups(x, 10, (const size_t[]){ 10 }, 1);
}

static void
an_outlier_is_a_group_of_its_own(void **state)
{
	static const double x[] = { 1000500, 999600, 1000100, 999200, 1000700, 500000, 1000400,
		999500, 1000900, 999800, 1000100 };

	(void)state;
	assert_groups(x, 11, (const size_t[]){ 5, 6, 11 }, 3);
}

static void
no_series_has_no_groups(void **state)
{
	static const double one[] = { 3 }, below[] = { 1, -1 }, none[] = { 1, NAN },
			    endless[] = { INFINITY };
	size_t ends[2];

	(void)state;
	assert_int_equal(stats_partition(one, 0, 1, ends), 0);
	assert_groups(one, 1, (const size_t[]){ 1 }, 1);
	assert_int_equal(stats_partition(below, 2, 1, ends), 0);
	assert_int_equal(stats_partition(none, 2, 1, ends), 0);
	assert_int_equal(stats_partition(endless, 1, 1, ends), 0);
	assert_int_equal(stats_partition(one, 1, 0, ends), 0);
	assert_int_equal(stats_partition(one, 1, NAN, ends), 0);
}

/* The bits of a group in another way: the area of a sphere from that of the one two dimensions below. */
static double
other_bits(const double *x, size_t n, double max, double *before)
{
	double sum = 0, squares = 0, radius, area, distance;

	for (size_t i = 0; i < n; i++)
		sum += x[i];
	for (size_t i = 0; i < n; i++)
		squares += pow(x[i] - sum / n, 2);
	radius = sqrt(squares) + sqrt(n);
	/* Two points, or a circle, in 1 or 2 dimensions. */
	area = n % 2 == 0 ? 2 : 2 * M_PI * radius;
	for (size_t d = n % 2 == 0 ? 3 : 4; d < n; d += 2)
		area *= 2 * M_PI / (d - 2) * radius * radius;
	distance = isnan(*before) ? max : fabs(sum / n - *before);
	*before = sum / n;
	return log2(n * (n + 1.0)) + log2((max + 1) * (max + 1) / (distance + 1)) +
			(n == 1 ? 0 : log2((max + 1) * area));
}

/* The bits of a way to split; bit i of way: a group ends behind x[i]. */
static double
way_bits(const double *x, size_t n, double max, unsigned int way)
{
	double bits = 0, before = NAN;
	size_t begin = 0;

	for (size_t i = 0; i < n; i++)
		if (i + 1 == n || (way >> i & 1) != 0) {
			bits += other_bits(x + begin, i + 1 - begin, max, &before);
			begin = i + 1;
		}
	return bits;
}

static void
partition_is_the_best_of_all(void **state)
{
	unsigned int counts[SERIES_MAX + 1] = { 0 };
	uint64_t seed = 7;

	(void)state;
	for (unsigned int series = 0; series < 400; series++) {
		double x[SERIES_MAX], level = 1e6, max = 0, best = INFINITY, bits;
		size_t ends[SERIES_MAX], n = 1 + stats_random(&seed, SERIES_MAX), nb;
		unsigned int way = 0;

		for (size_t i = 0; i < n; i++) {
			if (stats_random(&seed, 6) == 0)
				level = 5e5 + (double)stats_random(&seed, 1000000);
			x[i] = level + (double)stats_random(&seed, 100);
			max = fmax(max, x[i]);
		}
		for (unsigned int w = 0; w < 1u << (n - 1); w++)
			best = fmin(best, way_bits(x, n, max, w));
		nb = stats_partition(x, n, 1, ends);
		assert_true(nb >= 1 && nb <= n && ends[nb - 1] == n);
		for (size_t i = 0; i + 1 < nb; i++) {
			assert_true(ends[i] > 0 && ends[i] < ends[i + 1]);
			way |= 1u << (ends[i] - 1);
		}
		bits = way_bits(x, n, max, way);
		assert_close(bits, best, 1e-12);
		counts[nb]++;
	}
	/* The series are such that there is something to find. */
	assert_true(counts[1] > 40 && counts[2] > 40 && counts[3] > 10);
}

/* How many of 200 series with 0.3 % of scatter are two groups: so many runs, as many with a step. */
static unsigned int
steps_found(size_t runs, double step)
{
	unsigned short seed[3] = { 1, 2, 3 };
	unsigned int found = 0;

	for (unsigned int series = 0; series < 200; series++) {
		double x[64];
		size_t ends[64];

		for (size_t i = 0; i < 2 * runs; i++) {
			double normal = sqrt(-2 * log(1 - erand48(seed))) *
					cos(2 * M_PI * erand48(seed));

			x[i] = 1e7 * (i < runs ? 1 : 1 - step) * (1 + 0.003 * normal);
		}
		found += stats_partition(x, 2 * runs, 1, ends) == 2 && ends[0] == runs;
	}
	return found;
}

/* docs/results.md says how many runs it takes. */
static void
steps_are_found_where_there_are_some(void **state)
{
	(void)state;
	for (size_t runs = 1; runs <= 32; runs *= 2)
		assert_true(steps_found(runs, 0) <= 2);
	assert_true(steps_found(4, 0.1) >= 180);
	assert_true(steps_found(5, 0.05) >= 180);
	assert_true(steps_found(8, 0.02) >= 160);
	assert_true(steps_found(2, 0.1) <= 20);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_quantile_is_that_of_mpmath),
		cmocka_unit_test(t_quantile_is_that_of_scipy),
		cmocka_unit_test(t_quantile_is_odd_and_increasing),
		cmocka_unit_test(t_quantile_outside_its_range_is_nan),
		cmocka_unit_test(mean_and_sd_of_small_samples),
		cmocka_unit_test(too_few_values_are_nan),
		cmocka_unit_test(sd_survives_a_large_mean),
		cmocka_unit_test(median_of_odd_and_even_samples),
		cmocka_unit_test(t_interval_of_a_known_sample),
		cmocka_unit_test(t_interval_of_too_few_is_infinite),
		cmocka_unit_test(trimmed_interval_is_that_of_scipy),
		cmocka_unit_test(t_interval_covers_the_mean),
		cmocka_unit_test(median_interval_is_by_the_ranks_of_scipy),
		cmocka_unit_test(median_interval_of_too_many_is_nan),
		cmocka_unit_test(comparisons_are_those_of_scipy),
		cmocka_unit_test(welch_has_the_sign_of_b_less_a),
		cmocka_unit_test(bootstrap_of_few_and_of_equal_values),
		cmocka_unit_test(bootstrap_is_the_same_by_the_same_seed),
		cmocka_unit_test(random_numbers_are_even),
		cmocka_unit_test(bits_of_small_groups),
		cmocka_unit_test(equal_values_are_one_group),
		cmocka_unit_test(a_step_parts_two_groups),
		cmocka_unit_test(scatter_parts_nothing),
		cmocka_unit_test(an_outlier_is_a_group_of_its_own),
		cmocka_unit_test(no_series_has_no_groups),
		cmocka_unit_test(partition_is_the_best_of_all),
		cmocka_unit_test(steps_are_found_where_there_are_some),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
