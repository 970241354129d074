/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APP_PORT_H
#define APP_PORT_H

/*
 * Ports, pools and streams: everything of ethdev that is set up before the loop runs. Nothing
 * here assumes a virtual device.
 */
#include <rte_ethdev.h>

#include "capture.h"
#include "fwd.h"
#include "lcore.h"
#include "options.h"
#include "placement.h"

struct port {
	uint16_t id;
	int socket;
	unsigned int if_index; /* kernel interface behind it; 0: none */
	uint16_t rxd, txd; /* descriptors a queue, for the size of the pool */
	uint64_t rx_offloads, tx_offloads;
	struct rte_ether_addr mac;
	struct rte_mempool *pool;
	bool started, closed;
	uint64_t missed_base; /* from which on people are told what was missed */
};

struct ports {
	const struct options *options;
	struct port port[OPTIONS_PORTS_MAX]; /* those that were brought up */
	unsigned int nb;
	unsigned int forward[OPTIONS_PORTS_MAX]; /* of these, in forwarding order: indices */
	unsigned int nb_forward;
	const struct fwd_mode *mode; /* of the streams */
	struct fwd_stream *streams;
	unsigned int nb_streams;
	unsigned int nb_inited; /* streams whose mode has state */
	bool own; /* made by --source: removed in the end */
};

/*
 * Make the ports of --source or take the ones that EAL found, create the pools, configure and
 * start everything and wait for the links. capture is NULL unless the source is one. Returns
 * 0, or -1 with err set. ports_close() undoes what was done, after a failure too.
 */
int ports_open(struct ports *p, const struct options *o, const struct capture *capture,
		unsigned int nb_lcores, struct err *err);

/* The i-th port that forwards. */
const struct port *ports_forwarding(const struct ports *p, unsigned int i);

/* Which ports forward from the next streams on, by DPDK's numbers. Returns 0, or -1 with err set. */
int ports_set_forward(struct ports *p, const uint16_t *ids, unsigned int nb, struct err *err);

/* Stop, start again, or close for good, ports that do not forward now. Return 0, or -1 with err set. */
int ports_stop(const struct ports *p, struct port *port, struct err *err);
int ports_start(struct port *port, struct err *err);
int ports_shut(struct port *port, struct err *err);

/*
 * The streams of the mode that is asked for, and their end, which gives back what modes hold of frames.
 * Nothing may forward meanwhile. Making them anew needs the end of those before.
 */
int ports_make_streams(struct ports *p, struct err *err);
void ports_end_streams(struct ports *p);

/* Throw away what waits in the receive queues, for 100 ms at the most. */
void ports_flush(struct ports *p);

/* Send one burst of testpmd's txonly frames by every stream, which counts them (--tx-first). */
int ports_tx_first(struct ports *p, struct err *err);

/* Source ring: throw away what circulates, and send new frames, which do not count. */
int ports_refill(struct ports *p, struct err *err);

/* The name of a port; "gone" where there is none any more. Valid until the next call. */
const char *port_name(uint16_t id);

/*
 * Spread the streams over n lcores as testpmd does: equal shares, the last lcores take one
 * more. Fills in lcs[].streams and nb_streams; returns how many lcores have any.
 */
unsigned int ports_assign(struct ports *p, struct lcore *lcs, unsigned int n);

/* Returns 0, or -1 with err set when a port has gone away. */
int ports_check(const struct ports *p, struct err *err);

/* Sums over the ports that lc receives from; the first lcore of a port counts it. */
struct port_counts {
	uint64_t missed;
	uint64_t nombuf;
};
void ports_counts(const struct ports *p, const struct lcore *lcs, unsigned int lcore,
		struct port_counts *c);

/* Statistics of every port for people, as testpmd's show port stats; xstats may be NULL. */
void ports_print(const struct ports *p, const char *xstats, FILE *out);

/* Extended statistics of a port, a line each behind an indent: those of a list joined by commas, or all (NULL). */
void ports_print_xstats(uint16_t id, const char *wanted, const char *indent, FILE *out);

/* Ports for environment.json; a new reference. */
json_t *ports_json(const struct ports *p);

void ports_close(struct ports *p);

#endif
