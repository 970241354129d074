// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/sibidle: who owns which CPU, and how everything comes back. An open file is a lease; all
 * its ways to end, and those of its CPUs, meet in let_go().
 */
#define pr_fmt(fmt) "sibidle: " fmt

#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/fs.h>
#include <linux/jiffies.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pm_qos.h>
#include <linux/reboot.h>
#include <linux/slab.h>
#include <linux/suspend.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>
#include <asm/tsc.h>

#include "hook.h"
#include "probe.h"

/* An open file. */
struct lease {
	bool hooks; /* has made a change, so the hook stays for it */
};

/* What is leased of a CPU. */
struct slot {
	struct lease *owner;
	enum sibidle_end ended;
	bool limited; /* latency is a request of ours */
	struct dev_pm_qos_request latency;
	bool expires;
	unsigned long deadline; /* jiffies, while it expires */
	struct delayed_work expiry;
	unsigned int cpu;
};

/* Everything below is changed under cpus_read_lock() and then this. */
static DEFINE_MUTEX(lease_lock);
static struct slot *slots; /* nr_cpu_ids */
static unsigned int hook_users;
static bool closed; /* the machine suspends or shuts down: no leases */

static void leases_lock(void)
{
	cpus_read_lock();
	mutex_lock(&lease_lock);
}

static void leases_unlock(void)
{
	mutex_unlock(&lease_lock);
	cpus_read_unlock();
}

/* End the lease of a CPU: stock again, no limit, no owner. */
static void let_go(struct slot *s, enum sibidle_end why)
{
	if (!s->owner)
		return;
	/* Off line it is not woken, and finds stock when it comes back. */
	sibidle_hook_mode(s->cpu, SIBIDLE_STOCK, true);
	if (s->limited)
		dev_pm_qos_remove_request(&s->latency);
	s->limited = false;
	s->expires = false;
	/* The work takes our lock, so it cannot be waited for; it looks at the deadline. */
	cancel_delayed_work(&s->expiry);
	s->owner = NULL;
	s->ended = why;
}

static void let_all_go(enum sibidle_end why, const char *event)
{
	unsigned int cpu, n = 0;

	leases_lock();
	closed = true;
	for_each_possible_cpu(cpu) {
		n += slots[cpu].owner != NULL;
		let_go(&slots[cpu], why);
	}
	leases_unlock();
	if (n)
		pr_info("%u CPUs given back: the machine %s\n", n, event);
}

static void expired(struct work_struct *work)
{
	struct slot *s = container_of(to_delayed_work(work), struct slot, expiry);

	leases_lock();
	if (s->expires && time_after_eq(jiffies, s->deadline))
		let_go(s, SIBIDLE_EXPIRED);
	leases_unlock();
}

static int set_latency(struct slot *s, const struct sibidle_set *set)
{
	int rc;

	if (!(set->flags & SIBIDLE_SET_LATENCY)) {
		if (s->limited)
			dev_pm_qos_remove_request(&s->latency);
		s->limited = false;
		return 0;
	}
	if (s->limited)
		rc = dev_pm_qos_update_request(&s->latency, set->latency_us);
	else
		rc = dev_pm_qos_add_request(get_cpu_device(s->cpu), &s->latency,
					    DEV_PM_QOS_RESUME_LATENCY, set->latency_us);
	if (rc < 0)
		return rc;
	s->limited = true;
	return 0;
}

static int do_set(struct lease *lease, struct sibidle_set *set)
{
	struct slot *s = &slots[set->cpu];
	int rc;

	if (closed)
		return -EAGAIN;
	if (s->owner && s->owner != lease)
		return -EBUSY;
	set->refusal = sibidle_hook_refusal(set->cpu, set->mode);
	if (set->refusal != SIBIDLE_OK)
		return -EOPNOTSUPP;
	rc = sibidle_hook_install();
	if (rc)
		return rc;
	if (!lease->hooks) {
		lease->hooks = true;
		hook_users++;
	}
	rc = set_latency(s, set);
	if (rc)
		return rc;
	s->owner = lease;
	s->expires = set->flags & SIBIDLE_SET_TTL;
	if (s->expires) {
		s->deadline = jiffies + msecs_to_jiffies(set->ttl_ms);
		mod_delayed_work(system_wq, &s->expiry, msecs_to_jiffies(set->ttl_ms));
	} else {
		cancel_delayed_work(&s->expiry);
	}
	sibidle_hook_mode(set->cpu, set->mode, !(set->flags & SIBIDLE_SET_NO_SAMPLES));
	return 0;
}

