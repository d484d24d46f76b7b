//! Requests and replies about webhooks.

mod replies;
mod requests;

pub(crate) use replies::{
    CreatedWebhookReply, DeliveriesReply, ReplayedReply, TestSentReply, WebhookReply, WebhooksReply,
};
pub(crate) use requests::{
    CreateWebhookRequest, DeliveriesRequest, ListWebhooksRequest, ReplayWebhookRequest,
    RotateWebhookRequest, TestWebhookRequest, UpdateWebhookRequest, WebhookRequest,
};
