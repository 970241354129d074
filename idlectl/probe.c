/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

#include "probe.h"
#include "stats.h"
#include "sysroot.h"

#define LEVEL 0.95
#define SLICE 10000 /* loops of one request: tens of ms where an operation takes a few us */

void *
probe_alloc(size_t n, size_t size)
{
	void *memory = calloc(n > 0 ? n : 1, size);

	if (memory == NULL)
		abort();
	return memory;
}

/* ---- figures ---- */

void
report_begin(struct probe_report *r, const char *probe, const char *system)
{
	memset(r, 0, sizeof(*r));
	r->probe = probe;
	r->system = system == NULL ? NULL : published_find(system);
	r->notes = json_array();
	r->histograms = json_array();
	r->facts = json_object();
}

void
report_free(struct probe_report *r)
{
	free(r->rows);
	json_decref(r->notes);
	json_decref(r->histograms);
	json_decref(r->facts);
	memset(r, 0, sizeof(*r));
}

static struct probe_row *
new_row(struct probe_report *r, const char *name, const char *metric, const char *unit)
{
	struct probe_row *row;

	r->rows = reallocarray(r->rows, r->nb + 1, sizeof(*r->rows));
	if (r->rows == NULL)
		abort();
	row = &r->rows[r->nb++];
	memset(row, 0, sizeof(*row));
	snprintf(row->name, sizeof(row->name), "%s", name);
	row->metric = metric;
	row->unit = unit;
	row->raw = row->overhead = row->net = row->low = row->high = row->published = NAN;
	return row;
}

struct probe_row *
report_add(struct probe_report *r, const char *name, const char *metric, const char *unit,
		const double *raw, const double *overhead, size_t n)
{
	struct probe_row *row = new_row(r, name, metric, unit);
	double *net = probe_alloc(n, sizeof(*net));
	struct stats_range range;

	for (size_t i = 0; i < n; i++)
		net[i] = raw[i] - (overhead != NULL ? overhead[i] : 0);
	row->n = n;
	row->raw = stats_median(raw, n);
	if (overhead != NULL)
		row->overhead = stats_median(overhead, n);
	row->net = stats_median(net, n);
	range = stats_median_interval(net, n, LEVEL);
	row->low = range.low;
	row->high = range.high;
	free(net);
	return row;
}

struct probe_row *
report_add_one(struct probe_report *r, const char *name, const char *metric, const char *unit,
		double value)
{
	struct probe_row *row = new_row(r, name, metric, unit);

	row->n = 1;
	row->raw = row->net = value;
	return row;
}

void
report_publish(const struct probe_report *r, struct probe_row *row, const char *where,
		const char *column, double scale)
{
	row->published = scale * published_figure(r->system, where, column);
	snprintf(row->published_as, sizeof(row->published_as), "%s", where);
}

void
report_add_published(struct probe_report *r, const char *name, const char *metric, const char *unit,
		const char *where, const char *column, double scale)
{
	report_publish(r, new_row(r, name, metric, unit), where, column, scale);
}

void
report_note(struct probe_report *r, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	json_array_append_new(r->notes, json_string(one_line(text)));
}

const char *
probe_where(void)
{
	if (!sys_live())
		return "recorded";
	if (sys_emulated())
		return "emulated";
	return sys_hypervisor()[0] != '\0' ? "guest" : "bare metal";
}

/* ---- printing ---- */

static bool
emulated(const struct probe_report *r)
{
	return !r->recorded && sys_live() && sys_emulated();
}

static const char *
where(const struct probe_report *r)
{
	return r->recorded ? "recorded" : probe_where();
}

/* Whether a published figure stands beside ours or below. */
static bool
has_published(const struct probe_report *r)
{
	for (size_t i = 0; i < r->nb; i++)
		if (isfinite(r->rows[i].published))
			return true;
	return false;
}

/* To be freed. */
static char *
comparable_text(const struct probe_report *r)
{
	if (r->unlike != NULL)
		return sys_format("no: published are %s", r->unlike);
	return r->recorded ? sys_format("cannot tell: the machine of the recording is not known")
			   : published_comparable(r->system);
}

