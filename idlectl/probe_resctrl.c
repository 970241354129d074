/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * idlectl probe resctrl: what it costs to read the memory-bandwidth counters of all monitoring groups,
 * from a CPU of the domain and from one outside.
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mechanisms.h"
#include "probe_resctrl.h"
#include "sysroot.h"
#include "topology.h"

#define RESCTRL "/sys/fs/resctrl"
#define DOMAIN_PREFIX "mon_L3_"
#define DRY_FILE RESCTRL "/info/L3_MON/num_rmids" /* a constant: reads no counter */
#define READER_CYCLES "reader cycles"
#define MILLIONS "Mcycles"
#define PER_COUNTER "per counter"
#define CYCLES "cycles"

static const char *const files[] = { "mbm_local_bytes", "mbm_total_bytes" };
#define NB_FILES (sizeof(files) / sizeof(files[0]))

/* ---- arithmetic ---- */

/* A row of what is divided by by[i], or by 1e6 where by is NULL; what would be divided by 0 is left out. */
static void
add_divided(struct probe_report *r, const char *name, const char *metric, const char *unit,
		const struct resctrl_figures *f, const double *raw, const double *dry,
		const double *by)
{
	double *a = probe_alloc(f->n, sizeof(*a)), *b = probe_alloc(f->n, sizeof(*b));
	size_t n = 0;

	for (size_t i = 0; i < f->n; i++) {
		double divisor = by != NULL ? by[i] : 1e6;

		if (divisor == 0)
			continue;
		a[n] = raw[i] / divisor;
		b[n++] = dry[i] / divisor;
	}
	if (n > 0)
		report_add(r, name, metric, unit, a, b, n);
	if (n < f->n)
		report_note(r, "%s: %s is of %zu repeats: in the others no counter gave a number",
				name, metric, n);
	free(a);
	free(b);
}

void
resctrl_rows(struct probe_report *r, const char *name, const struct resctrl_figures *f)
{
	double *rate = probe_alloc(f->n, sizeof(*rate));

	for (size_t i = 0; i < f->n; i++)
		rate[i] = f->counters[i] * 1e9 / f->wall_ns[i];
	add_divided(r, name, READER_CYCLES, f->tsc ? "M TSC cycles" : MILLIONS, f, f->raw, f->dry,
			NULL);
	if (f->serving != NULL)
		add_divided(r, name, "serving CPU cycles", MILLIONS, f, f->serving, f->serving_dry,
				NULL);
	/* The cycles of reads that gave nothing are in it too: nothing published is like that. */
	add_divided(r, name, f->gaps ? "per number" : PER_COUNTER, f->tsc ? "TSC cycles" : CYCLES,
			f, f->raw, f->dry, f->counters);
	report_add(r, name, "read rate", "counters/s", rate, NULL, f->n);
	free(rate);
}

/* ---- published figures ---- */

#define EPYC "cpu=AMD EPYC 7B12&groups=250" /* two counters a group */
#define XEON "cpu=Intel Xeon Gold 6268CL&groups=190"

static const struct {
	const char *where;
	const char *reader; /* the end of the name of a row */
	bool amd, patched;
} published[] = {
	{ EPYC "&domain=local&patched=no", ", local", true, false },
	{ EPYC "&domain=local&patched=yes", ", local", true, true },
	{ EPYC "&domain=remote&patched=no", ", remote", true, false },
	{ EPYC "&domain=remote&patched=yes", ", remote", true, true },
	{ XEON "&domain=local&patched=no", ", local", false, false },
	{ XEON "&domain=local&patched=yes", ", local", false, true },
	{ XEON "&domain=remote&patched=no", ", remote", false, false },
	{ XEON "&domain=remote&patched=yes", ", remote", false, true },
};

/*
 * Whether a kernel reads all counters by a work queue: since 6.9 (09909e098113, "x86/resctrl: Queue
 * mon_event_read() instead of sending an IPI"). The patch that is published has not been taken: 6.18
 * has the queue still (fs/resctrl/ctrlmondata.c, mon_event_read()). Kernels before 6.9 read a local counter
 * as patched ones do, at once, and a remote one by an IPI, of which nothing is published.
 */
