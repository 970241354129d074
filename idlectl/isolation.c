/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "isolation.h"
#include "sysroot.h"

#define CGROUPS "/sys/fs/cgroup"
#define CGROUP_DEPTH 32 /* a bound for trees that are not the kernel's */

/* ---- isolation ---- */

/* A number, or N for the last CPU. Returns what follows, NULL where it is neither. */
static const char *
parse_number(const char *text, unsigned int last, unsigned int *number)
{
	char *end;

	if (*text == 'N') {
		*number = last;
		return text + 1;
	}
	if (!isdigit((unsigned char)*text))
		return NULL;
	*number = (unsigned int)strtoul(text, &end, 10);
	return end;
}

/* One region of a list: "3", "0-3", "all", or "0-31:2/8" (the first 2 of each 8). */
static const char *
parse_region(hwloc_bitmap_t set, const char *text, unsigned int last)
{
	unsigned int from = 0, to = last, used = 1, group = 1;

	if (strncmp(text, "all", 3) == 0) {
		text += 3;
	} else {
		text = parse_number(text, last, &from);
		to = from;
		if (text != NULL && *text == '-')
			text = parse_number(text + 1, last, &to);
	}
	if (text != NULL && *text == ':') {
		text = parse_number(text + 1, last, &used);
		text = text != NULL && *text == '/' ? parse_number(text + 1, last, &group) : NULL;
	}
	if (text == NULL || group == 0)
		return NULL;
	for (unsigned int cpu = from; cpu <= to && cpu <= last; cpu++)
		if ((cpu - from) % group < used)
			hwloc_bitmap_set(set, cpu);
	return text;
}

/* Lists of the kernel's command line say more than those that it prints. last: highest CPU number. */
static void
parse_cpus(hwloc_bitmap_t set, const char *text, unsigned int last)
{
	while (text != NULL && *text != '\0' && *text != ' ') {
		text = parse_region(set, text, last);
		if (text != NULL && *text == ',')
			text++;
	}
}

/* rcu_nocbs= is told nowhere else; the last one counts. */
static bool
read_cmdline(hwloc_bitmap_t rcu_nocbs)
{
	char *cmdline = sys_read("/proc/cmdline"), *rest = cmdline, *word;
	hwloc_bitmap_t possible = hwloc_bitmap_alloc();
	bool known = cmdline != NULL;

	if (known && sys_read_list(possible, SYS_CPU "/possible"))
		while ((word = strsep(&rest, " ")) != NULL) {
			if (strncmp(word, "rcu_nocbs=", 10) != 0)
				continue;
			hwloc_bitmap_zero(rcu_nocbs);
			if (hwloc_bitmap_last(possible) >= 0)
				parse_cpus(rcu_nocbs, word + 10,
						(unsigned int)hwloc_bitmap_last(possible));
		}
	hwloc_bitmap_free(possible);
	free(cmdline);
	return known;
}

/*
 * The root's cpuset.cpus.isolated would be one file for all, but is new in 6.7 and from 6.12 on holds
 * isolcpus= as well. An invalid partition reads "isolated invalid (reason)".
 */
static void
add_partitions(hwloc_bitmap_t set, hwloc_bitmap_t buffer, const char *dir, int depth)
{
	char *kind = sys_read("%s/cpuset.cpus.partition", dir);
	char **names;

	if (kind != NULL && strcmp(kind, "isolated") == 0 &&
			sys_read_list(buffer, "%s/cpuset.cpus.effective", dir))
		hwloc_bitmap_or(set, set, buffer);
	free(kind);
	if (depth == CGROUP_DEPTH)
		return;
	names = sys_list("%s", dir);
	for (char **name = names; *name != NULL; name++) {
		char *child = sys_format("%s/%s", dir, *name);

		if (sys_exists("%s/cgroup.procs", child))
			add_partitions(set, buffer, child, depth + 1);
		free(child);
	}
	sys_free_list(names);
}

int
isolation_read(struct isolation *iso)
{
	hwloc_bitmap_t buffer = hwloc_bitmap_alloc();
	bool known;

	*iso = (struct isolation){ hwloc_bitmap_alloc(), hwloc_bitmap_alloc(), hwloc_bitmap_alloc(),
		hwloc_bitmap_alloc() };
	known = sys_read_list(iso->isolcpus, SYS_CPU "/isolated");
	sys_read_list(iso->nohz_full, SYS_CPU "/nohz_full"); /* "(null)" where not asked for */
	known |= read_cmdline(iso->rcu_nocbs);
	hwloc_bitmap_or(iso->rcu_nocbs, iso->rcu_nocbs, iso->nohz_full);
	add_partitions(iso->partitions, buffer, CGROUPS, 0);
	hwloc_bitmap_free(buffer);
	return known ? 0 : -1;
}

