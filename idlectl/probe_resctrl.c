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
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "mechanisms.h"
#include "probe_resctrl.h"
#include "sysroot.h"
#include "topology.h"

#define RESCTRL "/sys/fs/resctrl"
#define DOMAIN_PREFIX "mon_L3_"
#define DRY_FILE RESCTRL "/info/L3_MON/num_rmids" /* a constant: reads no counter */

static const char *const files[] = { "mbm_local_bytes", "mbm_total_bytes" };
#define NB_FILES (sizeof(files) / sizeof(files[0]))

/* ---- arithmetic ---- */

struct probe_row *
resctrl_rows(struct probe_report *r, const char *name, const struct resctrl_figures *f)
{
	double *a = probe_alloc(f->n, sizeof(*a)), *b = probe_alloc(f->n, sizeof(*b));
	size_t first = r->nb;

	for (size_t i = 0; i < f->n; i++) {
		a[i] = f->raw[i] / 1e6;
		b[i] = f->dry[i] / 1e6;
	}
	report_add(r, name, "reader cycles", f->unit, a, b, f->n);
	for (size_t i = 0; i < f->n; i++) {
		a[i] = f->raw[i] / (double)f->counters;
		b[i] = f->dry[i] / (double)f->counters;
	}
	report_add(r, name, "reader cycles a counter", "cycles", a, b, f->n);
	for (size_t i = 0; i < f->n && f->serving != NULL; i++) {
		a[i] = f->serving[i] / 1e6;
		b[i] = f->serving_dry[i] / 1e6;
	}
	if (f->serving != NULL)
		report_add(r, name, "serving CPUs' cycles", f->unit, a, b, f->n);
	for (size_t i = 0; i < f->n; i++)
		a[i] = (double)f->counters * 1e9 / f->wall_ns[i];
	report_add(r, name, "read rate", "counters/s", a, NULL, f->n);
	free(a);
	free(b);
	return &r->rows[first];
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

	while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == '\0'))
		len--;
	for (int i = 0; i < RESCTRL_VALUES; i++)
		if (values[i].text != NULL && strlen(values[i].text) == len &&
				memcmp(values[i].text, text, len) == 0)
			return (enum resctrl_value)i;
	while (digits < len && text[digits] >= '0' && text[digits] <= '9')
		digits++;
	return digits == len ? RESCTRL_NUMBER : RESCTRL_OTHER;
}

enum resctrl_value
resctrl_read(int fd)
{
	char text[64];
	ssize_t n = pread(fd, text, sizeof(text), 0);

	return n < 0 ? RESCTRL_FAILED : resctrl_value_of(text, (size_t)n);
}

/* ---- the counters of a domain ---- */

struct counter {
	int fd; /* -1: gone */
	const char *file;
	char *group;
};

struct domain {
	const char *name; /* mon_L3_00 */
	struct counter *counters;
	size_t nb, left; /* all, and those that are still there */
	uint64_t seen[RESCTRL_VALUES];
};

static void
close_domain(struct domain *d)
{
	for (size_t i = 0; i < d->nb; i++) {
		if (d->counters[i].fd >= 0)
			close(d->counters[i].fd);
		free(d->counters[i].group);
	}
	free(d->counters);
	memset(d, 0, sizeof(*d));
}

/* The counters of a group. One that has gone since it was listed is none; err only for lack of descriptors. */
static int
add_group(struct domain *d, const char *group, struct err *err)
{
	for (size_t i = 0; i < NB_FILES; i++) {
		int fd = sys_open("%s/mon_data/%s/%s", group, d->name, files[i]);

		if (fd < 0 && (errno == EMFILE || errno == ENFILE))
			return err_set(err, EXIT_FAILED, "%s: %s", group, strerror(errno));
		if (fd < 0)
			continue;
		d->counters = reallocarray(d->counters, d->nb + 1, sizeof(*d->counters));
		if (d->counters == NULL)
			abort();
		d->counters[d->nb++] = (struct counter){ fd, files[i], sys_format("%s", group) };
	}
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

static int
open_domain(struct domain *d, const char *name, struct err *err)
{
	char **names = sys_list(RESCTRL);
	int rc;

	memset(d, 0, sizeof(*d));
	d->name = name;
	rc = add_control_group(d, RESCTRL, err);
	for (char **group = names; rc == 0 && *group != NULL; group++) {
		char *path = sys_format(RESCTRL "/%s", *group);

		/* info, mon_data and mon_groups have no mon_data of their own. */
		if (strcmp(*group, "mon_groups") != 0 && sys_exists("%s/mon_data", path))
			rc = add_control_group(d, path, err);
		free(path);
	}
	sys_free_list(names);
	d->left = d->nb;
	if (rc != 0)
		close_domain(d);
	return rc;
}

/* ---- cycles ---- */

/* Counts of the reader and of the domain's other CPUs; -1: there is no PMU. */
struct cycles {
	int reader;
	int *others;
	size_t nb;
};

static int
open_cycles(pid_t pid, int cpu)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_CPU_CYCLES,
		.exclude_hv = 1 };

	return (int)syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static void
