/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "csv.h"
#include "stats.h"
#include "summary.h"
#include "trend.h"

#define UNIT 1.0 /* packets a second: what is told apart */

/* The arm of that name, which is added where it is new; room for nb_runs runs. NULL without memory. */
static struct trend_arm *
find_arm(struct trend *trend, const char *name, size_t nb_runs)
{
	struct trend_arm *arms, *arm;

	for (size_t i = 0; i < trend->nb; i++)
		if (strcmp(trend->arms[i].name, name) == 0)
			return &trend->arms[i];
	arms = reallocarray(trend->arms, trend->nb + 1, sizeof(*arms));
	if (arms == NULL)
		return NULL;
	trend->arms = arms;
	arm = &arms[trend->nb++];
	*arm = (struct trend_arm){ .name = strdup(name),
		.runs = calloc(nb_runs, sizeof(*arm->runs)),
		.left_out = calloc(nb_runs, sizeof(*arm->left_out)),
		.groups = calloc(nb_runs, sizeof(*arm->groups)) };
	return arm->name == NULL || arm->runs == NULL || arm->left_out == NULL ||
					arm->groups == NULL
			? NULL
			: arm;
}

/* Add the arms of one run of nb_runs. */
static int
add_run(struct trend *trend, const struct result_set *set, size_t nb_runs)
{
	size_t nb;
	struct arm_figure *figures = compare_figures(set->windows, set->nb_windows, &nb);
	bool emulated = summary_emulated(set->windows, set->nb_windows);
	int rc = figures == NULL ? -1 : 0;

	for (size_t i = 0; i < nb && rc == 0; i++) {
		struct trend_arm *arm = find_arm(trend, figures[i].name, nb_runs);
		struct trend_run run = { &set->windows[0], figures[i].pps, NULL };

		if (emulated)
			run.why = "emulated";
		else if (isnan(run.pps))
			run.why = "no untainted window";

		if (arm == NULL)
			rc = -1;
		else if (run.why != NULL)
			arm->left_out[arm->nb_left_out++] = run;
		else
			arm->runs[arm->nb_runs++] = run;
	}
	free(figures);
	return rc;
}

static void
fill_groups(struct trend_arm *arm, const double *pps, const size_t *ends)
{
	for (size_t i = 0; i < arm->nb_groups; i++) {
		size_t begin = i == 0 ? 0 : ends[i - 1], n = ends[i] - begin;
		double mean = stats_mean(pps + begin, n);

		arm->groups[i] = (struct trend_group){ .runs = &arm->runs[begin],
			.nb_runs = n,
			.mean = mean,
			.stdev = stats_sd(pps + begin, n),
			.change = i == 0 ? NAN : 100 * (mean / arm->groups[i - 1].mean - 1) };
	}
}

static int
split_arm(struct trend_arm *arm)
{
	size_t n = arm->nb_runs;
	double *pps = calloc(n + 1, sizeof(*pps));
	size_t *ends = calloc(n + 1, sizeof(*ends));

	if (pps != NULL && ends != NULL) {
		for (size_t i = 0; i < n; i++)
			pps[i] = arm->runs[i].pps;
		arm->nb_groups = stats_partition(pps, n, UNIT, ends);
		fill_groups(arm, pps, ends);
	}
	free(pps);
	free(ends);
	return arm->nb_groups == 0 && n > 0 ? -1 : 0;
}

int
trend_make(struct trend *trend, const struct result_set *runs, size_t nb)
{
	int rc = 0;

	memset(trend, 0, sizeof(*trend));
	for (size_t i = 0; i < nb && rc == 0; i++)
		rc = add_run(trend, &runs[i], nb);
	for (size_t i = 0; i < trend->nb && rc == 0; i++)
		rc = split_arm(&trend->arms[i]);
	return rc;
}

void
trend_free(struct trend *trend)
{
	for (size_t i = 0; i < trend->nb; i++) {
		free(trend->arms[i].name);
		free(trend->arms[i].runs);
		free(trend->arms[i].left_out);
		free(trend->arms[i].groups);
	}
	free(trend->arms);
	memset(trend, 0, sizeof(*trend));
}

/* ---- told ---- */