static bool
has_queue(const char *kernel)
{
	unsigned int major, minor;

	return sscanf(kernel, "%u.%u", &major, &minor) != 2 || major > 6 ||
			(major == 6 && minor >= 9);
}

int
resctrl_serving_cpu(hwloc_const_bitmap_t cpus, hwloc_const_bitmap_t nohz_full, const char *kernel)
{
	hwloc_bitmap_t rest = hwloc_bitmap_alloc();
	int first;

	if (rest == NULL)
		abort();
	hwloc_bitmap_andnot(rest, cpus, nohz_full);
	first = hwloc_bitmap_first(has_queue(kernel) && !hwloc_bitmap_iszero(rest) ? rest : cpus);
	hwloc_bitmap_free(rest);
	return first;
}

static bool
ends_in(const char *name, const char *end)
{
	return strlen(name) > strlen(end) && strcmp(name + strlen(name) - strlen(end), end) == 0;
}

static struct probe_row *
find_row(struct probe_report *r, const char *name, const char *metric, const char *unit)
{
	for (size_t i = 0; i < r->nb; i++)
		if (strcmp(r->rows[i].name, name) == 0 && strcmp(r->rows[i].metric, metric) == 0 &&
				strcmp(r->rows[i].unit, unit) == 0)
			return &r->rows[i];
	return NULL;
}

/*
 * Put a published figure beside the rows of that reader, in their unit: a counter's, and that of all counters where
 * there are as many. False where the latter stands nowhere.
 */
static bool
publish_beside(struct probe_report *r, const char *where, const char *reader, bool amd)
{
	const double counters = amd ? 500 : 380;
	bool beside = false;

	for (size_t i = 0; i < r->nb; i++) {
		struct probe_row *all = &r->rows[i], *each;

		if (!ends_in(all->name, reader) || strcmp(all->metric, READER_CYCLES) != 0 ||
				strcmp(all->unit, MILLIONS) != 0)
			continue;
		each = find_row(r, all->name, PER_COUNTER, CYCLES);
		if (each == NULL)
			continue;
		report_publish(r, each, where, "mcycles", 1e6 / counters);
		if (fabs(1e6 * all->raw / each->raw - counters) > 0.5)
			continue;
		report_publish(r, all, where, "mcycles", 1);
		beside = true;
	}
	return beside;
}

void
resctrl_publish(struct probe_report *r, bool amd, const char *kernel)
{
	bool queue = has_queue(kernel);

	for (size_t i = 0; i < sizeof(published) / sizeof(published[0]); i++) {
		const char *where = published[i].where, *reader = published[i].reader;
		bool same = published[i].amd == amd && published[i].patched == !queue &&
				(queue || strcmp(reader, ", local") == 0);

		if (!same || !publish_beside(r, where, reader, amd))
			report_add_published(r, "published", READER_CYCLES, MILLIONS, where,
					"mcycles", 1);
	}
}

/* ---- values ---- */

static const struct {
	const char *text; /* in the file */
	const char *name; /* for people */
} values[RESCTRL_VALUES] = {
	[RESCTRL_NUMBER] = { NULL, "numbers" },
	[RESCTRL_UNAVAILABLE] = { "Unavailable", "Unavailable" },
	[RESCTRL_ERROR] = { "Error", "Error" },
	[RESCTRL_UNASSIGNED] = { "Unassigned", "Unassigned" },
	[RESCTRL_EMPTY] = { "", "empty" },
	[RESCTRL_OTHER] = { NULL, "no number" },
	[RESCTRL_FAILED] = { NULL, "unreadable" },
};

