//! The tools that call the REST API, described for a model that has never heard of Tributary.

/// A tool that calls one endpoint.
#[derive(Debug)]
pub(crate) struct ToolSpec {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) description: &'static str,
    /// Operation id of the endpoint.
    pub(super) operation: &'static str,
    /// The parameters that the tool shows. `None` shows all.
    pub(super) parameters: Option<&'static [&'static str]>,
    /// Parameters that the endpoint makes optional, and the tool requires.
    pub(super) required: &'static [&'static str],
}

const fn tool(
    name: &'static str,
    title: &'static str,
    operation: &'static str,
    description: &'static str,
) -> ToolSpec {
    ToolSpec {
        name,
        title,
        description,
        operation,
        parameters: None,
        required: &[],
    }
}

/// The tools, in the order in which a question usually needs them.
pub(crate) const REST_TOOLS: &[ToolSpec] = &[
    tool(
        "list_apps",
        "List apps",
        "listApps",
        "Lists the apps of the organization with ids, names and settings. Start here: almost every \
         other tool needs an app id (`appId`, such as `app_01k9…`).",
    ),
    tool(
        "get_overview",
        "Get an app's key figures",
        "getOverview",
        "Summarizes an app for a range of days: clicks, installs, events, revenue, cost and return on ad \
         spend, each compared with the preceding period; a daily series; and the top links, campaigns and \
         networks. Use it for \"how is the app doing?\".",
    ),
    tool(
        "get_stats",
        "Get report figures",
        "getStats",
        "Returns figures (clicks, installs, events, revenue, cost) grouped by up to three dimensions, such \
         as `day,network` or `campaign`, with filters and a range of days. `meta.totals` contains the \
         totals. Use it for any question about numbers by time, network, campaign, link, country, platform \
         or event. An event counts for the network, link and campaign that its install is attributed to; \
         `organic` has none.",
    ),
    tool(
        "get_cohorts",
        "Get cohorts",
        "getCohorts",
        "Returns retention and revenue of the devices that installed in the same day, week or month, by age \
         in days. Use it for retention, lifetime value and payback.",
    ),
    tool(
        "compare_apps",
        "Compare apps",
        "getPortfolio",
        "Returns the key figures of all apps side by side, compared with the preceding period.",
    ),
    tool(
        "list_events",
        "List events",
        "listEvents",
        "Lists single events (sign-ups, purchases, refunds, …), newest first, with their device, amount, \
         source, attribution, and for each ad network whether the event was delivered or the reason why it \
         was not. For counts and sums use get_stats: it is exact and much shorter.",
    ),
    ToolSpec {
        parameters: Some(&["appId", "eventId"]),
        required: &["eventId"],
        ..tool(
            "get_event",
            "Get one event",
            "listEvents",
            "Returns one event by the id that its sender gave it, with its attribution and what happened to it \
             at each ad network. The list is empty if there is no such event; it may have two entries if two \
             sources used the same id.",
        )
    },
    tool(
        "explain_device",
        "Explain an attribution",
        "getDevice",
        "Explains why an install belongs to a click, or to none: the decision with its reason, all clicks \
         that were considered with their score and the reason for rejecting them, and the device's latest \
         events. `deviceId` is in each event.",
    ),
    tool(
        "list_deliveries",
        "List deliveries",
        "listDeliveries",
        "Lists deliveries: one event on its way to one ad network, with its status (`pending`, `delivered`, \
         `failed`, …) and the reason. Filter by `status`, `network` and day. An event that was skipped has \
         no delivery; see get_undelivered.",
    ),
    tool(
        "get_delivery",
        "Get one delivery",
        "getDelivery",
        "Returns one delivery with all its attempts: times, status codes and the network's answers.",
    ),
    tool(
        "get_undelivered",
        "Summarize what was not delivered",
        "getUndelivered",
        "Counts the events that ad networks did not receive, by network, reason and event name. \
         `losesConversion` says whether the network lost something that it should have got. Use it for \"why \
         does the network show fewer conversions?\". Read the document FORWARDING.md for the reasons.",
    ),
    tool(
        "list_integrations",
        "List integrations",
        "listIntegrations",
        "Lists an app's connections to the ad networks: whether they are enabled or paused and why, which \
         events are mapped, and how many deliveries are pending, delivered and failed. Credentials are never \
         shown.",
    ),
    tool(
        "list_links",
        "List tracking links",
        "listLinks",
        "Lists an app's tracking links with their URLs, networks, campaigns, destinations, folders and tags.",
    ),
    tool(
        "create_link",
        "Create a tracking link",
        "createLink",
        "Creates a tracking link. Only `appId` and `name` are required. The result contains the URL to share. \
         Ask the user before you create one.",
    ),
];
