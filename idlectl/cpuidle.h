/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IDLECTL_CPUIDLE_H
#define IDLECTL_CPUIDLE_H

/*
 * The kernel's idle states of a CPU, by name.
 */
#include <stdbool.h>
#include <stdint.h>

#include <hwloc.h>

#define IDLE_STATES_MAX 10 /* the kernel's CPUIDLE_STATE_MAX */
#define IDLE_NAME_MAX 32 /* more than the kernel's CPUIDLE_NAME_LEN */

struct idle_state {
	unsigned int index; /* of stateN */
	char name[IDLE_NAME_MAX];
	char desc[64];
	uint64_t latency_us; /* to leave it */
	uint64_t residency_us; /* from which on it pays */
	uint64_t usage; /* periods that ended */
	uint64_t time_us; /* of these */
	bool disabled;
};

struct idle_states {
	unsigned int nb; /* 0: no cpuidle on that CPU */
	struct idle_state at[IDLE_STATES_MAX];
};

void cpuidle_read(struct idle_states *s, unsigned int cpu);

/* Usage and time only, of states read before. */
void cpuidle_read_counts(struct idle_states *s, unsigned int cpu);

/* The files of usage and time of a CPU's states, open; -1 where a file is not. */
struct idle_files {
	unsigned int cpu;
	int usage[IDLE_STATES_MAX], time[IDLE_STATES_MAX];
};

/*
 * For who reads often: keep the files open, and read as cpuidle_read_counts() does. Where there are
 * more files than a process may have, the rest is opened each time.
 */
void cpuidle_open(struct idle_files *f, const struct idle_states *s, unsigned int cpu);
void cpuidle_reread_counts(struct idle_states *s, const struct idle_files *f);
void cpuidle_close(struct idle_files *f, const struct idle_states *s);

/* The word of a state in scenarios: its name in lower case, with hyphens for what words cannot hold. */
void cpuidle_word(const struct idle_state *state, char word[IDLE_NAME_MAX]);

/* A state by its name or word, in any case of letters; NULL: there is none. */
const struct idle_state *cpuidle_find(const struct idle_states *s, const char *name);

/* The words of all states, joined by blanks, to be freed. */
char *cpuidle_names(const struct idle_states *s);

/* Whether it is POLL, which is not sleep. */
bool cpuidle_is_poll(const struct idle_state *state);

/*
 * Wake a CPU, so that an idle period ends and is counted: by an interrupt, or, where this process has
 * no right to that, by running on it for a moment. Returns false where it may do neither.
 */
bool cpuidle_kick(unsigned int cpu);

#endif
