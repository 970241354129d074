/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * idlectl probe ipi: what it costs to call a function on another CPU, by interrupt. A sender thread a
 * pair, and a busy thread on each target: an idle one is woken without an interrupt.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "mechanisms.h"
#include "probe_ipi.h"
#include "stats.h"
#include "sysroot.h"

#define START_MS 10 /* that all senders have to get ready */
#define SAMPLES_MAX (16UL << 20)

/* ---- arithmetic ---- */

struct ipi_throughput
ipi_throughput(const struct ipi_sender *s, size_t n, double tsc_khz)
{
	uint64_t first = s[0].began, last = s[0].began, end = s[0].ended, sends = 0;
	struct ipi_throughput t = { 0 };

	for (size_t i = 0; i < n; i++) {
		t.sum += 1e9 / s[i].call_ns;
		sends += s[i].sends;
		first = s[i].began < first ? s[i].began : first;
		last = s[i].began > last ? s[i].began : last;
		end = s[i].ended > end ? s[i].ended : end;
	}
	t.wall = (double)sends * tsc_khz * 1e3 / (double)(end - first);
	t.skew_ns = (double)(last - first) * 1e6 / tsc_khz;
	return t;
}

void
ipi_count(struct ipi_counts *c, uint64_t sent, uint64_t interrupts)
{
	c->sent += sent;
	c->interrupts += interrupts;
	if (interrupts < sent)
		c->without += sent - interrupts;
	else
		c->foreign += interrupts - sent;
}

/* ---- pairs ---- */

static const char *const relation_names[] = {
	[RELATION_SMT] = "smt",
	[RELATION_L2] = "l3",
	[RELATION_L3] = "l3",
	[RELATION_PACKAGE] = "package",
	[RELATION_NUMA] = "cross",
	[RELATION_NONE] = "cross",
};

static const char *const relations[] = { "smt", "l3", "package", "cross" };
#define NB_RELATIONS (sizeof(relations) / sizeof(relations[0]))

size_t
ipi_pairs_of(const struct topology *t, const char *relation, struct ipi_pair *pairs)
{
	hwloc_bitmap_t left = hwloc_bitmap_dup(t->open);
	size_t nb = 0;
	int from, to;

	for (from = hwloc_bitmap_first(left); from >= 0; from = hwloc_bitmap_next(left, from))
		for (to = hwloc_bitmap_next(left, from); to >= 0;
				to = hwloc_bitmap_next(left, to)) {
			enum relation r =
					topology_relation(t, (unsigned int)from, (unsigned int)to);

			if (relation != NULL && strcmp(relation_names[r], relation) != 0)
				continue;
			pairs[nb++] = (struct ipi_pair){ (unsigned int)from, (unsigned int)to };
			hwloc_bitmap_clr(left, (unsigned int)to);
			break;
		}
	hwloc_bitmap_free(left);
	return nb;
}

size_t
ipi_pairs_random(const struct topology *t, uint64_t seed, struct ipi_pair *pairs)
{
	size_t n = (size_t)hwloc_bitmap_weight(t->open), i = 0;
	unsigned int *cpus = probe_alloc(n, sizeof(*cpus));

	for (int cpu = hwloc_bitmap_first(t->open); cpu >= 0; cpu = hwloc_bitmap_next(t->open, cpu))
		cpus[i++] = (unsigned int)cpu;
	/* Fisher and Yates's shuffle. */
	for (i = n; i > 1; i--) {
		size_t k = stats_random(&seed, i);
		unsigned int other = cpus[k];

		cpus[k] = cpus[i - 1];
		cpus[i - 1] = other;
	}
	for (i = 0; i < n / 2; i++)
		pairs[i] = (struct ipi_pair){ cpus[2 * i], cpus[2 * i + 1] };
	free(cpus);
	return n / 2;
}

/* ---- threads ---- */

struct sender {
	struct run *run;
	struct ipi_pair pair;
	struct sibidle_probe req;
	struct sibidle_sample *samples;
	pthread_t thread;
	struct err err;
	int rc;
};

