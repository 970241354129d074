/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mechanisms.h"
#include "sysroot.h"

#define STATE SYS_CPU "/cpu%u/cpuidle/state%u/"

static void
read_text(char *to, size_t size, const char *file, unsigned int cpu, unsigned int state)
{
	char *text = sys_read(STATE "%s", cpu, state, file);

	snprintf(to, size, "%s", text != NULL ? text : "");
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
cpuidle_kick(unsigned int cpu)
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

/* What was used of the states between two readings: names for people. */
static char *
used_between(const struct idle_states *before, const struct idle_states *now)
{
	struct idle_states used = { 0 };

	for (unsigned int i = 0; i < now->nb; i++)
		if (now->at[i].usage != before->at[i].usage)
			used.at[used.nb++] = now->at[i];
	return used.nb > 0 ? cpuidle_names(&used) : sys_format("none");
}

static bool
others_used(const struct idle_states *before, const struct idle_states *now,
		const struct idle_state *wanted)
{
	for (unsigned int i = 0; i < now->nb; i++)
		if (&now->at[i] != wanted && now->at[i].usage != before->at[i].usage)
			return true;
	return false;
}

/* Wake it, let it fall asleep, wake it, and see which states were counted. */
static int
watch(struct control *c, const struct word *w, struct err *err)
{
	const struct timespec nap = { .tv_nsec = 2000000 };
	struct idle_states before, now;
	const struct idle_state *wanted;
	bool kicked = cpuidle_kick(c->cpu);
	char *used;

	cpuidle_read(&before, c->cpu);
	now = before;
	wanted = cpuidle_find(&now, w->name);
	for (int i = 0; i < (int)(VERIFY_S / 2e-3); i++) {
		nanosleep(&nap, NULL);
		kicked = cpuidle_kick(c->cpu) && kicked;
		cpuidle_read_counts(&now, c->cpu);
		if (wanted->usage == before.at[wanted - now.at].usage)
			continue;
		/* The period that ran when the others were disabled still counts for one of them. */
		if (!others_used(&before, &now, wanted))
			return 0;
		before = now;
	}
	used = used_between(&before, &now);
	err_set(err, EXIT_FAILED, "%s: CPU %u did not enter it within %g s (used: %s)%s", w->name,
			c->cpu, VERIFY_S, used,
			kicked ? ": is it busy, or does something else limit its latency?"
			       : ": this process may not run there to wake it");
	free(used);
	return -1;
}

int
cpuidle_verify(struct control *c, const struct word *w, struct err *err)
{
	struct idle_states states;

	cpuidle_read(&states, c->cpu);
	for (unsigned int i = 0; i < states.nb; i++)
		if (states.at[i].disabled != (&states.at[i] != cpuidle_find(&states, w->name)))
			return err_set(err, EXIT_FAILED, "%s: state %s of CPU %u is %s again",
					w->name, states.at[i].name, c->cpu,
					states.at[i].disabled ? "disabled" : "enabled");
	/* A recorded tree does not idle, and neither does a CPU under load. */
	if (!sys_live() || load_never_idles(c->scenario))
		return 0;
	return watch(c, w, err);
}
