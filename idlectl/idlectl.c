/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The idlectl command: what it can do is one table, which parses, helps, and writes the man page and
 * the shell's completion.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "roff.h"
#include "journal.h"
#include "sysroot.h"

#define SECONDS_MAX 1e6

/* Options of commands. */
enum takes {
	TAKES_CPU = 1 << 0,
	TAKES_SCENARIO = 1 << 1,
	TAKES_COMMAND = 1 << 2,
	TAKES_INTERVAL = 1 << 3,
	TAKES_TTL = 1 << 4,
	TAKES_SVG = 1 << 5,
	TAKES_KTAP = 1 << 6,
	TAKES_JSON = 1 << 7,
	TAKES_WORDS = 1 << 8,
	TAKES_LEFTOVER = 1 << 9,
	NEEDS_CPU = 1 << 10,
	NEEDS_SCENARIO = 1 << 11,
	LOOKS = 1 << 12, /* changes nothing, and has no words of its own for what is left to restore */
	TAKES_PROBE = 1 << 13, /* what all probes take */
	TAKES_LOOPS = 1 << 14,
	TAKES_IPI = 1 << 15,
	TAKES_FENCE = 1 << 16,
	TAKES_MSR = 1 << 17,
	TAKES_EOI = 1 << 18,
	TAKES_RESCTRL = 1 << 19,
	TAKES_WAKE = 1 << 20,
};

struct option_row {
	const char *name;
	const char *value; /* NULL: none */
	unsigned int takes;
	const char *help;
	int (*set)(struct options *o, const struct option_row *row, const char *value,
			struct err *err);
	size_t offset; /* in struct options */
	unsigned long lowest, highest; /* of a count */
};

#define AT(member) offsetof(struct options, member), 0, 0
#define COUNT(member, lowest, highest) offsetof(struct options, member), lowest, highest

static void *
field(struct options *o, const struct option_row *row)
{
	return (char *)o + row->offset;
}

static int
set_sysroot(struct options *o, const struct option_row *row, const char *value, struct err *err)
{
	(void)o;
	(void)row;
	return sys_root(value, err);
}

static int
set_flag(struct options *o, const struct option_row *row, const char *value, struct err *err)
{
	(void)value;
	(void)err;
	*(bool *)field(o, row) = true;
	return 0;
}

static int
set_text(struct options *o, const struct option_row *row, const char *value, struct err *err)
{
	(void)err;
	*(const char **)field(o, row) = value;
	return 0;
}

static int
set_cpu(struct options *o, const struct option_row *row, const char *value, struct err *err)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(value, &end, 10);
	if (value[0] < '0' || value[0] > '9' || *end != '\0' || errno != 0 || n > 65535)
		return err_set(err, EXIT_USAGE, "--%s %s: not a CPU number", row->name, value);
	*(int *)field(o, row) = (int)n;
	return 0;
}

static int
set_seconds(struct options *o, const struct option_row *row, const char *value, struct err *err)
{
	char *end;
	double n = strtod(value, &end);

	if (end == value || *end != '\0' || !isfinite(n) || n < 0.001 || n > SECONDS_MAX)
		return err_set(err, EXIT_USAGE,
				"--%s %s: not a number of seconds from 0.001 to %.0f", row->name,
				value, SECONDS_MAX);
	*(double *)field(o, row) = n;
	return 0;
}

static int
set_count(struct options *o, const struct option_row *row, const char *value, struct err *err)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(value, &end, 10);
	if (value[0] < '0' || value[0] > '9' || *end != '\0' || errno != 0 || n < row->lowest ||
			n > row->highest)
		return err_set(err, EXIT_USAGE, "--%s %s: not a number from %lu to %lu", row->name,
				value, row->lowest, row->highest);
	*(unsigned long *)field(o, row) = n;
	return 0;
}

