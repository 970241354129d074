/* SPDX-License-Identifier: BSD-3-Clause */
/* What probes have in common, and the arithmetic of those that the module carries out. */
#include <string.h>

#include "probe.h"
#include "probe_ipi.h"
#include "unit.h"

/* ---- published figures ---- */

static void
published_figures_are_found(void **state)
{
	const struct published *p = published_find("ipi_fence");

	(void)state;
	assert_non_null(p);
	assert_true(published_figure(p, "case=pinned AVIC", "latency_ns") == 1124.98);
	assert_true(published_figure(p, "case=pinned x2AVIC&fence=no", "throughput_per_s") ==
			42960800);
	assert_true(published_figure(p, "case=pinned x2AVIC&fence=yes", "senders") == 48);
	assert_true(isnan(published_figure(p, "case=mesh&fence=yes", "latency_ns")));
	assert_null(published_find("nothing"));
	assert_true(published_figure(published_find("resctrl_read"),
				    "cpu=Intel Xeon Gold 6268CL&domain=remote&patched=yes",
				    "mcycles") == 4.62);
}

/* "25 % degradation" of the published series is that of the packets. */
static void
published_ibrs_is_a_quarter(void **state)
{
	const struct published *p = published_find("ibrs_idle");
	double on = published_figure(p, "scenario=ibrs-on", "mpps");
	double off = published_figure(p, "scenario=ibrs-off", "mpps");

	(void)state;
	assert_near(100 * (1 - on / off), 25, 1e-12);
	/* And pps x cycles/packet is the TSC's rate within 1 %, in both. */
	assert_near(on * published_figure(p, "scenario=ibrs-on", "tsc_cycles_per_packet"), 2200,
			0.01);
	assert_near(off * published_figure(p, "scenario=ibrs-off", "tsc_cycles_per_packet"), 2200,
			0.01);
}

/* ---- reports ---- */

static void
figures_are_medians_of_raw_overhead_and_net(void **state)
{
	const double raw[] = { 30, 10, 20, 50, 40, 60, 70 }, overhead[] = { 1, 2, 3, 4, 5, 6, 7 };
	struct probe_report r;
	struct probe_row *row;

	(void)state;
	report_begin(&r, "test", NULL);
	row = report_add(&r, "case", "metric", "unit", raw, overhead, 7);
	assert_true(row->raw == 40 && row->overhead == 4);
	/* 29 8 17 46 35 54 63: net is the median of the differences, each of one repeat. */
	assert_true(row->net == 35);
	/* Of 7 values the smallest and the largest hold the median at 98.4 %. */
	assert_true(row->low == 8 && row->high == 63);
	row = report_add(&r, "few", "metric", "unit", raw, NULL, 5);
	assert_true(row->net == 30 && isnan(row->overhead) && isnan(row->low));
	row = report_add_one(&r, "one", "metric", "unit", 5);
	assert_true(row->raw == 5 && row->net == 5 && isnan(row->low) && row->n == 1);
	report_free(&r);
}

static void
a_published_figure_stands_in_our_unit(void **state)
{
	struct probe_report r;
	struct probe_row *row;

	(void)state;
	report_begin(&r, "test", "ipi_fence");
	row = report_add_one(&r, "one", "call", "us", 5);
	report_publish(&r, row, "case=pinned AVIC", "latency_ns", 1e-3);
	assert_near(row->published, 1.12498, 1e-12);
	assert_string_equal(row->published_as, "case=pinned AVIC");
	report_free(&r);
}

/* ---- samples ---- */

static void
bins_follow_each_other(void **state)
{
	uint64_t from, to, last = 0;

	(void)state;
	for (unsigned int i = 0; i < HISTOGRAM_BINS; i++) {
		histogram_bin(i, &from, &to);
		assert_true(from == last && to > from);
		/* An eighth of a power of two. */
		assert_true(from < 16 ? to - from == 1
				      : i == HISTOGRAM_BINS - 1 || (to - from) * 8 <= from);
		last = to;
	}
	assert_true(last == UINT64_MAX);
}

static void
every_value_is_in_its_bin(void **state)
{
	uint64_t value = 1;

	(void)state;
	for (int i = 0; i < 4000; i++) {
		struct histogram h = { 0 };
		uint64_t from, to;
		unsigned int found = 0;

		histogram_add(&h, value);
		for (unsigned int k = 0; k < HISTOGRAM_BINS; k++) {
			found += (unsigned int)h.count[k];
			histogram_bin(k, &from, &to);
			if (h.count[k] != 0)
				assert_true(from <= value && (value < to || to == UINT64_MAX));
		}
		assert_int_equal(found, 1);
		/* All sizes, edges of bins among them. */
		value = i % 3 == 0 ? 1ULL << (i % 64) : i % 3 == 1 ? value - 1 : value * 31 + 7;
	}
}

static void
percentiles_are_by_the_nearest_rank(void **state)
{
	double x[100];

	(void)state;
	for (int i = 0; i < 100; i++)
		x[i] = 100 - i;
	sort_doubles(x, 100);
	assert_true(sorted_percentile(x, 100, 0.5) == 50);
	assert_true(sorted_percentile(x, 100, 0.99) == 99);
	assert_true(sorted_percentile(x, 100, 0.999) == 100);
	assert_true(sorted_percentile(x, 100, 1) == 100);
	assert_true(sorted_percentile(x, 1, 0.01) == 1);
}

/* ---- ipi ---- */

/* A count that is too high in one repeat does not make up for one that is too low in the next. */
static void
idle_targets_and_foreign_interrupts_are_told_apart(void **state)
{
	struct ipi_counts c = { 0 };

	(void)state;
	ipi_count(&c, 100, 100);
	assert_true(c.without == 0 && c.foreign == 0);
	ipi_count(&c, 100, 130);
	ipi_count(&c, 100, 80);
	assert_true(c.sent == 300 && c.interrupts == 310);
	assert_true(c.without == 20 && c.foreign == 30);
}