/* CSIT's words for a change; NULL for a group that has none before it. */
static const char *
change_word(const struct trend_group *g, double margin)
{
	if (isnan(g->change))
		return NULL;
	if (fabs(g->change) <= margin)
		return "within margin";
	return g->change < 0 ? "regression" : "progression";
}

static json_t *
run_json(const struct trend_run *run)
{
	json_t *json = json_pack("{s:o, s:o}", "run_id", result_text_json(run->first->run_id),
			"utc_start", result_text_json(run->first->utc_start));

	if (run->why != NULL)
		json_object_set_new(json, "reason", json_string(run->why));
	else
		json_object_set_new(json, "pps", json_real(run->pps));
	return json;
}

static json_t *
runs_json(const struct trend_run *runs, size_t n)
{
	json_t *array = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(array, run_json(&runs[i]));
	return array;
}

static json_t *
group_json(const struct trend_group *g, double margin)
{
	return json_pack("{s:o, s:o, s:I, s:o, s:o, s:o, s:s?, s:o}", "first",
			run_json(&g->runs[0]), "last", run_json(&g->runs[g->nb_runs - 1]), "n",
			(json_int_t)g->nb_runs, "pps_mean", result_number_json(g->mean),
			"pps_stdev", result_number_json(g->stdev), "change_percent",
			result_number_json(g->change), "verdict", change_word(g, margin), "runs",
			runs_json(g->runs, g->nb_runs));
}

json_t *
trend_json(const struct trend *trend, double margin)
{
	json_t *array = json_array();

	for (size_t i = 0; i < trend->nb; i++) {
		const struct trend_arm *arm = &trend->arms[i];
		json_t *groups = json_array();

		for (size_t k = 0; k < arm->nb_groups; k++)
			json_array_append_new(groups, group_json(&arm->groups[k], margin));
		json_array_append_new(array,
				json_pack("{s:o, s:o, s:o}", "scenario",
						result_text_json(arm->name), "groups", groups,
						"left_out",
						runs_json(arm->left_out, arm->nb_left_out)));
	}
	return array;
}

/* A run on a line of its own behind a label, and why where it is left out. */
static void
print_run(FILE *out, const char *label, const struct trend_run *run)
{
	char line[2 * RESULT_TEXT_MAX + 64];

	snprintf(line, sizeof(line), "%11s %s%s%s  %s", label, run->first->utc_start,
			run->why != NULL ? "  " : "", run->why != NULL ? run->why : "",
			run->first->run_id);
	fprintf(out, "%.*s\n", TABLE_WIDTH, csv_visible(line));
}

static void
print_group(FILE *out, const struct trend_group *g, double margin)
{
	char stdev[24] = "-", change[24] = "-";
	const char *word = change_word(g, margin);

	if (isfinite(g->stdev))
		snprintf(stdev, sizeof(stdev), "%#.3g", g->stdev / 1e6);
	if (isfinite(g->change))
		snprintf(change, sizeof(change), "%+.2f", g->change);
	fprintf(out, "%7zu %#10.5g %10s %9s  %s\n", g->nb_runs, g->mean / 1e6, stdev, change,
			word != NULL ? word : "-");
	print_run(out, "first", &g->runs[0]);
	if (g->nb_runs > 1)
		print_run(out, "last", &g->runs[g->nb_runs - 1]);
}

static void
print_arm(FILE *out, const struct trend_arm *arm, double margin)
{
	char *name = strdupa(arm->name);

	fprintf(out, "%.*s\n", TABLE_WIDTH, csv_visible(name));
	if (arm->nb_groups > 0)
		fprintf(out, "%7s %10s %10s %9s  verdict\n", "runs", "mean Mpps", "stdev",
				"change %");
	for (size_t i = 0; i < arm->nb_groups; i++)
		print_group(out, &arm->groups[i], margin);
	for (size_t i = 0; i < arm->nb_left_out; i++)
		print_run(out, "left out", &arm->left_out[i]);
	fputc('\n', out);
}

void
trend_print(FILE *out, const struct trend *trend, double margin)
{
	for (size_t i = 0; i < trend->nb; i++)
		print_arm(out, &trend->arms[i], margin);
	fprintf(out, "Groups of runs of equal mean, by minimum description length; margin %g %%.\n",
			margin);
}
