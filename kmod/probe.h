/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SIBIDLE_PROBE_H
#define SIBIDLE_PROBE_H

/*
 * Micro-benchmarks of privileged operations: probe.c checks a request and repeats, probe_*.c have
 * the operations, one file a probe.
 */
#include <linux/fs.h>
#include <linux/types.h>
#include <asm/msr.h>
#include <asm/tsc.h>

#include "sibidle.h"

/* Interrupts, or only preemption, are off for so long at most, and a signal waits for so long. */
#define PROBE_CHUNK_US	    50
#define PROBE_CHUNK_SAMPLES 128

/* A request that is being carried out. */
struct probe_run {
	struct sibidle_probe req; /* as given; its outputs are filled */
	u64 saved; /* value of the register that is rewritten */
	void *own; /* of the probe, made by its prepare() and undone by its finish() */
	struct sibidle_sample buf[PROBE_CHUNK_SAMPLES];
};

struct probe_op {
	/* Why the machine cannot do it; NULL: it can. */
	enum sibidle_refusal (*refusal)(void);
	/* One loop: fills s. Returns 0 or the error that ends the run. */
	int (*once)(struct probe_run *run, struct sibidle_sample *s);
	/*
	 * once() is called with preemption off and interrupts on, so that what it sends arrives; else
	 * interrupts are off too. A call that waits spins inside the kernel until its target has
	 * taken the interrupt, however long that has its interrupts off: only the kernel can end that.
	 */
	bool irqs_on;
	u32 flags; /* of sibidle_probe, that it knows */
};

struct probe {
	const struct probe_op *ops;
	unsigned int nr_ops;
	u32 number_min, number_max;
	bool has_target; /* to may be another CPU than from */
	/* once() sleeps: nothing is switched off, and a chunk is one loop. */
	bool sleeps;
	/* Before the first loop and after the last, where they are needed. May sleep. */
	int (*prepare)(struct probe_run *run);
	void (*finish)(struct probe_run *run);
	/* Interrupts of its kind that CPUs counted until now, where they are to be counted. */
	u64 (*interrupts)(const struct probe_run *run);
};

extern const struct probe probe_ipi, probe_fence, probe_msr, probe_eoi, probe_wake;

/* SIBIDLE_IOC_PROBE. */
long sibidle_probe_ioctl(struct file *file, void __user *arg);

/*
 * The TSC before or after what is timed, so that nothing of it is on the other side: after "How to
 * Benchmark Code Execution Times on Intel IA-32 and IA-64", Intel 324264, 2010, with LFENCE where it has
 * CPUID, for which a guest would exit. Does not wait for stores.
 */
static __always_inline u64 probe_tsc(void)
{
	u64 tsc;

	asm volatile("lfence" ::: "memory");
	tsc = rdtsc();
	asm volatile("lfence" ::: "memory");
	return tsc;
}

/* Whether the operation can be had, for struct probe_op. */
enum sibidle_refusal probe_needs_x2apic(void);
enum sibidle_refusal probe_needs_tsc_aux(void);

/* once() of the operations that do nothing. */
int probe_nothing(struct probe_run *run, struct sibidle_sample *s);

static __always_inline u64 probe_chunk_end(void)
{
	return rdtsc() + (u64)tsc_khz * PROBE_CHUNK_US / 1000;
}

/*
 * A turn of waiting with preemption off: lets others run when end, of probe_chunk_end(), has come, which it then sets
 * anew. False where a signal came.
 */
bool probe_yield(u64 *end);

/*
 * Interrupts of irq_work that this CPU took, and until there is one more: at once, but an emulator may be slow. EINTR: a
 * signal came; EIO: there is none within a second.
 */
u64 probe_irq_work_interrupts(const struct probe_run *run);
int probe_await_interrupt(const struct probe_run *run, u64 before);

/*
 * once() of what has the x2APIC send this CPU an interrupt: writes value to the register, then takes
 * the interrupt, which is irq_work's and finds no work. Inline, as is before(): nothing else is timed.
 */
static __always_inline int probe_interrupt_self(struct probe_run *run, struct sibidle_sample *s,
						u32 msr, u64 value,
						void (*before)(struct probe_run *run))
{
	u64 counted = probe_irq_work_interrupts(run);

	local_irq_disable();
	s->begin = probe_tsc();
	if (before)
		before(run);
	native_wrmsrl(msr, value);
	s->end = probe_tsc();
	local_irq_enable();
	run->req.sent++;
	return probe_await_interrupt(run, counted);
}

#endif
