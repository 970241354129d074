/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "options.h"
#include "reproduce.h"
#include "summary.h"

#define MBUF_SIZE_DEFAULT 2176 /* RTE_MBUF_DEFAULT_BUF_SIZE: 2 KiB and the headroom */
#define TX_PKT_LEN_MIN 42 /* Ethernet, IPv4 and UDP headers */
#define TX_PKT_LEN_DEFAULT 64

static const char *const source_names[] = { "dev", "null", "pcap", "ring", NULL };
static const char *const topology_names[] = { "paired", "chained", "loop", NULL };
static const char *const format_names[] = { "table", "csv", "json", NULL };
static const char *const noisy_mode_names[] = { "io", "mac", "macswap", "5tswap", NULL };

/* Bounds that only remove nonsense; NAN: the cause has no bound. */
static const struct {
	const char *word;
	double bound;
	const char *unit;
} taints[TAINT_MAX] = {
	[TAINT_IRQS] = { "irqs", 2.0, "interrupts a tick (1/HZ) on the measured CPU" },
	[TAINT_CTXSW] = { "ctxsw", 0.0, "involuntary switches of the forwarding thread" },
	[TAINT_STEAL] = { "steal", 0.5, "percent of the window stolen by the hypervisor" },
	[TAINT_SMI] = { "smi", 0.0, "system management interrupts" },
	[TAINT_UNSATURATED] = { "unsaturated", 1.0, "percent of empty polls" },
	[TAINT_MISSED] = { "missed", 0.0, "frames missed by the port" },
	[TAINT_NOMBUF] = { "nombuf", 0.0, "receive allocations that failed" },
	[TAINT_FREQ] = { "freq", 5.0, "percent of change in the CPU's frequency" },
	[TAINT_STATE] = { "state", 1.0,
			"percent of the sibling's idling not as the scenario asks" },
	[TAINT_CONTROLLER] = { "controller", NAN, NULL },
};

const char *
taint_word(enum taint cause)
{
	return taints[cause].word;
}

struct option_row;
typedef int (*option_set)(
		struct options *o, const struct option_row *row, const char *arg, struct err *err);

/* One option: how it is named, set and explained. */
struct option_row {
	const char *name; /* without the dashes */
	const char *arg; /* its value in the help text; NULL: takes none */
	option_set set;
	size_t offset; /* of its field in struct options */
	double min, max;
	const char *const *words; /* of set_word */
	const char *help;
};

static int
bad_value(const struct option_row *row, const char *arg, const char *why, struct err *err)
{
	return err_set(err, EXIT_USAGE, "--%s=%s: %s", row->name, arg, why);
}

static int
parse_number(const struct option_row *row, const char *arg, uint64_t *value, struct err *err)
{
	char *end;

	errno = 0;
	*value = strtoull(arg, &end, 10);
	if (end == arg || *end != '\0' || arg[0] < '0' || arg[0] > '9')
		return bad_value(row, arg, "not a whole number", err);
	if (errno != 0 || (double)*value < row->min || (double)*value > row->max)
		return err_set(err, EXIT_USAGE, "--%s=%s: out of range, %.0f to %.0f", row->name,
				arg, row->min, row->max);
	return 0;
}

static void *
field(struct options *o, const struct option_row *row)
{
	return (char *)o + row->offset;
}

static int
set_u16(struct options *o, const struct option_row *row, const char *arg, struct err *err)
{
	uint64_t value;

	if (parse_number(row, arg, &value, err) != 0)
		return -1;
	*(uint16_t *)field(o, row) = (uint16_t)value;
	return 0;
}

static int
set_u32(struct options *o, const struct option_row *row, const char *arg, struct err *err)
{
	uint64_t value;

	if (parse_number(row, arg, &value, err) != 0)
		return -1;
	*(uint32_t *)field(o, row) = (uint32_t)value;
	return 0;
}

static int
set_u64(struct options *o, const struct option_row *row, const char *arg, struct err *err)
{
	return parse_number(row, arg, (uint64_t *)field(o, row), err);
}

static int
set_int(struct options *o, const struct option_row *row, const char *arg, struct err *err)
{
	uint64_t value;

	if (parse_number(row, arg, &value, err) != 0)
		return -1;
	*(int *)field(o, row) = (int)value;
	return 0;
}

static int
set_double(struct options *o, const struct option_row *row, const char *arg, struct err *err)
{
	char *end;
	double value = strtod(arg, &end);

	if (end == arg || *end != '\0' || !isfinite(value))
		return bad_value(row, arg, "not a number", err);
	if (value < row->min || value > row->max)
		return err_set(err, EXIT_USAGE, "--%s=%s: out of range, %g to %g", row->name, arg,
				row->min, row->max);
	*(double *)field(o, row) = value;
	return 0;
}

/* A flag; row->min is the value it sets. */
static int
set_flag(struct options *o, const struct option_row *row, const char *arg, struct err *err)
{
	(void)arg;
	(void)err;
	*(bool *)field(o, row) = row->min != 0;
	return 0;
}

static int
set_text(struct options *o, const struct option_row *row, const char *arg, struct err *err)
{
	if (arg[0] == '\0')
		return bad_value(row, arg, "empty", err);
	*(const char **)field(o, row) = arg;
	return 0;
}

static int
find_word(const char *const *words, const char *arg, size_t len)
{
	for (int i = 0; words[i] != NULL; i++)
		if (strlen(words[i]) == len && memcmp(words[i], arg, len) == 0)
			return i;
	return -1;
}

static int
unknown_word(const struct option_row *row, const char *arg, struct err *err)
{
	char list[128] = "";

	for (int i = 0; row->words[i] != NULL; i++) {
		strncat(list, i == 0 ? "" : " ", sizeof(list) - strlen(list) - 1);
		strncat(list, row->words[i], sizeof(list) - strlen(list) - 1);
	}
	return err_set(err, EXIT_USAGE, "--%s=%s: unknown, one of: %s", row->name, arg, list);
}

