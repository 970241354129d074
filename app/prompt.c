/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include <cmdline.h>
#include <cmdline_parse.h>
#include <cmdline_parse_string.h>
#include <cmdline_socket.h>

#include "live.h"
#include "prompt.h"
#include "roff.h"
#include "show.h"
#include "stop.h"
#include "summary.h"
#include "warn.h"

#define WORDS_MAX 8
#define POLL_MS 100 /* from one look at ports and signals to the next */
#define LINE_MAX_BYTES 512 /* librte_cmdline has so much room for a line */
#define LOADS_MAX 8 /* files that load each other */
#define BLOCKS 5 /* of compare, unless more are asked for */

/* A command line as librte_cmdline fills it in: words in their order; what is not there is empty. */
struct words {
	char word[WORDS_MAX][STR_TOKEN_SIZE];
	char rest[STR_MULTI_TOKEN_SIZE]; /* of <...>: up to the end of the line */
};

struct prompt {
	struct run *run;
	struct cmdline *cl;
	cmdline_parse_ctx_t *ctx;
	bool quit;
	bool typing; /* at a terminal or down a pipe, not from a file */
	unsigned int loads; /* files that are being read */
	bool located; /* the error tells file and line */
	double unprinted; /* seconds since the last --stats-period */
	struct err err; /* of the command that ran last */
	int rc;
};

/* ---- arguments ---- */

static int
number(const char *what, const char *text, unsigned long least, unsigned long most,
		unsigned long *value, struct err *err)
{
	char *end;

	errno = 0;
	*value = strtoul(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end != '\0')
		return err_set(err, EXIT_USAGE, "%s %s: not a whole number", what, text);
	if (errno != 0 || *value < least || *value > most)
		return err_set(err, EXIT_USAGE, "%s %s: out of range, %lu to %lu", what, text,
				least, most);
	return 0;
}

/* 0,2-3; each once. Returns how many, or -1 with err set. */
static int
list(const char *what, const char *text, unsigned int *at, unsigned int most, struct err *err)
{
	unsigned int nb;

	switch (options_list(text, UINT16_MAX, at, most, &nb)) {
	case LIST_GOOD:
		return (int)nb;
	case LIST_TWICE:
		return err_set(err, EXIT_USAGE, "%s %s: %u stands twice", what, text, at[nb - 1]);
	case LIST_LONG:
		return err_set(err, EXIT_USAGE, "%s %s: more than %u", what, text, most);
	default:
		return err_set(err, EXIT_USAGE, "%s %s: not a list like 0,2-3", what, text);
	}
}

/* Call for the port that a word names, or for all. */
static int
each_port(struct prompt *p, const char *word,
		int (*call)(struct prompt *p, struct port *port, const struct words *w,
				struct err *err),
		const struct words *w, struct err *err)
{
	struct ports *ports = &p->run->ports;
	bool all = strcmp(word, "all") == 0, found = false;
	unsigned long id = 0;

	if (!all && number("port", word, 0, UINT16_MAX, &id, err) != 0)
		return -1;
	for (unsigned int i = 0; i < ports->nb; i++) {
		if (ports->port[i].closed || (!all && ports->port[i].id != id))
			continue;
		found = true;
		if (call(p, &ports->port[i], w, err) != 0)
			return -1;
	}
	return found ? 0 : err_set(err, EXIT_USAGE, "Invalid port %s", word);
}

static int
please_stop(const struct prompt *p, struct err *err)
{
	if (!p->run->forwarding)
		return 0;
	return err_set(err, EXIT_FAILED, "Please stop forwarding first");
}

/* ---- forwarding ---- */

static int
do_start(struct prompt *p, const struct words *w, struct err *err)
{
	unsigned long bursts = w->word[1][0] != '\0' ? 1 : 0;

	if (w->word[2][0] != '\0' &&
			number("start tx_first", w->word[2], 1, 1000000, &bursts, err) != 0)
		return -1;
	if (run_start(p->run, (unsigned int)bursts, err) != 0)
		return -1;
	show_forwarding(p->run, stdout);
	show_config(p->run, stdout);
	return 0;
}

static int
do_stop(struct prompt *p, const struct words *w, struct err *err)
{
	(void)w;
	if (!p->run->forwarding)
		return run_stop(p->run, err);
	printf("Telling cores to stop...\nWaiting for lcores to finish...\n");
	if (run_stop(p->run, err) != 0)
		return -1;
	show_forward_stats(p->run, stdout);
	printf("\nDone.\n");
	return 0;
}

