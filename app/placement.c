/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hwloc/glibc-sched.h>
#include <rte_lcore.h>

#include "placement.h"
#include "warn.h"

#define LCORE_MAX 128 /* RTE_MAX_LCORE of the distributions' DPDK */

/* What EAL's arguments say of lcores, before EAL has read them. */
struct lcore_map {
	bool given;
	int main; /* -1: the lowest lcore */
	hwloc_bitmap_t cpus[LCORE_MAX]; /* NULL: no such lcore */
};

static void
map_free(struct lcore_map *m)
{
	for (unsigned int i = 0; i < LCORE_MAX; i++)
		hwloc_bitmap_free(m->cpus[i]);
}

/* Parse "3", "1-4" or "(1,3-5)"; returns what follows, or NULL. */
static const char *
parse_set(const char *at, hwloc_bitmap_t set)
{
	bool group = *at == '(';

	if (group)
		at++;
	for (;;) {
		char *end;
		unsigned long first, last;

		while (*at == ' ')
			at++;
		if (*at < '0' || *at > '9')
			return NULL;
		first = last = strtoul(at, &end, 10);
		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		if (last < first || last > 65535)
			return NULL;
		hwloc_bitmap_set_range(set, (unsigned int)first, (int)last);
		at = end;
		while (*at == ' ')
			at++;
		if (!group)
			return at;
		if (*at == ')')
			return at + 1;
		if (*at++ != ',')
			return NULL;
	}
}

/* One item of -l or --lcores: lcores, with the CPUs they run on behind an @. */
static const char *
parse_item(struct lcore_map *m, const char *at)
{
	hwloc_bitmap_t lcores = hwloc_bitmap_alloc();
	hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
	bool grouped = *at == '(', mapped = false;
	unsigned int i;

	at = parse_set(at, lcores);
	if (at != NULL && *at == '@') {
		mapped = true;
		at = parse_set(at + 1, cpus);
	}
	if (at != NULL && hwloc_bitmap_last(lcores) >= LCORE_MAX)
		at = NULL;
	if (at == NULL)
		goto out;
	hwloc_bitmap_foreach_begin(i, lcores)
	{
		hwloc_bitmap_free(m->cpus[i]);
		m->cpus[i] = hwloc_bitmap_dup(mapped ? cpus : lcores);
		if (!mapped && !grouped)
			hwloc_bitmap_only(m->cpus[i], i);
	}
	hwloc_bitmap_foreach_end();
out:
	hwloc_bitmap_free(lcores);
	hwloc_bitmap_free(cpus);
	return at;
}

static int
parse_list(struct lcore_map *m, const char *text)
{
	const char *at = text;

	do {
		while (*at == ' ')
			at++;
		at = parse_item(m, at);
		if (at == NULL)
			return -1;
	} while (*at++ == ',');
	return at[-1] == '\0' ? 0 : -1;
}

static int
parse_mask(struct lcore_map *m, const char *text)
{
	hwloc_bitmap_t mask = hwloc_bitmap_alloc();
	char hex[LCORE_MAX / 4 + 4];
	unsigned int i;
	int rc;

	/* hwloc wants the prefix, EAL does not. */
	snprintf(hex, sizeof(hex), "%s%s", strncasecmp(text, "0x", 2) == 0 ? "" : "0x", text);
	rc = hwloc_bitmap_taskset_sscanf(mask, hex);
	if (rc == 0 && (hwloc_bitmap_last(mask) < 0 || hwloc_bitmap_last(mask) >= LCORE_MAX))
		rc = -1;
	if (rc == 0) {
		hwloc_bitmap_foreach_begin(i, mask)
		{
			m->cpus[i] = hwloc_bitmap_alloc();
			hwloc_bitmap_only(m->cpus[i], i);
		}
		hwloc_bitmap_foreach_end();
	}
	hwloc_bitmap_free(mask);
	return rc;
}