enum resctrl_value
resctrl_value_of(const char *text, size_t len)
{
	size_t digits = 0;

	if (len > 0 && text[len - 1] == '\n')
		len--;
	for (int i = 0; i < RESCTRL_VALUES; i++)
		if (values[i].text != NULL && strlen(values[i].text) == len &&
				memcmp(values[i].text, text, len) == 0)
			return (enum resctrl_value)i;
	while (digits < len && text[digits] >= '0' && text[digits] <= '9')
		digits++;
	return digits == len ? RESCTRL_NUMBER : RESCTRL_OTHER;
}

/* ---- the counters of a domain ---- */

struct counter {
	int fd;
	ssize_t got; /* at the last read: bytes, or -errno */
	char text[32];
	char *group;
};

struct domain {
	const char *name; /* mon_L3_00 */
	unsigned long id;
	struct counter *counters;
	size_t nb; /* counters that can be read */
	size_t groups, found; /* groups and counters at the beginning */
	uint64_t seen[RESCTRL_VALUES];
	char *lost; /* the group that could not be read last */
};

static void
close_domain(struct domain *d)
{
	for (size_t i = 0; i < d->nb; i++) {
		close(d->counters[i].fd);
		free(d->counters[i].group);
	}
	free(d->counters);
	free(d->lost);
}

/* The counters of a group; one that has gone since it was listed has none. */
static int
add_group(struct domain *d, const char *group, struct err *err)
{
	size_t before = d->nb;

	for (size_t i = 0; i < NB_FILES; i++) {
		int fd = sys_open("%s/mon_data/%s/%s", group, d->name, files[i]);

		if (fd < 0 && (errno == EMFILE || errno == ENFILE))
			return err_set(err, EXIT_FAILED,
					"%s: %s after %zu counters; they are kept open all at once (ulimit -n)",
					d->name, strerror(errno), d->nb);
		if (fd < 0)
			continue;
		d->counters = reallocarray(d->counters, d->nb + 1, sizeof(*d->counters));
		if (d->counters == NULL)
			abort();
		d->counters[d->nb++] =
				(struct counter){ .fd = fd, .group = sys_format("%s", group) };
	}
	d->groups += d->nb > before;
	d->found = d->nb;
	return 0;
}

/* A control group, or the root, and its monitoring groups. */
static int
add_control_group(struct domain *d, const char *group, struct err *err)
{
	char **names = sys_list("%s/mon_groups", group);
	int rc = add_group(d, group, err);

	for (char **name = names; rc == 0 && *name != NULL; name++) {
		char *path = sys_format("%s/mon_groups/%s", group, *name);

		rc = add_group(d, path, err);
		free(path);
	}
	sys_free_list(names);
	return rc;
}

/* close_domain() is due in any case. */
static int
open_domain(struct domain *d, const char *name, struct err *err)
{
	char **names = sys_list(RESCTRL);
	int rc;

	memset(d, 0, sizeof(*d));
	d->name = name;
	d->id = strtoul(name + strlen(DOMAIN_PREFIX), NULL, 10);
	rc = add_control_group(d, RESCTRL, err);
	for (char **group = names; rc == 0 && *group != NULL; group++) {
		char *path = sys_format(RESCTRL "/%s", *group);

		/* Nothing else has a mon_data but mon_groups, where a group may have this name. */
		if (strcmp(*group, "mon_groups") != 0 && sys_exists("%s/mon_data", path))
			rc = add_control_group(d, path, err);
		free(path);
	}
	sys_free_list(names);
	return rc;
}

static void
read_counters(struct domain *d)
{
	for (size_t i = 0; i < d->nb; i++) {
		struct counter *c = &d->counters[i];

		c->got = pread(c->fd, c->text, sizeof(c->text), 0);
		if (c->got < 0)
			c->got = -errno;
	}
}

/* As many reads of a file that has no counter. */
static void
read_dry(int dry, size_t n)
{
	char text[sizeof(((struct counter *)NULL)->text)];

	while (n-- > 0)
		if (pread(dry, text, sizeof(text), 0) < 0)
			return;
}

/*
 * Count what was read. A counter that cannot be read any more is left from then on, its group is named. Returns how
 * many gave a number.
 */
