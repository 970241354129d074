/* SPDX-License-Identifier: BSD-3-Clause */
/* macswap: send back with the addresses swapped. */
#include "frame.h"
#include "loop.h"

static __rte_always_inline uint16_t
macswap_process(struct fwd_stream *st, struct rte_mbuf **pkts, uint16_t n)
{
	RTE_SET_USED(st);
	for (uint16_t i = 0; i < n; i++) {
		frame_prefetch(pkts, n, i, 4);
		frame_swap_addrs(pkts[i]);
	}
	return n;
}

FWD_MODE(macswap, "macswap", 0, macswap_process, NULL, NULL);
