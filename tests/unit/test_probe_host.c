/* SPDX-License-Identifier: BSD-3-Clause */
/* The probes that need no module: exits of guests, counters of resctrl. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <cmocka.h>

#include "probe_exits.h"
#include "probe_resctrl.h"
#include "sysroot.h"

static void
assert_near(double got, double wanted, double share)
{
	if (fabs(got - wanted) <= share * fabs(wanted))
		return;
	print_error("%.12g is not %.12g within %g of it\n", got, wanted, share);
	fail();
}

static const struct probe_row *
find(const struct probe_report *r, const char *name, const char *metric)
{
	for (size_t i = 0; i < r->nb; i++)
		if (strcmp(r->rows[i].name, name) == 0 && strcmp(r->rows[i].metric, metric) == 0)
			return &r->rows[i];
	print_error("no row %s, %s\n", name, metric);
	fail();
	return NULL;
}

/* ---- exits ---- */

static const char *const fastpath[] = {
	"case=hackbench&mitigations=on&fastpath=no&reason=MSR_WRITE",
	"case=hackbench&mitigations=on&fastpath=yes&reason=MSR_WRITE",
	"case=hackbench&mitigations=off&fastpath=no&reason=MSR_WRITE",
	"case=hackbench&mitigations=off&fastpath=yes&reason=MSR_WRITE",
};

static double
published(const char *where, const char *column)
{
	return published_figure(published_find("ipi_fastpath"), where, column);
}

/*
 * The published rows come out of accumulators that hold what the published figures say: so many samples of
 * that mean, minimum, maximum and scatter, and all other exits as one more reason.
 */
static void
published_exits_come_out(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(fastpath) / sizeof(fastpath[0]); i++) {
		double n = published(fastpath[i], "samples"),
		       mean = published(fastpath[i], "avg_us");
		double rse = published(fastpath[i], "rse_pct"), time = n * mean;
		double others = n / (published(fastpath[i], "samples_pct") / 100) - n;
		double other_time = time / (published(fastpath[i], "time_pct") / 100) - time;
		/* rse = 100 sqrt(m2 / (n - 1) / n) / mean */
		double m2 = isnan(rse) ? 0 : pow(rse / 100 * mean, 2) * n * (n - 1);
		struct exit_reason reasons[] = {
			{ "other", (uint64_t)(others + 0.5), other_time / others, 0, 0, 1 },
			{ "MSR_WRITE", (uint64_t)n, mean, m2, published(fastpath[i], "min_us"),
					published(fastpath[i], "max_us") },
		};
		struct exits e = { .reasons = reasons, .nb = 2 };
		struct probe_report r;

		report_begin(&r, "msr", "ipi_fastpath");
		exits_rows(&r, &e);
		assert_string_equal(r.rows[0].name, "MSR_WRITE");
		assert_true(find(&r, "MSR_WRITE", "samples")->raw == n);
		assert_near(find(&r, "MSR_WRITE", "samples share")->raw,
				published(fastpath[i], "samples_pct"), 1e-6);
		assert_near(find(&r, "MSR_WRITE", "time share")->raw,
				published(fastpath[i], "time_pct"), 1e-6);
		assert_true(find(&r, "MSR_WRITE", "min")->raw == published(fastpath[i], "min_us"));
		assert_true(find(&r, "MSR_WRITE", "max")->raw == published(fastpath[i], "max_us"));
		assert_near(find(&r, "MSR_WRITE", "mean")->raw, mean, 1e-12);
		if (!isnan(rse))
			assert_near(find(&r, "MSR_WRITE", "rse")->raw, rse, 1e-9);
		report_free(&r);
	}
}