#define SET_FLAGS (SIBIDLE_SET_LATENCY | SIBIDLE_SET_TTL | SIBIDLE_SET_NO_SAMPLES)

static bool set_valid(struct sibidle_set *set)
{
	return set->size == sizeof(*set) && !set->reserved && sibidle_cpu_valid(&set->cpu) &&
	       set->mode < SIBIDLE_MODES && !(set->flags & ~SET_FLAGS) &&
	       (set->flags & SIBIDLE_SET_LATENCY
			? set->latency_us >= 1 && set->latency_us <= S32_MAX - 1
			: !set->latency_us) &&
	       (set->flags & SIBIDLE_SET_TTL ? set->ttl_ms >= 1 && set->ttl_ms <= SIBIDLE_TTL_MAX_MS
					     : !set->ttl_ms);
}

static long ioctl_set(struct file *file, void __user *arg)
{
	struct sibidle_set set;
	long rc;

	if (!(file->f_mode & FMODE_WRITE))
		return -EBADF;
	if (copy_from_user(&set, arg, sizeof(set)))
		return -EFAULT;
	if (!set_valid(&set))
		return -EINVAL;
	set.refusal = SIBIDLE_OK;
	leases_lock();
	rc = do_set(file->private_data, &set);
	leases_unlock();
	/* A reason that does not arrive is no cause to undo what was done. */
	if (put_user(set.refusal, &((struct sibidle_set __user *)arg)->refusal) && !rc)
		rc = -EFAULT;
	return rc;
}

static long ioctl_info(struct file *file, void __user *arg)
{
	struct sibidle_info *info;
	long rc = 0;
	u32 size, reserved;

	if (get_user(size, &((struct sibidle_info __user *)arg)->size) ||
	    get_user(reserved, &((struct sibidle_info __user *)arg)->reserved))
		return -EFAULT;
	if (size != sizeof(*info) || reserved)
		return -EINVAL;
	info = kzalloc(sizeof(*info), GFP_KERNEL);
	if (!info)
		return -ENOMEM;
	info->size = sizeof(*info);
	info->abi = SIBIDLE_ABI;
	info->nr_cpus = nr_cpu_ids;
	info->tsc_khz = tsc_khz;
	leases_lock();
	sibidle_hook_info(info);
	leases_unlock();
	if (copy_to_user(arg, info, sizeof(*info)))
		rc = -EFAULT;
	kfree(info);
	return rc;
}

static long ioctl_stats(struct file *file, void __user *arg)
{
	struct sibidle_stats __user *to = arg;
	struct sibidle_stats *stats;
	u32 size, cpu, reserved;
	long rc;

	if (get_user(size, &to->size) || get_user(cpu, &to->cpu) ||
	    get_user(reserved, &to->reserved))
		return -EFAULT;
	if (size != sizeof(*stats) || reserved || !sibidle_cpu_valid(&cpu))
		return -EINVAL;
	stats = kzalloc(sizeof(*stats), GFP_KERNEL);
	if (!stats)
		return -ENOMEM;
	stats->size = sizeof(*stats);
	stats->cpu = cpu;
	leases_lock();
	if (slots[cpu].owner)
		stats->owner =
			slots[cpu].owner == file->private_data ? SIBIDLE_MINE : SIBIDLE_OTHERS;
	stats->ended = slots[cpu].ended;
	leases_unlock();
	rc = sibidle_hook_stats(stats);
	if (!rc && copy_to_user(arg, stats, sizeof(*stats)))
		rc = -EFAULT;
	kfree(stats);
	return rc;
}

static long ioctl_register(struct file *file, void __user *arg)
{
	struct sibidle_register reg;
	long rc;

	if (copy_from_user(&reg, arg, sizeof(reg)))
		return -EFAULT;
	if (reg.size != sizeof(reg) || !sibidle_cpu_valid(&reg.cpu))
		return -EINVAL;
	cpus_read_lock();
	rc = sibidle_hook_register(&reg);
	cpus_read_unlock();
	if (!rc && copy_to_user(arg, &reg, sizeof(reg)))
		rc = -EFAULT;
	return rc;
}

static const struct {
	unsigned int request;
	long (*call)(struct file *file, void __user *arg);
} requests[] = {
	{ SIBIDLE_IOC_INFO, ioctl_info },	    { SIBIDLE_IOC_SET, ioctl_set },
	{ SIBIDLE_IOC_STATS, ioctl_stats },	    { SIBIDLE_IOC_REGISTER, ioctl_register },
	{ SIBIDLE_IOC_PROBE, sibidle_probe_ioctl },
};

