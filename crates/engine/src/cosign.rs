//! Cosignatures of witnesses: a statement that a tree head continues all that the witness saw.
//!
//! **Invariants:** a cosignature is stored only if the log continues its tree head. It must
//! verify under the key of a witness that the caller trusts, or be in a bundle that verified.

use crate::Error;
use crate::head::{check, head_of};
use ipse_core::Identity;
use ipse_ledger::cosignature::{cosignatures, signed_by};
use ipse_ledger::{Cosignature, Note, TreeHead, WitnessKey};
use ipse_store::{CosignatureWriter, Cosigned, PutCosignature, Store};

/// The result of adding the answer of a witness.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cosigning {
    /// The cosignature is stored.
    Stored(Cosignature),
    /// The tree head has this cosignature of the witness already, which stays.
    Known(Cosignature),
    /// The tree head has as many cosignatures as fit into a note.
    Full,
    /// The answer has no cosignature by the key of the witness.
    Missing,
    /// The cosignature is not one of this tree head.
    Wrong,
}

/// Stores the cosignature of a witness under a signed tree head of the log. `answer` holds the
/// lines that the witness sent; lines of other keys are ignored.
pub fn add_cosignature(
    store: &Store,
    identity: &Identity,
    note: &str,
    answer: &str,
    witness: &WitnessKey,
) -> Result<Cosigning, Error> {
    let mut writer = store.cosigner(identity)?;
    let view = writer.view();
    check(view, view.head()?.0, identity, note)?;
    let Ok(head) = Note::parse(note) else { return Err(Error::NoHead("this is no signed note")) };
    let by_witness = cosignatures(answer).into_iter().filter(|one| one.names(witness));
    let (valid, others): (Vec<_>, Vec<_>) =
        by_witness.partition(|one| one.verifies(head.text, witness));
    let Some(cosignature) = valid.into_iter().next() else {
        return Ok(if others.is_empty() { Cosigning::Missing } else { Cosigning::Wrong });
    };
    match put_cosignature(&mut writer, identity, note, &cosignature)? {
        PutCosignature::New => Ok(Cosigning::Stored(cosignature)),
        PutCosignature::Full => Ok(Cosigning::Full),
        PutCosignature::Known => {
            let stored = writer.view().cosignatures(head_of(note).map_or(0, |head| head.size))?;
            let stored = stored.into_iter().find(|one| one.key == cosignature.key_id());
            let stored = stored.and_then(|one| Cosignature::parse(&one.line));
            // One from a bundle was stored without the key, and may be wrong.
            let stored = stored.filter(|one| one.verifies(head.text, witness));
            Ok(stored.map_or(Cosigning::Wrong, Cosigning::Known))
        }
    }
}

/// Stores all cosignatures in the signed tree head of a bundle that verified, of any witness.
/// Returns how many are new.
pub fn keep_cosignatures(store: &Store, identity: &Identity, note: &str) -> Result<u64, Error> {
    let found = cosignatures(note);
    if found.is_empty() || head_of(note).is_none_or(|head| head.size == 0) {
        return Ok(0);
    }
    let mut writer = store.cosigner(identity)?;
    let view = writer.view();
    check(view, view.head()?.0, identity, note)?;
    let mut new = 0;
    for cosignature in &found {
        let put = put_cosignature(&mut writer, identity, note, cosignature)?;
        new += u64::from(put == PutCosignature::New);
    }
    Ok(new)
}

fn put_cosignature(
    writer: &mut CosignatureWriter,
    identity: &Identity,
    note: &str,
    cosignature: &Cosignature,
) -> Result<PutCosignature, Error> {
    let head = head_of(note).ok_or(Error::NoHead("the note is not a tree head"))?;
    let note = signed_by(note, &TreeHead::origin_of(identity));
    let (size, key, line) = (head.size, cosignature.key_id(), cosignature.line());
    Ok(writer.put(&Cosigned { size, key, line, note })?)
}
