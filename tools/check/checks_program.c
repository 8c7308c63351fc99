/* checks_program.c: programs that must be refused. */
#include "kernel.h"
#include "program.h"

static void expect_rubbish_refused(void *user, const char *format)
{
    gpuhal_program_refused(user, format);
}

/* Uses code that is correct except for the target, so that the target is the only reason for a refusal. */
static void expect_other_target_refused(const gpuhal_context *context)
{
    gpuhal_code code = gpuhal_given_code(context);
    gpuhal_plugin_program *program = NULL;
    code.target = "gpuhal-check.none";
    const gpuhal_status status = gpuhal_program_try(&context->opened, &code, NULL, &program);
    if (status != GPUHAL_ERROR_INCOMPATIBLE) {
        gpuhal_fail("program_load returned %s for code of the target gpuhal-check.none, instead of incompatible",
                    gpuhal_status_text(status));
    }
    gpuhal_forget_report();
}

/* Applications provide one program in several formats. If a plugin refuses a format with a wrong status, the core might
 * not try the remaining formats. */
void gpuhal_check_program_refused(gpuhal_context *context)
{
    static const char code[] = "no program";
    const gpuhal_code unknown = {
        .size = sizeof unknown, .format = "gpuhal-check.none", .code = code, .bytes = sizeof code};
    gpuhal_plugin_program *program = NULL;
    if (!gpuhal_offered(context->opened.slots.programs.program_load != NULL, "program_load")) {
        return;
    }
    const gpuhal_status status = gpuhal_program_try(&context->opened, &unknown, NULL, &program);
    if (status != GPUHAL_ERROR_NOT_SUPPORTED) {
        gpuhal_fail("program_load returned %s for a format that program_formats does not have, instead of not "
                    "supported",
                    gpuhal_status_text(status));
    }
    gpuhal_forget_report();
    gpuhal_formats_visit(context, expect_rubbish_refused, context);
    if (gpuhal_given_fits(context)) {
        expect_other_target_refused(context);
    }
    gpuhal_area area;
    gpuhal_area_init(&area, context, &context->opened, GPUHAL_MEMORY_DEVICE, gpuhal_area_usual(context));
    gpuhal_area_reset(&area, 3, ROUTE_ANY);
    gpuhal_area_verify(&area, (gpuhal_claim){.bytes = area.bytes}, ROUTE_ANY, "a transfer after programs were refused");
    gpuhal_area_finish(&area);
}