/* A figure, or nothing where it is not known. */
struct figure_text {
	char text[32];
};

static struct figure_text
figure(double value)
{
	struct figure_text t = { "" };

	if (isfinite(value) && fabs(value) >= 1e6)
		snprintf(t.text, sizeof(t.text), "%.0f", value);
	else if (isfinite(value))
		snprintf(t.text, sizeof(t.text), "%.*g", fabs(value) >= 1000 ? 6 : 4, value);
	return t;
}

static void
print_csv_text(const char *text)
{
	if (strpbrk(text, ",\"\r\n") == NULL) {
		printf("%s", text);
		return;
	}
	putchar('"');
	for (; *text != '\0'; text++)
		printf("%s%c", *text == '"' ? "\"" : "", *text);
	putchar('"');
}

/* Beside the table that goes elsewhere: the notes go to people. */
static void
print_csv(const struct probe_report *r, const char *comparable)
{
	json_int_t seed = json_integer_value(json_object_get(r->facts, "seed"));
	json_t *item;
	size_t n;

	json_array_foreach (r->notes, n, item)
		fprintf(stderr, "idlectl: %s\n", json_string_value(item));
	printf("probe,case,metric,unit,repeats,raw,overhead,net,low,high,published,published_as,"
	       "published_machine,comparable,emulated,where,seed\n");
	for (size_t i = 0; i < r->nb; i++) {
		const struct probe_row *row = &r->rows[i];
		const double figures[] = { row->raw, row->overhead, row->net, row->low, row->high,
			row->published };
		bool published = isfinite(row->published);

		printf("%s,", r->probe);
		print_csv_text(row->name);
		printf(",");
		print_csv_text(row->metric);
		printf(",%s,", row->unit);
		if (row->n > 0)
			printf("%zu", row->n);
		for (size_t k = 0; k < sizeof(figures) / sizeof(figures[0]); k++)
			if (isfinite(figures[k]))
				printf(",%.9g", figures[k]);
			else
				printf(",");
		printf(",");
		print_csv_text(row->published_as);
		printf(",");
		print_csv_text(published ? r->system->machine : "");
		printf(",");
		if (published)
			print_csv_text(row->n > 0 || r->unlike != NULL
							? comparable
							: "no: not beside a figure of ours");
		printf(",%d,%s,", row->n > 0 && emulated(r) ? 1 : 0, row->n > 0 ? where(r) : "");
		if (row->n > 0 && seed > 0)
			printf("%" JSON_INTEGER_FORMAT, seed);
		printf("\n");
	}
}

static void
set_figure(json_t *object, const char *key, double value)
{
	json_object_set_new(object, key, isfinite(value) ? json_real(value) : json_null());
}

static json_t *
row_json(const struct probe_row *row)
{
	json_t *json = json_pack("{s:s, s:s, s:s, s:I}", "case", row->name, "metric", row->metric,
			"unit", row->unit, "repeats", (json_int_t)row->n);

	set_figure(json, "raw", row->raw);
	set_figure(json, "overhead", row->overhead);
	set_figure(json, "net", row->net);
	set_figure(json, "low", row->low);
	set_figure(json, "high", row->high);
	set_figure(json, "published", row->published);
	if (row->published_as[0] != '\0')
		json_object_set_new(json, "published_as", json_string(row->published_as));
	return json;
}

json_t *
report_json(const struct probe_report *r)
{
	json_t *rows = json_array(), *json;
	char *comparable;

	for (size_t i = 0; i < r->nb; i++)
		json_array_append_new(rows, row_json(&r->rows[i]));
	json = json_pack("{s:s, s:b, s:s, s:O, s:o, s:O, s:O}", "probe", r->probe, "emulated",
			emulated(r), "where", where(r), "facts", r->facts, "rows", rows,
			"histograms", r->histograms, "notes", r->notes);
	if (!has_published(r))
		return json;
	comparable = comparable_text(r);
	json_object_set_new(json, "published",
			json_pack("{s:s, s:s, s:s, s:s}", "machine", r->system->machine, "source",
					r->system->source, "date", r->system->date, "comparable",
					comparable));
	free(comparable);
	return json;
}

