/* SPDX-License-Identifier: BSD-3-Clause */
/* sibfwd-report: reads result directories, on any machine and without EAL. */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "csv.h"
#include "result.h"

#define IDENTITY_BOUND 1e-3 /* of tsc_hz; docs/results.md */
#define ROUNDING 1e-9 /* what figures computed twice may differ by, relatively */

/* ---- show and csv ---- */

struct request {
	const char *dir;
	bool json;
};

static int
no_memory(struct err *err)
{
	return err_set(err, EXIT_FAILED, "%s", strerror(ENOMEM));
}

static int
show_json(const struct result_set *set, struct err *err)
{
	json_t *windows = result_windows_json(set->windows, set->nb_windows);
	json_t *estimates = result_estimates_json(set->windows, set->nb_windows);
	json_t *all = json_pack("{s:i, s:b, s:o, s:o}", "schema", RESULT_SCHEMA, "cut_short",
			set->cut_short, "windows", windows, "estimates", estimates);

	if (all == NULL)
		return no_memory(err);
	/* A write error stays in stdout and is told at the end. */
	if (json_dumpf(all, stdout, JSON_INDENT(2)) == 0)
		putchar('\n');
	json_decref(all);
	return 0;
}

static int
show(const struct result_set *set, const struct request *request, struct err *err)
{
	if (request->json)
		return show_json(set, err);
	if (result_print_table(stdout, set->windows, set->nb_windows) != 0 && ferror(stdout) == 0)
		return no_memory(err);
	return 0;
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

/* Two lists of column names, each with the name of where it stands. */
static void
check_names(const char *where, const json_t *names, const char *other, const json_t *wanted)
{
	size_t i;

	if (json_equal(names, wanted))
		return;
	for (i = 0; i < json_array_size(names) && i < json_array_size(wanted); i++)
		if (!json_equal(json_array_get(names, i), json_array_get(wanted, i)))
			break;
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

/* The columns of a file against columns.json, and that against what this program writes. */
static void
check_columns(const struct result_set *set, const char *file, const json_t *header, json_t *own)
{
	json_t *described;

	if (set->columns == NULL) {
		if (header != NULL)
			check_names(file, header, "this program", own);
		json_decref(own);
		return;
	}
	described = described_columns(set->columns, file);
	if (header != NULL)
		check_names(file, header, "columns.json", described);
	check_names("columns.json", described, "this program", own);
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

/* Windows of the run, over all lcores: those measured, or those of the warm-up. */
static size_t
count_windows(const struct tally *sorted, size_t n, uint64_t warmup)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++) {
		const struct result_window *w = sorted[i].w;
		const struct result_window *last = i > 0 ? sorted[i - 1].w : NULL;

		if (last == NULL || strcmp(last->run_id, w->run_id) != 0 ||
				last->visit != w->visit || last->window != w->window)
			count += w->warmup == warmup;
	}
	return count;
}

static int
check_result(const struct result_set *set, const struct tally *sorted, struct err *err)
{
	size_t nb = count_windows(sorted, set->nb_windows, 0);
	const json_t *schema = json_object_get(set->result, "schema");
	const json_t *done = json_object_get(set->result, "windows_done");
	json_t *estimates;

	if (set->result == NULL)
		return 0;
	if (json_integer_value(schema) != RESULT_SCHEMA)
		violation(NULL, "result.json: schema is not %d", RESULT_SCHEMA);
	if (done != NULL && json_integer_value(done) != (json_int_t)nb)
		violation(NULL, "result.json: windows_done is %jd, windows.csv has %zu",
				(intmax_t)json_integer_value(done), nb);
	estimates = result_estimates_json(set->windows, set->nb_windows);
	if (estimates == NULL)
		return no_memory(err);
	check_json("estimates", json_object_get(set->result, "estimates"), estimates);
	json_decref(estimates);
	return 0;
}

static void
print_ok(const struct result_set *set, const struct tally *sorted)
{
	printf("ok: %zu windows, %zu warm-up, %zu rows", count_windows(sorted, set->nb_windows, 0),
			count_windows(sorted, set->nb_windows, 1), set->nb_windows);
	printf("%s%s%s\n", set->columns != NULL ? "; columns.json agrees" : "",
			set->bursts_header != NULL ? "; bursts.csv agrees" : "",
			set->result != NULL ? "; result.json agrees" : "");
}

static int
check(const struct result_set *set, const struct request *request, struct err *err)
{
	struct tally *tallies = calloc(set->nb_windows + 1, sizeof(*tallies));
	int rc;

	(void)request;
	if (tallies == NULL)
		return no_memory(err);
	for (size_t i = 0; i < set->nb_windows; i++)
		tallies[i].w = &set->windows[i];
	qsort(tallies, set->nb_windows, sizeof(*tallies), compare_tallies);

	check_columns(set, "windows.csv", set->header, result_window_columns());
	check_columns(set, "bursts.csv", set->bursts_header, result_burst_columns());
	for (size_t i = 0; i < set->nb_windows; i++)
		check_window(&set->windows[i]);
	check_numbers(tallies, set->nb_windows);
	check_bursts(set, tallies);
	rc = check_result(set, tallies, err);
	if (rc == 0 && nb_violations == 0)
		print_ok(set, tallies);
	free(tallies);
	return rc;
}

/* ---- the command line ---- */

static const struct command {
	const char *name;
	bool takes_format;
	/* Returns 0, or -1 with err set. */
	int (*run)(const struct result_set *set, const struct request *request, struct err *err);
	const char *help;
} commands[] = {
	{ "show", true, show, "show DIR [--format table|json]   windows and estimates" },
	{ "csv", false, csv, "csv DIR                          windows.csv, put in order" },
	{ "check", false, check,
			"check DIR                        columns, counts and identities" },
};

#define NB_COMMANDS (sizeof(commands) / sizeof(commands[0]))

enum { OPTION_FORMAT = 256, OPTION_HELP, OPTION_VERSION };

static const struct option long_options[] = {
	{ "format", required_argument, NULL, OPTION_FORMAT },
	{ "help", no_argument, NULL, OPTION_HELP },
	{ "version", no_argument, NULL, OPTION_VERSION },
	{ NULL, 0, NULL, 0 },
};

static void
print_help(void)
{
	printf("Usage: sibfwd-report COMMAND DIR [OPTION]\n\n"
	       "DIR is a result directory of dpdk-sibfwd, or a windows.csv.\n\nCommands:\n");
	for (size_t i = 0; i < NB_COMMANDS; i++)
		printf("  %s\n", commands[i].help);
	printf("\nOptions:\n  --format table|json   of show; default table\n"
	       "  --help                this text\n  --version             version\n\n"
	       "Exit codes: 0 done, 1 could not do it or the check found faults, 2 usage.\n");
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

/* What is behind the options: the command and the directory. */
static int
parse_operands(const struct command **command, struct request *request, const char *format,
		int argc, char *const argv[], struct err *err)
{
	if (argc == 0)
		return err_set(err, EXIT_USAGE, "command missing; --help lists them");
	*command = find_command(argv[0]);
	if (*command == NULL)
		return err_set(err, EXIT_USAGE, "%s: unknown command", argv[0]);
	if (argc < 2)
		return err_set(err, EXIT_USAGE, "%s: DIR missing", argv[0]);
	if (argc > 2)
		return err_set(err, EXIT_USAGE, "%s: %s: one argument too many", argv[0], argv[2]);
	request->dir = argv[1];
	if (format == NULL)
		return 0;
	if (!(*command)->takes_format)
		return err_set(err, EXIT_USAGE, "--format: not for %s", argv[0]);
	request->json = strcmp(format, "json") == 0;
	if (!request->json && strcmp(format, "table") != 0)
		return err_set(err, EXIT_USAGE, "--format: %s is not table or json", format);
	return 0;
}

/* Returns 1 with a command to run, 0 when all is done, or -1 with err set. */
static int
parse(const struct command **command, struct request *request, int argc, char *argv[],
		struct err *err)
{
	const char *format = NULL;
	int result;

	while ((result = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
		switch (result) {
		case OPTION_FORMAT:
			format = optarg;
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
	if (parse_operands(command, request, format, argc - optind, argv + optind, err) != 0)
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
	rc = result_read(&set, request.dir, err);
	if (rc == 0 && set.cut_short)
		fprintf(stderr, "sibfwd-report: %s: windows.csv ends within a row, left out\n",
				request.dir);
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
	if (rc == 0 && (fflush(stdout) != 0 || ferror(stdout) != 0))
		rc = err_set(&err, EXIT_FAILED, "standard output: %s", strerror(errno));
	if (rc != 0) {
		fprintf(stderr, "sibfwd-report: %s\n", csv_visible(err.text));
		return err.code;
	}
	return nb_violations > 0 ? EXIT_FAILED : EXIT_DONE;
}
