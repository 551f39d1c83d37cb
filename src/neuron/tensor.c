/* Tensors: where their bytes are, and host access to them.
 *
 * A tensor without an address has memory of its own; one with an address is a window onto the memory of
 * its physical core, which is made when the first such tensor is. Freed memory is kept by size for the
 * next tensor of that size, since a kernel's loop makes the same tiles again and again; nobody sees the
 * old contents, because reading what was not written is refused. Layouts stay after release: the trace
 * refers to them. */
#include "neuron/core.h"

#include <string.h>

static size_t spare_slot(size_t bytes)
{
    return bytes / 64 * 0x9E3779B97F4A7C15ull >> 58;
}

void *fr_neuron_storage_take(fr_neuron *core, size_t bytes)
{
    fr_neuron_spare *spare = &core->spares[spare_slot(bytes)];
    if (!spare->first || spare->bytes != bytes)
        return fr_allocate(bytes);
    void *memory = spare->first;
    memcpy(&spare->first, memory, sizeof spare->first);
    spare->count--;
    return memory;
}

void fr_neuron_storage_give(fr_neuron *core, void *memory, size_t bytes)
{
    fr_neuron_spare *spare = &core->spares[spare_slot(bytes)];
    if (!spare->first)
        spare->bytes = bytes;
    if (spare->bytes != bytes || spare->count >= 16) {
        fr_deallocate(memory);
        return;
    }
    memcpy(memory, &spare->first, sizeof spare->first);
    spare->first = memory;
    spare->count++;
}

static fr_status misplaced(const fr_neuron_layout *layout, const fr_neuron *core, const char *what,
                           fr_error *error)
{
    char where[300];
    int line = 0;
    const char *file = fr_neuron_source_file(core, core->source, &line);
    if (file)
        snprintf(where, sizeof where, "%s:%d: ndarray", file, line);
    else
        snprintf(where, sizeof where, "ndarray");
    const fr_neuron_rule *rules = fr_neuron_rules(NULL);
    return fr_error_set(error, FR_ANSWER_NO, where, rules[FR_NEURON_RULE_capacity].fix, "capacity: %s%s%s",
                        layout->name ? layout->name : "", layout->name ? ": " : "", what);
}

/* Products of sizes, with an eye on overflow: at most the 64 GiB that regions can name. */
static bool count_elements(const fr_neuron_layout *layout, int first, int64_t *out)
{
    int64_t count = 1;
    for (int i = first; i < layout->dims; i++) {
        if (layout->shape[i] < 1 || layout->shape[i] > ((int64_t)1 << 36) / count)
            return false;
        count *= layout->shape[i];
    }
    *out = count;
    return true;
}

static fr_status measure(fr_neuron_tensor *tensor, fr_error *error)
{
    const fr_neuron_layout *layout = &tensor->layout;
    int64_t elements;
    bool chip = layout->memory == FR_NEURON_SBUF || layout->memory == FR_NEURON_PSUM;
    if (layout->dims < 1 || layout->dims > FR_NEURON_RANK || fr_neuron_dtype_bytes(layout->dtype) == 0 ||
        layout->memory > FR_NEURON_REGISTER)
        return fr_error_set(error, FR_BAD_USAGE, layout->name, "1 to 5 dimensions and a dtype",
                            "not a tensor's layout");
    if (!count_elements(layout, chip ? 1 : 0, &elements) || layout->shape[0] < 1)
        return fr_error_set(error, FR_BAD_USAGE, layout->name, "every size is at least 1, 64 GiB in all",
                            "a tensor of impossible shape");
    tensor->rows = chip ? layout->shape[0] : 1;
    tensor->row_bytes = elements * fr_neuron_dtype_bytes(layout->dtype);
    if (tensor->row_bytes > (int64_t)1 << 36)
        return fr_error_set(error, FR_BAD_USAGE, layout->name, "64 GiB at most",
                            "a tensor of impossible size");
    if (layout->memory == FR_NEURON_REGISTER && tensor->row_bytes != 4)
        return fr_error_set(error, FR_BAD_USAGE, layout->name, "a register holds one 32-bit value",
                            "not a register");
    tensor->begun = (fr_neuron_shadow){.rows = tensor->rows, .row_bytes = tensor->row_bytes};
    return FR_OK;
}

static int64_t partition_limit(const fr_neuron *core, fr_neuron_memory memory)
{
    const fr_neuron_machine *m = core->machine;
    return memory == FR_NEURON_SBUF ? m->sbuf_usable_bytes : m->psum_bank_bytes * m->psum_banks;
}