/* A set of pairs that is measured together. */
struct run {
	const struct probe_options *o;
	struct sibidle m;
	struct sender *senders;
	size_t nb;
	uint32_t op; /* enum sibidle_ipi_op */
	hwloc_bitmap_t targets;
	pthread_t *busy;
	size_t nb_busy;
	atomic_bool stop;
};

static void *
keep_busy(void *arg)
{
	struct run *run = arg;

	while (!atomic_load_explicit(&run->stop, memory_order_relaxed))
		;
	return NULL;
}

static void
end_busy(struct run *run)
{
	atomic_store(&run->stop, true);
	for (size_t i = 0; i < run->nb_busy; i++)
		pthread_join(run->busy[i], NULL);
	free(run->busy);
	run->busy = NULL;
	run->nb_busy = 0;
}

/* Threads that keep the CPUs of a set busy until end_busy(). */
static int
start_busy(struct run *run, hwloc_const_bitmap_t cpus, struct err *err)
{
	int rc = 0;

	atomic_store(&run->stop, false);
	run->busy = probe_alloc((size_t)hwloc_bitmap_weight(cpus), sizeof(*run->busy));
	for (int cpu = hwloc_bitmap_first(cpus); cpu >= 0 && rc == 0;
			cpu = hwloc_bitmap_next(cpus, cpu)) {
		rc = thread_on(&run->busy[run->nb_busy], (unsigned int)cpu, keep_busy, run);
		run->nb_busy += rc == 0;
	}
	if (rc == 0)
		return 0;
	end_busy(run);
	return err_set(err, EXIT_FAILED, "a busy thread: %s", strerror(rc));
}

static void *
send(void *arg)
{
	struct sender *s = arg;

	s->rc = probe_request(&s->run->m, &s->req, &s->err);
	return NULL;
}

/* All senders once, from one moment on; swapped: targets call senders. */
static int
send_all(struct run *run, uint32_t op, uint32_t flags, bool swapped, struct err *err)
{
	uint64_t start = __builtin_ia32_rdtsc() + (uint64_t)run->m.info.tsc_khz * START_MS;
	size_t started = 0;
	int rc = 0;

	for (; started < run->nb && rc == 0; started += rc == 0) {
		struct sender *s = &run->senders[started];
		unsigned int from = swapped ? s->pair.to : s->pair.from;
		unsigned int to = swapped ? s->pair.from : s->pair.to;

		s->req = (struct sibidle_probe){ .probe = SIBIDLE_PROBE_IPI,
			.op = op,
			.flags = flags,
			.from = from,
			.to = op == SIBIDLE_IPI_CALL ? to : from,
			.loops = (uint32_t)run->o->loops,
			.start = start,
			.samples = (uintptr_t)s->samples };
		rc = thread_on(&s->thread, from, send, s);
	}
	for (size_t i = 0; i < started; i++)
		probe_join(run->senders[i].thread);
	if (rc != 0)
		return err_set(err, EXIT_FAILED, "a thread that sends: %s", strerror(rc));
	for (size_t i = 0; i < run->nb; i++)
		if (run->senders[i].rc != 0) {
			*err = run->senders[i].err;
			return -1;
		} else if (run->senders[i].req.handled != run->senders[i].req.sent)
			return err_set(err, EXIT_FAILED, "CPU %u: of %llu calls %llu were handled",
					run->senders[i].pair.from,
					(unsigned long long)run->senders[i].req.sent,
					(unsigned long long)run->senders[i].req.handled);
	return probe_interrupted() ? err_set(err, EXIT_FAILED, "interrupted") : 0;
}

/* ---- figures ---- */

enum { CALL, MEAN, ONE_WAY, HALF, SUM, WALL, SKEW, NB_FIGURES };

static const struct {
	const char *metric, *unit;
} figures[NB_FIGURES] = {
	[CALL] = { "call", "ns" },
	[MEAN] = { "mean call", "ns" },
	[ONE_WAY] = { "one way", "ns" },
	[HALF] = { "round trip / 2", "ns" },
	[SUM] = { "throughput (sum of 1/call)", "1/s" },
	[WALL] = { "throughput (wall time)", "1/s" },
	[SKEW] = { "start skew", "ns" },
};

