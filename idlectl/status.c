/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The commands that look at how CPUs idle: what the kernel counts (states), and what the module does
 * (status). Neither wakes a CPU: all is read from files and from the module's memory.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <jansson.h>

#include "command.h"
#include "control.h"
#include "sysroot.h"

/* ---- states ---- */

static void
nap(double seconds)
{
	struct timespec ts = { .tv_sec = (time_t)seconds,
		.tv_nsec = (long)(1e9 * (seconds - (double)(time_t)seconds)) };

	while (nanosleep(&ts, &ts) != 0 && errno == EINTR)
		;
}

static json_t *
states_json(unsigned int cpu, const struct idle_states *s)
{
	json_t *list = json_array();

	for (unsigned int i = 0; i < s->nb; i++)
		json_array_append_new(list,
				json_pack("{s:s, s:s, s:I, s:I, s:b, s:I, s:I}", "name",
						s->at[i].name, "description", s->at[i].desc,
						"latency_us", (json_int_t)s->at[i].latency_us,
						"residency_us", (json_int_t)s->at[i].residency_us,
						"enabled", !s->at[i].disabled, "entries",
						(json_int_t)s->at[i].usage, "idle_us",
						(json_int_t)s->at[i].time_us));
	return json_pack("{s:i, s:o}", "cpu", (int)cpu, "states", list);
}

static void
print_states(unsigned int cpu, const struct idle_states *s, bool first)
{
	if (first)
		printf("%4s  %-14s %10s %12s  %-8s %12s %14s  %s\n", "cpu", "state", "latency us",
				"residency us", "enabled", "entries", "idle us", "description");
	for (unsigned int i = 0; i < s->nb; i++)
		printf("%4u  %-14s %10" PRIu64 " %12" PRIu64 "  %-8s %12" PRIu64 " %14" PRIu64
		       "  %s\n",
				cpu, s->at[i].name, s->at[i].latency_us, s->at[i].residency_us,
				s->at[i].disabled ? "no" : "yes", s->at[i].usage, s->at[i].time_us,
				s->at[i].desc);
}

/* The CPUs that a command is about, to be freed: the one asked for, or all. NULL with err set. */
static hwloc_bitmap_t
chosen(const struct options *o, struct err *err)
{
	struct topology t;
	hwloc_bitmap_t cpus = NULL;

	if (topology_open(&t, o->topology, err) != 0)
		return NULL;
	if (o->cpu < 0 || command_cpu(o, &t, -1, false, err) >= 0)
		cpus = hwloc_bitmap_dup(t.online);
	if (cpus != NULL && o->cpu >= 0)
		hwloc_bitmap_only(cpus, (unsigned int)o->cpu);
	if (cpus != NULL)
		topology_keep_off(&t, o->cpu);
	topology_close(&t);
	return cpus;
}

static struct idle_states *
read_all(hwloc_const_bitmap_t cpus)
{
	struct idle_states *all;
	unsigned int cpu, n = 0;

	all = calloc((size_t)hwloc_bitmap_weight(cpus), sizeof(*all));
	if (all == NULL)
		abort();
	hwloc_bitmap_foreach_begin(cpu, cpus)
	{
		cpuidle_read(&all[n++], cpu);
	}
	hwloc_bitmap_foreach_end();
	return all;
}

/* Counts from here on, not since the boot. */
static void
subtract(struct idle_states *now, const struct idle_states *before)
{
	for (unsigned int i = 0; i < now->nb; i++) {
		now->at[i].usage -= before->at[i].usage;
		now->at[i].time_us -= before->at[i].time_us;
	}
}

int
command_states(const struct options *o, struct err *err)
{
	hwloc_bitmap_t cpus = chosen(o, err);
	json_t *json;
	struct idle_states *before = NULL, *now;
	unsigned int cpu, n = 0, found = 0;

	if (cpus == NULL)
		return -1;
	json = json_array();
	if (o->interval > 0) {
		before = read_all(cpus);
		nap(o->interval);
	}
	now = read_all(cpus);
	hwloc_bitmap_foreach_begin(cpu, cpus)
	{
		if (before != NULL)
			subtract(&now[n], &before[n]);
		if (o->json)
			json_array_append_new(json, states_json(cpu, &now[n]));
		else
			print_states(cpu, &now[n], n == 0);
		found += now[n++].nb;
	}
	hwloc_bitmap_foreach_end();
	if (o->json) {
		command_json(json, JSON_INDENT(2));
	}
	json_decref(json);
	free(before);
	free(now);
	hwloc_bitmap_free(cpus);
	if (found == 0)
		return err_set(err, EXIT_SKIPPED, "no idle states: there is no cpuidle driver");
	return 0;
}

/* ---- status ---- */