cycles_open(struct cycles *c, hwloc_const_bitmap_t cpus, int reader)
{
	memset(c, 0, sizeof(*c));
	c->reader = sys_live() ? open_cycles(0, -1) : -1;
	if (c->reader < 0 || cpus == NULL)
		return;
	c->others = probe_alloc((size_t)hwloc_bitmap_weight(cpus), sizeof(*c->others));
	for (int cpu = hwloc_bitmap_first(cpus); cpu >= 0; cpu = hwloc_bitmap_next(cpus, cpu)) {
		int fd = cpu == reader ? -1 : open_cycles(-1, cpu);

		if (fd >= 0)
			c->others[c->nb++] = fd;
	}
}

static void
cycles_close(struct cycles *c)
{
	if (c->reader >= 0)
		close(c->reader);
	for (size_t i = 0; i < c->nb; i++)
		close(c->others[i]);
	free(c->others);
}

static double
count_of(int fd)
{
	uint64_t count = 0;

	return read(fd, &count, sizeof(count)) == sizeof(count) ? (double)count : NAN;
}

static double
reader_cycles(const struct cycles *c)
{
	return c->reader >= 0 ? count_of(c->reader) : (double)__builtin_ia32_rdtsc();
}

static double
other_cycles(const struct cycles *c)
{
	double sum = 0;

	for (size_t i = 0; i < c->nb; i++)
		sum += count_of(c->others[i]);
	return sum;
}

/* ---- a reader ---- */

struct reader {
	char name[64];
	bool local;
	int cpu; /* -1: where it is */
	struct cycles cycles;
	double *raw, *dry, *serving, *serving_dry, *wall_ns;
};

/* All counters once. What cannot be read any more is left from then on, and said. */
static void
read_all(struct probe_report *r, struct domain *d)
{
	for (size_t i = 0; i < d->nb; i++) {
		struct counter *c = &d->counters[i];
		enum resctrl_value value;

		if (c->fd < 0)
			continue;
		value = resctrl_read(c->fd);
		d->seen[value]++;
		if (value != RESCTRL_FAILED)
			continue;
		report_note(r, "%s: %s/%s cannot be read any more: %s", d->name, c->group, c->file,
				strerror(errno));
		close(c->fd);
		c->fd = -1;
		d->left--;
	}
}

/* As many reads of a file that has no counter. */
static void
read_dry(int dry, size_t n)
{
	char text[64];

	while (n-- > 0)
		if (pread(dry, text, sizeof(text), 0) < 0)
			return;
}

/* One repeat, i < 0: it does not count. */
static int
measure(struct probe_report *r, struct domain *d, struct reader *reader, int dry, long i,
		struct err *err)
{
	if (reader->cpu >= 0 && probe_pin((unsigned int)reader->cpu, err) != 0)
		return -1;
	for (int k = 0; k < 2; k++) {
		bool with = (k == 0) == (i % 2 == 0); /* now the one first, now the other */
		double others = other_cycles(&reader->cycles),
		       cycles = reader_cycles(&reader->cycles);
		uint64_t ns = clock_ns();

		if (with)
			read_all(r, d);
		else
			read_dry(dry, d->left);
		ns = clock_ns() - ns;
		cycles = reader_cycles(&reader->cycles) - cycles;
		others = other_cycles(&reader->cycles) - others;
		if (i < 0)
			continue;
		(with ? reader->raw : reader->dry)[i] = cycles;
		(with ? reader->serving : reader->serving_dry)[i] = others;
		if (with)
			reader->wall_ns[i] = (double)ns;
	}
	if (d->left == 0)
		return err_set(err, EXIT_FAILED, "%s: no counter can be read any more", d->name);
	return probe_interrupted() ? err_set(err, EXIT_FAILED, "interrupted") : 0;
}

