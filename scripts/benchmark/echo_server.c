/* The benchmark's MCP server: newline-delimited JSON-RPC on stdin and stdout, cheap enough not to matter.
 *
 *   echo_server [--cpu N] [--boot-ms N]    serve; first move to CPU N and take N ms to start
 *   echo_server --drain FILE               read standard input to its end, and leave its length in FILE: a hook's least work
 *
 * Tools: echo {text}; big (a 10 MB text); many (10 MB of small JSON tokens); notify {count, burst} (that many progress
 * messages, then the result: each in a write of its own, as real servers do, or as few writes as possible). It looks for the members it needs and trusts the benchmark for the rest. echo_server.py is its twin.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { BIG_BYTES = 10 * 1000 * 1000, MANY_ROWS = 100 * 1000, CHUNK = 65536 };

static char out[2 * CHUNK];
static size_t out_len;

static void write_all(const char *bytes, size_t len) {
    while (len > 0) {
        ssize_t n = write(1, bytes, len);
        if (n <= 0) exit(0); /* the reader is gone */
        bytes += n;
        len -= (size_t)n;
    }
}

static void flush(void) {
    write_all(out, out_len);
    out_len = 0;
}

/* Appends to the batch; one line that is formatted here is always shorter than CHUNK. */
static void say(const char *format, ...) {
    va_list args;
    if (out_len > CHUNK) flush();
    va_start(args, format);
    int n = vsnprintf(out + out_len, sizeof out - out_len, format, args);
    va_end(args);
    out_len += (size_t)n;
}

/* The result of `big` or `many` after its id: made at the first call, so that starting stays cheap. */
static char *big, *many;
static size_t big_len, many_len;

