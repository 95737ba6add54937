{# Many launches as one: every work-item walks over the same list of pieces, and of each takes what
    not taken yet. A launch costs a driver 3 to 8 us, and where several cores share the work
    20 us more, for those that were done first have gone to sleep; here they meet in 0.2 us.

    A piece is a range of the work-items ("tiles") of a kernel whose arguments are a row of the
    table: {variant, tiles along x, tiles along y, arguments...}; pointers are two numbers, a buffer
    and a place in lines of 64 bytes. There is one work-item a core. It waits only for tiles that
    another has begun, so all is done even if one of them does the work of all, then the next.

    Template variables: units (source of the kernels, as functions), variants (name of the function
    of each), buffers (beside arena and weights), alone (one work-item: none to share with). #}
#define get_global_id(axis) gid##axis
{{ units }}

static void run_tiles(int from, int to, __global const int *row, __global char **buffers) {
    switch (row[0]) {
{% for name in variants %}
        case {{ loop.index0 }}: {{ name }}(from, to, row, buffers); break;
{% endfor %}
    }
}

#if defined(__x86_64__) || defined(__i386__)
#define PAUSE __builtin_ia32_pause()
#else
#define PAUSE
#endif
#define LINE 16  // ints: counters of two pieces do not share a line of the cache

// task: first piece, end; first piece of the launch before, its end; which set of counters.
// pieces: {row, first tile, end, tiles to take at a time}.
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void walk(
    __global char *arena, __global char *weights,
{% for index in range(buffers) %}
    __global char *buffer{{ index }},
{% endfor %}
    __global const int *restrict table, __global const int4 *restrict pieces,
    __global volatile int *counters, int count, int8 task)
{
    __global char *buffers[{{ buffers + 2 }}] = {arena, weights{% for index in range(buffers) %}, buffer{{ index }}{% endfor %}};
{% if alone %}
    for (int i = task.s0; i < task.s1; i++) {
        const int4 piece = pieces[i];
        run_tiles(piece.s1, piece.s2, table + piece.s0, buffers);
    }
{% else %}
    __global volatile int *mine = counters + task.s4 * LINE * count;
    __global volatile int *before = counters + (1 - task.s4) * LINE * count;
    for (int i = task.s0; i < task.s1; i++) {
        const int4 piece = pieces[i];
        __global volatile int *next = mine + LINE * i, *done = next + 1;
        const int tiles = piece.s2 - piece.s1;
        for (;;) {
            const int from = atomic_add(next, piece.s3);
            if (from >= tiles) break;
            const int to = min(from + piece.s3, tiles);
            run_tiles(piece.s1 + from, piece.s1 + to, table + piece.s0, buffers);
            __sync_synchronize();
            atomic_add(done, to - from);
        }
        while (*done < tiles) PAUSE;
        __sync_synchronize();
    }
    // What the launch before has counted: it is not read any more, and the next one begins at zero.
    for (int i = task.s2 + (int)get_group_id(0); i < task.s3; i += (int)get_num_groups(0))
        before[LINE * i] = before[LINE * i + 1] = 0;
{% endif %}
}
