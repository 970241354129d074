/* SPDX-License-Identifier: BSD-3-Clause */
/* What a table or an estimate says of the windows; declared in result.h. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "csv.h"
#include "result.h"
#include "stats.h"
#include "summary.h"

#define LABEL_WIDTH 12
#define SCENARIO_WIDTH_MIN 8
#define SCENARIO_WIDTH_MAX 20
#define LEVEL 0.95 /* of the intervals */

/* ---- estimates ---- */

static double
known(uint64_t integer)
{
	return integer == RESULT_UNKNOWN ? NAN : (double)integer;
}

bool
summary_has_word(const char *list, const char *word, size_t len)
{
	while (*list != '\0') {
		size_t n = strcspn(list, ";");

		if (n == len && strncmp(list, word, len) == 0)
			return true;
		list += n + (list[n] == ';');
	}
	return false;
}

void
summary_add_words(char list[RESULT_TEXT_MAX], const char *words)
{
	while (*words != '\0') {
		size_t n = strcspn(words, ";");
		size_t len = strlen(list);

		if (n > 0 && !summary_has_word(list, words, n) && len + 1 + n < RESULT_TEXT_MAX)
			snprintf(list + len, RESULT_TEXT_MAX - len, "%s%.*s", len > 0 ? ";" : "",
					(int)n, words);
		words += n + (words[n] == ';');
	}
}

bool
summary_emulated(const struct result_window *windows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (windows[i].emulated == 1)
			return true;
	return false;
}

static void
sum_add(struct sum *sum, const struct result_window *w)
{
	double packets = known(result_packets(w));
	double seconds = known(w->duration_ns) / 1e9;

	if (sum->nb_rows++ == 0)
		sum->first = w;
	sum->nb_lcores += sum->nb_lcores == 0 || sum->last_lcore != w->lcore;
	sum->last_lcore = w->lcore;
	sum->warmup |= w->warmup == 1;
	sum->tainted |= w->tainted == 1;
	sum->emulated |= w->emulated == 1;
	summary_add_words(sum->taint, w->taint);
	sum->pps += seconds > 0 ? packets / seconds : NAN;
	sum->seconds += (seconds - sum->seconds) / (double)sum->nb_rows;
	sum->packets += packets;
	sum->ticks += known(w->tsc_delta);
	sum->polls += known(w->polls);
	sum->empty_polls += known(w->empty_polls);
	sum->tx_dropped += known(w->tx_dropped);
}

/* Order of the rows: by run, visit, window and lcore. */
static int
compare_windows(const struct result_window *a, const struct result_window *b)
{
	const uint64_t x[] = { a->visit, a->window }, y[] = { b->visit, b->window };
	int order = strcmp(a->run_id, b->run_id);

	for (size_t i = 0; i < 2 && order == 0; i++)
		order = (x[i] > y[i]) - (x[i] < y[i]);
	return order;
}

static int
compare_rows(const void *a, const void *b)
{
	const struct result_window *x = *(const struct result_window *const *)a;
	const struct result_window *y = *(const struct result_window *const *)b;
	int order = compare_windows(x, y);

	return order != 0 ? order : (x->lcore > y->lcore) - (x->lcore < y->lcore);
}

/* The rows in order, as an array to be freed; NULL without memory. */
static const struct result_window **
sort_rows(const struct result_window *windows, size_t n)
{
	const struct result_window **rows = calloc(n + 1, sizeof(*rows));

	if (rows == NULL)
		return NULL;
	for (size_t i = 0; i < n; i++)
		rows[i] = &windows[i];
	qsort(rows, n, sizeof(*rows), compare_rows);
	return rows;
}

/*
 * A process that is killed between the rows of two lcores leaves a window that lacks one: it is no slow one,
 * and left out. Every window of a visit has as many rows as its lcores are; by commands they may be others in the
 * next one. Of a run's last visit that has one window only, the visit before tells. Returns how many are left.
 */
