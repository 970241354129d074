/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the effect needs: IBRS set in the kernel, a sibling, and an idle driver that leaves it set.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

#define RETBLEED SYS_CPU "/vulnerabilities/retbleed"

/*
 * The tokens of arch/x86/kernel/cpu/bugs.c, from Linux 4.15 on, and of CPUs that are not affected.
 * Distributions have others; their meaning is not guessed at.
 */
#define EIBRS "enhanced IBRS is in use, with which nothing is lost in idle"
#define RETPOLINES "retpolines are in use, and IBRS is not set in the kernel"
#define LFENCES "LFENCE at indirect branches is in use, and IBRS is not set in the kernel"
#define NOTHING "there is no full spectre_v2 mitigation, and IBRS is not set in the kernel"

static const struct mitigation mitigations[] = {
	{ "Mitigation: IBRS", true, "kernel IBRS is in use" },
	{ "Mitigation: Enhanced IBRS", false, EIBRS },
	{ "Mitigation: Enhanced IBRS + LFENCE", false, EIBRS },
	{ "Mitigation: Enhanced IBRS + Retpolines", false, EIBRS },
	{ "Mitigation: Enhanced / Automatic IBRS", false, EIBRS },
	{ "Mitigation: Enhanced / Automatic IBRS + LFENCE", false, EIBRS },
	{ "Mitigation: Enhanced / Automatic IBRS + Retpolines", false, EIBRS },
	{ "Vulnerable: eIBRS with unprivileged eBPF", false, EIBRS },
	{ "Vulnerable: eIBRS+LFENCE with unprivileged eBPF and SMT", false, EIBRS },
	{ "Vulnerable: Unprivileged eBPF enabled", false, EIBRS },
	{ "Mitigation: Retpolines", false, RETPOLINES },
	{ "Mitigation: Full generic retpoline", false, RETPOLINES },
	{ "Mitigation: Full AMD retpoline", false, RETPOLINES },
	{ "Vulnerable: Minimal generic ASM retpoline", false, NOTHING },
	{ "Vulnerable: Minimal AMD ASM retpoline", false, NOTHING },
	{ "Mitigation: LFENCE", false, LFENCES },
	{ "Vulnerable: LFENCE", false, LFENCES },
	{ "Vulnerable", false, NOTHING },
	{ "Not affected", false, "the CPU is not affected by spectre_v2, and IBRS is not set" },
};

/* ---- parsing ---- */

/* What is in front of ';' (kernels of today) or ',' (older ones). */
static char *
first_token(const char *text)
{
	int len = (int)strcspn(text, ";,\n");

	while (len > 0 && text[len - 1] == ' ')
		len--;
	return sys_format("%.*s", len, text);
}

void
read_mitigation(struct machine *m)
{
	char *text = sys_read(SPECTRE_V2);

	if (text == NULL)
		return;
	m->spectre_v2 = one_line(first_token(text));
	free(text);
	for (size_t i = 0; i < NB(mitigations); i++)
		if (strcmp(m->spectre_v2, mitigations[i].token) == 0)
			m->mitigation = &mitigations[i];
}

/* The kernel takes - and _ in the name of a parameter for the same. */
static bool
same_parameter(const char *word, const char *name, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (word[i] != name[i] && !(word[i] == '-' && name[i] == '_'))
			return false;
	return word[len] == '=';
}

/*
 * The value of the last name=value on the kernel's command line, in memory that the caller frees; NULL
 * where there is none. What follows "--" is for init.
 */
static char *
parameter(const char *cmdline, const char *name)
{
	const char *value = NULL;
	size_t len = strlen(name);

	for (const char *word = cmdline; word != NULL && *word != '\0';) {
		size_t size = strcspn(word, " ");

		if (size == 2 && strncmp(word, "--", 2) == 0)
			break;
		if (size > len && same_parameter(word, name, len))
			value = word + len + 1;
		word += size;
		word += strspn(word, " ");
	}
	return value == NULL ? NULL : sys_format("%.*s", (int)strcspn(value, " "), value);
}

