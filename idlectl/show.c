/* SPDX-License-Identifier: BSD-3-Clause */
/* idlectl topology: who shares what, as a table, as JSON, and as a picture. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "command.h"
#include "draw.h"
#include "isolation.h"
#include "sysroot.h"

#define NAMES_MAX 40 /* characters of interrupts' names in a row of the table */

struct machine {
	struct topology t;
	bool has_files; /* sysfs and /proc are this machine's */
	hwloc_bitmap_t present; /* CPUs on line and off line */
	hwloc_bitmap_t offline;
	struct isolation isolation; /* zeroed without files, as irqs */
	struct irqs irqs;
	int measured, sibling; /* -1: none */
	enum relation relation;
};

/* ---- looking ---- */

static void
machine_free(struct machine *m)
{
	isolation_free(&m->isolation);
	irqs_free(&m->irqs);
	hwloc_bitmap_free(m->present);
	hwloc_bitmap_free(m->offline);
	topology_close(&m->t);
}

static int
machine_read(struct machine *m, const struct options *o, struct err *err)
{
	memset(m, 0, sizeof(*m));
	m->measured = m->sibling = -1;
	if (topology_open(&m->t, o->topology, err) != 0)
		return -1;
	m->present = hwloc_bitmap_alloc();
	m->offline = hwloc_bitmap_alloc();
	/* A topology from elsewhere has no files that belong to it. */
	m->has_files = hwloc_topology_is_thissystem(m->t.hwloc) ||
			(!sys_live() && o->topology == NULL);
	if (m->has_files) {
		sys_read_list(m->present, SYS_CPU "/present");
		isolation_read(&m->isolation);
		irqs_read(&m->irqs);
	}
	hwloc_bitmap_andnot(m->offline, m->present, m->t.online);
	hwloc_bitmap_or(m->present, m->present, m->t.online);
	if (o->cpu < 0)
		return 0;
	m->measured = command_cpu(o, &m->t, -1, false, err);
	if (m->measured < 0) {
		machine_free(m);
		return -1;
	}
	m->sibling = topology_closest(&m->t, (unsigned int)m->measured, NULL, &m->relation);
	return 0;
}

/* The object of that type around a CPU, NULL where there is none, as for CPUs off line. */
static hwloc_obj_t
around(const struct machine *m, unsigned int cpu, hwloc_obj_type_t type)
{
	hwloc_obj_t pu = hwloc_get_pu_obj_by_os_index(m->t.hwloc, cpu);

	return pu == NULL ? NULL : hwloc_get_ancestor_obj_by_type(m->t.hwloc, type, pu);
}

/* The kernel's number of the package, node or core of a CPU; -1: unknown. */
static int
number_of(const struct machine *m, unsigned int cpu, hwloc_obj_type_t type)
{
	hwloc_obj_t obj = NULL;

	if (type != HWLOC_OBJ_NUMANODE)
		obj = around(m, cpu, type);
	else
		/* Memory is beside the way from a CPU to the machine. */
		do
			obj = hwloc_get_next_obj_by_type(m->t.hwloc, type, obj);
		while (obj != NULL && !hwloc_bitmap_isset(obj->cpuset, cpu));
	return obj == NULL || obj->os_index == HWLOC_UNKNOWN_INDEX ? -1 : (int)obj->os_index;
}

/* The other threads of a CPU's core, or who shares its cache (it does so itself). */
static void
sharers_of(const struct machine *m, unsigned int cpu, hwloc_obj_type_t type, hwloc_bitmap_t set)
{
	hwloc_obj_t obj = around(m, cpu, type);

	hwloc_bitmap_zero(set);
	if (obj != NULL)
		hwloc_bitmap_copy(set, obj->cpuset);
	if (type == HWLOC_OBJ_CORE)
		hwloc_bitmap_clr(set, cpu);
}