static fr_status check_capacity(const fr_neuron_tensor *tensor, const fr_neuron *core, fr_error *error)
{
    const fr_neuron_layout *layout = &tensor->layout;
    char what[160];
    if (layout->memory == FR_NEURON_HBM) {
        if (tensor->row_bytes <= core->machine->hbm_bytes)
            return FR_OK;
        snprintf(what, sizeof what, "%lld bytes, HBM has %lld", (long long)tensor->row_bytes,
                 (long long)core->machine->hbm_bytes);
        return misplaced(layout, core, what, error);
    }
    if (layout->memory == FR_NEURON_REGISTER)
        return FR_OK;
    int64_t limit = partition_limit(core, layout->memory), first = layout->placed ? layout->byte_offset : 0;
    int64_t partition = layout->placed ? layout->start_partition : 0;
    const char *memory = layout->memory == FR_NEURON_SBUF ? "SBUF" : "PSUM";
    if (partition < 0 || partition + tensor->rows > FR_NEURON_PARTITIONS) {
        snprintf(what, sizeof what, "partitions %lld to %lld, %s has 128", (long long)partition,
                 (long long)(partition + tensor->rows - 1), memory);
        return misplaced(layout, core, what, error);
    }
    if (first < 0 || tensor->row_bytes > limit || first > limit - tensor->row_bytes) {
        snprintf(what, sizeof what, "%lld bytes of a partition from %lld on, %s on %s has %lld",
                 (long long)tensor->row_bytes, (long long)first, memory, core->machine->name,
                 (long long)limit);
        return misplaced(layout, core, what, error);
    }
    return FR_OK;
}

static int64_t odd_lines(int64_t bytes)
{
    return ((bytes + 63) / 64 | 1) * 64;
}

static fr_status array_ready(fr_neuron_array *array, int64_t row_bytes, fr_error *error)
{
    if (array->data)
        return FR_OK;
    array->row_bytes = row_bytes;
    array->pitch = odd_lines(row_bytes);
    size_t bytes = (size_t)array->pitch * FR_NEURON_PARTITIONS;
    array->data = fr_allocate(bytes);
    if (!array->data)
        return fr_error_memory(error, bytes, "the memory of the core");
    array->written = (fr_neuron_shadow){.rows = FR_NEURON_PARTITIONS, .row_bytes = row_bytes};
    return FR_OK;
}

static fr_status give_storage(fr_neuron_tensor *tensor, fr_neuron *core, fr_error *error)
{
    const fr_neuron_layout *layout = &tensor->layout;
    bool chip = layout->memory == FR_NEURON_SBUF || layout->memory == FR_NEURON_PSUM;
    if (chip && layout->placed) {
        fr_neuron_array *array =
            layout->memory == FR_NEURON_SBUF ? &core->sbuf[tensor->core] : &core->psum[tensor->core];
        FR_TRY(array_ready(array, partition_limit(core, layout->memory), error));
        tensor->pitch = array->pitch;
        tensor->data = array->data + layout->start_partition * array->pitch + layout->byte_offset;
        tensor->written = &array->written;
        tensor->shadow_row = layout->start_partition;
        tensor->shadow_byte = layout->byte_offset;
        return FR_OK;
    }
    tensor->pitch = chip ? odd_lines(tensor->row_bytes) : (tensor->row_bytes + 63) / 64 * 64;
    tensor->storage = (size_t)(tensor->pitch * tensor->rows);
    tensor->data = fr_neuron_storage_take(core, tensor->storage);
    if (!tensor->data)
        return fr_error_memory(error, tensor->storage, layout->name ? layout->name : "a tensor");
    tensor->own = (fr_neuron_shadow){.rows = tensor->rows, .row_bytes = tensor->row_bytes};
    tensor->written = &tensor->own;
    return FR_OK;
}

static fr_status list_tensor(fr_neuron *core, fr_neuron_tensor *tensor, fr_error *error)
{
    if (core->tensor_count == core->tensor_capacity) {
        int64_t capacity = core->tensor_capacity ? 2 * core->tensor_capacity : 256;
        fr_neuron_tensor **grown = fr_reallocate(core->tensors, (size_t)capacity * sizeof *grown);
        if (!grown)
            return fr_error_memory(error, (size_t)capacity * sizeof *grown, "the list of tensors");
        core->tensors = grown;
        core->tensor_capacity = capacity;
    }
    tensor->id = (uint32_t)core->tensor_count;
    core->tensors[core->tensor_count++] = tensor;
    return FR_OK;
}

