/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What sibidle.ko promises of its probes, tried inside an emulated machine: counts, ends, what is left
 * behind, and what malformed requests do. TAP.
 *
 *	probe_test x2apic|xapic REQUESTS
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "guest.h"

#define LOOPS 500

static struct sibidle_sample samples[LOOPS];
static atomic_bool *in_request; /* of the child that probes: shared with it */
static bool x2apic;

static struct sibidle_probe
request(unsigned int probe, unsigned int op, unsigned int from, unsigned int to)
{
	return (struct sibidle_probe){ .size = sizeof(struct sibidle_probe),
		.probe = probe,
		.op = op,
		.from = from,
		.to = to,
		.loops = LOOPS,
		.samples = (uintptr_t)samples };
}

/* 0 or the negative error; r has what came back. */
static int
carry_out(int fd, struct sibidle_probe *r)
{
	return ioctl(fd, SIBIDLE_IOC_PROBE, r) == 0 ? 0 : -errno;
}

/* A thread that keeps a CPU busy. */
struct hog {
	pthread_t thread;
	unsigned int cpu;
	atomic_bool stop, runs;
};

static void *
hog(void *arg)
{
	struct hog *h = arg;

	run_on(h->cpu);
	atomic_store(&h->runs, true);
	while (!atomic_load_explicit(&h->stop, memory_order_relaxed))
		;
	return NULL;
}

static void
hog_start(struct hog *h, unsigned int cpu)
{
	h->cpu = cpu;
	atomic_store(&h->stop, false);
	atomic_store(&h->runs, false);
	if (pthread_create(&h->thread, NULL, hog, h) != 0)
		give_up("threads");
	while (!atomic_load(&h->runs))
		pause_ms(1);
}

static void
hog_stop(struct hog *h)
{
	atomic_store(&h->stop, true);
	pthread_join(h->thread, NULL);
}

/* Samples that make sense: in their order, each with a begin. */
static bool
in_order(const struct sibidle_probe *r)
{
	for (unsigned int i = 0; i < r->done; i++)
		if (samples[i].begin == 0 || samples[i].end < samples[i].begin ||
				(i > 0 && samples[i].begin < samples[i - 1].begin))
			return false;
	return true;
}

/* Operations of one CPU, and how many interrupts each has to make. */
static const struct {
	const char *name;
	unsigned int probe, op, flags, number;
	unsigned int interrupts; /* a loop */
	bool needs_x2apic;
	unsigned int refusal; /* that an emulator may give */
} local[] = {
	{ "ipi nothing", SIBIDLE_PROBE_IPI, SIBIDLE_IPI_NOTHING, 0, 0, 0, false, 0 },
	{ "ipi self", SIBIDLE_PROBE_IPI, SIBIDLE_IPI_SELF, 0, 0, 1, false, 0 },
	{ "fence alone", SIBIDLE_PROBE_FENCE, SIBIDLE_FENCE_NOTHING, SIBIDLE_PROBE_FENCED, 64, 0,
			false, 0 },
	{ "fence, TSC_AUX", SIBIDLE_PROBE_FENCE, SIBIDLE_FENCE_TSC_AUX, SIBIDLE_PROBE_FENCED, 7, 0,
			false, 0 },
	{ "fence, ICR", SIBIDLE_PROBE_FENCE, SIBIDLE_FENCE_ICR, SIBIDLE_PROBE_FENCED, 64, 1, true,
			0 },
	{ "no fence, ICR", SIBIDLE_PROBE_FENCE, SIBIDLE_FENCE_ICR, 0, 0, 1, true, 0 },
	{ "msr nothing", SIBIDLE_PROBE_MSR, SIBIDLE_MSR_NOTHING, 0, 0, 0, false, 0 },
	{ "msr SPEC_CTRL", SIBIDLE_PROBE_MSR, SIBIDLE_MSR_SPEC_CTRL, 0, 0, 0, false,
			SIBIDLE_NO_SPEC_CTRL },
	{ "msr TSC_AUX", SIBIDLE_PROBE_MSR, SIBIDLE_MSR_TSC_AUX, 0, 0, 0, false, 0 },
	{ "msr TSC_DEADLINE", SIBIDLE_PROBE_MSR, SIBIDLE_MSR_TSC_DEADLINE, 0, 0, 0, false,
			SIBIDLE_NO_TSC_DEADLINE },
	{ "msr self-IPI", SIBIDLE_PROBE_MSR, SIBIDLE_MSR_SELF_IPI, 0, 0, 1, true, 0 },
	{ "eoi nothing", SIBIDLE_PROBE_EOI, SIBIDLE_EOI_NOTHING, 0, 0, 0, false, 0 },
	{ "eoi direct", SIBIDLE_PROBE_EOI, SIBIDLE_EOI_DIRECT, 0, 0, 0, true, 0 },
	{ "eoi callback", SIBIDLE_PROBE_EOI, SIBIDLE_EOI_CALLBACK, 0, 0, 0, true, 0 },
};
#define NB_LOCAL (sizeof(local) / sizeof(local[0]))