static int
do_quit(struct prompt *p, const struct words *w, struct err *err)
{
	(void)w;
	(void)err;
	p->quit = true;
	return 0;
}

static int
do_help(struct prompt *p, const struct words *w, struct err *err)
{
	(void)p;
	(void)w;
	(void)err;
	prompt_help(stdout);
	return 0;
}

/* ---- show and clear ---- */

static int
show_port(struct prompt *p, struct port *port, const struct words *w, struct err *err)
{
	static const struct {
		const char *word;
		void (*show)(const struct port *port, FILE *out);
	} shows[] = {
		{ "info", show_port_info },
		{ "stats", show_port_stats },
		{ "xstats", show_port_xstats },
		{ "summary", show_port_summary },
	};

	(void)p;
	(void)err;
	for (size_t i = 0; i < RTE_DIM(shows); i++)
		if (strcmp(shows[i].word, w->word[2]) == 0)
			shows[i].show(port, stdout);
	return 0;
}

static int
do_show_port(struct prompt *p, const struct words *w, struct err *err)
{
	if (strcmp(w->word[2], "summary") == 0)
		show_port_summary_head(stdout);
	return each_port(p, w->word[3], show_port, w, err);
}

static int
clear_port(struct prompt *p, struct port *port, const struct words *w, struct err *err)
{
	bool extended = strcmp(w->word[2], "xstats") == 0;
	int rc = extended ? rte_eth_xstats_reset(port->id) : rte_eth_stats_reset(port->id);

	(void)p;
	if (rc != 0)
		return err_set(err, EXIT_FAILED, "clear port %s %u: %s", w->word[2], port->id,
				strerror(-rc));
	port->missed_base = 0;
	if (!extended)
		printf("\n  NIC statistics for port %u cleared\n", port->id);
	return 0;
}

static int
do_clear_port(struct prompt *p, const struct words *w, struct err *err)
{
	return each_port(p, w->word[3], clear_port, w, err);
}

static int
do_clear_fwd(struct prompt *p, const struct words *w, struct err *err)
{
	(void)w;
	if (run_edge(p->run, err) != 0)
		return -1;
	run_clear_counts(p->run);
	return 0;
}

static int
do_show_fwd(struct prompt *p, const struct words *w, struct err *err)
{
	(void)w;
	if (run_edge(p->run, err) != 0)
		return -1;
	show_forward_stats(p->run, stdout);
	return 0;
}

static int
do_show_config_fwd(struct prompt *p, const struct words *w, struct err *err)
{
	(void)w;
	if (!p->run->set_up && !p->run->forwarding && run_prepare(p->run, err) != 0)
		return -1;
	show_forwarding(p->run, stdout);
	return 0;
}

static int
do_show_config_rxtx(struct prompt *p, const struct words *w, struct err *err)
{
	(void)w;
	(void)err;
	show_config(p->run, stdout);
	return 0;
}

static int
do_show_config_cores(struct prompt *p, const struct words *w, struct err *err)
{
	(void)w;
	(void)err;
	printf("List of forwarding lcores:");
	for (unsigned int i = 0; i < p->run->placement.nb; i++)
		printf(" %2u", p->run->placement.at[i].lcore);
	printf("\n");
	return 0;
}

static int
do_show_config_txpkts(struct prompt *p, const struct words *w, struct err *err)
{
	const struct fwd_options *o = &p->run->options.fwd;

	(void)w;
	(void)err;
	printf("Number of segments: %u\nSegment sizes: ", o->nb_tx_segs);
	for (unsigned int i = 0; i < o->nb_tx_segs; i++)
		printf("%s%u", i > 0 ? "," : "", o->tx_seg_len[i]);
	printf("\nSplit packet: off\n");
	return 0;
}

static int
do_show_topology(struct prompt *p, const struct words *w, struct err *err)
{
	(void)w;
	(void)err;
	placement_print(&p->run->placement, stdout);
	return 0;
}

static int
do_show_scenario(struct prompt *p, const struct words *w, struct err *err)
{
	const struct run *r = p->run;
	int sender = control_sender(&r->control);

	(void)w;
	(void)err;
	printf("%s", r->held.text);
	if (r->held.nb > 0)
		printf(" on CPU %d", r->placement.at[0].sibling);
	if (sender >= 0)
		printf(", from CPU %d", sender);
	printf("\n");
	return 0;
}

