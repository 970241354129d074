/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_launch.h>
#include <rte_malloc.h>

#include "calibrate.h"
#include "environment.h"
#include "expect.h"
#include "live.h"
#include "remote.h"
#include "reproduce.h"
#include "run.h"
#include "stop.h"
#include "summary.h"
#include "warn.h"
#include "sysroot.h"

#define BUSY_SHARE 0.8 /* of a CPU that is too busy to measure on */
#define BUSY_BASE_S 0.2

static void
lock_memory(const struct options *o)
{
	/* On fault: what is never touched need not be resident. */
	if (o->mlockall && mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0)
		warn("memory is not locked: %s", strerror(errno));
}

/* ---- lcores ---- */

static int
prepare_saved(struct lcore *lc, const struct options *o)
{
	struct lcore_saved *sv = &lc->saved;

	sv->limit = o->save_frames;
	sv->frame_max = RTE_MAX(o->max_pkt_len, RTE_MAX((uint32_t)o->mbuf_size, o->fwd.tx_pkt_len));
	sv->info = calloc(sv->limit, sizeof(*sv->info));
	sv->bytes = calloc(sv->limit, sv->frame_max);
	lc->record |= LCORE_RECORD_FRAMES;
	return sv->info != NULL && sv->bytes != NULL ? 0 : -1;
}

static int
make_lcores(struct run *r, struct err *err)
{
	r->lcores_max = rte_lcore_count() - 1;
	r->lcores = rte_zmalloc("lcores", r->lcores_max * sizeof(*r->lcores), RTE_CACHE_LINE_SIZE);
	if (r->lcores == NULL)
		return err_set(err, EXIT_FAILED, "no memory for the lcores");
	for (unsigned int i = 0; i < r->lcores_max && r->options.save_path != NULL; i++)
		if (prepare_saved(&r->lcores[i], &r->options) != 0)
			return err_set(err, EXIT_FAILED, "out of memory");
	return 0;
}

/* What the lcores record from their next start on. */
static int
set_records(struct run *r, struct err *err)
{
	const struct options *o = &r->options;

	for (unsigned int i = 0; i < r->nb_lcores; i++) {
		struct lcore *lc = &r->lcores[i];

		lc->record &= ~(unsigned int)(LCORE_RECORD_CYCLES | LCORE_RECORD_BURSTS);
		if (o->record_core_cycles)
			lc->record |= LCORE_RECORD_CYCLES;
		if (!o->record_burst_stats)
			continue;
		lc->record |= LCORE_RECORD_BURSTS;
		if (lc->bursts == NULL)
			lc->bursts = calloc(LCORE_BURST_MAX + 1, sizeof(*lc->bursts));
		if (lc->bursts == NULL)
			return err_set(err, EXIT_FAILED, "out of memory");
	}
	return 0;
}

void
run_unprepare(struct run *r)
{
	r->set_up = false;
	for (unsigned int i = 0; i < r->lcores_max; i++) {
		free(r->lcores[i].streams);
		r->lcores[i].streams = NULL;
		r->lcores[i].nb_streams = 0;
	}
	r->nb_lcores = 0;
	ports_end_streams(&r->ports);
}

int
run_prepare(struct run *r, struct err *err)
{
	run_unprepare(r);
	if (ports_make_streams(&r->ports, err) != 0)
		return -1;
	r->nb_lcores = ports_assign(&r->ports, r->lcores, r->placement.nb);
	if (r->nb_lcores < r->placement.nb)
		warn("--nb-cores=%u: there are %u streams, so %u lcores forward", r->placement.nb,
				r->ports.nb_streams, r->nb_lcores);
	for (unsigned int i = 0; i < r->nb_lcores; i++) {
		struct lcore *lc = &r->lcores[i];

		lc->id = r->placement.at[i].lcore;
		lc->cpu = (int)r->placement.at[i].cpu;
		lc->mode = r->options.mode;
		if (lc->streams == NULL)
			return err_set(err, EXIT_FAILED, "out of memory");
	}
	/* What circulated may have been thrown away by the mode before. */
	if (r->options.source == SOURCE_RING && ports_refill(&r->ports, err) != 0)
		return -1;
	r->set_up = true;
	return set_records(r, err);
}

/* A CPU that somebody else uses gives no figure worth having. */
static int
check_busy(const struct run *r, struct err *err)
{
	struct lcore_clock now;
	double seconds;

	if (r->options.force)
		return 0;
	lcore_clock_read(&now);
	seconds = 1e-9 * (double)(now.raw_ns - r->busy_start.raw_ns);
	if (seconds < BUSY_BASE_S) {
		stop_sleep(BUSY_BASE_S - seconds);
		seconds = BUSY_BASE_S;
	}
	for (unsigned int i = 0; i < r->placement.nb; i++) {
		struct machine_counts c;
		unsigned int cpu = r->placement.at[i].cpu;
		double share;

		machine_read(&c, cpu, 0, r->placement.main_cpu);
		share = 1e-9 * (double)(c.busy_ns - r->busy_from[i].busy_ns) / seconds;
		if (c.busy_ns != MACHINE_UNKNOWN && share > BUSY_SHARE)
			return err_set(err, EXIT_FAILED,
					"CPU %u is busy (%.0f %% of the last %.1f s): end what runs there, choose another CPU, or give --force",
					cpu, 100 * share, seconds);
	}
	return 0;
}

/* ---- results ---- */

/* Seconds for people, by value, for printf(). */
struct time_left {
	char text[24];
};

static struct time_left
time_left(double seconds)
{
	unsigned int s = seconds > 0 ? (unsigned int)(seconds + 0.5) : 0;
	struct time_left t;

	if (s >= 3600)
		snprintf(t.text, sizeof(t.text), "%u h %02u min", s / 3600, s / 60 % 60);
	else if (s >= 60)
		snprintf(t.text, sizeof(t.text), "%u min %02u s", s / 60, s % 60);
	else
		snprintf(t.text, sizeof(t.text), "%u s", s);
	return t;
}

