/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APP_MACHINE_H
#define APP_MACHINE_H

/*
 * What the kernel counts about a CPU, read by the controller at the edges of a window. Nothing
 * here runs on, or interrupts, the measured CPU.
 */
#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "err.h"

#define MACHINE_UNKNOWN UINT64_MAX

/* Counts since boot, unless said otherwise; MACHINE_UNKNOWN where the kernel does not tell. */
struct machine_counts {
	uint64_t irqs; /* interrupts of all kinds on the CPU */
	uint64_t ctx_switches; /* involuntary, of the thread */
	uint64_t steal_ns; /* taken by the hypervisor; in steps of a USER_HZ tick */
	uint64_t busy_ns; /* not idle, steal not counted; same steps */
	uint64_t smi; /* system management interrupts; Intel only */
	uint64_t throttles; /* thermal, core and package */
	uint64_t freq_khz; /* now */
	uint64_t freq_limits; /* minimum and maximum set now, as one number to compare */
};

/*
 * Read the counts of cpu, and of the thread tid of this process (0: none). quiet_cpu is where
 * registers common to the package are read.
 */
void machine_read(struct machine_counts *c, unsigned int cpu, int tid, unsigned int quiet_cpu);

/*
 * Whether a thread still runs on one CPU only: where that CPU goes off line the kernel moves the thread
 * anywhere, and does not move it back. Returns 0, or -1 with err set.
 */
int machine_check_thread(int tid, unsigned int cpu, struct err *err);

/* Ticks a second of the kernel's timer (CONFIG_HZ), from the resolution of its coarse clock. */
double machine_tick_hz(void);

/* First line of a file without its line end; empty where it cannot be read. Returns text. */
char *machine_file(const char *path, char *text, size_t size);

#endif
