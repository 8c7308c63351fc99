/* links.h: the links between devices: the library's facts, and with --verify the results of copies and timing. */
#ifndef PROBE_LINKS_H
#define PROBE_LINKS_H

#include "machine.h"
#include "print.h"

/* In the order of the document, except VERIFIED. Tables in links.c and json_link.c have this order, too. The values
 * from PROBE_LINK_PATH on are results of trying the link. */
enum {
    PROBE_LINK_KIND,
    PROBE_LINK_BANDWIDTH,
    PROBE_LINK_GENERATION,
    PROBE_LINK_COUNT,
    PROBE_LINK_ADVERTISED,
    PROBE_LINK_PATH,
    PROBE_LINK_SPEED,
    PROBE_LINK_LATENCY,
    PROBE_LINK_TRIED,
    PROBE_LINK_VERIFIED, /* cached, unless this run tried the link */
    PROBE_LINK_VALUES
};

struct gpuhal_probe_link {
    uint32_t from, to;          /* indices of the machine's devices */
    bool software;              /* at least one of the two devices is host software, so the measurement is about the
                                 * processor */
    bool tried;                 /* --verify was to try this link; `result` says if it was skipped */
    bool cached;                /* the measurement is from an earlier run */
    gpuhal_probe_result result; /* the result of verifying the link and of reading facts from the driver */
    gpuhal_value values[PROBE_LINK_VALUES];
    gpuhal_missing name_missing; /* 0 if `name` is the vendor's name; else the reason why there is none */
    char name[112];
};

/* Reads the links of every ordered pair of devices. With --verify, also tries the pairs of shown devices. Should be
 * called before values are read, because a child process cannot use a driver that this process has started. Returns
 * false if out of memory. */
bool gpuhal_probe_links_find(const gpuhal_probe_options *options, gpuhal_probe_machine *machine);

#endif
