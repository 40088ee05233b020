//! Files that a manifest names by their SHA-256.

use crate::place::Place;
use ipse_core::{Digest, Identity, sha256};
use ipse_store::{Error, MAX_ARTEFACT_BYTES};

fn stored(place: &Place, identity: &Identity) -> (Vec<Vec<u8>>, Option<Vec<u8>>) {
    let reader = place.store.reader().unwrap();
    let snapshot = reader.view(identity).unwrap();
    let name = Digest(sha256(&[b"a file"]));
    (snapshot.view().artefacts().unwrap(), snapshot.view().artefact(&name).unwrap())
}

pub(crate) fn a_file_is_stored_once_and_read_back(place: &Place) {
    assert_eq!(stored(place, &place.identity), (Vec::new(), None));
    assert!(place.store.put_artefact(&place.identity, b"a file").unwrap());
    assert!(!place.store.put_artefact(&place.identity, b"a file").unwrap(), "it is there");
    assert!(place.store.put_artefact(&place.identity, b"").unwrap(), "an empty file is a file");
    let names: Vec<Vec<u8>> =
        [&b"a file"[..], b""].iter().map(|bytes| sha256(&[bytes]).to_vec()).collect();
    assert_eq!(stored(place, &place.identity), (names, Some(b"a file".to_vec())));
    assert_eq!(stored(place, &place.other), (Vec::new(), None), "of another identity");
    assert!(place.store.put_artefact(&place.other, b"a file").unwrap(), "each has its copy");
    let unknown = place.store.put_artefact(&Identity([9; 32]), b"a file");
    assert!(matches!(unknown, Err(Error::UnknownIdentity(_))));
}

pub(crate) fn a_file_beyond_the_limit_is_not_stored(place: &Place) {
    let bytes = vec![b'x'; MAX_ARTEFACT_BYTES + 1];
    let refused = place.store.put_artefact(&place.identity, &bytes).unwrap_err();
    assert!(refused.to_string().contains(&MAX_ARTEFACT_BYTES.to_string()), "{refused}");
    assert!(place.store.put_artefact(&place.identity, &bytes[1..]).unwrap());
    assert_eq!(stored(place, &place.identity).0.len(), 1);
}
