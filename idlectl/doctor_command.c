/* SPDX-License-Identifier: BSD-3-Clause */
/* idlectl doctor: the table of checks, each of one thing, and how they are told. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "command.h"
#include "doctor.h"

static const char *const level_words[] = {
	[LEVEL_OK] = "ok",
	[LEVEL_WARN] = "warn",
	[LEVEL_FAIL] = "fail",
	[LEVEL_SKIP] = "skip",
};

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
				machine_sibling(t, (unsigned int)cpu, set) >= 0)
			return cpu;
	return last;
}

/* ---- printing ---- */

/* Scripts go by them. */
static const char *const verdict_words[] = {
	[EFFECT_EXPECTED] = "expected",
	[EFFECT_NOT_EXPECTED] = "not-expected",
	[EFFECT_UNKNOWN] = "unknown",
};

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
			"verdict", verdict_words[verdict->expectation], "verdict_text",
			verdict->text);
	if (all == NULL)
		abort();
	command_json(all, JSON_INDENT(2));
	json_decref(all);
}

static void
look(const struct machine *m, const struct options *o)
{
	struct finding found[NB(checks)];
	struct verdict verdict = machine_judge(m);

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
		m.sibling = machine_sibling(&m.t, m.cpu, set);
		machine_read_all(&m);
		look(&m, o);
	}
	hwloc_bitmap_free(set);
	machine_free(&m);
	topology_close(&m.t);
	return cpu >= 0 ? 0 : -1;
}
