/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <net/ethernet.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <pcap/pcap.h>

#include "capture.h"

#define ETHER_HEADER 14
#define ETHERTYPE_QINQ 0x88a8 /* IEEE 802.1ad service tag */
#define ETHERTYPE_QINQ_OLD 0x9100 /* what was used for it before the standard */
#define SNAPLEN_MAX 262144 /* libpcap's own limit for Ethernet */
#define NS_PER_SEC 1000000000ULL

/* A count of struct capture_info, for the texts and the JSON. */
struct counter {
	const char *key; /* in JSON */
	const char *what; /* for people */
	size_t offset;
};

/* In the order in which a frame is tried for them. */
static const struct counter causes[] = {
	{ "empty", "empty", offsetof(struct capture_info, empty) },
	{ "truncated", "cut by the snap length", offsetof(struct capture_info, truncated) },
	{ "runt", "shorter than an Ethernet header", offsetof(struct capture_info, runt) },
	{ "oversize", "too long for an mbuf", offsetof(struct capture_info, oversize) },
};

static const struct counter protocols[] = {
	{ "vlan", "VLAN", offsetof(struct capture_info, vlan) },
	{ "arp", "ARP", offsetof(struct capture_info, arp) },
	{ "ipv4", "IPv4", offsetof(struct capture_info, ipv4) },
	{ "ipv6", "IPv6", offsetof(struct capture_info, ipv6) },
	{ "tcp", "TCP", offsetof(struct capture_info, tcp) },
	{ "udp", "UDP", offsetof(struct capture_info, udp) },
	{ "icmp", "ICMP", offsetof(struct capture_info, icmp) },
	{ "icmpv6", "ICMPv6", offsetof(struct capture_info, icmpv6) },
	{ "fragments", "fragments", offsetof(struct capture_info, fragments) },
	{ "other", "other", offsetof(struct capture_info, other) },
};

#define NB(array) (sizeof(array) / sizeof((array)[0]))

static uint64_t
count_of(const struct capture_info *info, const struct counter *c)
{
	uint64_t value;

	memcpy(&value, (const char *)info + c->offset, sizeof(value));
	return value;
}

/* ---- writing frames: libpcap's dumper, which reports errors only when asked ---- */

struct dump {
	pcap_t *dead; /* carries link type, snap length and resolution */
	pcap_dumper_t *out;
};

/* Start a classic pcap with nanosecond stamps on fd, which is taken over. */
static int
dump_open(struct dump *d, int fd)
{
	FILE *stream;

	d->out = NULL;
	d->dead = pcap_open_dead_with_tstamp_precision(
			DLT_EN10MB, SNAPLEN_MAX, PCAP_TSTAMP_PRECISION_NANO);
	if (d->dead == NULL) {
		close(fd);
		return -1;
	}
	stream = fdopen(fd, "wb");
	if (stream == NULL) {
		close(fd);
		pcap_close(d->dead);
		return -1;
	}
	d->out = pcap_dump_fopen(d->dead, stream);
	if (d->out == NULL) /* libpcap has closed the stream */
		pcap_close(d->dead);
	return d->out == NULL ? -1 : 0;
}

static int
dump_add(struct dump *d, const struct pcap_pkthdr *header, const uint8_t *bytes)
{
	pcap_dump((u_char *)d->out, header, bytes);
	return ferror(pcap_dump_file(d->out)) != 0 ? -1 : 0;
}

/* Have all that was written reach the file. */
static int
dump_flush(struct dump *d)
{
	return pcap_dump_flush(d->out) != 0 || ferror(pcap_dump_file(d->out)) != 0 ? -1 : 0;
}

static void
dump_close(struct dump *d)
{
	pcap_dump_close(d->out);
	pcap_close(d->dead);
}

/* ---- what is in a frame ---- */

static uint16_t
be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static void
count_transport(struct capture_info *info, uint8_t protocol, bool v6)
{
	if (protocol == IPPROTO_TCP)
		info->tcp++;
	else if (protocol == IPPROTO_UDP)
		info->udp++;
	else if (protocol == IPPROTO_ICMP && !v6)
		info->icmp++;
	else if (protocol == IPPROTO_ICMPV6 && v6)
		info->icmpv6++;
}

