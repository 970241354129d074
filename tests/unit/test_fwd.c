/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What each forwarding mode does to frames. A frame given to a mode lies in a heap block of
 * exactly its length, so that the address sanitizer sees every access outside of it; at the end
 * of a test every buffer has to be back in the pool.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_ip.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

#include "fwd.h"

#define POOL_SIZE 1023
#define FRAME_MAX 1600

static struct rte_mempool *pool;
static uint16_t port;
static struct fwd_options options;
static struct err error;

/* Ethernet, IPv4 and UDP of a 60-byte frame with wrong checksums; parts of it serve others. */
static const uint8_t udp4[60] = {
	0x02, 0, 0, 0, 0, 0x0a, 0x02, 0, 0, 0, 0, 0x0b, 0x08, 0x00, /* Ethernet */
	0x45, 0, 0, 46, 0x12, 0x34, 0, 0, 64, 17, 0xde, 0xad, /* IPv4 */
	10, 1, 2, 3, 10, 4, 5, 6, /* from, to */
	0x04, 0xd2, 0x16, 0x2e, 0, 26, 0xbe, 0xef, /* UDP */
	1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, /* data */
};

/* A stream as the forwarder sets it up. */
static struct fwd_stream
stream(void)
{
	return (struct fwd_stream){
		.rx_port = port,
		.tx_port = port,
		.tx_mac = { { 0x02, 0x70, 0x63, 0x61, 0x70, 0x01 } },
		.peer = { { 0x02, 0, 0, 0, 0, 0x01 } },
		.burst = 32,
		.socket = SOCKET_ID_ANY,
		.pool = pool,
		.options = &options,
	};
}

static const struct fwd_mode *
mode(const char *name)
{
	const struct fwd_mode *m = fwd_mode_find(name);

	assert_non_null(m);
	return m;
}

static void
block_free(void *addr, void *opaque)
{
	(void)addr;
	free(opaque);
}

/* A frame in a heap block of its own, which is freed with it. */
static struct rte_mbuf *
frame(const void *bytes, uint16_t len)
{
	static struct rte_mbuf_ext_shared_info infos[POOL_SIZE];
	static unsigned int next;
	struct rte_mbuf_ext_shared_info *info = &infos[next++ % POOL_SIZE];
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	void *block = malloc(len);

	assert_non_null(m);
	assert_non_null(block);
	memcpy(block, bytes, len);
	info->free_cb = block_free;
	info->fcb_opaque = block;
	rte_mbuf_ext_refcnt_set(info, 1);
	rte_pktmbuf_attach_extbuf(m, block, RTE_BAD_IOVA, len, info);
	m->data_len = len;
	m->pkt_len = len;
	return m;
}

/* Give one frame to a mode; returns it as sent, or NULL. */
static struct rte_mbuf *
pass(const char *name, const void *bytes, uint16_t len)
{
	struct fwd_stream st = stream();
	struct rte_mbuf *pkts[LCORE_BURST_MAX] = { frame(bytes, len) };
	uint16_t out = mode(name)->process(&st, pkts, 1);

	assert_true(out <= 1);
	assert_int_equal(st.dropped, 0);
	return out == 1 ? pkts[0] : NULL;
}

/* Give one frame to a mode and copy what it sends, of the same length, to out. */
static void
convert(const char *name, const void *bytes, uint16_t len, uint8_t *out)
{
	struct rte_mbuf *m = pass(name, bytes, len);

	assert_non_null(m);
	assert_int_equal(m->pkt_len, len);
	memcpy(out, rte_pktmbuf_mtod(m, void *), len);
	rte_pktmbuf_free(m);
}