static void
test_local(int fd, unsigned int cpu)
{
	run_on(cpu);
	for (size_t i = 0; i < NB_LOCAL; i++) {
		struct sibidle_probe r = request(local[i].probe, local[i].op, cpu, cpu);
		unsigned long before = interrupts("IWI:", cpu), after;
		int rc;

		r.flags = local[i].flags;
		r.number = local[i].number;
		rc = carry_out(fd, &r);
		after = interrupts("IWI:", cpu);
		if (local[i].needs_x2apic && !x2apic)
			ok(rc == -EOPNOTSUPP && r.refusal == SIBIDLE_NO_X2APIC && r.done == 0,
					"%s: refused without x2APIC", local[i].name);
		else if (rc == -EOPNOTSUPP && local[i].refusal != 0)
			ok(r.refusal == local[i].refusal && r.done == 0,
					"%s: refused, for its reason", local[i].name);
		else
			ok(rc == 0 && r.done == LOOPS && in_order(&r) &&
							r.sent == LOOPS * local[i].interrupts &&
							r.interrupts == r.sent &&
							after - before == r.sent,
					"%s: %u loops, %llu interrupts sent, counted by the module (%llu) and the kernel (%lu)",
					local[i].name, r.done, (unsigned long long)r.sent,
					(unsigned long long)r.interrupts, after - before);
	}
}

/* Calls of another CPU, busy or idle, by the kernel's own counts too. */
static void
test_calls(int fd, unsigned int from, unsigned int to)
{
	struct hog h;

	run_on(from);
	for (unsigned int wait = 0; wait < 2; wait++) {
		struct sibidle_probe r = request(SIBIDLE_PROBE_IPI, SIBIDLE_IPI_CALL, from, to);
		unsigned long before, after;
		bool stamped = true;
		int rc;

		r.flags = wait ? SIBIDLE_PROBE_WAIT : 0;
		hog_start(&h, to);
		before = interrupts("CAL:", to);
		rc = carry_out(fd, &r);
		after = interrupts("CAL:", to);
		hog_stop(&h);
		for (unsigned int i = 0; i < r.done; i++)
			stamped &= samples[i].handled != 0 && samples[i].seen >= samples[i].end;
		ok(rc == 0 && r.done == LOOPS && r.sent == LOOPS && r.handled == LOOPS &&
						r.interrupts == LOOPS && after - before == LOOPS &&
						stamped,
				"%u calls CPU %u, busy, %s: %llu sent, %llu handled, %llu counted by the module, %lu by the kernel",
				from, to, wait ? "wait" : "no wait", (unsigned long long)r.sent,
				(unsigned long long)r.handled, (unsigned long long)r.interrupts,
				after - before);
	}
}

