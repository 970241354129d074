/* SPDX-License-Identifier: BSD-3-Clause */
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "stats.h"

#define BETA_TERMS_MAX 100000

double
stats_mean(const double *x, size_t n)
{
	double sum = 0, rest = 0;

	if (n == 0)
		return NAN;
	for (size_t i = 0; i < n; i++)
		sum += x[i];
	/* A second pass takes the rounding of the first out again. */
	for (size_t i = 0; i < n; i++)
		rest += x[i] - sum / n;
	return sum / n + rest / n;
}

double
stats_sd(const double *x, size_t n)
{
	double mean = stats_mean(x, n);
	double squares = 0;

	if (n < 2)
		return NAN;
	for (size_t i = 0; i < n; i++)
		squares += (x[i] - mean) * (x[i] - mean);
	return sqrt(squares / (n - 1));
}

static int
compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double
stats_median(const double *x, size_t n)
{
	double *sorted, median;

	if (n == 0)
		return NAN;
	sorted = malloc(n * sizeof(*sorted));
	if (sorted == NULL)
		return NAN;
	memcpy(sorted, x, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), compare_doubles);
	median = sorted[n / 2];
	if (n % 2 == 0)
		median = sorted[n / 2 - 1] / 2 + median / 2;
	free(sorted);
	return median;
}

struct stats_range
stats_median_interval(const double *x, size_t n, double level)
{
	struct stats_range r = { NAN, NAN };
	double *sorted, below = 0, term = pow(0.5, (double)n); /* chance of exactly k heads */
	size_t k = 0;

	/* Above, it would take logarithms: the smallest double is 2^-1074. Nobody repeats so often. */
	if (n > 1000)
		return r;
	while (k < n / 2 && 2 * (below + term) <= 1 - level) {
		below += term;
		term *= (double)(n - k) / (double)(k + 1);
		k++;
	}
	if (k == 0)
		return r;
	sorted = malloc(n * sizeof(*sorted));
	if (sorted == NULL)
		return r;
	memcpy(sorted, x, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), compare_doubles);
	r = (struct stats_range){ sorted[k - 1], sorted[n - k] };
	free(sorted);
	return r;
}

/* Numerator number i >= 1 of the continued fraction below. */
static double
beta_numerator(unsigned int i, double a, double b, double x)
{
	double m = i / 2;

	if (i % 2 == 0)
		return m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
	return -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
}

/*
 * The continued fraction of the incomplete beta function, Abramowitz & Stegun 26.5.8,
 * 1 / (1 + d1 / (1 + d2 / ...)), from the front by the modified method of Lentz (Thompson and
 * Barnett, J. Comput. Phys. 64, 490, 1986). Converges fast for x < (a + 1) / (a + b + 2).
 * NAN where it does not.
 */
static double
beta_fraction(double a, double b, double x)
{
	const double tiny = 1e-300; /* stands for 0 in a denominator */
	double value = 1, c = 1, d = 0, step;

	for (unsigned int i = 1; i <= BETA_TERMS_MAX; i++) {
		double numerator = beta_numerator(i, a, b, x);

		d = 1 + numerator * d;
		d = 1 / (d == 0 ? tiny : d);
		c = 1 + numerator / c;
		c = c == 0 ? tiny : c;
		step = c * d;
		value *= step;
		if (fabs(step - 1) <= DBL_EPSILON)
			return 1 / value;
	}
	return NAN;
}

/*
 * gamma(z + 1/2) / gamma(z). The series is Abramowitz & Stegun 6.1.47 with a = 1/2, b = 0; its
 * first term left out is below 2e-13 from z = 100. A difference of lgamma()s would lose nine
 * digits at z = 5e5.
 */
static double
gamma_ratio(double z)
{
	double r = 1 / z;

	if (z < 100)
		return tgamma(z + 0.5) / tgamma(z);
	return sqrt(z) *
			(1 + r * (-1.0 / 8 + r * (1.0 / 128 + r * (5.0 / 1024 - r * 21.0 / 32768))));
}

/*
 * The upper tail P(T > t) of t > 0, and P(0 < T < t) in *centre. Only the one whose fraction
 * converges is computed; the other is what is left of 1/2.
 * Abramowitz & Stegun 26.7.1 with 26.5.2: P(T > t) = I_x(df/2, 1/2) / 2, x = df / (df + t^2).
 */
static double
t_tail(double t, double df, double *centre)
{
	double n = df / 2;
	double u = t * t / df; /* x = 1 / (1 + u), 1 - x = u / (1 + u) */
	/* x^n (1 - x)^(1/2) / B(n, 1/2) */
	double front = exp(-n * log1p(u)) * sqrt(u / (1 + u)) * gamma_ratio(n) / sqrt(M_PI);
	double tail;

	if (1 / (1 + u) < (n + 1) / (n + 2.5)) {
		tail = front / n * beta_fraction(n, 0.5, 1 / (1 + u)) / 2;
		*centre = 0.5 - tail;
		return tail;
	}
	*centre = front * beta_fraction(0.5, n, u / (1 + u));
	return 0.5 - *centre;
}