/* 1, 2 and 6 us: mean 3, variance 7, so that the relative standard error is 100 sqrt(7 / 3) / 3. */
static void
exits_by_hand(void **state)
{
	struct exits e = { 0 };
	struct probe_report r;

	(void)state;
	exits_add(&e, "A", 1);
	exits_add(&e, "A", 2);
	exits_add(&e, "B", 3);
	exits_add(&e, "A", 6);
	report_begin(&r, "msr", NULL);
	exits_rows(&r, &e);
	assert_near(find(&r, "A", "mean")->raw, 3, 1e-12);
	assert_near(find(&r, "A", "rse")->raw, 50.9175077, 1e-8);
	assert_near(find(&r, "A", "samples share")->raw, 75, 1e-12);
	assert_near(find(&r, "A", "time share")->raw, 75, 1e-12);
	assert_true(find(&r, "A", "min")->raw == 1 && find(&r, "A", "max")->raw == 6);
	assert_true(isnan(find(&r, "B", "rse")->raw));
	report_free(&r);
	exits_free(&e);
}

static struct exits
parsed(const char *text, size_t len)
{
	struct exits e = { 0 };
	FILE *in = fmemopen((void *)(uintptr_t)text, len, "r");

	assert_non_null(in);
	exits_parse(&e, in);
	fclose(in);
	return e;
}

/* Two threads between each other, one of them of a name with blanks; both ways to write the reason. */
static void
exits_are_paired_by_thread(void **state)
{
	static const char text[] =
			"CPU 0/KVM  100 [001] 10.000001000: kvm:kvm_exit: vcpu 0 reason MSR_WRITE rip 0xff info1 0x0\n"
			"CPU 1/KVM  101 [002] 10.000002000: kvm:kvm_exit: reason msr rip 0xff\n"
			"CPU 0/KVM  100 [001] 10.000003500: kvm:kvm_entry: vcpu 0, rip 0xff\n"
			"CPU 1/KVM  101 [002] 10.000007000: kvm:kvm_entry: vcpu 1\n"
			"qemu 99/100 11.000000: kvm:kvm_exit: vcpu 0 reason HLT rip 0x1\n"
			"qemu 99/100 11.000004: kvm:kvm_entry: vcpu 0\n";
	struct exits e = parsed(text, sizeof(text) - 1);

	(void)state;
	assert_int_equal(e.nb, 3);
	assert_string_equal(e.reasons[0].name, "MSR_WRITE");
	assert_near(e.reasons[0].mean, 2.5, 1e-6);
	assert_string_equal(e.reasons[1].name, "msr");
	assert_near(e.reasons[1].mean, 5, 1e-6);
	assert_string_equal(e.reasons[2].name, "HLT");
	assert_near(e.reasons[2].mean, 4, 1e-5);
	assert_int_equal(e.without_entry + e.without_exit + e.other_lines, 0);
	exits_free(&e);
}

static void
what_has_no_partner_is_counted(void **state)
{
	static const char text[] = "a 1 1.0: kvm:kvm_entry: vcpu 0\n"
				   "a 1 1.1: kvm:kvm_exit: reason HLT rip\n"
				   "a 1 1.2: kvm:kvm_exit: reason HLT rip\n"
				   "a 1 1.3: kvm:kvm_entry: vcpu 0\n"
				   "a 1 1.4: kvm:kvm_exit: reason HLT rip\n"
				   "\n"
				   "a x 1.5: kvm:kvm_exit: reason HLT rip\n"
				   "a 1 1.5: kvm:kvm_exit: no word for it\n"
				   "a 1 nan: kvm:kvm_exit: reason HLT\n"
				   "kvm:kvm_exit: reason HLT\n"
				   "a 1 1.6: \0kvm:kvm_exit: reason HLT";
	struct exits e = parsed(text, sizeof(text) - 1);

	(void)state;
	assert_int_equal(e.nb, 1);
	assert_int_equal(e.reasons[0].n, 1);
	assert_int_equal(e.without_exit, 1);
	/* The one in the middle and the one at the end. */
	assert_int_equal(e.without_entry, 2);
	assert_int_equal(e.other_lines, 6);
	exits_free(&e);
}

/* ---- resctrl ---- */

