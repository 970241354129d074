/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LAB_GUEST_H
#define LAB_GUEST_H

/*
 * For the test programs that run inside an emulated machine: TAP, files, CPUs. Each is one file, statically
 * linked: the machine has no libraries of ours.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sibidle.h"

static unsigned int checks, failures;

__attribute__((format(printf, 2, 3), unused)) static bool
ok(bool condition, const char *text, ...)
{
	va_list ap;

	checks++;
	failures += !condition;
	printf("%s %u - ", condition ? "ok" : "not ok", checks);
	va_start(ap, text);
	vprintf(text, ap);
	va_end(ap);
	printf("\n");
	fflush(stdout);
	return condition;
}

/* Anything the tests themselves need and do not get. */
__attribute__((format(printf, 1, 2), noreturn, unused)) static void
give_up(const char *text, ...)
{
	va_list ap;

	printf("Bail out! ");
	va_start(ap, text);
	vprintf(text, ap);
	va_end(ap);
	printf(": %s\n", strerror(errno));
	exit(2);
}

static inline void
pause_ms(unsigned int ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000L };

	nanosleep(&ts, NULL);
}

static inline bool
put(const char *text, const char *path, ...)
{
	char name[256];
	va_list ap;
	bool done;
	int fd;

	va_start(ap, path);
	vsnprintf(name, sizeof(name), path, ap);
	va_end(ap);
	fd = open(name, O_WRONLY);
	if (fd < 0)
		return false;
	done = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	return done;
}

/* First line of a file, "" if there is none. */
static inline const char *
get(const char *path, ...)
{
	static char line[512];
	char name[256];
	va_list ap;
	ssize_t n;
	int fd;

	va_start(ap, path);
	vsnprintf(name, sizeof(name), path, ap);
	va_end(ap);
	line[0] = '\0';
	fd = open(name, O_RDONLY);
	if (fd < 0)
		return line;
	n = read(fd, line, sizeof(line) - 1);
	line[n > 0 ? n : 0] = '\0';
	line[strcspn(line, "\n")] = '\0';
	close(fd);
	return line;
}

static inline int
device(int flags)
{
	int fd = open(SIBIDLE_DEVICE, flags | O_CLOEXEC);

	if (fd < 0)
		give_up("%s", SIBIDLE_DEVICE);
	return fd;
}

/* Move the calling thread. False if the CPU is off line. */
static inline bool
move_to(unsigned int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) == 0;
}

static inline void
run_on(unsigned int cpu)
{
	if (!move_to(cpu))
		give_up("affinity to CPU %u", cpu);
}

static inline unsigned int
cpus(void)
{
	return (unsigned int)sysconf(_SC_NPROCESSORS_CONF);
}

static inline void
offline(unsigned int cpu, bool off)
{
	if (!put(off ? "0" : "1", "/sys/devices/system/cpu/cpu%u/online", cpu))
		give_up("CPU %u %s line", cpu, off ? "off" : "on");
}

/* Everything an ill-behaved program may send. Deterministic for a seed. */
static inline uint64_t
next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static inline uint32_t
odd_number(uint64_t *rnd)
{
	static const uint32_t odd[] = { 0, 1, 2, 3, 4, 7, 8, 40, 63, 64, 255, 4096, 65536,
		0x7fffffff, 0x80000000, 0xffffffff, SIBIDLE_TTL_MAX_MS, SIBIDLE_TTL_MAX_MS + 1 };
	uint64_t r = next_random(rnd);

	return r % 4 == 0 ? (uint32_t)(r >> 32) : odd[(r >> 8) % (sizeof(odd) / sizeof(odd[0]))];
}

static inline uint64_t
now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* Interrupts of a kind that a CPU has had; all CPUs are on line. */
static inline unsigned long
interrupts(const char *kind, unsigned int cpu)
{
	char line[512];
	unsigned long count = 0;
	FILE *f = fopen("/proc/interrupts", "r");

	if (f == NULL)
		give_up("/proc/interrupts");
	while (fgets(line, sizeof(line), f) != NULL) {
		char *at = line + strspn(line, " ");

		if (strncmp(at, kind, strlen(kind)) != 0)
			continue;
		at += strlen(kind);
		for (unsigned int c = 0; c <= cpu; c++)
			count = strtoul(at, &at, 10);
	}
	fclose(f);
	return count;
}

#endif
