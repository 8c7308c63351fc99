/* watch_none.c: the live view of a build without ncurses. */
#include "watch.h"

#include "screen.h"

gpuhal_probe_exit gpuhal_probe_watch(const gpuhal_probe_options *options,
                                     gpuhal_probe_machine *machine, FILE *out) {
  (void)options;
  (void)machine;
  (void)out;
  gpuhal_probe_say("--watch: built without ncurses (Debian: libncurses-dev); "
                   "--watch --format jsonl prints lines");
  return PROBE_INTERNAL;
}
