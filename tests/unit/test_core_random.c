/* Python's random numbers against CPython's own answers: tests/vectors/python_random.json, which
 * lab/python_random.py writes. */
#include "frontier/core.h"

#include "test.h"

#include <jansson.h>

static json_t *vectors(const char *key)
{
    static json_t *all;
    json_error_t problem;
    if (!all)
        all = json_load_file("tests/vectors/python_random.json", 0, &problem);
    return json_object_get(all, key);
}

static int64_t number(const json_t *object, const char *key)
{
    return (int64_t)json_integer_value(json_object_get(object, key));
}

static void check_values(const json_t *want, const int64_t *got, const char *what, size_t index)
{
    size_t wrong = 0;
    for (size_t i = 0; i < json_array_size(want); i++)
        wrong += got[i] != json_integer_value(json_array_get(want, i));
    if (wrong)
        test_fail_format(__FILE__, __LINE__, "%s %zu: %zu values differ", what, index, wrong);
}

TEST(words_follow_the_seed)
{
    size_t i;
    json_t *v;
    CHECK_INT(json_array_size(vectors("words")), 9);
    json_array_foreach(vectors("words"), i, v)
    {
        fr_python_random rng;
        int64_t got[4];
        fr_python_seed(&rng, strtoull(json_string_value(json_object_get(v, "seed")), NULL, 10));
        got[0] = fr_python_u32(&rng);
        for (int k = 1; k < 1500; k++) {
            int64_t word = fr_python_u32(&rng);
            if (k >= 1497)
                got[k - 1496] = word;
        }
        check_values(json_object_get(v, "values"), got, "words", i);
    }
}

TEST(numbers_below_a_bound)
{
    size_t i;
    json_t *v;
    json_array_foreach(vectors("below"), i, v)
    {
        fr_python_random rng;
        int64_t got[20];
        fr_python_seed(&rng, (uint64_t)number(v, "seed"));
        for (int k = 0; k < 20; k++)
            got[k] = fr_python_below(&rng, (uint32_t)number(v, "bound"));
        check_values(json_object_get(v, "values"), got, "below", i);
    }
    CHECK_INT(i, 9);
}

TEST(shuffles)
{
    size_t i;
    json_t *v;
    json_array_foreach(vectors("shuffle"), i, v)
    {
        fr_python_random rng;
        int64_t count = number(v, "count");
        int64_t *values = malloc((size_t)count * sizeof *values);
        for (int64_t k = 0; k < count; k++)
            values[k] = k;
        fr_python_seed(&rng, (uint64_t)number(v, "seed"));
        fr_python_shuffle(&rng, values, count);
        check_values(json_object_get(v, "head"), values, "shuffle", i);
        free(values);
    }
    CHECK_INT(i, 6);
}

TEST(samples_by_pool_and_by_set)
{
    size_t i;
    json_t *v;
    json_array_foreach(vectors("sample"), i, v)
    {
        fr_python_random rng;
        int64_t got[64];
        fr_python_seed(&rng, (uint64_t)number(v, "seed"));
        fr_python_sample(&rng, number(v, "n"), number(v, "k"), got);
        check_values(json_object_get(v, "values"), got, "sample", i);
    }
    CHECK_INT(i, 26);
}

TEST(examples_leave_the_item_out)
{
    size_t i;
    json_t *v;
    json_array_foreach(vectors("examples"), i, v)
    {
        int64_t got[16];
        fr_core_examples(number(v, "index"), number(v, "count"), number(v, "shots"), got);
        check_values(json_object_get(v, "values"), got, "examples", i);
        for (int64_t k = 0; k < number(v, "shots"); k++)
            CHECK(got[k] != number(v, "index"));
    }
    CHECK_INT(i, 10);
}

TEST_MAIN(core_random)
