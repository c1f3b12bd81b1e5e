/* Trees of Open MPI's coll/base: parent and children of one rank, computed in O(log P) without allocating memory. */
#ifndef CORE_TREE_H
#define CORE_TREE_H

enum { TREE_MAX_FANOUT = 32, TREE_MAX_CHILDREN = 256 };

struct tree {
    int parent; /* -1 at the root */
    int n;
    int child[TREE_MAX_CHILDREN];
};

void coll_tree_chain(struct tree *tree, int rank, int size, int root, int fanout);
void coll_tree_binary(struct tree *tree, int rank, int size, int root);
void coll_tree_binomial(struct tree *tree, int rank, int size, int root);
void coll_tree_in_order_binomial(struct tree *tree, int rank, int size, int root);
void coll_tree_knomial(struct tree *tree, int rank, int size, int root, int radix);
void coll_tree_in_order_binary(struct tree *tree, int rank, int size); /* the root is the last rank */
int coll_floor_power_of_two(int n);

#endif