static const struct {
	const char *name;
	uint32_t flags;
} ways[] = {
	{ "wait", SIBIDLE_PROBE_WAIT },
	{ "no wait", 0 },
};
#define NB_WAYS (sizeof(ways) / sizeof(ways[0]))

struct way {
	bool taken;
	double *of[NB_FIGURES]; /* a figure for each repeat */
	struct histogram calls; /* ns */
	struct ipi_counts counts;
};

static double
ns(const struct run *run, int64_t ticks)
{
	return (double)ticks * 1e6 / run->m.info.tsc_khz;
}

/* What of() makes of all samples, sender after sender, in ns. To be freed. */
static double *
all_of(const struct run *run, double (*of)(const struct run *run, const struct sibidle_sample *s))
{
	size_t loops = run->o->loops, n = run->nb * loops;
	double *values = probe_alloc(n, sizeof(*values));

	for (size_t i = 0; i < n; i++)
		values[i] = of(run, &run->senders[i / loops].samples[i % loops]);
	return values;
}

static double
median_of(const struct run *run,
		double (*of)(const struct run *run, const struct sibidle_sample *s))
{
	double *values = all_of(run, of);
	double median = stats_median(values, run->nb * run->o->loops);

	free(values);
	return median;
}

static double
call_of(const struct run *run, const struct sibidle_sample *s)
{
	return ns(run, (int64_t)(s->end - s->begin));
}

/* By two CPUs' TSCs: may be negative. */
static double
one_way_of(const struct run *run, const struct sibidle_sample *s)
{
	return ns(run, (int64_t)(s->handled - s->begin));
}

static double
half_of(const struct run *run, const struct sibidle_sample *s)
{
	return ns(run, (int64_t)(s->seen - s->begin)) / 2;
}

/* What the senders have just done, as repeat i. */
static void
account(const struct run *run, struct way *w, unsigned long i)
{
	struct ipi_sender *senders = probe_alloc(run->nb, sizeof(*senders));
	double *calls = all_of(run, call_of), sum = 0;
	size_t loops = run->o->loops;
	struct ipi_throughput t;

	for (size_t k = 0; k < run->nb; k++) {
		const struct sender *s = &run->senders[k];

		senders[k] = (struct ipi_sender){ stats_mean(&calls[k * loops], loops), loops,
			s->samples[0].begin, s->samples[loops - 1].end };
		sum += senders[k].call_ns;
		ipi_count(&w->counts, s->req.sent, s->req.interrupts);
	}
	for (size_t n = 0; n < run->nb * loops; n++)
		histogram_add(&w->calls, (uint64_t)calls[n]);
	t = ipi_throughput(senders, run->nb, run->m.info.tsc_khz);
	w->of[CALL][i] = stats_median(calls, run->nb * loops);
	free(calls);
	w->of[MEAN][i] = sum / (double)run->nb;
	w->of[ONE_WAY][i] = median_of(run, one_way_of);
	w->of[HALF][i] = median_of(run, half_of);
	w->of[SUM][i] = t.sum;
	w->of[WALL][i] = t.wall;
	w->of[SKEW][i] = t.skew_ns;
	free(senders);
}

/*
 * By how much the TSC of a pair's target is ahead, in ns: half the difference of the shortest ways there and
 * back, were these equally long.
 */
static double
shortest(const struct run *run, const struct sender *s)
{
	double least = one_way_of(run, &s->samples[0]);

	for (unsigned long i = 1; i < run->o->loops; i++)
		least = fmin(least, one_way_of(run, &s->samples[i]));
	return least;
}

