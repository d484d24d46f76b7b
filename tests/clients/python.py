"""A pull request through the queue and an upload of results, with the client of openapi-python-client."""

import os
import sys
import time
from io import BytesIO

from signalbox_client import AuthenticatedClient
from signalbox_client.api.flaky_tests import (
    get_test_upload,
    list_quarantined_tests,
    upload_test_reports,
)
from signalbox_client.api.merge_queue import (
    get_queue,
    get_submitted_pull_request,
    submit_pull_request,
)
from signalbox_client.models import (
    EntryRequest,
    FilesForm,
    PageQuery,
    PrByEither,
    PrByNumber,
    PrStateWord,
    QuarantinedRequest,
    QueueRequest,
    RepoRef,
    SubmitRequest,
)
from signalbox_client.types import File

client = AuthenticatedClient(
    base_url=os.environ["SIGNALBOX_URL"],
    token=os.environ["SIGNALBOX_TOKEN"],
    prefix="",
    auth_header_name="x-api-token",
    raise_on_unexpected_status=True,
)
number = int(os.environ["SIGNALBOX_PR"])
repo = RepoRef(host="git.local", owner="acme", name="calc")


def entry(number):
    request = EntryRequest(
        repo=repo, target_branch="main", pr=PrByEither(number=number), include_timeline=True
    )
    return get_submitted_pull_request.sync_detailed(client=client, body=request)


submit = SubmitRequest(repo=repo, target_branch="main", pr=PrByNumber(number=number), no_batch=True)
submitted = submit_pull_request.sync_detailed(client=client, body=submit)
assert submitted.status_code == 200, submitted

while True:
    reply = entry(number)
    assert reply.status_code == 200, reply
    assert reply.parsed.state not in (PrStateWord.FAILED, PrStateWord.CANCELLED), reply
    if reply.parsed.state == PrStateWord.MERGED:
        break
    time.sleep(0.1)
assert any(step.tests_passed for step in reply.parsed.timeline), reply

missing = entry(4_294_967_295)
assert missing.status_code == 404, missing

queue = get_queue.sync(client=client, body=QueueRequest(repo=repo, target_branch="main"))
assert queue.concurrency == 2, queue

report = b'<testsuite name="s"><testcase name="adds" classname="calc"/></testsuite>'
form = FilesForm(file=[File(payload=BytesIO(report), file_name="junit.xml")])
upload = upload_test_reports.sync(client=client, body=form, repo="git.local/acme/calc")
while True:
    state = get_test_upload.sync(upload.upload_id, client=client)
    assert state.state != "failed", state
    if state.state == "read":
        break
    time.sleep(0.1)

page = PageQuery(page_size=10)
request = QuarantinedRequest(repo=repo, org_url_slug="acme", page_query=page)
quarantined = list_quarantined_tests.sync(client=client, body=request)
assert quarantined.page.next_page_token == "", quarantined
sys.exit(0)
