/* SPDX-License-Identifier: BSD-3-Clause */
/* idlectl probe: one row a probe. */
#include <string.h>

#include "command.h"

static const struct {
	const char *command;
	const char *system; /* whose figures are published */
	unsigned long loops; /* unless others are asked for */
	int (*run)(struct probe_report *r, const struct probe_options *o, struct err *err);
} rows[] = {
	{ "probe ipi", "ipi_fence", 1000, probe_ipi },
	{ "probe fence", "ipi_fence", 1000, probe_fence },
	{ "probe msr", "ipi_fastpath", 1000, probe_msr },
	{ "probe eoi", "eoi", 1000, probe_eoi },
	{ "probe resctrl", "resctrl_read", 1, probe_resctrl },
	{ "probe wake", NULL, 200, probe_wake },
};

/* The CPU asked for, else an isolated one, else the last: the first has most to do besides. */
static int
choose_cpu(const struct options *o, struct err *err)
{
	struct topology t;
	int cpu;

	if (topology_open(&t, o->topology, err) != 0)
		return -1;
	cpu = hwloc_bitmap_intersects(t.isolated, t.open) ? hwloc_bitmap_first(t.isolated)
							  : hwloc_bitmap_last(t.open);
	cpu = command_cpu(o, &t, cpu, false, err);
	topology_close(&t);
	return cpu;
}

int
command_probe(const struct options *o, struct err *err)
{
	struct probe_options options = o->probe;
	struct probe_report r;
	size_t i = 0;
	int rc;

	if (o->json && o->csv)
		return err_set(err, EXIT_USAGE, "--json and --csv contradict each other");
	while (strcmp(rows[i].command, o->command) != 0)
		i++;
	options.topology = o->topology;
	/* perf has defaults of its own. */
	if (options.loops == 0 && options.bench == NULL)
		options.loops = rows[i].loops;
	options.cpu_given = o->cpu >= 0;
	options.cpu = choose_cpu(o, err);
	if (options.cpu < 0)
		return -1;
	options.format = o->json ? PROBE_JSON : o->csv ? PROBE_CSV : PROBE_TABLE;
	probe_signals();
	report_begin(&r, rows[i].command + strlen("probe "), rows[i].system);
	rc = rows[i].run(&r, &options, err);
	if (rc == 0)
		report_print(&r, options.format, options.histogram);
	report_free(&r);
	return rc;
}
