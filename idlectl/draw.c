/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "draw.h"
#include "sysroot.h"

/* In pixels. Rows are broken so that 64 cores with two threads each take four of them. */
#define PAD 6
#define TITLE 16 /* height of a line of text */
#define LETTER 7 /* the widest digit */
#define PU_WIDTH 34
#define PU_HEIGHT 22
#define WIDTH 1540
#define LEGEND_WIDTH 560

struct size {
	int width, height;
};

/* Boxes from left to right and, where a row is full, from top to bottom. */
struct flow {
	const struct drawing *drawing;
	FILE *out; /* NULL: measure only */
	int left, x, y;
	int row; /* height of the row so far */
	int right; /* where rows end */
	int used; /* where the longest row ended */
};

/* ---- CPUs ---- */

static const struct {
	const char *name;
	const char *colour;
	const char *text_colour;
} cpu_kinds[] = {
	{ "measured", "#d55e00", "#ffffff" },
	{ "sibling", "#0072b2", "#ffffff" },
	{ "offline", "#c8c8c8", "#707070" },
	{ "isolated", "#fff3b0", "#000000" },
	{ "ordinary", "#ffffff", "#000000" },
};
enum { MEASURED, SIBLING, OFFLINE, ISOLATED, ORDINARY, NB_KINDS };

static int
kind_of(const struct drawing *d, unsigned int cpu)
{
	if ((int)cpu == d->measured)
		return MEASURED;
	if ((int)cpu == d->sibling)
		return SIBLING;
	if (hwloc_bitmap_isset(d->offline, cpu))
		return OFFLINE;
	return hwloc_bitmap_isset(d->isolated, cpu) ? ISOLATED : ORDINARY;
}

static void
draw_cpu(const struct flow *f, int x, int y, unsigned int cpu)
{
	int kind = kind_of(f->drawing, cpu);

	fprintf(f->out,
			"<g id=\"cpu%u\" class=\"cpu %s\"><rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"%s\"/>"
			"<text x=\"%d\" y=\"%d\" text-anchor=\"middle\" fill=\"%s\">%u</text></g>\n",
			cpu, cpu_kinds[kind].name, x, y, PU_WIDTH, PU_HEIGHT,
			cpu_kinds[kind].colour, x + PU_WIDTH / 2, y + PU_HEIGHT - 6,
			cpu_kinds[kind].text_colour, cpu);
}

/* ---- boxes ---- */

static const struct {
	hwloc_obj_type_t type;
	const char *name;
	const char *colour;
} box_kinds[] = {
	{ HWLOC_OBJ_MACHINE, "machine", "#ffffff" },
	{ HWLOC_OBJ_PACKAGE, "package", "#f3f3f3" },
	{ HWLOC_OBJ_DIE, "die", "#f3f3f3" },
	{ HWLOC_OBJ_L3CACHE, "L3", "#e3e9f0" },
	{ HWLOC_OBJ_L2CACHE, "L2", "#d5dfe9" },
	{ HWLOC_OBJ_CORE, "core", "#f8fbff" },
};
#define NB_BOX_KINDS (sizeof(box_kinds) / sizeof(box_kinds[0]))

static size_t
box_kind(hwloc_obj_type_t type)
{
	size_t i = 0;

	while (i < NB_BOX_KINDS && box_kinds[i].type != type)
		i++;
	return i;
}

/* An L2 cache of one core would be a second frame around each. */
static bool
has_box(const struct topology *t, hwloc_obj_t obj)
{
	if (obj->type == HWLOC_OBJ_L2CACHE)
		return hwloc_get_nbobjs_inside_cpuset_by_type(
				       t->hwloc, obj->cpuset, HWLOC_OBJ_CORE) > 1;
	return obj->memory_arity > 0 || box_kind(obj->type) < NB_BOX_KINDS;
}

static int
add_bytes(char *to, size_t room, uint64_t bytes)
{
	static const char *const units[] = { "KB", "MB", "GB", "TB" };
	size_t i = 0;

	for (bytes >>= 10; bytes >= 10240 && i < 3; i++)
		bytes = (bytes + 512) >> 10;
	return snprintf(to, room, " %llu %s", (unsigned long long)bytes, units[i]);
}

