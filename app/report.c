/* SPDX-License-Identifier: BSD-3-Clause */
/* sibfwd-report: reads result directories, on any machine and without EAL. */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "compare.h"
#include "csv.h"
#include "reproduce.h"
#include "result.h"
#include "summary.h"
#include "sysroot.h"
#include "trend.h"

#define IDENTITY_BOUND 1e-3 /* of tsc_hz; docs/results.md */
#define ROUNDING 1e-9 /* what figures computed twice may differ by, relatively */

enum format { FORMAT_TABLE, FORMAT_JSON, FORMAT_MARKDOWN };

struct request {
	char *const *operands; /* DIR, or BASE and NEW, or DIR... */
	size_t nb_operands;
	enum format format;
	double margin; /* percent */
	bool margin_given;
	const char *junit; /* file, or NULL */
};

/* ---- show and csv ---- */

static int
no_memory(struct err *err)
{
	return err_set(err, EXIT_FAILED, "%s", strerror(ENOMEM));
}

static int
show_json(const struct result_set *set, const struct comparisons *clean,
		const struct comparisons *with_tainted, double margin, struct err *err)
{
	json_t *windows = result_windows_json(set->windows, set->nb_windows);
	json_t *estimates = result_estimates_json(set->windows, set->nb_windows);
	json_t *all = json_pack("{s:i, s:b, s:o, s:o, s:f, s:o, s:o}", "schema", RESULT_SCHEMA,
			"cut_short", set->cut_short, "windows", windows, "estimates", estimates,
			"margin_percent", margin, "comparisons", comparisons_json(clean, margin),
			"comparisons_with_tainted", comparisons_json(with_tainted, margin));
	json_t *warnings = json_object_get(set->result, "warnings");

	if (all == NULL)
		return no_memory(err);
	json_object_set_new(all, "warnings",
			json_is_array(warnings) ? json_incref(warnings) : json_array());
	/* A write error stays in stdout and is told at the end. */
	if (json_dumpf(all, stdout, JSON_INDENT(2)) == 0)
		putchar('\n');
	json_decref(all);
	return 0;
}

/* What the run itself warned of. */
static void
print_warnings(const struct result_set *set)
{
	const json_t *text;
	size_t i;

	json_array_foreach (json_object_get(set->result, "warnings"), i, text) {
		char *line;

		if (!json_is_string(text))
			continue;
		line = sys_format("warning: %s", json_string_value(text));
		printf("%s%s\n", i == 0 ? "\n" : "", csv_visible(line));
		free(line);
	}
}

static int
show_table(const struct result_set *set, const struct comparisons *clean,
		const struct comparisons *with_tainted, double margin, struct err *err)
{
	const json_t *forced = json_object_get(set->result, "forced");

	if (compare_print(stdout, set->windows, set->nb_windows, clean, with_tainted, margin) !=
					0 &&
			!ferror(stdout))
		return no_memory(err);
	reproduce_print(stdout, set->windows, set->nb_windows, clean, margin,
			json_string_value(forced));
	print_warnings(set);
	return 0;
}

/* A margin that somebody chose has to be above what the null test shows. */
static int
check_margin(double margin, double floor, struct err *err)
{
	if (margin < floor)
		return err_set(err, EXIT_USAGE,
				"--margin %g: below %.2f %%, the noise floor that the null test shows",
				margin, floor);
	return 0;
}

static int
show(const struct result_set *set, const struct request *request, struct err *err)
{
	struct comparisons clean = { 0 }, with_tainted = { 0 };
	const json_t *own = json_object_get(set->result, "margin_percent");
	double margin = json_number_value(own);
	int rc = compare_arms(&clean, set->windows, set->nb_windows, false);

	if (request->margin_given || !json_is_number(own) || !(margin >= 0 && margin <= 100))
		margin = request->margin;
	if (rc == 0)
		rc = compare_arms(&with_tainted, set->windows, set->nb_windows, true);
	if (rc != 0)
		rc = no_memory(err);
	else if (request->margin_given)
		rc = check_margin(margin, comparisons_floor(&clean), err);
	if (rc == 0 && request->format == FORMAT_JSON)
		rc = show_json(set, &clean, &with_tainted, margin, err);
	else if (rc == 0)
		rc = show_table(set, &clean, &with_tainted, margin, err);
	comparisons_free(&clean);
	comparisons_free(&with_tainted);
	return rc;
}

static int
csv(const struct result_set *set, const struct request *request, struct err *err)
{
	(void)request;
	(void)err;
	if (result_print_csv_header(stdout) != 0)
		return 0;
	for (size_t i = 0; i < set->nb_windows; i++)
		if (result_print_csv(stdout, &set->windows[i]) != 0)
			break;
	return 0;
}

/* ---- check ---- */

static size_t nb_violations;

/* One line on stdout for each thing that is wrong, with w or without a window. */
static void __attribute__((format(printf, 2, 3)))
violation(const struct result_window *w, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (w != NULL)
		printf("windows.csv: visit %s window %s lcore %s: ", result_integer(w->visit).text,
				result_integer(w->window).text, result_integer(w->lcore).text);
	printf("%s\n", csv_visible(text));
	nb_violations++;
}

