/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "csv.h"
#include "result.h"

#define FIELDS_MAX 256 /* of a row that is read */

/* ---- the columns ---- */

enum column_type { COLUMN_TEXT, COLUMN_INTEGER, COLUMN_FLAG, COLUMN_NUMBER };

static const char *const type_words[] = {
	[COLUMN_TEXT] = "text",
	[COLUMN_INTEGER] = "integer",
	[COLUMN_FLAG] = "flag",
	[COLUMN_NUMBER] = "number",
};

struct column {
	const char *name;
	enum column_type type;
	bool needed; /* without it nothing can be said about a window */
	const char *unit;
	const char *meaning;
	size_t offset; /* in the struct of the row */
};

/* A CSV file: its columns and the struct that holds a row. */
struct table {
	const char *file;
	const struct column *columns;
	size_t nb_columns;
	size_t row_size;
};

_Static_assert(CSV_FIELD_MAX == RESULT_TEXT_MAX, "a text column holds a field");

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define COLUMN(row, field, kind, must, unit_word, text) \
	{ \
		.name = #field, .type = COLUMN_##kind, .needed = must, .unit = unit_word, \
		.meaning = text, .offset = offsetof(struct row, field), \
	}
#define W(field, kind, unit, meaning) COLUMN(result_window, field, kind, false, unit, meaning)
#define W_NEEDED(field, kind, unit, meaning) COLUMN(result_window, field, kind, true, unit, meaning)
#define B(field, kind, unit, meaning) COLUMN(result_burst, field, kind, true, unit, meaning)

/* Only the order here makes the order in the file; new columns go at the end. */
static const struct column window_columns[] = {
	W_NEEDED(schema, INTEGER, "", "version of these columns"),
	W(run_id, TEXT, "", "the run; the same in all its rows"),
	W(utc_start, TEXT, "ISO 8601",
			"when the window began, UTC; setting the clock during the run does not change it"),
	W(host, TEXT, "", "name of the machine"),
	W_NEEDED(scenario, TEXT, "", "what the sibling did; as-is where nothing was changed"),
	W(block, INTEGER, "", "block of visits, from 1"),
	W(position, INTEGER, "", "of the visit in its block, from 1"),
	W_NEEDED(visit, INTEGER, "", "visit to a scenario, from 1 over the run"),
	W_NEEDED(window, INTEGER, "", "window of the visit, from 1; 0 is the warm-up"),
	W_NEEDED(warmup, FLAG, "", "1 for a warm-up row, left out of all estimates"),
	W_NEEDED(tainted, FLAG, "", "1 where taint names a cause other than controller"),
	W(taint, TEXT, "", "what disturbed the window, causes joined by ;"),
	W_NEEDED(mode, TEXT, "", "forwarding mode"),
	W(source, TEXT, "", "where the packets come from"),
	W(burst, INTEGER, "packets", "most packets taken in one poll"),
	W(pkt_len, INTEGER, "bytes", "length of a packet without FCS; the mean of a capture"),
	W_NEEDED(lcore, INTEGER, "", "DPDK lcore that was measured"),
	W(cpu, INTEGER, "", "CPU of that lcore"),
	W(sibling_cpu, INTEGER, "", "CPU whose idling is controlled"),
	W(relation, TEXT, "", "of the two CPUs: smt, l2, l3, package, numa or none"),
	W_NEEDED(duration_ns, INTEGER, "ns", "length of the window, CLOCK_MONOTONIC_RAW"),
	W_NEEDED(tsc_delta, INTEGER, "TSC cycles", "length of the window, TSC"),
	W(tsc_hz, INTEGER, "Hz", "TSC frequency, calibrated outside every window"),
	W_NEEDED(rx_packets, INTEGER, "packets", "received"),
	W_NEEDED(tx_packets, INTEGER, "packets", "sent"),
	W(tx_dropped, INTEGER, "packets", "refused by the driver or by the mode, and freed"),
	W(rx_missed, INTEGER, "packets", "lost by the port before they were polled"),
	W(rx_nombuf, INTEGER, "packets", "not received because the pool was empty"),
	W(polls, INTEGER, "polls", "turns of the loop over a receive queue"),
	W(empty_polls, INTEGER, "polls", "of these, turns that received nothing"),
	W(pps, NUMBER, "packets/s",
			"packets over duration_ns; packets sent in txonly and flowgen, else received"),
	W(tsc_cycles_per_packet, NUMBER, "TSC cycles/packet",
			"tsc_delta over packets: the whole loop, empty polls included"),
	W(busy_cycles_per_packet, NUMBER, "TSC cycles/packet",
			"TSC cycles of turns that moved packets, over packets"),
	W(core_cycles_per_packet, NUMBER, "core cycles/packet",
			"unhalted core cycles over packets, perf event"),
	W(instructions_per_packet, NUMBER, "instructions/packet",
			"instructions retired over packets, perf event"),
	W(irqs, INTEGER, "interrupts", "on the measured CPU"),
	W(ctx_switches, INTEGER, "switches", "involuntary, of the measured thread"),
	W(steal_ns, INTEGER, "ns", "taken from the measured CPU by the hypervisor"),
	W(smi, INTEGER, "SMIs", "system management interrupts"),
	W(sibling_idle_entries, INTEGER, "entries", "of the sibling into idle states"),
	W(sibling_idle_ns, INTEGER, "ns", "that the sibling spent in idle states"),
	W(sibling_state, TEXT, "", "idle state in which the sibling spent most of it"),
	W(sibling_spec_ctrl, TEXT, "hex",
			"distinct IA32_SPEC_CTRL values sampled on the sibling, joined by ;"),
	W(emulated, FLAG, "", "1 on an emulated machine, whose figures say nothing of a real one"),
	W(noisy_lookups, INTEGER, "look-ups/packet",
			"reads, writes and reads with writes in noisy mode"),
};