/* One of row->words, kept as its index in an int-sized enum. */
static int
set_word(struct options *o, const struct option_row *row, const char *arg, struct err *err)
{
	int i = find_word(row->words, arg, strlen(arg));

	if (i < 0)
		return unknown_word(row, arg, err);
	*(int *)field(o, row) = i;
	return 0;
}

static int
set_mode(struct options *o, const struct option_row *row, const char *arg, struct err *err)
{
	const struct fwd_mode *mode = fwd_mode_find(arg);

	if (mode == NULL)
		return err_set(err, EXIT_USAGE, "--%s=%s: unknown, one of: %s", row->name, arg,
				fwd_mode_names());
	o->mode = mode;
	return 0;
}

/* What noisy can wrap: modes that change a frame and keep none. */
static int
set_noisy_mode(struct options *o, const struct option_row *row, const char *arg, struct err *err)
{
	if (find_word(row->words, arg, strlen(arg)) < 0)
		return unknown_word(row, arg, err);
	o->fwd.noisy_mode = fwd_mode_find(arg);
	return 0;
}

static int
set_mlockall(struct options *o, const struct option_row *row, const char *arg, struct err *err)
{
	if (o->mlockall_given && o->mlockall != (row->min != 0))
		return err_set(err, EXIT_USAGE,
				"--mlockall and --no-mlockall contradict each other");
	o->mlockall_given = true;
	return set_flag(o, row, arg, err);
}

static int
set_portmask(struct options *o, const struct option_row *row, const char *arg, struct err *err)
{
	char *end;
	uint64_t mask;

	errno = 0;
	mask = strtoull(arg, &end, 16);
	if (end == arg || *end != '\0' || arg[0] == '-' || arg[0] == '+')
		return bad_value(row, arg, "not a hexadecimal mask", err);
	if (errno != 0 || mask == 0 || mask >> OPTIONS_PORTS_MAX != 0)
		return bad_value(row, arg, "out of range, 1 to ffffffff", err);
	if (o->nb_ports != 0)
		return err_set(err, EXIT_USAGE, "--portmask and --portlist contradict each other");
	o->portmask = mask;
	return 0;
}

/* One number, or several that are arms of the experiment. */
static int
set_list(struct options *o, const struct option_row *row, const char *arg, struct err *err)
{
	struct option_list *list = field(o, row);
	char copy[24];
	uint64_t value;
	size_t len;

	list->nb = 0;
	for (;; arg += len + 1) {
		len = strcspn(arg, ",");
		snprintf(copy, sizeof(copy), "%.*s", (int)RTE_MIN(len, sizeof(copy) - 1), arg);
		if (parse_number(row, copy, &value, err) != 0)
			return -1;
		if (list->nb == SCHEDULE_SCENARIOS_MAX)
			return err_set(err, EXIT_USAGE, "--%s: more than %d", row->name,
					SCHEDULE_SCENARIOS_MAX);
		for (unsigned int i = 0; i < list->nb; i++)
			if (list->at[i] == value)
				return err_set(err, EXIT_USAGE, "--%s: %s is there twice",
						row->name, copy);
		list->at[list->nb++] = value;
		if (arg[len] == '\0')
			return 0;
	}
}

enum list_fault
options_list(const char *text, unsigned long highest, unsigned int *at, unsigned int most,
		unsigned int *nb)
{
	*nb = 0;
	for (;;) {
		unsigned long first, last;
		char *end;

		if (*text < '0' || *text > '9')
			return LIST_MALFORMED;
		first = last = strtoul(text, &end, 10);
		if (*end == '-' && end[1] >= '0' && end[1] <= '9')
			last = strtoul(end + 1, &end, 10);
		if (first > last || last > highest)
			return LIST_RANGE;
		for (unsigned long n = first; n <= last; n++) {
			bool twice = false;

			for (unsigned int i = 0; i < *nb; i++)
				twice |= at[i] == n;
			if (!twice && *nb == most)
				return LIST_LONG;
			if (twice) {
				at[*nb < most ? (*nb)++ : *nb - 1] = (unsigned int)n;
				return LIST_TWICE;
			}
			at[(*nb)++] = (unsigned int)n;
		}
		if (*end == '\0')
			return LIST_GOOD;
		if (*end != ',')
			return LIST_MALFORMED;
		text = end + 1;
	}
}

static int
set_portlist(struct options *o, const struct option_row *row, const char *arg, struct err *err)
{
	static const char *const faults[] = {
		[LIST_MALFORMED] = "not a list of ports like 0,2-3",
		[LIST_RANGE] = "port out of range, 0 to 31",
		[LIST_TWICE] = "a port stands twice",
		[LIST_LONG] = "port out of range, 0 to 31",
	};
	unsigned int at[OPTIONS_PORTS_MAX], nb;
	enum list_fault fault;

	if (o->portmask != 0)
		return err_set(err, EXIT_USAGE, "--portmask and --portlist contradict each other");
	fault = options_list(arg, OPTIONS_PORTS_MAX - 1, at, OPTIONS_PORTS_MAX, &nb);
	if (fault != LIST_GOOD)
		return bad_value(row, arg, faults[fault], err);
	o->nb_ports = (uint16_t)nb;
	for (unsigned int i = 0; i < nb; i++)
		o->ports[i] = (uint16_t)at[i];
	return 0;
}