/* The ones' complement sum of RFC 1071, written for plainness. */
static uint32_t
sum_of(const uint8_t *p, size_t len, uint32_t sum)
{
	for (size_t i = 0; i < len; i++)
		sum += (i & 1) ? p[i] : p[i] << 8;
	while (sum > 0xffff)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* Sum over an IPv4 header's addresses, its protocol, and len bytes of payload. */
static uint32_t
sum_ipv4(const uint8_t *ip, uint16_t len)
{
	return sum_of(ip + (ip[0] & 15) * 4, len, sum_of(ip + 12, 8, ip[9] + len));
}

/* Insert n tags of the given type between the addresses and the type of a frame. */
static uint16_t
tagged(uint8_t *to, const uint8_t *from, uint16_t len, uint16_t type, unsigned int n)
{
	memcpy(to, from, 12);
	for (unsigned int i = 0; i < n; i++) {
		const uint8_t tag[4] = { type >> 8, type & 0xff, 0, 42 };

		memcpy(to + 12 + 4 * i, tag, sizeof(tag));
	}
	memcpy(to + 12 + 4 * n, from + 12, len - 12);
	return len + 4 * n;
}

/* udp4 as IPv6 of the given protocol, with a payload of 26 bytes. */
static uint16_t
as_ipv6(uint8_t *to, uint8_t proto)
{
	memcpy(to, udp4, 12);
	to[12] = 0x86;
	to[13] = 0xdd;
	memset(to + 14, 0, 40);
	to[14] = 0x60;
	to[19] = 26;
	to[20] = proto;
	to[21] = 64;
	for (unsigned int i = 0; i < 32; i++)
		to[22 + i] = (uint8_t)(0x20 + i);
	memcpy(to + 54, udp4 + 34, 26);
	return 80;
}

static void
test_names(void **state)
{
	const char *const names[] = { "io", "mac", "macswap", "flowgen", "rxonly", "txonly", "csum",
		"icmpecho", "noisy", "5tswap" };

	(void)state;
	for (unsigned int i = 0; i < RTE_DIM(names); i++)
		assert_string_equal(mode(names[i])->name, names[i]);
	assert_null(fwd_mode_find("ieee1588"));
	assert_null(fwd_mode_find(""));
}

static void
test_io_leaves_frames_alone(void **state)
{
	uint8_t out[sizeof(udp4)];

	(void)state;
	convert("io", udp4, sizeof(udp4), out);
	assert_memory_equal(out, udp4, sizeof(udp4));
}

static void
test_mac_writes_addresses(void **state)
{
	const uint8_t want[12] = { 0x02, 0, 0, 0, 0, 0x01, 0x02, 0x70, 0x63, 0x61, 0x70, 0x01 };

	(void)state;
	for (uint16_t len = 1; len <= sizeof(udp4); len++) {
		uint8_t out[sizeof(udp4)];

		convert("mac", udp4, len, out);
		assert_memory_equal(out, want, RTE_MIN(len, 12));
		if (len > 12)
			assert_memory_equal(out + 12, udp4 + 12, len - 12);
	}
}

static void
test_macswap_swaps_addresses(void **state)
{
	(void)state;
	for (uint16_t len = 1; len <= sizeof(udp4); len++) {
		uint8_t out[sizeof(udp4)];

		convert("macswap", udp4, len, out);
		if (len < 12) {
			assert_memory_equal(out, udp4, len);
			continue;
		}
		assert_memory_equal(out, udp4 + 6, 6);
		assert_memory_equal(out + 6, udp4, 6);
		if (len > 12)
			assert_memory_equal(out + 12, udp4 + 12, len - 12);
	}
}

static void
test_macswap_bursts(void **state)
{
	(void)state;
	for (uint16_t n = 1; n <= 64; n++) {
		struct fwd_stream st = stream();
		struct rte_mbuf *pkts[LCORE_BURST_MAX];

		for (uint16_t i = 0; i < n; i++)
			pkts[i] = frame(udp4, sizeof(udp4));
		assert_int_equal(mode("macswap")->process(&st, pkts, n), n);
		for (uint16_t i = 0; i < n; i++) {
			assert_memory_equal(rte_pktmbuf_mtod(pkts[i], void *), udp4 + 6, 6);
			rte_pktmbuf_free(pkts[i]);
		}
	}
}

static void
test_rxonly_frees(void **state)
{
	(void)state;
	assert_null(pass("rxonly", udp4, sizeof(udp4)));
}

static void
test_5tswap_ipv4(void **state)
{
	(void)state;
	for (unsigned int tags = 0; tags <= 3; tags++) {
		uint8_t in[FRAME_MAX], out[FRAME_MAX], want[FRAME_MAX];
		uint16_t len = tagged(in, udp4, sizeof(udp4), tags == 2 ? 0x88a8 : 0x8100, tags);
		uint8_t *ip = want + 14 + 4 * tags;

		memcpy(want, in, len);
		memcpy(want, udp4 + 6, 6);
		memcpy(want + 6, udp4, 6);
		memcpy(ip + 12, udp4 + 30, 4);
		memcpy(ip + 16, udp4 + 26, 4);
		memcpy(ip + 20, udp4 + 36, 2);
		memcpy(ip + 22, udp4 + 34, 2);
		convert("5tswap", in, len, out);
		assert_memory_equal(out, want, len);
	}
}

static void
test_5tswap_ipv6_and_others(void **state)
{
	uint8_t in[FRAME_MAX], out[FRAME_MAX];
	uint16_t len = as_ipv6(in, IPPROTO_TCP);

	(void)state;
	convert("5tswap", in, len, out);
	assert_memory_equal(out + 22, in + 38, 16);
	assert_memory_equal(out + 38, in + 22, 16);
	assert_memory_equal(out + 54, in + 56, 2);
	assert_memory_equal(out + 56, in + 54, 2);
	assert_memory_equal(out + 58, in + 58, len - 58);

	/* ICMPv6 has no ports. */
	as_ipv6(in, IPPROTO_ICMPV6);
	convert("5tswap", in, len, out);
	assert_memory_equal(out + 54, in + 54, len - 54);

	/* Not IP: only the addresses of Ethernet. */
	in[12] = 0x88;
	in[13] = 0xcc;
	convert("5tswap", in, len, out);
	assert_memory_equal(out, in + 6, 6);
	assert_memory_equal(out + 12, in + 12, len - 12);
}

static void
test_csum_makes_checksums_right(void **state)
{
	const uint8_t protos[] = { IPPROTO_UDP, IPPROTO_TCP };

	(void)state;
	for (unsigned int i = 0; i < 2 * RTE_DIM(protos); i++) {
		uint8_t in[FRAME_MAX], raw[sizeof(udp4)], out[FRAME_MAX];
		unsigned int tags = i / 2;
		uint16_t len;
		uint8_t *ip = out + 14 + 4 * tags;

		memcpy(raw, udp4, sizeof(udp4));
		raw[23] = protos[i % 2];
		len = tagged(in, raw, sizeof(raw), 0x88a8, tags);
		convert("csum", in, len, out);
		assert_int_equal(sum_of(ip, 20, 0), 0xffff);
		assert_int_equal(sum_ipv4(ip, 26), 0xffff);
		assert_int_equal(out[5], 0x01);
		assert_int_equal(out[6 + 5], 0x01);
	}
}

static void
test_csum_odd_lengths(void **state)
{
	uint8_t in[FRAME_MAX], out[FRAME_MAX];

	(void)state;
	for (uint16_t i = 0; i < FRAME_MAX; i++)
		in[i] = (uint8_t)(i * 7 + 3);
	memcpy(in, udp4, sizeof(udp4));
	for (uint16_t len = 42; len <= 1514; len++) {
		in[16] = (uint8_t)((len - 14) >> 8);
		in[17] = (uint8_t)(len - 14);
		convert("csum", in, len, out);
		assert_int_equal(sum_of(out + 14, 20, 0), 0xffff);
		assert_int_equal(sum_ipv4(out + 14, len - 34), 0xffff);
	}
}

static void
test_csum_ipv6(void **state)
{
	const uint8_t protos[] = { IPPROTO_UDP, IPPROTO_TCP };
	uint8_t in[FRAME_MAX], out[FRAME_MAX];

	(void)state;
	for (unsigned int i = 0; i < RTE_DIM(protos); i++) {
		uint16_t len = as_ipv6(in, protos[i]);

		convert("csum", in, len, out);
		assert_int_equal(
				sum_of(out + 54, 26, sum_of(out + 22, 32, protos[i] + 26)), 0xffff);
	}
	/* A fragment header ends the search. */
	uint16_t len = as_ipv6(in, 44);

	convert("csum", in, len, out);
	assert_memory_equal(out + 12, in + 12, len - 12);
}

static void
test_csum_special_cases(void **state)
{
	uint8_t in[sizeof(udp4)], out[sizeof(udp4)];

	(void)state;
	/* No UDP checksum: none is made. */
	memcpy(in, udp4, sizeof(in));
	in[40] = in[41] = 0;
	convert("csum", in, sizeof(in), out);
	assert_int_equal(out[40] | out[41], 0);
	assert_int_equal(sum_of(out + 14, 20, 0), 0xffff);

	/* A sum of 0 is sent as 0xffff: choose the data so. */
	memcpy(in, udp4, sizeof(in));
	in[58] = in[59] = 0;
	convert("csum", in, sizeof(in), out);
	memcpy(in + 58, out + 40, 2);
	convert("csum", in, sizeof(in), out);
	assert_int_equal(out[40] & out[41], 0xff);

	/* SCTP: cleared. */
	memcpy(in, udp4, sizeof(in));
	in[23] = IPPROTO_SCTP;
	convert("csum", in, sizeof(in), out);
	assert_int_equal(out[42] | out[43] | out[44] | out[45], 0);

	/* More bytes claimed than there are. */
	memcpy(in, udp4, sizeof(in));
	in[17] = 47;
	convert("csum", in, sizeof(in), out);
	assert_int_equal(out[40] & out[41], 0xff);

	/* Fewer: the padding does not count. */
	in[17] = 40;
	convert("csum", in, sizeof(in), out);
	assert_int_equal(sum_ipv4(out + 14, 20), 0xffff);

	/* Not IP. */
	in[12] = 0x88;
	convert("csum", in, sizeof(in), out);
	assert_memory_equal(out + 12, in + 12, sizeof(in) - 12);
}

static void
test_csum_segments(void **state)
{
	struct fwd_stream st = stream();

	(void)state;
	for (uint16_t cut = 42; cut < sizeof(udp4); cut++) {
		struct rte_mbuf *pkts[LCORE_BURST_MAX] = { frame(udp4, cut) };
		struct rte_mbuf *rest = frame(udp4 + cut, sizeof(udp4) - cut);
		uint8_t out[sizeof(udp4)];

		assert_int_equal(rte_pktmbuf_chain(pkts[0], rest), 0);
		assert_int_equal(mode("csum")->process(&st, pkts, 1), 1);
		memcpy(out, rte_pktmbuf_mtod(pkts[0], void *), cut);
		memcpy(out + cut, rte_pktmbuf_mtod(rest, void *), sizeof(udp4) - cut);
		assert_int_equal(sum_ipv4(out + 14, 26), 0xffff);
		rte_pktmbuf_free(pkts[0]);
	}
}

/* Every mode that looks into frames, on frames cut anywhere whose headers lie about lengths. */
static void
test_hostile_frames(void **state)
{
	const char *const names[] = { "io", "mac", "macswap", "csum", "5tswap", "icmpecho" };
	const uint8_t protos[] = { IPPROTO_UDP, IPPROTO_TCP, IPPROTO_SCTP, IPPROTO_ICMP };
	uint8_t raw[FRAME_MAX], in[FRAME_MAX];

	(void)state;
	for (unsigned int i = 0; i < RTE_DIM(names) * 3 * 16 * RTE_DIM(protos); i++) {
		const char *name = names[i % RTE_DIM(names)];
		unsigned int tags = i / RTE_DIM(names) % 3;
		unsigned int ihl = i / RTE_DIM(names) / 3 % 16;
		uint16_t len;

		memcpy(raw, udp4, sizeof(udp4));
		raw[14] = (uint8_t)(0x40 | ihl);
		raw[23] = protos[i / RTE_DIM(names) / 3 / 16];
		raw[16] = (uint8_t)(ihl % 2 != 0 ? 0xff : 0);
		len = tagged(in, raw, sizeof(udp4), 0x8100, tags);
		for (uint16_t cut = 1; cut <= len; cut++) {
			struct rte_mbuf *m = pass(name, in, cut);

			if (m == NULL)
				continue;
			assert_int_equal(m->pkt_len, cut);
			rte_pktmbuf_free(m);
		}
	}
	as_ipv6(in, IPPROTO_UDP);
	for (unsigned int i = 0; i < RTE_DIM(names); i++)
		for (uint16_t cut = 1; cut <= 80; cut++) {
			struct rte_mbuf *m = pass(names[i], in, cut);

			if (m != NULL)
				rte_pktmbuf_free(m);
		}
	/* Tags to the end. */
	uint16_t len = tagged(in, udp4, 14, 0x8100, 20);

	for (unsigned int i = 0; i < RTE_DIM(names); i++)
		for (uint16_t cut = 12; cut <= len; cut++) {
			struct rte_mbuf *m = pass(names[i], in, cut);

			if (m != NULL)
				rte_pktmbuf_free(m);
		}
}

/* An ARP request of 60 bytes. */
static void
arp_request(uint8_t *to)
{
	const uint8_t arp[] = { 0, 1, 0x08, 0, 6, 4, 0, 1, /* Ethernet, IPv4, request */
		0x02, 0, 0, 0, 0, 0x0b, 10, 1, 2, 3, /* from */
		0, 0, 0, 0, 0, 0, 10, 4, 5, 6 }; /* for */

	memset(to, 0, 60);
	memset(to, 0xff, 6);
	memcpy(to + 6, udp4 + 6, 6);
	to[12] = 0x08;
	to[13] = 0x06;
	memcpy(to + 14, arp, sizeof(arp));
}

static void
test_icmpecho_answers_arp(void **state)
{
	const struct fwd_stream st = stream();

	(void)state;
	for (unsigned int tags = 0; tags <= 1; tags++) {
		uint8_t raw[60], in[64], out[64];
		uint8_t *arp = out + 14 + 4 * tags;
		uint16_t len;

		arp_request(raw);
		len = tagged(in, raw, sizeof(raw), 0x8100, tags);
		convert("icmpecho", in, len, out);
		assert_memory_equal(out, udp4 + 6, 6);
		assert_memory_equal(out + 6, &st.tx_mac, 6);
		assert_int_equal(arp[7], 2);
		assert_memory_equal(arp + 8, &st.tx_mac, 6);
		assert_memory_equal(arp + 14, raw + 38, 4);
		assert_memory_equal(arp + 18, udp4 + 6, 6);
		assert_memory_equal(arp + 24, raw + 28, 4);
	}
}

static void
test_icmpecho_frees_the_rest(void **state)
{
	uint8_t in[FRAME_MAX], arp[60];

	(void)state;
	assert_null(pass("icmpecho", udp4, sizeof(udp4)));
	assert_null(pass("icmpecho", in, as_ipv6(in, IPPROTO_ICMPV6)));
	/* Each field that makes an ARP request one, changed. */
	const uint8_t offs[] = { 15, 16, 18, 19, 21 };

	for (unsigned int i = 0; i < RTE_DIM(offs); i++) {
		arp_request(arp);
		arp[offs[i]] ^= 2;
		assert_null(pass("icmpecho", arp, sizeof(arp)));
	}
	/* Two tags are too many. */
	arp_request(arp);
	assert_null(pass("icmpecho", in, tagged(in, arp, sizeof(arp), 0x8100, 2)));
}

/* udp4 as an ICMP message of the given type, all checksums right. */
static void
icmp_message(uint8_t *to, uint8_t type, uint8_t code, uint8_t dst)
{
	uint32_t sum;

	memcpy(to, udp4, sizeof(udp4));
	to[23] = IPPROTO_ICMP;
	to[24] = to[25] = 0;
	to[30] = dst;
	sum = ~sum_of(to + 14, 20, 0);
	to[24] = (uint8_t)(sum >> 8);
	to[25] = (uint8_t)sum;
	to[34] = type;
	to[35] = code;
	to[36] = to[37] = 0;
	sum = ~sum_of(to + 34, 26, 0);
	to[36] = (uint8_t)(sum >> 8);
	to[37] = (uint8_t)sum;
}

static void
test_icmpecho_answers_echo(void **state)
{
	uint8_t in[sizeof(udp4)], out[sizeof(udp4)];

	(void)state;
	icmp_message(in, 8, 0, 10);
	convert("icmpecho", in, sizeof(in), out);
	assert_memory_equal(out, in + 6, 6);
	assert_memory_equal(out + 6, in, 6);
	assert_memory_equal(out + 26, in + 30, 4);
	assert_memory_equal(out + 30, in + 26, 4);
	assert_int_equal(out[34], 0);
	assert_int_equal(sum_of(out + 14, 20, 0), 0xffff);
	assert_int_equal(sum_of(out + 34, 26, 0), 0xffff);

	/* Asked in a group: the answer comes from a neighbour of the asker. */
	icmp_message(in, 8, 0, 224);
	convert("icmpecho", in, sizeof(in), out);
	const uint8_t neighbour[] = { 10, 1, 2, 1 };

	assert_memory_equal(out + 26, neighbour, 4);
	assert_memory_equal(out + 30, in + 26, 4);
	assert_int_equal(sum_of(out + 14, 20, 0), 0xffff);

	icmp_message(in, 0, 0, 10);
	assert_null(pass("icmpecho", in, sizeof(in)));
	icmp_message(in, 8, 1, 10);
	assert_null(pass("icmpecho", in, sizeof(in)));
}

static void
test_icmpecho_keeps_order(void **state)
{
	struct fwd_stream st = stream();
	struct rte_mbuf *pkts[LCORE_BURST_MAX];
	uint8_t in[sizeof(udp4)];

	(void)state;
	for (uint8_t i = 0; i < 8; i++) {
		icmp_message(in, i % 3 == 0 ? 8 : 3, 0, 10);
		in[50] = i;
		pkts[i] = frame(in, sizeof(in));
	}
	assert_int_equal(mode("icmpecho")->process(&st, pkts, 8), 3);
	assert_int_equal(st.dropped, 0);
	for (uint8_t i = 0; i < 3; i++) {
		assert_int_equal(rte_pktmbuf_mtod(pkts[i], uint8_t *)[50], 3 * i);
		rte_pktmbuf_free(pkts[i]);
	}
}

/* Set the segments of --txpkts. */
static void
set_txpkts(const uint16_t *lens, uint16_t n)
{
	options.nb_tx_segs = n;
	options.tx_pkt_len = 0;
	for (uint16_t i = 0; i < n; i++) {
		options.tx_seg_len[i] = lens[i];
		options.tx_pkt_len += lens[i];
	}
}

/* A generated frame's headers, wherever they lie: lengths, checksum, addresses. */
static const uint8_t *
check_generated(struct rte_mbuf *m, uint32_t len)
{
	static uint8_t copy[42];
	const uint8_t *h = rte_pktmbuf_read(m, 0, sizeof(copy), copy);

	assert_non_null(h);
	if (h != copy)
		memcpy(copy, h, sizeof(copy));
	assert_int_equal(m->pkt_len, len);
	assert_int_equal(rte_mbuf_check(m, 1, (const char *[]){ NULL }), 0);
	assert_int_equal(copy[12] << 8 | copy[13], 0x0800);
	assert_int_equal(copy[14], 0x45);
	assert_int_equal(copy[16] << 8 | copy[17], len - 14);
	assert_int_equal(copy[22], 64);
	assert_int_equal(copy[23], 17);
	assert_int_equal(sum_of(copy + 14, 20, 0), 0xffff);
	assert_int_equal(copy[38] << 8 | copy[39], len - 34);
	assert_int_equal(copy[40] | copy[41], 0);
	return copy;
}

static void
test_txonly_frames(void **state)
{
	const uint16_t txpkts[][4] = { { 64 }, { 42 }, { 1514 }, { 64, 64 }, { 7, 9, 20, 100 },
		{ 1, 1, 1, 61 } };
	const uint8_t ends[] = { 198, 18, 0, 1, 198, 18, 0, 2, 0, 9, 0, 9 };

	(void)state;
	for (unsigned int i = 0; i < RTE_DIM(txpkts); i++) {
		struct fwd_stream st = stream();
		struct rte_mbuf *pkts[LCORE_BURST_MAX];
		uint16_t nb_segs = 4;

		while (txpkts[i][nb_segs - 1] == 0)
			nb_segs--;
		set_txpkts(txpkts[i], nb_segs);
		assert_int_equal(mode("txonly")->init(&st, &error), 0);
		for (unsigned int turn = 0; turn < 2; turn++) {
			assert_int_equal(mode("txonly")->process(&st, pkts, 0), st.burst);
			for (uint16_t j = 0; j < st.burst; j++) {
				const uint8_t *h = check_generated(pkts[j], options.tx_pkt_len);

				assert_memory_equal(h, &st.peer, 6);
				assert_memory_equal(h + 6, &st.tx_mac, 6);
				assert_memory_equal(h + 26, ends, sizeof(ends));
				assert_int_equal(pkts[j]->nb_segs, nb_segs);
			}
			rte_pktmbuf_free_bulk(pkts, st.burst);
		}
		mode("txonly")->fini(&st);
	}
}

static void
test_txonly_multi_flow(void **state)
{
	struct fwd_stream st = stream();
	struct rte_mbuf *pkts[LCORE_BURST_MAX];
	int first = -1;

	(void)state;
	set_txpkts((const uint16_t[]){ 64 }, 1);
	options.txonly_multi_flow = true;
	assert_int_equal(mode("txonly")->init(&st, &error), 0);
	for (unsigned int turn = 0; turn < 9; turn++) {
		assert_int_equal(mode("txonly")->process(&st, pkts, 0), st.burst);
		for (uint16_t j = 0; j < st.burst; j++) {
			const uint8_t *h = check_generated(pkts[j], 64);

			if (first < 0)
				first = h[28];
			assert_int_equal(h[28], (first + turn * st.burst + j) % 256);
			assert_int_equal(h[29], 2 + rte_lcore_id());
		}
		rte_pktmbuf_free_bulk(pkts, st.burst);
	}
	mode("txonly")->fini(&st);
	options.txonly_multi_flow = false;
}

/* With too few buffers, what there is is sent, and nothing is lost. */
static void
test_generators_short_of_buffers(void **state)
{
	const char *const names[] = { "txonly", "flowgen" };

	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		struct fwd_stream st = stream();
		struct rte_mbuf *pkts[LCORE_BURST_MAX], *held[POOL_SIZE];
		const struct fwd_mode *m = mode(names[i % 2]);
		unsigned int nb_held = POOL_SIZE - 21 * (i / 2), segs = i == 2 ? 4 : 1;
		uint16_t made;

		set_txpkts((const uint16_t[]){ 64, 64, 64, 64 }, (uint16_t)segs);
		assert_int_equal(m->init(&st, &error), 0);
		for (unsigned int j = 0; j < nb_held; j++)
			held[j] = rte_pktmbuf_alloc(pool);
		made = m->process(&st, pkts, 0);
		assert_true(made <= 21);
		/* Those taken for first segments leave none for the further ones. */
		if (segs == 1)
			assert_int_equal(made, POOL_SIZE - nb_held);
		rte_pktmbuf_free_bulk(pkts, made);
		rte_pktmbuf_free_bulk(held, nb_held);
		m->fini(&st);
	}
}

