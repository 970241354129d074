/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IDLECTL_SIBIDLE_DEVICE_H
#define IDLECTL_SIBIDLE_DEVICE_H

/*
 * sibidle.ko as a program uses it: /dev/sibidle, through kmod/sibidle.h.
 */
#include <stdbool.h>
#include <stdint.h>

#include "err.h"
#include "sibidle.h"

#define SPEC_CTRL_IBRS 1ULL /* bit 0 of IA32_SPEC_CTRL, as in the kernel's headers */

struct sibidle {
	int fd; /* -1: not open */
	struct sibidle_info info;
};

/* Samples of the register in a mode, and how many of them had IBRS set. */
struct sibidle_samples {
	uint64_t samples, with_ibrs;
};

/*
 * Open the device, for changes or only to look. Returns 0, or -1 with err set: 4 where the module is
 * not loaded, is not of this version, or a recorded tree is looked at; 1 where it cannot be opened.
 */
int sibidle_open(struct sibidle *m, bool changes, struct err *err);
void sibidle_close(struct sibidle *m);

/* Read m->info again: leases come and go. */
int sibidle_refresh(struct sibidle *m, struct err *err);

/* The counts of a CPU. */
int sibidle_stats(const struct sibidle *m, unsigned int cpu, struct sibidle_stats *stats,
		struct err *err);

/* The words for modes (enum sibidle_mode) and refusals (enum sibidle_refusal). */
const char *sibidle_mode_word(unsigned int mode);
const char *sibidle_refusal_text(unsigned int refusal);

/* Why a lease ended (enum sibidle_end), as a word. */
const char *sibidle_end_word(unsigned int end);

/* TSC ticks of the module as nanoseconds. */
uint64_t sibidle_ns(const struct sibidle *m, uint64_t ticks);

#endif
