/* base/download_transfer.h: one attempt at one file through libcurl. See download_transfer.c. */
#ifndef BASE_DOWNLOAD_TRANSFER_H
#define BASE_DOWNLOAD_TRANSFER_H
#include "base/download.h"
#include "base/download_part.h"

#include <curl/curl.h>

/* How an attempt ended. */
typedef enum transfer_end {
    TRANSFER_WHOLE,   /* every byte is in the part */
    TRANSFER_AGAIN,   /* try again, going on where it stopped */
    TRANSFER_RESTART, /* try again from the first byte */
    TRANSFER_FAILED   /* trying again does not help */
} transfer_end;

/* What the response being read says. */
typedef struct transfer_response {
    long code;
    char etag[256], modified[64], linked_sha256[65];
    int64_t length, linked_size;          /* -1: not said */
    int64_t range_start, range_total;     /* of Content-Range; -1: not said */
    double retry_after;                   /* seconds; 0: not said */
    bool began;                           /* its first byte was seen */
} transfer_response;

typedef struct transfer {
    download_file *file;
    download_part part;
    CURL *easy;
    struct curl_slist *headers;
    transfer_response response;
    int attempts;        /* begun */
    double stall;
    double not_before;   /* monotonic seconds; a retry waits until then */
    bool running, done;
    fr_status status;    /* of our own side (disk) during the attempt */
    fr_error error;
} transfer;

/* Makes the easy handle ready; the caller adds it to its multi handle. */
fr_status transfer_begin(transfer *t, const download_options *options, fr_error *error);
/* Judges an ended attempt; the error says why when it is not TRANSFER_WHOLE. */
transfer_end transfer_judge(transfer *t, CURLcode code, fr_error *error);
void transfer_end_attempt(transfer *t); /* frees the handle; the part stays open */
/* The handle's common settings: protocols, redirects, timeouts, name. */
void transfer_configure(CURL *easy, const char *url, double stall);
fr_status transfer_explain(CURLcode code, const char *url, double stall, fr_error *error);

#endif
