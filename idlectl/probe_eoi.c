/* SPDX-License-Identifier: BSD-3-Clause */
/* idlectl probe eoi: the end of an interrupt, written directly and through the kernel's callback. */
#include "probe.h"
#include "probe_bench.h"

enum { EMPTY, DIRECT, CALLBACK, DIFFERENCE };

static const struct local_case cases[] = {
	[EMPTY] = { "nothing", SIBIDLE_EOI_NOTHING, 0, 0, -1, NULL, NULL },
	[DIRECT] = { "direct", SIBIDLE_EOI_DIRECT, 0, 0, EMPTY, NULL, NULL },
	[CALLBACK] = { "callback", SIBIDLE_EOI_CALLBACK, 0, 0, EMPTY, NULL, NULL },
	[DIFFERENCE] = { "callback over direct", SIBIDLE_EOI_CALLBACK, 0, 0, DIRECT, NULL, NULL },
};
#define NB_CASES (sizeof(cases) / sizeof(cases[0]))

int
probe_eoi(struct probe_report *r, const struct probe_options *o, struct err *err)
{
	if (o->bench != NULL || o->base != NULL || o->other != NULL)
		return probe_bench(r, o, err);
	if (probe_local(r, o, SIBIDLE_PROBE_EOI, cases, NB_CASES, false, err) != 0)
		return -1;
	r->unlike = "benchmarks, which --bench is for";
	bench_publish(r);
	return 0;
}
