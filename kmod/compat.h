/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SIBIDLE_COMPAT_H
#define SIBIDLE_COMPAT_H

/* What differs between Linux 6.1 and 6.12. */
#include <linux/irqflags.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0)
#error "sibidle needs Linux 6.1 or later"
#endif

/*
 * Interrupts off again after a callback that came back with them on. Up to 6.2 softirqs run by
 * the interrupt may have told lockdep that interrupts are on, and the idle drivers use the traced
 * form to tell it otherwise. From 6.3 on nothing traced may be called where RCU is not watching.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
#define sibidle_irq_disable() local_irq_disable()
#else
#define sibidle_irq_disable() raw_local_irq_disable()
#endif

/* The kernel's callback for the end of an interrupt: without arguments from 6.6 on. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0)
#define sibidle_apic_eoi() apic->eoi_write(APIC_EOI, APIC_EOI_ACK)
#else
#define sibidle_apic_eoi() apic->eoi()
#endif

#endif
