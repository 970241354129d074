/* SPDX-License-Identifier: BSD-3-Clause */
/* What reading bandwidth counters costs: the arithmetic, and reads that fail. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "probe_resctrl.h"
#include "sysroot.h"
#include "unit.h"

static const struct probe_row *
row_of(const struct probe_report *r, const char *name, const char *metric)
{
	for (size_t i = 0; i < r->nb; i++)
		if (strcmp(r->rows[i].name, name) == 0 && strcmp(r->rows[i].metric, metric) == 0)
			return &r->rows[i];
	return NULL;
}

/* ---- values ---- */

static void
values_are_told_apart(void **state)
{
	static const struct {
		const char *text;
		enum resctrl_value value;
	} rows[] = {
		{ "0\n", RESCTRL_NUMBER },
		{ "18446744073709551615\n", RESCTRL_NUMBER },
		{ "12", RESCTRL_NUMBER },
		{ "Unavailable\n", RESCTRL_UNAVAILABLE },
		{ "Error\n", RESCTRL_ERROR },
		{ "Unassigned\n", RESCTRL_UNASSIGNED },
		{ "", RESCTRL_EMPTY },
		{ "\n", RESCTRL_EMPTY },
		{ "Errors\n", RESCTRL_OTHER },
		{ "Unavail", RESCTRL_OTHER },
		{ "-1\n", RESCTRL_OTHER },
		{ "12 \n", RESCTRL_OTHER },
		{ "12\n34\n", RESCTRL_OTHER },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (resctrl_value_of(rows[i].text, strlen(rows[i].text)) != rows[i].value)
			fail_msg("\"%s\" is taken for something else", rows[i].text);
}

/* ---- arithmetic ---- */

/* By hand: 500 counters twice, then 400, as a group went. */
static void
rows_by_hand(void **state)
{
	double counters[] = { 500, 500, 400 };
	double raw[] = { 4e6, 3e6, 5e6 }, dry[] = { 1e6, 0.5e6, 1.5e6 };
	double serving[] = { 7e6, 9e6, 8e6 }, serving_dry[] = { 6e6, 3e6, 4e6 };
	double wall_ns[] = { 1e6, 2e6, 1e6 };
	struct resctrl_figures f = { 3, false, false, counters, raw, dry, serving, serving_dry,
		wall_ns };
	const struct probe_row *row;
	struct probe_report r;

	(void)state;
	report_begin(&r, "resctrl", "resctrl_read");
	resctrl_rows(&r, "domain 0, local", &f);
	assert_int_equal(r.nb, 4);
	/* Differences 3, 2.5, 3.5. */
	row = row_of(&r, "domain 0, local", "reader cycles");
	assert_string_equal(row->unit, "Mcycles");
	assert_near(row->raw, 4, 1e-9);
	assert_near(row->overhead, 1, 1e-9);
	assert_near(row->net, 3, 1e-9);
	/* Differences 1, 6, 4. */
	row = row_of(&r, "domain 0, local", "serving CPU cycles");
	assert_string_equal(row->unit, "Mcycles");
	assert_near(row->net, 4, 1e-9);
	/* Each by its own number: 6000, 5000, 8750. */
	row = row_of(&r, "domain 0, local", "per counter");
	assert_string_equal(row->unit, "cycles");
	assert_near(row->net, 6000, 1e-9);
	/* 500, 250 and 400 in a millisecond. */
	row = row_of(&r, "domain 0, local", "read rate");
	assert_string_equal(row->unit, "counters/s");
	assert_near(row->net, 400000, 1e-9);
	report_free(&r);
}

/* A repeat in which no counter gave a number has no cycles a counter: by hand 6000 and 8750 are left. */
static void
repeats_without_a_number_are_left_out(void **state)
{
	double counters[] = { 500, 0, 400 };
	double raw[] = { 4e6, 3e6, 5e6 }, dry[] = { 1e6, 0.5e6, 1.5e6 },
	       wall_ns[] = { 1e6, 2e6, 1e6 };
	struct resctrl_figures f = { 3, false, false, counters, raw, dry, NULL, NULL, wall_ns };
	const struct probe_row *row;
	struct probe_report r;

	(void)state;
	report_begin(&r, "resctrl", "resctrl_read");
	resctrl_rows(&r, "domain 0, local", &f);
	row = row_of(&r, "domain 0, local", "per counter");
	assert_int_equal(row->n, 2);
	assert_near(row->net, 7375, 1e-9);
	assert_int_equal(row_of(&r, "domain 0, local", "reader cycles")->n, 3);
	assert_int_equal(json_array_size(r.notes), 1);
	report_free(&r);
	counters[0] = counters[2] = 0;
	report_begin(&r, "resctrl", "resctrl_read");
	resctrl_rows(&r, "domain 0, local", &f);
	assert_null(row_of(&r, "domain 0, local", "per counter"));
	report_free(&r);
}

static void
without_a_pmu_the_unit_says_so(void **state)
{
	double ones[] = { 1 }, raw[] = { 2e6 }, dry[] = { 1e6 };
	struct resctrl_figures f = { 1, true, false, ones, raw, dry, NULL, NULL, ones };
	struct probe_report r;

	(void)state;
	report_begin(&r, "resctrl", "resctrl_read");
	resctrl_rows(&r, "domain 0, local", &f);
	assert_int_equal(r.nb, 3);
	assert_string_equal(row_of(&r, "domain 0, local", "reader cycles")->unit, "M TSC cycles");
	assert_string_equal(row_of(&r, "domain 0, local", "per counter")->unit, "TSC cycles");
	/* A figure in cycles does not stand beside one in those of the TSC. */
	resctrl_publish(&r, true, "6.12.1");
	assert_true(isnan(row_of(&r, "domain 0, local", "reader cycles")->published));
	assert_int_equal(r.nb, 3 + 8);
	report_free(&r);
}

/* The worker of Linux 6.9 and later runs outside nohz_full where it can; before, the first CPU is interrupted. */
static void
the_cpu_that_serves_is_the_kernels_choice(void **state)
{
	static const struct {
		const char *cpus, *nohz_full, *kernel;
		int serving;
	} rows[] = {
		{ "4-7", "", "6.12.1", 4 },
		{ "4-7", "4-5", "6.9.0", 6 },
		{ "4-7", "0-15", "6.12.1", 4 },
		{ "4-7", "4-5", "6.8.9", 4 },
		{ "", "", "6.12.1", -1 },
	};
	hwloc_bitmap_t cpus = hwloc_bitmap_alloc(), nohz_full = hwloc_bitmap_alloc();

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		hwloc_bitmap_list_sscanf(cpus, rows[i].cpus);
		hwloc_bitmap_list_sscanf(nohz_full, rows[i].nohz_full);
		assert_int_equal(resctrl_serving_cpu(cpus, nohz_full, rows[i].kernel),
				rows[i].serving);
	}
	hwloc_bitmap_free(cpus);
	hwloc_bitmap_free(nohz_full);
}

