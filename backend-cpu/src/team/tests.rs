use std::sync::atomic::AtomicU64;
use std::time::Instant;

use super::*;

#[test]
fn members_work_at_the_same_time_and_threads_are_kept() {
    let team = Team::new(4);
    for members in [1, 4, 2, 3, 4, 9] {
        let (sum, count) = (AtomicUsize::new(0), AtomicUsize::new(0));
        team.run(members, &|member| {
            sum.fetch_add(member.index + 1, Ordering::Relaxed);
            member.wait_for_all(|| count.store(sum.load(Ordering::Relaxed), Ordering::Relaxed));
            // no member passes the barrier before the last member has arrived
            assert_eq!(count.load(Ordering::Relaxed), member.count() * (member.count() + 1) / 2);
        });
        let members = members.min(4);
        assert_eq!(sum.into_inner(), members * (members + 1) / 2);
    }
    assert_eq!(team.threads.as_ref().unwrap().workers(0).list.len(), 3);
}

#[test]
fn every_piece_is_taken_once_in_each_round() {
    let team = Team::new(3);
    let (pieces, counts) = (WorkCounter::default(), [const { AtomicU64::new(0) }; 100]);
    team.run(3, &|member| {
        for round in 1..200 {
            while let Some(piece) = pieces.take(counts.len()) {
                counts[piece].fetch_add(1, Ordering::Relaxed);
            }
            member.wait_for_all(|| pieces.refill());
            assert!(counts.iter().all(|count| (round..=round + 1).contains(&count.load(Ordering::Relaxed))));
        }
    });
}

/// When `run_in_time` returns, every piece of work is done, even if some members start too late. A member that starts too late is
/// free for the next job.
#[test]
fn a_job_does_not_wait_for_those_who_come_too_late() {
    let team = Team::new(3);
    for round in 0..2000 {
        let (pieces, done, begun) = (WorkCounter::default(), AtomicUsize::new(0), AtomicUsize::new(0));
        team.run_in_time(3, &|_| {
            begun.fetch_add(1, Ordering::Relaxed);
            while pieces.take(5).is_some() {
                done.fetch_add(1, Ordering::Relaxed);
            }
        });
        assert!(done.into_inner() == 5 && (1..=3).contains(&begun.into_inner()));
        if round % 100 == 0 {
            team.run(3, &|member| member.wait_for_all(|| ()));
            // this pause is long enough for the threads to fall asleep
            thread::sleep(2 * SPIN);
        }
    }
    let panicked = catch_unwind(AssertUnwindSafe(|| team.run_in_time(3, &|member| assert!(member.index > 0, "the caller"))));
    assert!(panicked.is_err());
}

#[test]
fn a_panic_ends_the_job_of_those_who_wait_and_reaches_the_caller() {
    let team = Team::new(3);
    for wrong in 0..3 {
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            team.run(3, &|member| {
                assert!(member.index != wrong, "member {wrong}");
                member.wait_for_all(|| ());
            });
        }));
        let message = panicked.unwrap_err().downcast::<String>().unwrap();
        assert_eq!(*message, format!("member {wrong}"));
        team.run(3, &|member| member.wait_for_all(|| ()));
    }
}

#[test]
fn calls_from_several_threads_take_turns_also_after_a_rest() {
    let team = Team::new(2);
    let (working, calls) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for pause in [0, 300] {
            scope.spawn({
                let (team, working, calls) = (&team, &working, &calls);
                move || {
                    for _ in 0..200 {
                        team.run(2, &|member| {
                            assert!(working.fetch_add(1, Ordering::Relaxed) < 2);
                            member.wait_for_all(|| ());
                            working.fetch_sub(1, Ordering::Relaxed);
                            calls.fetch_add(1, Ordering::Relaxed);
                            member.wait_for_all(|| ());
                        });
                        thread::sleep(Duration::from_micros(pause));
                    }
                }
            });
        }
    });
    assert_eq!(calls.into_inner(), 800);
}

