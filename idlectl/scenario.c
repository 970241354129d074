/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "mechanisms.h"
#include "sysroot.h"

#define MODULE "sibidle.ko"
#define MACHINE "a live machine"

#define STATE cpuidle_check, cpuidle_apply, cpuidle_verify
#define LIMIT qos_check, qos_apply, qos_verify
#define MODE sibidle_check, sibidle_apply, sibidle_verify
#define LOAD load_check, load_apply, load_verify
#define HOTPLUG hotplug_check, hotplug_apply, hotplug_verify

const struct word_row word_rows[] = {
	{ NULL, WORD_STATE, NULL, 0, 0, "cpuidle", "holds an idle state by disabling all others",
			STATE, 0 },
	{ "limit", WORD_LIMIT, "US", 1, INT32_MAX - 1, "PM QoS",
			"only idle states that are left within so many us", LIMIT, 0 },
	{ "stock", WORD_MODE, NULL, 0, 0, MODULE, "the driver's own idle callback, counted", MODE,
			SIBIDLE_STOCK },
	{ "keep", WORD_MODE, NULL, 0, 0, MODULE, "sleeps with IBRS as it is", MODE, SIBIDLE_KEEP },
	{ "clear", WORD_MODE, NULL, 0, 0, MODULE, "sleeps with IBRS cleared", MODE, SIBIDLE_CLEAR },
	{ "busy", WORD_LOAD, NULL, 0, 0, MACHINE, "a thread that computes", LOAD, LOAD_BUSY },
	{ "pause", WORD_LOAD, NULL, 0, 0, MACHINE, "a thread that executes PAUSE", LOAD,
			LOAD_PAUSE },
	{ "mem", WORD_LOAD, NULL, 0, 0, MACHINE, "a thread that writes to 64 MiB", LOAD, LOAD_MEM },
	{ "syscall", WORD_LOAD, NULL, 0, 0, MACHINE, "a thread that makes system calls", LOAD,
			LOAD_SYSCALL },
	{ "wake", WORD_LOAD, "HZ", 1, 100000, MACHINE, "a thread that wakes up so often a second",
			LOAD, LOAD_WAKE },
	{ "ipi", WORD_LOAD, "RATE", 1, 100000, MODULE,
			"interrupts from another CPU, so many a second (wake-ups, while it idles)",
			LOAD, LOAD_IPI },
	{ "wrmsr", WORD_LOAD, "RATE", 1, 100000, MODULE,
			"a thread that wakes up and writes an MSR, so often a second", LOAD,
			LOAD_WRMSR },
	{ "mbm", WORD_LOAD, "RATE", 1, 100000, "resctrl",
			"a thread that wakes up and reads a bandwidth counter, so often a second",
			LOAD, LOAD_MBM },
	{ "offline", WORD_OFFLINE, NULL, 0, 0, "CPU hotplug", "takes the CPU off line", HOTPLUG,
			0 },
};
const size_t nb_word_rows = sizeof(word_rows) / sizeof(word_rows[0]);

/* Pairs of words that make no sense together, a name or NULL for any word of its kind. */
static const struct {
	enum word_kind a;
	const char *a_name;
	enum word_kind b;
	const char *why;
} contradictions[] = {
	{ WORD_OFFLINE, NULL, WORD_STATE, "a CPU that is off line has no idle state" },
	{ WORD_OFFLINE, NULL, WORD_LIMIT, "a CPU that is off line has no latency" },
	{ WORD_OFFLINE, NULL, WORD_MODE, "the module does not reach a CPU that is off line" },
	{ WORD_OFFLINE, NULL, WORD_LOAD, "nothing runs on a CPU that is off line" },
	{ WORD_STATE, "poll", WORD_MODE, "POLL does not sleep, so the module has no part in it" },
};

const struct word *
scenario_word(const struct scenario *s, enum word_kind kind)
{
	for (unsigned int i = 0; s != NULL && i < s->nb; i++)
		if (s->words[i].row->kind == kind)
			return &s->words[i];
	return NULL;
}

/* The row of a word without its number; what is none of them is an idle state. */
static const struct word_row *
find_row(const char *name)
{
	const struct word_row *states = NULL;

	for (size_t i = 0; i < nb_word_rows; i++) {
		if (word_rows[i].name == NULL)
			states = &word_rows[i];
		else if (strcasecmp(word_rows[i].name, name) == 0)
			return &word_rows[i];
	}
	return states;
}

static int
parse_number(struct word *w, const char *text, struct err *err)
{
	const struct word_row *row = w->row;
	char *end;

	if (row->unit == NULL && text == NULL)
		return 0;
	if (row->unit == NULL)
		return err_set(err, EXIT_USAGE, "scenario word %s takes no number", w->name);
	w->number = text != NULL ? strtoull(text, &end, 10) : 0;
	if (text == NULL || text[0] < '0' || text[0] > '9' || *end != '\0' || strlen(text) > 10 ||
			w->number < row->lowest || w->number > row->highest)
		return err_set(err, EXIT_USAGE,
				"scenario word %s%s%s: a number from %" PRIu64 " to %" PRIu64
				" is needed (%s:%s)%s",
				w->name, text != NULL ? ":" : "", text != NULL ? text : "",
				row->lowest, row->highest, w->name, row->unit,
				row->kind == WORD_LIMIT && text != NULL && w->number == 0
						? "; to the kernel 0 means no limit"
						: "");
	return 0;
}

