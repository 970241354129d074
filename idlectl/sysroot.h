/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IDLECTL_SYSROOT_H
#define IDLECTL_SYSROOT_H

/*
 * The files of the machine: /sys, /proc, /run and /dev of this one, or of a recorded tree. Every path
 * goes through here and is given as on a live machine, with a leading slash.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hwloc.h>

#include "err.h"

#define SYS_CPU "/sys/devices/system/cpu"

/*
 * Work on the tree below dir from now on; NULL: on this machine. Once, before anything else of this
 * library. hwloc reads the tree too. Returns 0, or -1 with err set where dir is no directory.
 */
int sys_root(const char *dir, struct err *err);

/* Whether it is this machine that is looked at. */
bool sys_live(void);

/*
 * The real name of a file, in memory that the caller frees. Never NULL: ends the program where there
 * is no memory, as do the functions below.
 */
char *sys_path(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * The whole file without the newlines at its end, in memory that the caller frees; NULL with errno
 * set where it cannot be read.
 */
char *sys_read(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The number at the start of a file (decimal). False with *value untouched where there is none. */
bool sys_read_u64(uint64_t *value, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A file to read again and again, or -1 with errno set; and the number that stands in it now. */
int sys_open(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
bool sys_reread_u64(uint64_t *value, int fd);

/*
 * The CPUs or nodes of a list file, as "0-3,8"; an empty file is an empty set. False, and an empty
 * set, where it cannot be read, holds something else, or a number above LIST_MAX.
 */
#define LIST_MAX 65535 /* Linux 6.12 has 8192 CPUs at most (NR_CPUS_RANGE_END) */
bool sys_read_list(hwloc_bitmap_t set, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * Write text and a newline to an existing file in one write(). Returns 0, or -1 with errno set.
 * Changes that have to be taken back go through journal_write().
 */
int sys_write(const char *path, const char *text);

bool sys_regular(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
bool sys_exists(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * The names in a directory, sorted by number where they end in one, without . and ..; NULL-terminated,
 * each and the array to be freed with sys_free_list(). An unreadable directory has none.
 */
char **sys_list(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void sys_free_list(char **names);

/* printf() into memory that the caller frees; ends the program where there is none. */
char *sys_format(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * True in software emulation, where times mean nothing: QEMU's TCG and Bochs, by CPUID or by
 * the firmware's name. A hypervisor that runs guests on the real CPU is not emulation.
 */
bool sys_emulated(void);

/* Name of the hypervisor as CPUID leaf 0x40000000 gives it; empty on bare metal and for a tree. */
const char *sys_hypervisor(void);

#endif