static void
title_of(hwloc_obj_t obj, char *to, size_t room)
{
	size_t kind = box_kind(obj->type), used = 0;

	to[0] = '\0';
	if (kind < NB_BOX_KINDS)
		used += (size_t)snprintf(to, room, "%s", box_kinds[kind].name);
	if (hwloc_obj_type_is_cache(obj->type))
		used += (size_t)add_bytes(to + used, room - used, obj->attr->cache.size);
	else if (kind < NB_BOX_KINDS && obj->type != HWLOC_OBJ_MACHINE)
		used += (size_t)snprintf(to + used, room - used, " %u", obj->os_index);
	for (hwloc_obj_t m = obj->memory_first_child; m != NULL && used + 64 < room;
			m = m->next_sibling) {
		hwloc_obj_t node = m;

		/* A cache in front of the memory is an object between the two. */
		while (node != NULL && node->type != HWLOC_OBJ_NUMANODE)
			node = node->memory_first_child;
		if (node == NULL)
			continue;
		used += (size_t)snprintf(to + used, room - used, "%snode %u%s,",
				used > 0 ? ", " : "", node->os_index,
				hwloc_bitmap_iszero(node->cpuset) ? " without CPUs" : "");
		used += (size_t)add_bytes(
				to + used, room - used, node->attr->numanode.local_memory);
	}
}

/* Make room for a box of that size, which then goes to x, y. */
static void
advance(struct flow *f, struct size size)
{
	if (f->x > f->left && f->x + size.width > f->right) {
		f->x = f->left;
		f->y += f->row + PAD;
		f->row = 0;
	}
	if (f->x + size.width > f->used)
		f->used = f->x + size.width;
	if (size.height > f->row)
		f->row = size.height;
}

static struct size box(const struct flow *outer, hwloc_obj_t obj, int x, int y, FILE *out);

/* What is in obj; objects without a box of their own count as their children. */
static void
fill(struct flow *f, hwloc_obj_t obj)
{
	for (hwloc_obj_t child = obj->first_child; child != NULL; child = child->next_sibling) {
		struct size size = { PU_WIDTH, PU_HEIGHT };
		bool cpu = child->type == HWLOC_OBJ_PU;

		if (!cpu && !has_box(f->drawing->topology, child)) {
			fill(f, child);
			continue;
		}
		if (!cpu)
			size = box(f, child, f->x, f->y, NULL);
		advance(f, size);
		if (cpu && f->out != NULL)
			draw_cpu(f, f->x, f->y, child->os_index);
		else if (f->out != NULL)
			box(f, child, f->x, f->y, f->out);
		f->x += size.width + PAD;
	}
}

static void
frame(FILE *out, const char *class, int x, int y, struct size size, const char *colour,
		const char *title)
{
	fprintf(out,
			"<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"%s\"/>"
			"<text x=\"%d\" y=\"%d\">%s</text>\n",
			class, x, y, size.width, size.height, colour, x + PAD, y + TITLE - 3,
			title);
}

/* A frame with a title, and what is in it. Returns its size; out NULL: draws nothing. */
static struct size
box(const struct flow *outer, hwloc_obj_t obj, int x, int y, FILE *out)
{
	size_t kind = box_kind(obj->type);
	char title[512];
	struct flow inner = { outer->drawing, NULL, x + PAD, x + PAD, y + TITLE + PAD, 0,
		x + outer->right - outer->left - PAD, x };
	struct size size;

	title_of(obj, title, sizeof(title));
	fill(&inner, obj);
	size.width = inner.used - x;
	if (size.width < (int)strlen(title) * LETTER + PAD)
		size.width = (int)strlen(title) * LETTER + PAD;
	size.width += PAD;
	size.height = inner.y + inner.row + PAD - y;
	if (out == NULL)
		return size;
	frame(out, kind < NB_BOX_KINDS ? box_kinds[kind].name : "node", x, y, size,
			kind < NB_BOX_KINDS ? box_kinds[kind].colour : "#f3f3f3", title);
	inner = (struct flow){ outer->drawing, out, x + PAD, x + PAD, y + TITLE + PAD, 0,
		inner.right, x };
	fill(&inner, obj);
	return size;
}

static void
fill_offline(struct flow *f)
{
	const struct size size = { PU_WIDTH, PU_HEIGHT };
	unsigned int cpu;

	hwloc_bitmap_foreach_begin(cpu, f->drawing->offline)
	{
		advance(f, size);
		if (f->out != NULL)
			draw_cpu(f, f->x, f->y, cpu);
		f->x += size.width + PAD;
	}
	hwloc_bitmap_foreach_end();
}

