/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APP_REMOTE_H
#define APP_REMOTE_H

/*
 * Eyes from elsewhere: DPDK's telemetry socket and a file for Prometheus. Both tell what windows came to, by the
 * forwarding threads' own snapshots; neither asks a forwarding thread for anything.
 */
#include "run.h"

/* Register the telemetry commands, and write the first file. Before EAL. Returns 0, or -1 with err set. */
int remote_begin(const struct run *r, struct err *err);

/* After EAL: who runs where; and whenever it changes. */
void remote_placement(const struct placement *p);

/* What the sibling does; cpu -1: nothing is done to it. */
void remote_scenario(const char *words, int cpu);

/* One finished row, and the burst histogram of its window or NULL. */
void remote_window(const struct result_window *w, const uint64_t *bursts);

/* A row that was told turned out to be tainted when its visit ended. */
void remote_tainted(const struct result_window *w);

/* All rows of a window are there: the file for Prometheus is written anew. Returns 0, or -1 with err set. */
int remote_written(struct err *err);

/* Nothing is told from here on. */
void remote_end(void);

#endif