static void
test_generators_refuse_lengths(void **state)
{
	struct fwd_stream st = stream();

	(void)state;
	set_txpkts((const uint16_t[]){ 41 }, 1);
	assert_int_equal(mode("txonly")->init(&st, &error), -1);
	assert_int_equal(error.code, EXIT_USAGE);
	set_txpkts((const uint16_t[]){ 3000 }, 1);
	assert_int_equal(mode("txonly")->init(&st, &error), -1);
	assert_int_equal(mode("flowgen")->init(&st, &error), -1);
	set_txpkts((const uint16_t[]){ 2000, 2000 }, 2);
	assert_int_equal(mode("flowgen")->init(&st, &error), -1);
	assert_non_null(strstr(error.text, "--txpkts"));
	set_txpkts((const uint16_t[]){ 4 }, 1);
	assert_int_equal(mode("flowgen")->init(&st, &error), -1);
	set_txpkts((const uint16_t[]){ 41, 41 }, 2);
	options.txonly_multi_flow = true;
	assert_int_equal(mode("txonly")->init(&st, &error), -1);
	options.txonly_multi_flow = false;
	assert_null(st.priv);
}

static void
test_flowgen_frames(void **state)
{
	const uint8_t macs[] = { 0, 1, 2, 3, 4, 1, 0, 1, 2, 3, 4, 0 };
	struct fwd_stream st = stream();
	struct rte_mbuf *pkts[LCORE_BURST_MAX];
	int first = -1;

	(void)state;
	set_txpkts((const uint16_t[]){ 100 }, 1);
	assert_int_equal(mode("flowgen")->init(&st, &error), 0);
	for (int turn = 0; turn < 2 * 1024 / st.burst + 1; turn++) {
		if (turn % 2 == 0)
			pkts[0] = frame(udp4, sizeof(udp4));
		assert_int_equal(mode("flowgen")->process(&st, pkts, turn % 2 == 0), st.burst);
		for (uint16_t j = 0; j < st.burst; j++) {
			const uint8_t *h = check_generated(pkts[j], 96);
			int flow = h[32] << 8 | h[33];

			if (first < 0)
				first = flow;
			assert_memory_equal(h, macs, sizeof(macs));
			assert_memory_equal(
					h + 26, ((const uint8_t[]){ 10, 254, 0, 0, 10, 253 }), 6);
			assert_int_equal(flow, (first + turn * st.burst + j) % 1024);
			assert_memory_equal(h + 34,
					((const uint8_t[]){ 1000 >> 8, 1000 & 255, 1001 >> 8,
							1001 & 255 }),
					4);
		}
		rte_pktmbuf_free_bulk(pkts, st.burst);
	}
	assert_int_equal(st.dropped, 0);
	mode("flowgen")->fini(&st);
}