static void
print_json(const struct probe_report *r)
{
	json_t *json = report_json(r);

	json_dumpf(json, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(json);
}

enum {
	COLUMN_CASE,
	COLUMN_METRIC,
	COLUMN_RAW,
	COLUMN_OVERHEAD,
	COLUMN_NET,
	COLUMN_INTERVAL,
	COLUMN_UNIT,
	COLUMN_PUBLISHED,
	COLUMN_AS,
	NB_COLUMNS
};

struct cells {
	char text[NB_COLUMNS][80];
};

static struct cells
cells_of(const struct probe_row *row)
{
	struct cells c = { 0 };

	snprintf(c.text[COLUMN_CASE], sizeof(c.text[0]), "%s", row->name);
	snprintf(c.text[COLUMN_METRIC], sizeof(c.text[0]), "%s", row->metric);
	snprintf(c.text[COLUMN_RAW], sizeof(c.text[0]), "%s", figure(row->raw).text);
	snprintf(c.text[COLUMN_OVERHEAD], sizeof(c.text[0]), "%s", figure(row->overhead).text);
	snprintf(c.text[COLUMN_NET], sizeof(c.text[0]), "%s", figure(row->net).text);
	if (isfinite(row->low))
		snprintf(c.text[COLUMN_INTERVAL], sizeof(c.text[0]), "[%s, %s]",
				figure(row->low).text, figure(row->high).text);
	snprintf(c.text[COLUMN_UNIT], sizeof(c.text[0]), "%s", row->unit);
	snprintf(c.text[COLUMN_PUBLISHED], sizeof(c.text[0]), "%s", figure(row->published).text);
	snprintf(c.text[COLUMN_AS], sizeof(c.text[0]), "%s", row->published_as);
	return c;
}

static void
print_cells(const struct cells *c, const size_t width[NB_COLUMNS])
{
	char line[NB_COLUMNS * 82];
	size_t at = 0;

	for (int i = 0; i < NB_COLUMNS; i++) {
		bool text = i == COLUMN_CASE || i == COLUMN_METRIC || i == COLUMN_UNIT ||
				i == COLUMN_AS;

		if (width[i] > 0)
			at += (size_t)snprintf(line + at, sizeof(line) - at, "%s%*s",
					at > 0 ? "  " : "", text ? -(int)width[i] : (int)width[i],
					c->text[i]);
	}
	while (at > 0 && line[at - 1] == ' ')
		at--;
	printf("%.*s\n", (int)at, line);
}

/* Columns that no row has a figure for are left out. */
static void
print_rows(const struct probe_report *r)
{
	static const struct cells head = { { "case", "metric", "raw", "overhead", "net",
			"95 % interval", "unit", "published", "published as" } };
	size_t width[NB_COLUMNS] = { 0 };

	for (size_t i = 0; i < r->nb; i++) {
		struct cells c = cells_of(&r->rows[i]);

		for (int k = 0; k < NB_COLUMNS; k++)
			if (strlen(c.text[k]) > width[k])
				width[k] = strlen(c.text[k]);
	}
	for (int k = 0; k < NB_COLUMNS; k++)
		if (width[k] > 0 && strlen(head.text[k]) > width[k])
			width[k] = strlen(head.text[k]);
	print_cells(&head, width);
	for (size_t i = 0; i < r->nb; i++) {
		struct cells c = cells_of(&r->rows[i]);

		print_cells(&c, width);
	}
}

#define BAR_MAX 50

static void
print_histogram(const json_t *h)
{
	size_t i;
	json_t *bin;
	double most = 0;

	printf("\n%s, %s:\n", json_string_value(json_object_get(h, "case")),
			json_string_value(json_object_get(h, "unit")));
	json_array_foreach (json_object_get(h, "bins"), i, bin)
		most = fmax(most, (double)json_integer_value(json_object_get(bin, "count")));
	json_array_foreach (json_object_get(h, "bins"), i, bin) {
		json_int_t count = json_integer_value(json_object_get(bin, "count"));

		printf("%10" JSON_INTEGER_FORMAT " .. %-10" JSON_INTEGER_FORMAT
		       " %10" JSON_INTEGER_FORMAT "  %.*s\n",
				json_integer_value(json_object_get(bin, "from")),
				json_integer_value(json_object_get(bin, "to")), count,
				(int)ceil(BAR_MAX * (double)count / most),
				"##################################################");
	}
}

static void
print_table(const struct probe_report *r, bool histograms, const char *comparable)
{
	size_t i;
	json_t *item;

	if (emulated(r))
		printf("emulated: the figures say nothing about any machine's speed\n");
	if (r->table != NULL)
		r->table(r);
	else
		print_rows(r);
	if (comparable != NULL)
		printf("published: %s, %s, %s; comparable: %s\n", r->system->machine,
				r->system->source, r->system->date, comparable);
	json_array_foreach (r->notes, i, item)
		printf("%s\n", json_string_value(item));
	if (histograms)
		json_array_foreach (r->histograms, i, item)
			print_histogram(item);
}

void
report_print(const struct probe_report *r, enum probe_format format, bool histograms)
{
	char *comparable = has_published(r) ? comparable_text(r) : NULL;

	if (format == PROBE_JSON)
		print_json(r);
	else if (format == PROBE_CSV)
		print_csv(r, comparable);
	else
		print_table(r, histograms, comparable);
	free(comparable);
}

/* ---- samples ---- */

void
histogram_add(struct histogram *h, uint64_t value)
{
	unsigned int octave;

	if (value < 16) {
		h->count[value]++;
		return;
	}
	octave = 63 - (unsigned int)__builtin_clzll(value);
	h->count[16 + (octave - 4) * 8 + ((value >> (octave - 3)) & 7)]++;
}

void
histogram_bin(unsigned int bin, uint64_t *from, uint64_t *to)
{
	unsigned int octave = 4 + (bin - 16) / 8, part = (bin - 16) % 8;

	if (bin < 16) {
		*from = bin;
		*to = bin + 1;
		return;
	}
	*from = (uint64_t)(8 + part) << (octave - 3);
	*to = bin == HISTOGRAM_BINS - 1 ? UINT64_MAX : (uint64_t)(9 + part) << (octave - 3);
}

void
report_add_histogram(struct probe_report *r, const char *name, const char *unit,
		const struct histogram *h)
{
	json_t *bins = json_array();

	for (unsigned int i = 0; i < HISTOGRAM_BINS; i++) {
		uint64_t from, to;

		if (h->count[i] == 0)
			continue;
		histogram_bin(i, &from, &to);
		/* JSON's integers are signed here. */
		json_array_append_new(bins,
				json_pack("{s:I, s:I, s:I}", "from",
						(json_int_t)(from > INT64_MAX ? INT64_MAX : from),
						"to", (json_int_t)(to > INT64_MAX ? INT64_MAX : to),
						"count", (json_int_t)h->count[i]));
	}
	json_array_append_new(r->histograms,
			json_pack("{s:s, s:s, s:o}", "case", name, "unit", unit, "bins", bins));
}

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void
sort_doubles(double *x, size_t n)
{
	qsort(x, n, sizeof(*x), compare);
}

double
sorted_percentile(const double *sorted, size_t n, double share)
{
	double rank = ceil(share * (double)n);

	return sorted[rank < 1 ? 0 : (size_t)rank > n ? n - 1 : (size_t)rank - 1];
}

/* ---- running ---- */

static volatile sig_atomic_t came;

static void
on_signal(int number)
{
	came = number;
}

void
probe_signals(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	struct sigaction action = { .sa_handler = on_signal };

	/* No SA_RESTART: what a probe waits in has to end. */
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &action, NULL);
}