/* ---- published figures ---- */

static const char *const cpus[] = { "cpu=AMD EPYC 7B12&groups=250",
	"cpu=Intel Xeon Gold 6268CL&groups=190" };

/* Rows as if measured: the published cycles and, in raw and dry, 0.40 Mcycles of something else. */
static void
add_published_run(struct probe_report *r, const char *name, const char *where, double groups)
{
	double counters[7], raw[7], dry[7], wall_ns[7];
	struct resctrl_figures f = { 7, false, false, counters, raw, dry, NULL, NULL, wall_ns };

	for (size_t i = 0; i < 7; i++) {
		counters[i] = 2 * groups;
		dry[i] = 0.4e6;
		raw[i] = dry[i] + 1e6 * published_figure(r->system, where, "mcycles");
		wall_ns[i] = 1e6;
	}
	resctrl_rows(r, name, &f);
}

/* The published table comes out, each figure beside what it was made from, and all eight are shown. */
static void
published_table_comes_out(void **state)
{
	static const char *const readers[] = { "local", "remote" };
	static const double table[2][2][2] = { { { 3.25, 1.22 }, { 7.91, 8.05 } },
		{ { 2.98, 2.21 }, { 4.49, 4.62 } } };

	(void)state;
	for (int i = 0; i < 8; i++) {
		int cpu = i / 4, remote = i / 2 % 2, patched = i % 2;
		const struct probe_row *row;
		char where[64], name[32];
		struct probe_report r;
		size_t figures = 0;

		snprintf(where, sizeof(where), "%s&domain=%s&patched=%s", cpus[cpu],
				readers[remote], patched ? "yes" : "no");
		snprintf(name, sizeof(name), "domain 3, %s", readers[remote]);
		report_begin(&r, "resctrl", "resctrl_read");
		add_published_run(&r, name, where, cpu == 0 ? 250 : 190);
		resctrl_publish(&r, cpu == 0, patched ? "6.1.0-43-amd64" : "6.12.38+deb12-amd64");
		row = row_of(&r, name, "reader cycles");
		assert_near(row->net, table[cpu][remote][patched], 1e-9);
		assert_near(row->low, row->net, 1e-9);
		assert_near(row->raw, table[cpu][remote][patched] + 0.4, 1e-9);
		assert_near(row_of(&r, name, "per counter")->net,
				table[cpu][remote][patched] * 1e6 / (cpu == 0 ? 500 : 380), 1e-9);
		/* No kernel before 6.9 reads remote counters as either of those that were published. */
		if (remote && patched) {
			assert_true(isnan(row->published));
			assert_true(isnan(row_of(&r, name, "per counter")->published));
		} else {
			assert_near(row->published, row->net, 1e-9);
			row = row_of(&r, name, "per counter");
			assert_near(row->published, row->net, 1e-9);
		}
		for (size_t k = 0; k < r.nb; k++)
			figures += strcmp(r.rows[k].metric, "reader cycles") == 0 &&
					isfinite(r.rows[k].published);
		assert_int_equal(figures, 8);
		report_free(&r);
	}
}