/* As the module has it, else as it was asked for; NULL: neither is known. */
static char *
module_parameter(const struct machine *m, const char *module, const char *name)
{
	char *full, *value = sys_read("/sys/module/%s/parameters/%s", module, name);

	if (value != NULL)
		return value;
	full = sys_format("%s.%s", module, name);
	value = parameter(m->cmdline, full);
	free(full);
	return value;
}

/* ---- checks ---- */

bool
is_intel(const struct machine *m)
{
	return m->vendor != NULL && strcmp(m->vendor, "GenuineIntel") == 0;
}

struct finding
check_topology(const struct machine *m)
{
	if (sys_live() && !hwloc_topology_is_thissystem(m->t.hwloc))
		return WARN("leave --topology and hwloc's environment variables out",
				"the topology is of another machine than all else");
	return OK("%d CPUs on line", hwloc_bitmap_weight(m->t.online));
}

struct finding
check_spectre_v2(const struct machine *m)
{
	if (m->spectre_v2 == NULL)
		return NOT_READ(SPECTRE_V2);
	if (m->mitigation == NULL)
		return WARN("have a look whether the kernel sets IBRS at its entry",
				"\"%.80s\" is not known here", m->spectre_v2);
	if (m->mitigation->kernel_ibrs)
		return OK("%s", m->mitigation->words);
	return FAIL(m->vendor != NULL && !is_intel(m)
					? "measure on an Intel CPU, kernel IBRS is for these only"
					: "boot with spectre_v2=ibrs",
			"\"%s\": %s", m->spectre_v2, m->mitigation->words);
}

struct finding
check_retbleed(const struct machine *m)
{
	char *text = sys_read(RETBLEED), *token;
	struct finding f;

	(void)m;
	if (text == NULL)
		return NOT_READ(RETBLEED);
	token = first_token(text);
	if (strcmp(token, "Mitigation: IBRS") == 0)
		f = OK("kernel IBRS is the mitigation");
	else if (strncmp(token, "Vulnerable", 10) == 0)
		f = WARN("boot without retbleed=off and mitigations=off",
				"\"%.80s\": not mitigated", token);
	else
		f = OK("\"%.80s\"", token);
	free(token);
	free(text);
	return f;
}

struct finding
check_vendor(const struct machine *m)
{
	if (m->vendor == NULL)
		return SKIP("/proc/cpuinfo names no vendor");
	if (!is_intel(m))
		return FAIL("measure on an Intel CPU",
				"%.40s: the kernel has IBRS at its entry for Intel only",
				m->vendor);
	return OK("%s", m->vendor);
}

/* Why there is no sibling, by smt/control. */
static const struct {
	const char *control;
	const char *remedy;
} smt_remedies[] = {
	{ "on", "bring the sibling on line: write 1 to its online file in " SYS_CPU },
	{ "off", "write on to " SYS_CPU "/smt/control" },
	{ "forceoff", "boot without nosmt=force and mitigations=...,nosmt" },
	{ "notsupported", "switch hyper-threading on in the firmware, or take another CPU" },
};

struct finding
check_smt(const struct machine *m)
{
	const char *remedy = "measure a CPU that has an SMT sibling on line";
	char *control;
	struct finding f;

	if (m->sibling >= 0)
		return OK("CPUs %u and %d are threads of one core", m->cpu, m->sibling);
	control = sys_read(SYS_CPU "/smt/control");
	for (size_t i = 0; control != NULL && i < NB(smt_remedies); i++)
		if (strcmp(control, smt_remedies[i].control) == 0)
			remedy = smt_remedies[i].remedy;
	f = FAIL(remedy, "CPU %u has no SMT sibling on line%s%.40s%s", m->cpu,
			control != NULL ? " (smt/control: " : "", control != NULL ? control : "",
			control != NULL ? ")" : "");
	free(control);
	return f;
}

