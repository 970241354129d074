/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APP_FWD_LOOP_H
#define APP_FWD_LOOP_H

/*
 * The measured loop, as a template: each mode instantiates it once for every combination of
 * recordings, so that no option is tested in a burst. What is left a turn, beside the driver and
 * the mode, is three additions and the load of one shared word that stays in the first-level
 * cache until the controller writes it.
 */
#include <time.h>

#include <rte_branch_prediction.h>
#include <rte_cycles.h>
#include <rte_per_lcore.h>

#include "fwd.h"

/*
 * How many frames the driver refused of those this lcore generated last; a mode that numbers its
 * frames counts back by it, as testpmd does. Each mode has its own.
 */
static __rte_unused RTE_DEFINE_PER_LCORE(uint16_t, loop_refused);

/*
 * The benchmark of what recording costs builds the loop without it: no counters, and no more
 * than an answer at an edge.
 */
#ifdef LOOP_NO_WINDOWS
#define LOOP_COUNT(statement)
#define LOOP_SNAPSHOT 0
#else
#define LOOP_COUNT(statement) statement
#define LOOP_SNAPSHOT 1
#endif

/* Copy the frames that are about to be sent; the driver owns them afterwards. */
static inline void
loop_copy(struct lcore_saved *sv, struct rte_mbuf **pkts, uint16_t n)
{
	for (uint16_t i = 0; i < n && sv->count + i < sv->limit; i++) {
		uint32_t slot = sv->count + i;
		uint8_t *to = sv->bytes + (size_t)slot * sv->frame_max;
		uint32_t len = RTE_MIN(rte_pktmbuf_pkt_len(pkts[i]), sv->frame_max);
		const void *from = rte_pktmbuf_read(pkts[i], 0, len, to);

		if (from != NULL && from != to)
			memcpy(to, from, len);
		sv->info[slot].len = len;
		sv->info[slot].tsc = rte_rdtsc();
	}
}

/* The ends of a stream: what ethdev is called with. */
struct loop_ends {
	uint16_t rx_port;
	uint16_t rx_queue;
	uint16_t tx_port;
	uint16_t tx_queue;
};

static __rte_always_inline struct loop_ends
loop_ends_of(const struct fwd_stream *st)
{
	return (struct loop_ends){ st->rx_port, st->rx_queue, st->tx_port, st->tx_queue };
}

/* The two streams of fwd_is_pair(). */
static const struct loop_ends loop_there = { 0, 0, 1, 0 }, loop_back = { 1, 0, 0, 0 };

/* One turn of a stream: receive, process, send, count. */
static __rte_always_inline void
loop_turn(struct lcore *lc, struct fwd_stream *st, const struct loop_ends ends,
		struct rte_mbuf **pkts, const uint16_t burst, struct lcore_counts *c,
		fwd_process process, const unsigned int kind, const unsigned int record)
{
	uint64_t start = 0;
	uint16_t n = 0, sent = 0, out;

	if (record & LCORE_RECORD_CYCLES)
		start = rte_rdtsc();
	if (!(kind & FWD_NO_RX)) {
		n = rte_eth_rx_burst(ends.rx_port, ends.rx_queue, pkts, burst);
		if ((record & LCORE_RECORD_BURSTS) && !(kind & FWD_COUNTS_SENT))
			lc->bursts[n]++;
		if (unlikely(n == 0)) {
			LOOP_COUNT(c->empty_polls++;)
			if (!(kind & FWD_EVERY_TURN))
				return;
		}
		LOOP_COUNT(c->rx_packets += n;)
	}
	out = process(st, pkts, n);
	if (!(kind & FWD_NO_TX) && (!(kind & FWD_EVERY_TURN) || out != 0)) {
		if (record & LCORE_RECORD_FRAMES)
			loop_copy(&lc->saved, pkts, out);
		sent = rte_eth_tx_burst(ends.tx_port, ends.tx_queue, pkts, out);
		if (record & LCORE_RECORD_FRAMES)
			lc->saved.count = RTE_MIN(lc->saved.count + sent, lc->saved.limit);
		LOOP_COUNT(c->tx_packets += sent;)
		if (unlikely(sent < out)) {
			LOOP_COUNT(c->tx_dropped += out - sent;)
			if (kind & FWD_COUNTS_SENT)
				RTE_PER_LCORE(loop_refused) = out - sent;
			rte_pktmbuf_free_bulk(&pkts[sent], out - sent);
		}
	}
	if ((record & LCORE_RECORD_BURSTS) && (kind & FWD_COUNTS_SENT))
		lc->bursts[sent]++;
	if ((record & LCORE_RECORD_CYCLES) && (n | out) != 0)
		c->busy_cycles += rte_rdtsc() - start;
}