static int
parse_word(struct scenario *s, char *text, struct err *err)
{
	struct word w = { 0 };
	char *number = strchr(text, ':');
	const struct word *other;

	if (number != NULL)
		*number++ = '\0';
	if (*text == '\0' || strlen(text) >= sizeof(w.name))
		return err_set(err, EXIT_USAGE, "scenario %s: %s", s->text,
				*text == '\0' ? "a word is missing" : "a word is too long");
	snprintf(w.name, sizeof(w.name), "%s", text);
	w.row = find_row(text);
	if (parse_number(&w, number, err) != 0)
		return -1;
	other = scenario_word(s, w.row->kind);
	if (other != NULL)
		return err_set(err, EXIT_USAGE, "scenario %s: %s and %s exclude each other",
				s->text, other->name, w.name);
	s->words[s->nb++] = w;
	return 0;
}

static int
check_contradictions(const struct scenario *s, struct err *err)
{
	for (size_t i = 0; i < sizeof(contradictions) / sizeof(contradictions[0]); i++) {
		const struct word *a = scenario_word(s, contradictions[i].a);
		const struct word *b = scenario_word(s, contradictions[i].b);

		if (a != NULL && b != NULL &&
				(contradictions[i].a_name == NULL ||
						strcasecmp(a->name, contradictions[i].a_name) == 0))
			return err_set(err, EXIT_USAGE, "scenario %s: %s with %s: %s", s->text,
					a->name, b->name, contradictions[i].why);
	}
	return 0;
}

static int
by_kind(const void *a, const void *b)
{
	const struct word *x = a, *y = b;

	return (int)x->row->kind - (int)y->row->kind;
}

int
scenario_parse(struct scenario *s, const char *text, struct err *err)
{
	char copy[SCENARIO_MAX], *at = copy, *word;
	size_t len = strlen(text);

	memset(s, 0, sizeof(*s));
	if (len >= sizeof(s->text))
		return err_set(err, EXIT_USAGE, "scenario %.40s...: longer than %zu characters",
				text, sizeof(s->text) - 1);
	memcpy(s->text, text, len + 1);
	if (strcmp(text, "as-is") == 0)
		return 0;
	memcpy(copy, text, len + 1);
	while ((word = strsep(&at, "+")) != NULL)
		if (parse_word(s, word, err) != 0)
			return -1;
	if (check_contradictions(s, err) != 0)
		return -1;
	qsort(s->words, s->nb, sizeof(s->words[0]), by_kind);
	return 0;
}

/* The held state is one of the CPU's, and the limit does not forbid it. */
static int
check_state(const struct scenario *s, const struct word *state, unsigned int cpu,
		const struct idle_states *states, struct err *err)
{
	const struct word *limit = scenario_word(s, WORD_LIMIT);
	const struct idle_state *found = cpuidle_find(states, state->name);
	char *names;

	if (found == NULL && states->nb == 0 && strcasecmp(state->name, "poll") != 0 &&
			(state->name[0] | 0x20) != 'c')
		return err_set(err, EXIT_USAGE,
				"scenario %s: %s is no word (idlectl scenarios lists them)",
				s->text, state->name);
	if (found == NULL && states->nb == 0)
		return err_set(err, EXIT_SKIPPED,
				"scenario %s: CPU %u has no idle states (no cpuidle driver)",
				s->text, cpu);
	if (found == NULL) {
		names = cpuidle_names(states);
		err_set(err, EXIT_USAGE,
				"scenario %s: %s is neither a word nor an idle state of CPU %u, which has: %s",
				s->text, state->name, cpu, names);
		free(names);
		return -1;
	}
	if (limit != NULL && !qos_allows(limit, found))
		return err_set(err, EXIT_USAGE,
				"scenario %s: leaving %s takes %" PRIu64 " us, which %s:%" PRIu64
				" forbids",
				s->text, state->name, found->latency_us, limit->name,
				limit->number);
	return 0;
}

/* The mode needs a state to sleep in, and POLL is none. */
static int
check_limited_mode(const struct scenario *s, const struct word *limit, unsigned int cpu,
		const struct idle_states *states, struct err *err)
{
	for (unsigned int i = 0; i < states->nb; i++)
		if (qos_allows(limit, &states->at[i]) && !cpuidle_is_poll(&states->at[i]))
			return 0;
	return err_set(err, EXIT_USAGE,
			"scenario %s: %s:%" PRIu64
			" leaves CPU %u no idle state but POLL, in which the module has no part",
			s->text, limit->name, limit->number, cpu);
}

int
scenario_check(const struct scenario *s, unsigned int cpu, const struct idle_states *states,
		struct err *err)
{
	const struct word *state = scenario_word(s, WORD_STATE);
	const struct word *limit = scenario_word(s, WORD_LIMIT);

	if (state != NULL)
		return check_state(s, state, cpu, states, err);
	if (limit != NULL && scenario_word(s, WORD_MODE) != NULL && states->nb > 0)
		return check_limited_mode(s, limit, cpu, states, err);
	return 0;
}