/* Two lists of column names, each with the name of where it stands; from number enough on they may end. */
static void
check_names(const char *where, const json_t *names, const char *other, const json_t *wanted,
		size_t enough)
{
	size_t i;

	for (i = 0; i < json_array_size(names) && i < json_array_size(wanted); i++)
		if (!json_equal(json_array_get(names, i), json_array_get(wanted, i)))
			break;
	if (i == json_array_size(names) && (i >= enough || i == json_array_size(wanted)))
		return;
	violation(NULL, "%s: column %zu is %s, %s has %s", where, i + 1,
			i < json_array_size(names) ? json_string_value(json_array_get(names, i))
						   : "missing",
			other,
			i < json_array_size(wanted) ? json_string_value(json_array_get(wanted, i))
						    : "none");
}

/* The names in columns.json of one file's columns; a new reference. */
static json_t *
described_columns(const json_t *columns, const char *file)
{
	const json_t *list = json_object_get(columns, file);
	json_t *names = json_array();
	const json_t *column;
	size_t i;

	json_array_foreach (list, i, column) {
		const char *name = json_string_value(json_object_get(column, "name"));

		json_array_append_new(names, json_string(name != NULL ? name : "?"));
	}
	return names;
}

/*
 * The columns of a file against columns.json, and that against what this program writes: an older one may
 * lack what was added behind number enough.
 */
static void
check_columns(const struct result_set *set, const char *file, const json_t *header, json_t *own,
		size_t enough)
{
	json_t *described;

	if (set->columns == NULL) {
		if (header != NULL)
			check_names(file, header, "this program", own, enough);
		json_decref(own);
		return;
	}
	described = described_columns(set->columns, file);
	if (header != NULL)
		check_names(file, header, "columns.json", described, SIZE_MAX);
	check_names("columns.json", described, "this program", own, enough);
	json_decref(described);
	json_decref(own);
}

static bool
agree(double a, double b, double bound)
{
	return fabs(a - b) <= bound * fmax(fabs(a), fabs(b));
}

/* pps and TSC cycles a packet against the counts, and against each other. */
static void
check_rates(const struct result_window *w)
{
	double packets = (double)result_packets(w);
	double pps = packets / (double)w->duration_ns * 1e9;
	double cycles = (double)w->tsc_delta / packets;
	double hz = (double)w->tsc_hz;
	double product = w->pps * w->tsc_cycles_per_packet;

	if (w->duration_ns == 0) {
		violation(w, "duration_ns is 0");
		return;
	}
	if (!agree(w->pps, pps, ROUNDING))
		violation(w, "pps is %.10g, packets / duration_ns is %.10g", w->pps, pps);
	if (packets == 0) {
		if (!isnan(w->tsc_cycles_per_packet))
			violation(w, "tsc_cycles_per_packet without packets");
		return;
	}
	if (!agree(w->tsc_cycles_per_packet, cycles, ROUNDING))
		violation(w, "tsc_cycles_per_packet is %.10g, tsc_delta / packets is %.10g",
				w->tsc_cycles_per_packet, cycles);
	if (!(fabs(product - hz) <= IDENTITY_BOUND * hz))
		violation(w, "pps x tsc_cycles_per_packet is %.10g, %.3g %% off tsc_hz %.10g",
				product, 100 * fabs(product / hz - 1), hz);
}

static void
check_taint(const struct result_window *w)
{
	char words[RESULT_TEXT_MAX], *rest = words, *word;
	uint64_t causes = 0;

	memcpy(words, w->taint, sizeof(words));
	while ((word = strsep(&rest, ";")) != NULL)
		if (word[0] != '\0' && strcmp(word, "controller") != 0)
			causes++;
	if ((w->tainted == 1) != (causes > 0))
		violation(w, "tainted is %ju, taint is \"%s\"", (uintmax_t)w->tainted, w->taint);
}

static bool
is_utc(const char *text)
{
	struct tm tm;
	const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);

	if (rest != NULL && *rest == '.')
		rest += 1 + strspn(rest + 1, "0123456789");
	return rest != NULL && strcmp(rest, "Z") == 0;
}

static bool
is_relation(const char *word)
{
	static const char *const words[] = { "smt", "l2", "l3", "package", "numa", "none" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(word, words[i]) == 0)
			return true;
	return false;
}

static void
check_texts(const struct result_window *w)
{
	if (w->run_id[0] == '\0' || w->scenario[0] == '\0' || w->mode[0] == '\0')
		violation(w, "run_id, scenario or mode is empty");
	if (!is_utc(w->utc_start))
		violation(w, "utc_start is \"%s\", not ISO 8601 with Z", w->utc_start);
	if (!is_relation(w->relation))
		violation(w, "relation is \"%s\"", w->relation);
}

static void
check_window(const struct result_window *w)
{
	const struct {
		const char *name;
		uint64_t value;
	} needed[] = { { "visit", w->visit }, { "window", w->window }, { "lcore", w->lcore },
		{ "warmup", w->warmup }, { "tainted", w->tainted }, { "emulated", w->emulated },
		{ "duration_ns", w->duration_ns }, { "tsc_delta", w->tsc_delta },
		{ "tsc_hz", w->tsc_hz }, { "rx_packets", w->rx_packets },
		{ "tx_packets", w->tx_packets }, { "polls", w->polls },
		{ "empty_polls", w->empty_polls } };
	bool complete = true;

	if (w->schema != RESULT_SCHEMA)
		violation(w, "schema is %ju, not %d", (uintmax_t)w->schema, RESULT_SCHEMA);
	check_texts(w);
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		if (needed[i].value != RESULT_UNKNOWN)
			continue;
		violation(w, "%s is empty", needed[i].name);
		complete = false;
	}
	if (!complete)
		return;
	check_rates(w);
	check_taint(w);
	if (w->empty_polls > w->polls)
		violation(w, "%ju empty polls of %ju", (uintmax_t)w->empty_polls,
				(uintmax_t)w->polls);
	if ((w->warmup == 1) != (w->window == 0))
		violation(w, "warmup is %ju", (uintmax_t)w->warmup);
}

