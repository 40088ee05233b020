//! The contract that every engine of a store must fulfil.
//!
//! Each test is a function of a [`Place`], which an engine creates. A new engine adds one line to
//! [`engines`] and no test.
#![allow(missing_docs, clippy::unwrap_used)]

mod artefacts;
mod events;
mod facts;
mod place;
mod transactions;
mod trees;

/// Generates a test for each function and each engine.
macro_rules! contract {
    ($($module:ident::$test:ident,)*) => {
        engines! { $($module::$test,)* }
    };
}

/// The engines: a name, and the function that creates a store.
macro_rules! engines {
    ($($module:ident::$test:ident,)*) => {
        mod file {
            $(#[test]
            fn $test() {
                crate::$module::$test(&crate::place::Place::file());
            })*
        }
        /// The failing wrapper forwards every call while no fault is planned.
        mod failing_never {
            $(#[test]
            fn $test() {
                crate::$module::$test(&crate::place::Place::failing());
            })*
        }
    };
}

contract! {
    artefacts::a_file_is_stored_once_and_read_back,
    artefacts::a_file_beyond_the_limit_is_not_stored,
    events::positions_are_dense_and_events_are_read_back,
    events::a_name_is_taken_once_within_a_set_and_across_sets,
    events::what_is_not_admitted_is_looked_up_and_not_stored,
    events::pages_join_without_a_gap,
    events::events_at_positions_come_in_the_order_that_was_asked_for,
    events::events_are_found_by_type_by_text_and_from_the_end,
    events::a_scan_passes_every_event_once_in_both_directions,
    events::missing_chunks_are_made_again,
    events::a_chunk_that_was_rolled_back_is_not_believed,
    events::forgetting_takes_the_content_and_leaves_the_entry,
    events::a_log_is_restored_only_where_there_is_none,
    facts::facts_and_sums_are_sets,
    facts::facts_of_another_identity_do_not_exist,
    facts::another_rule_set_starts_from_nothing,
    facts::passes_are_listed_and_give_the_progress,
    transactions::a_batch_is_all_or_nothing,
    transactions::a_pass_that_fails_keeps_the_events,
    transactions::a_pass_alone_that_fails_ends_its_batch,
    transactions::a_snapshot_is_of_one_moment,
    transactions::writers_take_turns,
    transactions::a_watch_sees_what_others_write,
    transactions::everything_is_there_after_reopening,
    transactions::readers_use_connections_again,
    transactions::an_unknown_identity_is_an_error,
    transactions::registering_is_idempotent,
    transactions::an_identity_without_events_is_removed_with_all_that_is_its_own,
    transactions::a_removed_log_is_not_written_to_and_not_used_again,
    transactions::settings_belong_to_an_identity,
    transactions::live_tokens_are_limited_and_revoked_permanently,
    transactions::tokens_of_the_store_belong_to_no_identity,
    trees::the_tree_follows_from_the_entries,
    trees::a_tree_head_is_swapped_only_for_the_one_that_was_seen,
    trees::cosignatures_stay_with_their_tree_head,
    trees::a_tree_head_has_as_many_cosignatures_as_fit_into_a_note,
    trees::statements_are_numbered_and_kept_as_they_came,
    trees::a_healthy_store_has_no_damage,
}