static void
reader_init(struct reader *reader, const struct probe_options *o, const struct domain *d, int cpu,
		bool local, hwloc_const_bitmap_t cpus)
{
	memset(reader, 0, sizeof(*reader));
	snprintf(reader->name, sizeof(reader->name), "domain %s, %s",
			d->name + strlen(DOMAIN_PREFIX), local ? "local" : "remote");
	reader->local = local;
	reader->cpu = sys_live() ? cpu : -1;
	cycles_open(&reader->cycles, cpus, cpu);
	reader->raw = probe_alloc(o->repeats, sizeof(double));
	reader->dry = probe_alloc(o->repeats, sizeof(double));
	reader->serving = probe_alloc(o->repeats, sizeof(double));
	reader->serving_dry = probe_alloc(o->repeats, sizeof(double));
	reader->wall_ns = probe_alloc(o->repeats, sizeof(double));
}

static void
reader_free(struct reader *reader)
{
	cycles_close(&reader->cycles);
	free(reader->raw);
	free(reader->dry);
	free(reader->serving);
	free(reader->serving_dry);
	free(reader->wall_ns);
}

/* ---- published figures ---- */

#define EPYC "cpu=AMD EPYC 7B12"
#define XEON "cpu=Intel Xeon Gold 6268CL"

static const struct {
	const char *where;
	bool amd, local, patched;
} published[] = {
	{ EPYC "&domain=local&patched=no", true, true, false },
	{ EPYC "&domain=local&patched=yes", true, true, true },
	{ EPYC "&domain=remote&patched=no", true, false, false },
	{ EPYC "&domain=remote&patched=yes", true, false, true },
	{ XEON "&domain=local&patched=no", false, true, false },
	{ XEON "&domain=local&patched=yes", false, true, true },
	{ XEON "&domain=remote&patched=no", false, false, false },
	{ XEON "&domain=remote&patched=yes", false, false, true },
};

/* The patch is of October 2024 and not in Linux 6.12. */
static bool
kernel_is_patched(void)
{
	struct utsname os;
	int major = 0, minor = 0;

	return uname(&os) == 0 && sscanf(os.release, "%d.%d", &major, &minor) == 2 &&
			(major > 6 || (major == 6 && minor > 12));
}

/* Beside the first domain's rows, by vendor, and the others below. */
static void
publish(struct probe_report *r)
{
	char *info = sys_read("/proc/cpuinfo");
	bool amd = info != NULL && strstr(info, "AuthenticAMD") != NULL;
	bool taken[2] = { false, false };

	free(info);
	for (size_t i = 0; i < sizeof(published) / sizeof(published[0]); i++) {
		struct probe_row *row = NULL;
		const char *word = published[i].local ? ", local" : ", remote";

		for (size_t k = 0; k < r->nb && row == NULL; k++)
			if (strstr(r->rows[k].name, word) != NULL &&
					strcmp(r->rows[k].metric, "reader cycles") == 0)
				row = &r->rows[k];
		if (row != NULL && !taken[published[i].local] && published[i].amd == amd &&
				published[i].patched == kernel_is_patched()) {
			taken[published[i].local] = true;
			report_publish(r, row, published[i].where, "mcycles", 1);
		} else {
			report_add_published(r, "published", "reader cycles", "Mcycles",
					published[i].where, "mcycles", 1);
		}
	}
}

/* ---- all of it ---- */

/* The CPUs of a domain: its number is that of their third-level cache. */
static hwloc_bitmap_t
cpus_of(hwloc_const_bitmap_t all, const char *domain)
{
	hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
	unsigned long wanted = strtoul(domain + strlen(DOMAIN_PREFIX), NULL, 10);
	uint64_t id;

	for (int cpu = hwloc_bitmap_first(all); cpu >= 0; cpu = hwloc_bitmap_next(all, cpu))
		if (topology_l3_id((unsigned int)cpu, &id) && id == wanted)
			hwloc_bitmap_set(cpus, (unsigned int)cpu);
	return cpus;
}

static void
add_rows(struct probe_report *r, const struct probe_options *o, const struct domain *d,
		const struct reader *reader)
{
	struct resctrl_figures f = { .n = o->repeats,
		.counters = d->left,
		.unit = reader->cycles.reader >= 0 ? "Mcycles" : "M TSC cycles",
		.raw = reader->raw,
		.dry = reader->dry,
		.serving = reader->cycles.nb > 0 ? reader->serving : NULL,
		.serving_dry = reader->serving_dry,
		.wall_ns = reader->wall_ns };

	resctrl_rows(r, reader->name, &f);
}

