/* print.h: the output sections for people, and the JSON document. */
#ifndef PROBE_PRINT_H
#define PROBE_PRINT_H

#include "environment.h"
#include "machine.h"
#include "problems.h"
#include "screen.h"

/* Numbers of GPUs; the partitions of a GPU count as one. `ready` GPUs work and are available. `taken` GPUs work, but
 * another process has exclusive use of them. `not_given` GPUs are unavailable to this container, pod or job; with
 * --device, they are not counted. */
typedef struct gpuhal_probe_counts {
    uint32_t ready, all, taken, not_given;
    const char *not_given_to; /* "this pod", for example; owned by the hardware's view. NULL if `not_given` is 0 */
} gpuhal_probe_counts;
gpuhal_probe_counts gpuhal_probe_count(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options);
/* Writes "7 of 8 GPUs ready"; "1 GPU ready; 7 more of this host are not given to this pod". */
void gpuhal_probe_write_counts(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options, char *to,
                               size_t bytes);
/* Prints one line: the machine, the number of ready GPUs, their drivers, the kernel. */
void gpuhal_probe_print_head(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                             const gpuhal_probe_screen *screen);
/* The marks that appear on the screen: "!", "*" and "+". */
typedef struct gpuhal_probe_marks {
    bool has_problem, has_chosen, has_preferred;
} gpuhal_probe_marks;
/* Prints a line for each GPU, including unusable hardware. With --all, prints devices below their physical device, with
 * the evidence. Sets the marks that the table uses. Returns false if out of memory. */
bool gpuhal_probe_print_table(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                              const gpuhal_probe_screen *screen, gpuhal_probe_marks *marks);
bool gpuhal_probe_table_is_wide(const gpuhal_probe_options *options, const gpuhal_probe_screen *screen);
/* Prints the processes that use the GPUs, in at most three lines more than there are GPUs. With --processes, prints all
 * of them, or that there are none, or why they are unknown; without it, prints nothing if no process is known. Returns
 * false if out of memory. */
bool gpuhal_probe_print_processes(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                                  const gpuhal_probe_screen *screen);
/* Prints a sentence for each problem, with the commands that fix or examine it; problems with the same cause share one
 * sentence. Sets the marks that the sentences use. */
void gpuhal_probe_print_problems(const gpuhal_probe_problems *problems, const gpuhal_probe_screen *screen,
                                 gpuhal_probe_marks *marks);
/* If no GPU is given to this container, pod or job, prints the first GPU that could be given, and the command that
 * gives it. */
void gpuhal_probe_print_not_given(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                                  const gpuhal_probe_screen *screen);
/* Prints the meaning of the marks, and the default device with the rule that selected it. */
void gpuhal_probe_print_default(const gpuhal_probe_machine *machine, const gpuhal_probe_marks *marks,
                                const gpuhal_probe_screen *screen);
/* Below a plain listing of limited width (screen.h), prints options that show more or that help with broken GPUs. */
void gpuhal_probe_print_more(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                             const gpuhal_probe_screen *screen);
/* Prints the links between listed devices, the devices' NUMA nodes, and the network cards near them. Returns false if
 * out of memory. */
bool gpuhal_probe_print_links(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                              const gpuhal_probe_screen *screen);
/* Prints a block for each plugin that failed or that this user may not use, a line for every other plugin (with --all
 * a block), the devices that share a physical device (unless --all has listed them), the chosen device, and the
 * notes. */
void gpuhal_probe_print_explanation(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                                    const gpuhal_probe_screen *screen);
/* Prints everything about the target of --explain: a plugin, a device by selector with its links and processes,
 * hardware by address, or hardware by a selector for a device that is no longer listed. Returns the hardware's exit
 * status, PARTIAL for a device with a problem, COMPLETE for a plugin and for a device without hardware, NOT_FOUND if
 * nothing matches, and INTERNAL after a message on standard error. */
gpuhal_probe_exit gpuhal_probe_print_target(gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                                            const gpuhal_probe_screen *screen);
/* Returns the device of interface number `index`; NULL after the last. */
gpuhal_device *gpuhal_probe_interface(const gpuhal_view *view, uint32_t index);
/* Prints one line: "physical device 1: PCI 0000:c1:00.0, UUID ...". */
void gpuhal_probe_print_heading(const gpuhal_view *view, const gpuhal_physical_info *physical,
                                const gpuhal_probe_screen *screen);
/* Prints one sentence for each piece of evidence: why a device is an interface of this physical device, or why it is
 * not although the evidence suggests it. */
void gpuhal_probe_print_evidence(const gpuhal_view *view, const gpuhal_physical_info *physical,
                                 const gpuhal_probe_screen *screen);
/* Prints one line for each plugin that was probed now or earlier, and the total time. */
void gpuhal_probe_print_timings(const gpuhal_probe_machine *machine, const gpuhal_probe_screen *screen);
/* Prints the document gpuhal.probe/2, or gpuhal.probe/1 with --json=1. `environment` is NULL if the variables were not
 * requested. Returns false if out of memory; the caller must check `out` for write errors. */
bool gpuhal_probe_print_json(const gpuhal_probe_machine *machine, const gpuhal_probe_problems *problems,
                             const gpuhal_probe_options *options, const gpuhal_probe_environment *environment,
                             FILE *out);

/* Returns the exit status for the findings. */
gpuhal_probe_exit gpuhal_probe_judge_findings(const gpuhal_probe_machine *machine,
                                              const gpuhal_probe_problems *problems,
                                              const gpuhal_probe_options *options);
/* For --check, prints whether the GPUs are healthy, in one line, or with --json as the document gpuhal.health/1.
 * Returns false if out of memory. */
bool gpuhal_probe_print_check(const gpuhal_probe_machine *machine, const gpuhal_probe_problems *problems,
                              const gpuhal_probe_options *options, FILE *out);
/* Prints findings to standard error: that there are fewer GPUs than --expect requires, or no device or GPU. Below a
 * table, adds a note if --backends names only interfaces that are not listed. For all other formats, adds the
 * problems that determine the exit status. */
void gpuhal_probe_say_findings(const gpuhal_probe_machine *machine, const gpuhal_probe_problems *problems,
                               const gpuhal_probe_options *options);

#endif
