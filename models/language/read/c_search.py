"""The search in C: the text that surrounds a model's own functions.

States lie in one array in the order of discovery, so a level is a range of it. A table with open
addressing holds them again, to detect new ones. The table grows by three eighths and is refilled
from the array, so there are never two tables: a state of one word takes 8 bytes in the array and at
most 14 in the table, from a hundred thousand states on.

Memory limits the speed of a large search. So successors are collected before they are looked up,
and their places prefetched; a small table of recent states answers for most of them.
"""

from __future__ import annotations

HEAD = r"""
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif
#ifdef __AVX512F__
#include <immintrin.h>
#endif

/* A bucket is about one line of the cache; a state is in the first one that had room for it. */
#define BUCKET (WORDS == 1 ? 8 : WORDS == 2 ? 4 : 2)

typedef struct { uint64_t w[WORDS]; } state;

struct search {
    state *states;
    uint64_t count, room, expanded;
    state *table;
    uint64_t slots, full_at;
    int has_zero;
    int64_t firings[ACTIONS + 1];
    int64_t broken_count[INVARIANTS + 1];
    int outside_cell;
    int64_t outside_value;
    state recent[RECENT];
    state batch[BATCH + SUCCESSORS];
    uint64_t hashes[BATCH + SUCCESSORS];
};

static void __attribute__((noinline, cold))
outside(struct search *search, int cell, int64_t value)
{
    if (search->outside_cell < 0) {
        search->outside_cell = cell;
        search->outside_value = value;
    }
}
"""

