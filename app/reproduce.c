/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "csv.h"
#include "published.h"
#include "reproduce.h"
#include "summary.h"

enum { KEEP, CLEAR, NB_ARMS };

#define PUBLISHED_SYSTEM "ibrs_idle" /* DPDK's testpmd; the cycles are those of the whole loop */

static const struct {
	const char *scenario, *label;
} arms[NB_ARMS] = {
	[KEEP] = { "c1+keep", "ibrs-on" },
	[CLEAR] = { "c1+clear", "ibrs-off" },
};

static double
published(int arm, const char *column)
{
	char where[32];

	snprintf(where, sizeof(where), "scenario=%s", arms[arm].label);
	return published_figure(published_find(PUBLISHED_SYSTEM), where, column);
}

static double
published_pps(int arm)
{
	return 1e6 * published(arm, "mpps");
}

static double
published_cycles(int arm)
{
	return published(arm, "tsc_cycles_per_packet");
}

/* What held in the clean windows of a scenario besides its idling. */
struct held {
	double windows, seconds, entries;
	double instructions, core_share; /* sums over windows; NAN where one is unknown */
	char states[RESULT_TEXT_MAX], registers[RESULT_TEXT_MAX]; /* distinct, joined by ; */
};

static void
look(struct held *h, const struct result_window *windows, size_t n, const char *scenario,
		bool with_tainted)
{
	memset(h, 0, sizeof(*h));
	for (size_t i = 0; i < n; i++) {
		const struct result_window *w = &windows[i];

		if (strcmp(w->scenario, scenario) != 0 || w->warmup == 1 ||
				(w->tainted == 1 && !with_tainted))
			continue;
		h->windows++;
		h->seconds += 1e-9 * (double)w->duration_ns;
		h->entries += w->sibling_idle_entries == RESULT_UNKNOWN
				? NAN
				: (double)w->sibling_idle_entries;
		h->instructions += w->instructions_per_packet;
		h->core_share += w->core_cycles_per_packet / w->tsc_cycles_per_packet;
		summary_add_words(h->states, w->sibling_state);
		summary_add_words(h->registers, w->sibling_spec_ctrl);
	}
}

/* A rate as 7.8M, with so many decimals. */
struct rate_text {
	char text[32];
};

static struct rate_text
rate(double pps, int decimals)
{
	struct rate_text t;

	if (!isfinite(pps))
		snprintf(t.text, sizeof(t.text), "unknown");
	else if (pps >= 1e6)
		snprintf(t.text, sizeof(t.text), "%.*fM", decimals, pps / 1e6);
	else
		snprintf(t.text, sizeof(t.text), "%.*fk", decimals, pps / 1e3);
	return t;
}

static double
change(double from, double to)
{
	return 100 * (to / from - 1);
}

static void
print_table(FILE *out, const struct comparison *c)
{
	const double pps[NB_ARMS] = { c->pps_base, c->pps_other };
	const double cycles[NB_ARMS] = { c->cycles_base, c->cycles_other };
	struct effect e = effect_of(&c->d);
	char text[96];

	fprintf(out, "%-10s  %-26s  %-23s  published (%s)\n", "scenario", "packets/s",
			"avg tsc cycles/packet", published_find(PUBLISHED_SYSTEM)->machine);
	for (int i = 0; i < NB_ARMS; i++)
		fprintf(out, "%-10s  %-26s  %-23.2f  %-7s  %.2f\n", arms[i].label,
				rate(pps[i], 3).text, cycles[i], rate(published_pps(i), 1).text,
				published_cycles(i));
	snprintf(text, sizeof(text), "%+.1f %% %s", e.change, effect_interval(&e).text);
	fprintf(out, "%-10s  %-26s  ", "change", text);
	snprintf(text, sizeof(text), "%+.1f %%", c->cycles);
	fprintf(out, "%-23s  %+.1f %%  %+.1f %%\n", text,
			change(published_pps(KEEP), published_pps(CLEAR)),
			change(published_cycles(KEEP), published_cycles(CLEAR)));
	fprintf(out, "(ibrs-on is %.1f %% below ibrs-off; published: %.0f %%)\n",
			100 * (1 - c->pps_base / c->pps_other),
			100 * (1 - published_pps(KEEP) / published_pps(CLEAR)));
}

/* ---- what held the rest equal ---- */