/* A driver that takes 20 frames of a burst. */
static uint16_t
take_20(uint16_t id, uint16_t queue, struct rte_mbuf **pkts, uint16_t n, void *arg)
{
	(void)id;
	(void)queue;
	(void)pkts;
	(void)arg;
	return RTE_MIN(n, 20);
}

/* Frames the driver refused do not leave a gap in what is generated. */
static void
test_generators_count_back(void **state)
{
	const char *const names[] = { "flowgen", "txonly" };
	const struct rte_eth_rxtx_callback *cb = rte_eth_add_tx_callback(port, 0, take_20, NULL);

	(void)state;
	assert_non_null(cb);
	set_txpkts((const uint16_t[]){ 64 }, 1);
	options.txonly_multi_flow = true;
	for (unsigned int i = 0; i < RTE_DIM(names); i++) {
		struct fwd_stream st[2] = { stream(), stream() };
		struct fwd_stream *sts[] = { &st[0], &st[1] };
		static struct lcore lc;

		lc = (struct lcore){
			.burst = 32, .nb_streams = 2, .streams = sts, .record = LCORE_RECORD_FRAMES
		};
		lc.saved = (struct lcore_saved){ .limit = 200, .frame_max = 64 };
		lc.saved.info = calloc(lc.saved.limit, sizeof(*lc.saved.info));
		lc.saved.bytes = calloc(lc.saved.limit, lc.saved.frame_max);
		for (unsigned int j = 0; j < 2; j++)
			assert_int_equal(mode(names[i])->init(&st[j], &error), 0);
		assert_false(mode(names[i])->save_loop(&lc));
		assert_int_equal(lc.saved.count, 200);
		assert_true(st[0].counts.tx_dropped + st[1].counts.tx_dropped >= 12);
		for (unsigned int j = 1; j < 200; j++) {
			const uint8_t *h = lc.saved.bytes + 64 * j, *before = h - 64;

			if (i == 0)
				assert_int_equal((h[32] << 8) + h[33],
						((before[32] << 8) + before[33] + 1) % 1024);
			else
				assert_int_equal(h[28], (before[28] + 1) % 256);
		}
		for (unsigned int j = 0; j < 2; j++)
			mode(names[i])->fini(&st[j]);
		free(lc.saved.info);
		free(lc.saved.bytes);
	}
	options.txonly_multi_flow = false;
	assert_int_equal(rte_eth_remove_tx_callback(port, 0, cb), 0);
}

