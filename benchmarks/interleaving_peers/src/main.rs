//! Two protocols of a queue, under Loom and under Shuttle.
//!
//! `main RUNS` prints a line for each search: protocol, tool, way, runs, whether these were all,
//! what was found, milliseconds. The protocols are those of `interleaving_peers.py`, access for
//! access; what each means is said there.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Arc as Plain;
use std::time::Instant;

const AT_REST: usize = 0;
const SCHEDULED: usize = 1;
const RUNNING: usize = 2;

/// The protocols over the cells of a library.
///
/// A read is an addition of nothing. Loom knows weaker memory than the brokers' languages have, in
/// which a plain read may be given an old value; what changes a cell is always given the latest.
macro_rules! protocols {
    ($library:ident, $name:ident) => {
        pub mod $name {
            use super::{AT_REST, RUNNING, SCHEDULED};
            use ::$library::sync::atomic::{AtomicUsize, Ordering::AcqRel, Ordering::Acquire};
            use ::$library::sync::Arc;
            use ::$library::thread;

            struct Cell(AtomicUsize);

            impl Cell {
                fn new(value: usize) -> Self {
                    Cell(AtomicUsize::new(value))
                }
                fn get(&self) -> usize {
                    self.0.fetch_add(0, AcqRel)
                }
                fn set(&self, value: usize) {
                    self.0.swap(value, AcqRel);
                }
                fn compare_and_set(&self, expected: usize, value: usize) -> bool {
                    self.0.compare_exchange(expected, value, AcqRel, Acquire).is_ok()
                }
            }

            struct Runner {
                waiting: Cell,
                changed: Cell,
                state: Cell,
                asks_too_early: bool,
            }

            impl Runner {
                fn enqueue(&self) {
                    self.waiting.0.fetch_add(1, AcqRel);
                    self.changed.set(1);
                    if self.state.compare_and_set(AT_REST, SCHEDULED) {
                        self.run();
                    }
                }

                fn run(&self) {
                    loop {
                        self.state.set(RUNNING);
                        self.changed.set(0);
                        while self.waiting.get() != 0 {
                            self.waiting.0.fetch_sub(1, AcqRel);
                        }
                        let again = if self.asks_too_early {
                            let again = self.changed.compare_and_set(1, 0);
                            self.state.set(AT_REST);
                            again
                        } else {
                            self.state.set(AT_REST);
                            self.changed.compare_and_set(1, 0)
                        };
                        if !again || !self.state.compare_and_set(AT_REST, SCHEDULED) {
                            return;
                        }
                    }
                }
            }

            pub fn runner(threads: usize, asks_too_early: bool) {
                let shared = Arc::new(Runner {
                    waiting: Cell::new(0),
                    changed: Cell::new(0),
                    state: Cell::new(AT_REST),
                    asks_too_early,
                });
                let all: Vec<_> = (0..threads)
                    .map(|_| {
                        let shared = shared.clone();
                        thread::spawn(move || shared.enqueue())
                    })
                    .collect();
                for each in all {
                    each.join().unwrap();
                }
                assert_eq!(shared.waiting.get(), 0, "a message waits, and no thread was woken");
            }

            const NOTHING: usize = 0;
            const ENTRY: usize = 1;

            trait Returning: Send + Sync + 'static {
                /// The entry, if it is there and ahead of the place; moves the place over it if not.
                fn next_available(&self) -> usize;
                /// Make the entry available and move the place back to it.
                fn give_back(&self);
            }

            fn seek_and_give_back(place: impl Returning, seekers: usize) {
                let shared = Arc::new(place);
                let mut all: Vec<_> = (0..seekers)
                    .map(|_| {
                        let shared = shared.clone();
                        thread::spawn(move || {
                            shared.next_available();
                        })
                    })
                    .collect();
                let giver = shared.clone();
                all.push(thread::spawn(move || giver.give_back()));
                for each in all {
                    each.join().unwrap();
                }
                assert_eq!(shared.next_available(), ENTRY, "what came back is passed for ever");
            }

            struct Place {
                available: Cell,
                last_seen: Cell,
                released: Cell,
            }

            impl Returning for Place {
                fn next_available(&self) -> usize {
                    loop {
                        let last_seen = self.last_seen.get();
                        let released = self.released.get();
                        let next = if released != NOTHING && last_seen >= released {
                            released
                        } else if last_seen < ENTRY {
                            last_seen + 1
                        } else {
                            return NOTHING;
                        };
                        if self.available.get() == 1 {
                            return next;
                        }
                        if self.last_seen.compare_and_set(last_seen, next) {
                            self.released.compare_and_set(released, NOTHING);
                        }
                    }
                }

                fn give_back(&self) {
                    self.available.set(1);
                    while self.available.get() == 1 {
                        let released = self.released.get();
                        if released != NOTHING || self.released.compare_and_set(NOTHING, ENTRY) {
                            return;
                        }
                    }
                }
            }

            pub fn place(seekers: usize) {
                let place = Place {
                    available: Cell::new(0),
                    last_seen: Cell::new(ENTRY),
                    released: Cell::new(ENTRY),
                };
                seek_and_give_back(place, seekers);
            }

            struct OnePlace {
                available: Cell,
                place: Cell,
            }

            /// The number of the change, what was seen last, what was released.
            fn packed(change: usize, last_seen: usize, released: usize) -> usize {
                change << 8 | last_seen << 4 | released
            }

            impl Returning for OnePlace {
                fn next_available(&self) -> usize {
                    loop {
                        let place = self.place.get();
                        let (last_seen, released) = (place >> 4 & 15, place & 15);
                        let next = if released != NOTHING && last_seen >= released {
                            released
                        } else if last_seen < ENTRY {
                            last_seen + 1
                        } else {
                            return NOTHING;
                        };
                        if self.available.get() == 1 {
                            return next;
                        }
                        let moved = packed((place >> 8) + 1, next, NOTHING);
                        self.place.compare_and_set(place, moved);
                    }
                }

                fn give_back(&self) {
                    self.available.set(1);
                    while self.available.get() == 1 {
                        let place = self.place.get();
                        let lowered = packed((place >> 8) + 1, place >> 4 & 15, ENTRY);
                        if self.place.compare_and_set(place, lowered) {
                            return;
                        }
                    }
                }
            }

            pub fn one_place(seekers: usize) {
                let place = OnePlace {
                    available: Cell::new(0),
                    place: Cell::new(packed(0, ENTRY, ENTRY)),
                };
                seek_and_give_back(place, seekers);
            }
        }
    };
}