static const struct option_row option_rows[] = {
	{ "sysroot", "DIR", ~0U,
			"look at the tree below DIR (sys/, proc/, run/), not at this machine",
			set_sysroot, 0, 0, 0 },
	{ "topology", "XML", ~0U, "take the topology from hwloc's file XML", set_text,
			AT(topology) },
	{ "json", NULL, TAKES_JSON, "print JSON", set_flag, AT(json) },
	{ "ktap", NULL, TAKES_KTAP, "print KTAP", set_flag, AT(ktap) },
	{ "words", NULL, TAKES_WORDS, "print bare words, one a line", set_flag, AT(words) },
	{ "cpu", "N", TAKES_CPU, "the CPU", set_cpu, AT(cpu) },
	{ "scenario", "S", TAKES_SCENARIO, "words joined by +, as c1+clear", set_text,
			AT(scenario) },
	{ "interval", "SEC", TAKES_INTERVAL, "what happens in so many seconds", set_seconds,
			AT(interval) },
	{ "ttl", "SEC", TAKES_TTL, "give everything back after so many seconds", set_seconds,
			AT(ttl) },
	{ "svg", "FILE", TAKES_SVG, "draw a picture", set_text, AT(svg) },
	{ "leftover", NULL, TAKES_LEFTOVER,
			"only what was killed: whoever holds a scenario keeps it", set_flag,
			AT(leftover) },
	{ "csv", NULL, TAKES_PROBE, "print CSV", set_flag, AT(csv) },
	{ "histogram", NULL, TAKES_PROBE, "print histograms below the table", set_flag,
			AT(probe.histogram) },
	{ "repeats", "N", TAKES_PROBE, "how often all is measured (10)", set_count,
			COUNT(probe.repeats, 1, PROBE_REPEATS_MAX) },
	{ "warmup", "N", TAKES_PROBE, "repeats before these, which do not count (1)", set_count,
			COUNT(probe.warmup, 0, PROBE_REPEATS_MAX) },
	{ "loops", "N", TAKES_LOOPS, "operations a repeat (1000; wake 200; bench pipe 10000)",
			set_count, COUNT(probe.loops, 1, PROBE_LOOPS_MAX) },
	{ "from", "CPU", TAKES_IPI, "the CPU that sends", set_cpu, AT(probe.from) },
	{ "to", "CPU", TAKES_IPI, "the CPU that is interrupted", set_cpu, AT(probe.to) },
	{ "pairs", "RELATION", TAKES_IPI,
			"a pair of CPUs that share so much: smt, l3, package, cross", set_text,
			AT(probe.pairs) },
	{ "self", NULL, TAKES_IPI, "an interrupt to oneself", set_flag, AT(probe.self) },
	{ "broadcast", NULL, TAKES_IPI, "an interrupt to all others", set_flag,
			AT(probe.broadcast) },
	{ "mesh", NULL, TAKES_IPI, "random disjoint pairs, all at once", set_flag, AT(probe.mesh) },
	{ "seed", "N", TAKES_IPI, "the same pairs again", set_count,
			COUNT(probe.seed, 1, UINT32_MAX) },
	{ "no-wait", NULL, TAKES_IPI, "only calls that do not wait", set_flag, AT(probe.no_wait) },
	{ "idle", NULL, TAKES_IPI, "targets idle: what is measured are wake-ups", set_flag,
			AT(probe.idle) },
	{ "stores", "LIST", TAKES_FENCE, "pending stores, 0 to 64 (0,1,2,4,8,16,32,64)", set_text,
			AT(probe.stores) },
	{ "exits", NULL, TAKES_MSR, "the exits of a guest that runs here, by their reasons",
			set_flag, AT(probe.exits) },
	{ "script", "FILE", TAKES_MSR, "of what perf script wrote, not of a guest", set_text,
			AT(probe.script) },
	{ "pid", "PID", TAKES_MSR, "of that guest's process only", set_count,
			COUNT(probe.pid, 1, INT32_MAX) },
	{ "duration", "SEC", TAKES_MSR, "for so long (10)", set_seconds, AT(probe.duration) },
	{ "bench", "NAME", TAKES_EOI, "perf bench sched messaging or pipe between two settings",
			set_text, AT(probe.bench) },
	{ "base", "SETTING", TAKES_EOI, "as-is, a scenario for --cpu, or FILE=VALUE", set_text,
			AT(probe.base) },
	{ "other", "SETTING", TAKES_EOI, "what is compared with it", set_text, AT(probe.other) },
	{ "domain", "ID", TAKES_RESCTRL, "of that domain only, by its number", set_text,
			AT(probe.domain) },
	{ "states", "LIST", TAKES_WAKE, "idle states by name, joined by commas", set_text,
			AT(probe.states) },
};
#define NB_OPTIONS (sizeof(option_rows) / sizeof(option_rows[0]))

struct command {
	const char *name;
	unsigned int takes;
	const char *summary;
	const char *text;
	const char *example;
	int (*run)(const struct options *o, struct err *err);
};