static const struct {
	const char *name;
	size_t set; /* where in struct isolation */
} isolations[] = {
	{ "isolcpus", offsetof(struct isolation, isolcpus) },
	{ "nohz_full", offsetof(struct isolation, nohz_full) },
	{ "rcu_nocbs", offsetof(struct isolation, rcu_nocbs) },
	{ "partition", offsetof(struct isolation, partitions) },
};
#define NB_ISOLATIONS (sizeof(isolations) / sizeof(isolations[0]))

static bool
is_isolated(const struct machine *m, size_t i, unsigned int cpu)
{
	const char *all = (const char *)&m->isolation;
	hwloc_bitmap_t set;

	memcpy(&set, all + isolations[i].set, sizeof(set));
	return set != NULL && hwloc_bitmap_isset(set, cpu);
}

/* ---- the table ---- */

static char *
number_text(const struct machine *m, unsigned int cpu, hwloc_obj_type_t type)
{
	int number = number_of(m, cpu, type);

	return number < 0 ? sys_format("-") : sys_format("%d", number);
}

static char *
sharers_text(const struct machine *m, unsigned int cpu, hwloc_obj_type_t type)
{
	hwloc_bitmap_t set = hwloc_bitmap_alloc();
	char *list = NULL, *text;

	sharers_of(m, cpu, type, set);
	hwloc_bitmap_list_asprintf(&list, set);
	text = sys_format("%s", list == NULL || list[0] == '\0' ? "-" : list);
	free(list);
	hwloc_bitmap_free(set);
	return text;
}

static char *
cpu_text(const struct machine *m, unsigned int cpu)
{
	if (m->measured < 0)
		return sys_format("%u", cpu);
	return sys_format("%c %u",
			(int)cpu == m->measured			 ? '*'
					: (int)cpu == m->sibling ? '+'
								 : ' ',
			cpu);
}

static char *
online_text(const struct machine *m, unsigned int cpu)
{
	return sys_format(hwloc_bitmap_isset(m->offline, cpu) ? "no" : "yes");
}

static char *
package_text(const struct machine *m, unsigned int cpu)
{
	return number_text(m, cpu, HWLOC_OBJ_PACKAGE);
}

static char *
node_text(const struct machine *m, unsigned int cpu)
{
	return number_text(m, cpu, HWLOC_OBJ_NUMANODE);
}

static char *
core_text(const struct machine *m, unsigned int cpu)
{
	return number_text(m, cpu, HWLOC_OBJ_CORE);
}

static char *
sibling_text(const struct machine *m, unsigned int cpu)
{
	return sharers_text(m, cpu, HWLOC_OBJ_CORE);
}

static char *
l2_text(const struct machine *m, unsigned int cpu)
{
	return sharers_text(m, cpu, HWLOC_OBJ_L2CACHE);
}

static char *
l3_text(const struct machine *m, unsigned int cpu)
{
	return sharers_text(m, cpu, HWLOC_OBJ_L3CACHE);
}

static char *
isolation_text(const struct machine *m, unsigned int cpu)
{
	char text[64] = "";

	for (size_t i = 0; i < NB_ISOLATIONS; i++)
		if (is_isolated(m, i, cpu)) {
			strcat(text, text[0] != '\0' ? "," : "");
			strcat(text, isolations[i].name);
		}
	return sys_format("%s", text[0] != '\0' ? text : "-");
}

/* "2: eth0-TxRx-0, nvme0q1" */
static char *
irqs_text(const struct machine *m, unsigned int cpu)
{
	char names[NAMES_MAX + 1] = "";
	size_t nb = 0, len = 0;

	for (size_t i = 0; i < m->irqs.nb; i++) {
		if (!hwloc_bitmap_isset(m->irqs.at[i].cpus, cpu))
			continue;
		if (len < sizeof(names))
			len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s",
					nb > 0 ? ", " : "", m->irqs.at[i].name);
		nb++;
	}
	if (nb == 0)
		return sys_format("-");
	return sys_format("%zu: %s%s", nb, names, len > NAMES_MAX ? "..." : "");
}

