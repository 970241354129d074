/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_telemetry.h>
#include <rte_version.h>

#include "remote.h"
#include "sysroot.h"

#define WINDOWS_MAX 1024 /* rows that are kept; older ones are forgotten */

/* What is told: written by the controller, read by threads of telemetry's, which have no part in forwarding. */
static struct {
	pthread_mutex_t lock;
	struct result_window *rows; /* the last of them, in turn */
	uint64_t nb_rows, windows, tainted; /* so far */
	uint64_t bursts[LCORE_BURST_MAX + 1];
	bool have_bursts;
	struct placed at[PLACEMENT_MAX];
	unsigned int nb, main_cpu;
	char scenario[SCENARIO_MAX];
	int sibling;
	const char *prom;
	char *prom_new;
} told = { .lock = PTHREAD_MUTEX_INITIALIZER, .sibling = -1 };

/* ---- telemetry ---- */

static void
add_integer(struct rte_tel_data *d, const char *name, uint64_t value)
{
	if (value == RESULT_UNKNOWN)
		return;
#if RTE_VERSION >= RTE_VERSION_NUM(23, 3, 0, 0)
	rte_tel_data_add_dict_uint(d, name, value);
#else
	/* Its name until 23.03. */
	rte_tel_data_add_dict_u64(d, name, value);
#endif
}

/* Telemetry has no numbers but whole ones. */
static void
add_number(struct rte_tel_data *d, const char *name, double value)
{
	char text[32];

	if (!isfinite(value))
		return;
	snprintf(text, sizeof(text), "%.9g", value);
	rte_tel_data_add_dict_string(d, name, text);
}

static const struct result_window *
row(uint64_t number)
{
	return &told.rows[number % WINDOWS_MAX];
}

static bool
same_window(const struct result_window *a, const struct result_window *b)
{
	return a->visit == b->visit && a->window == b->window;
}

/* The first row of the latest window, of those that are kept. */
static uint64_t
first_of_last(void)
{
	uint64_t first = told.nb_rows - 1;

	while (first > 0 && told.nb_rows - first < WINDOWS_MAX &&
			same_window(row(first - 1), row(told.nb_rows - 1)))
		first--;
	return first;
}

static int
tell_windows(const char *params, struct rte_tel_data *d)
{
	(void)params;
	add_integer(d, "windows", told.windows);
	add_integer(d, "tainted", told.tainted);
	if (told.nb_rows > 0) {
		rte_tel_data_add_dict_string(d, "run_id", row(told.nb_rows - 1)->run_id);
		rte_tel_data_add_dict_string(d, "utc_start", row(told.nb_rows - 1)->utc_start);
	}
	add_integer(d, "emulated", sys_emulated() ? 1 : 0);
	return 0;
}

static void
add_row(struct rte_tel_data *d, const struct result_window *w)
{
	rte_tel_data_add_dict_string(d, "scenario", w->scenario);
	add_integer(d, "visit", w->visit);
	add_integer(d, "window", w->window);
	add_integer(d, "warmup", w->warmup);
	add_integer(d, "tainted", w->tainted);
	rte_tel_data_add_dict_string(d, "taint", w->taint);
	add_integer(d, "cpu", w->cpu);
	add_integer(d, "sibling_cpu", w->sibling_cpu);
	add_integer(d, "duration_ns", w->duration_ns);
	add_integer(d, "rx_packets", w->rx_packets);
	add_integer(d, "tx_packets", w->tx_packets);
	add_integer(d, "tx_dropped", w->tx_dropped);
	add_integer(d, "rx_missed", w->rx_missed);
	add_integer(d, "polls", w->polls);
	add_integer(d, "empty_polls", w->empty_polls);
	add_number(d, "pps", w->pps);
	add_number(d, "tsc_cycles_per_packet", w->tsc_cycles_per_packet);
	add_integer(d, "sibling_idle_entries", w->sibling_idle_entries);
	add_integer(d, "sibling_idle_ns", w->sibling_idle_ns);
	rte_tel_data_add_dict_string(d, "sibling_spec_ctrl", w->sibling_spec_ctrl);
	add_integer(d, "emulated", w->emulated);
}

