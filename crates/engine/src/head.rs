//! Signed tree heads.
//!
//! **Invariants**
//! - No two tree heads of one log contradict each other. A tree head is signed only if the log
//!   continues the stored tree head and the last one of the notary.
//! - The notary stores a tree head before any client can see it. *If the process dies after that:*
//!   the notary's tree head is ahead of the stored one, both are valid, and the next signing stores
//!   the newer one.
//! - A tree head covers durable events only: it is signed after the commit, on its own connection.
//! - Nothing is appended to a log that is known not to continue the last tree head: such events
//!   would be on a branch that is later discarded.

use crate::Error;
use ipse_core::{Identity, Seq, Time};
use ipse_ledger::TreeHead;
use ipse_store::{HeadWriter, Store, View};
use std::any::Any;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Minimum time in microseconds between two automatically signed tree heads.
pub const HEAD_EVERY: i64 = 1_000_000;

/// Signs the tree heads of one log, and stores the last one outside the store.
pub trait Notary: Send {
    /// Locks the keys until the returned value is dropped, so that no other process signs.
    fn lock(&self) -> io::Result<Box<dyn Any>>;
    /// The last signed tree head.
    fn last(&self) -> io::Result<Option<String>>;
    /// When the last tree head was signed.
    fn last_time(&self) -> Option<Time>;
    /// Signs the text of a tree head. Returns the signed note.
    fn sign(&self, text: &str) -> Option<String>;
    /// Whether a note is signed with the current key.
    fn signed(&self, note: &str) -> bool;
    /// Replaces the last tree head durably.
    fn keep(&self, note: &str) -> io::Result<()>;
}

/// Signs a tree head of the current log, or returns the stored one if it is equal.
pub fn sign_head(store: &Store, identity: &Identity, notary: &dyn Notary) -> Result<String, Error> {
    sign_with(&mut store.heads(identity)?, identity, notary)
}

/// The same with a handle that may have most of the tree in memory.
fn sign_with(
    writer: &mut HeadWriter,
    identity: &Identity,
    notary: &dyn Notary,
) -> Result<String, Error> {
    let _held = notary.lock().map_err(Error::Notary)?;
    let grown = writer.grow()?;
    let kept = notary.last().map_err(Error::Notary)?;
    for note in [&kept, &grown.stored].into_iter().flatten() {
        check(writer.view(), grown.size, identity, note)?;
    }
    let head =
        TreeHead { origin: TreeHead::origin_of(identity), size: grown.size, root: grown.root };
    // A tree head of a key that was revoked is signed again.
    let same = |note: &&String| head_of(note).as_ref() == Some(&head) && notary.signed(note);
    if let Some(note) = grown.stored.as_ref().filter(same) {
        return Ok(note.clone());
    }
    let note = match kept.filter(|note| same(&note)) {
        // The process died between `keep` and `put`, or the store was restored.
        Some(note) => note,
        None => {
            let note = notary
                .sign(&head.text())
                .ok_or(Error::NoHead("the tree head could not be signed"))?;
            notary.keep(&note).map_err(Error::Notary)?;
            note
        }
    };
    writer.put(&grown, &note)?;
    Ok(note)
}

/// Parses the tree head in a note, without a check of its signatures.
pub fn head_of(note: &str) -> Option<TreeHead> {
    TreeHead::of_note(note)
}

/// Fails if a log does not continue a signed tree head.
pub fn check_head(store: &Store, identity: &Identity, note: &str) -> Result<(), Error> {
    let reader = store.reader()?;
    let snapshot = reader.view(identity)?;
    check(snapshot.view(), snapshot.view().head()?.0, identity, note)
}

/// Fails if a log of `size` entries does not continue an earlier tree head. The root comes from
/// stored subtrees, so the cost does not grow with the length of the log.
pub(crate) fn check(
    view: View<'_>,
    size: u64,
    identity: &Identity,
    note: &str,
) -> Result<(), Error> {
    let head = head_of(note).ok_or(Error::NoHead("the last signed note is not a tree head"))?;
    if head.origin != TreeHead::origin_of(identity) {
        return Err(Error::NoHead("the last signed tree head is of another log"));
    }
    if head.size > size {
        return Err(Error::Behind { signed: head.size, stored: size });
    }
    if view.tree_root(head.size)? != head.root {
        return Err(Error::Forked { signed: head.size });
    }
    Ok(())
}

/// After a batch of at least this many events, a separate thread extends the tree.
const MANY: usize = 512;

/// The state of signing for one open log: the notary, the last signing, and the tree in memory.
pub(crate) struct Heads {
    store: Store,
    identity: Identity,
    notary: Box<dyn Notary>,
    /// When a tree head was last signed, if known.
    signed_at: Option<Time>,
    /// Whether a tree head is owed: something was committed after the last one.
    owed: bool,
    error: Option<Error>,
    /// The number of entries under the newest known tree head. The log never has fewer.
    signed: u64,
    /// How the log contradicts the last tree head, once that was detected.
    rolled_back: Option<Error>,
    /// Opened at first use.
    tree: Option<Tree>,
}

