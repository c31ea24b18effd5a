//! Roles of a node: which endpoints it serves and which workers it runs.
//!
//! Nodes that share a database may divide the work. By default a node has every role.

/// Endpoint whose path begins like the REST API's, although it records events.
const WEB_EVENTS: &str = "/api/v1/apps/{appId}/web-events";
/// Path prefixes of the other endpoints that record what devices, visitors and providers send.
const ACCEPTING: [&str; 6] = [
    "/api/track/",
    "/api/webhook/",
    "/.well-known/",
    "/c/",
    "/w/",
    "/g/",
];
/// Endpoints that every node serves, because they describe the node itself.
const ON_EVERY_NODE: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// A role of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeRole {
    /// Serves taps, the SDK, web events, webhooks and postbacks.
    Accept,
    /// Runs the forwarder and the workers.
    Forward,
    /// Serves the REST API, exports and the dashboard.
    Report,
}

crate::keywords! { NodeRole[3] { Accept => "accept", Forward => "forward", Report => "report" } }

impl NodeRole {
    /// Returns the role that a node needs for a route, given as a template. `None` if every node
    /// serves the route.
    pub fn required_by(route: &str) -> Option<Self> {
        if ON_EVERY_NODE.contains(&route) {
            None
        } else if route == WEB_EVENTS || ACCEPTING.iter().any(|prefix| route.starts_with(prefix)) {
            Some(Self::Accept)
        } else {
            Some(Self::Report)
        }
    }
}

/// The roles of a node; at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeRoles {
    accept: bool,
    forward: bool,
    report: bool,
}

impl NodeRoles {
    /// Every role.
    pub const ALL: Self = Self {
        accept: true,
        forward: true,
        report: true,
    };

    /// Parses roles. `None` if there are none, or if one is unknown.
    pub fn parse<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let names = names.into_iter().map(NodeRole::parse);
        let roles = names.collect::<Option<Vec<NodeRole>>>()?;
        (!roles.is_empty()).then(|| Self {
            accept: roles.contains(&NodeRole::Accept),
            forward: roles.contains(&NodeRole::Forward),
            report: roles.contains(&NodeRole::Report),
        })
    }

    /// Returns whether the node has this role.
    pub const fn has(self, role: NodeRole) -> bool {
        match role {
            NodeRole::Accept => self.accept,
            NodeRole::Forward => self.forward,
            NodeRole::Report => self.report,
        }
    }

    /// Returns the roles that the node has.
    pub fn present(self) -> impl Iterator<Item = NodeRole> {
        NodeRole::ALL
            .into_iter()
            .filter(move |role| self.has(*role))
    }

    /// Returns the roles that other nodes of the database must have.
    pub fn missing(self) -> impl Iterator<Item = NodeRole> {
        NodeRole::ALL
            .into_iter()
            .filter(move |role| !self.has(*role))
    }

    /// Returns the role that the node lacks for a route; `None` if it serves the route.
    pub fn missing_for(self, route: &str) -> Option<NodeRole> {
        if self == Self::ALL {
            return None;
        }
        NodeRole::required_by(route).filter(|role| !self.has(*role))
    }
}

impl std::fmt::Display for NodeRoles {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.present().map(NodeRole::as_str).collect();
        formatter.write_str(&names.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::tap("/c/{id}", Some(NodeRole::Accept))]
    #[case::web_tap("/w/{id}", Some(NodeRole::Accept))]
    #[case::landing_page("/g/{id}", Some(NodeRole::Accept))]
    #[case::landing_style("/g/page.css", Some(NodeRole::Accept))]
    #[case::sdk("/api/track/events", Some(NodeRole::Accept))]
    #[case::web_events("/api/v1/apps/{appId}/web-events", Some(NodeRole::Accept))]
    #[case::webhook("/api/webhook/{provider}/{appId}", Some(NodeRole::Accept))]
    #[case::postback("/.well-known/skadnetwork/report-attribution", Some(NodeRole::Accept))]
    #[case::association_file("/.well-known/assetlinks.json", Some(NodeRole::Accept))]
    #[case::overview("/api/v1/apps/{appId}/overview", Some(NodeRole::Report))]
    #[case::settings("/api/v1/apps/{appId}", Some(NodeRole::Report))]
    #[case::export("/api/v1/apps/{appId}/export", Some(NodeRole::Report))]
    #[case::reference("/api/v1/docs", Some(NodeRole::Report))]
    #[case::openapi("/openapi.yaml", Some(NodeRole::Report))]
    #[case::front("/", Some(NodeRole::Report))]
    #[case::page("/apps/{app}/explore", Some(NodeRole::Report))]
    #[case::liveness("/healthz", None)]
    #[case::readiness("/readyz", None)]
    #[case::metrics("/metrics", None)]
    fn routes_need_roles(#[case] route: &str, #[case] expected: Option<NodeRole>) {
        assert_eq!(NodeRole::required_by(route), expected);
        assert_eq!(NodeRoles::ALL.missing_for(route), None);
        for role in NodeRole::ALL {
            let node = NodeRoles::parse([role.as_str()]).unwrap();
            let missing = expected.filter(|needed| *needed != role);
            assert_eq!(node.missing_for(route), missing, "{node}");
        }
    }

    #[rstest]
    #[case::one(&["report"], Some("report"))]
    #[case::ordered(&["report", "accept"], Some("accept,report"))]
    #[case::repeated(&["forward", "forward"], Some("forward"))]
    #[case::all(&["accept", "forward", "report"], Some("accept,forward,report"))]
    #[case::none(&[], None)]
    #[case::unknown(&["accept", "reports"], None)]
    #[case::empty(&[""], None)]
    fn parses_roles(#[case] names: &[&str], #[case] expected: Option<&str>) {
        let parsed = NodeRoles::parse(names.iter().copied()).map(|roles| roles.to_string());
        assert_eq!(parsed.as_deref(), expected);
    }

    #[test]
    fn other_nodes_need_the_missing_roles() {
        let roles = NodeRoles::parse(["accept"]).unwrap();
        let missing: Vec<NodeRole> = roles.missing().collect();
        assert_eq!(missing, [NodeRole::Forward, NodeRole::Report]);
        assert_eq!(NodeRoles::ALL.missing().count(), 0);
    }
}
