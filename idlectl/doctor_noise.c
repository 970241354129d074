/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a measurement needs, of whatever: two CPUs in peace, steady clocks, memory, nobody who meddles.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timex.h>

#include "doctor.h"
#include "journal.h"

#define CLOCKSOURCE "/sys/devices/system/clocksource/clocksource0"
#define HUGEPAGES "/sys/kernel/mm/hugepages"
#define THP "/sys/kernel/mm/transparent_hugepage/enabled"
#define LOCKDOWN "/sys/kernel/security/lockdown"
#define NMI_WATCHDOG "/proc/sys/kernel/nmi_watchdog"
#define SCHEMATA "/sys/fs/resctrl/schemata"
#define EFIVARS "/sys/firmware/efi/efivars"

#define LOAD_MAX 20 /* percent; one tick of /proc/stat is already 10 of LOAD_MS */
#define SHIFT_PPM 16 /* struct timex counts in 2^-16 ppm */
#define DRIFT_MAX 100 /* ppm; a time daemon corrects up to 500, crystals are within some tens */
#define IRQS_NAMED 4

/* ---- parsing ---- */

/* Whether word is one of the space-separated words of text. */
static bool
has_word(const char *text, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = text; (at = strstr(at, word)) != NULL; at += len)
		if ((at == text || at[-1] == ' ') && (at[len] == ' ' || at[len] == '\0'))
			return true;
	return false;
}

/* The word in brackets of files that list choices; NULL where there is none. */
static char *
chosen(const char *text)
{
	const char *open = strchr(text, '['), *close = open == NULL ? NULL : strchr(open, ']');

	return close == NULL ? NULL : sys_format("%.*s", (int)(close - open - 1), open + 1);
}

/* In ticks, since the boot. */
struct cpu_time {
	uint64_t all, idle, steal;
};

/* The cpuN line of /proc/stat: user nice system idle iowait irq softirq steal. */
static bool
read_time(struct cpu_time *time, const char *stat, unsigned int cpu)
{
	unsigned long long v[8];
	char *name = sys_format("\ncpu%u ", cpu);
	const char *line = stat == NULL ? NULL : strstr(stat, name);
	size_t len = strlen(name);

	free(name);
	if (line == NULL ||
			sscanf(line + len, "%llu %llu %llu %llu %llu %llu %llu %llu", &v[0], &v[1],
					&v[2], &v[3], &v[4], &v[5], &v[6], &v[7]) != 8)
		return false;
	*time = (struct cpu_time){ .idle = v[3] + v[4], .steal = v[7] };
	for (size_t i = 0; i < NB(v); i++)
		time->all += v[i];
	return true;
}

/* The NUMA node of a CPU, -1 where hwloc knows none. */
static int
cpu_node(const struct topology *t, unsigned int cpu)
{
	hwloc_obj_t node = NULL;

	while ((node = hwloc_get_next_obj_by_type(t->hwloc, HWLOC_OBJ_NUMANODE, node)) != NULL)
		if (hwloc_bitmap_isset(node->cpuset, cpu))
			return (int)node->os_index;
	return -1;
}
/* ---- the peace of the two CPUs ---- */

struct finding
check_sibling_load(const struct machine *m)
{
	struct cpu_time before, after;
	unsigned int busy;

	if (m->sibling < 0)
		return NO_SIBLING();
	if (!read_time(&before, m->stat[0], (unsigned int)m->sibling))
		return SKIP("/proc/stat has no line of CPU %d", m->sibling);
	if (!read_time(&after, m->stat[1], (unsigned int)m->sibling))
		return SKIP("the load takes two readings of /proc/stat, a recorded machine has one");
	if (after.all <= before.all || after.idle < before.idle)
		return SKIP("CPU %d's line of /proc/stat does not move", m->sibling);
	busy = (unsigned int)(100 - 100 * (after.idle - before.idle) / (after.all - before.all));
	if (busy >= LOAD_MAX)
		return WARN("find what runs there (ps -eLo psr,pid,comm) and move it",
				"CPU %d was busy for %u %% of %d ms", m->sibling, busy, LOAD_MS);
	return OK("CPU %d was busy for %u %% of %d ms", m->sibling, busy, LOAD_MS);
}

