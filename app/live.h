/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APP_LIVE_H
#define APP_LIVE_H

/*
 * Figures of the last second or so, while it forwards: the loop's beside the sibling's. A look costs the loop what an
 * edge of a window does.
 */
#include <stdio.h>

#include "run.h"

/* Have the next line tell what comes from here on: after loops began. Returns 0, or -1 with err set. */
int live_begin(struct run *r, struct err *err);

/* A line an lcore, and one for the sibling, of what happened since the last look, if there was one; of at most 80 characters. */
int live_line(struct run *r, FILE *out, struct err *err);

/*
 * Show them once a second: as a screen, until a key is pressed, where a terminal is typed at; else as lines, so many
 * seconds (0: one). Returns 0, or -1 with err set.
 */
int live_show(struct run *r, bool typing, unsigned int seconds, struct err *err);

#endif