static int
set_eth_peer(struct options *o, const struct option_row *row, const char *arg, struct err *err)
{
	unsigned int b[6];
	int used = -1;
	char *end;
	unsigned long port = strtoul(arg, &end, 10);

	if (end == arg || *end != ',' || arg[0] < '0' || arg[0] > '9' || strlen(end) > 18 ||
			sscanf(end + 1, "%2x:%2x:%2x:%2x:%2x:%2x%n", &b[0], &b[1], &b[2], &b[3],
					&b[4], &b[5], &used) != 6 ||
			used < 0 || end[1 + used] != '\0')
		return bad_value(row, arg, "not PORT,XX:XX:XX:XX:XX:XX", err);
	if (port >= OPTIONS_PORTS_MAX)
		return bad_value(row, arg, "port out of range, 0 to 31", err);
	for (int i = 0; i < 6; i++)
		o->peer[port].addr_bytes[i] = (uint8_t)b[i];
	return 0;
}

static int
set_txpkts(struct options *o, const struct option_row *row, const char *arg, struct err *err)
{
	const char *at = arg;

	o->fwd.nb_tx_segs = 0;
	o->fwd.tx_pkt_len = 0;
	for (;;) {
		char *end;
		unsigned long len;

		if (*at < '0' || *at > '9')
			return bad_value(row, arg, "not a list of lengths like 64,64", err);
		len = strtoul(at, &end, 10);
		if (len == 0 || len > UINT16_MAX)
			return bad_value(row, arg, "segment length out of range, 1 to 65535", err);
		if (o->fwd.nb_tx_segs == FWD_TX_SEGS_MAX)
			return bad_value(row, arg, "more than 255 segments", err);
		o->fwd.tx_seg_len[o->fwd.nb_tx_segs++] = (uint16_t)len;
		o->fwd.tx_pkt_len += (uint32_t)len;
		if (*end == '\0')
			break;
		if (*end != ',')
			return bad_value(row, arg, "not a list of lengths like 64,64", err);
		at = end + 1;
	}
	if (o->fwd.tx_pkt_len < TX_PKT_LEN_MIN || o->fwd.tx_pkt_len > UINT16_MAX)
		return bad_value(row, arg, "frame length out of range, 42 to 65535", err);
	return 0;
}

static int
set_source(struct options *o, const struct option_row *row, const char *arg, struct err *err)
{
	size_t len = strcspn(arg, ":");
	int kind = find_word(source_names, arg, len);
	const char *rest = arg[len] == ':' ? arg + len + 1 : NULL;
	struct option_row length = { .name = "source=null:LEN", .min = 14, .max = 65535 };
	uint64_t value;

	if (kind < 0)
		return unknown_word(row, arg, err);
	o->source = (enum source_kind)kind;
	o->source_text = arg;
	if (kind == SOURCE_PCAP) {
		if (rest == NULL || *rest == '\0')
			return bad_value(row, arg, "the file is missing, pcap:FILE", err);
		o->capture = rest;
		return 0;
	}
	if (rest == NULL)
		return 0;
	if (kind != SOURCE_NULL)
		return bad_value(row, arg, "takes nothing behind a colon", err);
	if (parse_number(&length, rest, &value, err) != 0)
		return -1;
	o->null_len = (uint32_t)value;
	return 0;
}

/* FILE or FILE:N; a colon that no number follows belongs to the name. */
static int
set_save_pcap(struct options *o, const struct option_row *row, const char *arg, struct err *err)
{
	struct option_row count = { .name = row->name, .min = 1, .max = 10e6 };
	const char *colon = strrchr(arg, ':');
	uint64_t value;

	if (arg[0] == '\0' || colon == arg)
		return bad_value(row, arg, "the file name is missing", err);
	o->save_path_len = strlen(arg);
	if (colon != NULL && colon[1] != '\0' &&
			strspn(colon + 1, "0123456789") == strlen(colon + 1)) {
		if (parse_number(&count, colon + 1, &value, err) != 0)
			return -1;
		o->save_frames = (uint32_t)value;
		o->save_path_len = (size_t)(colon - arg);
	}
	o->save_path = arg;
	return 0;
}

static int
set_sibling(struct options *o, const struct option_row *row, const char *arg, struct err *err)
{
	if (strcmp(arg, "auto") == 0) {
		o->sibling = -1;
		return 0;
	}
	if (set_int(o, row, arg, err) != 0)
		return bad_value(row, arg, "neither auto nor a CPU number", err);
	return 0;
}

/* One of the list; len of its characters. */
static int
add_scenario(struct options *o, const char *text, size_t len, struct err *err)
{
	char copy[SCENARIO_MAX + 1];
	struct err why;

	/* One character too many is left for scenario_parse() to complain of. */
	snprintf(copy, sizeof(copy), "%.*s", (int)RTE_MIN(len, sizeof(copy) - 1), text);
	if (o->nb_scenarios == SCHEDULE_SCENARIOS_MAX)
		return err_set(err, EXIT_USAGE, "--scenario: more than %d", SCHEDULE_SCENARIOS_MAX);
	if (scenario_parse(&o->scenarios[o->nb_scenarios], copy, &why) != 0)
		return err_set(err, why.code, "--%s", why.text);
	for (unsigned int i = 0; i < o->nb_scenarios; i++)
		if (strcmp(o->scenarios[i].text, copy) == 0)
			return err_set(err, EXIT_USAGE,
					"--scenario: %s is there twice (--null-test compares a scenario with itself)",
					copy);
	o->nb_scenarios++;
	return 0;
}

static int
set_scenario(struct options *o, const struct option_row *row, const char *arg, struct err *err)
{
	size_t len;

	(void)row;
	o->nb_scenarios = 0;
	for (;; arg += len + 1) {
		len = strcspn(arg, ",");
		if (add_scenario(o, arg, len, err) != 0)
			return -1;
		if (arg[len] == '\0')
			return 0;
	}
}

/* The scenarios of the published experiment; how many blocks, --blocks may say. */
static int
set_reproduce(struct options *o, const struct option_row *row, const char *arg, struct err *err)
{
	(void)arg;
	o->reproduce = true;
	return set_scenario(o, row, REPRODUCE_SCENARIOS, err);
}

