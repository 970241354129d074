/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IDLECTL_PROBE_H
#define IDLECTL_PROBE_H

/*
 * The probes: what a privileged operation costs. What they have in common: repeats, figures as measured,
 * overhead and net, and the published ones beside them. Each probe is one file, probe_NAME.c.
 */
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "err.h"
#include "published.h"
#include "sibidle_device.h"

/* ---- figures ---- */

/* One row: medians over the repeats. NAN: not known. */
struct probe_row {
	char name[64]; /* what was measured: "pair 0-1, wait" */
	const char *metric; /* "call time", "p99" */
	const char *unit;
	size_t n; /* repeats */
	double raw, overhead; /* as measured, and what of it is not the operation */
	double net, low,
			high; /* raw - overhead in each repeat, and the 95 % interval of its median */
	double published; /* the same figure of somebody else's, in the same unit */
	char published_as[64]; /* what it was there */
};

struct probe_report {
	const char *probe;
	const struct published *system; /* NULL: nothing is published */
	struct probe_row *rows;
	size_t nb;
	json_t *notes; /* array of sentences that go below the table */
	json_t *histograms; /* array of {case, unit, bins: [{from, to, count}]} */
	json_t *facts; /* object of what else is known: seed, offset, skew */
	bool recorded; /* elsewhere: nothing is known of the machine */
	const char *unlike; /* what the published figures are of, and ours are not; NULL: the same */
	void (*table)(const struct probe_report *r); /* the rows; NULL: as of all probes */
};

/* Begin and free a report; system is the name of a file of published figures, or NULL. */
void report_begin(struct probe_report *r, const char *probe, const char *system);
void report_free(struct probe_report *r);

/*
 * Add a row from n >= 1 repeats; overhead NULL: there is none to be known, net is raw. The row that is
 * returned is good until the next one is added.
 */
struct probe_row *report_add(struct probe_report *r, const char *name, const char *metric,
		const char *unit, const double *raw, const double *overhead, size_t n);

/* Add a row of a single figure, which has no interval. */
struct probe_row *report_add_one(struct probe_report *r, const char *name, const char *metric,
		const char *unit, double value);

/*
 * Put the published figure beside a row: what published_figure() finds, times scale. It is named by where
 * it stands.
 */
void report_publish(const struct probe_report *r, struct probe_row *row, const char *where,
		const char *column, double scale);

/* Add a row that has only a published figure. */
void report_add_published(struct probe_report *r, const char *name, const char *metric,
		const char *unit, const char *where, const char *column, double scale);

/* A sentence below the table. */
void report_note(struct probe_report *r, const char *fmt, ...)
		__attribute__((format(printf, 2, 3)));

enum probe_format { PROBE_TABLE, PROBE_CSV, PROBE_JSON };

/*
 * Print a report. In CSV, RFC 4180, the columns are: probe, case, metric, unit, repeats, raw, overhead,
 * net, low, high, published, published_as, published_machine, comparable, emulated, where, seed; the notes go to
 * standard error.
 */
void report_print(const struct probe_report *r, enum probe_format format, bool histograms);

/* The same as JSON; a new reference. */
json_t *report_json(const struct probe_report *r);

/* ---- samples ---- */

/* Counts of values by size: each bin is an eighth of a power of two wide, and of width 1 below 16. */
#define HISTOGRAM_BINS 496
struct histogram {
	uint64_t count[HISTOGRAM_BINS];
};

void histogram_add(struct histogram *h, uint64_t value);
/* The values of a bin: from <= value < to; to is UINT64_MAX for the last. */
void histogram_bin(unsigned int bin, uint64_t *from, uint64_t *to);
void report_add_histogram(struct probe_report *r, const char *name, const char *unit,
		const struct histogram *h);

/* The value that a share (0 < share <= 1) of n >= 1 sorted values does not exceed (nearest rank). */
double sorted_percentile(const double *sorted, size_t n, double share);
void sort_doubles(double *x, size_t n);

