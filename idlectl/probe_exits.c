/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * idlectl probe msr --exits: how long the exits of a KVM guest take on its host, by reason, from the
 * kernel's tracepoints, which perf records and writes down.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probe_exits.h"
#include "sysroot.h"

#define DURATION_S 10
#define EXIT_EVENT "kvm:kvm_exit:"
#define ENTRY_EVENT "kvm:kvm_entry:"

/* ---- counting ---- */

static struct exit_reason *
find_reason(struct exits *e, const char *name)
{
	struct exit_reason *new;

	for (size_t i = 0; i < e->nb; i++)
		if (strcmp(e->reasons[i].name, name) == 0)
			return &e->reasons[i];
	e->reasons = reallocarray(e->reasons, e->nb + 1, sizeof(*e->reasons));
	if (e->reasons == NULL)
		abort();
	new = &e->reasons[e->nb++];
	*new = (struct exit_reason){ .min = INFINITY };
	snprintf(new->name, sizeof(new->name), "%s", name);
	return new;
}

void
exits_add(struct exits *e, const char *reason, double us)
{
	struct exit_reason *r = find_reason(e, reason);
	double off = us - r->mean;

	r->n++;
	r->mean += off / (double)r->n;
	r->m2 += off * (us - r->mean);
	r->min = fmin(r->min, us);
	r->max = fmax(r->max, us);
}

void
exits_free(struct exits *e)
{
	free(e->reasons);
	free(e->vcpus);
	memset(e, 0, sizeof(*e));
}

/* ---- what perf script writes ---- */

/* A thread that runs a virtual CPU. */
struct vcpu {
	long tid;
	bool outside; /* between an exit and the entry after it */
	double since_us;
	char reason[sizeof(((struct exit_reason *)0)->name)];
};

static struct vcpu *
find_vcpu(struct exits *e, long tid)
{
	for (size_t i = 0; i < e->nb_vcpus; i++)
		if (e->vcpus[i].tid == tid)
			return &e->vcpus[i];
	e->vcpus = reallocarray(e->vcpus, e->nb_vcpus + 1, sizeof(*e->vcpus));
	if (e->vcpus == NULL)
		abort();
	e->vcpus[e->nb_vcpus] = (struct vcpu){ .tid = tid };
	return &e->vcpus[e->nb_vcpus++];
}

/* The last word of a text, which is cut off there; NULL: there is none. */
static char *
cut_last(char *text)
{
	size_t len = strlen(text);

	while (len > 0 && isspace((unsigned char)text[len - 1]))
		text[--len] = '\0';
	while (len > 0 && !isspace((unsigned char)text[len - 1]))
		len--;
	if (text[len] == '\0')
		return NULL;
	if (len > 0)
		text[len - 1] = '\0';
	return text + len;
}

/*
 * Thread and time of what stands before an event: "comm tid [cpu] seconds:", where comm may hold blanks, the
 * CPU may be missing, and pid/tid may stand for tid.
 */
static bool
parse_front(char *front, long *tid, double *us)
{
	char *time = cut_last(front), *word = cut_last(front), *end;

	if (word != NULL && word[0] == '[')
		word = cut_last(front);
	if (time == NULL || word == NULL || !isdigit((unsigned char)time[0]))
		return false;
	*us = 1e6 * strtod(time, &end);
	if (end == time || *end != ':' || !isfinite(*us))
		return false;
	if (strchr(word, '/') != NULL)
		word = strchr(word, '/') + 1;
	*tid = strtol(word, &end, 10);
	return isdigit((unsigned char)word[0]) && *end == '\0';
}

static bool
parse_reason(const char *text, char *reason, size_t size)
{
	const char *at = strstr(text, "reason ");
	size_t len;

	if (at == NULL)
		return false;
	at += strlen("reason ");
	len = strcspn(at, " \t\r\n");
	if (len == 0 || len >= size)
		return false;
	snprintf(reason, size, "%.*s", (int)len, at);
	one_line(reason);
	return true;
}

static void
parse_line(struct exits *e, char *line)
{
	char *exit = strstr(line, EXIT_EVENT), *entry = strstr(line, ENTRY_EVENT);
	char *event = exit != NULL ? exit : entry, reason[sizeof(e->vcpus->reason)];
	struct vcpu *v;
	double us;
	long tid;

	if (event == NULL) {
		e->other_lines++;
		return;
	}
	event[0] = '\0';
	if (!parse_front(line, &tid, &us) ||
			(exit != NULL && !parse_reason(exit + 1, reason, sizeof(reason)))) {
		e->other_lines++;
		return;
	}
	v = find_vcpu(e, tid);
	if (exit != NULL) {
		e->without_entry += v->outside;
		v->outside = true;
		v->since_us = us;
		memcpy(v->reason, reason, sizeof(reason));
		return;
	}
	if (v->outside && us >= v->since_us)
		exits_add(e, v->reason, us - v->since_us);
	else
		e->without_exit++;
	v->outside = false;
}

