//! `signalbox org`.

use clap::Subcommand;
use serde_json::json;

use super::offline::{open, organization};
use crate::config::Flags;
use crate::wiring::chain;
use signalbox_terminal::say;

#[derive(Subcommand)]
pub(crate) enum Org {
    /// Create an organization.
    #[command(after_help = "Example: signalbox org create acme")]
    Create {
        /// Its slug.
        slug: String,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// List organizations.
    #[command(after_help = "Example: signalbox org list --json")]
    List {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
}

pub(crate) async fn org(flags: &Flags, action: Org) -> Result<(), String> {
    let app = open(flags).await?;
    match action {
        Org::Create { slug, json } => {
            let org = organization(&app, &slug).await?;
            let id = org.id.to_string();
            say(&if json { json!({ "id": id, "slug": slug }).to_string() } else { slug });
        }
        Org::List { json } => {
            let orgs = app.context.stores.orgs.list().await;
            let orgs = orgs.map_err(|error| chain("organizations", &error))?;
            for org in orgs {
                let (id, slug) = (org.id.to_string(), org.slug.to_string());
                say(&if json { json!({ "id": id, "slug": slug }).to_string() } else { slug });
            }
        }
    }
    Ok(())
}
