/* buffer.c: a growable byte buffer with a maximum.
 *
 * Output is built from dozens of small appends, and checking each of them buries the code that matters. So a
 * failure sticks: the buffer remembers that an append did not fit and ignores the later ones, and the caller
 * looks at `failed` once. The text is always NUL-terminated, also before the first append, when `data`
 * points at a constant empty string and `capacity` is 0.
 */
#include "frontier/base.h"

#include <string.h>

enum { FIRST_CAPACITY = 256 };

static char *empty_text(void)
{
    return (char *)(uintptr_t) ""; /* never written: capacity 0 */
}

void fr_buffer_init(fr_buffer *buffer, size_t limit)
{
    *buffer = (fr_buffer){.data = empty_text(), .limit = limit};
}

/* Makes room for `count` more bytes and the NUL. */
static bool reserve(fr_buffer *buffer, size_t count)
{
    if (buffer->failed)
        return false;
    size_t most = buffer->limit ? buffer->limit : PTRDIFF_MAX - 1;
    if (count > most || buffer->length > most - count) {
        buffer->failed = true;
        return false;
    }
    size_t needed = buffer->length + count + 1;
    if (needed <= buffer->capacity)
        return true;
    size_t capacity = buffer->capacity ? buffer->capacity : FIRST_CAPACITY;
    while (capacity < needed)
        capacity = capacity > SIZE_MAX / 4 ? needed : capacity * 2;
    char *grown = fr_reallocate(buffer->capacity ? buffer->data : NULL, capacity);
    if (!grown) {
        buffer->failed = true;
        return false;
    }
    buffer->data = grown;
    buffer->capacity = capacity;
    return true;
}

void fr_buffer_append(fr_buffer *buffer, const void *bytes, size_t count)
{
    if (count == 0 || !reserve(buffer, count))
        return;
    memcpy(buffer->data + buffer->length, bytes, count);
    buffer->length += count;
    buffer->data[buffer->length] = '\0';
}

void fr_buffer_printf(fr_buffer *buffer, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    if (length < 0) {
        buffer->failed = true;
    } else if (reserve(buffer, (size_t)length)) {
        vsnprintf(buffer->data + buffer->length, (size_t)length + 1, format, again);
        buffer->length += (size_t)length;
    }
    va_end(again);
    va_end(arguments);
}

void fr_buffer_clear(fr_buffer *buffer)
{
    buffer->length = 0;
    buffer->failed = false;
    if (buffer->capacity)
        buffer->data[0] = '\0';
}

void fr_buffer_release(fr_buffer *buffer)
{
    if (buffer->capacity)
        fr_deallocate(buffer->data);
    fr_buffer_init(buffer, buffer->limit);
}
