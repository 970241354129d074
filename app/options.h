/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APP_OPTIONS_H
#define APP_OPTIONS_H

/*
 * The command line behind "--": one table of options, no side effect, no EAL.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <rte_ether.h>

#include "err.h"
#include "scenario.h"
#include "schedule.h"
#include "fwd.h"

#define OPTIONS_PORTS_MAX 32 /* RTE_MAX_ETHPORTS of the distributions' DPDK */

enum source_kind { SOURCE_DEV, SOURCE_NULL, SOURCE_PCAP, SOURCE_RING };
enum port_topology { TOPOLOGY_PAIRED, TOPOLOGY_CHAINED, TOPOLOGY_LOOP };
enum output_format { FORMAT_TABLE, FORMAT_CSV, FORMAT_JSON };

/* The causes of taint, in the order in which they are written. */
enum taint {
	TAINT_IRQS,
	TAINT_CTXSW,
	TAINT_STEAL,
	TAINT_SMI,
	TAINT_UNSATURATED,
	TAINT_MISSED,
	TAINT_NOMBUF,
	TAINT_FREQ,
	TAINT_STATE,
	TAINT_CONTROLLER,
	TAINT_MAX,
};

/* Values of an option that are arms of the experiment. */
struct option_list {
	unsigned int nb;
	uint64_t at[SCHEDULE_SCENARIOS_MAX];
};

struct options {
	/* forwarding, testpmd's */
	const struct fwd_mode *mode;
	uint16_t burst; /* the largest of bursts */
	struct option_list bursts; /* 1 at least */
	struct option_list reads, writes, reads_writes; /* noisy's look-ups a frame; likewise */
	uint16_t nb_cores;
	uint64_t portmask; /* 0: all */
	uint16_t ports[OPTIONS_PORTS_MAX];
	uint16_t nb_ports; /* of --portlist; 0: all */
	enum port_topology topology;
	uint16_t nb_rxq, nb_txq;
	uint16_t nb_rxd, nb_txd; /* 0: testpmd's default */
	uint16_t mbcache;
	uint32_t total_mbufs; /* 0: computed */
	uint16_t mbuf_size;
	uint32_t max_pkt_len; /* 0: the driver's default */
	struct rte_ether_addr peer[OPTIONS_PORTS_MAX];
	struct fwd_options fwd;
	uint32_t stats_period; /* seconds; 0: none */
	const char *xstats; /* comma-separated names, or NULL */
	bool record_core_cycles;
	bool record_burst_stats;
	bool record_perf_events;
	bool no_flush_rx;
	bool mlockall, mlockall_given;
	bool numa;
	int socket; /* -1: the port's */
	bool tx_first;
	bool interactive; /* -i */
	bool auto_start; /* -a */
	const char *cmdline_file; /* or NULL */

	/* measuring, its own */
	enum source_kind source;
	uint32_t null_len; /* of --source=null:LEN */
	const char *capture; /* of --source=pcap:FILE */
	const char *source_text; /* as given, for the results */
	const char *save_path; /* its first save_path_len bytes */
	size_t save_path_len;
	uint32_t save_frames;
	int sibling; /* CPU, or -1: auto */
	struct scenario scenarios[SCHEDULE_SCENARIOS_MAX];
	unsigned int nb_scenarios; /* 1 at least */
	bool reproduce; /* the published experiment */
	double calibrate; /* TSC cycles a packet to be reached by look-ups; 0: none */
	bool null_test; /* the second scenario is the first under another name */
	double duration, warmup, settle; /* seconds */
	uint32_t windows; /* a visit */
	uint32_t blocks; /* 1 at least */
	enum order order;
	uint64_t seed; /* of the random order */
	double margin; /* percent */
	bool margin_given; /* the exit code is the verdict */
	double taint_bound[TAINT_MAX];
	const char *out;
	const char *prom_file; /* or NULL */
	enum output_format format;
	bool resume;
	bool dry_run;
	bool force;
	bool help;
};

/*
 * Parse argv[1..argc-1]; argv[0] is the program's name and not looked at. Strings are kept by
 * reference to argv. Returns 0, or -1 with err set: exit code 2 and a line that names the
 * option.
 */
int options_parse(struct options *o, int argc, char *const argv[], struct err *err);

/* Whether commands say what to do, typed or from a file. */
bool options_prompt(const struct options *o);

/*
 * A list of numbers and ranges up to highest, in its own order: 0,2-3. Each may be there once; at has room for most.
 */
enum list_fault { LIST_GOOD, LIST_MALFORMED, LIST_RANGE, LIST_TWICE, LIST_LONG };

/* *nb is how many there are; of LIST_TWICE *nb - 1 stand before the number that is at its place. */
enum list_fault options_list(const char *text, unsigned long highest, unsigned int *at,
		unsigned int most, unsigned int *nb);

/* Set one option of options that parsed, as its value would on the command line. Returns 0, or -1 with err set. */
int options_set(struct options *o, const char *name, const char *value, struct err *err);

/* Windows that are asked for; tainted blocks come on top. At most OPTIONS_WINDOWS_MAX, of options that parsed. */
#define OPTIONS_WINDOWS_MAX 1000000000
uint64_t options_windows(const struct options *o);

/* What is compared: each scenario with each setting of the loop, those of the first setting first. */
unsigned int options_arms(const struct options *o);

/* How many settings of the loop there are: each burst with each count of look-ups. */
unsigned int options_settings(const struct options *o);

/* An arm, from 0, and its name as comparisons have it. By value, for printf(). */
struct options_arm {
	const struct scenario *scenario;
	unsigned int setting; /* from 0 */
	uint16_t burst;
	struct fwd_lookups lookups;
	char name[SCENARIO_MAX + 64];
};

struct options_arm options_arm(const struct options *o, unsigned int arm);

/* Print the options with their defaults. */
void options_help(FILE *out);

/* What there is to say of an option. */
struct option_doc {
	const char *name; /* of one character: -i */
	const char *arg; /* NULL: takes none */
	const char *help;
	char values[128]; /* words that it takes, separated by blanks; empty: others */
};

/* Option i, from 0; false behind the last. doc is good until the next call. */
bool options_doc(unsigned int i, struct option_doc *doc);

/* The word for a cause of taint. */
const char *taint_word(enum taint cause);

#endif