struct finding
check_idle_driver(const struct machine *m)
{
	if (m->driver == NULL)
		return NOT_READ(SYS_CPU "/cpuidle/current_driver");
	if (strcmp(m->driver, "intel_idle") == 0)
		return OK("intel_idle");
	if (strcmp(m->driver, "none") == 0)
		return FAIL("boot without idle= and cpuidle.off=1; few guests have an idle driver",
				"there is no idle driver: a CPU that idles enters no idle state");
	return WARN(m->vendor != NULL && !is_intel(m)
					? "measure on an Intel CPU"
					: "boot without intel_idle.max_cstate=0 and idle=, on a CPU that intel_idle knows",
			"%.40s, not intel_idle: what it does with IBRS is not known, and keep and clear do not apply",
			m->driver);
}

struct finding
check_idle_governor(const struct machine *m)
{
	char *governor = sys_read(SYS_CPU "/cpuidle/current_governor");
	struct finding f;

	(void)m;
	if (governor == NULL)
		return NOT_READ(SYS_CPU "/cpuidle/current_governor");
	if (strcmp(governor, "haltpoll") == 0)
		f = WARN("write menu or teo to " SYS_CPU "/cpuidle/current_governor",
				"haltpoll spins for a while before it lets a CPU sleep");
	else
		f = OK("%.40s", governor);
	free(governor);
	return f;
}

/* The names of a CPU's idle states that are open to it, POLL excepted; NULL where none has a name. */
static char *
open_states(int cpu)
{
	char **states = sys_list(SYS_CPU "/cpu%d/cpuidle", cpu), *all = NULL;

	for (char **state = states; *state != NULL; state++) {
		char *name = sys_read(SYS_CPU "/cpu%d/cpuidle/%s/name", cpu, *state), *longer;
		uint64_t disabled = 0;
		bool closed;

		if (name == NULL)
			continue;
		sys_read_u64(&disabled, SYS_CPU "/cpu%d/cpuidle/%s/disable", cpu, *state);
		closed = disabled != 0 || strcmp(name, "POLL") == 0;
		longer = sys_format("%s%s%s", all != NULL ? all : "", closed ? "" : " ",
				closed ? "" : name);
		free(all);
		all = longer;
		free(name);
	}
	sys_free_list(states);
	return all;
}

struct finding
check_idle_states(const struct machine *m)
{
	char *open;
	struct finding f;

	if (m->sibling < 0)
		return NO_SIBLING();
	open = open_states(m->sibling);
	if (open == NULL)
		f = SKIP("CPU %d has no idle states", m->sibling);
	else if (open[0] == '\0')
		f = FAIL("write 0 to the disable files of its idle states",
				"CPU %d may only spin, all idle states are disabled", m->sibling);
	else
		f = OK("CPU %d may enter%.80s", m->sibling, open);
	free(open);
	return f;
}

/* Here 0 is no limit, and n/a the strictest: the opposite of what the numbers suggest. */
struct finding
check_resume_latency(const struct machine *m)
{
	const char *remedy = "write 0 to the sibling's power/pm_qos_resume_latency_us";
	char *limit;
	struct finding f;

	if (m->sibling < 0)
		return NO_SIBLING();
	limit = sys_read(SYS_CPU "/cpu%d/power/pm_qos_resume_latency_us", m->sibling);
	if (limit == NULL)
		f = SKIP("CPU %d has no pm_qos_resume_latency_us", m->sibling);
	else if (strcmp(limit, "0") == 0)
		f = OK("CPU %d may sleep as deep as it wants", m->sibling);
	else if (strcmp(limit, "n/a") == 0)
		f = FAIL(remedy, "CPU %d may only spin, its latency limit is n/a", m->sibling);
	else
		f = WARN(remedy, "CPU %d may take %.20s us at most to wake up", m->sibling, limit);
	free(limit);
	return f;
}

static struct finding
judge_max_cstate(const char *intel, const char *processor)
{
	if (intel == NULL && processor == NULL)
		return SKIP("neither intel_idle.max_cstate nor processor.max_cstate is known");
	if (intel == NULL)
		return OK("processor.max_cstate is %.20s, intel_idle is not there", processor);
	if (strcmp(intel, "0") == 0)
		return FAIL("boot without intel_idle.max_cstate=0",
				"intel_idle.max_cstate is 0, which keeps intel_idle out");
	if (strcmp(intel, "1") == 0)
		return OK("intel_idle.max_cstate is 1: idle CPUs stay in C1, where IBRS stays set");
	return OK("intel_idle.max_cstate is %.20s: hold one state (c1) in all scenarios, C6 may clear IBRS by itself",
			intel);
}