static int
do_show_window(struct prompt *p, const struct words *w, struct err *err)
{
	const struct run *r = p->run;
	size_t first = r->nb_rows;

	(void)w;
	if (r->nb_rows == 0)
		return err_set(err, EXIT_FAILED, "show window: nothing has been measured");
	/* Its rows, one an lcore. */
	while (first > 0 && r->rows[first - 1].visit == r->rows[r->nb_rows - 1].visit &&
			r->rows[first - 1].window == r->rows[r->nb_rows - 1].window)
		first--;
	return result_print_table(stdout, &r->rows[first], r->nb_rows - first) != 0
			? err_set(err, EXIT_FAILED, "standard output: %s", strerror(errno))
			: 0;
}

static int
do_show_live(struct prompt *p, const struct words *w, struct err *err)
{
	unsigned long seconds = 0;

	if (w->word[2][0] != '\0' && number("show live", w->word[2], 1, 86400, &seconds, err) != 0)
		return -1;
	if (!p->run->forwarding)
		return err_set(err, EXIT_FAILED, "Packet forwarding not started");
	return live_show(p->run, p->typing, (unsigned int)seconds, err);
}

static int
do_show_period(struct prompt *p, const struct words *w, struct err *err)
{
	(void)w;
	(void)err;
	printf("stats period %u s%s\n", p->run->options.stats_period,
			p->run->options.stats_period == 0 ? ": none are shown" : "");
	return 0;
}

/* ---- set ---- */

static int
do_set_fwd(struct prompt *p, const struct words *w, struct err *err)
{
	const struct fwd_mode *mode = fwd_mode_find(w->word[2]);
	struct run *r = p->run;

	if (mode == NULL)
		return err_set(err, EXIT_USAGE, "set fwd %s: unknown, one of: %s", w->word[2],
				fwd_mode_names());
	/* The loops that run, and what they are measured as, stay what they are. */
	r->next_mode = mode;
	if (!r->forwarding) {
		r->options.mode = mode;
		r->set_up = false;
	}
	printf("Set %s packet forwarding mode\n", mode->name);
	return 0;
}

static int
do_set_burst(struct prompt *p, const struct words *w, struct err *err)
{
	unsigned long n;

	if (number("set burst", w->word[2], 1, LCORE_BURST_MAX, &n, err) != 0)
		return -1;
	p->run->options.burst = (uint16_t)n;
	p->run->options.bursts = (struct option_list){ 1, { n } };
	printf("Number of packets per burst set to %lu\n", n);
	return run_restart(p->run, err);
}

static int
do_set_nbcore(struct prompt *p, const struct words *w, struct err *err)
{
	struct run *r = p->run;
	unsigned int lcores[PLACEMENT_MAX], lcore, nb = 0;
	unsigned long n;

	if (please_stop(p, err) != 0 ||
			number("set nbcore", w->word[2], 1, PLACEMENT_MAX, &n, err) != 0)
		return -1;
	RTE_LCORE_FOREACH_WORKER (lcore)
		if (nb < n)
			lcores[nb++] = lcore;
	if (nb < n)
		return err_set(err, EXIT_USAGE,
				"nb fwd cores %lu > %u (max. number of configured lcores)", n, nb);
	return run_set_lcores(r, lcores, nb, err);
}

static int
do_set_corelist(struct prompt *p, const struct words *w, struct err *err)
{
	unsigned int lcores[PLACEMENT_MAX];
	int nb;

	if (please_stop(p, err) != 0)
		return -1;
	nb = list("set corelist", w->word[2], lcores, PLACEMENT_MAX, err);
	return nb < 0 ? -1 : run_set_lcores(p->run, lcores, (unsigned int)nb, err);
}

static int
do_set_portlist(struct prompt *p, const struct words *w, struct err *err)
{
	struct ports *ports = &p->run->ports;
	unsigned int at[OPTIONS_PORTS_MAX], before = ports->nb_forward;
	uint16_t ids[OPTIONS_PORTS_MAX];
	int nb;

	if (please_stop(p, err) != 0)
		return -1;
	nb = list("set portlist", w->word[2], at, OPTIONS_PORTS_MAX, err);
	for (int i = 0; i < nb; i++)
		ids[i] = (uint16_t)at[i];
	if (nb < 0 || ports_set_forward(ports, ids, (unsigned int)nb, err) != 0)
		return -1;
	p->run->set_up = false;
	if (before != ports->nb_forward)
		printf("previous number of forwarding ports %u - changed to number of configured ports %u\n",
				before, ports->nb_forward);
	return 0;
}

