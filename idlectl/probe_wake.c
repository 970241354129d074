/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * idlectl probe wake: how late a CPU wakes up, by idle state and mode of the module; a scenario each, in
 * turn. What POLL takes, which does not sleep, is the overhead.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "control.h"
#include "mechanisms.h"
#include "probe.h"
#include "stats.h"
#include "topology.h"

#define SLEEP_NS 200000
#define RESIDENCIES 3 /* to sleep for so many times what pays, so that the state is worth it */
#define POLL "poll"

enum { HANDLER, THREAD, NB_MOMENTS };
enum { MEDIAN, P99, MAX, NB_SHARES };

static const char *const metrics[NB_MOMENTS][NB_SHARES] = {
	[HANDLER] = { "handler median", "handler p99", "handler max" },
	[THREAD] = { "thread median", "thread p99", "thread max" },
};
static const double shares[NB_SHARES] = { 0.5, 0.99, 1 };

struct visit {
	struct scenario scenario;
	int state; /* of the module's; -1: POLL, where the module has no part */
	unsigned int mode;
	uint32_t sleep_ns;
	uint64_t entries; /* into the state in the mode, while it was measured */
	double *of[NB_MOMENTS][NB_SHARES]; /* a figure for each repeat, ns */
	struct histogram late[NB_MOMENTS];
};

struct waking {
	const struct probe_options *o;
	struct control *c;
	struct sibidle m; /* ours, beside the control's lease */
	struct visit *visits;
	size_t nb;
	struct sibidle_sample *samples;
	uint64_t seed;
	/* For the thread on the CPU. */
	struct sibidle_probe req;
	struct err err;
	int rc;
};

static void *
sleep_there(void *arg)
{
	struct waking *w = arg;

	w->rc = probe_request(&w->m, &w->req, &w->err);
	return NULL;
}

/* Entries into the state in the mode until now. */
static int
entries(const struct waking *w, const struct visit *v, uint64_t *n, struct err *err)
{
	struct sibidle_stats stats;

	*n = 0;
	if (v->state < 0)
		return 0;
	if (sibidle_stats(&w->m, (unsigned int)w->o->cpu, &stats, err) != 0)
		return -1;
	*n = stats.cells[v->mode][v->state].entries;
	return 0;
}

/* A tenth more or less, so that neither tick nor timer falls into step with it. */
static uint32_t
vary(struct waking *w, uint32_t ns)
{
	uint32_t tenth = ns / 10;

	return ns - tenth / 2 + (uint32_t)stats_random(&w->seed, tenth);
}

static void
account(struct waking *w, struct visit *v, unsigned long repeat)
{
	double *late = probe_alloc(w->req.done, sizeof(*late));

	for (int i = 0; i < NB_MOMENTS; i++) {
		for (uint32_t k = 0; k < w->req.done; k++) {
			const struct sibidle_sample *s = &w->samples[k];
			uint64_t ns = (i == HANDLER ? s->handled : s->end) - s->begin;

			late[k] = (double)ns;
			histogram_add(&v->late[i], ns);
		}
		sort_doubles(late, w->req.done);
		for (int k = 0; k < NB_SHARES; k++)
			v->of[i][k][repeat] = sorted_percentile(late, w->req.done, shares[k]);
	}
	free(late);
}

/* The CPU is as it is to be. repeat < 0: it does not count. */
static int
measure(struct waking *w, struct visit *v, long repeat, struct err *err)
{
	uint64_t before, after;
	pthread_t thread;
	int rc;

	w->req = (struct sibidle_probe){ .probe = SIBIDLE_PROBE_WAKE,
		.op = SIBIDLE_WAKE_TIMER,
		.from = (uint32_t)w->o->cpu,
		.to = (uint32_t)w->o->cpu,
		.number = vary(w, v->sleep_ns),
		.loops = (uint32_t)w->o->loops,
		.samples = (uintptr_t)w->samples };
	if (entries(w, v, &before, err) != 0)
		return -1;
	rc = thread_on(&thread, (unsigned int)w->o->cpu, sleep_there, w);
	if (rc != 0)
		return err_set(err, EXIT_FAILED, "a thread on CPU %d: %s", w->o->cpu, strerror(rc));
	probe_join(thread);
	if (w->rc != 0) {
		*err = w->err;
		return -1;
	}
	if (entries(w, v, &after, err) != 0)
		return -1;
	if (repeat < 0)
		return 0;
	v->entries += after - before;
	account(w, v, (unsigned long)repeat);
	return 0;
}