protocols!(loom, under_loom);
protocols!(shuttle, under_shuttle);

/// Run a search, count how often its body is begun, and print the line; fewer than `all_below` runs
/// without a finding were all there are.
fn line(
    protocol: &str,
    tool: &str,
    way: &str,
    all_below: usize,
    body: fn(),
    search: impl FnOnce(Box<dyn Fn() + Send + Sync>),
) {
    let runs = Plain::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let begun = Instant::now();
    let ended = catch_unwind(AssertUnwindSafe(|| {
        search(Box::new(move || {
            counted.fetch_add(1, Relaxed);
            body();
        }))
    }));
    println!(
        "{protocol}\t{tool}\t{way}\t{}\t{}\t{}\t{:.3}",
        runs.load(Relaxed),
        if ended.is_ok() && runs.load(Relaxed) + 1 < all_below { "all" } else { "" },
        if ended.is_ok() { "" } else { "found" },
        begun.elapsed().as_secs_f64() * 1e3,
    );
}

fn by_loom(protocol: &str, runs: usize, body: fn()) {
    line(protocol, "loom", "every interleaving", runs, body, |counted| {
        let mut search = loom::model::Builder::new();
        search.max_branches = 100_000;
        search.max_permutations = Some(runs);
        search.check(counted);
    });
}

fn by_shuttle(protocol: &str, runs: usize, body: fn()) {
    line(protocol, "shuttle", "priorities at random", 0, body, |counted| {
        let priorities = shuttle::scheduler::PctScheduler::new_from_seed(0, 3, runs);
        shuttle::Runner::new(priorities, shuttle::Config::new()).run(counted);
    });
    line(protocol, "shuttle", "depth first", runs, body, |counted| {
        let depth_first = shuttle::scheduler::DfsScheduler::new(Some(runs), false);
        shuttle::Runner::new(depth_first, shuttle::Config::new()).run(counted);
    });
}

fn main() {
    let runs: usize = std::env::args().nth(1).and_then(|each| each.parse().ok()).expect("RUNS");
    // A schedule that fails is counted, not printed.
    std::panic::set_hook(Box::new(|_| ()));
    by_loom("runner, asks too early", runs, || under_loom::runner(2, true));
    by_shuttle("runner, asks too early", runs, || under_shuttle::runner(2, true));
    by_loom("runner", runs, || under_loom::runner(2, false));
    by_shuttle("runner", runs, || under_shuttle::runner(2, false));
    by_loom("place in two", runs, || under_loom::place(1));
    by_shuttle("place in two", runs, || under_shuttle::place(1));
    by_loom("place in one", runs, || under_loom::one_place(1));
    by_shuttle("place in one", runs, || under_shuttle::one_place(1));
    by_loom("place in one, two seek", runs, || under_loom::one_place(2));
    by_shuttle("place in one, two seek", runs, || under_shuttle::one_place(2));
}