/* Whether t stays below the quantile of the upper tail q <= 1/2. */
static bool
t_is_below(double t, double df, double q)
{
	double centre;
	double tail = t_tail(t, df, &centre);

	/* Near the median the tail has lost what tells quantiles apart; 0.5 - q is exact there. */
	return q < 0.25 ? tail > q : centre < 0.5 - q;
}

double
stats_t_quantile(double p, double df)
{
	double q = p < 0.5 ? p : 1 - p;
	double low = 0, high = 1, middle;

	if (!(p > 0 && p < 1) || !(df >= 1) || isinf(df))
		return NAN;
	if (p == 0.5)
		return 0;
	/* Bisection to the last bit: this is called a few times a run. */
	while (t_is_below(high, df, q)) {
		low = high;
		high *= 2;
	}
	for (;;) {
		middle = low + (high - low) / 2;
		if (middle <= low || middle >= high)
			break;
		if (t_is_below(middle, df, q))
			low = middle;
		else
			high = middle;
	}
	return p < 0.5 ? -high : high;
}

struct stats_interval
stats_t_interval(const double *x, size_t n, double level)
{
	struct stats_interval interval = { .n = n, .mean = stats_mean(x, n), .half = INFINITY };

	if (n >= 2)
		interval.half = stats_t_quantile(0.5 + level / 2, n - 1) * stats_sd(x, n) / sqrt(n);
	return interval;
}

struct stats_interval
stats_trimmed_interval(double *x, size_t n, double level)
{
	size_t g = n / 5, kept = n - 2 * g;
	struct stats_interval interval = { .n = n, .half = INFINITY };

	qsort(x, n, sizeof(x[0]), compare_doubles);
	interval.mean = stats_mean(x + g, kept);
	/* Winsorized: what was trimmed counts as the last value that was not. */
	for (size_t i = 0; i < g; i++) {
		x[i] = x[g];
		x[n - 1 - i] = x[n - 1 - g];
	}
	if (n >= 2)
		interval.half = stats_t_quantile(0.5 + level / 2, (double)(kept - 1)) *
				stats_sd(x, n) * sqrt((double)n) / (double)kept;
	return interval;
}

struct stats_interval
stats_welch(const double *a, size_t na, const double *b, size_t nb, double level, double *df)
{
	struct stats_interval d = { .n = na < nb ? na : nb,
		.mean = stats_mean(b, nb) - stats_mean(a, na),
		.half = INFINITY };
	double va, vb, sum;

	*df = NAN;
	if (d.n < 2)
		return d;
	va = pow(stats_sd(a, na), 2) / (double)na;
	vb = pow(stats_sd(b, nb), 2) / (double)nb;
	sum = va + vb;
	d.half = 0;
	if (sum > 0) {
		/* 1 at least, but for rounding. */
		*df = fmax(1,
				sum * sum /
						(va * va / (double)(na - 1) +
								vb * vb / (double)(nb - 1)));
		d.half = stats_t_quantile(0.5 + level / 2, *df) * sqrt(sum);
	}
	return d;
}

double
stats_sign_test(const double *x, size_t n)
{
	size_t above = 0, below = 0, fewer;
	double term, sum = 0;

	for (size_t i = 0; i < n; i++) {
		above += x[i] > 0;
		below += x[i] < 0;
	}
	n = above + below;
	fewer = above < below ? above : below;
	/* C(n, k) / 2^n for k = 0 .. fewer, by logarithms: 2^-n alone is 0 from n = 1075. */
	for (size_t k = 0; k <= fewer; k++) {
		term = lgamma((double)n + 1) - lgamma((double)k + 1) - lgamma((double)(n - k) + 1);
		sum += exp(term - (double)n * M_LN2);
	}
	/* Both tails hold the middle where there is one. */
	return fmin(1, 2 * sum);
}

uint64_t
stats_random(uint64_t *state, uint64_t bound)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	z ^= z >> 31;
	return (uint64_t)(((unsigned __int128)z * bound) >> 64);
}

/* A quantile of sorted values, between two of them by their distance (type 7 of Hyndman and Fan 1996). */
static double
sorted_quantile(const double *sorted, size_t n, double p)
{
	double at = p * (double)(n - 1), below = floor(at);
	size_t i = (size_t)below;

	/* Equal ones may be infinite. */
	if (i + 1 >= n || sorted[i + 1] == sorted[i])
		return sorted[i];
	return sorted[i] + (at - below) * (sorted[i + 1] - sorted[i]);
}

/* The t of one resample about the mean of the sample. */
static double
resampled_t(const double *x, size_t n, double mean, uint64_t *state)
{
	double sum = 0, squares = 0, variance;

	/* About the mean, so that the one-pass formula loses nothing. */
	for (size_t i = 0; i < n; i++) {
		double d = x[stats_random(state, n)] - mean;

		sum += d;
		squares += d * d;
	}
	variance = (squares - sum * sum / (double)n) / (double)(n - 1);
	/* All of one value: as far out as can be, or just the mean. */
	if (variance <= 0)
		return sum == 0 ? 0 : copysign(INFINITY, sum);
	return sum / sqrt(variance * (double)n);
}