static void
test_broadcast(int fd, unsigned int from)
{
	struct hog h[64];
	unsigned int n = 0, all = cpus();
	struct sibidle_probe r = request(SIBIDLE_PROBE_IPI, SIBIDLE_IPI_BROADCAST, from, from);
	int rc;

	/* Each takes long, as emulated CPUs share few real ones. */
	r.loops = 50;
	r.flags = SIBIDLE_PROBE_WAIT;
	run_on(from);
	for (unsigned int cpu = 0; cpu < all; cpu++)
		if (cpu != from)
			hog_start(&h[n++], cpu);
	rc = carry_out(fd, &r);
	for (unsigned int i = 0; i < n; i++)
		hog_stop(&h[i]);
	ok(rc == 0 && r.done == r.loops && r.sent == 50ULL * (all - 1) && r.handled == r.sent &&
					r.interrupts == r.sent,
			"broadcast: %llu sent, %llu handled, %llu counted",
			(unsigned long long)r.sent, (unsigned long long)r.handled,
			(unsigned long long)r.interrupts);
}

static void
test_wake(int fd, unsigned int cpu)
{
	struct sibidle_probe r = request(SIBIDLE_PROBE_WAKE, SIBIDLE_WAKE_TIMER, cpu, cpu);
	bool late = true;
	int rc;

	run_on(cpu);
	r.loops = 50;
	r.number = 200000;
	rc = carry_out(fd, &r);
	for (unsigned int i = 0; i < r.done; i++)
		late &= samples[i].begin != 0 && samples[i].handled >= samples[i].begin &&
				samples[i].end >= samples[i].handled;
	ok(rc == 0 && r.done == 50 && late,
			"wake: %u times, handler after expiry, thread after handler", r.done);
}

/* ---- ends ---- */

static const struct {
	const char *name;
	unsigned int probe, op, flags, to, number;
} long_ones[] = {
	{ "ipi call, no wait", SIBIDLE_PROBE_IPI, SIBIDLE_IPI_CALL, 0, 2, 0 },
	{ "ipi call, wait", SIBIDLE_PROBE_IPI, SIBIDLE_IPI_CALL, SIBIDLE_PROBE_WAIT, 2, 0 },
	{ "ipi broadcast", SIBIDLE_PROBE_IPI, SIBIDLE_IPI_BROADCAST, 0, 1, 0 },
	{ "ipi self", SIBIDLE_PROBE_IPI, SIBIDLE_IPI_SELF, 0, 1, 0 },
	{ "msr TSC_AUX", SIBIDLE_PROBE_MSR, SIBIDLE_MSR_TSC_AUX, 0, 1, 0 },
	{ "wake", SIBIDLE_PROBE_WAKE, SIBIDLE_WAKE_TIMER, 0, 1, SIBIDLE_WAKE_MAX_NS },
};
#define NB_LONG (sizeof(long_ones) / sizeof(long_ones[0]))
#define LONG_MSR 4

static void
nothing(int number)
{
	(void)number;
}

static uint32_t
tsc_khz(int fd)
{
	struct sibidle_info i = { .size = sizeof(i) };

	if (ioctl(fd, SIBIDLE_IOC_INFO, &i) != 0)
		give_up("INFO");
	return i.tsc_khz;
}

/* Every call that was sent has run; of what else sends interrupts the count is of those that came. */
static bool
counts_add_up(const struct sibidle_probe *r)
{
	return r->probe != SIBIDLE_PROBE_IPI || (r->handled == r->sent && r->sent >= r->done);
}

