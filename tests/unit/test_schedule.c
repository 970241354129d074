/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "schedule.h"

/* The visits of a block as letters. */
static const char *
block(unsigned int nb, uint32_t number, enum order order, uint64_t seed)
{
	static char text[SCHEDULE_VISITS_MAX + 1];
	unsigned int visits[SCHEDULE_VISITS_MAX];

	schedule_block(visits, nb, number, order, seed);
	memset(text, 0, sizeof(text));
	for (unsigned int i = 0; i < schedule_visits(nb); i++)
		text[i] = (char)('A' + visits[i]);
	return text;
}

static void
blocks_go_forward_and_back_and_turn(void **state)
{
	(void)state;
	assert_string_equal(block(2, 1, ORDER_ABBA, 1), "ABBA");
	assert_string_equal(block(2, 2, ORDER_ABBA, 1), "BAAB");
	assert_string_equal(block(2, 3, ORDER_ABBA, 1), "ABBA");
	assert_string_equal(block(3, 1, ORDER_ABBA, 1), "ABCCBA");
	assert_string_equal(block(3, 2, ORDER_ABBA, 1), "CBAABC");
	assert_string_equal(block(1, 1, ORDER_ABBA, 1), "A");
}

/* Each scenario is visited twice, and a linear drift falls on all alike. */
static void
every_block_is_balanced(void **state)
{
	(void)state;
	for (unsigned int nb = 2; nb <= SCHEDULE_SCENARIOS_MAX; nb++)
		for (uint32_t number = 1; number <= 2; number++) {
			const char *text = block(nb, number, ORDER_ABBA, 1);

			for (unsigned int s = 0; s < nb; s++) {
				const char *first = strchr(text, 'A' + (int)s);
				const char *last = strrchr(text, 'A' + (int)s);

				assert_ptr_not_equal(first, last);
				assert_int_equal(first - text + (last - text), 2 * nb - 1);
			}
		}
}

static void
random_blocks_visit_each_twice(void **state)
{
	unsigned int first[3] = { 0 };

	(void)state;
	for (uint32_t number = 1; number <= 3000; number++) {
		unsigned int counts[3] = { 0 };
		const char *text = block(3, number, ORDER_RANDOM, 7);

		for (const char *c = text; *c != '\0'; c++)
			counts[*c - 'A']++;
		assert_true(counts[0] == 2 && counts[1] == 2 && counts[2] == 2);
		first[text[0] - 'A']++;
	}
	/* A third of the blocks begins with each: five standard deviations. */
	for (unsigned int s = 0; s < 3; s++)
		assert_in_range(first[s], 870, 1130);
}

static void
random_blocks_are_the_same_by_the_same_seed(void **state)
{
	char text[SCHEDULE_VISITS_MAX + 1];
	unsigned int others = 0;

	(void)state;
	for (uint32_t number = 1; number <= 20; number++) {
		strcpy(text, block(4, number, ORDER_RANDOM, 7));
		assert_string_equal(block(4, number, ORDER_RANDOM, 7), text);
		others += strcmp(block(4, number, ORDER_RANDOM, 70), text) != 0;
	}
	assert_true(others >= 15);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_go_forward_and_back_and_turn),
		cmocka_unit_test(every_block_is_balanced),
		cmocka_unit_test(random_blocks_visit_each_twice),
		cmocka_unit_test(random_blocks_are_the_same_by_the_same_seed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