static void
say_values(struct probe_report *r, const struct domain *d)
{
	json_t *seen = json_object();

	for (int i = 0; i < RESCTRL_VALUES; i++) {
		json_object_set_new(seen, values[i].name, json_integer((json_int_t)d->seen[i]));
		if (i != RESCTRL_NUMBER && d->seen[i] > 0)
			report_note(r, "%s: %" PRIu64 " reads were %s", d->name, d->seen[i],
					values[i].name);
	}
	json_object_set_new(seen, "counters", json_integer((json_int_t)d->nb));
	json_object_set_new(r->facts, d->name, seen);
}

static int
measure_domain(struct probe_report *r, const struct probe_options *o, const struct topology *t,
		const char *name, int dry, struct err *err)
{
	/* What this process may use; on a recorded tree it does not matter. */
	hwloc_const_bitmap_t all = sys_live() ? t->open : t->online;
	hwloc_bitmap_t inside = cpus_of(all, name), outside = hwloc_bitmap_alloc();
	int cpus[2], rc;
	struct reader readers[2];
	size_t nb = 0;
	struct domain d;

	hwloc_bitmap_andnot(outside, all, inside);
	cpus[0] = hwloc_bitmap_first(inside);
	cpus[1] = hwloc_bitmap_first(outside);
	rc = open_domain(&d, name, err);
	if (rc == 0 && d.nb == 0)
		rc = err_set(err, EXIT_SKIPPED,
				"%s: there are no mbm_local_bytes or mbm_total_bytes", name);
	for (int i = 0; i < 2 && rc == 0; i++) {
		if (cpus[i] >= 0)
			reader_init(&readers[nb++], o, &d, cpus[i], i == 0, inside);
		else
			report_note(r, "%s: no CPU %s of it may be used", name,
					i == 0 ? "inside" : "outside");
	}
	for (long i = -(long)o->warmup; i < (long)o->repeats && rc == 0; i++)
		for (size_t k = 0; k < nb && rc == 0; k++)
			rc = measure(r, &d, &readers[i % 2 == 0 ? k : nb - 1 - k], dry, i, err);
	for (size_t k = 0; k < nb; k++) {
		if (rc == 0)
			add_rows(r, o, &d, &readers[k]);
		if (rc == 0 && k == 0 && readers[k].cycles.reader < 0)
			report_note(r, "no cycle counter (PMU) here: TSC cycles, and none of the CPU that served");
		reader_free(&readers[k]);
	}
	if (rc == 0)
		say_values(r, &d);
	close_domain(&d);
	hwloc_bitmap_free(inside);
	hwloc_bitmap_free(outside);
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

static bool
is_domain(const char *name)
{
	return strncmp(name, DOMAIN_PREFIX, strlen(DOMAIN_PREFIX)) == 0;
}

static int
measure_domains(struct probe_report *r, const struct probe_options *o, const struct topology *t,
		int dry, struct err *err)
{
	char **names = sys_list(RESCTRL "/mon_data"), *all = sys_format("%s", "");
	bool any = false;
	int rc = 0;

	for (char **name = names; *name != NULL && rc == 0; name++) {
		char *more;

		if (!is_domain(*name))
			continue;
		more = sys_format("%s %s", all, *name + strlen(DOMAIN_PREFIX));
		free(all);
		all = more;
		if (o->domain != NULL && strcmp(o->domain, *name + strlen(DOMAIN_PREFIX)) != 0)
			continue;
		any = true;
		rc = measure_domain(r, o, t, *name, dry, err);
	}
	if (rc == 0 && !any)
		rc = o->domain != NULL && all[0] != '\0'
				? err_set(err, EXIT_USAGE, "--domain %s: there are:%s", o->domain,
						  all)
				: err_set(err, EXIT_SKIPPED,
						  RESCTRL
						  "/mon_data: no domain with an L3 monitor");
	free(all);
	sys_free_list(names);
	return rc;
}

int
probe_resctrl(struct probe_report *r, const struct probe_options *o, struct err *err)
{
	struct topology t;
	int dry, rc;

	if (!sys_exists(RESCTRL "/info"))
		return err_set(err, EXIT_SKIPPED,
				RESCTRL
				": there is no resctrl here, or it is not mounted (mount -t resctrl resctrl " RESCTRL
				")");
	dry = sys_open(DRY_FILE);
	if (dry < 0)
		return err_set(err, EXIT_SKIPPED, DRY_FILE ": %s: this CPU monitors no bandwidth",
				strerror(errno));
	raise_limit();
	rc = topology_open(&t, o->topology, err);
	if (rc == 0) {
		rc = measure_domains(r, o, &t, dry, err);
		topology_close(&t);
	}
	close(dry);
	if (rc != 0)
		return -1;
	publish(r);
	if (!sys_live())
		report_note(r, "a recorded tree: the times are those of reading ordinary files here");
	return 0;
}