/* Frames from the pool that carry numbers. */
static void
numbered(struct rte_mbuf **pkts, uint16_t n, uint32_t *next)
{
	for (uint16_t i = 0; i < n; i++) {
		pkts[i] = rte_pktmbuf_alloc(pool);
		assert_non_null(pkts[i]);
		assert_non_null(rte_pktmbuf_append(pkts[i], 64));
		*rte_pktmbuf_mtod(pkts[i], uint32_t *) = (*next)++;
	}
}

/* Check that frames have the numbers from *next on, and free them. */
static void
expect(struct rte_mbuf **pkts, uint16_t n, uint32_t *next)
{
	for (uint16_t i = 0; i < n; i++)
		assert_int_equal(*rte_pktmbuf_mtod(pkts[i], uint32_t *), (*next)++);
	rte_pktmbuf_free_bulk(pkts, n);
}

static void
test_noisy_holds_frames(void **state)
{
	struct fwd_stream st = stream();
	struct rte_mbuf *pkts[LCORE_BURST_MAX];
	uint32_t in = 0, out = 0;

	(void)state;
	options.noisy_buffer = 64;
	assert_int_equal(mode("noisy")->init(&st, &error), 0);
	/* 63 fit; from then on as many leave as come. */
	numbered(pkts, 32, &in);
	assert_int_equal(mode("noisy")->process(&st, pkts, 32), 0);
	numbered(pkts, 31, &in);
	assert_int_equal(mode("noisy")->process(&st, pkts, 31), 0);
	for (uint16_t n = 1; n <= 63; n++) {
		numbered(pkts, n, &in);
		assert_int_equal(mode("noisy")->process(&st, pkts, n), n);
		expect(pkts, n, &out);
		assert_int_equal(mode("noisy")->process(&st, pkts, 0), 0);
	}
	assert_int_equal(st.dropped, 0);
	/* More than it holds. */
	numbered(pkts, 70, &in);
	assert_int_equal(mode("noisy")->process(&st, pkts, 70), 63);
	expect(pkts, 63, &out);
	assert_int_equal(st.dropped, 7);
	mode("noisy")->fini(&st);
	options.noisy_buffer = 0;
}

