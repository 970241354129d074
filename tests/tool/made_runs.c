/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the intervals and verdicts of comparisons are worth: runs are made up with an effect that is
 * known, and compared as real ones are. Prints a line of counts.
 *
 *	made_runs EFFECT DRIFT ORDER BLOCKS SEEDS
 *
 * EFFECT is what the second arm has over the first, in percent; DRIFT what both lose from one visit to
 * the next, in percent; ORDER is abba (every other block reversed) or aabb. A visit is off by 0.3 % and
 * a window by 0.5 % (standard deviations), one in fifty by ten times that, as on shared machines.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"

#define WINDOWS 3 /* a visit */
#define HZ 2200000000u
#define PPS 7.8e6
#define VISIT_NOISE 0.003
#define WINDOW_NOISE 0.005

struct made {
	double effect, drift; /* logarithms */
	const char *orders[2]; /* of even and of odd blocks */
	unsigned int blocks;
	size_t nb;
	struct result_window *windows;
};

static double
uniform(uint64_t *state)
{
	return ((double)stats_random(state, 1ull << 53) + 0.5) / (double)(1ull << 53);
}

static double
normal(uint64_t *state)
{
	double r = sqrt(-2 * log(uniform(state)));

	return r * cos(2 * M_PI * uniform(state));
}

static void
add_window(struct made *m, char arm, unsigned int block, unsigned int position, unsigned int window,
		double ln)
{
	struct result_window *w = &m->windows[m->nb];
	unsigned int visit = block * 4 + position;

	result_window_init(w);
	snprintf(w->run_id, sizeof(w->run_id), "made");
	snprintf(w->scenario, sizeof(w->scenario), "%s", arm == 'a' ? "c1+keep" : "c1+clear");
	snprintf(w->mode, sizeof(w->mode), "macswap");
	snprintf(w->utc_start, sizeof(w->utc_start), "2023-07-27T%02zu:%02zu:%02zuZ", m->nb / 3600,
			m->nb / 60 % 60, m->nb % 60);
	w->block = block + 1;
	w->position = position + 1;
	w->visit = visit + 1;
	w->window = window + 1;
	w->warmup = w->tainted = w->emulated = 0;
	w->lcore = 1;
	w->duration_ns = 1000000000;
	w->tsc_delta = w->tsc_hz = HZ;
	w->pps = round(PPS * exp(ln));
	w->rx_packets = w->tx_packets = (uint64_t)w->pps;
	w->tsc_cycles_per_packet = HZ / w->pps;
	m->nb++;
}

static void
make(struct made *m, uint64_t seed)
{
	m->nb = 0;
	for (unsigned int block = 0; block < m->blocks; block++)
		for (unsigned int position = 0; position < 4; position++) {
			char arm = m->orders[block % 2][position];
			double visit = VISIT_NOISE * normal(&seed) -
					m->drift * (block * 4 + position);

			for (unsigned int window = 0; window < WINDOWS; window++) {
				double noise = WINDOW_NOISE * normal(&seed);

				if (stats_random(&seed, 50) == 0)
					noise *= 10;
				add_window(m, arm, block, position, window,
						(arm == 'b' ? m->effect : 0) + visit + noise);
			}
		}
}

int
main(int argc, char **argv)
{
	unsigned int seeds, t = 0, bootstrap = 0, regressions = 0, drifts = 0;
	double change = 0;
	struct made m = { 0 };

	if (argc != 6)
		return 2;
	m.effect = log1p(atof(argv[1]) / 100);
	m.drift = atof(argv[2]) / 100;
	m.orders[0] = strcmp(argv[3], "abba") == 0 ? "abba" : "aabb";
	m.orders[1] = strcmp(argv[3], "abba") == 0 ? "baab" : "aabb";
	m.blocks = (unsigned int)atoi(argv[4]);
	seeds = (unsigned int)atoi(argv[5]);
	m.windows = calloc((size_t)m.blocks * 4 * WINDOWS, sizeof(*m.windows));
	if (m.windows == NULL || seeds == 0)
		return 1;
	for (unsigned int seed = 1; seed <= seeds; seed++) {
		struct comparisons all;
		const struct comparison *c;

		make(&m, seed);
		if (compare_arms(&all, m.windows, m.nb, false) != 0 || all.nb != 1)
			return 1;
		c = &all.at[0];
		t += fabs(c->d.mean - m.effect) <= c->d.half;
		bootstrap += c->bootstrap.low <= 100 * expm1(m.effect) &&
				c->bootstrap.high >= 100 * expm1(m.effect);
		regressions += comparisons_verdict(&all, 0) == VERDICT_REGRESSION;
		drifts += comparison_drifts(c);
		change += 100 * expm1(c->d.mean) / seeds;
		comparisons_free(&all);
	}
	printf("{\"seeds\": %u, \"t\": %u, \"bootstrap\": %u, \"regressions\": %u, \"drifts\": %u, \"change\": %.4f}\n",
			seeds, t, bootstrap, regressions, drifts, change);
	free(m.windows);
	return 0;
}
