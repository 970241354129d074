/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * idlectl probe eoi --bench: perf bench sched under two settings, base other other base, and a verdict at
 * three standard errors.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "control.h"
#include "probe_bench.h"
#include "stats.h"
#include "sysroot.h"

#define SIGMAS 3

/* ---- arithmetic ---- */

struct bench_runs
bench_runs_of(const double *seconds, size_t n)
{
	struct bench_runs runs = { n, stats_mean(seconds, n), NAN };

	runs.rse = 100 * stats_sd(seconds, n) / sqrt((double)n) / runs.mean;
	return runs;
}

struct bench_difference
bench_compare(const struct bench_runs *base, const struct bench_runs *other)
{
	double a = base->mean * base->rse / 100, b = other->mean * other->rse / 100;
	double sd = sqrt(((double)base->n * a * a + (double)other->n * b * b) / 2);
	double off = other->mean - base->mean;
	struct bench_difference d = { .percent = 100 * off / base->mean,
		.errors = off == 0 ? 0 : off / hypot(a, b),
		.deviations = off == 0 ? 0 : off / sd };

	if (isnan(a) || isnan(b)) {
		d.errors = d.deviations = NAN;
		d.verdict = BENCH_UNKNOWN;
	} else if (fabs(d.errors) < SIGMAS) {
		d.verdict = BENCH_BELOW_NOISE;
	} else {
		d.verdict = off < 0 ? BENCH_FASTER : BENCH_SLOWER;
	}
	return d;
}

const char *
bench_verdict_text(enum bench_verdict verdict)
{
	static const char *const texts[] = {
		[BENCH_BELOW_NOISE] = "below the noise",
		[BENCH_FASTER] = "the other is faster, beyond three standard errors",
		[BENCH_SLOWER] = "the other is slower, beyond three standard errors",
		[BENCH_UNKNOWN] = "cannot be told from a single run",
	};

	return texts[verdict];
}

/* ---- settings ---- */

struct setting {
	const char *text; /* as given */
	struct scenario scenario; /* without words: as-is, or a file */
	char *path, *value; /* NULL: no file */
};

static int
parse_file(struct setting *s, const char *option, struct err *err)
{
	const char *equals = strchr(s->text, '=');

	s->path = sys_format("%.*s", (int)(equals - s->text), s->text);
	s->value = sys_format("%s", equals + 1);
	if (!journal_may(s->path))
		return err_set(err, EXIT_USAGE, "--%s %s: not a file below /sys or /proc/sys",
				option, s->text);
	if (!sys_regular("%s", s->path))
		return err_set(err, EXIT_FAILED, "--%s %s: there is no file %s", option, s->text,
				s->path);
	return 0;
}

static int
parse_setting(struct setting *s, const struct probe_options *o, const char *option,
		const char *text, struct err *err)
{
	s->text = text;
	if (text[0] == '/' && strchr(text, '=') != NULL)
		return parse_file(s, option, err);
	if (scenario_parse(&s->scenario, text, err) != 0)
		return -1;
	if (s->scenario.nb > 0 && !o->cpu_given)
		return err_set(err, EXIT_USAGE, "--%s %s: a scenario needs --cpu", option, text);
	return 0;
}

static int
apply(struct control *c, const struct probe_options *o, const struct setting *s, struct err *err)
{
	if (s->path != NULL)
		return journal_write(&c->journal, s->path, s->value, err);
	if (s->scenario.nb == 0)
		return 0;
	if (control_apply(c, (unsigned int)o->cpu, &s->scenario, err) != 0)
		return -1;
	return control_verify(c, err);
}

/* Whatever is applied; a file belongs to no scenario. */
static int
give_back(struct control *c, struct err *err)
{
	struct restored r;
	int rc;

	if (c->scenario != NULL)
		return control_restore(c, err);
	rc = journal_undo(&c->journal, &r, err);
	restored_print(&r, c->who);
	restored_free(&r);
	return rc;
}

/* ---- runs ---- */

static const struct {
	const char *name;
	const char *where; /* of its published figures */
	char *argv[9];
} benches[] = {
	{ "messaging", "bench=sched messaging",
			{ "perf", "bench", "-f", "simple", "sched", "messaging" } },
	{ "pipe", "bench=sched pipe -l 10000",
			{ "perf", "bench", "-f", "simple", "sched", "pipe", "-l", "10000" } },
};
#define NB_BENCHES (sizeof(benches) / sizeof(benches[0]))

static int
run_bench(size_t bench, double *seconds, struct err *err)
{
	FILE *out = probe_spawn(benches[bench].argv, err);
	char text[64], *end;
	bool good;

	if (out == NULL)
		return -1;
	good = fgets(text, sizeof(text), out) != NULL;
	fclose(out);
	if (good) {
		*seconds = strtod(text, &end);
		good = end != text && (*end == '\n' || *end == '\0') && isfinite(*seconds) &&
				*seconds > 0;
	}
	return good ? 0
		    : err_set(err, EXIT_FAILED, "perf bench sched %s: printed no number of seconds",
				      benches[bench].name);
}

