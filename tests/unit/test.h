/* tests/unit/test.h: a small TAP test header.
 *
 *     TEST(arena_alloc_is_zeroed) { ... CHECK(p[0] == 0); CHECK_NEAR(x, 1.0, 1e-6, 0); }
 *     TEST_MAIN(arena)
 *
 * One file = one program = one subject. Tests register themselves before main, run in order of
 * registration, and print TAP lines; the last line is "N passed, N failed, N skipped".
 * Options: --list, or substrings of names to run. SKIP(reason) leaves the test, loudly.
 */
#ifndef FRONTIER_TEST_H
#define FRONTIER_TEST_H
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct test_case {
    const char *name;
    void (*run)(void);
    struct test_case *next;
} test_case;

static test_case *test_first, **test_tail = &test_first;
static int test_failures;          /* in the current test */
static const char *test_skip_text; /* set by SKIP */

__attribute__((format(printf, 3, 4))) static inline void test_fail_format(const char *file, int line, const char *format, ...)
{
    if (test_failures++ >= 10)
        return;
    va_list arguments;
    va_start(arguments, format);
    printf("# %s:%d: ", file, line);
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
}

static inline void test_fail(const char *file, int line, const char *text)
{
    test_fail_format(file, line, "%s", text);
}

#define TEST(NAME)                                                            \
    static void test_run_##NAME(void);                                        \
    static test_case test_case_##NAME = {#NAME, test_run_##NAME, NULL};       \
    __attribute__((constructor)) static void test_register_##NAME(void)       \
    {                                                                         \
        *test_tail = &test_case_##NAME;                                       \
        test_tail = &test_case_##NAME.next;                                   \
    }                                                                         \
    static void test_run_##NAME(void)

#define CHECK(CONDITION)                                                      \
    do {                                                                      \
        if (!(CONDITION))                                                     \
            test_fail(__FILE__, __LINE__, #CONDITION);                        \
    } while (0)
#define CHECK_INT(GOT, WANT)                                                  \
    do {                                                                      \
        long long got_ = (long long)(GOT), want_ = (long long)(WANT);         \
        if (got_ != want_) {                                                  \
            test_fail_format(__FILE__, __LINE__, "%s: got %lld, want %lld", #GOT, got_, want_); \
        }                                                                     \
    } while (0)
#define CHECK_STR(GOT, WANT)                                                  \
    do {                                                                      \
        const char *got_ = (GOT), *want_ = (WANT);                            \
        if (!got_ || !want_ || strcmp(got_, want_) != 0) {                    \
            test_fail_format(__FILE__, __LINE__, "%s: got \"%s\", want \"%s\"", #GOT, got_ ? got_ : "(null)", want_ ? want_ : "(null)"); \
        }                                                                     \
    } while (0)
/* |got - want| <= absolute + relative * |want|; NaN fails. */
#define CHECK_NEAR(GOT, WANT, ABSOLUTE, RELATIVE)                             \
    do {                                                                      \
        double got_ = (double)(GOT), want_ = (double)(WANT);                  \
        if (!(fabs(got_ - want_) <= (ABSOLUTE) + (RELATIVE)*fabs(want_))) {   \
            test_fail_format(__FILE__, __LINE__, "%s: got %.9g, want %.9g", #GOT, got_, want_); \
        }                                                                     \
    } while (0)
/* The call succeeded; otherwise prints the fr_error it left (needs a variable `error` in scope). */
#define CHECK_OK(CALL)                                                        \
    do {                                                                      \
        if ((CALL) != FR_OK) {                                                \
            test_fail_format(__FILE__, __LINE__, "%s: %s: %s (%s)", #CALL, error.where, error.what, error.hint); \
        }                                                                     \
    } while (0)
#define SKIP(REASON)                                                          \
    do {                                                                      \
        test_skip_text = (REASON);                                            \
        return;                                                               \
    } while (0)

static inline bool test_wanted(const char *name, int argc, char **argv)
{
    bool any = false;
    for (int i = 1; i < argc; i++) {
        any = true;
        if (strstr(name, argv[i]))
            return true;
    }
    return !any;
}

static inline int test_main(const char *suite, int argc, char **argv)
{
    int passed = 0, failed = 0, skipped = 0;
    bool list = argc > 1 && strcmp(argv[1], "--list") == 0;
    for (test_case *t = test_first; t; t = t->next) {
        if (list) {
            puts(t->name);
            continue;
        }
        if (!test_wanted(t->name, argc, argv))
            continue;
        test_failures = 0;
        test_skip_text = NULL;
        t->run();
        if (test_failures) {
            failed++;
            printf("not ok - %s.%s\n", suite, t->name);
        } else if (test_skip_text) {
            skipped++;
            printf("ok - %s.%s # SKIP %s\n", suite, t->name, test_skip_text);
        } else {
            passed++;
            printf("ok - %s.%s\n", suite, t->name);
        }
        fflush(stdout);
    }
    if (!list)
        printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed ? 1 : 0;
}

#define TEST_MAIN(SUITE)                                                      \
    int main(int argc, char **argv) { return test_main(#SUITE, argc, argv); }
#endif