static size_t
leave_out_incomplete(struct sum *sums, size_t nb)
{
	size_t kept = 0, end, before = 0;

	for (size_t i = 0; i < nb; i = end) {
		const char *run = sums[i].first->run_id;
		bool first = i == 0 || strcmp(sums[i - 1].first->run_id, run) != 0;
		size_t lcores = 0;

		for (end = i; end < nb && sums[end].first->visit == sums[i].first->visit &&
				strcmp(sums[end].first->run_id, run) == 0;
				end++)
			if (sums[end].nb_lcores > lcores)
				lcores = sums[end].nb_lcores;
		if (end == i + 1 && !first && lcores < before &&
				(end == nb || strcmp(sums[end].first->run_id, run) != 0))
			lcores = before;
		before = lcores;
		for (size_t k = i; k < end; k++)
			if (sums[k].nb_lcores == lcores)
				sums[kept++] = sums[k];
	}
	return kept;
}

/* As summary_windows(), which *incomplete were left out. */
static struct sum *
sum_windows(const struct result_window *windows, size_t n, size_t *nb, size_t *incomplete)
{
	size_t whole;
	const struct result_window **rows = sort_rows(windows, n);
	struct sum *sums = calloc(n + 1, sizeof(*sums));

	*nb = 0;
	for (size_t i = 0; i < n && rows != NULL && sums != NULL; i++) {
		if (i == 0 || compare_windows(rows[i - 1], rows[i]) != 0)
			(*nb)++;
		sum_add(&sums[*nb - 1], rows[i]);
	}
	if (rows == NULL) {
		free(sums);
		sums = NULL;
	}
	free(rows);
	whole = leave_out_incomplete(sums, *nb);
	*incomplete = *nb - whole;
	*nb = whole;
	return sums;
}

struct sum *
summary_windows(const struct result_window *windows, size_t n, size_t *nb)
{
	size_t incomplete;

	return sum_windows(windows, n, nb, &incomplete);
}

size_t
summary_incomplete(const struct result_window *windows, size_t n)
{
	size_t nb, incomplete;

	free(sum_windows(windows, n, &nb, &incomplete));
	return incomplete;
}

void
summary_vary(struct summary_varied *varied, const struct result_window *a,
		const struct result_window *b)
{
	varied->mode |= strcmp(a->mode, b->mode) != 0;
	varied->burst |= a->burst != b->burst;
	varied->lookups |= a->noisy_lookups != b->noisy_lookups;
}

struct summary_varied
summary_varied(const struct sum *sums, size_t nb)
{
	struct summary_varied varied = { 0 };

	for (size_t i = 0; i < nb; i++)
		summary_vary(&varied, sums[i].first, sums[0].first);
	return varied;
}

void
summary_arm(char *name, size_t size, const char *scenario, const char *mode, uint64_t burst,
		uint64_t lookups, struct summary_varied varied)
{
	snprintf(name, size, "%s%s%s%s%s%s%s", scenario, varied.mode ? " mode " : "",
			varied.mode ? mode : "", varied.burst ? " burst " : "",
			varied.burst ? result_integer(burst).text : "",
			varied.lookups ? " look-ups " : "",
			varied.lookups ? result_integer(lookups).text : "");
}

/* The same arm: what is estimated of it is of all its windows. */
static bool
same_scenario(const struct sum *a, const struct sum *b)
{
	return strcmp(a->first->scenario, b->first->scenario) == 0 &&
			strcmp(a->first->mode, b->first->mode) == 0 &&
			a->first->burst == b->first->burst &&
			a->first->noisy_lookups == b->first->noisy_lookups;
}

/* Whether no window before number i is of its scenario. */
static bool
is_first_of_scenario(const struct sum *sums, size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (same_scenario(&sums[j], &sums[i]))
			return false;
	return true;
}

/* What is said of the windows of a scenario; warm-up and windows without a figure left out. */
struct estimate {
	size_t nb_tainted;
	double pps; /* packets over time, of all of them together */
	double cycles; /* TSC cycles a packet, of all of them together */
	struct stats_interval mean; /* of the windows' pps; its n is their number */
};

/* Returns 0, or -1 without memory. */
static int
make_estimate(struct estimate *e, const struct sum *sums, size_t nb, const struct sum *scenario,
		bool tainted_too)
{
	double seconds = 0, weighted = 0, packets = 0, ticks = 0;
	double *pps = calloc(nb + 1, sizeof(*pps));
	size_t n = 0;

	if (pps == NULL)
		return -1;
	memset(e, 0, sizeof(*e));
	for (size_t i = 0; i < nb; i++) {
		const struct sum *sum = &sums[i];

		if (sum->warmup || isnan(sum->pps) || !same_scenario(sum, scenario))
			continue;
		if (sum->tainted && !tainted_too)
			continue;
		e->nb_tainted += sum->tainted;
		pps[n++] = sum->pps;
		seconds += sum->seconds;
		weighted += sum->pps * sum->seconds;
		packets += sum->packets;
		ticks += sum->ticks;
	}
	e->pps = n > 0 ? weighted / seconds : NAN;
	e->cycles = packets > 0 ? ticks / packets : NAN;
	e->mean = stats_t_interval(pps, n, LEVEL);
	free(pps);
	return 0;
}