/* A row of windows.csv and what bursts.csv adds up to for it. */
struct tally {
	const struct result_window *w;
	bool recorded;
	uint64_t packets;
	uint64_t polls;
};

static int
compare_keys(const struct result_window *a, const struct result_window *b)
{
	const uint64_t x[] = { a->visit, a->window, a->lcore };
	const uint64_t y[] = { b->visit, b->window, b->lcore };
	int order = strcmp(a->run_id, b->run_id);

	for (size_t i = 0; i < sizeof(x) / sizeof(x[0]) && order == 0; i++)
		order = (x[i] > y[i]) - (x[i] < y[i]);
	return order;
}

static int
compare_tallies(const void *a, const void *b)
{
	return compare_keys(((const struct tally *)a)->w, ((const struct tally *)b)->w);
}

/* No row twice, and the windows of a visit numbered without a gap. */
static void
check_numbers(const struct tally *sorted, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct result_window *w = sorted[i].w;
		const struct result_window *last = i > 0 ? sorted[i - 1].w : NULL;

		if (last == NULL || strcmp(last->run_id, w->run_id) != 0 ||
				last->visit != w->visit) {
			if (w->window > 1)
				violation(w, "the first window of its visit");
		} else if (compare_keys(last, w) == 0) {
			violation(w, "stands there twice");
		} else if (w->window > last->window + 1) {
			violation(w, "follows window %ju", (uintmax_t)last->window);
		}
	}
}

/* Add the rows of bursts.csv to their windows. */
static void
tally_bursts(const struct result_set *set, struct tally *sorted)
{
	struct result_window key, missing = { 0 };
	const struct tally wanted = { .w = &key };

	for (size_t i = 0; i < set->nb_bursts; i++) {
		const struct result_burst *b = &set->bursts[i];
		struct tally *tally;

		memcpy(key.run_id, b->run_id, sizeof(key.run_id));
		key.visit = b->visit;
		key.window = b->window;
		key.lcore = b->lcore;
		tally = bsearch(&wanted, sorted, set->nb_windows, sizeof(*sorted), compare_tallies);
		if (tally != NULL) {
			tally->recorded = true;
			tally->packets += b->burst_size * b->count;
			tally->polls += b->count;
		} else if (compare_keys(&key, &missing) != 0) {
			violation(NULL, "bursts.csv: visit %s window %s lcore %s: no such window",
					result_integer(b->visit).text,
					result_integer(b->window).text,
					result_integer(b->lcore).text);
			missing = key; /* said once, not for each of its sizes */
		}
	}
}

static void
check_bursts(const struct result_set *set, struct tally *sorted)
{
	tally_bursts(set, sorted);
	for (size_t i = 0; i < set->nb_windows; i++) {
		const struct tally *t = &sorted[i];

		if (!t->recorded)
			continue;
		if (t->packets != result_packets(t->w))
			violation(t->w, "%ju packets, %ju in bursts.csv",
					(uintmax_t)result_packets(t->w), (uintmax_t)t->packets);
		if (t->polls != t->w->polls)
			violation(t->w, "%ju polls, %ju in bursts.csv", (uintmax_t)t->w->polls,
					(uintmax_t)t->polls);
	}
}

/* What result.json says against what windows.csv gives; more in result.json is no matter. */
static void
check_json(const char *path, const json_t *said, const json_t *found)
{
	const json_t *value;
	const char *name;
	char below[256];
	size_t i;

	if (json_is_object(found) && json_is_object(said)) {
		json_object_foreach ((json_t *)(uintptr_t)found, name, value) {
			snprintf(below, sizeof(below), "%s.%s", path, name);
			check_json(below, json_object_get(said, name), value);
		}
	} else if (json_is_array(found) && json_array_size(said) == json_array_size(found)) {
		json_array_foreach (found, i, value) {
			snprintf(below, sizeof(below), "%s[%zu]", path, i);
			check_json(below, json_array_get(said, i), value);
		}
	} else if (json_is_number(found) && json_is_number(said)) {
		if (!agree(json_number_value(said), json_number_value(found), ROUNDING))
			violation(NULL, "result.json: %s is %.10g, windows.csv gives %.10g", path,
					json_number_value(said), json_number_value(found));
	} else if (!json_equal(said, found)) {
		violation(NULL, "result.json: %s does not agree with windows.csv", path);
	}
}

/* Windows of the run, over all lcores: those measured, and those of the warm-up. */
struct window_counts {
	size_t measured, warmup;
};

static int
count_windows(struct window_counts *counts, const struct result_set *set, struct err *err)
{
	size_t nb;
	struct sum *sums = summary_windows(set->windows, set->nb_windows, &nb);

	if (sums == NULL)
		return no_memory(err);
	*counts = (struct window_counts){ 0, 0 };
	for (size_t i = 0; i < nb; i++)
		(*(sums[i].warmup ? &counts->warmup : &counts->measured))++;
	free(sums);
	return 0;
}