/* The first interrupts that are delivered to cpu, as "24 (eth0-rx), 25 (eth0-tx)". */
static char *
name_irqs(const struct irqs *irqs, unsigned int cpu)
{
	char *all = sys_format("%s", ""), *longer;
	int nb = 0;

	for (size_t i = 0; i < irqs->nb; i++) {
		if (!hwloc_bitmap_isset(irqs->at[i].cpus, cpu))
			continue;
		if (nb++ == IRQS_NAMED) {
			longer = sys_format("%s, ...", all);
			free(all);
			return longer;
		}
		longer = sys_format("%s%s%d (%.30s)", all, nb == 1 ? "" : ", ", irqs->at[i].number,
				irqs->at[i].name);
		free(all);
		all = longer;
	}
	return all;
}

static struct finding
irqs_of(const struct machine *m, unsigned int cpu)
{
	hwloc_bitmap_t set = hwloc_bitmap_alloc();
	size_t nb;
	char *names;
	struct finding f;

	if (set == NULL)
		abort();
	hwloc_bitmap_only(set, cpu);
	nb = irqs_count(&m->irqs, set);
	hwloc_bitmap_free(set);
	if (nb == 0)
		return OK("no device interrupt is delivered to CPU %u", cpu);
	names = name_irqs(&m->irqs, cpu);
	f = WARN("write other CPUs to /proc/irq/N/smp_affinity_list, or boot with isolcpus=managed_irq,...",
			"%zu device interrupt%s delivered to CPU %u: %s", nb,
			nb == 1 ? " is" : "s are", cpu, names);
	free(names);
	return f;
}

struct finding
check_sibling_irqs(const struct machine *m)
{
	if (m->sibling < 0)
		return NO_SIBLING();
	return m->irqs_known ? irqs_of(m, (unsigned int)m->sibling) : NOT_READ("/proc/irq");
}

struct finding
check_measured_irqs(const struct machine *m)
{
	return m->irqs_known ? irqs_of(m, m->cpu) : NOT_READ("/proc/irq");
}

/* The measured CPU and its sibling, without those in a and b (may be NULL). As a list; "": none. */
static char *
pair_without(const struct machine *m, hwloc_const_bitmap_t a, hwloc_const_bitmap_t b)
{
	hwloc_bitmap_t left = hwloc_bitmap_alloc();
	char *list = NULL;

	if (left == NULL)
		abort();
	hwloc_bitmap_set(left, m->cpu);
	if (m->sibling >= 0)
		hwloc_bitmap_set(left, (unsigned int)m->sibling);
	if (a != NULL)
		hwloc_bitmap_andnot(left, left, a);
	if (b != NULL)
		hwloc_bitmap_andnot(left, left, b);
	if (hwloc_bitmap_list_asprintf(&list, left) < 0)
		abort();
	hwloc_bitmap_free(left);
	return list;
}

struct finding
check_isolation(const struct machine *m)
{
	char *open, *pair, *remedy;
	struct finding f;

	if (!m->isolation_known)
		return NOT_READ(SYS_CPU "/isolated");
	open = pair_without(m, m->isolation.isolcpus, m->isolation.partitions);
	pair = pair_without(m, NULL, NULL);
	remedy = sys_format("boot with isolcpus=%s, or put both into an isolated cpuset partition",
			pair);
	if (open[0] == '\0')
		f = OK("CPU %s: the scheduler puts nothing there by itself", pair);
	else
		f = WARN(remedy,
				"CPU %s: neither isolcpus= nor a cpuset partition keeps tasks away",
				open);
	free(remedy);
	free(pair);
	free(open);
	return f;
}

struct finding
check_nohz_full(const struct machine *m)
{
	if (!sys_exists(SYS_CPU "/nohz_full"))
		return NOT_READ(SYS_CPU "/nohz_full");
	if (!hwloc_bitmap_isset(m->isolation.nohz_full, m->cpu))
		return WARN("boot with nohz_full= of the measured CPU",
				"CPU %u takes the timer tick while it forwards", m->cpu);
	return OK("CPU %u takes no tick while one task runs", m->cpu);
}

struct finding
check_rcu_nocbs(const struct machine *m)
{
	if (m->cmdline == NULL)
		return NOT_READ("/proc/cmdline");
	if (!hwloc_bitmap_isset(m->isolation.rcu_nocbs, m->cpu))
		return WARN("boot with rcu_nocbs= of the measured CPU", "CPU %u runs RCU callbacks",
				m->cpu);
	return OK("CPU %u's RCU callbacks run elsewhere", m->cpu);
}

