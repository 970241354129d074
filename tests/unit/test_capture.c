/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The captures come from tests/data/make_captures.py, which writes beside each what is to be
 * expected of it. MAKE_CAPTURES names the script where it is not beside this file's directory.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <pcap/pcap.h>

#include "capture.h"

#define FRAME_MAX 2048 /* as in make_captures.py */

static char dir[] = "/tmp/test_capture.XXXXXX";

/* ---- helpers ---- */

/* The path of a file in the test's directory; good until the next but three calls. */
static const char *
in_dir(const char *name)
{
	static char paths[4][256];
	static unsigned int next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
	return path;
}

static unsigned int
count_entries(const char *path)
{
	DIR *d = opendir(path);
	unsigned int n = 0;

	assert_non_null(d);
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

static unsigned int
open_files(void)
{
	return count_entries("/proc/self/fd");
}

/* All bytes of a file, with a NUL behind them. */
static char *
slurp(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	char *bytes;

	assert_non_null(f);
	bytes = malloc(1 << 20);
	assert_non_null(bytes);
	*size = fread(bytes, 1, (1 << 20) - 1, f);
	bytes[*size] = '\0';
	fclose(f);
	return bytes;
}

static void
write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "wb");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static bool
file_is(const char *path, const char *text)
{
	size_t size;
	char *bytes = slurp(path, &size);
	const bool same = strcmp(bytes, text) == 0;

	free(bytes);
	return same;
}

/* A child that copies file from to file to, which blocks until somebody opens a pipe there. */
static pid_t
copy_in_child(const char *from, const char *to)
{
	const pid_t pid = fork();

	if (pid != 0)
		return pid;
	execl("/bin/cp", "cp", from, to, (char *)NULL);
	_exit(1);
}

static void
reap(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* A call that writes fails once a file reaches so many bytes, as on a full disk. */
static rlim_t
limit_file_size(rlim_t bytes)
{
	struct rlimit limit;
	rlim_t before;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	before = limit.rlim_cur;
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	return before;
}

static void
assert_one_line(const struct err *err, const char *name)
{
	assert_int_equal(err->code, EXIT_FAILED);
	assert_null(strpbrk(err->text, "\r\n"));
	assert_int_equal(strncmp(err->text, "capture ", 8), 0);
	assert_non_null(strstr(err->text, name));
}

/* ---- what was loaded ---- */

static void
assert_hex_equal(const char *hex, const uint8_t *bytes, uint32_t len)
{
	assert_int_equal(strlen(hex), 2 * (size_t)len);
	for (uint32_t i = 0; i < len; i++) {
		unsigned int byte;

		assert_int_equal(sscanf(hex + (size_t)2 * i, "%2x", &byte), 1);
		assert_int_equal(bytes[i], byte);
	}
}

/* The file behind the capture's path holds the frames, and can be read as often as one likes. */
static void
assert_frames(const struct capture *cap, json_t *frames)
{
	char reason[PCAP_ERRBUF_SIZE];

	for (unsigned int turn = 0; turn < 2; turn++) {
		pcap_t *in = pcap_open_offline(cap->path, reason);
		struct pcap_pkthdr *header;
		const u_char *bytes;
		size_t n = 0;

		assert_non_null(in);
		assert_int_equal(pcap_datalink(in), DLT_EN10MB);
		assert_int_equal(pcap_major_version(in), 2);
		while (pcap_next_ex(in, &header, &bytes) == 1) {
			const char *hex = json_string_value(json_array_get(frames, n++));

			assert_non_null(hex);
			assert_int_equal(header->len, header->caplen);
			assert_hex_equal(hex, bytes, header->len);
		}
		assert_int_equal(n, json_array_size(frames));
		pcap_close(in);
	}
}

static void
assert_info(const struct capture_info *info, json_t *expected)
{
	json_t *json = capture_json(info);

	assert_non_null(json);
	if (json_equal(json, expected) == 0) {
		json_dumpf(json, stderr, JSON_SORT_KEYS);
		fputs("\ninstead of\n", stderr);
		json_dumpf(expected, stderr, JSON_SORT_KEYS);
		fputc('\n', stderr);
		fail();
	}
	json_decref(json);
}

static void
assert_as_expected(const char *path, json_t *expected)
{
	json_t *words = json_object_get(expected, "error");
	struct capture cap;
	struct err err = { 0 };
	const int rc = capture_load(&cap, path, FRAME_MAX, &err);
	json_t *word;
	size_t i;

	if (words == NULL) {
		assert_int_equal(rc, 0);
		assert_info(&cap.info, json_object_get(expected, "info"));
		assert_frames(&cap, json_object_get(expected, "frames"));
		capture_close(&cap);
		return;
	}
	assert_int_equal(rc, -1);
	assert_int_equal(cap.fd, -1);
	assert_one_line(&err, path);
	json_array_foreach (words, i, word)
		assert_non_null(strstr(err.text, json_string_value(word)));
}

static json_t *
expectation(const char *path)
{
	json_t *json = json_load_file(path, 0, NULL);

	assert_non_null(json);
	return json;
}

static void
test_every_capture(void **state)
{
	const unsigned int files = open_files();
	glob_t found;

	(void)state;
	assert_int_equal(glob(in_dir("*.json"), 0, NULL, &found), 0);
	assert_true(found.gl_pathc > 30);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		json_t *expected = expectation(found.gl_pathv[i]);
		const char *name = json_string_value(json_object_get(expected, "file"));

		print_message("             %s\n", name);
		assert_as_expected(in_dir(name), expected);
		json_decref(expected);
	}
	globfree(&found);
	assert_int_equal(open_files(), files);
}

