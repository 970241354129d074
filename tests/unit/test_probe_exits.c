/* SPDX-License-Identifier: BSD-3-Clause */
/* The arithmetic of probe msr --exits, and what it reads in the lines of perf script. */
#include <string.h>
#include <unistd.h>

#include "probe_exits.h"
#include "unit.h"

/* ---- arithmetic ---- */

static void
four_samples_by_hand(void **state)
{
	struct exit_reason reason = { 0 };
	const double us[] = { 4, 1, 3, 2 };

	(void)state;
	for (size_t i = 0; i < 4; i++)
		exit_reason_add(&reason, us[i]);
	assert_true(reason.n == 4 && reason.min == 1 && reason.max == 4);
	assert_near(reason.mean, 2.5, 1e-12);
	assert_near(reason.m2, 5, 1e-12);
	/* var = 5 / 3; 100 * sqrt(var / 4) / 2.5 */
	assert_near(exit_reason_rse(&reason), 25.819888974716, 1e-9);
}

static void
one_sample_has_no_error(void **state)
{
	struct exit_reason reason = { 0 };

	(void)state;
	exit_reason_add(&reason, 7);
	assert_true(reason.mean == 7 && reason.min == 7 && reason.max == 7);
	assert_true(isnan(exit_reason_rse(&reason)));
}

/* Sums of squares of large, nearly equal values would have nothing left. */
static void
a_small_spread_of_large_values_stays(void **state)
{
	struct exit_reason reason = { 0 };

	(void)state;
	for (size_t i = 0; i < 1000; i++)
		exit_reason_add(&reason, 1e9 + (double)(i % 2));
	/* var = 0.25 * 1000 / 999 */
	assert_near(exit_reason_rse(&reason), 100 * sqrt(0.25 / 999) / (1e9 + 0.5), 1e-12);
}

/* ---- published ---- */

/* The report as the table prints it, with single spaces. */
static char *
table_of(const struct probe_report *r)
{
	FILE *out = stdout;
	char *text, *to;
	size_t len;

	stdout = open_memstream(&text, &len);
	assert_non_null(stdout);
	report_print(r, PROBE_TABLE, false);
	fclose(stdout);
	stdout = out;
	to = text;
	for (const char *from = text; *from != '\0'; from++)
		if (*from != ' ' || to == text || to[-1] != ' ')
			*to++ = *from;
	*to = '\0';
	return text;
}

/*
 * MSR_WRITE as it is published, and one other reason that has the rest of the samples and of the time. What
 * is published of the variance is the error of the mean.
 */
static void
feed_published(struct exits *e, const char *where)
{
	const struct published *p = published_find("ipi_fastpath");
	struct exit_reason *msr = exits_reason(e, "MSR_WRITE"), *rest = exits_reason(e, "REST");
	double rse = published_figure(p, where, "rse_pct"), n, time;

	msr->n = (uint64_t)published_figure(p, where, "samples");
	msr->mean = published_figure(p, where, "avg_us");
	msr->min = published_figure(p, where, "min_us");
	msr->max = published_figure(p, where, "max_us");
	n = (double)msr->n;
	msr->m2 = pow(rse / 100 * msr->mean, 2) * n * (n - 1);
	rest->n = (uint64_t)round(n * (100 / published_figure(p, where, "samples_pct") - 1));
	time = n * msr->mean * (100 / published_figure(p, where, "time_pct") - 1);
	rest->mean = rest->min = rest->max = time / (double)rest->n;
}

static void
check_published(const char *where, const char *line)
{
	static const char *const columns[] = { "samples", "samples_pct", "time_pct", "min_us",
		"max_us", "avg_us", "rse_pct" };
	const struct published *p = published_find("ipi_fastpath");
	struct exits e = { 0 };
	struct probe_report r;
	struct err err;
	char *table;

	report_begin(&r, "msr", "ipi_fastpath");
	feed_published(&e, where);
	assert_int_equal(exits_report(&e, &r, &err), 0);
	for (size_t i = 0; i < 7; i++) {
		double wanted = published_figure(p, where, columns[i]);

		assert_string_equal(r.rows[i].name, "MSR_WRITE");
		if (isnan(wanted))
			assert_true(isnan(r.rows[i].net));
		else
			assert_true(fabs(r.rows[i].net - wanted) <= 0.005);
	}
	table = table_of(&r);
	if (strstr(table, line) == NULL) {
		print_error("\"%s\" is not in\n%s", line, table);
		fail();
	}
	free(table);
	report_free(&r);
	exits_free(&e);
}

