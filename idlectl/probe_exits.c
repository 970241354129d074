/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * idlectl probe msr --exits: how long the exits of a guest took on the host, by reason, from the kernel's
 * tracepoints kvm_exit and kvm_entry as perf script prints them.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <search.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "perf.h"
#include "probe_exits.h"
#include "sysroot.h"

/* More than any host has: what goes beyond is no recording of one. */
#define THREADS_MAX 65536
#define REASONS_MAX 1024

#define LINE_BYTES 65536 /* a longer line is none of ours */
#define WAIT_MS 10 /* from one look at what a signal told to the next */
#define SECONDS 10 /* unless others are asked for */

/* ---- reasons ---- */

struct thread {
	int tid; /* first: the key */
	struct exit_reason *pending; /* why it has exited; NULL: it has not */
	uint64_t since; /* ns */
};

void
exits_free(struct exits *e)
{
	for (size_t i = 0; i < e->nb; i++)
		free(e->reasons[i]);
	free(e->reasons);
	tdestroy(e->threads, free);
	memset(e, 0, sizeof(*e));
}

struct exit_reason *
exits_reason(struct exits *e, const char *name)
{
	struct exit_reason *new;

	for (size_t i = 0; i < e->nb; i++)
		if (strcmp(e->reasons[i]->name, name) == 0)
			return e->reasons[i];
	if (e->nb == REASONS_MAX)
		return NULL;
	e->reasons = reallocarray(e->reasons, e->nb + 1, sizeof(*e->reasons));
	if (e->reasons == NULL)
		abort();
	new = probe_alloc(1, sizeof(*new));
	snprintf(new->name, sizeof(new->name), "%s", name);
	e->reasons[e->nb++] = new;
	return new;
}

void
exit_reason_add(struct exit_reason *reason, double us)
{
	double delta = us - reason->mean;

	reason->n++;
	reason->mean += delta / (double)reason->n;
	reason->m2 += delta * (us - reason->mean);
	reason->min = reason->n == 1 ? us : fmin(reason->min, us);
	reason->max = reason->n == 1 ? us : fmax(reason->max, us);
}

double
exit_reason_rse(const struct exit_reason *reason)
{
	double n = (double)reason->n;

	if (reason->n < 2 || !(reason->mean > 0))
		return NAN;
	return 100 * sqrt(reason->m2 / (n - 1) / n) / reason->mean;
}

/* ---- lines ---- */

/* What stands in a line: "comm tid [cpu] seconds: kvm:kvm_exit: vcpu 0 reason msr rip 0x100c ...". */
struct event {
	bool exit;
	int tid;
	uint64_t ns;
	unsigned int decimals;
	const char *rest; /* behind the event's name */
};

struct word {
	const char *at;
	size_t len;
};

/* The last word of a line before end; of length 0 where there is none. */
static struct word
word_before(const char *line, const char *end)
{
	const char *at;

	while (end > line && end[-1] == ' ')
		end--;
	for (at = end; at > line && at[-1] != ' '; at--)
		;
	return (struct word){ at, (size_t)(end - at) };
}

static bool
parse_number(struct word w, uint64_t most, uint64_t *value)
{
	*value = 0;
	for (size_t i = 0; i < w.len; i++) {
		if (w.at[i] < '0' || w.at[i] > '9')
			return false;
		*value = *value * 10 + (uint64_t)(w.at[i] - '0');
		if (*value > most)
			return false;
	}
	return w.len > 0;
}

/* "11.905494705:" */
static bool
parse_time(struct word w, struct event *event)
{
	const char *dot = memchr(w.at, '.', w.len);
	uint64_t seconds, fraction;

	if (dot == NULL || w.at[w.len - 1] != ':')
		return false;
	event->decimals = (unsigned int)(w.at + w.len - 1 - (dot + 1));
	if (event->decimals > 9 ||
			!parse_number((struct word){ w.at, (size_t)(dot - w.at) }, UINT32_MAX,
					&seconds) ||
			!parse_number((struct word){ dot + 1, event->decimals }, 999999999,
					&fraction))
		return false;
	for (unsigned int i = event->decimals; i < 9; i++)
		fraction *= 10;
	event->ns = seconds * 1000000000 + fraction;
	return true;
}

