"""What the clouds' own libraries make of the same requests, keys and frames. Prints JSON."""
import datetime
import json
import os
import sys

from azure.identity import ClientSecretCredential, ManagedIdentityCredential
from botocore import auth, awsrequest, credentials
from botocore.eventstream import EventStreamBuffer
from google.auth.transport.requests import Request
from google.oauth2 import service_account


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


def token(given):
    """The token that google-auth gets with a key file."""
    account = service_account.Credentials.from_service_account_file(
        given["file"], scopes=["https://www.googleapis.com/auth/cloud-platform"]
    )
    account.refresh(Request())
    return account.token


def identity(given):
    """The token that azure-identity gets for one of the machine's identities."""
    os.environ.update(given["env"])
    return ManagedIdentityCredential(client_id=given["client_id"]).get_token(given["scope"]).token


def application(given):
    """The token that azure-identity gets for an application, by its secret."""
    credential = ClientSecretCredential(
        given["tenant"],
        given["client_id"],
        given["secret"],
        authority=given["authority"],
        disable_instance_discovery=True,
        connection_verify=given["ca"],
    )
    return credential.get_token(given["scope"]).token


QUESTIONS = {
    "signature": signature,
    "frames": frames,
    "token": token,
    "identity": identity,
    "application": application,
}
print(json.dumps(QUESTIONS[sys.argv[1]](json.loads(sys.argv[2]))))
