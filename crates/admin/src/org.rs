//! `signalbox org`.

use clap::Subcommand;
use serde_json::json;
use signalbox_terminal::say;

use crate::AdminError;
use crate::offline::organization;
use crate::program::{Program, open, open_for_setup};

#[derive(Subcommand)]
pub enum Org {
    /// Create an organization.
    #[command(after_help = "Example: signalbox org create acme")]
    Create {
        /// The slug of the organization.
        slug: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// List organizations.
    #[command(after_help = "Example: signalbox org list --json")]
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

pub async fn org(program: &dyn Program, action: Org) -> Result<(), AdminError> {
    match action {
        Org::Create { slug, json } => {
            let app = open_for_setup(program).await?;
            let org = organization(&app, &slug).await?;
            let id = org.id.to_string();
            say(&if json { json!({ "id": id, "slug": slug }).to_string() } else { slug });
        }
        Org::List { json } => {
            let app = open(program).await?;
            let orgs = app.context.stores.account.orgs.list().await;
            let orgs = orgs.map_err(AdminError::failed("organizations"))?;
            for org in orgs {
                let (id, slug) = (org.id.to_string(), org.slug.to_string());
                say(&if json { json!({ "id": id, "slug": slug }).to_string() } else { slug });
            }
        }
    }
    Ok(())
}
