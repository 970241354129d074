/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include <rte_cycles.h>
#include <rte_version.h>

#include "cpuidle.h"
#include "environment.h"
#include "machine.h"
#include "result.h"
#include "sibidle_device.h"
#include "sysroot.h"

/* Files of one line each: where in the object, and where in the kernel. */
static const struct {
	const char *name;
	const char *path;
} files[] = {
	{ "kernel_command_line", "/proc/cmdline" },
	{ "clocksource", "/sys/devices/system/clocksource/clocksource0/current_clocksource" },
	{ "cpu_online", SYS_CPU "/online" },
	{ "cpu_isolated", SYS_CPU "/isolated" },
	{ "cpu_nohz_full", SYS_CPU "/nohz_full" },
	{ "smt_control", SYS_CPU "/smt/control" },
	{ "smt_active", SYS_CPU "/smt/active" },
	{ "idle_driver", SYS_CPU "/cpuidle/current_driver" },
	{ "idle_governor", SYS_CPU "/cpuidle/current_governor" },
	{ "intel_pstate_no_turbo", SYS_CPU "/intel_pstate/no_turbo" },
	{ "cpufreq_boost", SYS_CPU "/cpufreq/boost" },
	{ "transparent_hugepage", "/sys/kernel/mm/transparent_hugepage/enabled" },
	{ "nmi_watchdog", "/proc/sys/kernel/nmi_watchdog" },
	{ "lockdown", "/sys/kernel/security/lockdown" },
	{ "load_average", "/proc/loadavg" },
	{ "module_version", "/sys/module/sibidle/version" },
};

/* Files of each measured CPU, below its own directory. */
static const struct {
	const char *name;
	const char *path;
} cpu_files[] = {
	{ "cpufreq_driver", "cpufreq/scaling_driver" },
	{ "cpufreq_governor", "cpufreq/scaling_governor" },
	{ "freq_khz", "cpufreq/scaling_cur_freq" },
	{ "freq_min_khz", "cpufreq/scaling_min_freq" },
	{ "freq_max_khz", "cpufreq/scaling_max_freq" },
	{ "energy_performance_preference", "cpufreq/energy_performance_preference" },
	{ "core_throttle_count", "thermal_throttle/core_throttle_count" },
	{ "thread_siblings", "topology/thread_siblings_list" },
};

json_t *
environment_file(const char *path)
{
	char text[4096];

	machine_file(path, text, sizeof(text));
	return text[0] != '\0' ? result_text_json(text) : json_null();
}

json_t *
environment_cpuinfo(const char *key)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[1024];
	json_t *value = NULL;

	while (f != NULL && value == NULL && fgets(line, sizeof(line), f) != NULL) {
		char *colon = strchr(line, ':');

		if (colon == NULL || strncmp(line, key, strlen(key)) != 0)
			continue;
		line[strcspn(line, "\n")] = '\0';
		value = json_string(colon[1] == ' ' ? colon + 2 : colon + 1);
	}
	if (f != NULL)
		fclose(f);
	return value != NULL ? value : json_null();
}

static json_t *
mitigations_json(void)
{
	static const char dir_name[] = SYS_CPU "/vulnerabilities";
	json_t *all = json_object();
	DIR *dir = opendir(dir_name);
	struct dirent *entry;

	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		char path[512];

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir_name, entry->d_name);
		json_object_set_new(all, entry->d_name, environment_file(path));
	}
	if (dir != NULL)
		closedir(dir);
	return all;
}

static json_t *
hugepages_json(void)
{
	json_t *all = json_object();
	DIR *dir = opendir("/sys/kernel/mm/hugepages");
	struct dirent *entry;

	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		char path[512], text[32];

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/sys/kernel/mm/hugepages/%s/nr_hugepages",
				entry->d_name);
		json_object_set_new(all, entry->d_name,
				json_integer(atoll(machine_file(path, text, sizeof(text)))));
	}
	if (dir != NULL)
		closedir(dir);
	return all;
}