static void
published_tables_come_out(void **state)
{
	(void)state;
	check_published("case=hackbench&mitigations=off&fastpath=no",
			"MSR_WRITE 2681713 92.98% 77.52% 0.38us 18.54us 0.73us ( +- 0.02% )\n");
	check_published("case=hackbench&mitigations=off&fastpath=yes",
			"MSR_WRITE 2953447 92.48% 62.47% 0.30us 59.09us 0.40us ( +- 0.02% )\n");
	check_published("case=hackbench&mitigations=on&fastpath=no",
			"MSR_WRITE 5417390 90.01% 16.31% 0.69us 159.60us 1.08us\n");
	check_published("case=hackbench&mitigations=on&fastpath=yes",
			"MSR_WRITE 6726109 90.73% 62.18% 0.48us 191.27us 0.58us\n");
}

static void
all_four_published_rows_are_there_once(void **state)
{
	static const char *const names[] = { "MSR_WRITE", "msr" };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct exits e = { 0 };
		struct probe_report r;
		struct err err;
		size_t nb = 0;

		report_begin(&r, "msr", "ipi_fastpath");
		exit_reason_add(exits_reason(&e, names[i]), 1);
		assert_int_equal(exits_report(&e, &r, &err), 0);
		for (size_t k = 0; k < r.nb; k++)
			nb += strcmp(r.rows[k].metric, "samples") == 0 &&
					isfinite(r.rows[k].published);
		assert_int_equal(nb, 4);
		report_free(&r);
		exits_free(&e);
	}
}

/* ---- lines ---- */

static void
take(struct exits *e, const char *text)
{
	char *line = strdup(text);
	struct err err;

	assert_non_null(line);
	assert_int_equal(exits_line(e, line, &err), 0);
	free(line);
}

static const struct exit_reason *
reason_of(struct exits *e, const char *name)
{
	for (size_t i = 0; i < e->nb; i++)
		if (strcmp(e->reasons[i]->name, name) == 0)
			return e->reasons[i];
	print_error("no %s\n", name);
	fail();
	return NULL;
}

static void
two_threads_interleaved(void **state)
{
	struct exits e = { 0 };

	(void)state;
	take(&e, "CPU 0/KVM  101 [000]  1.000001000:  kvm:kvm_exit: vcpu 0 reason HLT rip 0x1 info1 0");
	take(&e, "CPU 1/KVM  102 [001]  1.000002000:  kvm:kvm_exit: vcpu 1 reason CPUID rip 0x1 info1 0");
	take(&e, "CPU 1/KVM  102 [001]  1.000002500: kvm:kvm_entry: vcpu 1, rip 0x1");
	take(&e, "CPU 1/KVM  102 [001]  1.000003000:  kvm:kvm_exit: vcpu 1 reason CPUID rip 0x1 info1 0");
	/* On another CPU than where it left. */
	take(&e, "CPU 0/KVM  101 [003]  1.000011000: kvm:kvm_entry: vcpu 0, rip 0x1");
	take(&e, "CPU 1/KVM  102 [001]  1.000004500: kvm:kvm_entry: vcpu 1, rip 0x1");
	assert_near(reason_of(&e, "HLT")->mean, 10, 1e-9);
	assert_int_equal(reason_of(&e, "CPUID")->n, 2);
	assert_near(reason_of(&e, "CPUID")->min, 0.5, 1e-9);
	assert_near(reason_of(&e, "CPUID")->max, 1.5, 1e-9);
	assert_int_equal(e.nb_threads, 2);
	assert_int_equal(e.lone_exits + e.lone_entries + e.skipped + e.backward, 0);
	exits_free(&e);
}

