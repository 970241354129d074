/* SPDX-License-Identifier: BSD-3-Clause */
/* mac: send from the address of the sending port to the address of its peer. */
#include "frame.h"
#include "loop.h"

static __rte_always_inline uint16_t
mac_process(struct fwd_stream *st, struct rte_mbuf **pkts, uint16_t n)
{
	const struct frame_addrs addrs = frame_addrs_of(st);

	for (uint16_t i = 0; i < n; i++) {
		frame_prefetch(pkts, n, i, 1);
		frame_set_addrs(pkts[i], &addrs);
	}
	return n;
}

FWD_MODE(mac, "mac", 0, mac_process, NULL, NULL);