/* How many of each the machine has on line. */
static json_t *
topology_json(const struct topology *t)
{
	static const struct {
		const char *name;
		hwloc_obj_type_t type;
	} counted[] = { { "packages", HWLOC_OBJ_PACKAGE }, { "numa_nodes", HWLOC_OBJ_NUMANODE },
		{ "l3_caches", HWLOC_OBJ_L3CACHE }, { "l2_caches", HWLOC_OBJ_L2CACHE },
		{ "cores", HWLOC_OBJ_CORE }, { "cpus", HWLOC_OBJ_PU } };
	json_t *all = json_object();

	for (size_t i = 0; i < sizeof(counted) / sizeof(counted[0]); i++)
		json_object_set_new(all, counted[i].name,
				json_integer(hwloc_get_nbobjs_by_type(t->hwloc, counted[i].type)));
	return all;
}

/* How the sibling may idle. */
static json_t *
idle_states_json(int cpu)
{
	struct idle_states s = { 0 };
	json_t *list = json_array();

	if (cpu >= 0)
		cpuidle_read(&s, (unsigned int)cpu);
	for (unsigned int i = 0; i < s.nb; i++)
		json_array_append_new(list,
				json_pack("{s:s, s:I, s:b}", "name", s.at[i].name, "latency_us",
						(json_int_t)s.at[i].latency_us, "enabled",
						!s.at[i].disabled));
	return list;
}

/* Whether the module is there, and why it cannot do what it does. */
static json_t *
module_json(void)
{
	struct sibidle m;
	struct err none;
	json_t *json;

	if (sibidle_open(&m, false, &none) != 0)
		return json_null();
	json = json_pack("{s:i, s:s, s:s, s:s, s:s}", "abi", (int)m.info.abi, "driver",
			m.info.driver, "stock", sibidle_refusal_text(m.info.stock_refusal), "keep",
			sibidle_refusal_text(m.info.keep_refusal), "clear",
			sibidle_refusal_text(m.info.clear_refusal));
	sibidle_close(&m);
	return json;
}

static json_t *
measured_json(const struct placement *p)
{
	json_t *list = json_array();

	for (unsigned int i = 0; i < p->nb; i++) {
		const struct placed *at = &p->at[i];
		json_t *one = json_pack("{s:i, s:i, s:s, s:b}", "lcore", (int)at->lcore, "cpu",
				(int)at->cpu, "relation", relation_word(at->relation),
				"controller_beside_it", at->controller);

		json_object_set_new(one, "sibling_cpu",
				at->sibling >= 0 ? json_integer(at->sibling) : json_null());
		json_object_set_new(one, "sibling_idle_states", idle_states_json(at->sibling));
		for (size_t k = 0; k < sizeof(cpu_files) / sizeof(cpu_files[0]); k++) {
			char path[256];

			snprintf(path, sizeof(path), SYS_CPU "/cpu%u/%s", at->cpu,
					cpu_files[k].path);
			json_object_set_new(one, cpu_files[k].name, environment_file(path));
		}
		json_array_append_new(list, one);
	}
	return list;
}

json_t *
environment_json(const struct placement *p, const struct ports *ports, const struct lcore *lcores)
{
	struct utsname u;
	json_t *env = json_object();
	const char *hypervisor = sys_hypervisor();

	if (uname(&u) == 0)
		json_object_set_new(env, "kernel",
				json_pack("{s:s, s:s, s:s}", "release", u.release, "version",
						u.version, "machine", u.machine));
	json_object_set_new(env, "cpu_model", environment_cpuinfo("model name"));
	json_object_set_new(env, "microcode", environment_cpuinfo("microcode"));
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		json_object_set_new(env, files[i].name, environment_file(files[i].path));
	json_object_set_new(env, "mitigations", mitigations_json());
	json_object_set_new(env, "hugepages", hugepages_json());
	json_object_set_new(env, "hypervisor",
			hypervisor[0] != '\0' ? json_string(hypervisor) : json_null());
	json_object_set_new(env, "emulated", json_boolean(sys_emulated()));
	json_object_set_new(env, "dpdk_version", json_string(rte_version()));
	json_object_set_new(env, "dpdk_tsc_hz", json_integer((json_int_t)rte_get_tsc_hz()));
	json_object_set_new(env, "measured_loop",
			json_string(lcore_runs_pair_loop(&lcores[0]) ? "pair" : "general"));
	json_object_set_new(env, "module", module_json());
	json_object_set_new(env, "controller",
			json_pack("{s:i, s:i}", "lcore", (int)p->main_lcore, "cpu",
					(int)p->main_cpu));
	json_object_set_new(env, "topology", topology_json(&p->topology));
	json_object_set_new(env, "measured", measured_json(p));
	json_object_set_new(env, "ports", ports_json(ports));
	return env;
}
