/* SPDX-License-Identifier: BSD-3-Clause */
/* rxonly: receive, count and free. */
#include "loop.h"

static __rte_always_inline uint16_t
rxonly_process(struct fwd_stream *st, struct rte_mbuf **pkts, uint16_t n)
{
	RTE_SET_USED(st);
	rte_pktmbuf_free_bulk(pkts, n);
	return 0;
}

FWD_MODE(rxonly, "rxonly", FWD_NO_TX, rxonly_process, NULL, NULL);