fr_status fr_neuron_tensor_create(fr_neuron_tensor **out, fr_neuron *core, fr_neuron_layout layout,
                                  fr_error *error)
{
    fr_neuron_tensor *tensor = fr_arena_alloc(&core->arena, sizeof *tensor);
    if (!tensor)
        return fr_error_memory(error, sizeof *tensor, "a tensor");
    tensor->layout = layout;
    tensor->core = core->physical;
    snprintf(tensor->name, sizeof tensor->name, "%s", layout.name ? layout.name : "");
    tensor->layout.name = layout.name ? tensor->name : NULL;
    FR_TRY(measure(tensor, error));
    FR_TRY(check_capacity(tensor, core, error));
    FR_TRY(give_storage(tensor, core, error));
    fr_status status = list_tensor(core, tensor, error);
    if (status != FR_OK) {
        if (tensor->storage)
            fr_neuron_storage_give(core, tensor->data, tensor->storage);
        return status;
    }
    *out = tensor;
    return FR_OK;
}

void fr_neuron_tensor_release(fr_neuron *core, fr_neuron_tensor *tensor)
{
    if (!tensor || tensor->released)
        return;
    tensor->released = true;
    fr_neuron_shadow_release(&tensor->own);
    fr_neuron_shadow_release(&tensor->begun);
    if (tensor->storage)
        fr_neuron_storage_give(core, tensor->data, tensor->storage);
    tensor->data = NULL;
}

const fr_neuron_layout *fr_neuron_tensor_layout(const fr_neuron_tensor *tensor)
{
    return &tensor->layout;
}

uint32_t fr_neuron_tensor_id(const fr_neuron_tensor *tensor)
{
    return tensor->id;
}

const fr_neuron_tensor *fr_neuron_tensor_at(const fr_neuron *core, uint32_t id)
{
    return id < core->tensor_count ? core->tensors[id] : NULL;
}

int fr_neuron_tensor_core(const fr_neuron_tensor *tensor)
{
    return tensor->core;
}

static fr_status check_host_access(const fr_neuron_tensor *tensor, size_t bytes, fr_error *error)
{
    if (!tensor->data)
        return fr_error_set(error, FR_BAD_USAGE, tensor->layout.name, NULL, "the tensor was released");
    if (bytes != (size_t)(tensor->rows * tensor->row_bytes))
        return fr_error_set(error, FR_BAD_USAGE, tensor->layout.name, NULL, "%zu bytes for a tensor of %lld",
                            bytes, (long long)(tensor->rows * tensor->row_bytes));
    return FR_OK;
}

static void put(fr_neuron_tensor *tensor, const void *data)
{
    for (int64_t r = 0; r < tensor->rows; r++)
        memcpy(tensor->data + r * tensor->pitch, (const uint8_t *)data + r * tensor->row_bytes,
               (size_t)tensor->row_bytes);
}

fr_status fr_neuron_tensor_write(fr_neuron_tensor *tensor, const void *data, size_t bytes, fr_error *error)
{
    FR_TRY(check_host_access(tensor, bytes, error));
    bool shared = tensor->written != &tensor->own;
    if (shared)
        FR_TRY(fr_neuron_shadow_ready(tensor->written, error));
    put(tensor, data);
    for (int64_t r = 0; shared && r < tensor->rows; r++)
        fr_neuron_shadow_set(tensor->written, tensor->shadow_row + r, tensor->shadow_byte, tensor->row_bytes);
    if (!shared)
        fr_neuron_shadow_become(&tensor->own, FR_NEURON_FULL);
    return FR_OK;
}

fr_status fr_neuron_receive(fr_neuron *core, const fr_neuron_view *view, const void *data, size_t bytes,
                            fr_error *error)
{
    FR_TRY(check_host_access(view->tensor, bytes, error));
    FR_TRY(fr_neuron_prepare(core, view, error));
    put(view->tensor, data);
    fr_neuron_wrote(core, view);
    return FR_OK;
}

fr_status fr_neuron_tensor_read(const fr_neuron_tensor *tensor, void *data, size_t bytes, fr_error *error)
{
    FR_TRY(check_host_access(tensor, bytes, error));
    for (int64_t r = 0; r < tensor->rows; r++)
        memcpy((uint8_t *)data + r * tensor->row_bytes, tensor->data + r * tensor->pitch,
               (size_t)tensor->row_bytes);
    return FR_OK;
}
