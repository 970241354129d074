/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
