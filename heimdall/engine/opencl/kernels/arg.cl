{# Where the largest or smallest value lies along the middle axis of (outer, count, inner).
    Variable: better (how `v` replaces `best`). #}
{% import "common.cl" as common with context %}
{{ common.along("arg") }}    float best = x[0];
    int found = 0;
    for (int k = 1; k < count; k++) {
        const float v = x[k * inner];
        if (v {{ better }} best) {
            best = v;
            found = k;
        }
    }
    y[y_base + line] = found;
}
