/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * idlectl probe eoi --bench: a benchmark of the kernel's scheduler under two settings in turn, and whether
 * they differ by more than the noise.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>

#include "control.h"
#include "mechanisms.h"
#include "perf.h"
#include "probe_bench.h"
#include "stats.h"
#include "sysroot.h"

#define LEVEL 0.95
#define SIGMAS 3
#define PIPE_LOOPS 10000 /* of the published figures */

/* ---- arithmetic ---- */

struct bench_runs
bench_runs_of(const double *seconds, size_t n)
{
	return (struct bench_runs){ n, stats_mean(seconds, n), stats_sd(seconds, n) };
}

struct bench_runs
bench_runs_published(size_t n, double mean, double rse)
{
	return (struct bench_runs){ n, mean, rse / 100 * mean * sqrt((double)n) };
}

double
bench_rse(const struct bench_runs *r)
{
	return 100 * r->sd / sqrt((double)r->n) / r->mean;
}

/* Nothing of nothing is nothing. */
static double
ratio(double difference, double noise)
{
	return difference == 0 && noise == 0 ? 0 : difference / noise;
}

struct bench_verdict
bench_compare(const struct bench_runs *base, const struct bench_runs *other)
{
	struct bench_verdict v;

	v.difference = other->mean - base->mean;
	v.percent = 100 * v.difference / base->mean;
	v.se = sqrt(base->sd * base->sd / (double)base->n +
			other->sd * other->sd / (double)other->n);
	v.z = ratio(v.difference, v.se);
	v.sds = ratio(v.difference, base->sd);
	v.answer = isnan(v.se) ? BENCH_UNKNOWN : fabs(v.z) >= SIGMAS ? BENCH_BEYOND : BENCH_BELOW;
	return v;
}

/* The number that stands before some words, or behind them. */
static bool
number_before(const char *text, const char *words, double *value)
{
	const char *at = strstr(text, words), *line = at;
	char *end;

	if (at == NULL)
		return false;
	while (line > text && line[-1] != '\n')
		line--;
	*value = strtod(line, &end);
	return end > line && end + strspn(end, " ") == at && isfinite(*value);
}

static bool
number_behind(const char *text, const char *words, double *value)
{
	const char *at = strstr(text, words);
	char *end;

	if (at == NULL)
		return false;
	at += strlen(words);
	*value = strtod(at, &end);
	return end > at && isfinite(*value);
}

bool
bench_parse(const char *text, unsigned long loops, double *seconds)
{
	if (loops > 0 && number_before(text, "usecs/op", seconds))
		*seconds *= 1e-6 * (double)loops;
	else if (!number_behind(text, "Total time:", seconds))
		return false;
	return *seconds > 0;
}

/* ---- perf ---- */

/* What a run prints, up to so much of it. */
struct words {
	int fd;
	char text[4096];
	size_t len;
};

static const struct {
	const char *name;
	bool counts; /* usecs/op and -l are of the same operations */
	unsigned long loops; /* 0: perf's own default */
} benches[] = {
	{ "messaging", false, 0 },
	{ "pipe", true, PIPE_LOOPS },
};
#define NB_BENCHES (sizeof(benches) / sizeof(benches[0]))

/* What is in the pipe now; false at its end. What there is no room for is dropped. */
static bool
take(void *arg)
{
	struct words *w = arg;

	for (;;) {
		char more[512];
		ssize_t n = read(w->fd, more, sizeof(more));
		size_t room = sizeof(w->text) - 1 - w->len;

		if (n <= 0)
			return n < 0 && (errno == EAGAIN || errno == EINTR);
		memcpy(w->text + w->len, more, (size_t)n < room ? (size_t)n : room);
		w->len += (size_t)n < room ? (size_t)n : room;
	}
}