static json_t *
estimate_json(const struct estimate *e)
{
	if (e->mean.n == 0)
		return json_null();
	return json_pack("{s:I, s:o, s:o, s:o, s:o}", "windows", (json_int_t)e->mean.n, "pps",
			result_number_json(e->pps), "tsc_cycles_per_packet",
			result_number_json(e->cycles), "pps_mean", result_number_json(e->mean.mean),
			"pps_mean_half_width", result_number_json(e->mean.half));
}

static void
count_cause(json_t *causes, const char *word)
{
	json_t *name = result_text_json(word);
	const json_t *count = json_object_get(causes, json_string_value(name));

	if (word[0] != '\0')
		json_object_set_new(causes, json_string_value(name),
				json_integer(json_integer_value(count) + 1));
	json_decref(name);
}

/* How many windows of the scenario each cause disturbed. */
static json_t *
causes_json(const struct sum *sums, size_t nb, const struct sum *scenario)
{
	json_t *causes = json_object();

	for (size_t i = 0; i < nb; i++) {
		char words[RESULT_TEXT_MAX], *rest = words, *word;

		if (sums[i].warmup || !same_scenario(&sums[i], scenario))
			continue;
		memcpy(words, sums[i].taint, sizeof(words));
		while ((word = strsep(&rest, ";")) != NULL)
			count_cause(causes, word);
	}
	return causes;
}

static json_t *
scenario_json(const struct sum *sums, size_t nb, const struct sum *scenario)
{
	struct summary_varied varied = summary_varied(sums, nb);
	struct estimate all, untainted;
	json_t *json;
	size_t nb_warmup = 0;
	bool emulated = false;

	if (make_estimate(&all, sums, nb, scenario, true) != 0 ||
			make_estimate(&untainted, sums, nb, scenario, false) != 0)
		return NULL;
	for (size_t i = 0; i < nb; i++) {
		if (!same_scenario(&sums[i], scenario))
			continue;
		nb_warmup += sums[i].warmup;
		emulated |= sums[i].emulated;
	}
	json = json_pack("{s:o, s:b, s:I, s:I, s:I, s:o, s:o, s:o}", "scenario",
			result_text_json(scenario->first->scenario), "emulated", emulated,
			"windows", (json_int_t)all.mean.n, "warmup_windows", (json_int_t)nb_warmup,
			"tainted_windows", (json_int_t)all.nb_tainted, "causes",
			causes_json(sums, nb, scenario), "all", estimate_json(&all), "untainted",
			estimate_json(&untainted));
	if (varied.mode)
		json_object_set_new(json, "mode", result_text_json(scenario->first->mode));
	if (varied.burst)
		json_object_set_new(json, "burst", result_integer_json(scenario->first->burst));
	if (varied.lookups)
		json_object_set_new(json, "noisy_lookups",
				result_integer_json(scenario->first->noisy_lookups));
	return json;
}

json_t *
result_estimates_json(const struct result_window *windows, size_t n)
{
	size_t nb;
	struct sum *sums = summary_windows(windows, n, &nb);
	json_t *scenarios = json_array();
	int rc = sums == NULL ? -1 : 0;

	for (size_t i = 0; i < nb && rc == 0; i++)
		if (is_first_of_scenario(sums, i))
			rc = json_array_append_new(scenarios, scenario_json(sums, nb, &sums[i]));
	free(sums);
	if (rc != 0) {
		json_decref(scenarios);
		return NULL;
	}
	return json_pack("{s:f, s:s, s:o}", "level", LEVEL, "interval",
			"t, of the mean of the windows' pps", "scenarios", scenarios);
}

/* ---- the table ---- */

#define FIGURE_SIZE 32

