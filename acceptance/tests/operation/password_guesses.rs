//! Password guesses are limited on all nodes together, and the owner of the account signs in meanwhile.

use reqwest::{Client, RequestBuilder};
use std::collections::BTreeMap;
use tributary_testkit::{Engine, ServerProcess, TestDatabase, on_both_engines};

/// Guesses at the same time.
const GUESSES: usize = 400;
/// Guesses that may be evaluated: five, of which the password of the new account is the first.
const EVALUATED_MAX: usize = 4;

/// Posts a form to a node.
fn form(client: &Client, node: &str, path: &str, password: &str) -> RequestBuilder {
    client
        .post(format!("{node}{path}"))
        .header("origin", node)
        .header("content-type", "application/x-www-form-urlencoded")
        .body(format!("email=you%40example.com&password={password}"))
}

on_both_engines! {
    async fn guesses_at_the_same_time_are_limited_on_all_nodes_together(engine: Engine) {
        let database = TestDatabase::new(engine).await;
        let mut nodes = vec![ServerProcess::start(&database).await];
        let output = nodes[0].output();
        let link = output.split_whitespace().find(|word| word.contains("/setup/setup_"));
        let path = link.expect("the first start prints a link").strip_prefix(nodes[0].base_url());
        let client = Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().unwrap();

        let right = "a+lazy+fox+in+the+coal+mine";
        let created = form(&client, nodes[0].base_url(), path.unwrap(), right).send().await.unwrap();
        let cookies = created.headers().get_all("set-cookie");
        let cookies = cookies.iter().map(|cookie| cookie.to_str().unwrap().split(';').next().unwrap());
        let browser = cookies.into_iter().find(|cookie| cookie.starts_with("tributary-browser="));
        let browser = browser.expect("the browser is known").to_owned();

        if engine == Engine::Postgres {
            nodes.push(ServerProcess::start(&database).await);
        }
        let bases: Vec<&str> = nodes.iter().map(ServerProcess::base_url).collect();
        let guesses: Vec<_> = (0..GUESSES)
            .map(|index| {
                let guess = form(&client, bases[index % bases.len()], "/sign-in", &format!("guess+{index}"));
                tokio::spawn(async move { guess.send().await.unwrap().status().as_u16() })
            })
            .collect();
        let mut statuses = BTreeMap::<u16, usize>::new();
        for guess in guesses {
            *statuses.entry(guess.await.unwrap()).or_default() += 1;
        }
        assert_eq!(statuses.get(&422), Some(&EVALUATED_MAX), "{statuses:?}");
        assert_eq!(statuses.get(&429), Some(&(GUESSES - EVALUATED_MAX)), "{statuses:?}");

        for node in bases {
            let elsewhere = form(&client, node, "/sign-in", right).send().await.unwrap();
            assert_eq!(elsewhere.status(), 429);
            let known = form(&client, node, "/sign-in", right).header("cookie", &browser);
            assert_eq!(known.send().await.unwrap().status(), 303);
        }

        // A restart forgets no guesses. After the wait, one is allowed, and doubles the wait.
        for node in nodes {
            assert!(node.terminate().success());
        }
        let node = ServerProcess::start(&database).await;
        let mut statuses = Vec::new();
        for guess in ["one", "two", "three"] {
            let guessed = form(&client, node.base_url(), "/sign-in", guess).send().await.unwrap();
            statuses.push(guessed.status().as_u16());
        }
        assert!(statuses.contains(&429), "{statuses:?}");
    }
}
