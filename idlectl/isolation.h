/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IDLECTL_ISOLATION_H
#define IDLECTL_ISOLATION_H

/*
 * What keeps other work off a CPU, and the interrupts that reach it all the same. Of the machine or
 * tree that sysroot.h looks at.
 */
#include <stddef.h>

#include <hwloc.h>

/* Sets of CPUs; each is empty where there are none, and where the kernel does not tell. */
struct isolation {
	hwloc_bitmap_t isolcpus; /* of isolcpus= (its flag "domain"): the scheduler balances nothing to them */
	hwloc_bitmap_t nohz_full; /* of nohz_full=: no tick while one task runs */
	hwloc_bitmap_t rcu_nocbs; /* of rcu_nocbs= and nohz_full=: RCU callbacks run elsewhere */
	hwloc_bitmap_t partitions; /* in cpuset partitions (cgroup v2) that are "isolated" and valid */
};

/*
 * Fill in an uninitialised struct. Returns 0, or -1 where neither sysfs nor /proc/cmdline could be read:
 * all sets are then empty because nothing is known. isolation_free() in either case.
 */
int isolation_read(struct isolation *iso);
void isolation_free(struct isolation *iso);

/* A device interrupt that has a handler. */
struct irq {
	int number;
	char *name; /* of its handlers, as in /proc/interrupts: "eth0-TxRx-0"; never NULL or empty */
	hwloc_bitmap_t cpus; /* where it is delivered; if the kernel does not say, where it may be */
};

struct irqs {
	struct irq *at; /* by number */
	size_t nb;
};

/*
 * Fill in an uninitialised struct. Interrupts without a handler are left out: they arrive nowhere.
 * Returns 0, or -1 where /proc/irq cannot be read: nothing is known. irqs_free() in either case.
 */
int irqs_read(struct irqs *irqs);
void irqs_free(struct irqs *irqs);

/* How many interrupts are delivered to one of the CPUs. */
size_t irqs_count(const struct irqs *irqs, hwloc_const_bitmap_t cpus);

#endif
