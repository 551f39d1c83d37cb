/* Downloads from a server that misbehaves: cut, reset, slow, busy, lying and changing answers; what is left after each; what
 * the next call asks for. The server is tests/unit/fetch_server.py on the loopback. */
#include "test.h"
#include "base/download.h"
#include "text_fixture.h"
#include "text/unzip.h"

#include <signal.h>
#include <sys/wait.h>

static fr_error error;
static int port, server_in;
static pid_t server;

static void stop_server(void)
{
    if (server > 0) {
        close(server_in);
        waitpid(server, NULL, 0);
    }
}

/* Starts it on first use; false: no python3 here. */
static bool have_server(void)
{
    static bool tried;
    int in[2], out[2];
    char line[32] = "";
    if (tried)
        return port > 0;
    tried = true;
    if (pipe(in) != 0 || pipe(out) != 0)
        return false;
    server = fork();
    if (server == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        close(in[1]);
        close(out[0]);
        execlp("python3", "python3", "tests/unit/fetch_server.py", (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    server_in = in[1];
    atexit(stop_server);
    if (read(out[0], line, sizeof line - 1) > 0)
        port = atoi(line);
    close(out[0]);
    return port > 0;
}

#ifdef FR_HAVE_CURL
enum { HAVE_CURL = 1 };
#else
enum { HAVE_CURL = 0 };
#endif
#define NEED_SERVER                     \
    if (!HAVE_CURL || !have_server())   \
    SKIP("downloads need libcurl at build time, python3, and tests/unit/fetch_server.py from here")

enum { SIZE = 200000, MOST = 1 << 22 };

typedef struct calls {
    int messages;
    bool stop;
    double stop_after; /* bytes */
} calls;

static void on_message(void *context, const char *text)
{
    (void)text;
    ((calls *)context)->messages++;
}

static void on_update(void *context, const char *phase, double done, double total, const char *note)
{
    calls *c = context;
    (void)phase;
    (void)note;
    CHECK(done <= total);
    c->stop |= c->stop_after > 0 && done >= c->stop_after;
}

static bool on_stop(void *context)
{
    return ((calls *)context)->stop;
}

static download_file file;
static calls progress;

/* One file from a fault into a fresh name, with `retries`. */
static fr_status get(const char *fault, int size, int retries)
{
    static char url[300];
    fr_progress reports = {on_update, on_message, on_stop, &progress};
    download_options options = {.connections = 2, .retries = retries, .stall = 2, .backoff = 0.01, .phase = "test", .guess = SIZE,
                                .progress = &reports};
    memset(&error, 0, sizeof error);
    progress.messages = 0;
    snprintf(url, sizeof url, "http://127.0.0.1:%d/%s/%d/file", port, fault, size);
    file = (download_file){.url = url, .path = fixture_path(fault), .magic = "PAR1", .most_bytes = MOST};
    return fr_download(&file, 1, &options, &error);
}

static bool left(const char *fault, const char *ending)
{
    char name[100];
    snprintf(name, sizeof name, "%s%s", fault, ending);
    return access(fixture_path(name), F_OK) == 0;
}

/* Whole, as the server makes it, and nothing beside it. */
static void check_whole(const char *fault, int messages)
{
    static char plain[65];
    char hex[65];
    CHECK_INT(progress.messages, messages);
    CHECK(file.finished && file.bytes == SIZE);
    if (!plain[0]) {
        download_file saved = file;
        calls before = progress;
        CHECK_OK(get("none", SIZE, 0));
        memcpy(plain, file.got_sha256, 65);
        file = saved;
        progress = before;
    }
    CHECK_OK(fr_sha256_file(fixture_path(fault), hex, &error));
    CHECK_STR(hex, plain);
    CHECK_STR(file.got_sha256, plain);
    CHECK(!left(fault, ".part") && !left(fault, ".part.json"));
}

static void check_no_file(const char *fault)
{
    CHECK(!left(fault, ""));
    CHECK(!file.finished);
}

/* ---- faults that a retry heals ---- */

TEST(faults_that_pass_end_in_the_whole_file)
{
    static const struct {
        const char *fault;
        int messages;
    } cases[] = {{"none", 0},        {"short", 2},   {"busy", 2},      {"no-range", 1}, {"no-etag", 1}, {"changed", 1},
                 {"wrong-range", 2}, {"reset", 2},   {"damaged-once", 1}, {"hub", 2},   {"slow", 1}};
    NEED_SERVER;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_OK(get(cases[i].fault, SIZE, 4));
        check_whole(cases[i].fault, cases[i].messages);
    }
}

/* What was asked of the server, joined by '|'. */
static const char *requests_of(const char *fault)
{
    static char joined[2000];
    char line[300];
    joined[0] = '\0';
    download_file log = {.path = fixture_path("log"), .most_bytes = MOST};
    char url[100];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/log/%s", port, fault);
    log.url = url;
    download_options options = {.connections = 1, .stall = 2, .backoff = 1, .phase = "log"};
    CHECK_OK(fr_download(&log, 1, &options, &error));
    FILE *in = fopen(fixture_path("log"), "r");
    while (in && fgets(line, sizeof line, in)) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line + 4, fault, strlen(fault)) == 0 && line[4 + strlen(fault)] == ' ')
            snprintf(joined + strlen(joined), sizeof joined - strlen(joined), "%s%s", joined[0] ? "|" : "", line + 5 + strlen(fault));
    }
    if (in)
        fclose(in);
    return joined;
}

