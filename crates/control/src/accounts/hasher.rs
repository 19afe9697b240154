//! Passwords, and what is kept of them: Argon2id (RFC 9106), on a thread of its own.
//!
//! Invariants
//! - One password at a time is computed, and at most [`WAITING`] wait to be compared: memory and
//!   time that logins cost have a bound. Who guesses leaves room for [`NEW`] ones.
//! - Memory that there is none of is told, and ends nothing. What a password takes is kept for the
//!   next: a data core doesn't feel pages come and go, and the allocator has no holes of that size.
//!   Nothing of a password stays in it.
//! - A name that no account has costs what a name that one has costs.

use crate::chance;
use crate::lock::lock;
use argon2::password_hash::{Ident, Output, ParamsString, PasswordHash, Salt, SaltString};
use argon2::{ARGON2ID_IDENT, Algorithm, Argon2, Block, Params, Version};
use redfish::access::Secret;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use subtle::ConstantTimeEq;
use tokio::sync::oneshot;

/// KiB of memory that a password takes to compute.
pub const MEMORY_KIB: u32 = 19_456;

/// How often it goes through this memory.
pub const PASSES: u32 = 2;

/// The most memory that what was kept may ask for.
const MOST_KIB: u32 = 1 << 18;

/// So many passwords wait at most to be compared.
pub const WAITING: usize = 16;

/// So many more may wait that somebody chose who has logged in.
const NEW: usize = 4;

/// Bytes of what a password is mixed with.
const SALT_BYTES: usize = 16;

/// Bytes of what comes out.
const OUT_BYTES: usize = 32;

/// Why a password was not computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Busy {
    /// Too many wait.
    Full,
    /// There is no memory, or the thread could not be started.
    Unable,
}

type Reply<T> = oneshot::Sender<Result<T, Busy>>;

enum Task {
    Make(Secret, Reply<String>),
    Check(Secret, String, Waits, Reply<bool>),
    /// Waits until the other end is dropped.
    #[cfg(test)]
    Wait(Receiver<()>),
}

/// The thread's other end. It is started when it is first needed, and ends when this is dropped.
#[derive(Default)]
pub struct Hasher {
    tasks: Mutex<Option<SyncSender<Task>>>,
    /// Passwords that wait to be compared.
    checks: Arc<AtomicUsize>,
}

/// A password that waits to be compared.
struct Waits(Arc<AtomicUsize>);

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Hasher {
    /// What is kept of a new password, in PHC's form.
    ///
    /// # Errors
    /// Too many wait, or there is no memory.
    pub async fn make(&self, password: Secret) -> Result<String, Busy> {
        self.ask(|reply| Task::Make(password, reply)).await
    }

    /// Whether a password is the one of which this was kept. None was kept of an unknown name.
    ///
    /// # Errors
    /// Too many wait, or there is no memory.
    pub async fn check(&self, password: Secret, kept: Option<&str>) -> Result<bool, Busy> {
        let against = kept.map(str::to_owned).or_else(of_nobody).ok_or(Busy::Unable)?;
        let before = self.checks.fetch_add(1, Ordering::Relaxed);
        let waits = Waits(self.checks.clone());
        if before >= WAITING {
            return Err(Busy::Full);
        }
        let is_right = self.ask(|reply| Task::Check(password, against, waits, reply)).await?;
        Ok(is_right && kept.is_some())
    }

    fn send(&self, task: Task) -> Result<(), Busy> {
        let mut tasks = lock(&self.tasks);
        let sender = match tasks.take() {
            Some(sender) => sender,
            None => start().map_err(|_| Busy::Unable)?,
        };
        match tasks.insert(sender).try_send(task) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(_)) => Err(Busy::Full),
            Err(TrySendError::Disconnected(_)) => {
                *tasks = None;
                Err(Busy::Unable)
            }
        }
    }

    /// Computes nothing until what this gives is dropped.
    #[cfg(test)]
    pub fn hold(&self) -> std::sync::mpsc::Sender<()> {
        let (holder, until) = std::sync::mpsc::channel();
        self.send(Task::Wait(until)).expect("there is room");
        holder
    }

    async fn ask<T>(&self, task: impl FnOnce(Reply<T>) -> Task) -> Result<T, Busy> {
        let (reply, answer) = oneshot::channel();
        self.send(task(reply))?;
        answer.await.unwrap_or(Err(Busy::Unable))
    }
}