/* Under a setting, which is given back. */
static int
run_under(struct control *c, const struct probe_options *o, const struct setting *s, size_t bench,
		double *seconds, struct err *err)
{
	struct err undo;
	int rc;

	if (!control_guarded(c))
		return err_set(err, EXIT_FAILED,
				"somebody ended the process that restores after a kill -9");
	rc = apply(c, o, s, err);
	if (rc == 0)
		rc = run_bench(bench, seconds, err);
	if (give_back(c, &undo) == 0)
		return rc;
	*err = undo;
	return -1;
}

static int
run_all(struct control *c, const struct probe_options *o, const struct setting settings[2],
		size_t bench, double *seconds[2], struct err *err)
{
	for (long i = -(long)o->warmup; i < (long)o->repeats; i++)
		for (int k = 0; k < 2; k++) {
			int which = i % 2 == 0 ? k : 1 - k;
			double took = NAN;

			if (run_under(c, o, &settings[which], bench, &took, err) != 0)
				return -1;
			if (probe_interrupted())
				return err_set(err, EXIT_FAILED, "interrupted");
			if (i >= 0)
				seconds[which][i] = took;
		}
	return 0;
}

/* ---- results ---- */

static void
publish(struct probe_report *r, size_t bench, const char *const names[2])
{
	static const char *const patched[] = { "no", "yes" };

	for (size_t b = 0; b < NB_BENCHES; b++)
		for (int k = 0; k < 2; k++) {
			char where[64];

			snprintf(where, sizeof(where), "%s&patched=%s", benches[b].where,
					patched[k]);
			if (b != bench) {
				report_add_published(r, "published", benches[b].name, "s", where,
						"seconds", 1);
				continue;
			}
			for (size_t i = 0; i < r->nb; i++)
				if (strcmp(r->rows[i].name, names[k]) == 0) {
					if (strcmp(r->rows[i].metric, "mean") == 0)
						report_publish(r, &r->rows[i], where, "seconds", 1);
					if (strcmp(r->rows[i].metric, "rse") == 0)
						report_publish(r, &r->rows[i], where, "rse_pct", 1);
				}
		}
}

static void
add_rows(struct probe_report *r, const struct probe_options *o, const struct setting settings[2],
		size_t bench, double *const seconds[2])
{
	char names[2][64];
	const char *const list[2] = { names[0], names[1] };
	struct bench_runs runs[2];
	struct bench_difference d;
	double *ratio = probe_alloc(o->repeats, sizeof(*ratio));

	for (int k = 0; k < 2; k++) {
		snprintf(names[k], sizeof(names[k]), "%s: %.48s", k == 0 ? "base" : "other",
				settings[k].text);
		runs[k] = bench_runs_of(seconds[k], o->repeats);
		report_add(r, names[k], benches[bench].name, "s", seconds[k], NULL, o->repeats);
		report_add_one(r, names[k], "mean", "s", runs[k].mean);
		report_add_one(r, names[k], "rse", "%", runs[k].rse);
	}
	for (unsigned long i = 0; i < o->repeats; i++)
		ratio[i] = 100 * (seconds[1][i] / seconds[0][i] - 1);
	report_add(r, "other over base", benches[bench].name, "%", ratio, NULL, o->repeats);
	d = bench_compare(&runs[0], &runs[1]);
	json_object_set_new(r->facts, "verdict", json_string(bench_verdict_text(d.verdict)));
	report_note(r, "%+.2f %% in the mean, %.1f standard errors, %.1f standard deviations of one run: %s",
			d.percent, d.errors, d.deviations, bench_verdict_text(d.verdict));
	publish(r, bench, list);
	free(ratio);
}

static int
run_controlled(struct probe_report *r, const struct probe_options *o,
		const struct setting settings[2], size_t bench, struct err *err)
{
	double *seconds[2] = { probe_alloc(o->repeats, sizeof(double)),
		probe_alloc(o->repeats, sizeof(double)) };
	struct control c;
	struct err undo;
	int rc = control_begin(&c, "idlectl probe", err);

	if (rc == 0) {
		rc = run_all(&c, o, settings, bench, seconds, err);
		if (control_end(&c, &undo) != 0) {
			*err = undo;
			rc = -1;
		}
	}
	if (rc == 0)
		add_rows(r, o, settings, bench, seconds);
	free(seconds[0]);
	free(seconds[1]);
	return rc;
}

int
probe_bench(struct probe_report *r, const struct probe_options *o, struct err *err)
{
	struct setting settings[2] = { 0 };
	size_t bench = 0;
	int rc;

	while (bench < NB_BENCHES && strcmp(benches[bench].name, o->bench) != 0)
		bench++;
	if (bench == NB_BENCHES)
		return err_set(err, EXIT_USAGE, "--bench %s: messaging or pipe?", o->bench);
	if (o->base == NULL || o->other == NULL)
		return err_set(err, EXIT_USAGE, "--bench: needs --base and --other");
	rc = parse_setting(&settings[0], o, "base", o->base, err);
	if (rc == 0)
		rc = parse_setting(&settings[1], o, "other", o->other, err);
	if (rc == 0 && !sys_live())
		rc = err_set(err, EXIT_SKIPPED, "--bench: a recorded tree runs nothing");
	if (rc == 0)
		rc = run_controlled(r, o, settings, bench, err);
	for (int k = 0; k < 2; k++) {
		free(settings[k].path);
		free(settings[k].value);
	}
	return rc;
}
