//! Requests to a witness: cosign the newest tree head.
//!
//! **Invariant:** nothing here opens a connection. The body is returned, and the operator posts it.

use crate::Error;
use crate::consistency::{ConsistencyAnswer, prove_consistency};
use ipse_core::json::{Members, list, quoted};
use ipse_ledger::{CosignRequest, base64};
use ipse_store::View;

/// The answer to the wish for a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RequestAnswer {
    /// The body to post.
    Request(CosignRequest),
    /// No tree head is signed yet.
    Unsigned,
    /// The newest signed tree head has only this many entries; 0 is nothing to cosign.
    Beyond(u64),
}

/// The request to cosign the newest tree head, for a witness that last cosigned `since` entries.
/// Without `since` that is the newest tree head with a cosignature in the store.
pub fn cosign_request(view: View<'_>, since: Option<u64>) -> Result<RequestAnswer, Error> {
    let Some(newest) = crate::SignedHead::newest(view)? else {
        return Ok(RequestAnswer::Unsigned);
    };
    let cosigned = view.newest_cosignatures()?.first().map_or(0, |cosigned| cosigned.size);
    let old = since.unwrap_or(if cosigned > newest.size { 0 } else { cosigned });
    if newest.size == 0 || old > newest.size {
        return Ok(RequestAnswer::Beyond(newest.size));
    }
    Ok(match prove_consistency(view, old, None)? {
        ConsistencyAnswer::Proof(proof) => {
            let (proof, note) = (proof.hashes, proof.tree_head);
            RequestAnswer::Request(CosignRequest { old, proof, note })
        }
        _ => RequestAnswer::Unsigned,
    })
}

/// A request as JSON.
pub fn request_json(request: &CosignRequest) -> String {
    let proof = request.proof.iter().map(|hash| quoted(&base64::encode(hash)));
    Members::new()
        .text("note", &request.note)
        .raw("old", request.old)
        .raw("proof", list(proof))
        .finish()
}