/* "latest", or the number of one that is kept, from 1; a dictionary an lcore. */
static int
tell_window(const char *params, struct rte_tel_data *d)
{
	uint64_t nb = told.nb_rows, wanted = 0, first = nb > 0 ? first_of_last() : 0, number = 1;
	char *end;

	if (params != NULL && params[0] != '\0' && strcmp(params, "latest") != 0) {
		wanted = strtoull(params, &end, 10);
		if (params[0] < '0' || params[0] > '9' || *end != '\0' || wanted == 0)
			return -EINVAL;
	}
	if (wanted > 0) {
		/* From the first row that is kept on. */
		first = nb > WINDOWS_MAX ? nb - WINDOWS_MAX : 0;
		while (first < nb && number < wanted) {
			uint64_t next = first;

			while (next < nb && same_window(row(first), row(next)))
				next++;
			first = next;
			number++;
		}
	}
	if (first >= nb)
		return -ENOENT;
	for (uint64_t i = first; i < nb && same_window(row(first), row(i)); i++) {
		struct rte_tel_data *lcore = rte_tel_data_alloc();
		char name[32];

		if (lcore == NULL)
			break;
		rte_tel_data_start_dict(lcore);
		add_row(lcore, row(i));
		snprintf(name, sizeof(name), "lcore_%" PRIu64, row(i)->lcore);
		rte_tel_data_add_dict_container(d, name, lcore, 0);
	}
	return 0;
}

static int
tell_scenario(const char *params, struct rte_tel_data *d)
{
	(void)params;
	rte_tel_data_add_dict_string(
			d, "scenario", told.scenario[0] != '\0' ? told.scenario : "as-is");
	if (told.sibling >= 0)
		add_integer(d, "cpu", (uint64_t)told.sibling);
	return 0;
}

static int
tell_placement(const char *params, struct rte_tel_data *d)
{
	(void)params;
	add_integer(d, "controller_cpu", told.main_cpu);
	for (unsigned int i = 0; i < told.nb; i++) {
		struct rte_tel_data *lcore = rte_tel_data_alloc();
		char name[32];

		if (lcore == NULL)
			break;
		rte_tel_data_start_dict(lcore);
		add_integer(lcore, "cpu", told.at[i].cpu);
		if (told.at[i].sibling >= 0)
			add_integer(lcore, "sibling_cpu", (uint64_t)told.at[i].sibling);
		rte_tel_data_add_dict_string(lcore, "relation", relation_word(told.at[i].relation));
		snprintf(name, sizeof(name), "lcore_%u", told.at[i].lcore);
		rte_tel_data_add_dict_container(d, name, lcore, 0);
	}
	return 0;
}

/* Turns by frames of the latest window, all its lcores together; empty unless they are recorded. */
static int
tell_burst(const char *params, struct rte_tel_data *d)
{
	(void)params;
	for (unsigned int b = 0; told.have_bursts && b <= LCORE_BURST_MAX; b++) {
		char name[16];

		snprintf(name, sizeof(name), "%u", b);
		if (told.bursts[b] > 0)
			add_integer(d, name, told.bursts[b]);
	}
	return 0;
}

static const struct {
	const char *name;
	/* Fills a dictionary. Returns 0 or an error for telemetry. */
	int (*tell)(const char *params, struct rte_tel_data *d);
	const char *help;
} commands[] = {
	{ "/sibfwd/windows", tell_windows, "How many windows were measured. No parameters" },
	{ "/sibfwd/window", tell_window, "A window. Parameters: latest, or its number from 1" },
	{ "/sibfwd/scenario", tell_scenario, "What the sibling does. No parameters" },
	{ "/sibfwd/placement", tell_placement, "Which lcore is where. No parameters" },
	{ "/sibfwd/burst", tell_burst, "Turns by frames of the latest window. No parameters" },
};

static int
tell(const char *cmd, const char *params, struct rte_tel_data *d)
{
	int rc = -ENOENT;

	pthread_mutex_lock(&told.lock);
	rte_tel_data_start_dict(d);
	for (size_t i = 0; i < RTE_DIM(commands); i++)
		if (strcmp(commands[i].name, cmd) == 0)
			rc = commands[i].tell(params, d);
	pthread_mutex_unlock(&told.lock);
	return rc;
}