static int
find_offset(struct run *run, double *offset, struct err *err)
{
	double *there = probe_alloc(run->nb, sizeof(*there));
	hwloc_bitmap_t senders = hwloc_bitmap_alloc();
	int rc;

	for (size_t i = 0; i < run->nb; i++)
		hwloc_bitmap_set(senders, run->senders[i].pair.from);
	rc = start_busy(run, run->targets, err);
	if (rc == 0) {
		rc = send_all(run, SIBIDLE_IPI_CALL, SIBIDLE_PROBE_WAIT, false, err);
		end_busy(run);
	}
	for (size_t i = 0; i < run->nb && rc == 0; i++)
		there[i] = shortest(run, &run->senders[i]);
	if (rc == 0)
		rc = start_busy(run, senders, err);
	if (rc == 0) {
		rc = send_all(run, SIBIDLE_IPI_CALL, SIBIDLE_PROBE_WAIT, true, err);
		end_busy(run);
	}
	*offset = 0;
	for (size_t i = 0; i < run->nb && rc == 0; i++) {
		double ahead = (there[i] - shortest(run, &run->senders[i])) / 2;

		*offset = fabs(ahead) > fabs(*offset) ? ahead : *offset;
	}
	hwloc_bitmap_free(senders);
	free(there);
	return rc;
}

/* ---- a set of pairs ---- */

static int
repeat(struct run *run, struct way *w, double *overhead, long i, struct err *err)
{
	size_t nb = NB_WAYS + 1;

	for (size_t k = 0; k < nb; k++) {
		size_t turn = i % 2 == 0 ? k : nb - 1 - k; /* the last is the empty loop */
		bool empty = turn == NB_WAYS;

		if (!empty && !w[turn].taken)
			continue;
		if (send_all(run, empty ? (uint32_t)SIBIDLE_IPI_NOTHING : run->op,
				    empty ? 0 : ways[turn].flags, false, err) != 0)
			return -1;
		if (i >= 0 && empty)
			overhead[i] = median_of(run, call_of);
		else if (i >= 0)
			account(run, &w[turn], (unsigned long)i);
	}
	return 0;
}

/* Whether a figure says something: senders do not start apart, alone, and others are not seen by one TSC. */
static bool
tells(const struct run *run, size_t way, int i)
{
	bool single = run->op == SIBIDLE_IPI_CALL;

	if (i == SKEW)
		return run->nb > 1;
	if (i == ONE_WAY)
		return run->op != SIBIDLE_IPI_BROADCAST;
	/* A call that does not wait is over before the next may begin. */
	if (i == SUM)
		return single && ways[way].flags != 0;
	return i != HALF || single;
}

static void
add_rows(struct probe_report *r, const struct run *run, const struct way *w, size_t way,
		const char *name, const double *overhead)
{
	for (int i = 0; i < NB_FIGURES; i++)
		if (tells(run, way, i))
			report_add(r, name, figures[i].metric, figures[i].unit, w->of[i],
					i == CALL || i == MEAN ? overhead : NULL, run->o->repeats);
	report_add_one(r, name, "sent", "calls", (double)w->counts.sent);
	report_add_one(r, name, "interrupts counted", "interrupts", (double)w->counts.interrupts);
	if (w->counts.without > 0)
		report_add_one(r, name, "wake-ups without one", "calls", (double)w->counts.without);
	if (w->counts.foreign > 0)
		report_add_one(r, name, "interrupts of others", "interrupts",
				(double)w->counts.foreign);
	report_add_histogram(r, name, "ns", &w->calls);
	if (w->counts.without > 0 && !run->o->idle)
		report_note(r, "%s: some calls found their target idle, and sent it no interrupt",
				name);
}

static int
measure_set(struct probe_report *r, struct run *run, const char *name, struct err *err)
{
	struct way w[NB_WAYS] = { 0 };
	double *overhead = probe_alloc(run->o->repeats, sizeof(*overhead)), offset = 0;
	int rc = 0;

	for (size_t k = 0; k < NB_WAYS; k++) {
		/* An interrupt to oneself is waited for, or not, by nobody. */
		w[k].taken = run->op == SIBIDLE_IPI_SELF ? k == 1 : !(k == 0 && run->o->no_wait);
		for (int i = 0; i < NB_FIGURES; i++)
			w[k].of[i] = probe_alloc(run->o->repeats, sizeof(double));
	}
	if (run->op == SIBIDLE_IPI_CALL)
		rc = find_offset(run, &offset, err);
	if (rc == 0 && !run->o->idle)
		rc = start_busy(run, run->targets, err);
	for (long i = -(long)run->o->warmup; i < (long)run->o->repeats && rc == 0; i++)
		rc = repeat(run, w, overhead, i, err);
	if (run->busy != NULL)
		end_busy(run);
	for (size_t k = 0; k < NB_WAYS; k++) {
		char text[64];

		snprintf(text, sizeof(text), "%.40s%s%s%s", name,
				run->op == SIBIDLE_IPI_SELF ? "" : ", ",
				run->op == SIBIDLE_IPI_SELF ? "" : ways[k].name,
				run->o->idle ? ", idle" : "");
		if (rc == 0 && w[k].taken)
			add_rows(r, run, &w[k], k, text, overhead);
		for (int i = 0; i < NB_FIGURES; i++)
			free(w[k].of[i]);
	}
	if (rc == 0 && run->op == SIBIDLE_IPI_CALL)
		report_add_one(r, name, run->nb == 1 ? "TSC offset" : "largest TSC offset", "ns",
				offset);
	free(overhead);
	return rc;
}

