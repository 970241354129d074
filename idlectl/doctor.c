/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * idlectl doctor: a table of checks, each of one thing, and a verdict that rests on few of them. It
 * only reads, and no file whose reading interrupts the measured CPU.
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jansson.h>

#include "command.h"
#include "doctor.h"

static const char *const level_words[] = {
	[LEVEL_OK] = "ok",
	[LEVEL_WARN] = "warn",
	[LEVEL_FAIL] = "fail",
	[LEVEL_SKIP] = "skip",
};

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

/* ---- all of it ---- */

static const struct check {
	const char *id; /* never changes: scripts go by it */
	const char *title;
	struct finding (*look)(const struct machine *m);
} checks[] = {
	{ "topology", "topology is this machine's", check_topology },
	{ "spectre-v2", "spectre_v2 mitigation is kernel IBRS", check_spectre_v2 },
	{ "retbleed", "retbleed mitigation", check_retbleed },
	{ "vendor", "CPU is from Intel", check_vendor },
	{ "smt", "measured CPU has an SMT sibling on line", check_smt },
	{ "idle-driver", "idle driver is intel_idle", check_idle_driver },
	{ "idle-governor", "idle governor", check_idle_governor },
	{ "idle-states", "sibling's idle states", check_idle_states },
	{ "resume-latency", "sibling's latency limit", check_resume_latency },
	{ "max-cstate", "limit of idle states", check_max_cstate },
	{ "idle-parameter", "idle= on the command line", check_idle_parameter },
	{ "ibrs-off", "intel_idle.ibrs_off", check_ibrs_off },
	{ "kernel-version", "what this kernel does with IBRS", check_kernel_version },
	{ "module", "sibidle.ko is loaded", check_module },
	{ "sibling-load", "sibling is idle", check_sibling_load },
	{ "sibling-irqs", "sibling takes no interrupts", check_sibling_irqs },
	{ "measured-irqs", "measured CPU takes no interrupts", check_measured_irqs },
	{ "isolation", "measured CPU and sibling are isolated", check_isolation },
	{ "nohz-full", "measured CPU takes no tick", check_nohz_full },
	{ "rcu-nocbs", "measured CPU runs no RCU callbacks", check_rcu_nocbs },
	{ "cpufreq-governor", "frequency governor", check_cpufreq_governor },
	{ "turbo", "turbo is off", check_turbo },
	{ "epp", "energy preference", check_epp },
	{ "tsc", "TSC ticks evenly", check_tsc },
	{ "tsc-drift", "TSC's frequency is known well", check_tsc_drift },
	{ "clocksource", "kernel trusts the TSC", check_clocksource },
	{ "hypervisor", "not a guest", check_hypervisor },
	{ "steal", "no stolen time", check_steal },
	{ "hugepages", "huge pages", check_hugepages },
	{ "nic-numa", "NIC on the measured CPU's node", check_nic_numa },
	{ "nmi-watchdog", "NMI watchdog is off", check_nmi_watchdog },
	{ "thp", "transparent huge pages", check_thp },
	{ "lockdown", "kernel lockdown", check_lockdown },
	{ "secure-boot", "Secure Boot", check_secure_boot },
	{ "daemons", "no daemon changes settings", check_daemons },
	{ "journal", "nothing is left to restore", check_journal },
	{ "resctrl", "memory bandwidth is not throttled", check_resctrl },
};

struct verdict {
	const char *word;
	char *text;
};

/* The table prints the text; scripts go by its beginning, and by the word in JSON. */
#define VERDICT(word, ...) ((struct verdict){ word, one_line(sys_format(__VA_ARGS__)) })
#define EXPECTED(...) VERDICT("expected", "effect expected here: " __VA_ARGS__)
#define NOT_EXPECTED(...) VERDICT("not-expected", "not expected because " __VA_ARGS__)
#define CANNOT_TELL(...) VERDICT("unknown", "cannot tell: " __VA_ARGS__)

/*
 * Whether the measured CPU loses speed when its sibling idles. What the module, the isolation or the
 * governor are like makes it harder or easier to see, and decides nothing. Without intel_idle the
 * siblings decide nothing either: a guest without an idle driver sees none, and may have one.
 */
static struct verdict
judge(const struct machine *m)
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

/* The SMT sibling of cpu that is on line, -1: none. set is a buffer. */
static int
find_sibling(const struct topology *t, unsigned int cpu, hwloc_bitmap_t set)
{
	hwloc_bitmap_zero(set);
	topology_add_core(t, cpu, set);
	hwloc_bitmap_and(set, set, t->online);
	hwloc_bitmap_clr(set, cpu);
	return hwloc_bitmap_first(set);
}

