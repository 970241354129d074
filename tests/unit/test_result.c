/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "result.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* The columns as they were agreed on; an order that others read is not to change unseen. */
static const char columns[] =
		"schema,run_id,utc_start,host,scenario,block,position,visit,window,warmup,tainted,"
		"taint,mode,source,burst,pkt_len,lcore,cpu,sibling_cpu,relation,duration_ns,"
		"tsc_delta,tsc_hz,rx_packets,tx_packets,tx_dropped,rx_missed,rx_nombuf,polls,"
		"empty_polls,pps,tsc_cycles_per_packet,busy_cycles_per_packet,"
		"core_cycles_per_packet,instructions_per_packet,irqs,ctx_switches,steal_ns,smi,"
		"sibling_idle_entries,sibling_idle_ns,sibling_state,sibling_spec_ctrl,emulated,"
		"noisy_lookups";

static char top[] = "/tmp/test_result.XXXXXX";

/* ---- helpers ---- */

/* A path below the test's directory; good until the next but three calls. */
static const char *
in_top(const char *name)
{
	static char paths[4][512];
	static unsigned int next;
	char *path = paths[next++ % COUNT_OF(paths)];

	snprintf(path, sizeof(paths[0]), "%s/%s", top, name);
	return path;
}

/* A path that does not exist. */
static const char *
fresh(void)
{
	static unsigned int number;
	char name[32];

	snprintf(name, sizeof(name), "results%u", number++);
	return in_top(name);
}

/* The bytes of a file with a NUL behind them, to be freed; NULL where there is none. */
static char *
slurp(const char *dir, const char *name)
{
	char path[600], *bytes = NULL;
	size_t room = 0;
	FILE *in;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	in = fopen(path, "r");
	if (in == NULL)
		return NULL;
	if (getdelim(&bytes, &room, '\0', in) < 0 && bytes != NULL)
		bytes[0] = '\0'; /* the file is empty */
	fclose(in);
	return bytes;
}

/* Number of entries in a directory; -1 where there is none. */
static int
count_entries(const char *dir)
{
	DIR *stream = opendir(dir);
	int n = 0;

	if (stream == NULL)
		return -1;
	while (readdir(stream) != NULL)
		n++;
	closedir(stream);
	return n - 2;
}

/* Read bytes as a windows.csv. */
static int
read_bytes(struct result_set *set, const char *bytes, size_t len, struct err *err)
{
	FILE *in = fmemopen((void *)(uintptr_t)bytes, len, "r");

	assert_non_null(in);
	memset(set, 0, sizeof(*set));
	return result_read_stream(set, in, "some.csv", err);
}

/* One window of io: 1 s at 1 Mpps and 3 GHz. */
static struct result_window
sample(uint64_t visit, uint64_t window, uint64_t lcore)
{
	struct result_window w;

	result_window_init(&w);
	strcpy(w.run_id, "r1");
	strcpy(w.utc_start, "2026-01-02T03:04:05Z");
	strcpy(w.host, "lab");
	strcpy(w.scenario, "as-is");
	strcpy(w.mode, "io");
	strcpy(w.source, "null");
	strcpy(w.relation, "smt");
	w.block = w.position = 1;
	w.visit = visit;
	w.window = window;
	w.warmup = window == 0;
	w.tainted = w.emulated = 0;
	w.lcore = w.cpu = lcore;
	w.duration_ns = 1000000000;
	w.tsc_delta = w.tsc_hz = 3000000000;
	w.rx_packets = w.tx_packets = 1000000;
	w.tx_dropped = 0;
	w.polls = 50000;
	w.empty_polls = 500;
	w.pps = 1e6;
	w.tsc_cycles_per_packet = 3000;
	return w;
}

/* The window at so many packets a second. */
static struct result_window
at_pps(uint64_t window, double pps)
{
	struct result_window w = sample(1, window, 1);

	w.rx_packets = w.tx_packets = (uint64_t)pps;
	w.pps = pps;
	w.tsc_cycles_per_packet = 3e9 / pps;
	return w;
}

/* The table of some windows, to be freed. */
static char *
table_of(const struct result_window *windows, size_t n)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_int_equal(result_print_table(out, windows, n), 0);
	fclose(out);
	return text;
}

/* Windows as a CSV file, to be freed. */
static char *
csv_of(const struct result_window *windows, size_t n)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_int_equal(result_print_csv_header(out), 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(result_print_csv(out, &windows[i]), 0);
	fclose(out);
	return text;
}

static void
assert_has(const char *text, const char *part)
{
	assert_non_null(text);
	if (strstr(text, part) != NULL)
		return;
	print_error("\"%s\" is not in:\n%s\n", part, text);
	fail();
}

static void
assert_has_not(const char *text, const char *part)
{
	assert_non_null(text);
	if (strstr(text, part) == NULL)
		return;
	print_error("\"%s\" is in:\n%s\n", part, text);
	fail();
}

/* Let files grow to so many bytes only, as on a disk that is about to be full. */
static void
limit_files(rlim_t bytes)
{
	struct rlimit limit;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* ---- the columns ---- */

static void
header_holds_the_agreed_columns(void **state)
{
	char *text = csv_of(NULL, 0);

	(void)state;
	assert_int_equal(strlen(text), strlen(columns) + 1);
	assert_memory_equal(text, columns, strlen(columns));
	assert_int_equal(text[strlen(columns)], '\n');
	free(text);
}

static void
columns_json_describes_every_column(void **state)
{
	const char *dir = fresh();
	struct err err;
	struct result *r = result_create(dir, NULL, &err);
	char *text = slurp(dir, "columns.json"), names[2000] = "";
	json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	const json_t *column;
	size_t i;

	(void)state;
	json_array_foreach (json_object_get(json, "windows.csv"), i, column) {
		const char *name = json_string_value(json_object_get(column, "name"));
		const char *type = json_string_value(json_object_get(column, "type"));

		assert_non_null(json_string_value(json_object_get(column, "unit")));
		assert_true(strlen(json_string_value(json_object_get(column, "meaning"))) > 3);
		assert_non_null(strstr("text integer flag number", type));
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s",
				i == 0 ? "" : ",", name);
	}
	assert_string_equal(names, columns);
	assert_int_equal(json_array_size(json_object_get(json, "bursts.csv")), 6);
	assert_int_equal(json_integer_value(json_object_get(json, "schema")), RESULT_SCHEMA);
	json_decref(json);
	free(text);
	assert_int_equal(result_close(r, &err), 0);
}