/* What stands before the event's name, from its end to the command, which may hold anything. */
static bool
parse_head(const char *line, const char *end, struct event *event)
{
	struct word w = word_before(line, end);
	const char *slash;
	uint64_t tid;

	if (w.len == 0 || !parse_time(w, event))
		return false;
	w = word_before(line, w.at);
	if (w.len > 2 && w.at[0] == '[' && w.at[w.len - 1] == ']')
		w = word_before(line, w.at);
	slash = memchr(w.at, '/', w.len); /* "pid/tid", where both were asked for */
	if (slash != NULL)
		w = (struct word){ slash + 1, (size_t)(w.at + w.len - (slash + 1)) };
	if (!parse_number(w, INT32_MAX, &tid))
		return false;
	event->tid = (int)tid;
	return true;
}

static bool
parse_event(const char *line, struct event *event)
{
	static const char prefix[] = " kvm:kvm_";

	/* A command may be called so too: the event's name is the one behind a time. */
	for (const char *at = strstr(line, prefix); at != NULL; at = strstr(at + 1, prefix)) {
		const char *name = at + strlen(prefix);

		event->exit = strncmp(name, "exit: ", 6) == 0;
		if (!event->exit && strncmp(name, "entry: ", 7) != 0)
			continue;
		event->rest = name + (event->exit ? 6 : 7);
		if (parse_head(line, at, event))
			return true;
	}
	return false;
}

/*
 * The reason in "vcpu 0 reason MSR_WRITE FAILED_VMENTRY rip 0x..."; older kernels do not print the virtual
 * CPU, and perf's plugin for kvm has names of its own ("EXIT_MSR"). It may hold spaces ("PF excp"). False
 * where there is none.
 */
static bool
parse_reason(const char *rest, char *name, size_t size)
{
	const char *from = strstr(rest, "reason "), *to;
	size_t len;

	if (from == NULL || (from != rest && strncmp(rest, "vcpu ", 5) != 0))
		return false;
	from += strlen("reason ");
	to = strstr(from, " rip ");
	len = to != NULL ? (size_t)(to - from) : 0;
	if (len == 0 || len >= size)
		return false;
	memcpy(name, from, len);
	name[len] = '\0';
	one_line(name);
	return true;
}

/* ---- pairs ---- */

static int
compare_threads(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	return (x > y) - (x < y);
}

/* NULL: there are too many. */
static struct thread *
find_thread(struct exits *e, int tid)
{
	struct thread **found = tfind(&tid, &e->threads, compare_threads), *new;

	if (found != NULL)
		return *found;
	if (e->nb_threads == THREADS_MAX)
		return NULL;
	new = probe_alloc(1, sizeof(*new));
	new->tid = tid;
	if (tsearch(new, &e->threads, compare_threads) == NULL)
		abort();
	e->nb_threads++;
	return new;
}

static void
entered(struct exits *e, struct thread *thread, uint64_t ns)
{
	if (thread->pending == NULL) {
		e->lone_entries++;
	} else if (ns < thread->since) {
		e->backward++;
	} else {
		exit_reason_add(thread->pending, (double)(ns - thread->since) / 1000);
		histogram_add(&thread->pending->ns, ns - thread->since);
	}
	thread->pending = NULL;
}