/* What the blocks up to now say of the last arm over the first one, for the progress line. */
static void
estimate_progress(struct run *r)
{
	struct comparisons now;

	r->estimate[0] = '\0';
	if (compare_arms(&now, r->rows, r->nb_rows, false) == 0 && now.nb > 0) {
		const struct comparison *c = &now.at[now.nb - 1];
		struct effect e = effect_of(&c->d);

		snprintf(r->estimate, sizeof(r->estimate), "  %s %+.2f %% %s", c->other, e.change,
				effect_interval(&e).text);
	}
	comparisons_free(&now);
}

#define ERASE_LINE "\033[K" /* ECMA-48; progress goes to terminals only */

static void
show_progress(struct run *r, const struct result_window *w)
{
	const struct options *o = &r->options;

	if (!r->progress)
		return;
	fprintf(stderr, "\r" ERASE_LINE);
	if (o->blocks > 1 || options_arms(o) > 1)
		fprintf(stderr, "block %u/%u  ", (unsigned int)w->block,
				o->blocks + r->experiment.blocks_again);
	fprintf(stderr, "%s%swindow %u/%u  %.3f Mpps  %.2f cycles/packet%s  %s left",
			options_arms(o) > 1 ? options_arm(o, r->experiment.visit.arm).name : "",
			options_arms(o) > 1 ? "  " : "", (unsigned int)w->window, o->windows,
			1e-6 * w->pps, w->tsc_cycles_per_packet, r->estimate,
			time_left(experiment_left(&r->experiment, (uint32_t)w->window)).text);
	fflush(stderr);
}

/*
 * Print the rows as far as number nb, where that is asked for. Standard output that went away ends a run that
 * writes nothing else.
 */
static int
print_rows(struct run *r, size_t nb, struct err *err)
{
	for (; r->printed < nb; r->printed++) {
		if (r->options.format != FORMAT_CSV || r->stdout_gone)
			continue;
		if ((r->printed == 0 && result_print_csv_header(stdout) != 0) ||
				result_print_csv(stdout, &r->rows[r->printed]) != 0 ||
				fflush(stdout) != 0) {
			r->stdout_gone = true;
			r->stdout_errno = errno;
			if (r->result == NULL)
				return err_set(err, EXIT_FAILED, "standard output: %s",
						strerror(errno));
		}
	}
	return 0;
}

/* A row to windows.csv and its bursts to bursts.csv, or neither. */
static int
store_row(struct result *result, const struct result_window *w, const uint64_t *bursts,
		struct err *err)
{
	off_t mark = result_mark(result);
	struct err why;

	if (result_add_window(result, w, err) != 0)
		return -1;
	if (bursts == NULL || result_add_bursts(result, w, bursts, LCORE_BURST_MAX + 1, err) == 0)
		return 0;
	result_rewind(result, mark, &why);
	return -1;
}

/* For a directory that a command may ask for later. */
static int
keep_bursts(struct run *r, const uint64_t *bursts)
{
	uint64_t **all;

	if (!r->prompt)
		return 0;
	all = reallocarray(r->bursts, r->nb_rows + 1, sizeof(*all));
	if (all == NULL)
		return -1;
	r->bursts = all;
	all[r->nb_rows] = NULL;
	if (bursts == NULL)
		return 0;
	all[r->nb_rows] = calloc(LCORE_BURST_MAX + 1, sizeof(*bursts));
	if (all[r->nb_rows] == NULL)
		return -1;
	memcpy(all[r->nb_rows], bursts, (LCORE_BURST_MAX + 1) * sizeof(*bursts));
	return 0;
}

static int
on_row(void *arg, const struct result_window *w, const uint64_t *bursts, struct err *err)
{
	struct run *r = arg;
	struct result_window *rows = realloc(r->rows, (r->nb_rows + 1) * sizeof(*rows));

	if (rows == NULL)
		return err_set(err, EXIT_FAILED, "out of memory");
	r->rows = rows;
	if (keep_bursts(r, bursts) != 0)
		return err_set(err, EXIT_FAILED, "out of memory");
	if (r->nb_rows == 0 || rows[r->nb_rows - 1].visit != w->visit) {
		r->visit_rows = r->nb_rows;
		r->visit_mark = r->result != NULL ? result_mark(r->result) : 0;
	}
	/* Only what is on the disk counts: result.json agrees with windows.csv even then. */
	if (r->result != NULL && store_row(r->result, w, bursts, err) != 0)
		return -1;
	rows[r->nb_rows++] = *w;
	r->sofar.windows += w->warmup == 0 && w->lcore == r->lcores[0].id;
	show_progress(r, w);
	remote_window(w, bursts);
	if (w->lcore == r->lcores[r->nb_lcores - 1].id && remote_written(err) != 0)
		return -1;
	/* Those of a scenario may turn out to be tainted when the visit ends. */
	return options_arm(&r->options, r->experiment.visit.arm).scenario->nb > 0
			? 0
			: print_rows(r, r->nb_rows, err);
}

static void
add_state(struct result_window *w)
{
	const char *state = taint_word(TAINT_STATE);
	size_t used = strlen(w->taint);

	w->tainted = 1;
	if (!summary_has_word(w->taint, state, strlen(state)))
		snprintf(w->taint + used, sizeof(w->taint) - used, "%s%s", used == 0 ? "" : ";",
				state);
}

/* The scenario did not hold up to the visit's end: its rows say so. */
static int
on_visit(void *arg, bool held, struct err *err)
{
	struct run *r = arg;

	if (!held && r->result != NULL && result_rewind(r->result, r->visit_mark, err) != 0)
		return -1;
	for (size_t i = r->visit_rows; !held && i < r->nb_rows; i++) {
		add_state(&r->rows[i]);
		remote_tainted(&r->rows[i]);
		if (r->result != NULL && result_add_window(r->result, &r->rows[i], err) != 0) {
			r->nb_rows = i;
			return -1;
		}
	}
	return print_rows(r, r->nb_rows, err);
}

