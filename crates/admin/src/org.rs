//! `signalbox org`.

use clap::Subcommand;
use serde_json::json;
use signalbox_terminal::{Cell, Format, Table, say_json};

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
        #[command(flatten)]
        format: Format,
    },
    /// List organizations.
    #[command(after_help = "Example: signalbox org list --json")]
    List {
        #[command(flatten)]
        format: Format,
    },
}

pub async fn org(program: &dyn Program, action: Org) -> Result<(), AdminError> {
    match action {
        Org::Create { slug, format } => {
            let app = open_for_setup(program).await?;
            let org = organization(&app, &slug).await?;
            let id = org.id.to_string();
            format.say(&json!({ "id": id, "slug": slug }), || slug.clone());
        }
        Org::List { format } => {
            let app = open(program).await?;
            let orgs = app.context.stores.account.orgs.list().await;
            let orgs = orgs.map_err(AdminError::failed("organizations"))?;
            let mut table = Table::new("no organizations found", &["ID", "SLUG", "CREATED"]);
            for org in orgs {
                let (id, slug) = (org.id.to_string(), org.slug.to_string());
                if format.is_json() {
                    say_json(&json!({ "id": id, "slug": slug }));
                } else {
                    table.row([id.into(), slug.into(), Cell::time(Some(org.created_at))]);
                }
            }
            table.print_unless(format);
        }
    }
    Ok(())
}