static size_t
take_values(struct probe_report *r, struct domain *d)
{
	size_t nb = 0, before = d->seen[RESCTRL_NUMBER];

	for (size_t i = 0; i < d->nb; i++) {
		struct counter *c = &d->counters[i];

		if (c->got >= 0) {
			d->seen[resctrl_value_of(c->text, (size_t)c->got)]++;
			d->counters[nb++] = *c;
			continue;
		}
		d->seen[RESCTRL_FAILED]++;
		close(c->fd);
		if (d->lost == NULL || strcmp(d->lost, c->group) != 0)
			report_note(r, "%s: %s cannot be read any more: %s", d->name, c->group,
					strerror((int)-c->got));
		free(d->lost);
		d->lost = c->group;
	}
	d->nb = nb;
	return d->seen[RESCTRL_NUMBER] - before;
}

/* The counts go to the facts of the domain. */
static void
say_values(struct probe_report *r, const struct domain *d, json_t *facts)
{
	for (int i = 0; i < RESCTRL_VALUES; i++) {
		json_object_set_new(facts, values[i].name, json_integer((json_int_t)d->seen[i]));
		if (i != RESCTRL_NUMBER && d->seen[i] > 0)
			report_note(r, "%s: %" PRIu64 " reads: %s", d->name, d->seen[i],
					values[i].name);
	}
	json_object_set_new(r->facts, d->name, facts);
}

/* ---- places ---- */

/* Who reads a domain: a CPU of it and one of another domain; -1: there is none. */
struct places {
	hwloc_bitmap_t cpus; /* of the domain: its number is that of their third-level cache */
	int local, remote;
	int serving; /* the CPU of it that reads for others */
	bool nohz_full; /* all of it: the kernel queues nothing then, but interrupts */
	bool by_itself; /* the local one is not served */
};

/*
 * A local reader on the CPU that serves would have its own cycles and those of who serves it on one CPU, so it
 * goes to another one where there is one.
 */
static void
find_places(struct places *p, const struct topology *t, unsigned long domain)
{
	char *kernel = sys_read("/proc/sys/kernel/osrelease");
	hwloc_bitmap_t nohz_full = hwloc_bitmap_alloc();

	p->cpus = hwloc_bitmap_alloc();
	if (p->cpus == NULL || nohz_full == NULL)
		abort();
	sys_read_list(nohz_full, SYS_CPU "/nohz_full"); /* "(null)" where not asked for */
	p->local = p->remote = -1;
	for (int cpu = hwloc_bitmap_first(t->online); cpu >= 0;
			cpu = hwloc_bitmap_next(t->online, cpu)) {
		uint64_t id;

		if (!topology_l3_id((unsigned int)cpu, &id))
			continue;
		if (id == domain)
			hwloc_bitmap_set(p->cpus, (unsigned int)cpu);
		else if (p->remote < 0 && hwloc_bitmap_isset(t->open, (unsigned int)cpu))
			p->remote = cpu;
	}
	p->serving = resctrl_serving_cpu(p->cpus, nohz_full, kernel != NULL ? kernel : "");
	p->nohz_full = !hwloc_bitmap_iszero(p->cpus) && hwloc_bitmap_isincluded(p->cpus, nohz_full);
	p->by_itself = kernel != NULL && (!has_queue(kernel) || p->nohz_full);
	for (int cpu = hwloc_bitmap_first(p->cpus); cpu >= 0; cpu = hwloc_bitmap_next(p->cpus, cpu))
		if (hwloc_bitmap_isset(t->open, (unsigned int)cpu) &&
				(p->local < 0 || p->local == p->serving))
			p->local = cpu;
	hwloc_bitmap_free(nohz_full);
	free(kernel);
}

/* ---- cycles ---- */

/* Counts of the reader, by PMU or TSC, and of the CPU that serves it. */
struct cycles {
	int reader; /* -1: by TSC */
	int serving; /* -1: not known */
};

/* Of a process, or of all that runs on a CPU: of that only what the kernel does, as it serves there. */
static int
open_cycles(pid_t pid, int cpu)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_CPU_CYCLES,
		.exclude_user = cpu >= 0,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING };

	return (int)syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static void