/* A figure with so many significant digits, at most six decimals; "-" where unknown. */
static const char *
figure(char text[FIGURE_SIZE], double value, int digits)
{
	int decimals = digits - 1;

	if (!isfinite(value))
		return "-";
	if (value != 0)
		decimals -= (int)floor(log10(fabs(value)));
	decimals = decimals < 0 ? 0 : decimals > 6 ? 6 : decimals;
	snprintf(text, FIGURE_SIZE, fabs(value) < 1e15 ? "%.*f" : "%.*e", decimals, value);
	return text;
}

/* A blank and the causes of taint, as many a line as fit from column at on, the rest below. */
static void
print_causes(FILE *out, const char *taint, int at)
{
	int column = at;

	if (*taint != '\0')
		fputc(' ', out);
	while (*taint != '\0') {
		int len = (int)strcspn(taint, ";");
		int more = taint[len] == ';';

		if (column > at && column + len + more > TABLE_WIDTH) {
			fprintf(out, "\n%*s", at, "");
			column = at;
		}
		/* A word that is longer than the room is garbage; it is cut. */
		fprintf(out, "%.*s", len + more < TABLE_WIDTH - at ? len + more : TABLE_WIDTH - at,
				taint);
		column += len + more;
		taint += len + more;
	}
	fputc('\n', out);
}

/* The scenario in its column; on a line of its own where it is too long for that. */
static void
print_scenario(FILE *out, const char *scenario, int width)
{
	char text[RESULT_TEXT_MAX];

	snprintf(text, sizeof(text), "%s", scenario);
	csv_visible(text);
	if (strlen(text) <= (size_t)width)
		fprintf(out, "%-*s", width, text);
	else
		fprintf(out, "%.*s\n%*s", TABLE_WIDTH, text, width, "");
}

static int
scenario_width(const struct result_window *windows, size_t n)
{
	size_t width = SCENARIO_WIDTH_MIN;

	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(windows[i].scenario);

		if (len > width && len <= SCENARIO_WIDTH_MAX)
			width = len;
	}
	return (int)width;
}

/* One window of one lcore, or the sum over its lcores. */
static void
print_sum(FILE *out, const struct sum *sum, int width, bool is_sum)
{
	const struct result_window *w = sum->first;
	char window[32] = "warm-up", place[64], taint[RESULT_TEXT_MAX];
	char mpps[FIGURE_SIZE], cycles[FIGURE_SIZE], dropped[FIGURE_SIZE], empty[FIGURE_SIZE] = "-";

	if (!sum->warmup)
		snprintf(window, sizeof(window), "%s", result_integer(w->window).text);
	snprintf(place, sizeof(place), "%s/%s", result_integer(w->visit).text, window);
	if (sum->polls > 0)
		snprintf(empty, sizeof(empty), "%.2f", 100 * sum->empty_polls / sum->polls);
	memcpy(taint, sum->taint, sizeof(taint));

	print_scenario(out, w->scenario, width);
	fprintf(out, " %-12s %5s %9s %17s %7s %10s", place,
			is_sum ? "sum" : result_integer(w->lcore).text,
			figure(mpps, sum->pps / 1e6, 5),
			figure(cycles, sum->ticks / sum->packets, 5), empty,
			figure(dropped, sum->tx_dropped, 1));
	print_causes(out, csv_visible(taint), width + 67);
}

static int
print_windows(FILE *out, const struct result_window *windows, size_t n, int width)
{
	const struct result_window **rows = sort_rows(windows, n);
	struct sum window = { 0 };

	if (rows == NULL)
		return -1;
	fprintf(out, "%-*s %-12s %5s %9s %17s %7s %10s %s\n", width, "scenario", "visit/window",
			"lcore", "Mpps", "TSC cycles/packet", "empty %", "tx dropped", "taint");
	for (size_t i = 0; i < n; i++) {
		struct sum row = { 0 };

		sum_add(&row, rows[i]);
		print_sum(out, &row, width, false);
		sum_add(&window, rows[i]);
		if (i + 1 < n && compare_windows(rows[i], rows[i + 1]) == 0)
			continue;
		if (window.nb_rows > 1)
			print_sum(out, &window, width, true);
		memset(&window, 0, sizeof(window));
	}
	free(rows);
	return 0;
}

static void
print_estimate(FILE *out, const struct estimate *e, const char *scenario, const char *which,
		int width)
{
	char mpps[FIGURE_SIZE], cycles[FIGURE_SIZE], mean[FIGURE_SIZE], half[FIGURE_SIZE];

	print_scenario(out, scenario, width);
	fprintf(out, " %-12s %6zu %7zu %9s %17s %9s %9s\n", which, e->mean.n, e->nb_tainted,
			figure(mpps, e->pps / 1e6, 5), figure(cycles, e->cycles, 5),
			figure(mean, e->mean.mean / 1e6, 5), figure(half, e->mean.half / 1e6, 3));
}