/* docs/results.md has a row for every column, word for word. */
static void
documentation_describes_the_same_columns(void **state)
{
	const char *dir = fresh();
	char row[600];
	struct err err;
	struct result *r = result_create(dir, NULL, &err);
	char *text = slurp(dir, "columns.json");
	char *docs = slurp(TEST_DATA, "../../docs/results.md");
	json_t *json = json_loads(text, 0, NULL);
	const json_t *list, *column;
	const char *file;
	size_t i;

	(void)state;
	assert_non_null(docs);
	json_object_foreach (json, file, list) {
		json_array_foreach (list, i, column) {
			snprintf(row, sizeof(row), "\n| `%s` | %s | %s | %s |\n",
					json_string_value(json_object_get(column, "name")),
					json_string_value(json_object_get(column, "unit")),
					json_string_value(json_object_get(column, "type")),
					json_string_value(json_object_get(column, "meaning")));
			assert_has(docs, row);
		}
	}
	json_decref(json);
	free(text);
	assert_int_equal(result_close(r, &err), 0);
	free(docs);
}

/* ---- rows ---- */

static void
rows_come_back_as_they_were(void **state)
{
	struct result_window w[4];
	struct result_set set;
	struct err err;
	char *text;

	(void)state;
	w[0] = sample(1, 0, 1);
	w[1] = sample(1, 1, 1);
	strcpy(w[1].scenario, "c1+keep, \"quoted\"");
	strcpy(w[1].source, "pcap:two\nlines\r\n and more");
	strcpy(w[1].host, "m\xc3\xbcnchen ");
	memset(w[1].run_id, 'x', RESULT_TEXT_MAX - 1);
	w[1].pps = 0.1;
	w[1].tsc_cycles_per_packet = 1.0 / 3;
	w[1].busy_cycles_per_packet = DBL_MAX;
	w[1].core_cycles_per_packet = 5e-324;
	w[1].instructions_per_packet = 14881023.123456789;
	w[1].tsc_delta = RESULT_UNKNOWN - 1;
	result_window_init(&w[2]);
	w[3] = sample(2, 1, 1);

	text = csv_of(w, COUNT_OF(w));
	assert_int_equal(read_bytes(&set, text, strlen(text), &err), 0);
	assert_int_equal(set.nb_windows, COUNT_OF(w));
	assert_false(set.cut_short);
	for (size_t i = 0; i < COUNT_OF(w); i++)
		assert_memory_equal(&set.windows[i], &w[i], sizeof(w[i]));
	result_free(&set);
	free(text);
}

static void
unknown_figures_are_empty(void **state)
{
	struct result_window w;
	char *text, *row;

	(void)state;
	result_window_init(&w);
	text = csv_of(&w, 1);
	row = strchr(text, '\n');
	assert_non_null(row);
	assert_string_equal(row, "\n1,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,\n");
	free(text);
}

static void
numbers_are_short_where_that_loses_nothing(void **state)
{
	struct result_window w = sample(1, 1, 1);
	char *text;

	(void)state;
	w.pps = 14880952.5;
	w.tsc_cycles_per_packet = 0.1;
	text = csv_of(&w, 1);
	assert_has(text, ",14880952.5,0.1,,,,");
	free(text);
}

static void
quoting_is_that_of_rfc_4180(void **state)
{
	struct result_window w = sample(1, 1, 1);
	char *text;

	(void)state;
	strcpy(w.host, "a\"b,c");
	text = csv_of(&w, 1);
	assert_has(text, ",\"a\"\"b,c\",");
	free(text);
}

static void
a_full_stream_is_told(void **state)
{
	struct result_window w = sample(1, 1, 1);
	FILE *full = fopen("/dev/full", "w");

	(void)state;
	assert_non_null(full);
	setvbuf(full, NULL, _IONBF, 0);
	assert_int_equal(result_print_csv(full, &w), -1);
	assert_int_equal(result_print_csv_header(full), -1);
	assert_int_equal(result_print_table(full, &w, 1), -1);
	assert_int_equal(result_print_table(full, &w, 0), -1);
	fclose(full);
}

static void
packets_are_those_sent_where_none_are_received(void **state)
{
	struct result_window w = sample(1, 1, 1);

	(void)state;
	w.rx_packets = 1;
	w.tx_packets = 2;
	assert_int_equal(result_packets(&w), 1);
	strcpy(w.mode, "txonly");
	assert_int_equal(result_packets(&w), 2);
	strcpy(w.mode, "flowgen");
	assert_int_equal(result_packets(&w), 2);
	strcpy(w.mode, "rxonly");
	assert_int_equal(result_packets(&w), 1);
}

/* ---- reading ---- */