/* Ports were set up for the segments that frames had at the start. */
static int
check_segments(const struct ports *ports, const char *text, struct err *err)
{
	for (unsigned int i = 0; i < ports->nb; i++) {
		const struct port *port = &ports->port[i];
		struct rte_eth_dev_info info = { 0 };

		if (!port->closed && (port->tx_offloads & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) == 0 &&
				rte_eth_dev_info_get(port->id, &info) == 0 &&
				(info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) != 0)
			return err_set(err, EXIT_FAILED,
					"set txpkts %s: port %u is set up for one segment: give --txpkts with several at the start",
					text, port->id);
	}
	return 0;
}

static int
do_set_txpkts(struct prompt *p, const struct words *w, struct err *err)
{
	if (please_stop(p, err) != 0 ||
			(strchr(w->word[2], ',') != NULL &&
					check_segments(&p->run->ports, w->word[2], err) != 0) ||
			options_set(&p->run->options, "txpkts", w->word[2], err) != 0)
		return -1;
	p->run->set_up = false;
	return 0;
}

static int
do_set_record(struct prompt *p, const struct words *w, struct err *err)
{
	struct options *o = &p->run->options;
	bool on = strcmp(w->word[2], "on") == 0;

	if (strcmp(w->word[1], "record-core-cycles") == 0)
		o->record_core_cycles = on;
	else
		o->record_burst_stats = on;
	return run_restart(p->run, err);
}

static int
do_set_scenario(struct prompt *p, const struct words *w, struct err *err)
{
	if (run_hold(p->run, w->word[2], err) != 0)
		return -1;
	return do_show_scenario(p, w, err);
}

static int
do_set_sibling(struct prompt *p, const struct words *w, struct err *err)
{
	unsigned long cpu = 0;
	bool closest = strcmp(w->word[2], "auto") == 0;

	if (!closest && number("set sibling", w->word[2], 0, 65535, &cpu, err) != 0)
		return -1;
	if (run_set_sibling(p->run, closest ? -1 : (int)cpu, err) != 0)
		return -1;
	placement_print(&p->run->placement, stdout);
	return 0;
}

/* ---- ports ---- */

static bool
forwards(const struct prompt *p, const struct port *port)
{
	for (unsigned int i = 0; p->run->forwarding && i < p->run->ports.nb_forward; i++)
		if (ports_forwarding(&p->run->ports, i) == port)
			return true;
	return false;
}

static int
port_start(struct prompt *p, struct port *port, struct err *err)
{
	if (port->started)
		return err_set(err, EXIT_FAILED, "Port %u is already started", port->id);
	if (ports_start(port, err) != 0)
		return -1;
	p->run->set_up = false;
	return 0;
}

static int
port_stop(struct prompt *p, struct port *port, struct err *err)
{
	return ports_stop(&p->run->ports, port, err);
}

static int
port_close(struct prompt *p, struct port *port, struct err *err)
{
	if (port->started)
		return err_set(err, EXIT_FAILED, "Cannot close started device (port %u)", port->id);
	/* Streams that do not run may be of this port. */
	if (!p->run->forwarding)
		run_unprepare(p->run);
	return ports_shut(port, err);
}

static const struct port_action {
	const char *word, *doing;
	int (*act)(struct prompt *p, struct port *port, struct err *err);
} port_actions[] = {
	{ "start", "", port_start },
	{ "stop", "Stopping ports...\n", port_stop },
	{ "close", "Closing ports...\n", port_close },
};

static const struct port_action *
find_action(const char *word)
{
	const struct port_action *a = port_actions;

	while (strcmp(a->word, word) != 0)
		a++;
	return a;
}

static int
port_act(struct prompt *p, struct port *port, const struct words *w, struct err *err)
{
	if (forwards(p, port))
		return err_set(err, EXIT_FAILED,
				"Please remove port %u from forwarding configuration.", port->id);
	return find_action(w->word[1])->act(p, port, err);
}

