/* bench_neuron_validation: predicted times beside published ones.
 *
 *     bench_neuron_validation [--points FILE] [--only ID] [--calibration C]      from the root of the repository
 *
 * Each row of bench/neuron-validation/points.tsv names a kernel and a published time. The kernels here are our own, in
 * the tiling of the published ones, written through the C interface; computing is switched off. Printed: predicted and
 * published time with the error, the two bounds, whether they enclose the published time, and the error of a naive
 * roofline (flops over peak or bytes over HBM bandwidth, whichever is longer). Rows of the set `fit` are what
 * constants were chosen by; only the held-out rows say how good the prediction is. --calibration writes what
 * src/neuron/calibration.c holds: run it after a change of constants or model.
 */
#include "neuron-validation/streams.h"
#include "neuron/time_band.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIZES = 6, FIELDS = 11, POINTS = 200 };

typedef struct kernel {
    const char *name;
    void (*run)(lab *l, const int *sizes);
} kernel;

static const kernel kernels[] = {{"vector_add", vector_add},
                                 {"load_activate_store", load_activate_store},
                                 {"ladder_tiled", ladder_tiled},
                                 {"ladder_hoisted", ladder_hoisted},
                                 {"ladder_free", ladder_free},
                                 {"ladder_full", ladder_full},
                                 {"narrow_product", narrow_product},
                                 {"mamba_states_outside", mamba_states_outside},
                                 {"mamba_channels_outside", mamba_channels_outside},
                                 {"bench_silu", bench_silu},
                                 {"bench_adamw", bench_adamw},
                                 {"bench_rope", bench_rope},
                                 {"bench_matmul", bench_matmul},
                                 {"bench_bmm", bench_bmm},
                                 {"bench_transpose_matmul", bench_transpose_matmul},
                                 {"bench_rmsnorm_matmul", bench_rmsnorm_matmul}};

typedef struct point {
    char id[40], kernel[40], machine[16], kind[32], set[16];
    int sizes[SIZES];
    double published_us, flops, bytes, peak_tflops;
    double predicted_us, lower_us, order_us, roofline_us, spill_mb, share[FR_NEURON_SHARES];
    int generation;
    int64_t records;
} point;

/* ---- the table ---------------------------------------------------------------------------------------- */

static int split(char *line, char *fields[FIELDS])
{
    int count = 0;
    for (char *at = line; at && count < FIELDS; count++) {
        fields[count] = at;
        at = strchr(at, '\t');
        if (at)
            *at++ = 0;
    }
    return count;
}

static bool read_point(char *line, point *p)
{
    char *f[FIELDS];
    memset(p, 0, sizeof *p);
    line[strcspn(line, "\n")] = 0;
    if (split(line, f) != FIELDS)
        return false;
    snprintf(p->id, sizeof p->id, "%s", f[0]);
    snprintf(p->kernel, sizeof p->kernel, "%s", f[1]);
    snprintf(p->machine, sizeof p->machine, "%s", f[3]);
    snprintf(p->kind, sizeof p->kind, "%s", f[5]);
    snprintf(p->set, sizeof p->set, "%s", f[6]);
    int size = 0;
    for (char *at = strtok(f[2], ","); at && size < SIZES; at = strtok(NULL, ","))
        p->sizes[size++] = atoi(at);
    p->published_us = atof(f[4]);
    p->flops = atof(f[7]);
    p->bytes = atof(f[8]);
    p->peak_tflops = atof(f[9]);
    return p->published_us > 0 && p->peak_tflops > 0;
}

static int read_points(const char *path, point *points)
{
    char line[1024];
    int count = 0;
    FILE *file = fopen(path, "r");
    while (file && count < POINTS && fgets(line, sizeof line, file))
        if (line[0] != '#' && line[0] != '\n' && !read_point(line, &points[count++])) {
            fprintf(stderr, "bench_neuron_validation: %s: row %d does not parse\n", path, count);
            fclose(file);
            return -1;
        }
    if (!file) {
        fprintf(stderr, "bench_neuron_validation: cannot read %s\n", path);
        return -1;
    }
    fclose(file);
    return count;
}

/* ---- one point ---------------------------------------------------------------------------------------- */

static bool launch_counts(const point *p)
{
    return strstr(p->kind, "+launch") != NULL;
}

static void take(point *p, const fr_neuron_machine *m, const fr_neuron_timing *t, int64_t records)
{
    double extra = launch_counts(p) ? t->launch_ns : 0;
    double compute = p->flops / (1e3 * p->peak_tflops), memory = p->bytes / (m->hbm_stack_bytes_per_ns / m->stack_cores);
    p->predicted_us = 1e-3 * (t->predicted_ns + extra);
    p->lower_us = 1e-3 * (t->lower_bound_ns + extra);
    p->order_us = 1e-3 * (t->program_order_ns + extra);
    p->roofline_us = 1e-3 * ((compute > memory ? compute : memory) + extra);
    p->spill_mb = 1e-6 * t->spill_bytes;
    p->generation = m->generation;
    fr_neuron_shares_of(m, t, p->share);
    p->records = records;
}

