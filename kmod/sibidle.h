/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR BSD-3-Clause */
#ifndef SIBIDLE_H
#define SIBIDLE_H

/*
 * The ABI of /dev/sibidle.
 *
 * An open descriptor is a lease: what SIBIDLE_SET changes through it lasts until its last
 * duplicate is closed, by close(), exit, crash or SIGKILL. Changes need a descriptor open for
 * writing; looking needs only reading.
 *
 * Every argument starts with its own size, which has to match exactly; fields named reserved have
 * to be 0. Both, values out of range and unknown flags give EINVAL, an unknown request ENOTTY.
 * A change of any structure raises SIBIDLE_ABI.
 */
#include <linux/ioctl.h>
#include <linux/types.h>

#define SIBIDLE_ABI    1
#define SIBIDLE_DEVICE "/dev/sibidle"

#define SIBIDLE_STATES_MAX 10 /* the kernel's CPUIDLE_STATE_MAX */
#define SIBIDLE_VALUES_MAX 8 /* distinct register values kept a (mode, state): IBRS, STIBP, SSBD */
#define SIBIDLE_NAME_LEN   16 /* the kernel's CPUIDLE_NAME_LEN, final NUL included */
#define SIBIDLE_SYMBOL_LEN 48 /* final NUL included; longer names are cut */
#define SIBIDLE_TTL_MAX_MS 86400000U /* a day */

/* What a CPU does when it enters an idle state. */
enum sibidle_mode {
	SIBIDLE_STOCK, /* the driver's own callback */
	SIBIDLE_KEEP, /* MWAIT with interrupts off, IA32_SPEC_CTRL untouched */
	SIBIDLE_CLEAR, /* the same MWAIT, IA32_SPEC_CTRL 0 around it and restored after it */
	SIBIDLE_MODES
};

/* Why a mode cannot be had. */
enum sibidle_refusal {
	SIBIDLE_OK,
	SIBIDLE_CPU_OFFLINE,
	SIBIDLE_EIBRS, /* no kernel IBRS: enhanced IBRS is in use */
	SIBIDLE_NOT_INTEL, /* no kernel IBRS: not an Intel CPU */
	SIBIDLE_OTHER_MITIGATION, /* no kernel IBRS: retpolines or another mitigation */
	SIBIDLE_NO_MITIGATION, /* no kernel IBRS: the spectre_v2 mitigation is off */
	SIBIDLE_SMT_INACTIVE,
	SIBIDLE_OTHER_DRIVER, /* the idle driver is not intel_idle */
	SIBIDLE_NO_DRIVER, /* there is no idle driver at all */
	SIBIDLE_NO_MWAIT, /* the CPU, or the driver on it, does not sleep by MWAIT */
	SIBIDLE_TSC_UNSTABLE, /* the kernel does not trust the TSC */
	SIBIDLE_NO_X2APIC, /* the APIC is not in x2APIC mode */
	SIBIDLE_NO_SPEC_CTRL, /* the CPU has no IA32_SPEC_CTRL */
	SIBIDLE_NO_TSC_AUX, /* the CPU has no IA32_TSC_AUX */
	SIBIDLE_NO_TSC_DEADLINE, /* the APIC timer has no TSC-deadline mode */
	SIBIDLE_REFUSALS
};

/* How the last lease of a CPU ended. */
enum sibidle_end {
	SIBIDLE_NEVER, /* there was none */
	SIBIDLE_CLOSED, /* its descriptor was closed */
	SIBIDLE_EXPIRED, /* its time-to-live ran out */
	SIBIDLE_OFFLINE, /* the CPU went off line */
	SIBIDLE_SUSPEND, /* the machine suspends */
	SIBIDLE_REBOOT, /* the machine shuts down */
	SIBIDLE_ENDS
};

/* Who leases a CPU. */
enum sibidle_owner {
	SIBIDLE_FREE,
	SIBIDLE_MINE, /* the descriptor that asks */
	SIBIDLE_OTHERS
};

/* Flags of sibidle_state. */
#define SIBIDLE_STATE_HOOKABLE 0x1 /* counted; POLL and coupled states are not */
#define SIBIDLE_STATE_MODES    0x2 /* has keep and clear */
#define SIBIDLE_STATE_CLEARS   0x4 /* its own callback clears IA32_SPEC_CTRL (SMT active) */

struct sibidle_state {
	char name[SIBIDLE_NAME_LEN];
	char callback[SIBIDLE_SYMBOL_LEN]; /* symbol that stock calls */
	__u32 flags;
	__u32 hint; /* EAX of MWAIT; 0 where the state has no modes */
};