static void
other_spellings_of_the_same_file_are_read(void **state)
{
	static const char head[] = "tsc_delta,schema,scenario,visit,window,warmup,tainted,mode,"
				   "lcore,extra,duration_ns,rx_packets,tx_packets,pps";
	static const char row[] = "3000,1,\"as-is\",1,1,0,0,io,2,\"what,ever\n\",1000,10,9,1.5e3";
	static const char *const ends[] = { "\n", "\r\n" };
	static const char *const marks[] = { "", "\xef\xbb\xbf" };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct result_set set;
		struct err err;
		char text[600];

		snprintf(text, sizeof(text), "%s%s%s%s%s", marks[i / 2], head, ends[i % 2], row,
				ends[i % 2]);
		assert_int_equal(read_bytes(&set, text, strlen(text), &err), 0);
		assert_int_equal(set.nb_windows, 1);
		assert_string_equal(set.windows[0].scenario, "as-is");
		assert_int_equal(set.windows[0].tsc_delta, 3000);
		assert_true(set.windows[0].pps == 1500);
		assert_true(set.windows[0].irqs == RESULT_UNKNOWN);
		assert_true(isnan(set.windows[0].tsc_cycles_per_packet));
		assert_int_equal(json_array_size(set.header), 14);
		result_free(&set);
	}
}

/* Whatever byte a run is killed at, the whole rows before it are read. */
static void
a_row_without_its_end_is_dropped(void **state)
{
	struct result_window w[3] = { sample(1, 0, 1), sample(1, 1, 1), sample(1, 2, 1) };
	size_t head = strlen(columns) + 1;
	char *text;

	(void)state;
	strcpy(w[1].source, "pcap:a \"quoted\" name,too");
	strcpy(w[2].source, "pcap:a \"quoted\" name,too");
	text = csv_of(w, COUNT_OF(w));
	for (size_t len = head; len <= strlen(text); len++) {
		struct result_set set;
		struct err err;
		size_t rows = 0;

		for (size_t i = head; i < len; i++)
			rows += text[i] == '\n';
		assert_int_equal(read_bytes(&set, text, len, &err), 0);
		assert_int_equal(set.nb_windows, rows);
		assert_int_equal(set.cut_short, text[len - 1] != '\n');
		result_free(&set);
	}
	for (size_t len = 1; len < head; len++) {
		struct result_set set;
		struct err err;

		assert_int_equal(read_bytes(&set, text, len, &err), -1);
		assert_has(err.text, "some.csv: no header line");
		result_free(&set);
	}
	free(text);
}

/* A row of the short header below, with one thing wrong, and what is said of it. */
static const struct {
	const char *row;
	const char *said;
} broken_rows[] = {
	{ "1,x,1,1,0,0,io,1,1,1,1,1\n", "some.csv:3: 12 fields, the header has 13" },
	{ "1,x,1,1,0,0,io,1,1,1,1,1,1,1\n", "some.csv:3: 14 fields, the header has 13" },
	{ "\n", "some.csv:3: 1 fields, the header has 13" },
	{ "1,x,1,1,0,0,io,1,ten,1,1,1,1\n",
			":3: column duration_ns: \"ten\" is not a whole number" },
	{ "1,x,1,1,0,0,io,1,-1,1,1,1,1\n", "column duration_ns: \"-1\"" },
	{ "1,x,1,1,0,0,io,1, 1,1,1,1,1\n", "column duration_ns: \" 1\"" },
	{ "1,x,1,1,0,0,io,1,1.5,1,1,1,1\n", "column duration_ns: \"1.5\"" },
	{ "1,x,1,1,0,0,io,1,18446744073709551615,1,1,1,1\n", "column duration_ns: \"184" },
	{ "1,x,1,1,0,0,io,1,99999999999999999999999,1,1,1,1\n", "column duration_ns: \"999" },
	{ "1,x,1,1,2,0,io,1,1,1,1,1,1\n", "column warmup: \"2\" is not 0 or 1" },
	{ "1,x,1,1,5,0,io,1,1,1,1,1,1\n", "column warmup: \"5\" is not 0 or 1" },
	{ "1,x,1,1,0,10,io,1,1,1,1,1,1\n", "column tainted: \"10\" is not 0 or 1" },
	{ "1,x,1,1,0,0,io,1,1,1,1,1,nan\n", "column pps: \"nan\" is not a number" },
	{ "1,x,1,1,0,0,io,1,1,1,1,1,inf\n", "column pps: \"inf\"" },
	{ "1,x,1,1,0,0,io,1,1,1,1,1,0x10\n", "column pps: \"0x10\"" },
	{ "1,x,1,1,0,0,io,1,1,1,1,1,1e999\n", "column pps: \"1e999\"" },
	{ "1,x,1,1,0,0,io,1,1,1,1,1,1..2\n", "column pps: \"1..2\"" },
	{ "1,x,1,1,0,0,io,1,1,1,1,1,-5\n", "column pps: \"-5\"" },
	{ "1,x,1,1,0,0,io,1,1,1,1,1,\x1b[31m\n", "column pps: \"?[31m\"" },
	{ "1,x\"y\",1,1,0,0,io,1,1,1,1,1,1\n", "some.csv:3: a quote within a field" },
	{ "1,\"x\"y,1,1,0,0,io,1,1,1,1,1,1\n", "some.csv:3: text after a closing quote" },
	{ "1,\"x,1,1,0,0,io,1,1,1,1,1,1\n", "some.csv:3: a quote that is never closed" },
	{ "1,x\ry,1,1,0,0,io,1,1,1,1,1,1\n", "some.csv:3: a carriage return within a line" },
};

static const char short_head[] = "schema,scenario,visit,window,warmup,tainted,mode,lcore,"
				 "duration_ns,tsc_delta,rx_packets,tx_packets,pps\n"
				 "1,x,1,1,0,0,io,1,1,1,1,1,1\n";

static void
broken_rows_are_refused_by_line_and_column(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(broken_rows); i++) {
		struct result_set set;
		struct err err;
		char text[600];

		snprintf(text, sizeof(text), "%s%s", short_head, broken_rows[i].row);
		if (read_bytes(&set, text, strlen(text), &err) == 0) {
			print_error("read: %s", broken_rows[i].row);
			fail();
		}
		assert_int_equal(err.code, EXIT_FAILED);
		assert_has(err.text, broken_rows[i].said);
		result_free(&set);
	}
}

