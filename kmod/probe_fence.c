// SPDX-License-Identifier: GPL-2.0-only
/*
 * fence: what MFENCE and LFENCE cost before a WRMSR that does not serialize, as the kernel has them
 * before it writes an x2APIC register. They wait for the stores before them, so these are part of it.
 */
#include <linux/cache.h>
#include <linux/gfp.h>
#include <asm/apicdef.h>
#include <asm/irq_vectors.h>
#include <asm/msr-index.h>
#include <asm/special_insns.h>

#include "probe.h"

#define X2APIC_ICR 0x830

/* One store a line, and no line twice. */
static_assert(SIBIDLE_PROBE_STORES_MAX * SMP_CACHE_BYTES <= PAGE_SIZE);

/* A store to a line that is in the cache is done at once: none of them is. */
static void evict(const struct probe_run *run)
{
	unsigned int i;

	for (i = 0; i < run->req.number; i++)
		clflush((char *)run->own + i * SMP_CACHE_BYTES);
	mb();
}

static __always_inline void stores_and_fence(struct probe_run *run)
{
	unsigned int i;

	for (i = 0; i < run->req.number; i++)
		WRITE_ONCE(*((char *)run->own + i * SMP_CACHE_BYTES), 1);
	/* As weak_wrmsr_fence() of the kernel. */
	if (run->req.flags & SIBIDLE_PROBE_FENCED)
		asm volatile("mfence; lfence" ::: "memory");
}

static int fence_alone(struct probe_run *run, struct sibidle_sample *s)
{
	evict(run);
	s->begin = probe_tsc();
	stores_and_fence(run);
	s->end = probe_tsc();
	return 0;
}

static int fence_tsc_aux(struct probe_run *run, struct sibidle_sample *s)
{
	u64 value = __rdmsr(MSR_TSC_AUX);

	evict(run);
	s->begin = probe_tsc();
	stores_and_fence(run);
	native_wrmsrl(MSR_TSC_AUX, value);
	s->end = probe_tsc();
	return 0;
}

static int fence_icr(struct probe_run *run, struct sibidle_sample *s)
{
	evict(run);
	return probe_interrupt_self(run, s, X2APIC_ICR, APIC_DEST_SELF | IRQ_WORK_VECTOR,
				    stores_and_fence);
}

static int prepare(struct probe_run *run)
{
	run->own = (void *)get_zeroed_page(GFP_KERNEL);
	return run->own ? 0 : -ENOMEM;
}

static void finish(struct probe_run *run)
{
	free_page((unsigned long)run->own);
}

static const struct probe_op ops[SIBIDLE_FENCE_OPS] = {
	[SIBIDLE_FENCE_NOTHING] = { .once = fence_alone, .flags = SIBIDLE_PROBE_FENCED },
	[SIBIDLE_FENCE_TSC_AUX] = { .once = fence_tsc_aux,
				    .refusal = probe_needs_tsc_aux,
				    .flags = SIBIDLE_PROBE_FENCED },
	[SIBIDLE_FENCE_ICR] = { .once = fence_icr,
				.refusal = probe_needs_x2apic,
				.irqs_on = true,
				.flags = SIBIDLE_PROBE_FENCED },
};

const struct probe probe_fence = {
	.ops = ops,
	.nr_ops = SIBIDLE_FENCE_OPS,
	.number_max = SIBIDLE_PROBE_STORES_MAX,
	.prepare = prepare,
	.finish = finish,
	.interrupts = probe_irq_work_interrupts,
};
