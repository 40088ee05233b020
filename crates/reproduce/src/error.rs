//! Errors of experiments.

/// The reason why an experiment could not run.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The engine failed.
    #[error(transparent)]
    Engine(#[from] ipse_engine::Error),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] ipse_store::Error),
    /// The door rejected an event of the experiment.
    #[error("an event was rejected")]
    Refused(#[from] ipse_door::Refusal),
    /// The manifest of an experiment is invalid.
    #[error("the manifest of an experiment is invalid")]
    Manifest(#[from] ipse_manifest::ManifestError),
    /// A pass did not produce the fact that an experiment reads.
    #[error("BUG: a pass did not produce the fact that the experiment reads")]
    NoFact,
    /// A store lost the manifest that was registered.
    #[error("BUG: the store does not hold the manifest that was registered")]
    NoManifest,
    /// The server of an experiment returned an error or a wrong response.
    #[error("the server of the experiment failed: {0}")]
    Endpoint(String),
    /// A scratch file could not be used.
    #[error("a scratch file could not be used")]
    Scratch(#[from] std::io::Error),
    /// A figure could not be drawn.
    #[error("the figure {name} could not be drawn: {reason}")]
    Figure {
        /// The name of the figure.
        name: &'static str,
        /// The error of the renderer.
        reason: String,
    },
}