/* One state of one CPU, from the module or from the kernel's files. */
struct seen {
	char name[IDLE_NAME_MAX];
	bool now; /* the CPU sleeps in it at this moment, as the module tells */
	uint64_t entries, idle_ns, samples;
	uint64_t values[SIBIDLE_VALUES_MAX]; /* of the register, as sampled */
	unsigned int nb_values;
};

struct seen_cpu {
	int mode; /* enum sibidle_mode; -1: the module is not there */
	unsigned int nb;
	struct seen at[IDLE_STATES_MAX];
};

/* A CPU that is watched: what does not change is read once only. */
struct watched {
	struct idle_states states;
	struct idle_files files; /* and whose they are */
};

static void
see_files(struct seen_cpu *to, struct watched *w)
{
	struct idle_states *s = &w->states;

	cpuidle_reread_counts(s, &w->files);
	to->nb = s->nb;
	for (unsigned int i = 0; i < s->nb; i++) {
		memset(&to->at[i], 0, sizeof(to->at[i]));
		memcpy(to->at[i].name, s->at[i].name, sizeof(to->at[i].name));
		to->at[i].entries = s->at[i].usage;
		to->at[i].idle_ns = 1000 * s->at[i].time_us;
	}
}

/* The cells of the mode that the CPU is in, and the period that runs. */
static void
see_module(struct seen_cpu *to, const struct sibidle *m, const struct sibidle_stats *s)
{
	to->nb = 0;
	for (unsigned int i = 0; i < m->info.nr_states && i < IDLE_STATES_MAX; i++) {
		const struct sibidle_cell *cell = &s->cells[s->mode][i];
		struct seen *at = &to->at[to->nb];
		uint64_t ticks = cell->ticks;

		if ((m->info.states[i].flags & SIBIDLE_STATE_HOOKABLE) == 0)
			continue;
		memset(at, 0, sizeof(*at));
		to->nb++;
		if (s->idle_state == i && s->idle_mode == s->mode && s->now > s->since)
			ticks += s->now - s->since;
		snprintf(at->name, sizeof(at->name), "%s", m->info.states[i].name);
		at->now = s->idle_state == i;
		at->entries = cell->entries;
		at->idle_ns = sibidle_ns(m, ticks);
		at->samples = cell->other;
		for (unsigned int v = 0; v < SIBIDLE_VALUES_MAX && cell->count[v] > 0; v++) {
			at->values[at->nb_values++] = cell->value[v];
			at->samples += cell->count[v];
		}
	}
}

static int
see(struct seen_cpu *to, const struct sibidle *m, struct watched *w, struct err *err)
{
	struct sibidle_stats stats;

	to->mode = -1;
	if (m->fd < 0) {
		see_files(to, w);
		return 0;
	}
	if (sibidle_stats(m, w->files.cpu, &stats, err) != 0)
		return -1;
	to->mode = (int)stats.mode;
	/* Without a lease the module counts nothing. */
	if ((m->info.flags & SIBIDLE_HOOKED) != 0)
		see_module(to, m, &stats);
	else
		see_files(to, w);
	return 0;
}

static json_t *
seen_json(unsigned int cpu, const struct seen_cpu *s)
{
	json_t *states = json_array();

	for (unsigned int i = 0; i < s->nb; i++) {
		json_t *values = json_array();

		for (unsigned int v = 0; v < s->at[i].nb_values; v++)
			json_array_append_new(
					values, json_sprintf("0x%" PRIx64, s->at[i].values[v]));
		json_array_append_new(states,
				json_pack("{s:s, s:I, s:I, s:I, s:o}", "name", s->at[i].name,
						"entries", (json_int_t)s->at[i].entries, "idle_ns",
						(json_int_t)s->at[i].idle_ns, "samples",
						(json_int_t)s->at[i].samples, "spec_ctrl", values));
	}
	return json_pack("{s:i, s:o, s:o}", "cpu", (int)cpu, "mode",
			s->mode < 0 ? json_null()
				    : json_string(sibidle_mode_word((unsigned int)s->mode)),
			"states", states);
}

static void
print_seen(unsigned int cpu, const struct seen_cpu *s, bool first)
{
	if (first)
		printf("%4s  %-6s %-14s %3s %12s %14s %12s  %s\n", "cpu", "mode", "state", "now",
				"entries", "idle us", "samples", "spec_ctrl");
	for (unsigned int i = 0; i < s->nb; i++) {
		printf("%4u  %-6s %-14s %3s %12" PRIu64 " %14" PRIu64 " %12" PRIu64, cpu,
				s->mode < 0 ? "-" : sibidle_mode_word((unsigned int)s->mode),
				s->at[i].name, s->at[i].now ? "*" : "", s->at[i].entries,
				s->at[i].idle_ns / 1000, s->at[i].samples);
		for (unsigned int v = 0; v < s->at[i].nb_values; v++)
			printf("%s0x%" PRIx64, v == 0 ? "  " : ";", s->at[i].values[v]);
		printf("\n");
	}
}

