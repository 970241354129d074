/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "compare.h"
#include "csv.h"
#include "schedule.h"
#include "summary.h"

#define RESAMPLES 10000
#define SEED 1 /* the same windows give the same interval */

static const struct {
	const char *word;
	enum exit_code exit;
	int rank; /* the worst of several counts */
} verdicts[] = {
	[VERDICT_SAME] = { "same", EXIT_DONE, 0 },
	[VERDICT_IMPROVEMENT] = { "improvement", EXIT_DONE, 1 },
	[VERDICT_REGRESSION] = { "regression", EXIT_REGRESSION, 3 },
	[VERDICT_INCONCLUSIVE] = { "inconclusive", EXIT_INCONCLUSIVE, 2 },
};

const char *
verdict_word(enum verdict verdict)
{
	return verdicts[verdict].word;
}

enum exit_code
verdict_exit(enum verdict verdict)
{
	return verdicts[verdict].exit;
}

static double
percent(double d)
{
	return 100 * expm1(d);
}

struct effect
effect_of(const struct stats_interval *d)
{
	struct effect e = { percent(d->mean), percent(d->mean - d->half),
		percent(d->mean + d->half) };

	/* Nothing is known of one unit, or of none. */
	if (!isfinite(d->half))
		e.low = e.high = NAN;
	return e;
}

struct effect_text
effect_interval(const struct effect *e)
{
	struct effect_text t = { "unknown" };

	if (isfinite(e->low) && isfinite(e->high))
		snprintf(t.text, sizeof(t.text), "[%+.2f, %+.2f]", e->low, e->high);
	return t;
}

enum verdict
verdict_of(const struct effect *e, double margin)
{
	if (e->high < -margin)
		return VERDICT_REGRESSION;
	if (e->low > margin)
		return VERDICT_IMPROVEMENT;
	return e->low >= -margin && e->high <= margin ? VERDICT_SAME : VERDICT_INCONCLUSIVE;
}

/* ---- units ---- */

/* All windows of an arm in a block. */
struct unit {
	const char *run_id;
	uint64_t block;
	size_t arm;
	double weighted, seconds; /* pps by time, and the time */
	double packets, ticks;
	double start; /* s since 1970, by time */
	uint64_t last_visit;
	unsigned int visits; /* that have a window, tainted or not */
	bool cut; /* the block has fewer visits than others of the run: it was ended in its midst */
};

struct units {
	size_t nb_arms;
	char (*arms)[COMPARE_ARM_MAX];
	size_t nb;
	struct unit *at;
};

static void
units_free(struct units *u)
{
	free(u->arms);
	free(u->at);
}

double
compare_seconds(const char *utc)
{
	struct tm tm = { 0 };
	const char *rest = strptime(utc, "%Y-%m-%dT%H:%M:%S", &tm);

	return rest == NULL ? NAN : (double)timegm(&tm) + (*rest == '.' ? atof(rest) : 0);
}

/* An arm by its name, -1: there is none. */
static int
arm_of(const struct units *u, const char *name)
{
	for (size_t i = 0; i < u->nb_arms; i++)
		if (strcmp(u->arms[i], name) == 0)
			return (int)i;
	return -1;
}

/* The arm of a window, which is added where it is new. */
static size_t
find_arm(struct units *u, const struct sum *sum, struct summary_varied varied)
{
	char name[COMPARE_ARM_MAX];
	int arm;

	summary_arm(name, sizeof(name), sum->first->scenario, sum->first->mode, sum->first->burst,
			sum->first->noisy_lookups, varied);
	arm = arm_of(u, name);
	if (arm >= 0)
		return (size_t)arm;
	memcpy(u->arms[u->nb_arms], name, sizeof(name));
	return u->nb_arms++;
}

static struct unit *
find_unit(struct units *u, const char *run_id, uint64_t block, size_t arm)
{
	/* Windows are in order: the one that is looked for is among the last ones. */
	for (size_t i = u->nb; i-- > 0;)
		if (u->at[i].arm == arm && u->at[i].block == block &&
				strcmp(u->at[i].run_id, run_id) == 0)
			return &u->at[i];
	return NULL;
}

