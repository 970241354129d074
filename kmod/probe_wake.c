// SPDX-License-Identifier: GPL-2.0-only
/*
 * wake: how long after a timer's expiry its handler runs, and then the thread that it wakes, on a CPU
 * that had nothing else to do and was asleep in an idle state meanwhile.
 */
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "probe.h"

struct sleeper {
	struct hrtimer timer;
	struct task_struct *task;
	u64 handled; /* ns; 0: not yet */
};

static enum hrtimer_restart expired(struct hrtimer *timer)
{
	struct sleeper *sleeper = container_of(timer, struct sleeper, timer);

	WRITE_ONCE(sleeper->handled, ktime_get_ns());
	wake_up_process(sleeper->task);
	return HRTIMER_NORESTART;
}

static int timer_once(struct probe_run *run, struct sibidle_sample *s)
{
	struct sleeper *sleeper = run->own;

	WRITE_ONCE(sleeper->handled, 0);
	hrtimer_start(&sleeper->timer, ns_to_ktime(run->req.number), HRTIMER_MODE_REL_PINNED_HARD);
	s->begin = hrtimer_get_expires_ns(&sleeper->timer);
	for (;;) {
		set_current_state(TASK_INTERRUPTIBLE);
		if (READ_ONCE(sleeper->handled) || signal_pending(current))
			break;
		schedule();
	}
	s->end = ktime_get_ns();
	__set_current_state(TASK_RUNNING);
	s->handled = READ_ONCE(sleeper->handled);
	if (!s->handled) {
		hrtimer_cancel(&sleeper->timer);
		return -EINTR;
	}
	/* It went with its CPU. */
	return raw_smp_processor_id() == run->req.from ? 0 : -ENODEV;
}

static int prepare(struct probe_run *run)
{
	struct sleeper *sleeper = kzalloc(sizeof(*sleeper), GFP_KERNEL);

	if (!sleeper)
		return -ENOMEM;
	hrtimer_init(&sleeper->timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	sleeper->timer.function = expired;
	sleeper->task = current;
	run->own = sleeper;
	return 0;
}

static void finish(struct probe_run *run)
{
	struct sleeper *sleeper = run->own;

	/* The handler may have woken us and not have returned yet. */
	hrtimer_cancel(&sleeper->timer);
	kfree(sleeper);
}

static const struct probe_op ops[SIBIDLE_WAKE_OPS] = {
	[SIBIDLE_WAKE_TIMER] = { .once = timer_once },
};

const struct probe probe_wake = {
	.ops = ops,
	.nr_ops = SIBIDLE_WAKE_OPS,
	.number_min = SIBIDLE_WAKE_MIN_NS,
	.number_max = SIBIDLE_WAKE_MAX_NS,
	.sleeps = true,
	.prepare = prepare,
	.finish = finish,
};
