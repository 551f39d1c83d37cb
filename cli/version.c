/* cli/version.c: which build this is: version, commit, compiler, processor path, libraries. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <sodium.h>
#include <zstd.h>

#include "cli.h"
#include "frontier/cpu.h"
#include "frontier/version.h"

void cli_version(FILE *out)
{
    fr_cpu_features features;
    char pcre[64] = "";
    fr_cpu_detect(&features);
    pcre2_config(PCRE2_CONFIG_VERSION, pcre);
    fprintf(out, "frontier %s (commit %s)\n", FR_VERSION, FR_COMMIT);
    fprintf(out, "compiler  %s\n", FR_COMPILER);
    fprintf(out, "processor %s, kernels %s\n", features.name, features.path);
    fprintf(out, "libraries %s, PCRE2 %s, zstd %s, jansson %s, libsodium %s\n", fr_cpu_library_version(),
            pcre, ZSTD_versionString(), jansson_version_str(), sodium_version_string());
}
