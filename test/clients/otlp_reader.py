# Reads an OTLP/HTTP request with traces in JSON by the protocol's own definitions. The mapping is
# that of protobuf, but for the ids, which stand in hexadecimal digits instead of base64. Whatever
# the definitions do not have fails. Prints what the definitions made of each span.

import base64
import json
import sys

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

request = json.load(sys.stdin)
for group in request["resourceSpans"]:
    for scope in group["scopeSpans"]:
        for span in scope["spans"]:
            for name in ("traceId", "spanId", "parentSpanId"):
                if name in span:
                    span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()


message = json_format.ParseDict(request, ExportTraceServiceRequest())
spans = [
    {
        "name": span.name,
        "kind": Span.SpanKind.Name(span.kind),
        "traceId": span.trace_id.hex(),
        "attributes": {pair.key: pair.value.WhichOneof("value") for pair in span.attributes},
    }
    for group in message.resource_spans
    for scope in group.scope_spans
    for span in scope.spans
]
json.dump(spans, sys.stdout)