/* One run: the seconds that perf tells, and those from its start until its end. */
static int
run_perf(const struct probe_options *o, size_t bench, double *seconds, double *elapsed,
		struct err *err)
{
	unsigned long loops = o->loops != 0 ? o->loops : benches[bench].loops;
	char number[32];
	const char *const argv[] = { "perf", "bench", "sched", benches[bench].name,
		loops != 0 ? "-l" : NULL, number, NULL };
	struct words w = { 0 };
	struct perf perf = { 0 };
	uint64_t began, ended;
	int ends[2], status, rc;
	bool ran = false;

	snprintf(number, sizeof(number), "%lu", loops);
	if (pipe2(ends, O_CLOEXEC) != 0)
		return err_set(err, EXIT_FAILED, "a pipe: %s", strerror(errno));
	w.fd = ends[0];
	fcntl(w.fd, F_SETFL, O_NONBLOCK);
	began = clock_ns();
	rc = perf_start(&perf, argv, ends[1], ends[1], err);
	close(ends[1]);
	if (rc == 0)
		ran = perf_wait(&perf, w.fd, take, &w);
	ended = clock_ns();
	status = perf_end(&perf);
	take(&w);
	close(w.fd);
	if (rc != 0)
		return -1;
	if (!ran)
		return err_set(err, EXIT_FAILED, "interrupted");
	if (status != 0)
		return perf_failed("perf bench", status, one_line(w.text), err);
	if (!bench_parse(w.text, benches[bench].counts ? loops : 0, seconds))
		return err_set(err, EXIT_FAILED, "perf told no time: %s", one_line(w.text));
	*elapsed = 1e-9 * (double)(ended - began);
	return 0;
}

/* ---- settings ---- */

struct setting {
	const char *option, *text; /* "base", and as given */
	struct scenario scenario;
	char *path; /* NULL: a scenario */
	const char *value;
	double *seconds, *elapsed; /* of each repeat, by perf and by our clock */
};

struct benching {
	const struct probe_options *o;
	struct control *c;
	size_t bench;
	struct setting base, other;
};

/* A file below /sys or /proc/sys, and nothing that is mounted there. */
static int
parse_file(struct setting *s, struct err *err)
{
	size_t len = strcspn(s->text, "=");

	if (s->text[len] == '\0' || s->text[len + 1] == '\0')
		return err_set(err, EXIT_USAGE, "--%s %s: FILE=VALUE is wanted, with a value",
				s->option, s->text);
	s->path = sys_format("%.*s", (int)len, s->text);
	s->value = s->text + len + 1;
	if ((strncmp(s->path, "/sys/", 5) != 0 && strncmp(s->path, "/proc/sys/", 10) != 0) ||
			strstr(s->path, "/../") != NULL ||
			(len >= 3 && strcmp(s->path + len - 3, "/..") == 0))
		return err_set(err, EXIT_USAGE, "--%s %s: not a file below /sys or /proc/sys",
				s->option, s->path);
	return 0;
}

static int
parse_setting(struct setting *s, const struct probe_options *o, struct err *err)
{
	struct err why;

	if (s->text[0] == '/' || strchr(s->text, '=') != NULL)
		return parse_file(s, err);
	if (scenario_parse(&s->scenario, s->text, &why) != 0)
		return err_set(err, why.code, "--%s %s: %s", s->option, s->text, why.text);
	if (s->scenario.nb > 0 && !o->cpu_given)
		return err_set(err, EXIT_USAGE, "--%s %s: a scenario needs --cpu", s->option,
				s->text);
	return 0;
}

/* What can be said of it on this machine before anything is changed. */
static int
check_setting(const struct setting *s, const struct probe_options *o, struct err *err)
{
	struct statfs fs;
	struct err why;

	if (s->path == NULL) {
		if (s->scenario.nb == 0 ||
				control_check((unsigned int)o->cpu, &s->scenario, &why) == 0)
			return 0;
		return err_set(err, why.code, "--%s %s: %s", s->option, s->text, why.text);
	}
	if (statfs(s->path, &fs) != 0)
		return err_set(err, EXIT_USAGE, "--%s %s: %s", s->option, s->path, strerror(errno));
	if (!sys_regular("%s", s->path) ||
			(fs.f_type != SYSFS_MAGIC && fs.f_type != PROC_SUPER_MAGIC))
		return err_set(err, EXIT_USAGE, "--%s %s: not a file of sysfs or procfs", s->option,
				s->path);
	return 0;
}