/* With and without the tainted windows, where there are both. */
static int
print_scenario_estimates(
		FILE *out, const struct sum *sums, size_t nb, const struct sum *scenario, int width)
{
	char name[RESULT_TEXT_MAX];
	struct estimate all, untainted;

	summary_arm(name, sizeof(name), scenario->first->scenario, scenario->first->mode,
			scenario->first->burst, scenario->first->noisy_lookups,
			summary_varied(sums, nb));
	if (make_estimate(&all, sums, nb, scenario, true) != 0 ||
			make_estimate(&untainted, sums, nb, scenario, false) != 0)
		return -1;
	if (all.nb_tainted > 0 && untainted.mean.n == 0) {
		print_estimate(out, &all, name, "tainted only", width);
		return 0;
	}
	print_estimate(out, &all, name, "all", width);
	if (all.nb_tainted > 0)
		print_estimate(out, &untainted, name, "untainted", width);
	return 0;
}

static int
print_estimates(FILE *out, const struct result_window *windows, size_t n, int width)
{
	size_t nb;
	struct sum *sums = summary_windows(windows, n, &nb);
	int rc = sums == NULL ? -1 : 0;

	fprintf(out, "\n%-*s %-12s %6s %7s %9s %17s %9s %9s\n", width, "scenario", "windows", "n",
			"tainted", "Mpps", "TSC cycles/packet", "mean Mpps", "+- Mpps");
	for (size_t i = 0; i < nb && rc == 0; i++)
		if (is_first_of_scenario(sums, i))
			rc = print_scenario_estimates(out, sums, nb, &sums[i], width);
	free(sums);
	fprintf(out, "n windows, warm-up left out; Mpps and TSC cycles/packet are of all n together.\n");
	fprintf(out, "+- is the half-width of the 95 %% t interval of the mean over the n windows.\n");
	return rc;
}

/* A line of the heading; text that is too long for it is cut. */
static void __attribute__((format(printf, 3, 4)))
print_label(FILE *out, const char *label, const char *fmt, ...)
{
	const int room = TABLE_WIDTH - LABEL_WIDTH;
	char text[4 * RESULT_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	csv_visible(text);
	if (strlen(text) > (size_t)room)
		snprintf(text + room - 3, sizeof(text) - (size_t)room, "...");
	fprintf(out, "%-*s%s\n", LABEL_WIDTH, label, text);
}

/* What all windows have in common, as the first window has it. */
static void
print_heading(FILE *out, const struct result_window *windows, size_t n)
{
	const struct result_window *w = &windows[0];
	print_label(out, "host", "%s", w->host);
	if (summary_emulated(windows, n))
		print_label(out, "machine", "emulated: its figures say nothing about a real one");
	print_label(out, "run", "%s, began %s", w->run_id, w->utc_start);
	print_label(out, "forwarding", "%s, burst %s, %s bytes a packet", w->mode,
			result_integer(w->burst).text, result_integer(w->pkt_len).text);
	print_label(out, "source", "%s", w->source);
	for (size_t i = 0; i < n && compare_windows(w, &windows[i]) == 0; i++)
		print_label(out, "lcore", "%s on CPU %s, sibling CPU %s (%s)",
				result_integer(windows[i].lcore).text,
				result_integer(windows[i].cpu).text,
				result_integer(windows[i].sibling_cpu).text, windows[i].relation);
	fputc('\n', out);
}

int
result_print_table(FILE *out, const struct result_window *windows, size_t n)
{
	int width = scenario_width(windows, n);
	bool controller = false;

	if (n == 0)
		return fprintf(out, "no windows\n") < 0 ? -1 : 0;
	for (size_t i = 0; i < n; i++)
		controller |= summary_has_word(
				windows[i].taint, "controller", strlen("controller"));

	print_heading(out, windows, n);
	if (print_windows(out, windows, n, width) != 0 ||
			print_estimates(out, windows, n, width) != 0)
		return -1;
	if (controller)
		fprintf(out, "controller: the main lcore is on the measured core or the sibling; does not count as taint\n");
	return ferror(out) != 0 ? -1 : 0;
}
