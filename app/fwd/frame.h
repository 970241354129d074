/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APP_FWD_FRAME_H
#define APP_FWD_FRAME_H

/*
 * What several modes do to a frame. Nothing here touches a byte outside the frame's first
 * segment, however short the frame is and whatever its headers claim. Where the result depends
 * on bytes that are not there the frame stays as it is; what testpmd sends then depends on what
 * the buffer held before.
 *
 * mbuf flags and header lengths are not set: no port has an offload that would read them.
 */
#include <stdint.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>
#include <rte_vect.h>

#include "fwd.h"

#define FRAME_ADDRS_LEN (2 * RTE_ETHER_ADDR_LEN)

/* Destination and source address, as they lie in a frame. */
struct frame_addrs {
	uint8_t bytes[FRAME_ADDRS_LEN];
};

/* Ask for the start of the frame that comes `ahead` frames after frame i. */
static __rte_always_inline void
frame_prefetch(struct rte_mbuf **pkts, uint16_t n, uint16_t i, uint16_t ahead)
{
	if (likely(i + ahead < n))
		rte_prefetch0(rte_pktmbuf_mtod(pkts[i + ahead], void *));
}

/* The addresses that mac and csum write: from the port that sends to its peer. */
static __rte_always_inline struct frame_addrs
frame_addrs_of(const struct fwd_stream *st)
{
	struct frame_addrs a;

	memcpy(a.bytes, &st->peer, RTE_ETHER_ADDR_LEN);
	memcpy(a.bytes + RTE_ETHER_ADDR_LEN, &st->tx_mac, RTE_ETHER_ADDR_LEN);
	return a;
}

static __rte_always_inline void
frame_set_addrs(struct rte_mbuf *m, const struct frame_addrs *a)
{
	uint8_t *data = rte_pktmbuf_mtod(m, uint8_t *);

	if (likely(rte_pktmbuf_data_len(m) >= FRAME_ADDRS_LEN))
		memcpy(data, a->bytes, FRAME_ADDRS_LEN);
	else
		memcpy(data, a->bytes, rte_pktmbuf_data_len(m));
}

/* Swap the addresses of a frame that has both, with plain loads and stores. */
static __rte_always_inline void
frame_swap_addrs_plain(uint8_t *data)
{
	uint8_t dst[RTE_ETHER_ADDR_LEN], src[RTE_ETHER_ADDR_LEN];

	memcpy(dst, data, RTE_ETHER_ADDR_LEN);
	memcpy(src, data + RTE_ETHER_ADDR_LEN, RTE_ETHER_ADDR_LEN);
	memcpy(data, src, RTE_ETHER_ADDR_LEN);
	memcpy(data + RTE_ETHER_ADDR_LEN, dst, RTE_ETHER_ADDR_LEN);
}

static __rte_always_inline void
frame_swap_addrs(struct rte_mbuf *m)
{
	uint8_t *data = rte_pktmbuf_mtod(m, uint8_t *);
	uint16_t len = rte_pktmbuf_data_len(m);

#ifdef __SSSE3__
	/* One load, one shuffle and one store; the four bytes behind the addresses stay. */
	if (likely(len >= sizeof(__m128i))) {
		const __m128i swap =
				_mm_setr_epi8(6, 7, 8, 9, 10, 11, 0, 1, 2, 3, 4, 5, 12, 13, 14, 15);
		__m128i head = _mm_loadu_si128((const __m128i *)data);

		_mm_storeu_si128((__m128i *)data, _mm_shuffle_epi8(head, swap));
		return;
	}
#endif
	if (len >= FRAME_ADDRS_LEN)
		frame_swap_addrs_plain(data);
}

/* 16 bits at p, in the order of the wire. */
static __rte_always_inline rte_be16_t
frame_be16(const uint8_t *p)
{
	rte_be16_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/*
 * Skip VLAN and QinQ tags, any number of them. Sets *type to the type of what follows and
 * returns where that begins, in bytes from the start of the frame; *type is 0 if the frame ends
 * before.
 */
static __rte_always_inline uint32_t
frame_l3(const uint8_t *data, uint32_t len, rte_be16_t *type)
{
	uint32_t off = RTE_ETHER_HDR_LEN;

	*type = 0;
	while (likely(off <= len)) {
		rte_be16_t t = frame_be16(data + off - sizeof(t));

		if (likely(t != RTE_BE16(RTE_ETHER_TYPE_VLAN) &&
				    t != RTE_BE16(RTE_ETHER_TYPE_QINQ))) {
			*type = t;
			break;
		}
		off += RTE_VLAN_HLEN;
	}
	return off;
}

#endif