static long sibidle_ioctl(struct file *file, unsigned int request, unsigned long arg)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(requests); i++)
		if (requests[i].request == request)
			return requests[i].call(file, (void __user *)arg);
	return -ENOTTY;
}

static int sibidle_open(struct inode *inode, struct file *file)
{
	struct lease *lease = kzalloc(sizeof(*lease), GFP_KERNEL);

	if (!lease)
		return -ENOMEM;
	file->private_data = lease;
	return nonseekable_open(inode, file);
}

static int sibidle_release(struct inode *inode, struct file *file)
{
	struct lease *lease = file->private_data;
	unsigned int cpu;

	leases_lock();
	for_each_possible_cpu(cpu)
		if (slots[cpu].owner == lease)
			let_go(&slots[cpu], SIBIDLE_CLOSED);
	if (lease->hooks)
		hook_users--;
	/* Tried at every close, so that a hook that was chained goes when it can. */
	if (!hook_users && !sibidle_hook_remove())
		pr_err_ratelimited(
			"another module hooked the idle driver on top: nothing is put back, remove "
			"that module and open and close %s\n",
			SIBIDLE_DEVICE);
	leases_unlock();
	kfree(lease);
	return 0;
}

static const struct file_operations sibidle_fops = {
	.owner = THIS_MODULE,
	.open = sibidle_open,
	.release = sibidle_release,
	.unlocked_ioctl = sibidle_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

/* Status for people, in /sys/class/misc/sibidle/. One value a file, nothing can be written. */
static const char *const refusal_names[SIBIDLE_REFUSALS] = {
	[SIBIDLE_OK] = "available",
	[SIBIDLE_CPU_OFFLINE] = "no: the CPU is off line",
	[SIBIDLE_EIBRS] = "no: no kernel IBRS, enhanced IBRS is in use",
	[SIBIDLE_NOT_INTEL] = "no: no kernel IBRS, not an Intel CPU",
	[SIBIDLE_OTHER_MITIGATION] = "no: no kernel IBRS, another spectre_v2 mitigation is in use",
	[SIBIDLE_NO_MITIGATION] = "no: no kernel IBRS, the spectre_v2 mitigation is off",
	[SIBIDLE_SMT_INACTIVE] = "no: SMT is not active",
	[SIBIDLE_OTHER_DRIVER] = "no: the idle driver is not intel_idle",
	[SIBIDLE_NO_DRIVER] = "no: there is no idle driver",
	[SIBIDLE_NO_MWAIT] = "no: no idle state sleeps by MWAIT",
	/* The rest is about probes, never about modes. */
};

static const char *const mode_names[SIBIDLE_MODES] = {
	[SIBIDLE_STOCK] = "stock",
	[SIBIDLE_KEEP] = "keep",
	[SIBIDLE_CLEAR] = "clear",
};

static ssize_t refusal_show(char *buf, enum sibidle_mode mode)
{
	ssize_t n;

	leases_lock();
	n = sysfs_emit(buf, "%s\n", refusal_names[sibidle_hook_refusal(-1, mode)]);
	leases_unlock();
	return n;
}

/* Under intel_idle.ibrs_off (Linux 6.7) stock is named what it is. */
static ssize_t stock_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct sibidle_info *info = kzalloc(sizeof(*info), GFP_KERNEL);
	ssize_t n;

	if (!info)
		return -ENOMEM;
	leases_lock();
	sibidle_hook_info(info);
	leases_unlock();
	n = sysfs_emit(buf, "%s%s\n", refusal_names[info->stock_refusal],
		       info->flags & SIBIDLE_IBRS_OFF
			       ? ", clears IBRS in every state by intel_idle.ibrs_off"
			       : "");
	kfree(info);
	return n;
}
static DEVICE_ATTR_RO(stock);

static ssize_t keep_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return refusal_show(buf, SIBIDLE_KEEP);
}
static DEVICE_ATTR_RO(keep);

static ssize_t clear_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return refusal_show(buf, SIBIDLE_CLEAR);
}
static DEVICE_ATTR_RO(clear);

static ssize_t hook_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	ssize_t n;

	leases_lock();
	n = sysfs_emit(buf, "%s\n",
		       sibidle_hook_chained()	  ? "chained"
		       : sibidle_hook_installed() ? "installed"
						  : "removed");
	leases_unlock();
	return n;
}
static DEVICE_ATTR_RO(hook);