/* A block is whole: from here on it is not measured again after a kill. */
static int
on_block(void *arg, const struct checkpoint *done, struct err *err)
{
	struct run *r = arg;
	json_t *json;
	int rc;

	if (r->progress && options_arms(&r->options) > 1)
		estimate_progress(r);
	/* What is typed at a prompt cannot be resumed. */
	if (r->result == NULL || r->prompt)
		return 0;
	r->resume.done = *done;
	r->resume.tsc_hz = r->experiment.tsc_hz;
	json = resume_json(&r->resume);
	rc = result_write_json(r->result, RESULT_RESUME, json, err);
	json_decref(json);
	return rc;
}

static json_t *
strings_json(int n, char *const *strings)
{
	json_t *list = json_array();

	for (int i = 0; i < n; i++)
		json_array_append_new(list, result_text_json(strings[i]));
	return list;
}

/* What was done to the machine, to log.txt. */
static void
on_note(void *arg, const char *text)
{
	const struct run *r = arg;

	if (r->result != NULL)
		result_log(r->result, "%s", text);
}

static void
on_applied(void *arg, const struct scenario *s)
{
	const struct run *r = arg;

	remote_scenario(s != NULL ? s->text : "as-is", s != NULL ? r->placement.at[0].sibling : -1);
}

static void
on_period(void *arg)
{
	struct run *r = arg;

	struct err why;

	ports_print(&r->ports, r->options.xstats, stderr);
	if (live_line(r, stderr, &why) != 0)
		fprintf(stderr, "%s\n", why.text);
}

static void
add_string(json_t *list, const char *text)
{
	size_t i;
	json_t *have;

	json_array_foreach (list, i, have)
		if (strcmp(json_string_value(have), text) == 0)
			return;
	json_array_append_new(list, json_string(text));
}

/* Those that are asked for; by commands those that were measured. */
static json_t *
scenarios_json(const struct run *r)
{
	const struct options *o = &r->options;
	json_t *list = json_array();

	for (size_t i = 0; r->prompt && i < r->nb_rows; i++)
		add_string(list, r->rows[i].scenario);
	for (unsigned int i = 0; !r->prompt && i < o->nb_scenarios; i++)
		add_string(list, o->scenarios[i].text);
	return list;
}

static json_t *
result_json(const struct run *r, const struct err *err)
{
	const struct experiment *x = &r->experiment;
	const struct options *o = &r->options;
	json_t *json = json_pack("{s:i, s:s, s:s, s:s, s:o, s:o, s:i, s:s, s:i, s:i, s:b, s:b}",
			"schema", RESULT_SCHEMA, "program", "dpdk-sibfwd", "version",
			SIBFWD_VERSION, "run_id", r->run_id, "command_line",
			strings_json(r->argc, r->argv), "scenarios", scenarios_json(r), "blocks",
			(int)(r->prompt ? r->sofar.blocks : o->blocks), "order",
			o->order == ORDER_ABBA ? "abba" : "random", "windows_asked",
			(int)(r->prompt ? r->sofar.windows : options_windows(o)), "windows_done",
			(int)(r->prompt ? r->sofar.windows : x->windows_done), "interrupted",
			x->interrupted, "emulated", sys_emulated());

	json_object_set_new(json, "tsc_hz", json_integer((json_int_t)x->tsc_hz));
	json_object_set_new(json, "capture",
			r->have_capture ? capture_json(&r->capture.info) : json_null());
	json_object_set_new(json, "estimates", result_estimates_json(r->rows, r->nb_rows));
	json_object_set_new(json, "warnings", warn_json());
	json_object_set_new(json, "seed",
			o->order == ORDER_RANDOM ? json_integer((json_int_t)o->seed) : json_null());
	json_object_set_new(json, "blocks_again", json_integer(x->blocks_again));
	json_object_set_new(json, "sessions", json_integer(r->resume.sessions));
	json_object_set_new(json, "margin_percent", json_real(o->margin));
	json_object_set_new(json, "comparisons", comparisons_json(&r->comparisons, o->margin));
	json_object_set_new(json, "verdict",
			o->margin_given && r->comparisons.nb > 0
					? json_string(verdict_word(comparisons_verdict(
							  &r->comparisons, o->margin)))
					: json_null());
	if (o->reproduce)
		json_object_set_new(json, "published", reproduce_published_json());
	if (r->wake.nb > 0)
		json_object_set_new(json, "wake", report_json(&r->wake));
	json_object_set_new(
			json, "forced", r->forced != NULL ? json_string(r->forced) : json_null());
	json_object_set_new(json, "error", err != NULL ? result_text_json(err->text) : json_null());
	return json;
}

/* Returns -1 without memory; a write error stays in stdout. */
static int
print_table(const struct run *r)
{
	const double margin = r->options.margin;
	struct comparisons with_tainted;
	int rc = compare_arms(&with_tainted, r->rows, r->nb_rows, true);

	if (rc == 0)
		rc = compare_print(stdout, r->rows, r->nb_rows, &r->comparisons, &with_tainted,
				margin);
	if (rc == 0)
		reproduce_print(stdout, r->rows, r->nb_rows, &r->comparisons, margin, r->forced);
	if (rc == 0 && r->wake.nb > 0) {
		printf("\nWhat clearing costs, by wake-ups of CPU %d after the windows:\n",
				r->placement.at[0].sibling);
		report_print(&r->wake, PROBE_TABLE, false);
	}
	comparisons_free(&with_tainted);
	return ferror(stdout) ? 0 : rc;
}

