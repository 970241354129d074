/* SPDX-License-Identifier: BSD-3-Clause */
/* The floor of the peer benchmark: receive, send, nothing else. Prints packets/s of 5 windows. */
#include <stdio.h>
#include <stdlib.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

int
main(int argc, char **argv)
{
	struct rte_mbuf *pkts[512];
	struct rte_eth_conf conf = { 0 };
	struct rte_mempool *pool;
	uint64_t packets = 0, turns = 0, start = 0, end, hz;
	int skip = rte_eal_init(argc, argv);
	uint16_t burst, n, sent;
	int windows = 0;

	if (skip < 0 || argc - skip != 4)
		rte_exit(2, "usage: bare_loop EAL... -- BURST SECONDS MBUFS\n");
	burst = (uint16_t)atoi(argv[skip + 1]);
	pool = rte_pktmbuf_pool_create("bare", (unsigned int)atoi(argv[skip + 3]), 250, 0, 2176, 0);
	for (uint16_t p = 0; p < 2; p++)
		if (pool == NULL || rte_eth_dev_configure(p, 1, 1, &conf) != 0 ||
				rte_eth_rx_queue_setup(p, 0, 512, 0, NULL, pool) != 0 ||
				rte_eth_tx_queue_setup(p, 0, 512, 0, NULL) != 0 ||
				rte_eth_dev_start(p) != 0)
			rte_exit(1, "port %u does not start\n", p);
	hz = rte_get_tsc_hz();
	end = rte_rdtsc() + hz / 5; /* warm-up */
	for (;; turns++) {
		if ((turns & 1023) == 0 && rte_rdtsc() > end) {
			if (start != 0)
				printf("%.0f\n",
						(double)packets * (double)hz /
								(double)(rte_rdtsc() - start));
			if (windows++ == 5)
				return 0;
			packets = 0;
			start = rte_rdtsc();
			end = start + (uint64_t)(atof(argv[skip + 2]) * (double)hz);
		}
		for (uint16_t p = 0; p < 2; p++) {
			n = rte_eth_rx_burst(p, 0, pkts, burst);
			sent = rte_eth_tx_burst(p ^ 1, 0, pkts, n);
			packets += n;
			if (unlikely(sent < n))
				rte_pktmbuf_free_bulk(&pkts[sent], n - sent);
		}
	}
}
