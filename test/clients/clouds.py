"""What botocore makes of the same requests, keys and frames. Prints JSON."""
import datetime
import json
import sys

from botocore import auth, awsrequest, credentials
from botocore.eventstream import EventStreamBuffer


def signature(given):
    """The headers with which botocore signs a request, at a time that is given."""
    now = datetime.datetime.fromtimestamp(given["now"] / 1000, datetime.timezone.utc)
    auth.get_current_datetime = lambda **_: now.replace(tzinfo=None)
    keys = credentials.Credentials(given["id"], given["secret"], given.get("token"))
    request = awsrequest.AWSRequest(
        method="POST",
        url=given["url"],
        data=given["body"].encode(),
        headers={"Content-Type": "application/json"},
    )
    auth.SigV4Auth(keys, given["service"], given["region"]).add_auth(request)
    return {name: request.headers[name] for name in ("X-Amz-Date", "Authorization")}


def frames(given):
    """The events that botocore reads from a stream."""
    buffer = EventStreamBuffer()
    buffer.add_data(bytes.fromhex(given["hex"]))
    return [[event.headers.get(":event-type"), event.payload.decode()] for event in buffer]


QUESTIONS = {"signature": signature, "frames": frames}
print(json.dumps(QUESTIONS[sys.argv[1]](json.loads(sys.argv[2]))))
