/* Machines: a file per generation under machines/, read into fr_neuron_machine. The schema is the table
 * below; a key that is not in it is an error, so a misspelt constant cannot pass for a default. A section
 * [guesses] names the keys whose value no public measurement supports: `dma_done_ns = true`,
 * `scalar.drain_ns = true`. */
#include "frontier/neuron.h"

#include <string.h>

/* What the file is read into: fr_config writes 64-bit integers. */
typedef struct machine_file {
    fr_neuron_machine machine;
    int64_t generation, stack_cores, dma_engines, dma_queues;
} machine_file;

#define REAL(key, field, most, help)                                                                         \
    {                                                                                                        \
        key, FR_CONFIG_REAL, offsetof(machine_file, machine.field), NULL, 0, most, NULL, help                \
    }
#define BYTES(key, field, help)                                                                              \
    {                                                                                                        \
        key, FR_CONFIG_INT, offsetof(machine_file, machine.field), NULL, 1, 1e14, NULL, help                 \
    }
#define COUNT(key, field, most, help)                                                                        \
    {                                                                                                        \
        key, FR_CONFIG_INT, offsetof(machine_file, field), NULL, 1, most, NULL, help                         \
    }
#define HAS(key, field, help)                                                                                \
    {                                                                                                        \
        key, FR_CONFIG_BOOL, offsetof(machine_file, machine.field), NULL, 0, 0, NULL, help                   \
    }
#define ENGINE(name, engine)                                                                                 \
    REAL(name ".clock_ghz", clock_ghz[engine], 10, "GHz"),                                                   \
        REAL(name ".drain_ns", drain_ns[engine], 1e5,                                                        \
             "from the last cycle until others see the result, ns"),                                         \
        REAL(name ".wake_ns", wake_ns[engine], 1e5, "from a satisfied semaphore until the start, ns"),       \
        REAL(name ".issue_floor_cycles", issue_floor_cycles[engine], 1e5, "least cycles of an instruction")

static const fr_config_key VALUES[] = {
    {"name", FR_CONFIG_STRING, offsetof(machine_file, machine.name), NULL, 0, 0, NULL,
     "what reports call it"},
    COUNT("generation", generation, 4, "2 trn1, 3 trn2, 4 trn3"),
    ENGINE("tensor", FR_NEURON_TENSOR),
    ENGINE("vector", FR_NEURON_VECTOR),
    ENGINE("scalar", FR_NEURON_SCALAR),
    ENGINE("gpsimd", FR_NEURON_GPSIMD),
    ENGINE("sync", FR_NEURON_SYNC),
    BYTES("core.sbuf_partition_bytes", sbuf_partition_bytes, "bytes"),
    BYTES("core.sbuf_usable_bytes", sbuf_usable_bytes, "bytes that a kernel may use"),
    BYTES("core.psum_bank_bytes", psum_bank_bytes, "bytes of a bank in each partition"),
    BYTES("core.psum_banks", psum_banks, "banks"),
    BYTES("core.hbm_bytes", hbm_bytes, "bytes of a stack"),
    REAL("core.hbm_stack_bytes_per_ns", hbm_stack_bytes_per_ns, 1e5, "GB/s, shared by the cores of a stack"),
    COUNT("core.stack_cores", stack_cores, 8, "cores of a stack"),
    COUNT("core.dma_engines", dma_engines, 64, "DMA engines of a core"),
    COUNT("core.dma_queues", dma_queues, 64, "queues of a DMA engine"),
    REAL("core.dma_descriptor_ns", dma_descriptor_ns, 1e5,
         "ns of an engine per descriptor, besides its bytes"),
    REAL("core.dma_bytes_per_ns", dma_bytes_per_ns, 1e4, "GB/s of one engine"),
    REAL("core.dma_peak_bytes_per_ns", dma_peak_bytes_per_ns, 1e4, "GB/s of one engine that nothing exceeds"),
    REAL("core.dma_start_ns", dma_start_ns, 1e6, "from the trigger to the first descriptor, ns"),
    REAL("core.dma_done_ns", dma_done_ns, 1e6, "from the last byte to the consumer's start, ns"),
    REAL("core.dma_static_issue_ns", dma_static_issue_ns, 1e6,
         "trigger's queue, descriptors made beforehand, ns"),
    REAL("core.dma_dynamic_issue_ns", dma_dynamic_issue_ns, 1e6,
         "trigger's queue, descriptors made at run time, ns"),
    REAL("core.dma_dynamic_descriptor_ns", dma_dynamic_descriptor_ns, 1e5,
         "the same, for each descriptor made, ns"),
    REAL("core.dma_transpose_bytes_per_ns", dma_transpose_bytes_per_ns, 1e4, "GB/s of a core, HBM to SBUF"),
    REAL("core.dma_transpose_sbuf_bytes_per_ns", dma_transpose_sbuf_bytes_per_ns, 1e4,
         "GB/s of a core, SBUF to SBUF"),
    REAL("core.activation_table_ns", activation_table_ns, 1e6, "loading a table of Scalar, ns"),
    REAL("core.throttle_window_ns", throttle_window_ns, 1e7, "window in which Tensor's use is judged, ns"),
    REAL("core.throttle_share", throttle_share, 1, "share of full rate while it warms up"),
    REAL("core.launch_ns", launch_ns, 1e9, "fixed cost of a launch in measured latencies, ns"),
    REAL("core.tensor_passes_fp32", tensor_passes_fp32, 16, "passes of Tensor over fp32 data"),
    REAL("core.tensor_bubble_cycles", tensor_bubble_cycles, 1e4, "cycles between two matmuls"),
    REAL("core.stationary_load_cycles", stationary_load_cycles, 1e4, "cycles of a load that nothing hides"),
    HAS("core.vector_gpsimd_share_port", vector_gpsimd_share_port, "one at a time in SBUF"),
    HAS("core.vector_scalar_share_psum", vector_scalar_share_psum, "one at a time in PSUM"),
    HAS("core.has_hardware_descriptors", has_hardware_descriptors, "dge_mode.hwdge"),
    HAS("core.has_mx", has_mx, "MX formats"),
    HAS("core.removes_repeats", removes_repeats, "compiler leaves out what is on chip already"),
};