/* Memory for n values, zeroed; ends the program where there is none. */
void *probe_alloc(size_t n, size_t size);

/* ---- running ---- */

/*
 * What the command line may ask for; idlectl.c has which probe takes what. Numbers that are not given
 * have their defaults, texts are NULL.
 */
struct probe_options {
	const char *topology; /* hwloc's XML file */
	int cpu; /* one that is on line */
	bool cpu_given;
	unsigned long repeats, warmup, loops; /* in range */
	enum probe_format format;
	bool histogram;
	/* ipi */
	int from, to; /* -1: not given */
	const char *pairs; /* smt, l3, package or cross */
	bool self, broadcast, mesh, idle, no_wait;
	unsigned long seed; /* 0: not given */
	/* fence: a list of numbers of stores */
	const char *stores;
	/* msr */
	bool exits;
	const char *script; /* what perf script wrote */
	unsigned long pid; /* 0: not given */
	double duration; /* seconds, 0: not given */
	/* eoi */
	const char *bench, *base, *other;
	/* resctrl */
	const char *domain;
	/* wake: a list of idle states */
	const char *states;
	bool (*stop)(void); /* asked between two visits; NULL: probe_interrupted() */
};

#define PROBE_LOOPS_MAX SIBIDLE_PROBE_LOOPS_MAX
#define PROBE_REPEATS_MAX 1000 /* of stats_median_interval() */

/*
 * The probes. Each fills a report that has begun; returns 0, or -1 with err set: 4 where this machine
 * cannot do it, 2 where the options make no sense.
 */
int probe_ipi(struct probe_report *r, const struct probe_options *o, struct err *err);
int probe_fence(struct probe_report *r, const struct probe_options *o, struct err *err);
int probe_msr(struct probe_report *r, const struct probe_options *o, struct err *err);
int probe_eoi(struct probe_report *r, const struct probe_options *o, struct err *err);
int probe_resctrl(struct probe_report *r, const struct probe_options *o, struct err *err);
int probe_wake(struct probe_report *r, const struct probe_options *o, struct err *err);

/* The same with a control that has begun and has nothing applied. */
struct control;
int probe_wake_with(struct probe_report *r, const struct probe_options *o, struct control *c,
		struct err *err);

/* Whether SIGINT, SIGTERM, SIGHUP or SIGQUIT came since probe_signals(), which has to be called first. */
void probe_signals(void);
bool probe_interrupted(void);

/* Wait for a thread that makes a request. A signal reaches one thread only: this one passes it on. */
void probe_join(pthread_t thread);

/* Run the calling thread on that CPU only, from now on. Returns 0, or -1 with err set. */
int probe_pin(unsigned int cpu, struct err *err);

/*
 * One request of the module's, whose size is filled in. Returns 0, or -1 with err set: 4 where the machine or module
 * cannot do it, 1 with "interrupted" or what else ended it. req has the counts in any case.
 */
int probe_request(const struct sibidle *m, struct sibidle_probe *req, struct err *err);

/* An operation of this CPU that the module times: a row of a probe's table. */
struct local_case {
	const char *name;
	uint32_t op, number, flags;
	int overhead; /* index of the case that is all of it but what is asked for; -1: none */
	const char *where, *column; /* of the published figure, or NULL */
};

/*
 * Time nb cases of the module's probe on a CPU, in turn, forward and backward, o->repeats times after
 * o->warmup times that do not count. Adds a row "median" for each that has an overhead; with details
 * also p90, p99, p99.9, max and a histogram. Cases that the machine cannot do are left out, with a note.
 * Returns 0, or -1 with err set: 4 where the machine can do none of those with an overhead.
 */
int probe_local(struct probe_report *r, const struct probe_options *o, uint32_t probe,
		const struct local_case *cases, size_t nb, bool details, struct err *err);

/* "bare metal", "guest", "emulated" or "recorded". */
const char *probe_where(void);

#endif
