/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IDLECTL_MECHANISMS_H
#define IDLECTL_MECHANISMS_H

/*
 * What the rows of the scenario table call, a mechanism a file. All return 0, or -1 with err set.
 */
#include <pthread.h>

#include "control.h"

/* cpuidle.c: all idle states but one disabled. Verified by the counts of the states that are used. */
int cpuidle_check(unsigned int cpu, const struct word_row *row, struct err *err);
int cpuidle_apply(struct control *c, const struct word *w, struct err *err);
int cpuidle_verify(struct control *c, const struct word *w, struct err *err);
/*
 * Wake a CPU, let it fall asleep, wake it, until one of the allowed states (by place in what
 * cpuidle_read() gives) was used and no other one. Returns 0, or -1 with err set where that does not
 * happen within VERIFY_S.
 */
int cpuidle_watch(unsigned int cpu, const struct word *w, const bool *allowed, struct err *err);

/* qos.c: the resume latency limit of the CPU. */
int qos_check(unsigned int cpu, const struct word_row *row, struct err *err);
int qos_apply(struct control *c, const struct word *w, struct err *err);
int qos_verify(struct control *c, const struct word *w, struct err *err);
/* Whether a CPU with that limit may use a state. */
bool qos_allows(const struct word *limit, const struct idle_state *state);

/* hotplug.c: the CPU off line. */
int hotplug_check(unsigned int cpu, const struct word_row *row, struct err *err);
int hotplug_apply(struct control *c, const struct word *w, struct err *err);
int hotplug_verify(struct control *c, const struct word *w, struct err *err);
/* CPU 0 of many machines has no file that tells: it cannot go. */
bool hotplug_online(unsigned int cpu);

/* sibidle.c: a mode of the module; its lease ends with the descriptor. */
int sibidle_check(unsigned int cpu, const struct word_row *row, struct err *err);
int sibidle_apply(struct control *c, const struct word *w, struct err *err);
int sibidle_verify(struct control *c, const struct word *w, struct err *err);
/* Close the device; says so where the module has ended the lease before. */
void sibidle_let_go(struct control *c);

/*
 * load.c: a thread on the CPU, or, for LOAD_IPI, on one outside its core that this process may use. Those with
 * a number do it so often a second and sleep between.
 */
enum load_kind {
	LOAD_BUSY,
	LOAD_PAUSE,
	LOAD_MEM,
	LOAD_SYSCALL,
	LOAD_WAKE,
	LOAD_IPI,
	LOAD_WRMSR,
	LOAD_MBM,
};
int load_check(unsigned int cpu, const struct word_row *row, struct err *err);
int load_apply(struct control *c, const struct word *w, struct err *err);
int load_verify(struct control *c, const struct word *w, struct err *err);
void load_end(struct load *l);
/* What a load has done: wake-ups, or turns of its loop. */
uint64_t load_turns(const struct load *l);
/* The CPU that its thread is on. */
unsigned int load_cpu(const struct load *l);
/* How far a number of wake-ups is from a rate, in percent of it; one more or less is none. */
double load_rate_off(uint64_t wakes, uint64_t hz, double seconds);

/* Whether a scenario keeps the CPU from idling at all. */
bool load_never_idles(const struct scenario *s);

/*
 * A thread that is on the CPU before it runs, so that it never disturbs another one. Returns 0, or an error
 * number.
 */
int thread_on(pthread_t *thread, unsigned int cpu, void *(*run)(void *), void *arg);

/* CLOCK_MONOTONIC, in ns. */
uint64_t clock_ns(void);

/* What verifying waits for an idle CPU at most. */
#define VERIFY_S 1.0

#endif