void
isolation_free(struct isolation *iso)
{
	hwloc_bitmap_free(iso->isolcpus);
	hwloc_bitmap_free(iso->nohz_full);
	hwloc_bitmap_free(iso->rcu_nocbs);
	hwloc_bitmap_free(iso->partitions);
	memset(iso, 0, sizeof(*iso));
}

/* ---- interrupts ---- */

static const char *
skip_word(const char *text)
{
	text += strspn(text, " ");
	return text + strcspn(text, " ");
}

/*
 * The names of the handlers in a row of /proc/interrupts, behind a count for each CPU, the chip, and
 * its number for the interrupt: "  24:  7  0  PCI-MSI 524288-edge      eth0, eth1".
 */
static char *
handlers(const char *row, int nb_cpus)
{
	for (int i = 0; i < nb_cpus; i++)
		row = skip_word(row);
	row = skip_word(skip_word(row));
	row += strspn(row, " ");
	return *row == '\0' ? NULL : sys_format("%s", row);
}

static void
add_irq(struct irqs *irqs, int number, char *name)
{
	irqs->at = realloc(irqs->at, (irqs->nb + 1) * sizeof(*irqs->at));
	if (irqs->at == NULL)
		abort();
	irqs->at[irqs->nb++] = (struct irq){ number, name, hwloc_bitmap_alloc() };
}

static int
count_words(const char *text)
{
	int nb = 0;

	for (text += strspn(text, " "); *text != '\0'; text += strspn(text, " ")) {
		text += strcspn(text, " ");
		nb++;
	}
	return nb;
}

/* Rows with a number; the others (NMI, LOC, ...) are no devices' and go to every CPU. */
static void
read_interrupts(struct irqs *irqs)
{
	char *text = sys_read("/proc/interrupts"), *rest = text;
	char *row = strsep(&rest, "\n"), *name, *end;
	int nb_cpus = row == NULL ? 0 : count_words(row);

	while ((row = strsep(&rest, "\n")) != NULL) {
		long number = strtol(row, &end, 10);

		if (end == row || *end != ':')
			continue;
		name = handlers(end + 1, nb_cpus);
		if (name != NULL)
			add_irq(irqs, (int)number, name);
	}
	free(text);
}

/* Without /proc/interrupts: each handler has a directory in /proc/irq/N. */
static void
read_directories(struct irqs *irqs, char **numbers)
{
	for (; *numbers != NULL; numbers++) {
		char **names, *found = NULL;

		if (!isdigit((unsigned char)**numbers))
			continue;
		names = sys_list("/proc/irq/%s", *numbers);
		for (char **name = names; *name != NULL && found == NULL; name++)
			if (sys_exists("/proc/irq/%s/%s/.", *numbers, *name))
				found = sys_format("%s", *name);
		sys_free_list(names);
		if (found != NULL)
			add_irq(irqs, atoi(*numbers), found);
	}
}

/* Shut down or never started: where it is delivered is empty. */
static void
read_cpus(struct irq *irq)
{
	if (!sys_read_list(irq->cpus, "/proc/irq/%d/effective_affinity_list", irq->number) ||
			hwloc_bitmap_iszero(irq->cpus))
		sys_read_list(irq->cpus, "/proc/irq/%d/smp_affinity_list", irq->number);
}

int
irqs_read(struct irqs *irqs)
{
	char **numbers = sys_list("/proc/irq");
	bool known = *numbers != NULL;

	*irqs = (struct irqs){ NULL, 0 };
	if (known)
		read_interrupts(irqs);
	if (irqs->nb == 0)
		read_directories(irqs, numbers);
	sys_free_list(numbers);
	for (size_t i = 0; i < irqs->nb; i++)
		read_cpus(&irqs->at[i]);
	return known ? 0 : -1;
}

void
irqs_free(struct irqs *irqs)
{
	for (size_t i = 0; i < irqs->nb; i++) {
		free(irqs->at[i].name);
		hwloc_bitmap_free(irqs->at[i].cpus);
	}
	free(irqs->at);
	*irqs = (struct irqs){ NULL, 0 };
}

size_t
irqs_count(const struct irqs *irqs, hwloc_const_bitmap_t cpus)
{
	size_t nb = 0;

	for (size_t i = 0; i < irqs->nb; i++)
		nb += hwloc_bitmap_intersects(irqs->at[i].cpus, cpus) ? 1 : 0;
	return nb;
}