/* ---- clocks ---- */

struct finding
check_cpufreq_governor(const struct machine *m)
{
	char *governor = sys_read(SYS_CPU "/cpu%u/cpufreq/scaling_governor", m->cpu);
	struct finding f;

	if (governor == NULL)
		return SKIP("CPU %u has no cpufreq/scaling_governor", m->cpu);
	if (strcmp(governor, "performance") == 0)
		f = OK("performance");
	else
		f = WARN("cpupower frequency-set -g performance",
				"%.40s: the frequency follows the load", governor);
	free(governor);
	return f;
}

struct finding
check_turbo(const struct machine *m)
{
	uint64_t off, on;

	(void)m;
	if (sys_read_u64(&off, SYS_CPU "/intel_pstate/no_turbo"))
		on = off == 0 ? 1 : 0;
	else if (!sys_read_u64(&on, SYS_CPU "/cpufreq/boost"))
		return SKIP("neither intel_pstate/no_turbo nor cpufreq/boost can be read");
	if (on == 0)
		return OK("off");
	return WARN("write 1 to intel_pstate/no_turbo, or 0 to cpufreq/boost, in " SYS_CPU,
			"on: the frequency depends on what other CPUs do, the sibling's idle state included");
}

/*
 * A CPU whose files may be read although that interrupts it: any of a recorded machine, of a live one
 * the lowest that neither shares the measured core nor is isolated; -1: there is none.
 */
static int
quiet_cpu(const struct machine *m)
{
	hwloc_bitmap_t busy;
	int cpu;

	if (!sys_live())
		return (int)m->cpu;
	busy = hwloc_bitmap_dup(m->t.isolated);
	if (busy == NULL)
		abort();
	topology_add_core(&m->t, m->cpu, busy);
	hwloc_bitmap_andnot(busy, m->t.online, busy);
	cpu = hwloc_bitmap_first(busy);
	hwloc_bitmap_free(busy);
	return cpu;
}

/* intel_pstate answers by an RDMSR on the CPU that is asked about. */
struct finding
check_epp(const struct machine *m)
{
	int cpu = quiet_cpu(m);
	char *epp;
	struct finding f;

	if (cpu < 0)
		return SKIP("reading it would interrupt the measured CPU");
	epp = sys_read(SYS_CPU "/cpu%d/cpufreq/energy_performance_preference", cpu);
	if (epp == NULL)
		return SKIP("CPU %d has no cpufreq/energy_performance_preference", cpu);
	/* A number is a raw register value; 0 is the same as the word. */
	if (strcmp(epp, "performance") == 0 || strcmp(epp, "0") == 0)
		f = OK("performance (CPU %d's)", cpu);
	else
		f = WARN("write performance to the CPU's cpufreq/energy_performance_preference",
				"%.40s (CPU %d's): the hardware saves energy at the cost of speed",
				epp, cpu);
	free(epp);
	return f;
}

struct finding
check_tsc(const struct machine *m)
{
	static const char *const needed[] = { "constant_tsc", "nonstop_tsc" };

	if (m->flags == NULL)
		return SKIP("/proc/cpuinfo has no flags");
	for (size_t i = 0; i < NB(needed); i++)
		if (!has_word(m->flags, needed[i]))
			return FAIL("measure on a machine that has it",
					"the CPU has no %s: cycles are no measure of time",
					needed[i]);
	return OK("constant_tsc nonstop_tsc");
}

/* The kernel's clock is the TSC times a factor, which a time daemon (NTP) corrects: by how much, tells. */
struct finding
check_tsc_drift(const struct machine *m)
{
	struct timex now = { 0 };
	char *current = sys_read(CLOCKSOURCE "/current_clocksource");
	bool tsc = current != NULL && strcmp(current, "tsc") == 0;
	double ppm;

	(void)m;
	free(current);
	if (!sys_live())
		return SKIP("a recorded machine has no running clock");
	if (!tsc)
		return SKIP("the kernel's clock is not the TSC");
	if (adjtimex(&now) < 0)
		return SKIP("adjtimex: %s", strerror(errno));
	if ((now.status & STA_UNSYNC) != 0)
		return SKIP("no time daemon keeps the clock, so the drift is not known");
	ppm = (double)now.freq / (1 << SHIFT_PPM);
	if (fabs(ppm) > DRIFT_MAX)
		return WARN("compare cycles, not times, or find out why the time daemon corrects so much",
				"the clock is corrected by %+.1f ppm of the TSC's frequency as the kernel has it",
				ppm);
	return OK("the clock is corrected by %+.1f ppm of the TSC's frequency as the kernel has it",
			ppm);
}