/* A frame with the CPUs of which the kernel does not tell where they are; as box(). */
static struct size
offline_box(const struct drawing *d, int x, int y, FILE *out)
{
	const struct flow start = { d, NULL, x + PAD, x + PAD, y + TITLE + PAD, 0, WIDTH - 2 * PAD,
		x + 80 };
	struct flow f = start;
	struct size size;

	if (hwloc_bitmap_iszero(d->offline))
		return (struct size){ 0, 0 };
	fill_offline(&f);
	size = (struct size){ f.used + PAD - x, f.y + f.row + PAD - y };
	if (out == NULL)
		return size;
	frame(out, "offline", x, y, size, "#ffffff", "off line");
	f = start;
	f.out = out;
	fill_offline(&f);
	return size;
}

/* ---- the picture ---- */

static void
draw_legend(const struct drawing *d, int y, FILE *out)
{
	static const char *const relations[] = {
		[RELATION_SMT] = "its SMT sibling",
		[RELATION_L2] = "closest: shares the L2 cache",
		[RELATION_L3] = "closest: shares the L3 cache",
		[RELATION_PACKAGE] = "closest: shares the package",
		[RELATION_NUMA] = "closest: shares the node",
		[RELATION_NONE] = "shares nothing",
	};
	const bool wanted[] = {
		[MEASURED] = d->measured >= 0,
		[SIBLING] = d->sibling >= 0,
		[OFFLINE] = !hwloc_bitmap_iszero(d->offline),
		[ISOLATED] = !hwloc_bitmap_iszero(d->isolated),
		[ORDINARY] = false,
	};
	const char *const meaning[] = { "measured", relations[d->relation], "off line", "isolated",
		"" };
	int x = PAD;

	fprintf(out, "<g class=\"legend\">");
	for (int i = 0; i < NB_KINDS; i++) {
		if (!wanted[i])
			continue;
		fprintf(out,
				"<rect x=\"%d\" y=\"%d\" width=\"14\" height=\"14\" fill=\"%s\"/>"
				"<text x=\"%d\" y=\"%d\">%s</text>",
				x, y, cpu_kinds[i].colour, x + 20, y + 12, meaning[i]);
		x += 20 + (int)strlen(meaning[i]) * LETTER + 2 * PAD;
	}
	fprintf(out, "</g>\n");
}

static void
draw(const struct drawing *d, FILE *out)
{
	hwloc_obj_t root = hwloc_get_root_obj(d->topology->hwloc);
	struct flow page = { d, NULL, PAD, PAD, PAD, 0, WIDTH - PAD, 0 };
	struct size machine = box(&page, root, PAD, PAD, NULL);
	struct size offline = offline_box(d, PAD, 0, NULL);
	int widest = machine.width > offline.width ? machine.width : offline.width;
	int width = (widest > LEGEND_WIDTH ? widest : LEGEND_WIDTH) + 2 * PAD;
	int offline_y = machine.height + 2 * PAD;
	int legend_y = offline_y + (offline.height > 0 ? offline.height + PAD : 0);
	int height = legend_y + TITLE + PAD;

	fprintf(out,
			"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
			"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\""
			" font-family=\"sans-serif\" font-size=\"12\">\n<title>CPUs of this machine</title>\n"
			"<style>rect { stroke: #606060; }</style>\n"
			"<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\" style=\"stroke:none\"/>\n",
			width, height, width, height, width, height);
	box(&page, root, PAD, PAD, out);
	offline_box(d, PAD, offline_y, out);
	draw_legend(d, legend_y, out);
	fprintf(out, "</svg>\n");
}

/* Renaming would put a plain file in the place of a terminal or a pipe: these are written to. */
static bool
is_replaced(const char *file)
{
	struct stat st;

	return lstat(file, &st) != 0 || S_ISREG(st.st_mode);
}

int
draw_svg(const struct drawing *d, const char *file, struct err *err)
{
	bool replaced = is_replaced(file);
	char *beside = sys_format("%s%s", file, replaced ? ".tmp" : "");
	FILE *out = fopen(beside, "we");
	bool written = false;

	if (out != NULL) {
		draw(d, out);
		written = ferror(out) == 0;
		written = fclose(out) == 0 && written;
		written = written && (!replaced || rename(beside, file) == 0);
	}
	if (!written)
		err_set(err, EXIT_FAILED, "--svg %s: %s", file, strerror(errno));
	if (!written && out != NULL && replaced)
		unlink(beside);
	free(beside);
	return written ? 0 : -1;
}
