/* Hugging Face folders against the real libraries: PyTorch and transformers, in a Python that scripts/hf-venv.sh finds
 * or makes. Without one every test here is skipped, with the reason.
 *
 * Inwards: models that transformers made and saved give the logits here that they give there, within 1e-4. Outwards:
 * exported runs of many recipes load there, with the same logits, the same greedy continuation and, over a
 * megabyte of mixed text, the same token ids.
 */
#include "frontier/formats.h"

#include "../unit/model_fixture.h"
#include "../unit/test.h"

#include <limits.h>

enum { LINE = PATH_MAX + 600 };

/* ---- the libraries ---------------------------------------------------------------------------------- */

/* Runs a command; its last line goes to `last`. Returns the exit code. */
static int run(const char *command, char *last, size_t size)
{
    char line[LINE];
    FILE *out = popen(command, "r");
    last[0] = 0;
    while (out && fgets(line, sizeof line, out))
        snprintf(last, size, "%.*s", (int)strcspn(line, "\n"), line);
    int state = out ? pclose(out) : -1;
    return state >= 0 && WIFEXITED(state) ? WEXITSTATUS(state) : 5;
}

static const char *top(void)
{
    const char *given = getenv("TOP");
    return given ? given : ".";
}

/* The Python, or NULL with the reason. */
static const char *python(const char **reason)
{
    static char found[LINE];
    static int state = -1;
    char command[LINE];
    snprintf(command, sizeof command, "'%s/scripts/hf-venv.sh'", top());
    if (state < 0)
        state = run(command, found, sizeof found);
    *reason = found;
    return state == 0 ? found : NULL;
}

static bool ask(const char *interpreter, const char *arguments)
{
    char command[3 * LINE], last[LINE];
    snprintf(command, sizeof command, "cd '%s' && '%s' tests/slow/hf_models.py %s 2>&1", top(), interpreter, arguments);
    int state = run(command, last, sizeof last);
    if (state != 0)
        test_fail_format(__FILE__, __LINE__, "hf_models.py %.200s: exit %d: %s", arguments, state, last);
    return state == 0;
}

/* ---- comparing -------------------------------------------------------------------------------------- */

static fr_tensor_file *answer(const char *path)
{
    fr_tensor_file *file = NULL;
    fr_error error = {0};
    CHECK_OK(fr_tensor_file_open(&file, path, &error));
    return file;
}

static double logit_error(fr_scorer *scorer, const fr_tensor_file *file)
{
    const fr_tensor_entry *tokens = fr_tensor_file_find(file, "tokens"), *wanted = fr_tensor_file_find(file, "logits");
    int64_t T = tokens->shape[0], vocab = wanted->shape[1];
    fr_error error = {0};
    double worst = 0;
    CHECK_INT(fr_scorer_vocab(scorer), vocab);
    int32_t *ids = malloc((size_t)T * sizeof *ids);
    float *logits = malloc((size_t)(T * vocab) * sizeof *logits), *want = malloc((size_t)(T * vocab) * sizeof *want);
    memcpy(ids, tokens->data, (size_t)T * sizeof *ids);
    memcpy(want, wanted->data, (size_t)(T * vocab) * sizeof *want);
    CHECK_OK(fr_scorer_logits(scorer, T, ids, 0, logits, &error));
    for (int64_t i = 0; i < T * vocab; i++) {
        double off = fabs((double)logits[i] - (double)want[i]);
        worst = off > worst || isnan(off) ? off : worst;
    }
    free(ids);
    free(logits);
    free(want);
    return worst;
}

/* The likeliest next token, 20 times, from the first 12 of `said`. */
static void check_greedy(fr_scorer *scorer, const fr_tensor_file *file)
{
    int32_t said[32];
    float *logits = malloc((size_t)fr_scorer_vocab(scorer) * sizeof *logits);
    fr_error error = {0};
    memcpy(said, fr_tensor_file_find(file, "said")->data, sizeof said);
    for (int64_t T = 12; T < 32; T++) {
        int32_t best = 0;
        CHECK_OK(fr_scorer_logits(scorer, T, said, T - 1, logits, &error));
        for (int32_t v = 1; v < fr_scorer_vocab(scorer); v++)
            best = logits[v] > logits[best] ? v : best;
        CHECK_INT(said[T], best);
    }
    free(logits);
}

/* ---- inwards ---------------------------------------------------------------------------------------- */