static const char *const order_names[] = { "abba", "random", NULL };
static const char *const preset_names[] = { "trend", "patch", "bisect", NULL };

static int
set_order(struct options *o, const struct option_row *row, const char *arg, struct err *err)
{
	static const char random[] = "random";
	struct option_row seed = { .name = "order=random:SEED", .max = 1.8e19 };

	o->order = ORDER_ABBA;
	if (strcmp(arg, "abba") == 0)
		return 0;
	o->order = ORDER_RANDOM;
	if (strcmp(arg, random) == 0)
		return 0;
	if (strncmp(arg, "random:", strlen(random) + 1) != 0)
		return bad_value(row, arg, "neither abba nor random[:SEED]", err);
	return parse_number(&seed, arg + strlen(random) + 1, &o->seed, err);
}

static int
set_preset(struct options *o, const struct option_row *row, const char *arg, struct err *err)
{
	static const struct {
		const char *name;
		uint32_t windows;
		double duration;
	} presets[] = { { "trend", 10, 1 }, { "patch", 5, 10 }, { "bisect", 60, 1 } };

	for (size_t i = 0; i < RTE_DIM(presets); i++)
		if (strcmp(presets[i].name, arg) == 0) {
			o->windows = presets[i].windows;
			o->duration = presets[i].duration;
			return 0;
		}
	return bad_value(row, arg, "none of trend patch bisect", err);
}

static int
set_margin(struct options *o, const struct option_row *row, const char *arg, struct err *err)
{
	o->margin_given = true;
	return set_double(o, row, arg, err);
}

#define AT(member) offsetof(struct options, member)