static int
run_set(struct probe_report *r, const struct probe_options *o, const struct ipi_pair *pairs,
		size_t nb, uint32_t op, hwloc_const_bitmap_t targets, const char *name,
		struct err *err)
{
	struct run run = { .o = o, .nb = nb, .op = op };
	int rc;

	if (o->loops * nb > SAMPLES_MAX)
		return err_set(err, EXIT_USAGE, "--loops %lu: too many for %zu pairs at once",
				o->loops, nb);
	if (sibidle_open(&run.m, true, err) != 0)
		return -1;
	run.targets = hwloc_bitmap_alloc();
	run.senders = probe_alloc(nb, sizeof(*run.senders));
	for (size_t i = 0; i < nb; i++) {
		struct sender *s = &run.senders[i];
		size_t size = o->loops * sizeof(*s->samples);

		s->run = &run;
		s->pair = pairs[i];
		/* Written, so that it is there and no page is brought in meanwhile. */
		s->samples = memset(probe_alloc(o->loops, sizeof(*s->samples)), 1, size);
		hwloc_bitmap_set(run.targets, pairs[i].to);
	}
	if (targets != NULL)
		hwloc_bitmap_copy(run.targets, targets);
	rc = measure_set(r, &run, name, err);
	for (size_t i = 0; i < nb; i++)
		free(run.senders[i].samples);
	free(run.senders);
	hwloc_bitmap_free(run.targets);
	sibidle_close(&run.m);
	return rc;
}

/* ---- what is asked for ---- */

static int
check_options(const struct probe_options *o, struct err *err)
{
	int modes = (o->from >= 0 && o->to >= 0) + (o->pairs != NULL) + o->self + o->broadcast +
			o->mesh;

	if (modes > 1)
		return err_set(err, EXIT_USAGE,
				"--from with --to, --pairs, --self, --broadcast and --mesh exclude each other");
	if (o->to >= 0 && o->from < 0)
		return err_set(err, EXIT_USAGE, "--to: needs --from");
	if (o->from >= 0 && o->to < 0 && !o->self && !o->broadcast)
		return err_set(err, EXIT_USAGE, "--from: needs --to, --self or --broadcast");
	if (o->from >= 0 && o->from == o->to)
		return err_set(err, EXIT_USAGE, "--to %d: the same as --from (--self is for that)",
				o->to);
	if (o->seed != 0 && !o->mesh)
		return err_set(err, EXIT_USAGE, "--seed: needs --mesh");
	if (o->idle && o->self)
		return err_set(err, EXIT_USAGE, "--idle: a CPU that interrupts itself is not idle");
	if (o->no_wait && o->self)
		return err_set(err, EXIT_USAGE, "--no-wait: with --self nothing is waited for");
	return 0;
}

static int
check_cpu(const struct topology *t, const char *option, int cpu, struct err *err)
{
	char *list = NULL;

	if (cpu < 0 || hwloc_bitmap_isset(t->open, (unsigned int)cpu))
		return 0;
	hwloc_bitmap_list_asprintf(&list, t->open);
	err_set(err, EXIT_USAGE,
			"--%s %d: off line, does not exist or is not for this process; there are %s",
			option, cpu, list != NULL ? list : "none");
	free(list);
	return -1;
}

