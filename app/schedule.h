/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APP_SCHEDULE_H
#define APP_SCHEDULE_H

/*
 * In which order the scenarios of a block are visited: forward and then backward, and the next block the
 * other way round (A B B A, B A A B), so that a drift falls on all alike; or in random order, each as
 * often. A run begins with the first scenario in any case.
 */
#include <stdint.h>

#define SCHEDULE_SCENARIOS_MAX 16
#define SCHEDULE_NULL \
	"/null" /* behind the second name of a scenario that is compared with itself */
#define SCHEDULE_VISITS_MAX (2 * SCHEDULE_SCENARIOS_MAX)

enum order { ORDER_ABBA, ORDER_RANDOM };

/* Visits of a block to so many scenarios: two to each, one to a single one. */
unsigned int schedule_visits(unsigned int nb_scenarios);

/*
 * The scenarios (from 0) of a block (from 1) in the order of their visits. The same seed gives the same
 * order; it counts for ORDER_RANDOM only.
 */
void schedule_block(unsigned int visits[SCHEDULE_VISITS_MAX], unsigned int nb_scenarios,
		uint32_t block, enum order order, uint64_t seed);

#endif