/* The published table comes out of the published call times: 48/1124.98 ns are 42.67 M/s. */
static void
published_throughput_is_the_sum_over_senders(void **state)
{
	static const char *const rows[] = { "case=pinned AVIC", "case=pinned x2AVIC&fence=yes",
		"case=pinned x2AVIC&fence=no" };
	const struct published *p = published_find("ipi_fence");
	struct ipi_sender senders[48];

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		size_t n = (size_t)published_figure(p, rows[i], "senders");

		assert_int_equal(n, 48);
		for (size_t k = 0; k < n; k++)
			senders[k] = (struct ipi_sender){
				published_figure(p, rows[i], "latency_ns"), 1000, 0, 1
			};
		assert_near(ipi_throughput(senders, n, 2.5e6).sum,
				published_figure(p, rows[i], "throughput_per_s"), 5e-4);
	}
}

/* The mesh's: pairs x loops through the time until the slowest has ended, which is what 48 pairs took then. */
static void
published_mesh_is_by_wall_time(void **state)
{
	static const char *const rows[] = { "case=mesh&fence=yes", "case=mesh&fence=no" };
	const struct published *p = published_find("ipi_fence");
	struct ipi_sender senders[48];

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		double wanted = published_figure(p, rows[i], "throughput_per_s");
		/* TSC ticks at 2.5 GHz; the last pair is the slowest. */
		uint64_t ticks = (uint64_t)round(48 * 100000 / wanted * 2.5e9);

		for (size_t k = 0; k < 48; k++)
			senders[k] = (struct ipi_sender){ 1, 100000, 1000 + k,
				k == 47 ? 1000 + ticks : 1000 + ticks / 2 };
		assert_near(ipi_throughput(senders, 48, 2.5e6).wall, wanted, 1e-8);
	}
}

/*
 * By hand: a TSC of 2 GHz; 100 and 200 calls in 1 and 2 us each; the first begins at 1000, the last 500
 * ticks (250 ns) later, and all have ended after 300000 ticks, 150 us: 300 / 150 us are 2 M/s.
 */
static void
throughput_by_hand(void **state)
{
	const struct ipi_sender s[] = { { 1000, 100, 1000, 201000 }, { 2000, 200, 1500, 301000 } };
	struct ipi_throughput t = ipi_throughput(s, 2, 2e6);

	(void)state;
	assert_near(t.sum, 1.5e6, 1e-12);
	assert_near(t.wall, 2e6, 1e-12);
	assert_near(t.skew_ns, 250, 1e-12);
}

static void
pairs_are_by_relation(void **state)
{
	static const struct {
		const char *relation;
		size_t nb;
		struct ipi_pair first;
	} rows[] = {
		{ "smt", 4, { 0, 1 } },
		{ "l3", 4, { 0, 2 } },
		{ "package", 0, { 0, 0 } },
		{ "cross", 4, { 0, 4 } },
		{ NULL, 4, { 0, 1 } },
	};
	struct topology t = synthetic("package:2 l3:1 core:2 pu:2");
	struct ipi_pair pairs[4];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(ipi_pairs_of(&t, rows[i].relation, pairs), rows[i].nb);
		if (rows[i].nb == 0)
			continue;
		assert_int_equal(pairs[0].from, rows[i].first.from);
		assert_int_equal(pairs[0].to, rows[i].first.to);
	}
	topology_close(&t);
	t = synthetic("package:1 core:3 pu:1");
	assert_int_equal(ipi_pairs_of(&t, "package", pairs), 1);
	assert_int_equal(ipi_pairs_of(&t, "smt", pairs), 0);
	topology_close(&t);
}

static void
random_pairs_are_disjoint_and_the_same_by_their_seed(void **state)
{
	struct topology t = synthetic("package:2 core:16 pu:2");
	struct ipi_pair pairs[32], again[32], other[32];
	bool seen[64] = { false };

	(void)state;
	assert_int_equal(ipi_pairs_random(&t, 1, pairs), 32);
	for (int i = 0; i < 32; i++) {
		assert_false(seen[pairs[i].from]);
		seen[pairs[i].from] = true;
		assert_false(seen[pairs[i].to]);
		seen[pairs[i].to] = true;
	}
	ipi_pairs_random(&t, 1, again);
	assert_memory_equal(pairs, again, sizeof(pairs));
	ipi_pairs_random(&t, 2, other);
	assert_memory_not_equal(pairs, other, sizeof(pairs));
	topology_close(&t);
	t = synthetic("package:1 core:5 pu:1");
	assert_int_equal(ipi_pairs_random(&t, 1, pairs), 2);
	topology_close(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_figures_are_found),
		cmocka_unit_test(published_ibrs_is_a_quarter),
		cmocka_unit_test(figures_are_medians_of_raw_overhead_and_net),
		cmocka_unit_test(a_published_figure_stands_in_our_unit),
		cmocka_unit_test(bins_follow_each_other),
		cmocka_unit_test(every_value_is_in_its_bin),
		cmocka_unit_test(percentiles_are_by_the_nearest_rank),
		cmocka_unit_test(idle_targets_and_foreign_interrupts_are_told_apart),
		cmocka_unit_test(published_throughput_is_the_sum_over_senders),
		cmocka_unit_test(published_mesh_is_by_wall_time),
		cmocka_unit_test(throughput_by_hand),
		cmocka_unit_test(pairs_are_by_relation),
		cmocka_unit_test(random_pairs_are_disjoint_and_the_same_by_their_seed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
