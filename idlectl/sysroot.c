/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "sysroot.h"

static char *prefix; /* NULL: this machine */

int
sys_root(const char *dir, struct err *err)
{
	struct stat st;

	if (dir == NULL)
		return 0;
	if (stat(dir, &st) != 0)
		return err_set(err, EXIT_USAGE, "--sysroot %s: %s", dir, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return err_set(err, EXIT_USAGE, "--sysroot %s: not a directory", dir);
	prefix = realpath(dir, NULL);
	if (prefix == NULL)
		return err_set(err, EXIT_USAGE, "--sysroot %s: %s", dir, strerror(errno));
	/* Linux's files of that tree only: the CPU that this runs on says nothing of it. */
	if (setenv("HWLOC_FSROOT", prefix, 1) != 0 ||
			setenv("HWLOC_COMPONENTS", "linux,stop", 1) != 0 ||
			setenv("HWLOC_THISSYSTEM", "0", 1) != 0)
		return err_set(err, EXIT_FAILED, "out of memory");
	return 0;
}

bool
sys_live(void)
{
	return prefix == NULL;
}

static char *
format(const char *start, const char *fmt, va_list ap)
{
	char *text, *whole;

	if (vasprintf(&text, fmt, ap) < 0)
		abort();
	if (start == NULL)
		return text;
	if (asprintf(&whole, "%s%s", start, text) < 0)
		abort();
	free(text);
	return whole;
}

/* The arguments after fmt as a path of the machine that is looked at. */
#define PATH(path, fmt) \
	do { \
		va_list ap; \
\
		va_start(ap, fmt); \
		path = format(prefix, fmt, ap); \
		va_end(ap); \
	} while (0)

char *
sys_path(const char *fmt, ...)
{
	char *path;

	PATH(path, fmt);
	return path;
}

char *
sys_format(const char *fmt, ...)
{
	char *text;
	va_list ap;

	va_start(ap, fmt);
	text = format(NULL, fmt, ap);
	va_end(ap);
	return text;
}

/* Files of /sys and /proc do not tell their size. */
static char *
read_file(const char *path)
{
	size_t size = 0, room = 4096;
	char *text;
	ssize_t n;
	/* O_NONBLOCK: in a tree it may be anything, a pipe that nobody writes to as well. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return NULL;
	text = malloc(room);
	if (text == NULL)
		abort();
	while ((n = read(fd, text + size, room - size - 1)) > 0) {
		size += (size_t)n;
		if (room - size > 1)
			continue;
		room *= 2;
		text = realloc(text, room);
		if (text == NULL)
			abort();
	}
	if (n < 0) {
		int saved = errno;

		free(text);
		close(fd);
		errno = saved;
		return NULL;
	}
	close(fd);
	while (size > 0 && text[size - 1] == '\n')
		size--;
	text[size] = '\0';
	return text;
}

char *
sys_read(const char *fmt, ...)
{
	char *path, *text;

	PATH(path, fmt);
	text = read_file(path);
	free(path);
	return text;
}

static bool
parse_u64(uint64_t *value, const char *text)
{
	char *end;
	uint64_t number = strtoull(text, &end, 10);

	if (end != text)
		*value = number;
	return end != text;
}

bool
sys_read_u64(uint64_t *value, const char *fmt, ...)
{
	char *path, *text;
	bool found;

	PATH(path, fmt);
	text = read_file(path);
	free(path);
	if (text == NULL)
		return false;
	found = parse_u64(value, text);
	free(text);
	return found;
}

int
sys_open(const char *fmt, ...)
{
	char *path;
	int fd;

	PATH(path, fmt);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	free(path);
	return fd;
}

bool
sys_reread_u64(uint64_t *value, int fd)
{
	char text[32];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return false;
	text[n] = '\0';
	return parse_u64(value, text);
}

/* One without a zero in front, which to hwloc is octal. */
static bool
is_number(const char *text)
{
	return isdigit((unsigned char)text[0]) &&
			(text[0] != '0' || !isdigit((unsigned char)text[1]));
}

/*
 * hwloc takes a word, or nothing, for all CPUs, believes in any number, and knows lists without an end
 * ("4-"), which no kernel writes.
 */
static bool
is_list(const char *text)
{
	unsigned long from, to;
	char *end;

	if (*text == '\0')
		return true;
	for (;; text = end + 1) {
		if (!is_number(text))
			return false;
		from = to = strtoul(text, &end, 10);
		if (*end == '-' && is_number(end + 1))
			to = strtoul(end + 1, &end, 10);
		if (from > to || to > LIST_MAX || (*end != '\0' && *end != ','))
			return false;
		if (*end == '\0')
			return true;
	}
}

bool
sys_read_list(hwloc_bitmap_t set, const char *fmt, ...)
{
	char *path, *text;
	bool read;

	PATH(path, fmt);
	text = read_file(path);
	free(path);
	hwloc_bitmap_zero(set);
	read = text != NULL && is_list(text);
	if (read && text[0] != '\0')
		hwloc_bitmap_list_sscanf(set, text);
	free(text);
	return read;
}

/*
 * A file of the kernel has the old value or the new one, whenever the writer is killed. So it is with
 * a file of a tree: one write() covers all of the old text, and newlines at the end do not count.
 */
static int
write_line(int fd, const char *text)
{
	struct stat st;
	size_t len = strlen(text) + 1, room = len;
	char *line;
	ssize_t n;

	if (fstat(fd, &st) != 0)
		return -1;
	if (!sys_live() && (size_t)st.st_size > room)
		room = (size_t)st.st_size;
	line = malloc(room);
	if (line == NULL)
		abort();
	memset(line, '\n', room);
	memcpy(line, text, len - 1);
	errno = EIO;
	n = write(fd, line, room);
	free(line);
	if (n != (ssize_t)room)
		return -1;
	return sys_live() ? 0 : ftruncate(fd, (off_t)len);
}

int
sys_write(const char *name, const char *text)
{
	char *path = sys_path("%s", name);
	int saved, rc, fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK);

	free(path);
	if (fd < 0)
		return -1;
	rc = write_line(fd, text);
	saved = errno;
	if (close(fd) != 0 && rc == 0)
		return -1;
	errno = saved;
	return rc;
}

bool
sys_regular(const char *fmt, ...)
{
	char *path;
	struct stat st;
	bool regular;

	PATH(path, fmt);
	regular = stat(path, &st) == 0 && S_ISREG(st.st_mode);
	free(path);
	return regular;
}

bool
sys_exists(const char *fmt, ...)
{
	char *path;
	bool exists;

	PATH(path, fmt);
	exists = access(path, F_OK) == 0;
	free(path);
	return exists;
}

static int
not_dots(const struct dirent *entry)
{
	return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

char **
sys_list(const char *fmt, ...)
{
	struct dirent **found = NULL;
	char *path, **names;
	int n;

	PATH(path, fmt);
	n = scandir(path, &found, not_dots, versionsort);
	free(path);
	if (n < 0)
		n = 0;
	names = calloc((size_t)n + 1, sizeof(*names));
	if (names == NULL)
		abort();
	for (int i = 0; i < n; i++) {
		names[i] = sys_format("%s", found[i]->d_name);
		free(found[i]);
	}
	free(found);
	return names;
}

void
sys_free_list(char **names)
{
	for (char **name = names; *name != NULL; name++)
		free(*name);
	free(names);
}

#if defined(__x86_64__)
const char *
sys_hypervisor(void)
{
	static char name[13];
	static bool read;
	uint32_t a, b, c, d;

	if (read || !sys_live())
		return name;
	read = true;
	__cpuid(1, a, b, c, d);
	if ((c & (1u << 31)) == 0) /* Intel SDM: reserved for hypervisors to set */
		return name;
	__cpuid(0x40000000, a, b, c, d);
	memcpy(name, &b, 4);
	memcpy(name + 4, &c, 4);
	memcpy(name + 8, &d, 4);
	for (char *at = name; *at != '\0'; at++)
		if (!isprint((unsigned char)*at))
			*at = '?';
	return name;
}
#else
const char *
sys_hypervisor(void)
{
	return "";
}
#endif

bool
sys_emulated(void)
{
	char *vendor;
	bool bochs;

	/* Old firmware of KVM guests calls itself Bochs as well. */
	if (sys_hypervisor()[0] != '\0')
		return strcmp(sys_hypervisor(), "TCGTCGTCGTCG") == 0;
	vendor = sys_read("/sys/class/dmi/id/bios_vendor");
	bochs = vendor != NULL && strstr(vendor, "Bochs") != NULL;
	free(vendor);
	return bochs;
}