static int
do_port(struct prompt *p, const struct words *w, struct err *err)
{
	fputs(find_action(w->word[1])->doing, stdout);
	if (each_port(p, w->word[2], port_act, w, err) != 0)
		return -1;
	printf("Done\n");
	return 0;
}

/* ---- measuring ---- */

static int
do_measure(struct prompt *p, const struct words *w, struct err *err)
{
	const struct options *o = &p->run->options;
	unsigned long windows = o->windows;
	size_t first;
	int rc;

	if (w->word[1][0] != '\0' && number("measure", w->word[1], 1, 1000000, &windows, err) != 0)
		return -1;
	rc = run_windows(p->run, NULL, 0, (uint32_t)windows, 1, &first, err);
	if (p->run->nb_rows > first && o->format == FORMAT_TABLE &&
			result_print_table(stdout, &p->run->rows[first], p->run->nb_rows - first) !=
					0 &&
			rc == 0)
		rc = err_set(err, EXIT_FAILED, "standard output: %s", strerror(errno));
	return rc;
}

static int
do_compare(struct prompt *p, const struct words *w, struct err *err)
{
	const char *const words[] = { w->word[1], w->word[2] };
	struct comparisons clean, tainted;
	struct run *r = p->run;
	unsigned long blocks = BLOCKS;
	size_t first;
	int rc;

	if (w->word[3][0] != '\0' && number("compare", w->word[3], 1, 100000, &blocks, err) != 0)
		return -1;
	if (strcmp(words[0], words[1]) == 0)
		return err_set(err, EXIT_USAGE, "compare: %s is there twice", words[0]);
	rc = run_windows(r, words, 2, r->options.windows, (uint32_t)blocks, &first, err);
	if (r->nb_rows == first)
		return rc;
	if (compare_arms(&clean, &r->rows[first], r->nb_rows - first, false) != 0 ||
			compare_arms(&tainted, &r->rows[first], r->nb_rows - first, true) != 0)
		abort();
	if (rc == 0)
		r->verdict = comparisons_verdict(&clean, r->options.margin);
	if (r->options.format == FORMAT_TABLE &&
			compare_print(stdout, &r->rows[first], r->nb_rows - first, &clean, &tainted,
					r->options.margin) != 0 &&
			rc == 0)
		rc = err_set(err, EXIT_FAILED, "standard output: %s", strerror(errno));
	comparisons_free(&clean);
	comparisons_free(&tainted);
	return rc;
}

static int
do_save(struct prompt *p, const struct words *w, struct err *err)
{
	return run_save(p->run, w->rest, err);
}

static int load_file(struct prompt *p, const char *name, struct err *err);

static int
do_load(struct prompt *p, const struct words *w, struct err *err)
{
	return load_file(p, w->rest, err);
}

/* ---- the table ---- */

struct command {
	/*
	 * Words separated by blanks: a|b is one of them, <mode> a forwarding mode, <name> any word, <name...> all that
	 * is left of the line, [name] a word that may be missing with all behind it.
	 */
	const char *words;
	const char *help;
	int (*run)(struct prompt *p, const struct words *w, struct err *err);
};