/* The leased CPUs, "CPU mode" each on a line. */
static ssize_t leases_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	ssize_t n = 0;
	unsigned int cpu;

	leases_lock();
	for_each_possible_cpu(cpu)
		if (slots[cpu].owner)
			n += sysfs_emit_at(buf, n, "%u %s\n", cpu,
					   mode_names[sibidle_hook_mode_of(cpu)]);
	leases_unlock();
	return n;
}
static DEVICE_ATTR_RO(leases);

static struct attribute *sibidle_attrs[] = {
	&dev_attr_stock.attr, &dev_attr_keep.attr,   &dev_attr_clear.attr,
	&dev_attr_hook.attr,  &dev_attr_leases.attr, NULL,
};
ATTRIBUTE_GROUPS(sibidle);

static struct miscdevice sibidle_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "sibidle",
	.fops = &sibidle_fops,
	.groups = sibidle_groups,
	.mode = 0660,
};

/* The CPU goes off line: on it, under the hotplug lock, which stands for cpus_read_lock(). */
static int cpu_offline_callback(unsigned int cpu)
{
	mutex_lock(&lease_lock);
	let_go(&slots[cpu], SIBIDLE_OFFLINE);
	mutex_unlock(&lease_lock);
	return 0;
}

static int pm_callback(struct notifier_block *nb, unsigned long event, void *unused)
{
	if (event == PM_SUSPEND_PREPARE || event == PM_HIBERNATION_PREPARE)
		let_all_go(SIBIDLE_SUSPEND, "suspends");
	if (event == PM_POST_SUSPEND || event == PM_POST_HIBERNATION || event == PM_POST_RESTORE) {
		leases_lock();
		closed = false;
		leases_unlock();
	}
	return NOTIFY_DONE;
}

static int reboot_callback(struct notifier_block *nb, unsigned long event, void *unused)
{
	let_all_go(SIBIDLE_REBOOT, "shuts down");
	return NOTIFY_DONE;
}

static struct notifier_block pm_notifier = { .notifier_call = pm_callback };
static struct notifier_block reboot_notifier = { .notifier_call = reboot_callback };
static int hotplug_state;

static int __init sibidle_init(void)
{
	unsigned int cpu;
	int rc;

	slots = kcalloc(nr_cpu_ids, sizeof(*slots), GFP_KERNEL);
	if (!slots)
		return -ENOMEM;
	for (cpu = 0; cpu < nr_cpu_ids; cpu++) {
		slots[cpu].cpu = cpu;
		INIT_DELAYED_WORK(&slots[cpu].expiry, expired);
	}
	rc = sibidle_hook_init();
	if (rc)
		goto free_slots;
	hotplug_state = cpuhp_setup_state_nocalls(CPUHP_AP_ONLINE_DYN, "sibidle:online", NULL,
						  cpu_offline_callback);
	if (hotplug_state < 0) {
		rc = hotplug_state;
		goto exit_hook;
	}
	rc = register_pm_notifier(&pm_notifier);
	if (rc)
		goto remove_state;
	rc = register_reboot_notifier(&reboot_notifier);
	if (rc)
		goto remove_pm;
	rc = misc_register(&sibidle_device);
	if (rc)
		goto remove_reboot;
	leases_lock();
	pr_info("loaded; keep %s; clear %s\n",
		refusal_names[sibidle_hook_refusal(-1, SIBIDLE_KEEP)],
		refusal_names[sibidle_hook_refusal(-1, SIBIDLE_CLEAR)]);
	leases_unlock();
	return 0;

remove_reboot:
	unregister_reboot_notifier(&reboot_notifier);
remove_pm:
	unregister_pm_notifier(&pm_notifier);
remove_state:
	cpuhp_remove_state_nocalls(hotplug_state);
exit_hook:
	sibidle_hook_exit();
free_slots:
	kfree(slots);
	return rc;
}

/* No descriptor is open and nothing is hooked: either would hold the module. */
static void __exit sibidle_exit(void)
{
	unsigned int cpu;

	misc_deregister(&sibidle_device);
	unregister_reboot_notifier(&reboot_notifier);
	unregister_pm_notifier(&pm_notifier);
	cpuhp_remove_state_nocalls(hotplug_state);
	for (cpu = 0; cpu < nr_cpu_ids; cpu++)
		cancel_delayed_work_sync(&slots[cpu].expiry);
	sibidle_hook_exit();
	kfree(slots);
}

module_init(sibidle_init);
module_exit(sibidle_exit);

MODULE_DESCRIPTION("IBRS in idle, switched per CPU and counted");
MODULE_AUTHOR("The sibfwd authors");
MODULE_LICENSE("GPL");
MODULE_VERSION("0.1.0");