static int
take_event(struct exits *e, const struct event *event, struct err *err)
{
	char name[sizeof(((struct exit_reason *)0)->name)];
	struct exit_reason *reason = NULL;
	struct thread *thread;

	if (event->exit && !parse_reason(event->rest, name, sizeof(name))) {
		e->skipped++;
		return 0;
	}
	thread = find_thread(e, event->tid);
	if (thread == NULL)
		return err_set(err, EXIT_FAILED, "more than %d threads of virtual CPUs",
				THREADS_MAX);
	e->fine |= event->decimals > 6;
	if (!event->exit) {
		entered(e, thread, event->ns);
		return 0;
	}
	reason = exits_reason(e, name);
	if (reason == NULL)
		return err_set(err, EXIT_FAILED, "more than %d exit reasons", REASONS_MAX);
	e->exits++;
	e->lone_exits += thread->pending != NULL;
	thread->pending = reason;
	thread->since = event->ns;
	return 0;
}

/* For twalk_r(). */
static void
forget_pending(const void *node, VISIT visit, void *lone)
{
	struct thread *thread = *(struct thread *const *)node;

	if ((visit == postorder || visit == leaf) && thread->pending != NULL) {
		thread->pending = NULL;
		++*(uint64_t *)lone;
	}
}

int
exits_line(struct exits *e, char *line, struct err *err)
{
	static const char lost[] = "PERF_RECORD_LOST lost ";
	const char *at;
	struct event event;

	/* Comments, as perf script --header writes. */
	if (line[0] == '#' || line[0] == '\0')
		return 0;
	if (parse_event(line, &event))
		return take_event(e, &event, err);
	at = strstr(line, lost);
	if (at == NULL) {
		e->skipped++;
		return 0;
	}
	/* What was lost may be the other half of any of them. */
	e->lost += strtoul(at + strlen(lost), NULL, 10);
	twalk_r(e->threads, forget_pending, &e->lone_exits);
	return 0;
}

/* ---- files ---- */

/* A file as it is read: buffer[at..used) is still to be taken. */
struct reader {
	int fd;
	size_t at, used;
	bool too_long; /* what is in the buffer is the end of a line that did not fit */
	char buffer[LINE_BYTES + 1];
};

/* More bytes behind those that are there. Returns how many, 0 at the end, or -1 with err set. */
static ssize_t
read_more(struct reader *in, const char *name, struct err *err)
{
	struct pollfd ready = { .fd = in->fd, .events = POLLIN };
	ssize_t n;

	memmove(in->buffer, in->buffer + in->at, in->used - in->at);
	in->used -= in->at;
	in->at = 0;
	if (in->used == LINE_BYTES) {
		in->used = 0;
		in->too_long = true;
	}
	do {
		if (probe_interrupted())
			return err_set(err, EXIT_FAILED, "interrupted");
	} while (poll(&ready, 1, WAIT_MS) <= 0);
	n = read(in->fd, in->buffer + in->used, LINE_BYTES - in->used);
	if (n < 0)
		return errno == EINTR ? err_set(err, EXIT_FAILED, "interrupted")
				      : err_set(err, EXIT_FAILED, "%s: %s", name, strerror(errno));
	in->used += (size_t)n;
	return n;
}

static int
take_line(struct exits *e, struct reader *in, size_t len, struct err *err)
{
	char *line = in->buffer + in->at;
	bool usable = !in->too_long && memchr(line, '\0', len) == NULL;

	line[len] = '\0';
	in->at += len;
	in->too_long = false;
	if (usable)
		return exits_line(e, line, err);
	e->skipped++;
	return 0;
}

int
exits_read(struct exits *e, int fd, const char *name, struct err *err)
{
	struct reader *in = probe_alloc(1, sizeof(*in));
	ssize_t more = 1;
	int rc = 0;

	in->fd = fd;
	while (rc == 0 && more > 0) {
		char *end = memchr(in->buffer + in->at, '\n', in->used - in->at);

		if (end != NULL) {
			rc = take_line(e, in, (size_t)(end - (in->buffer + in->at)), err);
			in->at++;
			continue;
		}
		more = read_more(in, name, err);
	}
	if (rc == 0 && more == 0 && (in->used > in->at || in->too_long))
		rc = take_line(e, in, in->used - in->at, err);
	free(in);
	return rc != 0 || more < 0 ? -1 : 0;
}