static const struct option_row table[] = {
	/* forwarding, as in testpmd */
	{ "forward-mode", "MODE", set_mode, 0, 0, 0, NULL,
			"io mac macswap flowgen rxonly txonly csum icmpecho noisy 5tswap (io)" },
	{ "nb-cores", "N", set_u16, AT(nb_cores), 1, 127, NULL, "forwarding lcores (1)" },
	{ "portmask", "HEX", set_portmask, 0, 0, 0, NULL, "ports that forward (all)" },
	{ "portlist", "LIST", set_portlist, 0, 0, 0, NULL, "ports that forward, in order: 0,2-3" },
	{ "port-topology", "WORD", set_word, AT(topology), 0, 0, topology_names,
			"paired chained loop (paired)" },
	{ "rxq", "N", set_u16, AT(nb_rxq), 1, 1024, NULL, "receive queues a port (1)" },
	{ "txq", "N", set_u16, AT(nb_txq), 1, 1024, NULL, "transmit queues a port (1)" },
	{ "rxd", "N", set_u16, AT(nb_rxd), 1, 65535, NULL, "receive descriptors (the driver's)" },
	{ "txd", "N", set_u16, AT(nb_txd), 1, 65535, NULL, "transmit descriptors (the driver's)" },
	{ "burst", "N[,N...]", set_list, AT(bursts), 1, LCORE_BURST_MAX, NULL,
			"frames a burst; several are compared, as scenarios are (32)" },
	{ "mbcache", "N", set_u16, AT(mbcache), 0, 512, NULL, "mbufs cached an lcore (250)" },
	{ "total-num-mbufs", "N", set_u32, AT(total_mbufs), 1, 1e9, NULL,
			"mbufs of the pool (what ports and source need)" },
	{ "mbuf-size", "BYTES", set_u16, AT(mbuf_size), 192, 65535, NULL,
			"data room of an mbuf, its headroom of 128 included (2176)" },
	{ "max-pkt-len", "BYTES", set_u32, AT(max_pkt_len), 64, 65535, NULL,
			"longest frame, FCS included (the driver's)" },
	{ "txpkts", "LEN[,LEN...]", set_txpkts, 0, 0, 0, NULL,
			"segment lengths of txonly's frames (64)" },
	{ "txonly-multi-flow", NULL, set_flag, AT(fwd.txonly_multi_flow), 1, 0, NULL,
			"txonly varies the source address" },
	{ "eth-peer", "PORT,MAC", set_eth_peer, 0, 0, 0, NULL,
			"destination address in mac, csum and txonly (02:00:00:00:00:PORT)" },
	{ "stats-period", "SEC", set_u32, AT(stats_period), 0, 86400, NULL,
			"port statistics on stderr every SEC seconds (0: none)" },
	{ "display-xstats", "NAME[,NAME...]", set_text, AT(xstats), 0, 0, NULL,
			"extended statistics shown with them and at the end" },
	{ "record-core-cycles", NULL, set_flag, AT(record_core_cycles), 1, 0, NULL,
			"busy cycles/packet; costs two TSC reads a burst" },
	{ "record-burst-stats", NULL, set_flag, AT(record_burst_stats), 1, 0, NULL,
			"histogram of burst sizes, to bursts.csv" },
	{ "no-flush-rx", NULL, set_flag, AT(no_flush_rx), 1, 0, NULL,
			"keep what waits in the receive queues at start" },
	{ "mlockall", NULL, set_mlockall, AT(mlockall), 1, 0, NULL, "lock all memory (default)" },
	{ "no-mlockall", NULL, set_mlockall, AT(mlockall), 0, 0, NULL, "do not lock memory" },
	{ "no-numa", NULL, set_flag, AT(numa), 0, 0, NULL, "one pool, on node 0" },
	{ "socket-num", "NODE", set_int, AT(socket), 0, 7, NULL, "NUMA node of the pool" },
	{ "noisy-forward-mode", "MODE", set_noisy_mode, 0, 0, 0, noisy_mode_names,
			"what noisy does to frames: io mac macswap 5tswap (io)" },
	{ "noisy-tx-sw-buffer-size", "FRAMES", set_u32, AT(fwd.noisy_buffer), 0, 1 << 20, NULL,
			"frames held back before they are sent (0)" },
	{ "noisy-tx-sw-buffer-flushtime", "MS", set_u32, AT(fwd.noisy_flush_ms), 0, 1e6, NULL,
			"send what is held back after MS without traffic (0: never)" },
	{ "noisy-lkup-memory", "MIB", set_u64, AT(fwd.noisy_memory_mib), 0, 1 << 20, NULL,
			"memory that is looked up (0)" },
	{ "noisy-lkup-num-reads", "N[,N...]", set_list, AT(reads), 0, 1e6, NULL,
			"random reads a frame; several are compared (0)" },
	{ "noisy-lkup-num-writes", "N[,N...]", set_list, AT(writes), 0, 1e6, NULL,
			"random writes a frame; several are compared (0)" },
	{ "noisy-lkup-num-reads-writes", "N[,N...]", set_list, AT(reads_writes), 0, 1e6, NULL,
			"random reads and writes a frame; several are compared (0)" },
	{ "tx-first", NULL, set_flag, AT(tx_first), 1, 0, NULL,
			"send one burst before forwarding" },
	{ "cmdline-file", "FILE", set_text, AT(cmdline_file), 0, 0, NULL,
			"carry out the commands of a file, up to one that fails" },
	{ "i", NULL, set_flag, AT(interactive), 1, 0, NULL, "prompt for commands" },
	{ "a", NULL, set_flag, AT(auto_start), 1, 0, NULL,
			"forward before the first command; without any, forwarding always starts by itself" },
	/* measuring */
	{ "source", "KIND", set_source, 0, 0, 0, source_names,
			"dev null[:LEN] pcap:FILE ring; all but dev make two virtual ports (dev)" },
	{ "save-pcap", "FILE[:N]", set_save_pcap, 0, 0, 0, NULL,
			"write the first N frames as sent, after the run (none, 64)" },
	{ "sibling", "CPU", set_sibling, AT(sibling), 0, 65535, NULL,
			"CPU whose idling matters; auto: the SMT sibling or the closest (auto)" },
	{ "scenario", "S[,S...]", set_scenario, 0, 0, 0, NULL,
			"what the sibling does: words of idlectl joined by + (as-is)" },
	{ "reproduce", NULL, set_reproduce, 0, 0, 0, NULL,
			"the published experiment: " REPRODUCE_SCENARIOS
			", 10 blocks, its figures beside" },
	{ "null-test", NULL, set_flag, AT(null_test), 1, 0, NULL,
			"the scenario against itself: the noise floor" },
	{ "calibrate", "CYCLES", set_double, AT(calibrate), 1, 1e9, NULL,
			"search the look-ups that make a packet take so many TSC cycles, and print them" },
	{ "duration", "SEC", set_double, AT(duration), 0.001, 86400, NULL, "of a window (1)" },
	{ "windows", "N", set_u32, AT(windows), 1, 1e6, NULL, "how many a visit (3)" },
	{ "blocks", "N", set_u32, AT(blocks), 1, 1e5, NULL,
			"of visits, two to each of several scenarios (1)" },
	{ "order", "WORD", set_order, 0, 0, 0, order_names,
			"of the visits: abba, every other block reversed, or random[:SEED] (abba)" },
	{ "preset", "WORD", set_preset, 0, 0, 0, preset_names,
			"windows a visit: trend 10 of 1 s, patch 5 of 10 s, bisect 60 of 1 s" },
	{ "margin", "PCT", set_margin, AT(margin), 0, 100, NULL,
			"a change within it is none; the exit code is the verdict (2)" },
	{ "warmup", "SEC", set_double, AT(warmup), 0, 3600, NULL, "flagged row before them (1)" },
	{ "settle", "SEC", set_double, AT(settle), 0, 3600, NULL, "forwarding before that (0.2)" },
	{ "record-perf-events", NULL, set_flag, AT(record_perf_events), 1, 0, NULL,
			"core cycles and instructions a packet, where there is a PMU" },
	{ "out", "DIR", set_text, AT(out), 0, 0, NULL, "result directory (none)" },
	{ "prom-file", "FILE", set_text, AT(prom_file), 0, 0, NULL,
			"write each window's figures for Prometheus's textfile collector (none)" },
	{ "resume", NULL, set_flag, AT(resume), 1, 0, NULL,
			"go on with what a run that was ended left in --out" },
	{ "format", "WORD", set_word, AT(format), 0, 0, format_names,
			"what goes to stdout: table csv json (table)" },
	{ "dry-run", NULL, set_flag, AT(dry_run), 1, 0, NULL,
			"print placement and time needed; change nothing" },
	{ "force", NULL, set_flag, AT(force), 1, 0, NULL,
			"measure on a busy CPU, and where no effect is expected" },
	{ "help", NULL, set_flag, AT(help), 1, 0, NULL, "this text" },
};

#define NB_ROWS (sizeof(table) / sizeof(table[0]))

static void
set_defaults(struct options *o)
{
	*o = (struct options){
		.mode = fwd_mode_find("io"),
		.bursts = { 1, { 32 } },
		.reads = { 1, { 0 } },
		.writes = { 1, { 0 } },
		.reads_writes = { 1, { 0 } },
		.nb_cores = 1,
		.nb_rxq = 1,
		.nb_txq = 1,
		.mbcache = 250,
		.mbuf_size = MBUF_SIZE_DEFAULT,
		.fwd = { .nb_tx_segs = 1,
				.tx_seg_len = { TX_PKT_LEN_DEFAULT },
				.tx_pkt_len = TX_PKT_LEN_DEFAULT },
		.mlockall = true,
		.numa = true,
		.socket = -1,
		.source = SOURCE_DEV,
		.source_text = "dev",
		.null_len = 64,
		.save_frames = 64,
		.sibling = -1,
		.scenarios = { { .text = "as-is" } },
		.nb_scenarios = 1,
		.seed = 1,
		.margin = COMPARE_MARGIN,
		.duration = 1,
		.windows = 3,
		.warmup = 1,
		.settle = 0.2,
	};
	for (unsigned int p = 0; p < OPTIONS_PORTS_MAX; p++) {
		o->peer[p].addr_bytes[0] = 0x02; /* as testpmd: local, the port in the last byte */
		o->peer[p].addr_bytes[5] = (uint8_t)p;
	}
	for (unsigned int t = 0; t < TAINT_MAX; t++)
		o->taint_bound[t] = taints[t].bound;
	o->taint_bound[TAINT_MISSED] = NAN; /* not given */
}