static void
count_ipv4(struct capture_info *info, const uint8_t *p, uint32_t len)
{
	uint32_t header;
	uint16_t fragment;

	info->ipv4++;
	if (len < 20)
		return;
	header = (p[0] & 0x0f) * 4;
	if (p[0] >> 4 != 4 || header < 20 || header > len)
		return;
	fragment = be16(p + 6) & 0x3fff; /* more-fragments bit and offset */
	if (fragment != 0)
		info->fragments++;
	if ((fragment & 0x1fff) == 0) /* later fragments have no transport header */
		count_transport(info, p[9], false);
}

/*
 * Bytes of the IPv6 extension header of that type at p, 0 where it is none that can be passed
 * over. At least 8 bytes are there.
 */
static uint32_t
ipv6_extension(uint8_t type, const uint8_t *p)
{
	switch (type) {
	case IPPROTO_HOPOPTS:
	case IPPROTO_ROUTING:
	case IPPROTO_DSTOPTS:
	case IPPROTO_MH:
		return (p[1] + 1) * 8;
	case IPPROTO_FRAGMENT:
		return 8;
	case IPPROTO_AH:
		return (p[1] + 2) * 4;
	default:
		return 0;
	}
}

static void
count_ipv6(struct capture_info *info, const uint8_t *p, uint32_t len)
{
	bool fragment = false, first = true;
	uint32_t off = 40;
	uint8_t next;

	info->ipv6++;
	if (len < off || p[0] >> 4 != 6)
		return;
	next = p[6];
	while (off + 8 <= len) {
		const uint32_t header = ipv6_extension(next, p + off);

		if (header == 0)
			break;
		if (next == IPPROTO_FRAGMENT) {
			fragment |= (be16(p + off + 2) & 0xfff9) != 0;
			first &= (be16(p + off + 2) & 0xfff8) == 0;
		}
		next = p[off];
		off += header;
	}
	if (fragment)
		info->fragments++;
	if (first && off <= len)
		count_transport(info, next, true);
}

static bool
is_vlan(uint16_t type)
{
	return type == ETHERTYPE_VLAN || type == ETHERTYPE_QINQ || type == ETHERTYPE_QINQ_OLD;
}

/* Count a usable frame by its protocols; len is at least ETHER_HEADER. */
static void
count_protocols(struct capture_info *info, const uint8_t *p, uint32_t len)
{
	uint32_t off = ETHER_HEADER;
	uint16_t type = be16(p + off - 2);

	if (is_vlan(type))
		info->vlan++;
	while (is_vlan(type) && off + 4 <= len) {
		off += 4;
		type = be16(p + off - 2);
	}
	switch (type) {
	case ETHERTYPE_ARP:
		info->arp++;
		break;
	case ETHERTYPE_IP:
		count_ipv4(info, p + off, len - off);
		break;
	case ETHERTYPE_IPV6:
		count_ipv6(info, p + off, len - off);
		break;
	default:
		info->other++;
		break;
	}
}

/* ---- texts ---- */

/* Text that grows up to the end of its buffer. */
struct text {
	char *at;
	size_t left;
};