static int
check_result(const struct result_set *set, const struct window_counts *counts, struct err *err)
{
	const json_t *schema = json_object_get(set->result, "schema");
	const json_t *done = json_object_get(set->result, "windows_done");
	json_t *estimates;

	if (set->result == NULL)
		return 0;
	if (json_integer_value(schema) != RESULT_SCHEMA)
		violation(NULL, "result.json: schema is not %d", RESULT_SCHEMA);
	if (done != NULL && json_integer_value(done) != (json_int_t)counts->measured)
		violation(NULL, "result.json: windows_done is %jd, windows.csv has %zu",
				(intmax_t)json_integer_value(done), counts->measured);
	estimates = result_estimates_json(set->windows, set->nb_windows);
	if (estimates == NULL)
		return no_memory(err);
	check_json("estimates", json_object_get(set->result, "estimates"), estimates);
	json_decref(estimates);
	return 0;
}

static void
print_ok(const struct result_set *set, const struct window_counts *counts)
{
	printf("ok: %zu windows, %zu warm-up, %zu rows", counts->measured, counts->warmup,
			set->nb_windows);
	printf("%s%s%s\n", set->columns != NULL ? "; columns.json agrees" : "",
			set->bursts_header != NULL ? "; bursts.csv agrees" : "",
			set->result != NULL ? "; result.json agrees" : "");
}

static int
check(const struct result_set *set, const struct request *request, struct err *err)
{
	struct tally *tallies = calloc(set->nb_windows + 1, sizeof(*tallies));
	struct window_counts counts;
	int rc;

	(void)request;
	if (tallies == NULL)
		return no_memory(err);
	for (size_t i = 0; i < set->nb_windows; i++)
		tallies[i].w = &set->windows[i];
	qsort(tallies, set->nb_windows, sizeof(*tallies), compare_tallies);

	check_columns(set, "windows.csv", set->header, result_window_columns(),
			RESULT_WINDOW_COLUMNS);
	check_columns(set, "bursts.csv", set->bursts_header, result_burst_columns(), SIZE_MAX);
	for (size_t i = 0; i < set->nb_windows; i++)
		check_window(&set->windows[i]);
	check_numbers(tallies, set->nb_windows);
	check_bursts(set, tallies);
	rc = count_windows(&counts, set, err);
	if (rc == 0)
		rc = check_result(set, &counts, err);
	if (rc == 0 && nb_violations == 0)
		print_ok(set, &counts);
	free(tallies);
	return rc;
}

/* ---- compare ---- */

static int
read_set(struct result_set *set, const char *dir, struct err *err)
{
	int rc = result_read(set, dir, err);
	size_t incomplete = rc == 0 ? summary_incomplete(set->windows, set->nb_windows) : 0;

	if (rc == 0 && set->cut_short)
		fprintf(stderr, "sibfwd-report: %s: windows.csv ends within a row, left out\n",
				csv_visible(strdupa(dir)));
	if (incomplete > 0)
		fprintf(stderr, "sibfwd-report: %s: %zu windows lack a row of an lcore, left out\n",
				csv_visible(strdupa(dir)), incomplete);
	return rc;
}

/* A run that something is to be said of: it has windows. */
static int
read_run(struct result_set *set, const char *dir, struct err *err)
{
	int rc = read_set(set, dir, err);

	if (rc == 0 && set->nb_windows == 0)
		rc = err_set(err, EXIT_FAILED, "%s: no windows", dir);
	return rc;
}

/* Two runs of one side or series are not the same one. */
static int
check_new(const struct result_set *runs, size_t i, struct err *err)
{
	for (size_t k = 0; k < i; k++)
		if (strcmp(runs[k].windows[0].run_id, runs[i].windows[0].run_id) == 0)
			return err_set(err, EXIT_FAILED, "%s and %s: the same run, %.64s",
					runs[k].dir, runs[i].dir, runs[i].windows[0].run_id);
	return 0;
}

/* A side as given: a directory, or several joined by commas. */
static int
read_side(struct side *side, const char *operand, struct err *err)
{
	char *names = strdup(operand), *rest = names, *name;
	struct result_set *runs = names == NULL ? NULL : calloc(strlen(names) + 1, sizeof(*runs));
	bool whole = access(operand, F_OK) == 0;
	int rc = 0;

	*side = (struct side){ 0, runs };
	if (runs == NULL)
		rc = no_memory(err);
	while (rc == 0 && (name = whole ? rest : strsep(&rest, ",")) != NULL) {
		rc = read_run(&runs[side->nb++], name, err);
		if (whole)
			break;
	}
	free(names);
	for (size_t i = 0; i < side->nb && rc == 0; i++)
		rc = check_new(runs, i, err);
	return rc;
}

static void
free_side(struct side *side)
{
	for (size_t i = 0; i < side->nb; i++)
		result_free((struct result_set *)(uintptr_t)&side->runs[i]);
	free((struct result_set *)(uintptr_t)side->runs);
}

/* Leaves of environment.json that differ in every two runs and say nothing. */
static bool
is_noise(const char *name)
{
	return strcmp(name, "load_average") == 0 || strcmp(name, "mac") == 0;
}

static void find_differences(json_t *list, const char *path, const json_t *a, const json_t *b);

/* The members of a, which b may lack; and those that only a has. */
static void
differ_in_members(json_t *list, const char *path, const json_t *a, const json_t *b, bool only_a)
{
	const json_t *value;
	const char *name;

	json_object_foreach ((json_t *)(uintptr_t)a, name, value) {
		const json_t *other = json_object_get(b, name);
		char *below = sys_format("%s%s%s", path, *path != '\0' ? "." : "", name);

		if (!is_noise(name) && !only_a)
			find_differences(list, below, value, other);
		else if (!is_noise(name) && other == NULL)
			find_differences(list, below, other, value);
		free(below);
	}
}

