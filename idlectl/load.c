/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "mechanisms.h"
#include "sysroot.h"

#define MEM_SIZE (64UL << 20) /* beyond any second-level cache */
#define LINE 64

/* A thread that keeps a CPU busy, or wakes it, until it is told to end. It dies with its process. */
struct load {
	pthread_t thread;
	enum load_kind kind;
	uint64_t hz;
	unsigned char *memory;
	unsigned long at; /* in it */
	int end; /* event that cuts a sleep short */
	atomic_bool stop;
	_Atomic uint64_t turns;
};

static void
busy(struct load *l)
{
	for (unsigned int i = 0; i < 1000; i++)
		atomic_signal_fence(memory_order_seq_cst);
	(void)l;
}

static void
pause_turn(struct load *l)
{
	(void)l;
	for (unsigned int i = 0; i < 100; i++)
#if defined(__x86_64__)
		__builtin_ia32_pause();
#else
		atomic_signal_fence(memory_order_seq_cst);
#endif
}

static void
mem(struct load *l)
{
	/* volatile: really in memory */
	for (unsigned int i = 0; i < 1000; i++, l->at = (l->at + LINE) % MEM_SIZE)
		((volatile unsigned char *)l->memory)[l->at]++;
}

static void
syscall_turn(struct load *l)
{
	(void)l;
	syscall(SYS_getppid);
}

static void
wake(struct load *l)
{
	struct timespec nap = { .tv_sec = (time_t)(1 / l->hz),
		.tv_nsec = (long)(1000000000 / l->hz % 1000000000) };
	struct pollfd end = { .fd = l->end, .events = POLLIN };

	ppoll(&end, 1, &nap, NULL);
}

static void (*const turns[])(struct load *l) = {
	[LOAD_BUSY] = busy,
	[LOAD_PAUSE] = pause_turn,
	[LOAD_MEM] = mem,
	[LOAD_SYSCALL] = syscall_turn,
	[LOAD_WAKE] = wake,
};

static void *
run(void *arg)
{
	struct load *l = arg;

	prctl(PR_SET_TIMERSLACK, 1UL); /* the default of 50 us would be added to every sleep */
	while (!atomic_load_explicit(&l->stop, memory_order_relaxed)) {
		turns[l->kind](l);
		atomic_fetch_add_explicit(&l->turns, 1, memory_order_relaxed);
	}
	return NULL;
}

/* The new thread is on the CPU before it runs: it never disturbs another one. */
static int
start(struct load *l, unsigned int cpu)
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
		rc = pthread_create(&l->thread, &attr, run, l);
	pthread_attr_destroy(&attr);
	CPU_FREE(set);
	return rc;
}

static void
discard(struct load *l)
{
	if (l->end >= 0)
		close(l->end);
	free(l->memory);
	free(l);
}

int
load_apply(struct control *c, const struct word *w, struct err *err)
{
	struct load *l;
	int rc;

	if (!sys_live())
		return err_set(err, EXIT_SKIPPED, "%s: a recorded tree runs nothing", w->name);
	l = calloc(1, sizeof(*l));
	if (l == NULL)
		return err_set(err, EXIT_FAILED, "out of memory");
	l->kind = (enum load_kind)w->row->value;
	l->hz = w->number;
	l->end = eventfd(0, EFD_CLOEXEC);
	if (l->kind == LOAD_MEM)
		l->memory = calloc(1, MEM_SIZE);
	if (l->end < 0)
		rc = errno;
	else if (l->kind == LOAD_MEM && l->memory == NULL)
		rc = ENOMEM;
	else
		rc = start(l, c->cpu);
	if (rc == 0) {
		c->load = l;
		return 0;
	}
	discard(l);
	return err_set(err, EXIT_FAILED, "%s: a thread on CPU %u: %s", w->name, c->cpu,
			strerror(rc));
}

int
load_verify(struct control *c, const struct word *w, struct err *err)
{
	const struct timespec nap = { .tv_nsec = 2000000 };
	uint64_t before = atomic_load(&c->load->turns);

	for (int i = 0; i < (int)(VERIFY_S / 2e-3); i++) {
		nanosleep(&nap, NULL);
		if (atomic_load(&c->load->turns) != before)
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

	return w != NULL && w->row->value != LOAD_WAKE;
}
