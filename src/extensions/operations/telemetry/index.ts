// Traces for an OpenTelemetry collector: a span for each chat request and each attempt at a
// provider, over OTLP/HTTP with JSON. Each process that serves sends its own.
import type { ConfigExtension } from "../../../config/extension.ts";
import type { GatewayContext, Observe } from "../../../core/extension/installer.ts";
import { moments } from "../../../core/extension/places.ts";
import { randomHex } from "../../../core/ids.ts";
import { createExporter } from "./exporter.ts";
import { createEnvelope } from "./otlp.ts";
import { createSend } from "./post.ts";
import { createRequestSpans } from "./request-spans.ts";
import { secretsOf, telemetry } from "./settings.ts";

type Report = ReturnType<ReturnType<typeof createExporter>["report"]>;

export const extension: ConfigExtension = {
  name: "telemetry",
  settings: [telemetry],
  install(gateway) {
    gateway.observe(observeSpans);
    gateway.on(moments.secrets, (config) => {
      const settings = telemetry.of(config);
      return settings ? secretsOf(settings.otlp) : [];
    });
    gateway.on(moments.status, (reports, config) => {
      if (!telemetry.of(config)) return {};
      const counts = reports.filter((report) => report !== undefined) as Report[];
      const spans_sent = counts.reduce((sum, { sent }) => sum + sent, 0);
      const spans_dropped = counts.reduce((sum, { dropped }) => sum + dropped, 0);
      return { telemetry: { spans_sent, spans_dropped } };
    });
  },
};

function observeSpans(context: GatewayContext): Observe | undefined {
  const { config, current, clock, diagnose, on } = context;
  const settings = telemetry.of(config);
  if (!settings) return undefined;
  const envelope = createEnvelope({
    "service.name": settings.otlp.service_name,
    "service.instance.id": randomHex(16),
  });
  const send = createSend(settings.otlp, envelope, clock);
  const exporter = createExporter({ send, clock, diagnose });
  on("report", exporter.report);
  on("close", exporter.close);
  return createRequestSpans({
    clock,
    emit: exporter.add,
    providerOf: (model) => current().catalog.models.get(model)?.provider,
  });
}
