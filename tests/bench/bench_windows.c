/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What recording windows costs: the io loop as it is measured, against the same loop compiled
 * without counters and snapshots (LOOP_NO_WINDOWS; it keeps the look at one word that ends it).
 * Both live in this process, on the same lcore, ports and pool, and take turns in slots of 50 ms,
 * A B B A and B A A B; the recording one answers an edge every 10 ms, far more often than in use.
 * Prints "a b b a" packets/s a block (a without windows, b with) for tests/bench/ratio.c, until
 * the interval is narrow enough.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_launch.h>
#include <rte_lcore.h>

#include "fwd.h"
#include "lcore.h"
#include "stats.h"

#define SLOT_S 0.05
#define EDGE_S 0.01
#define BLOCKS_MIN 40
#define BLOCKS_MAX 4000

extern const struct fwd_mode fwd_io, fwd_io_no_windows;

static struct fwd_stream streams[2];
static struct fwd_stream *stream_list[2] = { &streams[0], &streams[1] };
static struct lcore lc;

static void
start_ports(void)
{
	struct rte_eth_conf conf = { 0 };
	struct rte_mempool *pool = rte_pktmbuf_pool_create("bench", 4096, 250, 0, 2176, 0);

	for (uint16_t p = 0; p < 2; p++) {
		if (pool == NULL || rte_eth_dev_configure(p, 1, 1, &conf) != 0 ||
				rte_eth_rx_queue_setup(p, 0, 512, 0, NULL, pool) != 0 ||
				rte_eth_tx_queue_setup(p, 0, 512, 0, NULL) != 0 ||
				rte_eth_dev_start(p) != 0)
			rte_exit(1, "port %u does not start\n", p);
		streams[p].rx_port = p;
		streams[p].tx_port = p ^ 1;
	}
}

static uint64_t
port_packets(void)
{
	struct rte_eth_stats stats;
	uint64_t sum = 0;

	for (uint16_t p = 0; p < 2; p++)
		if (rte_eth_stats_get(p, &stats) == 0)
			sum += stats.ipackets;
	return sum;
}

/* One slot; both loops are counted by the driver, since one of them has no counters. */
static double
slot(const struct fwd_mode *mode)
{
	double edges = mode == &fwd_io ? SLOT_S / EDGE_S : 1;
	uint64_t packets, tsc;
	struct err err;

	lc.mode = mode;
	atomic_store(&lc.stop, false);
	if (lcore_launch(&lc, &err) != 0)
		rte_exit(1, "%s\n", err.text);
	rte_delay_us_sleep(5000);
	packets = port_packets();
	tsc = rte_rdtsc();
	for (int i = 0; i < edges; i++) {
		rte_delay_us_sleep((unsigned int)(1e6 * SLOT_S / edges));
		if (mode == &fwd_io && lcore_take_edge(&lc, 1, &err) != 0)
			rte_exit(1, "%s\n", err.text);
	}
	packets = port_packets() - packets;
	tsc = rte_rdtsc() - tsc;
	if (lcore_stop(&lc, 1, &err) != 0)
		rte_exit(1, "%s\n", err.text);
	return (double)packets / (double)tsc * (double)rte_get_tsc_hz();
}

int
main(int argc, char **argv)
{
	static double d[BLOCKS_MAX], sorted[BLOCKS_MAX];
	int skip = rte_eal_init(argc, argv);
	double width;

	if (skip < 0 || argc - skip != 3)
		rte_exit(2, "usage: bench_windows EAL... -- BURST HALF_WIDTH\n");
	start_ports();
	lc.id = rte_get_next_lcore(-1, 1, 0);
	lc.burst = (uint16_t)atoi(argv[skip + 1]);
	lc.nb_streams = 2;
	lc.streams = stream_list;
	width = atof(argv[skip + 2]);
	for (size_t n = 0; n < BLOCKS_MAX; n++) {
		double v[4];

		for (int i = 0; i < 4; i++) {
			/* A B B A, then B A A B. */
			int recording = (i == 1 || i == 2) ^ (int)(n & 1);

			v[i] = slot(recording != 0 ? &fwd_io : &fwd_io_no_windows);
		}
		if ((n & 1) != 0)
			printf("%.0f %.0f %.0f %.0f\n", v[1], v[0], v[3], v[2]);
		else
			printf("%.0f %.0f %.0f %.0f\n", v[0], v[1], v[2], v[3]);
		d[n] = 0.5 * (log(v[1]) + log(v[2]) - log(v[0]) - log(v[3])) *
				((n & 1) != 0 ? -1 : 1);
		if (n + 1 < BLOCKS_MIN || (n + 1) % 5 != 0)
			continue;
		memcpy(sorted, d, (n + 1) * sizeof(d[0]));
		if (stats_trimmed_interval(sorted, n + 1, 0.95).half <= width)
			break;
	}
	return 0;
}