void
exits_parse(struct exits *e, FILE *in)
{
	char *line = NULL;
	size_t size = 0;
	ssize_t len;

	while (!probe_interrupted() && (len = getline(&line, &size, in)) > 0) {
		/* A NUL would end the text for us. */
		for (ssize_t i = 0; i < len; i++)
			if (line[i] == '\0')
				line[i] = '?';
		parse_line(e, line);
	}
	free(line);
	for (size_t i = 0; i < e->nb_vcpus; i++)
		e->without_entry += e->vcpus[i].outside;
}

/* ---- rows and table ---- */

enum { SAMPLES, SAMPLES_SHARE, TIME_SHARE, MIN, MAX, MEAN, RSE, NB_FIGURES };

static const struct {
	const char *metric, *unit, *column; /* of the published figures */
} figures[NB_FIGURES] = {
	[SAMPLES] = { "samples", "exits", "samples" },
	[SAMPLES_SHARE] = { "samples share", "%", "samples_pct" },
	[TIME_SHARE] = { "time share", "%", "time_pct" },
	[MIN] = { "min", "us", "min_us" },
	[MAX] = { "max", "us", "max_us" },
	[MEAN] = { "mean", "us", "avg_us" },
	[RSE] = { "rse", "%", "rse_pct" },
};

static int
more_samples(const void *a, const void *b)
{
	const struct exit_reason *x = a, *y = b;

	return x->n != y->n ? (x->n < y->n) - (x->n > y->n) : strcmp(x->name, y->name);
}

void
exits_rows(struct probe_report *r, struct exits *e)
{
	double samples = 0, time = 0;

	for (size_t i = 0; i < e->nb; i++) {
		samples += (double)e->reasons[i].n;
		time += (double)e->reasons[i].n * e->reasons[i].mean;
	}
	qsort(e->reasons, e->nb, sizeof(*e->reasons), more_samples);
	for (size_t i = 0; i < e->nb; i++) {
		const struct exit_reason *x = &e->reasons[i];
		double n = (double)x->n, var = x->n > 1 ? x->m2 / (n - 1) : NAN;
		const double f[NB_FIGURES] = { n, 100 * n / samples, 100 * n * x->mean / time,
			x->min, x->max, x->mean, 100 * sqrt(var / n) / x->mean };

		for (int k = 0; k < NB_FIGURES; k++)
			report_add_one(r, x->name, figures[k].metric, figures[k].unit, f[k]);
	}
}

static const char *const published[] = {
	"case=hackbench&mitigations=on&fastpath=no&reason=MSR_WRITE",
	"case=hackbench&mitigations=on&fastpath=yes&reason=MSR_WRITE",
	"case=hackbench&mitigations=off&fastpath=no&reason=MSR_WRITE",
	"case=hackbench&mitigations=off&fastpath=yes&reason=MSR_WRITE",
};

static void
publish(struct probe_report *r)
{
	for (size_t i = 0; i < sizeof(published) / sizeof(published[0]); i++)
		for (int k = 0; k < NB_FIGURES; k++)
			report_add_published(r, "published MSR_WRITE", figures[k].metric,
					figures[k].unit, published[i], figures[k].column, 1);
}

/* As perf kvm stat prints it, a reason a line: each has all its rows one after the other. */
static void
print_exits(const struct probe_report *r)
{
	printf("%-24s %10s %9s %8s %11s %11s %11s\n", "Reason", "Samples", "Samples%", "Time%",
			"Min", "Max", "Avg +-");
	for (size_t i = 0; i + NB_FIGURES <= r->nb; i += NB_FIGURES) {
		const struct probe_row *row = &r->rows[i];
		double f[NB_FIGURES];

		for (int k = 0; k < NB_FIGURES; k++)
			f[k] = row->n > 0 ? row[k].raw : row[k].published;
		printf("%-24s %10.0f %8.2f%% %7.2f%% %9.2fus %9.2fus %9.2fus", row->name,
				f[SAMPLES], f[SAMPLES_SHARE], f[TIME_SHARE], f[MIN], f[MAX],
				f[MEAN]);
		if (isfinite(f[RSE]))
			printf(" ( +- %.2f%% )", f[RSE]);
		printf("%s%s\n", row->n > 0 ? "" : "  ", row->n > 0 ? "" : row->published_as);
	}
}