/* 3.25 Mcycles are for 500 counters: with 100 only what one costs can be put beside. */
static void
other_groups_have_only_figures_a_counter_beside(void **state)
{
	struct probe_report r;

	(void)state;
	report_begin(&r, "resctrl", "resctrl_read");
	add_published_run(&r, "domain 0, local", "cpu=AMD EPYC 7B12&domain=local&patched=no", 50);
	resctrl_publish(&r, true, "6.12.1");
	assert_true(isnan(row_of(&r, "domain 0, local", "reader cycles")->published));
	assert_near(row_of(&r, "domain 0, local", "per counter")->published, 6500, 1e-9);
	report_free(&r);
}

/* Cycles of reads that gave nothing, or of a domain that the kernel interrupts instead of queueing for, stand alone. */
static void
what_is_unlike_has_no_figure_beside(void **state)
{
	double counters[] = { 499 }, raw[] = { 4e6 }, dry[] = { 1e6 }, wall_ns[] = { 1e6 };
	struct resctrl_figures f = { 1, false, true, counters, raw, dry, NULL, NULL, wall_ns };
	const char *all = "domain 0, local, all nohz_full";
	struct probe_report r;

	(void)state;
	report_begin(&r, "resctrl", "resctrl_read");
	resctrl_rows(&r, "domain 0, local", &f);
	counters[0] = 500;
	f.gaps = false;
	resctrl_rows(&r, all, &f);
	resctrl_publish(&r, true, "6.12.1");
	assert_null(row_of(&r, "domain 0, local", "per counter"));
	assert_true(isnan(row_of(&r, "domain 0, local", "per number")->published));
	assert_true(isnan(row_of(&r, "domain 0, local", "reader cycles")->published));
	assert_true(isnan(row_of(&r, all, "per counter")->published));
	assert_true(isnan(row_of(&r, all, "reader cycles")->published));
	report_free(&r);
}