static int
visit(struct waking *w, struct visit *v, long repeat, struct err *err)
{
	struct err undo;
	int rc;

	if (w->o->stop != NULL ? w->o->stop() : probe_interrupted())
		return err_set(err, EXIT_FAILED, "interrupted");
	if (!control_guarded(w->c))
		return err_set(err, EXIT_FAILED,
				"somebody ended the process that restores after a kill -9");
	if (control_apply(w->c, (unsigned int)w->o->cpu, &v->scenario, err) != 0)
		return -1;
	rc = control_verify(w->c, err);
	if (rc == 0)
		rc = measure(w, v, repeat, err);
	if (control_restore(w->c, &undo) != 0) {
		*err = undo;
		rc = -1;
	}
	return rc;
}

/* ---- which visits ---- */

static int
add_visit(struct waking *w, const char *text, int state, unsigned int mode, uint64_t residency_us,
		struct err *err)
{
	struct visit *v = &w->visits[w->nb];
	uint64_t ns = RESIDENCIES * 1000 * residency_us;

	if (scenario_parse(&v->scenario, text, err) != 0)
		return -1;
	v->state = state;
	v->mode = mode;
	v->sleep_ns = ns < SLEEP_NS ? SLEEP_NS : ns > 9000000 ? 9000000 : (uint32_t)ns;
	for (int i = 0; i < NB_MOMENTS; i++)
		for (int k = 0; k < NB_SHARES; k++)
			v->of[i][k] = probe_alloc(w->o->repeats, sizeof(double));
	w->nb++;
	return 0;
}

/* Whether a name is in a list joined by commas. */
static bool
listed(const char *list, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = list;; at += strcspn(at, ",") + 1) {
		if (strcspn(at, ",") == len && strncasecmp(at, name, len) == 0)
			return true;
		if (strchr(at, ',') == NULL)
			return false;
	}
}

/* The modes of a state. */
static int
add_state(struct waking *w, const struct idle_state *state, int index, struct err *err)
{
	const struct sibidle_info *info = &w->m.info;
	const uint32_t refusals[SIBIDLE_MODES] = { info->stock_refusal, info->keep_refusal,
		info->clear_refusal };
	char word[IDLE_NAME_MAX], text[SCENARIO_MAX];

	cpuidle_word(state, word);
	for (unsigned int mode = 0; mode < SIBIDLE_MODES; mode++) {
		if (refusals[mode] != SIBIDLE_OK ||
				(mode != SIBIDLE_STOCK &&
						(info->states[index].flags & SIBIDLE_STATE_MODES) ==
								0))
			continue;
		snprintf(text, sizeof(text), "%s+%s", word, sibidle_mode_word(mode));
		if (add_visit(w, text, index, mode, state->residency_us, err) != 0)
			return -1;
	}
	return 0;
}

/* Every word of --states has to be a state of this CPU that the module counts. */
static int
check_list(const struct idle_states *states, const char *list, struct err *err)
{
	size_t words = 1, found = 0;
	char *names;

	for (const char *c = list; *c != '\0'; c++)
		words += *c == ',';
	for (unsigned int i = 0; i < states->nb; i++) {
		char word[IDLE_NAME_MAX];

		cpuidle_word(&states->at[i], word);
		found += !cpuidle_is_poll(&states->at[i]) && listed(list, word);
	}
	if (found == words)
		return 0;
	names = cpuidle_names(states);
	err_set(err, EXIT_USAGE, "--states %s: not a list of states that sleep; there are %s", list,
			names);
	free(names);
	return -1;
}

static int
plan(struct waking *w, struct err *err)
{
	struct idle_states states;

	cpuidle_read(&states, (unsigned int)w->o->cpu);
	if (w->m.info.stock_refusal != SIBIDLE_OK)
		return err_set(err, EXIT_SKIPPED, "%s",
				sibidle_refusal_text(w->m.info.stock_refusal));
	if (states.nb != w->m.info.nr_states)
		return err_set(err, EXIT_FAILED, "the idle driver changes");
	if (w->o->states != NULL && check_list(&states, w->o->states, err) != 0)
		return -1;
	w->visits = probe_alloc(1 + states.nb * SIBIDLE_MODES, sizeof(*w->visits));
	for (unsigned int i = 0; i < states.nb; i++) {
		char word[IDLE_NAME_MAX];
		int rc = 0;

		cpuidle_word(&states.at[i], word);
		if (cpuidle_is_poll(&states.at[i]))
			rc = add_visit(w, POLL, -1, SIBIDLE_STOCK, 0, err);
		else if ((w->m.info.states[i].flags & SIBIDLE_STATE_HOOKABLE) != 0 &&
				(w->o->states == NULL || listed(w->o->states, word)))
			rc = add_state(w, &states.at[i], (int)i, err);
		if (rc != 0)
			return -1;
	}
	return 0;
}

