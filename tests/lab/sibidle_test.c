/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What sibidle.ko promises, tried inside an emulated machine. Every command prints TAP lines and
 * ends with 1 if one of them is "not ok". Statically linked: the machine has no libraries of ours.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sibidle.h"

#define OURS "/lib/sibfwd/sibidle.ko"
#define IBRS 1ULL /* IA32_SPEC_CTRL bit 0 */

static const char *const mode_names[] = { "stock", "keep", "clear" };
static unsigned int checks, failures;

__attribute__((format(printf, 2, 3))) static bool
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
__attribute__((format(printf, 1, 2), noreturn)) static void
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

static void
pause_ms(unsigned int ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000L };

	nanosleep(&ts, NULL);
}

static bool
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
static const char *
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

static int
load(const char *file, const char *parameters)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	int rc;

	if (fd < 0)
		give_up("%s", file);
	rc = syscall(SYS_finit_module, fd, parameters, 0) == 0 ? 0 : -errno;
	close(fd);
	return rc;
}

static int
unload(const char *name)
{
	return syscall(SYS_delete_module, name, O_NONBLOCK) == 0 ? 0 : -errno;
}

static void
must_load(const char *file, const char *parameters)
{
	int rc = load(file, parameters);

	errno = -rc;
	if (rc != 0)
		give_up("%s does not load", file);
}

static int
unload_driver(void)
{
	put("1", "/sys/module/sibidle_testdrv/parameters/unregister");
	return unload("sibidle_testdrv");
}

static int
device(int flags)
{
	int fd = open(SIBIDLE_DEVICE, flags | O_CLOEXEC);

	if (fd < 0)
		give_up("%s", SIBIDLE_DEVICE);
	return fd;
}

static unsigned int refusal; /* of the last set() */

static int
set_more(int fd, unsigned int cpu, unsigned int mode, unsigned int flags, unsigned int latency,
		unsigned int ttl)
{
	struct sibidle_set s = { .size = sizeof(s),
		.cpu = cpu,
		.mode = mode,
		.flags = flags,
		.latency_us = latency,
		.ttl_ms = ttl };
	int rc = ioctl(fd, SIBIDLE_IOC_SET, &s) == 0 ? 0 : -errno;

	refusal = s.refusal;
	return rc;
}

static int
set(int fd, unsigned int cpu, unsigned int mode)
{
	return set_more(fd, cpu, mode, 0, 0, 0);
}

/* Whether a SET is refused for that reason. */
static bool
refused(int fd, unsigned int cpu, unsigned int mode, unsigned int reason)
{
	return set(fd, cpu, mode) == -EOPNOTSUPP && refusal == reason;
}

static struct sibidle_stats
stats(int fd, unsigned int cpu)
{
	struct sibidle_stats s = { .size = sizeof(s), .cpu = cpu };

	if (ioctl(fd, SIBIDLE_IOC_STATS, &s) != 0)
		give_up("STATS of CPU %u", cpu);
	return s;
}

static struct sibidle_info
info(int fd)
{
	struct sibidle_info i = { .size = sizeof(i) };

	if (ioctl(fd, SIBIDLE_IOC_INFO, &i) != 0)
		give_up("INFO");
	return i;
}

static struct sibidle_register
spec_ctrl(int fd, unsigned int cpu)
{
	struct sibidle_register r = { .size = sizeof(r), .cpu = cpu };

	if (ioctl(fd, SIBIDLE_IOC_REGISTER, &r) != 0)
		give_up("REGISTER of CPU %u", cpu);
	return r;
}

static uint64_t
entries(const struct sibidle_stats *s, unsigned int mode)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < SIBIDLE_STATES_MAX; i++)
		sum += s->cells[mode][i].entries;
	return sum;
}

static void
run_on(unsigned int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) != 0)
		give_up("affinity to CPU %u", cpu);
}

static unsigned int
cpus(void)
{
	return (unsigned int)sysconf(_SC_NPROCESSORS_CONF);
}

static void
offline(unsigned int cpu, bool off)
{
	if (!put(off ? "0" : "1", "/sys/devices/system/cpu/cpu%u/online", cpu))
		give_up("CPU %u %s line", cpu, off ? "off" : "on");
}

/* Allow only one idle state of a CPU, or all with state < 0. */
static void
only_state(unsigned int cpu, int state)
{
	for (int i = 0; i < SIBIDLE_STATES_MAX; i++)
		put(state >= 0 && i != state ? "1" : "0",
				"/sys/devices/system/cpu/cpu%u/cpuidle/state%d/disable", cpu, i);
}

/* The test driver's state that must not be entered without the hook. */
static void
disable_leak(unsigned int cpu)
{
	for (int i = 0; i < SIBIDLE_STATES_MAX; i++)
		if (strcmp(get("/sys/devices/system/cpu/cpu%u/cpuidle/state%d/name", cpu, i),
				    "LEAK") == 0)
			put("1", "/sys/devices/system/cpu/cpu%u/cpuidle/state%d/disable", cpu, i);
}

/* A thread that wakes up on its CPU all the time, so that the CPU enters idle all the time. */
struct waker {
	pthread_t thread;
	unsigned int cpu;
	unsigned int us;
	atomic_bool stop;
};

