//! Signed tree heads: what the log says about itself, for good.
//!
//! **Invariants**
//! - No two heads of one log contradict each other. A head is signed only if every head before it
//!   that is known, in the store or where the notary keeps the last one, is its beginning.
//! - A head is kept by the notary before anybody can see it. *If it dies after that:* the notary's
//!   head is ahead of the store's, both are true, and the next signing brings them together.
//! - It covers durable events only: signing comes after the commit, on a connection of its own.
//! - Nothing is appended to a log that is known not to continue the last head: it would be lost
//!   with the branch that it is on.

use crate::Error;
use ipse_core::{Identity, Seq, Time};
use ipse_ledger::{Note, TreeHead};
use ipse_store::{HeadWriter, Store, View};
use std::any::Any;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Microseconds between two heads that are signed by themselves, at least.
pub const HEAD_EVERY: i64 = 1_000_000;

/// Who signs the heads of one log, and keeps the last one outside the store.
pub trait Notary: Send {
    /// Held while a head is signed: nobody else signs with these keys meanwhile.
    fn lock(&self) -> io::Result<Box<dyn Any>>;
    /// The last head that was signed here.
    fn last(&self) -> io::Result<Option<String>>;
    /// When that was.
    fn last_time(&self) -> Option<Time>;
    /// Signs a head's text.
    fn sign(&self, text: &str) -> Option<String>;
    /// Whether a note is signed with the key that signs now.
    fn signed(&self, note: &str) -> bool;
    /// Keeps a head, durably, in place of the last one.
    fn keep(&self, note: &str) -> io::Result<()>;
}

/// Signs the head of a log as it is now, or hands out the one that says the same already.
pub fn sign_head(store: &Store, identity: &Identity, notary: &dyn Notary) -> Result<String, Error> {
    sign_with(&mut store.heads(identity)?, identity, notary)
}

/// The same with a handle that may know most of the tree already.
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
    // A head of a key that was revoked since is signed anew.
    let same = |note: &&String| head_of(note).as_ref() == Some(&head) && notary.signed(note);
    if let Some(note) = grown.stored.as_ref().filter(same) {
        return Ok(note.clone());
    }
    let note = match kept.filter(|note| same(&note)) {
        // It died between the two, or the store was restored: the head is there already.
        Some(note) => note,
        None => {
            let note = notary.sign(&head.text()).ok_or(Error::NoHead("that was to be signed"))?;
            notary.keep(&note).map_err(Error::Notary)?;
            note
        }
    };
    writer.put(&grown, &note)?;
    Ok(note)
}

/// The head in a note; whether it was signed by whom it should be is not looked at.
pub fn head_of(note: &str) -> Option<TreeHead> {
    TreeHead::parse(Note::parse(note).ok()?.text)
}

/// Compares a log with a signed head; an error if it does not continue that head.
pub fn check_head(store: &Store, identity: &Identity, note: &str) -> Result<(), Error> {
    let reader = store.reader()?;
    let snapshot = reader.view(identity)?;
    check(snapshot.view(), snapshot.view().head()?.0, identity, note)
}

/// An earlier head must be the beginning of a log of `size` entries. The root comes from stored
/// subtrees, so the cost does not follow the length of the log.
pub(crate) fn check(
    view: View<'_>,
    size: u64,
    identity: &Identity,
    note: &str,
) -> Result<(), Error> {
    let head = head_of(note).ok_or(Error::NoHead("that was signed last"))?;
    if head.origin != TreeHead::origin_of(identity) {
        return Err(Error::NoHead("of this log"));
    }
    if head.size > size {
        return Err(Error::Behind { signed: head.size, stored: size });
    }
    if view.tree_root(head.size)? != head.root {
        return Err(Error::Forked { signed: head.size });
    }
    Ok(())
}

/// Events of a batch from which on the tree grows behind it, on a thread of its own.
const MANY: usize = 512;

/// The heads of one log while it is open: who signs them, when, and the tree as far as it is known.
pub(crate) struct Heads {
    store: Store,
    identity: Identity,
    notary: Box<dyn Notary>,
    /// When a head was last signed, as far as is known.
    signed_at: Option<Time>,
    /// Whether a pass came after the last head.
    owed: bool,
    error: Option<Error>,
    /// Entries under the newest head that is known here: the log never has fewer.
    signed: u64,
    /// How the log contradicts the last head, once that was noticed.
    rolled_back: Option<Error>,
    /// Opened when it is first needed.
    tree: Option<Tree>,
}

impl Heads {
    /// An error if the log does not continue the last head that the notary keeps.
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

    /// Compares the log with the last head that the notary keeps. A log that was refused stays
    /// refused if no head is kept any more: a key that begins a new history is not the one that
    /// this process signs with.
    pub(crate) fn check(&mut self, view: View<'_>) -> Result<(), Error> {
        // The head is read first: the log may have grown since, and never shrinks.
        let Some(note) = self.notary.last().map_err(Error::Notary)? else {
            return self.refused();
        };
        match check(view, view.head()?.0, &self.identity, &note) {
            Ok(()) => self.continues(&note),
            Err(error) => return Err(self.contradicted(error)),
        }
        Ok(())
    }

    /// An error if the log, with that many entries, cannot be the one that was signed. It costs a
    /// comparison of two numbers, and so it comes before every append.
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

    /// The log continues a head.
    fn continues(&mut self, note: &str) {
        self.signed = head_of(note).map_or(0, |head| head.size);
        self.rolled_back = None;
    }

    /// Remembers an error if it says that the log contradicts a head.
    fn contradicted(&mut self, error: Error) -> Error {
        if let Some(again) = error.rolled_back() {
            self.rolled_back = Some(again);
        }
        error
    }

    /// Something is durable that a head is to cover soon.
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

    /// Signs a head that is owed. A log that contradicts the last head is not tried again and
    /// again: [`Heads::check`] says when it continues it.
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

    /// Lets the tree grow behind a large batch.
    pub(crate) fn grow_behind(&mut self, events: usize) {
        // If it cannot be opened now, signing says why.
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

/// A handle that knows the tree, and a thread that hashes entries while more are appended.
struct Tree {
    writer: Arc<Mutex<HeadWriter>>,
    thread: Option<(SyncSender<()>, JoinHandle<()>)>,
}

impl Tree {
    /// Lets it grow over what is durable, meanwhile. If that fails, signing says so.
    fn grow_behind(&mut self) {
        let writer = &self.writer;
        let (wake, _) = self.thread.get_or_insert_with(|| {
            let (wake, woken) = sync_channel(1);
            let writer = writer.clone();
            (wake, std::thread::spawn(move || grow_when_woken(&writer, &woken)))
        });
        // If it has not begun with the last batch yet, it takes this one along.
        let _ = wake.try_send(());
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if let Some((wake, thread)) = self.thread.take() {
            drop(wake);
            // A thread that panicked has left nothing behind: the tree is made again from the log.
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