/* What came since another look; in another mode it is another count. */
static void
seen_since(struct seen_cpu *now, const struct seen_cpu *before)
{
	for (unsigned int i = 0; i < now->nb && now->nb == before->nb && now->mode == before->mode;
			i++) {
		now->at[i].entries -= before->at[i].entries;
		now->at[i].samples -= before->at[i].samples;
		now->at[i].idle_ns = now->at[i].idle_ns > before->at[i].idle_ns
				? now->at[i].idle_ns - before->at[i].idle_ns
				: 0;
	}
}

/* What is watched, and what was seen of it; the arrays have nb members. */
struct watch {
	struct sibidle module; /* fd -1: not there */
	unsigned int nb;
	struct watched *cpus;
	struct seen_cpu *now, *before;
};

/* Look at all CPUs once and print it; with since, what came since the look before. */
static int
look(const struct options *o, struct watch *w, bool since, struct err *err)
{
	json_t *list = json_array(), *whole;
	int rc = 0;

	for (unsigned int i = 0; i < w->nb; i++) {
		struct seen_cpu shown;

		rc = see(&w->now[i], &w->module, &w->cpus[i], err);
		if (rc != 0)
			break;
		shown = w->now[i];
		if (since)
			seen_since(&shown, &w->before[i]);
		if (o->json)
			json_array_append_new(list, seen_json(w->cpus[i].files.cpu, &shown));
		else
			print_seen(w->cpus[i].files.cpu, &shown, i == 0);
	}
	whole = json_pack("{s:b, s:o}", "emulated", sys_emulated(), "cpus", list);
	if (o->json && rc == 0)
		command_json(whole, JSON_COMPACT);
	else if (rc == 0 && sys_emulated())
		printf("emulated: times mean nothing here\n");
	json_decref(whole);
	return rc == 0 && fflush(stdout) != 0
			? err_set(err, EXIT_FAILED, "standard output: %s", strerror(errno))
			: rc;
}

/* Room for the files of so many CPUs, as far as the administrator lets us. */
static void
raise_files(unsigned int nb_cpus)
{
	struct rlimit limit;
	rlim_t wanted = 64 + (rlim_t)nb_cpus * IDLE_STATES_MAX * 2;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
		return;
	limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static void
begin_watch(struct watch *w, hwloc_const_bitmap_t cpus)
{
	size_t nb = (size_t)hwloc_bitmap_weight(cpus);
	unsigned int cpu;

	w->cpus = calloc(nb, sizeof(*w->cpus));
	w->now = calloc(nb, sizeof(*w->now));
	w->before = calloc(nb, sizeof(*w->before));
	if (w->cpus == NULL || w->now == NULL || w->before == NULL)
		abort();
	raise_files((unsigned int)nb);
	hwloc_bitmap_foreach_begin(cpu, cpus)
	{
		struct watched *at = &w->cpus[w->nb++];

		cpuidle_read(&at->states, cpu);
		cpuidle_open(&at->files, &at->states, cpu);
	}
	hwloc_bitmap_foreach_end();
}

static void
end_watch(struct watch *w)
{
	for (unsigned int i = 0; i < w->nb; i++)
		cpuidle_close(&w->cpus[i].files, &w->cpus[i].states);
	free(w->cpus);
	free(w->now);
	free(w->before);
}

/* Without an interval once; with one the first look is only there to be subtracted. */
static int
watch(const struct options *o, struct watch *w, struct err *err)
{
	int rc = 0;

	if (o->interval <= 0)
		return look(o, w, false, err);
	for (unsigned int i = 0; i < w->nb && rc == 0; i++)
		rc = see(&w->before[i], &w->module, &w->cpus[i], err);
	while (rc == 0) {
		struct seen_cpu *swap = w->before;

		nap(o->interval);
		if (w->module.fd >= 0 && sibidle_refresh(&w->module, err) != 0)
			rc = -1;
		if (rc == 0)
			rc = look(o, w, true, err);
		w->before = w->now;
		w->now = swap;
	}
	return rc;
}

int
command_status(const struct options *o, struct err *err)
{
	hwloc_bitmap_t cpus = chosen(o, err);
	struct watch w = { .module.fd = -1 };
	struct lock_owner owner;
	struct err none;
	int rc;

	if (cpus == NULL)
		return -1;
	/* Without the module, or the right to look at it, there is what the kernel counts. */
	if (sibidle_open(&w.module, false, &none) != 0 && sys_live() &&
			sys_exists("/sys/module/sibidle"))
		fprintf(stderr, "idlectl: %s\n", none.text);
	if (journal_locked(&owner))
		fprintf(stderr, "idlectl: in use by process %d (%s)\n", (int)owner.pid, owner.who);
	begin_watch(&w, cpus);
	rc = watch(o, &w, err);
	end_watch(&w);
	sibidle_close(&w.module);
	hwloc_bitmap_free(cpus);
	return rc;
}