/* A child that probes on CPU 1 until a signal comes: it exits with 0 where that was told as EINTR, with 3 for ENODEV. */
static pid_t
start_long(size_t i, bool start_late)
{
	pid_t pid = fork();
	int fd, rc;

	if (pid != 0)
		return pid;
	sigaction(SIGINT, &(struct sigaction){ .sa_handler = nothing }, NULL);
	run_on(1);
	fd = device(O_RDWR);
	for (unsigned long loops = 0;; loops++) {
		struct sibidle_probe r =
				request(long_ones[i].probe, long_ones[i].op, 1, long_ones[i].to);

		r.flags = long_ones[i].flags;
		r.number = long_ones[i].number;
		r.loops = SIBIDLE_PROBE_LOOPS_MAX;
		r.samples = 0;
		/* Far ahead: it waits for its start. */
		if (start_late)
			r.start = __builtin_ia32_rdtsc() + 5000ULL * tsc_khz(fd);
		atomic_store(in_request, true);
		rc = carry_out(fd, &r);
		atomic_store(in_request, false);
		/* What the loop sent that a signal ended is waited for, and counts. */
		if (rc != 0)
			_exit(rc == -ENODEV ? 3
							: rc == -EINTR && r.done < r.loops &&
									counts_add_up(&r)
							? 0
							: 1);
	}
}

/* Milliseconds until it has ended after the signal. */
static unsigned int
end_long(pid_t pid, int number, int *status)
{
	uint64_t then = now_ms();

	kill(pid, number);
	if (waitpid(pid, status, 0) != pid)
		give_up("wait");
	return (unsigned int)(now_ms() - then);
}

/*
 * Ends in time. The bound is the promise itself, 100 ms by the machine's clock; an emulator that shares its
 * processor may be late at times: the median of five has to keep it.
 */
static void
test_ends(size_t i, int number, bool start_late)
{
	unsigned int in_time = 0, longest = 0;
	int status = -1;
	bool right = true;

	for (int tries = 0; tries < 5 && right; tries++) {
		pid_t pid = start_long(i, start_late);
		bool inside = false;
		unsigned int ms;

		/* It is in a request nearly always: what is to be ended. */
		pause_ms(50);
		for (int k = 0; k < 1000 && !inside; k++) {
			inside = atomic_load(in_request);
			if (!inside)
				pause_ms(1);
		}
		ms = end_long(pid, number, &status);
		right = inside;
		atomic_store(in_request, false);
		right &= number == SIGKILL ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL
					   : WIFEXITED(status) && WEXITSTATUS(status) == 0;
		in_time += ms <= 100;
		longest = ms > longest ? ms : longest;
	}
	ok(right && in_time >= 3,
			"%s%s: ends within 100 ms of %s (%u of 5 tries, the longest %u ms, status 0x%x)",
			long_ones[i].name, start_late ? ", before its start" : "",
			number == SIGINT ? "SIGINT" : "SIGKILL", in_time, longest,
			(unsigned int)status);
}

/* Interrupts arrive on a CPU: its timer wakes a sleeper there. */
static bool
interrupts_arrive(unsigned int cpu)
{
	unsigned long before;

	run_on(cpu);
	before = interrupts("LOC:", cpu);
	for (int i = 0; i < 5; i++)
		pause_ms(10);
	return interrupts("LOC:", cpu) > before;
}

static void
test_offline(size_t i, unsigned int gone)
{
	pid_t pid = start_long(i, false);
	int status;

	run_on(0);
	pause_ms(50);
	offline(gone, true);
	if (waitpid(pid, &status, 0) != pid)
		give_up("wait");
	offline(gone, false);
	ok(WIFEXITED(status) && WEXITSTATUS(status) == 3,
			"%s: CPU %u, its %s, goes off line, which ends the probe with ENODEV",
			long_ones[i].name, gone, gone == 1 ? "sender" : "target");
}

/* ---- malformed requests ---- */

