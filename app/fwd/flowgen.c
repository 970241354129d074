/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flowgen: free what is received, send 1024 flows that differ in the destination address. A frame
 * is four bytes shorter than --txpkts says, which counts the frame check sequence here. Bytes
 * behind the UDP header are what the buffer held before, as in testpmd.
 */
#include "generate.h"
#include "loop.h"

#define FLOWGEN_FLOWS 1024 /* testpmd's --flowgen-flows */
#define FLOWGEN_SRC RTE_IPV4(10, 254, 0, 0)
#define FLOWGEN_DST RTE_IPV4(10, 253, 0, 0)
#define FLOWGEN_SRC_PORT 1000
#define FLOWGEN_DST_PORT 1001

struct flowgen {
	struct generate_headers headers; /* of flow 0 */
	uint16_t len; /* bytes a frame */
	uint16_t sum; /* of the IPv4 header of flow 0 without its checksum */
};

/* The flow that comes next; all streams of an lcore share it. */
static RTE_DEFINE_PER_LCORE(uint16_t, flowgen_next);

static int
flowgen_init(struct fwd_stream *st, struct err *err)
{
	uint32_t len = st->options->tx_pkt_len - RTE_ETHER_CRC_LEN;
	struct flowgen *fg;

	if (st->options->tx_pkt_len <= RTE_ETHER_CRC_LEN ||
			RTE_MAX(len, sizeof(fg->headers)) > generate_room(st->pool))
		return err_set(err, EXIT_USAGE,
				"--txpkts: flowgen sends one segment of 1 to %u bytes, not %u",
				generate_room(st->pool), len);
	fg = rte_zmalloc_socket("flowgen", sizeof(*fg), RTE_CACHE_LINE_SIZE, st->socket);
	if (fg == NULL)
		return err_set(err, EXIT_FAILED, "flowgen: out of memory");
	fg->len = (uint16_t)len;
	fg->headers.eth.dst_addr =
			(struct rte_ether_addr){ { 0x00, 0x01, 0x02, 0x03, 0x04, 0x01 } };
	fg->headers.eth.src_addr =
			(struct rte_ether_addr){ { 0x00, 0x01, 0x02, 0x03, 0x04, 0x00 } };
	generate_headers(&fg->headers, len, FLOWGEN_SRC, FLOWGEN_DST, FLOWGEN_SRC_PORT,
			FLOWGEN_DST_PORT);
	fg->sum = generate_sum(&fg->headers.ip);
	st->priv = fg;
	return 0;
}

static void
flowgen_fini(struct fwd_stream *st)
{
	rte_free(st->priv);
	st->priv = NULL;
}

static __rte_always_inline void
flowgen_frame(const struct flowgen *fg, struct rte_mbuf *m, uint16_t flow)
{
	struct generate_headers *h = rte_pktmbuf_mtod(m, struct generate_headers *);
	rte_be16_t low = rte_cpu_to_be_16(flow);
	uint32_t sum = fg->sum + low;

	/* The low half of flow 0's address is 0: only there and in the checksum flows differ. */
	memcpy(h, &fg->headers, sizeof(*h));
	memcpy((uint8_t *)&h->ip.dst_addr + 2, &low, sizeof(low));
	h->ip.hdr_checksum = ~((sum & 0xffff) + (sum >> 16));
}

static __rte_always_inline uint16_t
flowgen_process(struct fwd_stream *st, struct rte_mbuf **pkts, uint16_t n)
{
	const struct flowgen *fg = st->priv;
	uint16_t flow = RTE_PER_LCORE(flowgen_next) - RTE_PER_LCORE(loop_refused);
	uint16_t made;

	RTE_PER_LCORE(loop_refused) = 0;
	if (n != 0)
		rte_pktmbuf_free_bulk(pkts, n);
	made = generate_alloc(st->pool, pkts, st->burst);
	for (uint16_t i = 0; i < made; i++) {
		generate_segment(pkts[i], fg->len);
		flowgen_frame(fg, pkts[i], flow++ % FLOWGEN_FLOWS);
	}
	RTE_PER_LCORE(flowgen_next) = flow;
	return made;
}

FWD_MODE(flowgen, "flowgen", FWD_EVERY_TURN | FWD_COUNTS_SENT, flowgen_process, flowgen_init,
		flowgen_fini);