/* Collect what differs, as {path, base, new}. */
static void
find_differences(json_t *list, const char *path, const json_t *a, const json_t *b)
{
	if (json_is_object(a) && json_is_object(b)) {
		differ_in_members(list, path, a, b, false);
		differ_in_members(list, path, b, a, true);
	} else if (json_is_array(a) && json_is_array(b) &&
			json_array_size(a) == json_array_size(b)) {
		for (size_t i = 0; i < json_array_size(a); i++) {
			char *below = sys_format("%s[%zu]", path, i);

			find_differences(list, below, json_array_get(a, i), json_array_get(b, i));
			free(below);
		}
	} else if (a == NULL || b == NULL || !json_equal(a, b)) {
		json_array_append_new(list,
				json_pack("{s:s, s:O?, s:O?}", "path", path, "base", a, "new", b));
	}
}

/* What a run was made with, as windows.csv has it. */
enum { SETTING_MODE, SETTING_SOURCE, SETTING_RELATION, SETTING_BURST, SETTING_LEN, NB_SETTINGS };

static const char *const setting_names[NB_SETTINGS] = { "mode", "source", "relation", "burst",
	"pkt_len" };

/* The values of all windows of a side, each once. */
static void
read_settings(const struct side *side, char texts[NB_SETTINGS][RESULT_TEXT_MAX])
{
	for (size_t r = 0; r < side->nb; r++)
		for (size_t i = 0; i < side->runs[r].nb_windows; i++) {
			const struct result_window *w = &side->runs[r].windows[i];

			summary_add_words(texts[SETTING_MODE], w->mode);
			summary_add_words(texts[SETTING_SOURCE], w->source);
			summary_add_words(texts[SETTING_RELATION], w->relation);
			summary_add_words(texts[SETTING_BURST], result_integer(w->burst).text);
			summary_add_words(texts[SETTING_LEN], result_integer(w->pkt_len).text);
		}
}

static void
differ_in_settings(json_t *list, const struct side *base, const struct side *new)
{
	char a[NB_SETTINGS][RESULT_TEXT_MAX] = { 0 }, b[NB_SETTINGS][RESULT_TEXT_MAX] = { 0 };

	read_settings(base, a);
	read_settings(new, b);
	for (size_t i = 0; i < NB_SETTINGS; i++)
		if (strcmp(a[i], b[i]) != 0)
			json_array_append_new(list,
					json_pack("{s:s, s:o, s:o}", "path", setting_names[i],
							"base", result_text_json(a[i]), "new",
							result_text_json(b[i])));
}

/* What differs between the settings of two sides, and between the environments of their first runs. */
static json_t *
differences(const struct side *base, const struct side *new)
{
	const json_t *a = json_object_get(base->runs[0].environment, "before");
	const json_t *b = json_object_get(new->runs[0].environment, "before");
	json_t *list = json_array();

	differ_in_settings(list, base, new);
	if (a != NULL && b != NULL)
		find_differences(list, "", a, b);
	return list;
}

/* A value on a line, to be freed; "none" where there is none. */
static char *
value_text(const json_t *value)
{
	char *text = value == NULL || json_is_null(value)
			? NULL
			: json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);

	return text != NULL ? text : sys_format("none");
}

static void
print_differences(const json_t *list, const char *heading, const char *mark)
{
	const json_t *d;
	size_t i;

	json_array_foreach (list, i, d) {
		char *a = value_text(json_object_get(d, "base"));
		char *b = value_text(json_object_get(d, "new"));
		char *line = sys_format("%s: %s -> %s",
				json_string_value(json_object_get(d, "path")), a, b);

		printf("%s%s%s\n", i == 0 ? heading : "", mark, csv_visible(line));
		free(a);
		free(b);
		free(line);
	}
}

/* What a person has to know of a comparison between runs beside its figures. */
static const char *
caveat(const struct side *base, const struct side *new)
{
	if (base->nb > 1 || new->nb > 1)
		return "The unit is the run.";
	return "One run a side: what differs from boot to boot, or between builds, is not in the interval.";
}

/* A figure, or a dash where it is unknown. */
struct figure {
	char text[32];
};

static struct figure
figure(double value, const char *format)
{
	struct figure f = { "-" };

	if (isfinite(value))
		snprintf(f.text, sizeof(f.text), format, value);
	return f;
}

static void
print_markdown(const struct comparisons *all, double margin)
{
	printf("| scenario | n | base pps | new pps | change %% | 95 %% interval | verdict |\n"
	       "| --- | --- | --- | --- | --- | --- | --- |\n");
	for (size_t i = 0; i < all->nb; i++) {
		const struct comparison *c = &all->at[i];
		struct effect e = effect_of(&c->d);
		char name[COMPARE_ARM_MAX];

		memcpy(name, c->other, sizeof(name));
		printf("| %s | %zu, %zu | %s | %s | %s | %s | %s |\n", csv_visible(name), c->n_base,
				c->n_other, figure(c->pps_base, "%.6g").text,
				figure(c->pps_other, "%.6g").text, figure(e.change, "%+.2f").text,
				effect_interval(&e).text, comparison_word(c, margin));
	}
	putchar('\n');
	comparisons_print_margin(stdout, all, margin);
}

static void
print_xml(FILE *out, const char *text)
{
	static const char special[] = "&<>\"'";
	static const char *const names[] = { "&amp;", "&lt;", "&gt;", "&quot;", "&apos;" };

	for (; *text != '\0'; text++) {
		const char *at = strchr(special, *text);

		if (at != NULL)
			fputs(names[at - special], out);
		else if (isprint((unsigned char)*text))
			fputc(*text, out);
		else
			fputc('?', out);
	}
}

