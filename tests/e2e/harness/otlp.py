"""An OTLP-over-HTTP receiver that keeps the spans and histograms it is sent."""

from __future__ import annotations

import gzip
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass
class Span:
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    attributes: dict[str, Any]
    service: str
    start: int


@dataclass
class Point:
    attributes: dict[str, Any]
    count: int
    sum: float
    bounds: list[float]


@dataclass
class Histogram:
    unit: str
    points: list[Point]


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    return None if kind is None else getattr(value, kind)


class OtlpReceiver:
    def __init__(self) -> None:
        self.spans: list[Span] = []
        # The newest of each name.
        self.metrics: dict[str, Histogram] = {}
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                if self.path == "/v1/traces":
                    owner._take(ExportTraceServiceRequest.FromString(body))
                elif self.path == "/v1/metrics":
                    owner._take_metrics(ExportMetricsServiceRequest.FromString(body))
                self.send_response(200)
                self.send_header("content-type", "application/x-protobuf")
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *arguments: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def _take(self, request: ExportTraceServiceRequest) -> None:
        for resource in request.resource_spans:
            service = next((_value(a.value) for a in resource.resource.attributes if a.key == "service.name"), "")
            for scope in resource.scope_spans:
                for span in scope.spans:
                    self.spans.append(
                        Span(
                            name=span.name,
                            trace_id=span.trace_id.hex(),
                            span_id=span.span_id.hex(),
                            parent_id=span.parent_span_id.hex(),
                            attributes={a.key: _value(a.value) for a in span.attributes},
                            service=service,
                            start=span.start_time_unix_nano,
                        )
                    )

    def _take_metrics(self, request: ExportMetricsServiceRequest) -> None:
        scopes = [scope for resource in request.resource_metrics for scope in resource.scope_metrics]
        for metric in (metric for scope in scopes for metric in scope.metrics):
            points = [
                Point(
                    attributes={a.key: _value(a.value) for a in point.attributes},
                    count=point.count,
                    sum=point.sum,
                    bounds=list(point.explicit_bounds),
                )
                for point in metric.histogram.data_points
            ]
            if points:
                self.metrics[metric.name] = Histogram(metric.unit, points)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