static void
add_window(struct units *u, const struct sum *sum, size_t arm, bool with_tainted)
{
	const struct result_window *w = sum->first;
	struct unit *unit = find_unit(u, w->run_id, w->block, arm);

	if (unit == NULL) {
		unit = &u->at[u->nb++];
		*unit = (struct unit){ .run_id = w->run_id, .block = w->block, .arm = arm };
	}
	if (unit->visits == 0 || unit->last_visit != w->visit)
		unit->visits++;
	unit->last_visit = w->visit;
	if (sum->tainted && !with_tainted)
		return;
	unit->weighted += sum->pps * sum->seconds;
	unit->seconds += sum->seconds;
	unit->packets += sum->packets;
	unit->ticks += sum->ticks;
	unit->start += compare_seconds(w->utc_start) * sum->seconds;
}

static bool
same_run(const struct unit *a, const struct unit *b)
{
	return strcmp(a->run_id, b->run_id) == 0;
}

/* Visits of the block that begins with this unit; *end is behind its last one. */
static unsigned int
block_visits(const struct units *u, size_t begin, size_t *end)
{
	unsigned int visits = 0;

	for (*end = begin; *end < u->nb && u->at[*end].block == u->at[begin].block &&
			same_run(&u->at[*end], &u->at[begin]);
			(*end)++)
		visits += u->at[*end].visits;
	return visits;
}

/* Of a block that was ended in its midst, the arms do not stand on both sides of each other. */
static void
find_cut_blocks(struct units *u)
{
	unsigned int most = 0;
	size_t first = 0, end;

	for (size_t i = 0; i < u->nb; i = end) {
		unsigned int visits = block_visits(u, i, &end);

		if (!same_run(&u->at[first], &u->at[i])) {
			first = i;
			most = 0;
		}
		if (visits > most)
			most = visits;
		if (end < u->nb && same_run(&u->at[first], &u->at[end]))
			continue;
		/* The run ends here. */
		for (size_t k = first, next; k < end; k = next) {
			bool cut = block_visits(u, k, &next) < most;

			for (size_t j = k; j < next; j++)
				u->at[j].cut = cut;
		}
	}
}

/* What varies within one of the runs, so that it is a part of the arms' names in all of them. */
static void
add_varied(struct summary_varied *varied, const struct result_window *windows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		summary_vary(varied, &windows[i], &windows[0]);
}

/* Returns 0, or -1 without memory; to be freed in both cases. */
static int
read_units(struct units *u, const struct result_window *windows, size_t n,
		struct summary_varied varied, bool with_tainted)
{
	size_t nb;
	struct sum *sums = summary_windows(windows, n, &nb);

	memset(u, 0, sizeof(*u));
	u->arms = calloc(nb + 1, sizeof(*u->arms));
	u->at = calloc(nb + 1, sizeof(*u->at));
	if (sums == NULL || u->arms == NULL || u->at == NULL) {
		free(sums);
		return -1;
	}
	for (size_t i = 0; i < nb; i++) {
		size_t arm = find_arm(u, &sums[i], varied);

		if (!sums[i].warmup && !isnan(sums[i].pps))
			add_window(u, &sums[i], arm, with_tainted);
	}
	find_cut_blocks(u);
	free(sums);
	return 0;
}

static bool
has_figure(const struct unit *u)
{
	return u != NULL && u->seconds > 0 && !u->cut;
}

/* Its windows had no packet, so that there is no logarithm. */
static bool
is_dead(const struct unit *u)
{
	return !(u->weighted > 0);
}

static double
ln_pps(const struct unit *u)
{
	return log(u->weighted / u->seconds);
}

static double
ln_cycles(const struct unit *u)
{
	return log(u->ticks / u->packets);
}

/* ---- arms of a run ---- */

/* Arrays of what is computed with, for pairs of blocks. */
struct pairs {
	size_t n;
	size_t dead_base, dead_other; /* pairs left out, as one side had no packet */
	double *d, *base, *other, *base_cycles, *other_cycles, *base_time, *other_time;
};

static int
pairs_make(struct pairs *p, size_t n)
{
	double *all = calloc(7 * (n + 1), sizeof(*all));

	*p = (struct pairs){ 0, 0, 0, all, all + n, all + 2 * n, all + 3 * n, all + 4 * n,
		all + 5 * n, all + 6 * n };
	return all == NULL ? -1 : 0;
}