/* Flags of sibidle_info. */
#define SIBIDLE_HOOKED		  0x1 /* the callbacks are swapped: a lease is in use */
#define SIBIDLE_CHAINED		  0x2 /* another module hooked on top: the hook could not be removed */
#define SIBIDLE_REGISTER_READABLE 0x4 /* the CPU has IA32_SPEC_CTRL, so entries are sampled */
#define SIBIDLE_IBRS_OFF	  0x8 /* intel_idle.ibrs_off: stock clears in states that would not */

struct sibidle_info {
	__u32 size;
	__u32 abi; /* SIBIDLE_ABI of the module */
	__u32 nr_cpus; /* CPU numbers are below it */
	__u32 nr_states;
	__u32 flags;
	__u32 keep_refusal; /* enum sibidle_refusal: why no CPU can have the mode */
	__u32 clear_refusal;
	__u32 stock_refusal;
	__u32 tsc_khz;
	__u32 reserved;
	char driver[SIBIDLE_NAME_LEN]; /* idle driver, empty for none */
	struct sibidle_state states[SIBIDLE_STATES_MAX];
};

/* Flags of sibidle_set. */
#define SIBIDLE_SET_LATENCY    0x1 /* latency_us holds a limit; without it there is none */
#define SIBIDLE_SET_TTL	       0x2 /* ttl_ms holds a time; without it there is no end */
#define SIBIDLE_SET_NO_SAMPLES 0x4 /* do not read the register in idle: saves one RDMSR an entry */

/*
 * Put a CPU into a mode. The first SET of all hooks the idle driver. EBUSY: another descriptor
 * leases the CPU; EOPNOTSUPP: refusal says why; EBADF: not open for writing; EAGAIN: the machine is
 * about to suspend or to shut down. The first SET and the last close of all wake every CPU: hold a
 * lease, stock will do, for as long as nothing may disturb.
 */
struct sibidle_set {
	__u32 size;
	__u32 cpu;
	__u32 mode; /* enum sibidle_mode */
	__u32 flags;
	__u32 latency_us; /* resume latency limit of the CPU, 1 and up */
	__u32 ttl_ms; /* 1 to SIBIDLE_TTL_MAX_MS; then the CPU is let go */
	__u32 refusal; /* out: enum sibidle_refusal */
	__u32 reserved;
};

/* What one CPU did in one state under one mode, since the module was loaded. */
struct sibidle_cell {
	__u64 entries;
	__u64 ticks; /* TSC, of ended periods */
	/*
	 * Readings of IA32_SPEC_CTRL in the hook, by value: just before the driver's own callback
	 * in stock, just before MWAIT in keep and clear.
	 */
	__u64 other; /* readings of values beyond the ones kept below */
	__u64 value[SIBIDLE_VALUES_MAX];
	__u64 count[SIBIDLE_VALUES_MAX]; /* readings of each value; 0 ends the list */
};

#define SIBIDLE_AWAKE 0xffffffffU

struct sibidle_stats {
	__u32 size;
	__u32 cpu;
	__u32 mode; /* out: enum sibidle_mode */
	__u32 owner; /* out: enum sibidle_owner */
	__u32 ended; /* out: enum sibidle_end */
	__u32 idle_mode; /* out: of the period that runs now */
	__u32 idle_state; /* out: of the period that runs now, or SIBIDLE_AWAKE */
	__u32 reserved;
	__u64 since; /* out: TSC when that period began */
	__u64 now; /* out: TSC when these figures were taken */
	__u64 kicks; /* out: changes of mode, each of which woke the CPU once and compared
			   * IBRS in its register with the shadow
			   */
	__u64 mismatches; /* out: of these, unequal (and put right); always 0 */
	struct sibidle_cell cells[SIBIDLE_MODES][SIBIDLE_STATES_MAX];
};

/* IA32_SPEC_CTRL as an interrupt on that CPU, or the caller on its own CPU, finds it. */
struct sibidle_register {
	__u32 size;
	__u32 cpu;
	__u64 value; /* out: of the register */
	__u64 shadow; /* out: what the kernel keeps for it, x86_spec_ctrl_current */
};

/* ---- probes: what a privileged operation costs ---- */

enum sibidle_probe_kind {
	SIBIDLE_PROBE_IPI,
	SIBIDLE_PROBE_FENCE,
	SIBIDLE_PROBE_MSR,
	SIBIDLE_PROBE_EOI,
	SIBIDLE_PROBE_WAKE,
	SIBIDLE_PROBES
};

/* What is timed, for each probe. NOTHING is the loop around it: the overhead. */
enum sibidle_ipi_op {
	SIBIDLE_IPI_NOTHING,
	SIBIDLE_IPI_CALL, /* a function called on another CPU (to) */
	SIBIDLE_IPI_SELF, /* an irq_work of this CPU; to is from */
	SIBIDLE_IPI_BROADCAST, /* a function called on all other CPUs that are on line; to is from */
	SIBIDLE_IPI_OPS
};