/* ---- where they come from ---- */

static int
check_host(struct err *err)
{
	static const char *const events[] = { "/sys/kernel/tracing/events/kvm/kvm_exit/id",
		"/sys/kernel/debug/tracing/events/kvm/kvm_exit/id" };

	if (!sys_live())
		return err_set(err, EXIT_SKIPPED,
				"--exits: a recorded tree runs no guest (--script reads a file)");
	if (!sys_exists("/sys/module/kvm"))
		return err_set(err, EXIT_SKIPPED,
				"--exits: this machine runs no KVM guests: kvm is not loaded");
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		if (sys_exists("%s", events[i]))
			return 0;
	return err_set(err, EXIT_SKIPPED,
			"--exits: %s: not there (is tracefs mounted, and are you root?)",
			events[0]);
}

/* Record, and have it written as text. */
static FILE *
record(const struct probe_options *o, const char *data, struct err *err)
{
	char pid[32], seconds[32];
	char *argv[] = { "perf", "record", "-q", "-o", (char *)data, "-e",
		"kvm:kvm_exit,kvm:kvm_entry", o->pid != 0 ? pid : "-a", "--", "sleep", seconds,
		NULL };
	char *script[] = { "perf", "script", "-i", (char *)data, "--ns", "-F",
		"comm,tid,time,event,trace", NULL };
	FILE *out;

	snprintf(seconds, sizeof(seconds), "%g", o->duration > 0 ? o->duration : DURATION_S);
	snprintf(pid, sizeof(pid), "--pid=%lu", o->pid);
	out = probe_spawn(argv, err);
	if (out == NULL)
		return NULL;
	fclose(out);
	return probe_spawn(script, err);
}

static FILE *
open_script(const struct probe_options *o, struct err *err)
{
	char data[] = "/tmp/idlectl-perf-XXXXXX";
	FILE *in;
	int fd;

	if (o->script != NULL) {
		in = fopen(o->script, "re");
		if (in == NULL)
			err_set(err, EXIT_FAILED, "%s: %s", o->script, strerror(errno));
		return in;
	}
	if (check_host(err) != 0)
		return NULL;
	fd = mkstemp(data);
	if (fd < 0) {
		err_set(err, EXIT_FAILED, "%s: %s", data, strerror(errno));
		return NULL;
	}
	close(fd);
	in = record(o, data, err);
	unlink(data);
	return in;
}

int
probe_exits(struct probe_report *r, const struct probe_options *o, struct err *err)
{
	struct exits e = { 0 };
	FILE *in;
	bool bad;

	if (o->script != NULL && (o->pid != 0 || o->duration > 0))
		return err_set(err, EXIT_USAGE,
				"--script: nothing is recorded, so neither --pid nor --duration");
	in = open_script(o, err);
	if (in == NULL)
		return -1;
	exits_parse(&e, in);
	bad = ferror(in) != 0;
	if (bad)
		err_set(err, EXIT_FAILED, "%s: %s", o->script != NULL ? o->script : "perf script",
				strerror(errno));
	else if (probe_interrupted())
		bad = err_set(err, EXIT_FAILED, "interrupted") != 0;
	else if (e.nb == 0)
		bad = err_set(err, EXIT_FAILED, "%s: no exit of a guest in it",
				      o->script != NULL ? o->script : "what perf recorded") != 0;
	fclose(in);
	if (!bad) {
		exits_rows(r, &e);
		publish(r);
		r->table = print_exits;
		if (o->script != NULL)
			r->comparable = "no: recorded, on a machine that the file does not tell";
		json_object_set_new(r->facts, "exits_without_entry",
				json_integer((json_int_t)e.without_entry));
		json_object_set_new(r->facts, "entries_without_exit",
				json_integer((json_int_t)e.without_exit));
		json_object_set_new(
				r->facts, "other_lines", json_integer((json_int_t)e.other_lines));
		if (e.without_entry + e.without_exit > 0)
			report_note(r,
					"%" PRIu64 " exits without an entry and %" PRIu64
					" entries without an exit are left out",
					e.without_entry, e.without_exit);
		if (e.other_lines > 0)
			report_note(r, "%" PRIu64 " lines told of neither", e.other_lines);
	}
	exits_free(&e);
	return bad ? -1 : 0;
}