static const struct column {
	const char *title;
	char *(*text)(const struct machine *m, unsigned int cpu);
} columns[] = {
	{ "CPU", cpu_text },
	{ "online", online_text },
	{ "package", package_text },
	{ "node", node_text },
	{ "core", core_text },
	{ "sibling", sibling_text },
	{ "L2", l2_text },
	{ "L3", l3_text },
	{ "isolation", isolation_text },
	{ "interrupts", irqs_text },
};
#define NB_COLUMNS (sizeof(columns) / sizeof(columns[0]))

/* Each column as wide as its widest cell; nothing behind the last one. */
static void
print_cells(char *const *cells, size_t nb_rows)
{
	int width[NB_COLUMNS] = { 0 };

	for (size_t i = 0; i < nb_rows * NB_COLUMNS; i++)
		if (width[i % NB_COLUMNS] < (int)strlen(cells[i]))
			width[i % NB_COLUMNS] = (int)strlen(cells[i]);
	width[NB_COLUMNS - 1] = 0;
	for (size_t i = 0; i < nb_rows * NB_COLUMNS; i++)
		printf("%-*s%s", width[i % NB_COLUMNS], cells[i],
				(i + 1) % NB_COLUMNS == 0 ? "\n" : "  ");
}

static void
print_table(const struct machine *m)
{
	size_t nb_rows = 1 + (size_t)hwloc_bitmap_weight(m->present), nb = 0;
	char **cells = calloc(nb_rows * NB_COLUMNS, sizeof(*cells));
	unsigned int cpu;

	if (cells == NULL)
		abort();
	for (size_t i = 0; i < NB_COLUMNS; i++)
		cells[nb++] = sys_format("%s", columns[i].title);
	hwloc_bitmap_foreach_begin(cpu, m->present)
	{
		for (size_t i = 0; i < NB_COLUMNS; i++)
			cells[nb++] = columns[i].text(m, cpu);
	}
	hwloc_bitmap_foreach_end();
	print_cells(cells, nb_rows);
	for (size_t i = 0; i < nb; i++)
		free(cells[i]);
	free(cells);
}

/* What the rows do not say. */
static void
print_remarks(const struct machine *m)
{
	hwloc_obj_t node = NULL;

	if (m->measured >= 0 && m->sibling < 0)
		printf("\n* CPU %d is measured; no other CPU is on line\n", m->measured);
	else if (m->measured >= 0)
		printf("\n* CPU %d is measured\n+ CPU %d is %s (%s)\n", m->measured, m->sibling,
				m->relation == RELATION_SMT
						? "its sibling"
						: "the closest to it: no SMT sibling is on line",
				relation_word(m->relation));
	while ((node = hwloc_get_next_obj_by_type(m->t.hwloc, HWLOC_OBJ_NUMANODE, node)) != NULL)
		if (hwloc_bitmap_iszero(node->cpuset))
			printf("\nnode %u has memory and no CPU\n", node->os_index);
	if (!m->has_files)
		printf("\nisolation, interrupts and CPUs off line are not known of this topology\n");
}

/* ---- JSON ---- */

static json_t *
json_number(int number)
{
	return number < 0 ? json_null() : json_integer(number);
}

static json_t *
json_set(hwloc_const_bitmap_t set)
{
	json_t *array = json_array();
	unsigned int cpu;

	hwloc_bitmap_foreach_begin(cpu, set)
	{
		json_array_append_new(array, json_integer(cpu));
	}
	hwloc_bitmap_foreach_end();
	return array;
}

static json_t *
json_irqs(const struct machine *m, unsigned int cpu)
{
	json_t *array = json_array();

	for (size_t i = 0; i < m->irqs.nb; i++)
		if (hwloc_bitmap_isset(m->irqs.at[i].cpus, cpu))
			json_array_append_new(array,
					json_pack("{s:i, s:s}", "irq", m->irqs.at[i].number, "name",
							m->irqs.at[i].name));
	return array;
}