#[cfg(target_os = "linux")]
#[test]
fn a_job_has_no_more_members_than_cores_are_left() {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let team = Team::new(64);
    let before = sched_getaffinity(None).unwrap();
    let mut one = CpuSet::new();
    one.set((0..CpuSet::MAX_CPU).find(|&cpu| before.is_set(cpu)).unwrap());
    sched_setaffinity(None, &one).unwrap();
    // other tests update the cached number of cores too, from threads that may use all cores
    let deadline = Instant::now() + Duration::from_secs(20);
    while team.members(1e9) != 1 {
        assert!(Instant::now() < deadline, "{} members", team.members(1e9));
        thread::sleep(Duration::from_millis(20));
    }
    sched_setaffinity(None, &before).unwrap();
    assert_eq!((team.members(0.5), team.members(f64::NAN)), (1, 1));
}

#[cfg(target_os = "linux")]
#[test]
fn threads_are_started_anew_in_another_process() {
    let team = Arc::new(Team::new(2));
    team.run(2, &|member| member.wait_for_all(|| ()));
    // simulates a fork: the process id differs, and no thread reads these mailboxes
    let mut workers = team.threads.as_ref().unwrap().workers.lock().unwrap();
    workers.process += 1;
    workers.list.iter_mut().for_each(|worker| worker.mailbox = Arc::default());
    drop(workers);
    let (sender, receiver) = std::sync::mpsc::channel();
    thread::spawn(move || {
        team.run(2, &|member| member.wait_for_all(|| sender.send(member.count()).unwrap()));
    });
    assert_eq!(receiver.recv_timeout(Duration::from_secs(20)), Ok(2));
}

#[test]
fn a_job_of_any_number_of_members_is_done_when_it_returns() {
    for size in [2, 5, 16] {
        let team = Team::new(size);
        for round in 0..20_000_usize {
            let (pieces, done) = (WorkCounter::default(), AtomicUsize::new(0));
            team.run_in_time(1 + round % size, &|_| {
                while pieces.take(7).is_some() {
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
            assert_eq!(done.into_inner(), 7);
            if round % 1000 == 0 {
                thread::sleep(2 * SPIN);
            }
        }
    }
}

/// The caller wakes some threads with masks that lack the caller's core, and these threads wake further threads of the team. All
/// threads must get the whole mask of the caller back. This test can fail only on three cores or more; the tests in
/// [`super::placement`] can fail on two cores.
#[cfg(target_os = "linux")]
#[test]
fn threads_of_a_large_team_have_all_cores_of_the_caller() {
    use rustix::thread::sched_getaffinity;
    let (team, whole) = (Team::new(WAKES + 5), sched_getaffinity(None).unwrap());
    for _ in 0..5 {
        team.run(WAKES + 5, &|member| member.wait_for_all(|| ()));
        // this pause is long enough for the threads to fall asleep
        thread::sleep(Duration::from_millis(20));
    }
    for worker in &team.threads.as_ref().unwrap().workers(0).list {
        assert!(worker.mailbox.placement.whole().is_none_or(|mask| mask == whole));
    }
}

/// A new thread can be moved away from its creator's core only after it has registered. The creator waits for the registration for
/// at most [`SPIN_AT_BARRIER`]. The test ignores rounds in which the registration took longer than [`SPIN_AT_BARRIER`].
#[test]
fn threads_are_known_before_their_first_job() {
    let in_time = (0..20).filter(|_| {
        let (team, start) = (Team::eager(4), Instant::now());
        let workers = team.threads.as_ref().unwrap().workers(3);
        let is_in_time = start.elapsed() < SPIN_AT_BARRIER;
        assert!(!is_in_time || workers.list.iter().all(|worker| worker.mailbox.placement.is_known()));
        is_in_time
    });
    assert_ne!(in_time.count(), 0, "20 teams have started too slowly to tell");
}

/// A thread that was woken with fewer cores in its mask may run on all cores again after its job.
#[cfg(target_os = "linux")]
#[test]
fn a_thread_has_all_cores_again_after_its_job() {
    use std::sync::atomic::AtomicBool;

    use rustix::thread::sched_getaffinity;
    let (team, whole) = (Team::new(2), sched_getaffinity(None).unwrap());
    let has_all = || {
        let all = AtomicBool::new(false);
        team.run(2, &|member| {
            if member.index == 1 {
                all.store(sched_getaffinity(None).unwrap() == whole, Ordering::Relaxed);
            }
        });
        all.into_inner()
    };
    // the first job wakes the thread, which may fall asleep before the second job if the system is busy
    let after_a_job = || {
        has_all();
        has_all()
    };
    assert!((0..1000).any(|_| after_a_job()));
}
