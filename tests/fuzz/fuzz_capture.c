/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes as a capture: either one line says why not, or what is counted adds up and the
 * memory file holds just the frames counted.
 */
#include <stdlib.h>
#include <string.h>

#include <pcap/pcap.h>

#include "capture.h"

#define FRAME_MAX 2048

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(condition) \
	do { \
		if (!(condition)) \
			abort(); \
	} while (0)

/* What a driver finds behind the path. */
static void
check_frames(const struct capture *cap)
{
	const struct capture_info *info = &cap->info;
	char reason[PCAP_ERRBUF_SIZE];
	struct pcap_pkthdr *header;
	const u_char *bytes;
	uint64_t frames = 0, sum = 0;
	pcap_t *in = pcap_open_offline(cap->path, reason);
	int rc;

	CHECK(in != NULL);
	while ((rc = pcap_next_ex(in, &header, &bytes)) == 1) {
		CHECK(header->caplen == header->len);
		CHECK(header->len >= info->len_min && header->len <= info->len_max);
		frames++;
		sum += header->len;
	}
	CHECK(rc == PCAP_ERROR_BREAK);
	CHECK(frames == info->usable && sum == info->bytes);
	pcap_close(in);
}

static void
check_info(const struct capture_info *info)
{
	char text[1024];
	json_t *json = capture_json(info);

	CHECK(json != NULL);
	CHECK(json_object_size(json) == 11);
	json_decref(json);
	CHECK(strlen(capture_describe(info, text, sizeof(text))) < sizeof(text) - 1);
	CHECK(info->usable != 0);
	CHECK(info->usable + info->empty + info->truncated + info->runt + info->oversize ==
			info->frames);
	CHECK(info->arp + info->ipv4 + info->ipv6 + info->other == info->usable);
	CHECK(info->tcp + info->udp + info->icmp + info->icmpv6 <= info->ipv4 + info->ipv6);
	CHECK(info->fragments <= info->ipv4 + info->ipv6);
	CHECK(info->len_min >= 14 && info->len_max <= FRAME_MAX);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct capture cap;
	struct err err = { 0 };
	FILE *stream;

	if (size == 0) /* fmemopen() takes none; the unit test has an empty file */
		return 0;
	stream = fmemopen((void *)(uintptr_t)data, size, "rb");
	CHECK(stream != NULL);
	if (capture_load_stream(&cap, stream, "input", FRAME_MAX, &err) != 0) {
		CHECK(err.code == EXIT_FAILED);
		CHECK(strncmp(err.text, "capture input: ", 15) == 0);
		CHECK(strpbrk(err.text, "\r\n") == NULL);
		CHECK(cap.fd == -1);
		return 0;
	}
	check_info(&cap.info);
	check_frames(&cap);
	capture_close(&cap);
	return 0;
}
