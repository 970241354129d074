/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IDLECTL_SCENARIO_H
#define IDLECTL_SCENARIO_H

/*
 * What a CPU does while it idles, as words joined by "+": c1+clear, limit:20, offline, wake:1000.
 * Each word is a row of one table: how it is applied, how it is verified, what it needs.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cpuidle.h"
#include "err.h"

struct control;
struct word;

/* Words of one kind exclude each other; they are applied in this order. */
enum word_kind {
	WORD_STATE, /* holds an idle state */
	WORD_LIMIT,
	WORD_MODE, /* of the module */
	WORD_LOAD,
	WORD_OFFLINE,
	WORD_KINDS
};

struct word_row {
	const char *name; /* NULL: the name of an idle state */
	enum word_kind kind;
	const char *unit; /* of its number, NULL: it has none */
	uint64_t lowest, highest;
	const char *needs; /* for people */
	const char *help;
	/* Whether this machine can do it on that CPU: 0, or -1 with err set to 4 and the reason. */
	int (*check)(unsigned int cpu, const struct word_row *row, struct err *err);
	/* Return 0, or -1 with err set: 4 where the machine turns out not to be able, else 1. */
	int (*apply)(struct control *c, const struct word *w, struct err *err);
	int (*verify)(struct control *c, const struct word *w, struct err *err);
	unsigned int value; /* for its functions: enum sibidle_mode, enum load_kind */
};

extern const struct word_row word_rows[];
extern const size_t nb_word_rows;

struct word {
	const struct word_row *row;
	char name[32]; /* as given */
	uint64_t number;
};

#define SCENARIO_MAX 128 /* characters of a scenario, final NUL included */

struct scenario {
	char text[SCENARIO_MAX]; /* as given */
	struct word words[WORD_KINDS];
	unsigned int nb; /* 0: as-is */
};

/*
 * Parse a scenario; "as-is" is the one without words. A word that is none of the table's is taken for
 * an idle state. Returns 0, or -1 with err set (2): a word is no word, two exclude each other, a number
 * is out of range.
 */
int scenario_parse(struct scenario *s, const char *text, struct err *err);

/*
 * Whether its words make sense on a CPU with these states: an idle state that it has, a limit that
 * does not forbid the state, nor every state in which a mode would count. Returns 0, or -1 with
 * err set (2, with the valid words named; 4 where there are no idle states at all).
 */
int scenario_check(const struct scenario *s, unsigned int cpu, const struct idle_states *states,
		struct err *err);

/* The word of a kind, or NULL. */
const struct word *scenario_word(const struct scenario *s, enum word_kind kind);

#endif