/* ---- report ---- */

/* The rows of a reason, in the order of perf kvm stat's columns, and where each is published, of other mitigations and loads. */
enum { SAMPLES, SAMPLES_SHARE, TIME_SHARE, MIN, MAX, MEAN, RSE, NB_METRICS };

static const struct {
	const char *metric, *unit, *column;
} metrics[NB_METRICS] = {
	[SAMPLES] = { "samples", "exits", "samples" },
	[SAMPLES_SHARE] = { "samples share", "%", "samples_pct" },
	[TIME_SHARE] = { "time share", "%", "time_pct" },
	[MIN] = { "min", "us", "min_us" },
	[MAX] = { "max", "us", "max_us" },
	[MEAN] = { "mean", "us", "avg_us" },
	[RSE] = { "rse", "%", "rse_pct" },
};

static const char *const published[] = {
	"case=hackbench&mitigations=on&fastpath=yes",
	"case=hackbench&mitigations=on&fastpath=no",
	"case=hackbench&mitigations=off&fastpath=yes",
	"case=hackbench&mitigations=off&fastpath=no",
};
#define NB_PUBLISHED (sizeof(published) / sizeof(published[0]))
#define PUBLISHED_REASON "MSR_WRITE"

static int
most_samples_first(const void *a, const void *b)
{
	const struct exit_reason *x = *(struct exit_reason *const *)a,
				 *y = *(struct exit_reason *const *)b;

	if (x->n != y->n)
		return x->n < y->n ? 1 : -1;
	return strcmp(x->name, y->name);
}

static void
add_reason(struct probe_report *r, const struct exit_reason *reason, double samples, double time)
{
	double n = (double)reason->n;
	const double of[NB_METRICS] = { n, 100 * n / samples, 100 * n * reason->mean / time,
		reason->min, reason->max, reason->mean, exit_reason_rse(reason) };

	for (size_t i = 0; i < NB_METRICS; i++)
		report_add_one(r, reason->name, metrics[i].metric, metrics[i].unit, of[i]);
	report_add_histogram(r, reason->name, "ns", &reason->ns);
}