static void *
wake(void *arg)
{
	struct waker *w = arg;
	struct timespec ts = { 0, w->us * 1000L };

	/* A CPU that went off line meanwhile is no failure here. */
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(w->cpu, &set);
	while (!atomic_load(&w->stop)) {
		sched_setaffinity(0, sizeof(set), &set);
		nanosleep(&ts, NULL);
	}
	return NULL;
}

static void
wakers_start(struct waker *w, unsigned int first, unsigned int n, unsigned int us)
{
	for (unsigned int i = 0; i < n; i++) {
		w[i].cpu = first + i;
		w[i].us = us;
		atomic_store(&w[i].stop, false);
		if (pthread_create(&w[i].thread, NULL, wake, &w[i]) != 0)
			give_up("threads");
	}
}

static void
wakers_stop(struct waker *w, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		atomic_store(&w[i].stop, true);
	for (unsigned int i = 0; i < n; i++)
		pthread_join(w[i].thread, NULL);
}

/* Wait up to 5 s for a CPU to be nobody's; how its lease ended, or -1. */
static int
wait_free(int fd, unsigned int cpu)
{
	for (int i = 0; i < 500; i++) {
		struct sibidle_stats s = stats(fd, cpu);

		if (s.owner == SIBIDLE_FREE && s.mode == SIBIDLE_STOCK)
			return (int)s.ended;
		pause_ms(10);
	}
	return -1;
}

/* Refusals and the count-only form, with our module as init loaded it. */
static void
test_refusals(void)
{
	int fd = device(O_RDWR);
	struct sibidle_info i = info(fd);

	ok(i.abi == SIBIDLE_ABI && i.nr_cpus >= cpus(), "INFO: ABI %u, %u CPUs", i.abi, i.nr_cpus);
	ok(i.driver[0] == '\0' && refused(fd, 1, SIBIDLE_STOCK, SIBIDLE_NO_DRIVER),
			"without an idle driver stock is refused, and says so");
	ok(refused(fd, 1, SIBIDLE_CLEAR, SIBIDLE_OTHER_MITIGATION),
			"clear is refused under another mitigation, and says so");
	must_load("/lib/lab/sibidle_testdrv.ko", "");
	ok(refused(fd, 1, SIBIDLE_KEEP, SIBIDLE_OTHER_DRIVER),
			"keep is refused with a driver that is not intel_idle, and says so");
	ok(strncmp(get("/sys/class/misc/sibidle/keep"), "no: ", 4) == 0, "sysfs says so: %s",
			get("/sys/class/misc/sibidle/keep"));
	ok(set(fd, 1, SIBIDLE_STOCK) == 0, "stock is there: the module counts");
	close(fd);
	if (unload_driver() != 0)
		give_up("the test driver does not unload");
}

static unsigned long
storm_count(const char *name)
{
	return strtoul(get("/sys/module/sibidle_storm/parameters/%s", name), NULL, 10);
}

static void
test_counting(void)
{
	struct waker w[2];
	int fd = device(O_RDWR);
	struct sibidle_stats before, after;

	must_load("/lib/lab/sibidle_testdrv.ko", "");
	ok(strcmp(get("/sys/class/misc/sibidle/hook"), "removed") == 0,
			"a loaded module swaps nothing before the first SET");
	ok(set(fd, 1, SIBIDLE_STOCK) == 0 &&
					strcmp(get("/sys/class/misc/sibidle/hook"), "installed") ==
							0,
			"the first SET hooks");
	wakers_start(w, 0, 2, 2000);
	for (int state = 1; state <= 3; state++) {
		/* LEAK is disabled elsewhere; Linux 6.3 and later warns if it leaks. */
		only_state(1, state);
		pause_ms(20);
		before = stats(fd, 1);
		pause_ms(300);
		after = stats(fd, 1);
		ok(after.cells[0][state].entries > before.cells[0][state].entries + 10 &&
						after.cells[0][state].ticks >
								before.cells[0][state].ticks,
				"entries and ticks are counted in state %s: %llu entries",
				get("/sys/devices/system/cpu/cpu1/cpuidle/state%d/name", state),
				(unsigned long long)(after.cells[0][state].entries -
						before.cells[0][state].entries));
		for (int other = 1; other <= 3; other++)
			if (other != state &&
					after.cells[0][other].entries !=
							before.cells[0][other].entries)
				ok(false, "state %d counted too", other);
	}
	only_state(1, 2);
	pause_ms(20);
	/* What test_storm() looks for is there to be seen: this state takes interrupts inside. */
	must_load("/lib/lab/sibidle_storm.ko", "cpu=1 inside=[sibidle_testdrv]");
	pause_ms(200);
	ok(storm_count("interrupted") > 0,
			"a state that sleeps with interrupts on is told by them (%lu)",
			storm_count("interrupted"));
	if (unload("sibidle_storm") != 0)
		give_up("the storm does not end");
	ok(set_more(fd, 1, SIBIDLE_STOCK, SIBIDLE_SET_LATENCY, 5, 0) == 0,
			"a latency limit is set");
	only_state(1, -1);
	disable_leak(1);
	pause_ms(20);
	before = stats(fd, 1);
	pause_ms(300);
	after = stats(fd, 1);
	ok(after.cells[0][2].entries == before.cells[0][2].entries &&
					after.cells[0][1].entries > before.cells[0][1].entries,
			"with a limit of 5 us only the states of 5 us and less are entered");
	ok(set(fd, 1, SIBIDLE_STOCK) == 0, "and taken back");
	pause_ms(20);
	before = stats(fd, 1);
	pause_ms(300);
	after = stats(fd, 1);
	ok(after.cells[0][2].entries > before.cells[0][2].entries, "deeper states are back");
	wakers_stop(w, 2);
	close(fd);
	ok(strcmp(get("/sys/class/misc/sibidle/hook"), "removed") == 0, "the last close unhooks");
	ok(unload_driver() == 0, "the idle driver is free again");
}

