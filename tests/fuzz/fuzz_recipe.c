/* Fuzz target: text as a recipe. What is accepted must pass its own check, have sizes that make sense, and
 * read back the same after it is written.
 */
#include "frontier/model.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void round_trip(const fr_recipe *recipe)
{
    fr_recipe again;
    fr_error error = {0};
    fr_buffer text;
    fr_buffer_init(&text, 0);
    fr_recipe_write(recipe, &text);
    if (text.failed || fr_recipe_parse(&again, text.data, "written", &error) != FR_OK ||
        memcmp(recipe, &again, sizeof again) != 0)
        abort();
    fr_buffer_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fr_recipe recipe;
    fr_error error = {0};
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = 0;
    if (fr_recipe_parse(&recipe, text, "fuzz", &error) == FR_OK) {
        if (fr_recipe_heads(&recipe) < 1 || fr_recipe_heads(&recipe) % fr_recipe_kv_heads(&recipe) ||
            fr_recipe_hidden(&recipe) < 1)
            abort();
        round_trip(&recipe);
    } else if (!error.what[0]) {
        abort();
    }
    free(text);
    return 0;
}
