/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IDLECTL_DOCTOR_H
#define IDLECTL_DOCTOR_H

/*
 * Between the parts of idlectl doctor: what the checks look at, and how they answer. A new check is a
 * function below and a row in the table of doctor_command.c.
 */
#include <stdbool.h>

#include "expect.h"
#include "isolation.h"
#include "sysroot.h"
#include "topology.h"

#define NB(array) (sizeof(array) / sizeof((array)[0]))

#define SPECTRE_V2 SYS_CPU "/vulnerabilities/spectre_v2"
#define LOAD_MS 100 /* how long the sibling's load is watched */

/* What the first token of spectre_v2 means. */
struct mitigation {
	const char *token;
	bool kernel_ibrs;
	const char *words; /* follows "because" */
};

/* All that more than one check looks at. Read only once, since some of it takes time. */
struct machine {
	struct topology t;
	struct isolation isolation;
	struct irqs irqs;
	bool isolation_known, irqs_known;
	unsigned int cpu; /* the measured one */
	int sibling; /* on line; -1: there is none */
	char *spectre_v2; /* first token; NULL here and below: cannot be read */
	const struct mitigation *mitigation; /* NULL: not in the table */
	char *vendor, *flags; /* of the first CPU in /proc/cpuinfo */
	char *cmdline;
	char *driver; /* of cpuidle */
	char *stat[2]; /* /proc/stat, LOAD_MS apart; the second on a live machine only */
};

/* Fill in all but t, cpu and sibling; or free that. */
void machine_read_all(struct machine *m);
void machine_free(struct machine *m);

/* The SMT sibling of cpu that is on line, -1: none. set is a buffer. */
int machine_sibling(const struct topology *t, unsigned int cpu, hwloc_bitmap_t set);

/* The table prints the text, which is to be freed; scripts go by its beginning. */
struct verdict {
	enum expectation expectation;
	char *text;
};

struct verdict machine_judge(const struct machine *m);

/* Fill in spectre_v2 and mitigation. */
void read_mitigation(struct machine *m);

/* Whether the vendor is known to be Intel. */
bool is_intel(const struct machine *m);

enum level {
	LEVEL_OK,
	LEVEL_WARN, /* disturbs, or makes the effect harder to see */
	LEVEL_FAIL, /* no effect to see, or no measurement to trust */
	LEVEL_SKIP, /* a file is missing, or it does not apply */
};

struct finding {
	enum level level;
	char *reason;
	char *remedy; /* NULL: none needed, or none known */
};

/* Make a finding; both texts become one line of ASCII, whatever the files hold that they cite. */
struct finding finding(enum level level, const char *remedy, const char *fmt, ...)
		__attribute__((format(printf, 3, 4)));

#define OK(...) finding(LEVEL_OK, NULL, __VA_ARGS__)
#define WARN(remedy, ...) finding(LEVEL_WARN, remedy, __VA_ARGS__)
#define FAIL(remedy, ...) finding(LEVEL_FAIL, remedy, __VA_ARGS__)
#define SKIP(...) finding(LEVEL_SKIP, NULL, __VA_ARGS__)
#define NOT_READ(path) SKIP("%s cannot be read", path)
#define NO_SIBLING() SKIP("the measured CPU has no SMT sibling on line")

/* The checks: doctor_effect.c */
struct finding check_topology(const struct machine *m);
struct finding check_spectre_v2(const struct machine *m);
struct finding check_retbleed(const struct machine *m);
struct finding check_vendor(const struct machine *m);
struct finding check_smt(const struct machine *m);
struct finding check_idle_driver(const struct machine *m);
struct finding check_idle_governor(const struct machine *m);
struct finding check_idle_states(const struct machine *m);
struct finding check_resume_latency(const struct machine *m);
struct finding check_max_cstate(const struct machine *m);
struct finding check_idle_parameter(const struct machine *m);
struct finding check_ibrs_off(const struct machine *m);
struct finding check_kernel_version(const struct machine *m);
struct finding check_module(const struct machine *m);

/* The checks: doctor_noise.c */
struct finding check_sibling_load(const struct machine *m);
struct finding check_sibling_irqs(const struct machine *m);
struct finding check_measured_irqs(const struct machine *m);
struct finding check_isolation(const struct machine *m);
struct finding check_nohz_full(const struct machine *m);
struct finding check_rcu_nocbs(const struct machine *m);
struct finding check_cpufreq_governor(const struct machine *m);
struct finding check_turbo(const struct machine *m);
struct finding check_epp(const struct machine *m);
struct finding check_tsc(const struct machine *m);
struct finding check_tsc_drift(const struct machine *m);
struct finding check_clocksource(const struct machine *m);
struct finding check_hypervisor(const struct machine *m);
struct finding check_steal(const struct machine *m);
struct finding check_hugepages(const struct machine *m);
struct finding check_nic_numa(const struct machine *m);
struct finding check_nmi_watchdog(const struct machine *m);
struct finding check_thp(const struct machine *m);
struct finding check_lockdown(const struct machine *m);
struct finding check_secure_boot(const struct machine *m);
struct finding check_daemons(const struct machine *m);
struct finding check_journal(const struct machine *m);
struct finding check_resctrl(const struct machine *m);

#endif
