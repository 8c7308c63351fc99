/* tests/test_main.h: main() of a test program. The test program's last line includes this file. `program name` runs the
 * named test in this process; `program name…` and `program` (all tests) run each test in a separate child. CMake
 * generates cases.inc from the TEST(…) lines of the source. */
#include <sys/wait.h>
#include <unistd.h>

static const struct CMUnitTest cases[] = {
#define CASE(name) cmocka_unit_test(name),
#include "cases.inc"
};

static int run_case(const struct CMUnitTest *own)
{
    const struct CMUnitTest one[] = {*own};
    return cmocka_run_group_tests_name(own->name, one, NULL, NULL);
}

static int run_case_apart(const struct CMUnitTest *own)
{
    int status = 0;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        exit(run_case(own));
    }
    const bool ran = child > 0 && waitpid(child, &status, 0) == child;
    const bool passed = ran && WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77);
    if (!passed) {
        fprintf(stderr, "%s: failed, wait status %d\n", own->name, status);
    }
    return !passed;
}

int main(int argc, char **argv)
{
    int failed = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool wanted = argc < 2;
        for (int a = 1; a < argc; a++) {
            wanted = wanted || strcmp(argv[a], cases[i].name) == 0;
        }
        if (wanted) {
            failed += argc == 2 ? run_case(&cases[i]) : run_case_apart(&cases[i]);
        }
    }
    return failed;
}