static json_t *
json_cpu(const struct machine *m, unsigned int cpu)
{
	static const struct {
		const char *name;
		hwloc_obj_type_t type;
	} numbers[] = {
		{ "package", HWLOC_OBJ_PACKAGE },
		{ "node", HWLOC_OBJ_NUMANODE },
		{ "core", HWLOC_OBJ_CORE },
	}, sharers[] = {
		{ "siblings", HWLOC_OBJ_CORE },
		{ "l2", HWLOC_OBJ_L2CACHE },
		{ "l3", HWLOC_OBJ_L3CACHE },
	};
	json_t *json = json_pack("{s:i, s:b}", "cpu", (int)cpu, "online",
			!hwloc_bitmap_isset(m->offline, cpu));
	hwloc_bitmap_t set = hwloc_bitmap_alloc();

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		json_object_set_new(json, numbers[i].name,
				json_number(number_of(m, cpu, numbers[i].type)));
	for (size_t i = 0; i < sizeof(sharers) / sizeof(sharers[0]); i++) {
		sharers_of(m, cpu, sharers[i].type, set);
		json_object_set_new(json, sharers[i].name, json_set(set));
	}
	hwloc_bitmap_free(set);
	for (size_t i = 0; i < NB_ISOLATIONS; i++)
		json_object_set_new(json, isolations[i].name, json_boolean(is_isolated(m, i, cpu)));
	json_object_set_new(json, "irqs", json_irqs(m, cpu));
	return json;
}

static json_t *
json_nodes(const struct machine *m)
{
	json_t *nodes = json_array();
	hwloc_obj_t node = NULL;

	while ((node = hwloc_get_next_obj_by_type(m->t.hwloc, HWLOC_OBJ_NUMANODE, node)) != NULL)
		json_array_append_new(nodes,
				json_pack("{s:i, s:I, s:o}", "node", (int)node->os_index, "bytes",
						(json_int_t)node->attr->numanode.local_memory,
						"cpus", json_set(node->cpuset)));
	return nodes;
}

static int
print_json(const struct machine *m, struct err *err)
{
	json_t *json = json_object(), *cpus = json_array();
	unsigned int cpu;
	char *text;

	hwloc_bitmap_foreach_begin(cpu, m->present)
	{
		json_array_append_new(cpus, json_cpu(m, cpu));
	}
	hwloc_bitmap_foreach_end();
	json_object_set_new(json, "cpus", cpus);
	json_object_set_new(json, "nodes", json_nodes(m));
	if (m->measured >= 0) {
		json_object_set_new(json, "measured", json_integer(m->measured));
		json_object_set_new(json, "sibling", json_number(m->sibling));
		json_object_set_new(json, "relation", json_string(relation_word(m->relation)));
	}
	/* Sets of CPUs are long lists where each number has its line. */
	text = json_dumps(json, JSON_COMPACT);
	json_decref(json);
	if (text == NULL)
		return err_set(err, EXIT_FAILED, "out of memory");
	puts(text);
	free(text);
	return 0;
}

/* ---- the command ---- */

static int
draw_machine(const struct machine *m, const char *file, struct err *err)
{
	hwloc_bitmap_t isolated = hwloc_bitmap_alloc();
	struct drawing d = { &m->t, m->offline, isolated, m->measured, m->sibling, m->relation };
	int rc;

	if (m->has_files)
		hwloc_bitmap_or(isolated, m->isolation.isolcpus, m->isolation.partitions);
	rc = draw_svg(&d, file, err);
	hwloc_bitmap_free(isolated);
	return rc;
}

static void
print_words(const struct machine *m)
{
	unsigned int cpu;

	hwloc_bitmap_foreach_begin(cpu, m->t.online)
	{
		printf("%u\n", cpu);
	}
	hwloc_bitmap_foreach_end();
}

int
command_topology(const struct options *o, struct err *err)
{
	struct machine m;
	int rc = 0;

	if (machine_read(&m, o, err) != 0)
		return -1;
	if (o->svg != NULL)
		rc = draw_machine(&m, o->svg, err);
	if (rc == 0 && o->words) {
		print_words(&m);
	} else if (rc == 0 && o->json) {
		rc = print_json(&m, err);
	} else if (rc == 0) {
		print_table(&m);
		print_remarks(&m);
	}
	machine_free(&m);
	return rc;
}
