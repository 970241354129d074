/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "machine.h"
#include "sysroot.h"

#define MSR_SMI_COUNT 0x34 /* Intel SDM volume 4 */
#define CPU_DIR "/sys/devices/system/cpu/cpu%u/"

char *
machine_file(const char *path, char *text, size_t size)
{
	FILE *f = fopen(path, "re");

	text[0] = '\0';
	if (f == NULL)
		return text;
	if (fgets(text, (int)size, f) == NULL)
		text[0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	fclose(f);
	return text;
}

static uint64_t
file_number(const char *format, unsigned int cpu)
{
	char path[128], text[64], *end;
	uint64_t value;

	snprintf(path, sizeof(path), format, cpu);
	machine_file(path, text, sizeof(text));
	value = strtoull(text, &end, 10);
	return end == text ? MACHINE_UNKNOWN : value;
}

/* The column of cpu in the header of /proc/interrupts; *columns is how many there are. */
static int
interrupts_column(char *header, unsigned int cpu, int *columns)
{
	int found = -1;
	char *save = NULL;

	*columns = 0;
	for (char *word = strtok_r(header, " \n", &save); word != NULL;
			word = strtok_r(NULL, " \n", &save)) {
		if (strncmp(word, "CPU", 3) == 0 && strtoul(word + 3, NULL, 10) == cpu)
			found = *columns;
		(*columns)++;
	}
	return found;
}

/* Add one row's count of the column; rows with fewer numbers are not per CPU. */
static uint64_t
interrupts_row(const char *row, int column, int columns)
{
	const char *at = strchr(row, ':');
	uint64_t value = 0, mine = 0;

	if (at == NULL)
		return 0;
	at++;
	for (int i = 0; i < columns; i++) {
		char *end;

		value = strtoull(at, &end, 10);
		if (end == at)
			return 0;
		at = end;
		if (i == column)
			mine = value;
	}
	return mine;
}

static uint64_t
read_interrupts(unsigned int cpu)
{
	FILE *f = fopen("/proc/interrupts", "re");
	char *line = NULL;
	size_t size = 0;
	uint64_t sum = MACHINE_UNKNOWN;
	int columns = 0, column = -1;

	if (f == NULL)
		return MACHINE_UNKNOWN;
	if (getline(&line, &size, f) > 0)
		column = interrupts_column(line, cpu, &columns);
	if (column >= 0)
		for (sum = 0; getline(&line, &size, f) > 0;)
			sum += interrupts_row(line, column, columns);
	free(line);
	fclose(f);
	return sum;
}

/* The cpuN line of /proc/stat: user nice system idle iowait irq softirq steal, in USER_HZ. */
static void
read_stat(struct machine_counts *c, unsigned int cpu)
{
	FILE *f = fopen("/proc/stat", "re");
	uint64_t tick_ns = 1000000000 / (uint64_t)sysconf(_SC_CLK_TCK);
	char line[512], name[32];
	unsigned long long v[8];

	snprintf(name, sizeof(name), "cpu%u ", cpu);
	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		if (strncmp(line, name, strlen(name)) != 0)
			continue;
		if (sscanf(line + strlen(name), "%llu %llu %llu %llu %llu %llu %llu %llu", &v[0],
				    &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]) != 8)
			break;
		c->busy_ns = (v[0] + v[1] + v[2] + v[5] + v[6]) * tick_ns;
		c->steal_ns = v[7] * tick_ns;
		break;
	}
	if (f != NULL)
		fclose(f);
}

static uint64_t
read_switches(int tid)
{
	static const char key[] = "nonvoluntary_ctxt_switches:";
	char path[64], line[256];
	uint64_t value = MACHINE_UNKNOWN;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
	f = fopen(path, "re");
	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, key, sizeof(key) - 1) == 0)
			value = strtoull(line + sizeof(key) - 1, NULL, 10);
	if (f != NULL)
		fclose(f);
	return value;
}

/*
 * SMIs stop all CPUs at once, so any CPU's count will do; /dev/cpu/N/msr interrupts CPU N and
 * is therefore never opened for the measured one. Guests have no such count.
 */
static uint64_t
read_smi(unsigned int quiet_cpu)
{
	char path[64];
	uint64_t value = MACHINE_UNKNOWN;
	int fd;

	if (sys_hypervisor()[0] != '\0')
		return MACHINE_UNKNOWN;
	snprintf(path, sizeof(path), "/dev/cpu/%u/msr", quiet_cpu);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return MACHINE_UNKNOWN;
	if (pread(fd, &value, sizeof(value), MSR_SMI_COUNT) != sizeof(value))
		value = MACHINE_UNKNOWN;
	close(fd);
	return value;
}

static uint64_t
add_known(uint64_t a, uint64_t b)
{
	if (a == MACHINE_UNKNOWN)
		return b;
	return b == MACHINE_UNKNOWN ? a : a + b;
}

void
machine_read(struct machine_counts *c, unsigned int cpu, int tid, unsigned int quiet_cpu)
{
	memset(c, 0xff, sizeof(*c));
	c->irqs = read_interrupts(cpu);
	read_stat(c, cpu);
	if (tid != 0)
		c->ctx_switches = read_switches(tid);
	c->smi = read_smi(quiet_cpu);
	c->throttles = add_known(file_number(CPU_DIR "thermal_throttle/core_throttle_count", cpu),
			file_number(CPU_DIR "thermal_throttle/package_throttle_count", cpu));
	c->freq_khz = file_number(CPU_DIR "cpufreq/scaling_cur_freq", cpu);
	c->freq_limits = add_known(file_number(CPU_DIR "cpufreq/scaling_min_freq", cpu),
			file_number(CPU_DIR "cpufreq/scaling_max_freq", cpu) << 32);
}

int
machine_check_thread(int tid, unsigned int cpu, struct err *err)
{
	cpu_set_t set;

	/* As large as DPDK's own; what cannot be read is no complaint. */
	if (sched_getaffinity(tid, sizeof(set), &set) != 0 ||
			(CPU_ISSET(cpu, &set) && CPU_COUNT(&set) == 1))
		return 0;
	return err_set(err, EXIT_FAILED,
			"the forwarding thread is not bound to CPU %u any more: %s", cpu,
			file_number(CPU_DIR "online", cpu) == 0
					? "it went off line"
					: "it was off line, or somebody moved the thread");
}

double
machine_tick_hz(void)
{
	struct timespec ts;

	/* The coarse clocks move once a tick. */
	if (clock_getres(CLOCK_MONOTONIC_COARSE, &ts) != 0 || ts.tv_nsec == 0)
		return 1000;
	return 1e9 / (double)ts.tv_nsec;
}