/* A test case a scenario: a regression is a failure, inconclusive an error, what BASE lacks is skipped. */
static int
write_junit(const char *path, const struct comparisons *all, double margin, struct err *err)
{
	static const char *const elements[] = { [VERDICT_SAME] = "system-out",
		[VERDICT_IMPROVEMENT] = "system-out",
		[VERDICT_REGRESSION] = "failure",
		[VERDICT_INCONCLUSIVE] = "error" };
	unsigned int counts[VERDICT_INCONCLUSIVE + 1] = { 0 }, skipped = 0;
	FILE *out = fopen(path, "w");

	if (out == NULL)
		return err_set(err, EXIT_FAILED, "--junit %s: %s", path, strerror(errno));
	for (size_t i = 0; i < all->nb; i++) {
		if (comparison_judged(&all->at[i]))
			counts[comparison_verdict(&all->at[i], margin)]++;
		else
			skipped++;
	}
	fprintf(out,
			"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
			"<testsuite name=\"sibfwd-report compare\" tests=\"%zu\" failures=\"%u\" errors=\"%u\" skipped=\"%u\">\n",
			all->nb, counts[VERDICT_REGRESSION], counts[VERDICT_INCONCLUSIVE], skipped);
	for (size_t i = 0; i < all->nb; i++) {
		const struct comparison *c = &all->at[i];
		struct effect e = comparison_effect(c);
		enum verdict v = comparison_verdict(c, margin);
		const char *word = comparison_word(c, margin);
		const char *element = comparison_judged(c) ? elements[v] : "skipped";
		bool done = comparison_judged(c) && v <= VERDICT_IMPROVEMENT;

		fprintf(out, "  <testcase classname=\"sibfwd\" name=\"");
		print_xml(out, c->other);
		fprintf(out, "\"><%s%s%s%s>%s: %s %% %s at %.4g %%, margin %g %%</%s></testcase>\n",
				element, done ? "" : " message=\"", done ? "" : word,
				done ? "" : "\"", word, figure(e.change, "%+.2f").text,
				effect_interval(&e).text, 100 * c->verdict_level, margin, element);
	}
	fprintf(out, "</testsuite>\n");
	if (ferror(out) != 0 || fclose(out) != 0)
		return err_set(err, EXIT_FAILED, "--junit %s: %s", path, strerror(errno));
	return 0;
}

static int
tell(const struct comparisons *all, const struct side *base, const struct side *new,
		const struct request *request, struct err *err)
{
	json_t *differ = differences(base, new);
	json_t *json;

	if (request->format == FORMAT_JSON) {
		json = json_pack("{s:i, s:f, s:o, s:s, s:s, s:O}", "schema", RESULT_SCHEMA,
				"margin_percent", request->margin, "comparisons",
				comparisons_json(all, request->margin), "verdict",
				verdict_word(comparisons_verdict(all, request->margin)), "caveat",
				caveat(base, new), "environment_differs", differ);
		if (json_dumpf(json, stdout, JSON_INDENT(2)) == 0)
			putchar('\n');
		json_decref(json);
	} else if (request->format == FORMAT_MARKDOWN) {
		print_markdown(all, request->margin);
		printf("%s\n", caveat(base, new));
		print_differences(differ, "\nWhat differs beside that:\n\n", "* ");
	} else {
		comparisons_print(stdout, all, request->margin);
		printf("%s\n", caveat(base, new));
		print_differences(differ, "\nwhat differs beside that\n", "  ");
	}
	json_decref(differ);
	return request->junit == NULL ? 0 : write_junit(request->junit, all, request->margin, err);
}

/* The noise floor that null tests of either side have shown, in percent; NAN where there are none. */
static int
find_floor(double *floor, const struct side *side, struct err *err)
{
	for (size_t i = 0; i < side->nb; i++) {
		struct comparisons arms;

		if (compare_arms(&arms, side->runs[i].windows, side->runs[i].nb_windows, false) !=
				0) {
			comparisons_free(&arms);
			return no_memory(err);
		}
		*floor = fmax(*floor, comparisons_floor(&arms));
		comparisons_free(&arms);
	}
	return 0;
}

static bool
in_common(const struct comparisons *all)
{
	for (size_t i = 0; i < all->nb; i++)
		if (all->at[i].lacks == SIDE_NONE)
			return true;
	return false;
}

static int
compare(const struct result_set *set, const struct request *request, struct err *err)
{
	struct side base = { 0 }, new = { 0 };
	struct comparisons all = { 0 };
	double floor = NAN;
	int rc = read_side(&base, request->operands[0], err);

	(void)set;
	if (rc == 0)
		rc = read_side(&new, request->operands[1], err);
	if (rc == 0)
		rc = find_floor(&floor, &base, err) != 0 || find_floor(&floor, &new, err) != 0 ? -1
											       : 0;
	if (rc == 0)
		rc = check_margin(request->margin, floor, err);
	if (rc == 0 && compare_sides(&all, &base, &new) != 0)
		rc = no_memory(err);
	if (rc == 0 && !in_common(&all))
		rc = err_set(err, EXIT_FAILED, "%s and %s have no scenario in common",
				request->operands[0], request->operands[1]);
	if (rc == 0)
		rc = tell(&all, &base, &new, request, err);
	if (rc == 0)
		rc = (int)verdict_exit(comparisons_verdict(&all, request->margin));
	comparisons_free(&all);
	free_side(&base);
	free_side(&new);
	return rc;
}

