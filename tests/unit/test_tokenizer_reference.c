/* Ids against independent implementations: vectors made by lab/tokenizer_reference.py with Hugging Face's
 * `tokenizers`, tiktoken and a naive trainer. The files of GPT-2 and cl100k are not ours to copy; those
 * tests need ../shared.
 */
#include "frontier/text.h"
#include "test.h"
#include "text/tokenizer.h"
#include <jansson.h>

static json_t *vectors(void)
{
    json_error_t problem;
    json_t *root = json_load_file("tests/vectors/tokenizer_reference.json", JSON_ALLOW_NUL, &problem);
    CHECK(root != NULL);
    return root;
}

static void check_ids(const fr_tokenizer *t, const json_t *root, const char *name)
{
    json_t *texts = json_object_get(root, "texts"),
           *lists = json_object_get(json_object_get(root, "ids"), name);
    CHECK(json_array_size(texts) > 0 && json_array_size(texts) == json_array_size(lists));
    for (size_t i = 0; i < json_array_size(texts); i++) {
        json_t *text = json_array_get(texts, i), *wanted = json_array_get(lists, i);
        int32_t ids[2048];
        int64_t count = fr_tokenizer_encode(t, json_string_value(text), json_string_length(text), ids, 2048);
        CHECK_INT(count, json_array_size(wanted));
        for (int64_t k = 0; k < count && k < 2048; k++)
            CHECK_INT(ids[k], json_integer_value(json_array_get(wanted, (size_t)k)));
    }
}

static fr_tokenizer *train_on_vectors(const json_t *root)
{
    fr_error error = {0};
    json_t *text = json_object_get(root, "training_text");
    fr_tokenizer_options options = {.vocab = (int32_t)json_integer_value(json_object_get(root, "vocab"))};
    fr_tokenizer_trainer *trainer = NULL;
    fr_tokenizer *t = NULL;
    CHECK_OK(fr_tokenizer_trainer_create(&trainer, &options, &error));
    CHECK_OK(fr_tokenizer_trainer_feed(trainer, json_string_value(text), json_string_length(text), &error));
    CHECK_OK(fr_tokenizer_trainer_finish(trainer, &t, &error));
    fr_tokenizer_trainer_free(trainer);
    return t;
}

TEST(merges_equal_a_naive_trainers)
{
    json_t *root = vectors(), *merges = json_object_get(root, "merges");
    fr_tokenizer *t = train_on_vectors(root);
    CHECK_INT(t->merge_count, json_array_size(merges));
    for (int64_t m = 0; m < t->merge_count; m++) {
        CHECK_INT(t->merges[m].left,
                  json_integer_value(json_array_get(json_array_get(merges, (size_t)m), 0)));
        CHECK_INT(t->merges[m].right,
                  json_integer_value(json_array_get(json_array_get(merges, (size_t)m), 1)));
    }
    fr_tokenizer_free(t);
    json_decref(root);
}

TEST(ids_of_a_trained_tokenizer_equal_hugging_faces)
{
    json_t *root = vectors();
    fr_tokenizer *t = train_on_vectors(root);
    check_ids(t, root, "trained");
    fr_tokenizer_free(t);
    json_decref(root);
}

TEST(ids_of_a_hugging_face_file_equal_hugging_faces)
{
    fr_error error = {0};
    json_t *root = vectors();
    fr_tokenizer *t = NULL;
    CHECK_OK(fr_tokenizer_load(&t, "tests/vectors/tokenizer_hf.json", &error));
    if (t) {
        check_ids(t, root, "hf");
        CHECK_INT(fr_tokenizer_bos(t), fr_tokenizer_special(t, "<|endoftext|>"));
        CHECK(fr_tokenizer_special(t, "<extra token>") >= 0);
    }
    fr_tokenizer_free(t);
    json_decref(root);
}

static bool shared_file(char *path, size_t size, const char *name)
{
    const char *shared = getenv("FRONTIER_SHARED");
    snprintf(path, size, "%s/data/tokenizers/%s", shared ? shared : "../shared", name);
    return fr_path_exists(path);
}

static void check_rank_file(const char *path, const char *pattern, const char *const *specials, int count,
                            const char *name, int32_t bos)
{
    fr_error error = {0};
    json_t *root = vectors();
    fr_tokenizer *t = NULL, *copy = NULL;
    fr_buffer text;
    fr_buffer_init(&text, 0);
    CHECK_OK(fr_tokenizer_load_tiktoken(&t, path, pattern, specials, count, &error));
    if (t) {
        check_ids(t, root, name);
        CHECK_INT(fr_tokenizer_bos(t), bos);
        CHECK_OK(fr_tokenizer_write(t, &text, &error));
        CHECK_OK(fr_tokenizer_parse(&copy, text.data, text.length, "copy", &error));
    }
    if (copy) {
        check_ids(copy, root, name);
        CHECK_INT(fr_tokenizer_vocab(copy), fr_tokenizer_vocab(t));
    }
    fr_buffer_release(&text);
    fr_tokenizer_free(copy);
    fr_tokenizer_free(t);
    json_decref(root);
}

TEST(gpt2_ids_equal_tiktokens)
{
    char path[1024];
    if (!shared_file(path, sizeof path, "r50k_base.tiktoken"))
        SKIP("r50k_base.tiktoken needs ../shared");
    static const char *const specials[] = {"<|endoftext|>"};
    check_rank_file(path, fr_pattern_gpt2, specials, 1, "r50k", 50256);
}

TEST(cl100k_ids_equal_tiktokens)
{
    char path[1024];
    if (!shared_file(path, sizeof path, "cl100k_base.tiktoken"))
        SKIP("cl100k_base.tiktoken needs ../shared");
    static const char *const specials[] = {NULL, "<|endoftext|>"};
    check_rank_file(path, fr_pattern_cl100k, specials, 2, "cl100k", 100257);
}

TEST_MAIN(tokenizer_reference)
