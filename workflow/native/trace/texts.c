/* The texts of this rank. */
#include "trace.h"

#include <pthread.h>
#include <string.h>

enum { TEXTS = 4096 };

static char *texts[TEXTS];
static int text_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint16_t known_or_new(const char *text) {
    for (int i = 0; i < text_count; i++)
        if (strcmp(texts[i], text) == 0)
            return (uint16_t)(i + 1);
    if (text_count == TEXTS || !(texts[text_count] = strdup(text)))
        return 0;
    int64_t list[TEXT_BYTES / 8] = {0};
    memcpy(list, text, strlen(text));
    Record record = {.operation = OP_text, .ran = (uint16_t)++text_count, .root = NONE, .to = NONE, .from = NONE};
    trace_keep(&record, list, (uint32_t)(strlen(text) / 8 + 1));
    return record.ran;
}

uint16_t text_number(const char *text) {
    pthread_mutex_lock(&lock);
    uint16_t number = known_or_new(text);
    pthread_mutex_unlock(&lock);
    return number;
}
