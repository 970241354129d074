// SPDX-License-Identifier: GPL-2.0-only
/*
 * What all probes have in common: a request is checked, then its operation is repeated in short
 * chunks, between which the samples go to the caller, signals are looked at and others may run.
 */
#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/nospec.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/uaccess.h>
#include <asm/apic.h>
#include <asm/hardirq.h>
#include <asm/irq_vectors.h>
#include <asm/tsc.h>

#include "hook.h"
#include "probe.h"

static const struct probe *const probes[SIBIDLE_PROBES] = {
	[SIBIDLE_PROBE_IPI] = &probe_ipi,   [SIBIDLE_PROBE_FENCE] = &probe_fence,
	[SIBIDLE_PROBE_MSR] = &probe_msr,   [SIBIDLE_PROBE_EOI] = &probe_eoi,
	[SIBIDLE_PROBE_WAKE] = &probe_wake,
};

/* ---- what operations share ---- */

enum sibidle_refusal probe_needs_x2apic(void)
{
	return x2apic_enabled() ? SIBIDLE_OK : SIBIDLE_NO_X2APIC;
}

enum sibidle_refusal probe_needs_tsc_aux(void)
{
	return boot_cpu_has(X86_FEATURE_RDTSCP) ? SIBIDLE_OK : SIBIDLE_NO_TSC_AUX;
}

int probe_nothing(struct probe_run *run, struct sibidle_sample *s)
{
	s->begin = probe_tsc();
	s->end = probe_tsc();
	return 0;
}

u64 probe_irq_work_interrupts(const struct probe_run *run)
{
	return READ_ONCE(per_cpu(irq_stat, run->req.from).apic_irq_work_irqs);
}

bool probe_yield(u64 *end)
{
	cpu_relax();
	if (rdtsc() < *end)
		return true;
	preempt_enable();
	if (signal_pending(current)) {
		preempt_disable();
		return false;
	}
	cond_resched();
	preempt_disable();
	*end = probe_chunk_end();
	return true;
}

int probe_await_interrupt(const struct probe_run *run, u64 before)
{
	u64 end = probe_chunk_end(), given_up = rdtsc() + (u64)tsc_khz * 1000;

	/* The count has 32 bits. */
	while ((u32)probe_irq_work_interrupts(run) == (u32)before) {
		if (!probe_yield(&end))
			return -EINTR;
		if (rdtsc() > given_up)
			return -EIO;
	}
	return 0;
}

/* ---- a request ---- */

static const struct probe_op *find_op(struct sibidle_probe *req, const struct probe **probe)
{
	if (req->size != sizeof(*req) || req->probe >= SIBIDLE_PROBES)
		return NULL;
	*probe = probes[array_index_nospec(req->probe, SIBIDLE_PROBES)];
	if (req->op >= (*probe)->nr_ops)
		return NULL;
	return &(*probe)->ops[array_index_nospec(req->op, (*probe)->nr_ops)];
}

static bool valid(struct sibidle_probe *req, const struct probe *probe, const struct probe_op *op)
{
	u64 now = rdtsc();

	return !(req->flags & ~op->flags) && sibidle_cpu_valid(&req->from) &&
	       sibidle_cpu_valid(&req->to) && (probe->has_target || req->to == req->from) &&
	       req->number >= probe->number_min && req->number <= probe->number_max &&
	       req->loops >= 1 && req->loops <= SIBIDLE_PROBE_LOOPS_MAX && !req->sent &&
	       !req->handled && !req->interrupts && !req->done && !req->refusal &&
	       (!req->start || req->start <= now ||
		req->start - now <= (u64)SIBIDLE_START_MAX_S * 1000 * tsc_khz);
}

/* Until the moment at which all senders begin: asleep first, then awake, so as to be on time. */
static int await_start(u64 start)
{
	u64 now;

	/* One reading a turn: between two the moment may pass. */
	while ((now = rdtsc()) < start) {
		if (signal_pending(current))
			return -EINTR;
		if (start - now > (u64)tsc_khz * 2) /* 2 ms */
			usleep_range(500, 1000);
		else
			cond_resched();
	}
	return 0;
}

/* Loops until the buffer or the time is used up. Sets *n to those that are done. */
static int chunk(struct probe_run *run, const struct probe *probe, const struct probe_op *op,
		 u32 *n)
{
	u32 most = min_t(u32, run->req.loops - run->req.done, PROBE_CHUNK_SAMPLES);
	unsigned long flags = 0;
	u64 end;
	int rc = 0;

	*n = 0;
	if (probe->sleeps) {
		if (raw_smp_processor_id() != run->req.from)
			return -ENODEV;
		rc = op->once(run, &run->buf[0]);
		*n = !rc;
		return rc;
	}
	if (op->irqs_on)
		preempt_disable();
	else
		local_irq_save(flags);
	end = probe_chunk_end();
	if (raw_smp_processor_id() != run->req.from)
		rc = -ENODEV;
	while (!rc && *n < most) {
		rc = op->once(run, &run->buf[*n]);
		*n += !rc;
		if (rdtsc() > end)
			break;
	}
	if (op->irqs_on)
		preempt_enable();
	else
		local_irq_restore(flags);
	return rc;
}

static int loops(struct probe_run *run, const struct probe *probe, const struct probe_op *op)
{
	struct sibidle_sample __user *to = u64_to_user_ptr(run->req.samples);
	int rc = 0;
	u32 n;

	while (!rc && run->req.done < run->req.loops) {
		memset(run->buf, 0, sizeof(run->buf));
		rc = chunk(run, probe, op, &n);
		if (to && copy_to_user(to + run->req.done, run->buf, n * sizeof(run->buf[0])))
			return -EFAULT;
		run->req.done += n;
		if (!rc && run->req.done < run->req.loops && signal_pending(current))
			rc = -EINTR;
		cond_resched();
	}
	return rc;
}

static int carry_out(struct probe_run *run, const struct probe *probe, const struct probe_op *op)
{
	u64 before;
	int rc;

	if (!cpu_online(run->req.to) || raw_smp_processor_id() != run->req.from)
		return -ENODEV;
	if (check_tsc_unstable())
		run->req.refusal = SIBIDLE_TSC_UNSTABLE;
	else if (op->refusal)
		run->req.refusal = op->refusal();
	if (run->req.refusal)
		return -EOPNOTSUPP;
	rc = probe->prepare ? probe->prepare(run) : 0;
	if (rc)
		return rc;
	rc = await_start(run->req.start);
	before = probe->interrupts ? probe->interrupts(run) : 0;
	if (!rc)
		rc = loops(run, probe, op);
	/* What is still under way is waited for, and counts. The kernel's counts have 32 bits. */
	if (probe->finish)
		probe->finish(run);
	if (probe->interrupts)
		run->req.interrupts = (u32)(probe->interrupts(run) - before);
	return rc;
}

long sibidle_probe_ioctl(struct file *file, void __user *arg)
{
	const struct probe_op *op;
	const struct probe *probe;
	struct probe_run *run;
	long rc;

	if (!(file->f_mode & FMODE_WRITE))
		return -EBADF;
	run = kzalloc(sizeof(*run), GFP_KERNEL);
	if (!run)
		return -ENOMEM;
	rc = -EFAULT;
	if (copy_from_user(&run->req, arg, sizeof(run->req)))
		goto free;
	rc = -EINVAL;
	op = find_op(&run->req, &probe);
	if (!op || !valid(&run->req, probe, op))
		goto free;
	rc = carry_out(run, probe, op);
	if (copy_to_user(arg, &run->req, sizeof(run->req)))
		rc = -EFAULT;
free:
	kfree(run);
	return rc;
}
