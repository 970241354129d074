/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "experiment.h"
#include "fwd/fwd.h"
#include "machine.h"
#include "pmu.h"
#include "sibling.h"
#include "stop.h"
#include "warn.h"
#include "sysroot.h"

#define STATE_ALL_WRONG 100 /* percent of a window, as --taint-state */
#define CALIBRATE_S 0.2 /* shortest base of the TSC calibration: 0.3 ppm */
/* Less is what lies between two readings where the controller is kept waiting, and misleads nobody. */
#define CLOCK_SET_S 0.5
#define DPDK_ROUNDING_HZ 5.1e6 /* DPDK rounds its calibration to 10 MHz */

/* Everything read at one edge for one lcore. */
struct edge {
	struct lcore_edge loop;
	struct machine_counts machine;
	struct port_counts ports;
	struct pmu_counts pmu;
	struct sibling_counts sibling;
};

/*
 * The sibling is woken at every edge, in every scenario, so that what it slept is counted; not where
 * that would disturb another measured CPU or is needless.
 */
static void
read_sibling(const struct experiment *x, unsigned int i, struct sibling_counts *counts)
{
	const struct placement *p = x->placement;
	int sibling = p->at[i].sibling;

	if (sibling >= 0)
		sibling_read(x->control, (unsigned int)sibling,
				!hwloc_bitmap_isset(p->measured, (unsigned int)sibling) &&
						!hwloc_bitmap_isset(p->main_cpus,
								(unsigned int)sibling),
				counts);
}

/* No figure depends on the wall clock; whoever compares with other logs has to know. */
static void
look_at_clock(struct experiment *x)
{
	double set = result_clock_set(), by = set - x->clock_set;

	if (fabs(by) < CLOCK_SET_S)
		return;
	x->clock_set = set;
	warn("the clock was set %s by %.1f s: the times of this run go on as if it had not been",
			by > 0 ? "forward" : "back", fabs(by));
}

/* Take an edge of all lcores, and read what the machine counted up to then. */
static int
take_edges(struct experiment *x, struct edge *edges, struct err *err)
{
	if (lcore_take_edge(x->lcores, x->nb_lcores, err) != 0)
		return -1;
	result_utc(x->edge_utc, sizeof(x->edge_utc));
	look_at_clock(x);
	for (unsigned int i = 0; i < x->nb_lcores && x->pmus != NULL; i++)
		pmu_read(&x->pmus[i], &edges[i].pmu);
	for (unsigned int i = 0; i < x->nb_lcores; i++) {
		struct lcore *lc = &x->lcores[i];
		int tid = atomic_load(&lc->tid);

		if (machine_check_thread(tid, x->placement->at[i].cpu, err) != 0)
			return -1;
		edges[i].loop = lc->edge;
		machine_read(&edges[i].machine, x->placement->at[i].cpu, tid,
				x->placement->main_cpu);
		ports_counts(x->ports, x->lcores, i, &edges[i].ports);
		read_sibling(x, i, &edges[i].sibling);
	}
	return 0;
}

static uint64_t
since(uint64_t now, uint64_t before)
{
	return now == MACHINE_UNKNOWN || before == MACHINE_UNKNOWN ? RESULT_UNKNOWN : now - before;
}

static double
ratio(double a, double b)
{
	return b > 0 ? a / b : NAN;
}

/* ---- taint ---- */

static double
known(uint64_t value)
{
	return value == RESULT_UNKNOWN ? NAN : (double)value;
}

/* Change of frequency in percent; a throttle event or a new limit is beyond every bound. */
static double
frequency_change(const struct machine_counts *now, const struct machine_counts *before)
{
	uint64_t throttles = since(now->throttles, before->throttles);

	if ((throttles != RESULT_UNKNOWN && throttles > 0) ||
			now->freq_limits != before->freq_limits)
		return INFINITY;
	if (now->freq_khz == MACHINE_UNKNOWN || before->freq_khz == MACHINE_UNKNOWN)
		return NAN;
	return 100 * fabs((double)now->freq_khz / (double)before->freq_khz - 1);
}

