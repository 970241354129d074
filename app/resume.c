/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <rte_version.h>

#include "environment.h"
#include "resume.h"
#include "sysroot.h"

/* What does not change a run. It may be shortened as far as no other option is meant. */
static bool
changes_nothing(const char *arg)
{
	static const struct {
		const char *option, *shortest;
	} those[] = { { "--resume", "--res" }, { "--dry-run", "--dr" } };

	for (size_t i = 0; i < sizeof(those) / sizeof(those[0]); i++)
		if (strlen(arg) >= strlen(those[i].shortest) &&
				strncmp(arg, those[i].option, strlen(arg)) == 0)
			return true;
	return false;
}

/* The CPUs that are measured and controlled, which the command line need not name. */
static json_t *
cpus_json(const struct placement *p)
{
	json_t *cpus = json_array();

	json_array_append_new(cpus, json_pack("{s:i}", "main", (int)p->main_cpu));
	for (unsigned int i = 0; i < p->nb; i++)
		json_array_append_new(cpus,
				json_pack("{s:i, s:i, s:s}", "cpu", (int)p->at[i].cpu, "sibling",
						p->at[i].sibling, "relation",
						relation_word(p->at[i].relation)));
	return cpus;
}

json_t *
resume_machine(int argc, char *const argv[], const struct placement *p)
{
	json_t *machine = json_object(), *command = json_array();
	struct utsname u;

	for (int i = 0; i < argc; i++)
		if (!changes_nothing(argv[i]))
			json_array_append_new(command, result_text_json(argv[i]));
	json_object_set_new(machine, "program", json_string(SIBFWD_VERSION));
	json_object_set_new(machine, "dpdk", json_string(rte_version()));
	json_object_set_new(
			machine, "boot_id", environment_file("/proc/sys/kernel/random/boot_id"));
	if (uname(&u) == 0)
		json_object_set_new(machine, "kernel", json_pack("[s, s]", u.release, u.version));
	json_object_set_new(machine, "kernel_command_line", environment_file("/proc/cmdline"));
	json_object_set_new(machine, "microcode", environment_cpuinfo("microcode"));
	json_object_set_new(
			machine, "module_version", environment_file("/sys/module/sibidle/version"));
	json_object_set_new(machine, "cpus", cpus_json(p));
	/* The longest, so the last that an error names. */
	json_object_set_new(machine, "command_line", command);
	return machine;
}

/* Whether a run can begin there: no directory, or one without a file but what was not renamed yet. */
static bool
is_unused(const char *dir)
{
	DIR *stream = opendir(dir);
	struct dirent *entry;
	bool unused = stream != NULL || errno == ENOENT;

	while (stream != NULL && (entry = readdir(stream)) != NULL)
		unused &= strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
				strcmp(entry->d_name, RESULT_RESUME ".tmp") == 0;
	if (stream != NULL)
		closedir(stream);
	return unused;
}

/* A number of resume.json from 0 to 2^32 - 1, or of tsc_hz. */
static int
read_number(const json_t *json, const char *name, uint64_t max, uint64_t *value)
{
	const json_t *number = json_object_get(json, name);

	*value = (uint64_t)json_integer_value(number);
	return json_is_integer(number) && *value <= max ? 0 : -1;
}

static int
read_all(struct resume *r, const json_t *json)
{
	struct {
		const char *name;
		uint32_t *to;
	} numbers[] = {
		{ "sessions", &r->sessions },
		{ "next_block", &r->done.next },
		{ "blocks", &r->done.blocks },
		{ "visits", &r->done.visits },
		{ "blocks_again", &r->done.blocks_again },
		{ "windows", &r->done.windows },
	};
	const char *run_id = json_string_value(json_object_get(json, "run_id"));

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		uint64_t value;

		if (read_number(json, numbers[i].name, UINT32_MAX - 1, &value) != 0)
			return -1;
		*numbers[i].to = (uint32_t)value;
	}
	r->machine = json_incref(json_object_get(json, "machine"));
	r->before = json_incref(json_object_get(json, "before"));
	if (read_number(json, "tsc_hz", INT64_MAX, &r->tsc_hz) != 0 || run_id == NULL ||
			strlen(run_id) >= sizeof(r->run_id) || !json_is_object(r->machine) ||
			!json_is_object(r->before) || r->done.next == 0)
		return -1;
	memcpy(r->run_id, run_id, strlen(run_id) + 1);
	return 0;
}

int
resume_read(struct resume *r, const char *dir, struct err *err)
{
	char *path = sys_format("%s/" RESULT_RESUME, dir);
	json_error_t where;
	json_t *json;
	int rc = 1;

	if (is_unused(dir)) {
		free(path);
		return 0;
	}
	json = json_load_file(path, JSON_REJECT_DUPLICATES, &where);
	if (json == NULL && access(path, F_OK) != 0)
		rc = err_set(err, EXIT_FAILED, "--resume: %s: no unfinished run", dir);
	else if (json == NULL)
		rc = err_set(err, EXIT_FAILED, "--resume: %s:%d: %s", path, where.line, where.text);
	else if (read_all(r, json) != 0)
		rc = err_set(err, EXIT_FAILED, "--resume: %s: not what a run leaves", path);
	json_decref(json);
	free(path);
	return rc;
}

/* What only the first of two lists has. */
static json_t *
only_in(const json_t *list, const json_t *other)
{
	json_t *only = json_array();
	const json_t *a, *b;
	size_t i, k;

	json_array_foreach (list, i, a) {
		json_array_foreach (other, k, b)
			if (json_equal(a, b))
				break;
		if (k == json_array_size(other))
			json_array_append(only, (json_t *)(uintptr_t)a);
	}
	return only;
}

/* A value that differs from another, for people and on one line; of a list, what the other has not. */
static char *
value_text(const json_t *value, const json_t *other)
{
	json_t *only = json_is_array(value) ? only_in(value, other) : NULL;
	char *text = json_is_string(value)
			? sys_format("%s", json_string_value(value))
			: json_dumps(only != NULL ? only : value, JSON_ENCODE_ANY);

	json_decref(only);
	return text != NULL ? text : sys_format("none");
}

int
resume_check(const struct resume *r, const json_t *machine, const char *dir, struct err *err)
{
	char *differs = sys_format("%s", "");
	const json_t *now;
	const char *name;
	int rc;

	json_object_foreach ((json_t *)(uintptr_t)machine, name, now) {
		const json_t *then = json_object_get(r->machine, name);
		char *a, *b, *more;

		if (json_equal(then, now))
			continue;
		a = value_text(then, now);
		b = value_text(now, then);
		more = sys_format("%s%s %s was %s, is %s", differs, *differs != '\0' ? ";" : "",
				name, a, b);
		free(differs);
		free(a);
		free(b);
		differs = more;
	}
	rc = *differs == '\0'
			? 0
			: err_set(err, EXIT_FAILED, "--resume: %s: not as when the run began:%s",
					  dir, differs);
	free(differs);
	return rc;
}

json_t *
resume_json(const struct resume *r)
{
	return json_pack("{s:i, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:I, s:O, s:O}", "schema",
			RESULT_SCHEMA, "run_id", r->run_id, "sessions", (int)r->sessions,
			"next_block", (int)r->done.next, "blocks", (int)r->done.blocks, "visits",
			(int)r->done.visits, "blocks_again", (int)r->done.blocks_again, "windows",
			(int)r->done.windows, "tsc_hz", (json_int_t)r->tsc_hz, "machine",
			r->machine, "before", r->before);
}

void
resume_free(struct resume *r)
{
	json_decref(r->machine);
	json_decref(r->before);
}
