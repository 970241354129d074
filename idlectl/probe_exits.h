/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IDLECTL_PROBE_EXITS_H
#define IDLECTL_PROBE_EXITS_H

/*
 * The parsing and arithmetic of probe msr --exits, apart from the machine.
 */
#include "probe.h"

/* The exits of one reason. Times are in us, from an exit to the next entry of the same thread. */
struct exit_reason {
	char name[48];
	uint64_t n;
	double mean, m2; /* and the sum of squared differences from it, after Welford */
	double min, max;
	struct histogram ns;
};

struct exits {
	struct exit_reason **reasons; /* sorted by exits_report() */
	size_t nb;
	void *threads; /* tree of the virtual CPUs' threads */
	size_t nb_threads;
	uint64_t exits; /* lines of kvm_exit */
	uint64_t lone_exits, lone_entries; /* the other half is missing */
	uint64_t backward; /* entries before their exits */
	uint64_t lost; /* events, as perf tells */
	uint64_t skipped; /* lines that are no event of ours */
	bool fine; /* times have more than six decimals */
};

/* Zeroed is begun. */
void exits_free(struct exits *e);

/* The reason of that name, new or not; good until exits_free(). NULL: there are too many. */
struct exit_reason *exits_reason(struct exits *e, const char *name);

void exit_reason_add(struct exit_reason *reason, double us);

/* The relative standard error of the mean in %, 100 * sqrt(var / n) / mean; NAN below two samples. */
double exit_reason_rse(const struct exit_reason *reason);

/* Take in one line of perf script's. Returns 0, or -1 with err set: more threads or reasons than any host has. */
int exits_line(struct exits *e, char *line, struct err *err);

/* All lines of a file. Returns 0, or -1 with err set; name is what the error calls it. */
int exits_read(struct exits *e, int fd, const char *name, struct err *err);

/*
 * Add the rows of each reason, most samples first, and the published ones; and what was left out.
 * Returns 0, or -1 with err set (1) where there is not one exit with its entry.
 */
int exits_report(struct exits *e, struct probe_report *r, struct err *err);

/* Add what is published of exits by MSR writes, for a report without exits. */
void exits_publish_means(struct probe_report *r);

/* The whole probe. */
int probe_exits(struct probe_report *r, const struct probe_options *o, struct err *err);

#endif