fn start() -> io::Result<SyncSender<Task>> {
    let (tasks, waiting) = sync_channel(WAITING + NEW);
    std::thread::Builder::new().name("passwords".to_owned()).spawn(move || work(&waiting))?;
    Ok(tasks)
}

/// What a password of an unknown name is compared with: it costs the same, and none is like it.
fn of_nobody() -> Option<String> {
    text(&[0; SALT_BYTES], &[0; OUT_BYTES])
}

/// The thread.
fn work(tasks: &Receiver<Task>) {
    let mut memory = Memory::default();
    while let Ok(task) = tasks.recv() {
        // Who asked may have gone.
        match task {
            Task::Make(password, reply) => {
                let _ = reply.send(make(&password, &mut memory).ok_or(Busy::Unable));
            }
            Task::Check(password, kept, waits, reply) => {
                drop(waits);
                let _ = reply.send(check(&password, &kept, &mut memory).ok_or(Busy::Unable));
            }
            #[cfg(test)]
            Task::Wait(until) => drop(until.recv()),
        }
    }
}

fn usual() -> Option<Params> {
    Params::new(MEMORY_KIB, PASSES, 1, Some(OUT_BYTES)).ok()
}

/// What passwords are mixed in. It has the usual size once there was one.
#[derive(Default)]
struct Memory(Vec<Block>);

impl Memory {
    /// So many blocks; none if there is no memory.
    fn blocks(&mut self, count: usize) -> Option<&mut [Block]> {
        self.0.try_reserve_exact(count.saturating_sub(self.0.len())).ok()?;
        if self.0.len() < count {
            self.0.resize(count, Block::default());
        }
        self.0.get_mut(..count)
    }

    /// Wipes it. What is beyond the usual size is let go.
    fn wipe(&mut self) {
        let usual = usual().map_or(0, |params| params.block_count());
        self.0.fill(Block::default());
        self.0.truncate(usual);
        self.0.shrink_to(usual);
    }
}

/// Mixes a password.
fn compute(
    password: &Secret,
    salt: &[u8],
    (params, version): (Params, Version),
    memory: &mut Memory,
) -> Option<Vec<u8>> {
    let mut out = vec![0; params.output_len().unwrap_or(OUT_BYTES)];
    let blocks = memory.blocks(params.block_count())?;
    let argon = Argon2::new(Algorithm::Argon2id, version, params);
    let password = password.reveal().as_bytes();
    let done = argon.hash_password_into_with_memory(password, salt, &mut out, blocks);
    memory.wipe();
    done.ok().map(|()| out)
}

fn make(password: &Secret, memory: &mut Memory) -> Option<String> {
    let salt: [u8; SALT_BYTES] = chance::bytes().ok()?;
    text(&salt, &compute(password, &salt, (usual()?, Version::V0x13), memory)?)
}

/// PHC's form of what came out.
fn text(salt: &[u8], out: &[u8]) -> Option<String> {
    let salt = SaltString::encode_b64(salt).ok()?;
    let hash = PasswordHash {
        algorithm: Ident::new_unwrap(ARGON2ID_IDENT.as_str()),
        version: Some(Version::V0x13.into()),
        params: ParamsString::try_from(&usual()?).ok()?,
        salt: Some(salt.as_salt()),
        hash: Some(Output::new(out).ok()?),
    };
    Some(hash.to_string())
}

