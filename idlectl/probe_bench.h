/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IDLECTL_PROBE_BENCH_H
#define IDLECTL_PROBE_BENCH_H

/*
 * idlectl probe eoi --bench: perf bench sched under two settings in turn. Its arithmetic stands apart from
 * the machine.
 */
#include <stdbool.h>
#include <stddef.h>

#include "probe.h"

/* Runs of a benchmark under one setting. */
struct bench_runs {
	size_t n; /* >= 1 */
	double mean; /* s, > 0 */
	double sd; /* of one run, s, divisor n - 1; NAN for n < 2 */
};

struct bench_runs bench_runs_of(const double *seconds, size_t n);

/* From a mean and its relative standard error in percent, as perf stat --repeat prints them. */
struct bench_runs bench_runs_published(size_t n, double mean, double rse);

/* The relative standard error of the mean in percent: 100 sd / sqrt(n) / mean. */
double bench_rse(const struct bench_runs *r);

enum bench_answer {
	BENCH_UNKNOWN, /* one run has no standard error */
	BENCH_BELOW, /* the noise */
	BENCH_BEYOND, /* three standard errors */
};

struct bench_verdict {
	double difference; /* other less base, s */
	double percent; /* the same, of base */
	double se; /* standard error of the difference: sqrt(sd^2 / n + sd^2 / n), s */
	double z; /* difference / se; infinite where there is no noise at all */
	double sds; /* difference / sd of one run of base: the published measure */
	enum bench_answer answer;
};

/* Whether two means differ: |z| >= 3. */
struct bench_verdict bench_compare(const struct bench_runs *base, const struct bench_runs *other);

/*
 * The seconds in what perf bench printed: by usecs/op, which is for one of so many loops (0: it is not), where it stands
 * there, else by the total time, which is of whole milliseconds. False where there is neither.
 */
bool bench_parse(const char *text, unsigned long loops, double *seconds);

/* Add what is published of benchmarks. */
void bench_publish(struct probe_report *r);

/* As the other probes; o->bench or one of the settings is given. */
int probe_bench(struct probe_report *r, const struct probe_options *o, struct err *err);

#endif
