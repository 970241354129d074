/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IDLECTL_PROBE_BENCH_H
#define IDLECTL_PROBE_BENCH_H

/*
 * A benchmark under two settings, in turn, and whether they differ.
 */
#include "probe.h"

/* n runs: their mean and its relative standard error, 100 sd / sqrt(n) / mean, in percent. */
struct bench_runs {
	size_t n;
	double mean, rse;
};

struct bench_runs bench_runs_of(const double *seconds, size_t n);

enum bench_verdict { BENCH_BELOW_NOISE, BENCH_FASTER, BENCH_SLOWER, BENCH_UNKNOWN };

struct bench_difference {
	double percent; /* other over base */
	double errors; /* in standard errors of the difference of the means */
	double deviations; /* in standard deviations of a single run, by which nothing was claimed in 2012 */
	enum bench_verdict verdict; /* faster or slower beyond three standard errors */
};

/* UNKNOWN where either has one run only. */
struct bench_difference bench_compare(
		const struct bench_runs *base, const struct bench_runs *other);

/* The verdict in words. */
const char *bench_verdict_text(enum bench_verdict verdict);

/* probe eoi --bench. */
int probe_bench(struct probe_report *r, const struct probe_options *o, struct err *err);

#endif
