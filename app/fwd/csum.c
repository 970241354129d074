/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * csum: write the addresses as mac does, then compute the checksums of IPv4, UDP and TCP anew, in
 * software, as testpmd does while no checksum offload is on.
 *
 * What testpmd does and a reader may not expect: tunnels are not looked into (its parse-tunnel
 * is off); an IPv6 extension header ends the search; a fragment is treated as a whole datagram;
 * a UDP checksum of 0 stays; the SCTP checksum becomes 0; and where a length claims more bytes
 * than arrived the checksum becomes 0xffff.
 */
#include <netinet/in.h>

#include <rte_ip.h>
#include <rte_sctp.h>
#include <rte_tcp.h>
#include <rte_udp.h>

#include "frame.h"
#include "loop.h"

/* The part of a frame that is worked on: its first segment, and where its layers begin. */
struct csum_frame {
	struct rte_mbuf *m;
	uint8_t *data;
	uint32_t len; /* bytes in the first segment */
	uint32_t l3; /* offsets, bytes */
	uint32_t l4;
	uint32_t l4_len; /* bytes, as the IP header claims */
	uint8_t proto;
	bool ipv6;
	bool sound; /* the IP header is not shorter than it may be */
};

static __rte_always_inline uint64_t
csum_load(const uint8_t *p, const size_t size)
{
	uint64_t v = 0;

	memcpy(&v, p, size);
	return v;
}

/* Add with end-around carry: the ones' complement sum of RFC 1071, four words at once. */
static __rte_always_inline uint64_t
csum_add(uint64_t sum, uint64_t v)
{
	sum += v;
	return sum + (sum < v);
}

/* Sum of len bytes as 16-bit words in the order of the wire, not yet folded. */
static __rte_always_inline uint64_t
csum_bytes(const uint8_t *p, uint32_t len, uint64_t sum)
{
	uint64_t other = 0;

	for (; len >= 16; len -= 16, p += 16) {
		sum = csum_add(sum, csum_load(p, 8));
		other = csum_add(other, csum_load(p + 8, 8));
	}
	sum = csum_add(sum, other);
	if (len & 8) {
		sum = csum_add(sum, csum_load(p, 8));
		p += 8;
	}
	if (len & 4) {
		sum = csum_add(sum, csum_load(p, 4));
		p += 4;
	}
	if (len & 2) {
		sum = csum_add(sum, csum_load(p, 2));
		p += 2;
	}
	if (len & 1) {
		uint16_t last = 0;

		memcpy(&last, p, 1);
		sum = csum_add(sum, last);
	}
	return sum;
}

/* Fold to 16 bits; a sum that is not 0 does not become 0. */
static __rte_always_inline uint16_t
csum_fold(uint64_t sum)
{
	sum = (sum >> 32) + (uint32_t)sum;
	sum = (sum >> 32) + (uint32_t)sum;
	sum = (sum >> 16) + (uint16_t)sum;
	sum = (sum >> 16) + (uint16_t)sum;
	return (uint16_t)sum;
}

/* Store a checksum at off, or what part of it the frame has room for. */
static __rte_always_inline void
csum_store(const struct csum_frame *f, uint32_t off, uint16_t value)
{
	if (likely(off + sizeof(value) <= f->len))
		memcpy(f->data + off, &value, sizeof(value));
	else if (off < f->len)
		memcpy(f->data + off, &value, 1);
}

/* The pseudo header's sum: addresses, protocol and the length claimed. */
static __rte_always_inline uint64_t
csum_pseudo(const struct csum_frame *f)
{
	const uint8_t *ip = f->data + f->l3;
	uint64_t sum = rte_cpu_to_be_16((uint16_t)f->l4_len) + rte_cpu_to_be_16(f->proto);

	if (f->ipv6)
		return csum_bytes(ip + offsetof(struct rte_ipv6_hdr, src_addr), 32, sum);
	return csum_bytes(ip + offsetof(struct rte_ipv4_hdr, src_addr), 8, sum);
}

/*
 * The UDP or TCP checksum of frames whose lengths do not fit together, of cut frames and of
 * segmented ones: in the order in which testpmd reads and writes, which shows where an IPv4
 * header claims to be shorter than it is. Takes a copy, to keep the original in registers.
 */
static __rte_noinline void
csum_l4_odd(struct csum_frame f, uint32_t field)
{
	uint16_t raw = 0, cksum = 0xffff;

	csum_store(&f, field, 0);
	if (rte_raw_cksum_mbuf(f.m, f.l4, f.l4_len, &raw) == 0)
		cksum = ~csum_fold(csum_pseudo(&f) + raw);
	if (cksum == 0 && f.proto == IPPROTO_UDP)
		cksum = 0xffff;
	csum_store(&f, field, cksum);
}

/* Compute the checksum at offset `at` of the UDP or TCP header anew. */
static __rte_always_inline void
csum_l4(const struct csum_frame *f, const uint32_t at)
{
	const uint32_t field = f->l4 + at;
	uint64_t sum;
	uint16_t old, cksum;

	if (unlikely(!f->sound || at + sizeof(old) > f->l4_len || f->l4 + f->l4_len > f->len)) {
		csum_l4_odd(*f, field);
		return;
	}
	/*
	 * Taking the old value out of the sum is the same as clearing it before, without the
	 * stall of a wide load right behind a narrow store.
	 */
	old = frame_be16(f->data + field);
	sum = csum_bytes(f->data + f->l4, f->l4_len, csum_pseudo(f));
	cksum = ~csum_fold(csum_add(sum, (uint16_t)~old));
	if (cksum == 0 && f->proto == IPPROTO_UDP)
		cksum = 0xffff;
	memcpy(f->data + field, &cksum, sizeof(cksum));
}