static void
halves_are_counted(void **state)
{
	struct exits e = { 0 };
	struct probe_report r;
	struct err err;

	(void)state;
	take(&e, "q 7 [000] 1.000001: kvm:kvm_entry: vcpu 0, rip 0x1");
	take(&e, "q 7 [000] 1.000002: kvm:kvm_exit: vcpu 0 reason HLT rip 0x1");
	take(&e, "q 7 [000] 1.000003: kvm:kvm_exit: vcpu 0 reason CPUID rip 0x1");
	take(&e, "q 7 [000] 1.000004: kvm:kvm_entry: vcpu 0, rip 0x1");
	take(&e, "q 7 [000] 1.000005: kvm:kvm_entry: vcpu 0, rip 0x1");
	take(&e, "q 7 [000] 1.000006: kvm:kvm_exit: vcpu 0 reason HLT rip 0x1");
	take(&e, "q 7 [000] 1.000005: kvm:kvm_entry: vcpu 0, rip 0x1");
	take(&e, "q 7 [000] 1.000007: kvm:kvm_exit: vcpu 0 reason HLT rip 0x1");
	report_begin(&r, "msr", "ipi_fastpath");
	assert_int_equal(exits_report(&e, &r, &err), 0);
	assert_int_equal(e.lone_exits, 2);
	assert_int_equal(e.lone_entries, 2);
	assert_int_equal(e.backward, 1);
	assert_int_equal(json_integer_value(json_object_get(r.facts, "exits_without_entry")), 2);
	assert_int_equal(json_integer_value(json_object_get(r.facts, "exits")), 4);
	/* The one pair, and no row for a reason without one. */
	assert_string_equal(r.rows[0].name, "CPUID");
	assert_true(r.rows[0].net == 1 && r.rows[1].net == 100 && r.rows[2].net == 100);
	assert_true(r.rows[7].n == 0);
	report_free(&r);
	exits_free(&e);
}

static void
what_perf_lost_parts_pairs(void **state)
{
	struct exits e = { 0 };

	(void)state;
	take(&e, "q 7 [000] 1.000001: kvm:kvm_exit: vcpu 0 reason HLT rip 0x1");
	take(&e, "q 7 [000] 1.000002: PERF_RECORD_LOST lost 37");
	take(&e, "q 7 [000] 9.000001: kvm:kvm_entry: vcpu 0, rip 0x1");
	assert_int_equal(e.lost, 37);
	assert_int_equal(e.lone_exits, 1);
	assert_int_equal(e.lone_entries, 1);
	assert_int_equal(reason_of(&e, "HLT")->n, 0);
	exits_free(&e);
}