enum { KEYS = sizeof VALUES / sizeof *VALUES, GUESS_NAME = 64 };

/* Values and, for each, whether it is a guess. */
typedef struct schema {
    fr_config_key keys[2 * KEYS];
    char names[KEYS][GUESS_NAME];
    machine_file file;
    bool guessed[KEYS];
} schema;

/* The name of a key in [guesses]: without its section, if that is the core's. */
static const char *short_name(const char *key)
{
    return strncmp(key, "core.", 5) == 0 ? key + 5 : key;
}

static void fill_schema(schema *s)
{
    for (int i = 0; i < KEYS; i++) {
        s->keys[i] = VALUES[i];
        s->keys[i].offset += offsetof(schema, file);
        snprintf(s->names[i], GUESS_NAME, "guesses.%s", short_name(VALUES[i].name));
        s->keys[KEYS + i] = (fr_config_key){.name = s->names[i],
                                            .type = FR_CONFIG_BOOL,
                                            .offset = offsetof(schema, guessed) + (size_t)i * sizeof(bool),
                                            .fallback = "false",
                                            .help = "no public measurement"};
    }
}

static fr_status list_guesses(schema *s, const char *path, fr_error *error)
{
    char *out = s->file.machine.guesses;
    size_t used = 0, size = sizeof s->file.machine.guesses;
    for (int i = 0; i < KEYS; i++) {
        const char *name = short_name(VALUES[i].name);
        if (!s->guessed[i])
            continue;
        if (used + strlen(name) + 2 > size)
            return fr_error_set(error, FR_BAD_DATA, path, NULL, "the names of the guesses exceed %zu bytes",
                                size);
        used += (size_t)snprintf(out + used, size - used, "%s%s", used ? " " : "", name);
    }
    return FR_OK;
}

static fr_status read_machine(schema *s, const char *path, fr_arena *arena, fr_error *error)
{
    char *text;
    size_t bytes;
    FR_TRY(fr_file_read(arena, path, &text, &bytes, error));
    FR_TRY(fr_config_defaults(s->keys, 2 * KEYS, s, error));
    FR_TRY(fr_config_parse(s->keys, 2 * KEYS, s, text, path, error));
    fr_neuron_machine *machine = &s->file.machine;
    machine->generation = (int)s->file.generation;
    machine->stack_cores = (int)s->file.stack_cores;
    machine->dma_engines = (int)s->file.dma_engines;
    machine->dma_queues = (int)s->file.dma_queues;
    if (machine->generation < 2)
        return fr_error_set(error, FR_BAD_DATA, path, "2 trn1, 3 trn2, 4 trn3", "generation %d",
                            machine->generation);
    return list_guesses(s, path, error);
}

fr_status fr_neuron_machine_load(fr_neuron_machine *machine, const char *path, fr_error *error)
{
    fr_arena arena;
    fr_arena_init(&arena, 1 << 16);
    schema *s = fr_arena_alloc(&arena, sizeof *s);
    fr_status status = s ? FR_OK : fr_error_memory(error, sizeof *s, "a machine");
    if (status == FR_OK) {
        fill_schema(s);
        status = read_machine(s, path, &arena, error);
    }
    if (status == FR_OK)
        *machine = s->file.machine;
    fr_arena_release(&arena);
    return status;
}

bool fr_neuron_machine_guessed(const fr_neuron_machine *machine, const char *key)
{
    size_t length = strlen(key);
    for (const char *at = machine->guesses; (at = strstr(at, key)) != NULL; at += length)
        if ((at == machine->guesses || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}
