/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "mechanisms.h"
#include "probe.h"
#include "sysroot.h"
#include "topology.h"

#define MEM_SIZE (64UL << 20) /* beyond any second-level cache */
#define LINE 64
#define RATE_OFF_MAX 5.0 /* percent that a rate may be off when it is verified */

/* A thread that keeps a CPU busy, wakes it, or does something to it so often a second, until it is told to end. It dies with its process. */
struct load {
	pthread_t thread;
	enum load_kind kind;
	uint64_t hz;
	unsigned char *memory;
	unsigned long at; /* in it */
	unsigned int cpu, target; /* of the thread, and the one that the load is for */
	struct sibidle module; /* fd -1: not used */
	int counter; /* file that is read, -1: none */
	int end; /* event that cuts a sleep short */
	uint64_t next_ns; /* when to wake up next, 0: not yet known */
	atomic_bool stop;
	_Atomic uint64_t turns;
	uint64_t seen, seen_ns; /* turns at the last look at its rate, and when that was; 0: none yet */
};

uint64_t
clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static bool
busy(struct load *l)
{
	for (unsigned int i = 0; i < 1000; i++)
		atomic_signal_fence(memory_order_seq_cst);
	(void)l;
	return true;
}

static bool
pause_turn(struct load *l)
{
	(void)l;
	for (unsigned int i = 0; i < 100; i++)
#if defined(__x86_64__)
		__builtin_ia32_pause();
#else
		atomic_signal_fence(memory_order_seq_cst);
#endif
	return true;
}

static bool
mem(struct load *l)
{
	/* volatile: really in memory */
	for (unsigned int i = 0; i < 1000; i++, l->at = (l->at + LINE) % MEM_SIZE)
		((volatile unsigned char *)l->memory)[l->at]++;
	return true;
}

static bool
syscall_turn(struct load *l)
{
	(void)l;
	syscall(SYS_getppid);
	return true;
}

/*
 * Deadlines are a period apart, however long a turn takes. One that is missed by a whole period is
 * left out, not made up for: the rate then falls short, which is found out.
 */
static bool
wake(struct load *l)
{
	uint64_t now = clock_ns(), period = 1000000000 / l->hz, left;
	struct pollfd end = { .fd = l->end, .events = POLLIN };
	struct timespec nap;

	l->next_ns += period;
	if (l->next_ns + period < now)
		l->next_ns = now + period;
	left = l->next_ns > now ? l->next_ns - now : 0;
	nap.tv_sec = (time_t)(left / 1000000000);
	nap.tv_nsec = (long)(left % 1000000000);
	ppoll(&end, 1, &nap, NULL);
	return true;
}

/* What the module is asked for: the kinds of load that have an operation of it. */
static const struct {
	uint32_t probe, op, flags;
} operations[] = {
	[LOAD_IPI] = { SIBIDLE_PROBE_IPI, SIBIDLE_IPI_CALL, SIBIDLE_PROBE_WAIT },
	[LOAD_WRMSR] = { SIBIDLE_PROBE_MSR, SIBIDLE_MSR_TSC_AUX, 0 },
};

static struct sibidle_probe
operation(const struct load *l)
{
	return (struct sibidle_probe){ .size = sizeof(struct sibidle_probe),
		.probe = operations[l->kind].probe,
		.op = operations[l->kind].op,
		.flags = operations[l->kind].flags,
		.from = l->cpu,
		.to = l->target,
		.loops = 1 };
}

static bool
request(struct load *l)
{
	struct sibidle_probe req = operation(l);

	return wake(l) && ioctl(l->module.fd, SIBIDLE_IOC_PROBE, &req) == 0;
}

static bool
mbm(struct load *l)
{
	char text[32];

	return wake(l) && pread(l->counter, text, sizeof(text), 0) > 0;
}