bool
probe_interrupted(void)
{
	return came != 0;
}

void
probe_join(pthread_t thread)
{
	struct timespec until;

	do {
		if (probe_interrupted())
			pthread_kill(thread, SIGTERM);
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += 10000000;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
	} while (pthread_timedjoin_np(thread, NULL, &until) != 0);
}

int
probe_pin(unsigned int cpu, struct err *err)
{
	size_t size = CPU_ALLOC_SIZE(cpu + 1);
	cpu_set_t *set = CPU_ALLOC(cpu + 1);
	int rc;

	if (set == NULL)
		abort();
	CPU_ZERO_S(size, set);
	CPU_SET_S(cpu, size, set);
	rc = sched_setaffinity(0, size, set);
	CPU_FREE(set);
	if (rc == 0)
		return 0;
	return err_set(err, EXIT_FAILED, "CPU %u: this process cannot run there: %s", cpu,
			strerror(errno));
}

int
probe_request(const struct sibidle *m, struct sibidle_probe *req, struct err *err)
{
	req->size = sizeof(*req);
	if (ioctl(m->fd, SIBIDLE_IOC_PROBE, req) == 0)
		return 0;
	switch (errno) {
	case EOPNOTSUPP:
		return err_set(err, EXIT_SKIPPED, "%s", sibidle_refusal_text(req->refusal));
	case ENOTTY:
		return err_set(err, EXIT_SKIPPED, "the sibidle.ko that is loaded has no probes");
	case EINTR:
		return err_set(err, EXIT_FAILED, "interrupted");
	case EIO:
		return err_set(err, EXIT_FAILED,
				"CPU %u: an interrupt that was sent did not arrive within a second",
				req->from);
	case ENODEV:
		return err_set(err, EXIT_FAILED,
				"CPU %u or CPU %u went off line, or this process was moved",
				req->from, req->to);
	default:
		return err_set(err, EXIT_FAILED, "%s: %s", SIBIDLE_DEVICE, strerror(errno));
	}
}