static const struct
		command
				commands
						[] = {
							{ "topology",
									LOOKS | TAKES_CPU |
											TAKES_JSON |
											TAKES_SVG |
											TAKES_WORDS,
									"who shares what: cores, caches, nodes, isolation, interrupts",
									"A row a CPU: package, NUMA node, core, SMT sibling, caches it shares, whether it is on line and kept from other work (isolcpus, nohz_full, rcu_nocbs, cpuset partitions), and the interrupts that are routed to it. With --cpu, that CPU is marked as measured, and its sibling. --svg draws the same.",
									"idlectl topology --cpu 2 --svg machine.svg",
									command_topology },
							{ "states",
									LOOKS | TAKES_CPU |
											TAKES_JSON |
											TAKES_INTERVAL,
									"the idle states of a CPU, and what was used of them",
									"Each idle state by name: exit latency, target residency, whether it is enabled, and how often and how long it was used, since the boot or, with --interval, in so many seconds. The kernel counts a period when it ends: a CPU that sleeps through the whole interval shows nothing.",
									"idlectl states --cpu 3 --interval 1",
									command_states },
							{ "doctor",
									TAKES_CPU | TAKES_JSON |
											TAKES_KTAP,
									"is this machine fit to show the effect, and fit to measure at all?",
									"Checks with stable ids; each is ok, warn, fail or skip, with a reason and, where it is not ok, a remedy. --cpu is the measured CPU. The last line begins with \"effect expected here\", \"not expected because\" or \"cannot tell\". Exit code 0 whatever is found, 1 if it could not look.",
									"idlectl doctor --cpu 2",
									command_doctor },
							{ "scenarios",
									LOOKS | TAKES_CPU |
											TAKES_JSON |
											TAKES_WORDS,
									"the words of which scenarios are made, and which of them work here",
									"Words of different kinds are joined by +, words of one kind exclude each other. Idle states go by their names on this machine.",
									"idlectl scenarios --cpu 3",
									command_scenarios },
							{ "run",
									TAKES_CPU | NEEDS_CPU |
											TAKES_SCENARIO |
											NEEDS_SCENARIO |
											TAKES_COMMAND |
											TAKES_JSON,
									"run a command while a CPU idles as told",
									"Applies the scenario to the CPU, verifies it, runs COMMAND, and gives everything back however COMMAND or idlectl end. Returns COMMAND's exit code. COMMAND does not run where the scenario cannot be verified. --json says on stderr, after COMMAND, what was applied.",
									"idlectl run --cpu 3 --scenario c1+clear -- sleep 10",
									command_run },
							{ "set",
									TAKES_CPU | NEEDS_CPU |
											TAKES_SCENARIO |
											NEEDS_SCENARIO |
											TAKES_TTL |
											TAKES_JSON,
									"leave a CPU in a scenario",
									"As run, but returns at once; a process stays behind and holds the scenario until \"idlectl restore\", or for the time of --ttl.",
									"idlectl set --cpu 3 --scenario c1+keep --ttl 3600",
									command_set },
							{ "restore", TAKES_JSON | TAKES_LEFTOVER,
									"give back what set, or a run that was killed, has changed",
									"Ends the process that set left behind; where a run was killed together with its supervisor, puts back what its journal tells. Only a value that is still the one that was written is put back; what somebody else has changed meanwhile stays and is named. With --leftover nobody who lives is ended, as a service wants that is stopped. A journal of another boot is removed. Exit code 6 where something could not be put back.",
									"idlectl restore",
									command_restore },
							{ "status", LOOKS | TAKES_CPU | TAKES_JSON | TAKES_INTERVAL, "who sleeps where, how often, with which register value", "With sibidle.ko loaded: mode, entries, time and the values of IA32_SPEC_CTRL in each idle state, counted in the mode that the CPU is in; without it, what the kernel counts. With --interval, again and again what happened in so many seconds, until interrupted. Looking wakes no CPU.",
									"idlectl status --interval 1",
									command_status },
							{ "probe ipi",
									LOOKS | TAKES_PROBE |
											TAKES_LOOPS |
											TAKES_IPI |
											TAKES_JSON,
									"what an interrupt to another CPU costs",
									"A function is called on another CPU by sibidle.ko, loops times a repeat: time of the call, one-way time by both CPUs' TSCs, round trip / 2, throughput; the interrupts that the kernel counted prove that they were sent. Without options: a pair of each relation that this machine has. Targets are kept busy, unless --idle.",
									"idlectl probe ipi --from 2 --to 3",
									command_probe },
							{ "probe fence",
									LOOKS | TAKES_PROBE |
											TAKES_LOOPS |
											TAKES_FENCE |
											TAKES_CPU |
											TAKES_JSON,
									"what the fence before an x2APIC write costs",
									"MFENCE and LFENCE, or neither, behind so many pending stores and before a write of the x2APIC's ICR, of IA32_TSC_AUX, or of nothing.",
									"idlectl probe fence --cpu 2",
									command_probe },
							{ "probe msr",
									LOOKS | TAKES_PROBE |
											TAKES_LOOPS |
											TAKES_MSR |
											TAKES_CPU |
											TAKES_JSON,
									"what one WRMSR costs, on a guest with its exit; exits of guests",
									"Cycles of WRMSR for the registers that can be rewritten with what is in them, and for an interrupt to oneself. With --exits, on a host: how long the exits of a running guest took, by reason, from the kernel's kvm tracepoints through perf.",
									"idlectl probe msr --cpu 2 --histogram",
									command_probe },
							{ "probe eoi",
									LOOKS | TAKES_PROBE |
											TAKES_LOOPS |
											TAKES_EOI |
											TAKES_CPU |
											TAKES_JSON,
									"what the end of an interrupt costs; two settings by a benchmark",
									"The x2APIC's EOI written directly and through the kernel's callback. With --bench: perf bench sched, in turn under the settings --base and --other, and whether they differ by three standard errors. A setting is as-is, a scenario for --cpu, or a file below /sys or /proc/sys and what is written to it; files are put back.",
									"idlectl probe eoi --bench pipe --base as-is --other limit:1 --cpu 2",
									command_probe },
							{ "probe resctrl",
									LOOKS | TAKES_PROBE |
											TAKES_RESCTRL |
											TAKES_JSON,
									"what reading the memory-bandwidth counters costs",
									"All mbm_local_bytes and mbm_total_bytes of all monitoring groups in a domain, read from a CPU in it and from one outside, less a run that reads as many files without a counter.",
									"idlectl probe resctrl",
									command_probe },
							{ "probe wake",
									TAKES_PROBE | TAKES_LOOPS |
											TAKES_WAKE |
											TAKES_CPU |
											NEEDS_CPU |
											TAKES_JSON,
									"how late a CPU wakes up in stock, keep and clear",
									"A timer wakes the CPU from each of its idle states, in each mode of sibidle.ko in turn: from its expiry to its handler, and to the thread that it wakes.",
									"idlectl probe wake --cpu 3",
									command_probe },
						};