static void
test_pipe(void **state)
{
	json_t *expected = expectation(in_dir("refusals.pcapng.json"));
	const char *pipe = in_dir("pipe");
	pid_t writer;

	(void)state;
	assert_int_equal(mkfifo(pipe, 0600), 0);
	writer = copy_in_child(in_dir("refusals.pcapng"), pipe);
	assert_as_expected(pipe, expected);
	reap(writer);
	unlink(pipe);
	json_decref(expected);
}

/* Cut anywhere, a file gives its whole frames or one line; nothing leaks. */
static void
cut_everywhere(const char *name, const struct capture_info *whole)
{
	const unsigned int files = open_files();
	uint64_t last = 0;
	size_t size;
	char *bytes = slurp(in_dir(name), &size);

	for (size_t n = 1; n < size; n++) {
		/* Its own block, so that a sanitizer sees a byte read too far. */
		char *part = malloc(n);
		struct capture cap;
		struct err err = { 0 };

		assert_non_null(part);
		memcpy(part, bytes, n);
		if (capture_load_stream(&cap, fmemopen(part, n, "rb"), "part", FRAME_MAX, &err) !=
				0) {
			assert_one_line(&err, "capture part: ");
			assert_int_equal(last, 0);
		} else {
			assert_true(cap.info.usable >= last && cap.info.usable <= last + 1);
			assert_true(cap.info.cut_short || cap.info.usable > last);
			last = cap.info.usable;
			capture_close(&cap);
		}
		free(part);
	}
	assert_int_equal(last, whole->usable - 1);
	assert_int_equal(open_files(), files);
	free(bytes);
}

static void
test_cut_everywhere(void **state)
{
	static const char *const names[] = { "zoo.pcap", "plain.pcap", "plain.pcapng" };
	struct capture cap;
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_int_equal(capture_load(&cap, in_dir(names[i]), FRAME_MAX, &err), 0);
		cut_everywhere(names[i], &cap.info);
		capture_close(&cap);
	}
}

static void
test_not_files(void **state)
{
	static const struct {
		const char *path, *cause;
	} cases[] = {
		{ "/", "Is a directory" },
		{ "/nonexistent/x.pcap", "No such file or directory" },
		{ "/proc/self/mem", "Input/output error" },
		{ "/dev/null", "the file is empty" },
	};
	const unsigned int files = open_files();

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct capture cap;
		struct err err = { 0 };

		assert_int_equal(capture_load(&cap, cases[i].path, FRAME_MAX, &err), -1);
		assert_one_line(&err, cases[i].path);
		assert_non_null(strstr(err.text, cases[i].cause));
		assert_int_equal(cap.fd, -1);
		capture_close(&cap); /* does no harm */
	}
	assert_int_equal(open_files(), files);
}

/* A name that fills the line leaves room for the cause. */
static void
test_long_name(void **state)
{
	char name[4096];
	struct capture cap;
	struct err err = { 0 };

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(capture_load(&cap, name, FRAME_MAX, &err), -1);
	assert_non_null(strstr(err.text, "File name too long"));
}

static void
test_frame_max(void **state)
{
	struct capture cap;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(capture_load(&cap, in_dir("plain.pcap"), 128, &err), 0);
	assert_int_equal(cap.info.usable, 2);
	assert_int_equal(cap.info.oversize, 1);
	assert_int_equal(cap.info.len_max, 128);
	capture_close(&cap);
	assert_int_equal(capture_load(&cap, in_dir("plain.pcap"), 63, &err), -1);
	assert_non_null(strstr(err.text, "3 too long for an mbuf"));
}

