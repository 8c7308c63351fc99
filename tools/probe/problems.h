/* problems.h: the list of problems, each with its cause and the commands that fix or examine it. The screen, JSON and
 * the exit status are based on this list. */
#ifndef PROBE_PROBLEMS_H
#define PROBE_PROBLEMS_H

#include "machine.h"

typedef struct gpuhal_probe_problem {
    gpuhal_hardware_grade grade; /* grades below PROBLEM cause exit status 4 only with --strict */
    char code[40];               /* "no_kernel_driver", "plugin_timed_out", "verify_failed" */
    char hardware[128];          /* PCI address, else path of the hardware, or device id; may be "" */
    char subject[400];           /* "NVIDIA GPU at 0000:01:00.0" */
    char why[1024], fix[512];    /* advice.h */
} gpuhal_probe_problem;

typedef struct gpuhal_probe_problems {
    gpuhal_probe_problem *list;
    uint32_t count;
} gpuhal_probe_problems;

#define GPUHAL_PROBE_SENTENCE_BYTES 1500u

/* Finds all problems. Returns false if out of memory. The caller must finish the list in either case. */
bool gpuhal_probe_problems_find(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                                gpuhal_probe_problems *out_problems);
/* Finds the problems of hardware that a selector without a matching device refers to. Returns false if out of memory.
 * The caller must finish the list in either case. */
bool gpuhal_probe_problems_of(const gpuhal_probe_machine *machine, const char *selector,
                              gpuhal_probe_problems *out_problems);
void gpuhal_probe_problems_finish(gpuhal_probe_problems *problems);

/* Writes "NVIDIA GPU at 0000:01:00.0: no kernel driver is bound to it". */
void gpuhal_probe_problem_sentence(const gpuhal_probe_problem *problem, char to[GPUHAL_PROBE_SENTENCE_BYTES]);
/* Writes one sentence for all problems with the same cause: "2 GPUs (01:00.0, 02:00.0): …", "cuda:0, cuda:1: …".
 * Returns false if the sentence belongs to an earlier problem. */
#define GPUHAL_PROBE_JOINED_BYTES 2200u
bool gpuhal_probe_problem_joined(const gpuhal_probe_problems *problems, uint32_t index,
                                 char to[GPUHAL_PROBE_JOINED_BYTES]);

#endif
