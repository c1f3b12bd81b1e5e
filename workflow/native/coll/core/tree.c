#include "core/tree.h"

static int rotate(int rank, int by, int size) {
    return (int)(((long)rank + by + size) % size);
}

/* Converts ranks relative to the root, in which the tree was built, to real ranks. */
static void finish(struct tree *tree, int size, int root) {
    if (tree->parent >= 0)
        tree->parent = rotate(tree->parent, root, size);
    for (int i = 0; i < tree->n; i++)
        tree->child[i] = rotate(tree->child[i], root, size);
}

static int start(struct tree *tree, int rank, int size, int root) {
    tree->parent = -1;
    tree->n = 0;
    return rotate(rank, -root, size);
}

static void add(struct tree *tree, int child) {
    if (tree->n < TREE_MAX_CHILDREN)
        tree->child[tree->n++] = child;
}

int coll_floor_power_of_two(int n) {
    int power = 1;
    while (power <= n / 2)
        power *= 2;
    return power;
}

/* fanout chains below the root; the first (size - 1) % fanout of them are one longer than the others. */
void coll_tree_chain(struct tree *tree, int rank, int size, int root, int fanout) {
    int me = start(tree, rank, size, root);
    if (fanout > TREE_MAX_FANOUT)
        fanout = TREE_MAX_FANOUT;
    if (fanout > size - 1)
        fanout = size - 1;
    for (int chain = 0, head = 1; chain < fanout; chain++) {
        int length = (size - 1) / fanout + (chain < (size - 1) % fanout);
        if (me == 0)
            add(tree, head);
        if (me >= head && me < head + length) {
            tree->parent = me == head ? 0 : me - 1;
            if (me + 1 < head + length)
                add(tree, me + 1);
        }
        head += length;
    }
    finish(tree, size, root);
}

/* Level L has 2^L ranks, from 2^L - 1 on; the children of rank r in it are r + 2^L and r + 2 * 2^L. */
void coll_tree_binary(struct tree *tree, int rank, int size, int root) {
    int me = start(tree, rank, size, root);
    int width = coll_floor_power_of_two(me + 1);
    if (me > 0)
        tree->parent = me - width / 2 < width - 1 ? me - width / 2 : me - width;
    for (int i = 1; i <= 2 && me + i * width < size; i++)
        add(tree, me + i * width);
    finish(tree, size, root);
}

/* The parent of a rank is the rank without its highest bit. */
void coll_tree_binomial(struct tree *tree, int rank, int size, int root) {
    int me = start(tree, rank, size, root);
    long bit = me == 0 ? 1 : 2L * coll_floor_power_of_two(me);
    if (me > 0)
        tree->parent = me - (int)(bit / 2);
    for (; me + bit < size; bit *= 2)
        add(tree, me + (int)bit);
    finish(tree, size, root);
}

/* The parent of a rank is the rank without its lowest bit. */
void coll_tree_in_order_binomial(struct tree *tree, int rank, int size, int root) {
    int me = start(tree, rank, size, root);
    for (long bit = 1; bit < size && tree->parent < 0; bit *= 2) {
        if (me & bit)
            tree->parent = me - (int)bit;
        else if (me + bit < size)
            add(tree, me + (int)bit);
    }
    finish(tree, size, root);
}

/* The parent of a rank is the rank without its lowest digit in base radix; the farthest children come first. */
void coll_tree_knomial(struct tree *tree, int rank, int size, int root, int radix) {
    int me = start(tree, rank, size, root);
    long digit = 1;
    while (digit < size && me % (digit * radix) == 0)
        digit *= radix;
    if (me > 0)
        tree->parent = me - (int)(me % (digit * radix));
    for (digit /= radix; digit > 0; digit /= radix)
        for (int i = 1; i < radix && me + i * digit < size; i++)
            add(tree, me + (int)(i * digit));
    finish(tree, size, root);
}

/*
 * The last of the ranks [first, first + n) is the root of their subtree. The first half of them is the subtree of its
 * second child, the rest that of its first child. Combining second child, first child and itself keeps the rank order.
 */
void coll_tree_in_order_binary(struct tree *tree, int rank, int size) {
    int first = 0, n = size;
    start(tree, rank, size, 0);
    while (rank != first + n - 1) {
        int top = first + n - 1;
        int half = n == 2 ? 0 : n / 2;
        if (rank < first + half) {
            n = half;
        } else {
            first += half;
            n -= half + 1;
        }
        tree->parent = top;
    }
    if (n >= 2)
        add(tree, first + n - 2);
    if (n >= 3)
        add(tree, first + n / 2 - 1);
}
