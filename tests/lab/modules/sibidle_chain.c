// SPDX-License-Identifier: GPL-2.0-only
/*
 * A second module that hooks the idle driver, on top of sibidle. Its own removal is the naive
 * one: the test takes it out while no CPU can be inside, with cpuidle paused.
 */
#include <linux/cpu.h>
#include <linux/cpuidle.h>
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/smp.h>

typedef int (*enter_fn)(struct cpuidle_device *dev, struct cpuidle_driver *drv, int index);

static enter_fn below[CPUIDLE_STATE_MAX];

static int enter_above(struct cpuidle_device *dev, struct cpuidle_driver *drv, int index)
{
	return below[index](dev, drv, index);
}

static int __init chain_init(void)
{
	struct cpuidle_driver *drv;
	int i;

	cpuidle_pause_and_lock();
	drv = cpuidle_get_driver();
	for (i = 1; drv && i < drv->state_count; i++) {
		below[i] = drv->states[i].enter;
		WRITE_ONCE(drv->states[i].enter, enter_above);
	}
	cpuidle_resume_and_unlock();
	return drv ? 0 : -ENODEV;
}

static void __exit chain_exit(void)
{
	struct cpuidle_driver *drv;
	int i;

	cpuidle_pause_and_lock();
	drv = cpuidle_get_driver();
	for (i = 1; i < drv->state_count; i++)
		WRITE_ONCE(drv->states[i].enter, below[i]);
	/* Paused, cpuidle has woken all CPUs and none comes back: they are out before long. */
	msleep(100);
	kick_all_cpus_sync();
	cpuidle_resume_and_unlock();
}

module_init(chain_init);
module_exit(chain_exit);

MODULE_DESCRIPTION("Second idle hook for tests of sibidle");
MODULE_LICENSE("GPL");