/* The kernel takes a TSC that drifts or differs between CPUs off the list of what is available. */
struct finding
check_clocksource(const struct machine *m)
{
	char *current = sys_read(CLOCKSOURCE "/current_clocksource");
	char *available = sys_read(CLOCKSOURCE "/available_clocksource");
	struct finding f;

	(void)m;
	if (current == NULL)
		f = NOT_READ(CLOCKSOURCE "/current_clocksource");
	else if (strcmp(current, "tsc") == 0)
		f = OK("tsc");
	else if (available != NULL && has_word(available, "tsc"))
		f = WARN("write tsc to " CLOCKSOURCE "/current_clocksource",
				"%.40s, though tsc is available", current);
	else
		f = FAIL("see what the kernel's log says of the TSC",
				"%.40s: the kernel has rejected the TSC, or has none", current);
	free(available);
	free(current);
	return f;
}

/* ---- guests ---- */

struct finding
check_hypervisor(const struct machine *m)
{
	if (m->flags == NULL)
		return SKIP("/proc/cpuinfo has no flags");
	if (has_word(m->flags, "hypervisor"))
		return WARN("measure on bare metal",
				"this is a guest: its siblings need not be siblings, its idle states not the hardware's");
	return OK("none");
}

struct finding
check_steal(const struct machine *m)
{
	struct cpu_time time;

	if (!read_time(&time, m->stat[0], m->cpu))
		return SKIP("/proc/stat has no line of CPU %u", m->cpu);
	if (time.steal > 0)
		return WARN("measure on bare metal, or on a CPU of its own",
				"%.2f %% of CPU %u's time since the boot was given to others",
				100.0 * (double)time.steal / (double)time.all, m->cpu);
	return OK("nothing of CPU %u's time was given to others", m->cpu);
}

/* ---- memory, devices, the rest of the system ---- */

/* Huge pages in kB, of all sizes. */
static void
add_hugepages(const char *dir, uint64_t *all, uint64_t *unused)
{
	char **sizes = sys_list("%s", dir);

	*all = 0;
	*unused = 0;
	for (char **size = sizes; *size != NULL; size++) {
		uint64_t nr = 0, nr_free = 0;
		unsigned long kb;

		if (sscanf(*size, "hugepages-%lukB", &kb) != 1)
			continue;
		sys_read_u64(&nr, "%s/%s/nr_hugepages", dir, *size);
		sys_read_u64(&nr_free, "%s/%s/free_hugepages", dir, *size);
		*all += nr * kb;
		*unused += nr_free * kb;
	}
	sys_free_list(sizes);
}

struct finding
check_hugepages(const struct machine *m)
{
	const char *remedy = "dpdk-hugepages.py --setup 1G, on the measured CPU's node";
	int node = cpu_node(&m->t, m->cpu);
	char *dir = sys_format("/sys/devices/system/node/node%d/hugepages", node);
	bool per_node = sys_exists("%s", dir);
	const char *where = per_node ? " on the measured CPU's node" : "";
	uint64_t all, unused;

	if (!per_node && !sys_exists(HUGEPAGES)) {
		free(dir);
		return NOT_READ(HUGEPAGES);
	}
	add_hugepages(per_node ? dir : HUGEPAGES, &all, &unused);
	free(dir);
	if (all == 0)
		return WARN(remedy, "no huge pages%s", where);
	if (unused == 0)
		return WARN(remedy, "all %llu MB of huge pages%s are taken",
				(unsigned long long)all / 1024, where);
	return OK("%llu of %llu MB of huge pages%s are free", (unsigned long long)unused / 1024,
			(unsigned long long)all / 1024, where);
}