static void
test_fuzz(unsigned long n)
{
	size_t page = 4096, room = 4 * page;
	unsigned char *area = mmap(NULL, room + page, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fds[2] = { device(O_RDWR), device(O_RDONLY) };
	unsigned long accepted = 0, refused = 0;
	bool wrong = false;
	uint64_t rnd = 7;

	if (area == MAP_FAILED || mprotect(area + room, page, PROT_NONE) != 0)
		give_up("memory");
	run_on(1);
	for (unsigned long i = 0; i < n; i++) {
		struct sibidle_probe r;
		uint64_t x = next_random(&rnd);
		uint32_t *words = (uint32_t *)&r;
		void *arg = &r;
		int rc;

		/* One that is in order, with one to three words that are not. */
		r = request((x >> 8) % SIBIDLE_PROBES, (x >> 12) % 3, 1, 1);
		r.loops = 1;
		r.number = r.probe == SIBIDLE_PROBE_WAKE ? SIBIDLE_WAKE_MIN_NS : 0;
		for (unsigned int k = 0; k <= x % 3; k++)
			words[next_random(&rnd) % (sizeof(r) / 4)] = odd_number(&rnd);
		/* What is in order but long is another test. */
		if (r.loops > 3 && r.loops <= SIBIDLE_PROBE_LOOPS_MAX)
			r.loops = 3;
		if (r.start > __builtin_ia32_rdtsc())
			r.start |= 1ULL << 63;
		switch ((x >> 40) % 16) {
		case 0: /* runs into memory that is not there */
			arg = area + room - (x >> 50) % (sizeof(r) + 8);
			break;
		case 1:
			arg = (void *)(uintptr_t)next_random(&rnd);
			break;
		case 2: /* samples that cannot be written */
			r.samples = x & 1 ? next_random(&rnd) : (uintptr_t)(area + room) - x % 64;
			break;
		}
		rc = ioctl(fds[(x >> 32) % 8 == 0], SIBIDLE_IOC_PROBE, arg) == 0 ? 0 : errno;
		accepted += rc == 0;
		refused += rc != 0;
		wrong |= rc != 0 && rc != EINVAL && rc != EFAULT && rc != EBADF &&
				rc != EOPNOTSUPP && rc != ENODEV;
	}
	ok(accepted > 0 && refused > 0 && !wrong,
			"%lu malformed and odd probe requests: %lu carried out", n, accepted);
	close(fds[0]);
	close(fds[1]);
	munmap(area, room + page);
}

/* Each of these alone is wrong. */
static void
test_refused(int fd)
{
	const struct {
		const char *what;
		size_t at;
		uint32_t value;
		int rc;
	} wrong[] = {
#define FIELD(name, value, rc) { #name, offsetof(struct sibidle_probe, name) / 4, value, rc }
		FIELD(size, 8, -EINVAL),
		FIELD(probe, SIBIDLE_PROBES, -EINVAL),
		FIELD(op, SIBIDLE_MSR_OPS, -EINVAL),
		FIELD(flags, SIBIDLE_PROBE_WAIT, -EINVAL),
		FIELD(from, 4096, -EINVAL),
		FIELD(to, 0, -EINVAL),
		FIELD(number, 1, -EINVAL),
		FIELD(loops, 0, -EINVAL),
		FIELD(loops, SIBIDLE_PROBE_LOOPS_MAX + 1, -EINVAL),
		FIELD(done, 1, -EINVAL),
		FIELD(refusal, 1, -EINVAL),
#undef FIELD
	};
	struct sibidle_probe r = request(SIBIDLE_PROBE_MSR, SIBIDLE_MSR_TSC_AUX, 0, 0);
	int rc, looking = device(O_RDONLY);

	run_on(1);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		r = request(SIBIDLE_PROBE_MSR, SIBIDLE_MSR_TSC_AUX, 1, 1);
		((uint32_t *)&r)[wrong[i].at] = wrong[i].value;
		rc = carry_out(fd, &r);
		ok(rc == wrong[i].rc, "%s %u is refused (%d)", wrong[i].what, wrong[i].value, rc);
	}
	r = request(SIBIDLE_PROBE_MSR, SIBIDLE_MSR_TSC_AUX, 0, 0);
	rc = carry_out(fd, &r);
	ok(rc == -ENODEV, "a caller that is on another CPU than it says is refused (%d)", rc);
	r = request(SIBIDLE_PROBE_IPI, SIBIDLE_IPI_CALL, 1, 1);
	rc = carry_out(fd, &r);
	ok(rc == -EINVAL, "a call of oneself is refused: it is no interrupt (%d)", rc);
	r = request(SIBIDLE_PROBE_MSR, SIBIDLE_MSR_TSC_AUX, 1, 1);
	rc = carry_out(looking, &r);
	ok(rc == -EBADF, "a descriptor that only looks may not probe (%d)", rc);
	close(looking);
}

