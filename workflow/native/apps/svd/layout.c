#include "svd.h"

static size_t whole_lines(int doubles) {
    return ((size_t)doubles + 7) / 8 * 8;
}

Layout make_layout(int rows, int cols, int processes) {
    Layout layout = {.rows = rows, .cols = cols, .blocks = 2 * processes};
    layout.v = whole_lines(rows);
    layout.normsq = layout.v + whole_lines(cols);
    layout.record = layout.normsq + 8;
    return layout;
}

/* The first cols % blocks blocks have one column more. */
int block_first(const Layout *layout, int id) {
    int extra = layout->cols % layout->blocks;
    return id * (layout->cols / layout->blocks) + (id < extra ? id : extra);
}

int block_count(const Layout *layout, int id) {
    return block_first(layout, id + 1) - block_first(layout, id);
}
