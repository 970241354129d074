/* SPDX-License-Identifier: BSD-3-Clause */
/* Scenarios as words, and what is made of the counts of a sibling. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sibling.h"

static const struct idle_states states = { .nb = 4,
	.at = { { .index = 0, .name = "POLL" }, { .index = 1, .name = "C1", .latency_us = 2 },
			{ .index = 2, .name = "C1E", .latency_us = 10 },
			{ .index = 3, .name = "C6", .latency_us = 133 } } };

static void
test_words(void **state)
{
	struct scenario s;
	struct err err;

	(void)state;
	assert_int_equal(scenario_parse(&s, "clear+C1+limit:20", &err), 0);
	assert_int_equal(s.nb, 3);
	assert_string_equal(s.text, "clear+C1+limit:20");
	assert_string_equal(scenario_word(&s, WORD_STATE)->name, "C1");
	assert_int_equal(scenario_word(&s, WORD_LIMIT)->number, 20);
	assert_int_equal(scenario_word(&s, WORD_MODE)->row->value, SIBIDLE_CLEAR);
	assert_null(scenario_word(&s, WORD_LOAD));
	/* They are applied in the order of their kinds, whatever the order given. */
	for (unsigned int i = 1; i < s.nb; i++)
		assert_true(s.words[i - 1].row->kind < s.words[i].row->kind);
	assert_int_equal(scenario_parse(&s, "as-is", &err), 0);
	assert_int_equal(s.nb, 0);
}

static void
test_nonsense(void **state)
{
	static const char *const bad[] = { "", "+", "c1+", "+c1", "c1+c6", "keep+clear",
		"busy+pause", "limit", "limit:", "limit:0", "limit:-1", "limit:+5", "limit: 5",
		"limit:5us", "limit:2147483647", "limit:99999999999", "wake:0", "wake:100001",
		"clear:1", "offline+c1", "offline+busy", "offline+limit:5", "offline+keep",
		"poll+clear", "as-is+c1+c6", "a-word-that-is-longer-than-any-name-of-a-state" };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct scenario s;
		struct err err = { 0 };

		if (scenario_parse(&s, bad[i], &err) == 0)
			fail_msg("%s is taken", bad[i]);
		assert_int_equal(err.code, EXIT_USAGE);
		assert_null(strchr(err.text, '\n'));
	}
}

static int
check(const char *text, const struct idle_states *on, struct err *err)
{
	struct scenario s;

	assert_int_equal(scenario_parse(&s, text, err), 0);
	return scenario_check(&s, 1, on, err);
}

static void
test_check(void **state)
{
	struct idle_states none = { 0 };
	struct err err;

	(void)state;
	assert_int_equal(check("c1e+limit:10", &states, &err), 0);
	assert_int_equal(check("c7", &states, &err), -1);
	assert_int_equal(err.code, EXIT_USAGE);
	assert_non_null(strstr(err.text, "poll c1 c1e c6"));
	assert_int_equal(check("c1e+limit:9", &states, &err), -1);
	assert_int_equal(err.code, EXIT_USAGE);
	assert_int_equal(check("c1", &none, &err), -1);
	assert_int_equal(err.code, EXIT_SKIPPED);
	assert_int_equal(check("limit:5", &none, &err), 0);
	/* A mode needs a state to sleep in that the limit allows. */
	assert_int_equal(check("clear+limit:2", &states, &err), 0);
	assert_int_equal(check("clear+limit:1", &states, &err), -1);
	assert_int_equal(err.code, EXIT_USAGE);
	assert_non_null(strstr(err.text, "POLL"));
}

static bool asleep;
static uint64_t turns; /* of a load */

/* What a second brought, in entries and us a state. */
static struct sibling_use
use(const char *text, const uint64_t usage[4], const uint64_t time_us[4])
{
	static struct scenario s;
	struct control c = { .module.fd = -1 };
	struct sibling_counts before = { .states = states }, now = { .states = states };
	struct sibling_use u;
	struct err err;

	assert_int_equal(scenario_parse(&s, text, &err), 0);
	c.scenario = &s;
	for (unsigned int i = 0; i < 4; i++) {
		before.states.at[i].usage = 1000;
		before.states.at[i].time_us = 500;
		now.states.at[i].usage = 1000 + usage[i];
		now.states.at[i].time_us = 500 + time_us[i];
	}
	now.asleep = asleep;
	before.turns = 77;
	now.turns = 77 + turns;
	sibling_compare(&c, &before, &now, 1000000000, &u);
	return u;
}