/* A process that leases a CPU and then waits; the write end of its life is its pid. */
static pid_t
holder(unsigned int cpu, unsigned int mode)
{
	int ready[2];
	char byte;
	pid_t pid;

	if (pipe(ready) != 0 || (pid = fork()) < 0)
		give_up("a child");
	if (pid == 0) {
		int fd = device(O_RDWR);

		if (set(fd, cpu, mode) != 0 || write(ready[1], "x", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		give_up("the child's lease");
	close(ready[0]);
	return pid;
}

/* Leases, with whatever mode the machine has beside stock. */
static void
test_leases(unsigned int mode)
{
	int first = device(O_RDWR), second = device(O_RDWR), reader = device(O_RDONLY), copy;
	pid_t pid;

	ok(set(reader, 1, SIBIDLE_STOCK) == -EBADF,
			"a descriptor open for reading changes nothing");
	ok(set(first, 1, mode) == 0, "SET %s", mode_names[mode]);
	ok(set(second, 1, mode) == -EBUSY, "the second opener gets EBUSY");
	ok(stats(first, 1).owner == SIBIDLE_MINE && stats(second, 1).owner == SIBIDLE_OTHERS,
			"both see whose it is");
	ok(stats(reader, 1).mode == mode && stats(reader, 0).mode == SIBIDLE_STOCK,
			"the mode is the CPU's alone");
	ok(set(second, 0, mode) == 0, "another CPU is the second one's");
	ok(unload("sibidle") == -EWOULDBLOCK, "rmmod is refused while leased");
	copy = dup(first);
	close(first);
	ok(stats(reader, 1).owner == SIBIDLE_OTHERS, "a duplicate keeps the lease");
	pid = fork();
	if (pid == 0) {
		pause();
		_exit(0);
	}
	close(copy);
	ok(stats(reader, 1).mode == mode, "so does a child");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	ok(wait_free(reader, 1) == SIBIDLE_CLOSED, "with the last one it ends, stock again");
	ok(stats(reader, 0).mode == mode, "and the other lease stays");
	close(second);
	ok(wait_free(reader, 0) == SIBIDLE_CLOSED, "until it is closed");

	pid = holder(1, mode);
	ok(stats(reader, 1).mode == mode, "a process holds a lease");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	ok(wait_free(reader, 1) == SIBIDLE_CLOSED, "kill -9 of it gives the CPU back");

	first = device(O_RDWR);
	ok(set_more(first, 1, mode, SIBIDLE_SET_TTL, 0, 200) == 0 && stats(first, 1).mode == mode,
			"a lease with a time-to-live");
	ok(wait_free(first, 1) == SIBIDLE_EXPIRED, "ends by itself");
	ok(set_more(first, 1, mode, SIBIDLE_SET_TTL, 0, 200) == 0 && set(first, 1, mode) == 0,
			"a SET without one takes it away");
	pause_ms(400);
	ok(stats(first, 1).mode == mode, "and the lease lasts");

	offline(1, true);
	ok(stats(first, 1).ended == SIBIDLE_OFFLINE && stats(first, 1).owner == SIBIDLE_FREE,
			"off line ends the lease");
	ok(refused(first, 1, mode, SIBIDLE_CPU_OFFLINE),
			"SET of a CPU that is off line is refused, and says so");
	offline(1, false);
	ok(stats(first, 1).mode == SIBIDLE_STOCK && set(first, 1, mode) == 0,
			"on line it is stock and can be leased");

	/* Suspend to idle, which pm_test ends once the devices have gone to sleep and come back. */
	if (!put("devices", "/sys/power/pm_test") || !put("freeze", "/sys/power/state"))
		ok(false, "suspend to idle can be tried");
	else
		ok(stats(first, 1).ended == SIBIDLE_SUSPEND &&
						stats(first, 1).mode == SIBIDLE_STOCK,
				"suspend ends the lease");
	close(first);
	close(reader);
}

/* Another module on top. */
static void
test_chain(unsigned int mode)
{
	int fd = device(O_RDWR);

	ok(set(fd, 1, mode) == 0, "hooked");
	must_load("/lib/lab/sibidle_chain.ko", "");
	close(fd);
	ok(strcmp(get("/sys/class/misc/sibidle/hook"), "chained") == 0,
			"a hook on top is detected at close: %s",
			get("/sys/class/misc/sibidle/hook"));
	ok(unload("sibidle") == -EWOULDBLOCK, "the module stays pinned");
	pause_ms(200);
	fd = device(O_RDWR);
	ok((info(fd).flags & SIBIDLE_CHAINED) != 0, "INFO says so");
	ok(stats(fd, 1).mode == SIBIDLE_STOCK && stats(fd, 1).owner == SIBIDLE_FREE,
			"the CPU is stock all the same");
	ok(unload("sibidle_chain") == 0, "the other module goes");
	close(fd);
	ok(strcmp(get("/sys/class/misc/sibidle/hook"), "removed") == 0,
			"the next close puts the callbacks back");
}

struct slab {
	char name[64];
	unsigned long objects; /* in use, whole slabs for those that a CPU has at hand */
	unsigned long a_slab; /* objects in a slab */
};

/* All slab caches, once what is freed late has been freed. Returns how many. */
static size_t
slabs(struct slab *list, size_t room)
{
	struct dirent *entry;
	char line[512];
	size_t n = 0;
	DIR *dir;
	FILE *f;

	pause_ms(1000);
	/* Each CPU's own slabs count as full until they are given back. */
	dir = opendir("/sys/kernel/slab");
	while (dir != NULL && (entry = readdir(dir)) != NULL)
		put("1", "/sys/kernel/slab/%s/shrink", entry->d_name);
	if (dir != NULL)
		closedir(dir);
	f = fopen("/proc/slabinfo", "r");
	if (f == NULL)
		give_up("/proc/slabinfo");
	while (n < room && fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "%63s %lu %*u %*u %lu", list[n].name, &list[n].objects,
				    &list[n].a_slab) == 3)
			n++;
	fclose(f);
	return n;
}

/* A CPU that goes off and on line all the time. */
static void *
plug(void *arg)
{
	struct waker *w = arg;

	while (!atomic_load(&w->stop)) {
		offline(w->cpu, true);
		pause_ms(w->us / 1000);
		offline(w->cpu, false);
		pause_ms(w->us / 1000);
	}
	return NULL;
}

/* No cache grew as if each of so many cycles had lost half an object. */
static void
no_leak(const struct slab *before, size_t nb, const struct slab *after, size_t na,
		unsigned long cycles)
{
	const char *worst_name = "nothing";
	unsigned long worst = 0;

	for (size_t i = 0; i < nb; i++)
		for (size_t k = 0; k < na; k++) {
			unsigned long slack = before[i].a_slab * cpus();
			unsigned long least = before[i].objects +
					(slack > cycles / 2 ? slack : cycles / 2);

			if (strcmp(before[i].name, after[k].name) == 0 &&
					after[k].objects > least &&
					after[k].objects - before[i].objects > worst) {
				worst = after[k].objects - before[i].objects;
				worst_name = before[i].name;
			}
		}
	ok(worst == 0, "no leak in %lu cycles: %s grew (%lu objects)", cycles, worst_name, worst);
}

/* A line of /proc/meminfo, KiB. */
static unsigned long
meminfo(const char *name)
{
	char line[256];
	unsigned long kib = 0;
	FILE *f = fopen("/proc/meminfo", "r");

	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, name, strlen(name)) == 0)
			kib = strtoul(line + strlen(name), NULL, 10);
	if (f == NULL)
		give_up("/proc/meminfo");
	fclose(f);
	return kib;
}

