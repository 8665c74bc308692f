"""An OpenTelemetry collector for tests: it keeps what it is sent, decoded."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class Receiver:
    """A collector: what it was sent, decoded."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.resource: dict[str, Any] = {}
        self.metrics: dict[str, list[Any]] = {}
        self.paths: set[str] = set()
        received = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                received.take(self.path, body)
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *arguments: object) -> None:
                """Log nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self.server.server_address[1]}"

    def take(self, path: str, body: bytes) -> None:
        self.paths.add(path)
        if path.endswith("/v1/traces"):
            for of in ExportTraceServiceRequest.FromString(body).resource_spans:
                self.resource = attributes(of.resource.attributes)
                self.spans += [span for scope in of.scope_spans for span in scope.spans]
        else:
            for about in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                for metric in (each for scope in about.scope_metrics for each in scope.metrics):
                    self.metrics.setdefault(metric.name, []).extend(metric.histogram.data_points)


def attributes(pairs: Any) -> dict[str, Any]:  # noqa: ANN401  # a protobuf container
    return {pair.key: value_of(pair) for pair in pairs}


def value_of(pair: KeyValue) -> Any:  # noqa: ANN401  # whichever of its members is set
    return getattr(pair.value, pair.value.WhichOneof("value") or "string_value")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    one = Receiver()
    thread = threading.Thread(target=one.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield one
    one.server.shutdown()
    thread.join()
    one.server.server_close()