static void text_add(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void
text_add(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(t->at, t->left, fmt, ap);
	va_end(ap);
	if (n < 0 || t->left == 0)
		return;
	if ((size_t)n >= t->left)
		n = (int)t->left - 1;
	t->at += n;
	t->left -= (size_t)n;
}

/* "; refused 3: 1 empty, 2 cut by the snap length" and whether the file is whole. */
static void
add_refused(struct text *t, const struct capture_info *info)
{
	const char *separator = ": ";

	if (info->frames != info->usable)
		text_add(t, "; refused %" PRIu64, info->frames - info->usable);
	for (size_t i = 0; i < NB(causes); i++) {
		const uint64_t n = count_of(info, &causes[i]);

		if (n == 0)
			continue;
		text_add(t, "%s%" PRIu64 " %s", separator, n, causes[i].what);
		separator = ", ";
	}
	if (info->cut_short)
		text_add(t, "; the file ends within a frame");
}

/* ---- reading ---- */

struct load {
	struct capture_info *info;
	const char *name;
	uint32_t frame_max;
	pcap_t *in;
	struct dump dump;
};

/* Where a frame that cannot be sent is counted; NULL for one that can. */
static uint64_t *
refusal(struct load *l, const struct pcap_pkthdr *header)
{
	if (header->caplen == 0 || header->len == 0)
		return &l->info->empty;
	if (header->caplen < header->len)
		return &l->info->truncated;
	if (header->len < ETHER_HEADER)
		return &l->info->runt;
	if (header->len > l->frame_max)
		return &l->info->oversize;
	return NULL;
}

static int
load_frame(struct load *l, const struct pcap_pkthdr *header, const uint8_t *bytes)
{
	struct capture_info *info = l->info;
	struct pcap_pkthdr h = *header;
	uint64_t *refused;

	info->frames++;
	/*
	 * The magic number of pcapng says nothing of the stamps and libpcap keeps the resolution
	 * to itself, but digits below a microsecond show it.
	 */
	info->nanoseconds |= h.ts.tv_usec % 1000 != 0;
	refused = refusal(l, &h);
	if (refused != NULL) {
		(*refused)++;
		return 0;
	}
	/* Some writers claim to have captured more than was on the wire. */
	h.caplen = h.len;
	if (info->usable == 0 || h.len < info->len_min)
		info->len_min = h.len;
	if (h.len > info->len_max)
		info->len_max = h.len;
	info->usable++;
	info->bytes += h.len;
	count_protocols(info, bytes, h.len);
	return dump_add(&l->dump, &h, bytes);
}

static int
load_frames(struct load *l, struct err *err)
{
	FILE *stream = pcap_file(l->in);
	struct pcap_pkthdr *header;
	const u_char *bytes;
	int rc;

	while ((rc = pcap_next_ex(l->in, &header, &bytes)) == 1)
		if (load_frame(l, header, bytes) != 0)
			goto no_copy;
	if (rc != PCAP_ERROR_BREAK) {
		/* A writer that was killed leaves half a frame; anything else is corruption. */
		if (ferror(stream) != 0 || feof(stream) == 0)
			return err_set(err, EXIT_FAILED, "capture %.256s: frame %" PRIu64 ": %s",
					l->name, l->info->frames + 1, pcap_geterr(l->in));
		l->info->cut_short = true;
	}
	if (dump_flush(&l->dump) != 0)
		goto no_copy;
	return 0;
no_copy:
	return err_set(err, EXIT_FAILED, "capture %.256s: cannot keep its frames in memory: %s",
			l->name, strerror(errno));
}

/*
 * What the first bytes of a file say that libpcap does not tell: format and resolution. They
 * are put back, for the stream may be a pipe.
 */
static size_t
peek_format(FILE *stream, struct capture_info *info)
{
	static const uint8_t nano_le[4] = { 0x4d, 0x3c, 0xb2, 0xa1 };
	static const uint8_t nano_be[4] = { 0xa1, 0xb2, 0x3c, 0x4d };
	static const uint8_t section[4] = { 0x0a, 0x0d, 0x0d, 0x0a };
	uint8_t magic[4] = { 0 };
	const size_t n = fread(magic, 1, sizeof(magic), stream);

	/* Always granted: the bytes are still in the stream's buffer. */
	for (size_t i = n; i > 0; i--)
		ungetc(magic[i - 1], stream);
	info->format = memcmp(magic, section, sizeof(magic)) == 0 ? "pcapng" : "pcap";
	info->nanoseconds = memcmp(magic, nano_le, sizeof(magic)) == 0 ||
			memcmp(magic, nano_be, sizeof(magic)) == 0;
	return n;
}

/* Open the stream, which is closed on failure, for reading Ethernet frames. */
static pcap_t *
open_ethernet(FILE *stream, const char *name, struct capture_info *info, struct err *err)
{
	char reason[PCAP_ERRBUF_SIZE] = "";
	const char *link;
	pcap_t *in;
	int type;

	errno = 0;
	if (peek_format(stream, info) == 0) {
		err_set(err, EXIT_FAILED, "capture %.256s: %s", name,
				ferror(stream) != 0 ? strerror(errno) : "the file is empty");
		fclose(stream);
		return NULL;
	}
	in = pcap_fopen_offline_with_tstamp_precision(stream, PCAP_TSTAMP_PRECISION_NANO, reason);
	if (in == NULL) {
		err_set(err, EXIT_FAILED, "capture %.256s: not a capture that libpcap can read: %s",
				name, reason);
		fclose(stream);
		return NULL;
	}
	info->swapped = pcap_is_swapped(in) != 0;
	type = pcap_datalink(in);
	if (type == DLT_EN10MB)
		return in;
	link = pcap_datalink_val_to_name(type);
	if (link != NULL)
		snprintf(reason, sizeof(reason), "%s", link);
	else
		snprintf(reason, sizeof(reason), "%d", type);
	err_set(err, EXIT_FAILED, "capture %.256s: link type %s, only Ethernet can be sent", name,
			reason);
	pcap_close(in);
	return NULL;
}

/* A memory file for the usable frames, known by a path as drivers want it. */
static int
make_memory_file(struct capture *cap, struct load *l, struct err *err)
{
	int fd;

	cap->fd = memfd_create("sibfwd-capture", MFD_CLOEXEC);
	/* The dumper closes its own descriptor; the one behind the path stays open. */
	fd = cap->fd == -1 ? -1 : fcntl(cap->fd, F_DUPFD_CLOEXEC, 0);
	if (fd == -1 || dump_open(&l->dump, fd) != 0)
		return err_set(err, EXIT_FAILED,
				"capture %.256s: cannot keep its frames in memory: %s", l->name,
				strerror(errno));
	snprintf(cap->path, sizeof(cap->path), "/proc/self/fd/%d", cap->fd);
	return 0;
}

int
capture_load_stream(struct capture *cap, FILE *stream, const char *name, uint32_t frame_max,
		struct err *err)
{
	struct load l = { .info = &cap->info, .name = name, .frame_max = frame_max };
	char refused[256] = "";
	int rc;

	memset(cap, 0, sizeof(*cap));
	cap->fd = -1;
	l.in = open_ethernet(stream, name, &cap->info, err);
	if (l.in == NULL)
		return -1;
	rc = make_memory_file(cap, &l, err);
	if (rc == 0) {
		rc = load_frames(&l, err);
		dump_close(&l.dump);
	}
	if (rc == 0 && cap->info.usable == 0) {
		add_refused(&(struct text){ refused, sizeof(refused) }, &cap->info);
		rc = err_set(err, EXIT_FAILED, "capture %.256s: no frame to send%s", name, refused);
	}
	pcap_close(l.in);
	if (rc != 0)
		capture_close(cap);
	return rc;
}

int
capture_load(struct capture *cap, const char *path, uint32_t frame_max, struct err *err)
{
	FILE *stream = fopen(path, "rbe");

	memset(cap, 0, sizeof(*cap));
	cap->fd = -1;
	if (stream == NULL)
		return err_set(err, EXIT_FAILED, "capture %.256s: %s", path, strerror(errno));
	return capture_load_stream(cap, stream, path, frame_max, err);
}

void
capture_close(struct capture *cap)
{
	if (cap->fd != -1)
		close(cap->fd);
	cap->fd = -1;
	cap->path[0] = '\0';
}

/* ---- saying what was read ---- */

char *
capture_describe(const struct capture_info *info, char *text, size_t size)
{
	struct text t = { text, size };
	const char *separator = "; ";

	text_add(&t, "%s%s%s: %" PRIu64 " of %" PRIu64 " frames", info->format,
			info->swapped ? ", other byte order" : "",
			info->nanoseconds ? ", nanosecond stamps" : "", info->usable, info->frames);
	if (info->usable != 0)
		text_add(&t, ", %" PRIu32 " to %" PRIu32 " bytes long, %" PRIu64 " bytes in all",
				info->len_min, info->len_max, info->bytes);
	for (size_t i = 0; i < NB(protocols); i++) {
		const uint64_t n = count_of(info, &protocols[i]);

		if (n == 0)
			continue;
		text_add(&t, "%s%s %" PRIu64, separator, protocols[i].what, n);
		separator = ", ";
	}
	add_refused(&t, info);
	return text;
}

static void
set_count(json_t *json, const char *key, uint64_t value)
{
	json_object_set_new(json, key, json_integer((json_int_t)value));
}

static json_t *
counts_json(const struct capture_info *info, const struct counter *counters, size_t n)
{
	json_t *json = json_object();

	for (size_t i = 0; i < n; i++)
		set_count(json, counters[i].key, count_of(info, &counters[i]));
	return json;
}

json_t *
capture_json(const struct capture_info *info)
{
	json_t *json = json_object();

	json_object_set_new(json, "format", json_string(info->format));
	json_object_set_new(json, "swapped", json_boolean(info->swapped));
	json_object_set_new(json, "nanoseconds", json_boolean(info->nanoseconds));
	json_object_set_new(json, "cut_short", json_boolean(info->cut_short));
	set_count(json, "frames", info->frames);
	set_count(json, "usable", info->usable);
	set_count(json, "bytes", info->bytes);
	set_count(json, "len_min", info->len_min);
	set_count(json, "len_max", info->len_max);
	json_object_set_new(json, "refused", counts_json(info, causes, NB(causes)));
	json_object_set_new(json, "protocols", counts_json(info, protocols, NB(protocols)));
	return json;
}

/* ---- saving what was sent ---- */

static int
write_frames(int fd, const struct capture_frame *frames, uint32_t n)
{
	struct stat st;
	struct dump d;
	int rc = 0;

	if (dump_open(&d, fd) != 0)
		return -1;
	for (uint32_t i = 0; i < n && rc == 0; i++) {
		const struct pcap_pkthdr header = {
			.ts.tv_sec = (time_t)(frames[i].ns / NS_PER_SEC),
			.ts.tv_usec = (suseconds_t)(frames[i].ns % NS_PER_SEC), /* ns here */
			.caplen = frames[i].len,
			.len = frames[i].len,
		};

		rc = dump_add(&d, &header, frames[i].bytes);
	}
	if (rc == 0)
		rc = dump_flush(&d);
	/* A full disk can show only now, and libpcap's close tells nothing. Pipes cannot sync. */
	if (rc == 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		rc = fsync(fd);
	if (rc != 0) {
		const int cause = errno;

		dump_close(&d); /* tries to write the rest once more */
		errno = cause;
		return -1;
	}
	dump_close(&d);
	return 0;
}

/* Write beside path and rename, which either replaces the whole file or leaves it alone. */
static int
save_beside(const char *path, const struct capture_frame *frames, uint32_t n)
{
	char *beside;
	int fd, rc = -1, cause;

	if (asprintf(&beside, "%s.%ld.tmp", path, (long)getpid()) == -1)
		return -1;
	fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd != -1) {
		rc = write_frames(fd, frames, n);
		if (rc == 0)
			rc = rename(beside, path);
		cause = errno;
		if (rc != 0)
			unlink(beside);
		errno = cause;
	}
	cause = errno;
	free(beside);
	errno = cause;
	return rc;
}

/* A pipe or a device is written to as it is: renaming over it would replace it by a file. */
static int
save_straight(const char *path, const struct capture_frame *frames, uint32_t n)
{
	const int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd == -1 ? -1 : write_frames(fd, frames, n);
}

int
capture_save(const char *path, const struct capture_frame *frames, uint32_t n, struct err *err)
{
	char *target = NULL;
	struct stat st;
	int rc;

	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
		rc = save_straight(path, frames, n);
	} else {
		/* A link to a file stays one: what it leads to is replaced. */
		target = realpath(path, NULL);
		rc = save_beside(target != NULL ? target : path, frames, n);
	}
	if (rc != 0)
		err_set(err, EXIT_FAILED, "capture %.256s: cannot write: %s", path,
				strerror(errno));
	free(target);
	return rc;
}