static void
test_noisy_flushes(void **state)
{
	struct fwd_stream st = stream();
	struct rte_mbuf *pkts[LCORE_BURST_MAX];
	uint32_t in = 0, out = 0;

	(void)state;
	options.noisy_buffer = 1024;
	options.noisy_flush_ms = 20;
	assert_int_equal(mode("noisy")->init(&st, &error), 0);
	for (unsigned int i = 0; i < 20; i++) {
		numbered(pkts, 32, &in);
		expect(pkts, mode("noisy")->process(&st, pkts, 32), &out);
	}
	rte_delay_us_sleep(25000);
	/* More than one turn can take: in order, and all that were there. */
	while (out < in) {
		uint16_t n = mode("noisy")->process(&st, pkts, 0);

		assert_true(n > 0);
		expect(pkts, n, &out);
	}
	assert_int_equal(mode("noisy")->process(&st, pkts, 0), 0);
	mode("noisy")->fini(&st);
	options.noisy_buffer = 0;
	options.noisy_flush_ms = 0;
}

static void
test_noisy_wraps_modes(void **state)
{
	const char *const names[] = { "io", "mac", "macswap", "5tswap" };

	(void)state;
	options.noisy_memory_mib = 1;
	for (unsigned int i = 0; i < RTE_DIM(names); i++) {
		struct fwd_stream st = stream();
		struct rte_mbuf *pkts[LCORE_BURST_MAX] = { frame(udp4, sizeof(udp4)) };
		uint8_t want[sizeof(udp4)];

		convert(names[i], udp4, sizeof(udp4), want);
		options.noisy_mode = mode(names[i]);
		st.lookups = (struct fwd_lookups){ 3, 3, 3 };
		assert_int_equal(mode("noisy")->init(&st, &error), 0);
		assert_int_equal(mode("noisy")->process(&st, pkts, 1), 1);
		assert_memory_equal(rte_pktmbuf_mtod(pkts[0], void *), want, sizeof(want));
		rte_pktmbuf_free(pkts[0]);
		mode("noisy")->fini(&st);
	}
	options.noisy_mode = NULL;
	options.noisy_memory_mib = 0;
}