/* The machine at the begin of the run and now. */
static json_t *
environment_pair(const struct run *r)
{
	return json_pack("{s:O, s:o}", "before", r->resume.before, "after",
			environment_json(&r->placement, &r->ports, r->lcores));
}

static int
write_results(struct run *r, const struct err *run_err, struct err *err)
{
	json_t *json, *environment;
	int rc;

	comparisons_free(&r->comparisons);
	rc = compare_arms(&r->comparisons, r->rows, r->nb_rows, false);
	if (rc != 0)
		return err_set(err, EXIT_FAILED, "out of memory");
	if (print_rows(r, r->nb_rows, err) != 0)
		return -1;
	json = result_json(r, run_err);
	environment = environment_pair(r);
	if (r->result != NULL)
		rc = result_write_json(r->result, "result.json", json, err) != 0 ||
						result_write_json(r->result, "environment.json",
								environment, err) != 0 ||
						(run_err == NULL &&
								result_complete(r->result, err) !=
										0)
				? -1
				: 0;
	/* At a prompt each command has shown its own. */
	if (r->options.format == FORMAT_TABLE && !r->prompt && r->nb_rows > 0 &&
			print_table(r) != 0)
		rc = err_set(err, EXIT_FAILED, "out of memory");
	if (r->options.format == FORMAT_JSON) {
		json_object_set_new(json, "windows", result_windows_json(r->rows, r->nb_rows));
		json_object_set(json, "environment", environment);
		json_dumpf(json, stdout, JSON_INDENT(2));
		putchar('\n');
	}
	if (rc == 0 && r->options.format != FORMAT_CSV && (fflush(stdout) != 0 || ferror(stdout)))
		rc = err_set(err, EXIT_FAILED, "standard output: %s", strerror(errno));
	/* A reader who has seen enough (EPIPE) is no failure while the directory has it all. */
	if (rc == 0 && r->stdout_gone && r->stdout_errno != EPIPE)
		rc = err_set(err, EXIT_FAILED, "standard output: %s", strerror(r->stdout_errno));
	json_decref(json);
	json_decref(environment);
	return rc;
}

static int
compare_frames(const void *a, const void *b)
{
	const struct capture_frame *x = a, *y = b;

	return x->ns < y->ns ? -1 : x->ns > y->ns;
}

/* Frames of all lcores in the order in which they were sent. */
static int
save_frames(const struct run *r, struct err *err)
{
	struct lcore_clock now;
	uint64_t wall;
	struct capture_frame *frames;
	char path[4096];
	uint32_t n = 0;
	int rc;

	lcore_clock_read(&now);
	wall = result_now();
	frames = calloc((size_t)r->nb_lcores * r->options.save_frames, sizeof(*frames));
	if (frames == NULL)
		return err_set(err, EXIT_FAILED, "out of memory");
	for (unsigned int i = 0; i < r->nb_lcores; i++) {
		const struct lcore_saved *sv = &r->lcores[i].saved;

		for (uint32_t k = 0; k < sv->count; k++, n++) {
			double ago = (double)(now.tsc - sv->info[k].tsc) /
					(double)r->experiment.tsc_hz;

			frames[n].ns = wall - (uint64_t)(ago * 1e9);
			frames[n].len = RTE_MIN(sv->info[k].len, sv->frame_max);
			frames[n].bytes = sv->bytes + (size_t)k * sv->frame_max;
		}
	}
	if (r->nb_lcores > 1)
		qsort(frames, n, sizeof(*frames), compare_frames);
	snprintf(path, sizeof(path), "%.*s", (int)r->options.save_path_len, r->options.save_path);
	rc = capture_save(path, frames, RTE_MIN(n, r->options.save_frames), err);
	free(frames);
	return rc;
}

/* ---- the run ---- */

static uint32_t
frame_length(const struct run *r)
{
	const struct options *o = &r->options;

	/* flowgen counts the frame check sequence in --txpkts, as testpmd's does. */
	if (strcmp(o->mode->name, "flowgen") == 0)
		return o->fwd.tx_pkt_len - RTE_ETHER_CRC_LEN;
	if ((o->mode->kind & FWD_COUNTS_SENT) != 0 || o->source == SOURCE_RING)
		return o->fwd.tx_pkt_len;
	if (o->source == SOURCE_NULL)
		return o->null_len;
	if (r->have_capture)
		return (uint32_t)((r->capture.info.bytes + r->capture.info.usable / 2) /
				r->capture.info.usable);
	return 0;
}

int
run_open(struct run *r, struct err *err)
{
	const struct options *o = &r->options;

	lock_memory(o);
	if (placement_verify(&r->placement, o->nb_cores, o->sibling, err) != 0 ||
			ports_open(&r->ports, o, r->have_capture ? &r->capture : NULL,
					r->prompt ? rte_lcore_count() - 1 : o->nb_cores,
					err) != 0 ||
			make_lcores(r, err) != 0 || run_prepare(r, err) != 0)
		return -1;
	/* Once more: drivers start threads of their own. */
	placement_clear_threads(&r->placement);
	if (remote_begin(r, err) != 0)
		return -1;
	remote_placement(&r->placement);
	if (o->source == SOURCE_DEV && !o->no_flush_rx)
		ports_flush(&r->ports);
	if (o->tx_first && ports_tx_first(&r->ports, err) != 0)
		return -1;
	return check_busy(r, err);
}

/* ---- the sibling ---- */

/* as-is means that nobody has changed anything. */
static void
warn_of_others(void)
{
	struct lock_owner owner;
	char *who;

	if (journal_locked(&owner) && owner.pid == getpid())
		return; /* ours, of a prompt */
	if (journal_locked(&owner)) {
		warn("not as is: process %d (%s) controls how a CPU idles", (int)owner.pid,
				owner.who);
	} else if (journal_leftover(&who)) {
		warn("not as is: %s has ended and left its changes, idlectl restore puts them back",
				who);
		free(who);
	}
}