#define NB_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static const char exit_codes[] =
		"0 done; 1 could not do it; 2 usage; 4 not applicable on this machine (the reason is printed); 6 the machine's state could not be restored. run returns the exit code of its command.";

/* The first of two words that some commands have. */
#define PROBE "probe "

static bool
is_probe(const struct command *c)
{
	return strncmp(c->name, PROBE, strlen(PROBE)) == 0;
}

/* ---- words for people ---- */

static bool
has(const struct command *c, const struct option_row *row)
{
	return row->takes == ~0U || (c->takes & row->takes) != 0;
}

static void
print_synopsis(FILE *out, const struct command *c)
{
	fprintf(out, "idlectl [--sysroot DIR] [--topology XML] %s", c->name);
	for (size_t i = 0; i < NB_OPTIONS; i++) {
		const struct option_row *row = &option_rows[i];
		bool needed = (row->takes == TAKES_CPU && (c->takes & NEEDS_CPU) != 0) ||
				(row->takes == TAKES_SCENARIO && (c->takes & NEEDS_SCENARIO) != 0);

		if (row->takes == ~0U || !has(c, row))
			continue;
		fprintf(out, " %s--%s%s%s%s", needed ? "" : "[", row->name,
				row->value != NULL ? " " : "", row->value != NULL ? row->value : "",
				needed ? "" : "]");
	}
	fprintf(out, "%s\n", (c->takes & TAKES_COMMAND) != 0 ? " -- COMMAND [ARGUMENT...]" : "");
}

