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

/* The word of a state in scenarios: its name in lower case, with hyphens for what words cannot hold. */
void cpuidle_word(const struct idle_state *state, char word[IDLE_NAME_MAX]);

/* A state by its name or word, in any case of letters; NULL: there is none. */
const struct idle_state *cpuidle_find(const struct idle_states *s, const char *name);

/* The words of all states, joined by blanks, to be freed. */
char *cpuidle_names(const struct idle_states *s);

/*
 * Wake a CPU, so that an idle period ends and is counted: by running on it for a moment. Returns false
 * where this process may not run there.
 */
bool cpuidle_kick(unsigned int cpu);

#endif