static void
pairs_read(struct pairs *p, struct units *u, size_t base, size_t other)
{
	for (size_t i = 0; i < u->nb; i++) {
		const struct unit *a = &u->at[i], *b;

		if (a->arm != base || !has_figure(a))
			continue;
		b = find_unit(u, a->run_id, a->block, other);
		if (!has_figure(b))
			continue;
		p->dead_base += is_dead(a);
		p->dead_other += is_dead(b);
		if (is_dead(a) || is_dead(b))
			continue;
		p->base[p->n] = ln_pps(a);
		p->other[p->n] = ln_pps(b);
		p->d[p->n] = ln_pps(b) - ln_pps(a);
		p->base_cycles[p->n] = ln_cycles(a);
		p->other_cycles[p->n] = ln_cycles(b);
		p->base_time[p->n] = a->start / a->seconds / 3600;
		p->other_time[p->n] = b->start / b->seconds / 3600;
		p->n++;
	}
}

/* Percent an hour, and the hours that the units span. */
static double
drift(const double *hours, const double *ln, size_t n, double *span)
{
	double first = INFINITY, last = -INFINITY;

	for (size_t i = 0; i < n; i++) {
		first = fmin(first, hours[i]);
		last = fmax(last, hours[i]);
	}
	*span = n > 0 ? last - first : NAN;
	return n < 3 ? NAN : 100 * stats_slope(hours, ln, n);
}

static bool
is_null(const char *base, const char *other)
{
	size_t len = strlen(base);

	return strncmp(base, other, len) == 0 &&
			strncmp(other + len, SCHEDULE_NULL, strlen(SCHEDULE_NULL)) == 0;
}

static void
fill_pairs(struct comparison *c, const struct pairs *p, size_t k)
{
	struct stats_interval wide;

	c->n_base = c->n_other = p->n;
	c->dead_base = p->dead_base;
	c->dead_other = p->dead_other;
	c->pps_base = exp(stats_mean(p->base, p->n));
	c->pps_other = exp(stats_mean(p->other, p->n));
	c->d = stats_t_interval(p->d, p->n, COMPARE_LEVEL);
	c->df = NAN;
	c->verdict_level = 1 - (1 - COMPARE_LEVEL) / (double)k;
	wide = stats_t_interval(p->d, p->n, c->verdict_level);
	c->verdict_half = wide.half;
	c->cycles_base = exp(stats_mean(p->base_cycles, p->n));
	c->cycles_other = exp(stats_mean(p->other_cycles, p->n));
	c->cycles = percent(log(c->cycles_other / c->cycles_base));
	c->median = percent(stats_median(p->d, p->n));
	c->sign_p = stats_sign_test(p->d, p->n);
	c->bootstrap = (struct stats_range){ NAN, NAN };
	if (p->n >= COMPARE_BOOTSTRAP_MIN) {
		c->bootstrap = stats_bootstrap_t(p->d, p->n, COMPARE_LEVEL, RESAMPLES, SEED);
		c->bootstrap.low = percent(c->bootstrap.low);
		c->bootstrap.high = percent(c->bootstrap.high);
	}
	c->drift_base = drift(p->base_time, p->base, p->n, &c->drift_span);
	c->drift_other = drift(p->other_time, p->other, p->n, &c->drift_span);
}

/* One arm over the first. Returns 0, or -1 without memory. */
static int
compare_arm(struct comparison *c, struct units *u, size_t other, size_t k)
{
	struct pairs p;

	if (pairs_make(&p, u->nb) != 0)
		return -1;
	pairs_read(&p, u, 0, other);
	snprintf(c->base, sizeof(c->base), "%s", u->arms[0]);
	snprintf(c->other, sizeof(c->other), "%s", u->arms[other]);
	c->null_test = is_null(c->base, c->other);
	fill_pairs(c, &p, k);
	free(p.d);
	return 0;
}

