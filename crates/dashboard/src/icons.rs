//! Icons of the menu and of apps, drawn as lines on a grid of 20 × 20.

use tributary_domain::vocabulary::digest::Digest;
use tributary_store::AppName;

/// Number of colours for apps, as in the style sheet.
const APP_COLOURS: u8 = 5;

/// Returns the path of an icon; empty for an unknown name.
pub(crate) fn path(name: &str) -> &'static str {
    match name {
        "grid" => "M3 3h5v5H3zM12 3h5v5h-5zM3 12h5v5H3zM12 12h5v5h-5z",
        "chart" => "M3 17V3M3 17h14M6 13l3-4 3 2 4-6",
        "table" => "M3 4h14v12H3zM3 8h14M8 8v8",
        "cohorts" => "M3 5h14M3 10h9M3 15h5",
        "pulse" => "M2 10h4l2-6 4 12 2-6h4",
        "link" => {
            "M8.5 11.5l3-3M7 9l-2.5 2.5a2.8 2.8 0 004 4L11 13M13 11l2.5-2.5a2.8 2.8 0 00-4-4L9 7"
        }
        "plug" => "M7 3v4M13 3v4M5 7h10v3a5 5 0 01-10 0zM10 15v3",
        "send" => "M3 10L17 3l-4 14-3-5zM10 12l7-9",
        "shield" => "M10 2l6 2v5c0 4-2.5 7-6 9-3.5-2-6-5-6-9V4zM7.5 9.5l2 2 3.5-3.5",
        "values" => "M4 16V9M8 16V5M12 16v-4M16 16V7",
        "coin" => {
            "M10 3a7 7 0 100 14 7 7 0 000-14M12.5 7.5c-1-1-4.5-1-4.5 1s4.5 1 4.5 3-3.5 2-4.5 1M10 5.5v9"
        }
        "bell" => "M5 14V9a5 5 0 0110 0v5l1.5 1.5h-13zM8.5 17.5h3",
        "gear" => {
            "M10 7a3 3 0 100 6 3 3 0 000-6M10 2v3M10 15v3M2 10h3M15 10h3M4.3 4.3l2.2 2.2M13.5 13.5l2.2 2.2M4.3 15.7l2.2-2.2M13.5 6.5l2.2-2.2"
        }
        "flag" => "M5 18V3h10l-2.5 3.5L15 10H5",
        "key" => "M7 9a4 4 0 104 4L17 7V4h-3L8 10",
        "people" => {
            "M7 9a3 3 0 100-6 3 3 0 000 6M2 17a5 5 0 0110 0M13 9a3 3 0 000-6M14 12a5 5 0 014 5"
        }
        "person" => "M10 9a3 3 0 100-6 3 3 0 000 6M4 17a6 6 0 0112 0",
        "list" => "M7 5h10M7 10h10M7 15h10M3 5h.5M3 10h.5M3 15h.5",
        "search" => "M8.5 3a5.5 5.5 0 100 11 5.5 5.5 0 000-11M13 13l4 4",
        "share" => "M10 12V3M6.5 6L10 2.5 13.5 6M4 10v7h12v-7",
        "bookmark" => "M6 3h8v14l-4-3-4 3z",
        _ => "",
    }
}

/// Returns the number of an app's colour. It depends on the app's id, so that it stays.
pub(crate) fn app_colour(app: &AppName) -> u8 {
    let digest = Digest::of(app.id.to_string().as_bytes());
    digest.as_bytes().first().copied().unwrap_or_default() % APP_COLOURS + 1
}

/// Returns the first letter or digit of an app's name.
pub(crate) fn app_letter(app: &AppName) -> String {
    let mut letters = app
        .name
        .as_str()
        .chars()
        .filter(|one| one.is_alphanumeric());
    letters.next().map_or_else(
        || "•".to_owned(),
        |letter| letter.to_uppercase().to_string(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_icon_of_the_templates_exists() {
        let (menu, app) = (
            include_str!("../templates/menu.html"),
            include_str!("../templates/app.html"),
        );
        let entries = menu.lines().filter(|line| line.contains("call entry("));
        let symbols = entries.map(|line| line.split('"').rev().nth(3).unwrap());
        let used = app.split("menu::icon(\"").skip(1);
        let used = used.map(|rest| rest.split('"').next().unwrap());
        let names: Vec<&str> = symbols.chain(used).collect();
        assert!(names.len() > 10, "{names:?}");
        for name in names {
            assert_ne!(path(name), "", "{name}");
        }
    }
}
