/* tests/test_main.h: main() of a test program, included as its last line. `program name…` runs the named tests,
 * `program` all. cases.inc is written by CMake from the TEST(…) lines of the source. */
static const struct CMUnitTest cases[] = {
#define CASE(name) cmocka_unit_test(name),
#include "cases.inc"
};

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
            const struct CMUnitTest one[] = {cases[i]};
            failed += cmocka_run_group_tests_name(cases[i].name, one, NULL, NULL);
        }
    }
    return failed;
}