TAIL = r"""
static inline uint64_t hash(const state *s)
{
    uint64_t h = s->w[0];
    for (int i = 1; i < WORDS; i++) {
        h = (h ^ (h >> 32)) * 0xD6E8FEB86659FD93ull + s->w[i];
    }
    h *= 0x9E3779B97F4A7C15ull;
    return (h ^ (h >> 32)) * 0xD6E8FEB86659FD93ull;
}

static inline int same(const state *a, const state *b)
{
    uint64_t different = 0;
    for (int i = 0; i < WORDS; i++) different |= a->w[i] ^ b->w[i];
    return !different;
}

static inline int is_zero(const state *s)
{
    uint64_t any = 0;
    for (int i = 0; i < WORDS; i++) any |= s->w[i];
    return !any;
}

static inline uint64_t slot_of(const struct search *search, uint64_t hash)
{
    return (uint64_t)(((unsigned __int128)hash * search->slots) >> 64) & ~(uint64_t)(BUCKET - 1);
}

static void *pages(uint64_t bytes)
{
#ifdef __linux__
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return NULL;
    madvise(at, bytes, MADV_HUGEPAGE);
    return at;
#else
    return calloc(bytes, 1);
#endif
}

static void release(void *at, uint64_t bytes)
{
#ifdef __linux__
    if (at) munmap(at, bytes);
#else
    (void)bytes;
    free(at);
#endif
}

/* Return in which places of a bucket the state is, as bits. */
#if WORDS == 1 && defined(__AVX512F__)
static inline unsigned where(const state *bucket, const state *s)
{
    return _mm512_cmpeq_epi64_mask(_mm512_loadu_si512(bucket), _mm512_set1_epi64(s->w[0]));
}
#else
static inline unsigned where(const state *bucket, const state *s)
{
    unsigned hits = 0;
    for (int i = 0; i < BUCKET; i++) hits |= (unsigned)same(&bucket[i], s) << i;
    return hits;
}
#endif

/* Return whether the state was not there; it is now. The zero state has no slot: zero is empty. */
static inline int insert(struct search *search, const state *s, uint64_t at)
{
    static const state zero;
    if (__builtin_expect(is_zero(s), 0)) {
        int new = !search->has_zero;
        search->has_zero = 1;
        return new;
    }
    for (;;) {
        state *bucket = &search->table[at];
        if (where(bucket, s)) return 0;
        unsigned empty = where(bucket, &zero);
        if (empty) {
            bucket[__builtin_ctz(empty)] = *s;
            return 1;
        }
        at += BUCKET;
        if (at == search->slots) at = 0;
    }
}

static int refill(struct search *search, uint64_t slots)
{
    release(search->table, search->slots * sizeof(state));
    search->slots = 0;
    search->table = pages(slots * sizeof(state));
    if (!search->table) return -1;
    search->slots = slots;
    search->full_at = slots / 100 * FULL_PERCENT;
    search->has_zero = 0;
    for (uint64_t i = 0; i < search->count; i++) {
        if (i + AHEAD < search->count) {
            uint64_t ahead = slot_of(search, hash(&search->states[i + AHEAD]));
            __builtin_prefetch(&search->table[ahead], 1);
        }
        insert(search, &search->states[i], slot_of(search, hash(&search->states[i])));
    }
    return 0;
}

/* Make room for so many more states. */
static int reserve(struct search *search, uint64_t more)
{
    uint64_t wanted = search->count + more;
    if (wanted > search->room) {
        uint64_t room = wanted + wanted / 2 + BATCH;
        state *states = realloc(search->states, room * sizeof(state));
        if (!states) return -1;
        search->states = states;
        search->room = room;
    }
    if (wanted < search->full_at) return 0;
    uint64_t slots = search->slots;
    while (wanted >= slots / 100 * FULL_PERCENT) {
        slots += slots < (1u << 17) ? slots : slots / 64 * 24;
    }
    return refill(search, slots);
}

static inline void keep(struct search *search, const state *s)
{
    search->states[search->count++] = *s;
    int number = broken(s);
    if (__builtin_expect(number >= 0, 0)) search->broken_count[number]++;
}

static void take(struct search *search, uint64_t count)
{
    uint64_t kept = 0;
    for (uint64_t i = 0; i < count; i++) {
        canonical(&search->batch[i]);
        uint64_t h = hash(&search->batch[i]);
        state *recent = &search->recent[h % RECENT];
        int new = !same(recent, &search->batch[i]) | is_zero(recent);
        *recent = search->batch[i];
        search->batch[kept] = search->batch[i];
        search->hashes[kept] = slot_of(search, h);
        kept += new;
    }
    for (uint64_t i = 0; i < AHEAD && i < kept; i++) {
        __builtin_prefetch(&search->table[search->hashes[i]], 1);
    }
    for (uint64_t i = 0; i < kept; i++) {
        if (i + AHEAD < kept) __builtin_prefetch(&search->table[search->hashes[i + AHEAD]], 1);
        if (insert(search, &search->batch[i], search->hashes[i])) keep(search, &search->batch[i]);
    }
}

struct search *search_new(void)
{
    struct search *search = calloc(1, sizeof(struct search));
    if (!search) return NULL;
    search->outside_cell = -1;
    search->slots = 0;
    search->full_at = 0;
    if (refill(search, 1u << 12)) { free(search); return NULL; }
    return search;
}

void search_free(struct search *search)
{
    release(search->table, search->slots * sizeof(state));
    free(search->states);
    free(search);
}

/* Add states that other searching found; returns how many were new, or -1 without memory. */
int64_t search_add(struct search *search, const state *states, uint64_t count)
{
    uint64_t before = search->count;
    if (reserve(search, count)) return -1;
    for (uint64_t i = 0; i < count; i++) {
        if (insert(search, &states[i], slot_of(search, hash(&states[i])))) keep(search, &states[i]);
    }
    return search->count - before;
}

/* Expand states up to the one of that number, at most `most` of them; how many are expanded. */
int64_t search_expand(struct search *search, uint64_t end, uint64_t most)
{
    if (end - search->expanded > most) end = search->expanded + most;
    while (search->expanded < end) {
        uint64_t count = 0;
        if (reserve(search, BATCH + SUCCESSORS)) return -1;
        while (search->expanded < end && count < BATCH) {
            const state from = search->states[search->expanded];
            count += expand(search, &from, search->batch + count);
            search->expanded++;
        }
        if (search->outside_cell >= 0) return -2;
        take(search, count);
    }
    return search->expanded;
}

static inline int below(const state *a, const state *b)
{
    for (int i = WORDS - 1; i > 0; i--) {
        if (a->w[i] != b->w[i]) return a->w[i] < b->w[i];
    }
    return a->w[0] < b->w[0];
}

/* The number of the least state in the range of which the invariant is the first to fail. */
int64_t search_least_broken(struct search *search, uint64_t begin, uint64_t end, int invariant)
{
    int64_t best = -1;
    for (uint64_t i = begin; i < end; i++) {
        if (broken(&search->states[i]) != invariant) continue;
        if (best < 0 || below(&search->states[i], &search->states[best])) best = i;
    }
    return best;
}

/* The number of the least state in the range that has the target, or nothing, as a successor. */
int64_t search_origin(struct search *search, uint64_t begin, uint64_t end, const state *target)
{
    int64_t best = -1;
    for (uint64_t i = begin; i < end; i++) {
        int64_t count = expand(search, &search->states[i], search->batch);
        int found = !target && !count;
        for (int64_t j = 0; target && j < count; j++) {
            canonical(&search->batch[j]);
            found |= same(&search->batch[j], target);
        }
        if (!found) continue;
        if (best < 0 || below(&search->states[i], &search->states[best])) best = i;
    }
    return best;
}

void search_pass(struct search *s, uint64_t count) { s->expanded = count; }
void search_truncate(struct search *s, uint64_t count) { s->count = count; }
void search_forget_firings(struct search *s) { memset(s->firings, 0, sizeof s->firings); }
int64_t search_count(const struct search *s) { return s->count; }
const state *search_states(const struct search *s) { return s->states; }
const int64_t *search_firings(const struct search *s) { return s->firings; }
const int64_t *search_broken(const struct search *s) { return s->broken_count; }
int search_outside_cell(const struct search *s) { return s->outside_cell; }
int64_t search_outside_value(const struct search *s) { return s->outside_value; }
"""