TEST(models_of_transformers_give_their_logits_here)
{
    static const char *const names[] = {"gpt2", "gpt2-untied", "llama", "llama-tied", "llama-bias"};
    const char *reason, *interpreter = python(&reason);
    char folder[400], path[500], command[500];
    fr_error error = {0};
    if (!interpreter)
        SKIP(reason);
    snprintf(folder, sizeof folder, "%s", scratch("made"));
    CHECK_OK(fr_folder_make(folder, &error));
    snprintf(command, sizeof command, "make '%s'", folder);
    if (!ask(interpreter, command))
        return;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        fr_foreign *model = NULL;
        fr_scorer *scorer = NULL;
        CHECK_OK(fr_foreign_open(&model, "hf", fr_path_join(path, sizeof path, folder, names[i]), NULL, &error));
        CHECK_OK(fr_scorer_open_foreign(&scorer, model, NULL, &error));
        strcat(path, ".safetensors");
        fr_tensor_file *file = answer(path);
        double off = logit_error(scorer, file);
        printf("# %s: off by %.2g at most\n", names[i], off);
        CHECK(off < 1e-4);
        fr_tensor_file_close(file);
        fr_scorer_free(scorer);
    }
}

/* ---- outwards --------------------------------------------------------------------------------------- */

typedef struct outward {
    const char *name, *changes;
    bool native;
} outward;

static const outward outwards[] = {
    {"kit", "", false},
    {"nanochat-head",
     "windows = \"SSL\"\nshort_window = 7\nvalue_embeddings = true\nsmear = true\nbackout = true\nkv_heads = 1\n"
     "qk_gain = 1.2\n",
     false},
    {"plain", "resid_scalars = false\nx0_scalars = false\nkv_heads = 2\n", true},
    {"tied",
     "resid_scalars = false\nx0_scalars = false\ntied = true\nactivation = \"gelu\"\nsoftcap = 0.0\nnorm_eps = 1e-5\n",
     true},
    {"like-gpt2",
     "resid_scalars = false\nx0_scalars = false\nnorm = \"layer\"\nposition = \"learned\"\nqk_norm = false\n"
     "activation = \"gelu\"\nbias = true\ntied = true\nembedding_norm = false\nsoftcap = 0.0\n",
     false},
    {"like-llama",
     "resid_scalars = false\nx0_scalars = false\nnorm = \"rms_gain\"\nactivation = \"swiglu\"\nhidden = 50\n"
     "rotary_pairs = \"interleaved\"\nqk_norm = false\nkv_heads = 2\n",
     false},
};
enum { OUTWARDS = sizeof outwards / sizeof outwards[0], TEXT = 1 << 20 };

/* A megabyte: this repository's files (prose, code, JSON), and random characters of all planes between them. */
static size_t mixed_text(char *out)
{
    static const char *const files[] = {"README.md", "docs/formats.md", "src/model/model.c", "CHANGELOG.md",
                                        "lab/formats_reference.py", "tests/vectors/tokenizer_reference.json",
                                        "src/text/pretokenizer.c", "docs/performance.md", "Makefile"};
    fr_rng rng = {.seed = 3};
    size_t length = 0;
    for (size_t i = 0; length < TEXT - 70000; i = (i + 1) % (sizeof files / sizeof files[0])) {
        char path[LINE];
        snprintf(path, sizeof path, "%s/%s", top(), files[i]);
        FILE *in = fopen(path, "rb");
        size_t got = in ? fread(out + length, 1, 60000, in) : 0;
        if (in)
            fclose(in);
        while (got && (out[length + got - 1] & 0x80))
            got--; /* whole characters */
        length += got;
        for (int n = 0; n < 400; n++) {
            uint32_t planes[] = {0x250, 0x2000, 0x3000, 0xD000, 0x1F700, 0x30000};
            uint32_t code = (uint32_t)fr_rng_below(&rng, planes[fr_rng_below(&rng, 6)]);
            uint8_t c[4] = {(uint8_t)code};
            size_t width = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
            if (code >= 0xD800 && code < 0xE000)
                continue;
            for (size_t b = width; b-- > 1; code >>= 6)
                c[b] = (uint8_t)(0x80 | (code & 0x3F));
            if (width > 1)
                c[0] = (uint8_t)(code | (0xF00u >> width & 0xFF));
            memcpy(out + length, c, width);
            length += width;
        }
    }
    return length;
}