static void
a_nul_byte_is_refused(void **state)
{
	char text[] = "1,xyz,1,1,0,0,io,1,1,1,1,1,1\n", whole[600];
	size_t head = strlen(short_head);
	struct result_set set;
	struct err err;

	(void)state;
	text[3] = '\0';
	memcpy(whole, short_head, head);
	memcpy(whole + head, text, sizeof(text) - 1);
	assert_int_equal(read_bytes(&set, whole, head + sizeof(text) - 1, &err), -1);
	assert_has(err.text, "some.csv:3: a NUL byte");
	result_free(&set);
}

static void
a_field_that_is_too_long_is_refused(void **state)
{
	char text[4000] = "", field[2000];
	struct result_set set;
	struct err err;

	(void)state;
	memset(field, '7', sizeof(field) - 1);
	field[sizeof(field) - 1] = '\0';
	snprintf(text, sizeof(text), "%s1,%s,1,1,0,0,io,1,1,1,1,1,1\n", short_head, field);
	assert_int_equal(read_bytes(&set, text, strlen(text), &err), -1);
	assert_has(err.text, "some.csv:3: column scenario: 1999 bytes, more than 255");
	result_free(&set);

	/* One byte of room is left for the NUL. */
	field[RESULT_TEXT_MAX - 1] = '\0';
	snprintf(text, sizeof(text), "%s1,%s,1,1,0,0,io,1,1,1,1,1,1\n", short_head, field);
	assert_int_equal(read_bytes(&set, text, strlen(text), &err), 0);
	assert_string_equal(set.windows[1].scenario, field);
	result_free(&set);
}

static void
broken_headers_are_refused(void **state)
{
	static const struct {
		const char *text;
		const char *said;
	} cases[] = {
		{ "schema,scenario\n", "some.csv:1: column visit: missing" },
		{ "time,packets\n1,2\n", "some.csv:1: column schema: missing" },
		{ "\n", "some.csv:1: column schema: missing" },
		{ "schema,pps,pps\n", "some.csv:1: column pps: stands there twice" },
		{ "\x7f\x45\x4c\x46\x02\x01\n\"", "some.csv:1: column schema: missing" },
	};
	struct result_set set;
	struct err err;
	char text[600];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		assert_int_equal(read_bytes(&set, cases[i].text, strlen(cases[i].text), &err), -1);
		assert_has(err.text, cases[i].said);
		result_free(&set);
	}
	memset(text, ',', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\n';
	assert_int_equal(read_bytes(&set, text, sizeof(text), &err), -1);
	assert_has(err.text, "some.csv:1: more than 256 columns");
	result_free(&set);
}

static void
reading_what_is_no_result_directory_fails(void **state)
{
	struct result_set set;
	struct err err;

	(void)state;
	assert_int_equal(result_read(&set, in_top("nowhere"), &err), -1);
	assert_has(err.text, "nowhere: No such file or directory");
	result_free(&set);

	assert_int_equal(mkdir(in_top("void"), 0777), 0);
	assert_int_equal(result_read(&set, in_top("void"), &err), -1);
	assert_has(err.text, "void/windows.csv: No such file or directory");
	assert_int_equal(err.code, EXIT_FAILED);
	result_free(&set);

	assert_int_equal(mkdir(in_top("void/windows.csv"), 0777), 0);
	assert_int_equal(result_read(&set, in_top("void"), &err), -1);
	assert_has(err.text, "Is a directory");
	result_free(&set);
}

/* ---- the directory ---- */

static void
a_directory_is_made_with_its_parents(void **state)
{
	const char *dir = in_top("made/by//../by/it/");
	struct err err;
	struct result *r = result_create(dir, NULL, &err);

	(void)state;
	assert_non_null(r);
	assert_int_equal(count_entries(dir), 2);
	assert_int_equal(result_close(r, &err), 0);
}

static void
an_empty_directory_is_taken(void **state)
{
	const char *dir = fresh();
	struct result_set set;
	struct err err;
	struct result *r;

	(void)state;
	assert_int_equal(mkdir(dir, 0777), 0);
	r = result_create(dir, NULL, &err);
	assert_non_null(r);
	assert_int_equal(result_close(r, &err), 0);
	assert_int_equal(result_read(&set, dir, &err), 0);
	assert_int_equal(set.nb_windows, 0);
	assert_non_null(set.columns);
	assert_null(set.result);
	result_free(&set);
}

static void
a_directory_in_use_is_left_alone(void **state)
{
	const char *dir = fresh();
	struct err err;
	struct result *r = result_create(dir, NULL, &err);

	(void)state;
	assert_non_null(r);
	assert_null(result_create(dir, NULL, &err));
	assert_has(err.text, "another process writes it");
	assert_has(err.text, dir);
	assert_int_equal(err.code, EXIT_FAILED);
	assert_int_equal(count_entries(dir), 2);
	assert_int_equal(result_close(r, &err), 0);
	assert_null(result_create(dir, NULL, &err));
	assert_has(err.text, "holds other results");
	assert_has(err.text, dir);
	assert_int_equal(count_entries(dir), 2);

	/* Anything counts, a hidden file too. */
	dir = fresh();
	assert_int_equal(mkdir(dir, 0777), 0);
	fclose(fopen(in_top(strcat(strcpy((char[64]){ 0 }, strrchr(dir, '/') + 1), "/.hidden")),
			"w"));
	assert_null(result_create(dir, NULL, &err));
	assert_has(err.text, "holds other results");
	assert_int_equal(count_entries(dir), 1);
}

static void
a_directory_that_cannot_be_is_refused(void **state)
{
	struct err err;

	(void)state;
	fclose(fopen(in_top("file"), "w"));
	assert_null(result_create(in_top("file"), NULL, &err));
	assert_has(err.text, "file: Not a directory");
	assert_null(result_create(in_top("file/below"), NULL, &err));
	assert_has(err.text, "Not a directory");
	assert_null(result_create(in_top("new/file/../../file/x"), NULL, &err));
	assert_int_equal(count_entries(in_top("new")), -1);
	assert_null(result_create("", NULL, &err));
	assert_has(err.text, "empty");
	assert_null(result_create("/proc/results", NULL, &err));
	assert_has(err.text, "/proc/results: ");
}