static void make_big(void) {
    static const char words[] = "a line of plain text, as long as most lines are\\n";
    const size_t step = sizeof words - 1;
    big = malloc(BIG_BYTES + 200);
    char *p = big + sprintf(big, ",\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"");
    for (size_t n = 0; n + step <= BIG_BYTES; n += step, p += step) memcpy(p, words, step);
    p += sprintf(p, "\"}],\"isError\":false}}\n");
    big_len = (size_t)(p - big);
}

/* As the SDKs' servers answer: the same rows as structuredContent and, once more, as escaped text. */
static void make_many(void) {
    many = malloc((size_t)MANY_ROWS * 160 + 400);
    char *p = many + sprintf(many, ",\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"{\\\"rows\\\":[");
    for (int n = 0; n < MANY_ROWS; n++)
        p += sprintf(p, "%s{\\\"n\\\":%d,\\\"x\\\":0.5,\\\"s\\\":\\\"ab\\\",\\\"ok\\\":true,\\\"z\\\":null}", n ? "," : "", n);
    p += sprintf(p, "]}\"}],\"structuredContent\":{\"rows\":[");
    for (int n = 0; n < MANY_ROWS; n++)
        p += sprintf(p, "%s{\"n\":%d,\"x\":0.5,\"s\":\"ab\",\"ok\":true,\"z\":null}", n ? "," : "", n);
    p += sprintf(p, "]},\"isError\":false}}\n");
    many_len = (size_t)(p - many);
}

/* A head in the batch, then a long tail straight from where it lies. */
static void say_long(int id_len, const char *id, const char *tail, size_t len) {
    say("{\"jsonrpc\":\"2.0\",\"id\":%.*s", id_len, id);
    flush();
    write_all(tail, len);
}

/* The value after the first `key` (quoted) in the line, or NULL. */
static const char *value_of(const char *line, const char *key) {
    const char *at = strstr(line, key);
    if (!at) return NULL;
    at += strlen(key);
    while (*at == ' ' || *at == ':') at++;
    return at;
}

/* How long a number or a string without escaped quotes is, its quotes included. */
static int length_of(const char *value) {
    if (*value == '"') return (int)(strchr(value + 1, '"') - value) + 1;
    return (int)strcspn(value, ",} \r");
}

static void call(const char *line, int id_len, const char *id) {
    const char *text = value_of(line, "\"text\""), *count = value_of(line, "\"count\"");
    if (strstr(line, "\"name\":\"big\"")) {
        if (!big) make_big();
        say_long(id_len, id, big, big_len);
    } else if (strstr(line, "\"name\":\"many\"")) {
        if (!many) make_many();
        say_long(id_len, id, many, many_len);
    } else if (strstr(line, "\"name\":\"notify\"")) {
        const char *token = value_of(line, "\"progressToken\"");
        int burst = strstr(line, "\"burst\":true") != NULL;
        for (int n = 0, end = count ? atoi(count) : 0; n < end; n++) {
            say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":"
                "{\"progressToken\":%.*s,\"progress\":%d}}\n", token ? length_of(token) : 1, token ? token : "0", n);
            if (!burst) flush();
        }
        say("{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":{\"content\":[],\"isError\":false}}\n", id_len, id);
    } else {
        say("{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":{\"content\":[{\"type\":\"text\",\"text\":%.*s}],"
            "\"isError\":false}}\n", id_len, id, text ? length_of(text) : 2, text ? text : "\"\"");
    }
}

static const char tools[] =
    "{\"tools\":["
    "{\"name\":\"echo\",\"description\":\"Says the text again.\",\"inputSchema\":{\"type\":\"object\","
    "\"properties\":{\"text\":{\"type\":\"string\"}},\"required\":[\"text\"]}},"
    "{\"name\":\"big\",\"description\":\"A text of 10 MB.\",\"inputSchema\":{\"type\":\"object\",\"properties\":{}}},"
    "{\"name\":\"many\",\"description\":\"10 MB of small tokens.\",\"inputSchema\":{\"type\":\"object\",\"properties\":{}}},"
    "{\"name\":\"notify\",\"description\":\"Reports progress.\",\"inputSchema\":{\"type\":\"object\","
    "\"properties\":{\"count\":{\"type\":\"integer\"},\"burst\":{\"type\":\"boolean\"}},\"required\":[\"count\"]}}]}";

static void answer(const char *line) {
    const char *id = value_of(line, "\"id\""), *method = value_of(line, "\"method\"");
    if (!id || !method) return; /* a notification, or an answer */
    int id_len = length_of(id);
    if (!strncmp(method, "\"tools/call\"", 12)) {
        call(line, id_len, id);
    } else if (!strncmp(method, "\"initialize\"", 12)) {
        const char *version = value_of(line, "\"protocolVersion\"");
        say("{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":{\"protocolVersion\":%.*s,\"capabilities\":"
            "{\"tools\":{},\"logging\":{}},\"serverInfo\":{\"name\":\"echo\",\"version\":\"1\"}}}\n", id_len, id,
            version ? length_of(version) : 12, version ? version : "\"2025-06-18\"");
    } else if (!strncmp(method, "\"tools/list\"", 12)) {
        say("{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":%s}\n", id_len, id, tools);
    } else if (!strncmp(method, "\"ping\"", 6) || !strncmp(method, "\"logging/setLevel\"", 18)) {
        say("{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":{}}\n", id_len, id);
    } else {
        say("{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"error\":{\"code\":-32601,\"message\":\"no such method\"}}\n", id_len, id);
    }
}

/* Reads what there is, answers every whole line of it, writes once. */
static void serve(void) {
    size_t room = 4 * CHUNK, len = 0;
    char *in = malloc(room + 1);
    ssize_t n;
    while ((n = read(0, in + len, room - len)) > 0) {
        char *line = in, *end;
        len += (size_t)n;
        while ((end = memchr(line, '\n', len - (size_t)(line - in)))) {
            *end = 0;
            answer(line);
            line = end + 1;
        }
        flush();
        len -= (size_t)(line - in);
        memmove(in, line, len);
        if (len == room) in = realloc(in, (room *= 2) + 1);
    }
}

static int drain(const char *path) {
    long total = 0;
    ssize_t n;
    while ((n = read(0, out, sizeof out)) > 0) total += n;
    FILE *file = fopen(path, "w");
    return !file || fprintf(file, "%ld", total) < 0 || fclose(file);
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        if (i + 1 == argc) return 2;
        if (!strcmp(argv[i], "--drain")) return drain(argv[i + 1]);
        int number = atoi(argv[++i]);
        if (!strcmp(argv[i - 1], "--boot-ms")) {
            usleep((useconds_t)number * 1000);
        } else if (!strcmp(argv[i - 1], "--cpu")) {
#ifdef __linux__
            cpu_set_t cpus;
            CPU_ZERO(&cpus);
            CPU_SET(number, &cpus);
            sched_setaffinity(0, sizeof cpus, &cpus);
#endif
        } else {
            return 2;
        }
    }
    serve();
    return 0;
}
