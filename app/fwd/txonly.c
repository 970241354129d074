/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * txonly: send UDP datagrams between two addresses set aside for benchmarks (RFC 2544), to and
 * from the port that discards (RFC 863), in the segments of --txpkts. Bytes behind the UDP header
 * are what the buffer held before, as in testpmd.
 */
#include "generate.h"
#include "loop.h"

#define TXONLY_SRC UINT32_C(0xc6120001) /* 198.18.0.1 */
#define TXONLY_DST UINT32_C(0xc6120002) /* 198.18.0.2 */
#define TXONLY_PORT 9

struct txonly {
	struct generate_headers headers;
	uint16_t nb_segs;
	uint16_t seg_len; /* bytes in the first segment */
	bool spread; /* the first segment does not hold all headers */
	bool multi_flow;
	uint16_t sum; /* of the IPv4 header without its checksum and source; multi_flow only */
	const uint16_t *seg_lens;
	uint32_t len; /* bytes a frame */
	struct rte_mbuf **segs; /* room for the further segments of one frame */
};

/* Varies the source address, together with the number of the lcore; see txonly_source(). */
static RTE_DEFINE_PER_LCORE(uint8_t, txonly_flow);

static int
txonly_check(const struct fwd_stream *st, struct err *err)
{
	const struct fwd_options *o = st->options;
	uint32_t room = generate_room(st->pool);

	for (uint16_t i = 0; i < o->nb_tx_segs; i++)
		if (o->tx_seg_len[i] > room)
			return err_set(err, EXIT_USAGE,
					"--txpkts: a segment of %u bytes, a buffer has room for %u",
					o->tx_seg_len[i], room);
	if (o->nb_tx_segs == 0 || o->tx_pkt_len < sizeof(struct generate_headers))
		return err_set(err, EXIT_USAGE, "--txpkts: %u bytes, the headers alone take %zu",
				o->tx_pkt_len, sizeof(struct generate_headers));
	if (o->txonly_multi_flow && o->tx_seg_len[0] < sizeof(struct generate_headers))
		return err_set(err, EXIT_USAGE,
				"--txonly-multi-flow: the first segment of --txpkts has %u bytes, "
				"the headers take %zu",
				o->tx_seg_len[0], sizeof(struct generate_headers));
	return 0;
}

static uint16_t
txonly_sum_but_source(const struct rte_ipv4_hdr *ip)
{
	struct rte_ipv4_hdr copy = *ip;

	copy.src_addr = 0;
	return generate_sum(&copy);
}

static int
txonly_init(struct fwd_stream *st, struct err *err)
{
	const struct fwd_options *o = st->options;
	struct txonly *tx;

	if (txonly_check(st, err) != 0)
		return -1;
	tx = rte_zmalloc_socket("txonly", sizeof(*tx) + o->nb_tx_segs * sizeof(tx->segs[0]),
			RTE_CACHE_LINE_SIZE, st->socket);
	if (tx == NULL)
		return err_set(err, EXIT_FAILED, "txonly: out of memory");
	tx->headers.eth.dst_addr = st->peer;
	tx->headers.eth.src_addr = st->tx_mac;
	generate_headers(&tx->headers, o->tx_pkt_len, TXONLY_SRC, TXONLY_DST, TXONLY_PORT,
			TXONLY_PORT);
	/* A checksum that comes out as 0, as testpmd writes it. */
	if (tx->headers.ip.hdr_checksum == 0)
		tx->headers.ip.hdr_checksum = 0xffff;
	tx->sum = txonly_sum_but_source(&tx->headers.ip);
	tx->nb_segs = o->nb_tx_segs;
	tx->seg_lens = o->tx_seg_len;
	tx->seg_len = o->tx_seg_len[0];
	tx->spread = tx->seg_len < sizeof(tx->headers);
	tx->multi_flow = o->txonly_multi_flow;
	tx->len = o->tx_pkt_len;
	tx->segs = (struct rte_mbuf **)(tx + 1);
	st->priv = tx;
	return 0;
}

static void
txonly_fini(struct fwd_stream *st)
{
	rte_free(st->priv);
	st->priv = NULL;
}

/*
 * Chain the further segments to m. Returns false if there are no buffers for them. The last
 * one's next is NULL already, as that of every free buffer.
 */
static __rte_always_inline bool
txonly_chain(struct txonly *tx, struct rte_mempool *pool, struct rte_mbuf *m)
{
	struct rte_mbuf *last = m;

	if (rte_mempool_get_bulk(pool, (void **)tx->segs, tx->nb_segs - 1) != 0)
		return false;
	for (uint16_t i = 1; i < tx->nb_segs; i++) {
		last->next = tx->segs[i - 1];
		last = last->next;
		last->data_off = RTE_PKTMBUF_HEADROOM;
		last->data_len = tx->seg_lens[i];
	}
	m->nb_segs = tx->nb_segs;
	m->pkt_len = tx->len;
	return true;
}

/* Write the headers over as many segments as they take. */
static __rte_noinline void
txonly_spread(const struct txonly *tx, struct rte_mbuf *m)
{
	const uint8_t *from = (const uint8_t *)&tx->headers;
	size_t left = sizeof(tx->headers);

	for (; left != 0; m = m->next) {
		size_t len = RTE_MIN(left, (size_t)m->data_len);

		memcpy(rte_pktmbuf_mtod(m, void *), from, len);
		from += len;
		left -= len;
	}
}

/* 198.18.N.2 plus the number of the lcore: 256 flows an lcore, told apart by N. */
static __rte_always_inline void
txonly_source(const struct txonly *tx, struct rte_mbuf *m)
{
	struct rte_ipv4_hdr *ip = &rte_pktmbuf_mtod(m, struct generate_headers *)->ip;
	uint32_t src = (TXONLY_DST | RTE_PER_LCORE(txonly_flow)++ << 8) + rte_lcore_id();
	rte_be32_t wire = rte_cpu_to_be_32(src);
	uint32_t sum = tx->sum + (wire & 0xffff) + (wire >> 16);

	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	ip->src_addr = wire;
	ip->hdr_checksum = ~sum;
}

/* Make one frame of m. Returns false if there are no buffers for its segments. */
static __rte_always_inline bool
txonly_frame(struct txonly *tx, struct rte_mempool *pool, struct rte_mbuf *m)
{
	generate_segment(m, tx->seg_len);
	if (unlikely(tx->nb_segs > 1) && !txonly_chain(tx, pool, m))
		return false;
	if (likely(!tx->spread))
		memcpy(rte_pktmbuf_mtod(m, void *), &tx->headers, sizeof(tx->headers));
	else
		txonly_spread(tx, m);
	if (tx->multi_flow)
		txonly_source(tx, m);
	return true;
}

static __rte_always_inline uint16_t
txonly_process(struct fwd_stream *st, struct rte_mbuf **pkts, uint16_t n)
{
	struct txonly *tx = st->priv;
	uint16_t got;

	RTE_PER_LCORE(txonly_flow) -= RTE_PER_LCORE(loop_refused);
	RTE_PER_LCORE(loop_refused) = 0;
	got = generate_alloc(st->pool, pkts, st->burst);
	for (n = 0; n < got; n++) {
		if (unlikely(!txonly_frame(tx, st->pool, pkts[n]))) {
			rte_mempool_put_bulk(st->pool, (void **)&pkts[n], got - n);
			break;
		}
	}
	return n;
}

FWD_MODE(txonly, "txonly", FWD_NO_RX | FWD_COUNTS_SENT, txonly_process, txonly_init, txonly_fini);