static bool (*const turns[])(struct load *l) = {
	[LOAD_BUSY] = busy,
	[LOAD_PAUSE] = pause_turn,
	[LOAD_MEM] = mem,
	[LOAD_SYSCALL] = syscall_turn,
	[LOAD_WAKE] = wake,
	[LOAD_IPI] = request,
	[LOAD_WRMSR] = request,
	[LOAD_MBM] = mbm,
};

static void *
run(void *arg)
{
	struct load *l = arg;

	prctl(PR_SET_TIMERSLACK, 1UL); /* the default of 50 us would be added to every sleep */
	while (!atomic_load_explicit(&l->stop, memory_order_relaxed)) {
		/* What fails is not counted, and is found out by the rate. */
		if (turns[l->kind](l))
			atomic_fetch_add_explicit(&l->turns, 1, memory_order_relaxed);
	}
	return NULL;
}

int
thread_on(pthread_t *thread, unsigned int cpu, void *(*run)(void *), void *arg)
{
	size_t size = CPU_ALLOC_SIZE(CPU_SETSIZE * 8);
	cpu_set_t *set = CPU_ALLOC(CPU_SETSIZE * 8);
	pthread_attr_t attr;
	int rc;

	if (set == NULL)
		return ENOMEM;
	CPU_ZERO_S(size, set);
	CPU_SET_S(cpu, size, set);
	pthread_attr_init(&attr);
	rc = pthread_attr_setaffinity_np(&attr, size, set);
	if (rc == 0)
		rc = pthread_create(thread, &attr, run, arg);
	pthread_attr_destroy(&attr);
	CPU_FREE(set);
	return rc;
}

static void
discard(struct load *l)
{
	if (l->end >= 0)
		close(l->end);
	if (l->counter >= 0)
		close(l->counter);
	sibidle_close(&l->module);
	free(l->memory);
	free(l);
}

/* The bandwidth counter of the CPU's third-level cache, of what belongs to no other group; -1: there is none. */
static int
open_counter(unsigned int cpu)
{
	uint64_t domain;

	if (!topology_l3_id(cpu, &domain))
		return -1;
	return sys_open("/sys/fs/resctrl/mon_data/mon_L3_%02" PRIu64 "/mbm_total_bytes", domain);
}

/*
 * Where the interrupts for a CPU come from: a CPU that this thread may use, not of the target's core, as the
 * other one there may be measured; for that, none that is isolated either, unless it may use no others.
 * Returns -1 with err set where there is none.
 */
static int
elsewhere(unsigned int target, struct err *err)
{
	size_t size = CPU_ALLOC_SIZE(CPU_SETSIZE * 8);
	cpu_set_t *mine = CPU_ALLOC(CPU_SETSIZE * 8);
	hwloc_bitmap_t core = hwloc_bitmap_alloc();
	struct topology t;
	int best = -1;

	if (mine == NULL || core == NULL)
		abort();
	CPU_ZERO_S(size, mine);
	sched_getaffinity(0, size, mine);
	if (topology_open(&t, NULL, err) != 0) {
		CPU_FREE(mine);
		hwloc_bitmap_free(core);
		return -1;
	}
	topology_add_core(&t, target, core);
	for (int cpu = CPU_SETSIZE * 8 - 1; cpu >= 0; cpu--) {
		unsigned int n = (unsigned int)cpu;

		if (CPU_ISSET_S(n, size, mine) && !hwloc_bitmap_isset(core, n) &&
				(best < 0 || !hwloc_bitmap_isset(t.isolated, n) ||
						hwloc_bitmap_isset(t.isolated, (unsigned int)best)))
			best = cpu;
	}
	topology_close(&t);
	hwloc_bitmap_free(core);
	CPU_FREE(mine);
	if (best < 0)
		return err_set(err, EXIT_SKIPPED,
				"needs a CPU outside the core of CPU %u that this process may send from",
				target);
	return best;
}

/* For the CPU that a load runs on. Returns 0, or -1 with err set. */
static int
find_cpu(struct load *l, struct err *err)
{
	int cpu = l->kind == LOAD_IPI ? elsewhere(l->target, err) : (int)l->target;

	l->cpu = (unsigned int)cpu;
	return cpu < 0 ? -1 : 0;
}

