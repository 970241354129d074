/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APP_RESULT_H
#define APP_RESULT_H

/*
 * The result directory: every byte written to it, and the only reader of it.
 * docs/results.md describes the files; the column table in result.c is their source.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "err.h"

#define RESULT_SCHEMA 1 /* changes where a column changes its meaning, not where one is added */
#define RESULT_WINDOW_COLUMNS 44 /* of the schema; those behind were added */
#define RESULT_TEXT_MAX 256 /* bytes of a text column, the final NUL included */

/* An unknown figure: an empty field in CSV, null in JSON, never 0. */
#define RESULT_UNKNOWN UINT64_MAX /* of the integers */
/* of the doubles: NAN */

/*
 * One row of windows.csv: one window of one measured lcore. Fields stand in the order of the
 * columns; units are in the names.
 */
struct result_window {
	uint64_t schema;
	char run_id[RESULT_TEXT_MAX];
	char utc_start[RESULT_TEXT_MAX]; /* ISO 8601 with Z */
	char host[RESULT_TEXT_MAX];
	char scenario[RESULT_TEXT_MAX]; /* words as given; as-is where nothing was changed */
	uint64_t block; /* from 1 */
	uint64_t position; /* of the visit in its block, from 1 */
	uint64_t visit; /* from 1, over the run */
	uint64_t window; /* from 1, within the visit; 0 is the warm-up */
	uint64_t warmup; /* 0 or 1 */
	uint64_t tainted; /* 0 or 1 */
	char taint[RESULT_TEXT_MAX]; /* causes joined by ; */
	char mode[RESULT_TEXT_MAX];
	char source[RESULT_TEXT_MAX];
	uint64_t burst;
	uint64_t pkt_len; /* bytes; mean of a capture */
	uint64_t lcore;
	uint64_t cpu;
	uint64_t sibling_cpu;
	char relation[RESULT_TEXT_MAX]; /* smt, l2, l3, package, numa or none */
	uint64_t duration_ns;
	uint64_t tsc_delta;
	uint64_t tsc_hz;
	uint64_t rx_packets;
	uint64_t tx_packets;
	uint64_t tx_dropped;
	uint64_t rx_missed;
	uint64_t rx_nombuf;
	uint64_t polls;
	uint64_t empty_polls;
	double pps;
	double tsc_cycles_per_packet;
	double busy_cycles_per_packet;
	double core_cycles_per_packet;
	double instructions_per_packet;
	uint64_t irqs;
	uint64_t ctx_switches;
	uint64_t steal_ns;
	uint64_t smi;
	uint64_t sibling_idle_entries;
	uint64_t sibling_idle_ns;
	char sibling_state[RESULT_TEXT_MAX];
	char sibling_spec_ctrl[RESULT_TEXT_MAX];
	uint64_t emulated; /* 0 or 1 */
	uint64_t noisy_lookups; /* a packet; unknown in other modes */
};

/* All fields unknown or empty; schema filled in. */
void result_window_init(struct result_window *w);

/*
 * The wall clock, in ns since 1970: as it was when this was first called, and from then on by the time
 * that passed. Whoever sets the clock meanwhile does not change it, so that the times of a run are in order.
 */
uint64_t result_now(void);

/* Seconds by which the clock has been set since the first call of result_now(); forward is positive. */
double result_clock_set(void);

/* result_now() as ISO 8601 with milliseconds and Z; size of at least 25. */
void result_utc(char *text, size_t size);

/* ---- writing ---- */

struct result; /* an open result directory */

#define RESULT_RESUME "resume.json" /* what a run that has not ended leaves for --resume */

/*
 * Create dir (and its parents) or take an empty one, and write resume.json where begun is not NULL,
 * columns.json and the header of windows.csv. Returns NULL with err set (exit code 1) when it cannot be
 * written or already holds something.
 */
struct result *result_create(const char *dir, const json_t *begun, struct err *err);

/* Empty the directory of a run that ended before its first block. Returns 0, or -1 with err set. */
int result_clear(const char *dir, struct err *err);

/*
 * Go on with a directory: the rows of its first visits, *nb of them, are read into *windows, to be freed;
 * result_cut() cuts off what follows them. Returns NULL with err set (exit code 1) when
 * it cannot be read or written, or another process writes it.
 */
struct result *result_continue(const char *dir, uint64_t visits, struct result_window **windows,
		size_t *nb, struct err *err);

/*
 * Cut off what result_continue() left unread, and remove result.json and environment.json of the run's
 * last end. Returns 0, or -1 with err set.
 */