/* The work queue came with 6.9, and no release has the patch. */
static void
kernels_are_told_apart(void **state)
{
	static const struct {
		const char *kernel;
		double local;
	} rows[] = { { "5.10.0-30-amd64", 1.22 }, { "6.8.12", 1.22 }, { "6.9.0-rc1", 3.25 },
		{ "6.13", 3.25 }, { "7.0.1", 3.25 }, { "", 3.25 } };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct probe_report r;

		report_begin(&r, "resctrl", "resctrl_read");
		add_published_run(&r, "domain 0, local",
				"cpu=AMD EPYC 7B12&domain=local&patched=no", 250);
		resctrl_publish(&r, true, rows[i].kernel);
		assert_near(row_of(&r, "domain 0, local", "reader cycles")->published,
				rows[i].local, 1e-9);
		report_free(&r);
	}
}

/* ---- a recorded tree, with reads that fail ---- */

static char tree[] = "/tmp/test_probe_resctrl.XXXXXX";
static const char *failing; /* what is in the path of files that fail from their second read on */
static unsigned int reads; /* of these */

ssize_t __real_pread64(int fd, void *text, size_t size, off_t at);
ssize_t __wrap_pread64(int fd, void *text, size_t size, off_t at);

ssize_t
__wrap_pread64(int fd, void *text, size_t size, off_t at)
{
	char link[32], path[512] = "";

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (failing != NULL && readlink(link, path, sizeof(path) - 1) > 0 &&
			strstr(path, failing) != NULL && ++reads > 2) {
		errno = ENODEV;
		return -1;
	}
	return __real_pread64(fd, text, size, at);
}