open_serving(struct probe_report *r, struct cycles *c, const struct places *p, int reader)
{
	const char *why = NULL;

	if (p->serving < 0)
		why = "no CPU of the domain is known";
	else if (reader == p->local && p->by_itself)
		why = p->nohz_full
				? "where all CPUs are nohz_full a reader of the domain serves itself"
				: "before Linux 6.9 a reader of the domain serves itself";
	else if (reader == p->serving)
		why = "the reader has the domain to itself";
	else {
		c->serving = open_cycles(-1, p->serving);
		why = c->serving >= 0 ? NULL : strerror(errno);
	}
	if (why != NULL)
		report_note(r, "CPU %d: no serving CPU cycles: %s", reader, why);
	else
		report_note(r, "CPU %d: serving CPU cycles are those of CPU %d in the kernel, where nothing else is to run meanwhile",
				reader, p->serving);
}

static void
cycles_close(struct cycles *c)
{
	if (c->reader >= 0)
		close(c->reader);
	if (c->serving >= 0)
		close(c->serving);
}

/* NAN where the count was not on the CPU all the time, as somebody else counts too. */
static double
count_of(int fd)
{
	struct {
		uint64_t value, enabled, running;
	} count;

	if (read(fd, &count, sizeof(count)) != sizeof(count) || count.running != count.enabled)
		return NAN;
	return (double)count.value;
}

static double
reader_cycles(const struct cycles *c)
{
	return c->reader >= 0 ? count_of(c->reader) : (double)__builtin_ia32_rdtsc();
}

static double
serving_cycles(const struct cycles *c)
{
	return c->serving >= 0 ? count_of(c->serving) : 0;
}

/* ---- a reader ---- */

struct reader {
	char name[64];
	int cpu; /* -1: where it is */
	struct cycles cycles;
	struct resctrl_figures f;
};

struct run {
	double cycles, serving, ns;
};

/* All counters once, or, with a file that has none, as many reads of that. */
static struct run
run_once(struct reader *reader, struct domain *d, int dry)
{
	struct run run;
	uint64_t ns;

	run.serving = serving_cycles(&reader->cycles);
	run.cycles = reader_cycles(&reader->cycles);
	ns = clock_ns();
	if (dry < 0)
		read_counters(d);
	else
		read_dry(dry, d->nb);
	run.ns = (double)(clock_ns() - ns);
	run.cycles = reader_cycles(&reader->cycles) - run.cycles;
	run.serving = serving_cycles(&reader->cycles) - run.serving;
	return run;
}

/* A repeat, with counters and without, in turn the one or the other first; i < 0: it does not count. */
static int
measure(struct probe_report *r, struct domain *d, struct reader *reader, int dry, long i,
		struct err *err)
{
	bool first = i % 2 == 0;
	struct run raw = { 0 }, none;
	size_t reads = d->nb, numbers;

	if (reader->cpu >= 0 && probe_pin((unsigned int)reader->cpu, err) != 0)
		return -1;
	if (first)
		raw = run_once(reader, d, -1);
	none = run_once(reader, d, dry);
	if (!first)
		raw = run_once(reader, d, -1);
	if (probe_interrupted())
		return err_set(err, EXIT_FAILED, "interrupted");
	if (isnan(raw.cycles + none.cycles + raw.serving + none.serving))
		return err_set(err, EXIT_FAILED,
				"the cycle counters are shared: end perf and what else counts cycles");
	numbers = take_values(r, d);
	if (i >= 0) {
		reader->f.counters[i] = (double)numbers;
		reader->f.gaps |= numbers < reads;
		reader->f.raw[i] = raw.cycles;
		reader->f.dry[i] = none.cycles;
		reader->f.serving[i] = raw.serving;
		reader->f.serving_dry[i] = none.serving;
		reader->f.wall_ns[i] = raw.ns;
	}
	return 0;
}

