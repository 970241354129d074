/* SPDX-License-Identifier: BSD-3-Clause */
/* The forwarding modes, in testpmd's order. */
#include <string.h>

#include "fwd.h"

extern const struct fwd_mode fwd_io, fwd_mac, fwd_macswap, fwd_flowgen, fwd_rxonly, fwd_txonly,
	fwd_csum, fwd_icmpecho, fwd_noisy, fwd_5tswap;

static const struct fwd_mode *const modes[] = {
	&fwd_io,
	&fwd_mac,
	&fwd_macswap,
	&fwd_flowgen,
	&fwd_rxonly,
	&fwd_txonly,
	&fwd_csum,
	&fwd_icmpecho,
	&fwd_noisy,
	&fwd_5tswap,
};

const struct fwd_mode *
fwd_mode_find(const char *name)
{
	for (unsigned int i = 0; i < RTE_DIM(modes); i++)
		if (strcmp(modes[i]->name, name) == 0)
			return modes[i];
	return NULL;
}

const char *
fwd_mode_names(void)
{
	return "io mac macswap flowgen rxonly txonly csum icmpecho noisy 5tswap";
}