int
compare_arms(struct comparisons *all, const struct result_window *windows, size_t n,
		bool with_tainted)
{
	struct summary_varied varied = { 0 };
	struct units units, tainted;
	int rc, rc_tainted;
	size_t k;
	bool emulated = summary_emulated(windows, n);

	add_varied(&varied, windows, n);
	rc = read_units(&units, windows, n, varied, with_tainted);
	rc_tainted = read_units(&tainted, windows, n, varied, true);
	k = units.nb_arms > 1 ? units.nb_arms - 1 : 0;
	memset(all, 0, sizeof(*all));
	all->at = calloc(k + 1, sizeof(*all->at));
	if (all->at == NULL || rc_tainted != 0)
		rc = -1;
	for (size_t i = 1; i <= k && rc == 0; i++) {
		struct comparison *c = &all->at[all->nb++];

		c->with_tainted = with_tainted;
		c->emulated = emulated;
		rc = compare_arm(c, &units, i, k);
		if (rc != 0 || c->n_base + c->dead_base + c->dead_other > 0)
			continue;
		rc = compare_arm(c, &tainted, i, k);
		c->tainted_only = c->with_tainted = c->n_base + c->dead_base + c->dead_other > 0;
	}
	units_free(&units);
	units_free(&tainted);
	return rc;
}

/* ---- runs ---- */

/* Values of one arm of a side: a block's or a run's each. */
struct values {
	size_t n, dead; /* dead: blocks without a packet, which are no values */
	double *pps, *cycles; /* logarithms */
	bool tainted_only;
};

/* A run's blocks by arm, without tainted windows and with them. */
struct run_units {
	struct units clean, all;
};

/* Add the blocks of an arm in one run; of several runs each is one value, the mean of its blocks. */
static void
add_values(struct values *v, const struct units *u, const char *name, bool of_runs)
{
	int arm = arm_of(u, name);
	size_t first = v->n;

	for (size_t i = 0; i < u->nb && arm >= 0; i++) {
		const struct unit *unit = &u->at[i];

		if (unit->arm != (size_t)arm || !has_figure(unit))
			continue;
		if (is_dead(unit)) {
			v->dead++;
			continue;
		}
		v->pps[v->n] = ln_pps(unit);
		v->cycles[v->n++] = ln_cycles(unit);
	}
	if (!of_runs || v->n == first)
		return;
	v->pps[first] = stats_mean(v->pps + first, v->n - first);
	v->cycles[first] = stats_mean(v->cycles + first, v->n - first);
	v->n = first + 1;
}

static int
read_values(struct values *v, const struct run_units *runs, size_t nb, const char *name,
		bool of_runs)
{
	size_t room = 1;

	for (size_t i = 0; i < nb; i++)
		room += runs[i].all.nb;
	memset(v, 0, sizeof(*v));
	v->pps = calloc(2 * room, sizeof(*v->pps));
	if (v->pps == NULL)
		return -1;
	v->cycles = v->pps + room;
	for (size_t i = 0; i < nb; i++)
		add_values(v, &runs[i].clean, name, of_runs);
	if (v->n + v->dead > 0)
		return 0;
	for (size_t i = 0; i < nb; i++)
		add_values(v, &runs[i].all, name, of_runs);
	v->tainted_only = v->n + v->dead > 0;
	return 0;
}

static bool
side_emulated(const struct side *side)
{
	for (size_t i = 0; i < side->nb; i++)
		if (summary_emulated(side->runs[i].windows, side->runs[i].nb_windows))
			return true;
	return false;
}

/* Runs of both sides: base's first. */
static int
compare_runs(struct comparison *c, const struct run_units *runs, size_t nb_base, size_t nb,
		const char *name)
{
	bool of_runs = nb_base > 1 || nb - nb_base > 1;
	struct values a = { 0 }, b = { 0 };
	int rc = read_values(&a, runs, nb_base, name, of_runs);

	if (rc == 0)
		rc = read_values(&b, runs + nb_base, nb - nb_base, name, of_runs);
	if (rc == 0) {
		memset(c, 0, sizeof(*c));
		snprintf(c->base, sizeof(c->base), "%s", name);
		snprintf(c->other, sizeof(c->other), "%s", name);
		c->n_base = a.n;
		c->n_other = b.n;
		c->dead_base = a.dead;
		c->dead_other = b.dead;
		c->lacks = a.n + a.dead == 0 ? SIDE_BASE : b.n + b.dead == 0 ? SIDE_NEW : SIDE_NONE;
		c->tainted_only = c->with_tainted = a.tainted_only || b.tainted_only;
		c->pps_base = exp(stats_mean(a.pps, a.n));
		c->pps_other = exp(stats_mean(b.pps, b.n));
		c->d = stats_welch(a.pps, a.n, b.pps, b.n, COMPARE_LEVEL, &c->df);
		c->cycles_base = exp(stats_mean(a.cycles, a.n));
		c->cycles_other = exp(stats_mean(b.cycles, b.n));
		c->cycles = percent(log(c->cycles_other / c->cycles_base));
		c->median = c->sign_p = c->drift_base = c->drift_other = c->drift_span = NAN;
		c->bootstrap = (struct stats_range){ NAN, NAN };
	}
	free(a.pps);
	free(b.pps);
	return rc;
}

