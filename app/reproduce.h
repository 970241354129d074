/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APP_REPRODUCE_H
#define APP_REPRODUCE_H

/*
 * The measurement that --reproduce repeats, beside its published figures.
 */
#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

#include "compare.h"

#define REPRODUCE_SCENARIOS "c1+keep,c1+clear"
#define REPRODUCE_STATE "c1" /* that both hold */
#define REPRODUCE_BLOCKS 10

/*
 * Where the windows' comparisons, all, have both scenarios: their figures beside the published ones, a sentence on whether
 * the machine shows the effect, and what held the rest equal; else nothing. forced is doctor's verdict
 * where it did not expect an effect, else NULL. A write error stays in out.
 */
void reproduce_print(FILE *out, const struct result_window *windows, size_t n,
		const struct comparisons *all, double margin, const char *forced);

/* The published figures with their source, for result.json; a new reference. */
json_t *reproduce_published_json(void);

#endif
