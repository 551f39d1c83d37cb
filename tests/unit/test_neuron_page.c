/* The timeline page: its data parses, has every event, and no text of a kernel can become markup. */
#include "base/json.h"
#include "frontier/report.h"
#include "neuron/core.h"
#include "scratch.h"
#include "test.h"

typedef struct kernel {
    fr_neuron_machine machine;
    fr_neuron *core;
} kernel;

static bool open_kernel(kernel *k)
{
    fr_error error = {0};
    memset(k, 0, sizeof *k);
    CHECK_OK(fr_neuron_machine_load(&k->machine, "machines/trn2.toml", &error));
    CHECK_OK(fr_neuron_create(&k->core, &k->machine, 1, &error));
    return k->core != NULL;
}

static uint32_t add_tensor(kernel *k, fr_neuron_memory memory)
{
    fr_error error = {0};
    fr_neuron_tensor *tensor = NULL;
    fr_neuron_layout layout = {.memory = memory, .dtype = FR_NEURON_FLOAT32, .dims = 2, .shape = {128, 512}};
    CHECK_OK(fr_neuron_tensor_create(&tensor, k->core, layout, &error));
    return tensor ? fr_neuron_tensor_id(tensor) : 0;
}

static void add_record(kernel *k, fr_neuron_engine engine, uint32_t from, uint32_t to, int hbm)
{
    fr_error error = {0};
    fr_neuron_record r = {.engine = (uint8_t)engine,
                          .trigger = FR_NEURON_SYNC,
                          .regions = 2,
                          .cycles = 512,
                          .descriptors = 128,
                          .bytes = 128 * 2048,
                          .extent = 512,
                          .source = k->core->source};
    r.region[0] = (fr_neuron_region){from,
                                     0,
                                     hbm == 1 ? 255 : 128,
                                     0,
                                     hbm == 1 ? FR_NEURON_HBM : FR_NEURON_SBUF,
                                     0,
                                     hbm == 1 ? 16384 : 2048};
    r.region[1] = (fr_neuron_region){to,
                                     0,
                                     hbm == 2 ? 255 : 128,
                                     1,
                                     hbm == 2 ? FR_NEURON_HBM : FR_NEURON_SBUF,
                                     0,
                                     hbm == 2 ? 16384 : 2048};
    CHECK_OK(fr_neuron_records_ready(k->core, 1, &error));
    fr_neuron_record_add(k->core, &r);
}

static void add_pipeline(kernel *k, const char *file, int iterations)
{
    uint32_t x = add_tensor(k, FR_NEURON_HBM), y = add_tensor(k, FR_NEURON_HBM);
    for (int i = 0; i < iterations; i++) {
        uint32_t a = add_tensor(k, FR_NEURON_SBUF), b = add_tensor(k, FR_NEURON_SBUF);
        fr_neuron_at(k->core, file, 2);
        add_record(k, FR_NEURON_DMA, x, a, 1);
        fr_neuron_at(k->core, file, 3);
        add_record(k, FR_NEURON_VECTOR, a, b, 0);
        fr_neuron_at(k->core, file, 4);
        add_record(k, FR_NEURON_DMA, b, y, 2);
    }
}

static json_t *data_of(const char *path)
{
    fr_arena arena;
    char *text = NULL, *from, *to;
    size_t bytes = 0;
    json_t *data = NULL;
    fr_error error = {0};
    fr_arena_init(&arena, 1 << 16);
    CHECK_OK(fr_file_read(&arena, path, &text, &bytes, &error));
    from = text ? strstr(text, "id=\"data\">") : NULL;
    to = from ? strstr(from, "</script>") : NULL;
    CHECK(to != NULL);
    if (to)
        CHECK_OK(fr_json_parse(&data, from + 10, (size_t)(to - from - 10), path, &error));
    fr_arena_release(&arena);
    return data;
}

TEST(data_and_texts)
{
    kernel k;
    fr_error error = {0};
    char path[1200], file[1200];
    if (!open_kernel(&k))
        return;
    snprintf(path, sizeof path, "%s", scratch("page.html"));
    CHECK_OK(fr_file_write(
        scratch("kernel.py"),
        "def k():\n    load  # </script><img src=x>\n    \"caf\xc3\xa9 \xff\"\n    store\n", 60, &error));
    snprintf(file, sizeof file, "%s", scratch("kernel.py"));
    add_pipeline(&k, file, 5);
    CHECK_OK(fr_neuron_page_write(k.core, "a <kernel> & \"b\"", path, &error));
    json_t *data = data_of(path);
    CHECK_INT(json_array_size(json_object_get(data, "events")),
              7 * 5 * 5); /* two slices a copy, one on Vector */
    CHECK_INT(json_array_size(json_object_get(data, "sources")), 3);
    CHECK_INT(json_array_size(json_object_get(data, "memory")), 1);
    const char *text =
        json_string_value(json_object_get(json_array_get(json_object_get(data, "files"), 0), "text"));
    CHECK(text && strstr(text, "# </script><img src=x>"));
    CHECK(text && strstr(text, "caf\xc3\xa9 \xef\xbf\xbd"));
    json_decref(data);
    fr_neuron_free(k.core);
}

TEST(nothing_recorded)
{
    kernel k;
    fr_error error = {0};
    char path[1200];
    if (!open_kernel(&k))
        return;
    snprintf(path, sizeof path, "%s", scratch("empty.html"));
    CHECK_OK(fr_neuron_page_write(k.core, "", path, &error));
    json_t *data = data_of(path);
    CHECK_INT(json_array_size(json_object_get(data, "events")), 0);
    json_decref(data);
    fr_neuron_free(k.core);
}

TEST_MAIN(neuron_page)