/* What network devices of known place there are, and one of each kind. */
struct nics {
	int node; /* the measured CPU's */
	int nb_here, nb_elsewhere;
	char *here, *elsewhere;
};

static void
add_nic(struct nics *nics, const char *name, const char *dir)
{
	char *text = sys_read("%s/numa_node", dir);
	/* -1 where the firmware does not tell. */
	long node = text == NULL ? -1 : strtol(text, NULL, 10);
	bool here = node == nics->node;
	char **first = here ? &nics->here : &nics->elsewhere;

	free(text);
	if (node < 0)
		return;
	if (here)
		nics->nb_here++;
	else
		nics->nb_elsewhere++;
	if (*first == NULL)
		*first = sys_format("%s", name);
}

/* Those that the kernel drives, and, for DPDK, those that it does not. */
static void
find_nics(struct nics *nics)
{
	char **names = sys_list("/sys/class/net"), **addresses = sys_list("/sys/bus/pci/devices");

	for (char **name = names; *name != NULL; name++) {
		char *dir = sys_format("/sys/class/net/%s/device", *name);

		add_nic(nics, *name, dir);
		free(dir);
	}
	for (char **address = addresses; *address != NULL; address++) {
		char *dir = sys_format("/sys/bus/pci/devices/%s", *address);
		char *class = sys_read("%s/class", dir);

		/* PCI's base class 2: network controllers */
		if (class != NULL && strncmp(class, "0x02", 4) == 0 && !sys_exists("%s/net", dir))
			add_nic(nics, *address, dir);
		free(class);
		free(dir);
	}
	sys_free_list(addresses);
	sys_free_list(names);
}

struct finding
check_nic_numa(const struct machine *m)
{
	struct nics nics = { .node = cpu_node(&m->t, m->cpu) };
	struct finding f;

	find_nics(&nics);
	if (nics.nb_here + nics.nb_elsewhere == 0)
		f = SKIP("no network device tells its NUMA node");
	else if (nics.nb_here == 0)
		f = WARN("measure on a CPU of the NIC's node, or with ports that need no NIC",
				"no network device is on node %d, CPU %u's (%.40s is not)",
				nics.node, m->cpu, nics.elsewhere);
	else
		f = OK("%d of %d network devices on node %d, CPU %u's: %.40s%s", nics.nb_here,
				nics.nb_here + nics.nb_elsewhere, nics.node, m->cpu, nics.here,
				nics.nb_here > 1 ? ", ..." : "");
	free(nics.here);
	free(nics.elsewhere);
	return f;
}

struct finding
check_nmi_watchdog(const struct machine *m)
{
	uint64_t on;

	(void)m;
	if (!sys_read_u64(&on, NMI_WATCHDOG))
		return NOT_READ(NMI_WATCHDOG);
	if (on != 0)
		return WARN("sysctl kernel.nmi_watchdog=0",
				"on: interrupts every CPU, and takes a performance counter");
	return OK("off");
}

struct finding
check_thp(const struct machine *m)
{
	char *text = sys_read(THP), *mode = text == NULL ? NULL : chosen(text);
	struct finding f;

	(void)m;
	if (mode == NULL)
		f = NOT_READ(THP);
	else if (strcmp(mode, "always") == 0)
		f = WARN("write madvise to " THP,
				"always: khugepaged moves memory and flushes TLBs at any time");
	else
		f = OK("%.20s", mode);
	free(mode);
	free(text);
	return f;
}

struct finding
check_lockdown(const struct machine *m)
{
	char *text = sys_read(LOCKDOWN), *mode = text == NULL ? NULL : chosen(text);
	struct finding f;

	(void)m;
	if (mode == NULL)
		f = NOT_READ(LOCKDOWN);
	else if (strcmp(mode, "none") == 0)
		f = OK("none");
	else
		f = WARN("sign sibidle.ko; leave SMIs uncounted, or boot without lockdown",
				"%.20s: unsigned modules and /dev/cpu/*/msr are refused", mode);
	free(mode);
	free(text);
	return f;
}

