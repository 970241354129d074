/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APP_LCORE_H
#define APP_LCORE_H

/*
 * The measured thread: what it counts, and how a window's edges are taken.
 *
 * The controller raises edge_asked; the thread sees it between two bursts, stores its own
 * snapshot and answers in edge_done. Nothing else passes between the two while it forwards.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "err.h"

#define LCORE_BURST_MAX 512 /* testpmd's MAX_PKT_BURST */

struct fwd_lookups;
struct fwd_mode;
struct fwd_stream;

/* What the loop counts for each stream, from the first start of it. */
struct lcore_counts {
	uint64_t rx_packets;
	uint64_t tx_packets;
	uint64_t tx_dropped; /* refused by the driver or by the mode, and freed */
	uint64_t polls; /* turns of a stream */
	uint64_t empty_polls; /* of these, the ones that received nothing */
	uint64_t busy_cycles; /* TSC ticks in turns with frames; 0 unless recorded */
};

/* The TSC and CLOCK_MONOTONIC_RAW at one moment. */
struct lcore_clock {
	uint64_t tsc;
	uint64_t raw_ns;
};

#define LCORE_CLOCK_GAP 2000 /* ticks; a read that took longer was interrupted */

/*
 * Read both clocks as one. The raw clock comes from the vDSO: no system call where the clock
 * source is the TSC. An interrupt between the reads would tear them apart, so a torn pair is
 * read again, a bounded number of times.
 */
static inline void
lcore_clock_read(struct lcore_clock *c)
{
	struct timespec ts;
	uint64_t before, after;

	for (int tries = 0; tries < 4; tries++) {
		before = rte_rdtsc();
		clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
		after = rte_rdtsc();
		c->tsc = before + (after - before) / 2;
		c->raw_ns = (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
		if (after - before < LCORE_CLOCK_GAP)
			break;
	}
}

/* One edge of a window, taken by the forwarding thread itself between two bursts. */
struct lcore_edge {
	struct lcore_clock clock;
	struct lcore_counts counts; /* of all its streams */
	bool saving; /* frames are still being copied */
	uint64_t bursts[LCORE_BURST_MAX + 1]; /* turns by frames; only filled where recorded */
};

/* Frames copied as sent, for --save-pcap; owned by one forwarding thread. */
struct lcore_saved {
	uint32_t limit; /* frames wanted */
	uint32_t count; /* frames stored */
	uint32_t frame_max; /* bytes of room a frame */
	struct {
		uint64_t tsc;
		uint32_t len; /* bytes on the wire, FCS excluded */
	} * info;
	uint8_t *bytes; /* limit x frame_max */
};

/* What the loop records. */
enum lcore_record {
	LCORE_RECORD_CYCLES = 1 << 0, /* testpmd's --record-core-cycles */
	LCORE_RECORD_BURSTS = 1 << 1, /* testpmd's --record-burst-stats */
	LCORE_RECORD_LOOPS = 1 << 2, /* number of combinations that are loops of their own */
	LCORE_RECORD_FRAMES = 1 << 2, /* besides: copy frames until the saved area is full */
};

struct lcore {
	_Alignas(RTE_CACHE_LINE_SIZE) _Atomic uint32_t edge_asked; /* written by the controller */
	_Atomic bool stop; /* read by the thread only when edge_asked changed */

	_Alignas(RTE_CACHE_LINE_SIZE) _Atomic uint32_t edge_done; /* written by the thread */
	struct lcore_edge edge;

	/* Constant while the thread runs. */
	_Alignas(RTE_CACHE_LINE_SIZE) unsigned int id; /* DPDK lcore */
	int cpu;
	uint16_t burst;
	unsigned int nb_streams;
	struct fwd_stream **streams;
	const struct fwd_mode *mode;
	unsigned int record; /* enum lcore_record */

	/* The thread's own, carried from loop to loop. */
	uint64_t *bursts; /* LCORE_BURST_MAX + 1, NULL unless recorded */
	struct lcore_saved saved;
	_Atomic int tid; /* kernel thread, 0 until it runs */

	unsigned int launches; /* the controller's: how often there was a loop */
	uint64_t base_bursts[LCORE_BURST_MAX + 1]; /* the controller's too: as the streams' base */
};

/*
 * For the loops: store a snapshot of the streams' counts, where there is to be one, and answer the controller.
 * Out of line, to keep the loops short. Returns true when the loop is to end.
 */
bool lcore_answer(struct lcore *lc, bool snapshot, uint32_t asked);

/* Whether lc runs its mode's loop of a pair of ports; otherwise the general one. */
bool lcore_runs_pair_loop(const struct lcore *lc);

/* Launch the forwarding thread of lc on its lcore. Returns 0, or -1 with err set. */
int lcore_launch(struct lcore *lc, struct err *err);

/*
 * Launch the threads of n lcores, with what is constant while they run. *launched are running, in both cases.
 * Returns as lcore_launch().
 */
int lcore_launch_all(struct lcore *lcs, unsigned int n, uint16_t burst,
		const struct fwd_lookups *lookups, unsigned int *launched, struct err *err);

/*
 * Ask every one of n lcores for an edge and wait for all answers; the snapshots are then in
 * lc->edge. Returns 0, or -1 with err set when a thread does not answer within 5 s.
 */
int lcore_take_edge(struct lcore *lcs, unsigned int n, struct err *err);

/* Take a last edge, end the loops and wait for the threads. Same returns. */
int lcore_stop(struct lcore *lcs, unsigned int n, struct err *err);

#endif
