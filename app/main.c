/* SPDX-License-Identifier: BSD-3-Clause */
/* dpdk-sibfwd: bring up, measure, tear down. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_version.h>

#include "manual.h"
#include "prompt.h"
#include "run.h"
#include "stop.h"
#include "warn.h"

/* ---- before EAL ---- */

/* A closed standard stream would hand its number to the next file that is opened. */
static void
keep_standard_streams(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
			_exit(EXIT_FAILED);
}

static int
split_arguments(struct run *r, int argc, char **argv, struct err *err)
{
	int dashes = 1;

	while (dashes < argc && strcmp(argv[dashes], "--") != 0)
		dashes++;
	r->argc = argc;
	r->argv = argv;
	/* Room for one argument of ours and the final NULL. */
	r->eal_argv = calloc((size_t)dashes + 2, sizeof(*r->eal_argv));
	if (r->eal_argv == NULL)
		return err_set(err, EXIT_FAILED, "out of memory");
	memcpy(r->eal_argv, argv, (size_t)dashes * sizeof(*argv));
	r->eal_argc = dashes;
	if (dashes == argc)
		return options_parse(&r->options, 1, argv, err);
	return options_parse(&r->options, argc - dashes, argv + dashes, err);
}

/* EAL takes its long options shortened, down to what tells them apart: --no-hu. */
static bool
eal_no_huge(const struct run *r)
{
	static const char option[] = "--no-huge", shortest[] = "--no-hu";

	for (int i = 1; i < r->eal_argc; i++)
		if (strlen(r->eal_argv[i]) >= strlen(shortest) &&
				strncmp(r->eal_argv[i], option, strlen(r->eal_argv[i])) == 0)
			return true;
	return false;
}

/* True if EAL needs huge pages and none is to be had: its own complaint names no remedy. */
static bool
lacks_hugepages(const struct run *r)
{
	DIR *dir;
	struct dirent *entry;
	long long pages = 0;

	if (eal_no_huge(r))
		return false;
	dir = opendir("/sys/kernel/mm/hugepages");
	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		static const char *const counts[] = { "free_hugepages", "nr_overcommit_hugepages" };

		for (unsigned int i = 0; i < RTE_DIM(counts); i++) {
			char path[512], text[32];

			snprintf(path, sizeof(path), "/sys/kernel/mm/hugepages/%s/%s",
					entry->d_name, counts[i]);
			pages += atoll(machine_file(path, text, sizeof(text)));
		}
	}
	if (dir != NULL)
		closedir(dir);
	return pages == 0;
}

static int
load_capture(struct run *r, struct err *err)
{
	char text[512];

	if (r->options.source != SOURCE_PCAP)
		return 0;
	if (capture_load(&r->capture, r->options.capture,
			    r->options.mbuf_size - RTE_PKTMBUF_HEADROOM, err) != 0)
		return -1;
	r->have_capture = true;
	fprintf(stderr, "dpdk-sibfwd: capture %s: %s\n", r->options.capture,
			capture_describe(&r->capture.info, text, sizeof(text)));
	return 0;
}

static int
dry_run(const struct run *r, struct err *err)
{
	const struct options *o = &r->options;
	unsigned int visits[SCHEDULE_VISITS_MAX], nb = schedule_visits(options_arms(o));

	placement_print(&r->placement, stdout);
	printf("scenarios  ");
	for (unsigned int i = 0; i < options_arms(o); i++)
		printf("%s %s", i > 0 && options_settings(o) > 1 ? "," : "",
				options_arm(o, i).name);
	printf("\norder       %u block%s of %u visit%s: settle %g s, warm-up %g s, %u windows of %g s\n",
			o->blocks, o->blocks == 1 ? "" : "s", nb, nb == 1 ? "" : "s", o->settle,
			o->warmup, o->windows, o->duration);
	for (uint32_t block = 1; options_arms(o) > 1 && block <= RTE_MIN(o->blocks, 2u); block++) {
		printf("block %-5u ", block);
		schedule_block(visits, options_arms(o), block, o->order, o->seed);
		for (unsigned int i = 0; i < nb; i++)
			printf("%s %s", i > 0 && options_settings(o) > 1 ? "," : "",
					options_arm(o, visits[i]).name);
		putchar('\n');
	}
	if (r->resume.done.blocks > 0)
		printf("resume      with block %u; %u were measured\n", r->resume.done.blocks + 1,
				r->resume.done.blocks);
	printf("time        %.1f s%s\n", experiment_seconds(o, &r->resume.done),
			options_arms(o) > 1 ? ", twice that if all blocks are tainted" : "");
	if (fflush(stdout) != 0 || ferror(stdout))
		return err_set(err, EXIT_FAILED, "standard output: %s", strerror(errno));
	return 0;
}