/* What is known of a case while it is measured. */
struct measured {
	bool there;
	double *of[5]; /* a figure for each repeat */
	struct histogram h;
};

static const struct {
	const char *metric;
	double share;
} metrics[] = {
	{ "median", 0.5 },
	{ "p90", 0.9 },
	{ "p99", 0.99 },
	{ "p99.9", 0.999 },
	{ "max", 1 },
};
#define NB_METRICS (sizeof(metrics) / sizeof(metrics[0]))

static_assert(sizeof(((struct measured *)0)->of) / sizeof(double *) == NB_METRICS,
		"a place for each metric");

struct local {
	const struct probe_options *o;
	struct sibidle m;
	uint32_t probe;
	const struct local_case *cases;
	struct measured *measured;
	struct sibidle_sample *samples;
	double *took;
};

/*
 * All loops of a case, a slice at a time: a signal that comes just before a request is seen by none of the module's
 * looks, and waits for its end.
 */
static int
request_all(struct local *l, const struct local_case *c, struct err *err)
{
	for (unsigned long done = 0; done < l->o->loops;) {
		unsigned long left = l->o->loops - done;
		struct sibidle_probe req = { .probe = l->probe,
			.op = c->op,
			.number = c->number,
			.flags = c->flags,
			.from = (uint32_t)l->o->cpu,
			.to = (uint32_t)l->o->cpu,
			.loops = (uint32_t)(left < SLICE ? left : SLICE),
			.samples = (uintptr_t)&l->samples[done] };

		if (probe_interrupted())
			return err_set(err, EXIT_FAILED, "interrupted");
		if (probe_request(&l->m, &req, err) != 0)
			return -1;
		/* What is sent has to arrive, or it was not sent. Others may send such interrupts too. */
		if (req.interrupts < req.sent)
			return err_set(err, EXIT_FAILED,
					"%s: %" PRIu64 " interrupts sent, %" PRIu64 " counted",
					c->name, (uint64_t)req.sent, (uint64_t)req.interrupts);
		done += req.done;
	}
	return 0;
}

