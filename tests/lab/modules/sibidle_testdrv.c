// SPDX-License-Identifier: GPL-2.0-only
/*
 * An idle driver to hook where the emulator has none. Its states differ in what they do with
 * interrupts: OFF sleeps with them off, ON takes them inside its callback, LEAK takes them and
 * comes back with them on, as haltpoll may, HLT is ON under the name of intel_idle's callback in
 * guests without MWAIT, so that it has no modes. The last two start disabled; Linux from 6.3 on
 * warns of LEAK unless something like our hook turns interrupts off again.
 */
#include <linux/cpuidle.h>
#include <linux/module.h>
#include <linux/sched/idle.h>
#include <asm/mwait.h>

#include "compat.h"

static char *name = "sibidle_testdrv";
module_param(name, charp, 0444);
MODULE_PARM_DESC(name, "name of the driver; with intel_idle its states have all modes");

static unsigned int ecx;
module_param(ecx, uint, 0444);
MODULE_PARM_DESC(ecx, "of MWAIT; 1: masked interrupts wake it");

/*
 * MWAIT with interrupts off. QEMU's takes no ECX and returns at once, so the idle loop spins through
 * the driver there; elsewhere only ECX 1 lets interrupts wake it. A CPU without MWAIT spins too.
 */
static __cpuidle int enter_off(struct cpuidle_device *dev, struct cpuidle_driver *drv, int index)
{
	if (boot_cpu_has(X86_FEATURE_MWAIT) && !current_set_polling_and_test()) {
		__monitor(&current_thread_info()->flags, 0, 0);
		if (!need_resched())
			__mwait(0, ecx);
	}
	current_clr_polling();
	return index;
}

/* native_safe_halt(), so that the sleeping instruction is in this module. */
static __cpuidle int enter_leak(struct cpuidle_device *dev, struct cpuidle_driver *drv, int index)
{
	native_safe_halt();
	return index;
}

static __cpuidle int enter_on(struct cpuidle_device *dev, struct cpuidle_driver *drv, int index)
{
	native_safe_halt();
	sibidle_irq_disable();
	return index;
}

static __cpuidle int intel_idle_hlt_test(struct cpuidle_device *dev, struct cpuidle_driver *drv,
					 int index)
{
	return enter_on(dev, drv, index);
}

/* The flags carry an MWAIT hint as intel_idle's do, in bits 24 to 31, for keep and clear. */
static struct cpuidle_driver driver = {
	.owner = THIS_MODULE,
	.states = {
		{ /* POLL goes here */ },
		{
			.name = "OFF",
			.desc = "interrupts off",
			.exit_latency = 2,
			.target_residency = 2,
			.enter = enter_off,
		},
		{
			.name = "ON",
			.desc = "interrupts on",
			.flags = BIT(14), /* intel_idle's CPUIDLE_FLAG_IRQ_ENABLE */
			.exit_latency = 10,
			.target_residency = 20,
			.enter = enter_on,
		},
		{
			.name = "LEAK",
			.desc = "interrupts on, left on",
			.flags = CPUIDLE_FLAG_OFF | BIT(14),
			.exit_latency = 50,
			.target_residency = 100,
			.enter = enter_leak,
		},
		{
			.name = "HLT",
			.desc = "no MWAIT",
			.flags = CPUIDLE_FLAG_OFF | BIT(14),
			.exit_latency = 100,
			.target_residency = 200,
			.enter = intel_idle_hlt_test,
		},
	},
	.safe_state_index = 0,
	.state_count = 5,
};

/*
 * The core holds the module for each of its devices, so that it cannot be unloaded before they are
 * unregistered: writing to the parameter does that.
 */
static bool registered;

static int unregister_set(const char *value, const struct kernel_param *kp)
{
	if (registered)
		cpuidle_unregister(&driver);
	registered = false;
	return 0;
}

static const struct kernel_param_ops unregister_ops = { .set = unregister_set };
module_param_cb(unregister, &unregister_ops, NULL, 0200);
MODULE_PARM_DESC(unregister, "write anything: unregister the driver");

static int __init testdrv_init(void)
{
	int rc;

	driver.name = name;
	cpuidle_poll_state_init(&driver);
	rc = cpuidle_register(&driver, NULL);
	registered = rc == 0;
	return rc;
}

static void __exit testdrv_exit(void)
{
	unregister_set(NULL, NULL);
}

module_init(testdrv_init);
module_exit(testdrv_exit);

MODULE_DESCRIPTION("Idle driver for tests of sibidle");
MODULE_LICENSE("GPL");