/* ---- trend ---- */

static int
compare_starts(const void *a, const void *b)
{
	const struct result_set *x = a, *y = b;
	double s = compare_seconds(x->windows[0].utc_start);
	double t = compare_seconds(y->windows[0].utc_start);

	if (s != t)
		return s < t ? -1 : 1;
	return strcmp(x->windows[0].run_id, y->windows[0].run_id);
}

/* What makes runs a series: each has a time, and none is there twice. */
static int
check_series(const struct result_set *runs, const struct request *request, struct err *err)
{
	for (size_t i = 0; i < request->nb_operands; i++) {
		const struct result_window *w = &runs[i].windows[0];

		if (!is_utc(w->utc_start))
			return err_set(err, EXIT_FAILED,
					"%s: utc_start is \"%.40s\", not ISO 8601 with Z",
					request->operands[i], w->utc_start);
		if (check_new(runs, i, err) != 0)
			return -1;
	}
	return 0;
}

static int
tell_trend(const struct result_set *runs, const struct request *request, struct err *err)
{
	struct trend trend;
	json_t *json;
	int rc = trend_make(&trend, runs, request->nb_operands);

	if (rc != 0) {
		rc = no_memory(err);
	} else if (request->format == FORMAT_JSON) {
		json = json_pack("{s:i, s:f, s:o}", "schema", RESULT_SCHEMA, "margin_percent",
				request->margin, "arms", trend_json(&trend, request->margin));
		if (json_dumpf(json, stdout, JSON_INDENT(2)) == 0)
			putchar('\n');
		json_decref(json);
	} else {
		trend_print(stdout, &trend, request->margin);
	}
	trend_free(&trend);
	return rc;
}

static int
trend(const struct result_set *set, const struct request *request, struct err *err)
{
	struct result_set *runs = calloc(request->nb_operands, sizeof(*runs));
	int rc = runs == NULL ? no_memory(err) : 0;
	size_t nb = 0;

	(void)set;
	while (rc == 0 && nb < request->nb_operands) {
		rc = read_run(&runs[nb], request->operands[nb], err);
		nb++;
	}
	if (rc == 0)
		rc = check_series(runs, request, err);
	if (rc == 0) {
		qsort(runs, nb, sizeof(*runs), compare_starts);
		rc = tell_trend(runs, request, err);
	}
	while (nb > 0)
		result_free(&runs[--nb]);
	free(runs);
	return rc;
}

/* ---- the command line ---- */

enum { OPTION_FORMAT = 256, OPTION_MARGIN, OPTION_JUNIT, OPTION_HELP, OPTION_VERSION };

#define TAKES(option) (1u << ((option)-OPTION_FORMAT))

static const struct command {
	const char *name;
	const char *operands[2]; /* what those are called that there must be */
	bool many; /* takes more behind them */
	unsigned int takes;
	bool markdown;
	/* Of the directory where there is one operand. Returns an exit code, or -1 with err set. */
	int (*run)(const struct result_set *set, const struct request *request, struct err *err);
	const char *help;
} commands[] = {
	{ "show", { "DIR" }, false, TAKES(OPTION_FORMAT) | TAKES(OPTION_MARGIN), false, show,
			"show DIR           windows, estimates and comparisons of scenarios" },
	{ "compare", { "BASE", "NEW" }, false,
			TAKES(OPTION_FORMAT) | TAKES(OPTION_MARGIN) | TAKES(OPTION_JUNIT), true,
			compare,
			"compare BASE NEW   NEW over BASE, scenario by scenario; the exit code is the verdict" },
	{ "trend", { "DIR", "second DIR" }, true, TAKES(OPTION_FORMAT) | TAKES(OPTION_MARGIN),
			false, trend,
			"trend DIR DIR...   runs in time, and where their rate changed; exit code 0 whatever it is" },
	{ "csv", { "DIR" }, false, 0, false, csv, "csv DIR            windows.csv, put in order" },
	{ "check", { "DIR" }, false, 0, false, check,
			"check DIR          columns, counts and identities" },
};

#define NB_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static const struct option long_options[] = {
	{ "format", required_argument, NULL, OPTION_FORMAT },
	{ "margin", required_argument, NULL, OPTION_MARGIN },
	{ "junit", required_argument, NULL, OPTION_JUNIT },
	{ "help", no_argument, NULL, OPTION_HELP },
	{ "version", no_argument, NULL, OPTION_VERSION },
	{ NULL, 0, NULL, 0 },
};

/* The number of operands that a command must have. */
static unsigned int
least_operands(const struct command *command)
{
	return command->operands[1] == NULL ? 1 : 2;
}

static void
print_help(void)
{
	printf("Usage: sibfwd-report COMMAND DIR... [OPTION]\n\n"
	       "DIR is a result directory of dpdk-sibfwd, or a windows.csv; BASE and NEW are one each, or\n"
	       "several runs joined by commas.\n\nCommands:\n");
	for (size_t i = 0; i < NB_COMMANDS; i++)
		printf("  %s\n", commands[i].help);
	printf("\nOptions:\n  --format table|json|markdown   of show, compare, trend; markdown of compare only; default table\n"
	       "  --margin PCT                   a change within it is none; default %g\n"
	       "  --junit FILE                   of compare: verdicts as JUnit's XML, too\n"
	       "  --help                         this text\n"
	       "  --version                      version\n\n"
	       "Exit codes: 0 done, 1 could not do it or the check found faults, 2 usage; of compare also 3\n"
	       "regression and 5 inconclusive.\n",
			COMPARE_MARGIN);
}