static int
apply(struct benching *b, const struct setting *s, struct err *err)
{
	/* Nothing begins without a supervisor. */
	if (control_guard(b->c, err) != 0)
		return -1;
	if (s->path != NULL)
		return control_write(b->c, s->path, s->value, err);
	if (s->scenario.nb == 0)
		return 0;
	if (control_apply(b->c, (unsigned int)b->o->cpu, &s->scenario, err) != 0)
		return -1;
	return control_verify(b->c, err);
}

/* One run under a setting; repeat < 0: it does not count. */
static int
visit(struct benching *b, struct setting *s, long repeat, struct err *err)
{
	double seconds = 0, elapsed = 0;
	struct err undo;
	int rc;

	if (probe_interrupted())
		return err_set(err, EXIT_FAILED, "interrupted");
	rc = apply(b, s, err);
	if (rc == 0)
		rc = run_perf(b->o, b->bench, &seconds, &elapsed, err);
	if (control_restore(b->c, &undo) != 0) {
		*err = undo;
		rc = -1;
	}
	if (rc == 0 && repeat >= 0) {
		s->seconds[repeat] = seconds;
		s->elapsed[repeat] = elapsed;
	}
	return rc;
}

/* ---- what comes out ---- */

/*
 * All that is published. It stands below: the settings of ours are whatever they are, and a relative standard error is
 * that of 100 runs.
 */
static const struct {
	const char *name, *metric, *where, *column, *unit;
} published_rows[] = {
#define PUBLISHED(metric, where) \
	{ "published, not patched", metric, where "&patched=no", "seconds", "s" }, \
	{ \
		"published, patched", metric, where "&patched=yes", "seconds", "s" \
	}
#define PUBLISHED_RSE(metric, where) \
	{ "published, not patched", metric, where "&patched=no", "rse_pct", "%" }, \
	{ \
		"published, patched", metric, where "&patched=yes", "rse_pct", "%" \
	}
	PUBLISHED("messaging, elapsed mean", "bench=sched messaging&runs=100"),
	PUBLISHED_RSE("messaging, elapsed rse", "bench=sched messaging&runs=100"),
	PUBLISHED("pipe, elapsed mean", "bench=sched pipe -l 10000&runs=100"),
	PUBLISHED_RSE("pipe, elapsed rse", "bench=sched pipe -l 10000&runs=100"),
	PUBLISHED("kernel build, real", "bench=kernel build real"),
	PUBLISHED("kernel build, user", "bench=kernel build user"),
	PUBLISHED("kernel build, sys", "bench=kernel build sys"),
#undef PUBLISHED
#undef PUBLISHED_RSE
};

/* Rows of one time under a setting. */
static void
add_times(struct probe_report *r, const char *name, const char *const metrics[3],
		const double *seconds, size_t n)
{
	struct bench_runs runs = bench_runs_of(seconds, n);
	struct stats_interval mean = stats_t_interval(seconds, n, LEVEL);
	struct probe_row *row;

	report_add(r, name, metrics[0], "s", seconds, NULL, n);
	row = report_add_one(r, name, metrics[1], "s", runs.mean);
	row->n = n;
	if (isfinite(mean.half)) {
		row->low = mean.mean - mean.half;
		row->high = mean.mean + mean.half;
	}
	row = report_add_one(r, name, metrics[2], "%", bench_rse(&runs));
	row->n = n;
}

