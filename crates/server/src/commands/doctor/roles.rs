//! Shows the roles of this node.

use super::check::DoctorCheck;
use tributary_domain::node_role::{NodeRole, NodeRoles};

/// Names the roles, and those that other nodes must have. The warning that no node merges increments
/// comes from the database.
pub(super) fn judge(roles: NodeRoles) -> DoctorCheck {
    const AREA: &str = "roles";
    let missing: Vec<&str> = roles.missing().map(NodeRole::as_str).collect();
    if missing.is_empty() {
        return DoctorCheck::ok(AREA, roles.to_string());
    }
    let mut message = format!("{roles}; other nodes must have: {}", missing.join(","));
    if !roles.has(NodeRole::Forward) {
        message += " (without a node with the role forward, nothing is delivered and reports fail \
                    after a while)";
    }
    DoctorCheck::ok(AREA, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::all(&["accept", "forward", "report"], "accept,forward,report")]
    #[case::no_report(&["accept", "forward"], "accept,forward; other nodes must have: report")]
    #[case::no_forward(
        &["accept", "report"],
        "accept,report; other nodes must have: forward (without a node with the role forward, \
         nothing is delivered and reports fail after a while)"
    )]
    fn names_the_roles_that_other_nodes_must_have(#[case] names: &[&str], #[case] expected: &str) {
        let roles = NodeRoles::parse(names.iter().copied()).unwrap();
        assert_eq!(judge(roles).message, expected);
    }
}