/* One request from the CPU that this thread is on. */
struct trial {
	struct sibidle module;
	struct sibidle_probe req;
	struct err err;
	int rc;
};

static void *
try_once(void *arg)
{
	struct trial *trial = arg;

	trial->rc = probe_request(&trial->module, &trial->req, &trial->err);
	return NULL;
}

/*
 * Whether the module can do what it will be asked for. What it refuses it refuses on all CPUs, so that the one of the
 * scenario is left alone: who only looks disturbs nobody.
 */
static int
check_operation(unsigned int target, enum load_kind kind, struct err *err)
{
	const struct load here = { .kind = kind,
		.cpu = (unsigned int)sched_getcpu(),
		.target = (unsigned int)sched_getcpu() };
	struct load there = { .kind = kind, .target = target };
	struct trial trial = { .req = operation(&here) };
	pthread_t thread;
	int rc;

	if (find_cpu(&there, err) != 0 || sibidle_open(&trial.module, true, err) != 0)
		return -1;
	/* Nobody can be called from here and be here. */
	if (kind == LOAD_IPI) {
		trial.req.op = SIBIDLE_IPI_NOTHING;
		trial.req.flags = 0;
	}
	trial.req.to = trial.req.from;
	rc = thread_on(&thread, here.cpu, try_once, &trial);
	if (rc != 0)
		err_set(err, EXIT_FAILED, "a thread on CPU %u: %s", here.cpu, strerror(rc));
	else {
		pthread_join(thread, NULL);
		rc = trial.rc;
		*err = rc != 0 ? trial.err : *err;
	}
	sibidle_close(&trial.module);
	return rc != 0 ? -1 : 0;
}

int
load_check(unsigned int cpu, const struct word_row *row, struct err *err)
{
	int counter;

	if (!sys_live())
		return err_set(err, EXIT_SKIPPED, "a recorded tree runs nothing");
	if (row->value == LOAD_IPI || row->value == LOAD_WRMSR)
		return check_operation(cpu, (enum load_kind)row->value, err);
	if (row->value == LOAD_MBM) {
		counter = open_counter(cpu);
		if (counter < 0)
			return err_set(err, EXIT_SKIPPED,
					"there is no mbm_total_bytes of CPU %u below /sys/fs/resctrl (mounted?)",
					cpu);
		close(counter);
	}
	return 0;
}

/* What the kind of load needs besides its thread. */
static int
prepare(struct load *l, const struct word *w, struct err *err)
{
	struct err why;

	if (l->end < 0)
		return err_set(err, EXIT_FAILED, "%s: %s", w->name, strerror(errno));
	if (find_cpu(l, &why) != 0)
		return err_set(err, why.code, "%s: %s", w->name, why.text);
	if (l->kind == LOAD_MEM && (l->memory = calloc(1, MEM_SIZE)) == NULL)
		return err_set(err, EXIT_FAILED, "%s: out of memory", w->name);
	if (l->kind == LOAD_MBM && (l->counter = open_counter(l->target)) < 0)
		return err_set(err, EXIT_FAILED, "%s: the counter is gone", w->name);
	if (l->kind == LOAD_IPI || l->kind == LOAD_WRMSR)
		return sibidle_open(&l->module, true, err);
	return 0;
}

int
load_apply(struct control *c, const struct word *w, struct err *err)
{
	struct load *l;
	int rc;

	l = calloc(1, sizeof(*l));
	if (l == NULL)
		return err_set(err, EXIT_FAILED, "out of memory");
	l->kind = (enum load_kind)w->row->value;
	l->hz = w->number;
	l->target = c->cpu;
	l->counter = l->module.fd = -1;
	l->end = eventfd(0, EFD_CLOEXEC);
	rc = prepare(l, w, err);
	if (rc == 0) {
		rc = thread_on(&l->thread, l->cpu, run, l);
		if (rc != 0)
			err_set(err, EXIT_FAILED, "%s: a thread on CPU %u: %s", w->name, l->cpu,
					strerror(rc));
	}
	if (rc != 0) {
		discard(l);
		return -1;
	}
	c->load = l;
	return 0;
}

