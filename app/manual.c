/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "manual.h"
#include "options.h"
#include "prompt.h"
#include "roff.h"

/* What people do with it, as the README and the guide have it. */
static const struct {
	const char *what, *command;
} examples[] = {
	{ "Forward what a NIC receives, as testpmd would, and keep the result:",
			"dpdk-sibfwd -l 0,2 -a 0000:3b:00.0 -a 0000:3b:00.1 -- --forward-mode=macswap --windows=10 --out=run1" },
	{ "Without a NIC or huge pages, frames from a capture:",
			"dpdk-sibfwd -l 0,1 --no-huge -m 256 --no-pci -- --source=pcap:frames.pcap --forward-mode=mac" },
	{ "What a load on the sibling costs, with a verdict as exit code:",
			"dpdk-sibfwd -l 0,2 -a 0000:3b:00.0 -- --scenario=as-is,wake:1000 --blocks=10 --margin=2" },
	{ "The published experiment, its figures beside the published ones:",
			"dpdk-sibfwd -l 0,2 -a 0000:3b:00.0 -a 0000:3b:00.1 -- --forward-mode=macswap --reproduce --out=run3" },
	{ "A prompt, as testpmd has it:",
			"dpdk-sibfwd -l 0,1 --no-huge -m 256 --no-pci --vdev=net_null0 --vdev=net_null1 -- -i" },
	{ "Commands from a file, by night, with figures for Prometheus:",
			"dpdk-sibfwd -l 0,2 -a 0000:3b:00.0 -- --cmdline-file=night.cmd --prom-file=/var/lib/node_exporter/sibfwd.prom </dev/null" },
	{ "What would run where, and how long it takes:",
			"dpdk-sibfwd -l 0,2 -- --windows=60 --dry-run" },
};

static const struct {
	int code;
	const char *meaning;
} exits[] = {
	{ 0, "done; with \\-\\-margin: no regression" },
	{ 1, "could not do it, or interrupted" },
	{ 2, "the command line, or a command, makes no sense" },
	{ 3, "with \\-\\-margin: a regression" },
	{ 4, "not applicable on this machine; the reason is printed" },
	{ 5, "with \\-\\-margin: it cannot be told" },
	{ 6, "the machine's state could not be put back" },
};

void
manual_man(FILE *out)
{
	struct option_doc doc;

	fprintf(out,
			".\\\" SPDX-License-Identifier: BSD-3-Clause\n.TH DPDK\\-SIBFWD 8 \"\" \"sibfwd %s\"\n"
			".SH NAME\ndpdk\\-sibfwd \\- forward packets and measure what the sibling's idling costs\n"
			".SH SYNOPSIS\n.B dpdk\\-sibfwd\n[EAL options] \\-\\- [options]\n"
			".SH DESCRIPTION\n",
			SIBFWD_VERSION);
	roff_text(out, "Forwards on one isolated CPU with testpmd's command line and measures, window by window, packets/s and TSC cycles/packet, with everything that could have spoilt a window beside it. Meanwhile the CPU's hyper-thread sibling idles as scenarios say, in turn.");
	fprintf(out, ".SH OPTIONS\n");
	for (unsigned int i = 0; options_doc(i, &doc); i++) {
		fprintf(out, ".TP\n.B %s", doc.name[1] == '\0' ? "\\-" : "\\-\\-");
		for (const char *c = doc.name; *c != '\0'; c++)
			fprintf(out, "%s%c", *c == '-' ? "\\" : "", *c);
		fprintf(out, "%s%s\n", doc.arg != NULL ? "=" : "", doc.arg != NULL ? doc.arg : "");
		roff_text(out, doc.help);
	}
	fprintf(out, ".SH COMMANDS\n");
	roff_text(out, "With -i at a prompt, or line by line in the file of --cmdline-file; testpmd's words where it has them.");
	prompt_man(out);
	fprintf(out, ".SH EXAMPLES\n");
	for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++) {
		roff_text(out, examples[i].what);
		fprintf(out, ".PP\n.RS\n.nf\n");
		roff_text(out, examples[i].command);
		fprintf(out, ".fi\n.RE\n.PP\n");
	}
	fprintf(out, ".SH EXIT STATUS\n");
	for (size_t i = 0; i < sizeof(exits) / sizeof(exits[0]); i++)
		fprintf(out, ".TP\n%d\n%s\n", exits[i].code, exits[i].meaning);
	fprintf(out, ".SH SEE ALSO\n.BR idlectl (8)\n");
}

/* Options whose value is a file or a directory. */
static bool
takes_file(const struct option_doc *doc)
{
	return doc->arg != NULL &&
			(strncmp(doc->arg, "FILE", 4) == 0 || strcmp(doc->arg, "DIR") == 0);
}

void
manual_completion(FILE *out)
{
	struct option_doc doc;

	fprintf(out,
			"# SPDX-License-Identifier: BSD-3-Clause\n"
			"# bash completion for dpdk-sibfwd, written by \"dpdk-sibfwd --completion\".\n"
			"_dpdk_sibfwd()\n{\n"
			"\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} i ours=\n"
			"\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
			"\t\t[ \"${COMP_WORDS[i]}\" != -- ] || ours=1\n"
			"\tdone\n"
			"\tif [ -z \"$ours\" ]; then\n"
			"\t\tCOMPREPLY=($(compgen -W \"-l -a -m -- --no-huge --no-pci --no-telemetry --vdev --file-prefix --lcores --main-lcore\" -- \"$cur\"))\n"
			"\t\treturn\n"
			"\tfi\n"
			"\t# bash splits --name=value at its =.\n"
			"\tif [ \"$cur\" = = ]; then\n"
			"\t\tcur=\n"
			"\telif [ \"$prev\" = = ]; then\n"
			"\t\tprev=${COMP_WORDS[COMP_CWORD - 2]}\n"
			"\tfi\n"
			"\tcase $prev in\n"
			"\t--scenario)\n"
			"\t\tlocal done=${cur%%\"${cur##*[+,]}\"}\n"
			"\t\tCOMPREPLY=($(compgen -P \"$done\" -W \"as-is $(idlectl scenarios --words 2>/dev/null)\" -- \"${cur##*[+,]}\"))\n"
			"\t\treturn ;;\n"
			"\t--sibling)\n"
			"\t\tCOMPREPLY=($(compgen -W \"auto $(idlectl topology --words 2>/dev/null)\" -- \"$cur\"))\n"
			"\t\treturn ;;\n");
	for (unsigned int i = 0; options_doc(i, &doc); i++)
		if (doc.values[0] != '\0')
			fprintf(out, "\t--%s) COMPREPLY=($(compgen -W \"%s\" -- \"$cur\")); return ;;\n",
					doc.name, doc.values);
		else if (takes_file(&doc))
			fprintf(out, "\t--%s) COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n",
					doc.name);
	fprintf(out, "\tesac\n\tCOMPREPLY=($(compgen -W \"");
	for (unsigned int i = 0; options_doc(i, &doc); i++)
		if (doc.name[1] == '\0')
			fprintf(out, " -%s", doc.name);
		else
			fprintf(out, " --%s", doc.name);
	fprintf(out, "\" -- \"$cur\"))\n}\ncomplete -F _dpdk_sibfwd dpdk-sibfwd\n");
}
