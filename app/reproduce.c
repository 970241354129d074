/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "csv.h"
#include "reproduce.h"
#include "summary.h"

enum { KEEP, CLEAR, NB_ARMS };

/*
 * Cover letter of "x86/speculation: Disable IBRS when idle" v6, 27 July 2023: DPDK's testpmd on a CPU whose
 * hyper-thread sibling idles. The cycles are those of the whole loop.
 */
#define PUBLISHED_MACHINE "Xeon 4114"
#define PUBLISHED_SOURCE "\"x86/speculation: Disable IBRS when idle\" v6, 27 July 2023"

static const struct {
	const char *scenario, *label;
	double pps, cycles;
} published[NB_ARMS] = {
	[KEEP] = { "c1+keep", "ibrs-on", 7.8e6, 282.26 },
	[CLEAR] = { "c1+clear", "ibrs-off", 10.4e6, 209.86 },
};

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

	fprintf(out, "%-10s  %-26s  %-23s  published (" PUBLISHED_MACHINE ")\n", "scenario",
			"packets/s", "avg tsc cycles/packet");
	for (int i = 0; i < NB_ARMS; i++)
		fprintf(out, "%-10s  %-26s  %-23.2f  %-7s  %.2f\n", published[i].label,
				rate(pps[i], 3).text, cycles[i], rate(published[i].pps, 1).text,
				published[i].cycles);
	snprintf(text, sizeof(text), "%+.1f %% %s", e.change, effect_interval(&e).text);
	fprintf(out, "%-10s  %-26s  ", "change", text);
	snprintf(text, sizeof(text), "%+.1f %%", c->cycles);
	fprintf(out, "%-23s  %+.1f %%  %+.1f %%\n", text,
			change(published[KEEP].pps, published[CLEAR].pps),
			change(published[KEEP].cycles, published[CLEAR].cycles));
	fprintf(out, "(ibrs-on is %.1f %% below ibrs-off; published: %.0f %%)\n",
			100 * (1 - c->pps_base / c->pps_other),
			100 * (1 - published[KEEP].pps / published[CLEAR].pps));
}

/* One sentence: whether the machine shows the effect, and how sure that is. */
static void
print_verdict(FILE *out, const struct comparison *c, double margin)
{
	static const char *const words[] = {
		[VERDICT_IMPROVEMENT] = "This machine shows the effect",
		[VERDICT_SAME] = "This machine does not show the effect",
		[VERDICT_REGRESSION] = "This machine shows the opposite of the effect",
		[VERDICT_INCONCLUSIVE] =
				"Whether this machine shows the effect cannot be told from this run",
	};
	struct effect e = comparison_effect(c);

	if (c->emulated)
		fprintf(out, "emulated: the figures say nothing about speed, here or elsewhere.\n");
	else if (c->tainted_only)
		fprintf(out, "%s: all windows of a scenario are tainted.\n",
				words[VERDICT_INCONCLUSIVE]);
	else
		fprintf(out, "%s: %s %% at 95 %% from %zu blocks, margin %g %%.\n",
				words[comparison_verdict(c, margin)], effect_interval(&e).text,
				c->n_base, margin);
}

static void
print_held(FILE *out, const struct held h[NB_ARMS])
{
	double wakes[NB_ARMS], share[NB_ARMS];
	bool same = strcmp(h[KEEP].states, h[CLEAR].states) == 0;

	for (int i = 0; i < NB_ARMS; i++) {
		wakes[i] = h[i].entries / h[i].seconds;
		share[i] = h[i].core_share / h[i].windows;
	}
	fprintf(out, "  idle state: %s%.40s%s%.40s\n",
			h[KEEP].states[0] == '\0' ? "unknown"
						  : (same ? "the same, " : "not the same, "),
			h[KEEP].states, same ? "" : " and ", same ? "" : h[CLEAR].states);
	if (isfinite(wakes[KEEP]) && isfinite(wakes[CLEAR]))
		fprintf(out, "  wake-ups of the sibling: %.1f a second with ibrs-on, %.1f with ibrs-off\n",
				wakes[KEEP], wakes[CLEAR]);
	else
		fprintf(out, "  wake-ups of the sibling: unknown\n");
	fprintf(out, "  SPEC_CTRL sampled in its idle loop: %.30s with ibrs-on, %.30s with ibrs-off\n",
			h[KEEP].registers[0] == '\0' ? "nothing" : h[KEEP].registers,
			h[CLEAR].registers[0] == '\0' ? "nothing" : h[CLEAR].registers);
	if (isfinite(share[KEEP]) && isfinite(share[CLEAR]))
		fprintf(out, "  instructions/packet: %+.2f %%; core cycles to TSC cycles: %.3f and %.3f\n",
				change(h[KEEP].instructions / h[KEEP].windows,
						h[CLEAR].instructions / h[CLEAR].windows),
				share[KEEP], share[CLEAR]);
	else
		fprintf(out, "  work and frequency: not recorded (--record-perf-events, where there is a PMU)\n");
}

/* The comparison of the two scenarios, NULL where there is none. */
static const struct comparison *
find(const struct comparisons *all)
{
	for (size_t i = 0; i < all->nb; i++)
		if (strcmp(all->at[i].base, published[KEEP].scenario) == 0 &&
				strcmp(all->at[i].other, published[CLEAR].scenario) == 0)
			return &all->at[i];
	return NULL;
}

void
reproduce_print(FILE *out, const struct result_window *windows, size_t n,
		const struct comparisons *all, double margin, const char *forced)
{
	const struct comparison *c = find(all);
	struct held held[NB_ARMS];

	if (c == NULL)
		return;
	for (int i = 0; i < NB_ARMS; i++)
		look(&held[i], windows, n, published[i].scenario, c->with_tainted);
	fputc('\n', out);
	if (forced != NULL)
		fprintf(out, "forced: %.90s\n", csv_visible(strdupa(forced)));
	print_table(out, c);
	print_verdict(out, c, margin);
	fprintf(out, "What else was alike, in the windows that count:\n");
	print_held(out, held);
}

json_t *
reproduce_published_json(void)
{
	json_t *rows = json_array();

	for (int i = 0; i < NB_ARMS; i++)
		json_array_append_new(rows,
				json_pack("{s:s, s:s, s:f, s:f}", "scenario", published[i].scenario,
						"label", published[i].label, "pps",
						published[i].pps, "tsc_cycles_per_packet",
						published[i].cycles));
	return json_pack("{s:s, s:s, s:o}", "machine", PUBLISHED_MACHINE, "source",
			PUBLISHED_SOURCE, "rows", rows);
}
