/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "published.h"
#include "sysroot.h"

#define INTEL "GenuineIntel"
#define AMD "AuthenticAMD"

/* The files as strings, made by meson.build. */
static const char eoi[] =
#include "eoi.inc"
		;
static const char ibrs_idle[] =
#include "ibrs_idle.inc"
		;
static const char ipi_fastpath[] =
#include "ipi_fastpath.inc"
		;
static const char ipi_fence[] =
#include "ipi_fence.inc"
		;
static const char resctrl_read[] =
#include "resctrl_read.inc"
		;

static const struct {
	struct published p;
	const char *csv;
} systems[] = {
	{ { "eoi", "AMD, 24 CPUs", AMD, false, "May 2012", "\"x86: eoi micro-optimization\"" },
			eoi },
	{ { "ibrs_idle", "Xeon 4114", INTEL, false, "27 July 2023",
			  "\"x86/speculation: Disable IBRS when idle\" v6" },
			ibrs_idle },
	{ { "ipi_fastpath", "Skylake server", INTEL, false, "November 2019",
			  "\"KVM: X86: Single target IPI fastpath\"" },
			ipi_fastpath },
	{ { "ipi_fence", "Zen 4, 96 cores, 2500 MHz", AMD, true, "2023",
			  "\"x86/barrier: Do not serialize MSR accesses on AMD\" (04c3024560d3)" },
			ipi_fence },
	{ { "resctrl_read", "EPYC 7B12, Xeon Gold 6268CL", AMD " or " INTEL, false, "October 2024",
			  "\"x86/resctrl: Don't workqueue local event counter reads\"" },
			resctrl_read },
};
#define NB_SYSTEMS (sizeof(systems) / sizeof(systems[0]))

const struct published *
published_find(const char *name)
{
	for (size_t i = 0; i < NB_SYSTEMS; i++)
		if (strcmp(systems[i].p.name, name) == 0)
			return &systems[i].p;
	return NULL;
}

/* ---- the files: no field has a comma or a quote in it ---- */

struct span {
	const char *at;
	size_t len;
};

static struct span
field(const char *line, unsigned int column)
{
	for (; column > 0; column--)
		line += strcspn(line, ",\n") + 1;
	return (struct span){ line, strcspn(line, ",\n") };
}

static bool
same(struct span a, const char *text, size_t len)
{
	return a.len == len && memcmp(a.at, text, len) == 0;
}

/* The number of a column, or -1. */
static int
find_column(const char *csv, const char *name, size_t len)
{
	int columns = 1;

	for (const char *c = csv; *c != '\n'; c++)
		columns += *c == ',';
	for (int i = 0; i < columns; i++)
		if (same(field(csv, (unsigned int)i), name, len))
			return i;
	return -1;
}

/* Whether a row has all values; ends the program where a column is none. */
static bool
matches(const char *csv, const char *line, const char *where)
{
	while (*where != '\0') {
		size_t name = strcspn(where, "="), all = strcspn(where, "&");
		int column = find_column(csv, where, name);

		if (column < 0 || name >= all)
			abort();
		if (!same(field(line, (unsigned int)column), where + name + 1, all - name - 1))
			return false;
		where += all;
		where += *where == '&';
	}
	return true;
}

double
published_figure(const struct published *p, const char *where, const char *name)
{
	const char *csv = NULL;
	int column;

	for (size_t i = 0; i < NB_SYSTEMS; i++)
		if (p == &systems[i].p)
			csv = systems[i].csv;
	column = csv == NULL ? -1 : find_column(csv, name, strlen(name));
	if (column < 0)
		abort();
	for (const char *line = strchr(csv, '\n') + 1; *line != '\0'; line = strchr(line, '\n') + 1)
		if (matches(csv, line, where)) {
			struct span value = field(line, (unsigned int)column);
			char *end;
			double figure = strtod(value.at, &end);

			return value.len > 0 && end == value.at + value.len ? figure : NAN;
		}
	abort();
}

/* ---- this machine ---- */

static char *
vendor(void)
{
	char *info = sys_read("/proc/cpuinfo"), *found = NULL, *line, *rest;

	for (line = info != NULL ? strtok_r(info, "\n", &rest) : NULL; line != NULL;
			line = strtok_r(NULL, "\n", &rest))
		if (strncmp(line, "vendor_id", 9) == 0 && strchr(line, ':') != NULL) {
			found = sys_format("%s",
					strchr(line, ':') + 1 + strspn(strchr(line, ':') + 1, " "));
			break;
		}
	free(info);
	return found;
}

bool
published_on_amd(void)
{
	char *ours = vendor();
	bool amd = ours != NULL && strncmp(ours, AMD, strlen(AMD)) == 0;

	free(ours);
	return amd;
}

static void
add(char **reasons, char *reason)
{
	char *joined = *reasons == NULL ? sys_format("no: %s", reason)
					: sys_format("%s; %s", *reasons, reason);

	free(*reasons);
	free(reason);
	*reasons = joined;
}

char *
published_comparable(const struct published *p)
{
	bool guest = sys_live() && sys_hypervisor()[0] != '\0';
	char *reasons = NULL, *ours = vendor();
	struct utsname os;

	if (!sys_live())
		add(&reasons, sys_format("a recorded tree"));
	else if (sys_emulated())
		add(&reasons, sys_format("emulated"));
	else if (guest != p->guest)
		add(&reasons,
				sys_format("%s here, published on %s",
						guest ? "a guest" : "bare metal",
						p->guest ? "a guest" : "bare metal"));
	if (ours == NULL || *ours == '\0' || strstr(p->vendor, ours) == NULL)
		add(&reasons,
				sys_format("%s here, published on %s",
						ours != NULL ? one_line(ours) : "unknown vendor",
						p->vendor));
	free(ours);
	if (reasons == NULL)
		reasons = sys_format("but for the kernel: %s here, published in %s",
				uname(&os) == 0 ? os.release : "unknown", p->date);
	return reasons;
}