/* Root may write everywhere, so that this is asked of somebody else. */
static void
a_directory_without_permission_is_refused(void **state)
{
	const char *dir = fresh();
	int status;
	pid_t child;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(mkdir(dir, 0755), 0);
	assert_int_equal(chmod(top, 0755), 0);
	child = fork();
	if (child == 0) {
		struct err err;

		if (setgid(65534) != 0 || setuid(65534) != 0)
			_exit(2);
		_exit(result_create(dir, NULL, &err) == NULL && strstr(err.text, "denied") != NULL
						? 0
						: 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(count_entries(dir), 0);
}

/* No room for the header, and room for that but not for columns.json. */
static void
a_failed_creation_leaves_nothing(void **state)
{
	static const rlim_t room[] = { 10, sizeof(columns) + 100 };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(room); i++) {
		const char *dir = in_top("half/way/there");
		struct err err;

		limit_files(room[i]);
		assert_null(result_create(dir, NULL, &err));
		assert_has(err.text,
				i == 0 ? "windows.csv: File too large"
				       : "columns.json.tmp: File too large");
		assert_int_equal(count_entries(in_top("half")), -1);

		assert_int_equal(mkdir(in_top("there"), 0777), 0);
		assert_null(result_create(in_top("there"), NULL, &err));
		assert_int_equal(count_entries(in_top("there")), 0);
		assert_int_equal(rmdir(in_top("there")), 0);
		limit_files(RLIM_INFINITY);
	}
}

static void
a_row_that_does_not_fit_is_taken_back(void **state)
{
	const char *dir = fresh();
	struct result_window w = sample(1, 1, 1);
	struct result_set set;
	struct err err;
	struct result *r = result_create(dir, NULL, &err);
	char *before, *after;

	(void)state;
	assert_non_null(r);
	assert_int_equal(result_add_window(r, &w, &err), 0);
	before = slurp(dir, "windows.csv");
	limit_files(strlen(before) + 20);
	assert_int_equal(result_add_window(r, &w, &err), -1);
	limit_files(RLIM_INFINITY);
	assert_int_equal(err.code, EXIT_FAILED);
	assert_has(err.text, dir);
	assert_has(err.text, "/windows.csv: File too large");
	after = slurp(dir, "windows.csv");
	assert_string_equal(before, after);

	w.window = 2;
	assert_int_equal(result_add_window(r, &w, &err), 0);
	assert_int_equal(result_close(r, &err), 0);
	assert_int_equal(result_read(&set, dir, &err), 0);
	assert_int_equal(set.nb_windows, 2);
	assert_int_equal(set.windows[1].window, 2);
	result_free(&set);
	free(before);
	free(after);
}

static void
a_killed_run_leaves_whole_rows(void **state)
{
	const char *dir = fresh();
	struct result_set set;
	struct err err;
	int status;
	pid_t child = fork();

	(void)state;
	if (child == 0) {
		struct result *r = result_create(dir, NULL, &err);

		for (uint64_t i = 1; r != NULL; i++) {
			struct result_window w = sample(1, i, 1);

			if (result_add_window(r, &w, &err) != 0)
				break;
		}
		_exit(1);
	}
	usleep(300000);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(result_read(&set, dir, &err), 0);
	assert_true(set.nb_windows > 0);
	assert_false(set.cut_short);
	assert_int_equal(set.windows[set.nb_windows - 1].window, set.nb_windows);
	result_free(&set);
}

static void
bursts_are_written_and_read(void **state)
{
	static const uint64_t counts[33] = { [0] = 500, [3] = 7, [32] = 100000 };
	const char *dir = fresh();
	struct result_window w = sample(4, 2, 1);
	struct result_set set;
	struct err err;
	struct result *r = result_create(dir, NULL, &err);
	char *text;

	(void)state;
	assert_int_equal(result_add_bursts(r, &w, counts, COUNT_OF(counts), &err), 0);
	w.lcore = 2;
	assert_int_equal(result_add_bursts(r, &w, counts, 1, &err), 0);
	assert_int_equal(result_close(r, &err), 0);
	text = slurp(dir, "bursts.csv");
	assert_string_equal(text,
			"run_id,visit,window,lcore,burst_size,count\n"
			"r1,4,2,1,0,500\nr1,4,2,1,3,7\nr1,4,2,1,32,100000\n"
			"r1,4,2,2,0,500\n");
	free(text);
	assert_int_equal(result_read(&set, dir, &err), 0);
	assert_int_equal(set.nb_bursts, 4);
	assert_int_equal(set.bursts[2].burst_size, 32);
	assert_int_equal(set.bursts[2].count, 100000);
	assert_string_equal(set.bursts[3].run_id, "r1");
	result_free(&set);
}

static void
bursts_that_do_not_fit_are_taken_back(void **state)
{
	static const uint64_t counts[33] = { [0] = 500, [32] = 100000 };
	const char *dir = fresh();
	struct result_window w = sample(1, 1, 1);
	struct err err;
	struct result *r = result_create(dir, NULL, &err);
	char *text;

	(void)state;
	limit_files(20);
	assert_int_equal(result_add_bursts(r, &w, counts, COUNT_OF(counts), &err), -1);
	assert_has(err.text, "/bursts.csv: File too large");
	assert_null(slurp(dir, "bursts.csv"));
	limit_files(60);
	assert_int_equal(result_add_bursts(r, &w, counts, COUNT_OF(counts), &err), -1);
	limit_files(RLIM_INFINITY);
	text = slurp(dir, "bursts.csv");
	assert_string_equal(text, "run_id,visit,window,lcore,burst_size,count\n");
	free(text);
	assert_int_equal(result_close(r, &err), 0);
}

static void
json_replaces_a_file_as_a_whole(void **state)
{
	const char *dir = fresh();
	json_t *small = json_pack("{s:i}", "schema", 1);
	json_t *large = json_pack("{s:s}", "schema", columns);
	struct result_set set;
	struct err err;
	struct result *r = result_create(dir, NULL, &err);
	char *text;

	(void)state;
	assert_int_equal(result_write_json(r, "result.json", large, &err), 0);
	assert_int_equal(result_write_json(r, "result.json", small, &err), 0);
	limit_files(100);
	assert_int_equal(result_write_json(r, "result.json", large, &err), -1);
	limit_files(RLIM_INFINITY);
	assert_has(err.text, "/result.json.tmp: File too large");
	text = slurp(dir, "result.json");
	assert_string_equal(text, "{\n  \"schema\": 1\n}\n");
	free(text);
	assert_int_equal(count_entries(dir), 3);
	assert_int_equal(result_write_json(r, "environment.json", small, &err), 0);
	assert_int_equal(result_close(r, &err), 0);

	assert_int_equal(result_read(&set, dir, &err), 0);
	assert_true(json_equal(set.result, small));
	assert_true(json_equal(set.environment, small));
	result_free(&set);
	json_decref(small);
	json_decref(large);
}

static void
broken_json_is_refused_by_name(void **state)
{
	static const char *const texts[] = { "{\"a\": ", "[1]", "", "{\"a\":1,\"a\":2}" };
	const char *dir = fresh();
	struct result_set set;
	struct err err;
	struct result *r = result_create(dir, NULL, &err);
	char path[600];

	(void)state;
	assert_int_equal(result_close(r, &err), 0);
	snprintf(path, sizeof(path), "%s/result.json", dir);
	for (size_t i = 0; i < COUNT_OF(texts); i++) {
		FILE *out = fopen(path, "w");

		fputs(texts[i], out);
		fclose(out);
		assert_int_equal(result_read(&set, dir, &err), -1);
		assert_has(err.text, path);
		assert_int_equal(err.code, EXIT_FAILED);
		result_free(&set);
	}
}

static void
log_lines_carry_the_time(void **state)
{
	const char *dir = fresh();
	struct err err;
	struct result *r = result_create(dir, NULL, &err);
	char *text;

	(void)state;
	result_log(r, "set %s to %d", "state", 3);
	result_log(r, "two\nlines");
	assert_int_equal(result_close(r, &err), 0);
	text = slurp(dir, "log.txt");
	assert_true(text[4] == '-' && text[10] == 'T' && text[23] == 'Z' && text[24] == ' ');
	assert_has(text, "Z set state to 3\n");
	assert_has(text, "Z two lines\n");
	free(text);
}

static void
a_log_that_could_not_be_written_is_told_at_the_end(void **state)
{
	const char *dir = fresh();
	struct err err;
	struct result *r = result_create(dir, NULL, &err);

	(void)state;
	limit_files(10);
	result_log(r, "more than ten bytes");
	limit_files(RLIM_INFINITY);
	assert_int_equal(result_close(r, &err), -1);
	assert_has(err.text, "/log.txt: File too large");
	assert_int_equal(err.code, EXIT_FAILED);
	assert_int_equal(result_close(NULL, &err), 0);
}

/* ---- estimates ---- */

/* The estimates of the only scenario there is; a borrowed reference into *all. */
static const json_t *
only_scenario(const struct result_window *w, size_t n, json_t **all)
{
	const json_t *list;

	*all = result_estimates_json(w, n);
	list = json_object_get(*all, "scenarios");
	assert_int_equal(json_array_size(list), 1);
	return json_array_get(list, 0);
}

static void
assert_real(const json_t *object, const char *name, double wanted)
{
	double got = json_number_value(json_object_get(object, name));

	if (fabs(got - wanted) <= 1e-12 * fabs(wanted))
		return;
	print_error("%s is %.17g, not %.17g\n", name, got, wanted);
	fail();
}

static void
assert_count(const json_t *object, const char *name, json_int_t wanted)
{
	assert_true(json_is_integer(json_object_get(object, name)));
	assert_int_equal(json_integer_value(json_object_get(object, name)), wanted);
}

static void
estimates_leave_the_warm_up_out(void **state)
{
	struct result_window w[] = { at_pps(0, 5), at_pps(1, 1e6), at_pps(2, 1.2e6),
		at_pps(3, 1.4e6) };
	const json_t *e, *all;
	json_t *json;

	(void)state;
	w[3].duration_ns *= 2; /* half the rate, twice the weight */
	w[3].tsc_delta *= 2;
	e = only_scenario(w, COUNT_OF(w), &json);
	all = json_object_get(e, "all");
	assert_count(e, "windows", 3);
	assert_count(e, "warmup_windows", 1);
	assert_count(e, "tainted_windows", 0);
	assert_count(all, "windows", 3);
	/* 3.6 million packets in 4 s and 12e9 ticks */
	assert_real(all, "pps", 0.9e6);
	assert_real(all, "tsc_cycles_per_packet", 12e9 / 3.6e6);
	/* of 1.0, 1.2 and 0.7 million */
	assert_real(all, "pps_mean", 2.9e6 / 3);
	assert_real(all, "pps_mean_half_width",
			4.3026527297494618 *
					sqrt((pow(1 - 2.9 / 3, 2) + pow(1.2 - 2.9 / 3, 2) +
							     pow(0.7 - 2.9 / 3, 2)) /
							2 / 3) *
					1e6);
	assert_true(json_equal(all, json_object_get(e, "untainted")));
	json_decref(json);
}

static void
estimates_stand_with_and_without_taint(void **state)
{
	struct result_window w[] = { at_pps(1, 1e6), at_pps(2, 2e6), at_pps(3, 4e6),
		at_pps(4, 3e6) };
	const json_t *e;
	json_t *json;

	(void)state;
	w[2].tainted = 1;
	strcpy(w[2].taint, "irqs;ctxsw");
	strcpy(w[3].taint, "controller"); /* stands there but taints nothing */
	e = only_scenario(w, COUNT_OF(w), &json);
	assert_count(e, "tainted_windows", 1);
	assert_count(json_object_get(e, "causes"), "irqs", 1);
	assert_count(json_object_get(e, "causes"), "ctxsw", 1);
	assert_count(json_object_get(e, "causes"), "controller", 1);
	assert_real(json_object_get(e, "all"), "pps", 2.5e6);
	assert_real(json_object_get(e, "untainted"), "pps", 2e6);
	assert_count(json_object_get(e, "untainted"), "windows", 3);
	json_decref(json);

	for (size_t i = 0; i < COUNT_OF(w); i++)
		w[i].tainted = 1;
	e = only_scenario(w, COUNT_OF(w), &json);
	assert_true(json_is_null(json_object_get(e, "untainted")));
	json_decref(json);
}

static void
estimates_add_up_the_lcores(void **state)
{
	/* Out of order, as a sorted or joined file may be. */
	struct result_window w[] = { sample(1, 2, 2), sample(1, 1, 1), sample(1, 1, 2),
		sample(1, 2, 1) };
	const json_t *e, *all;
	json_t *json;

	(void)state;
	w[0].rx_packets = 3000000;
	w[0].tainted = 1; /* one lcore taints the window */
	strcpy(w[0].taint, "irqs");
	e = only_scenario(w, COUNT_OF(w), &json);
	all = json_object_get(e, "all");
	assert_count(e, "windows", 2);
	assert_count(e, "tainted_windows", 1);
	assert_real(all, "pps", 3e6); /* 2e6 and 4e6 */
	assert_real(all, "tsc_cycles_per_packet", 12e9 / 6e6);
	assert_real(json_object_get(e, "untainted"), "pps", 2e6);
	assert_true(json_is_null(
			json_object_get(json_object_get(e, "untainted"), "pps_mean_half_width")));
	json_decref(json);
}

static void
scenarios_stand_in_their_order(void **state)
{
	struct result_window w[] = { sample(1, 1, 1), sample(2, 1, 1), sample(3, 1, 1) };
	json_t *json, *list;

	(void)state;
	strcpy(w[0].scenario, "c1+keep");
	strcpy(w[1].scenario, "c1+clear");
	strcpy(w[2].scenario, "c1+keep");
	json = result_estimates_json(w, COUNT_OF(w));
	list = json_object_get(json, "scenarios");
	assert_int_equal(json_array_size(list), 2);
	assert_string_equal(json_string_value(json_object_get(json_array_get(list, 0), "scenario")),
			"c1+keep");
	assert_count(json_array_get(list, 0), "windows", 2);
	assert_count(json_array_get(list, 1), "windows", 1);
	json_decref(json);
}

static void
windows_without_packets_have_no_cycles(void **state)
{
	struct result_window w[] = { at_pps(1, 0), at_pps(2, 0) };
	const json_t *all;
	json_t *json;

	(void)state;
	all = json_object_get(only_scenario(w, COUNT_OF(w), &json), "all");
	assert_real(all, "pps", 0);
	assert_true(json_is_null(json_object_get(all, "tsc_cycles_per_packet")));
	json_decref(json);
	/* Nor has a window without a length a rate. */
	w[0].duration_ns = w[1].duration_ns = 0;
	assert_count(only_scenario(w, COUNT_OF(w), &json), "windows", 0);
	assert_true(json_is_null(json_object_get(
			json_array_get(json_object_get(json, "scenarios"), 0), "all")));
	json_decref(json);
}

static void
windows_json_has_null_for_unknown(void **state)
{
	struct result_window w = sample(1, 1, 1);
	const json_t *object;
	json_t *json;

	(void)state;
	strcpy(w.host, "not\xffUTF-8");
	w.smi = RESULT_UNKNOWN - 1; /* more than JSON's integers hold */
	json = result_windows_json(&w, 1);
	object = json_array_get(json, 0);
	assert_int_equal(json_object_size(object), 45);
	assert_true(json_is_null(json_object_get(object, "irqs")));
	assert_true(json_is_null(json_object_get(object, "busy_cycles_per_packet")));
	assert_count(object, "emulated", 0);
	assert_string_equal(json_string_value(json_object_get(object, "host")), "not?UTF-8");
	assert_real(object, "smi", 18446744073709551614.0);
	assert_real(object, "pps", 1e6);
	json_decref(json);
}

/* ---- the table ---- */

static void
assert_narrow(const char *text)
{
	for (const char *end; (end = strchr(text, '\n')) != NULL; text = end + 1)
		assert_true(end - text <= 100);
	assert_true(*text == '\0');
}

static void
table_shows_windows_and_their_mean(void **state)
{
	struct result_window w[] = { at_pps(0, 0.9e6), at_pps(1, 1e6), at_pps(2, 1.2e6) };
	char *text;

	(void)state;
	w[2].tx_dropped = 17;
	text = table_of(w, COUNT_OF(w));
	assert_has(text,
			"as-is    1/warm-up        1   0.90000            3333.3    1.00          0\n");
	assert_has(text,
			"as-is    1/2              1    1.2000            2500.0    1.00         17\n");
	assert_has(text,
			"as-is    all               2       0    1.1000            2727.3    1.1000      1.27\n");
	assert_has(text, "95 % t interval");
	assert_has_not(text, "sum");
	assert_has_not(text, "untainted");
	assert_has_not(text, "emulated");
	assert_has_not(text, "controller");
	assert_narrow(text);
	free(text);
}

static void
table_tells_taint(void **state)
{
	struct result_window w[] = { sample(1, 1, 1), sample(1, 2, 1) };
	char *text;

	(void)state;
	strcpy(w[0].taint, "irqs;ctxsw;steal;smi;unsaturated;missed;nombuf;freq;state;controller");
	w[0].tainted = 1;
	text = table_of(w, COUNT_OF(w));
	assert_has(text, "irqs;ctxsw;");
	assert_has(text, "unsaturated");
	assert_has(text, "controller\n");
	assert_has(text, "untainted         1       0");
	assert_has(text, "does not count as taint");
	assert_narrow(text);
	free(text);

	w[1].tainted = 1;
	strcpy(w[1].taint, "smi");
	text = table_of(w, COUNT_OF(w));
	assert_has(text, "tainted only      2       2");
	assert_has_not(text, "as-is    all");
	free(text);
}

static void
table_adds_up_several_lcores(void **state)
{
	struct result_window w[] = { sample(1, 1, 1), sample(1, 1, 2) };
	char *text;

	(void)state;
	strcpy(w[0].taint, "irqs;smi");
	strcpy(w[1].taint, "smi;state");
	w[0].tainted = w[1].tainted = 1;
	text = table_of(w, COUNT_OF(w));
	assert_has(text, "sum    2.0000            3000.0    1.00          0 irqs;smi;state\n");
	assert_has(text, "lcore       1 on CPU 1, sibling CPU unknown (smt)\n");
	assert_has(text, "lcore       2 on CPU 2");
	free(text);
}

static void
table_says_emulated(void **state)
{
	struct result_window w = sample(1, 1, 1);
	char *text;

	(void)state;
	w.emulated = 1;
	text = table_of(&w, 1);
	assert_has(text, "emulated");
	free(text);
}

static void
table_takes_any_text(void **state)
{
	struct result_window w;
	char *text;

	(void)state;
	memset(&w, 0, sizeof(w));
	memset(w.host, 'h', RESULT_TEXT_MAX - 1);
	memset(w.run_id, 'r', RESULT_TEXT_MAX - 1);
	memset(w.source, '\x1b', RESULT_TEXT_MAX - 1);
	memset(w.scenario, '\n', RESULT_TEXT_MAX - 1);
	memset(w.taint, '\a', 60);
	text = table_of(&w, 1);
	assert_null(strpbrk(text, "\x1b\a\r"));
	assert_narrow(text);
	free(text);

	/* A scenario that is a little long stays whole, on a line of its own. */
	w = sample(1, 1, 1);
	strcpy(w.scenario, "c1+clear+wake:1000+limit:50");
	text = table_of(&w, 1);
	assert_has(text, "\nc1+clear+wake:1000+limit:50\n");
	assert_narrow(text);
	free(text);

	result_window_init(&w);
	text = table_of(&w, 1);
	assert_has(text, "unknown");
	assert_narrow(text);
	free(text);
	text = table_of(NULL, 0);
	assert_string_equal(text, "no windows\n");
	free(text);
}

/* ---- */

static int
set_up(void **state)
{
	(void)state;
	return mkdtemp(top) == NULL ? -1 : 0;
}

static int
tear_down(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", top);
	return system(command);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(header_holds_the_agreed_columns),
		cmocka_unit_test(columns_json_describes_every_column),
		cmocka_unit_test(documentation_describes_the_same_columns),
		cmocka_unit_test(rows_come_back_as_they_were),
		cmocka_unit_test(unknown_figures_are_empty),
		cmocka_unit_test(numbers_are_short_where_that_loses_nothing),
		cmocka_unit_test(quoting_is_that_of_rfc_4180),
		cmocka_unit_test(a_full_stream_is_told),
		cmocka_unit_test(packets_are_those_sent_where_none_are_received),
		cmocka_unit_test(other_spellings_of_the_same_file_are_read),
		cmocka_unit_test(a_row_without_its_end_is_dropped),
		cmocka_unit_test(broken_rows_are_refused_by_line_and_column),
		cmocka_unit_test(a_nul_byte_is_refused),
		cmocka_unit_test(a_field_that_is_too_long_is_refused),
		cmocka_unit_test(broken_headers_are_refused),
		cmocka_unit_test(reading_what_is_no_result_directory_fails),
		cmocka_unit_test(a_directory_is_made_with_its_parents),
		cmocka_unit_test(an_empty_directory_is_taken),
		cmocka_unit_test(a_directory_in_use_is_left_alone),
		cmocka_unit_test(a_directory_that_cannot_be_is_refused),
		cmocka_unit_test(a_directory_without_permission_is_refused),
		cmocka_unit_test(a_failed_creation_leaves_nothing),
		cmocka_unit_test(a_row_that_does_not_fit_is_taken_back),
		cmocka_unit_test(a_killed_run_leaves_whole_rows),
		cmocka_unit_test(bursts_are_written_and_read),
		cmocka_unit_test(bursts_that_do_not_fit_are_taken_back),
		cmocka_unit_test(json_replaces_a_file_as_a_whole),
		cmocka_unit_test(broken_json_is_refused_by_name),
		cmocka_unit_test(log_lines_carry_the_time),
		cmocka_unit_test(a_log_that_could_not_be_written_is_told_at_the_end),
		cmocka_unit_test(estimates_leave_the_warm_up_out),
		cmocka_unit_test(estimates_stand_with_and_without_taint),
		cmocka_unit_test(estimates_add_up_the_lcores),
		cmocka_unit_test(scenarios_stand_in_their_order),
		cmocka_unit_test(windows_without_packets_have_no_cycles),
		cmocka_unit_test(windows_json_has_null_for_unknown),
		cmocka_unit_test(table_shows_windows_and_their_mean),
		cmocka_unit_test(table_tells_taint),
		cmocka_unit_test(table_adds_up_several_lcores),
		cmocka_unit_test(table_says_emulated),
		cmocka_unit_test(table_takes_any_text),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