/* What each cause is judged by, in the units of its bound; NAN: unknown, so no taint. */
static void
taint_values(const struct result_window *w, const struct edge *now, const struct edge *before,
		double sibling_wrong, double *value)
{
	const struct fwd_mode *mode = fwd_mode_find(w->mode);
	double seconds = 1e-9 * (double)w->duration_ns;

	for (unsigned int t = 0; t < TAINT_MAX; t++)
		value[t] = NAN;
	value[TAINT_IRQS] = known(w->irqs) / seconds / machine_tick_hz();
	value[TAINT_CTXSW] = known(w->ctx_switches);
	value[TAINT_STEAL] = 100 * known(w->steal_ns) / (double)w->duration_ns;
	value[TAINT_SMI] = known(w->smi);
	/* A mode that makes its frames does not need any to come back. */
	if (mode == NULL || !(mode->kind & FWD_COUNTS_SENT))
		value[TAINT_UNSATURATED] = 100 * ratio((double)w->empty_polls, (double)w->polls);
	value[TAINT_MISSED] = known(w->rx_missed);
	value[TAINT_NOMBUF] = known(w->rx_nombuf);
	value[TAINT_FREQ] = frequency_change(&now->machine, &before->machine);
	value[TAINT_STATE] = sibling_wrong;
}

static void
add_taint(struct result_window *w, enum taint cause)
{
	size_t used = strlen(w->taint);

	snprintf(w->taint + used, sizeof(w->taint) - used, "%s%s", used == 0 ? "" : ";",
			taint_word(cause));
}

static void
set_taint(const struct experiment *x, struct result_window *w, const struct edge *now,
		const struct edge *before, double sibling_wrong, bool controller)
{
	double value[TAINT_MAX];

	taint_values(w, now, before, sibling_wrong, value);
	w->tainted = 0;
	for (unsigned int t = 0; t < TAINT_MAX; t++)
		if (value[t] > x->options->taint_bound[t]) {
			add_taint(w, (enum taint)t);
			w->tainted = 1;
		}
	/* A standing condition of the machine: said, but no reason to refuse the window. */
	if (controller)
		add_taint(w, TAINT_CONTROLLER);
}

/* ---- rows ---- */

static const struct scenario *
visited(const struct experiment *x)
{
	return options_arm(x->options, x->visit.arm).scenario;
}

static void
fill_counts(struct result_window *w, const struct edge *now, const struct edge *before,
		bool counts_sent, bool busy)
{
	const struct lcore_counts *a = &before->loop.counts, *b = &now->loop.counts;
	double packets;

	w->duration_ns = now->loop.clock.raw_ns - before->loop.clock.raw_ns;
	w->tsc_delta = now->loop.clock.tsc - before->loop.clock.tsc;
	w->rx_packets = b->rx_packets - a->rx_packets;
	w->tx_packets = b->tx_packets - a->tx_packets;
	w->tx_dropped = b->tx_dropped - a->tx_dropped;
	w->polls = b->polls - a->polls;
	w->empty_polls = b->empty_polls - a->empty_polls;
	w->rx_missed = since(now->ports.missed, before->ports.missed);
	w->rx_nombuf = since(now->ports.nombuf, before->ports.nombuf);
	packets = (double)(counts_sent ? w->tx_packets : w->rx_packets);
	w->pps = ratio(packets, 1e-9 * (double)w->duration_ns);
	w->tsc_cycles_per_packet = ratio((double)w->tsc_delta, packets);
	if (busy)
		w->busy_cycles_per_packet =
				ratio((double)(b->busy_cycles - a->busy_cycles), packets);
	if (now->pmu.exact && before->pmu.exact) {
		w->core_cycles_per_packet = ratio(
				(double)(now->pmu.core_cycles - before->pmu.core_cycles), packets);
		w->instructions_per_packet =
				ratio((double)(now->pmu.instructions - before->pmu.instructions),
						packets);
	}
	w->irqs = since(now->machine.irqs, before->machine.irqs);
	w->ctx_switches = since(now->machine.ctx_switches, before->machine.ctx_switches);
	w->steal_ns = since(now->machine.steal_ns, before->machine.steal_ns);
	w->smi = since(now->machine.smi, before->machine.smi);
}

static void
fill_sibling(const struct experiment *x, struct result_window *w, const struct edge *now,
		const struct edge *before, double *wrong)
{
	struct sibling_use use;

	*wrong = NAN;
	if (w->sibling_cpu == RESULT_UNKNOWN)
		return;
	sibling_compare(x->control, &before->sibling, &now->sibling, w->duration_ns, &use);
	if (use.entries != UINT64_MAX) {
		w->sibling_idle_entries = use.entries;
		w->sibling_idle_ns = use.idle_ns;
	}
	snprintf(w->sibling_state, sizeof(w->sibling_state), "%s", use.state);
	snprintf(w->sibling_spec_ctrl, sizeof(w->sibling_spec_ctrl), "%s", use.spec_ctrl);
	*wrong = use.wrong;
}

