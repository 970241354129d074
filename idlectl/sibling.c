/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "mechanisms.h"
#include "sibling.h"
#include "sysroot.h"

void
sibling_read(const struct control *c, unsigned int cpu, bool wake, struct sibling_counts *counts)
{
	struct err none;

	memset(counts, 0, sizeof(*counts));
	counts->offline = !hotplug_online(cpu);
	counts->asleep = wake && !cpuidle_kick(cpu);
	counts->leased = c->scenario != NULL && c->module.fd >= 0 &&
			sibidle_stats(&c->module, cpu, &counts->stats, &none) == 0;
	counts->turns = load_turns(c->load);
	cpuidle_read(&counts->states, cpu);
}

/* One state between two readings. */
struct use {
	uint64_t entries, idle_ns;
};

static uint64_t
running(const struct sibidle_stats *s, unsigned int state)
{
	return s->idle_state == state && s->now > s->since ? s->now - s->since : 0;
}

/* What the module counted of a state, in all modes, the period that runs included. */
static struct use
module_use(const struct control *c, const struct sibidle_stats *before,
		const struct sibidle_stats *now, unsigned int state)
{
	struct use u = { 0 };
	uint64_t ticks = running(now, state), less = running(before, state);

	for (unsigned int m = 0; m < SIBIDLE_MODES; m++) {
		u.entries += now->cells[m][state].entries - before->cells[m][state].entries;
		ticks += now->cells[m][state].ticks;
		less += before->cells[m][state].ticks;
	}
	u.idle_ns = ticks > less ? sibidle_ns(&c->module, ticks - less) : 0;
	return u;
}

static struct use
state_use(const struct control *c, const struct sibling_counts *before,
		const struct sibling_counts *now, unsigned int i)
{
	struct use u = { now->states.at[i].usage - before->states.at[i].usage,
		1000 * (now->states.at[i].time_us - before->states.at[i].time_us) };

	if (!now->leased || !before->leased)
		return u;
	/* The module does not see POLL. */
	for (unsigned int s = 0; s < c->module.info.nr_states; s++)
		if (strcmp(c->module.info.states[s].name, now->states.at[i].name) == 0 &&
				(c->module.info.states[s].flags & SIBIDLE_STATE_HOOKABLE) != 0)
			return module_use(c, &before->stats, &now->stats, s);
	return u;
}

static double
percent(uint64_t part, uint64_t whole)
{
	return whole == 0 ? 0 : 100 * (double)part / (double)whole;
}

static void
add_value(struct sibling_use *use, uint64_t value)
{
	char text[24];
	size_t used = strlen(use->spec_ctrl);

	snprintf(text, sizeof(text), "0x%" PRIx64, value);
	for (const char *at = use->spec_ctrl; (at = strstr(at, text)) != NULL; at++)
		if (at[strlen(text)] == ';' || at[strlen(text)] == '\0')
			return;
	if (used + strlen(text) + 2 <= sizeof(use->spec_ctrl))
		snprintf(use->spec_ctrl + used, sizeof(use->spec_ctrl) - used, "%s%s",
				used == 0 ? "" : ";", text);
}

/* Collect the values sampled; returns the percentage of samples that the mode does not allow. */
static double
sampled(const struct control *c, const struct sibling_counts *before,
		const struct sibling_counts *now, struct sibling_use *use)
{
	const struct word *mode = scenario_word(c->scenario, WORD_MODE);
	uint64_t all = 0, wrong = 0;

	if (mode == NULL)
		return 0;
	/* Suspend, or somebody who took the CPU off line, ends a lease. */
	if (now->stats.owner != SIBIDLE_MINE || now->stats.mode != mode->row->value)
		return 100;
	for (unsigned int m = 0; m < SIBIDLE_MODES; m++)
		for (unsigned int s = 0; s < SIBIDLE_STATES_MAX; s++) {
			const struct sibidle_cell *a = &before->stats.cells[m][s];
			const struct sibidle_cell *b = &now->stats.cells[m][s];

			for (unsigned int v = 0; v < SIBIDLE_VALUES_MAX; v++) {
				uint64_t n = b->count[v] - a->count[v];
				bool set = (b->value[v] & SPEC_CTRL_IBRS) != 0;

				if (n == 0)
					continue;
				add_value(use, b->value[v]);
				all += n;
				/* Without kernel IBRS keep has nothing to keep. */
				if ((m != mode->row->value) || (m == SIBIDLE_CLEAR && set) ||
						(m == SIBIDLE_KEEP && !set &&
								c->module.info.clear_refusal ==
										SIBIDLE_OK))
					wrong += n;
			}
		}
	return percent(wrong, all);
}