/* Text in lines of up to 78 characters. */
static void
print_filled(FILE *out, const char *text, int indent)
{
	int column = 0;

	while (*text != '\0') {
		int len = (int)strcspn(text, " ");

		if (column > 0 && column + 1 + len > 78) {
			fputc('\n', out);
			column = 0;
		}
		column += fprintf(out, "%*s%.*s", column == 0 ? indent : 1, "", len, text);
		text += len;
		text += strspn(text, " ");
	}
	fputc('\n', out);
}

static void
print_help(FILE *out)
{
	fprintf(out,
			"Usage: idlectl [--sysroot DIR] [--topology XML] COMMAND [options]\n\n"
			"See and control how a CPU idles, above all the hyper-thread sibling of a CPU that\n"
			"forwards packets.\n\n");
	for (size_t i = 0; i < NB_COMMANDS; i++)
		fprintf(out, "  %-13s %s\n", commands[i].name, commands[i].summary);
	fprintf(out, "\n");
	for (size_t i = 0; i < NB_OPTIONS; i++)
		if (option_rows[i].takes == ~0U)
			fprintf(out, "  --%s %-*s %s\n", option_rows[i].name,
					(int)(14 - strlen(option_rows[i].name)),
					option_rows[i].value, option_rows[i].help);
	fprintf(out, "  --version\n\n\"idlectl COMMAND --help\" tells more.\nExit codes:\n");
	print_filled(out, exit_codes, 2);
}

static void
print_command_help(FILE *out, const struct command *c)
{
	fprintf(out, "Usage: ");
	print_synopsis(out, c);
	fprintf(out, "\n");
	print_filled(out, c->text, 0);
	fprintf(out, "\n");
	for (size_t i = 0; i < NB_OPTIONS; i++) {
		const struct option_row *row = &option_rows[i];
		char name[40];

		if (!has(c, row))
			continue;
		snprintf(name, sizeof(name), "--%s%s%s", row->name, row->value != NULL ? " " : "",
				row->value != NULL ? row->value : "");
		fprintf(out, "  %-16s %s\n", name, row->help);
	}
	fprintf(out, "\nExample: %s\n", c->example);
}

static void
print_man(void)
{
	printf(".\\\" SPDX-License-Identifier: BSD-3-Clause\n.TH IDLECTL 8 \"\" \"sibfwd %s\"\n"
	       ".SH NAME\nidlectl \\- see and control how a CPU idles\n.SH SYNOPSIS\n.nf\n",
			SIBFWD_VERSION);
	for (size_t i = 0; i < NB_COMMANDS; i++)
		print_synopsis(stdout, &commands[i]);
	printf(".fi\n.SH COMMANDS\n");
	for (size_t i = 0; i < NB_COMMANDS; i++) {
		printf(".SS ");
		roff_text(stdout, commands[i].name);
		roff_text(stdout, commands[i].text);
		printf(".PP\n.RS\n.nf\n");
		roff_text(stdout, commands[i].example);
		printf(".fi\n.RE\n");
	}
	printf(".SH OPTIONS\n");
	for (size_t i = 0; i < NB_OPTIONS; i++) {
		printf(".TP\n\\-\\-%s %s\n", option_rows[i].name,
				option_rows[i].value != NULL ? option_rows[i].value : "");
		roff_text(stdout, option_rows[i].help);
	}
	printf(".SH EXIT STATUS\n");
	roff_text(stdout, exit_codes);
	printf(".SH FILES\n.TP\n/run/sibfwd/journal\n"
	       "What was changed and has to be put back, written before it is changed.\n"
	       ".TP\n/dev/sibidle\nThe device of sibidle.ko.\n");
}