/* All eight published figures: what the reader took less a dry run. */
static void
published_reads_come_out(void **state)
{
	static const char *const cpus[] = { "AMD EPYC 7B12", "Intel Xeon Gold 6268CL" };
	static const char *const domains[] = { "local", "remote" },
				 *const patched[] = { "no", "yes" };

	(void)state;
	for (int i = 0; i < 8; i++) {
		char where[96];
		double wanted, groups, raw[7], dry[7], wall[7];
		struct resctrl_figures f = {
			.n = 7, .unit = "Mcycles", .raw = raw, .dry = dry, .wall_ns = wall
		};
		struct probe_report r;
		struct probe_row *row;

		snprintf(where, sizeof(where), "cpu=%s&domain=%s&patched=%s", cpus[i & 1],
				domains[i >> 1 & 1], patched[i >> 2]);
		report_begin(&r, "resctrl", "resctrl_read");
		wanted = published_figure(r.system, where, "mcycles");
		groups = published_figure(r.system, where, "groups");
		/* Some repeats are slower, all of it. */
		for (int k = 0; k < 7; k++) {
			dry[k] = 400000 + 1000 * k;
			raw[k] = wanted * 1e6 + dry[k];
			wall[k] = 1e6;
		}
		f.counters = 2 * (size_t)groups;
		row = resctrl_rows(&r, "domain 00, local", &f);
		assert_near(row->net, wanted, 1e-9);
		assert_near(row->overhead, 0.403, 1e-9);
		assert_near(find(&r, "domain 00, local", "reader cycles a counter")->net,
				wanted * 1e6 / (2 * groups), 1e-9);
		assert_near(find(&r, "domain 00, local", "read rate")->raw, 2 * groups * 1000,
				1e-9);
		report_free(&r);
	}
}

/* 10 counters: 5000 cycles less 1000 are 400 each; others 900 less 500; in 2 us 5 M/s. */
static void
reads_by_hand(void **state)
{
	const double raw[] = { 5000 }, dry[] = { 1000 }, serving[] = { 900 },
		     serving_dry[] = { 500 };
	const double wall[] = { 2000 };
	struct resctrl_figures f = { 1, 10, "Mcycles", raw, dry, serving, serving_dry, wall };
	struct probe_report r;

	(void)state;
	report_begin(&r, "resctrl", NULL);
	resctrl_rows(&r, "x", &f);
	assert_near(find(&r, "x", "reader cycles")->net, 0.004, 1e-12);
	assert_near(find(&r, "x", "reader cycles a counter")->net, 400, 1e-12);
	assert_near(find(&r, "x", "serving CPUs' cycles")->net, 0.0004, 1e-12);
	assert_near(find(&r, "x", "read rate")->raw, 5e6, 1e-12);
	report_free(&r);
}

