/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdint.h>

#include "schedule.h"
#include "stats.h"

unsigned int
schedule_visits(unsigned int nb_scenarios)
{
	return nb_scenarios == 1 ? 1 : 2 * nb_scenarios;
}

void
schedule_block(unsigned int visits[SCHEDULE_VISITS_MAX], unsigned int nb_scenarios, uint32_t block,
		enum order order, uint64_t seed)
{
	unsigned int nb = schedule_visits(nb_scenarios);
	uint64_t state = seed;

	/* Seeds that are neighbours are not the same order one block later. */
	state = stats_random(&state, UINT64_MAX) + block;
	for (unsigned int i = 0; i < nb; i++) {
		unsigned int forward = i < nb_scenarios ? i : nb - 1 - i;

		visits[i] = block % 2 == 1 ? forward : nb_scenarios - 1 - forward;
	}
	/* Fisher and Yates. */
	for (unsigned int i = nb - 1; order == ORDER_RANDOM && i > 0; i--) {
		unsigned int other = (unsigned int)stats_random(&state, i + 1), swap = visits[i];

		visits[i] = visits[other];
		visits[other] = swap;
	}
	/* Whoever reads windows.csv alone takes the arm of the first window for the one to compare with. */
	for (unsigned int i = 0; block == 1 && i < nb; i++)
		if (visits[i] == 0) {
			visits[i] = visits[0];
			visits[0] = 0;
			break;
		}
}