/* 0 in a UDP checksum says that there is none. A byte that did not arrive cannot say it. */
static __rte_always_inline bool
csum_udp_has(const struct csum_frame *f)
{
	uint32_t field = f->l4 + offsetof(struct rte_udp_hdr, dgram_cksum);

	if (likely(field + 2 <= f->len))
		return frame_be16(f->data + field) != 0;
	return field < f->len && f->data[field] != 0;
}

static __rte_always_inline void
csum_payload(const struct csum_frame *f)
{
	if (f->proto == IPPROTO_UDP) {
		if (csum_udp_has(f))
			csum_l4(f, offsetof(struct rte_udp_hdr, dgram_cksum));
	} else if (f->proto == IPPROTO_TCP) {
		if (f->l4 + offsetof(struct rte_tcp_hdr, cksum) < f->len)
			csum_l4(f, offsetof(struct rte_tcp_hdr, cksum));
	} else if (f->proto == IPPROTO_SCTP) {
		csum_store(f, f->l4 + offsetof(struct rte_sctp_hdr, cksum), 0);
		csum_store(f, f->l4 + offsetof(struct rte_sctp_hdr, cksum) + 2, 0);
	}
}

/* The IPv4 header's own checksum; hlen is the length that the header claims, 0 to 60. */
static __rte_always_inline void
csum_ipv4_header(const struct csum_frame *f, uint32_t hlen)
{
	const uint32_t at = offsetof(struct rte_ipv4_hdr, hdr_checksum);
	uint8_t *ip = f->data + f->l3;
	uint64_t sum;
	uint16_t cksum;

	/* Options that did not arrive would count: leave the header alone. */
	if (unlikely(f->l3 + hlen > f->len))
		return;
	if (likely(hlen == sizeof(struct rte_ipv4_hdr)))
		sum = csum_bytes(ip, sizeof(struct rte_ipv4_hdr), 0);
	else
		sum = csum_bytes(ip, hlen, 0);
	if (likely(hlen > at))
		sum = csum_add(sum, (uint16_t)~frame_be16(ip + at));
	cksum = ~csum_fold(sum);
	memcpy(ip + at, &cksum, sizeof(cksum));
}

static __rte_always_inline void
csum_ipv4(struct csum_frame *f)
{
	const uint8_t *ip = f->data + f->l3;
	rte_be16_t total;
	uint32_t hlen;

	if (unlikely(f->l3 + offsetof(struct rte_ipv4_hdr, src_addr) > f->len))
		return;
	hlen = (ip[0] & RTE_IPV4_HDR_IHL_MASK) * RTE_IPV4_IHL_MULTIPLIER;
	csum_ipv4_header(f, hlen);
	if (unlikely(f->l3 + sizeof(struct rte_ipv4_hdr) > f->len))
		return;
	f->proto = ip[offsetof(struct rte_ipv4_hdr, next_proto_id)];
	f->l4 = f->l3 + hlen;
	total = frame_be16(ip + offsetof(struct rte_ipv4_hdr, total_length));
	f->l4_len = (uint16_t)(rte_be_to_cpu_16(total) - hlen);
	f->sound = hlen >= sizeof(struct rte_ipv4_hdr);
	csum_payload(f);
}

static __rte_always_inline void
csum_ipv6(struct csum_frame *f)
{
	const uint8_t *ip = f->data + f->l3;

	if (unlikely(f->l3 + sizeof(struct rte_ipv6_hdr) > f->len))
		return;
	f->ipv6 = true;
	f->proto = ip[offsetof(struct rte_ipv6_hdr, proto)];
	f->l4 = f->l3 + sizeof(struct rte_ipv6_hdr);
	f->l4_len = rte_be_to_cpu_16(frame_be16(ip + offsetof(struct rte_ipv6_hdr, payload_len)));
	f->sound = true;
	csum_payload(f);
}

static __rte_always_inline void
csum_frame(struct rte_mbuf *m)
{
	struct csum_frame f = {
		.m = m,
		.data = rte_pktmbuf_mtod(m, uint8_t *),
		.len = rte_pktmbuf_data_len(m),
	};
	rte_be16_t type;

	f.l3 = frame_l3(f.data, f.len, &type);
	if (type == RTE_BE16(RTE_ETHER_TYPE_IPV4))
		csum_ipv4(&f);
	else if (type == RTE_BE16(RTE_ETHER_TYPE_IPV6))
		csum_ipv6(&f);
}

static __rte_always_inline uint16_t
csum_process(struct fwd_stream *st, struct rte_mbuf **pkts, uint16_t n)
{
	const struct frame_addrs addrs = frame_addrs_of(st);
	uint16_t good;

	for (uint16_t i = 0; i < n; i++) {
		frame_prefetch(pkts, n, i, 1);
		frame_set_addrs(pkts[i], &addrs);
		csum_frame(pkts[i]);
	}
	good = rte_eth_tx_prepare(st->tx_port, st->tx_queue, pkts, n);
	if (unlikely(good < n)) {
		st->dropped += n - good;
		rte_pktmbuf_free_bulk(&pkts[good], n - good);
	}
	return good;
}

FWD_MODE(csum, "csum", 0, csum_process, NULL, NULL);