static void
reader_init(struct probe_report *r, struct reader *reader, const struct domain *d, int cpu,
		const char *word, const struct places *p, size_t n)
{
	double *memory = probe_alloc(6 * n, sizeof(*memory));

	memset(reader, 0, sizeof(*reader));
	/* No published figure is of one that is all nohz_full: the name is not one that they stand beside. */
	snprintf(reader->name, sizeof(reader->name), "domain %lu, %s%s", d->id, word,
			p->nohz_full ? ", all nohz_full" : "");
	reader->cpu = sys_live() ? cpu : -1;
	reader->cycles.reader = sys_live() ? open_cycles(0, -1) : -1;
	reader->cycles.serving = -1;
	if (reader->cycles.reader >= 0)
		open_serving(r, &reader->cycles, p, cpu);
	reader->f = (struct resctrl_figures){ .n = n,
		.tsc = reader->cycles.reader < 0,
		.counters = memory,
		.raw = memory + n,
		.dry = memory + 2 * n,
		.serving = memory + 3 * n,
		.serving_dry = memory + 4 * n,
		.wall_ns = memory + 5 * n };
}

static void
reader_free(struct reader *reader)
{
	cycles_close(&reader->cycles);
	free(reader->f.counters);
}

/* ---- all of it ---- */

static int
measure_readers(struct probe_report *r, const struct probe_options *o, struct domain *d,
		const struct places *p, int dry, struct err *err)
{
	const int cpus[] = { p->local, p->remote };
	const char *const words[] = { "local", "remote" };
	struct reader readers[2];
	size_t nb = 0;
	int rc = 0;

	for (size_t i = 0; i < 2; i++)
		if (cpus[i] >= 0)
			reader_init(r, &readers[nb++], d, cpus[i], words[i], p, o->repeats);
		else
			report_note(r, "%s: no %s reader: no CPU of %s domain may be used", d->name,
					words[i], i == 0 ? "this" : "another");
	if (nb == 0)
		return err_set(err, EXIT_SKIPPED,
				"no CPU that may be used tells the number of its third-level cache");
	for (long i = -(long)o->warmup; i < (long)o->repeats; i++)
		for (size_t k = 0; k < nb && rc == 0 && d->nb > 0; k++)
			rc = measure(r, d, &readers[i % 2 == 0 ? k : nb - 1 - k], dry, i, err);
	for (size_t k = 0; k < nb; k++) {
		if (readers[k].cycles.serving < 0)
			readers[k].f.serving = NULL;
		if (rc == 0 && d->nb > 0)
			resctrl_rows(r, readers[k].name, &readers[k].f);
		reader_free(&readers[k]);
	}
	return rc;
}

/* Adds the number of counters to *found. */
static int
measure_domain(struct probe_report *r, const struct probe_options *o, const struct topology *t,
		const char *name, int dry, size_t *found, struct err *err)
{
	struct places p;
	struct domain d;
	int rc = open_domain(&d, name, err);

	find_places(&p, t, d.id);
	if (rc == 0 && d.nb > 0)
		rc = measure_readers(r, o, &d, &p, dry, err);
	if (rc == 0)
		say_values(r, &d,
				json_pack("{s:I, s:I, s:i, s:i, s:i}", "groups",
						(json_int_t)d.groups, "counters",
						(json_int_t)d.found, "local_cpu", p.local,
						"remote_cpu", p.remote, "serving_cpu", p.serving));
	*found += d.found;
	close_domain(&d);
	hwloc_bitmap_free(p.cpus);
	return rc;
}

static bool
is_domain(const char *name)
{
	return strncmp(name, DOMAIN_PREFIX, strlen(DOMAIN_PREFIX)) == 0;
}

/* Whether a domain is asked for, by its number or as it is written. */
static bool
is_wanted(const char *domain, const char *name)
{
	const char *id = name + strlen(DOMAIN_PREFIX);

	while (id[0] == '0' && id[1] != '\0')
		id++;
	return domain == NULL || strcmp(domain, name + strlen(DOMAIN_PREFIX)) == 0 ||
			strcmp(domain, id) == 0;
}