/* Whether a scenario makes sense here. */
static int
check_scenario(const struct run *r, const struct scenario *s, struct err *err)
{
	const struct placed *at = &r->placement.at[0];
	const char *dashes = r->prompt ? "" : "--";
	struct idle_states states;
	struct err why;

	if (s->nb == 0) {
		warn_of_others();
		return 0;
	}
	if (r->placement.nb > 1)
		return err_set(err, EXIT_USAGE,
				"%sscenario %s: with %u forwarding lcores there is more than one sibling",
				dashes, s->text, r->placement.nb);
	if (at->sibling < 0)
		return err_set(err, EXIT_SKIPPED, "%sscenario %s: CPU %u has no sibling", dashes,
				s->text, at->cpu);
	if (hwloc_bitmap_isset(r->placement.main_cpus, (unsigned int)at->sibling) &&
			scenario_word(s, WORD_OFFLINE) != NULL)
		return err_set(err, EXIT_USAGE,
				"%sscenario %s: the main lcore runs on CPU %d, the sibling", dashes,
				s->text, at->sibling);
	cpuidle_read(&states, (unsigned int)at->sibling);
	if (scenario_check(s, (unsigned int)at->sibling, &states, &why) != 0)
		return err_set(err, why.code, "%s%s", dashes, why.text);
	return 0;
}

/* --reproduce measures only where doctor expects an effect, unless forced. */
static int
check_expectation(struct run *r, struct err *err)
{
	char *text;

	if (!r->options.reproduce)
		return 0;
	if (doctor_expects(&r->placement.topology, r->placement.at[0].cpu, &text) ==
			EFFECT_EXPECTED) {
		free(text);
		return 0;
	}
	r->forced = text;
	if (r->options.force) {
		warn("--reproduce, forced: %s", text);
		return 0;
	}
	return err_set(err, EXIT_SKIPPED, "--reproduce: %s (--force measures all the same)", text);
}

/* Whether it can be held now, by whoever has the lock. */
static int
can_hold(const struct run *r, const struct scenario *s, struct err *err)
{
	if (check_scenario(r, s, err) != 0)
		return -1;
	if (s->nb == 0)
		return 0;
	if (r->no_control.text[0] != '\0') {
		*err = r->no_control;
		return -1;
	}
	return control_check((unsigned int)r->placement.at[0].sibling, s, err);
}

/* Give the sibling back, where something is held. */
static int
let_go(struct run *r, struct err *err)
{
	if (control_restore(&r->control, err) != 0)
		return -1;
	r->held = (struct scenario){ .text = "as-is" };
	on_applied(r, NULL);
	return 0;
}

static int
check_scenarios(const struct run *r, struct err *err)
{
	for (unsigned int i = 0; i < r->options.nb_scenarios; i++)
		if (check_scenario(r, &r->options.scenarios[i], err) != 0)
			return -1;
	return 0;
}

/* Before anything is measured: all of them, or a run would end with the first visit to one that cannot be. */
static int
check_machine(const struct run *r, struct err *err)
{
	for (unsigned int i = 0; i < r->options.nb_scenarios; i++)
		if (r->options.scenarios[i].nb > 0 &&
				control_check((unsigned int)r->placement.at[0].sibling,
						&r->options.scenarios[i], err) != 0)
			return -1;
	return 0;
}

static bool
changes_machine(const struct options *o)
{
	for (unsigned int i = 0; i < o->nb_scenarios; i++)
		if (o->scenarios[i].nb > 0)
			return true;
	return false;
}

/* What could not be given back matters more than what failed before; both are said. */
static int
outcome(int restored, const struct err *why, int rc, struct err *err)
{
	if (restored == 0)
		return rc;
	if (rc != 0)
		fprintf(stderr, "dpdk-sibfwd: %s\n", err->text);
	*err = *why;
	return -1;
}

static int
restore_scenario(struct run *r, int rc, struct err *err)
{
	struct err why;

	bool applied = r->control.scenario != NULL;
	int restored = control_restore(&r->control, &why);

	if (r->result != NULL && applied)
		result_log(r->result, "CPU %u: %s", r->control.cpu,
				restored == 0 ? "given back" : why.text);
	return outcome(restored, &why, rc, err);
}

int
run_end(struct run *r, int rc, struct err *err)
{
	struct err why;

	return outcome(control_end(&r->control, &why), &why, rc, err);
}

/* Whether the rows read are those that the checkpoint tells of. */
static int
check_rows(const struct run *r, struct err *err)
{
	uint32_t windows = 0;
	bool same = true;

	for (size_t i = 0; i < r->nb_rows; i++) {
		windows += r->rows[i].warmup == 0 && r->rows[i].lcore == r->rows[0].lcore;
		same &= strcmp(r->rows[i].run_id, r->resume.run_id) == 0;
	}
	if (same && windows == r->resume.done.windows)
		return 0;
	return err_set(err, EXIT_FAILED, "--resume: %s/windows.csv: not the rows that %s tells of",
			r->options.out, RESULT_RESUME);
}

static int
continue_result(struct run *r, struct err *err)
{
	struct resume *s = &r->resume;

	r->result = result_continue(r->options.out, s->done.visits, &r->rows, &r->nb_rows, err);
	if (r->result == NULL || check_rows(r, err) != 0 || result_cut(r->result, err) != 0)
		return -1;
	s->sessions++;
	result_log(r->result, "resumed with block %u, session %u", s->done.blocks + 1, s->sessions);
	return print_rows(r, r->nb_rows, err);
}