static const struct command commands[] = {
	{ "start [tx_first] [bursts]", "forward, after so many bursts of txonly's frames",
			do_start },
	{ "stop", "end forwarding and show what was forwarded", do_stop },
	{ "quit", "stop, put everything back, and end", do_quit },
	{ "help [all]", "this list", do_help },
	{ "show port info|stats|xstats|summary <port>", "of a port, or of all", do_show_port },
	{ "clear port stats|xstats <port>", "to zero, of a port, or of all", do_clear_port },
	{ "show fwd stats all", "what was forwarded since start, by port", do_show_fwd },
	{ "clear fwd stats all", "count that anew from here on", do_clear_fwd },
	{ "show config fwd", "which queue goes where, on which lcore", do_show_config_fwd },
	{ "show config rxtx", "mode, burst, ports, queues", do_show_config_rxtx },
	{ "show config cores", "the forwarding lcores", do_show_config_cores },
	{ "show config txpkts", "the segments of txonly's frames", do_show_config_txpkts },
	{ "show topology", "measured CPUs, their siblings, the controller's", do_show_topology },
	{ "show scenario", "how the sibling is made to idle now", do_show_scenario },
	{ "show window", "the window that was measured last", do_show_window },
	{ "show live [seconds]",
			"figures of each second beside the sibling's, until a key is pressed, or for so long",
			do_show_live },
	{ "show stats period", "of --stats-period", do_show_period },
	{ "set fwd <mode>", "the forwarding mode from the next start on", do_set_fwd },
	{ "set burst <frames>", "frames a burst", do_set_burst },
	{ "set nbcore <number>", "how many lcores forward", do_set_nbcore },
	{ "set corelist <list>", "which lcores forward: 1,3-4", do_set_corelist },
	{ "set portlist <list>", "which ports forward, in order: 0,2-3", do_set_portlist },
	{ "set txpkts <lengths>", "segment lengths of txonly's frames: 64,64", do_set_txpkts },
	{ "set record-core-cycles on|off", "busy cycles a packet", do_set_record },
	{ "set record-burst-stats on|off", "how many frames bursts have", do_set_record },
	{ "set scenario <words>",
			"how the sibling idles from now on: c1+clear; as-is gives it back",
			do_set_scenario },
	{ "set sibling <cpu>", "the CPU whose idling matters, or auto", do_set_sibling },
	{ "port start|stop|close <port>", "a port that does not forward, or all", do_port },
	{ "measure [windows]", "windows as they are (--windows)", do_measure },
	{ "compare <scenario> <scenario> [blocks]",
			"two scenarios in turn, and what they differ by (5 blocks)", do_compare },
	{ "save <directory...>", "all that was measured, to a result directory", do_save },
	{ "load <file...>", "carry out the commands of a file, up to one that fails", do_load },
};
#define NB_COMMANDS RTE_DIM(commands)

void
prompt_help(FILE *out)
{
	for (size_t i = 0; i < NB_COMMANDS; i++)
		fprintf(out, "%-46s %s\n", commands[i].words, commands[i].help);
}

void
prompt_man(FILE *out)
{
	for (size_t i = 0; i < NB_COMMANDS; i++) {
		fprintf(out, ".TP\n.B ");
		roff_text(out, commands[i].words);
		roff_text(out, commands[i].help);
	}
}

/* ---- librte_cmdline ---- */

/* An instance of librte_cmdline's: a command with so many of its words. */
struct instance {
	struct prompt *prompt;
	const struct command *command;
	cmdline_parse_token_string_t tokens[WORDS_MAX];
	char text[WORDS_MAX][STR_TOKEN_SIZE];
	/* Behind it the list of tokens that the library has as a flexible array. */
	union {
		cmdline_parse_inst_t inst;
		char room[sizeof(cmdline_parse_inst_t) +
				(WORDS_MAX + 1) * sizeof(cmdline_parse_token_hdr_t *)];
	} u;
};

/* What Ctrl-C ends, so that the prompt goes on. */
static bool
is_slow(const struct command *c)
{
	return c->run == do_measure || c->run == do_compare || c->run == do_load;
}

/* Whether the terminal's keys make signals: they do so while something takes long. */
static void
set_signals(bool on)
{
	struct termios t;

	if (tcgetattr(STDIN_FILENO, &t) != 0)
		return;
	t.c_lflag = on ? t.c_lflag | ISIG : t.c_lflag & ~(tcflag_t)ISIG;
	tcsetattr(STDIN_FILENO, TCSANOW, &t);
}

/* The terminal as it was before. */
static struct termios cooked;

static void
give_terminal_back(void)
{
	tcsetattr(STDIN_FILENO, TCSANOW, &cooked);
}

static void
carry_out(void *parsed, struct cmdline *cl, void *data)
{
	const struct instance *in = data;
	struct prompt *p = in->prompt;
	bool slow = is_slow(in->command) && p->typing && isatty(STDIN_FILENO);

	(void)cl;
	if (slow)
		set_signals(true);
	p->rc = in->command->run(p, parsed, &p->err);
	if (slow) {
		set_signals(false);
		stop_forgive();
	}
	fflush(stdout);
	if (p->typing && p->rc != 0)
		fprintf(stderr, "%s\n", p->err.text);
}