static const struct column burst_columns[] = {
	B(run_id, TEXT, "", "the run, as in windows.csv"),
	B(visit, INTEGER, "", "visit to a scenario, as in windows.csv"),
	B(window, INTEGER, "", "window of the visit, as in windows.csv"),
	B(lcore, INTEGER, "", "DPDK lcore, as in windows.csv"),
	B(burst_size, INTEGER, "packets", "moved in one turn; 0 is an empty poll"),
	B(count, INTEGER, "polls", "turns of that size"),
};

static const struct table windows_table = {
	.file = "windows.csv",
	.columns = window_columns,
	.nb_columns = COUNT_OF(window_columns),
	.row_size = sizeof(struct result_window),
};

static const struct table bursts_table = {
	.file = "bursts.csv",
	.columns = burst_columns,
	.nb_columns = COUNT_OF(burst_columns),
	.row_size = sizeof(struct result_burst),
};

static char *
text_at(const struct column *col, const void *row)
{
	return (char *)(uintptr_t)row + col->offset;
}

static uint64_t *
integer_at(const struct column *col, const void *row)
{
	return (uint64_t *)((char *)(uintptr_t)row + col->offset);
}

static double *
number_at(const struct column *col, const void *row)
{
	return (double *)((char *)(uintptr_t)row + col->offset);
}

static void
row_init(const struct table *table, void *row)
{
	memset(row, 0, table->row_size);
	for (size_t i = 0; i < table->nb_columns; i++) {
		const struct column *col = &table->columns[i];

		if (col->type == COLUMN_NUMBER)
			*number_at(col, row) = NAN;
		else if (col->type != COLUMN_TEXT)
			*integer_at(col, row) = RESULT_UNKNOWN;
	}
}

void
result_window_init(struct result_window *w)
{
	row_init(&windows_table, w);
	w->schema = RESULT_SCHEMA;
}

uint64_t
result_packets(const struct result_window *w)
{
	if (strcmp(w->mode, "txonly") == 0 || strcmp(w->mode, "flowgen") == 0)
		return w->tx_packets;
	return w->rx_packets;
}

/* ---- rows as JSON ---- */

json_t *
result_text_json(const char *text)
{
	json_t *json = json_string(text);
	char copy[RESULT_TEXT_MAX];
	size_t i;

	if (json != NULL)
		return json;
	for (i = 0; text[i] != '\0' && i < sizeof(copy) - 1; i++)
		copy[i] = (unsigned char)text[i] < 0x80 ? text[i] : '?';
	copy[i] = '\0';
	return json_string(copy);
}

json_t *
result_number_json(double number)
{
	return isfinite(number) ? json_real(number) : json_null();
}

json_t *
result_integer_json(uint64_t integer)
{
	if (integer == RESULT_UNKNOWN)
		return json_null();
	return integer <= INT64_MAX ? json_integer((json_int_t)integer)
				    : json_real((double)integer);
}

static json_t *
row_json(const struct table *table, const void *row)
{
	json_t *object = json_object();

	for (size_t i = 0; i < table->nb_columns; i++) {
		const struct column *col = &table->columns[i];
		json_t *value;

		if (col->type == COLUMN_TEXT)
			value = result_text_json(text_at(col, row));
		else if (col->type == COLUMN_NUMBER)
			value = result_number_json(*number_at(col, row));
		else
			value = result_integer_json(*integer_at(col, row));
		json_object_set_new(object, col->name, value);
	}
	return object;
}

json_t *
result_windows_json(const struct result_window *windows, size_t n)
{
	json_t *array = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(array, row_json(&windows_table, &windows[i]));
	return array;
}

static json_t *
table_columns(const struct table *table)
{
	json_t *names = json_array();

	for (size_t i = 0; i < table->nb_columns; i++)
		json_array_append_new(names, json_string(table->columns[i].name));
	return names;
}

json_t *
result_window_columns(void)
{
	return table_columns(&windows_table);
}

json_t *
result_burst_columns(void)
{
	return table_columns(&bursts_table);
}