static int
parse_main(struct lcore_map *m, const char *text)
{
	m->main = atoi(text);
	return 0;
}

static const struct {
	const char *name;
	const char *shortest;
	int (*parse)(struct lcore_map *m, const char *text);
	bool lists; /* names lcores */
} eal_options[] = {
	{ "-l", "-l", parse_list, true },
	{ "-c", "-c", parse_mask, true },
	{ "--lcores", "--lc", parse_list, true },
	{ "--main-lcore", "--mai", parse_main, false },
};

/*
 * The value of an option at argv[i], in any of its forms; NULL: another option. EAL takes long
 * names shortened, down to the part that no other option of its has.
 */
static const char *
option_value(const char *name, size_t shortest, int argc, char *const argv[], int i)
{
	size_t len = strlen(name), typed = strcspn(argv[i], "=");

	if (name[1] != '-') {
		if (strncmp(argv[i], name, len) != 0)
			return NULL;
		if (argv[i][len] != '\0')
			return argv[i] + len;
	} else {
		if (typed < shortest || typed > len || strncmp(argv[i], name, typed) != 0)
			return NULL;
		if (argv[i][typed] == '=')
			return argv[i] + typed + 1;
	}
	return i + 1 < argc ? argv[i + 1] : NULL;
}

/* What this cannot parse is left to EAL, which knows its own grammar and complains. */
static int
map_read(struct lcore_map *m, int argc, char *const argv[], struct err *err)
{
	for (int i = 1; i < argc; i++)
		for (size_t k = 0; k < sizeof(eal_options) / sizeof(eal_options[0]); k++) {
			const char *value = option_value(eal_options[k].name,
					strlen(eal_options[k].shortest), argc, argv, i);

			if (value == NULL)
				continue;
			if (eal_options[k].parse(m, value) != 0)
				return err_set(err, EXIT_USAGE, "%s %s: not a list of lcores",
						eal_options[k].name, value);
			m->given |= eal_options[k].lists;
		}
	return 0;
}

static void
current_affinity(const struct topology *t, hwloc_bitmap_t set)
{
	if (!hwloc_topology_is_thissystem(t->hwloc) ||
			hwloc_get_cpubind(t->hwloc, set, HWLOC_CPUBIND_THREAD) != 0)
		hwloc_bitmap_copy(set, t->online);
}

/*
 * Choose CPUs that nobody asked for: measured ones from the isolated CPUs, else from the end
 * of the affinity mask, one a core as long as cores last; the controller on the first CPU
 * whose core is not measured.
 */