/* The levels of the verdicts, once their number is known. */
static void
widen(struct comparisons *all)
{
	size_t k = 0;

	for (size_t i = 0; i < all->nb; i++)
		k += all->at[i].lacks == SIDE_NONE;
	for (size_t i = 0; i < all->nb; i++) {
		struct comparison *c = &all->at[i];

		c->verdict_level = 1 - (1 - COMPARE_LEVEL) / (double)(k > 0 ? k : 1);
		c->verdict_half = c->d.half;
		if (isfinite(c->df))
			c->verdict_half *= stats_t_quantile(0.5 + c->verdict_level / 2, c->df) /
					stats_t_quantile(0.5 + COMPARE_LEVEL / 2, c->df);
	}
}

/* The arms of all runs, each once, in order of appearance. */
static int
unite_arms(struct units *names, const struct run_units *runs, size_t nb)
{
	size_t room = 1;

	for (size_t i = 0; i < nb; i++)
		room += runs[i].all.nb_arms;
	names->arms = calloc(room, sizeof(*names->arms));
	if (names->arms == NULL)
		return -1;
	for (size_t i = 0; i < nb; i++)
		for (size_t k = 0; k < runs[i].all.nb_arms; k++)
			if (arm_of(names, runs[i].all.arms[k]) < 0)
				memcpy(names->arms[names->nb_arms++], runs[i].all.arms[k],
						sizeof(*names->arms));
	return 0;
}

static int
compare_run_units(struct comparisons *all, const struct run_units *runs, size_t nb_base, size_t nb,
		bool emulated)
{
	struct units names = { 0 };
	int rc = unite_arms(&names, runs, nb);

	if (rc == 0)
		all->at = calloc(names.nb_arms + 1, sizeof(*all->at));
	if (all->at == NULL)
		rc = -1;
	for (size_t i = 0; i < names.nb_arms && rc == 0; i++) {
		rc = compare_runs(&all->at[all->nb], runs, nb_base, nb, names.arms[i]);
		all->at[all->nb++].emulated = emulated;
	}
	widen(all);
	units_free(&names);
	return rc;
}

int
compare_sides(struct comparisons *all, const struct side *base, const struct side *new)
{
	const struct side *const sides[] = { base, new };
	size_t nb = 0, room = base->nb + new->nb;
	struct run_units *runs = calloc(room + 1, sizeof(*runs));
	struct summary_varied varied = { 0 };
	int rc = runs == NULL ? -1 : 0;

	memset(all, 0, sizeof(*all));
	for (size_t s = 0; s < 2; s++)
		for (size_t i = 0; i < sides[s]->nb; i++)
			add_varied(&varied, sides[s]->runs[i].windows,
					sides[s]->runs[i].nb_windows);
	for (size_t s = 0; s < 2 && rc == 0; s++)
		for (size_t i = 0; i < sides[s]->nb && rc == 0; i++) {
			const struct result_set *set = &sides[s]->runs[i];
			struct run_units *u = &runs[nb++];

			rc = read_units(&u->clean, set->windows, set->nb_windows, varied, false);
			if (rc == 0)
				rc = read_units(&u->all, set->windows, set->nb_windows, varied,
						true);
		}
	if (rc == 0)
		rc = compare_run_units(
				all, runs, base->nb, nb, side_emulated(base) || side_emulated(new));
	for (size_t i = 0; i < nb; i++) {
		units_free(&runs[i].clean);
		units_free(&runs[i].all);
	}
	free(runs);
	return rc;
}