static bool run_point(point *p)
{
    fr_neuron_machine machine;
    fr_neuron_timing timing;
    lab l = {0};
    char path[64];
    const kernel *k = NULL;
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (strcmp(kernels[i].name, p->kernel) == 0)
            k = &kernels[i];
    snprintf(path, sizeof path, "machines/%s.toml", p->machine);
    l.status = k ? fr_neuron_machine_load(&machine, path, &l.error)
                 : fr_error_set(&l.error, FR_BAD_DATA, p->kernel, NULL, "no such kernel");
    if (l.status == FR_OK)
        l.status = fr_neuron_create(&l.core, &machine, 1, &l.error);
    if (l.status == FR_OK) {
        fr_neuron_compute(l.core, false);
        k->run(&l, p->sizes);
    }
    if (l.status == FR_OK)
        l.status = fr_neuron_time(l.core, &timing, NULL, &l.error);
    if (l.status == FR_OK)
        take(p, &machine, &timing, fr_neuron_record_count(l.core));
    else
        fprintf(stderr, "bench_neuron_validation: %s: %s: %s (%s)\n", p->id, l.error.where, l.error.what,
                l.error.hint);
    fr_neuron_free(l.core);
    return l.status == FR_OK;
}

static double error_of(double predicted, double published)
{
    return 100 * (predicted / published - 1);
}

static void print_point(const point *p)
{
    bool inside = p->lower_us <= p->published_us && p->published_us <= p->order_us;
    printf("%-16s %-5s %-5s %10.1f %10.1f %+7.1f %% %10.1f %10.1f  %-3s %+7.1f %% %9lld %7.0f\n", p->id, p->machine,
           p->set, p->published_us, p->predicted_us, error_of(p->predicted_us, p->published_us), p->lower_us,
           p->order_us, inside ? "yes" : "no", error_of(p->roofline_us, p->published_us), (long long)p->records,
           p->spill_mb);
}

/* ---- all ------------------------------------------------------------------------------------------------ */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_value);
    return !count ? NAN : count % 2 ? values[count / 2] : 0.5 * (values[count / 2 - 1] + values[count / 2]);
}

static void print_summary(const point *points, int count, const char *set)
{
    double ours[POINTS], naive[POINTS];
    int n = 0, enclosed = 0;
    for (int i = 0; i < count; i++) {
        const point *p = &points[i];
        if (strcmp(p->set, set) != 0 || strncmp(p->kind, "measurement", 11) != 0 || !(p->predicted_us > 0))
            continue;
        ours[n] = fabs(error_of(p->predicted_us, p->published_us));
        naive[n++] = fabs(error_of(p->roofline_us, p->published_us));
        enclosed += p->lower_us <= p->published_us && p->published_us <= p->order_us;
    }
    double our_median = median(ours, n), naive_median = median(naive, n);
    printf("%-5s %d points: median error %.1f %%, of the roofline %.1f %%; bounds enclose %d\n", set, n, our_median,
           naive_median, enclosed);
}

static bool write_calibration(const char *path, const point *points, int count)
{
    FILE *file = fopen(path, "w");
    if (!file)
        return false;
    fprintf(file, "/* calibration.c: kernels with a published time: what they keep busy, and published over predicted time.\n"
                  " * Written by `bench_neuron_validation --calibration src/neuron/calibration.c`; the points and their\n"
                  " * sources are in bench/neuron-validation/points.tsv. Shares: Tensor, Vector, Scalar, GpSimd, DMA engines,\n"
                  " * descriptor generation. */\n#include \"neuron/time_band.h\"\n\n"
                  "static const fr_neuron_calibrated shapes[] = {\n");
    for (int i = 0; i < count; i++) {
        const point *p = &points[i];
        if (!(p->predicted_us > 0))
            continue;
        fprintf(file, "    {\"%s\", %d, {", p->id, p->generation);
        for (int s = 0; s < FR_NEURON_SHARES; s++)
            fprintf(file, "%s%.3f", s ? ", " : "", p->share[s]);
        fprintf(file, "}, %.3f},\n", p->published_us / p->predicted_us);
    }
    fprintf(file, "};\n\nconst fr_neuron_calibrated *fr_neuron_calibrated_shapes(int *count)\n{\n"
                  "    *count = (int)(sizeof shapes / sizeof *shapes);\n    return shapes;\n}\n");
    return fclose(file) == 0;
}

int main(int argc, char **argv)
{
    const char *path = "bench/neuron-validation/points.tsv", *only = NULL, *calibration = NULL;
    static point points[POINTS];
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--points") == 0)
            path = argv[i + 1];
        else if (strcmp(argv[i], "--only") == 0)
            only = argv[i + 1];
        else if (strcmp(argv[i], "--calibration") == 0)
            calibration = argv[i + 1];
    }
    int count = read_points(path, points), failed = 0, listed = 0;
    printf("%-16s %-5s %-5s %10s %10s %9s %10s %10s  %-3s %9s %9s %7s\n", "point", "chip", "set", "published", "predicted",
           "error", "lower", "order", "in", "roofline", "records", "spillMB");
    for (int i = 0; i < count; i++) {
        if (points[i].kernel[0] == '-') { /* published, but no kernel of ours */
            listed++;
            continue;
        }
        if (only && !strstr(points[i].id, only))
            continue;
        if (run_point(&points[i]))
            print_point(&points[i]);
        else
            failed++;
        fflush(stdout);
    }
    print_summary(points, count, "fit");
    print_summary(points, count, "held");
    printf("%d more points are in the table only: ceilings, doubtful ones, kernels not rebuilt here\n", listed);
    if (calibration && !failed && !only && !write_calibration(calibration, points, count)) {
        fprintf(stderr, "bench_neuron_validation: cannot write %s\n", calibration);
        return 1;
    }
    return count < 0 || failed;
}
