/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * icmpecho: answer ARP and ICMP echo requests by the port they came in, free all else. Frames
 * freed are not drops, as in testpmd. One VLAN tag is looked through, no more; the ICMP header is
 * expected 20 bytes behind the start of the IPv4 header, whatever options it claims to have.
 */
#include <netinet/in.h>

#include <rte_arp.h>
#include <rte_icmp.h>
#include <rte_ip.h>

#include "frame.h"
#include "loop.h"

/* What of an ICMP echo request must have arrived: all but the checksum is rewritten blindly. */
#define ICMPECHO_MIN (sizeof(struct rte_ipv4_hdr) + offsetof(struct rte_icmp_hdr, icmp_cksum))

/* Turn an ARP request into its reply. Returns false if it is none. */
static __rte_always_inline bool
icmpecho_arp(const struct fwd_stream *st, struct rte_ether_hdr *eth, uint8_t *p, uint32_t len)
{
	struct rte_arp_hdr *arp = (struct rte_arp_hdr *)p;
	rte_be32_t asked;

	if (len < sizeof(*arp) || arp->arp_hardware != RTE_BE16(RTE_ARP_HRD_ETHER) ||
			arp->arp_protocol != RTE_BE16(RTE_ETHER_TYPE_IPV4) ||
			arp->arp_hlen != RTE_ETHER_ADDR_LEN || arp->arp_plen != sizeof(asked) ||
			arp->arp_opcode != RTE_BE16(RTE_ARP_OP_REQUEST))
		return false;
	eth->dst_addr = eth->src_addr;
	eth->src_addr = st->tx_mac;
	arp->arp_opcode = RTE_BE16(RTE_ARP_OP_REPLY);
	arp->arp_data.arp_tha = arp->arp_data.arp_sha;
	arp->arp_data.arp_sha = st->tx_mac;
	asked = arp->arp_data.arp_tip;
	arp->arp_data.arp_tip = arp->arp_data.arp_sip;
	arp->arp_data.arp_sip = asked;
	return true;
}

/*
 * A request to 224.x.x.x cannot be answered from there: the reply comes from a neighbour of the
 * asker, and the header's checksum, which otherwise stays, is computed anew.
 */
static void
icmpecho_from_multicast(struct rte_ipv4_hdr *ip)
{
	uint32_t src = rte_be_to_cpu_32(ip->src_addr);

	ip->dst_addr = ip->src_addr;
	src = (src & ~UINT32_C(3)) | ((src & 3) == 1 ? 2 : 1);
	ip->src_addr = rte_cpu_to_be_32(src);
	ip->hdr_checksum = 0;
	ip->hdr_checksum = ~rte_raw_cksum(ip, sizeof(*ip));
	if (ip->hdr_checksum == 0)
		ip->hdr_checksum = 0xffff;
}

/* The request's checksum is taken to be right; only the type changed. */
static __rte_always_inline void
icmpecho_cksum(struct rte_icmp_hdr *icmp)
{
	uint32_t sum = (uint16_t)~icmp->icmp_cksum;

	sum += (uint16_t)~RTE_BE16(RTE_IP_ICMP_ECHO_REQUEST << 8);
	sum += RTE_BE16(RTE_IP_ICMP_ECHO_REPLY << 8);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	icmp->icmp_cksum = ~sum;
}

/* Turn an ICMP echo request into its reply. Returns false if it is none. */
static __rte_always_inline bool
icmpecho_ipv4(struct rte_mbuf *m, uint8_t *p, uint32_t len)
{
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)p;
	struct rte_icmp_hdr *icmp = (struct rte_icmp_hdr *)(ip + 1);

	if (len < ICMPECHO_MIN || ip->next_proto_id != IPPROTO_ICMP ||
			icmp->icmp_type != RTE_IP_ICMP_ECHO_REQUEST || icmp->icmp_code != 0)
		return false;
	frame_swap_addrs(m);
	if (unlikely((ip->dst_addr & RTE_BE32(0xff000000)) == RTE_BE32(0xe0000000))) {
		icmpecho_from_multicast(ip);
	} else {
		rte_be32_t src = ip->src_addr;

		ip->src_addr = ip->dst_addr;
		ip->dst_addr = src;
	}
	icmp->icmp_type = RTE_IP_ICMP_ECHO_REPLY;
	if (len >= ICMPECHO_MIN + sizeof(icmp->icmp_cksum))
		icmpecho_cksum(icmp);
	return true;
}

/* Turn a request into its reply. Returns false if the frame is no request. */
static __rte_always_inline bool
icmpecho_frame(const struct fwd_stream *st, struct rte_mbuf *m)
{
	uint8_t *data = rte_pktmbuf_mtod(m, uint8_t *);
	uint32_t len = rte_pktmbuf_data_len(m);
	uint32_t off = RTE_ETHER_HDR_LEN;
	rte_be16_t type;

	if (unlikely(len < off))
		return false;
	type = frame_be16(data + off - sizeof(type));
	if (type == RTE_BE16(RTE_ETHER_TYPE_VLAN)) {
		off += RTE_VLAN_HLEN;
		if (unlikely(len < off))
			return false;
		type = frame_be16(data + off - sizeof(type));
	}
	if (type == RTE_BE16(RTE_ETHER_TYPE_ARP))
		return icmpecho_arp(st, (struct rte_ether_hdr *)data, data + off, len - off);
	if (type == RTE_BE16(RTE_ETHER_TYPE_IPV4))
		return icmpecho_ipv4(m, data + off, len - off);
	return false;
}

static __rte_always_inline uint16_t
icmpecho_process(struct fwd_stream *st, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t replies = 0;

	for (uint16_t i = 0; i < n; i++) {
		frame_prefetch(pkts, n, i, 1);
		if (icmpecho_frame(st, pkts[i]))
			pkts[replies++] = pkts[i];
		else
			rte_pktmbuf_free(pkts[i]);
	}
	return replies;
}

FWD_MODE(icmpecho, "icmpecho", FWD_SAME_PORT, icmpecho_process, NULL, NULL);
