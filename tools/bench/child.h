/* child.h: measuring in a fresh process: the program runs itself with --child WORD… and reads one number from the new
 * process. */
#ifndef GPUHAL_BENCH_CHILD_H
#define GPUHAL_BENCH_CHILD_H

#include <stdbool.h>

enum { GPUHAL_BENCH_CHILD_WORDS = 12 }; /* Maximum, without the NULL. */

/* Runs the child with @words, which end with NULL, and returns its number. Returns false and sets
 * gpuhal_bench_failure() on failure. "list BACKEND here|apart" returns the nanoseconds of gpuhal_open() with that
 * backend, probed in-process or in a subprocess. "list_direct BACKEND LIBRARY ..." returns the nanoseconds of the
 * vendors' own calls, one vendor after the other. "list_all REGISTRY" returns the nanoseconds of gpuhal_open() with all
 * plugins chosen by the user, in subprocesses, with the registry in that directory or "none". "device_memory BACKEND
 * PCI" returns the KiB of device memory that opening the library with the backend uses, in-process. "empty" and
 * "opened" return the resident KiB of a program that does nothing, and of a program with cpu:0 open. "staging FROM TO
 * BYTES" returns the maximum growth of resident memory during a copy, in KiB. "sharing OWNER USER BYTES" returns the
 * growth of resident memory in KiB once USER has used a buffer of OWNER of this size. "calls gpuhal|direct SELECTOR
 * COUNT" makes COUNT blocking copies of 64 bytes through the library or the plugin's own function, and returns COUNT,
 * so that instructions can be counted. "program SELECTOR CACHE" returns the nanoseconds of making a program and its
 * kernel, with GPUHAL_PROGRAM_CACHE set to CACHE. */
bool gpuhal_bench_child_run(const char *const *words, double *out_number);

/* Runs another program with one option, or without options if @option is NULL, and measures the run's duration.
 * Discards the program's output. Returns false and sets gpuhal_bench_failure() on failure. */
bool gpuhal_bench_child_time(const char *file, const char *option, double *out_ns);

/* The child process (child_main.c): executes the words, prints the number, and returns the exit code. */
int gpuhal_bench_child_main(const char *const *words);

/* The first words that child_open.c implements. Each function fills in the number; @words are the words after the first
 * word. */
bool gpuhal_bench_child_list(const char *const *words, double *out_ns);
bool gpuhal_bench_child_list_direct(const char *const *words, double *out_ns);
bool gpuhal_bench_child_list_all(const char *const *words, double *out_ns);
bool gpuhal_bench_child_device_memory(const char *const *words, double *out_kib);

/* In rows_launch.c. */
bool gpuhal_bench_child_program(const char *const *words, double *out_ns);

#endif