/* Make the result directory, or go on with it. */
static int
open_result(struct run *r, struct err *err)
{
	json_t *begun;

	if (r->resume.done.blocks > 0)
		return continue_result(r, err);
	if (r->resumed && result_clear(r->options.out, err) != 0)
		return -1;
	begun = resume_json(&r->resume);
	r->result = result_create(r->options.out, begun, err);
	json_decref(begun);
	return r->result == NULL ? -1 : 0;
}

/* What --resume finds, or what it will find of this run. */
static int
prepare_resume(struct run *r, struct err *err)
{
	struct resume *s = &r->resume;
	json_t *machine = resume_machine(r->argc, r->argv, &r->placement);
	int found = r->options.resume ? resume_read(s, r->options.out, err) : 0;

	if (found > 0 && resume_check(s, machine, r->options.out, err) != 0)
		found = -1;
	if (found == 0) {
		if (r->options.resume)
			warn("--resume: %s: nothing there, so the run begins", r->options.out);
		snprintf(s->run_id, sizeof(s->run_id), "%s", r->run_id);
		s->done.next = 1;
		s->sessions = 1;
		s->machine = json_incref(machine);
	}
	json_decref(machine);
	memcpy(r->run_id, s->run_id, sizeof(r->run_id));
	r->resumed = found > 0;
	return found < 0 ? -1 : 0;
}

/* An emulator takes so long over each that a try has to do; its times mean nothing anyway. */
#define WAKE_REPEATS (sys_emulated() ? 1 : 10)
#define WAKE_LOOPS (sys_emulated() ? 10 : 200)

/* What clearing costs, the price of the effect: how late the sibling wakes up from the state that was held. */
static int
measure_wake(struct run *r, struct err *err)
{
	const struct probe_options o = { .cpu = (int)r->placement.at[0].sibling,
		.repeats = WAKE_REPEATS,
		.warmup = WAKE_REPEATS > 1,
		.loops = WAKE_LOOPS,
		.states = REPRODUCE_STATE,
		.stop = stop_asked };
	struct err why;

	report_begin(&r->wake, "wake", NULL);
	if (probe_wake_with(&r->wake, &o, &r->control, &why) == 0)
		return 0;
	if (why.code == EXIT_UNRESTORED || stop_asked())
		return err_set(err, why.code, "after all windows, at what clearing costs: %s",
				why.text);
	warn("what clearing costs was not measured: %s", why.text);
	return 0;
}

/* The visits and windows of the options, behind those of done. The sibling is given back in the end. */
static int
run_experiment(struct run *r, const struct checkpoint *done, uint64_t tsc_hz, struct err *err)
{
	const struct options *o = &r->options;
	int rc;

	r->experiment = (struct experiment){ .options = o,
		.placement = &r->placement,
		.ports = &r->ports,
		.lcores = r->lcores,
		.nb_lcores = r->nb_lcores,
		.control = &r->control,
		.started = r->started,
		.pkt_len = frame_length(r),
		.run_id = r->run_id,
		.host = r->host,
		.row = on_row,
		.note = on_note,
		.applied = on_applied,
		.period = on_period,
		.visited = on_visit,
		.block = on_block,
		.arg = r,
		.tsc_hz = tsc_hz,
		.done = *done };
	rc = restore_scenario(r, experiment_run(&r->experiment, err), err);
	if (r->progress && r->nb_rows > 0)
		fputc('\n', stderr);
	if (rc == 0 && r->experiment.interrupted)
		rc = err_set(err, EXIT_FAILED, "interrupted: %u of %" PRIu64 " windows measured%s",
				r->experiment.windows_done, options_windows(o),
				r->experiment.cut_short ? ", the last of them cut short" : "");
	return rc;
}

/* The results so far go to the directory, and to standard output in the format asked for. */
static int
end_results(struct run *r, int rc, struct err *err)
{
	const struct options *o = &r->options;
	struct err write_err;

	/* Nothing measured: the directory is as it was, ready for the next try. */
	if (rc != 0 && r->nb_rows == 0 && r->result != NULL) {
		result_discard(r->result);
		r->result = NULL;
	}
	if (o->save_path != NULL && r->experiment.tsc_hz != 0 && save_frames(r, &write_err) != 0 &&
			rc == 0) {
		*err = write_err;
		rc = -1;
	}
	if (write_results(r, rc != 0 ? err : NULL, &write_err) != 0 && rc == 0) {
		*err = write_err;
		rc = -1;
	}
	if (r->result != NULL && result_close(r->result, &write_err) != 0 && rc == 0) {
		*err = write_err;
		rc = -1;
	}
	return rc;
}

static int
begin_results(struct run *r, struct err *err)
{
	struct err close_err;

	if (r->resume.before == NULL)
		r->resume.before = environment_json(&r->placement, &r->ports, r->lcores);
	if (r->options.out != NULL && open_result(r, err) != 0) {
		if (r->result != NULL)
			result_close(r->result, &close_err);
		r->result = NULL;
		return -1;
	}
	if (r->result != NULL)
		result_log(r->result, "EAL said: %s", r->eal_log != NULL ? r->eal_log : "");
	return 0;
}

int
run_measure(struct run *r, struct err *err)
{
	const struct options *o = &r->options;
	int rc;

	if (begin_results(r, err) != 0)
		return -1;
	rc = run_experiment(r, &r->resume.done, r->resume.tsc_hz, err);
	if (rc == 0 && o->reproduce)
		rc = measure_wake(r, err);
	if (o->xstats != NULL)
		ports_print(&r->ports, o->xstats, stderr);
	return end_results(r, rc, err);
}

int
run_calibrate(struct run *r, struct err *err)
{
	const struct options *o = &r->options;
	struct calibration c;

	if (calibrate_reads(r->lcores, r->nb_lcores, o, &c, err) != 0) {
		for (unsigned int i = 0; i < r->nb_lcores; i++)
			r->experiment.stuck |= rte_eal_get_lcore_state(r->lcores[i].id) == RUNNING;
		return -1;
	}
	printf("%.2f TSC cycles/packet for %g asked%s, with the other options as they are and:\n",
			c.cycles, o->calibrate, sys_emulated() ? " (emulated)" : "");
	printf("--noisy-lkup-num-reads=%" PRIu64 "\n", c.reads);
	if (fflush(stdout) != 0 || ferror(stdout))
		return err_set(err, EXIT_FAILED, "standard output: %s", strerror(errno));
	return 0;
}