static void
test_no_memory_file(void **state)
{
	const unsigned int files = open_files();
	struct capture cap;
	struct err err = { 0 };
	struct rlimit limit, before;
	rlim_t size;

	(void)state;
	size = limit_file_size(100);
	assert_int_equal(capture_load(&cap, in_dir("plain.pcap"), FRAME_MAX, &err), -1);
	limit_file_size(size);
	assert_non_null(strstr(err.text, "in memory: File too large"));

	/* One descriptor for the capture, one for the memory, none for its writer; and so on. */
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	for (rlim_t spare = 0; spare < 3; spare++) {
		const int lowest = dup(0);

		close(lowest);
		limit = before;
		limit.rlim_cur = (rlim_t)lowest + spare;
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
		assert_int_equal(capture_load(&cap, in_dir("plain.pcap"), FRAME_MAX, &err), -1);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
		assert_non_null(strstr(err.text, "Too many open files"));
	}
	assert_int_equal(open_files(), files);
}

/* ---- what is said of it ---- */

static void
test_describe(void **state)
{
	static const char whole[] =
			"pcapng: 4 of 11 frames, 64 to 2048 bytes long, 3734 bytes in "
			"all; IPv4 4, TCP 1, UDP 3; refused 7: 2 empty, 1 cut by the "
			"snap length, 2 shorter than an Ethernet header, 2 too long for "
			"an mbuf";
	struct capture cap;
	struct err err;
	char text[512];

	(void)state;
	assert_int_equal(capture_load(&cap, in_dir("refusals.pcapng"), FRAME_MAX, &err), 0);
	assert_string_equal(capture_describe(&cap.info, text, sizeof(text)), whole);
	for (size_t size = 1; size < sizeof(whole); size++) {
		char *little = malloc(size);

		assert_non_null(little);
		capture_describe(&cap.info, little, size);
		assert_int_equal(strlen(little), size - 1);
		assert_int_equal(strncmp(little, whole, size - 1), 0);
		free(little);
	}
	capture_close(&cap);

	assert_int_equal(capture_load(&cap, in_dir("nano-swapped.pcap"), FRAME_MAX, &err), 0);
	cap.info.cut_short = true;
	assert_string_equal(capture_describe(&cap.info, text, sizeof(text)),
			"pcap, other byte order, nanosecond stamps: 3 of 3 frames, 64 to 1494 bytes "
			"long, 1686 bytes in all; IPv4 3, TCP 1, UDP 2; the file ends within a frame");
	capture_close(&cap);
}

/* ---- saving ---- */

static const uint8_t frame_bytes[65535] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45 };

static const struct capture_frame saved[] = {
	{ 1700000000123456789ULL, 60, frame_bytes },
	{ 0, 1, frame_bytes },
	{ 999999999ULL, 0, frame_bytes },
	{ 4294967295000000001ULL, 65535, frame_bytes },
};

#define NB_SAVED (sizeof(saved) / sizeof(saved[0]))

static void
assert_saved(const char *path, size_t n)
{
	static const uint8_t nano_le[4] = { 0x4d, 0x3c, 0xb2, 0xa1 };
	char reason[PCAP_ERRBUF_SIZE];
	struct pcap_pkthdr *header;
	const u_char *bytes;
	size_t size, i = 0;
	char *file = slurp(path, &size);
	pcap_t *in;

	assert_memory_equal(file, nano_le, sizeof(nano_le));
	free(file);
	in = pcap_open_offline_with_tstamp_precision(path, PCAP_TSTAMP_PRECISION_NANO, reason);
	assert_non_null(in);
	for (; pcap_next_ex(in, &header, &bytes) == 1; i++) {
		const uint32_t seconds = (uint32_t)header->ts.tv_sec;

		assert_true(i < n);
		assert_int_equal(header->caplen, saved[i].len);
		assert_int_equal(header->len, saved[i].len);
		assert_memory_equal(bytes, saved[i].bytes, saved[i].len);
		assert_int_equal(seconds * 1000000000ULL + (uint64_t)header->ts.tv_usec,
				saved[i].ns);
	}
	assert_int_equal(i, n);
	pcap_close(in);
}