static bool
is_one_of(const char *name, const char *const names[], size_t nb)
{
	for (size_t i = 0; i < nb; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

static void
add_notes(const struct exits *e, struct probe_report *r)
{
	/* As the kernel, and perf's plugin, name the same exit. */
	static const char *const msr[] = { "msr", "EXIT_MSR" };
	static const char *const hlt[] = { "HLT", "hlt", "EXIT_HLT" };

	if (e->lone_exits + e->lone_entries > 0)
		report_note(r,
				"left out: exits without an entry behind them %" PRIu64
				", entries without an exit before them %" PRIu64
				"; where a recording begins and ends each thread has one",
				e->lone_exits, e->lone_entries);
	if (e->backward > 0)
		report_note(r, "left out: entries before their exits %" PRIu64, e->backward);
	if (e->lost > 0)
		report_note(r,
				"perf lost %" PRIu64
				" events: shares are of what is left, pairs across a gap are left out",
				e->lost);
	if (e->skipped > 0)
		report_note(r, "lines that are no kvm_exit or kvm_entry: %" PRIu64, e->skipped);
	if (!e->fine)
		report_note(r, "times are whole microseconds: perf script --ns writes better ones");
	for (size_t i = 0; i < e->nb; i++) {
		if (is_one_of(e->reasons[i]->name, msr, 2))
			report_note(r,
					"%s: on AMD reading and writing an MSR are one reason, published are "
					"writes",
					e->reasons[i]->name);
		if (is_one_of(e->reasons[i]->name, hlt, 3))
			report_note(r,
					"%s: its time is that of a virtual CPU that sleeps, and part of all "
					"time shares",
					e->reasons[i]->name);
	}
}

static void
add_facts(const struct exits *e, struct probe_report *r)
{
	json_object_update_new(r->facts,
			json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "exits",
					(json_int_t)e->exits, "threads", (json_int_t)e->nb_threads,
					"exits_without_entry", (json_int_t)e->lone_exits,
					"entries_without_exit", (json_int_t)e->lone_entries,
					"entries_before_exit", (json_int_t)e->backward,
					"lost_events", (json_int_t)e->lost, "other_lines",
					(json_int_t)e->skipped));
}

/* Figures as perf kvm stat prints them; what is not known is left out. */
static void
print_group(const struct probe_row *rows, int width, const char *name, bool ours)
{
	double v[NB_METRICS];

	for (size_t i = 0; i < NB_METRICS; i++)
		v[i] = ours ? rows[i].net : rows[i].published;
	printf("%-*s %10.0f %8.2f%% %8.2f%% %10.2fus %10.2fus %10.2fus", width, name, v[SAMPLES],
			v[SAMPLES_SHARE], v[TIME_SHARE], v[MIN], v[MAX], v[MEAN]);
	if (isfinite(v[RSE]))
		printf(" ( +- %5.2f%% )", v[RSE]);
	else if (!ours)
		printf("               ");
	if (!ours)
		printf("  %s", rows[0].published_as);
	putchar('\n');
}

static void
print_exits(const struct probe_report *r)
{
	int width = (int)strlen(PUBLISHED_REASON);

	for (size_t i = 0; i < r->nb; i += NB_METRICS)
		if ((int)strlen(r->rows[i].name) > width)
			width = (int)strlen(r->rows[i].name);
	printf("%-*s %10s %9s %9s %12s %12s %12s      +-\n", width, "Reason", "Samples", "Samples%",
			"Time%", "Min", "Max", "Avg");
	for (size_t i = 0; i < r->nb; i += NB_METRICS)
		if (r->rows[i].n > 0)
			print_group(&r->rows[i], width, r->rows[i].name, true);
	printf("\n%s, published:\n", PUBLISHED_REASON);
	for (size_t i = 0; i < r->nb; i += NB_METRICS)
		if (isfinite(r->rows[i].published))
			print_group(&r->rows[i], width, "", false);
}

int
exits_report(struct exits *e, struct probe_report *r, struct err *err)
{
	double samples = 0, time = 0;

	twalk_r(e->threads, forget_pending, &e->lone_exits);
	for (size_t i = 0; i < e->nb; i++) {
		samples += (double)e->reasons[i]->n;
		time += (double)e->reasons[i]->n * e->reasons[i]->mean;
	}
	if (!(samples > 0))
		return err_set(err, EXIT_FAILED,
				e->exits > 0 ? "no exit of a guest with an entry behind it"
					     : "no exit of a guest: no line has kvm:kvm_exit");
	qsort(e->reasons, e->nb, sizeof(struct exit_reason *), most_samples_first);
	for (size_t i = 0; i < e->nb && e->reasons[i]->n > 0; i++)
		add_reason(r, e->reasons[i], samples, time);
	for (size_t i = 0; i < NB_PUBLISHED; i++)
		for (size_t k = 0; k < NB_METRICS; k++)
			report_add_published(r, PUBLISHED_REASON, metrics[k].metric,
					metrics[k].unit, published[i], metrics[k].column, 1);
	add_notes(e, r);
	add_facts(e, r);
	r->table = print_exits;
	return 0;
}

void
exits_publish_means(struct probe_report *r)
{
	for (size_t i = 0; i < NB_PUBLISHED; i++)
		report_add_published(r, PUBLISHED_REASON " exit", metrics[MEAN].metric,
				metrics[MEAN].unit, published[i], metrics[MEAN].column, 1);
}

/* ---- perf ---- */

/* What perf writes: files without a name, so that nothing of them is left however we end. */
struct place {
	int data, messages;
	char path[32]; /* of data, for perf */
};

/* Below $TMPDIR. Returns a descriptor, or -1 with err set. */
static int
nameless(int flags, struct err *err)
{
	const char *tmp = getenv("TMPDIR");
	char *path = sys_format("%s/idlectl-XXXXXX", tmp != NULL && tmp[0] != '\0' ? tmp : "/tmp");
	int fd = mkostemp(path, flags);

	if (fd >= 0)
		unlink(path);
	else
		err_set(err, EXIT_FAILED, "%s: %s", path, strerror(errno));
	free(path);
	return fd;
}

static void
close_place(const struct place *p)
{
	if (p->data >= 0)
		close(p->data);
	if (p->messages >= 0)
		close(p->messages);
}

static int
open_place(struct place *p, struct err *err)
{
	p->messages = -1;
	/* perf inherits it, and opens it by its path. */
	p->data = nameless(0, err);
	if (p->data >= 0)
		p->messages = nameless(O_CLOEXEC | O_APPEND, err);
	snprintf(p->path, sizeof(p->path), "/proc/self/fd/%d", p->data);
	if (p->messages >= 0)
		return 0;
	close_place(p);
	return -1;
}

/* What perf said, on one line, but for what it says of any recording. */
static void
read_messages(const struct place *p, char *text, size_t size)
{
	int fd = fcntl(p->messages, F_DUPFD_CLOEXEC, 0);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	char line[256];
	size_t len = 0;

	text[0] = '\0';
	if (file != NULL)
		rewind(file);
	while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
		char *word, *rest;

		if (strncmp(line, "[ perf record: ", 15) == 0)
			continue;
		for (word = strtok_r(one_line(line), " ", &rest); word != NULL && len < size;
				word = strtok_r(NULL, " ", &rest))
			len += (size_t)snprintf(
					text + len, size - len, "%s%s", len > 0 ? " " : "", word);
	}
	if (file != NULL)
		fclose(file);
	else if (fd >= 0)
		close(fd);
}