/* ---- EAL ---- */

static int saved_streams[2] = { -1, -1 };
static int eal_output = -1;

/* What EAL and the drivers print while they start is kept, to be told in one line or logged. */
static void
hold_output(void)
{
	fflush(stdout);
	eal_output = memfd_create("eal", MFD_CLOEXEC);
	if (eal_output < 0)
		return;
	for (int i = 0; i < 2; i++) {
		saved_streams[i] = fcntl(i + 1, F_DUPFD_CLOEXEC, 3);
		dup2(eal_output, i + 1);
	}
}

static void
release_output(void)
{
	if (eal_output < 0)
		return;
	fflush(stdout);
	for (int i = 0; i < 2; i++) {
		dup2(saved_streams[i], i + 1);
		close(saved_streams[i]);
	}
}

/* Returns all that was printed; the caller frees it. */
static char *
take_output(void)
{
	off_t size = eal_output < 0 ? 0 : lseek(eal_output, 0, SEEK_END);
	char *text = calloc(1, (size_t)size + 1);

	if (text != NULL && size > 0 && pread(eal_output, text, (size_t)size, 0) != size)
		text[0] = '\0';
	if (eal_output >= 0)
		close(eal_output);
	eal_output = -1;
	return text;
}

/* rte_panic() aborts: the same, with what a signal handler may call. */
static void
on_abort_in_eal(int sig)
{
	char part[512];
	ssize_t n;

	(void)sig;
	if (eal_output < 0)
		return;
	for (off_t at = 0; (n = pread(eal_output, part, sizeof(part), at)) > 0; at += n)
		if (write(saved_streams[1], part, (size_t)n) != n)
			break;
}

/* EAL may end the process itself: then its words must come out after all. */
static void
on_exit_in_eal(void)
{
	char *text;

	if (eal_output < 0)
		return;
	release_output();
	text = take_output();
	fputs(text != NULL ? text : "", stderr);
	free(text);
}

/* What EAL says of every machine, failed or not. */
static bool
says_why(const char *line)
{
	return strncmp(line, "Detected ", 9) != 0 && strncmp(line, "Selected ", 9) != 0 &&
			strncmp(line, "Multi-process socket", 20) != 0 &&
			strstr(line, "command line' arguments") == NULL;
}

/* The lines of EAL's output that say why: getopt's, which bears our name, and its last two. */
static void
eal_reason(char *log, const char *program, char *reason, size_t size)
{
	const char *found[3] = { NULL };
	size_t used = 0;
	char *save = NULL;

	for (char *line = strtok_r(log, "\n", &save); line != NULL;
			line = strtok_r(NULL, "\n", &save)) {
		if (strncmp(line, program, strlen(program)) == 0 && found[0] == NULL)
			found[0] = line + strlen(program) + strspn(line + strlen(program), ": ");
		if (strncmp(line, "EAL: ", 5) != 0 || !says_why(line + 5) ||
				(found[2] != NULL && strstr(found[2], line + 5) != NULL))
			continue;
		found[1] = found[2];
		found[2] = line + 5;
	}
	snprintf(reason, size, "no reason given");
	for (unsigned int i = 0; i < RTE_DIM(found); i++)
		if (found[i] != NULL && used < size)
			used += (size_t)snprintf(reason + used, size - used, "%s%s",
					used == 0 ? "" : "; ", found[i]);
}

