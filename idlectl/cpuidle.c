/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "mechanisms.h"
#include "sysroot.h"

#define STATE SYS_CPU "/cpu%u/cpuidle/state%u/"

static void
read_text(char *to, size_t size, const char *file, unsigned int cpu, unsigned int state)
{
	char *text = sys_read(STATE "%s", cpu, state, file);

	snprintf(to, size, "%s", text != NULL ? one_line(text) : "");
	free(text);
}

static uint64_t
read_number(const char *file, unsigned int cpu, unsigned int state)
{
	uint64_t value = 0;

	sys_read_u64(&value, STATE "%s", cpu, state, file);
	return value;
}

void
cpuidle_read_counts(struct idle_states *s, unsigned int cpu)
{
	for (unsigned int i = 0; i < s->nb; i++) {
		s->at[i].usage = read_number("usage", cpu, s->at[i].index);
		s->at[i].time_us = read_number("time", cpu, s->at[i].index);
	}
}

void
cpuidle_open(struct idle_files *f, const struct idle_states *s, unsigned int cpu)
{
	f->cpu = cpu;
	for (unsigned int i = 0; i < s->nb; i++) {
		f->usage[i] = sys_open(STATE "usage", cpu, s->at[i].index);
		f->time[i] = sys_open(STATE "time", cpu, s->at[i].index);
	}
}

void
cpuidle_reread_counts(struct idle_states *s, const struct idle_files *f)
{
	for (unsigned int i = 0; i < s->nb; i++) {
		struct idle_state *at = &s->at[i];

		uint64_t usage = at->usage;

		if (!sys_reread_u64(&at->usage, f->usage[i]))
			at->usage = read_number("usage", f->cpu, at->index);
		/* The kernel counts both when a period ends: most states have nothing new. */
		if (at->usage != usage && !sys_reread_u64(&at->time_us, f->time[i]))
			at->time_us = read_number("time", f->cpu, at->index);
	}
}

void
cpuidle_close(struct idle_files *f, const struct idle_states *s)
{
	for (unsigned int i = 0; i < s->nb; i++) {
		if (f->usage[i] >= 0)
			close(f->usage[i]);
		if (f->time[i] >= 0)
			close(f->time[i]);
	}
}

void
cpuidle_read(struct idle_states *s, unsigned int cpu)
{
	memset(s, 0, sizeof(*s));
	for (unsigned int i = 0; i < IDLE_STATES_MAX; i++) {
		struct idle_state *at = &s->at[s->nb];

		read_text(at->name, sizeof(at->name), "name", cpu, i);
		if (at->name[0] == '\0')
			continue;
		at->index = i;
		read_text(at->desc, sizeof(at->desc), "desc", cpu, i);
		at->latency_us = read_number("latency", cpu, i);
		at->residency_us = read_number("residency", cpu, i);
		at->disabled = read_number("disable", cpu, i) != 0;
		s->nb++;
	}
	cpuidle_read_counts(s, cpu);
}

/* A state's name as a word: in lower case, "haltpoll idle" with a hyphen. */
static void
to_word(char *name)
{
	for (; *name != '\0'; name++)
		*name = *name == ' ' || *name == '+' || *name == ':'
				? '-'
				: (char)tolower((unsigned char)*name);
}

void
cpuidle_word(const struct idle_state *state, char word[IDLE_NAME_MAX])
{
	snprintf(word, IDLE_NAME_MAX, "%s", state->name);
	to_word(word);
}

const struct idle_state *
cpuidle_find(const struct idle_states *s, const char *name)
{
	char wanted[IDLE_NAME_MAX], word[IDLE_NAME_MAX];

	snprintf(wanted, sizeof(wanted), "%s", name);
	to_word(wanted);
	for (unsigned int i = 0; i < s->nb; i++) {
		cpuidle_word(&s->at[i], word);
		if (strcmp(word, wanted) == 0)
			return &s->at[i];
	}
	return NULL;
}

char *
cpuidle_names(const struct idle_states *s)
{
	char *names = sys_format("%s", ""), word[IDLE_NAME_MAX];

	for (unsigned int i = 0; i < s->nb; i++) {
		char *more;

		cpuidle_word(&s->at[i], word);
		more = sys_format("%s%s%s", names, i == 0 ? "" : " ", word);
		free(names);
		names = more;
	}
	return names;
}

bool
cpuidle_is_poll(const struct idle_state *state)
{
	return strcasecmp(state->name, "POLL") == 0;
}

