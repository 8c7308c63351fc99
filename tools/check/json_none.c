/* json_none.c: a build without jansson, whose --json is an error on the command line. */
#include "report.h"

const bool gpuhal_document_built = false;

bool gpuhal_document_begin(gpuhal_report *report)
{
    (void)report;
    return false;
}

void gpuhal_document_result(gpuhal_report *report, const gpuhal_finding *finding)
{
    (void)report;
    (void)finding;
}

bool gpuhal_document_end(gpuhal_report *report, const gpuhal_self *self, gpuhal_ending ending)
{
    (void)report;
    (void)self;
    (void)ending;
    return false;
}

bool gpuhal_document_print_list(FILE *out)
{
    (void)out;
    return false;
}

bool gpuhal_document_print_error(FILE *out, const char *code, const char *message)
{
    (void)out;
    (void)code;
    (void)message;
    return false;
}