TEST(a_retry_asks_only_for_the_rest_and_only_of_the_same_file)
{
    NEED_SERVER;
    CHECK_OK(get("short", SIZE + 1, 4));
    CHECK(strstr(requests_of("short"), "bytes=66667- \"one\"") != NULL);
    CHECK_STR(requests_of("no-etag"), "- -|- -");
    CHECK_STR(requests_of("changed"), "- -|bytes=100000- \"old\"");
}

/* ---- faults that stay ---- */

TEST(faults_that_stay_are_errors_that_leave_no_file)
{
    static const struct {
        const char *fault;
        fr_status status;
        const char *what;
        int messages;
    } cases[] = {
        {"always-busy", FR_BAD_ENVIRONMENT, "the server answers HTTP 503", 2},
        {"wrong-size", FR_BAD_DATA, "200000 bytes came, it should have 200005", 2},
        {"hash", FR_BAD_DATA, "its SHA-256 is", 2},
        {"missing", FR_BAD_DATA, "the server does not have it (HTTP 404)", 0},
        {"page", FR_BAD_DATA, "what came does not begin and end with 'PAR1': another kind of file", 2},
        {"to-file", FR_BAD_DATA, "it leads to an address that is not http or https", 0},
        {"to-ftp", FR_BAD_DATA, "it leads to an address that is not http or https", 0},
        {"loop", FR_BAD_DATA, "it redirects again and again", 0},
        {"empty", FR_BAD_DATA, "what came does not begin", 2},
    };
    NEED_SERVER;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_INT(get(cases[i].fault, SIZE, 2), cases[i].status);
        if (strncmp(error.what, cases[i].what, strlen(cases[i].what)) != 0)
            CHECK_STR(error.what, cases[i].what);
        CHECK_INT(progress.messages, cases[i].messages);
        check_no_file(cases[i].fault);
        CHECK(!left(cases[i].fault, ".part"));
    }
}

TEST(a_size_beyond_reason_is_refused)
{
    NEED_SERVER;
    CHECK_INT(get("endless", SIZE, 2), FR_BAD_DATA);
    CHECK(strstr(error.what, "no sane size") != NULL);
    check_no_file("endless");
}

TEST(what_is_left_is_resumed_by_the_next_call)
{
    NEED_SERVER;
    CHECK_INT(get("always-short", SIZE, 1), FR_BAD_ENVIRONMENT);
    CHECK_STR(error.what, "the connection ended before the file did");
    CHECK(left("always-short", ".part") && left("always-short", ".part.json"));
    struct stat info;
    CHECK(stat(fixture_path("always-short.part"), &info) == 0 && info.st_size == SIZE / 3);
    /* A state of another address, damaged or missing: from the first byte, and no error. */
    static const char *const states[] = {"{\"url\":\"http://other/\",\"etag\":\"\\\"one\\\"\",\"bytes\":9}", "not json", "{\"url\":3}",
                                         "{\"url\":\"\",\"etag\":\"a\\r\\nX: y\"}"};
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        char bytes[64];
        memset(bytes, 'x', sizeof bytes);
        fixture_text("none.part.json", states[i]);
        fixture_write("none.part", bytes, sizeof bytes);
        CHECK_OK(get("none", SIZE, 0));
        check_whole("none", 0);
    }
}

TEST(a_stop_keeps_what_came)
{
    NEED_SERVER;
    progress = (calls){.stop_after = 20000};
    CHECK_INT(get("drip", SIZE, 2), FR_STOPPED);
    progress = (calls){0};
    check_no_file("drip");
    struct stat info;
    CHECK(stat(fixture_path("drip.part"), &info) == 0 && info.st_size >= 20000 && info.st_size < SIZE);
}

/* The process dies in the middle; the next one goes on. */
TEST(a_kill_keeps_what_came)
{
    NEED_SERVER;
    const char *path = fixture_path("drip.part");
    struct stat info = {0};
    unlink(path);
    pid_t child = fork();
    if (child == 0) {
        get("drip", SIZE * 2, 0);
        _exit(0);
    }
    for (int i = 0; i < 300 && (stat(path, &info) != 0 || info.st_size < 10000); i++)
        usleep(20000);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    CHECK(info.st_size >= 10000);
    CHECK(left("drip", ".part.json"));
}

TEST(a_full_disk_is_said_and_leaves_a_part)
{
    NEED_SERVER;
    fr_file_fail_after(50000);
    fr_status status = get("none", SIZE + 2, 3);
    fr_file_fail_after(-1);
    CHECK_INT(status, FR_BAD_ENVIRONMENT);
    CHECK_STR(error.what, "cannot write: the disk is full");
    CHECK(left("none", ".part"));
    CHECK_OK(get("none", SIZE + 2, 0));
    CHECK_INT(file.bytes, SIZE + 2);
}

