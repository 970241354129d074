/* SPDX-License-Identifier: BSD-3-Clause */
#include <signal.h>
#include <stddef.h>
#include <time.h>

#include "stop.h"

/* The longest single sleep: a signal between the look at the flag and the sleep is not lost. */
#define NAP_S 0.1

static volatile sig_atomic_t asked;

static void (*volatile before_kill)(void);

/* The second signal, whichever of the two, kills. */
static void
on_signal(int sig)
{
	if (asked == 0) {
		asked = sig;
		return;
	}
	if (before_kill != NULL)
		before_kill();
	signal(sig, SIG_DFL);
	raise(sig);
}

void
stop_install(void)
{
	struct sigaction action = { .sa_handler = on_signal };

	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

bool
stop_asked(void)
{
	return asked != 0;
}

void
stop_forgive(void)
{
	if (asked != SIGINT)
		return;
	asked = 0;
}

void
stop_before_kill(void (*call)(void))
{
	before_kill = call;
}

static double
now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

void
stop_sleep(double seconds)
{
	double end = now() + seconds;

	for (double left = seconds; left > 0 && !stop_asked(); left = end - now()) {
		double nap = left < NAP_S ? left : NAP_S;
		struct timespec ts = { .tv_sec = 0, .tv_nsec = (long)(nap * 1e9) };

		nanosleep(&ts, NULL);
	}
}
