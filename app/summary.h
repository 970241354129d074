/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APP_SUMMARY_H
#define APP_SUMMARY_H

/*
 * Windows as sums over their lcores: what estimates, tables and comparisons are made of.
 */
#include "result.h"

#define TABLE_WIDTH 100 /* characters of a line at most */

/* One window: the sum over its lcores. Also holds one lcore alone, for the table. */
struct sum {
	const struct result_window *first; /* of its rows, for what all have in common */
	size_t nb_rows;
	size_t nb_lcores; /* rows are added in their order */
	uint64_t last_lcore;
	bool warmup;
	bool tainted;
	bool emulated;
	char taint[RESULT_TEXT_MAX]; /* causes of all lcores, each once */
	double pps; /* NAN where a row's is unknown */
	double seconds; /* mean of the lcores */
	double packets;
	double ticks;
	double polls;
	double empty_polls;
	double tx_dropped;
};

/*
 * The windows in order of run, visit and window, as sums over their lcores, to be freed; *nb is their
 * number. One that lacks the row of an lcore, of which other windows of the run have one, is left out. NULL
 * without memory.
 */
struct sum *summary_windows(const struct result_window *windows, size_t n, size_t *nb);

/* How many windows summary_windows() leaves out, as they lack the row of an lcore. */
size_t summary_incomplete(const struct result_window *windows, size_t n);

/* What windows differ in besides their scenario, so that it is a part of an arm's name. */
struct summary_varied {
	bool mode, burst, lookups;
};

/* Add what two windows differ in. */
void summary_vary(struct summary_varied *varied, const struct result_window *a,
		const struct result_window *b);

struct summary_varied summary_varied(const struct sum *sums, size_t nb);

/* The name of an arm: its scenario, and what else varies. */
void summary_arm(char *name, size_t size, const char *scenario, const char *mode, uint64_t burst,
		uint64_t lookups, struct summary_varied varied);

/* Whether any is from an emulated machine, whose figures say nothing of speed. */
bool summary_emulated(const struct result_window *windows, size_t n);

/* Add the words of a list joined by ; to another, without those that it holds. */
void summary_add_words(char list[RESULT_TEXT_MAX], const char *words);

/* Whether a list joined by ; holds a word of so many characters. */
bool summary_has_word(const char *list, const char *word, size_t len);

#endif