enum sibidle_fence_op {
	SIBIDLE_FENCE_NOTHING, /* the stores and the fence only */
	SIBIDLE_FENCE_TSC_AUX, /* WRMSR of IA32_TSC_AUX, its own value */
	SIBIDLE_FENCE_ICR, /* WRMSR of the x2APIC ICR: an interrupt for this CPU */
	SIBIDLE_FENCE_OPS
};

enum sibidle_msr_op {
	SIBIDLE_MSR_NOTHING,
	SIBIDLE_MSR_SPEC_CTRL, /* written with its own value, as are the next two */
	SIBIDLE_MSR_TSC_AUX,
	SIBIDLE_MSR_TSC_DEADLINE,
	SIBIDLE_MSR_SELF_IPI, /* the x2APIC's register for an interrupt to oneself */
	SIBIDLE_MSR_OPS
};

enum sibidle_eoi_op {
	SIBIDLE_EOI_NOTHING,
	SIBIDLE_EOI_DIRECT, /* WRMSR of the x2APIC EOI while no interrupt is in service */
	SIBIDLE_EOI_CALLBACK, /* the same through the kernel's callback */
	SIBIDLE_EOI_OPS
};

enum sibidle_wake_op {
	SIBIDLE_WAKE_TIMER, /* a timer wakes the caller, which has slept for number ns */
	SIBIDLE_WAKE_OPS
};

#define SIBIDLE_PROBE_LOOPS_MAX	 1000000U
#define SIBIDLE_PROBE_STORES_MAX 64U
#define SIBIDLE_WAKE_MIN_NS	 10000U
#define SIBIDLE_WAKE_MAX_NS	 10000000U
#define SIBIDLE_START_MAX_S	 10U

/* Flags of sibidle_probe. */
#define SIBIDLE_PROBE_WAIT   0x1 /* ipi: the call returns when the function has run */
#define SIBIDLE_PROBE_FENCED 0x2 /* fence: MFENCE and LFENCE before the operation */

/* One loop, in TSC ticks; of the wake probe, in ns of CLOCK_MONOTONIC. 0: there is no such moment. */
struct sibidle_sample {
	__u64 begin; /* just before the operation; wake: when the timer was to expire */
	__u64 end; /* just after it; wake: when the caller ran again */
	__u64 handled; /* in the function or timer that it caused, by the TSC of the CPU it ran on */
	__u64 seen; /* ipi: when the sender saw that it had run */
};

/*
 * Time an operation in so many loops, in the context of the caller, who has to be bound to a CPU.
 * Interrupts are off for 100 us at a time at most, and a signal ends it between two loops. Needs a
 * descriptor open for writing, else EBADF.
 *
 * EOPNOTSUPP: refusal says why. EINTR: a signal came. ENODEV: the caller is not on CPU from (any
 * more), or CPU to is off line. EIO: an interrupt did not arrive within a second. EBUSY: an interrupt is
 * in service, so that an EOI would end it. In all cases that began done, the counts and that many
 * samples are there; the counts may be of one loop more.
 */
struct sibidle_probe {
	__u32 size;
	__u32 probe; /* enum sibidle_probe_kind */
	__u32 op; /* of its own enum */
	__u32 flags;
	__u32 from; /* the CPU that the caller is bound to */
	__u32 to; /* ipi: the CPU that is called; else the same as from */
	__u32 number; /* fence: stores before the operation; wake: ns to sleep; else 0 */
	__u32 loops; /* 1 to SIBIDLE_PROBE_LOOPS_MAX */
	__u64 start; /* TSC at which to begin, at most SIBIDLE_START_MAX_S ahead; 0: at once */
	__u64 samples; /* address of loops times struct sibidle_sample; 0: none are wanted */
	__u64 sent; /* out: interrupts that the operations asked for */
	__u64 handled; /* out: functions that ran for them */
	__u64 interrupts; /* out: interrupts of that kind that the kernel counted where they went */
	__u32 done; /* out: loops */
	__u32 refusal; /* out: enum sibidle_refusal */
};

#define SIBIDLE_IOC_MAGIC    0xbc
#define SIBIDLE_IOC_INFO     _IOWR(SIBIDLE_IOC_MAGIC, 0, struct sibidle_info)
#define SIBIDLE_IOC_SET	     _IOWR(SIBIDLE_IOC_MAGIC, 1, struct sibidle_set)
#define SIBIDLE_IOC_STATS    _IOWR(SIBIDLE_IOC_MAGIC, 2, struct sibidle_stats)
#define SIBIDLE_IOC_REGISTER _IOWR(SIBIDLE_IOC_MAGIC, 3, struct sibidle_register)
#define SIBIDLE_IOC_PROBE    _IOWR(SIBIDLE_IOC_MAGIC, 4, struct sibidle_probe)

#endif