static void
fill_token(struct instance *in, unsigned int i, const char *word, size_t len)
{
	cmdline_parse_token_string_t *t = &in->tokens[i];
	char *text = in->text[i];

	t->hdr.ops = &cmdline_token_string_ops;
	t->hdr.offset = (unsigned int)(offsetof(struct words, word) + i * STR_TOKEN_SIZE);
	if (word[0] == '[') {
		word++;
		len -= 2;
	}
	snprintf(text, sizeof(in->text[i]), "%.*s", (int)len, word);
	if (strcmp(text, "<mode>") == 0)
		snprintf(text, sizeof(in->text[i]), "%s", fwd_mode_names());
	for (char *c = text; *c != '\0'; c++)
		if (*c == '|' || *c == ' ')
			*c = '#';
	t->string_data.str = text;
	if (text[0] == '<' && strstr(text, "...") != NULL) {
		t->hdr.offset = (unsigned int)offsetof(struct words, rest);
		t->string_data.str = TOKEN_STRING_MULTI;
	} else if (text[0] == '<') {
		t->string_data.str = NULL;
	}
}

/* Words in brackets that are no names are themselves: tx_first, all. */
static bool
is_literal(const char *word, size_t len)
{
	return (len == strlen("[tx_first]") && strncmp(word, "[tx_first]", len) == 0) ||
			(len == strlen("[all]") && strncmp(word, "[all]", len) == 0);
}

/* The first nb words of a command. */
static struct instance *
make_instance(struct prompt *p, const struct command *c, unsigned int nb)
{
	struct instance *in = calloc(1, sizeof(*in));
	cmdline_parse_token_hdr_t **tokens;
	const char *word = c->words;

	if (in == NULL)
		abort();
	in->prompt = p;
	in->command = c;
	in->u.inst.f = carry_out;
	in->u.inst.data = in;
	in->u.inst.help_str = c->help;
	tokens = (cmdline_parse_token_hdr_t **)in->u.inst.tokens;
	for (unsigned int i = 0; i < nb; i++) {
		size_t len = strcspn(word, " ");

		fill_token(in, i, word, len);
		if (word[0] == '[' && !is_literal(word, len))
			in->tokens[i].string_data.str = NULL;
		tokens[i] = &in->tokens[i].hdr;
		word += len + strspn(word + len, " ");
	}
	return in;
}

/* One for each number of words that a command may have. */
static void
make_context(struct prompt *p)
{
	size_t nb = 0;

	p->ctx = calloc(NB_COMMANDS * WORDS_MAX + 1, sizeof(*p->ctx));
	if (p->ctx == NULL)
		abort();
	for (size_t i = 0; i < NB_COMMANDS; i++) {
		unsigned int words = 0;

		for (const char *c = commands[i].words; *c != '\0';) {
			size_t len = strcspn(c, " ");

			if (c[0] == '[')
				p->ctx[nb++] = &make_instance(p, &commands[i], words)->u.inst;
			words++;
			c += len + strspn(c + len, " ");
		}
		p->ctx[nb++] = &make_instance(p, &commands[i], words)->u.inst;
	}
}

static void
free_context(struct prompt *p)
{
	for (size_t i = 0; p->ctx != NULL && p->ctx[i] != NULL; i++)
		free(((cmdline_parse_inst_t *)p->ctx[i])->data);
	free(p->ctx);
}

/* ---- files ---- */

/* Whether a line has a command: neither blank nor a comment. */
static bool
has_command(const char *line)
{
	line += strspn(line, " \t\r\n");
	return *line != '\0' && *line != '#';
}

static int
run_line(struct prompt *p, const char *line, struct err *err)
{
	char text[LINE_MAX_BYTES];
	int rc;

	/* The library wants the line's end, and has so much room. */
	if ((size_t)snprintf(text, sizeof(text), "%s\n", line) >= sizeof(text))
		return err_set(err, EXIT_USAGE, "longer than %zu characters", sizeof(text) - 2);
	p->rc = 0;
	rc = cmdline_parse(p->cl, text);
	if (rc == CMDLINE_PARSE_AMBIGUOUS)
		return err_set(err, EXIT_USAGE, "Ambiguous command");
	if (rc == CMDLINE_PARSE_NOMATCH)
		return err_set(err, EXIT_USAGE, "Command not found");
	if (rc == CMDLINE_PARSE_BAD_ARGS)
		return err_set(err, EXIT_USAGE, "Bad arguments");
	if (rc < 0)
		return err_set(err, EXIT_USAGE, "not a command");
	if (p->rc != 0)
		*err = p->err;
	return p->rc;
}