struct arm_figure *
compare_figures(const struct result_window *windows, size_t n, size_t *nb)
{
	struct summary_varied varied = { 0 };
	struct units u;
	struct arm_figure *figures = NULL;
	struct values v = { .pps = calloc(2 * (n + 1), sizeof(*v.pps)) };
	int rc;

	add_varied(&varied, windows, n);
	rc = read_units(&u, windows, n, varied, false);
	if (rc == 0 && v.pps != NULL)
		figures = calloc(u.nb_arms + 1, sizeof(*figures));
	*nb = figures == NULL ? 0 : u.nb_arms;
	for (size_t i = 0; i < *nb; i++) {
		memcpy(figures[i].name, u.arms[i], sizeof(figures[i].name));
		v.n = 0;
		v.cycles = v.pps + n + 1;
		add_values(&v, &u, u.arms[i], true);
		figures[i].pps = exp(stats_mean(v.pps, v.n));
	}
	free(v.pps);
	units_free(&u);
	return figures;
}

void
comparisons_free(struct comparisons *all)
{
	free(all->at);
	memset(all, 0, sizeof(*all));
}

/* ---- what follows ---- */

struct effect
comparison_effect(const struct comparison *c)
{
	struct stats_interval d = c->d;

	d.half = c->verdict_half;
	return effect_of(&d);
}

bool
comparison_drifts(const struct comparison *c)
{
	double worst = fmax(fabs(c->drift_base), fabs(c->drift_other)) * c->drift_span;

	return fabs(c->d.mean) > c->d.half && worst >= fabs(percent(c->d.mean)) / 2;
}

enum verdict
comparison_verdict(const struct comparison *c, double margin)
{
	struct effect e = comparison_effect(c);

	if (c->tainted_only || c->emulated || c->dead_base > 0)
		return VERDICT_INCONCLUSIVE;
	return c->dead_other > 0 ? VERDICT_REGRESSION : verdict_of(&e, margin);
}

bool
comparison_judged(const struct comparison *c)
{
	return !c->null_test && c->lacks != SIDE_BASE;
}

const char *
comparison_word(const struct comparison *c, double margin)
{
	if (c->null_test)
		return "null test";
	return comparison_judged(c) ? verdict_word(comparison_verdict(c, margin)) : "only in NEW";
}

enum verdict
comparisons_verdict(const struct comparisons *all, double margin)
{
	enum verdict worst = VERDICT_INCONCLUSIVE;
	bool any = false, null = all->nb > 0;

	for (size_t i = 0; i < all->nb; i++) {
		enum verdict v = comparison_verdict(&all->at[i], margin);

		/* Where there is nothing but null tests, the margin is what they are asked about. */
		null &= all->at[i].null_test && v == VERDICT_SAME;
		if (!comparison_judged(&all->at[i]))
			continue;
		if (!any || verdicts[v].rank > verdicts[worst].rank)
			worst = v;
		any = true;
	}
	return null ? VERDICT_SAME : worst;
}

double
comparisons_floor(const struct comparisons *all)
{
	double floor = NAN;

	for (size_t i = 0; i < all->nb; i++) {
		struct effect e = effect_of(&all->at[i].d);
		double farthest = fmax(fabs(e.low), fabs(e.high));

		/* One block has no interval. */
		if (all->at[i].null_test && isfinite(farthest))
			floor = fmax(floor, farthest);
	}
	return floor;
}

/* ---- told ---- */

static json_t *
range_json(double low, double high)
{
	return json_pack("[o, o]", result_number_json(low), result_number_json(high));
}