static const struct command *
find_command(const char *name)
{
	for (size_t i = 0; i < NB_COMMANDS; i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

static int
option_error(int result, char *const argv[], struct err *err)
{
	if (result == ':')
		return err_set(err, EXIT_USAGE, "%s: value missing", argv[optind - 1]);
	if (optopt != 0 && optopt < OPTION_FORMAT)
		return err_set(err, EXIT_USAGE, "-%c: unknown option", optopt);
	if (optopt != 0)
		return err_set(err, EXIT_USAGE, "%s: takes no value", argv[optind - 1]);
	return err_set(err, EXIT_USAGE, "%s: unknown option", argv[optind - 1]);
}

static int
parse_format(struct request *request, const struct command *command, const char *format,
		struct err *err)
{
	static const char *const words[] = {
		[FORMAT_TABLE] = "table", [FORMAT_JSON] = "json", [FORMAT_MARKDOWN] = "markdown"
	};

	for (unsigned int i = 0; i <= (command->markdown ? FORMAT_MARKDOWN : FORMAT_JSON); i++)
		if (strcmp(format, words[i]) == 0) {
			request->format = (enum format)i;
			return 0;
		}
	return err_set(err, EXIT_USAGE, "--format: %s is not table%s json%s", format,
			command->markdown ? "," : " or", command->markdown ? " or markdown" : "");
}

static int
parse_margin(struct request *request, const char *text, struct err *err)
{
	char *end;

	request->margin = strtod(text, &end);
	if (end == text || *end != '\0' || !(request->margin >= 0 && request->margin <= 100))
		return err_set(err, EXIT_USAGE, "--margin: %s is not a percentage from 0 to 100",
				text);
	return 0;
}

/* What is behind the options: the command and its directories; given are the options' values. */
static int
parse_operands(const struct command **found, struct request *request, const char *const *given,
		int argc, char *const argv[], struct err *err)
{
	const struct command *command;
	unsigned int least;

	if (argc == 0)
		return err_set(err, EXIT_USAGE, "command missing; --help lists them");
	command = *found = find_command(argv[0]);
	if (command == NULL)
		return err_set(err, EXIT_USAGE, "%s: unknown command", argv[0]);
	least = least_operands(command);
	if (argc < 1 + (int)least)
		return err_set(err, EXIT_USAGE, "%s: %s missing", argv[0],
				command->operands[argc - 1]);
	if (argc > 1 + (int)least && !command->many)
		return err_set(err, EXIT_USAGE, "%s: %s: one argument too many", argv[0],
				argv[1 + least]);
	request->operands = argv + 1;
	request->nb_operands = (size_t)argc - 1;
	for (int option = OPTION_FORMAT; option < OPTION_HELP; option++)
		if (given[option - OPTION_FORMAT] != NULL && (command->takes & TAKES(option)) == 0)
			return err_set(err, EXIT_USAGE, "--%s: not for %s",
					long_options[option - OPTION_FORMAT].name, argv[0]);
	request->margin = COMPARE_MARGIN;
	request->margin_given = given[OPTION_MARGIN - OPTION_FORMAT] != NULL;
	request->junit = given[OPTION_JUNIT - OPTION_FORMAT];
	if (request->margin_given &&
			parse_margin(request, given[OPTION_MARGIN - OPTION_FORMAT], err) != 0)
		return -1;
	return given[0] == NULL ? 0 : parse_format(request, command, given[0], err);
}

/* Returns 1 with a command to run, 0 when all is done, or -1 with err set. */
static int
parse(const struct command **command, struct request *request, int argc, char *argv[],
		struct err *err)
{
	const char *given[OPTION_HELP - OPTION_FORMAT] = { NULL };
	int result;

	while ((result = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
		switch (result) {
		case OPTION_FORMAT:
		case OPTION_MARGIN:
		case OPTION_JUNIT:
			given[result - OPTION_FORMAT] = optarg;
			break;
		case OPTION_HELP:
			print_help();
			return 0;
		case OPTION_VERSION:
			printf("sibfwd-report %s\n", SIBFWD_VERSION);
			return 0;
		default:
			return option_error(result, argv, err);
		}
	}
	if (parse_operands(command, request, given, argc - optind, argv + optind, err) != 0)
		return -1;
	return 1;
}

static int
run(int argc, char *argv[], struct err *err)
{
	const struct command *command = NULL;
	struct request request = { 0 };
	struct result_set set = { 0 };
	int rc = parse(&command, &request, argc, argv, err);

	if (rc <= 0)
		return rc;
	rc = least_operands(command) == 1 ? read_set(&set, request.operands[0], err) : 0;
	if (rc == 0)
		rc = command->run(&set, &request, err);
	result_free(&set);
	return rc;
}

int
main(int argc, char *argv[])
{
	struct err err;
	int rc;

	/* Whoever ignores SIGPIPE hands that down; "| head" is to end this program quietly. */
	signal(SIGPIPE, SIG_DFL);
	rc = run(argc, argv, &err);
	if (rc >= 0 && (fflush(stdout) != 0 || ferror(stdout) != 0))
		rc = err_set(&err, EXIT_FAILED, "standard output: %s", strerror(errno));
	if (rc < 0) {
		fprintf(stderr, "sibfwd-report: %s\n", csv_visible(err.text));
		return err.code;
	}
	return nb_violations > 0 ? EXIT_FAILED : rc;
}
