// SPDX-License-Identifier: GPL-2.0-only
/*
 * ipi: a function called on another CPU, on all others, or on this one by interrupt. A CPU that idles
 * by MWAIT is woken by a write to its flags and gets no interrupt: the counts tell.
 */
#include <linux/atomic.h>
#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/irq_work.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <asm/hardirq.h>

#include "probe.h"

struct call {
	atomic_t handled; /* functions that ran in this loop, */
	unsigned int sent; /* of so many */
	u64 at; /* TSC of the last of them */
	struct irq_work self;
	struct cpumask others; /* of a broadcast, as they were when it began */
};

static void arrived(void *info)
{
	struct call *call = info;

	WRITE_ONCE(call->at, probe_tsc());
	/* Whoever sees the count sees the moment. */
	smp_mb__before_atomic();
	atomic_inc(&call->handled);
}

static void arrived_self(struct irq_work *work)
{
	arrived(container_of(work, struct call, self));
}

static void begin(struct call *call)
{
	atomic_set(&call->handled, 0);
	call->sent = 0;
}

/*
 * Until it has run everywhere. A CPU that goes off line runs what it was sent before. A signal ends the waiting, but
 * not what is waited for.
 */
static int await(struct call *call, unsigned int n)
{
	u64 end = probe_chunk_end();

	while (atomic_read_acquire(&call->handled) != n)
		if (!probe_yield(&end))
			return -EINTR;
	return 0;
}

/* With the moment at which it ran, where that is one. */
static int account(struct probe_run *run, struct sibidle_sample *s, unsigned int n)
{
	struct call *call = run->own;
	int rc;

	call->sent = n;
	run->req.sent += n;
	rc = await(call, n);
	if (rc)
		return rc;
	s->seen = run->req.flags & SIBIDLE_PROBE_WAIT ? s->end : probe_tsc();
	s->handled = READ_ONCE(call->at);
	run->req.handled += n;
	begin(call);
	return 0;
}

static int call_once(struct probe_run *run, struct sibidle_sample *s)
{
	struct call *call = run->own;
	int rc;

	begin(call);
	s->begin = probe_tsc();
	rc = smp_call_function_single(run->req.to, arrived, call,
				      run->req.flags & SIBIDLE_PROBE_WAIT);
	s->end = probe_tsc();
	if (rc)
		return -ENODEV;
	return account(run, s, 1);
}

static int self_once(struct probe_run *run, struct sibidle_sample *s)
{
	struct call *call = run->own;

	begin(call);
	s->begin = probe_tsc();
	irq_work_queue(&call->self);
	s->end = probe_tsc();
	return account(run, s, 1);
}

/* None goes off line while preemption is off. */
static int broadcast_once(struct probe_run *run, struct sibidle_sample *s)
{
	struct call *call = run->own;

	if (!cpumask_subset(&call->others, cpu_online_mask))
		return -ENODEV;
	begin(call);
	s->begin = probe_tsc();
	smp_call_function_many(&call->others, arrived, call, run->req.flags & SIBIDLE_PROBE_WAIT);
	s->end = probe_tsc();
	return account(run, s, cpumask_weight(&call->others));
}

static int prepare(struct probe_run *run)
{
	struct call *call;

	/* A call of oneself is no interrupt, and what names no target goes by from. */
	if ((run->req.op == SIBIDLE_IPI_CALL) == (run->req.to == run->req.from))
		return -EINVAL;
	call = kzalloc(sizeof(*call), GFP_KERNEL);
	if (!call)
		return -ENOMEM;
	call->self = IRQ_WORK_INIT_HARD(arrived_self);
	cpumask_copy(&call->others, cpu_online_mask);
	cpumask_clear_cpu(run->req.from, &call->others);
	if (run->req.op == SIBIDLE_IPI_BROADCAST && cpumask_empty(&call->others)) {
		kfree(call);
		return -ENODEV;
	}
	run->own = call;
	return 0;
}

static void finish(struct probe_run *run)
{
	struct call *call = run->own;

	/* After a signal the last loop's may still be under way: it is theirs until they ran. */
	while (atomic_read_acquire(&call->handled) != call->sent)
		usleep_range(10, 100);
	run->req.handled += call->sent;
	irq_work_sync(&call->self);
	kfree(call);
}

static u64 calls(unsigned int cpu)
{
	return READ_ONCE(per_cpu(irq_stat, cpu).irq_call_count);
}

static u64 interrupts(const struct probe_run *run)
{
	u64 n = 0;
	unsigned int cpu;

	if (run->req.op == SIBIDLE_IPI_SELF)
		return probe_irq_work_interrupts(run);
	if (run->req.op == SIBIDLE_IPI_CALL)
		return calls(run->req.to);
	for_each_possible_cpu(cpu)
		if (cpu != run->req.from)
			n += calls(cpu);
	return n;
}

static const struct probe_op ops[SIBIDLE_IPI_OPS] = {
	[SIBIDLE_IPI_NOTHING] = { .once = probe_nothing, .irqs_on = true },
	[SIBIDLE_IPI_CALL] = { .once = call_once, .irqs_on = true, .flags = SIBIDLE_PROBE_WAIT },
	[SIBIDLE_IPI_SELF] = { .once = self_once, .irqs_on = true },
	[SIBIDLE_IPI_BROADCAST] = { .once = broadcast_once,
				    .irqs_on = true,
				    .flags = SIBIDLE_PROBE_WAIT },
};

const struct probe probe_ipi = {
	.ops = ops,
	.nr_ops = SIBIDLE_IPI_OPS,
	.has_target = true,
	.prepare = prepare,
	.finish = finish,
	.interrupts = interrupts,
};
