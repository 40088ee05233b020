//! The tokens of `serve --dev`.
//!
//! **Invariant:** their texts and hashes are in the memory of this process only. No function here
//! writes to the store.

use crate::terminal::Terminal;
use anyhow::{Context as _, bail};
use ipse::SystemHost;
use ipse_access::{NewToken, Owner, Role, Token, make};
use ipse_core::Identity;
use ipse_engine::Host;
use ipse_store::Store;
use std::net::IpAddr;

/// One token for each role: the text, and the token that the server compares it with.
pub(super) struct DevTokens(Vec<(Role, String, Owner, Token)>);

impl DevTokens {
    /// Makes the tokens of the only agent of a store.
    pub(super) fn make(store: &Store, listen: IpAddr) -> anyhow::Result<Self> {
        if !listen.is_loopback() {
            bail!(
                "--dev serves on loopback only, not on {listen}: its tokens are printed and act in \
                 every role. Without --dev, `ipse token create` makes tokens"
            );
        }
        let manifests = store.reader()?.manifests()?;
        let [(hash, _)] = manifests.as_slice() else {
            bail!(
                "--dev serves a store with one identity, and this one holds {}: use `ipse token \
                 create --identity PREFIX`",
                manifests.len()
            );
        };
        let identity = Identity::parse(hash).context("the store is damaged: no identity")?;
        let token = |role: Role| {
            let owner = match role {
                Role::Observer => Owner::Store,
                _ => Owner::Identity(identity),
            };
            let (name, sources) = (Some("dev".to_owned()), Vec::new());
            let new = NewToken { role, name, sources, expires: None };
            let now = SystemHost::new().now();
            let (text, token) = make(owner, new, SystemHost::random(), now)?;
            Ok((role, text, owner, token))
        };
        let tokens: anyhow::Result<Vec<_>> = Role::ALL.into_iter().map(token).collect();
        Ok(DevTokens(tokens?))
    }

    /// The tokens with their owners.
    pub(super) fn tokens(&self) -> Vec<(Owner, Token)> {
        self.0.iter().map(|(_, _, owner, token)| (*owner, token.clone())).collect()
    }

    /// Prints the addresses and the tokens, in lines that a shell understands.
    pub(super) fn tell(&self, terminal: &mut Terminal<'_>, url: &str) -> anyhow::Result<()> {
        let out = &mut terminal.out;
        writeln!(out, "# {url}/ and {url}/docs describe what is here. These tokens end with this")?;
        writeln!(out, "# process and are stored nowhere; paste the lines into another shell.")?;
        writeln!(out, "export IPSE_URL={url}")?;
        for (role, text, _, _) in &self.0 {
            writeln!(out, "export IPSE_{}={text}", role.name().to_uppercase())?;
        }
        writeln!(
            out,
            "# curl -H \"Authorization: Bearer $IPSE_PLANNER\" $IPSE_URL/api/agent/grounding"
        )?;
        Ok(out.flush()?)
    }
}