static void
put(const char *path, const char *text)
{
	char *name = sys_format("%s%s", tree, path);
	FILE *file;

	for (char *c = strchr(name + strlen(tree) + 1, '/'); c != NULL; c = strchr(c + 1, '/')) {
		*c = '\0';
		mkdir(name, 0755);
		*c = '/';
	}
	file = fopen(name, "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
	free(name);
}

static void
put_group(const char *group, const char *local, const char *total)
{
	char *path = sys_format("/sys/fs/resctrl/%smon_data/mon_L3_07/mbm_local_bytes", group);

	put(path, local);
	free(path);
	path = sys_format("/sys/fs/resctrl/%smon_data/mon_L3_07/mbm_total_bytes", group);
	put(path, total);
	free(path);
}

/* Two CPUs, the second in domain 7; five groups in it. */
static int
make_tree(void **state)
{
	struct err err;

	(void)state;
	if (mkdtemp(tree) == NULL)
		return -1;
	put("/sys/devices/system/cpu/online", "0-1\n");
	put("/sys/devices/system/cpu/possible", "0-1\n");
	put("/sys/devices/system/cpu/cpu0/topology/core_cpus", "1\n");
	put("/sys/devices/system/cpu/cpu1/topology/core_cpus", "2\n");
	put("/sys/devices/system/cpu/cpu0/cache/index3/level", "3\n");
	put("/sys/devices/system/cpu/cpu0/cache/index3/id", "0\n");
	put("/sys/devices/system/cpu/cpu1/cache/index3/level", "3\n");
	put("/sys/devices/system/cpu/cpu1/cache/index3/id", "7\n");
	put("/sys/fs/resctrl/info/L3_MON/num_rmids", "256\n");
	put_group("", "1\n", "2\n");
	put_group("mon_groups/a/", "3\n", "4\n");
	put_group("mon_groups/gone/", "5\n", "6\n");
	put_group("control/", "Unavailable\n", "Unavailable\n");
	put_group("control/mon_groups/b/", "Error\n", "Unassigned\n");
	return sys_root(tree, &err);
}

static int
remove_tree(void **state)
{
	char *command = sys_format("rm -rf %s", tree);
	int rc = system(command);

	(void)state;
	free(command);
	return rc;
}

static int
probe(struct probe_report *r, const char *fails, struct err *err)
{
	struct probe_options o = { .repeats = 6, .warmup = 1 };

	failing = fails;
	reads = 0;
	report_begin(r, "resctrl", "resctrl_read");
	return probe_resctrl(r, &o, err);
}

static long
fact(const struct probe_report *r, const char *name)
{
	return (long)json_integer_value(
			json_object_get(json_object_get(r->facts, "mon_L3_07"), name));
}

static unsigned int
notes_with(const struct probe_report *r, const char *words)
{
	unsigned int nb = 0;
	json_t *note;
	size_t i;

	json_array_foreach (r->notes, i, note)
		nb += strstr(json_string_value(note), words) != NULL;
	return nb;
}

/* 7 turns, one of which is a warm-up, of two readers. */
#define TURNS 14

static void
every_kind_of_value_is_counted(void **state)
{
	struct probe_report r;
	struct err err;

	(void)state;
	assert_int_equal(probe(&r, NULL, &err), 0);
	assert_int_equal(fact(&r, "groups"), 5);
	assert_int_equal(fact(&r, "counters"), 10);
	assert_int_equal(fact(&r, "numbers"), 6 * TURNS);
	assert_int_equal(fact(&r, "Unavailable"), 2 * TURNS);
	assert_int_equal(fact(&r, "Error"), TURNS);
	assert_int_equal(fact(&r, "Unassigned"), TURNS);
	assert_int_equal(fact(&r, "unreadable"), 0);
	assert_int_equal(notes_with(&r, "mon_L3_07: 28 reads: Unavailable"), 1);
	assert_int_equal(notes_with(&r, "mon_L3_07: 14 reads: Error"), 1);
	assert_int_equal(notes_with(&r, "unreadable"), 0);
	assert_int_equal(row_of(&r, "domain 7, local", "reader cycles")->n, 6);
	assert_int_equal(row_of(&r, "domain 7, remote", "reader cycles")->n, 6);
	assert_null(row_of(&r, "domain 7, local", "serving CPU cycles"));
	report_free(&r);
}

static void
a_group_that_goes_is_named_and_left(void **state)
{
	struct probe_report r;
	struct err err;

	(void)state;
	assert_int_equal(probe(&r, "/mon_groups/gone/", &err), 0);
	/* It was read once, then tried once more, and never again. */
	assert_int_equal(reads, 4);
	assert_int_equal(fact(&r, "unreadable"), 2);
	assert_int_equal(fact(&r, "numbers"), 4 * TURNS + 2);
	assert_int_equal(fact(&r, "Unavailable"), 2 * TURNS);
	assert_int_equal(fact(&r, "counters"), 10);
	assert_int_equal(notes_with(&r, "/sys/fs/resctrl/mon_groups/gone cannot be read any more"),
			1);
	assert_int_equal(notes_with(&r, "mon_L3_07: 2 reads: unreadable"), 1);
	assert_int_equal(row_of(&r, "domain 7, remote", "read rate")->n, 6);
	report_free(&r);
}

static void
where_all_go_it_fails(void **state)
{
	struct probe_report r;
	struct err err;

	(void)state;
	assert_int_equal(probe(&r, "/mbm_", &err), -1);
	assert_int_equal(err.code, EXIT_FAILED);
	assert_non_null(strstr(err.text, "none of 10 counters"));
	report_free(&r);
}

/* The last one: what came stays. */
static void
a_signal_ends_it(void **state)
{
	struct probe_report r;
	struct err err;

	(void)state;
	probe_signals();
	assert_int_equal(kill(getpid(), SIGTERM), 0);
	assert_int_equal(probe(&r, NULL, &err), -1);
	assert_int_equal(err.code, EXIT_FAILED);
	assert_string_equal(err.text, "interrupted");
	report_free(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_told_apart),
		cmocka_unit_test(rows_by_hand),
		cmocka_unit_test(repeats_without_a_number_are_left_out),
		cmocka_unit_test(other_groups_have_only_figures_a_counter_beside),
		cmocka_unit_test(what_is_unlike_has_no_figure_beside),
		cmocka_unit_test(without_a_pmu_the_unit_says_so),
		cmocka_unit_test(the_cpu_that_serves_is_the_kernels_choice),
		cmocka_unit_test(published_table_comes_out),
		cmocka_unit_test(kernels_are_told_apart),
		cmocka_unit_test(every_kind_of_value_is_counted),
		cmocka_unit_test(a_group_that_goes_is_named_and_left),
		cmocka_unit_test(where_all_go_it_fails),
		cmocka_unit_test(a_signal_ends_it),
	};

	return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