TEST(many_files_over_few_connections)
{
    enum { FILES = 9 };
    NEED_SERVER;
    static char urls[FILES][100];
    download_file files[FILES];
    for (int i = 0; i < FILES; i++) {
        char name[40];
        snprintf(name, sizeof name, "many-%d", i);
        snprintf(urls[i], sizeof urls[i], "http://127.0.0.1:%d/%s/%d/m%d", port, i % 3 ? "none" : "short", 100000 + i, i);
        files[i] = (download_file){.url = urls[i], .path = fixture_path(name), .most_bytes = MOST};
    }
    download_options options = {.connections = 4, .retries = 4, .stall = 2, .backoff = 0.01, .phase = "many"};
    CHECK_OK(fr_download(files, FILES, &options, &error));
    for (int i = 0; i < FILES; i++)
        CHECK(files[i].finished && files[i].bytes == 100000 + i);
}

TEST(two_processes_do_not_write_one_part)
{
    NEED_SERVER;
    unlink(fixture_path("drip.part"));
    unlink(fixture_path("drip.part.json"));
    pid_t child = fork();
    if (child == 0) {
        get("drip", SIZE * 3, 0);
        _exit(0);
    }
    for (int i = 0; i < 300 && !left("drip", ".part.json"); i++) /* the part is locked before its state is written */
        usleep(20000);
    CHECK_INT(get("drip", SIZE * 3, 0), FR_BAD_ENVIRONMENT);
    CHECK_STR(error.what, "another process is downloading this file");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

TEST(only_http_and_https_and_nobody_listening)
{
    static const char *const urls[] = {"file:///etc/passwd", "ftp://host/x", "/etc/passwd", "", "javascript:1"};
    download_options options = {.connections = 1, .stall = 1, .backoff = 0.01, .phase = "test"};
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        download_file odd = {.url = urls[i], .path = fixture_path("odd"), .most_bytes = MOST};
        CHECK_INT(fr_download(&odd, 1, &options, &error), FR_BAD_USAGE);
    }
    CHECK(!left("odd", ".part"));
    NEED_SERVER;
    download_file nobody = {.url = "http://127.0.0.1:9/x", .path = fixture_path("odd"), .most_bytes = MOST};
    CHECK_INT(fr_download(&nobody, 1, &options, &error), FR_BAD_ENVIRONMENT);
    CHECK_STR(error.what, "cannot connect");
    int64_t size;
    char url[100];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/none/%d/size", port, SIZE);
    CHECK_OK(fr_download_size(url, 2, &size, &error));
    CHECK_INT(size, SIZE);
}

/* ---- zip ---- */

/* Python's archives of one small and one long member; then each byte of the first one's structure damaged. */
TEST(zip_members_come_out_whole_or_not_at_all)
{
    char command[900];
    snprintf(command, sizeof command,
             "python3 -c \"import zipfile; z = zipfile.ZipFile('%s', 'w'); z.writestr('other.txt', 'x'); "
             "z.writestr('lib.so', b'abc' * 50000, zipfile.ZIP_DEFLATED); z.writestr('stored', b'hello'); z.comment = b'note'; z.close()\" 2>&1",
             fixture_path("a.zip"));
    if (system(command) != 0)
        SKIP("archives need python3");
    fr_arena arena;
    char *bytes, *out;
    size_t count, got;
    fr_arena_init(&arena, 1 << 20);
    CHECK_OK(unzip_member(fixture_path("a.zip"), "lib.so", fixture_path("lib.so"), MOST, &error));
    CHECK_OK(fr_file_read(&arena, fixture_path("lib.so"), &out, &got, &error));
    CHECK(got == 150000 && memcmp(out + 149997, "abc", 3) == 0);
    CHECK_OK(unzip_member(fixture_path("a.zip"), "stored", fixture_path("stored"), MOST, &error));
    CHECK_INT(unzip_member(fixture_path("a.zip"), "lib.so", fixture_path("big"), 1000, &error), FR_BAD_DATA);
    CHECK_INT(unzip_member(fixture_path("a.zip"), "none", fixture_path("big"), MOST, &error), FR_BAD_DATA);
    CHECK_OK(fr_file_read(&arena, fixture_path("a.zip"), &bytes, &count, &error));
    for (size_t cut = 0; cut < count; cut += 1 + cut / 8)
        CHECK_INT(unzip_member(fixture_write("cut.zip", bytes, cut), "lib.so", fixture_path("big"), MOST, &error), FR_BAD_DATA);
    int whole = 0;
    for (size_t at = 0; at < count; at++) {
        bytes[at] ^= 0x41;
        fr_status status = unzip_member(fixture_write("bad.zip", bytes, count), "lib.so", fixture_path("big"), MOST, &error);
        whole += status == FR_OK;
        CHECK(status == FR_OK || status == FR_BAD_DATA);
        bytes[at] ^= 0x41;
    }
    CHECK(whole < (int)count); /* names, dates and the other members may differ */
    fr_arena_release(&arena);
}

TEST_MAIN(download)