static json_t *
comparison_json(const struct comparison *c, double margin)
{
	struct effect e = effect_of(&c->d), wide = comparison_effect(c);
	json_t *json = json_pack(
			"{s:o, s:o, s:I, s:I, s:b, s:b, s:b, s:o, s:o, s:o, s:o, s:o, s:f, s:o, s:o}",
			"base", result_text_json(c->base), "other", result_text_json(c->other),
			"n_base", (json_int_t)c->n_base, "n_other", (json_int_t)c->n_other,
			"with_tainted", c->with_tainted, "tainted_only", c->tainted_only,
			"emulated", c->emulated, "pps_base", result_number_json(c->pps_base),
			"pps_other", result_number_json(c->pps_other), "change_percent",
			result_number_json(e.change), "interval_percent", range_json(e.low, e.high),
			"cycles_change_percent", result_number_json(c->cycles), "verdict_level",
			c->verdict_level, "verdict_interval_percent",
			range_json(wide.low, wide.high), "welch_df", result_number_json(c->df));

	json_object_set_new(json, "dead_base", json_integer((json_int_t)c->dead_base));
	json_object_set_new(json, "dead_other", json_integer((json_int_t)c->dead_other));
	json_object_set_new(json, "lacks",
			c->lacks == SIDE_NONE
					? json_null()
					: json_string(c->lacks == SIDE_BASE ? "base" : "new"));
	if (comparison_judged(c))
		json_object_set_new(json, "verdict",
				json_string(verdict_word(comparison_verdict(c, margin))));
	json_object_set_new(json, "tsc_cycles_per_packet_base", result_number_json(c->cycles_base));
	json_object_set_new(
			json, "tsc_cycles_per_packet_other", result_number_json(c->cycles_other));
	json_object_set_new(json, "null_test", json_boolean(c->null_test));
	json_object_set_new(json, "median_percent", result_number_json(c->median));
	json_object_set_new(json, "sign_test_p", result_number_json(c->sign_p));
	json_object_set_new(json, "bootstrap_interval_percent",
			range_json(c->bootstrap.low, c->bootstrap.high));
	json_object_set_new(
			json, "drift_percent_per_hour", range_json(c->drift_base, c->drift_other));
	json_object_set_new(json, "drift_warning", json_boolean(comparison_drifts(c)));
	return json;
}

json_t *
comparisons_json(const struct comparisons *all, double margin)
{
	json_t *array = json_array();

	for (size_t i = 0; i < all->nb; i++)
		json_array_append_new(array, comparison_json(&all->at[i], margin));
	return array;
}

/* "+1.23", or "-" where it is unknown; two decimals, as no run here tells more. */
static const char *
signed_figure(char text[24], double value)
{
	snprintf(text, 24, isfinite(value) ? "%+.2f" : "-", value);
	return text;
}

static void
print_name(FILE *out, const struct comparison *c)
{
	char name[2 * COMPARE_ARM_MAX + 8];

	if (strcmp(c->base, c->other) == 0)
		snprintf(name, sizeof(name), "%s", c->base);
	else
		snprintf(name, sizeof(name), "%s over %s", c->other, c->base);
	csv_visible(name);
	if (strlen(name) <= 28)
		fprintf(out, "%-28s", name);
	else
		fprintf(out, "%.*s\n%28s", TABLE_WIDTH, name, "");
}

static void
print_comparison(FILE *out, const struct comparison *c, double margin)
{
	struct effect e = effect_of(&c->d);
	char change[24], cycles[24], n[48], p[24] = "-";

	if (c->n_base == c->n_other)
		snprintf(n, sizeof(n), "%zu", c->n_base);
	else
		snprintf(n, sizeof(n), "%zu, %zu", c->n_base, c->n_other);
	if (isfinite(c->sign_p) && c->n_base > 0)
		snprintf(p, sizeof(p), "%.4f", c->sign_p);
	print_name(out, c);
	fprintf(out, " %7s %9s %20s %9s %7s  %s\n", n, signed_figure(change, e.change),
			effect_interval(&e).text, signed_figure(cycles, c->cycles), p,
			comparison_word(c, margin));
}

static void
print_remarks(FILE *out, const struct comparison *c)
{
	char low[24], high[24];

	if (isfinite(c->bootstrap.low))
		fprintf(out, "%.40s: studentised bootstrap [%s, %s] %%, of %d resamples\n",
				c->other, signed_figure(low, c->bootstrap.low),
				signed_figure(high, c->bootstrap.high), RESAMPLES);
	if (c->tainted_only)
		fprintf(out, "%.40s: tainted only: no verdict\n", c->other);
	if (c->dead_base > 0 || c->dead_other > 0)
		fprintf(out, "%.40s: blocks without a packet, which no mean can hold: %zu of the first, %zu of the second\n",
				c->other, c->dead_base, c->dead_other);
	if (c->lacks == SIDE_NEW)
		fprintf(out, "%.40s: not in NEW\n", c->other);
	if (c->emulated)
		fprintf(out, "%.40s: emulated: no verdict\n", c->other);
	if ((c->n_base == 1 || c->n_other == 1) && c->lacks == SIDE_NONE)
		fprintf(out, "%.40s: one unit has no interval: more blocks, or more runs, are needed\n",
				c->other);
	if (comparison_drifts(c))
		fprintf(out, "%.40s: a drift of [%s, %s] %% an hour could explain half of the change\n",
				c->other, signed_figure(low, c->drift_base),
				signed_figure(high, c->drift_other));
}