/* Opening and closing leaves nothing behind. */
static void
test_open(unsigned long n)
{
	static struct slab before[512], after[512];
	size_t nb = slabs(before, 512), na;

	for (unsigned long i = 0; i < n; i++) {
		int fd = device(O_RDWR);

		info(fd);
		stats(fd, 0);
		close(fd);
	}
	na = slabs(after, 512);
	no_leak(before, nb, after, na, n);
}

/* One cycle of load, hook, toggle, unhook, unload. Returns 0 or what failed. */
static int
cycle(const char *module, unsigned long i, unsigned int *toggles)
{
	unsigned int count = cpus();
	int fd, rc = 0;

	must_load(module, "");
	fd = device(O_RDWR);
	for (unsigned int t = 0; t < 6 && rc == 0; t++) {
		unsigned int cpu = (unsigned int)(i + t) % count;

		rc = set(fd, cpu, t % 2 == 0 ? SIBIDLE_KEEP : SIBIDLE_STOCK);
		/* The last CPU comes and goes. */
		if (cpu == count - 1 && rc == -EOPNOTSUPP && refusal == SIBIDLE_CPU_OFFLINE)
			rc = 0;
		*toggles += 1;
		pause_ms(t % 3);
	}
	close(fd);
	/* Once the hook is gone nobody may be in it: its code goes next. */
	fd = device(O_RDONLY);
	for (unsigned int cpu = 0; cpu < count && rc == 0; cpu++)
		if (stats(fd, cpu).idle_state != SIBIDLE_AWAKE)
			rc = -EBUSY;
	close(fd);
	return rc != 0 ? rc : unload("sibidle");
}