static int
start_eal(struct run *r, struct err *err)
{
	char reason[400];
	int rc;

	if (r->placement.eal_lcores[0] != '\0')
		r->eal_argv[r->eal_argc++] = r->placement.eal_lcores;
	atexit(on_exit_in_eal);
	signal(SIGABRT, on_abort_in_eal);
	hold_output();
	rc = rte_eal_init(r->eal_argc, r->eal_argv);
	release_output();
	signal(SIGABRT, SIG_DFL);
	r->eal_log = take_output();
	if (rc >= 0) {
		r->eal_up = true;
		return 0;
	}
	rc = rte_errno;
	if (rc != EINVAL && lacks_hugepages(r))
		return err_set(err, EXIT_FAILED,
				"no huge pages are free: reserve some (echo 256 > /proc/sys/vm/nr_hugepages) or give EAL --no-huge -m 256");
	eal_reason(r->eal_log, r->eal_argv[0], reason, sizeof(reason));
	return err_set(err, rc == EINVAL ? EXIT_USAGE : EXIT_FAILED, "EAL does not start: %s",
			reason);
}

/* ---- the run ---- */

static void
name_run(struct run *r)
{
	time_t now = time(NULL);
	struct tm tm;
	size_t n;

	gmtime_r(&now, &tm);
	n = strftime(r->run_id, sizeof(r->run_id), "%Y%m%dT%H%M%SZ", &tm);
	snprintf(r->run_id + n, sizeof(r->run_id) - n, "-%d", (int)getpid());
	if (gethostname(r->host, sizeof(r->host) - 1) != 0)
		snprintf(r->host, sizeof(r->host), "unknown");
}

static int
run(struct run *r, struct err *err)
{
	const struct options *o = &r->options;

	if (placement_plan(&r->placement, r->eal_argc, r->eal_argv, o->nb_cores, o->sibling, err) !=
			0)
		return -1;
	if (run_check(r, err) != 0)
		return -1;
	if (o->dry_run)
		return dry_run(r, err);
	if (placement_restrict(&r->placement, err) != 0 || load_capture(r, err) != 0 ||
			run_guard(r, err) != 0 || start_eal(r, err) != 0 || run_open(r, err) != 0)
		return -1;
	if (stop_asked())
		return err_set(err, EXIT_FAILED, "interrupted before the first window");
	if (r->prompt)
		return prompt_run(r, err);
	return o->calibrate > 0 ? run_calibrate(r, err) : run_measure(r, err);
}

static void
help(void)
{
	options_help(stdout);
}

int
main(int argc, char **argv)
{
	static struct run r;
	struct err err = { 0 };
	int rc, verdict = EXIT_DONE;

	keep_standard_streams();
	stop_install();
	lcore_clock_read(&r.started);
	name_run(&r);
	r.progress = isatty(STDERR_FILENO) == 1;
	if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
		help();
		return EXIT_DONE;
	}
	if (argc == 2 && strcmp(argv[1], "--man") == 0) {
		manual_man(stdout);
		return EXIT_DONE;
	}
	if (argc == 2 && strcmp(argv[1], "--completion") == 0) {
		manual_completion(stdout);
		return EXIT_DONE;
	}
	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		printf("dpdk-sibfwd %s (%s)\n", SIBFWD_VERSION, rte_version());
		return EXIT_DONE;
	}
	rc = split_arguments(&r, argc, argv, &err);
	r.prompt = r.options.interactive || r.options.cmdline_file != NULL;
	if (rc == 0 && r.options.help) {
		help();
		return EXIT_DONE;
	}
	if (rc == 0)
		rc = run_end(&r, run(&r, &err), &err);
	if (rc != 0)
		fprintf(stderr, "dpdk-sibfwd: %s\n", err.text);
	if (rc == 0 && r.options.margin_given && !r.options.dry_run)
		verdict = (int)verdict_exit(
				r.prompt ? r.verdict
					 : comparisons_verdict(&r.comparisons, r.options.margin));
	run_close(&r);
	if (r.experiment.stuck)
		_exit(err.code);
	return rc != 0 ? (int)err.code : verdict;
}