/* What columns.json says of one file. */
static json_t *
describe_columns(const struct table *table)
{
	json_t *array = json_array();

	for (size_t i = 0; i < table->nb_columns; i++) {
		const struct column *col = &table->columns[i];

		json_array_append_new(array,
				json_pack("{s:s, s:s, s:s, s:s}", "name", col->name, "unit",
						col->unit, "type", type_words[col->type], "meaning",
						col->meaning));
	}
	return array;
}

/* ---- rows as CSV, RFC 4180 ---- */

static void
print_text(FILE *out, const char *text)
{
	if (strpbrk(text, ",\"\r\n") == NULL) {
		fputs(text, out);
		return;
	}
	fputc('"', out);
	for (; *text != '\0'; text++) {
		if (*text == '"')
			fputc('"', out);
		fputc(*text, out);
	}
	fputc('"', out);
}

/* As few digits as give the same double when read. */
static void
print_number(FILE *out, double number)
{
	char text[32];

	if (!isfinite(number))
		return;
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, number);
		if (strtod(text, NULL) == number)
			break;
	}
	fputs(text, out);
}

static int
print_header(FILE *out, const struct table *table)
{
	for (size_t i = 0; i < table->nb_columns; i++)
		fprintf(out, "%s%s", i == 0 ? "" : ",", table->columns[i].name);
	return fputc('\n', out) == EOF || ferror(out) != 0 ? -1 : 0;
}

static int
print_row(FILE *out, const struct table *table, const void *row)
{
	for (size_t i = 0; i < table->nb_columns; i++) {
		const struct column *col = &table->columns[i];

		if (i != 0)
			fputc(',', out);
		if (col->type == COLUMN_TEXT)
			print_text(out, text_at(col, row));
		else if (col->type == COLUMN_NUMBER)
			print_number(out, *number_at(col, row));
		else if (*integer_at(col, row) != RESULT_UNKNOWN)
			fprintf(out, "%ju", (uintmax_t)*integer_at(col, row));
	}
	return fputc('\n', out) == EOF || ferror(out) != 0 ? -1 : 0;
}

int
result_print_csv_header(FILE *out)
{
	return print_header(out, &windows_table);
}

int
result_print_csv(FILE *out, const struct result_window *w)
{
	return print_row(out, &windows_table, w);
}

/* ---- writing the directory ---- */

/* Directories made by result_create(), to be taken back should there be nothing to keep. */
struct made {
	char *path; /* the whole of it */
	size_t *length; /* leading part of path, of each directory made */
	size_t nb;
};

struct result {
	char *dir;
	bool ours; /* all that is in it was written by us */
	int dirfd;
	int windows; /* file descriptors; -1 where not open */
	int bursts;
	int log;
	struct made made;
	off_t windows_end, bursts_end; /* of what result_cut() leaves */
	struct err log_err; /* first failure of result_log(), told by result_close() */
};

static int
fail(const struct result *r, const char *name, int error, struct err *err)
{
	return err_set(err, EXIT_FAILED, "%s/%s: %s", r->dir, name, strerror(error));
}

/* Write all or nothing at the end of a file; one write() unless the disk is about to be full. */
static int
append(const struct result *r, int fd, const char *name, const char *bytes, size_t len,
		struct err *err)
{
	off_t before = lseek(fd, 0, SEEK_END);
	int error = before < 0 ? errno : 0;

	for (size_t done = 0; done < len && error == 0;) {
		ssize_t n = write(fd, bytes + done, len - done);

		if (n > 0)
			done += (size_t)n;
		else if (n == 0 || errno != EINTR)
			error = n == 0 ? EIO : errno;
	}
	if (error == 0)
		return 0;
	if (before >= 0 && ftruncate(fd, before) != 0)
		return err_set(err, EXIT_FAILED, "%s/%s: %s; the file ends in half a row", r->dir,
				name, strerror(error));
	return fail(r, name, error, err);
}

/* Create the file of a table with its header. Returns its descriptor, or -1 with err set. */
static int
create_table(const struct result *r, const struct table *table, struct err *err)
{
	int fd = openat(r->dirfd, table->file, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC,
			0666);
	char *header = NULL;
	size_t len;
	FILE *out;

	if (fd < 0)
		return fail(r, table->file, errno, err);
	out = open_memstream(&header, &len);
	if (out == NULL)
		goto no_memory;
	print_header(out, table);
	if (fclose(out) != 0)
		goto no_memory;
	if (append(r, fd, table->file, header, len, err) != 0)
		goto undo;
	free(header);
	return fd;

no_memory:
	fail(r, table->file, ENOMEM, err);
undo:
	free(header);
	close(fd);
	unlinkat(r->dirfd, table->file, 0);
	return -1;
}

static int
make_directories(const char *dir, struct made *made, struct err *err)
{
	made->path = strdup(dir);
	made->length = calloc(strlen(dir) + 1, sizeof(*made->length));
	if (made->path == NULL || made->length == NULL)
		return err_set(err, EXIT_FAILED, "%s: %s", dir, strerror(ENOMEM));

	for (size_t i = 1; i <= strlen(dir); i++) {
		if (dir[i] != '\0' && dir[i] != '/')
			continue;
		made->path[i] = '\0';
		if (mkdir(made->path, 0777) == 0)
			made->length[made->nb++] = i;
		else if (errno != EEXIST)
			return err_set(err, EXIT_FAILED, "%s: %s", made->path, strerror(errno));
		made->path[i] = dir[i];
	}
	return 0;
}