static double
larger(double a, double b)
{
	return b > a || isnan(a) ? b : a;
}

/* Whether the scenario lets the CPU idle in a state. In POLL a mode has no say: IBRS is as it is. */
static bool
allowed(const struct scenario *s, const struct idle_state *state, const struct idle_state *held)
{
	const struct word *limit = scenario_word(s, WORD_LIMIT);
	const struct word *mode = scenario_word(s, WORD_MODE);

	if (held != NULL)
		return state == held;
	if (limit != NULL && !qos_allows(limit, state))
		return false;
	return mode == NULL || mode->row->value == SIBIDLE_STOCK || !cpuidle_is_poll(state);
}

/*
 * How far a CPU that should idle was busy, in percent of the time: with a load of ours it is meant
 * to be, and a load that wakes it has its rate.
 */
static double
busy_wrong(const struct scenario *s, const struct sibling_use *use, uint64_t turns,
		uint64_t duration_ns)
{
	const struct word *load = scenario_word(s, WORD_LOAD);
	uint64_t idle_ns = use->idle_ns < duration_ns ? use->idle_ns : duration_ns;

	if (load != NULL && load->row->unit != NULL)
		return load_rate_off(turns, load->number, 1e-9 * (double)duration_ns);
	if (load != NULL && turns == 0)
		return 100;
	if (use->idle_ns == UINT64_MAX)
		return 0;
	return percent(load != NULL ? idle_ns : duration_ns - idle_ns, duration_ns);
}

/* Without a word about how the CPU idles it may as well be busy. */
static bool
has_to_idle(const struct scenario *s)
{
	return scenario_word(s, WORD_STATE) != NULL || scenario_word(s, WORD_LIMIT) != NULL ||
			scenario_word(s, WORD_MODE) != NULL;
}

void
sibling_compare(const struct control *c, const struct sibling_counts *before,
		const struct sibling_counts *now, uint64_t duration_ns, struct sibling_use *use)
{
	const struct scenario *s = c->scenario;
	const struct word *state = scenario_word(s, WORD_STATE);
	const struct idle_state *held =
			state != NULL ? cpuidle_find(&now->states, state->name) : NULL;
	const bool offline = scenario_word(s, WORD_OFFLINE) != NULL;
	uint64_t longest = 0, other_ns = 0, other_entries = 0;

	memset(use, 0, sizeof(*use));
	use->wrong = s != NULL && s->nb > 0 ? 0 : NAN;
	if (now->states.nb == 0)
		use->entries = use->idle_ns = UINT64_MAX;
	for (unsigned int i = 0; i < now->states.nb; i++) {
		struct use u = state_use(c, before, now, i);

		use->entries += u.entries;
		use->idle_ns += u.idle_ns;
		if (!allowed(s, &now->states.at[i], held)) {
			other_ns += u.idle_ns;
			other_entries += u.entries;
		}
		if (u.idle_ns > longest) {
			longest = u.idle_ns;
			snprintf(use->state, sizeof(use->state), "%s", now->states.at[i].name);
		}
	}
	if (now->leased && before->leased)
		use->wrong = larger(use->wrong, sampled(c, before, now, use));
	/* One scenario asks for a CPU off line, and none of the others means it, as-is included. */
	if (before->offline != offline || now->offline != offline) {
		use->wrong = 100;
		return;
	}
	if (offline || isnan(use->wrong))
		return;
	if (has_to_idle(s) && now->states.nb > 0) {
		use->wrong = larger(use->wrong, percent(other_ns, use->idle_ns));
		use->wrong = larger(use->wrong, percent(other_entries, use->entries));
	}
	/* It could not be woken, and slept through: nothing is known. */
	if (now->asleep && use->entries == 0 && use->idle_ns == 0)
		use->wrong = NAN;
	else if (has_to_idle(s) || scenario_word(s, WORD_LOAD) != NULL)
		use->wrong = larger(use->wrong,
				busy_wrong(s, use, now->turns - before->turns, duration_ns));
}