static void
add_setting(struct probe_report *r, const struct benching *b, const struct setting *s)
{
	const char *const own[] = { benches[b->bench].name, "mean", "rse" };
	static const char *const whole[] = { "elapsed", "elapsed mean", "elapsed rse" };
	size_t n = b->o->repeats, len = strlen(s->text),
	       room = sizeof(((struct probe_row *)0)->name);
	char *name;

	/* Of a long one the end tells more than the begin. */
	room -= strlen(s->option) + strlen(": ...") + 1;
	name = sys_format("%s: %s%s", s->option, len > room ? "..." : "",
			s->text + (len > room ? len - room : 0));
	add_times(r, name, own, s->seconds, n);
	add_times(r, name, whole, s->elapsed, n);
	free(name);
}

/* Neighbours are compared with each other, so that what drifts is in neither. */
static void
add_difference(struct probe_report *r, const double *base, const double *other, size_t n)
{
	double *logs = probe_alloc(n, sizeof(*logs));
	struct stats_interval d;
	struct probe_row *row;

	for (size_t i = 0; i < n; i++)
		logs[i] = log(other[i] / base[i]);
	d = stats_t_interval(logs, n, LEVEL);
	free(logs);
	row = report_add_one(r, "other over base", "difference", "%", 100 * expm1(d.mean));
	row->n = n;
	if (isfinite(d.half)) {
		row->low = 100 * expm1(d.mean - d.half);
		row->high = 100 * expm1(d.mean + d.half);
	}
}

