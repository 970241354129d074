/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APP_SHOW_H
#define APP_SHOW_H

/*
 * What the prompt shows of ports and forwarding, in testpmd's words and layout, so that eyes and scripts
 * that know those find their way.
 */
#include <stdio.h>

#include "run.h"

/* A port, by what stands behind "show port": info, stats, xstats or summary. */
void show_port_info(const struct port *port, FILE *out);
void show_port_summary_head(FILE *out);
void show_port_summary(const struct port *port, FILE *out);
void show_port_stats(const struct port *port, FILE *out); /* with rates since the last call */
void show_port_xstats(const struct port *port, FILE *out);

/* Which stream goes where, and how ports and queues are set up, as "start" and "show config fwd" have it. */
void show_forwarding(const struct run *r, FILE *out);
void show_config(const struct run *r, FILE *out);

/*
 * What was forwarded since the start or since it was cleared, by port and in all. Of a run that forwards an edge
 * has to be taken before.
 */
void show_forward_stats(const struct run *r, FILE *out);

#endif
