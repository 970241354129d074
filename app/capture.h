/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APP_CAPTURE_H
#define APP_CAPTURE_H

/*
 * Captures in and out, by libpcap: what is in a file, which of its frames can be sent, and the
 * file of frames as forwarded.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "err.h"

/* What a capture holds. Frames refused are counted by the first cause that applies. */
struct capture_info {
	const char *format; /* "pcap" or "pcapng" */
	bool swapped; /* written in the other byte order */
	bool nanoseconds; /* resolution of the stamps; false where unknown */
	uint64_t frames; /* in the file */
	uint64_t usable; /* will be sent */
	uint64_t bytes; /* of the usable frames, FCS excluded */
	uint32_t len_min; /* of the usable frames, bytes */
	uint32_t len_max;
	uint64_t empty; /* refused: no bytes */
	uint64_t truncated; /* refused: cut by the capture's snap length */
	uint64_t runt; /* refused: shorter than an Ethernet header, 14 bytes */
	uint64_t oversize; /* refused: longer than the mbuf's room */
	bool cut_short; /* the file ends within a frame; the frames before it count */
	/* Usable frames by protocol; one frame can count in several. */
	uint64_t vlan, arp, ipv4, ipv6, tcp, udp, icmp, icmpv6, fragments, other;
};

struct capture {
	struct capture_info info;
	/*
	 * Path of a classic pcap with the usable frames only, in memory; good until
	 * capture_close(), for drivers that read a file.
	 */
	char path[64];
	int fd; /* behind path */
};

/*
 * Read the capture at path with libpcap; frames longer than frame_max bytes are refused.
 * Returns 0, or -1 with err set (exit code 1): missing, a directory, unreadable, empty, not a
 * capture, link type not Ethernet, or without one frame to send.
 */
int capture_load(struct capture *cap, const char *path, uint32_t frame_max, struct err *err);

/* Same from an open stream, which is closed; name is for messages. For tests and fuzzing. */
int capture_load_stream(struct capture *cap, FILE *stream, const char *name, uint32_t frame_max,
		struct err *err);

void capture_close(struct capture *cap);

/*
 * One line for people: frames, sizes, protocols and, by name, what was refused. Returns text.
 */
char *capture_describe(const struct capture_info *info, char *text, size_t size);

/* The same as a JSON object for result.json; a new reference. */
json_t *capture_json(const struct capture_info *info);

/* One frame to be written. */
struct capture_frame {
	uint64_t ns; /* since the epoch */
	uint32_t len;
	const uint8_t *bytes;
};

/*
 * Write n frames to a classic pcap file with nanosecond stamps, beside it and renamed, so that
 * the name never stands for half a file. Returns 0, or -1 with err set (exit code 1).
 */
int capture_save(const char *path, const struct capture_frame *frames, uint32_t n, struct err *err);

#endif