static json_t *
figure(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

static const char *const answers[] = { [BENCH_UNKNOWN] = "unknown",
	[BENCH_BELOW] = "below the noise",
	[BENCH_BEYOND] = "beyond three standard errors" };

/* One line, and a fact. */
static void
add_verdict(struct probe_report *r, const char *name, const char *fact, const struct setting *base,
		const struct setting *other, const struct bench_verdict *v)
{
	const struct setting *faster = v->difference < 0 ? other : base;
	/* Of the slower one's time. */
	double by = fabs(v->difference < 0 ? v->percent : v->percent / (1 + v->percent / 100));
	char *figures = sys_format(
			"%s: difference %.4g s (%+.2f %%), standard error %.3g s: %.1f standard errors, %.1f standard deviations of one run",
			name, v->difference, v->percent, v->se, v->z, v->sds);

	if (v->answer == BENCH_BEYOND)
		report_note(r, "%s; beyond three standard errors: %s %.200s is faster by %.2f %%",
				figures, faster->option, faster->text, by);
	else if (v->answer == BENCH_BELOW)
		report_note(r, "%s; below the noise: less than three standard errors", figures);
	else
		report_note(r, "%s: difference %.4g s (%+.2f %%); no verdict: one run has no standard error",
				name, v->difference, v->percent);
	free(figures);
	json_object_set_new(r->facts, fact,
			json_pack("{s:o, s:o, s:o, s:o, s:o, s:s}", "difference_s",
					figure(v->difference), "difference_pct", figure(v->percent),
					"standard_error_s", figure(v->se), "standard_errors",
					figure(v->z), "standard_deviations", figure(v->sds),
					"verdict", answers[v->answer]));
}

static json_t *
facts_of(const struct setting *s, size_t n)
{
	json_t *seconds = json_array(), *elapsed = json_array();

	for (size_t i = 0; i < n; i++) {
		json_array_append_new(seconds, figure(s->seconds[i]));
		json_array_append_new(elapsed, figure(s->elapsed[i]));
	}
	return json_pack("{s:s, s:o, s:o}", "setting", s->text, "seconds", seconds, "elapsed_s",
			elapsed);
}

void
bench_publish(struct probe_report *r)
{
	for (size_t i = 0; i < sizeof(published_rows) / sizeof(published_rows[0]); i++)
		report_add_published(r, published_rows[i].name, published_rows[i].metric,
				published_rows[i].unit, published_rows[i].where,
				published_rows[i].column, 1);
}

static void
add_results(struct probe_report *r, const struct benching *b)
{
	const struct setting *base = &b->base, *other = &b->other;
	size_t n = b->o->repeats;
	struct bench_runs runs[] = { bench_runs_of(base->seconds, n),
		bench_runs_of(other->seconds, n), bench_runs_of(base->elapsed, n),
		bench_runs_of(other->elapsed, n) };
	struct bench_verdict own = bench_compare(&runs[0], &runs[1]);
	struct bench_verdict whole = bench_compare(&runs[2], &runs[3]);

	add_setting(r, b, base);
	add_setting(r, b, other);
	add_difference(r, base->seconds, other->seconds, n);
	bench_publish(r);
	json_object_set_new(r->facts, "bench", json_string(benches[b->bench].name));
	json_object_set_new(r->facts, "base", facts_of(base, n));
	json_object_set_new(r->facts, "other", facts_of(other, n));
	add_verdict(r, benches[b->bench].name, "verdict", base, other, &own);
	add_verdict(r, "elapsed", "verdict_elapsed", base, other, &whole);
}

/* ---- all of it ---- */

/* The command line, before the machine is looked at. */
static int
parse(struct benching *b, const struct probe_options *o, struct err *err)
{
	if (o->bench == NULL)
		return err_set(err, EXIT_USAGE, "--%s needs --bench",
				o->base != NULL ? "base" : "other");
	while (b->bench < NB_BENCHES && strcmp(benches[b->bench].name, o->bench) != 0)
		b->bench++;
	if (b->bench == NB_BENCHES)
		return err_set(err, EXIT_USAGE, "--bench %s: there are messaging and pipe",
				o->bench);
	if (o->base == NULL || o->other == NULL)
		return err_set(err, EXIT_USAGE, "--bench needs --%s",
				o->base == NULL ? "base" : "other");
	if (parse_setting(&b->base, o, err) != 0)
		return -1;
	return parse_setting(&b->other, o, err);
}

/* A B, B A, and so on: neither always comes first. */
static int
run_all(struct benching *b, struct err *err)
{
	for (long i = -(long)b->o->warmup; i < (long)b->o->repeats; i++) {
		bool backward = i % 2 != 0;

		if (visit(b, backward ? &b->other : &b->base, i, err) != 0 ||
				visit(b, backward ? &b->base : &b->other, i, err) != 0)
			return -1;
	}
	return 0;
}

static int
run_controlled(struct benching *b, struct err *err)
{
	struct control c;
	struct err undo;
	int rc;

	/* Ignored, as a parent may have left it, no child's end would be told. */
	signal(SIGCHLD, SIG_DFL);
	if (control_begin(&c, "idlectl probe", err) != 0)
		return -1;
	b->c = &c;
	rc = run_all(b, err);
	if (control_end(&c, &undo) != 0) {
		*err = undo;
		rc = -1;
	}
	return rc;
}

int
probe_bench(struct probe_report *r, const struct probe_options *o, struct err *err)
{
	struct benching b = { .o = o,
		.base = { .option = "base", .text = o->base },
		.other = { .option = "other", .text = o->other } };
	struct setting *const settings[] = { &b.base, &b.other };
	int rc = parse(&b, o, err);

	if (rc == 0 && !sys_live())
		rc = err_set(err, EXIT_SKIPPED, "a recorded tree runs nothing");
	for (int i = 0; i < 2 && rc == 0; i++) {
		settings[i]->seconds = probe_alloc(o->repeats, sizeof(double));
		settings[i]->elapsed = probe_alloc(o->repeats, sizeof(double));
		rc = check_setting(settings[i], o, err);
	}
	if (rc == 0)
		rc = run_controlled(&b, err);
	if (rc == 0)
		add_results(r, &b);
	for (int i = 0; i < 2; i++) {
		free(settings[i]->path);
		free(settings[i]->seconds);
		free(settings[i]->elapsed);
	}
	return rc;
}
