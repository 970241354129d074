/* SPDX-License-Identifier: BSD-3-Clause */
/* idlectl probe fence: what MFENCE and LFENCE cost before a WRMSR that does not serialize. */
#include <stdlib.h>
#include <string.h>

#include "probe.h"

/* Of each number of stores, in this order: the one before is all but the fence or the write. */
static const struct {
	const char *name;
	uint32_t op, flags;
	int overhead; /* place in this table */
} parts[] = {
	{ "alone", SIBIDLE_FENCE_NOTHING, 0, -1 },
	{ "fence", SIBIDLE_FENCE_NOTHING, SIBIDLE_PROBE_FENCED, 0 },
	{ "TSC_AUX", SIBIDLE_FENCE_TSC_AUX, 0, 0 },
	{ "fence before TSC_AUX", SIBIDLE_FENCE_TSC_AUX, SIBIDLE_PROBE_FENCED, 2 },
	{ "ICR", SIBIDLE_FENCE_ICR, 0, 0 },
	{ "fence before ICR", SIBIDLE_FENCE_ICR, SIBIDLE_PROBE_FENCED, 4 },
};
#define NB_PARTS (sizeof(parts) / sizeof(parts[0]))
#define ANSWER "fence before ICR"

#define LIST_MAX (SIBIDLE_PROBE_STORES_MAX + 1)

/* Numbers from 0 to 64, each once, joined by commas. Returns how many, or -1 with err set. */
static int
parse_stores(uint32_t stores[LIST_MAX], const char *list, struct err *err)
{
	bool given[LIST_MAX] = { false };
	int nb = 0;

	for (const char *at = list;; at++) {
		char *end;
		unsigned long n = strtoul(at, &end, 10);

		if (*at < '0' || *at > '9' || (*end != '\0' && *end != ',') ||
				n > SIBIDLE_PROBE_STORES_MAX || given[n])
			return err_set(err, EXIT_USAGE,
					"--stores %s: not a list of numbers from 0 to %u, each once",
					list, SIBIDLE_PROBE_STORES_MAX);
		given[n] = true;
		stores[nb++] = (uint32_t)n;
		if (*end == '\0')
			return nb;
		at = end;
	}
}

/* The answer in one line: behind the first number of stores, and behind the last. */
static void
answer(struct probe_report *r, const uint32_t *stores, int nb)
{
	const struct probe_row *first = NULL, *last = NULL;

	for (size_t i = 0; i < r->nb; i++)
		if (strstr(r->rows[i].name, ANSWER) != NULL) {
			first = first == NULL ? &r->rows[i] : first;
			last = &r->rows[i];
		}
	if (first == NULL)
		report_note(r, "what the fence costs before an x2APIC write cannot be told here");
	else
		report_note(r, "before an x2APIC write the fence costs %.0f cycles behind %u stores, %.0f behind %u",
				first->net, stores[0], last->net, stores[nb - 1]);
}

int
probe_fence(struct probe_report *r, const struct probe_options *o, struct err *err)
{
	uint32_t stores[LIST_MAX];
	struct local_case *cases;
	char(*names)[64];
	int nb, rc;

	nb = parse_stores(stores, o->stores != NULL ? o->stores : "0,1,2,4,8,16,32,64", err);
	if (nb < 0)
		return -1;
	/* First the empty loop, of which the stores are all but themselves. */
	cases = probe_alloc(1 + (size_t)nb * NB_PARTS, sizeof(*cases));
	names = probe_alloc((size_t)nb * NB_PARTS, sizeof(*names));
	cases[0] = (struct local_case){
		.name = "nothing", .op = SIBIDLE_FENCE_NOTHING, .overhead = -1
	};
	for (size_t i = 0; i < (size_t)nb * NB_PARTS; i++) {
		size_t part = i % NB_PARTS, start = 1 + i - part;

		snprintf(names[i], sizeof(names[i]), "%u stores: %s", stores[i / NB_PARTS],
				parts[part].name);
		cases[1 + i] = (struct local_case){ .name = names[i],
			.op = parts[part].op,
			.number = stores[i / NB_PARTS],
			.flags = parts[part].flags,
			.overhead = parts[part].overhead < 0 ? 0
							     : (int)start + parts[part].overhead };
	}
	rc = probe_local(r, o, SIBIDLE_PROBE_FENCE, cases, 1 + (size_t)nb * NB_PARTS, false, err);
	if (rc == 0) {
		answer(r, stores, nb);
		r->unlike = "whole calls of 48 pairs at once";
		report_add_published(r, "IPI call, fenced", "mean call", "ns",
				"case=pinned x2AVIC&fence=yes", "latency_ns", 1);
		report_add_published(r, "IPI call, not fenced", "mean call", "ns",
				"case=pinned x2AVIC&fence=no", "latency_ns", 1);
	}
	free(cases);
	free(names);
	return rc;
}