enum alike { ALIKE, NOT_ALIKE, UNKNOWN };

/* By so much of themselves figures may differ that are called alike. */
#define WAKES_ALIKE 0.1
#define WORK_ALIKE 0.01

enum { STATE, WAKES, REGISTER, WORK, FREQUENCY, NB_QUESTIONS };

static const char *const questions[NB_QUESTIONS] = { "idle state", "wake-ups", "SPEC_CTRL",
	"instructions/packet", "frequency" };

struct figures {
	double wakes[NB_ARMS]; /* a second */
	double share[NB_ARMS]; /* core cycles to TSC cycles */
	double instructions; /* change, percent */
	enum alike alike[NB_QUESTIONS];
};

static enum alike
compare_figures_of(double a, double b, double bound)
{
	if (!isfinite(a) || !isfinite(b))
		return UNKNOWN;
	return fabs(a - b) <= bound * fmax(fabs(a), fabs(b)) ? ALIKE : NOT_ALIKE;
}

/* IBRS, bit 0, is set in all values of the one list and in none of the other. */
static enum alike
compare_registers(const char *keep, const char *clear)
{
	const char *const lists[NB_ARMS] = { [KEEP] = keep, [CLEAR] = clear };

	for (int i = 0; i < NB_ARMS; i++) {
		const char *at = lists[i];

		if (*at == '\0')
			return UNKNOWN;
		for (; *at != '\0'; at += strcspn(at, ";"), at += *at == ';')
			if ((strtoull(at, NULL, 16) & 1) != (i == KEEP))
				return NOT_ALIKE;
	}
	return ALIKE;
}

static void
find_figures(struct figures *f, const struct held h[NB_ARMS])
{
	double instructions[NB_ARMS];

	for (int i = 0; i < NB_ARMS; i++) {
		f->wakes[i] = h[i].entries / h[i].seconds;
		f->share[i] = h[i].core_share / h[i].windows;
		instructions[i] = h[i].instructions / h[i].windows;
	}
	f->instructions = change(instructions[KEEP], instructions[CLEAR]);
	f->alike[STATE] = h[KEEP].states[0] == '\0' || h[CLEAR].states[0] == '\0' ? UNKNOWN
			: strcmp(h[KEEP].states, h[CLEAR].states) == 0		  ? ALIKE
										  : NOT_ALIKE;
	f->alike[WAKES] = compare_figures_of(f->wakes[KEEP], f->wakes[CLEAR], WAKES_ALIKE);
	f->alike[REGISTER] = compare_registers(h[KEEP].registers, h[CLEAR].registers);
	f->alike[WORK] = compare_figures_of(instructions[KEEP], instructions[CLEAR], WORK_ALIKE);
	f->alike[FREQUENCY] = compare_figures_of(f->share[KEEP], f->share[CLEAR], WORK_ALIKE);
}

/* The questions that have this answer, as a list in a sentence; returns how many. */
static int
list_questions(char *text, size_t size, const struct figures *f, enum alike answer)
{
	int nb = 0;

	text[0] = '\0';
	for (int i = 0; i < NB_QUESTIONS; i++)
		if (f->alike[i] == answer)
			snprintf(text + strlen(text), size - strlen(text), "%s%s",
					nb++ > 0 ? ", " : "", questions[i]);
	return nb;
}

/* One sentence: whether the machine shows the effect, how sure that is, and what held the rest equal. */
static void
print_verdict(FILE *out, const struct comparison *c, double margin, const struct figures *f)
{
	static const char *const words[] = {
		[VERDICT_IMPROVEMENT] = "This machine shows the effect",
		[VERDICT_SAME] = "This machine does not show the effect",
		[VERDICT_REGRESSION] = "This machine shows the opposite of the effect",
		[VERDICT_INCONCLUSIVE] =
				"Whether this machine shows the effect cannot be told from this run",
	};
	struct effect e = comparison_effect(c);
	char list[128];

	if (c->emulated) {
		fprintf(out, "emulated: the figures say nothing about speed, here or elsewhere.\n");
		return;
	}
	if (c->tainted_only) {
		fprintf(out, "%s: all windows of a scenario are tainted.\n",
				words[VERDICT_INCONCLUSIVE]);
		return;
	}
	fprintf(out, "%s: %s %% at %.4g %% from %zu blocks, margin %g %%;\n",
			words[comparison_verdict(c, margin)], effect_interval(&e).text,
			100 * c->verdict_level, c->n_base, margin);
	if (list_questions(list, sizeof(list), f, NOT_ALIKE) > 0) {
		fprintf(out, "but something else than IBRS may be the cause, as these were not as they should be: %s.\n",
				list);
		return;
	}
	if (list_questions(list, sizeof(list), f, ALIKE) > 0)
		fprintf(out, "what held the rest equal: %s", list);
	else
		fprintf(out, "nothing is known of what held the rest equal");
	if (f->alike[WORK] == ALIKE && f->alike[FREQUENCY] == ALIKE)
		fprintf(out, ", so neither work nor frequency explains it");
	if (list_questions(list, sizeof(list), f, UNKNOWN) > 0)
		fprintf(out, ";\nnot known: %s", list);
	fprintf(out, ".\n");
}