static void
fill_setting(const struct experiment *x, struct result_window *w, unsigned int lcore,
		uint32_t number)
{
	const struct options *o = x->options;
	const struct placed *at = &x->placement->at[lcore];

	result_window_init(w);
	snprintf(w->run_id, sizeof(w->run_id), "%s", x->run_id);
	snprintf(w->host, sizeof(w->host), "%s", x->host);
	snprintf(w->scenario, sizeof(w->scenario), "%s", visited(x)->text);
	snprintf(w->mode, sizeof(w->mode), "%s", o->mode->name);
	snprintf(w->source, sizeof(w->source), "%s", o->source_text);
	snprintf(w->relation, sizeof(w->relation), "%s", relation_word(at->relation));
	w->block = x->visit.block;
	w->position = x->visit.position;
	w->visit = x->visit.number;
	w->window = number;
	w->warmup = number == 0 ? 1 : 0;
	w->burst = x->lcores[lcore].burst;
	if (strcmp(o->mode->name, "noisy") == 0) {
		const struct fwd_lookups *l = &x->lcores[lcore].streams[0]->lookups;

		w->noisy_lookups = l->reads + l->writes + l->reads_writes;
	}
	if (x->pkt_len != 0)
		w->pkt_len = x->pkt_len;
	w->lcore = at->lcore;
	w->cpu = at->cpu;
	if (at->sibling >= 0)
		w->sibling_cpu = (uint64_t)at->sibling;
	w->tsc_hz = x->tsc_hz;
	w->emulated = sys_emulated() ? 1 : 0;
}

static int
hand_over(struct experiment *x, const struct edge *before, const struct edge *now,
		const char *utc_start, uint32_t number, struct err *err)
{
	bool counts_sent = (x->options->mode->kind & FWD_COUNTS_SENT) != 0;

	for (unsigned int i = 0; i < x->nb_lcores; i++) {
		uint64_t bursts[LCORE_BURST_MAX + 1];
		struct result_window w;
		double wrong;

		fill_setting(x, &w, i, number);
		snprintf(w.utc_start, sizeof(w.utc_start), "%s", utc_start);
		fill_counts(&w, &now[i], &before[i], counts_sent, x->options->record_core_cycles);
		fill_sibling(x, &w, &now[i], &before[i], &wrong);
		set_taint(x, &w, &now[i], &before[i], wrong, x->placement->at[i].controller);
		x->tainted |= w.tainted == 1 && w.warmup == 0;
		for (unsigned int b = 0; b <= LCORE_BURST_MAX; b++)
			bursts[b] = now[i].loop.bursts[b] - before[i].loop.bursts[b];
		if (x->row(x->arg, &w, x->options->record_burst_stats ? bursts : NULL, err) != 0)
			return -1;
	}
	return 0;
}

/* ---- schedule ---- */

/* Longest time without a look at the ports. */
#define CHECK_S 1.0

/* Wait for the end of a window; look at the ports and print their statistics on the way. */
static int
wait_window(struct experiment *x, double seconds, struct err *err)
{
	double period = x->options->stats_period;

	while (seconds > 0 && !stop_asked()) {
		double nap = RTE_MIN(seconds, CHECK_S);

		if (period > 0)
			nap = RTE_MIN(nap, RTE_MAX(0.001, period - x->unprinted));
		stop_sleep(nap);
		seconds -= nap;
		x->unprinted += nap;
		if (ports_check(x->ports, err) != 0)
			return -1;
		if (period > 0 && x->unprinted >= period && !stop_asked()) {
			x->period(x->arg);
			x->unprinted = 0;
		}
	}
	return 0;
}

static int
measure_window(struct experiment *x, struct edge *edges, uint32_t number, double seconds,
		struct err *err)
{
	struct edge *before = edges, *now = edges + x->nb_lcores;
	char utc_start[RESULT_TEXT_MAX];
	struct err gone = { 0 };
	int rc;

	memcpy(utc_start, x->edge_utc, sizeof(utc_start));
	rc = wait_window(x, seconds, &gone);
	/* A signal cuts the window short; one that comes later finds it whole. */
	x->cut_short = stop_asked() && number > 0;
	x->interrupted |= stop_asked();
	if (take_edges(x, now, err) != 0)
		return -1;
	if (hand_over(x, before, now, utc_start, number, err) != 0)
		return -1;
	if (number > 0)
		x->windows_done++;
	memcpy(before, now, x->nb_lcores * sizeof(*now));
	if (rc != 0)
		*err = gone;
	return rc;
}

