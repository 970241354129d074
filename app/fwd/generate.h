/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APP_FWD_GENERATE_H
#define APP_FWD_GENERATE_H

/* What txonly and flowgen share: headers made once, and frames made of fresh buffers. */
#include <netinet/in.h>

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_udp.h>

#include "fwd.h"

#define GENERATE_TTL 64

/* The headers of a generated frame, as they lie in it. */
struct generate_headers {
	struct rte_ether_hdr eth;
	struct rte_ipv4_hdr ip;
	struct rte_udp_hdr udp;
} __attribute__((packed, aligned(2))); /* __rte_packed is gone from DPDK 25.03 on */

/* Sum of the IPv4 header without its checksum, folded, in the order of the wire. */
static inline uint16_t
generate_sum(const struct rte_ipv4_hdr *ip)
{
	struct rte_ipv4_hdr copy = *ip;

	copy.hdr_checksum = 0;
	return rte_raw_cksum(&copy, sizeof(copy));
}

/*
 * Headers of a UDP datagram without a checksum in a frame of len bytes. Addresses of the network
 * and ports in host order; the lengths wrap as testpmd's do for a frame below 42 bytes.
 */
static inline void
generate_headers(struct generate_headers *h, uint32_t len, uint32_t src, uint32_t dst,
		uint16_t src_port, uint16_t dst_port)
{
	uint16_t ip_len = (uint16_t)(len - sizeof(h->eth));

	h->eth.ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV4);
	h->ip = (struct rte_ipv4_hdr){
		.version_ihl = RTE_IPV4_VHL_DEF,
		.total_length = rte_cpu_to_be_16(ip_len),
		.time_to_live = GENERATE_TTL,
		.next_proto_id = IPPROTO_UDP,
		.src_addr = rte_cpu_to_be_32(src),
		.dst_addr = rte_cpu_to_be_32(dst),
	};
	h->ip.hdr_checksum = ~generate_sum(&h->ip);
	h->udp = (struct rte_udp_hdr){
		.src_port = rte_cpu_to_be_16(src_port),
		.dst_port = rte_cpu_to_be_16(dst_port),
		.dgram_len = rte_cpu_to_be_16((uint16_t)(ip_len - sizeof(h->ip))),
	};
}

/* Fresh buffers, as many as there are up to n; returns how many. */
static __rte_always_inline uint16_t
generate_alloc(struct rte_mempool *pool, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t got = 0;

	if (likely(rte_mempool_get_bulk(pool, (void **)pkts, n) == 0))
		return n;
	while (got < n && rte_mempool_get(pool, (void **)&pkts[got]) == 0)
		got++;
	return got;
}

/*
 * Make a buffer from the pool a segment of len bytes. Cheaper than rte_pktmbuf_reset(): what no
 * driver reads without an offload is left, in the second cache line above all. A free buffer
 * has no next segment and a reference count of 1 by DPDK's rules.
 */
static __rte_always_inline void
generate_segment(struct rte_mbuf *m, uint16_t len)
{
	m->data_off = RTE_PKTMBUF_HEADROOM;
	m->nb_segs = 1;
	m->ol_flags = 0;
	m->pkt_len = len;
	m->data_len = len;
}

/* Room for a frame's bytes in a buffer of the pool. */
static inline uint32_t
generate_room(struct rte_mempool *pool)
{
	uint16_t room = rte_pktmbuf_data_room_size(pool);

	return room > RTE_PKTMBUF_HEADROOM ? room - RTE_PKTMBUF_HEADROOM : 0;
}

#endif