/* ---- what is left ---- */

#define CPUS_MAX 64

struct left {
	bool readable; /* there is a SPEC_CTRL */
	uint64_t spec_ctrl;
	uint32_t tsc_aux;
};

static void
look(int fd, struct left left[CPUS_MAX])
{
	for (unsigned int cpu = 0; cpu < cpus(); cpu++) {
		struct sibidle_register r = { .size = sizeof(r), .cpu = cpu };

		run_on(cpu);
		left[cpu].readable = ioctl(fd, SIBIDLE_IOC_REGISTER, &r) == 0;
		left[cpu].spec_ctrl = r.value;
		__builtin_ia32_rdtscp(&left[cpu].tsc_aux);
	}
}

/* Linux has the node above bit 12 of TSC_AUX and the CPU below (arch/x86/include/asm/segment.h). */
static void
test_left(int fd, const struct left before[CPUS_MAX])
{
	struct left now[CPUS_MAX] = { 0 };

	look(fd, now);
	for (unsigned int cpu = 0; cpu < cpus(); cpu++) {
		if (before[cpu].readable)
			ok(now[cpu].readable && now[cpu].spec_ctrl == before[cpu].spec_ctrl,
					"CPU %u: SPEC_CTRL is what it was, 0x%llx", cpu,
					(unsigned long long)now[cpu].spec_ctrl);
		else
			ok(x2apic && !now[cpu].readable,
					"CPU %u: QEMU has no SPEC_CTRL, before and after", cpu);
		ok(now[cpu].tsc_aux == before[cpu].tsc_aux && (now[cpu].tsc_aux & 0xfff) == cpu,
				"CPU %u: TSC_AUX tells it still", cpu);
		ok(interrupts_arrive(cpu), "CPU %u: interrupts arrive", cpu);
	}
}

int
main(int argc, char **argv)
{
	struct left before[CPUS_MAX] = { 0 };
	int fd;

	if (argc != 3) {
		fprintf(stderr, "usage: probe_test x2apic|xapic REQUESTS\n");
		return 2;
	}
	x2apic = strcmp(argv[1], "x2apic") == 0;
	fd = device(O_RDWR);
	in_request = mmap(NULL, sizeof(*in_request), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (in_request == MAP_FAILED)
		give_up("memory");
	look(fd, before);
	test_local(fd, 1);
	test_calls(fd, 0, 1);
	test_calls(fd, 1, 2);
	test_broadcast(fd, 1);
	test_wake(fd, 1);
	for (size_t i = 0; i < NB_LONG; i++) {
		test_ends(i, SIGINT, false);
		test_ends(i, SIGKILL, false);
	}
	test_ends(LONG_MSR, SIGINT, true);
	test_refused(fd);
	test_fuzz(strtoul(argv[2], NULL, 0));
	test_left(fd, before);
	/* Last: a CPU that comes on line has its registers set up anew, which would hide what is left. */
	for (size_t i = 0; i < NB_LONG; i++) {
		if (long_ones[i].to == 2 || long_ones[i].op == SIBIDLE_IPI_BROADCAST)
			test_offline(i, 2);
		test_offline(i, 1);
	}
	close(fd);
	printf("1..%u\n", checks);
	return failures != 0;
}
