/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * 5tswap: send back with source and destination swapped in Ethernet, IPv4 or IPv6, and TCP or
 * UDP. A sum over both ends does not change, so that no checksum has to.
 */
#include <netinet/in.h>

#include <rte_ip.h>

#include "frame.h"
#include "loop.h"

/* Swap two neighbours of len bytes each; len is a constant. */
static __rte_always_inline void
fivetswap_neighbours(uint8_t *p, const size_t len)
{
	uint8_t a[16], b[16];

	memcpy(a, p, len);
	memcpy(b, p + len, len);
	memcpy(p, b, len);
	memcpy(p + len, a, len);
}

/*
 * Swap the addresses of the IP header at off. Returns where testpmd sees the ports, and in
 * *proto whose they are; 0 if there are none. A header length below 20 bytes is believed, as
 * testpmd does: the "ports" then lie in the header itself.
 */
static __rte_always_inline uint32_t
fivetswap_ip(uint8_t *data, uint32_t len, uint32_t off, rte_be16_t type, uint8_t *proto)
{
	uint8_t *ip = data + off;

	if (type == RTE_BE16(RTE_ETHER_TYPE_IPV4)) {
		if (likely(off + sizeof(struct rte_ipv4_hdr) <= len))
			fivetswap_neighbours(ip + offsetof(struct rte_ipv4_hdr, src_addr), 4);
		else if (off + offsetof(struct rte_ipv4_hdr, hdr_checksum) > len)
			return 0;
		*proto = ip[offsetof(struct rte_ipv4_hdr, next_proto_id)];
		return off + (ip[0] & RTE_IPV4_HDR_IHL_MASK) * RTE_IPV4_IHL_MULTIPLIER;
	}
	if (type == RTE_BE16(RTE_ETHER_TYPE_IPV6) && off + sizeof(struct rte_ipv6_hdr) <= len) {
		fivetswap_neighbours(ip + offsetof(struct rte_ipv6_hdr, src_addr), 16);
		*proto = ip[offsetof(struct rte_ipv6_hdr, proto)];
		return off + sizeof(struct rte_ipv6_hdr);
	}
	return 0;
}

static __rte_always_inline void
fivetswap_frame(struct rte_mbuf *m)
{
	uint8_t *data = rte_pktmbuf_mtod(m, uint8_t *);
	uint32_t len = rte_pktmbuf_data_len(m);
	uint8_t proto = 0;
	rte_be16_t type;
	uint32_t off = frame_l3(data, len, &type);

	frame_swap_addrs(m);
	off = fivetswap_ip(data, len, off, type, &proto);
	if (off != 0 && off + 4 <= len && (proto == IPPROTO_UDP || proto == IPPROTO_TCP))
		fivetswap_neighbours(data + off, 2);
}

static __rte_always_inline uint16_t
fivetswap_process(struct fwd_stream *st, struct rte_mbuf **pkts, uint16_t n)
{
	RTE_SET_USED(st);
	for (uint16_t i = 0; i < n; i++) {
		frame_prefetch(pkts, n, i, 1);
		fivetswap_frame(pkts[i]);
	}
	return n;
}

FWD_MODE(5tswap, "5tswap", 0, fivetswap_process, NULL, NULL);