static void
remove_directories(struct made *made)
{
	while (made->nb > 0) {
		made->path[made->length[--made->nb]] = '\0';
		rmdir(made->path);
	}
}

/* The files of a result directory. */
static const char *const file_names[] = { "windows.csv", "bursts.csv", "columns.json", "log.txt",
	"result.json", "environment.json", RESULT_RESUME, RESULT_RESUME ".tmp" };

static void
remove_files(const struct result *r)
{
	for (size_t i = 0; i < COUNT_OF(file_names); i++)
		unlinkat(r->dirfd, file_names[i], 0);
}

/* Of a run that was killed while it wrote resume.json for the first time. */
static bool
is_unbegun(const char *name)
{
	return strcmp(name, RESULT_RESUME ".tmp") == 0;
}

static int
check_empty(const struct result *r, struct err *err)
{
	const char *advice = faccessat(r->dirfd, RESULT_RESUME, F_OK, 0) == 0
			? "an unfinished run; give --resume,"
			: "other results; give";
	int fd = openat(r->dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int rc = 0;

	if (stream == NULL) {
		rc = err_set(err, EXIT_FAILED, "%s: %s", r->dir, strerror(errno));
		if (fd >= 0)
			close(fd);
		return rc;
	}
	while (rc == 0 && (errno = 0, entry = readdir(stream)) != NULL)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
				!is_unbegun(entry->d_name))
			rc = err_set(err, EXIT_FAILED, "%s: holds %s a new or an empty directory",
					r->dir, advice);
	if (rc == 0 && errno != 0)
		rc = err_set(err, EXIT_FAILED, "%s: %s", r->dir, strerror(errno));
	closedir(stream);
	return rc;
}