static void
calibrate(struct experiment *x)
{
	struct lcore_clock now;
	double hz, dpdk = (double)rte_get_tsc_hz();

	lcore_clock_read(&now);
	if (1e-9 * (double)(now.raw_ns - x->started.raw_ns) < CALIBRATE_S) {
		stop_sleep(CALIBRATE_S);
		lcore_clock_read(&now);
	}
	hz = 1e9 * (double)(now.tsc - x->started.tsc) / (double)(now.raw_ns - x->started.raw_ns);
	x->tsc_hz = (uint64_t)(hz + 0.5);
	if (fabs(hz - dpdk) > DPDK_ROUNDING_HZ)
		warn("DPDK takes the TSC for %.0f Hz, the kernel's clock says %.0f: the latter is used",
				dpdk, hz);
}

/* Open the counters of every forwarding thread, which must be running. */
static int
open_pmus(struct experiment *x, struct err *err)
{
	x->pmus = calloc(x->nb_lcores, sizeof(*x->pmus));
	if (x->pmus == NULL)
		return err_set(err, EXIT_FAILED, "out of memory");
	for (unsigned int i = 0; i < x->nb_lcores; i++)
		x->pmus[i].fd = x->pmus[i].member = -1;
	/* An answered edge says that the thread runs. */
	if (lcore_take_edge(x->lcores, x->nb_lcores, err) != 0)
		return -1;
	for (unsigned int i = 0; i < x->nb_lcores; i++)
		if (pmu_open(&x->pmus[i], atomic_load(&x->lcores[i].tid), err) != 0)
			return -1;
	return 0;
}

static void
close_pmus(struct experiment *x)
{
	for (unsigned int i = 0; x->pmus != NULL && i < x->nb_lcores; i++)
		pmu_close(&x->pmus[i]);
	free(x->pmus);
	x->pmus = NULL;
}

static void __attribute__((format(printf, 2, 3))) note(struct experiment *x, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	x->note(x->arg, text);
}

/* ---- visits ---- */

/* Launch the loops with the setting of an arm, which is constant while they run. */
static int
launch_loops(struct experiment *x, const struct options_arm *arm, struct err *err)
{
	x->setting = arm->setting;
	return lcore_launch_all(
			x->lcores, x->nb_lcores, arm->burst, &arm->lookups, &x->launched, err);
}

static int
stop_loops(struct experiment *x, struct err *err)
{
	x->stuck = lcore_stop(x->lcores, x->launched, err) != 0;
	x->launched = 0;
	return x->stuck ? -1 : 0;
}

/* The loops of the visit's setting. */
static int
set_loops(struct experiment *x, struct err *err)
{
	struct options_arm arm = options_arm(x->options, x->visit.arm);

	if (arm.setting == x->setting)
		return 0;
	return stop_loops(x, err) != 0 ? -1 : launch_loops(x, &arm, err);
}

/* What the machine had before the first window, and lacks now, is no reason to skip. */
static int
no_visit(const struct experiment *x, struct err *err)
{
	if (err->code == EXIT_SKIPPED && x->windows_done > 0)
		err->code = EXIT_FAILED;
	return -1;
}

/* Settle since the scenario was applied: the time in which it was seen to hold counts. */
static void
settle(const struct experiment *x)
{
	struct lcore_clock now;

	lcore_clock_read(&now);
	stop_sleep(RTE_MAX(0.0,
			x->options->settle - 1e-9 * (double)(now.raw_ns - x->applied_at.raw_ns)));
}

/* Nothing is measured before the scenario has been seen to hold. */
static int
begin_visit(struct experiment *x, struct err *err)
{
	const struct scenario *s = visited(x);
	unsigned int cpu = (unsigned int)x->placement->at[0].sibling;

	lcore_clock_read(&x->applied_at);
	if (s->nb == 0)
		return 0;
	if (control_apply(x->control, cpu, s, err) != 0)
		return no_visit(x, err);
	lcore_clock_read(&x->applied_at);
	if (control_verify(x->control, err) != 0)
		return no_visit(x, err);
	if (!control_guarded(x->control))
		warn("somebody ended the process that restores after a kill -9: only \"idlectl restore\" will");
	x->applied(x->arg, s);
	if (control_sender(x->control) >= 0)
		note(x, "CPU %u: %s applied and verified, from CPU %d", cpu, s->text,
				control_sender(x->control));
	else
		note(x, "CPU %u: %s applied and verified", cpu, s->text);
	return 0;
}

