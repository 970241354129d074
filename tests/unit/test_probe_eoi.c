/* SPDX-License-Identifier: BSD-3-Clause */
/* probe eoi --bench: the verdict, what perf prints, and files that are written and put back. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control.h"
#include "probe_bench.h"
#include "sysroot.h"
#include "unit.h"

/* ---- the verdict ---- */

#define MESSAGING "bench=sched messaging&runs=100"
#define PIPE "bench=sched pipe -l 10000&runs=100"

static struct bench_runs
published(const char *where)
{
	const struct published *p = published_find("eoi");

	return bench_runs_published((size_t)published_figure(p, where, "runs"),
			published_figure(p, where, "seconds"),
			published_figure(p, where, "rse_pct"));
}

/* The published table comes out again: seconds +- the relative standard error of the mean. */
static void
published_noise_is_that_of_the_mean(void **state)
{
	static const struct {
		const char *where;
		double seconds, rse;
	} table[] = {
		{ MESSAGING "&patched=no", 0.414666797, 1.29 },
		{ MESSAGING "&patched=yes", 0.395370891, 1.04 },
		{ PIPE "&patched=no", 0.307019664, 0.10 },
		{ PIPE "&patched=yes", 0.304738024, 0.08 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct bench_runs r = published(table[i].where);

		assert_int_equal(r.n, 100);
		assert_near(r.mean, table[i].seconds, 1e-12);
		assert_near(bench_rse(&r), table[i].rse, 1e-12);
	}
	/* By hand: of 100 runs one differs ten times as much as the mean does. */
	assert_near(published(MESSAGING "&patched=no").sd, 0.0534920, 1e-5);
}

/* Below three standard errors in messaging, not so in pipe; in deviations of one run below in both. */
static void
published_verdicts(void **state)
{
	struct bench_runs base = published(MESSAGING "&patched=no");
	struct bench_runs other = published(MESSAGING "&patched=yes");
	struct bench_verdict v = bench_compare(&base, &other);

	(void)state;
	assert_int_equal(v.answer, BENCH_BELOW);
	assert_near(v.difference, -0.019295906, 1e-9);
	assert_near(v.percent, -4.6533, 1e-4);
	/* sqrt(0.00534920^2 + 0.00411186^2) */
	assert_near(v.se, 0.00674697, 1e-5);
	assert_near(v.z, -2.85994, 1e-5);
	assert_near(v.sds, -0.360725, 1e-5);
	base = published(PIPE "&patched=no");
	other = published(PIPE "&patched=yes");
	v = bench_compare(&base, &other);
	assert_int_equal(v.answer, BENCH_BEYOND);
	assert_near(v.difference, -0.00228164, 1e-9);
	assert_near(v.percent, -0.743157, 1e-5);
	assert_near(v.z, -5.81992, 1e-5);
	assert_near(v.sds, -0.743157, 1e-5);
}

/*
 * By hand: 1 2 3 4 5 and 3 4 5 6 7 have means 3 and 5 and deviations sqrt(2.5); the difference has a
 * standard error of sqrt(2.5 / 5 + 2.5 / 5) = 1, so it is two of them.
 */
static void
verdicts_by_hand(void **state)
{
	const double low[] = { 1, 2, 3, 4, 5 }, high[] = { 3, 4, 5, 6, 7 };
	struct bench_runs a = bench_runs_of(low, 5), b = bench_runs_of(high, 5);
	struct bench_verdict v = bench_compare(&a, &b);

	(void)state;
	assert_near(bench_rse(&a), 100 * sqrt(0.5) / 3, 1e-12);
	assert_near(v.difference, 2, 1e-12);
	assert_near(v.percent, 200.0 / 3, 1e-12);
	assert_near(v.se, 1, 1e-12);
	assert_near(v.z, 2, 1e-12);
	assert_near(v.sds, 2 / sqrt(2.5), 1e-12);
	assert_int_equal(v.answer, BENCH_BELOW);
	/* Three is beyond, whichever is the slower one. */
	b.mean = 6;
	assert_int_equal(bench_compare(&a, &b).answer, BENCH_BEYOND);
	assert_int_equal(bench_compare(&b, &a).answer, BENCH_BEYOND);
	assert_near(bench_compare(&b, &a).z, -3, 1e-12);
	b.mean = 5.999;
	assert_int_equal(bench_compare(&a, &b).answer, BENCH_BELOW);
}

static void
without_noise_or_with_one_run(void **state)
{
	const double same[] = { 2, 2, 2 }, more[] = { 2.5, 2.5, 2.5 };
	struct bench_runs a = bench_runs_of(same, 3), b = bench_runs_of(more, 3);
	struct bench_verdict v = bench_compare(&a, &a);

	(void)state;
	assert_true(v.difference == 0 && v.z == 0 && v.sds == 0 && v.se == 0);
	assert_int_equal(v.answer, BENCH_BELOW);
	v = bench_compare(&a, &b);
	assert_true(isinf(v.z) && v.z > 0 && v.percent == 25);
	assert_int_equal(v.answer, BENCH_BEYOND);
	/* Of one run nobody knows how much it varies. */
	a = bench_runs_of(same, 1);
	b = bench_runs_of(more, 1);
	v = bench_compare(&a, &b);
	assert_true(isnan(v.se) && isnan(v.z) && isnan(v.sds) && v.difference == 0.5);
	assert_int_equal(v.answer, BENCH_UNKNOWN);
	b = bench_runs_of(more, 3);
	assert_int_equal(bench_compare(&a, &b).answer, BENCH_UNKNOWN);
}

/* ---- what perf prints ---- */

static void
seconds_are_found(void **state)
{
	static const char messaging[] = "# Running 'sched/messaging' benchmark:\n"
					"# 20 sender and receiver processes per group\n"
					"# 10 groups == 400 processes run\n\n"
					"     Total time: 3.149 [sec]\n";
	static const char pipe[] = "# Running 'sched/pipe' benchmark:\n"
				   "# Executed 10000 pipe operations between two processes\n\n"
				   "     Total time: 0.144 [sec]\n\n"
				   "      14.488100 usecs/op\n"
				   "          69022 ops/sec\n";
	double seconds;

	(void)state;
	assert_true(bench_parse(messaging, 0, &seconds));
	assert_near(seconds, 3.149, 1e-12);
	/* Of a pipe more is known than milliseconds. */
	assert_true(bench_parse(pipe, 10000, &seconds));
	assert_near(seconds, 0.144881, 1e-12);
	assert_true(bench_parse(pipe, 0, &seconds));
	assert_near(seconds, 0.144, 1e-12);
	assert_true(bench_parse("a warning\n     Total time: 12.5 [sec]", 100, &seconds));
	assert_near(seconds, 12.5, 1e-12);
}

static void
nonsense_is_none(void **state)
{
	static const char *const bad[] = { "", "Total time:", "Total time: [sec]",
		"Total time: soon [sec]", "Total time: 0.000 [sec]", "Total time: -1 [sec]",
		"Total time: nan [sec]", "Total time: inf [sec]", "usecs/op", "  usecs/op\n",
		"12 hours, usecs/op", "0.144\n" };
	double seconds;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (bench_parse(bad[i], 1000, &seconds))
			fail_msg("%s is %g seconds", bad[i], seconds);
}

/* ---- files, on a tree ---- */

#define SYSCTL "/proc/sys/kernel/sched_test"
#define CHOICE "/sys/kernel/mm/choice"

static char tree[] = "/tmp/sibfwd-test-XXXXXX";

static void
put(const char *path, const char *text)
{
	char *name = sys_path("%s", path);
	FILE *f = fopen(name, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	free(name);
}

static void
assert_holds(const char *path, const char *text)
{
	char *now = sys_read("%s", path);

	assert_non_null(now);
	assert_string_equal(now, text);
	free(now);
}

static int
make_tree(void **state)
{
	static const char *const dirs[] = { "/proc", "/proc/sys", "/proc/sys/kernel", "/sys",
		"/sys/kernel", "/sys/kernel/mm", "/run" };
	struct err err;

	(void)state;
	if (mkdtemp(tree) == NULL || sys_root(tree, &err) != 0)
		return -1;
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		char *name = sys_path("%s", dirs[i]);
		int rc = mkdir(name, 0755);

		free(name);
		if (rc != 0)
			return -1;
	}
	return 0;
}

static int
remove_tree(void **state)
{
	char *command = sys_format("rm -r %s", tree);
	int rc = system(command);

	(void)state;
	free(command);
	return rc;
}

static void
files_are_put_back(void **state)
{
	struct control c;
	struct err err;

	(void)state;
	put(SYSCTL, "5\n");
	put(CHOICE, "always madvise\n");
	assert_int_equal(control_begin(&c, "test", &err), 0);
	assert_int_equal(control_write(&c, SYSCTL, "6", &err), 0);
	assert_int_equal(control_write(&c, CHOICE, "never", &err), 0);
	assert_holds(SYSCTL, "6");
	assert_int_equal(control_restore(&c, &err), 0);
	assert_holds(SYSCTL, "5");
	assert_holds(CHOICE, "always madvise");
	/* And again, by the end of the control; of two values of a file the first one comes back. */
	assert_int_equal(control_write(&c, SYSCTL, "7", &err), 0);
	assert_int_equal(control_write(&c, SYSCTL, "8", &err), 0);
	assert_int_equal(control_end(&c, &err), 0);
	assert_holds(SYSCTL, "5");
}

static void
a_choice_is_its_word_in_brackets(void **state)
{
	struct control c;
	struct err err;

	(void)state;
	put(CHOICE, "always [madvise] never\n");
	assert_int_equal(control_begin(&c, "test", &err), 0);
	/* It is so already. */
	assert_int_equal(control_write(&c, CHOICE, "madvise", &err), 0);
	assert_holds(CHOICE, "always [madvise] never");
	/* A file that is not the kernel's holds what is written, and gets the word back. */
	assert_int_equal(control_write(&c, CHOICE, "[never]", &err), -1);
	assert_holds(CHOICE, "madvise");
	assert_int_equal(control_restore(&c, &err), 0);
	put(CHOICE, "[always] never\n");
	assert_int_equal(control_write(&c, CHOICE, "never", &err), 0);
	assert_int_equal(control_end(&c, &err), 0);
	assert_holds(CHOICE, "always");
}

static void
what_is_not_taken_as_written_is_put_back_at_once(void **state)
{
	struct control c;
	struct err err;

	(void)state;
	put(SYSCTL, "5\n");
	assert_int_equal(control_begin(&c, "test", &err), 0);
	/* Newlines at the end are none of a value: it reads "6". */
	assert_int_equal(control_write(&c, SYSCTL, "6\n", &err), -1);
	assert_int_equal(err.code, EXIT_FAILED);
	assert_non_null(strstr(err.text, "reads 6"));
	assert_holds(SYSCTL, "5");
	assert_int_equal(control_write(&c, "/proc/sys/kernel/none", "1", &err), -1);
	assert_int_equal(control_end(&c, &err), 0);
	assert_holds(SYSCTL, "5");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_noise_is_that_of_the_mean),
		cmocka_unit_test(published_verdicts),
		cmocka_unit_test(verdicts_by_hand),
		cmocka_unit_test(without_noise_or_with_one_run),
		cmocka_unit_test(seconds_are_found),
		cmocka_unit_test(nonsense_is_none),
		cmocka_unit_test(files_are_put_back),
		cmocka_unit_test(a_choice_is_its_word_in_brackets),
		cmocka_unit_test(what_is_not_taken_as_written_is_put_back_at_once),
	};

	return cmocka_run_group_tests_name("probe_eoi", tests, make_tree, remove_tree);
}
