/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APP_FWD_FWD_H
#define APP_FWD_FWD_H

/*
 * What a forwarding mode is. A new mode is one file in this directory that ends in FWD_MODE(),
 * and one line in registry.c.
 */
#include <stdbool.h>
#include <stdint.h>

#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "err.h"
#include "lcore.h"

#define FWD_TX_SEGS_MAX 255 /* testpmd's RTE_MAX_SEGS_PER_PKT */

struct fwd_mode;

/* What the user asked of the modes; constant while forwarding. */
struct fwd_options {
	uint16_t nb_tx_segs; /* --txpkts; one segment of 64 bytes unless given */
	uint16_t tx_seg_len[FWD_TX_SEGS_MAX];
	uint32_t tx_pkt_len; /* sum of the above, bytes */
	bool txonly_multi_flow;

	const struct fwd_mode *noisy_mode; /* --noisy-forward-mode: io, mac, macswap, 5tswap */
	uint32_t noisy_buffer; /* --noisy-tx-sw-buffer-size, frames; 0 = none */
	uint32_t noisy_flush_ms; /* --noisy-tx-sw-buffer-flushtime */
	uint64_t noisy_memory_mib; /* --noisy-lkup-memory */
};

/* What noisy looks up for each frame: --noisy-lkup-num-reads and so on. */
struct fwd_lookups {
	uint64_t reads;
	uint64_t writes;
	uint64_t reads_writes;
};

/* One receive queue served, and where its frames go. Names as in testpmd's fwd_stream. */
struct fwd_stream {
	uint16_t rx_port;
	uint16_t rx_queue;
	uint16_t tx_port;
	uint16_t tx_queue;
	struct rte_ether_addr tx_mac; /* address of tx_port */
	struct rte_ether_addr peer; /* --eth-peer of tx_port; 02:00:00:00:00:NN unless given */
	uint64_t tx_offloads; /* enabled on tx_port, RTE_ETH_TX_OFFLOAD_* */
	uint16_t burst;
	uint16_t index; /* number of the stream, from 0 */
	int socket; /* NUMA node for a mode's own memory */
	struct rte_mempool *pool;
	const struct fwd_options *options;
	struct fwd_lookups lookups; /* constant while a loop runs; none unless set */
	uint64_t dropped; /* frames that the mode itself dropped, by process() */
	struct lcore_counts counts; /* the loop's own while it runs */
	struct lcore_counts edge; /* as of the lcore's last edge, what the mode dropped included */
	struct lcore_counts base; /* the edge from which on people are told what was forwarded */
	void *priv; /* the mode's own */
};

/*
 * One turn of a stream: n frames were received into pkts (n may be 0 with FWD_EVERY_TURN).
 * Returns how many frames, packed at the front of pkts, are to be sent, LCORE_BURST_MAX at
 * the most; every other frame has been freed (and counted in dropped where testpmd counts a
 * drop) or is kept by the mode.
 */
typedef uint16_t (*fwd_process)(struct fwd_stream *st, struct rte_mbuf **pkts, uint16_t n);

/* What a mode's loop does besides process(); constants that the compiler folds. */
enum fwd_kind {
	FWD_NO_RX = 1 << 0, /* nothing is received: process() makes the frames */
	FWD_NO_TX = 1 << 1, /* nothing is sent */
	FWD_EVERY_TURN = 1 << 2, /* process() is called for empty polls too */
	FWD_COUNTS_SENT = 1 << 3, /* packets of a window are those sent */
	FWD_SAME_PORT = 1 << 4, /* replies leave by the port they came in (icmpecho) */
};

/* Forward until told to stop (true) or until a recording is complete (false). */
typedef bool (*fwd_loop_fn)(struct lcore *lc);

struct fwd_mode {
	const char *name;
	unsigned int kind; /* enum fwd_kind */
	/* Set up st->priv. Returns 0, or -1 with err set. May be NULL. */
	int (*init)(struct fwd_stream *st, struct err *err);
	/* Free what init and process() keep, frames included. May be NULL. */
	void (*fini)(struct fwd_stream *st);
	fwd_process process; /* for noisy, which wraps another mode */
	fwd_loop_fn loops[LCORE_RECORD_LOOPS]; /* indexed by enum lcore_record */
	fwd_loop_fn pair_loop; /* without recordings, for the streams of fwd_is_pair() */
	fwd_loop_fn save_loop; /* with LCORE_RECORD_FRAMES, until it is full */
};

/*
 * Whether the streams are those of a benchmark's usual set-up: queue 0 of ports 0 and 1, each
 * sending to the other.
 */
static inline bool
fwd_is_pair(struct fwd_stream *const *streams, unsigned int nb_streams)
{
	for (unsigned int i = 0; i < nb_streams; i++)
		if (streams[i]->rx_port != i || streams[i]->tx_port != (i ^ 1) ||
				(streams[i]->rx_queue | streams[i]->tx_queue) != 0)
			return false;
	return nb_streams == 2;
}

/* The mode of that name, or NULL. */
const struct fwd_mode *fwd_mode_find(const char *name);

/* All names, separated by blanks, for messages. */
const char *fwd_mode_names(void);

#endif