/* ---- Prometheus ---- */

struct metric {
	const char *name, *help;
	double (*of)(const struct result_window *w);
};

static double
pps_of(const struct result_window *w)
{
	return w->pps;
}

static double
cycles_of(const struct result_window *w)
{
	return w->tsc_cycles_per_packet;
}

static double
part(uint64_t a, uint64_t b)
{
	return a == RESULT_UNKNOWN || b == RESULT_UNKNOWN || b == 0 ? NAN : (double)a / (double)b;
}

static double
empty_of(const struct result_window *w)
{
	return part(w->empty_polls, w->polls);
}

static double
dropped_of(const struct result_window *w)
{
	return 1e9 * part(w->tx_dropped, w->duration_ns);
}

static double
missed_of(const struct result_window *w)
{
	return 1e9 * part(w->rx_missed, w->duration_ns);
}

static double
idle_of(const struct result_window *w)
{
	return part(w->sibling_idle_ns, w->duration_ns);
}

static double
wakeups_of(const struct result_window *w)
{
	return 1e9 * part(w->sibling_idle_entries, w->duration_ns);
}

static double
tainted_of(const struct result_window *w)
{
	return (double)w->tainted;
}

static double
emulated_of(const struct result_window *w)
{
	return (double)w->emulated;
}

static const struct metric metrics[] = {
	{ "packets_per_second", "packets of the latest window through its time", pps_of },
	{ "tsc_cycles_per_packet", "TSC cycles of the whole loop through packets", cycles_of },
	{ "empty_polls_ratio", "polls that received nothing", empty_of },
	{ "tx_dropped_per_second", "frames refused by the driver or the mode", dropped_of },
	{ "rx_missed_per_second", "frames missed by the port", missed_of },
	{ "sibling_idle_ratio", "time that the sibling idled", idle_of },
	{ "sibling_wakeups_per_second", "idle periods of the sibling", wakeups_of },
	{ "window_tainted", "1: something disturbed the window", tainted_of },
	{ "emulated", "1: an emulator's figures, which say nothing of speed", emulated_of },
};

/* A label's value: what may not stand there is escaped. */
static void
print_label(FILE *out, const char *name, const char *value)
{
	fprintf(out, "%s=\"", name);
	for (; *value != '\0'; value++)
		fprintf(out, "%s%c", *value == '"' || *value == '\\' ? "\\" : "", *value);
	fprintf(out, "\"");
}

static void
print_metrics(FILE *out)
{
	uint64_t first = told.nb_rows > 0 ? first_of_last() : 0;

	for (size_t m = 0; m < RTE_DIM(metrics); m++) {
		fprintf(out, "# HELP sibfwd_%s %s\n# TYPE sibfwd_%s gauge\n", metrics[m].name,
				metrics[m].help, metrics[m].name);
		for (uint64_t i = first; i < told.nb_rows; i++) {
			const struct result_window *w = row(i);
			double value = metrics[m].of(w);

			if (!isfinite(value))
				continue;
			fprintf(out, "sibfwd_%s{lcore=\"%" PRIu64 "\",cpu=\"%" PRIu64 "\",",
					metrics[m].name, w->lcore, w->cpu);
			print_label(out, "mode", w->mode);
			fputc(',', out);
			print_label(out, "scenario", w->scenario);
			fprintf(out, "} %.9g\n", value);
		}
	}
	fprintf(out,
			"# HELP sibfwd_windows_total windows that were measured\n"
			"# TYPE sibfwd_windows_total counter\nsibfwd_windows_total %" PRIu64
			"\n# HELP sibfwd_windows_tainted_total of these, disturbed ones\n"
			"# TYPE sibfwd_windows_tainted_total counter\n"
			"sibfwd_windows_tainted_total %" PRIu64
			"\n# HELP sibfwd_written_timestamp_seconds when this was written\n"
			"# TYPE sibfwd_written_timestamp_seconds gauge\n"
			"sibfwd_written_timestamp_seconds %.3f\n",
			told.windows, told.tainted, 1e-9 * (double)result_now());
}