static fr_tokenizer *train_tokenizer(const char *text, size_t bytes)
{
    fr_tokenizer_trainer *trainer = NULL;
    fr_tokenizer *made = NULL;
    fr_error error = {0};
    CHECK_OK(fr_tokenizer_trainer_create(&trainer, &(fr_tokenizer_options){.vocab = 1500}, &error));
    for (size_t at = 0; at < bytes; at += 8000)
        CHECK_OK(fr_tokenizer_trainer_feed(trainer, text + at, bytes - at < 8000 ? bytes - at : 8000, &error));
    CHECK_OK(fr_tokenizer_trainer_finish(trainer, &made, &error));
    fr_tokenizer_trainer_free(trainer);
    return made;
}

/* Writes a run of random weights and exports it; returns the exported folder. */
static const char *export_run(const outward *o, const fr_tokenizer *tokenizer)
{
    static char out[OUTWARDS][400];
    char text[900], run_folder[390];
    fr_recipe recipe;
    fr_error error = {0};
    fr_export_summary summary;
    snprintf(text, sizeof text,
             "[model]\ndepth = 3\nwidth = 32\nhead_dim = 16\ncontext = 48\nnumerics = \"fp32\"\n%s"
             "[optim]\nbatch_tokens = 384\n",
             o->changes);
    CHECK_OK(fr_recipe_parse(&recipe, text, o->name, &error));
    snprintf(run_folder, sizeof run_folder, "%s", scratch(o->name));
    snprintf(out[o - outwards], sizeof out[0], "%s-hf", run_folder);
    model_fixture_run(run_folder, &recipe, tokenizer);
    CHECK_OK(fr_export_hf(run_folder, out[o - outwards], &summary, &error));
    return out[o - outwards];
}

static void check_ids(const fr_tokenizer *tokenizer, const char *text, size_t bytes, const fr_tensor_file *file)
{
    const fr_tensor_entry *entry = fr_tensor_file_find(file, "ids");
    int32_t *ids = malloc((bytes + 1) * sizeof *ids);
    int64_t count = fr_tokenizer_encode(tokenizer, text, bytes, ids, (int64_t)bytes + 1);
    CHECK_INT(entry->shape[0], count);
    CHECK(entry->shape[0] == count && memcmp(ids, entry->data, (size_t)count * sizeof *ids) == 0);
    free(ids);
}

static void check_outward(const outward *o, const fr_tokenizer *tokenizer, const char *text, size_t bytes)
{
    char run_folder[390], path[420];
    fr_error error = {0};
    fr_scorer *scorer = NULL;
    int32_t native;
    snprintf(run_folder, sizeof run_folder, "%s", scratch(o->name));
    snprintf(path, sizeof path, "%s-hf.safetensors", run_folder);
    fr_tensor_file *file = answer(path);
    if (!file)
        return;
    CHECK_OK(fr_scorer_open(&scorer, run_folder, NULL, &error));
    double off = logit_error(scorer, file);
    printf("# %s: off by %.2g at most\n", o->name, off);
    CHECK(off < 1e-4);
    check_greedy(scorer, file);
    memcpy(&native, fr_tensor_file_find(file, "native")->data, sizeof native);
    CHECK_INT(native, o->native);
    check_ids(tokenizer, text, bytes, file);
    fr_scorer_free(scorer);
    fr_tensor_file_close(file);
}

TEST(exports_give_their_logits_and_ids_there)
{
    const char *reason, *interpreter = python(&reason);
    static char text[TEXT + 100000], arguments[2 * LINE];
    fr_error error = {0};
    if (!interpreter)
        SKIP(reason);
    size_t bytes = mixed_text(text), length;
    fr_tokenizer *tokenizer = train_tokenizer(text, bytes);
    CHECK_OK(fr_file_write(scratch("mixed.txt"), text, bytes, &error));
    length = (size_t)snprintf(arguments, sizeof arguments, "load '%s'", scratch("mixed.txt"));
    for (int i = 0; i < OUTWARDS; i++)
        length += (size_t)snprintf(arguments + length, sizeof arguments - length, " '%s'",
                                   export_run(&outwards[i], tokenizer));
    if (ask(interpreter, arguments))
        for (int i = 0; i < OUTWARDS; i++)
            check_outward(&outwards[i], tokenizer, text, bytes);
    fr_tokenizer_free(tokenizer);
}

TEST_MAIN(hf)