void
run_close(struct run *r)
{
	/* A loop that does not end still uses its port. */
	if (r->experiment.stuck)
		return;
	remote_end();
	if (r->eal_up) {
		ports_close(&r->ports);
		for (unsigned int i = 0; i < r->lcores_max; i++) {
			free(r->lcores[i].streams);
			free(r->lcores[i].bursts);
			free(r->lcores[i].saved.info);
			free(r->lcores[i].saved.bytes);
		}
		rte_free(r->lcores);
		rte_eal_cleanup();
	}
	if (r->have_capture)
		capture_close(&r->capture);
	placement_free(&r->placement);
	comparisons_free(&r->comparisons);
	resume_free(&r->resume);
	report_free(&r->wake);
	for (size_t i = 0; i < r->nb_rows && r->bursts != NULL; i++)
		free(r->bursts[i]);
	free(r->bursts);
	free(r->rows);
	free(r->forced);
	free(r->eal_log);
	free(r->eal_argv);
}

/* ---- before EAL ---- */

int
run_check(struct run *r, struct err *err)
{
	if (check_expectation(r, err) != 0 || check_scenarios(r, err) != 0)
		return -1;
	return prepare_resume(r, err);
}

int
run_guard(struct run *r, struct err *err)
{
	/* Its supervisor is made before there are threads. */
	if (changes_machine(&r->options) && check_machine(r, err) != 0)
		return -1;
	if ((changes_machine(&r->options) || r->prompt) &&
			control_begin(&r->control, "dpdk-sibfwd", err) != 0) {
		if (changes_machine(&r->options))
			return -1;
		r->no_control = *err;
	}
	lcore_clock_read(&r->busy_start);
	for (unsigned int i = 0; i < r->placement.nb; i++)
		machine_read(&r->busy_from[i], r->placement.at[i].cpu, 0, r->placement.main_cpu);
	return 0;
}

/* ---- for commands ---- */

int
run_begin(struct run *r, struct err *err)
{
	const struct scenario first = r->options.scenarios[0];

	r->held = (struct scenario){ .text = "as-is" };
	if (begin_results(r, err) != 0)
		return -1;
	return first.nb > 0 ? run_hold(r, first.text, err) : 0;
}

int
run_finish(struct run *r, int rc, struct err *err)
{
	struct err why;

	if (r->forwarding && run_stop(r, &why) != 0 && rc == 0) {
		*err = why;
		rc = -1;
	}
	rc = restore_scenario(r, rc, err);
	return end_results(r, rc, err);
}

static int
launch(struct run *r, struct err *err)
{
	const struct options_arm arm = options_arm(&r->options, 0);
	unsigned int launched;
	struct err stop_err;

	if (lcore_launch_all(r->lcores, r->nb_lcores, arm.burst, &arm.lookups, &launched, err) ==
			0) {
		r->forwarding = true;
		/* Lines tell what came since. */
		return r->options.stats_period > 0 ? live_begin(r, err) : 0;
	}
	r->experiment.stuck = lcore_stop(r->lcores, launched, &stop_err) != 0;
	return -1;
}

static int
end_loops(struct run *r, struct err *err)
{
	r->forwarding = false;
	r->experiment.stuck = lcore_stop(r->lcores, r->nb_lcores, err) != 0;
	return r->experiment.stuck ? -1 : 0;
}

void
run_clear_counts(struct run *r)
{
	for (unsigned int i = 0; i < r->ports.nb_streams; i++)
		r->ports.streams[i].base = r->ports.streams[i].edge;
	for (unsigned int i = 0; i < r->nb_lcores; i++)
		memcpy(r->lcores[i].base_bursts, r->lcores[i].edge.bursts,
				sizeof(r->lcores[i].base_bursts));
	for (unsigned int i = 0; i < r->ports.nb; i++) {
		struct rte_eth_stats s;

		if (!r->ports.port[i].closed && rte_eth_stats_get(r->ports.port[i].id, &s) == 0)
			r->ports.port[i].missed_base = s.imissed;
	}
}

static int
check_ports(const struct run *r, struct err *err)
{
	for (unsigned int i = 0; i < r->ports.nb_forward; i++)
		if (!ports_forwarding(&r->ports, i)->started)
			return err_set(err, EXIT_FAILED, "Not all ports were started: port %u",
					ports_forwarding(&r->ports, i)->id);
	return ports_check(&r->ports, err);
}

int
run_start(struct run *r, unsigned int bursts, struct err *err)
{
	if (r->forwarding)
		return err_set(err, EXIT_FAILED, "Packet forwarding already started");
	if (check_ports(r, err) != 0 || run_prepare(r, err) != 0)
		return -1;
	if (r->options.source == SOURCE_DEV && !r->options.no_flush_rx)
		ports_flush(&r->ports);
	/* The first bursts count, as testpmd's do. */
	run_clear_counts(r);
	for (unsigned int i = 0; i < bursts; i++)
		if (ports_tx_first(&r->ports, err) != 0)
			return -1;
	return launch(r, err);
}

int
run_stop(struct run *r, struct err *err)
{
	if (!r->forwarding)
		return err_set(err, EXIT_FAILED, "Packet forwarding not started");
	/* Its streams stay, to be looked at, until those of another mode are to run. */
	if (r->next_mode != NULL && r->next_mode != r->options.mode) {
		r->options.mode = r->next_mode;
		r->set_up = false;
	}
	r->next_mode = NULL;
	return end_loops(r, err);
}