static void
test_noisy_refuses(void **state)
{
	struct fwd_stream st = stream();

	(void)state;
	options.noisy_buffer = 100;
	assert_int_equal(mode("noisy")->init(&st, &error), -1);
	assert_non_null(strstr(error.text, "--noisy-tx-sw-buffer-size"));
	options.noisy_buffer = 0;
	options.noisy_memory_mib = 1 << 20;
	assert_int_equal(mode("noisy")->init(&st, &error), -1);
	assert_int_equal(error.code, EXIT_FAILED);
	options.noisy_memory_mib = 0;
	options.noisy_mode = mode("txonly");
	assert_int_equal(mode("noisy")->init(&st, &error), -1);
	assert_int_equal(error.code, EXIT_USAGE);
	options.noisy_mode = NULL;
	assert_null(st.priv);
}

static void
test_pair(void **state)
{
	struct fwd_stream there = { .rx_port = 0, .tx_port = 1 }, back = { .rx_port = 1 };
	struct fwd_stream *pair[] = { &there, &back, &there };

	(void)state;
	assert_true(fwd_is_pair(pair, 2));
	assert_false(fwd_is_pair(pair, 1));
	assert_false(fwd_is_pair(pair, 3));
	assert_false(fwd_is_pair(pair + 1, 2)); /* the other one first */
	there.rx_queue = 1;
	assert_false(fwd_is_pair(pair, 2));
	there.rx_queue = 0;
	back.tx_queue = 1;
	assert_false(fwd_is_pair(pair, 2));
	back.tx_queue = 0;
	back.tx_port = 1; /* --port-topology=loop */
	assert_false(fwd_is_pair(pair, 2));
	back = (struct fwd_stream){ .rx_port = 3, .tx_port = 2 };
	there = (struct fwd_stream){ .rx_port = 2, .tx_port = 3 };
	assert_false(fwd_is_pair(pair, 2));
}