/* A sender, and all others or nobody as targets. */
static int
run_lone(struct probe_report *r, const struct probe_options *o, const struct topology *t,
		struct err *err)
{
	unsigned int from = o->from >= 0 ? (unsigned int)o->from : (unsigned int)o->cpu;
	struct ipi_pair pair = { from, from };
	hwloc_bitmap_t others = hwloc_bitmap_alloc(), closed = hwloc_bitmap_alloc();
	char name[64], *list = NULL;
	int rc;

	if (o->broadcast) {
		hwloc_bitmap_copy(others, t->online);
		hwloc_bitmap_clr(others, from);
	}
	if (o->broadcast && hwloc_bitmap_iszero(others))
		rc = err_set(err, EXIT_SKIPPED, "--broadcast: CPU %u is the only one on line",
				from);
	else {
		snprintf(name, sizeof(name), o->broadcast ? "broadcast from %u to %d" : "self %u",
				from, hwloc_bitmap_weight(others));
		hwloc_bitmap_andnot(closed, others, t->open);
		hwloc_bitmap_and(others, others, t->open);
		if (!hwloc_bitmap_iszero(closed) && !o->idle &&
				hwloc_bitmap_list_asprintf(&list, closed) >= 0)
			report_note(r, "%s: not kept busy, as this process may not run there: CPU %s",
					name, list);
		free(list);
		rc = run_set(r, o, &pair, 1,
				o->broadcast ? SIBIDLE_IPI_BROADCAST : SIBIDLE_IPI_SELF, others,
				name, err);
	}
	hwloc_bitmap_free(others);
	hwloc_bitmap_free(closed);
	return rc;
}

/* One pair of each relation, one after the other. */
static int
run_relations(struct probe_report *r, const struct probe_options *o, const struct topology *t,
		struct ipi_pair *pairs, struct err *err)
{
	bool any = false;
	char name[64];

	for (size_t i = 0; i < NB_RELATIONS; i++) {
		if (ipi_pairs_of(t, relations[i], pairs) == 0)
			continue;
		any = true;
		snprintf(name, sizeof(name), "%s %u-%u", relations[i], pairs[0].from, pairs[0].to);
		if (run_set(r, o, pairs, 1, SIBIDLE_IPI_CALL, NULL, name, err) != 0)
			return -1;
	}
	return any ? 0 : err_set(err, EXIT_SKIPPED, "there is only one CPU");
}

static int
run_mesh(struct probe_report *r, const struct probe_options *o, const struct topology *t,
		struct ipi_pair *pairs, struct err *err)
{
	uint64_t seed = o->seed != 0 ? o->seed : (clock_ns() & UINT32_MAX) | 1;
	size_t nb = ipi_pairs_random(t, seed, pairs);
	json_t *list = json_array();
	char name[64];

	json_object_set_new(r->facts, "seed", json_integer((json_int_t)seed));
	for (size_t i = 0; i < nb; i++)
		json_array_append_new(
				list, json_pack("[i, i]", (int)pairs[i].from, (int)pairs[i].to));
	json_object_set_new(r->facts, "pairs", list);
	report_note(r, "pairs drawn with --seed %" PRIu64, seed);
	snprintf(name, sizeof(name), "mesh of %zu pairs", nb);
	return nb == 0 ? err_set(err, EXIT_SKIPPED, "--mesh: there is only one CPU")
		       : run_set(r, o, pairs, nb, SIBIDLE_IPI_CALL, NULL, name, err);
}

static int
run_pairs(struct probe_report *r, const struct probe_options *o, const struct topology *t,
		struct ipi_pair *pairs, struct err *err)
{
	size_t nb, i = 0;
	char name[64];