static int
load_file(struct prompt *p, const char *name, struct err *err)
{
	bool typing = p->typing;
	char *line = NULL;
	size_t size = 0;
	unsigned long number = 0;
	FILE *file;
	int rc = 0;

	if (p->loads == LOADS_MAX)
		return err_set(err, EXIT_USAGE, "load %s: files load each other", name);
	file = fopen(name, "re");
	if (file == NULL)
		return err_set(err, EXIT_FAILED, "%s: %s", name, strerror(errno));
	p->loads++;
	p->typing = false;
	while (rc == 0 && !p->quit && !stop_asked()) {
		struct err why;

		errno = 0;
		if (getline(&line, &size, file) < 0) {
			if (errno != 0)
				rc = err_set(err, EXIT_FAILED, "%s: %s", name, strerror(errno));
			break;
		}
		number++;
		if (!has_command(line))
			continue;
		line[strcspn(line, "\r\n")] = '\0';
		p->located = false;
		rc = run_line(p, line, &why);
		/* Of files that load files the innermost tells where. */
		if (rc != 0 && p->located)
			*err = why;
		else if (rc != 0)
			err_set(err, why.code, "%s:%lu: %.80s: %s", name, number, line, why.text);
		p->located = rc != 0;
	}
	if (rc == 0 && stop_asked())
		rc = err_set(err, EXIT_FAILED, "%s:%lu: interrupted", name, number);
	p->typing = typing;
	p->loads--;
	free(line);
	fclose(file);
	return rc;
}

/* ---- typing ---- */

/* What goes on beside the keyboard. Returns 0, or -1 with err set where a loop hangs. */
static int
look_around(struct prompt *p, double seconds, struct err *err)
{
	struct run *r = p->run;
	int rc;

	if (!r->forwarding)
		return 0;
	if (ports_check(&r->ports, err) != 0) {
		fprintf(stderr, "%s\n", err->text);
		return run_stop(r, err);
	}
	p->unprinted += seconds;
	if (r->options.stats_period == 0 || p->unprinted < r->options.stats_period)
		return 0;
	p->unprinted = 0;
	/* Below the line that is being typed. */
	printf("\n");
	rc = live_line(r, stdout, err);
	fflush(stdout);
	return rc;
}

/* Until quit, the end of the input, or a signal. */
static void
type(struct prompt *p)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };

	while (!p->quit && !stop_asked() && !p->run->experiment.stuck) {
		char bytes[256];
		ssize_t n;
		int ready = poll(&in, 1, POLL_MS);

		if (ready == 0 && look_around(p, 1e-3 * POLL_MS, &p->err) != 0)
			return;
		if (ready <= 0)
			continue;
		n = read(STDIN_FILENO, bytes, sizeof(bytes));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		/* A byte at a time: what follows quit is not carried out. */
		for (ssize_t i = 0; i < n && !p->quit && !stop_asked(); i++)
			if (cmdline_in(p->cl, &bytes[i], 1) < 0)
				p->quit = true;
	}
}

int
prompt_run(struct run *r, struct err *err)
{
	const struct options *o = &r->options;
	struct prompt p = { .run = r };
	int rc;

	make_context(&p);
	if (o->interactive && tcgetattr(STDIN_FILENO, &cooked) == 0)
		stop_before_kill(give_terminal_back);
	/* What is not typed at a terminal is not echoed in raw mode either. */
	p.cl = o->interactive ? cmdline_stdin_new(p.ctx, "sibfwd> ")
			      : cmdline_new(p.ctx, "", -1, STDOUT_FILENO);
	rc = p.cl == NULL ? err_set(err, EXIT_FAILED, "no prompt: out of memory")
			  : run_begin(r, err);
	if (rc == 0 && o->auto_start)
		rc = do_start(&p, &(struct words){ .word = { "start" } }, err);
	if (rc == 0 && o->cmdline_file != NULL)
		rc = load_file(&p, o->cmdline_file, err);
	if (rc == 0 && o->interactive && !p.quit) {
		p.typing = true;
		type(&p);
		p.typing = false;
		if (r->experiment.stuck) {
			*err = p.err;
			rc = -1;
		}
	}
	if (r->forwarding && rc == 0)
		rc = do_stop(&p, &(struct words){ .word = { "stop" } }, err);
	if (p.cl != NULL && o->interactive)
		cmdline_stdin_exit(p.cl);
	else if (p.cl != NULL)
		cmdline_free(p.cl);
	free_context(&p);
	stop_before_kill(NULL);
	if (o->interactive)
		printf("\nBye...\n");
	return run_finish(r, rc, err);
}
