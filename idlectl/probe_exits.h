/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IDLECTL_PROBE_EXITS_H
#define IDLECTL_PROBE_EXITS_H

/*
 * Exits of KVM guests by reason, and the text of perf script that tells of them.
 */
#include <stdio.h>

#include "probe.h"

/* The exits of one reason: Welford's accumulators (Technometrics 4, 1962). Times in us. */
struct exit_reason {
	char name[40];
	uint64_t n;
	double mean, m2, min, max; /* m2: sum of squared differences from the mean */
};

struct exits {
	struct exit_reason *reasons;
	size_t nb;
	uint64_t without_entry, without_exit, other_lines;
	struct vcpu *vcpus;
	size_t nb_vcpus;
};

/* Count an exit that took so long. */
void exits_add(struct exits *e, const char *reason, double us);

/*
 * Read what perf script wrote of kvm:kvm_exit and kvm:kvm_entry: a time is that from an exit to the next
 * entry of the same thread. Zero e before. Lines that are none of these are counted.
 */
void exits_parse(struct exits *e, FILE *in);
void exits_free(struct exits *e);

/*
 * Add a row for each figure of each reason, those with most samples first: samples, their share, the share
 * of time, minimum, maximum, mean, and its relative standard error, 100 sqrt(var / n) / mean.
 */
void exits_rows(struct probe_report *r, struct exits *e);

/* probe msr --exits. */
int probe_exits(struct probe_report *r, const struct probe_options *o, struct err *err);

#endif
