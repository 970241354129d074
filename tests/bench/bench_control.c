/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long it takes to apply, verify and restore a scenario: medians in microseconds of so many times.
 *
 *	bench_control CPU SCENARIO [TIMES]
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "control.h"

#define PHASES 3

static double
now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return 1e6 * (double)ts.tv_sec + 1e-3 * (double)ts.tv_nsec;
}

static int
by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int
main(int argc, char **argv)
{
	static const char *const names[PHASES] = { "apply", "verify", "restore" };
	unsigned int cpu = argc > 1 ? (unsigned int)atoi(argv[1]) : 0;
	int times = argc > 3 ? atoi(argv[3]) : 100;
	double *us[PHASES];
	struct control c;
	struct scenario s;
	struct err err = { .code = EXIT_USAGE,
		.text = "usage: bench_control CPU SCENARIO [TIMES]" };

	for (int p = 0; p < PHASES; p++)
		us[p] = calloc((size_t)times, sizeof(*us[p]));
	if (argc < 3 || scenario_parse(&s, argv[2], &err) != 0 ||
			control_begin(&c, "bench_control", &err) != 0)
		goto failed;
	for (int i = 0; i < times; i++) {
		double start = now_us(), applied, verified;

		if (control_apply(&c, cpu, &s, &err) != 0)
			goto failed;
		applied = now_us();
		if (control_verify(&c, &err) != 0)
			goto failed;
		verified = now_us();
		if (control_restore(&c, &err) != 0)
			goto failed;
		us[0][i] = applied - start;
		us[1][i] = verified - applied;
		us[2][i] = now_us() - verified;
	}
	for (int p = 0; p < PHASES; p++) {
		qsort(us[p], (size_t)times, sizeof(*us[p]), by_value);
		printf("%-8s %-12s median %8.0f us, longest %8.0f us, n %d\n", s.text, names[p],
				us[p][times / 2], us[p][times - 1], times);
	}
	return control_end(&c, &err) == 0 ? 0 : 1;
failed:
	fprintf(stderr, "bench_control: %s\n", err.text);
	return (int)err.code;
}