static void
print_held(FILE *out, const struct held h[NB_ARMS], const struct figures *f)
{
	bool same = f->alike[STATE] == ALIKE;

	fprintf(out, "  idle state: %s%.40s%s%.40s\n",
			f->alike[STATE] == UNKNOWN ? "unknown"
						   : (same ? "the same, " : "not the same, "),
			h[KEEP].states, same || f->alike[STATE] == UNKNOWN ? "" : " and ",
			same || f->alike[STATE] == UNKNOWN ? "" : h[CLEAR].states);
	if (f->alike[WAKES] != UNKNOWN)
		fprintf(out, "  wake-ups of the sibling: %.1f a second with ibrs-on, %.1f with ibrs-off\n",
				f->wakes[KEEP], f->wakes[CLEAR]);
	else
		fprintf(out, "  wake-ups of the sibling: unknown\n");
	fprintf(out, "  SPEC_CTRL sampled in its idle loop: %.30s with ibrs-on, %.30s with ibrs-off\n",
			h[KEEP].registers[0] == '\0' ? "nothing" : h[KEEP].registers,
			h[CLEAR].registers[0] == '\0' ? "nothing" : h[CLEAR].registers);
	if (f->alike[WORK] != UNKNOWN)
		fprintf(out, "  instructions/packet: %+.2f %%; core cycles to TSC cycles: %.3f and %.3f\n",
				f->instructions, f->share[KEEP], f->share[CLEAR]);
	else
		fprintf(out, "  work and frequency: not recorded (--record-perf-events, where there is a PMU)\n");
}

/* The comparison of the two scenarios, NULL where there is none. */
static const struct comparison *
find(const struct comparisons *all)
{
	for (size_t i = 0; i < all->nb; i++)
		if (strcmp(all->at[i].base, arms[KEEP].scenario) == 0 &&
				strcmp(all->at[i].other, arms[CLEAR].scenario) == 0)
			return &all->at[i];
	return NULL;
}

void
reproduce_print(FILE *out, const struct result_window *windows, size_t n,
		const struct comparisons *all, double margin, const char *forced)
{
	const struct comparison *c = find(all);
	struct held held[NB_ARMS];
	struct figures f;
	char line[TABLE_WIDTH - 1];

	if (c == NULL)
		return;
	for (int i = 0; i < NB_ARMS; i++)
		look(&held[i], windows, n, arms[i].scenario, c->with_tainted);
	fputc('\n', out);
	snprintf(line, sizeof(line), "forced: %s", forced != NULL ? forced : "");
	if (forced != NULL)
		fprintf(out, "%s\n", csv_visible(line));
	print_table(out, c);
	find_figures(&f, held);
	print_verdict(out, c, margin, &f);
	fprintf(out, "In the windows that count:\n");
	print_held(out, held, &f);
}

json_t *
reproduce_published_json(void)
{
	const struct published *p = published_find(PUBLISHED_SYSTEM);
	char source[128];
	json_t *rows = json_array();

	for (int i = 0; i < NB_ARMS; i++)
		json_array_append_new(rows,
				json_pack("{s:s, s:s, s:f, s:f}", "scenario", arms[i].scenario,
						"label", arms[i].label, "pps", published_pps(i),
						"tsc_cycles_per_packet", published_cycles(i)));
	snprintf(source, sizeof(source), "%s, %s", p->source, p->date);
	return json_pack("{s:s, s:s, s:o}", "machine", p->machine, "source", source, "rows", rows);
}