/* What does not hold any more may not have held all the time: none of the visit's windows is clean. */
static int
end_visit(struct experiment *x, struct err *err)
{
	const struct scenario *s = visited(x);
	bool held = true;
	struct err why;

	if (s->nb == 0)
		return 0;
	if (!stop_asked() && control_verify(x->control, &why) != 0) {
		held = x->options->taint_bound[TAINT_STATE] >= STATE_ALL_WRONG;
		x->tainted |= !held;
		warn("after a visit %s", why.text);
	}
	if (x->visited(x->arg, held, err) != 0)
		return -1;
	if (control_restore(x->control, err) != 0)
		return -1;
	x->applied(x->arg, NULL);
	note(x, "CPU %d: given back", x->placement->at[0].sibling);
	return 0;
}

static int
run_windows(struct experiment *x, struct edge *edges, struct err *err)
{
	const struct options *o = x->options;

	settle(x);
	if (x->tsc_hz == 0)
		calibrate(x);
	if (take_edges(x, edges, err) != 0)
		return -1;
	x->interrupted = stop_asked();
	if (o->warmup > 0 && !x->interrupted && measure_window(x, edges, 0, o->warmup, err) != 0)
		return -1;
	for (unsigned int i = 0; i < x->nb_lcores; i++)
		if (edges[i].loop.saving)
			warn("--save-pcap: frames are still being saved; until there are %u, windows run in a slower loop",
					o->save_frames);
	for (uint32_t n = 1; n <= o->windows && !x->interrupted; n++)
		if (measure_window(x, edges, n, o->duration, err) != 0)
			return -1;
	return 0;
}

/* The visits of a block, in the order of block number like. */
static int
run_block(struct experiment *x, struct edge *edges, uint32_t like, struct err *err)
{
	const struct options *o = x->options;
	unsigned int visits[SCHEDULE_VISITS_MAX], nb = schedule_visits(options_arms(o));

	schedule_block(visits, options_arms(o), like, o->order, o->seed);
	x->tainted = false;
	x->visit.block++;
	for (unsigned int i = 0; i < nb && !x->interrupted; i++) {
		x->visit.position = i + 1;
		x->visit.number++;
		x->visit.arm = visits[i];
		if (set_loops(x, err) != 0 || begin_visit(x, err) != 0 ||
				run_windows(x, edges, err) != 0 || end_visit(x, err) != 0)
			return -1;
	}
	return 0;
}

static int
run_blocks(struct experiment *x, struct edge *edges, struct err *err)
{
	const struct options *o = x->options;

	x->visit.block = x->done.blocks;
	x->visit.number = x->done.visits;
	x->windows_done = x->done.windows;
	x->blocks_again = x->done.blocks_again;
	for (uint32_t like = x->done.next; like <= o->blocks;) {
		if (run_block(x, edges, like, err) != 0)
			return -1;
		if (x->interrupted)
			return 0;
		/* A run of one arm measures just the windows that were asked for. */
		if (options_arms(o) > 1 && x->tainted && x->blocks_again < o->blocks) {
			note(x, "block %u is tainted and measured again", x->visit.block);
			x->blocks_again++;
		} else {
			like++;
		}
		x->done = (struct checkpoint){ like, x->visit.block, x->visit.number,
			x->windows_done, x->blocks_again };
		if (x->block(x->arg, &x->done, err) != 0)
			return -1;
	}
	return 0;
}

int
experiment_run(struct experiment *x, struct err *err)
{
	struct edge *edges = calloc(2 * (size_t)x->nb_lcores, sizeof(*edges));
	const struct options_arm first = options_arm(x->options, 0);
	struct err stop_err;
	int rc;

	if (edges == NULL)
		return err_set(err, EXIT_FAILED, "out of memory");
	rc = launch_loops(x, &first, err);
	if (rc == 0 && x->options->record_perf_events)
		rc = open_pmus(x, err);
	if (rc == 0)
		rc = run_blocks(x, edges, err);
	if (!x->stuck && stop_loops(x, rc == 0 ? err : &stop_err) != 0)
		rc = -1;
	close_pmus(x);
	x->interrupted |= x->windows_done < options_windows(x->options);
	free(edges);
	return rc;
}

static double
visit_seconds(const struct options *o)
{
	return o->settle + o->warmup + o->windows * o->duration;
}

double
experiment_seconds(const struct options *o, const struct checkpoint *done)
{
	uint32_t blocks = done->next <= o->blocks ? o->blocks + 1 - done->next : 0;

	return blocks * schedule_visits(options_arms(o)) * visit_seconds(o);
}

double
experiment_left(const struct experiment *x, uint32_t windows)
{
	const struct options *o = x->options;
	uint32_t visits = x->visit.number - x->done.visits; /* of this block, this one included */

	return experiment_seconds(o, &x->done) - visits * visit_seconds(o) +
			(o->windows - windows) * o->duration;
}