/* The directory itself, which one process writes at a time. */
static int
open_directory(struct result *r, struct err *err)
{
	r->dirfd = open(r->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r->dirfd < 0)
		return err_set(err, EXIT_FAILED, "%s: %s", r->dir, strerror(errno));
	if (flock(r->dirfd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
		return err_set(err, EXIT_FAILED, "%s: another process writes it", r->dir);
	return 0;
}

static int
fill_directory(struct result *r, const json_t *begun, struct err *err)
{
	json_t *columns;
	int rc;

	if (open_directory(r, err) != 0)
		return -1;
	if (check_empty(r, err) != 0)
		return -1;
	r->ours = true;
	/* First of all, so that a run that is killed from now on can be begun again. */
	if (begun != NULL && result_write_json(r, RESULT_RESUME, begun, err) != 0)
		return -1;
	r->windows = create_table(r, &windows_table, err);
	if (r->windows < 0)
		return -1;
	columns = json_pack("{s:i, s:o, s:o}", "schema", RESULT_SCHEMA, windows_table.file,
			describe_columns(&windows_table), bursts_table.file,
			describe_columns(&bursts_table));
	rc = result_write_json(r, "columns.json", columns, err);
	json_decref(columns);
	return rc;
}

static void
free_result(struct result *r)
{
	const int fds[] = { r->windows, r->bursts, r->log, r->dirfd };

	for (size_t i = 0; i < COUNT_OF(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	free(r->made.path);
	free(r->made.length);
	free(r->dir);
	free(r);
}

static struct result *
new_result(const char *dir, struct err *err)
{
	struct result *r = malloc(sizeof(*r));

	if (r != NULL)
		*r = (struct result){
			.dir = strdup(dir), .dirfd = -1, .windows = -1, .bursts = -1, .log = -1
		};
	if (r != NULL && r->dir != NULL)
		return r;
	free(r);
	err_set(err, EXIT_FAILED, "%s: %s", dir, strerror(ENOMEM));
	return NULL;
}

struct result *
result_create(const char *dir, const json_t *begun, struct err *err)
{
	struct result *r = new_result(dir, err);
	int rc;

	if (r == NULL)
		return NULL;
	if (dir[0] == '\0')
		rc = err_set(err, EXIT_FAILED, "the name of the result directory is empty");
	else
		rc = make_directories(dir, &r->made, err);
	if (rc == 0)
		rc = fill_directory(r, begun, err);
	if (rc != 0) {
		result_discard(r);
		r = NULL;
	}
	return r;
}

int
result_clear(const char *dir, struct err *err)
{
	struct result *r = new_result(dir, err);
	int rc = r != NULL ? open_directory(r, err) : -1;

	if (rc == 0)
		remove_files(r);
	if (r != NULL)
		free_result(r);
	return rc;
}

int
result_complete(struct result *r, struct err *err)
{
	if (unlinkat(r->dirfd, RESULT_RESUME, 0) != 0 && errno != ENOENT)
		return fail(r, RESULT_RESUME, errno, err);
	return 0;
}

void
result_discard(struct result *r)
{
	if (r->ours)
		remove_files(r);
	remove_directories(&r->made);
	free_result(r);
}

int
result_add_window(struct result *r, const struct result_window *w, struct err *err)
{
	char *row = NULL;
	size_t len;
	FILE *out = open_memstream(&row, &len);
	int rc;

	if (out == NULL)
		return fail(r, windows_table.file, errno, err);
	print_row(out, &windows_table, w);
	if (fclose(out) == 0)
		rc = append(r, r->windows, windows_table.file, row, len, err);
	else
		rc = fail(r, windows_table.file, ENOMEM, err);
	free(row);
	return rc;
}

off_t
result_mark(const struct result *r)
{
	return lseek(r->windows, 0, SEEK_END);
}

int
result_rewind(struct result *r, off_t mark, struct err *err)
{
	return ftruncate(r->windows, mark) == 0 ? 0 : fail(r, windows_table.file, errno, err);
}

static void
print_bursts(FILE *out, const struct result_window *w, const uint64_t *counts, unsigned int nb)
{
	struct result_burst burst;

	row_init(&bursts_table, &burst);
	memcpy(burst.run_id, w->run_id, sizeof(burst.run_id));
	burst.visit = w->visit;
	burst.window = w->window;
	burst.lcore = w->lcore;
	for (unsigned int i = 0; i < nb; i++) {
		if (counts[i] == 0)
			continue;
		burst.burst_size = i;
		burst.count = counts[i];
		print_row(out, &bursts_table, &burst);
	}
}

int
result_add_bursts(struct result *r, const struct result_window *w, const uint64_t *counts,
		unsigned int nb, struct err *err)
{
	char *rows = NULL;
	size_t len;
	FILE *out;
	int rc;

	if (r->bursts < 0)
		r->bursts = create_table(r, &bursts_table, err);
	if (r->bursts < 0)
		return -1;
	out = open_memstream(&rows, &len);
	if (out == NULL)
		return fail(r, bursts_table.file, errno, err);
	print_bursts(out, w, counts, nb);
	if (fclose(out) == 0)
		rc = append(r, r->bursts, bursts_table.file, rows, len, err);
	else
		rc = fail(r, bursts_table.file, ENOMEM, err);
	free(rows);
	return rc;
}

/* ---- the time ---- */

static int64_t
read_clock(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/*
 * How far the wall clock was ahead of the time since boot at the first call. A time daemon that slews
 * speeds both up or down, and both go on in suspend: only setting the clock moves them apart.
 */
static int64_t
ahead_at_first(void)
{
	static int64_t ahead;
	static bool known;

	if (!known)
		ahead = read_clock(CLOCK_REALTIME) - read_clock(CLOCK_BOOTTIME);
	known = true;
	return ahead;
}

uint64_t
result_now(void)
{
	return (uint64_t)(ahead_at_first() + read_clock(CLOCK_BOOTTIME));
}

double
result_clock_set(void)
{
	int64_t before = ahead_at_first();

	return 1e-9 * (double)(read_clock(CLOCK_REALTIME) - read_clock(CLOCK_BOOTTIME) - before);
}

void
result_utc(char *text, size_t size)
{
	uint64_t now = result_now();
	time_t seconds = (time_t)(now / 1000000000);
	struct tm tm;
	size_t len;

	gmtime_r(&seconds, &tm);
	len = strftime(text, size, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + len, size - len, ".%03uZ", (unsigned int)(now / 1000000 % 1000));
}

/* The line that result_log() writes, NULL without memory. */
static char *
log_line(const char *fmt, va_list ap)
{
	char utc[40], *text, *line;

	if (vasprintf(&text, fmt, ap) < 0)
		return NULL;
	for (char *c = text; *c != '\0'; c++)
		if (*c == '\n' || *c == '\r')
			*c = ' '; /* one event, one line */
	result_utc(utc, sizeof(utc));
	if (asprintf(&line, "%s %s\n", utc, text) < 0)
		line = NULL;
	free(text);
	return line;
}

void
result_log(struct result *r, const char *fmt, ...)
{
	const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
	struct err err = { 0 };
	char *line;
	va_list ap;

	va_start(ap, fmt);
	line = log_line(fmt, ap);
	va_end(ap);
	if (r->log < 0)
		r->log = openat(r->dirfd, "log.txt", flags, 0666);
	if (line == NULL || r->log < 0)
		fail(r, "log.txt", line == NULL ? ENOMEM : errno, &err);
	else
		append(r, r->log, "log.txt", line, strlen(line), &err);
	if (err.code != EXIT_DONE && r->log_err.code == EXIT_DONE)
		r->log_err = err;
	free(line);
}

/* Write bytes to a new file name and have them on the disk. */
static int
write_new(const struct result *r, const char *name, const char *bytes, struct err *err)
{
	int fd = openat(r->dirfd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	int rc;

	if (fd < 0)
		return fail(r, name, errno, err);
	rc = append(r, fd, name, bytes, strlen(bytes), err);
	if (rc == 0 && fsync(fd) != 0)
		rc = fail(r, name, errno, err);
	if (close(fd) != 0 && rc == 0)
		rc = fail(r, name, errno, err);
	return rc;
}

int
result_write_json(struct result *r, const char *name, const json_t *json, struct err *err)
{
	char *dump = json_dumps(json, JSON_INDENT(2));
	char *text = NULL, *beside = NULL;
	int rc = -1;

	if (dump == NULL || asprintf(&text, "%s\n", dump) < 0)
		text = NULL;
	if (asprintf(&beside, "%s.tmp", name) < 0)
		beside = NULL;
	if (text == NULL || beside == NULL) {
		fail(r, name, ENOMEM, err);
		goto out;
	}
	rc = write_new(r, beside, text, err);
	if (rc == 0 && renameat(r->dirfd, beside, r->dirfd, name) != 0)
		rc = fail(r, name, errno, err);
	if (rc != 0)
		unlinkat(r->dirfd, beside, 0);
	else if (fsync(r->dirfd) != 0)
		rc = fail(r, name, errno, err);
out:
	free(beside);
	free(text);
	free(dump);
	return rc;
}

int
result_close(struct result *r, struct err *err)
{
	int rc = 0;

	if (r == NULL)
		return 0;
	if (fsync(r->windows) != 0)
		rc = fail(r, windows_table.file, errno, err);
	if (r->bursts >= 0 && fsync(r->bursts) != 0 && rc == 0)
		rc = fail(r, bursts_table.file, errno, err);
	if (r->log >= 0 && fsync(r->log) != 0 && rc == 0)
		rc = fail(r, "log.txt", errno, err);
	if (fsync(r->dirfd) != 0 && rc == 0)
		rc = err_set(err, EXIT_FAILED, "%s: %s", r->dir, strerror(errno));
	if (r->log_err.code != EXIT_DONE && rc == 0) {
		*err = r->log_err;
		rc = -1;
	}
	free_result(r);
	return rc;
}

/* ---- reading CSV ---- */

/* The columns of a file as its header names them; NULL for unknown ones. */
struct header {
	const struct column *columns[FIELDS_MAX];
	size_t nb;
};

static const struct column *
find_column(const struct table *table, const char *name)
{
	for (size_t i = 0; i < table->nb_columns; i++)
		if (strcmp(table->columns[i].name, name) == 0)
			return &table->columns[i];
	return NULL;
}

static bool
has_column(const struct header *header, const struct column *column)
{
	for (size_t i = 0; i < header->nb; i++)
		if (header->columns[i] == column)
			return true;
	return false;
}

/* Read the header line; its names as they stand go to the JSON array names. */
static int
read_header(struct csv *csv, const struct table *table, struct header *header, json_t *names,
		struct err *err)
{
	enum csv_end end = CSV_FIELD;

	header->nb = 0;
	while (end == CSV_FIELD) {
		const struct column *column;
		const char *name = csv->field;

		end = csv_read(csv, err);
		if (end == CSV_BROKEN)
			return -1;
		if (end == CSV_CUT)
			return err_set(err, EXIT_FAILED, "%s: no header line", csv->name);
		if (header->nb == FIELDS_MAX)
			return err_set(err, EXIT_FAILED, "%s:1: more than %d columns", csv->name,
					FIELDS_MAX);
		/* Programs that turn LF into CRLF like to put a byte order mark in front, too. */
		if (header->nb == 0 && strncmp(name, "\xef\xbb\xbf", 3) == 0)
			name += 3;
		column = find_column(table, name);
		if (column != NULL && has_column(header, column))
			return err_set(err, EXIT_FAILED, "%s:1: column %s: stands there twice",
					csv->name, column->name);
		header->columns[header->nb++] = column;
		json_array_append_new(names, result_text_json(name));
	}
	for (size_t i = 0; i < table->nb_columns; i++)
		if (table->columns[i].needed && !has_column(header, &table->columns[i]))
			return err_set(err, EXIT_FAILED, "%s:1: column %s: missing", csv->name,
					table->columns[i].name);
	return 0;
}

/* Store csv->field in the row. Returns 0, or -1 with err set naming line and column. */
static int
store_field(const struct csv *csv, unsigned long line, const struct column *col, void *row,
		struct err *err)
{
	const char *wanted = NULL;

	if (csv->len >= RESULT_TEXT_MAX) {
		err_set(err, EXIT_FAILED, "%s:%lu: column %s: %zu bytes, more than %d", csv->name,
				line, col->name, csv->len, RESULT_TEXT_MAX - 1);
		return -1;
	}
	switch (col->type) {
	case COLUMN_TEXT:
		memcpy(text_at(col, row), csv->field, csv->len + 1);
		break;
	case COLUMN_INTEGER:
		if (csv_integer(csv->field, RESULT_UNKNOWN - 1, integer_at(col, row)) != 0)
			wanted = "a whole number";
		break;
	case COLUMN_FLAG:
		if (csv_integer(csv->field, 1, integer_at(col, row)) != 0)
			wanted = "0 or 1";
		break;
	case COLUMN_NUMBER:
		if (csv_number(csv->field, number_at(col, row)) != 0)
			wanted = "a number";
		break;
	}
	if (wanted == NULL)
		return 0;
	err_set(err, EXIT_FAILED, "%s:%lu: column %s: \"%.40s\" is not %s", csv->name, line,
			col->name, csv->field, wanted);
	csv_visible(err->text);
	return -1;
}

/* Returns 1 with a row, 0 at the end of the file (*cut: within a row), -1 with err set. */
static int
read_row(struct csv *csv, const struct table *table, const struct header *header, void *row,
		bool *cut, struct err *err)
{
	unsigned long line = csv->line;
	enum csv_end end = CSV_FIELD;
	size_t nb = 0;

	row_init(table, row);
	for (; end == CSV_FIELD; nb++) {
		const struct column *col = nb < header->nb ? header->columns[nb] : NULL;

		end = csv_read(csv, err);
		if (end == CSV_BROKEN)
			return -1;
		if (end == CSV_CUT) {
			*cut = nb > 0 || csv->len > 0;
			return 0;
		}
		if (col != NULL && store_field(csv, line, col, row, err) != 0)
			return -1;
	}
	if (nb == header->nb)
		return 1;
	return err_set(err, EXIT_FAILED, "%s:%lu: %zu fields, the header has %zu", csv->name, line,
			nb, header->nb);
}

/* The rows of a file as an array of its struct, and what stood around them. */
struct rows {
	char *rows;
	size_t nb;
	json_t *header;
	bool cut;
	off_t end; /* of the last row, where the file has offsets */
};

/* Rows are read up to the first of a later visit than the last one given. */
static int
read_table(FILE *in, const char *name, const struct table *table, uint64_t visits,
		struct rows *rows, struct err *err)
{
	const struct column *visit = find_column(table, "visit");
	struct csv csv = { .in = in, .name = name, .line = 1 };
	struct header header;
	size_t room = 0;
	int rc;

	rows->header = json_array();
	rc = read_header(&csv, table, &header, rows->header, err);
	if (rc != 0)
		return rc;
	for (;;) {
		const void *row;

		rows->end = ftello(in);
		if (rows->nb == room) {
			char *more;

			room = room * 2 + 16;
			more = realloc(rows->rows, room * table->row_size);
			if (more == NULL)
				return err_set(err, EXIT_FAILED, "%s: %s", name, strerror(ENOMEM));
			rows->rows = more;
		}
		row = rows->rows + rows->nb * table->row_size;
		rc = read_row(&csv, table, &header, (void *)(uintptr_t)row, &rows->cut, err);
		if (rc <= 0)
			return rc;
		if (*integer_at(visit, row) > visits)
			return 0;
		rows->nb++;
	}
}

/* ---- reading the directory ---- */

int
result_read_stream(struct result_set *set, FILE *stream, const char *name, struct err *err)
{
	struct rows rows = { 0 };
	int rc = read_table(stream, name, &windows_table, UINT64_MAX, &rows, err);

	fclose(stream);
	set->header = rows.header;
	set->windows = (struct result_window *)(void *)rows.rows;
	set->nb_windows = rows.nb;
	set->cut_short = rows.cut;
	return rc;
}

/*
 * Open dir/name, or name alone where dir is NULL; *path is to be freed. NULL with err and errno
 * set.
 */
static FILE *
open_file(const char *dir, const char *name, char **path, struct err *err)
{
	FILE *in;
	int error;

	if (asprintf(path, "%s%s%s", dir != NULL ? dir : "", dir != NULL ? "/" : "", name) < 0) {
		*path = NULL;
		err_set(err, EXIT_FAILED, "%s: %s", name, strerror(ENOMEM));
		return NULL;
	}
	in = fopen(*path, "re");
	error = errno;
	if (in == NULL)
		err_set(err, EXIT_FAILED, "%s: %s", *path, strerror(error));
	errno = error;
	return in;
}

static int
read_windows(struct result_set *set, const char *dir, const char *name, struct err *err)
{
	char *path;
	FILE *in = open_file(dir, name, &path, err);
	int rc = in == NULL ? -1 : result_read_stream(set, in, path, err);

	free(path);
	return rc;
}

/* Read bursts.csv where there is one. */
static int
read_bursts(struct result_set *set, struct err *err)
{
	struct rows rows = { 0 };
	char *path;
	FILE *in = open_file(set->dir, bursts_table.file, &path, err);
	int rc = 0;

	if (in != NULL) {
		rc = read_table(in, path, &bursts_table, UINT64_MAX, &rows, err);
		fclose(in);
	} else if (errno != ENOENT) {
		rc = -1;
	}
	free(path);
	set->bursts_header = rows.header;
	set->bursts = (struct result_burst *)(void *)rows.rows;
	set->nb_bursts = rows.nb;
	return rc;
}

/* Read a JSON object where there is one. */
static int
read_json(const char *dir, const char *name, json_t **json, struct err *err)
{
	json_error_t where;
	char *path;
	FILE *in = open_file(dir, name, &path, err);
	int rc = 0;

	if (in != NULL) {
		*json = json_loadf(in, JSON_REJECT_DUPLICATES, &where);
		if (*json == NULL)
			rc = err_set(err, EXIT_FAILED, "%s:%d: %s", path, where.line, where.text);
		else if (!json_is_object(*json))
			rc = err_set(err, EXIT_FAILED, "%s: not a JSON object", path);
		fclose(in);
		if (rc != 0)
			csv_visible(err->text);
	} else if (errno != ENOENT) {
		rc = -1;
	}
	free(path);
	return rc;
}

int
result_read(struct result_set *set, const char *dir, struct err *err)
{
	struct stat st;

	memset(set, 0, sizeof(*set));
	if (stat(dir, &st) != 0)
		return err_set(err, EXIT_FAILED, "%s: %s", dir, strerror(errno));
	set->dir = strdup(dir);
	if (set->dir == NULL)
		return err_set(err, EXIT_FAILED, "%s: %s", dir, strerror(ENOMEM));
	if (!S_ISDIR(st.st_mode))
		return read_windows(set, NULL, dir, err);
	if (read_windows(set, dir, windows_table.file, err) != 0 || read_bursts(set, err) != 0)
		return -1;
	if (read_json(dir, "columns.json", &set->columns, err) != 0 ||
			read_json(dir, "result.json", &set->result, err) != 0)
		return -1;
	return read_json(dir, "environment.json", &set->environment, err);
}

/* ---- going on with a directory ---- */

/*
 * Open a file of rows and read those up to a visit, which end at *end. Returns its descriptor, -1 with err
 * set, or -1 with err as it was where there is none and it is not needed.
 */
static int
continue_table(const struct result *r, const struct table *table, uint64_t visits, bool needed,
		struct rows *rows, off_t *end, struct err *err)
{
	int fd = openat(r->dirfd, table->file, O_RDWR | O_APPEND | O_CLOEXEC);
	FILE *in = fd < 0 ? NULL : fdopen(dup(fd), "re");
	char *path = NULL;
	int rc = 0;

	if (fd < 0 && errno == ENOENT && !needed)
		return -1;
	if (in == NULL || asprintf(&path, "%s/%s", r->dir, table->file) < 0)
		rc = fail(r, table->file, errno, err);
	if (rc == 0)
		rc = read_table(in, path, table, visits, rows, err);
	*end = rows->end;
	if (in != NULL)
		fclose(in);
	free(path);
	if (rc != 0 && fd >= 0)
		close(fd);
	return rc != 0 ? -1 : fd;
}

struct result *
result_continue(const char *dir, uint64_t visits, struct result_window **windows, size_t *nb,
		struct err *err)
{
	struct result *r = new_result(dir, err);
	struct rows rows = { 0 }, bursts = { 0 };
	struct err why = { 0 };

	if (r == NULL)
		return NULL;
	if (open_directory(r, &why) == 0)
		r->windows = continue_table(
				r, &windows_table, visits, true, &rows, &r->windows_end, &why);
	if (r->windows >= 0)
		r->bursts = continue_table(
				r, &bursts_table, visits, false, &bursts, &r->bursts_end, &why);
	json_decref(rows.header);
	json_decref(bursts.header);
	free(bursts.rows);
	*windows = (struct result_window *)(void *)rows.rows;
	*nb = rows.nb;
	if (why.code == EXIT_DONE)
		return r;
	*err = why;
	free(rows.rows);
	*windows = NULL;
	free_result(r);
	return NULL;
}

int
result_cut(struct result *r, struct err *err)
{
	static const char *const of_last_end[] = { "result.json", "environment.json" };

	if (ftruncate(r->windows, r->windows_end) != 0)
		return fail(r, windows_table.file, errno, err);
	if (r->bursts >= 0 && ftruncate(r->bursts, r->bursts_end) != 0)
		return fail(r, bursts_table.file, errno, err);
	for (size_t i = 0; i < COUNT_OF(of_last_end); i++)
		if (unlinkat(r->dirfd, of_last_end[i], 0) != 0 && errno != ENOENT)
			return fail(r, of_last_end[i], errno, err);
	return 0;
}

void
result_free(struct result_set *set)
{
	free(set->dir);
	free(set->windows);
	free(set->bursts);
	json_decref(set->header);
	json_decref(set->bursts_header);
	json_decref(set->columns);
	json_decref(set->result);
	json_decref(set->environment);
	memset(set, 0, sizeof(*set));
}

struct result_integer
result_integer(uint64_t integer)
{
	struct result_integer t = { "unknown" };

	if (integer != RESULT_UNKNOWN)
		snprintf(t.text, sizeof(t.text), "%ju", (uintmax_t)integer);
	return t;
}
