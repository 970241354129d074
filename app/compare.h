/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APP_COMPARE_H
#define APP_COMPARE_H

/*
 * What windows of several scenarios say of each other, and what a margin makes of it. docs/results.md
 * describes the figures.
 *
 * An arm is what windows have in common that are put together: the scenario, and the burst where the run
 * has several. Its blocks are the units: all windows of an arm and block are pooled, packets over time.
 */
#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

#include "err.h"
#include "result.h"
#include "stats.h"

#define COMPARE_MARGIN 2.0 /* percent, where none is given */
#define COMPARE_LEVEL 0.95
#define COMPARE_ARM_MAX (RESULT_TEXT_MAX + 32)

enum verdict { VERDICT_SAME, VERDICT_IMPROVEMENT, VERDICT_REGRESSION, VERDICT_INCONCLUSIVE };

const char *verdict_word(enum verdict verdict);

/* The exit code that a verdict ends in. */
enum exit_code verdict_exit(enum verdict verdict);

/* An effect and its interval, in percent of the first arm's packets a second. */
struct effect {
	double change, low, high;
};

/* Of an interval of d = ln(pps of the second / pps of the first): exp() - 1, in percent. */
struct effect effect_of(const struct stats_interval *d);

/* Its interval for people, as "[+1.00, +2.00]"; "unknown" where there is none. By value, for printf(). */
struct effect_text {
	char text[64];
};

struct effect_text effect_interval(const struct effect *e);

/*
 * regression where the interval lies wholly below -margin, improvement wholly above margin, same wholly
 * inside of both, else inconclusive. margin >= 0 in percent.
 */
enum verdict verdict_of(const struct effect *e, double margin);

enum compare_side { SIDE_NONE, SIDE_BASE, SIDE_NEW };

/* One arm over another, within a run or between runs. */
struct comparison {
	char base[COMPARE_ARM_MAX], other[COMPARE_ARM_MAX];
	bool tainted_only; /* no clean unit: all of them are tainted windows */
	bool with_tainted; /* tainted windows are pooled too */
	bool emulated; /* a window is from an emulated machine */
	enum compare_side lacks; /* of runs: no window of the arm there */
	bool null_test; /* both are the same scenario: the noise floor */
	size_t n_base, n_other; /* units: blocks, or runs; the same number where they are pairs */
	size_t dead_base,
			dead_other; /* blocks without a packet, which are no units: they have no logarithm */
	double pps_base, pps_other; /* of all units, geometric mean */
	struct stats_interval d; /* mean of ln(other / base) at COMPARE_LEVEL */
	double df; /* of Welch's interval; NAN for pairs */
	double verdict_half; /* half-width at the level of the verdict */
	double verdict_level; /* 1 - 0.05 / k */
	double cycles_base, cycles_other; /* TSC cycles a packet, geometric mean of all units */
	double cycles; /* change of TSC cycles a packet, percent */
	/* Of pairs only, else NAN. */
	double median; /* of the pairs, percent */
	double sign_p; /* sign test, two-sided */
	struct stats_range bootstrap; /* percent; NAN below COMPARE_BOOTSTRAP_MIN pairs */
	double drift_base, drift_other; /* slope of an arm over time, percent an hour */
	double drift_span; /* hours from the first unit to the last */
};

#define COMPARE_BOOTSTRAP_MIN 20 /* pairs from which on the bootstrap is told */

/* The interval of the verdict, whose level counts the comparisons. */
struct effect comparison_effect(const struct comparison *c);

/* Whether there is an effect, the interval being off 0, of which a drift of an arm could explain half. */
bool comparison_drifts(const struct comparison *c);

struct comparisons {
	size_t nb;
	struct comparison *at;
};

/*
 * Every other arm over the first one, by pairs of blocks that have both. With tainted windows where
 * with_tainted says so, or where an arm has no clean one in a common block. Returns 0, or -1 without
 * memory; comparisons_free() in both cases. Fewer than two arms: none.
 */
int compare_arms(struct comparisons *all, const struct result_window *windows, size_t n,
		bool with_tainted);

/* A side of a comparison between runs. */
struct side {
	size_t nb;
	const struct result_set *runs;
};

/*
 * Each arm of new over the same arm of base, unpaired: Welch's interval of the means of ln pps of
 * blocks, or of runs where either side has several. All arms of both; one that a side lacks has no figure
 * there. Returns 0, or -1 without memory; comparisons_free() in both cases.
 */
int compare_sides(struct comparisons *all, const struct side *base, const struct side *new);

void comparisons_free(struct comparisons *all);

/* What one run says of one arm. */
struct arm_figure {
	char name[COMPARE_ARM_MAX];
	double pps; /* of its untainted blocks, geometric mean; NAN where it has none */
};

/* The arms of a run in order of their first windows, *nb of them, to be freed. NULL without memory. */
struct arm_figure *compare_figures(const struct result_window *windows, size_t n, size_t *nb);

/* Seconds since 1970 of a utc_start; NAN where it is no time. */
double compare_seconds(const char *utc);

/*
 * The worst verdict of all at that margin: regression before inconclusive before same and improvement.
 * One that rests on tainted windows only, or on an emulated machine, is inconclusive; so is one whose base
 * has blocks without a packet, or that NEW lacks. Where it is the other that has such blocks, it is a
 * regression. Null tests are not judged, nor is what base lacks; where there are null tests only, the verdict is
 * same if they all lie within the margin, else inconclusive.
 */
enum verdict comparison_verdict(const struct comparison *c, double margin);
bool comparison_judged(const struct comparison *c);
/* The verdict in a word, or why there is none. */
const char *comparison_word(const struct comparison *c, double margin);
enum verdict comparisons_verdict(const struct comparisons *all, double margin);

/* The farthest that the 95 % interval of a null test reaches from 0, in percent; NAN where there is none. */
double comparisons_floor(const struct comparisons *all);

/* The line that says by which margin, and intervals of which level, verdicts are made. */
void comparisons_print_margin(FILE *out, const struct comparisons *all, double margin);

/* As a JSON array; a new reference. */
json_t *comparisons_json(const struct comparisons *all, double margin);

/*
 * All there is to say of windows: result_print_table(), then their comparisons by compare_arms(), without
 * tainted windows and, where there are some, with them, and the causes of taint. Returns -1 on a write error or without memory.
 */
int compare_print(FILE *out, const struct result_window *windows, size_t n,
		const struct comparisons *clean, const struct comparisons *with_tainted,
		double margin);

/* As a table of at most 100 characters a line, with what there is to warn of; nothing where there is none. */
void comparisons_print(FILE *out, const struct comparisons *all, double margin);

#endif
