/* SPDX-License-Identifier: BSD-3-Clause */
/* io: send what was received, untouched. */
#include "loop.h"

static __rte_always_inline uint16_t
io_process(struct fwd_stream *st, struct rte_mbuf **pkts, uint16_t n)
{
	RTE_SET_USED(st);
	RTE_SET_USED(pkts);
	return n;
}

FWD_MODE(io, "io", 0, io_process, NULL, NULL);