static void
test_use(void **state)
{
	struct sibling_use u =
			use("c1", (uint64_t[]){ 0, 98, 0, 2 }, (uint64_t[]){ 0, 991000, 0, 9000 });

	(void)state;
	assert_int_equal(u.entries, 100);
	assert_int_equal(u.idle_ns, 1000000000);
	assert_string_equal(u.state, "C1");
	assert_string_equal(u.spec_ctrl, "");
	assert_true(fabs(u.wrong - 2) < 1e-9);
	/* By time where that is worse. */
	u = use("c1", (uint64_t[]){ 0, 99, 0, 1 }, (uint64_t[]){ 0, 500000, 0, 500000 });
	assert_true(fabs(u.wrong - 50) < 1e-9);
	u = use("c1", (uint64_t[]){ 0, 99, 0, 0 }, (uint64_t[]){ 0, 1000000, 0, 0 });
	assert_true(u.wrong == 0);
	/* Something else ran there for half of the time. */
	u = use("c1", (uint64_t[]){ 0, 99, 0, 0 }, (uint64_t[]){ 0, 500000, 0, 0 });
	assert_true(fabs(u.wrong - 50) < 1e-9);
	/* Periods that began before the window may be longer than it. */
	u = use("c1", (uint64_t[]){ 0, 99, 0, 0 }, (uint64_t[]){ 0, 1500000, 0, 0 });
	assert_true(u.wrong == 0);
	/* A limit forbids C6 and nothing else. */
	u = use("limit:20", (uint64_t[]){ 10, 40, 40, 10 },
			(uint64_t[]){ 50000, 400000, 500000, 50000 });
	assert_true(fabs(u.wrong - 10) < 1e-9);
	/* In POLL a mode has no say. */
	u = use("keep", (uint64_t[]){ 20, 40, 40, 0 }, (uint64_t[]){ 100000, 500000, 400000, 0 });
	assert_true(fabs(u.wrong - 20) < 1e-9);
	/* It never idled. */
	u = use("c1", (uint64_t[4]){ 0 }, (uint64_t[4]){ 0 });
	assert_true(u.wrong == 100);
	turns = 12345;
	u = use("c1+busy", (uint64_t[4]){ 0 }, (uint64_t[4]){ 0 });
	assert_true(u.wrong == 0);
	/* A load that lets it idle for a tenth of the window. */
	u = use("busy", (uint64_t[]){ 0, 5, 0, 0 }, (uint64_t[]){ 0, 100000, 0, 0 });
	assert_true(fabs(u.wrong - 10) < 1e-9);
	/* One that did not get to run, though nothing idled. */
	turns = 0;
	u = use("busy", (uint64_t[4]){ 0 }, (uint64_t[4]){ 0 });
	assert_true(u.wrong == 100);
	/* A load that wakes has its rate, and may idle; one more or less is none. */
	turns = 999;
	u = use("wake:1000", (uint64_t[]){ 0, 99, 0, 0 }, (uint64_t[]){ 0, 500000, 0, 0 });
	assert_true(u.wrong == 0);
	turns = 899;
	u = use("wake:1000", (uint64_t[]){ 0, 99, 0, 0 }, (uint64_t[]){ 0, 500000, 0, 0 });
	assert_true(fabs(u.wrong - 10) < 1e-9);
	turns = 0;
	/* It could not be woken: its counts say nothing. */
	asleep = true;
	u = use("c1", (uint64_t[4]){ 0 }, (uint64_t[4]){ 0 });
	assert_true(isnan(u.wrong));
	asleep = false;
	u = use("limit:20", (uint64_t[4]){ 0 }, (uint64_t[4]){ 0 });
	assert_true(u.wrong == 100);
	u = use("as-is", (uint64_t[]){ 0, 5, 0, 0 }, (uint64_t[]){ 0, 100000, 0, 0 });
	assert_true(isnan(u.wrong));
}

static void
test_unknown(void **state)
{
	struct control c = { .module.fd = -1 };
	struct sibling_counts none = { 0 };
	struct sibling_use u;

	(void)state;
	sibling_compare(&c, &none, &none, 1000000000, &u);
	assert_true(u.entries == UINT64_MAX && u.idle_ns == UINT64_MAX && isnan(u.wrong));
}

/* What the module samples decides keep and clear. */
static void
test_samples(void **state)
{
	struct scenario s;
	struct control c = { .module.fd = 3, .module.info.tsc_khz = 1000000, .scenario = &s };
	struct sibling_counts before = { .states = states, .leased = true }, now = before;
	struct sibidle_cell *cell = &now.stats.cells[SIBIDLE_CLEAR][1];
	struct sibling_use u;
	struct err err;

	(void)state;
	before.stats.idle_state = now.stats.idle_state = SIBIDLE_AWAKE;
	now.stats.owner = SIBIDLE_MINE;
	now.stats.mode = SIBIDLE_CLEAR;
	c.module.info.nr_states = 4;
	for (unsigned int i = 0; i < 4; i++) {
		strcpy(c.module.info.states[i].name, states.at[i].name);
		c.module.info.states[i].flags = i == 0 ? 0 : SIBIDLE_STATE_HOOKABLE;
	}
	cell->entries = 10;
	cell->ticks = 5000;
	cell->value[0] = 0x0;
	cell->count[0] = 9;
	cell->value[1] = 0x401;
	cell->count[1] = 1;
	assert_int_equal(scenario_parse(&s, "c1+clear", &err), 0);
	sibling_compare(&c, &before, &now, 5000, &u);
	assert_int_equal(u.entries, 10);
	assert_int_equal(u.idle_ns, 5000); /* a tick is a ns at 1 GHz */
	assert_string_equal(u.spec_ctrl, "0x0;0x401");
	assert_true(fabs(u.wrong - 10) < 1e-9);
	/* The period that runs counts, though it has not ended. */
	now.stats.idle_state = 1;
	now.stats.since = 1000;
	now.stats.now = 8000;
	sibling_compare(&c, &before, &now, 12000, &u);
	assert_int_equal(u.idle_ns, 12000);
	assert_true(fabs(u.wrong - 10) < 1e-9);
	/* The lease has gone. */
	now.stats.owner = SIBIDLE_FREE;
	sibling_compare(&c, &before, &now, 1000000000, &u);
	assert_true(u.wrong == 100);
	/* In another mode every sample is wrong. */
	now.stats.owner = SIBIDLE_MINE;
	assert_int_equal(scenario_parse(&s, "c1+keep", &err), 0);
	sibling_compare(&c, &before, &now, 1000000000, &u);
	assert_true(u.wrong == 100);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_use),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