/* --taint-NAME=BOUND; name is what stands behind "taint-". */
static int
set_taint(struct options *o, const char *name, const char *arg, struct err *err)
{
	for (unsigned int t = 0; t < TAINT_MAX; t++) {
		char full[64];
		struct option_row row = { .name = full, .offset = AT(taint_bound[0]), .max = 1e12 };

		if (strcmp(taints[t].word, name) != 0 || taints[t].unit == NULL)
			continue;
		snprintf(full, sizeof(full), "taint-%s", name);
		row.offset += t * sizeof(o->taint_bound[0]);
		return set_double(o, &row, arg, err);
	}
	return err_set(err, EXIT_USAGE, "--taint-%s: unknown cause of taint", name);
}

/* The options of look-ups, of which one may have several counts. */
struct lookup_list {
	const char *name;
	const struct option_list *counts;
};

#define LOOKUP_LISTS 3

static void
lookup_lists(const struct options *o, struct lookup_list lists[LOOKUP_LISTS])
{
	lists[0] = (struct lookup_list){ "reads", &o->reads };
	lists[1] = (struct lookup_list){ "writes", &o->writes };
	lists[2] = (struct lookup_list){ "reads-writes", &o->reads_writes };
}

/* How many counts of look-ups there are. */
static unsigned int
nb_lookups(const struct options *o)
{
	return RTE_MAX(o->reads.nb, RTE_MAX(o->writes.nb, o->reads_writes.nb));
}

unsigned int
options_settings(const struct options *o)
{
	return o->bursts.nb * nb_lookups(o);
}

unsigned int
options_arms(const struct options *o)
{
	return o->nb_scenarios * options_settings(o);
}

uint64_t
options_windows(const struct options *o)
{
	return (uint64_t)o->blocks * schedule_visits(options_arms(o)) * o->windows;
}

struct options_arm
options_arm(const struct options *o, unsigned int arm)
{
	const struct summary_varied varied = { false, o->bursts.nb > 1, nb_lookups(o) > 1 };
	struct options_arm a = { .scenario = &o->scenarios[arm % o->nb_scenarios],
		.setting = arm / o->nb_scenarios };
	unsigned int count = a.setting / o->bursts.nb;

	a.burst = (uint16_t)o->bursts.at[a.setting % o->bursts.nb];
	a.lookups.reads = o->reads.at[count % o->reads.nb];
	a.lookups.writes = o->writes.at[count % o->writes.nb];
	a.lookups.reads_writes = o->reads_writes.at[count % o->reads_writes.nb];
	summary_arm(a.name, sizeof(a.name), a.scenario->text, o->mode->name, a.burst,
			a.lookups.reads + a.lookups.writes + a.lookups.reads_writes, varied);
	return a;
}

static int
check_lookups(const struct options *o, struct err *err)
{
	struct lookup_list lists[LOOKUP_LISTS];
	const char *several = NULL;

	lookup_lists(o, lists);
	for (unsigned int i = 0; i < LOOKUP_LISTS; i++) {
		const struct option_list *counts = lists[i].counts;

		if (o->fwd.noisy_memory_mib == 0 && (counts->nb > 1 || counts->at[0] != 0))
			return err_set(err, EXIT_USAGE,
					"--noisy-lkup-num-%s: look-ups need --noisy-lkup-memory above 0",
					lists[i].name);
		if (counts->nb == 1)
			continue;
		if (strcmp(o->mode->name, "noisy") != 0)
			return err_set(err, EXIT_USAGE,
					"--noisy-lkup-num-%s: several counts need --forward-mode=noisy",
					lists[i].name);
		if (several != NULL)
			return err_set(err, EXIT_USAGE,
					"--noisy-lkup-num-%s and --noisy-lkup-num-%s: only one may have several counts",
					several, lists[i].name);
		several = lists[i].name;
	}
	return 0;
}

bool
options_prompt(const struct options *o)
{
	return o->interactive || o->cmdline_file != NULL;
}

/* An option that makes no sense beside another one. */
struct useless {
	bool given;
	const char *name;
};

/* option is written with its dashes. */
static int
check_useless(const char *option, const struct useless *useless, size_t nb, struct err *err)
{
	for (size_t i = 0; i < nb; i++)
		if (useless[i].given)
			return err_set(err, EXIT_USAGE, "%s and --%s contradict each other", option,
					useless[i].name);
	return 0;
}

/* What makes no sense where commands say what to do. */
static int
check_prompt(const struct options *o, struct err *err)
{
	const struct useless useless[] = {
		{ o->reproduce, "reproduce" }, { o->null_test, "null-test" },
		{ o->calibrate > 0, "calibrate" },
		{ o->nb_scenarios > 1, "scenario with several (compare A B does)" },
		{ o->bursts.nb > 1, "burst with several numbers" },
		{ nb_lookups(o) > 1, "noisy-lkup-num with several numbers" },
		{ o->resume, "resume" }, { o->dry_run, "dry-run" },
		{ o->save_path != NULL, "save-pcap" },
		{ o->tx_first, "tx-first" }, /* testpmd's words: not on interactive mode */
	};

	return !options_prompt(o) ? 0
				  : check_useless(o->interactive ? "-i" : "--cmdline-file", useless,
						    RTE_DIM(useless), err);
}

