/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sysroot.h"
#include "topology.h"

static const char *const words[] = {
	[RELATION_SMT] = "smt",
	[RELATION_L2] = "l2",
	[RELATION_L3] = "l3",
	[RELATION_PACKAGE] = "package",
	[RELATION_NUMA] = "numa",
	[RELATION_NONE] = "none",
};

/* The hwloc objects whose sharing makes a relation; NUMA nodes are memory objects, see below. */
static const struct {
	enum relation relation;
	hwloc_obj_type_t type;
} shared_objects[] = {
	{ RELATION_SMT, HWLOC_OBJ_CORE },
	{ RELATION_L2, HWLOC_OBJ_L2CACHE },
	{ RELATION_L3, HWLOC_OBJ_L3CACHE },
	{ RELATION_PACKAGE, HWLOC_OBJ_PACKAGE },
};

const char *
relation_word(enum relation relation)
{
	return words[relation];
}

/* hwloc ends the program where a list of a tree is none, and waits for ever where it is a pipe. */
static int
check_lists(struct err *err)
{
	static const char *const files[] = { SYS_CPU "/online", SYS_CPU "/possible",
		SYS_CPU "/present", "/sys/devices/system/node/online",
		"/sys/devices/system/node/possible" };
	hwloc_bitmap_t set = hwloc_bitmap_alloc();
	int rc = 0;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]) && rc == 0; i++)
		if (sys_exists("%s", files[i]) &&
				(!sys_regular("%s", files[i]) ||
						!sys_read_list(set, "%s", files[i]) ||
						hwloc_bitmap_iszero(set)))
			rc = err_set(err, EXIT_FAILED, "%s: not a list of numbers, as 0-3,8",
					files[i]);
	hwloc_bitmap_free(set);
	return rc;
}