int
run_restart(struct run *r, struct err *err)
{
	if (set_records(r, err) != 0)
		return -1;
	if (!r->forwarding)
		return 0;
	return end_loops(r, err) != 0 ? -1 : launch(r, err);
}

int
run_edge(struct run *r, struct err *err)
{
	if (!r->forwarding)
		return 0;
	r->experiment.stuck = lcore_take_edge(r->lcores, r->nb_lcores, err) != 0;
	return r->experiment.stuck ? -1 : 0;
}

/* Where the sibling is another one now: what is held is let go first, so that its own thread is not moved. */
static int
move_on(struct run *r, struct err *err)
{
	if (let_go(r, err) != 0)
		return -1;
	placement_clear_threads(&r->placement);
	remote_placement(&r->placement);
	return 0;
}

int
run_set_lcores(struct run *r, const unsigned int *lcores, unsigned int nb, struct err *err)
{
	if (placement_take(&r->placement, lcores, nb, r->options.sibling, err) != 0)
		return -1;
	r->set_up = false;
	return move_on(r, err);
}

int
run_set_sibling(struct run *r, int cpu, struct err *err)
{
	const struct scenario held = r->held;
	struct err why;

	if (placement_derive(&r->placement, cpu, err) != 0)
		return -1;
	if (held.nb > 0 && can_hold(r, &held, err) != 0) {
		placement_derive(&r->placement, r->options.sibling, &why);
		return -1;
	}
	r->options.sibling = cpu;
	return move_on(r, err) != 0 ? -1 : run_hold(r, held.text, err);
}

int
run_hold(struct run *r, const char *words, struct err *err)
{
	unsigned int cpu = (unsigned int)r->placement.at[0].sibling;
	struct scenario s;
	struct err undo;

	if (scenario_parse(&s, words, err) != 0 || can_hold(r, &s, err) != 0 || let_go(r, err) != 0)
		return -1;
	if (s.nb == 0)
		return 0;
	/* It outlives the control: in its place. */
	r->held = s;
	if (control_apply(&r->control, cpu, &r->held, err) == 0 &&
			control_verify(&r->control, err) == 0) {
		on_applied(r, &r->held);
		return 0;
	}
	if (let_go(r, &undo) != 0)
		*err = undo;
	return -1;
}

static int
set_scenarios(struct run *r, const char *const *words, unsigned int nb, struct err *err)
{
	struct options *o = &r->options;

	o->nb_scenarios = nb > 0 ? nb : 1;
	if (nb == 0)
		o->scenarios[0] = r->held;
	for (unsigned int i = 0; i < nb; i++)
		if (scenario_parse(&o->scenarios[i], words[i], err) != 0 ||
				can_hold(r, &o->scenarios[i], err) != 0)
			return -1;
	return 0;
}

/* With the options as they are for it. */
static int
measure_now(struct run *r, struct err *err)
{
	const struct checkpoint from = { 1, r->sofar.blocks, r->sofar.visits, 0, 0 };
	int rc = run_experiment(r, &from, r->experiment.tsc_hz, err);

	/* Those of a block that was not whole count too. */
	if (r->nb_rows > 0) {
		r->sofar.blocks = (uint32_t)r->rows[r->nb_rows - 1].block;
		r->sofar.visits = (uint32_t)r->rows[r->nb_rows - 1].visit;
	}
	return rc;
}

int
run_windows(struct run *r, const char *const *words, unsigned int nb, uint32_t windows,
		uint32_t blocks, size_t *first, struct err *err)
{
	const struct options before = r->options;
	const struct scenario held = r->held;
	bool forwarding = r->forwarding;
	struct err why;
	int rc = 0;

	*first = r->nb_rows;
	if (!forwarding && (check_ports(r, err) != 0 || (!r->set_up && run_prepare(r, err) != 0)))
		return -1;
	if (set_scenarios(r, words, nb, err) != 0 || set_records(r, err) != 0)
		rc = -1;
	if (rc == 0 && forwarding)
		rc = end_loops(r, err);
	if (rc == 0)
		rc = let_go(r, err);
	if (rc == 0) {
		r->options.windows = windows;
		r->options.blocks = blocks;
		rc = measure_now(r, err);
	}
	r->options = before;
	if (r->experiment.stuck)
		return -1;
	if (forwarding && !r->forwarding && launch(r, &why) != 0 && rc == 0) {
		*err = why;
		rc = -1;
	}
	if (held.nb > 0 && r->held.nb == 0 && run_hold(r, held.text, &why) != 0 && rc == 0) {
		*err = why;
		rc = -1;
	}
	return rc;
}

int
run_save(struct run *r, const char *dir, struct err *err)
{
	struct result *open = r->result, *result;
	struct err why;
	json_t *json;
	int rc = 0;

	if (r->nb_rows == 0)
		return err_set(err, EXIT_FAILED, "save %s: nothing has been measured", dir);
	result = result_create(dir, NULL, err);
	if (result == NULL)
		return -1;
	for (size_t i = 0; i < r->nb_rows && rc == 0; i++)
		rc = store_row(result, &r->rows[i], r->bursts[i], err);
	r->result = result;
	comparisons_free(&r->comparisons);
	if (rc == 0 && compare_arms(&r->comparisons, r->rows, r->nb_rows, false) != 0)
		rc = err_set(err, EXIT_FAILED, "out of memory");
	json = result_json(r, NULL);
	if (rc == 0)
		rc = result_write_json(result, "result.json", json, err);
	json_decref(json);
	json = environment_pair(r);
	if (rc == 0)
		rc = result_write_json(result, "environment.json", json, err);
	json_decref(json);
	r->result = open;
	if (rc != 0) {
		result_discard(result);
		return -1;
	}
	if (result_close(result, &why) != 0) {
		*err = why;
		return -1;
	}
	return 0;
}