/* Cycles under idle load, with the last CPU going off and on line. */
static void
test_cycles(const char *module, unsigned long n)
{
	static struct slab before[512], after[512];
	unsigned int count = cpus(), toggles = 0;
	struct waker w[16], plugger = { .cpu = count - 1, .us = 20000 };
	unsigned long warm = n / 5 + 1, percpu = 0, vmalloc = 0;
	char references[16];
	size_t slabs_before = 0, slabs_after;
	int rc = 0;

	must_load("/lib/lab/sibidle_testdrv.ko", "name=intel_idle");
	snprintf(references, sizeof(references), "%s", get("/sys/module/sibidle_testdrv/refcnt"));
	/* Some CPUs enter idle all the time, some sleep for longer than the module takes to go. */
	wakers_start(w, 0, count / 2, 1000);
	wakers_start(w + count / 2, count / 2, count - count / 2, 300000);
	for (unsigned long i = 0; i < n && rc == 0; i++) {
		/* Going off line wakes all CPUs, so half of the cycles are without. */
		if (i % 20 == 0) {
			atomic_store(&plugger.stop, false);
			if (pthread_create(&plugger.thread, NULL, plug, &plugger) != 0)
				give_up("threads");
		} else if (i % 20 == 10) {
			atomic_store(&plugger.stop, true);
			pthread_join(plugger.thread, NULL);
		}
		rc = cycle(module, i, &toggles);
		if (i + 1 == warm) {
			slabs_before = slabs(before, 512);
			percpu = meminfo("Percpu:");
			vmalloc = meminfo("VmallocUsed:");
		}
	}
	slabs_after = slabs(after, 512);
	percpu = meminfo("Percpu:") - percpu;
	vmalloc = meminfo("VmallocUsed:") - vmalloc;
	if (!atomic_exchange(&plugger.stop, true))
		pthread_join(plugger.thread, NULL);
	wakers_stop(w, count);
	ok(rc == 0, "%lu cycles of load, hook, toggle, unhook, unload (%u toggles): %s", n, toggles,
			strerror(-rc));
	no_leak(before, slabs_before, after, slabs_after, n - warm);
	/* What the module has of these is more than 8 KiB each. */
	ok((long)percpu < (long)(n - warm) * 4 && (long)vmalloc < (long)(n - warm) * 4,
			"nor did per-CPU memory (%ld KiB) or vmalloc's (%ld KiB)", (long)percpu,
			(long)vmalloc);
	for (unsigned int cpu = 0; cpu < count; cpu++) {
		run_on(cpu);
		ok(sched_getcpu() == (int)cpu, "CPU %u is alive", cpu);
	}
	ok(strcmp(references, get("/sys/module/sibidle_testdrv/refcnt")) == 0 &&
					references[0] != '\0',
			"the idle driver has its %s references again", references);
	ok(unload_driver() == 0, "nothing holds the idle driver");
}

/* Everything an ill-behaved program may send. Deterministic for a seed. */
static uint64_t
next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static uint32_t
odd_number(uint64_t *rnd)
{
	static const uint32_t odd[] = { 0, 1, 2, 3, 4, 7, 8, 40, 63, 64, 255, 4096, 65536,
		0x7fffffff, 0x80000000, 0xffffffff, SIBIDLE_TTL_MAX_MS, SIBIDLE_TTL_MAX_MS + 1 };
	uint64_t r = next_random(rnd);

	return r % 4 == 0 ? (uint32_t)(r >> 32) : odd[(r >> 8) % (sizeof(odd) / sizeof(odd[0]))];
}