static int
choose(struct placement *p, unsigned int nb_cores, struct err *err)
{
	hwloc_bitmap_t mine = hwloc_bitmap_alloc(), cores = hwloc_bitmap_alloc();
	hwloc_bitmap_t free_cpus = hwloc_bitmap_alloc();
	int cpu, main_cpu;

	hwloc_bitmap_copy(mine, p->allowed);
	/* The controller keeps one CPU of the mask for itself, whatever happens. */
	main_cpu = hwloc_bitmap_first(mine);
	for (unsigned int i = 0; i < nb_cores; i++) {
		hwloc_bitmap_andnot(free_cpus, p->topology.isolated, cores);
		hwloc_bitmap_and(free_cpus, free_cpus, p->topology.open);
		if (hwloc_bitmap_iszero(free_cpus))
			hwloc_bitmap_andnot(free_cpus, mine, cores);
		hwloc_bitmap_clr(free_cpus, (unsigned int)main_cpu);
		if (hwloc_bitmap_iszero(free_cpus))
			hwloc_bitmap_andnot(free_cpus, mine, p->measured);
		hwloc_bitmap_clr(free_cpus, (unsigned int)main_cpu);
		cpu = hwloc_bitmap_last(free_cpus);
		if (cpu < 0)
			break;
		p->at[i] = (struct placed){ .lcore = i + 1, .cpu = (unsigned int)cpu };
		p->nb = i + 1;
		hwloc_bitmap_set(p->measured, (unsigned int)cpu);
		topology_add_core(&p->topology, (unsigned int)cpu, cores);
	}
	hwloc_bitmap_andnot(free_cpus, mine, cores);
	if (!hwloc_bitmap_iszero(free_cpus))
		main_cpu = hwloc_bitmap_first(free_cpus);
	p->main_lcore = 0;
	p->main_cpu = (unsigned int)main_cpu;
	hwloc_bitmap_only(p->main_cpus, p->main_cpu);
	hwloc_bitmap_free(mine);
	hwloc_bitmap_free(cores);
	hwloc_bitmap_free(free_cpus);
	if (p->nb < nb_cores)
		return err_set(err, EXIT_SKIPPED,
				"%u forwarding lcores and the main one need %u CPUs, this process may use %d%s",
				nb_cores, nb_cores + 1, hwloc_bitmap_weight(p->allowed),
				hwloc_bitmap_isequal(p->allowed, p->topology.online)
						? ""
						: ": its affinity mask is narrower than the machine");
	size_t used = (size_t)snprintf(
			p->eal_lcores, sizeof(p->eal_lcores), "--lcores=0@%u", p->main_cpu);
	for (unsigned int i = 0; i < p->nb && used < sizeof(p->eal_lcores); i++)
		used += (size_t)snprintf(p->eal_lcores + used, sizeof(p->eal_lcores) - used,
				",%u@%u", p->at[i].lcore, p->at[i].cpu);
	return 0;
}

static int
few_lcores(unsigned int nb_cores, unsigned int have, struct err *err)
{
	if (have == 0)
		return err_set(err, EXIT_USAGE,
				"one lcore only: the main lcore does not forward, give EAL two (-l 0,1)");
	return err_set(err, EXIT_USAGE,
			"--nb-cores=%u: EAL has %u lcores beside the main one, name more with -l",
			nb_cores, have);
}

/* Take the lcores that the user gave to EAL. */
static int
take_given(struct placement *p, const struct lcore_map *m, unsigned int nb_cores, struct err *err)
{
	int main_lcore = m->main;

	for (int i = 0; i < LCORE_MAX; i++) {
		int cpu;

		if (m->cpus[i] == NULL)
			continue;
		if (main_lcore < 0)
			main_lcore = i;
		cpu = hwloc_bitmap_first(m->cpus[i]);
		if (hwloc_bitmap_isset(p->topology.online, (unsigned int)cpu) &&
				!hwloc_bitmap_isset(p->topology.open, (unsigned int)cpu))
			return err_set(err, EXIT_FAILED,
					"CPU %d (of lcore %d) is not in this process's cpuset", cpu,
					i);
		if (!hwloc_bitmap_isset(p->topology.online, (unsigned int)cpu))
			return err_set(err, EXIT_FAILED,
					"CPU %d (of lcore %d) is off line or does not exist", cpu,
					i);
		if (i == main_lcore) {
			p->main_lcore = (unsigned int)i;
			p->main_cpu = (unsigned int)cpu;
			hwloc_bitmap_copy(p->main_cpus, m->cpus[i]);
			continue;
		}
		if (p->nb == nb_cores)
			continue;
		if (hwloc_bitmap_weight(m->cpus[i]) != 1)
			return err_set(err, EXIT_USAGE,
					"lcore %d may run on several CPUs: a measured lcore needs one",
					i);
		p->at[p->nb++] = (struct placed){ .lcore = (unsigned int)i,
			.cpu = (unsigned int)cpu };
		hwloc_bitmap_set(p->measured, (unsigned int)cpu);
	}
	return p->nb < nb_cores ? few_lcores(nb_cores, p->nb, err) : 0;
}

