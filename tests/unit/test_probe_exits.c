/* SPDX-License-Identifier: BSD-3-Clause */
/* Exits of KVM guests, by what perf script writes of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "probe_exits.h"

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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_exits_come_out),
		cmocka_unit_test(exits_by_hand),
		cmocka_unit_test(exits_are_paired_by_thread),
		cmocka_unit_test(what_has_no_partner_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
