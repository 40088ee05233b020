//! Errors of experiments.

/// Why an experiment could not be run.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The engine could not.
    #[error(transparent)]
    Engine(#[from] ipse_engine::Error),
    /// The store could not.
    #[error(transparent)]
    Store(#[from] ipse_store::Error),
    /// An event did not pass the door.
    #[error("an event was refused")]
    Refused(#[from] ipse_door::Refusal),
    /// A manifest was wrong.
    #[error("the manifest of an experiment cannot be made")]
    Manifest(#[from] ipse_manifest::ManifestError),
    /// A pass did not make the fact that an experiment is about.
    #[error("BUG: a pass did not make the fact that the experiment reads")]
    NoFact,
    /// A store lost the manifest that was registered.
    #[error("BUG: the store does not hold the manifest that was registered")]
    NoManifest,
    /// The server of an experiment did not answer as it should.
    #[error("the server of the experiment failed: {0}")]
    Endpoint(String),
    /// A scratch file could not be used.
    #[error("a scratch file could not be used")]
    Scratch(#[from] std::io::Error),
    /// A figure could not be drawn.
    #[error("the figure {name} could not be drawn: {reason}")]
    Figure {
        /// Which.
        name: &'static str,
        /// What the renderer says.
        reason: String,
    },
}