static int
buffers_are_back(void **state)
{
	(void)state;
	return rte_mempool_avail_count(pool) == POOL_SIZE ? 0 : -1;
}

static int
start(void **state)
{
	static char *args[] = { "test_fwd", "-l", "0", "--no-huge", "-m", "128", "--no-pci",
		"--no-telemetry", "--no-shconf", "--vdev=net_null0", "--log-level=error", NULL };
	const struct rte_eth_conf conf = { 0 };

	(void)state;
	if (rte_eal_init(RTE_DIM(args) - 1, args) < 0)
		return -1;
	pool = rte_pktmbuf_pool_create(
			"test", POOL_SIZE, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	if (pool == NULL || rte_eth_dev_get_port_by_name("net_null0", &port) != 0 ||
			rte_eth_dev_configure(port, 1, 1, &conf) != 0 ||
			rte_eth_rx_queue_setup(port, 0, 64, SOCKET_ID_ANY, NULL, pool) != 0 ||
			rte_eth_tx_queue_setup(port, 0, 64, SOCKET_ID_ANY, NULL) != 0 ||
			rte_eth_dev_start(port) != 0)
		return -1;
	return 0;
}

static int
stop(void **state)
{
	(void)state;
	rte_eth_dev_stop(port);
	rte_eth_dev_close(port);
	rte_mempool_free(pool);
	return rte_eal_cleanup();
}

#define TEST(fn) cmocka_unit_test_teardown(fn, buffers_are_back)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_names),
		TEST(test_io_leaves_frames_alone),
		TEST(test_mac_writes_addresses),
		TEST(test_macswap_swaps_addresses),
		TEST(test_macswap_bursts),
		TEST(test_rxonly_frees),
		TEST(test_5tswap_ipv4),
		TEST(test_5tswap_ipv6_and_others),
		TEST(test_csum_makes_checksums_right),
		TEST(test_csum_odd_lengths),
		TEST(test_csum_ipv6),
		TEST(test_csum_special_cases),
		TEST(test_csum_segments),
		TEST(test_hostile_frames),
		TEST(test_icmpecho_answers_arp),
		TEST(test_icmpecho_frees_the_rest),
		TEST(test_icmpecho_answers_echo),
		TEST(test_icmpecho_keeps_order),
		TEST(test_txonly_frames),
		TEST(test_txonly_multi_flow),
		TEST(test_generators_short_of_buffers),
		TEST(test_generators_refuse_lengths),
		TEST(test_flowgen_frames),
		TEST(test_generators_count_back),
		TEST(test_noisy_holds_frames),
		TEST(test_noisy_flushes),
		TEST(test_noisy_wraps_modes),
		TEST(test_noisy_refuses),
		TEST(test_pair),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