/* An event opened on a CPU is installed there, by an interrupt that wakes it. */
static bool
kick_by_event(unsigned int cpu)
{
	/* The clock: other software events patch the kernel's text, which interrupts every CPU. */
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr), .config = PERF_COUNT_SW_CPU_CLOCK
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Run there for a moment. It takes until whatever runs there lets us. */
static bool
kick_by_move(unsigned int cpu)
{
	cpu_set_t *mine, *there;
	size_t size = CPU_ALLOC_SIZE(CPU_SETSIZE * 8);
	bool done = false;

	mine = CPU_ALLOC(CPU_SETSIZE * 8);
	there = CPU_ALLOC(CPU_SETSIZE * 8);
	if (mine == NULL || there == NULL)
		abort();
	CPU_ZERO_S(size, there);
	CPU_SET_S(cpu, size, there);
	if (sched_getaffinity(0, size, mine) == 0 && sched_setaffinity(0, size, there) == 0)
		done = sched_setaffinity(0, size, mine) == 0;
	CPU_FREE(mine);
	CPU_FREE(there);
	return done;
}

bool
cpuidle_kick(unsigned int cpu)
{
	return kick_by_event(cpu) || kick_by_move(cpu);
}

int
cpuidle_check(unsigned int cpu, const struct word_row *row, struct err *err)
{
	struct idle_states states;

	(void)row;
	cpuidle_read(&states, cpu);
	if (states.nb == 0)
		return err_set(err, EXIT_SKIPPED, "CPU %u has no idle states (no cpuidle driver)",
				cpu);
	return 0;
}

/* The wanted state first: with all others disabled a CPU would poll. */
int
cpuidle_apply(struct control *c, const struct word *w, struct err *err)
{
	struct idle_states states;
	const struct idle_state *wanted;

	cpuidle_read(&states, c->cpu);
	wanted = cpuidle_find(&states, w->name);
	if (wanted == NULL)
		return err_set(err, EXIT_SKIPPED, "%s: CPU %u has no such idle state", w->name,
				c->cpu);
	for (unsigned int pass = 0; pass < 2; pass++)
		for (unsigned int i = 0; i < states.nb; i++) {
			bool is_wanted = &states.at[i] == wanted;
			char *path;
			int rc;

			if (is_wanted != (pass == 0))
				continue;
			path = sys_format(STATE "disable", c->cpu, states.at[i].index);
			rc = journal_write(&c->journal, path, is_wanted ? "0" : "1", err);
			free(path);
			if (rc != 0)
				return rc;
		}
	return 0;
}

/* The states used between two readings: of those that are allowed, or of the others. */
static struct idle_states
used_between(const struct idle_states *before, const struct idle_states *now, const bool *allowed,
		bool which)
{
	struct idle_states used = { 0 };

	for (unsigned int i = 0; i < now->nb; i++)
		if (allowed[i] == which && now->at[i].usage != before->at[i].usage)
			used.at[used.nb++] = now->at[i];
	return used;
}

int
cpuidle_watch(unsigned int cpu, const struct word *w, const bool *allowed, struct err *err)
{
	const struct timespec nap = { .tv_nsec = 2000000 };
	struct idle_states before, now, others;
	bool kicked = cpuidle_kick(cpu);
	uint64_t start = clock_ns();
	char *names;

	cpuidle_read(&before, cpu);
	now = before;
	while (clock_ns() - start < (uint64_t)(1e9 * VERIFY_S)) {
		nanosleep(&nap, NULL);
		kicked = cpuidle_kick(cpu) && kicked;
		cpuidle_read_counts(&now, cpu);
		if (used_between(&before, &now, allowed, true).nb == 0)
			continue;
		/* The period that ran when the scenario came still counts for another one. */
		if (used_between(&before, &now, allowed, false).nb == 0)
			return 0;
		before = now;
	}
	others = used_between(&before, &now, allowed, false);
	names = others.nb > 0 ? cpuidle_names(&others) : sys_format("none");
	err_set(err, EXIT_FAILED, "%s: CPU %u did not idle so within %g s (states used: %s)%s",
			w->name, cpu, VERIFY_S, names,
			kicked ? ": is it busy, or does something else limit its latency?"
			       : ": this process may not wake it");
	free(names);
	return -1;
}

int
cpuidle_verify(struct control *c, const struct word *w, struct err *err)
{
	struct idle_states states;
	bool wanted[IDLE_STATES_MAX] = { false };

	cpuidle_read(&states, c->cpu);
	for (unsigned int i = 0; i < states.nb; i++) {
		wanted[i] = &states.at[i] == cpuidle_find(&states, w->name);
		if (states.at[i].disabled == wanted[i])
			return err_set(err, EXIT_FAILED, "%s: state %s of CPU %u is %s again",
					w->name, states.at[i].name, c->cpu,
					states.at[i].disabled ? "disabled" : "enabled");
	}
	/* A recorded tree does not idle, and neither does a CPU under load. */
	if (!sys_live() || load_never_idles(c->scenario))
		return 0;
	return cpuidle_watch(c->cpu, w, wanted, err);
}