impl Heads {
    /// Fails if the log does not continue the last tree head of the notary.
    pub(crate) fn open(
        store: &Store,
        identity: Identity,
        notary: Box<dyn Notary>,
        view: View<'_>,
    ) -> Result<Self, Error> {
        let (store, signed_at) = (store.clone(), notary.last_time());
        let (owed, error, tree, signed, rolled_back) = (false, None, None, 0, None);
        let mut heads =
            Heads { store, identity, notary, signed_at, owed, error, signed, rolled_back, tree };
        heads.check(view)?;
        Ok(heads)
    }

    /// Compares the log with the last tree head of the notary. A rejected log stays rejected if the
    /// notary has no tree head any more: a new key begins a new history, and this process still
    /// signs with the old key.
    pub(crate) fn check(&mut self, view: View<'_>) -> Result<(), Error> {
        // The tree head is read first: the log may grow meanwhile, but never shrinks.
        let Some(note) = self.notary.last().map_err(Error::Notary)? else {
            return self.refused();
        };
        match check(view, view.head()?.0, &self.identity, &note) {
            Ok(()) => self.continues(&note),
            Err(error) => return Err(self.contradicted(error)),
        }
        Ok(())
    }

    /// Fails if a log with this many entries cannot be the signed one. This compares two numbers,
    /// so it is cheap enough for every append.
    pub(crate) fn allow(&mut self, stored: Seq) -> Result<(), Error> {
        self.refused()?;
        if stored.0 >= self.signed {
            return Ok(());
        }
        Err(self.contradicted(Error::Behind { signed: self.signed, stored: stored.0 }))
    }

    fn refused(&self) -> Result<(), Error> {
        self.rolled_back.as_ref().and_then(Error::rolled_back).map_or(Ok(()), Err)
    }

    /// Records that the log continues a tree head.
    fn continues(&mut self, note: &str) {
        self.signed = head_of(note).map_or(0, |head| head.size);
        self.rolled_back = None;
    }

    /// Records an error if it says that the log contradicts a tree head.
    fn contradicted(&mut self, error: Error) -> Error {
        if let Some(again) = error.rolled_back() {
            self.rolled_back = Some(again);
        }
        error
    }

    /// Records that durable events need a new tree head.
    pub(crate) fn owe(&mut self) {
        self.owed = true;
    }

    pub(crate) fn owed(&self) -> bool {
        self.owed
    }

    pub(crate) fn take_error(&mut self) -> Option<Error> {
        self.error.take()
    }

    pub(crate) fn sign(&mut self, now: Time) -> Result<String, Error> {
        self.signed_at = Some(now);
        let writer = self.tree()?.writer.clone();
        let mut writer = writer.lock().map_err(|_| Error::Poisoned)?;
        let signed = sign_with(&mut writer, &self.identity, &*self.notary);
        drop(writer);
        let note = signed.map_err(|error| self.contradicted(error))?;
        self.continues(&note);
        self.owed = false;
        Ok(note)
    }

    /// Signs a tree head if one is owed. A log that contradicts the last tree head is not retried
    /// until [`Heads::check`] succeeds.
    pub(crate) fn sign_owed(&mut self, now: Time) {
        if self.owed
            && self.rolled_back.is_none()
            && let Err(error) = self.sign(now)
        {
            self.error = Some(error);
        }
    }

    pub(crate) fn sign_if_due(&mut self, now: Time) {
        let since = self.signed_at.map(|at| now.micros() - at.micros());
        // A clock that went back is no reason to wait.
        if since.is_none_or(|since| !(0..HEAD_EVERY).contains(&since)) {
            self.sign_owed(now);
        }
    }

    /// Extends the tree in the background after a large batch.
    pub(crate) fn grow_behind(&mut self, events: usize) {
        // If the tree cannot be opened now, signing reports the error.
        if events >= MANY
            && let Ok(tree) = self.tree()
        {
            tree.grow_behind();
        }
    }

    fn tree(&mut self) -> Result<&mut Tree, Error> {
        match &mut self.tree {
            Some(tree) => Ok(tree),
            none => {
                let writer = self.store.heads(&self.identity)?;
                Ok(none.insert(Tree { writer: Arc::new(Mutex::new(writer)), thread: None }))
            }
        }
    }
}

/// A handle with the tree in memory, and a thread that hashes entries while more are appended.
struct Tree {
    writer: Arc<Mutex<HeadWriter>>,
    thread: Option<(SyncSender<()>, JoinHandle<()>)>,
}

impl Tree {
    /// Wakes the thread that extends the tree. If that fails, signing reports the error.
    fn grow_behind(&mut self) {
        let writer = &self.writer;
        let (wake, _) = self.thread.get_or_insert_with(|| {
            let (wake, woken) = sync_channel(1);
            let writer = writer.clone();
            (wake, std::thread::spawn(move || grow_when_woken(&writer, &woken)))
        });
        // If the queue is full, the thread covers this batch together with the last one.
        let _ = wake.try_send(());
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if let Some((wake, thread)) = self.thread.take() {
            drop(wake);
            // A thread that panicked left no state: the tree is computed again from the log.
            let _ = thread.join();
        }
    }
}

fn grow_when_woken(writer: &Mutex<HeadWriter>, woken: &Receiver<()>) {
    while woken.recv().is_ok() {
        let Ok(mut writer) = writer.lock() else { return };
        let _ = writer.grow();
    }
}