static void
test_fuzz(unsigned long n, uint64_t seed)
{
	static const unsigned long requests[] = { SIBIDLE_IOC_INFO, SIBIDLE_IOC_SET,
		SIBIDLE_IOC_STATS, SIBIDLE_IOC_REGISTER };
	static const unsigned int sizes[] = { sizeof(struct sibidle_info),
		sizeof(struct sibidle_set), sizeof(struct sibidle_stats),
		sizeof(struct sibidle_register) };
	size_t page = 4096, room = 4 * page;
	unsigned char *area = mmap(NULL, room + page, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned long accepted = 0, calls = 0;
	uint64_t rnd = seed;
	int fds[8], quiet = 0;

	/* The page behind the area is not there: arguments may straddle its edge. */
	if (area == MAP_FAILED || mprotect(area + room, page, PROT_NONE) != 0)
		give_up("memory");
	for (int i = 0; i < 8; i++)
		fds[i] = device(i % 3 == 0 ? O_RDONLY : O_RDWR);
	while (calls < n) {
		uint64_t r = next_random(&rnd);
		unsigned int which = (r >> 4) % 4, slot = (r >> 8) % 8;
		unsigned long request = requests[which];
		uint32_t *words = (uint32_t *)area;
		void *arg = area;

		for (unsigned int i = 0; i < 12; i++)
			words[i] = r & (1ULL << (20 + i)) ? odd_number(&rnd) : 0;
		if (r % 8 != 0)
			words[0] = sizes[which];
		switch ((r >> 40) % 16) {
		case 0: /* another size, direction or number */
			request ^= 1UL << (r >> 50) % 32;
			break;
		case 1: /* runs into memory that is not there */
			arg = area + room - (r >> 50) % (sizes[which] + 8);
			if ((uintptr_t)arg % 4 == 0 && (unsigned char *)arg + 48 < area + room)
				memcpy(arg, area, 48);
			break;
		case 2:
			arg = (void *)(uintptr_t)next_random(&rnd);
			break;
		case 3: { /* duplicated, then one closed */
			int copy = dup(fds[slot]);

			close(fds[slot]);
			fds[slot] = copy;
			break;
		}
		case 4: /* a new one for it */
			close(fds[slot]);
			fds[slot] = device(r & 1 ? O_RDONLY : O_RDWR);
			break;
		case 5: /* a closed one */
			if (ioctl(-1, request, arg) == 0 || errno != EBADF)
				quiet = -1;
			break;
		case 6: /* a child that calls, and one that becomes another program */
			if (r % 64 == 6) {
				pid_t pid = fork();

				if (pid == 0) {
					ioctl(fds[slot], request, arg);
					if (r & 0x10000000)
						execl("/bin/busybox", "true", NULL);
					_exit(0);
				}
				waitpid(pid, NULL, 0);
			}
			break;
		}
		calls++;
		if (ioctl(fds[slot], request, arg) == 0)
			accepted++;
	}
	for (int i = 0; i < 8; i++)
		close(fds[i]);
	ok(quiet == 0 && accepted > 0 && accepted < calls,
			"%lu malformed and odd ioctls (seed %llu), %lu of them accepted", calls,
			(unsigned long long)seed, accepted);
	fds[0] = device(O_RDONLY);
	for (unsigned int cpu = 0; cpu < cpus(); cpu++) {
		struct sibidle_stats s = stats(fds[0], cpu);

		ok(s.mode == SIBIDLE_STOCK && s.owner == SIBIDLE_FREE && s.mismatches == 0,
				"CPU %u is stock afterwards", cpu);
	}
	close(fds[0]);
	munmap(area, room + page);
}

/* Samples of a cell since another reading of it, by IBRS set or clear. */
static void
count_samples(const struct sibidle_cell *now, const struct sibidle_cell *then, uint64_t *is_set,
		uint64_t *is_clear)
{
	*is_set = *is_clear = 0;
	for (int i = 0; i < SIBIDLE_VALUES_MAX; i++) {
		uint64_t n = now->count[i] - (now->value[i] == then->value[i] ? then->count[i] : 0);

		*((now->value[i] & IBRS) != 0 ? is_set : is_clear) += n;
	}
	if (now->other != then->other)
		ok(false, "more than %d values of the register", SIBIDLE_VALUES_MAX);
}

/* The register on a CPU, from elsewhere and by a process on it, is what the kernel wants. */
static bool
restored(int fd, unsigned int cpu)
{
	struct sibidle_register far = spec_ctrl(fd, cpu), near;

	run_on(cpu);
	near = spec_ctrl(fd, cpu);
	run_on(0);
	return ((far.value ^ far.shadow) & IBRS) == 0 && ((near.value ^ near.shadow) & IBRS) == 0 &&
			(near.value & IBRS) != 0 && stats(fd, cpu).mismatches == 0;
}

/* What the register holds in idle: the table of docs/kernel-module.md. */
static void
test_proof(unsigned int cpu, unsigned int ms)
{
	static const unsigned int order[] = { SIBIDLE_STOCK, SIBIDLE_KEEP, SIBIDLE_CLEAR,
		SIBIDLE_KEEP, SIBIDLE_CLEAR, SIBIDLE_STOCK };
	unsigned int count = cpus();
	struct waker w[16];
	int fd = device(O_RDWR);
	struct sibidle_info i = info(fd);
	struct sibidle_stats start[16];
	pid_t pid;

	ok(strcmp(i.driver, "intel_idle") == 0 && i.clear_refusal == SIBIDLE_OK, "driver %s; %s",
			i.driver, get("/sys/devices/system/cpu/vulnerabilities/spectre_v2"));
	run_on(0);
	ok(set(fd, cpu, SIBIDLE_STOCK) == 0, "CPU %u is leased", cpu);
	wakers_start(w, 0, count, 1000);
	for (unsigned int c = 0; c < count; c++)
		start[c] = stats(fd, c);
	printf("# emulated\n# cpu  mode   state  callback            entries  samples  IBRS set  IBRS clear\n");
	for (unsigned int state = 0; state < i.nr_states; state++) {
		if ((i.states[state].flags & SIBIDLE_STATE_MODES) == 0)
			continue;
		only_state(cpu, (int)state);
		for (size_t o = 0; o < sizeof(order) / sizeof(order[0]); o++) {
			struct sibidle_stats then, now;
			const struct sibidle_cell *a, *b;
			uint64_t is_set, is_clear;

			if (set(fd, cpu, order[o]) != 0)
				give_up("SET %s", mode_names[order[o]]);
			then = stats(fd, cpu);
			/* A CPU that is still busy with its boot idles a little later. */
			for (int tries = 0; tries < 50; tries++) {
				pause_ms(ms);
				now = stats(fd, cpu);
				if (now.cells[order[o]][state].entries >=
						then.cells[order[o]][state].entries + 10)
					break;
			}
			a = &then.cells[order[o]][state];
			b = &now.cells[order[o]][state];
			count_samples(b, a, &is_set, &is_clear);
			printf("# %3u  %-5s  %-5s  %-18s  %7llu  %7llu  %8llu  %10llu\n", cpu,
					mode_names[order[o]], i.states[state].name,
					order[o] == SIBIDLE_STOCK ? i.states[state].callback
								  : "ours",
					(unsigned long long)(b->entries - a->entries),
					(unsigned long long)(is_set + is_clear),
					(unsigned long long)is_set, (unsigned long long)is_clear);
			ok(is_set + is_clear > 0 &&
							(order[o] == SIBIDLE_CLEAR ? is_set
										   : is_clear) == 0,
					"%s in %s: IBRS is %s in every sampled entry",
					i.states[state].name, mode_names[order[o]],
					order[o] == SIBIDLE_CLEAR ? "clear" : "set");
			ok(restored(fd, cpu), "and the register is back outside");
		}
	}
	only_state(cpu, -1);
	disable_leak(cpu);
	for (unsigned int c = 0; c < count; c++) {
		struct sibidle_stats now = stats(fd, c);
		uint64_t all_set = 0, all_clear = 0, changed = 0;

		if (c == cpu)
			continue;
		for (unsigned int s = 0; s < SIBIDLE_STATES_MAX; s++) {
			uint64_t is_set, is_clear;

			count_samples(&now.cells[0][s], &start[c].cells[0][s], &is_set, &is_clear);
			all_set += is_set;
			all_clear += is_clear;
		}
		changed = entries(&now, SIBIDLE_KEEP) + entries(&now, SIBIDLE_CLEAR);
		printf("# %3u  stock  all    driver's            %7llu  %7llu  %8llu  %10llu\n", c,
				(unsigned long long)(entries(&now, 0) - entries(&start[c], 0)),
				(unsigned long long)(all_set + all_clear),
				(unsigned long long)all_set, (unsigned long long)all_clear);
		ok(all_set > 0 && all_clear == 0 && changed == 0 && now.kicks == 0,
				"CPU %u stayed in stock, undisturbed, with IBRS set", c);
	}
	ok(set(fd, cpu, SIBIDLE_CLEAR) == 0, "clear, then close");
	close(fd);
	fd = device(O_RDWR);
	ok(wait_free(fd, cpu) == SIBIDLE_CLOSED && restored(fd, cpu), "close restores");
	pid = holder(cpu, SIBIDLE_CLEAR);
	pause_ms(20);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	ok(wait_free(fd, cpu) == SIBIDLE_CLOSED && restored(fd, cpu), "kill -9 restores");
	ok(set(fd, cpu, SIBIDLE_CLEAR) == 0, "clear, then off line");
	wakers_stop(w, count);
	offline(cpu, true);
	ok(stats(fd, cpu).ended == SIBIDLE_OFFLINE, "off line ends the lease");
	ok(refused(fd, cpu, SIBIDLE_CLEAR, SIBIDLE_CPU_OFFLINE),
			"clear of a CPU that is off line is refused");
	offline(cpu, false);
	ok(stats(fd, cpu).mode == SIBIDLE_STOCK && restored(fd, cpu), "on line it is restored");
	ok(stats(fd, cpu).mismatches == 0 && stats(fd, cpu).kicks > 0,
			"register and shadow agreed after each of %llu changes",
			(unsigned long long)stats(fd, cpu).kicks);
	ok(put("off", "/sys/devices/system/cpu/smt/control") &&
					refused(fd, 0, SIBIDLE_CLEAR, SIBIDLE_SMT_INACTIVE),
			"clear is refused without SMT, and says so");
	put("on", "/sys/devices/system/cpu/smt/control");
	close(fd);
	ok(unload("sibidle") == 0, "the module unloads");
	must_load(OURS, "");
	fd = device(O_RDWR);
	ok(restored(fd, cpu), "after rmmod the register is what the kernel wants");
	close(fd);
}

/* Interrupts of all kinds during toggles: no handler runs with IBRS clear. */
static void
test_storm(unsigned int cpu, unsigned long toggles)
{
	static const unsigned int order[] = { SIBIDLE_CLEAR, SIBIDLE_STOCK, SIBIDLE_CLEAR,
		SIBIDLE_KEEP };
	struct sibidle_stats then, now;
	uint64_t is_set, is_clear, slept = 0;
	unsigned long timers, ipis, handlers, bad;
	char parameters[128];
	int fd = device(O_RDWR);

	run_on(0);
	/* The control: what it looks like when handlers do run with IBRS clear. */
	snprintf(parameters, sizeof(parameters), "cpu=%u clear_ms=20", cpu);
	must_load("/lib/lab/sibidle_storm.ko", parameters);
	ok(storm_count("timers_clear") > 0 && storm_count("handlers_clear") > 0,
			"the control sees handlers with IBRS clear: %lu timers, %lu in all",
			storm_count("timers_clear"), storm_count("handlers_clear"));
	if (unload("sibidle_storm") != 0)
		give_up("the storm does not end");
	snprintf(parameters, sizeof(parameters), "cpu=%u", cpu);
	must_load("/lib/lab/sibidle_storm.ko", parameters);
	then = stats(fd, cpu);
	for (unsigned long t = 0; t < toggles; t++) {
		if (set(fd, cpu, order[t % 4]) != 0)
			give_up("SET");
		pause_ms(t % 3);
	}
	now = stats(fd, cpu);
	timers = storm_count("timers");
	ipis = storm_count("ipis");
	handlers = storm_count("handlers");
	bad = storm_count("timers_clear") + storm_count("ipis_clear") +
			storm_count("handlers_clear");
	for (unsigned int s = 0; s < SIBIDLE_STATES_MAX; s++) {
		count_samples(&now.cells[SIBIDLE_CLEAR][s], &then.cells[SIBIDLE_CLEAR][s], &is_set,
				&is_clear);
		slept += is_clear;
	}
	ok(slept > 0 && timers > 0 && ipis > 0,
			"%lu toggles, %llu entries with IBRS clear, %lu timers, %lu IPIs", toggles,
			(unsigned long long)slept, timers, ipis);
	ok(bad == 0, "none of %lu interrupt handlers, %lu timers, %lu IPIs ran with IBRS clear (%lu)",
			handlers, timers, ipis, bad);
	ok(storm_count("interrupted") == 0,
			"none interrupted the hook: it sleeps with interrupts off");
	ok(now.mismatches == then.mismatches, "register and shadow agreed after every toggle");
	close(fd);
	ok(unload("sibidle_storm") == 0, "the storm ends");
}

/* One wake-up of the CPU a toggle, none of others, none without a change. */
static void
test_wakeups(unsigned int cpu, unsigned int mode, unsigned long toggles)
{
	unsigned int count = cpus();
	uint64_t before[16], after[16], still;
	int fd = device(O_RDWR);
	struct sibidle_stats s;

	run_on(0);
	if (set(fd, cpu, SIBIDLE_STOCK) != 0)
		give_up("SET");
	/* Kicks are counted by the function that wakes the CPU, one a wake-up. */
	for (unsigned int c = 0; c < count; c++)
		before[c] = stats(fd, c).kicks;
	for (unsigned long t = 0; t < toggles; t++)
		set(fd, cpu, t % 2 == 0 ? mode : SIBIDLE_STOCK);
	for (unsigned int c = 0; c < count; c++)
		after[c] = stats(fd, c).kicks;
	for (unsigned int c = 0; c < count; c++)
		ok(after[c] - before[c] == (c == cpu ? toggles : 0),
				"%lu toggles of CPU %u: %llu wake-ups of CPU %u", toggles, cpu,
				(unsigned long long)(after[c] - before[c]), c);
	s = stats(fd, cpu);
	for (unsigned long t = 0; t < toggles; t++)
		set(fd, cpu, s.mode);
	still = stats(fd, cpu).kicks;
	ok(still == s.kicks, "%lu SETs without a change: no wake-up", toggles);
	close(fd);
}

/* The states that the proof is about are there, and have all modes. */
static void
test_states(void)
{
	static const char *const wanted[] = { "C1", "C1E", "C6" };
	int fd = device(O_RDONLY);
	struct sibidle_info i = info(fd);

	for (size_t w = 0; w < sizeof(wanted) / sizeof(wanted[0]); w++) {
		bool found = false;

		for (unsigned int s = 0; s < i.nr_states; s++)
			if (strcmp(i.states[s].name, wanted[w]) == 0)
				found = (i.states[s].flags & SIBIDLE_STATE_MODES) != 0;
		ok(found, "%s is there, with keep and clear", wanted[w]);
	}
	close(fd);
}

/*
 * The test driver in intel_idle's place, with kernel IBRS: the state that takes interrupts inside
 * its callback is one of those that keep and clear enter with interrupts off.
 */
static void
test_driver(unsigned long toggles)
{
	int fd = device(O_RDWR);

	ok(refused(fd, 1, SIBIDLE_CLEAR, SIBIDLE_NO_DRIVER), "clear is refused without a driver");
	must_load("/lib/lab/sibidle_testdrv.ko", "");
	ok(refused(fd, 1, SIBIDLE_CLEAR, SIBIDLE_OTHER_DRIVER),
			"clear is refused with a driver that is not intel_idle");
	close(fd);
	if (unload_driver() != 0)
		give_up("the test driver does not unload");
	must_load("/lib/lab/sibidle_testdrv.ko", "name=intel_idle");
	test_proof(1, 60);
	test_storm(1, toggles);
}

/* intel_idle.ibrs_off: stock is named what it is. */
static void
test_ibrs_off(void)
{
	int fd = device(O_RDONLY);
	struct sibidle_info i = info(fd);

	ok((i.flags & SIBIDLE_IBRS_OFF) != 0, "INFO says that ibrs_off is in force");
	ok(strstr(get("/sys/class/misc/sibidle/stock"), "ibrs_off") != NULL, "so does sysfs: %s",
			get("/sys/class/misc/sibidle/stock"));
	close(fd);
}

int
main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	unsigned long n = argc > 2 ? strtoul(argv[2], NULL, 0) : 0;

	if (strcmp(what, "qemu") == 0) {
		test_refusals();
		test_counting();
		if (unload("sibidle") != 0)
			give_up("sibidle does not unload");
		must_load("/lib/lab/sibidle-qemu.ko", "");
		must_load("/lib/lab/sibidle_testdrv.ko", "name=intel_idle");
		test_leases(SIBIDLE_KEEP);
		test_chain(SIBIDLE_KEEP);
		test_wakeups(1, SIBIDLE_KEEP, 100);
		test_open(10000);
		test_fuzz(argc > 3 ? strtoul(argv[3], NULL, 0) : 100000, 1);
		if (unload("sibidle") != 0 || unload_driver() != 0)
			give_up("the modules do not unload");
		test_cycles("/lib/lab/sibidle-qemu.ko", n);
	} else if (strcmp(what, "cycles") == 0 && argc == 4) {
		unload("sibidle");
		test_cycles(argv[3], n);
	} else if (strcmp(what, "bochs") == 0) {
		test_states();
		test_proof(1, 60);
		test_storm(1, n);
		test_wakeups(1, SIBIDLE_CLEAR, 100);
	} else if (strcmp(what, "driver") == 0) {
		test_driver(n);
	} else if (strcmp(what, "ibrs_off") == 0) {
		test_ibrs_off();
	} else {
		fprintf(stderr, "usage: sibidle_test qemu CYCLES [CALLS] | cycles CYCLES MODULE | bochs TOGGLES | driver TOGGLES | ibrs_off\n");
		return 2;
	}
	printf("1..%u\n", checks);
	return failures != 0;
}