/* Beside, and renamed: whoever reads it finds a whole one. */
int
remote_written(struct err *err)
{
	FILE *out;
	bool good;

	if (told.prom == NULL)
		return 0;
	out = fopen(told.prom_new, "we");
	if (out == NULL)
		return err_set(err, EXIT_FAILED, "--prom-file=%s: %s", told.prom, strerror(errno));
	print_metrics(out);
	good = ferror(out) == 0;
	if (fclose(out) != 0 || !good || rename(told.prom_new, told.prom) != 0) {
		err_set(err, EXIT_FAILED, "--prom-file=%s: %s", told.prom, strerror(errno));
		unlink(told.prom_new);
		return -1;
	}
	return 0;
}

/* ---- what is told ---- */

int
remote_begin(const struct run *r, struct err *err)
{
	told.rows = calloc(WINDOWS_MAX, sizeof(*told.rows));
	if (told.rows == NULL)
		return err_set(err, EXIT_FAILED, "out of memory");
	told.prom = r->options.prom_file;
	if (told.prom != NULL)
		told.prom_new = sys_format("%s.%d", told.prom, (int)getpid());
	for (size_t i = 0; i < RTE_DIM(commands); i++)
		rte_telemetry_register_cmd(commands[i].name, tell, commands[i].help);
	return remote_written(err);
}

void
remote_placement(const struct placement *p)
{
	pthread_mutex_lock(&told.lock);
	told.nb = p->nb;
	told.main_cpu = p->main_cpu;
	memcpy(told.at, p->at, p->nb * sizeof(*p->at));
	pthread_mutex_unlock(&told.lock);
}

void
remote_scenario(const char *words, int cpu)
{
	pthread_mutex_lock(&told.lock);
	snprintf(told.scenario, sizeof(told.scenario), "%s", words);
	told.sibling = cpu;
	pthread_mutex_unlock(&told.lock);
}

/* Whether a window that counts is not among the tainted ones: one lcore's taint is the window's. */
static bool
is_clean(const struct result_window *w)
{
	uint64_t kept = RTE_MIN(told.nb_rows, (uint64_t)WINDOWS_MAX);
	bool clean = w->warmup == 0;

	for (uint64_t i = told.nb_rows - kept; i < told.nb_rows && clean; i++)
		clean = !same_window(row(i), w) || row(i)->tainted == 0;
	return clean;
}

void
remote_tainted(const struct result_window *w)
{
	pthread_mutex_lock(&told.lock);
	told.tainted += is_clean(w);
	for (uint64_t i = told.nb_rows; i-- > 0 && told.nb_rows - i <= WINDOWS_MAX;)
		if (same_window(row(i), w) && row(i)->lcore == w->lcore)
			told.rows[i % WINDOWS_MAX] = *w;
	pthread_mutex_unlock(&told.lock);
}

void
remote_window(const struct result_window *w, const uint64_t *bursts)
{
	pthread_mutex_lock(&told.lock);
	if (told.nb_rows == 0 || !same_window(row(told.nb_rows - 1), w)) {
		told.windows += w->warmup == 0;
		memset(told.bursts, 0, sizeof(told.bursts));
	}
	told.tainted += w->tainted == 1 && is_clean(w);
	told.rows[told.nb_rows % WINDOWS_MAX] = *w;
	told.nb_rows++;
	told.have_bursts = bursts != NULL;
	for (unsigned int b = 0; bursts != NULL && b <= LCORE_BURST_MAX; b++)
		told.bursts[b] += bursts[b];
	pthread_mutex_unlock(&told.lock);
}

void
remote_end(void)
{
	/* Telemetry's threads live on, and find nothing. */
	pthread_mutex_lock(&told.lock);
	told.nb_rows = told.nb = 0;
	free(told.rows);
	told.rows = NULL;
	pthread_mutex_unlock(&told.lock);
	free(told.prom_new);
	told.prom_new = NULL;
	told.prom = NULL;
}