/* Siblings, housekeeping CPUs and what the controller shares, once the CPUs are known. */
static int
derive(struct placement *p, int sibling_cpu, struct err *err)
{
	hwloc_bitmap_t avoid = hwloc_bitmap_dup(p->measured);
	hwloc_bitmap_t cores = hwloc_bitmap_alloc(), core = hwloc_bitmap_alloc();
	int rc = 0;

	hwloc_bitmap_or(avoid, avoid, p->main_cpus);
	for (unsigned int i = 0; i < p->nb; i++) {
		struct placed *at = &p->at[i];

		topology_add_core(&p->topology, at->cpu, cores);
		at->sibling = sibling_cpu;
		if (sibling_cpu < 0)
			at->sibling = topology_closest(&p->topology, at->cpu, avoid, &at->relation);
		else if (!hwloc_bitmap_isset(p->topology.online, (unsigned int)sibling_cpu))
			rc = err_set(err, EXIT_FAILED,
					"--sibling=%d: that CPU is off line or does not exist",
					sibling_cpu);
		else if ((unsigned int)sibling_cpu == at->cpu)
			rc = err_set(err, EXIT_USAGE,
					"--sibling=%d: that is the measured CPU itself",
					sibling_cpu);
		else
			at->relation = topology_relation(
					&p->topology, at->cpu, (unsigned int)sibling_cpu);
		hwloc_bitmap_zero(core);
		topology_add_core(&p->topology, at->cpu, core);
		at->controller = hwloc_bitmap_intersects(core, p->main_cpus) ||
				(at->sibling >= 0 &&
						hwloc_bitmap_isset(p->main_cpus,
								(unsigned int)at->sibling));
	}
	/* The main lcore's CPUs are free for the others too, wherever the user put it. */
	hwloc_bitmap_or(core, p->allowed, p->main_cpus);
	hwloc_bitmap_andnot(p->housekeeping, core, cores);
	p->whole_core = !hwloc_bitmap_iszero(p->housekeeping);
	if (!p->whole_core)
		hwloc_bitmap_andnot(p->housekeeping, core, p->measured);
	hwloc_bitmap_free(avoid);
	hwloc_bitmap_free(cores);
	hwloc_bitmap_free(core);
	if (rc == 0)
		p->sibling_asked = sibling_cpu;
	return rc;
}

int
placement_plan(struct placement *p, int argc, char *const argv[], unsigned int nb_cores,
		int sibling_cpu, struct err *err)
{
	struct lcore_map map = { .main = -1 };
	int rc;

	memset(p, 0, sizeof(*p));
	if (topology_open(&p->topology, NULL, err) != 0)
		return -1;
	p->measured = hwloc_bitmap_alloc();
	p->housekeeping = hwloc_bitmap_alloc();
	p->allowed = hwloc_bitmap_alloc();
	p->main_cpus = hwloc_bitmap_alloc();
	current_affinity(&p->topology, p->allowed);
	rc = map_read(&map, argc, argv, err);
	if (rc == 0)
		rc = map.given ? take_given(p, &map, nb_cores, err) : choose(p, nb_cores, err);
	if (rc == 0)
		rc = derive(p, sibling_cpu, err);
	map_free(&map);
	return rc;
}

static int
set_affinity(pid_t tid, hwloc_const_bitmap_t cpus)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (int cpu = hwloc_bitmap_first(cpus); cpu >= 0 && cpu < CPU_SETSIZE;
			cpu = hwloc_bitmap_next(cpus, cpu))
		CPU_SET((size_t)cpu, &set);
	return sched_setaffinity(tid, sizeof(set), &set);
}

int
placement_restrict(const struct placement *p, struct err *err)
{
	if (hwloc_bitmap_iszero(p->housekeeping) ||
			!hwloc_topology_is_thissystem(p->topology.hwloc))
		return 0;
	if (set_affinity(0, p->housekeeping) != 0)
		return err_set(err, EXIT_FAILED, "cannot leave the measured CPU: %s",
				strerror(errno));
	return 0;
}

