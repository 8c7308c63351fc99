/* child.h: measuring in a fresh process: the program starts itself with --child WORD… and reads one number back. */
#ifndef GPUHAL_BENCH_CHILD_H
#define GPUHAL_BENCH_CHILD_H

#include <stdbool.h>

enum { GPUHAL_BENCH_CHILD_WORDS = 12 }; /* At most, without the NULL. */

/* Runs the child with @words, ended by NULL, and returns its number. False with gpuhal_bench_failure().
 * "list BACKEND here|apart": nanoseconds of gpuhal_open() with that backend, probed in-process or in a helper process.
 * "list_direct BACKEND LIBRARY ...": of the vendors' own calls, one vendor after the other.
 * "list_all REGISTRY": of gpuhal_open() with all plugins of the user's choice, in helper processes, with the record in
 * that directory or "none".
 * "device_memory BACKEND PCI": KiB of the device that opening the library with the backend takes, in-process.
 * "empty" and "opened": resident KiB of a program that does nothing, and of one with cpu:0 open.
 * "staging FROM TO BYTES": KiB, the largest growth of the resident memory during a copy.
 * "sharing OWNER USER BYTES": KiB, its growth once USER has used such a buffer of OWNER.
 * "calls gpuhal|direct SELECTOR COUNT": makes COUNT blocking copies of 64 bytes by the library or by the plugin's own
 * function, and returns COUNT: for counting instructions.
 * "program SELECTOR CACHE": nanoseconds of making a program and its kernel, with GPUHAL_PROGRAM_CACHE as CACHE. */
bool gpuhal_bench_child_run(const char *const *words, double *out_number);

/* Runs another program with one option, or without (NULL), and returns how long it took, from start to end. Its output
 * is discarded. False with gpuhal_bench_failure(). */
bool gpuhal_bench_child_time(const char *file, const char *option, double *out_ns);

/* The child's side (child_main.c): executes the words, prints the number, and returns the exit code. */
int gpuhal_bench_child_main(const char *const *words);

/* The words that child_open.c executes. Each fills in the number; @words are those after the first. */
bool gpuhal_bench_child_list(const char *const *words, double *out_ns);
bool gpuhal_bench_child_list_direct(const char *const *words, double *out_ns);
bool gpuhal_bench_child_list_all(const char *const *words, double *out_ns);
bool gpuhal_bench_child_device_memory(const char *const *words, double *out_kib);

/* Of rows_launch.c. */
bool gpuhal_bench_child_program(const char *const *words, double *out_ns);

#endif