static void
values_are_told_apart(void **state)
{
	static const struct {
		const char *text;
		enum resctrl_value value;
	} rows[] = {
		{ "0\n", RESCTRL_NUMBER },
		{ "18446744073709551615\n", RESCTRL_NUMBER },
		{ "7", RESCTRL_NUMBER },
		{ "Unavailable\n", RESCTRL_UNAVAILABLE },
		{ "Error\n", RESCTRL_ERROR },
		{ "Unassigned\n", RESCTRL_UNASSIGNED },
		{ "", RESCTRL_EMPTY },
		{ "\n", RESCTRL_EMPTY },
		{ "Unavailable!\n", RESCTRL_OTHER },
		{ "-1\n", RESCTRL_OTHER },
		{ "12 13\n", RESCTRL_OTHER },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(resctrl_value_of(rows[i].text, strlen(rows[i].text)),
				rows[i].value);
}

/* A read of a group that has been removed gives ENODEV: here from the second on, of one file. */
static char vanishing[128];
static unsigned int reads_of_it;

ssize_t __real_pread64(int fd, void *buf, size_t n, off_t at);
ssize_t __wrap_pread64(int fd, void *buf, size_t n, off_t at);

ssize_t
__wrap_pread64(int fd, void *buf, size_t n, off_t at)
{
	struct stat ours, its;

	if (vanishing[0] != '\0' && stat(vanishing, &its) == 0 && fstat(fd, &ours) == 0 &&
			ours.st_ino == its.st_ino && ++reads_of_it > 1) {
		errno = ENODEV;
		return -1;
	}
	return __real_pread64(fd, buf, n, at);
}

static void
put(const char *root, const char *path, const char *text)
{
	char name[256];
	FILE *out;

	snprintf(name, sizeof(name), "%s%s", root, path);
	for (char *slash = strchr(name + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(name, 0755);
		*slash = '/';
	}
	out = fopen(name, "w");
	assert_non_null(out);
	fputs(text, out);
	fclose(out);
}

static void
a_group_that_vanishes_is_named_and_left(void **state)
{
	char root[] = "/tmp/test_probe_XXXXXX", command[64];
	struct probe_options o = { .repeats = 6, .warmup = 1 };
	struct probe_report r;
	struct err err;
	bool named = false;
	json_t *note;
	size_t i;

	(void)state;
	assert_non_null(mkdtemp(root));
	put(root, "/proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\n");
	put(root, "/sys/devices/system/cpu/online", "0\n");
	put(root, "/sys/devices/system/cpu/possible", "0\n");
	put(root, "/sys/devices/system/cpu/cpu0/topology/core_cpus", "1\n");
	put(root, "/sys/devices/system/cpu/cpu0/cache/index3/level", "3\n");
	put(root, "/sys/devices/system/cpu/cpu0/cache/index3/id", "0\n");
	put(root, "/sys/fs/resctrl/info/L3_MON/num_rmids", "8\n");
	put(root, "/sys/fs/resctrl/mon_data/mon_L3_00/mbm_local_bytes", "1\n");
	put(root, "/sys/fs/resctrl/mon_data/mon_L3_00/mbm_total_bytes", "2\n");
	put(root, "/sys/fs/resctrl/mon_groups/gone/mon_data/mon_L3_00/mbm_local_bytes", "3\n");
	snprintf(vanishing, sizeof(vanishing),
			"%s/sys/fs/resctrl/mon_groups/gone/mon_data/mon_L3_00/mbm_local_bytes",
			root);
	setenv("HWLOC_SYNTHETIC", "package:1 core:1 pu:1", 1);
	assert_int_equal(sys_root(root, &err), 0);
	report_begin(&r, "resctrl", "resctrl_read");
	assert_int_equal(probe_resctrl(&r, &o, &err), 0);
	json_array_foreach (r.notes, i, note)
		named |= strstr(json_string_value(note),
					 "mon_groups/gone/mbm_local_bytes cannot be read any more") !=
				NULL;
	assert_true(named);
	/* Once read, once failed, and never again: 7 rounds of the other two. */
	assert_int_equal(reads_of_it, 2);
	json_t *seen = json_object_get(r.facts, "mon_L3_00");
	assert_int_equal(json_integer_value(json_object_get(seen, "numbers")), 15);
	assert_int_equal(json_integer_value(json_object_get(seen, "unreadable")), 1);
	assert_int_equal(json_integer_value(json_object_get(seen, "counters")), 3);
	report_free(&r);
	vanishing[0] = '\0';
	snprintf(command, sizeof(command), "rm -r %s", root);
	assert_int_equal(system(command), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_exits_come_out),
		cmocka_unit_test(exits_by_hand),
		cmocka_unit_test(exits_are_paired_by_thread),
		cmocka_unit_test(what_has_no_partner_is_counted),
		cmocka_unit_test(published_reads_come_out),
		cmocka_unit_test(reads_by_hand),
		cmocka_unit_test(values_are_told_apart),
		/* The last, as it looks at a tree from then on. */
		cmocka_unit_test(a_group_that_vanishes_is_named_and_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