/* One turn of a case; repeat < 0: it does not count. */
static int
measure(struct local *l, size_t i, int repeat, struct err *err)
{
	struct measured *m = &l->measured[i];
	size_t n = l->o->loops;

	if (request_all(l, &l->cases[i], err) != 0)
		return -1;
	if (repeat < 0)
		return 0;
	for (size_t k = 0; k < n; k++) {
		uint64_t took = l->samples[k].end - l->samples[k].begin;

		l->took[k] = (double)took;
		histogram_add(&m->h, took);
	}
	sort_doubles(l->took, n);
	m->of[0][repeat] = stats_median(l->took, n);
	for (size_t k = 1; k < NB_METRICS; k++)
		m->of[k][repeat] = sorted_percentile(l->took, n, metrics[k].share);
	return 0;
}

/* All cases once. What the machine cannot do is left out from then on. */
static int
turn(struct local *l, struct probe_report *r, size_t nb, int repeat, bool backward, struct err *err)
{
	for (size_t k = 0; k < nb; k++) {
		size_t i = backward ? nb - 1 - k : k;

		if (!l->measured[i].there)
			continue;
		if (measure(l, i, repeat, err) == 0)
			continue;
		if (err->code != EXIT_SKIPPED || repeat >= 0)
			return -1;
		l->measured[i].there = false;
		report_note(r, "%s: not here: %s", l->cases[i].name, err->text);
	}
	return 0;
}

static void
add_rows(const struct local *l, struct probe_report *r, size_t i, bool details)
{
	const struct local_case *c = &l->cases[i];
	const struct measured *m = &l->measured[i];
	const double *overhead = l->measured[c->overhead].of[0];
	struct probe_row *row;

	for (size_t k = 0; k < (details ? NB_METRICS : 1); k++) {
		row = report_add(r, c->name, metrics[k].metric, "TSC cycles", m->of[k], overhead,
				l->o->repeats);
		if (k == 0 && c->where != NULL)
			report_publish(r, row, c->where, c->column, 1);
	}
	if (details)
		report_add_histogram(r, c->name, "TSC cycles", &m->h);
}

static int
run_local(struct local *l, struct probe_report *r, size_t nb, bool details, struct err *err)
{
	bool any = false;
	struct err why = { .code = EXIT_SKIPPED };

	/* One turn more, which tells what there is. */
	for (unsigned int i = 0; i <= l->o->warmup; i++)
		if (turn(l, r, nb, -1, false, err) != 0)
			return -1;
		else if (err->code == EXIT_SKIPPED)
			why = *err;
	for (size_t i = 0; i < nb; i++) {
		int whole = l->cases[i].overhead;

		if (whole >= 0 && !l->measured[whole].there)
			l->measured[i].there = false;
		any |= whole >= 0 && l->measured[i].there;
	}
	if (!any) {
		*err = why;
		return -1;
	}
	for (unsigned int i = 0; i < l->o->repeats; i++)
		if (turn(l, r, nb, (int)i, i % 2 == 1, err) != 0)
			return -1;
	for (size_t i = 0; i < nb; i++)
		if (l->cases[i].overhead >= 0 && l->measured[i].there)
			add_rows(l, r, i, details);
	return 0;
}

int
probe_local(struct probe_report *r, const struct probe_options *o, uint32_t probe,
		const struct local_case *cases, size_t nb, bool details, struct err *err)
{
	struct local l = { .o = o, .probe = probe, .cases = cases };
	int rc;

	if (sibidle_open(&l.m, true, err) != 0)
		return -1;
	l.measured = probe_alloc(nb, sizeof(*l.measured));
	l.samples = probe_alloc(o->loops, sizeof(*l.samples));
	l.took = probe_alloc(o->loops, sizeof(*l.took));
	for (size_t i = 0; i < nb; i++) {
		l.measured[i].there = true;
		for (size_t k = 0; k < NB_METRICS; k++)
			l.measured[i].of[k] = probe_alloc(o->repeats, sizeof(double));
	}
	err->code = EXIT_DONE;
	rc = probe_pin((unsigned int)o->cpu, err);
	if (rc == 0)
		rc = run_local(&l, r, nb, details, err);
	for (size_t i = 0; i < nb; i++)
		for (size_t k = 0; k < NB_METRICS; k++)
			free(l.measured[i].of[k]);
	free(l.measured);
	free(l.samples);
	free(l.took);
	sibidle_close(&l.m);
	return rc;
}