uint64_t
load_turns(const struct load *l)
{
	return l == NULL ? 0 : atomic_load(&l->turns);
}

unsigned int
load_cpu(const struct load *l)
{
	return l->cpu;
}

double
load_rate_off(uint64_t wakes, uint64_t hz, double seconds)
{
	double wanted = (double)hz * seconds, off = fabs((double)wakes - wanted) - 1;

	return off > 0 ? 100 * off / wanted : 0;
}

/*
 * Long enough for a rate that is right to be told from one that is 5 % off, where there is time; two
 * periods at least, so that there is a wake-up to be seen. The time since the last look counts where that was so
 * long ago, which takes no time.
 */
static int
verify_rate(const struct control *c, const struct word *w, struct err *err)
{
	double period = 1.0 / (double)w->number, took = 0;
	double seconds = fmax(fmin(fmax(60 * period, 0.02), VERIFY_S / 2), 2 * period);
	uint64_t wakes = 0;

	/* Twice more, as the first wake-ups may be late. */
	for (int tries = 0; tries < 3; tries++) {
		uint64_t before = c->load->seen, start_ns = c->load->seen_ns;
		struct timespec nap = { .tv_sec = (time_t)seconds,
			.tv_nsec = (long)((seconds - floor(seconds)) * 1e9) };

		if (tries > 0)
			nanosleep(&nap, NULL);
		c->load->seen = load_turns(c->load);
		c->load->seen_ns = clock_ns();
		took = 1e-9 * (double)(c->load->seen_ns - start_ns);
		if (tries == 0 && (start_ns == 0 || took < seconds))
			continue;
		wakes = c->load->seen - before;
		if (wakes > 0 && load_rate_off(wakes, w->number, took) <= RATE_OFF_MAX)
			return 0;
	}
	return err_set(err, EXIT_FAILED, "%s: it came to %.0f a second on CPU %u, not %" PRIu64,
			w->name, (double)wakes / took, c->cpu, w->number);
}

/* Where the CPU goes off line the kernel moves the thread, and does not move it back. */
static bool
stays(const struct load *l, unsigned int cpu)
{
	size_t size = CPU_ALLOC_SIZE(CPU_SETSIZE * 8);
	cpu_set_t *set = CPU_ALLOC(CPU_SETSIZE * 8);
	bool only;

	if (set == NULL)
		abort();
	only = pthread_getaffinity_np(l->thread, size, set) != 0 ||
			(CPU_ISSET_S(cpu, size, set) && CPU_COUNT_S(size, set) == 1);
	CPU_FREE(set);
	return only;
}

int
load_verify(struct control *c, const struct word *w, struct err *err)
{
	const struct timespec nap = { .tv_nsec = 2000000 };
	uint64_t before = load_turns(c->load);

	if (!stays(c->load, c->load->cpu))
		return err_set(err, EXIT_FAILED, "%s: somebody let the thread off CPU %u", w->name,
				c->load->cpu);
	if (w->row->unit != NULL)
		return verify_rate(c, w, err);
	for (int i = 0; i < (int)(VERIFY_S / 2e-3); i++) {
		nanosleep(&nap, NULL);
		if (load_turns(c->load) != before)
			return 0;
	}
	return err_set(err, EXIT_FAILED, "%s: the thread on CPU %u does not get to run", w->name,
			c->cpu);
}

void
load_end(struct load *l)
{
	if (l == NULL)
		return;
	atomic_store(&l->stop, true);
	eventfd_write(l->end, 1);
	pthread_join(l->thread, NULL);
	discard(l);
}

bool
load_never_idles(const struct scenario *s)
{
	const struct word *w = scenario_word(s, WORD_LOAD);

	return w != NULL && w->row->unit == NULL;
}