/* What the streams count, as of now: every round polls each of them once. */
static __rte_always_inline void
loop_store(struct fwd_stream **streams, struct fwd_stream **end, const bool pair,
		const struct lcore_counts there, const struct lcore_counts back, uint64_t rounds)
{
	uint64_t polls = streams[0]->counts.polls;

	if (pair) {
		streams[0]->counts = there;
		streams[1]->counts = back;
		streams[0]->counts.polls = streams[1]->counts.polls = polls;
	}
	for (; streams != end; streams++)
		(*streams)->counts.polls += rounds;
}

/*
 * Forward until told to stop or, with LCORE_RECORD_FRAMES, until enough frames are saved.
 * process, kind, record and pair are constants where speed counts: only the loop that saves
 * frames, which ends when it has them, tests its options in every turn. pair is for the streams
 * of fwd_is_pair(): neither a loop over them nor a look at their ends costs a burst anything.
 * Returns true if told to stop.
 */
static __rte_always_inline bool
fwd_loop(struct lcore *lc, fwd_process process, const unsigned int kind, const unsigned int record,
		const bool pair)
{
	struct rte_mbuf *pkts[LCORE_BURST_MAX];
	struct fwd_stream **const streams = lc->streams;
	struct fwd_stream **const end = streams + lc->nb_streams;
	/* Those of a pair can stay in registers: their address is never taken for longer than a turn. */
	struct lcore_counts there = streams[0]->counts, back = streams[pair ? 1 : 0]->counts;
	const uint16_t burst = lc->burst;
	uint64_t counted __rte_unused = 0; /* rounds that are in the streams' polls */
	uint32_t seen = atomic_load_explicit(&lc->edge_done, memory_order_relaxed);

	for (uint64_t rounds = 1;; rounds++) {
		if (pair) {
			loop_turn(lc, streams[0], loop_there, pkts, burst, &there, process, kind,
					record);
			loop_turn(lc, streams[1], loop_back, pkts, burst, &back, process, kind,
					record);
		} else {
			struct fwd_stream **next = streams;

			do {
				loop_turn(lc, *next, loop_ends_of(*next), pkts, burst,
						&(*next)->counts, process, kind, record);
			} while (++next != end);
		}

		uint32_t asked = atomic_load_explicit(&lc->edge_asked, memory_order_relaxed);

		if (unlikely(asked != seen)) {
			atomic_thread_fence(memory_order_acquire);
			seen = asked;
			LOOP_COUNT(loop_store(streams, end, pair, there, back, rounds - counted);)
			LOOP_COUNT(counted = rounds;)
			if (lcore_answer(lc, LOOP_SNAPSHOT, asked))
				return true;
		}
		if ((record & LCORE_RECORD_FRAMES) && lc->saved.count == lc->saved.limit) {
			LOOP_COUNT(loop_store(streams, end, pair, there, back, rounds - counted);)
			return false;
		}
	}
}

#define FWD_LOOP(id, suffix, process, kind, record, pair) \
	static bool loop_##id##_##suffix(struct lcore *lc) \
	{ \
		return fwd_loop(lc, process, kind, record, pair); \
	}

/*
 * Define the mode fwd_<id>: its loops and its descriptor. process_fn must be
 * static __rte_always_inline for the loops to be specialised.
 */
#define FWD_MODE(id, mode_name, mode_kind, process_fn, init_fn, fini_fn) \
	FWD_LOOP(id, 0, process_fn, mode_kind, 0, false) \
	FWD_LOOP(id, 1, process_fn, mode_kind, 1, false) \
	FWD_LOOP(id, 2, process_fn, mode_kind, 2, false) \
	FWD_LOOP(id, 3, process_fn, mode_kind, 3, false) \
	FWD_LOOP(id, pair, process_fn, mode_kind, 0, true) \
	FWD_LOOP(id, save, process_fn, mode_kind, lc->record, false) \
	const struct fwd_mode fwd_##id = { \
		.name = mode_name, \
		.kind = mode_kind, \
		.init = init_fn, \
		.fini = fini_fn, \
		.process = process_fn, \
		.loops = { loop_##id##_0, loop_##id##_1, loop_##id##_2, loop_##id##_3 }, \
		.pair_loop = loop_##id##_pair, \
		.save_loop = loop_##id##_save, \
	}

#endif