/* What --calibrate has no use for, being a search and not an experiment. */
static int
check_calibrate(const struct options *o, struct err *err)
{
	const struct useless useless[] = {
		{ o->reproduce, "reproduce" },
		{ o->null_test, "null-test" },
		{ o->nb_scenarios > 1 || o->scenarios[0].nb > 0, "scenario" },
		{ o->bursts.nb > 1, "burst with several numbers" },
		{ nb_lookups(o) > 1 || o->reads.at[0] != 0, "noisy-lkup-num-reads" },
		{ o->margin_given, "margin" },
		{ o->out != NULL, "out" },
		{ o->format != FORMAT_TABLE, "format" },
		{ o->save_path != NULL, "save-pcap" },
	};

	if (o->calibrate == 0)
		return 0;
	if (check_useless("--calibrate", useless, RTE_DIM(useless), err) != 0)
		return -1;
	if (strcmp(o->mode->name, "noisy") != 0)
		return err_set(err, EXIT_USAGE,
				"--calibrate: %s has no look-ups; give --forward-mode=noisy --noisy-forward-mode=%s",
				o->mode->name, o->mode->kind == 0 ? o->mode->name : "io");
	if (o->fwd.noisy_memory_mib == 0)
		return err_set(err, EXIT_USAGE,
				"--calibrate: look-ups need --noisy-lkup-memory above 0");
	return 0;
}

static int
check_together(const struct options *o, struct err *err)
{
	uint32_t room = o->mbuf_size - 128u; /* RTE_PKTMBUF_HEADROOM */

	char asked[2 * SCENARIO_MAX + 2];

	if (o->reproduce && o->nb_scenarios == 2)
		snprintf(asked, sizeof(asked), "%s,%s", o->scenarios[0].text, o->scenarios[1].text);
	if (o->reproduce && (o->nb_scenarios != 2 || strcmp(asked, REPRODUCE_SCENARIOS) != 0))
		return err_set(err, EXIT_USAGE,
				"--reproduce and --scenario contradict each other: it is " REPRODUCE_SCENARIOS);
	if (options_settings(o) > 1 && (o->null_test || o->reproduce))
		return err_set(err, EXIT_USAGE,
				"--%s and --%s with several numbers contradict each other",
				o->null_test ? "null-test" : "reproduce",
				o->bursts.nb > 1 ? "burst" : "noisy-lkup-num");
	if (options_arms(o) > SCHEDULE_SCENARIOS_MAX)
		return err_set(err, EXIT_USAGE,
				"--%s: %u settings of %u scenarios make more than %d arms",
				o->bursts.nb > 1 ? "burst" : "noisy-lkup-num", options_settings(o),
				o->nb_scenarios, SCHEDULE_SCENARIOS_MAX);
	if (o->null_test && o->nb_scenarios == SCHEDULE_SCENARIOS_MAX)
		return err_set(err, EXIT_USAGE, "--null-test: %u scenarios leave no room for it",
				o->nb_scenarios);
	if (check_prompt(o, err) != 0)
		return -1;
	if (o->margin_given && options_arms(o) == 1 && !o->null_test && !options_prompt(o))
		return err_set(err, EXIT_USAGE,
				"--margin: one scenario is compared with nothing; give --scenario=S,S, --burst=N,N or --null-test");
	if (o->source != SOURCE_DEV && (o->portmask != 0 || o->nb_ports != 0))
		return err_set(err, EXIT_USAGE,
				"--%s and --source=%s contradict each other: that source makes its ports",
				o->portmask != 0 ? "portmask" : "portlist", o->source_text);
	if (o->source == SOURCE_NULL && o->null_len > room)
		return err_set(err, EXIT_USAGE,
				"--source=%s: longer than the %u bytes of an mbuf; give --mbuf-size=%u",
				o->source_text, room, RTE_MIN(o->null_len + 128u, 65535u));
	for (unsigned int i = 0; i < o->fwd.nb_tx_segs; i++)
		if (o->fwd.tx_seg_len[i] > room)
			return err_set(err, EXIT_USAGE,
					"--txpkts: segment of %u is longer than the %u bytes of an mbuf",
					o->fwd.tx_seg_len[i], room);
	if (o->resume && o->out == NULL)
		return err_set(err, EXIT_USAGE, "--resume: which run? Give its --out=DIR");
	return check_lookups(o, err) != 0 ? -1 : check_calibrate(o, err);
}

#define LONG_VALUE 256 /* getopt's return for table[0]; above every character */

/* Long options for getopt: the table's, then a --taint-NAME for each cause. */
static void
fill_long_options(struct option *longs, char names[TAINT_MAX][32])
{
	for (unsigned int i = 0; i < NB_ROWS + TAINT_MAX; i++) {
		/* Values differ, or getopt would not find an abbreviation ambiguous. */
		longs[i].val = LONG_VALUE + (int)i;
		if (i < NB_ROWS) {
			longs[i].name = table[i].name;
			longs[i].has_arg = table[i].arg != NULL ? required_argument : no_argument;
			continue;
		}
		snprintf(names[i - NB_ROWS], sizeof(names[0]), "taint-%s",
				taints[i - NB_ROWS].word);
		longs[i].name = names[i - NB_ROWS];
		longs[i].has_arg = required_argument;
	}
}

/* What getopt stopped at, as typed but for its value. */
static int
refuse(int c, const char *typed, struct err *err)
{
	if (optopt > 0 && optopt < LONG_VALUE)
		return err_set(err, EXIT_USAGE, "-%c: %s", optopt,
				c == ':' ? "its value is missing" : "unknown option");
	return err_set(err, EXIT_USAGE, "%.*s: %s", (int)strcspn(typed, "="), typed,
			c == ':'		      ? "its value is missing"
					: optopt != 0 ? "takes no value"
						      : "unknown or ambiguous option");
}

