/* print.h: the sections that people read, and the JSON document. */
#ifndef PROBE_PRINT_H
#define PROBE_PRINT_H

#include "environment.h"
#include "machine.h"
#include "problems.h"
#include "screen.h"

/* Counts of GPUs: all; `ready`: they work and are free; `taken`: they work, but another process uses them exclusively;
 * not given, and to whom. Partitions of a GPU count as one. */
typedef struct gpuhal_probe_counts {
    uint32_t ready, all, taken, not_given;
    const char *not_given_to; /* part of the view of the hardware; NULL: all are given */
} gpuhal_probe_counts;
gpuhal_probe_counts gpuhal_probe_count(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options);
/* Writes "7 of 8 GPUs ready"; "1 GPU ready; 7 more of this host are not given to this pod". */
void gpuhal_probe_write_counts(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options, char *to,
                               size_t bytes);
/* Prints one line: the machine, how many of its GPUs are ready, their drivers, the kernel. */
void gpuhal_probe_print_head(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                             const gpuhal_probe_screen *screen);
/* The marks on the screen: "!", "*". */
typedef struct gpuhal_probe_marks {
    bool has_problem, has_chosen;
} gpuhal_probe_marks;
/* Prints one line per GPU and per unusable hardware. With --all the devices stand under their physical device, with the
 * evidence. Adds its marks. Returns false without memory. */
bool gpuhal_probe_print_table(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                              const gpuhal_probe_screen *screen, gpuhal_probe_marks *marks);
/* Returns whether the table has the columns of wide screens. */
bool gpuhal_probe_table_is_wide(const gpuhal_probe_options *options, const gpuhal_probe_screen *screen);
/* Prints the processes that use the GPUs: at most three lines more than there are GPUs; all with --processes. Prints
 * nothing if no process is known. Returns false without memory. */
bool gpuhal_probe_print_processes(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                                  const gpuhal_probe_screen *screen);
/* Prints for each problem a sentence, and the commands that mend or examine it; one for all with the same cause. Adds
 * its marks. */
void gpuhal_probe_print_problems(const gpuhal_probe_problems *problems, const gpuhal_probe_screen *screen,
                                 gpuhal_probe_marks *marks);
/* Prints, if no GPU is given, the first one that could be, and the command for it. */
void gpuhal_probe_print_not_given(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                                  const gpuhal_probe_screen *screen);
/* Prints the meaning of the marks, and the device that a program gets by default, with the rule that chose it. */
void gpuhal_probe_print_default(const gpuhal_probe_machine *machine, const gpuhal_probe_marks *marks,
                                const gpuhal_probe_screen *screen);
/* Prints below a plain listing on a screen the options for the parts that it leaves out, also for broken GPUs. */
void gpuhal_probe_print_more(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                             const gpuhal_probe_screen *screen);
/* Prints a table from device to device for each known property of links between the listed devices. Returns false
 * without memory. */
bool gpuhal_probe_print_links(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                              const gpuhal_probe_screen *screen);
/* Prints a block for each failed plugin, and a line for each other one; the devices that share a physical device,
 * unless --all has listed them already; the choice, and the notes. */
void gpuhal_probe_print_explanation(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                                    const gpuhal_probe_screen *screen);
/* Prints all about the target of --explain: a plugin, a device by a selector, hardware by its address, or by a selector
 * for a device that is no longer listed. Returns the exit status of the hardware; NOT_FOUND if no hardware is meant. */
gpuhal_probe_exit gpuhal_probe_print_target(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                                            const gpuhal_probe_screen *screen);
/* Returns the device of interface number `index`; NULL past the last. */
gpuhal_device *gpuhal_probe_interface(const gpuhal_view *view, uint32_t index);
/* Prints one line: "physical device 1: PCI 0000:c1:00.0, UUID ...". */
void gpuhal_probe_print_heading(const gpuhal_view *view, const gpuhal_physical_info *physical,
                                const gpuhal_probe_screen *screen);
/* Prints why devices are interfaces of it, or are not although something suggests that: one sentence each. */
void gpuhal_probe_print_evidence(const gpuhal_view *view, const gpuhal_physical_info *physical,
                                 const gpuhal_probe_screen *screen);
/* Prints one line per plugin that was probed, now or earlier, and the total time. */
void gpuhal_probe_print_timings(const gpuhal_probe_machine *machine, const gpuhal_probe_screen *screen);
/* Prints the document gpuhal.probe/2, or with --json=1 gpuhal.probe/1. `environment` is NULL if it was not asked for.
 * Returns false without memory; the caller must check `out` for write errors. */
bool gpuhal_probe_print_json(const gpuhal_probe_machine *machine, const gpuhal_probe_problems *problems,
                             const gpuhal_probe_options *options, const gpuhal_probe_environment *environment,
                             FILE *out);

/* Returns the exit status for the findings. */
gpuhal_probe_exit gpuhal_probe_judge_findings(const gpuhal_probe_machine *machine,
                                              const gpuhal_probe_problems *problems,
                                              const gpuhal_probe_options *options);
/* Prints for --check in one line whether the GPUs are healthy. */
void gpuhal_probe_print_check(const gpuhal_probe_machine *machine, const gpuhal_probe_problems *problems,
                              const gpuhal_probe_options *options, const gpuhal_probe_screen *screen);
/* Prints on standard error the findings that the printed format has no place for. */
void gpuhal_probe_say_findings(const gpuhal_probe_machine *machine, const gpuhal_probe_problems *problems,
                               const gpuhal_probe_options *options);

#endif