static void
print_completion(void)
{
	printf("# SPDX-License-Identifier: BSD-3-Clause\n"
	       "# bash completion for idlectl, written by \"idlectl --completion\".\n"
	       "_idlectl()\n{\n"
	       "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} i command=\n"
	       "\tlocal -a machine=()\n"
	       "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
	       "\t\tcase ${COMP_WORDS[i]} in\n"
	       "\t\t--sysroot | --topology)\n"
	       "\t\t\tmachine+=(\"${COMP_WORDS[i]}\" \"${COMP_WORDS[i + 1]}\")\n"
	       "\t\t\ti=$((i + 1)) ;;\n"
	       "\t\t--) [ \"$command\" != run ] || { COMPREPLY=($(compgen -c -- \"$cur\")); return; } ;;\n"
	       "\t\t-*) ;;\n"
	       "\t\t*) if [ \"$command\" = probe ]; then command=\"probe ${COMP_WORDS[i]}\"\n"
	       "\t\t\telse command=${command:-${COMP_WORDS[i]}}; fi ;;\n"
	       "\t\tesac\n"
	       "\tdone\n"
	       "\tcase $prev in\n"
	       "\t--sysroot) COMPREPLY=($(compgen -d -- \"$cur\")); return ;;\n"
	       "\t--topology | --svg) COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n"
	       "\t--cpu)\n"
	       "\t\tCOMPREPLY=($(compgen -W \"$(idlectl \"${machine[@]}\" topology --words 2>/dev/null)\" -- \"$cur\"))\n"
	       "\t\treturn ;;\n"
	       "\t--scenario)\n"
	       "\t\tlocal done=${cur%%\"${cur##*+}\"}\n"
	       "\t\tCOMPREPLY=($(compgen -P \"$done\" -W \"$(idlectl \"${machine[@]}\" scenarios --words 2>/dev/null)\" -- \"${cur##*+}\"))\n"
	       "\t\treturn ;;\n"
	       "\t--script) COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n"
	       "\t--interval | --ttl) return ;;\n"
	       "\tesac\n"
	       "\tcase $command in\n");
	for (size_t i = 0; i < NB_COMMANDS; i++) {
		printf("\t\"%s\") COMPREPLY=($(compgen -W \"--help", commands[i].name);
		for (size_t k = 0; k < NB_OPTIONS; k++)
			if (option_rows[k].takes != ~0U && has(&commands[i], &option_rows[k]))
				printf(" --%s", option_rows[k].name);
		printf("%s\" -- \"$cur\")) ;;\n",
				(commands[i].takes & TAKES_COMMAND) != 0 ? " --" : "");
	}
	printf("\tprobe) COMPREPLY=($(compgen -W \"");
	for (size_t i = 0; i < NB_COMMANDS; i++)
		if (is_probe(&commands[i]))
			printf(" %s", commands[i].name + strlen(PROBE));
	printf("\" -- \"$cur\")) ;;\n"
	       "\t*) COMPREPLY=($(compgen -W \"--sysroot --topology --help --version probe");
	for (size_t i = 0; i < NB_COMMANDS; i++)
		if (!is_probe(&commands[i]))
			printf(" %s", commands[i].name);
	printf("\" -- \"$cur\")) ;;\n\tesac\n}\ncomplete -F _idlectl idlectl\n");
}

/* A run that was killed together with its supervisor: whoever comes next hears of it. */
static void
say_leftover(void)
{
	char *who;

	if (!journal_leftover(&who))
		return;
	fprintf(stderr, "idlectl: %s has ended and left its changes: idlectl restore puts them back\n",
			who);
	free(who);
}

/* ---- the command line ---- */