/* A variable is four bytes of attributes, then its value; here one byte. -1: cannot be read. */
static int
secure_boot(void)
{
	char **names = sys_list(EFIVARS);
	unsigned char bytes[5];
	int value = -1;

	for (char **name = names; *name != NULL && value < 0; name++) {
		char *path;
		FILE *f;

		if (strncmp(*name, "SecureBoot-", 11) != 0)
			continue;
		path = sys_path(EFIVARS "/%s", *name);
		f = fopen(path, "re");
		if (f != NULL && fread(bytes, 1, sizeof(bytes), f) == sizeof(bytes))
			value = bytes[sizeof(bytes) - 1];
		if (f != NULL)
			fclose(f);
		free(path);
	}
	sys_free_list(names);
	return value;
}

struct finding
check_secure_boot(const struct machine *m)
{
	int on = secure_boot();

	(void)m;
	if (on < 0)
		return SKIP("no SecureBoot variable in " EFIVARS);
	if (on != 0)
		return WARN("sign sibidle.ko with a key that is enrolled (mokutil --import)",
				"on: the kernel loads signed modules only");
	return OK("off");
}

/* By their comm, which the kernel cuts to 15 characters. */
static const struct {
	const char *comm;
	const char *name;
	const char *does;
} daemons[] = {
	{ "tuned", "tuned", "sets governors, latency limits and affinities" },
	{ "irqbalance", "irqbalance", "moves interrupts" },
	{ "thermald", "thermald", "limits frequencies" },
	{ "power-profiles-", "power-profiles-daemon", "sets governors and turbo" },
	{ "tlp", "tlp", "sets governors and turbo" },
	{ "auto-cpufreq", "auto-cpufreq", "sets governors and turbo" },
};

static struct finding
name_daemons(const bool *runs)
{
	char *all = NULL;
	struct finding f;

	for (size_t i = 0; i < NB(daemons); i++) {
		char *longer;

		if (!runs[i])
			continue;
		longer = sys_format("%s%s%s %s", all != NULL ? all : "", all != NULL ? "; " : "",
				daemons[i].name, daemons[i].does);
		free(all);
		all = longer;
	}
	if (all == NULL)
		return OK("none runs that changes what is measured");
	f = WARN("stop it for the time of the measurement (systemctl stop)", "%s", all);
	free(all);
	return f;
}

struct finding
check_daemons(const struct machine *m)
{
	char **pids = sys_list("/proc");
	bool runs[NB(daemons)] = { false };
	size_t nb_processes = 0;

	(void)m;
	for (char **pid = pids; *pid != NULL; pid++) {
		char *comm = isdigit((unsigned char)**pid) ? sys_read("/proc/%s/comm", *pid) : NULL;

		nb_processes += comm != NULL ? 1 : 0;
		for (size_t i = 0; comm != NULL && i < NB(daemons); i++)
			if (strcmp(comm, daemons[i].comm) == 0)
				runs[i] = true;
		free(comm);
	}
	sys_free_list(pids);
	if (nb_processes == 0)
		return NOT_READ("/proc/*/comm");
	return name_daemons(runs);
}

struct finding
check_journal(const struct machine *m)
{
	struct lock_owner owner;
	struct finding f;
	char *who;

	(void)m;
	if (journal_locked(&owner))
		return WARN("idlectl restore, unless that measures",
				"process %d (%.60s) holds a scenario", (int)owner.pid, owner.who);
	if (!journal_leftover(&who))
		return OK("nothing is left to put back");
	f = WARN("idlectl restore", "%.100s has ended and left its changes", who);
	free(who);
	return f;
}

/* Whether a line of schemata, "MB:0=100;1=50", holds a number below 100 (percent). */
static bool
throttles(const char *line)
{
	line += strspn(line, " ");
	if (strncmp(line, "MB:", 3) != 0)
		return false;
	while ((line = strchr(line, '=')) != NULL)
		if (strtoul(++line, NULL, 10) < 100)
			return true;
	return false;
}

struct finding
check_resctrl(const struct machine *m)
{
	char *text = sys_read(SCHEMATA), *rest = text, *line;
	struct finding f = { .reason = NULL };

	(void)m;
	if (text == NULL)
		return NOT_READ(SCHEMATA);
	while (f.reason == NULL && (line = strsep(&rest, "\n")) != NULL)
		if (throttles(line))
			f = WARN("write MB:...=100 to " SCHEMATA,
					"memory bandwidth is throttled: %.60s",
					line + strspn(line, " "));
	if (f.reason == NULL)
		f = OK("memory bandwidth is not throttled");
	free(text);
	return f;
}
