/* SPDX-License-Identifier: BSD-3-Clause */
/* Siblings and closest CPUs on machines that hwloc makes up. */

#include "unit.h"

/* Each row: a machine, a CPU, what is avoided (-1: nothing), the closest CPU and why. */
static const struct {
	const char *machine;
	unsigned int cpu;
	int avoid;
	int closest;
	enum relation relation;
} rows[] = {
	{ "package:1 core:2 pu:2", 1, -1, 0, RELATION_SMT },
	{ "package:1 core:2 pu:2", 2, -1, 3, RELATION_SMT },
	/* The SMT sibling is the question asked: it is taken even if the controller sits there. */
	{ "package:1 core:2 pu:2", 1, 0, 0, RELATION_SMT },
	{ "package:1 l2:2 core:2 pu:1", 0, -1, 1, RELATION_L2 },
	{ "package:1 l3:2 l2:2 core:1 pu:1", 2, -1, 3, RELATION_L3 },
	{ "package:2 core:3 pu:1", 0, -1, 1, RELATION_PACKAGE },
	{ "package:2 core:3 pu:1", 0, 1, 2, RELATION_PACKAGE },
	{ "numa:1 package:2 core:1 pu:1", 0, -1, 1, RELATION_NUMA },
	{ "package:2 [numa] core:1 pu:1", 0, -1, 1, RELATION_NONE },
	{ "package:1 core:1 pu:1", 0, -1, -1, RELATION_NONE },
	/* Numbers far apart, as most two-socket machines have them. */
	{ "package:2 core:2 pu:2(indexes=0,4,1,5,2,6,3,7)", 1, -1, 5, RELATION_SMT },
};

static void
test_closest(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct topology t = synthetic(rows[i].machine);
		hwloc_bitmap_t avoid = hwloc_bitmap_alloc();
		enum relation relation;

		if (rows[i].avoid >= 0)
			hwloc_bitmap_set(avoid, (unsigned int)rows[i].avoid);
		print_message("%s, CPU %u\n", rows[i].machine, rows[i].cpu);
		assert_int_equal(topology_closest(&t, rows[i].cpu, avoid, &relation),
				rows[i].closest);
		assert_string_equal(relation_word(relation), relation_word(rows[i].relation));
		if (rows[i].closest >= 0)
			assert_int_equal(topology_relation(&t, (unsigned int)rows[i].closest,
							 rows[i].cpu),
					rows[i].relation);
		hwloc_bitmap_free(avoid);
		topology_close(&t);
	}
}

static void
test_offline_is_nobody(void **state)
{
	struct topology t = synthetic("package:1 core:2 pu:2");

	(void)state;
	assert_int_equal(topology_relation(&t, 0, 77), RELATION_NONE);
	assert_int_equal(topology_relation(&t, 77, 0), RELATION_NONE);
	topology_close(&t);
}

static void
test_core(void **state)
{
	struct topology t = synthetic("package:1 core:2 pu:2");
	hwloc_bitmap_t set = hwloc_bitmap_alloc();

	(void)state;
	topology_add_core(&t, 3, set);
	assert_int_equal(hwloc_bitmap_weight(set), 2);
	assert_true(hwloc_bitmap_isset(set, 2));
	hwloc_bitmap_free(set);
	topology_close(&t);
}

static void
test_broken_topology_is_told(void **state)
{
	struct topology t;
	struct err err;

	(void)state;
	setenv("HWLOC_SYNTHETIC", "", 1);
	unsetenv("HWLOC_SYNTHETIC");
	setenv("HWLOC_XMLFILE", "/nonexistent.xml", 1);
	setenv("HWLOC_COMPONENTS", "xml,stop", 1);
	assert_int_equal(topology_open(&t, NULL, &err), -1);
	assert_int_equal(err.code, EXIT_FAILED);
	topology_close(&t);
	unsetenv("HWLOC_XMLFILE");
	unsetenv("HWLOC_COMPONENTS");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_closest),
		cmocka_unit_test(test_offline_is_nobody),
		cmocka_unit_test(test_core),
		cmocka_unit_test(test_broken_topology_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
