/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What doctor looks at, and the verdict that rests on few of it. It only reads, and no file whose reading
 * interrupts the measured CPU.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "doctor.h"

/* ---- findings ---- */

struct finding
finding(enum level level, const char *remedy, const char *fmt, ...)
{
	struct finding f = { .level = level };
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&f.reason, fmt, ap) < 0)
		abort();
	va_end(ap);
	one_line(f.reason);
	if (remedy != NULL)
		f.remedy = one_line(sys_format("%s", remedy));
	return f;
}

/* ---- the verdict ---- */

/* The table prints the text; scripts go by its beginning. */
#define VERDICT(what, ...) ((struct verdict){ what, one_line(sys_format(__VA_ARGS__)) })
#define EXPECTED(...) VERDICT(EFFECT_EXPECTED, "effect expected here: " __VA_ARGS__)
#define NOT_EXPECTED(...) VERDICT(EFFECT_NOT_EXPECTED, "not expected because " __VA_ARGS__)
#define CANNOT_TELL(...) VERDICT(EFFECT_UNKNOWN, "cannot tell: " __VA_ARGS__)

/*
 * Whether the measured CPU loses speed when its sibling idles. What the module, the isolation or the
 * governor are like makes it harder or easier to see, and decides nothing. Without intel_idle the
 * siblings decide nothing either: a guest without an idle driver sees none, and may have one.
 */
struct verdict
machine_judge(const struct machine *m)
{
	if (m->spectre_v2 == NULL)
		return CANNOT_TELL(SPECTRE_V2 " cannot be read");
	if (m->mitigation == NULL)
		return CANNOT_TELL("spectre_v2 says \"%.80s\", which is not known here",
				m->spectre_v2);
	if (!m->mitigation->kernel_ibrs)
		return NOT_EXPECTED("%s", m->mitigation->words);
	if (m->driver == NULL)
		return CANNOT_TELL("kernel IBRS is in use, but the idle driver is not known");
	if (strcmp(m->driver, "none") == 0)
		return CANNOT_TELL("kernel IBRS is in use, but there is no idle driver");
	if (strcmp(m->driver, "intel_idle") != 0)
		return CANNOT_TELL(
				"kernel IBRS is in use, but the idle driver is %.40s, not intel_idle",
				m->driver);
	if (m->vendor == NULL)
		return CANNOT_TELL(
				"kernel IBRS is in use, but /proc/cpuinfo does not say whether the CPU is from Intel");
	if (!is_intel(m))
		return NOT_EXPECTED("the CPU is not from Intel (%.40s)", m->vendor);
	if (m->sibling < 0)
		return NOT_EXPECTED("CPU %u has no SMT sibling on line", m->cpu);
	return EXPECTED("kernel IBRS, intel_idle, and CPU %u has SMT sibling %d on line", m->cpu,
			m->sibling);
}

/* ---- looking ---- */

/* The value of a key in a text of "key <tabs>: value" lines, the first one. */
static char *
cpuinfo_value(const char *text, const char *key)
{
	size_t len = strlen(key);

	for (const char *line = text; line != NULL && *line != '\0';) {
		size_t size = strcspn(line, "\n");
		size_t gap = strncmp(line, key, len) == 0 ? strspn(line + len, "\t ") : 0;

		if (len < size && strncmp(line, key, len) == 0 && line[len + gap] == ':') {
			const char *value = line + len + gap + 1;

			value += strspn(value, " ");
			return sys_format("%.*s", (int)strcspn(value, "\n"), value);
		}
		line += size;
		line += *line == '\n' ? 1 : 0;
	}
	return NULL;
}

int
machine_sibling(const struct topology *t, unsigned int cpu, hwloc_bitmap_t set)
{
	hwloc_bitmap_zero(set);
	topology_add_core(t, cpu, set);
	hwloc_bitmap_and(set, set, t->online);
	hwloc_bitmap_clr(set, cpu);
	return hwloc_bitmap_first(set);
}

static void
read_stat(struct machine *m)
{
	const struct timespec pause = { .tv_nsec = LOAD_MS * 1000000L };

	m->stat[0] = sys_read("/proc/stat");
	if (!sys_live() || m->sibling < 0 || m->stat[0] == NULL)
		return;
	nanosleep(&pause, NULL);
	m->stat[1] = sys_read("/proc/stat");
}

/* What the verdict rests on. */
static void
read_basis(struct machine *m)
{
	char *cpuinfo = sys_read("/proc/cpuinfo");

	read_mitigation(m);
	m->vendor = cpuinfo_value(cpuinfo, "vendor_id");
	m->flags = cpuinfo_value(cpuinfo, "flags");
	free(cpuinfo);
	m->driver = sys_read(SYS_CPU "/cpuidle/current_driver");
}

void
machine_read_all(struct machine *m)
{
	topology_keep_off(&m->t, (int)m->cpu);
	read_basis(m);
	m->cmdline = sys_read("/proc/cmdline");
	m->isolation_known = isolation_read(&m->isolation) == 0;
	m->irqs_known = irqs_read(&m->irqs) == 0;
	read_stat(m);
}

void
machine_free(struct machine *m)
{
	free(m->stat[1]);
	free(m->stat[0]);
	irqs_free(&m->irqs);
	isolation_free(&m->isolation);
	free(m->driver);
	free(m->cmdline);
	free(m->flags);
	free(m->vendor);
	free(m->spectre_v2);
}

enum expectation
doctor_expects(const struct topology *t, unsigned int cpu, char **text)
{
	struct machine m = { .t = *t, .cpu = cpu };
	hwloc_bitmap_t set = hwloc_bitmap_alloc();
	struct verdict verdict;

	if (set == NULL)
		abort();
	m.sibling = machine_sibling(t, cpu, set);
	read_basis(&m);
	verdict = machine_judge(&m);
	*text = verdict.text;
	machine_free(&m);
	hwloc_bitmap_free(set);
	return verdict.expectation;
}
