"""Checks recorded webhooks with the PyPI package standardwebhooks.

Each line of the file is a JSON object with secret, headers and body. Receivers refuse what is older
than five minutes, so run it right after the recording.
"""

import json
import sys

from standardwebhooks import Webhook

count = 0
for line in open(sys.argv[1], encoding="utf-8"):
    sent = json.loads(line)
    Webhook(sent["secret"]).verify(sent["body"], sent["headers"])
    count += 1
print(f"{count} verified")