struct finding
check_max_cstate(const struct machine *m)
{
	char *intel = module_parameter(m, "intel_idle", "max_cstate");
	char *processor = module_parameter(m, "processor", "max_cstate");
	struct finding f = judge_max_cstate(intel, processor);

	free(intel);
	free(processor);
	return f;
}

struct finding
check_idle_parameter(const struct machine *m)
{
	char *idle = parameter(m->cmdline, "idle");
	struct finding f;

	if (m->cmdline == NULL)
		f = NOT_READ("/proc/cmdline");
	else if (idle == NULL)
		f = OK("no idle= on the kernel's command line");
	else
		f = FAIL("boot without idle=",
				"idle=%.20s on the kernel's command line keeps intel_idle out",
				idle);
	free(idle);
	return f;
}

struct finding
check_ibrs_off(const struct machine *m)
{
	char *off = module_parameter(m, "intel_idle", "ibrs_off");
	struct finding f;

	if (off == NULL)
		f = SKIP("no intel_idle.ibrs_off (Linux 6.7 and later have it)");
	else if (strchr("Yy1", off[0]) != NULL)
		f = WARN("boot without intel_idle.ibrs_off",
				"intel_idle.ibrs_off is on: stock clears IBRS, only keep keeps it");
	else
		f = OK("intel_idle.ibrs_off is off");
	free(off);
	return f;
}

/* As in "6.1.0-57-amd64". A recorded machine's, so not uname(). */
static char *
kernel_release(void)
{
	char *release = sys_read("/proc/sys/kernel/osrelease"), *version;

	if (release != NULL)
		return release;
	version = sys_read("/proc/version"); /* "Linux version 6.1.0-57-amd64 (...) ..." */
	if (version != NULL && sscanf(version, "Linux version %ms", &release) != 1)
		release = NULL;
	free(version);
	return release;
}

/* Two things that kernels learnt: to clear IBRS in C6 while SMT is active, and on CPUs off line. */
struct finding
check_kernel_version(const struct machine *m)
{
	char *release = kernel_release();
	unsigned int major, minor;
	struct finding f;

	(void)m;
	if (release == NULL)
		return NOT_READ("/proc/sys/kernel/osrelease");
	if (sscanf(release, "%u.%u", &major, &minor) != 2)
		f = SKIP("\"%.60s\" is no version of Linux", release);
	else if (major < 6 || (major == 6 && minor < 1))
		f = WARN("take Linux 6.1 or later",
				"%.60s: whether C6 clears IBRS is not known here, a CPU off line keeps it set",
				release);
	else if (major == 6 && minor < 7)
		f = WARN("do not take offline for a control, or boot Linux 6.7 or later",
				"%.60s: C6 of Skylake-X clears IBRS while SMT is active, a CPU off line keeps it set",
				release);
	else
		f = OK("%.60s: C6 of Skylake-X clears IBRS while SMT is active, and so does a CPU off line",
				release);
	free(release);
	return f;
}

struct finding
check_module(const struct machine *m)
{
	char *version;
	struct finding f;

	(void)m;
	if (!sys_exists("/sys/module"))
		return NOT_READ("/sys/module");
	if (!sys_exists("/sys/module/sibidle"))
		return WARN("modprobe sibidle",
				"sibidle is not loaded: no keep, no clear, no counts");
	version = sys_read("/sys/module/sibidle/version");
	if (version == NULL)
		f = NOT_READ("/sys/module/sibidle/version");
	else if (strcmp(version, SIBFWD_VERSION) != 0)
		f = WARN("install program and module of one version",
				"sibidle is %.40s, idlectl " SIBFWD_VERSION, version);
	else
		f = OK("sibidle %s", version);
	free(version);
	return f;
}