/* Wait for perf, and end it once a signal came. status is how it ended. Returns 0, or -1 with err set. */
static int
finish(const struct place *p, const char *what, struct perf *perf, int *status, struct err *err)
{
	char text[400];
	bool ran = perf_wait(perf, -1, NULL, NULL);

	*status = perf_end(perf);
	if (!ran)
		return err_set(err, EXIT_FAILED, "interrupted");
	if (*status == 0)
		return 0;
	read_messages(p, text, sizeof(text));
	return perf_failed(what, *status, text, err);
}

/*
 * A buffer as perf kvm stat record has it, nothing in the user's cache of perf, and every event: a sample of them would have no pairs. When the
 * process that it looks at ends, perf ends the sleep, writes what it has, and ends by the sleep's signal.
 */
static int
record(const struct place *p, const struct probe_options *o, struct probe_report *r,
		struct err *err)
{
	char pid[16], seconds[32];
	const char *argv[] = { "perf", "record", "-R", "-B", "-N", "-m", "1024", "-c", "1", "-e",
		"kvm:kvm_exit,kvm:kvm_entry", "-o", p->path, o->pid > 0 ? "-p" : "-a",
		o->pid > 0 ? pid : "--", o->pid > 0 ? "--" : "sleep",
		o->pid > 0 ? "sleep" : seconds, o->pid > 0 ? seconds : NULL, NULL };
	struct perf perf = { 0 };
	int status;

	snprintf(pid, sizeof(pid), "%lu", o->pid);
	snprintf(seconds, sizeof(seconds), "%.3f", o->duration > 0 ? o->duration : SECONDS);
	if (perf_start(&perf, argv, p->messages, p->messages, err) != 0)
		return -1;
	if (finish(p, "perf record", &perf, &status, err) == 0)
		return 0;
	if (probe_interrupted() || o->pid == 0 || !WIFSIGNALED(status) ||
			WTERMSIG(status) != SIGTERM)
		return -1;
	report_note(r, "process %lu ended before the time was over", o->pid);
	return 0;
}