static void
test_save(void **state)
{
	const unsigned int files = open_files(), entries = count_entries(dir);
	const char *path = in_dir("saved.pcap");
	struct stat st;
	struct err err;
	mode_t mask = umask(022);

	(void)state;
	assert_int_equal(capture_save(path, saved, NB_SAVED, &err), 0);
	umask(mask);
	assert_saved(path, NB_SAVED);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0644);
	/* Over what is there, and without any frame. */
	assert_int_equal(capture_save(path, NULL, 0, &err), 0);
	assert_saved(path, 0);
	assert_int_equal(count_entries(dir), entries + 1);
	assert_int_equal(open_files(), files);
	unlink(path);
}

static void
test_save_through_link(void **state)
{
	const char *path = in_dir("target.pcap"), *link = in_dir("link.pcap");
	struct stat st;
	struct err err;

	(void)state;
	write_file(path, "old");
	assert_int_equal(symlink(path, link), 0);
	assert_int_equal(capture_save(link, saved, 1, &err), 0);
	assert_int_equal(lstat(link, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_saved(path, 1);
	unlink(link);
	unlink(path);
}

static void
test_save_to_pipe(void **state)
{
	const char *pipe = in_dir("pipe"), *path = in_dir("piped.pcap");
	struct stat st;
	struct err err;
	pid_t reader;

	(void)state;
	assert_int_equal(mkfifo(pipe, 0600), 0);
	reader = copy_in_child(pipe, path);
	assert_int_equal(capture_save(pipe, saved, NB_SAVED, &err), 0);
	reap(reader);
	assert_saved(path, NB_SAVED);
	assert_int_equal(lstat(pipe, &st), 0);
	assert_true(S_ISFIFO(st.st_mode));
	unlink(pipe);
	unlink(path);
}

/* What cannot be written is said, in few frames and in many, and nothing is left behind. */
static void
assert_save_fails(const char *path, const char *cause)
{
	const unsigned int files = open_files(), entries = count_entries(dir);

	for (uint32_t n = 1; n <= NB_SAVED; n += NB_SAVED - 1) {
		struct err err = { 0 };

		assert_int_equal(capture_save(path, saved, n, &err), -1);
		assert_one_line(&err, path);
		assert_non_null(strstr(err.text, cause));
	}
	assert_int_equal(count_entries(dir), entries);
	assert_int_equal(open_files(), files);
}

static void
test_save_fails(void **state)
{
	const char *path = in_dir("kept.pcap");
	rlim_t size;

	(void)state;
	assert_save_fails("/nonexistent/x.pcap", "No such file or directory");
	assert_save_fails("/dev/null/x.pcap", "Not a directory");
	assert_save_fails("/proc/x.pcap", "No such file or directory");
	assert_save_fails(dir, "Is a directory");
	write_file(path, "old");
	size = limit_file_size(30);
	assert_save_fails(path, "File too large");
	limit_file_size(size);
	assert_true(file_is(path, "old"));
	unlink(path);
}

/*
 * A device that is always full. Root could replace the machine's own by a file, should
 * capture_save() have that fault, so root gets one of its own.
 */
static void
test_save_to_full_device(void **state)
{
	const char *path = "/dev/full";
	struct stat st;

	(void)state;
	if (geteuid() == 0) {
		path = in_dir("full");
		/* Not where devices are forbidden, as in some containers. */
		if (mknod(path, S_IFCHR | 0600, makedev(1, 7)) != 0 || access(path, W_OK) != 0)
			skip();
	}
	assert_save_fails(path, "No space left on device");
	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	if (geteuid() == 0)
		unlink(path);
}

/* ---- the captures ---- */

static int
make_captures(void **state)
{
	char command[1024];

	(void)state;
	if (mkdtemp(dir) == NULL)
		return -1;
	snprintf(command, sizeof(command), "/usr/bin/python3 '%s/make_captures.py' %s", TEST_DATA,
			dir);
	return system(command);
}

static int
remove_captures(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_capture),
		cmocka_unit_test(test_pipe),
		cmocka_unit_test(test_cut_everywhere),
		cmocka_unit_test(test_not_files),
		cmocka_unit_test(test_long_name),
		cmocka_unit_test(test_frame_max),
		cmocka_unit_test(test_no_memory_file),
		cmocka_unit_test(test_describe),
		cmocka_unit_test(test_save),
		cmocka_unit_test(test_save_through_link),
		cmocka_unit_test(test_save_to_pipe),
		cmocka_unit_test(test_save_fails),
		cmocka_unit_test(test_save_to_full_device),
	};

	return cmocka_run_group_tests(tests, make_captures, remove_captures);
}