int
topology_open(struct topology *t, const char *xml, struct err *err)
{
	memset(t, 0, sizeof(*t));
	if (!sys_live() && xml == NULL && check_lists(err) != 0)
		return -1;
	/* What goes wrong is told by our one line, not by hwloc's as well. */
	setenv("HWLOC_HIDE_ERRORS", "2", 0);
	if (hwloc_topology_init(&t->hwloc) != 0)
		return err_set(err, EXIT_FAILED, "hwloc: %s", strerror(errno));
	/* CPUs that a cpuset withholds from us are still somebody's sibling. */
	hwloc_topology_set_flags(t->hwloc, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
	/* Its x86 component would visit every CPU, the measured one too; Linux tells all of it. */
	hwloc_topology_set_components(t->hwloc, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
	if (xml != NULL && hwloc_topology_set_xml(t->hwloc, xml) != 0) {
		topology_close(t);
		return err_set(err, EXIT_USAGE, "--topology %s: %s", xml, strerror(errno));
	}
	if (hwloc_topology_load(t->hwloc) != 0) {
		topology_close(t);
		if (xml != NULL)
			return err_set(err, EXIT_USAGE, "--topology %s: not a topology of hwloc",
					xml);
		return err_set(err, EXIT_FAILED, "hwloc cannot read the topology: %s",
				strerror(errno));
	}
	t->online = hwloc_bitmap_dup(hwloc_topology_get_topology_cpuset(t->hwloc));
	t->isolated = hwloc_bitmap_alloc();
	t->open = hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(t->hwloc));
	if (t->online == NULL || t->isolated == NULL || t->open == NULL) {
		topology_close(t);
		return err_set(err, EXIT_FAILED, "out of memory");
	}
	/* A topology from elsewhere has no files that belong to it, but a recorded tree has. */
	if (hwloc_topology_is_thissystem(t->hwloc) || (xml == NULL && !sys_live()))
		sys_read_list(t->isolated, SYS_CPU "/isolated");
	hwloc_bitmap_and(t->open, t->open, t->online);
	return 0;
}

void
topology_close(struct topology *t)
{
	hwloc_bitmap_free(t->online);
	hwloc_bitmap_free(t->isolated);
	hwloc_bitmap_free(t->open);
	if (t->hwloc != NULL)
		hwloc_topology_destroy(t->hwloc);
	memset(t, 0, sizeof(*t));
}

/* CPUs that share an object of that type with cpu; NULL where there is no such object. */
static hwloc_const_bitmap_t
sharers(const struct topology *t, unsigned int cpu, hwloc_obj_type_t type)
{
	hwloc_obj_t pu = hwloc_get_pu_obj_by_os_index(t->hwloc, cpu);
	hwloc_obj_t obj = pu == NULL ? NULL : hwloc_get_ancestor_obj_by_type(t->hwloc, type, pu);

	return obj == NULL ? NULL : obj->cpuset;
}

enum relation
topology_relation(const struct topology *t, unsigned int a, unsigned int b)
{
	hwloc_obj_t node = NULL;

	for (size_t i = 0; i < sizeof(shared_objects) / sizeof(shared_objects[0]); i++) {
		hwloc_const_bitmap_t set = sharers(t, a, shared_objects[i].type);

		if (set != NULL && hwloc_bitmap_isset(set, b))
			return shared_objects[i].relation;
	}
	while ((node = hwloc_get_next_obj_by_type(t->hwloc, HWLOC_OBJ_NUMANODE, node)) != NULL)
		if (hwloc_bitmap_isset(node->cpuset, a) && hwloc_bitmap_isset(node->cpuset, b))
			return RELATION_NUMA;
	return RELATION_NONE;
}

int
topology_closest(const struct topology *t, unsigned int cpu, hwloc_const_bitmap_t avoid,
		enum relation *relation)
{
	int best = -1;
	int best_rank = 0;
	unsigned int other;

	*relation = RELATION_NONE;
	hwloc_bitmap_foreach_begin(other, t->online)
	{
		enum relation r = topology_relation(t, cpu, other);
		/* Avoided CPUs come last within their relation. */
		int rank = 2 * (int)r + (avoid != NULL && hwloc_bitmap_isset(avoid, other) ? 1 : 0);

		if (other != cpu && (best < 0 || rank < best_rank)) {
			best = (int)other;
			best_rank = rank;
			*relation = r;
		}
	}
	hwloc_bitmap_foreach_end();
	return best;
}

void
topology_add_core(const struct topology *t, unsigned int cpu, hwloc_bitmap_t set)
{
	hwloc_const_bitmap_t core = sharers(t, cpu, HWLOC_OBJ_CORE);

	hwloc_bitmap_set(set, cpu);
	if (core != NULL)
		hwloc_bitmap_or(set, set, core);
}

void
topology_keep_off(const struct topology *t, int cpu)
{
	hwloc_bitmap_t now, away;

	if (!sys_live() || !hwloc_topology_is_thissystem(t->hwloc))
		return;
	now = hwloc_bitmap_alloc();
	away = hwloc_bitmap_dup(t->isolated);
	if (now == NULL || away == NULL)
		abort();
	if (cpu >= 0)
		topology_add_core(t, (unsigned int)cpu, away);
	if (hwloc_get_cpubind(t->hwloc, now, HWLOC_CPUBIND_PROCESS) == 0 &&
			hwloc_bitmap_intersects(now, away)) {
		hwloc_bitmap_andnot(now, now, away);
		if (!hwloc_bitmap_iszero(now))
			hwloc_set_cpubind(t->hwloc, now, HWLOC_CPUBIND_PROCESS);
	}
	hwloc_bitmap_free(away);
	hwloc_bitmap_free(now);
}

#define CACHES_MAX 16 /* index directories of a CPU that are looked at */

bool
topology_l3_id(unsigned int cpu, uint64_t *id)
{
	uint64_t level;

	for (unsigned int i = 0; i < CACHES_MAX; i++)
		if (sys_read_u64(&level, SYS_CPU "/cpu%u/cache/index%u/level", cpu, i) &&
				level == 3)
			return sys_read_u64(id, SYS_CPU "/cpu%u/cache/index%u/id", cpu, i);
	return false;
}