/* ---- all of it ---- */

static void
add_rows(struct waking *w, struct probe_report *r)
{
	const struct visit *poll = NULL;

	for (size_t i = 0; i < w->nb; i++)
		if (w->visits[i].state < 0)
			poll = &w->visits[i];
	for (size_t i = 0; i < w->nb; i++) {
		const struct visit *v = &w->visits[i];
		char name[SCENARIO_MAX + 16];

		for (int m = 0; m < NB_MOMENTS; m++) {
			for (int k = 0; k < NB_SHARES; k++)
				report_add(r, v->scenario.text, metrics[m][k], "ns", v->of[m][k],
						poll == NULL || v == poll ? NULL
									  : poll->of[m][MEDIAN],
						w->o->repeats);
			snprintf(name, sizeof(name), "%s, %s", v->scenario.text,
					m == HANDLER ? "handler" : "thread");
			report_add_histogram(r, name, "ns", &v->late[m]);
		}
		if (v->state >= 0)
			report_add_one(r, v->scenario.text, "idle entries", "entries",
					(double)v->entries);
		if (v->state >= 0 && v->entries < w->o->repeats * w->o->loops)
			report_note(r, "%s: the CPU did not enter the state before every wake-up",
					v->scenario.text);
	}
}

/* What clearing costs: the same state in both modes, repeat by repeat. */
static void
add_costs(struct waking *w, struct probe_report *r)
{
	for (size_t i = 1; i < w->nb; i++) {
		const struct visit *keep = &w->visits[i - 1], *clear = &w->visits[i];
		char name[SCENARIO_MAX + 16];

		if (clear->mode != SIBIDLE_CLEAR || keep->mode != SIBIDLE_KEEP ||
				clear->state != keep->state)
			continue;
		snprintf(name, sizeof(name), "%.*s: clear over keep",
				(int)strcspn(clear->scenario.text, "+"), clear->scenario.text);
		for (int m = 0; m < NB_MOMENTS; m++)
			report_add(r, name, metrics[m][MEDIAN], "ns", clear->of[m][MEDIAN],
					keep->of[m][MEDIAN], w->o->repeats);
	}
}

int
probe_wake_with(struct probe_report *r, const struct probe_options *o, struct control *c,
		struct err *err)
{
	struct waking w = { .o = o, .c = c, .seed = clock_ns() };
	int rc;

	if (sibidle_open(&w.m, true, err) != 0)
		return -1;
	w.samples = probe_alloc(o->loops, sizeof(*w.samples));
	rc = plan(&w, err);
	for (long i = -(long)o->warmup; i < (long)o->repeats && rc == 0; i++)
		for (size_t k = 0; k < w.nb && rc == 0; k++)
			rc = visit(&w, &w.visits[i % 2 == 0 ? k : w.nb - 1 - k], i, err);
	if (rc == 0) {
		add_rows(&w, r);
		add_costs(&w, r);
	}
	for (size_t i = 0; i < w.nb; i++)
		for (int m = 0; m < NB_MOMENTS; m++)
			for (int k = 0; k < NB_SHARES; k++)
				free(w.visits[i].of[m][k]);
	free(w.visits);
	free(w.samples);
	sibidle_close(&w.m);
	return rc;
}

int
probe_wake(struct probe_report *r, const struct probe_options *o, struct err *err)
{
	struct topology t;
	struct control c;
	struct sibidle m;
	struct err undo;
	int rc;

	/* What the machine lacks is told before anything is asked for. */
	if (sibidle_open(&m, false, err) != 0)
		return -1;
	sibidle_close(&m);
	if (topology_open(&t, o->topology, err) != 0)
		return -1;
	topology_keep_off(&t, o->cpu);
	topology_close(&t);
	if (control_begin(&c, "idlectl probe", err) != 0)
		return -1;
	rc = probe_wake_with(r, o, &c, err);
	if (control_end(&c, &undo) != 0) {
		*err = undo;
		rc = -1;
	}
	return rc;
}