	while (i < NB_RELATIONS && strcmp(o->pairs, relations[i]) != 0)
		i++;
	if (i == NB_RELATIONS)
		return err_set(err, EXIT_USAGE, "--pairs %s: smt, l3, package or cross?", o->pairs);
	nb = ipi_pairs_of(t, o->pairs, pairs);
	snprintf(name, sizeof(name), "%zu %s pairs", nb, o->pairs);
	if (nb == 1)
		snprintf(name, sizeof(name), "%s %u-%u", o->pairs, pairs[0].from, pairs[0].to);
	return nb == 0 ? err_set(err, EXIT_SKIPPED, "--pairs %s: there are no such CPUs here",
					 o->pairs)
		       : run_set(r, o, pairs, nb, SIBIDLE_IPI_CALL, NULL, name, err);
}

/* ---- published figures ---- */

static const struct {
	const char *metric, *where, *column, *unit;
} published[] = {
	{ "mean call", "case=pinned AVIC", "latency_ns", "ns" },
	{ "mean call", "case=pinned x2AVIC&fence=yes", "latency_ns", "ns" },
	{ "mean call", "case=pinned x2AVIC&fence=no", "latency_ns", "ns" },
	{ "throughput (sum of 1/call)", "case=pinned AVIC", "throughput_per_s", "1/s" },
	{ "throughput (sum of 1/call)", "case=pinned x2AVIC&fence=yes", "throughput_per_s", "1/s" },
	{ "throughput (sum of 1/call)", "case=pinned x2AVIC&fence=no", "throughput_per_s", "1/s" },
	{ "throughput (wall time)", "case=mesh&fence=yes", "throughput_per_s", "1/s" },
	{ "throughput (wall time)", "case=mesh&fence=no", "throughput_per_s", "1/s" },
};

/*
 * The call time of 48 pairs at once beside that of several pairs at once, by whether Linux here has the fence; the others
 * below, as a throughput is that of as many senders.
 */
static void
publish(struct probe_report *r, bool several)
{
	/* Linux writes the x2APIC's ICR behind a fence but on AMD, where 04c3024560d3 took it out. */
	const char *fence = published_on_amd() ? "fence=no" : "fence=yes";

	for (size_t i = 0; i < sizeof(published) / sizeof(published[0]); i++) {
		struct probe_row *row = NULL;

		for (size_t k = 0; k < r->nb && row == NULL; k++)
			if (strstr(r->rows[k].name, ", wait") != NULL &&
					strcmp(r->rows[k].metric, published[i].metric) == 0)
				row = &r->rows[k];
		if (row != NULL && several && strcmp(published[i].metric, "mean call") == 0 &&
				!isfinite(row->published) &&
				strstr(published[i].where, fence) != NULL)
			report_publish(r, row, published[i].where, published[i].column, 1);
		else
			report_add_published(r, "published", published[i].metric, published[i].unit,
					published[i].where, published[i].column, 1);
	}
}

int
probe_ipi(struct probe_report *r, const struct probe_options *o, struct err *err)
{
	struct ipi_pair *pairs, pair = { (unsigned int)o->from, (unsigned int)o->to };
	struct topology t;
	char name[64];
	int rc;

	if (check_options(o, err) != 0 || topology_open(&t, o->topology, err) != 0)
		return -1;
	pairs = probe_alloc((size_t)hwloc_bitmap_weight(t.open), sizeof(*pairs));
	snprintf(name, sizeof(name), "%d-%d", o->from, o->to);
	if (check_cpu(&t, "from", o->from, err) != 0 || check_cpu(&t, "to", o->to, err) != 0)
		rc = -1;
	else if (o->self || o->broadcast)
		rc = run_lone(r, o, &t, err);
	else if (o->mesh)
		rc = run_mesh(r, o, &t, pairs, err);
	else if (o->pairs != NULL)
		rc = run_pairs(r, o, &t, pairs, err);
	else if (o->from >= 0)
		rc = run_set(r, o, &pair, 1, SIBIDLE_IPI_CALL, NULL, name, err);
	else
		rc = run_relations(r, o, &t, pairs, err);
	if (rc == 0 && !o->self && !o->broadcast && !o->idle)
		publish(r, o->pairs != NULL && ipi_pairs_of(&t, o->pairs, pairs) > 1);
	if (rc == 0 && o->idle)
		report_note(r, "idle targets: what is measured are wake-ups, and no interrupt may be needed");
	free(pairs);
	topology_close(&t);
	return rc;
}
