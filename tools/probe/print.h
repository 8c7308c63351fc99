/* print.h: the sections that people read, and the JSON document. */
#ifndef PROBE_PRINT_H
#define PROBE_PRINT_H

#include "environment.h"
#include "machine.h"
#include "problems.h"
#include "screen.h"

/* How many GPUs there are, how many of them work and another process has them alone, and how many are not given, and to
 * whom. Partitions of a GPU are one. */
typedef struct gpuhal_probe_counts {
    uint32_t ready, all, taken, not_given;
    const char *not_given_to; /* of the view of the hardware; NULL: all are given */
} gpuhal_probe_counts;
gpuhal_probe_counts gpuhal_probe_count(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options);
/* "7 of 8 GPUs ready"; "1 GPU ready; 7 more of this host are not given to this pod". */
void gpuhal_probe_write_counts(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options, char *to,
                               size_t bytes);
/* One line: the machine, how many of its GPUs are ready, their drivers, the kernel. */
void gpuhal_probe_print_head(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                             const gpuhal_probe_screen *screen);
/* The marks on the screen: "!", "*". */
typedef struct gpuhal_probe_marks {
    bool has_problem, has_chosen;
} gpuhal_probe_marks;
/* One line per GPU, and for what is not usable. With --all the devices stand under the physical device that they are
 * interfaces of, with the evidence. Adds its marks. false without memory. */
bool gpuhal_probe_print_table(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                              const gpuhal_probe_screen *screen, gpuhal_probe_marks *marks);
/* Whether the table has the columns of wide screens. */
bool gpuhal_probe_table_is_wide(const gpuhal_probe_options *options, const gpuhal_probe_screen *screen);
/* Who uses the GPUs: at most as many lines as there are GPUs, and three; all with --processes. Nothing where no process
 * is known. false without memory. */
bool gpuhal_probe_print_processes(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                                  const gpuhal_probe_screen *screen);
/* For each problem a sentence, and the commands that mend or examine it; one for all that share the cause. Adds its
 * marks. */
void gpuhal_probe_print_problems(const gpuhal_probe_problems *problems, const gpuhal_probe_screen *screen,
                                 gpuhal_probe_marks *marks);
/* If no GPU is given: the first one that could be, and the command for it. */
void gpuhal_probe_print_not_given(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                                  const gpuhal_probe_screen *screen);
/* What the marks mean; the device that a program gets which asks for none, and by which rule. */
void gpuhal_probe_print_default(const gpuhal_probe_machine *machine, const gpuhal_probe_marks *marks,
                                const gpuhal_probe_screen *screen);
/* Below a plain listing on a screen: which options have what it leaves out, of GPUs that do not work, too. */
void gpuhal_probe_print_more(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                             const gpuhal_probe_screen *screen);
/* A table from device to device for each thing that is known of links, of the devices that are listed. false without
 * memory. */
bool gpuhal_probe_print_links(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                              const gpuhal_probe_screen *screen);
/* A block for each plugin that fails, a line for each other one; which devices are one physical device, unless --all
 * has listed that already; the choice, and the notes. */
void gpuhal_probe_print_explanation(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                                    const gpuhal_probe_screen *screen);
/* All about the target of --explain: a plugin, a device by a selector, hardware by its address, or by a selector that
 * means a device which is not listed any more. The exit status of the hardware; NOT_FOUND: no hardware is meant. */
gpuhal_probe_exit gpuhal_probe_print_target(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                                            const gpuhal_probe_screen *screen);
/* The device of interface number `index`; NULL past the last. */
gpuhal_device *gpuhal_probe_interface(const gpuhal_view *view, uint32_t index);
/* One line: "physical device 1: PCI 0000:c1:00.0, UUID ...". */
void gpuhal_probe_print_heading(const gpuhal_view *view, const gpuhal_physical_info *physical,
                                const gpuhal_probe_screen *screen);
/* Why devices are interfaces of it, or are not although something suggests that: one sentence each. */
void gpuhal_probe_print_evidence(const gpuhal_view *view, const gpuhal_physical_info *physical,
                                 const gpuhal_probe_screen *screen);
/* One line per plugin that was probed, now or earlier, and how long all took. */
void gpuhal_probe_print_timings(const gpuhal_probe_machine *machine, const gpuhal_probe_screen *screen);
/* The document gpuhal.probe/2, or with --json=1 gpuhal.probe/1. `environment` is NULL when it was not asked for. false
 * without memory; whether writing worked is for the caller to see on `out`. */
bool gpuhal_probe_print_json(const gpuhal_probe_machine *machine, const gpuhal_probe_problems *problems,
                             const gpuhal_probe_options *options, const gpuhal_probe_environment *environment,
                             FILE *out);

/* The exit status that the findings deserve. */
gpuhal_probe_exit gpuhal_probe_judge_findings(const gpuhal_probe_machine *machine,
                                              const gpuhal_probe_problems *problems,
                                              const gpuhal_probe_options *options);
/* --check: whether the GPUs are healthy, in one line. */
void gpuhal_probe_print_check(const gpuhal_probe_machine *machine, const gpuhal_probe_problems *problems,
                              const gpuhal_probe_options *options, const gpuhal_probe_screen *screen);
/* On standard error: what the printed format has no place for. */
void gpuhal_probe_say_findings(const gpuhal_probe_machine *machine, const gpuhal_probe_problems *problems,
                               const gpuhal_probe_options *options);

#endif