int result_cut(struct result *r, struct err *err);

/* Where windows.csv ends, and cutting it there again: rows are taken back. Returns 0, or -1 with err set. */
off_t result_mark(const struct result *r);
int result_rewind(struct result *r, off_t mark, struct err *err);

/*
 * Append one whole row and flush it. On failure (a full disk) what was written of the row is
 * taken back. Returns 0, or -1 with err set (exit code 1).
 */
int result_add_window(struct result *r, const struct result_window *w, struct err *err);

/* Append the non-zero counts of a burst histogram to bursts.csv; sizes 0 .. nb - 1. */
int result_add_bursts(struct result *r, const struct result_window *w, const uint64_t *counts,
		unsigned int nb, struct err *err);

/* One time-stamped line to log.txt: what was done to the machine and when. */
void result_log(struct result *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Write name (result.json, environment.json) beside and rename it. Takes no reference. */
int result_write_json(struct result *r, const char *name, const json_t *json, struct err *err);

/* Remove resume.json: the run is whole. Returns 0, or -1 with err set. */
int result_complete(struct result *r, struct err *err);

/* Take back all that was written and made, and free: for a run without one row. */
void result_discard(struct result *r);

/* Flush all to the disk and free. */
int result_close(struct result *r, struct err *err);

/* ---- reading ---- */

/* One row of bursts.csv: how many turns of a window moved so many packets. */
struct result_burst {
	char run_id[RESULT_TEXT_MAX];
	uint64_t visit;
	uint64_t window;
	uint64_t lcore;
	uint64_t burst_size; /* packets; 0 is an empty poll */
	uint64_t count;
};

struct result_set {
	char *dir;
	json_t *header; /* names of the columns of windows.csv as found, in their order */
	struct result_window *windows;
	size_t nb_windows;
	bool cut_short; /* windows.csv ended within a row, which was dropped */
	/* Of the other files; empty or NULL where they are missing. */
	json_t *bursts_header;
	struct result_burst *bursts;
	size_t nb_bursts;
	json_t *columns; /* columns.json */
	json_t *result; /* result.json */
	json_t *environment; /* environment.json */
};

/*
 * Read a result directory, or a windows.csv by its own name. LF and CRLF are read; columns are
 * found by name, unknown ones are skipped and those of older schemas left unknown. A last row
 * without its line end (a killed run) is dropped. Returns 0, or -1 with err set (exit code 1)
 * naming file, line and column. The set is to be freed in both cases.
 */
int result_read(struct result_set *set, const char *dir, struct err *err);

/* Read windows.csv from a stream, which is closed, into a zeroed set; name is for messages. */
int result_read_stream(struct result_set *set, FILE *stream, const char *name, struct err *err);

void result_free(struct result_set *set);

/* Names of the columns that this program writes, as a JSON array; a new reference. */
json_t *result_window_columns(void);
json_t *result_burst_columns(void);

/*
 * The packets that pps counts: those received, those sent in the modes txonly and flowgen.
 * RESULT_UNKNOWN where unknown.
 */
uint64_t result_packets(const struct result_window *w);

/* ---- printing: the same for the forwarder and for sibfwd-report ---- */

/* The header line of windows.csv, or one row of it, with its line end. Returns -1 on EOF. */
int result_print_csv_header(FILE *out);
int result_print_csv(FILE *out, const struct result_window *w);

/*
 * Table for people, at most 100 characters wide: a line a window and lcore (and a sum over the
 * lcores where there are several), then the estimates a scenario. Returns -1 on a write error or
 * without memory.
 */
int result_print_table(FILE *out, const struct result_window *windows, size_t n);

/* A text as JSON, which knows no bytes outside UTF-8: they become ?. A new reference. */
json_t *result_text_json(const char *text);

/* A figure as JSON; null where it is unknown. A new reference. */
json_t *result_number_json(double number);
json_t *result_integer_json(uint64_t integer);

/* The windows as a JSON array of objects by column; a new reference. */
json_t *result_windows_json(const struct result_window *windows, size_t n);

/*
 * What the windows say about each scenario, for all of them and for the untainted ones; what
 * `sibfwd-report check` expects as "estimates" in result.json. docs/results.md has the layout and
 * the formulas. A new reference, NULL without memory.
 */
json_t *result_estimates_json(const struct result_window *windows, size_t n);

/* An integer of a result for people, "unknown" for RESULT_UNKNOWN; by value, for printf(). */
struct result_integer {
	char text[24];
};

struct result_integer result_integer(uint64_t integer);

#endif
