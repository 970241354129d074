/* SPDX-License-Identifier: BSD-3-Clause */
/* The io mode, its loop built without window recording, for bench_windows. */
#define LOOP_NO_WINDOWS
#include "loop.h"

static __rte_always_inline uint16_t
io_process(struct fwd_stream *st, struct rte_mbuf **pkts, uint16_t n)
{
	RTE_SET_USED(st);
	RTE_SET_USED(pkts);
	return n;
}

extern const struct fwd_mode fwd_io_no_windows;
FWD_MODE(io_no_windows, "io", 0, io_process, NULL, NULL);