static const struct command *
find_command(const char *name)
{
	for (size_t i = 0; i < NB_COMMANDS; i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

static const struct option_row *
find_option(const char *name, size_t len)
{
	for (size_t i = 0; i < NB_OPTIONS; i++)
		if (strlen(option_rows[i].name) == len &&
				strncmp(option_rows[i].name, name, len) == 0)
			return &option_rows[i];
	return NULL;
}

/* What idlectl answers without looking at a machine. */
static const struct {
	const char *option;
	void (*print)(void);
} answers[] = {
	{ "--man", print_man },
	{ "--completion", print_completion },
};

struct line {
	struct options options;
	const struct command *command;
	bool help;
	bool probe; /* the word was there, which one was not yet */
};

/* One option at argv[*i], with its value; moves *i on to the last word of it. */
static int
parse_option(struct line *l, int argc, char **argv, int *i, uint64_t *given, struct err *err)
{
	const char *name = argv[*i] + 2, *equals = strchr(argv[*i], '='), *value = NULL;
	size_t len = equals != NULL ? (size_t)(equals - name) : strlen(name);
	const struct option_row *row = find_option(name, len);

	if (row == NULL || (l->command != NULL && !has(l->command, row)))
		return err_set(err, EXIT_USAGE, "%s: unknown option%s%s", argv[*i],
				l->command != NULL ? " of " : "",
				l->command != NULL ? l->command->name : "");
	if (l->command == NULL && row->takes != ~0U)
		return err_set(err, EXIT_USAGE, "%s: belongs behind the command", argv[*i]);
	if (row->value == NULL && equals != NULL)
		return err_set(err, EXIT_USAGE, "--%s: takes no value", row->name);
	if (row->value != NULL) {
		value = equals != NULL ? equals + 1 : *i + 1 < argc ? argv[++*i] : NULL;
		if (value == NULL || *value == '\0')
			return err_set(err, EXIT_USAGE, "--%s: needs a value", row->name);
	}
	if ((*given & 1ULL << (row - option_rows)) != 0)
		return err_set(err, EXIT_USAGE, "--%s: given twice", row->name);
	*given |= 1ULL << (row - option_rows);
	return row->set(&l->options, row, value, err);
}

static int
parse_command(struct line *l, const char *word, struct err *err)
{
	char name[32];

	if (!l->probe && strcmp(word, "probe") == 0) {
		l->probe = true;
		return 0;
	}
	snprintf(name, sizeof(name), "%s%s", l->probe ? PROBE : "", word);
	l->command = find_command(name);
	if (l->command == NULL || strlen(word) >= sizeof(name) - sizeof(PROBE))
		return err_set(err, EXIT_USAGE, "%s: unknown %s (idlectl --help lists them)", word,
				l->probe ? "probe" : "command");
	l->options.command = l->command->name;
	return 0;
}

static int
parse_line(struct line *l, int argc, char **argv, struct err *err)
{
	uint64_t given = 0;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			l->help = true;
			return 0;
		}
		if (strcmp(argv[i], "--") == 0) {
			if (l->command == NULL || (l->command->takes & TAKES_COMMAND) == 0)
				return err_set(err, EXIT_USAGE, "--: no command to run is taken");
			if (i + 1 < argc)
				l->options.argv = &argv[i + 1];
			break;
		}
		if (strncmp(argv[i], "--", 2) == 0) {
			if (parse_option(l, argc, argv, &i, &given, err) != 0)
				return -1;
		} else if (argv[i][0] == '-') {
			return err_set(err, EXIT_USAGE, "%s: unknown option", argv[i]);
		} else if (l->command != NULL) {
			return err_set(err, EXIT_USAGE, "%s: not an argument of %s", argv[i],
					l->command->name);
		} else if (parse_command(l, argv[i], err) != 0) {
			return -1;
		}
	}
	if (l->command == NULL)
		return err_set(err, EXIT_USAGE, "%s (idlectl --help lists them)",
				l->probe ? "probe: which one?" : "no command");
	if ((l->command->takes & NEEDS_CPU) != 0 && l->options.cpu < 0)
		return err_set(err, EXIT_USAGE, "%s: needs --cpu", l->command->name);
	if ((l->command->takes & NEEDS_SCENARIO) != 0 && l->options.scenario == NULL)
		return err_set(err, EXIT_USAGE, "%s: needs --scenario", l->command->name);
	if ((l->command->takes & TAKES_COMMAND) != 0 && l->options.argv == NULL)
		return err_set(err, EXIT_USAGE, "%s: no command behind --", l->command->name);
	return 0;
}

int
main(int argc, char **argv)
{
	struct line line = {
		.options = { .cpu = -1,
				.probe = { .from = -1, .to = -1, .repeats = 10, .warmup = 1 } }
	};
	struct err err;
	int rc;

	/* A closed standard stream would hand its number to the next file that is opened. */
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
			return EXIT_FAILED;
	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		printf("idlectl %s\n", SIBFWD_VERSION);
		return EXIT_DONE;
	}
	for (size_t i = 0; argc == 2 && i < sizeof(answers) / sizeof(answers[0]); i++)
		if (strcmp(argv[1], answers[i].option) == 0) {
			answers[i].print();
			return EXIT_DONE;
		}
	rc = parse_line(&line, argc, argv, &err);
	if (rc == 0 && line.help) {
		if (line.command != NULL)
			print_command_help(stdout, line.command);
		else
			print_help(stdout);
	} else if (rc == 0) {
		if ((line.command->takes & LOOKS) != 0)
			say_leftover();
		rc = line.command->run(&line.options, &err);
	}
	if (rc < 0) {
		fprintf(stderr, "idlectl: %s\n", err.text);
		return (int)err.code;
	}
	if (fflush(stdout) != 0 || ferror(stdout)) {
		fprintf(stderr, "idlectl: standard output: %s\n", strerror(errno));
		return EXIT_FAILED;
	}
	return rc;
}