/* EAL's worker threads sit where their lcore is and sleep until they are launched. */
static bool
is_worker(pid_t tid)
{
	char path[64], name[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/comm", tid);
	f = fopen(path, "re");
	if (f == NULL)
		return true; /* it has ended */
	if (fgets(name, sizeof(name), f) == NULL)
		name[0] = '\0';
	fclose(f);
	return strstr(name, "worker") != NULL;
}

static bool
may_run_on(pid_t tid, hwloc_const_bitmap_t cpus)
{
	cpu_set_t set;

	if (sched_getaffinity(tid, sizeof(set), &set) != 0)
		return false;
	for (int cpu = hwloc_bitmap_first(cpus); cpu >= 0 && cpu < CPU_SETSIZE;
			cpu = hwloc_bitmap_next(cpus, cpu))
		if (CPU_ISSET((size_t)cpu, &set))
			return true;
	return false;
}

/* Move every thread but EAL's workers off the measured cores; warn where that fails. */
void
placement_clear_threads(const struct placement *p)
{
	hwloc_bitmap_t spared = hwloc_bitmap_dup(p->measured);
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;

	if (p->whole_core)
		for (unsigned int i = 0; i < p->nb; i++)
			topology_add_core(&p->topology, p->at[i].cpu, spared);
	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		pid_t tid = atoi(entry->d_name);

		if (tid <= 0 || is_worker(tid) || !may_run_on(tid, spared))
			continue;
		/* The main lcore stays where the user put it, if that is one CPU: said apart. */
		if (tid == getpid() && hwloc_bitmap_weight(p->main_cpus) == 1)
			continue;
		if (hwloc_bitmap_iszero(p->housekeeping) || set_affinity(tid, p->housekeeping) != 0)
			warn("a control thread of DPDK may run on the measured CPU");
	}
	if (dir != NULL)
		closedir(dir);
	hwloc_bitmap_free(spared);
}

static void
say_placement(const struct placement *p)
{
	for (unsigned int i = 0; i < p->nb; i++) {
		const struct placed *at = &p->at[i];

		if (at->sibling < 0)
			warn("CPU %u has no neighbour: there is no idle sibling to look at",
					at->cpu);
		else if (at->relation != RELATION_SMT)
			warn("CPU %u has no SMT sibling on line; CPU %d (%s) stands in for it",
					at->cpu, at->sibling, relation_word(at->relation));
		if (at->controller)
			warn("controller: the main lcore runs on CPU %u, %s", p->main_cpu,
					(int)p->main_cpu == at->sibling
							? "which is the sibling of the measured CPU"
							: "on the measured core");
	}
	if (!p->whole_core)
		warn("too few CPUs to keep everything else off the measured core");
}

/* The CPUs that DPDK mapped an lcore to. Returns the first. */
static unsigned int
cpus_of(unsigned int lcore, hwloc_bitmap_t cpus)
{
	rte_cpuset_t set = rte_lcore_cpuset(lcore);

	hwloc_bitmap_zero(cpus);
	for (unsigned int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set))
			hwloc_bitmap_set(cpus, cpu);
	return (unsigned int)hwloc_bitmap_first(cpus);
}

/* Take over the lcores that DPDK really made. */
static int
take_real(struct placement *p, unsigned int nb_cores, struct err *err)
{
	hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
	unsigned int lcore;
	int rc = 0;

	p->nb = 0;
	hwloc_bitmap_zero(p->measured);
	p->main_lcore = rte_get_main_lcore();
	p->main_cpu = cpus_of(p->main_lcore, p->main_cpus);
	RTE_LCORE_FOREACH_WORKER (lcore) {
		unsigned int cpu = cpus_of(lcore, cpus);

		if (p->nb == nb_cores || rc != 0)
			break;
		if (hwloc_bitmap_weight(cpus) != 1)
			rc = err_set(err, EXIT_USAGE,
					"lcore %u may run on several CPUs: a measured lcore needs one",
					lcore);
		p->at[p->nb++] = (struct placed){ .lcore = lcore, .cpu = cpu };
		hwloc_bitmap_set(p->measured, cpu);
	}
	hwloc_bitmap_free(cpus);
	if (rc == 0 && p->nb < nb_cores)
		rc = few_lcores(nb_cores, p->nb, err);
	return rc;
}

