/* Random numbers and hashes against published vectors; distributions against theory. */
#include "base/philox.h"
#include "frontier/base.h"
#include "test.h"

/* Known answers of Random123 for philox4x32, 10 rounds (Salmon et al., kat_vectors). */
TEST(philox_known_answers)
{
    static const struct {
        uint32_t counter[4], key[2], want[4];
    } vectors[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (int v = 0; v < 3; v++) {
        uint32_t out[4];
        fr_philox(vectors[v].counter, vectors[v].key, out);
        for (int i = 0; i < 4; i++)
            CHECK_INT(out[i], vectors[v].want[i]);
    }
    CHECK(fr_rng_at(0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88) == 0x94fdccebd16cfe09);
}

TEST(a_sequence_is_its_indexed_numbers)
{
    fr_rng rng = {11, 22, 5};
    for (uint64_t i = 5; i < 105; i++)
        CHECK(fr_rng_next(&rng) == fr_rng_at(11, 22, i));
    CHECK_INT(rng.index, 105);
    CHECK(fr_rng_at(11, 22, 7) != fr_rng_at(11, 23, 7) && fr_rng_at(11, 22, 7) != fr_rng_at(12, 22, 7));
    rng.index = 9;
    double u = fr_rng_uniform(&rng);
    CHECK(u == fr_rng_uniform_at(11, 22, 9));
}

TEST(uniform_is_uniform)
{
    enum { N = 200000, BINS = 64 };
    int bins[BINS] = {0};
    double sum = 0, squares = 0;
    for (uint64_t i = 0; i < N; i++) {
        double u = fr_rng_uniform_at(1, 2, i);
        CHECK(u >= 0 && u < 1);
        bins[(int)(u * BINS)]++;
        sum += u;
        squares += u * u;
    }
    CHECK_NEAR(sum / N, 0.5, 5 * 0.2887 / sqrt(N), 0);
    CHECK_NEAR(squares / N, 1.0 / 3, 5 * 0.2982 / sqrt(N), 0);
    double chi = 0;
    for (int b = 0; b < BINS; b++)
        chi += (bins[b] - N / (double)BINS) * (bins[b] - N / (double)BINS) / (N / (double)BINS);
    CHECK(chi < 63 + 5 * sqrt(2 * 63.0) && chi > 63 - 5 * sqrt(2 * 63.0));
}

TEST(bits_are_balanced)
{
    enum { N = 40000 };
    int ones[64] = {0};
    for (uint64_t i = 0; i < N; i++)
        for (int b = 0; b < 64; b++)
            ones[b] += fr_rng_at(99, 0, i) >> b & 1;
    for (int b = 0; b < 64; b++)
        CHECK_NEAR(ones[b], N / 2.0, 5 * sqrt(N) / 2, 0);
}

TEST(below_has_no_bias_and_stays_below)
{
    fr_rng rng = {5, 0, 0};
    int counts[7] = {0};
    for (int i = 0; i < 70000; i++)
        counts[fr_rng_below(&rng, 7)]++;
    for (int i = 0; i < 7; i++)
        CHECK_NEAR(counts[i], 10000, 5 * sqrt(10000 * 6.0 / 7), 0);
    for (int i = 0; i < 1000; i++)
        CHECK_INT(fr_rng_below(&rng, 1), 0);
    /* A bound just above 2^63 rejects nearly half: thirds of the range must still be even. */
    uint64_t bound = (UINT64_C(1) << 63) + 3;
    int thirds[3] = {0};
    for (int i = 0; i < 30000; i++) {
        uint64_t x = fr_rng_below(&rng, bound);
        CHECK(x < bound);
        thirds[x / (bound / 3 + 1)]++;
    }
    for (int i = 0; i < 3; i++)
        CHECK_NEAR(thirds[i], 10000, 5 * sqrt(10000 * 2.0 / 3), 0);
}

TEST(log_and_cosine_match_libm)
{
    double worst_log = 0, worst_cos = 0;
    for (uint64_t i = 0; i < 100000; i++) {
        double u = fr_rng_uniform_at(4, 4, i);
        double x = u * (i % 3 ? 1 : 0x1p-40) + 0x1p-53;
        double log_error = fabs(fr_exact_log(x) - log(x)) / fmax(fabs(log(x)), 1e-3);
        double cos_error = fabs(fr_exact_cos_turns(u) - cos(2 * 3.14159265358979323846 * u));
        worst_log = fmax(worst_log, log_error);
        worst_cos = fmax(worst_cos, cos_error);
    }
    CHECK(worst_log < 1e-15);
    CHECK(worst_cos < 2e-15); /* the argument of libm's is itself rounded */
    CHECK(fr_exact_log(1) == 0);
    CHECK(fr_exact_cos_turns(0) == 1 && fr_exact_cos_turns(0.5) == -1 && fr_exact_cos_turns(0.25) == 0 &&
          fr_exact_cos_turns(1) == 1);
}

static double normal_share(double x)
{
    return 0.5 * erfc(-x / sqrt(2));
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

TEST(normal_is_normal)
{
    enum { N = 200000 };
    double *x = malloc(N * sizeof *x), moment[5] = {0};
    for (int i = 0; i < N; i++) {
        x[i] = fr_rng_normal_at(8, 1, (uint64_t)i);
        for (int k = 1; k <= 4; k++)
            moment[k] += pow(x[i], k) / N;
    }
    CHECK_NEAR(moment[1], 0, 5 / sqrt(N), 0);
    CHECK_NEAR(moment[2], 1, 5 * sqrt(2.0 / N), 0);
    CHECK_NEAR(moment[3], 0, 5 * sqrt(15.0 / N), 0);
    CHECK_NEAR(moment[4], 3, 5 * sqrt(96.0 / N), 0);
    qsort(x, N, sizeof *x, compare_doubles);
    double distance = 0; /* Kolmogorov-Smirnov; 1.95/sqrt(N) is the 0.1 % point */
    for (int i = 0; i < N; i++)
        distance = fmax(distance, fmax(fabs(normal_share(x[i]) - i / (double)N),
                                       fabs(normal_share(x[i]) - (i + 1) / (double)N)));
    CHECK(distance < 1.95 / sqrt(N));
    free(x);
}

/* The bits are part of the contract: initial weights of every run depend on them. */
TEST(normal_bits_are_frozen)
{
    static const double want[] = {-0x1.e2c277fcf9eadp-3, 0x1.493e12d59bbacp-1, 0x1.4ae53c0f8f8dep-3,
                                  0x1.2f769a70f7fa6p+0,  0x1.be7e26f419c36p-1, -0x1.7b92131b5becfp-2,
                                  0x1.41f5011eb62b5p+0,  0x1.5f97541b36b9ep-2};
    for (uint64_t i = 0; i < sizeof want / sizeof *want; i++)
        CHECK(fr_rng_normal_at(42, 7, i) == want[i]);
}

/* Vectors of the XXH64 specification's reference implementation. */
TEST(hash64_known_answers)
{
    CHECK(fr_hash64("", 0, 0) == 0xEF46DB3751D8E999);
    CHECK(fr_hash64("a", 1, 0) == 0xD24EC4F1A98C6E5B);
    CHECK(fr_hash64("abc", 3, 0) == 0x44BC2CF5AD770999);
    CHECK(fr_hash64("xxhash", 6, 0) == 0x32DD38952C4BC720);
    CHECK(fr_hash64("xxhash", 6, 20141025) == 0xB559B98D844E0635);
    CHECK(fr_hash64("Call me Ishmael. Some years ago--never mind how long precisely-", 63, 0) ==
          0x02A2E85470D6FD96);
    CHECK(fr_checksum64("abc", 3) == fr_hash64("abc", 3, 0));
}

TEST(hash64_changes_with_every_bit)
{
    unsigned char text[100];
    for (int i = 0; i < 100; i++)
        text[i] = (unsigned char)(i * 7);
    for (size_t length = 1; length <= 100; length++) {
        uint64_t before = fr_hash64(text, length, 1);
        for (size_t bit = 0; bit < 8 * length; bit += 5) {
            text[bit / 8] ^= (unsigned char)(1 << bit % 8);
            CHECK(fr_hash64(text, length, 1) != before);
            text[bit / 8] ^= (unsigned char)(1 << bit % 8);
        }
    }
}

/* FIPS 180-2. */
TEST(sha256_known_answers)
{
    char hex[65];
    fr_sha256("abc", 3, hex);
    CHECK_STR(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    fr_sha256(NULL, 0, hex);
    CHECK_STR(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    fr_sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56, hex);
    CHECK_STR(hex, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST_MAIN(rng)
