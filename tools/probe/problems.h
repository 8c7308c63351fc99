/* problems.h: the problems, each with its cause and the commands that mend or examine it. The screen, JSON and the exit
 * status all follow this list. */
#ifndef PROBE_PROBLEMS_H
#define PROBE_PROBLEMS_H

#include "machine.h"

typedef struct gpuhal_probe_problem {
    gpuhal_hardware_grade grade; /* below PROBLEM: the exit status is 4 only with --strict */
    char code[40];               /* "no_kernel_driver", "plugin_timed_out", "verify_failed" */
    char hardware[128];          /* PCI address, or the id of a device; "" */
    char subject[400];           /* "NVIDIA GPU at 0000:01:00.0" */
    char why[1024], fix[512];    /* advice.h */
} gpuhal_probe_problem;

typedef struct gpuhal_probe_problems {
    gpuhal_probe_problem *list;
    uint32_t count;
} gpuhal_probe_problems;

#define GPUHAL_PROBE_SENTENCE_BYTES 1500u

/* Finds all problems. Returns false without memory. The list must be finished in both cases. */
bool gpuhal_probe_problems_find(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                                gpuhal_probe_problems *out_problems);
/* Finds the problems of the hardware that a selector without a matching device means; none if it means none. Returns
 * false without memory. The list must be finished in both cases. */
bool gpuhal_probe_problems_of(const gpuhal_probe_machine *machine, const char *selector,
                              gpuhal_probe_problems *out_problems);
void gpuhal_probe_problems_finish(gpuhal_probe_problems *problems);

/* Writes "NVIDIA GPU at 0000:01:00.0: no kernel driver is bound to it". */
void gpuhal_probe_problem_sentence(const gpuhal_probe_problem *problem, char to[GPUHAL_PROBE_SENTENCE_BYTES]);
/* Writes one sentence for all problems with the same cause, "2 GPUs (01:00.0, 02:00.0): …", "cuda:0, cuda:1: …".
 * Returns false if an earlier problem has this sentence. */
#define GPUHAL_PROBE_JOINED_BYTES 2200u
bool gpuhal_probe_problem_joined(const gpuhal_probe_problems *problems, uint32_t index,
                                 char to[GPUHAL_PROBE_JOINED_BYTES]);

#endif