/// Whether this is the password; none if it can't be computed.
fn check(password: &Secret, kept: &str, memory: &mut Memory) -> Option<bool> {
    let hash = PasswordHash::new(kept).ok().filter(|hash| hash.algorithm == ARGON2ID_IDENT)?;
    let params = Params::try_from(&hash).ok().filter(|own| own.m_cost() <= MOST_KIB)?;
    let version = Version::try_from(hash.version?).ok()?;
    let mut salt = [0; Salt::MAX_LENGTH];
    let salt = hash.salt?.decode_b64(&mut salt).ok()?;
    let out = compute(password, salt, (params, version), memory)?;
    Some(bool::from(out.as_slice().ct_eq(hash.hash?.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_known_again_and_no_other_is() {
        let memory = &mut Memory::default();
        let (one, other) = (Secret::new("correct horse"), Secret::new("correct hors"));
        let kept = make(&one, memory).expect("computed");
        assert!(kept.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{kept}");
        assert_eq!(check(&one, &kept, memory), Some(true));
        assert_eq!(check(&other, &kept, memory), Some(false));
        assert_ne!(make(&one, memory), Some(kept), "no two are alike");
    }

    /// OWASP's least for Argon2id, and RFC 9106's version.
    #[test]
    fn passwords_cost_what_they_should() {
        let kept = make(&Secret::new("x"), &mut Memory::default()).expect("computed");
        let hash = PasswordHash::new(&kept).expect("is one");
        let params = Params::try_from(&hash).expect("are some");
        assert!(params.m_cost() >= 19 * 1024 && params.t_cost() >= 2);
        assert_eq!((hash.algorithm, hash.version), (ARGON2ID_IDENT, Some(0x13)));
        assert!(hash.hash.expect("is there").len() >= 32);
        assert!(hash.salt.expect("is there").as_str().len() >= 22);
    }

    #[test]
    fn what_is_not_of_ours_is_not_computed() {
        let memory = &mut Memory::default();
        for kept in ["", "x", "$argon2d$v=19$m=19456,t=2,p=1$c29tZXNhbHQ$AAAAAAAAAAAAAAAAAAAAAA"] {
            assert_eq!(check(&Secret::new("x"), kept, memory), None, "{kept}");
        }
        let huge = "$argon2id$v=19$m=4000000,t=2,p=1$c29tZXNhbHQ$AAAAAAAAAAAAAAAAAAAAAA";
        assert_eq!(check(&Secret::new("x"), huge, memory), None);
    }

    #[test]
    fn memory_is_kept_and_holds_nothing_of_a_password() {
        let (memory, one) = (&mut Memory::default(), Secret::new("x"));
        let size = usual().expect("are some").block_count();
        let kept = make(&one, memory).expect("computed");
        // More of it, as a file from elsewhere may ask for, is let go afterwards.
        let more = Params::new(2 * MEMORY_KIB, 1, 1, None).expect("are some");
        assert!(compute(&one, &[1; 16], (more, Version::V0x13), memory).is_some());
        assert_eq!((memory.0.len(), memory.0.capacity()), (size, size));
        assert_eq!(check(&one, &kept, memory), Some(true));
        assert!(memory.0.iter().all(|block| block.as_ref().iter().all(|word| *word == 0)));
    }

    #[test]
    fn so_many_wait_and_unknown_names_are_computed_too() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let hasher = Hasher::default();
            let kept = hasher.make(Secret::new("x")).await.expect("made");
            let ask = |kept: Option<&'static str>| hasher.check(Secret::new("x"), kept);
            assert_eq!(hasher.check(Secret::new("x"), Some(&kept)).await, Ok(true));
            assert_eq!(ask(None).await, Ok(false));
            let begun = std::time::Instant::now();
            let mut all = Vec::new();
            for _ in 0..2 * WAITING {
                all.push(ask(None));
            }
            // All are begun before any is answered.
            let mut told = Vec::new();
            let mut all: Vec<_> = all.into_iter().map(Box::pin).collect();
            core::future::poll_fn(|cx| {
                for one in &mut all {
                    if let core::task::Poll::Ready(outcome) = one.as_mut().poll(cx) {
                        told.push(outcome);
                    }
                }
                core::task::Poll::Ready(())
            })
            .await;
            let full = told.iter().filter(|told| **told == Err(Busy::Full)).count();
            assert!((WAITING - 2..=WAITING).contains(&full), "{told:?} {:?}", begun.elapsed());
        });
    }
}