/* An exit in each form that kernels and perf print, and the reason in it. */
static void
every_form_of_a_reason(void **state)
{
	static const struct {
		const char *line, *reason;
	} forms[] = {
		{ "q 7 [000] 1.5: kvm:kvm_exit: reason MSR_WRITE rip 0xffffffff81 info 0 0",
				"MSR_WRITE" },
		{ "q 7 [000] 1.5: kvm:kvm_exit: vcpu 0 reason MSR_WRITE rip 0x1 info 0 0",
				"MSR_WRITE" },
		{ "q 7 [000] 1.5: kvm:kvm_exit: vcpu 12 reason INVALID_STATE FAILED_VMENTRY rip 0x1",
				"INVALID_STATE FAILED_VMENTRY" },
		{ "q 7 [000] 1.5: kvm:kvm_exit: vcpu 0 reason msr rip 0x1 info1 0x1 info2 0x0",
				"msr" },
		{ "q 7 [000] 1.5: kvm:kvm_exit: reason EXIT_MSR rip 0x1 info 1 0", "EXIT_MSR" },
		{ "q 7 [000] 1.5: kvm:kvm_exit: vcpu 0 reason SVM_EXIT_MSR rip 0x1",
				"SVM_EXIT_MSR" },
		{ "q 7 [000] 1.5: kvm:kvm_exit: vcpu 0 reason PF excp rip 0x1", "PF excp" },
		{ "q 7 [000] 1.5: kvm:kvm_exit: vcpu 0 reason 0x4d rip 0x1", "0x4d" },
		{ "q 7 [000] 1.5: kvm:kvm_exit: reason UNKNOWN (77) rip 0x1", "UNKNOWN (77)" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct exits e = { 0 };

		take(&e, forms[i].line);
		take(&e, "q 7 [000] 1.500000250: kvm:kvm_entry: vcpu 0, rip 0x1[immediate exit]");
		assert_near(reason_of(&e, forms[i].reason)->mean, 0.25, 1e-9);
		exits_free(&e);
	}
}

/* The head of an entry that follows an exit of thread 7 at 1.5 s by 2 us. */
static void
every_form_of_a_head(void **state)
{
	static const char *const heads[] = {
		"q 7 [000] 1.500002: ",
		"   q     7 [000]     1.500002000:  ",
		"q 7 1.500002: ",
		"q 6/7 [000] 1.500002: ",
		"CPU 0/KVM 7 [000] 1.500002: ",
		"a 8 [001] 2.5: 7 [000] 1.500002: ",
		"kvm:kvm_exit: 7 [000] 1.500002: ",
		" kvm:kvm_entry: 7 [000] 1.500002: ",
		" 7 [000] 1.500002: ",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		struct exits e = { 0 };
		char line[200];

		take(&e, "q 7 [000] 1.5: kvm:kvm_exit: vcpu 0 reason HLT rip 0x1");
		snprintf(line, sizeof(line), "%skvm:kvm_entry: vcpu 0, rip 0x1", heads[i]);
		take(&e, line);
		assert_near(reason_of(&e, "HLT")->mean, 2, 1e-9);
		assert_int_equal(e.nb_threads, 1);
		exits_free(&e);
	}
}

static void
lines_that_are_none(void **state)
{
	static const char *const lines[] = {
		" ",
		"kvm:kvm_exit: ",
		" kvm:kvm_exit: vcpu 0 reason HLT rip 0x1",
		"7 [000] kvm:kvm_exit: vcpu 0 reason HLT rip 0x1",
		"q 7 [000] 1.5 kvm:kvm_exit: vcpu 0 reason HLT rip 0x1",
		"q 7 [000] 1.: kvm:kvm_exit: vcpu 0 reason HLT rip 0x1",
		"q 7 [000] .5: kvm:kvm_exit: vcpu 0 reason HLT rip 0x1",
		"q 7 [000] 1.1234567890: kvm:kvm_exit: vcpu 0 reason HLT rip 0x1",
		"q 7 [000] 99999999999999999999.5: kvm:kvm_exit: vcpu 0 reason HLT rip 0x1",
		"q 7 [000] -1.5: kvm:kvm_exit: vcpu 0 reason HLT rip 0x1",
		"q -1 [000] 1.5: kvm:kvm_exit: vcpu 0 reason HLT rip 0x1",
		"q 7/ [000] 1.5: kvm:kvm_exit: vcpu 0 reason HLT rip 0x1",
		"q 99999999999 [000] 1.5: kvm:kvm_exit: vcpu 0 reason HLT rip 0x1",
		"q 7 [000] 1.5: kvm:kvm_exit: vcpu 0 reason HLT",
		"q 7 [000] 1.5: kvm:kvm_exit: vcpu 0 reason  rip 0x1",
		"q 7 [000] 1.5: kvm:kvm_exit: TRAP: HSR_EC: 0x0001 (WFx), PC: 0x1",
		"q 7 [000] 1.5: kvm:kvm_exit: reason 0123456789012345678901234567890123456789012345678 rip",
		"q 7 [000] 1.5: kvm:kvm_exit_extra: vcpu 0 reason HLT rip 0x1",
		"q 7 [000] 1.5: kvm:kvm_msr: msr_write 48 = 0x0",
		"q 7 [000] 1.5: sched:sched_switch: kvm_exit",
	};
	struct exits e = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		take(&e, lines[i]);
		assert_int_equal(e.skipped, i + 1);
	}
	assert_int_equal(e.exits + e.nb_threads, 0);
	take(&e, "# captured on: ...");
	take(&e, "");
	assert_int_equal(e.skipped, sizeof(lines) / sizeof(lines[0]));
	exits_free(&e);
}

static void
there_is_an_end_to_reasons_and_threads(void **state)
{
	struct exits e = { 0 };
	struct err err;
	char line[100];
	int rc = 0;

	(void)state;
	for (int i = 0; rc == 0 && i < 100000; i++) {
		snprintf(line, sizeof(line), "q 7 [000] 1.5: kvm:kvm_exit: reason %d rip 0x1", i);
		rc = exits_line(&e, line, &err);
	}
	assert_int_equal(rc, -1);
	assert_non_null(strstr(err.text, "exit reasons"));
	for (int i = 0, rc = 0; rc == 0 && i < 100000; i++) {
		snprintf(line, sizeof(line), "q %d [000] 1.5: kvm:kvm_entry: vcpu 0", i);
		rc = exits_line(&e, line, &err);
	}
	assert_non_null(strstr(err.text, "threads"));
	exits_free(&e);
}

/* ---- files ---- */

/* Bytes as a file that has them. */
static void
read_bytes(struct exits *e, const char *bytes, size_t len)
{
	FILE *file = tmpfile();
	struct err err;

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, len, file), len);
	assert_int_equal(fflush(file), 0);
	assert_int_equal(lseek(fileno(file), 0, SEEK_SET), 0);
	assert_int_equal(exits_read(e, fileno(file), "test", &err), 0);
	fclose(file);
}

#define EXIT_LINE "q 7 [000] 1.5: kvm:kvm_exit: vcpu 0 reason HLT rip 0x1"
#define ENTRY_LINE "q 7 [000] 1.500002: kvm:kvm_entry: vcpu 0, rip 0x1"

