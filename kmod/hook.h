/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SIBIDLE_HOOK_H
#define SIBIDLE_HOOK_H

#include <linux/cpumask.h>
#include <linux/nospec.h>
#include <linux/types.h>

#include "sibidle.h"

/* A number that a caller gives; also clamps it for a processor that speculates past the test. */
static inline bool sibidle_cpu_valid(u32 *cpu)
{
	if (*cpu >= nr_cpu_ids || !cpu_possible(*cpu))
		return false;
	*cpu = array_index_nospec(*cpu, nr_cpu_ids);
	return true;
}

/* Before and after everything else. init returns 0 or -ENOMEM. */
int sibidle_hook_init(void);
void sibidle_hook_exit(void);

/*
 * Swap the callbacks of the idle driver for ours; 0 if they already are. Returns 0, or -ENODEV
 * without a driver. The caller holds
 * cpus_read_lock() and serialises install and remove.
 */
int sibidle_hook_install(void);

/*
 * Put the driver's callbacks back and wait until no CPU is inside ours. False, with nothing put
 * back, if another module has hooked on top; it can be tried again. Same locks. May sleep.
 */
bool sibidle_hook_remove(void);

/* Whether the callbacks are ours, and whether the last removal failed. Same locks. */
bool sibidle_hook_installed(void);
bool sibidle_hook_chained(void);

/*
 * Change the mode of a CPU and whether its entries are sampled; when that returns, the CPU has
 * left the idle period it was in. A CPU whose mode does not change is left alone. The caller
 * holds cpus_read_lock() or is a hotplug callback.
 */
void sibidle_hook_mode(unsigned int cpu, enum sibidle_mode mode, bool sample);

enum sibidle_mode sibidle_hook_mode_of(unsigned int cpu);

/* Why a CPU cannot have a mode; cpu < 0: why no CPU can. Same locks. */
enum sibidle_refusal sibidle_hook_refusal(int cpu, enum sibidle_mode mode);

/* Fill driver, states, flags and refusals. Same locks. */
void sibidle_hook_info(struct sibidle_info *info);

/* Fill what the hook counts of stats->cpu, a possible CPU. -EAGAIN if it does not hold still. May sleep. */
int sibidle_hook_stats(struct sibidle_stats *stats);

/* Read register and shadow on a CPU. -ENXIO if it is off line, -EOPNOTSUPP without a register. */
int sibidle_hook_register(struct sibidle_register *reg);

#endif