struct stats_range
stats_bootstrap_t(const double *x, size_t n, double level, unsigned int resamples, uint64_t seed)
{
	double mean = stats_mean(x, n), error = stats_sd(x, n) / sqrt((double)n);
	struct stats_range range = { mean, mean };
	double *t;

	if (n >= 2 && error == 0)
		return range;
	range.low = range.high = NAN;
	t = n < 2 || resamples == 0 ? NULL : malloc(resamples * sizeof(*t));
	if (t == NULL)
		return range;
	for (unsigned int i = 0; i < resamples; i++)
		t[i] = resampled_t(x, n, mean, &seed);
	qsort(t, resamples, sizeof(*t), compare_doubles);
	/* A high t says that the mean of a resample is too high: the ends change sides. */
	range.low = mean - error * sorted_quantile(t, resamples, 0.5 + level / 2);
	range.high = mean - error * sorted_quantile(t, resamples, 0.5 - level / 2);
	free(t);
	return range;
}

double
stats_slope(const double *x, const double *y, size_t n)
{
	double mean_x = stats_mean(x, n), mean_y = stats_mean(y, n), xy = 0, xx = 0;

	for (size_t i = 0; i < n; i++) {
		xy += (x[i] - mean_x) * (y[i] - mean_y);
		xx += (x[i] - mean_x) * (x[i] - mean_x);
	}
	return xx > 0 ? xy / xx : NAN;
}

/* What stats_group_bits() is the sum of: a mean; and all but the mean. */
static double
mean_bits(double mean, double max, double unit, double before)
{
	double bits = log2(max / unit + 1);

	return isnan(before) ? bits : 2 * bits - log2(fabs(mean - before) / unit + 1);
}

static double
scatter_bits(const double *x, size_t n, double mean, double max, double unit)
{
	double squares = 0, count = (double)n, bits = log2(count * (count + 1)), radius;

	if (n < 2)
		return bits;
	for (size_t i = 0; i < n; i++)
		squares += (x[i] - mean) * (x[i] - mean);
	/* One unit more, so that equal values do not come for less than nothing. */
	radius = (sqrt(squares / count) / unit + 1) * sqrt(count);
	bits += log2(max / unit + 1);
	bits += 1 + (count - 1) / 2 * log2(M_PI) - lgamma((count - 1) / 2) / M_LN2;
	return bits + (count - 2) * log2(radius);
}

double
stats_group_bits(const double *x, size_t n, double max, double unit, double before)
{
	double mean = stats_mean(x, n);

	return n == 0 ? NAN
		      : mean_bits(mean, max, unit, before) + scatter_bits(x, n, mean, max, unit);
}

/* The best way to split all values up to the end of a group, of those whose last group it is. */
struct split {
	double mean;
	double bits; /* of all groups up to here */
	size_t before; /* where the group before begins; unused in the first */
};

/* at[begin * n + end - 1], for each group that there can be. */
static void
split_all(struct split *at, const double *x, size_t n, double max, double unit)
{
	for (size_t begin = 0; begin < n; begin++)
		for (size_t end = begin + 1; end <= n; end++) {
			struct split *s = &at[begin * n + end - 1];
			double best = INFINITY;

			s->mean = stats_mean(x + begin, end - begin);
			if (begin == 0)
				best = mean_bits(s->mean, max, unit, NAN);
			for (size_t k = 0; k < begin; k++) {
				const struct split *b = &at[k * n + begin - 1];
				double bits = b->bits + mean_bits(s->mean, max, unit, b->mean);

				if (bits < best) {
					best = bits;
					s->before = k;
				}
			}
			s->bits = best + scatter_bits(x + begin, end - begin, s->mean, max, unit);
		}
}

/* Where the groups of the best way end; their number. */
static size_t
best_ends(const struct split *at, size_t n, size_t *ends)
{
	size_t begin = 0, end = n, nb = 0;

	for (size_t k = 1; k < n; k++)
		if (at[k * n + n - 1].bits < at[begin * n + n - 1].bits)
			begin = k;
	/* From the last to the first, into the end of the array. */
	for (;;) {
		size_t before = at[begin * n + end - 1].before;

		ends[n - ++nb] = end;
		if (begin == 0)
			break;
		end = begin;
		begin = before;
	}
	memmove(ends, ends + n - nb, nb * sizeof(*ends));
	return nb;
}

size_t
stats_partition(const double *x, size_t n, double unit, size_t *ends)
{
	struct split *at;
	size_t nb;
	double max = 0;

	if (n == 0 || !(unit > 0) || !isfinite(unit))
		return 0;
	for (size_t i = 0; i < n; i++) {
		if (!(x[i] >= 0) || !isfinite(x[i]))
			return 0;
		max = fmax(max, x[i]);
	}
	at = calloc(n, n * sizeof(*at));
	if (at == NULL)
		return 0;
	split_all(at, x, n, max, unit);
	nb = best_ends(at, n, ends);
	free(at);
	return nb;
}