static void
the_last_line_needs_no_end(void **state)
{
	struct exits e = { 0 };

	(void)state;
	read_bytes(&e, EXIT_LINE "\n\n" ENTRY_LINE, strlen(EXIT_LINE "\n\n" ENTRY_LINE));
	assert_int_equal(reason_of(&e, "HLT")->n, 1);
	assert_int_equal(e.skipped, 0);
	exits_free(&e);
}

/* Lines of all lengths around that of the buffer, between two good ones; nothing of them is taken. */
static void
long_lines_are_skipped(void **state)
{
	const size_t lengths[] = { 65000, 65535, 65536, 65537, 131071, 131072, 131073, 1000000 };

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		size_t len = strlen(EXIT_LINE "\n") + lengths[i] + strlen("\n" ENTRY_LINE "\n");
		char *bytes = malloc(len + 1);
		struct exits e = { 0 };

		assert_non_null(bytes);
		memset(bytes, 'x', len);
		memcpy(bytes, EXIT_LINE "\n", strlen(EXIT_LINE "\n"));
		strcpy(bytes + len - strlen("\n" ENTRY_LINE "\n"), "\n" ENTRY_LINE "\n");
		read_bytes(&e, bytes, len);
		assert_int_equal(reason_of(&e, "HLT")->n, 1);
		assert_int_equal(e.skipped, 1);
		exits_free(&e);
		/* And without an end. */
		read_bytes(&e, bytes, len - strlen("\n" ENTRY_LINE "\n"));
		assert_int_equal(e.exits, 1);
		assert_int_equal(e.skipped, 1);
		exits_free(&e);
		free(bytes);
	}
}

static void
a_line_with_a_nul_is_none(void **state)
{
	static const char bytes[] = EXIT_LINE "\0\n\0\n" EXIT_LINE "\n" ENTRY_LINE "\n";
	struct exits e = { 0 };

	(void)state;
	read_bytes(&e, bytes, sizeof(bytes) - 1);
	assert_int_equal(reason_of(&e, "HLT")->n, 1);
	assert_int_equal(e.skipped, 2);
	assert_int_equal(e.lone_exits, 0);
	exits_free(&e);
}

/* Good lines with bytes changed by chance. */
static void
damaged_lines_do_no_harm(void **state)
{
	struct exits e = { 0 };
	uint32_t x = 1;

	(void)state;
	for (size_t i = 0; i < 20000; i++) {
		char line[200];
		struct err err;

		snprintf(line, sizeof(line), "%s", i % 2 == 0 ? EXIT_LINE : ENTRY_LINE);
		for (size_t k = 0; k < 1 + i % 3; k++) {
			x = x * 1664525 + 1013904223;
			line[(x >> 8) % strlen(EXIT_LINE)] = (char)(x >> 24);
		}
		if (exits_line(&e, line, &err) != 0)
			exits_free(&e);
	}
	exits_free(&e);
}

static void
no_exit_is_an_error(void **state)
{
	struct exits e = { 0 };
	struct probe_report r;
	struct err err;

	(void)state;
	report_begin(&r, "msr", "ipi_fastpath");
	assert_int_equal(exits_report(&e, &r, &err), -1);
	assert_int_equal(err.code, EXIT_FAILED);
	take(&e, EXIT_LINE);
	assert_int_equal(exits_report(&e, &r, &err), -1);
	assert_non_null(strstr(err.text, "an entry behind it"));
	report_free(&r);
	exits_free(&e);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(four_samples_by_hand),
		cmocka_unit_test(one_sample_has_no_error),
		cmocka_unit_test(a_small_spread_of_large_values_stays),
		cmocka_unit_test(published_tables_come_out),
		cmocka_unit_test(all_four_published_rows_are_there_once),
		cmocka_unit_test(two_threads_interleaved),
		cmocka_unit_test(halves_are_counted),
		cmocka_unit_test(what_perf_lost_parts_pairs),
		cmocka_unit_test(every_form_of_a_reason),
		cmocka_unit_test(every_form_of_a_head),
		cmocka_unit_test(lines_that_are_none),
		cmocka_unit_test(there_is_an_end_to_reasons_and_threads),
		cmocka_unit_test(the_last_line_needs_no_end),
		cmocka_unit_test(long_lines_are_skipped),
		cmocka_unit_test(a_line_with_a_nul_is_none),
		cmocka_unit_test(damaged_lines_do_no_harm),
		cmocka_unit_test(no_exit_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