/* The CPU that is measured if nobody says: an isolated one, else the last one with a sibling. */
static int
default_cpu(const struct topology *t, hwloc_bitmap_t set)
{
	int last = hwloc_bitmap_last(t->online), cpu;

	hwloc_bitmap_and(set, t->isolated, t->online);
	cpu = hwloc_bitmap_first(set);
	if (cpu >= 0)
		return cpu;
	for (cpu = last; cpu >= 0; cpu--)
		if (hwloc_bitmap_isset(t->online, (unsigned int)cpu) &&
				find_sibling(t, (unsigned int)cpu, set) >= 0)
			return cpu;
	return last;
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

static void
read_machine(struct machine *m)
{
	char *cpuinfo;

	topology_keep_off(&m->t, (int)m->cpu);
	read_mitigation(m);
	cpuinfo = sys_read("/proc/cpuinfo");
	m->vendor = cpuinfo_value(cpuinfo, "vendor_id");
	m->flags = cpuinfo_value(cpuinfo, "flags");
	free(cpuinfo);
	m->cmdline = sys_read("/proc/cmdline");
	m->driver = sys_read(SYS_CPU "/cpuidle/current_driver");
	m->isolation_known = isolation_read(&m->isolation) == 0;
	m->irqs_known = irqs_read(&m->irqs) == 0;
	read_stat(m);
}

static void
free_machine(struct machine *m)
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
	topology_close(&m->t);
}

/* ---- printing ---- */

static void
print_table(const struct machine *m, const struct finding *found, const struct verdict *verdict)
{
	int width = 0;

	for (size_t i = 0; i < NB(checks); i++)
		if ((int)strlen(checks[i].id) > width)
			width = (int)strlen(checks[i].id);
	printf("CPU %u, SMT sibling ", m->cpu);
	if (m->sibling >= 0)
		printf("%d\n", m->sibling);
	else
		printf("none\n");
	for (size_t i = 0; i < NB(checks); i++) {
		printf("%-4s  %-*s  %s\n", level_words[found[i].level], width, checks[i].id,
				found[i].reason);
		if (found[i].remedy != NULL)
			printf("%*s%s\n", 4 + 2 + width + 4, "", found[i].remedy);
	}
	printf("%s\n", verdict->text);
}

static void
print_ktap(const struct machine *m, const struct finding *found, const struct verdict *verdict)
{
	(void)m;
	printf("KTAP version 1\n1..%zu\n", NB(checks));
	for (size_t i = 0; i < NB(checks); i++) {
		enum level level = found[i].level;

		printf("%sok %zu %s", level == LEVEL_FAIL ? "not " : "", i + 1, checks[i].id);
		if (level != LEVEL_OK)
			printf(" # %s%s", level == LEVEL_SKIP ? "SKIP " : "", found[i].reason);
		printf("\n");
	}
	printf("# %s\n", verdict->text);
}

static void
print_json(const struct machine *m, const struct finding *found, const struct verdict *verdict)
{
	json_t *list = json_array(), *all;

	for (size_t i = 0; i < NB(checks); i++)
		json_array_append_new(list,
				json_pack("{s:s, s:s, s:s, s:s, s:s?}", "id", checks[i].id, "title",
						checks[i].title, "level",
						level_words[found[i].level], "reason",
						found[i].reason, "remedy", found[i].remedy));
	all = json_pack("{s:i, s:o, s:o, s:s, s:s}", "cpu", (int)m->cpu, "sibling",
			m->sibling >= 0 ? json_integer(m->sibling) : json_null(), "checks", list,
			"verdict", verdict->word, "verdict_text", verdict->text);
	if (all == NULL)
		abort();
	command_json(all, JSON_INDENT(2));
	json_decref(all);
}

static void
look(const struct machine *m, const struct options *o)
{
	struct finding found[NB(checks)];
	struct verdict verdict = judge(m);

	for (size_t i = 0; i < NB(checks); i++)
		found[i] = checks[i].look(m);
	if (o->json)
		print_json(m, found, &verdict);
	else if (o->ktap)
		print_ktap(m, found, &verdict);
	else
		print_table(m, found, &verdict);
	for (size_t i = 0; i < NB(checks); i++) {
		free(found[i].reason);
		free(found[i].remedy);
	}
	free(verdict.text);
}

int
command_doctor(const struct options *o, struct err *err)
{
	struct machine m = { .sibling = -1 };
	hwloc_bitmap_t set;
	int cpu;

	if (o->json && o->ktap)
		return err_set(err, EXIT_USAGE, "--ktap: not together with --json");
	if (topology_open(&m.t, o->topology, err) != 0)
		return -1;
	set = hwloc_bitmap_alloc();
	if (set == NULL)
		abort();
	cpu = command_cpu(o, &m.t, default_cpu(&m.t, set), false, err);
	if (cpu >= 0) {
		m.cpu = (unsigned int)cpu;
		m.sibling = find_sibling(&m.t, m.cpu, set);
		read_machine(&m);
		look(&m, o);
	}
	hwloc_bitmap_free(set);
	free_machine(&m);
	return cpu >= 0 ? 0 : -1;
}
