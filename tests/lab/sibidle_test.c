/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What sibidle.ko promises, tried inside an emulated machine. Every command prints TAP lines and
 * ends with 1 if one of them is "not ok".
 */
#define _GNU_SOURCE
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
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "guest.h"

#define OURS "/lib/sibfwd/sibidle.ko"
#define IBRS 1ULL /* IA32_SPEC_CTRL bit 0 */

static const char *const mode_names[] = { "stock", "keep", "clear" };

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

/* Allow only one idle state of a CPU. */
static void
only_state(unsigned int cpu, int state)
{
	for (int i = 0; i < SIBIDLE_STATES_MAX; i++)
		put(i != state ? "1" : "0", "/sys/devices/system/cpu/cpu%u/cpuidle/state%d/disable",
				cpu, i);
}

/* All states of a CPU as they were, without those that start disabled. */
static void
default_states(unsigned int cpu)
{
	for (int i = 0; i < SIBIDLE_STATES_MAX; i++)
		put(strcmp(get("/sys/devices/system/cpu/cpu%u/cpuidle/state%d/default_status", cpu,
					   i),
				    "disabled") == 0
						? "1"
						: "0",
				"/sys/devices/system/cpu/cpu%u/cpuidle/state%d/disable", cpu, i);
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

	while (!atomic_load(&w->stop)) {
		move_to(w->cpu); /* which may be off line meanwhile */
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
	default_states(1);
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
	unsigned long objects; /* in use */
};

/* What is freed after a grace period is collected for up to 5 s first (KFREE_DRAIN_JIFFIES). */
static unsigned int freed_ms = 7000;

/* All slab caches. Returns how many. */
static size_t
slabs(struct slab *list, size_t room)
{
	char line[512];
	size_t n = 0;
	FILE *f;

	f = fopen("/proc/slabinfo", "r");
	if (f == NULL)
		give_up("/proc/slabinfo");
	while (n < room && fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "%63s %lu", list[n].name, &list[n].objects) == 2)
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

/*
 * The cache that grew most, by how many objects. The machine is booted with slub_debug, which does
 * without slabs that a CPU has at hand: the counts are exact.
 */
static unsigned long
grown(const struct slab *before, size_t nb, const struct slab *after, size_t na, const char **name)
{
	unsigned long worst = 0;

	*name = "nothing";
	for (size_t i = 0; i < nb; i++)
		for (size_t k = 0; k < na; k++)
			if (strcmp(before[i].name, after[k].name) == 0 &&
					after[k].objects > before[i].objects + worst) {
				worst = after[k].objects - before[i].objects;
				*name = before[i].name;
			}
	return worst;
}

static bool inexact; /* slab counts: KASAN keeps what was freed, or there is no slub_debug */

/* No cache grew as if each of so many cycles had lost an object, a quarter left for the kernel. */
static void
no_leak(const struct slab *before, size_t nb, const struct slab *after, size_t na,
		unsigned long cycles)
{
	const char *name;
	unsigned long most = grown(before, nb, after, na, &name);

	ok(most < cycles * 3 / 4 || inexact,
			"no leak in %lu cycles: %s grew most, by %lu objects%s", cycles, name, most,
			inexact ? " # SKIP these counts are not exact" : "");
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

/* How much the cache that grows most grew in so many times of opening, looking and closing. */
static unsigned long
grown_by_opening(unsigned long n, const char **name)
{
	static struct slab before[512], after[512];
	size_t nb, na;

	pause_ms(freed_ms);
	nb = slabs(before, 512);
	for (unsigned long i = 0; i < n; i++) {
		int fd = device(O_RDWR);

		info(fd);
		stats(fd, 0);
		close(fd);
	}
	pause_ms(freed_ms);
	na = slabs(after, 512);
	return grown(before, nb, after, na, name);
}

/* Opening and closing leaves nothing behind; with a module that does, that would be seen. */
static void
test_open(unsigned long n)
{
	const char *name;
	unsigned long most = grown_by_opening(n, &name);

	ok(most < n / 2, "no leak in opening and closing %lu times: %s grew most, by %lu objects",
			n, name, most);
}

static void
test_leak_is_seen(const char *module)
{
	const unsigned long n = 80; /* as few as the cycles in their shortest form */
	const char *name;
	unsigned long most;

	must_load(module, "");
	most = grown_by_opening(n, &name);
	ok(most >= n / 2, "a leak of an object a time is found out in %lu times: %s grew by %lu", n,
			name, most);
	if (unload("sibidle") != 0)
		give_up("the leaking module does not unload");
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

/* The last CPU goes off and on line, or no longer: then it is on line. */
static void
plug_cpu(struct waker *p, bool on)
{
	if (on == !atomic_load(&p->stop))
		return;
	atomic_store(&p->stop, !on);
	if (!on)
		pthread_join(p->thread, NULL);
	else if (pthread_create(&p->thread, NULL, plug, p) != 0)
		give_up("threads");
}

/* Cycles under idle load, with the last CPU going off and on line. */
static void
test_cycles(const char *module, const char *driver, unsigned long n)
{
	static struct slab before[512], after[512];
	unsigned int count = cpus(), toggles = 0;
	struct waker w[16], plugger = { .cpu = count - 1, .us = 20000, .stop = true };
	unsigned long warm = n / 5 + 1, percpu = 0, vmalloc = 0;
	char references[16];
	size_t slabs_before = 0, slabs_after;
	int rc = 0;

	must_load("/lib/lab/sibidle_testdrv.ko", driver);
	snprintf(references, sizeof(references), "%s", get("/sys/module/sibidle_testdrv/refcnt"));
	/* Some CPUs enter idle all the time, some sleep for longer than the module takes to go. */
	wakers_start(w, 0, count / 2, 1000);
	wakers_start(w + count / 2, count / 2, count - count / 2, 300000);
	for (unsigned long i = 0; i < n && rc == 0; i++) {
		/* Going off line wakes all CPUs, so half of the cycles are without. */
		plug_cpu(&plugger, i % 20 < 10);
		rc = cycle(module, i, &toggles);
		if (i + 1 == warm) {
			plug_cpu(&plugger, false);
			pause_ms(freed_ms);
			slabs_before = slabs(before, 512);
			percpu = meminfo("Percpu:");
			vmalloc = meminfo("VmallocUsed:");
		}
	}
	plug_cpu(&plugger, false);
	pause_ms(freed_ms);
	slabs_after = slabs(after, 512);
	percpu = meminfo("Percpu:") - percpu;
	vmalloc = meminfo("VmallocUsed:") - vmalloc;
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
	unsigned long accepted = 0, changes = 0, calls = 0;
	uint64_t rnd = seed;
	int fds[8], rc;
	bool refused_closed = true;

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
		if (which == 1 && r >> 63) { /* one that is in order, more or less */
			words[1] %= cpus();
			words[2] %= SIBIDLE_MODES;
			words[3] %= 8;
			words[4] = words[3] & SIBIDLE_SET_LATENCY ? 1 + words[4] % 1000 : 0;
			words[5] = words[3] & SIBIDLE_SET_TTL ? 1 + words[5] % 1000 : 0;
			words[7] = 0;
		}
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
		case 5: { /* one that was open a moment ago */
			int copy = dup(fds[slot]);

			close(copy);
			if (ioctl(copy, request, arg) == 0 || errno != EBADF)
				refused_closed = false;
			break;
		}
		case 6: /* a child that calls, and one that becomes another program */
			if (r % 64 == 6) {
				pid_t pid = fork();

				if (pid == 0) {
					ioctl(fds[slot], request, arg);
					if (r & 0x10000000) {
						fcntl(fds[slot], F_SETFD, 0);
						execl("/bin/busybox", "true", NULL);
					}
					_exit(0);
				}
				waitpid(pid, NULL, 0);
			}
			break;
		}
		calls++;
		rc = ioctl(fds[slot], request, arg);
		accepted += rc == 0;
		changes += rc == 0 && request == SIBIDLE_IOC_SET;
	}
	for (int i = 0; i < 8; i++)
		close(fds[i]);
	ok(accepted > changes && changes > 0 && accepted < calls,
			"%lu malformed and odd ioctls (seed %llu): %lu accepted, %lu of them SETs",
			calls, (unsigned long long)seed, accepted, changes);
	ok(refused_closed, "none through a closed descriptor");
	fds[0] = device(O_RDONLY);
	for (unsigned int cpu = 0; cpu < cpus(); cpu++) {
		struct sibidle_stats s = stats(fds[0], cpu);

		ok(s.mode == SIBIDLE_STOCK && s.owner == SIBIDLE_FREE && s.mismatches == 0,
				"CPU %u is stock afterwards", cpu);
	}
	close(fds[0]);
	munmap(area, room + page);
}

/*
 * A task on the CPU that has asked for more bits of the register keeps them: in the kernel it finds
 * the shadow's value, all bits of it, after every sleep with IBRS clear.
 */
static void
test_task_bits(unsigned int cpu)
{
	static const struct {
		const char *name;
		int what;
		uint64_t bit;
	} bits[] = { { "SSBD", PR_SPEC_STORE_BYPASS, 4 }, { "STIBP", PR_SPEC_INDIRECT_BRANCH, 2 } };
	int fd = device(O_RDWR);

	for (size_t b = 0; b < sizeof(bits) / sizeof(bits[0]); b++) {
		int status = 1;
		pid_t pid;

		if (set(fd, cpu, SIBIDLE_CLEAR) != 0 || (pid = fork()) < 0)
			give_up("a child");
		if (pid == 0) {
			unsigned int wrong = 0, kept = 0;

			run_on(cpu);
			if (prctl(PR_SET_SPECULATION_CTRL, bits[b].what, PR_SPEC_DISABLE, 0, 0) !=
					0)
				_exit(2);
			for (int i = 0; i < 50; i++) {
				struct sibidle_register r;

				pause_ms(2);
				r = spec_ctrl(fd, cpu);
				wrong += r.value != r.shadow;
				kept += (r.value & bits[b].bit) != 0;
			}
			_exit(wrong == 0 && kept == 50 ? 0 : 1);
		}
		waitpid(pid, &status, 0);
		/* Not every kernel lets a task ask for every bit. */
		if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
			ok(true, "%s of a task # SKIP not to be had here", bits[b].name);
		else
			ok(WIFEXITED(status) && WEXITSTATUS(status) == 0,
					"a task with %s has it back after each of 50 sleeps",
					bits[b].name);
	}
	close(fd);
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
	printf("# emulated; stock is read before the driver's own callback\n# cpu  mode   state  callback            entries  samples  IBRS set  IBRS clear\n");
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
	default_states(cpu);
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
		changed = entries(&now, SIBIDLE_KEEP) + entries(&now, SIBIDLE_CLEAR) -
				entries(&start[c], SIBIDLE_KEEP) -
				entries(&start[c], SIBIDLE_CLEAR);
		printf("# %3u  stock  all    driver's            %7llu  %7llu  %8llu  %10llu\n", c,
				(unsigned long long)(entries(&now, 0) - entries(&start[c], 0)),
				(unsigned long long)(all_set + all_clear),
				(unsigned long long)all_set, (unsigned long long)all_clear);
		ok(all_set > 0 && all_clear == 0 && changed == 0 && now.kicks == start[c].kicks,
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
	uint64_t is_set, is_clear, slept = 0, ms;
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
	ms = now_ms();
	timers = storm_count("timers");
	for (unsigned long t = 0; t < toggles; t++) {
		if (set(fd, cpu, order[t % 4]) != 0)
			give_up("SET");
		pause_ms(t % 3);
	}
	now = stats(fd, cpu);
	timers = storm_count("timers") - timers;
	ms = now_ms() - ms;
	ipis = storm_count("ipis");
	handlers = storm_count("handlers");
	bad = storm_count("timers_clear") + storm_count("ipis_clear") +
			storm_count("handlers_clear");
	for (unsigned int s = 0; s < SIBIDLE_STATES_MAX; s++) {
		count_samples(&now.cells[SIBIDLE_CLEAR][s], &then.cells[SIBIDLE_CLEAR][s], &is_set,
				&is_clear);
		slept += is_clear;
	}
	ok(slept > 0 && timers >= ms && ipis > 0,
			"%lu toggles, %llu entries with IBRS clear, %lu timers in %llu ms, %lu IPIs",
			toggles, (unsigned long long)slept, timers, (unsigned long long)ms, ipis);
	ok(bad == 0, "none of %lu interrupt handlers, %lu timers, %lu IPIs ran with IBRS clear (%lu)",
			handlers, timers, ipis, bad);
	ok(storm_count("interrupted") == 0,
			"none interrupted the hook: it sleeps with interrupts off");
	ok(now.mismatches == then.mismatches, "register and shadow agreed after every toggle");
	close(fd);
	ok(unload("sibidle_storm") == 0, "the storm ends");
}

/* What woke a CPU, seen by others than the function that is to wake it. */
struct woken {
	uint64_t kicks; /* by that function */
	uint64_t periods; /* idle periods that ended */
	uint64_t ipis;
};

static void
count_woken(int fd, struct woken *w, unsigned int n)
{
	for (unsigned int c = 0; c < n; c++) {
		struct sibidle_stats s = stats(fd, c);

		w[c].kicks = s.kicks;
		w[c].periods = entries(&s, SIBIDLE_STOCK) + entries(&s, SIBIDLE_KEEP) +
				entries(&s, SIBIDLE_CLEAR);
		w[c].ipis = interrupts("CAL:", c) + interrupts("RES:", c);
	}
}

/* SETs of a CPU, in turn to two modes. */
static void
alternate(int fd, unsigned int cpu, unsigned int a, unsigned int b, unsigned long n,
		struct woken *w)
{
	struct woken then[16], now[16];

	set(fd, cpu, b);
	count_woken(fd, then, cpus());
	for (unsigned long t = 0; t < n; t++) {
		set(fd, cpu, t % 2 == 0 ? a : b);
		pause_ms(3);
	}
	count_woken(fd, now, cpus());
	for (unsigned int c = 0; c < cpus(); c++) {
		w[c].kicks = now[c].kicks - then[c].kicks;
		w[c].periods = now[c].periods - then[c].periods;
		w[c].ipis = now[c].ipis - then[c].ipis;
	}
}

/*
 * One wake-up of the CPU a toggle, none of others, none without a change. "sleeps": idle CPUs stay
 * in one period until something wakes them, so their periods count too; a quarter is left for what
 * else the kernel does, in which a second wake-up a toggle would not fit.
 */
static void
test_wakeups(unsigned int cpu, unsigned int mode, unsigned long toggles, bool sleeps)
{
	struct woken quiet[16], toggled[16];
	int fd = device(O_RDWR);

	run_on(0);
	/* SETs without a change are the measure of what happens anyway. */
	alternate(fd, cpu, SIBIDLE_STOCK, SIBIDLE_STOCK, toggles, quiet);
	alternate(fd, cpu, mode, SIBIDLE_STOCK, toggles, toggled);
	for (unsigned int c = 0; c < cpus(); c++) {
		uint64_t wanted = c == cpu ? toggles : 0;
		int64_t periods = (int64_t)(toggled[c].periods - quiet[c].periods - wanted);
		int64_t ipis = (int64_t)(toggled[c].ipis - quiet[c].ipis);

		ok(toggled[c].kicks == wanted && quiet[c].kicks == 0,
				"%lu toggles of CPU %u: %llu wake-ups of CPU %u, %llu by SETs without a change",
				toggles, cpu, (unsigned long long)toggled[c].kicks, c,
				(unsigned long long)quiet[c].kicks);
		/* CPU 0 is the one that asks. */
		if (c == 0)
			continue;
		if (sleeps)
			ok(llabs(periods) <= (int64_t)toggles / 4,
					"its idle periods say so too: %llu ended, %llu without toggles",
					(unsigned long long)toggled[c].periods,
					(unsigned long long)quiet[c].periods);
		ok(ipis <= (int64_t)(wanted + toggles / 4),
				"and its IPIs: %llu, %llu without toggles",
				(unsigned long long)toggled[c].ipis,
				(unsigned long long)quiet[c].ipis);
	}
	close(fd);
}

/* A module that does not write the register a second time is found out by restored(). */
static void
test_not_restored(unsigned int cpu)
{
	int fd;

	if (unload("sibidle") != 0)
		give_up("sibidle does not unload");
	must_load("/lib/lab/sibidle-norestore.ko", "");
	fd = device(O_RDWR);
	if (set(fd, cpu, SIBIDLE_CLEAR) != 0)
		give_up("SET");
	pause_ms(100);
	ok(!restored(fd, cpu), "the control: a hook that leaves IBRS clear is found out");
	/* Each change puts it right, unless the driver's own callback did before. */
	for (int tries = 0; tries < 50 && stats(fd, cpu).mismatches == 0; tries++) {
		pause_ms(5);
		if (set(fd, cpu, tries % 2 == 0 ? SIBIDLE_KEEP : SIBIDLE_CLEAR) != 0)
			give_up("SET");
	}
	ok(stats(fd, cpu).mismatches > 0, "and counted as a mismatch");
	close(fd);
	if (unload("sibidle") != 0)
		give_up("sibidle does not unload");
	must_load(OURS, "");
	fd = device(O_RDWR);
	ok(restored(fd, cpu), "and put right");
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

/* A state whose own callback takes interrupts inside does not in keep and clear. */
static void
test_interrupts_off(unsigned int cpu, int state)
{
	static const char *const modules[] = { "[sibidle_testdrv]", "[sibidle]" };
	int fd = device(O_RDWR);

	only_state(cpu, state);
	for (unsigned int mode = 0; mode < SIBIDLE_MODES; mode++) {
		unsigned long inside = 0, timers = 0;

		if (set(fd, cpu, mode) != 0)
			give_up("SET");
		for (size_t m = 0; m < sizeof(modules) / sizeof(modules[0]); m++) {
			char parameters[64];

			snprintf(parameters, sizeof(parameters), "cpu=%u inside=%s", cpu,
					modules[m]);
			must_load("/lib/lab/sibidle_storm.ko", parameters);
			pause_ms(200);
			inside += storm_count("interrupted");
			timers += storm_count("timers");
			if (unload("sibidle_storm") != 0)
				give_up("the storm does not end");
		}
		ok(timers > 0 && (inside > 0) == (mode == SIBIDLE_STOCK),
				"%s: %lu interruptions of the sleeping code, %lu timers",
				mode_names[mode], inside, timers);
	}
	default_states(cpu);
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
	must_load("/lib/lab/sibidle_testdrv.ko", "ecx=1");
	ok(refused(fd, 1, SIBIDLE_CLEAR, SIBIDLE_OTHER_DRIVER),
			"clear is refused with a driver that is not intel_idle");
	close(fd);
	if (unload_driver() != 0)
		give_up("the test driver does not unload");
	must_load("/lib/lab/sibidle_testdrv.ko", "name=intel_idle ecx=1");
	test_proof(1, 60);
	test_storm(1, toggles);
	test_interrupts_off(1, 2);
	/* The module that is shipped, with nothing patched. */
	if (unload("sibidle") != 0 || unload_driver() != 0)
		give_up("the modules do not unload");
	freed_ms = 100;
	inexact = true;
	test_cycles(OURS, "name=intel_idle ecx=1", 20);
}

/* Why there is no kernel IBRS to clear. */
static void
test_no_ibrs(unsigned int reason)
{
	int fd = device(O_RDWR);

	printf("# spectre_v2: %s\n", get("/sys/devices/system/cpu/vulnerabilities/spectre_v2"));
	ok(info(fd).clear_refusal == reason && refused(fd, 1, SIBIDLE_CLEAR, reason),
			"clear is refused: %s", get("/sys/class/misc/sibidle/clear"));
	close(fd);
}

/* A CPU without MWAIT, and not Intel's. */
static void
test_other_cpu(void)
{
	int fd;

	test_no_ibrs(SIBIDLE_NOT_INTEL);
	must_load("/lib/lab/sibidle_testdrv.ko", "name=intel_idle");
	fd = device(O_RDWR);
	ok(refused(fd, 1, SIBIDLE_KEEP, SIBIDLE_NO_MWAIT), "keep is refused: %s",
			get("/sys/class/misc/sibidle/keep"));
	close(fd);
}

/* Ends the machine with two CPUs leased; the console tells what became of them. */
static void
test_reboot(void)
{
	int fd = device(O_RDWR);

	must_load("/lib/lab/sibidle_testdrv.ko", "name=intel_idle");
	ok(set(fd, 1, SIBIDLE_STOCK) == 0 && set(fd, 2, SIBIDLE_STOCK) == 0, "two CPUs are leased");
	reboot(RB_AUTOBOOT);
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
		inexact = argc > 4;
		test_refusals();
		test_counting();
		if (unload("sibidle") != 0)
			give_up("sibidle does not unload");
		must_load("/lib/lab/sibidle-qemu.ko", "");
		must_load("/lib/lab/sibidle_testdrv.ko", "name=intel_idle");
		test_leases(SIBIDLE_KEEP);
		test_chain(SIBIDLE_KEEP);
		/* QEMU's MWAIT returns at once, its HLT does not. */
		for (unsigned int cpu = 0; cpu < cpus(); cpu++)
			only_state(cpu, 4);
		test_wakeups(1, SIBIDLE_KEEP, 100, true);
		for (unsigned int cpu = 0; cpu < cpus(); cpu++)
			default_states(cpu);
		test_open(10000);
		test_fuzz(argc > 3 ? strtoul(argv[3], NULL, 0) : 100000, 1);
		if (unload("sibidle") != 0 || unload_driver() != 0)
			give_up("the modules do not unload");
		test_leak_is_seen("/lib/lab/sibidle-leak.ko");
		test_cycles("/lib/lab/sibidle-qemu.ko", "name=intel_idle", n);
	} else if (strcmp(what, "cycles") == 0 && argc == 4) {
		unload("sibidle");
		test_cycles(argv[3], "name=intel_idle", n);
	} else if (strcmp(what, "bochs") == 0) {
		test_states();
		/* A second of the machine takes half a minute: less of everything in a short run. */
		test_proof(1, n < 500 ? 25 : 60);
		test_storm(1, n);
		test_task_bits(1);
		test_wakeups(1, SIBIDLE_CLEAR, n < 500 ? 40 : 100, false);
		test_fuzz(1000, 2);
		test_not_restored(1);
	} else if (strcmp(what, "driver") == 0) {
		test_driver(n);
	} else if (strcmp(what, "ibrs_off") == 0) {
		test_ibrs_off();
	} else if (strcmp(what, "eibrs") == 0) {
		test_no_ibrs(SIBIDLE_EIBRS);
	} else if (strcmp(what, "no_mitigation") == 0) {
		test_no_ibrs(SIBIDLE_NO_MITIGATION);
		test_reboot();
	} else if (strcmp(what, "other_cpu") == 0) {
		test_other_cpu();
	} else {
		fprintf(stderr,
				"usage: sibidle_test qemu CYCLES [CALLS [inexact]] | cycles CYCLES MODULE | bochs TOGGLES |\n"
				"       driver TOGGLES | ibrs_off | eibrs | no_mitigation | other_cpu\n");
		return 2;
	}
	printf("1..%u\n", checks);
	return failures != 0;
}