/* The row of what getopt returned, for a short option too. */
static const struct option_row *
row_of(int c)
{
	if (c >= LONG_VALUE)
		return &table[c - LONG_VALUE];
	for (unsigned int i = 0; i < NB_ROWS; i++)
		if (table[i].name[0] == c && (table[i].name[1] == '\0' || c == 'h'))
			return &table[i];
	return NULL;
}

static int
parse_with_getopt(struct options *o, int argc, char *const argv[], struct err *err)
{
	struct option longs[NB_ROWS + TAINT_MAX + 1] = { 0 };
	char names[TAINT_MAX][32];
	int c, rc = 0;

	set_defaults(o);
	fill_long_options(longs, names);
	while (rc == 0 && (c = getopt_long(argc, argv, "+:iah", longs, NULL)) != -1) {
		if (c == ':' || c == '?')
			rc = refuse(c, argv[optind > 0 ? optind - 1 : 0], err);
		else if (c >= LONG_VALUE + (int)NB_ROWS)
			rc = set_taint(o, taints[c - LONG_VALUE - (int)NB_ROWS].word, optarg, err);
		else
			rc = row_of(c)->set(o, row_of(c), optarg, err);
	}
	if (rc == 0 && optind < argc)
		rc = err_set(err, EXIT_USAGE, "%s: unexpected argument", argv[optind]);
	return rc;
}

/* The second name of a null test; sibfwd-report knows it by the suffix. */
static int
add_null(struct options *o, struct err *err)
{
	struct scenario *null = &o->scenarios[o->nb_scenarios];
	size_t len = strlen(o->scenarios[0].text);

	*null = o->scenarios[0];
	if (len + strlen(SCHEDULE_NULL) >= sizeof(null->text))
		return err_set(err, EXIT_USAGE, "--null-test: --scenario=%s is too long for it",
				null->text);
	memcpy(null->text + len, SCHEDULE_NULL, sizeof(SCHEDULE_NULL));
	o->nb_scenarios++;
	return 0;
}

int
options_parse(struct options *o, int argc, char *const argv[], struct err *err)
{
	int rc, loud = opterr;

	opterr = 0;
	optind = 0; /* glibc: start afresh */
	rc = parse_with_getopt(o, argc, argv, err);
	/* EAL uses getopt too, and its complaints are wanted. */
	opterr = loud;
	for (unsigned int i = 0; i < o->bursts.nb; i++)
		o->burst = RTE_MAX(o->burst, (uint16_t)o->bursts.at[i]);
	if (rc == 0)
		rc = check_together(o, err);
	if (rc == 0 && o->blocks == 0)
		o->blocks = o->reproduce ? REPRODUCE_BLOCKS : 1;
	if (rc == 0 && o->null_test)
		rc = add_null(o, err);
	/* The published load is above what is forwarded: the port loses the rest, in both scenarios. */
	if (isnan(o->taint_bound[TAINT_MISSED]))
		o->taint_bound[TAINT_MISSED] = o->reproduce ? INFINITY : taints[TAINT_MISSED].bound;
	if (rc == 0 && options_windows(o) > OPTIONS_WINDOWS_MAX)
		rc = err_set(err, EXIT_USAGE, "--blocks=%u: makes %" PRIu64 " windows, at most %d",
				o->blocks, options_windows(o), OPTIONS_WINDOWS_MAX);
	return rc;
}

int
options_set(struct options *o, const char *name, const char *value, struct err *err)
{
	struct options changed = *o;

	for (unsigned int i = 0; i < NB_ROWS; i++)
		if (strcmp(table[i].name, name) == 0) {
			if (table[i].set(&changed, &table[i], value, err) != 0 ||
					check_together(&changed, err) != 0)
				return -1;
			*o = changed;
			return 0;
		}
	abort();
}

bool
options_doc(unsigned int i, struct option_doc *doc)
{
	static char name[64], help[160];
	const struct option_row *row = i < NB_ROWS ? &table[i] : NULL;

	if (i >= NB_ROWS + TAINT_MAX || (row == NULL && taints[i - NB_ROWS].unit == NULL))
		return false;
	doc->values[0] = '\0';
	if (row == NULL) {
		snprintf(name, sizeof(name), "taint-%s", taints[i - NB_ROWS].word);
		snprintf(help, sizeof(help), "taint above: %s (%g)", taints[i - NB_ROWS].unit,
				taints[i - NB_ROWS].bound);
		doc->name = name;
		doc->arg = "BOUND";
		doc->help = help;
		return true;
	}
	doc->name = row->name;
	doc->arg = row->arg;
	doc->help = row->help;
	if (row->set == set_mode)
		snprintf(doc->values, sizeof(doc->values), "%s", fwd_mode_names());
	for (unsigned int w = 0; row->words != NULL && row->words[w] != NULL; w++)
		snprintf(doc->values + strlen(doc->values),
				sizeof(doc->values) - strlen(doc->values), "%s%s", w > 0 ? " " : "",
				row->words[w]);
	return true;
}

void
options_help(FILE *out)
{
	struct option_doc doc;

	fprintf(out, "Usage: dpdk-sibfwd [EAL options] -- [options]\n\n");
	for (unsigned int i = 0; options_doc(i, &doc); i++) {
		char head[64];

		snprintf(head, sizeof(head), "%s%s%s%s", doc.name[1] == '\0' ? "-" : "--", doc.name,
				doc.arg != NULL ? "=" : "", doc.arg != NULL ? doc.arg : "");
		fprintf(out, "  %-36s %s\n", head, doc.help);
	}
	fprintf(out, "\nEAL options stand before the \"--\"; see dpdk-sibfwd's guide in docs/, and its man page.\n");
}