void
comparisons_print_margin(FILE *out, const struct comparisons *all, double margin)
{
	double level = all->nb > 0 ? all->at[0].verdict_level : COMPARE_LEVEL;

	if (level > COMPARE_LEVEL)
		fprintf(out, "Verdicts are by intervals at %.4g %%, as there are %.0f comparisons; margin %g %%.\n",
				100 * level, (1 - COMPARE_LEVEL) / (1 - level), margin);
	else
		fprintf(out, "Verdict by a margin of %g %%.\n", margin);
}

void
comparisons_print(FILE *out, const struct comparisons *all, double margin)
{
	if (all->nb == 0)
		return;
	fprintf(out, "%-28s %7s %9s %20s %9s %7s  verdict\n", "packets/s, change in %", "n",
			"change", "95 % interval", "cycles/p", "sign p");
	for (size_t i = 0; i < all->nb; i++)
		print_comparison(out, &all->at[i], margin);
	for (size_t i = 0; i < all->nb; i++)
		print_remarks(out, &all->at[i]);
	comparisons_print_margin(out, all, margin);
}

/* Whether tainted windows make other comparisons: there are some, and others that are clean. */
static bool
differ_with_tainted(const struct comparisons *clean, const struct result_window *windows, size_t n)
{
	bool any_clean = false, any_tainted = false;

	for (size_t i = 0; i < clean->nb; i++)
		any_clean |= !clean->at[i].tainted_only;
	for (size_t i = 0; i < n; i++)
		any_tainted |= windows[i].tainted == 1 && windows[i].warmup == 0;
	return any_clean && any_tainted;
}

static uint64_t
integer_of(const json_t *json)
{
	return json_is_integer(json) ? (uint64_t)json_integer_value(json) : RESULT_UNKNOWN;
}

/* The name of an arm of the estimates. */
static void
arm_name(char *name, size_t size, const json_t *arm)
{
	const json_t *mode = json_object_get(arm, "mode");
	const json_t *burst = json_object_get(arm, "burst");
	const json_t *lookups = json_object_get(arm, "noisy_lookups");

	summary_arm(name, size, json_string_value(json_object_get(arm, "scenario")),
			json_string_value(mode), integer_of(burst), integer_of(lookups),
			(struct summary_varied){ mode != NULL, burst != NULL, lookups != NULL });
}

/*
 * The causes of taint of each arm, and of how many of its windows; nothing where there is none.
 * Returns 0, or -1 without memory.
 */
static int
print_causes(FILE *out, const struct result_window *windows, size_t n)
{
	json_t *estimates = result_estimates_json(windows, n);
	const json_t *arm, *count;
	const char *cause;
	bool any = false;
	size_t i;

	if (estimates == NULL)
		return -1;
	json_array_foreach (json_object_get(estimates, "scenarios"), i, arm)
		json_object_foreach (json_object_get(arm, "causes"), cause, count) {
			char name[COMPARE_ARM_MAX], text[RESULT_TEXT_MAX];

			/* A standing condition, explained above. */
			if (strcmp(cause, "controller") == 0)
				continue;

			arm_name(name, sizeof(name), arm);
			snprintf(text, sizeof(text), "%s", cause);
			fprintf(out, "%s%-28s %-12s %jd of %jd windows\n",
					any ? "" : "\ncauses of taint\n", csv_visible(name),
					csv_visible(text), (intmax_t)json_integer_value(count),
					(intmax_t)json_integer_value(
							json_object_get(arm, "windows")));
			any = true;
		}
	json_decref(estimates);
	return 0;
}

int
compare_print(FILE *out, const struct result_window *windows, size_t n,
		const struct comparisons *clean, const struct comparisons *with_tainted,
		double margin)
{
	if (result_print_table(out, windows, n) != 0)
		return -1;
	if (clean->nb > 0) {
		fputc('\n', out);
		comparisons_print(out, clean, margin);
		if (differ_with_tainted(clean, windows, n)) {
			fprintf(out, "\nwith tainted windows:\n");
			comparisons_print(out, with_tainted, margin);
		}
	}
	if (print_causes(out, windows, n) != 0)
		return -1;
	return ferror(out) ? -1 : 0;
}