static int
no_domain(const char *domain, char **names, struct err *err)
{
	char *all = sys_format("%s", ""), *more;
	int rc;

	for (char **name = names; *name != NULL; name++)
		if (is_domain(*name)) {
			more = sys_format("%s %lu", all,
					strtoul(*name + strlen(DOMAIN_PREFIX), NULL, 10));
			free(all);
			all = more;
		}
	rc = all[0] == '\0' ? err_set(err, EXIT_SKIPPED,
					      RESCTRL "/mon_data: there is no " DOMAIN_PREFIX "NN")
			    : err_set(err, EXIT_USAGE, "--domain %s: there are%s", domain, all);
	free(all);
	return rc;
}

static int
measure_domains(struct probe_report *r, const struct probe_options *o, const struct topology *t,
		int dry, struct err *err)
{
	char **names = sys_list(RESCTRL "/mon_data");
	size_t domains = 0, found = 0;
	int rc = 0;

	for (char **name = names; *name != NULL && rc == 0; name++) {
		if (!is_domain(*name) || !is_wanted(o->domain, *name))
			continue;
		domains++;
		rc = measure_domain(r, o, t, *name, dry, &found, err);
	}
	if (rc == 0 && domains == 0)
		rc = no_domain(o->domain, names, err);
	else if (rc == 0 && found == 0)
		rc = err_set(err, EXIT_SKIPPED,
				RESCTRL
				": no group has an mbm_local_bytes or mbm_total_bytes: this CPU or kernel does not monitor bandwidth");
	else if (rc == 0 && r->nb == 0)
		rc = err_set(err, EXIT_FAILED, RESCTRL ": none of %zu counters could be read",
				found);
	sys_free_list(names);
	return rc;
}

/* Every group has a descriptor a file. */
static void
raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* Open the file without a counter. Returns -1 with err set, where there is no monitoring too. */
static int
open_dry(struct err *err)
{
	int fd = sys_open(DRY_FILE), error = errno;

	if (fd >= 0)
		return fd;
	if (!sys_exists(RESCTRL))
		return err_set(err, EXIT_SKIPPED,
				"there is no " RESCTRL
				": this CPU or kernel has no resctrl (mount -t resctrl resctrl " RESCTRL
				", where it has)");
	if (!sys_exists(RESCTRL "/info"))
		return err_set(err, EXIT_SKIPPED,
				"resctrl is not mounted: mount -t resctrl resctrl " RESCTRL);
	if (error == ENOENT)
		return err_set(err, EXIT_SKIPPED,
				"there is no " DRY_FILE
				": this CPU or kernel does not monitor bandwidth");
	return err_set(err, EXIT_FAILED, DRY_FILE ": %s", strerror(error));
}

/* What the rows are worth, and the published ones. */
static void
say_all(struct probe_report *r)
{
	char *kernel = sys_read("/proc/sys/kernel/osrelease");
	int pmu = open_cycles(0, -1);

	if (!sys_live())
		report_note(r, "a recorded tree: nothing is pinned, and what is timed, in TSC cycles, is reads of ordinary files");
	else if (pmu < 0)
		report_note(r, "no cycle counter (%s): the reader's cycles are the TSC's, and there are no serving CPU cycles",
				strerror(errno));
	if (pmu >= 0)
		close(pmu);
	report_note(r, "the published figures have the system calls in them, as raw has here and net has not");
	resctrl_publish(r, published_on_amd(), kernel != NULL ? kernel : "");
	free(kernel);
}

int
probe_resctrl(struct probe_report *r, const struct probe_options *o, struct err *err)
{
	struct topology t;
	int dry = open_dry(err), rc;

	if (dry < 0)
		return -1;
	raise_limit();
	rc = topology_open(&t, o->topology, err);
	if (rc == 0) {
		rc = measure_domains(r, o, &t, dry, err);
		topology_close(&t);
	}
	close(dry);
	if (rc != 0)
		return -1;
	say_all(r);
	return 0;
}