int
placement_verify(struct placement *p, unsigned int nb_cores, int sibling_cpu, struct err *err)
{
	if (take_real(p, nb_cores, err) != 0)
		return -1;
	if (derive(p, sibling_cpu, err) != 0)
		return -1;
	placement_clear_threads(p);
	say_placement(p);
	return 0;
}

int
placement_take(struct placement *p, const unsigned int *lcores, unsigned int nb, int sibling_cpu,
		struct err *err)
{
	struct placed at[PLACEMENT_MAX], before[PLACEMENT_MAX];
	unsigned int nb_before = p->nb;
	hwloc_bitmap_t cpus = hwloc_bitmap_alloc(), measured = hwloc_bitmap_alloc();
	int rc = nb <= PLACEMENT_MAX ? 0 : err_set(err, EXIT_USAGE, "too many lcores");
	struct err why;

	for (unsigned int i = 0; i < nb && rc == 0; i++) {
		unsigned int lcore = lcores[i], cpu;

		if (lcore == rte_get_main_lcore())
			rc = err_set(err, EXIT_USAGE,
					"lcore %u cannot forward: it is the main lcore", lcore);
		else if (lcore >= RTE_MAX_LCORE || !rte_lcore_is_enabled(lcore))
			rc = err_set(err, EXIT_USAGE, "lcore %u is not one of EAL's", lcore);
		if (rc != 0)
			break;
		cpu = cpus_of(lcore, cpus);
		if (hwloc_bitmap_weight(cpus) != 1)
			rc = err_set(err, EXIT_USAGE,
					"lcore %u may run on several CPUs: a measured lcore needs one",
					lcore);
		at[i] = (struct placed){ .lcore = lcore, .cpu = cpu };
		hwloc_bitmap_set(measured, cpu);
	}
	if (rc == 0) {
		memcpy(before, p->at, sizeof(before));
		hwloc_bitmap_copy(cpus, p->measured);
		p->nb = nb;
		memcpy(p->at, at, nb * sizeof(*at));
		hwloc_bitmap_copy(p->measured, measured);
		rc = derive(p, sibling_cpu, err);
		if (rc != 0) {
			p->nb = nb_before;
			memcpy(p->at, before, sizeof(before));
			hwloc_bitmap_copy(p->measured, cpus);
			derive(p, p->sibling_asked, &why);
		}
	}
	hwloc_bitmap_free(cpus);
	hwloc_bitmap_free(measured);
	return rc;
}

int
placement_derive(struct placement *p, int sibling_cpu, struct err *err)
{
	struct err why;

	if (derive(p, sibling_cpu, err) == 0)
		return 0;
	derive(p, p->sibling_asked, &why);
	return -1;
}

void
placement_print(const struct placement *p, FILE *out)
{
	for (unsigned int i = 0; i < p->nb; i++) {
		const struct placed *at = &p->at[i];

		fprintf(out, "measured    lcore %u on CPU %u", at->lcore, at->cpu);
		if (at->sibling >= 0)
			fprintf(out, ", sibling CPU %d (%s)", at->sibling,
					relation_word(at->relation));
		fprintf(out, "%s\n", at->controller ? ", controller beside it" : "");
	}
	fprintf(out, "controller  lcore %u on CPU %u\n", p->main_lcore, p->main_cpu);
}

void
placement_free(struct placement *p)
{
	hwloc_bitmap_free(p->measured);
	hwloc_bitmap_free(p->housekeeping);
	hwloc_bitmap_free(p->allowed);
	hwloc_bitmap_free(p->main_cpus);
	topology_close(&p->topology);
}