static int
replay(const struct place *p, struct exits *e, struct err *err)
{
	const char *const argv[] = { "perf", "script", "-i", p->path, "--ns", "--show-lost-events",
		"-F", "comm,tid,cpu,time,event,trace", NULL };
	struct perf perf = { 0 };
	int ends[2], status, rc;

	/* What perf record said while it did well is no reason why perf script fails. */
	if (ftruncate(p->messages, 0) != 0 || pipe2(ends, O_CLOEXEC) != 0)
		return err_set(err, EXIT_FAILED, "perf script: %s", strerror(errno));
	rc = perf_start(&perf, argv, ends[1], p->messages, err);
	close(ends[1]);
	if (rc == 0) {
		rc = exits_read(e, ends[0], "perf script", err);
		if (rc != 0)
			perf_end(&perf);
		else
			rc = finish(p, "perf script", &perf, &status, err);
	}
	close(ends[0]);
	return rc;
}

/* Whether there are guests whose exits can be recorded. */
static int
check_host(struct err *err)
{
	if (!sys_live())
		return err_set(err, EXIT_SKIPPED,
				"a recorded tree runs no guests (--script FILE reads a recording of some)");
	if (!sys_exists("/sys/module/kvm"))
		return err_set(err, EXIT_SKIPPED,
				"this machine runs no KVM guests: kvm is not loaded");
	/* It may be part of the kernel where the CPU has neither VMX nor SVM. */
	if (!sys_exists("/sys/class/misc/kvm"))
		return err_set(err, EXIT_SKIPPED,
				"this machine runs no KVM guests: there is no /dev/kvm");
	if (access("/sys/kernel/tracing/events/kvm/kvm_exit/id", R_OK) != 0 &&
			access("/sys/kernel/debug/tracing/events/kvm/kvm_exit/id", R_OK) != 0)
		return err_set(err, EXIT_SKIPPED,
				"the kernel's tracepoints of kvm cannot be read (tracefs, root): %s",
				strerror(errno));
	return 0;
}

static int
read_live(struct exits *e, const struct probe_options *o, struct probe_report *r, struct err *err)
{
	struct place p;
	int rc;

	/* Ignored, as a parent may have left it, no child's end would be told. */
	signal(SIGCHLD, SIG_DFL);
	if (check_host(err) != 0)
		return -1;
	if (o->pid > 0 && kill((pid_t)o->pid, 0) != 0 && errno == ESRCH)
		return err_set(err, EXIT_FAILED, "--pid %lu: no such process", o->pid);
	if (open_place(&p, err) != 0)
		return -1;
	rc = record(&p, o, r, err);
	if (rc == 0)
		rc = replay(&p, e, err);
	close_place(&p);
	return rc;
}

static int
read_script(struct exits *e, const char *name, struct err *err)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC), rc;
	struct stat file;

	if (fd < 0)
		return err_set(err, EXIT_FAILED, "--script %s: %s", name, strerror(errno));
	if (fstat(fd, &file) == 0 && S_ISDIR(file.st_mode))
		rc = err_set(err, EXIT_FAILED, "--script %s: %s", name, strerror(EISDIR));
	else
		rc = exits_read(e, fd, name, err);
	close(fd);
	return rc;
}

int
probe_exits(struct probe_report *r, const struct probe_options *o, struct err *err)
{
	struct exits e = { 0 };
	int rc;

	if (o->script != NULL && (o->pid > 0 || o->duration > 0))
		return err_set(err, EXIT_USAGE, "--script and --%s contradict each other",
				o->pid > 0 ? "pid" : "duration");
	if (o->cpu_given)
		return err_set(err, EXIT_USAGE,
				"--cpu and --exits contradict each other: guests run on any CPU");
	r->recorded = o->script != NULL;
	rc = o->script != NULL ? read_script(&e, o->script, err) : read_live(&e, o, r, err);
	if (rc == 0)
		rc = exits_report(&e, r, err);
	if (rc == 0 && o->script != NULL)
		json_object_set_new(r->facts, "script", json_string(o->script));
	exits_free(&e);
	return rc;
}
