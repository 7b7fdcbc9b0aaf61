// Traces for an OpenTelemetry collector: a span for each chat request and each attempt at a
// provider, over OTLP/HTTP with JSON. Each process that serves sends its own.
import type { GatewayContext, Observe, Installer } from "../../../core/extension/installer.ts";
import { hooks } from "../../../core/extension/places.ts";
import { randomHex } from "../../../core/ids.ts";
import { createLastReports } from "../../scale/installation/index.ts";
import { createExporter } from "./exporter.ts";
import { createEnvelope } from "./otlp.ts";
import { createSend } from "./post.ts";
import { createRequestSpans } from "./request-spans.ts";
import { secretsOf, telemetry } from "./settings.ts";

interface Report extends ReturnType<ReturnType<typeof createExporter>["report"]> {
  /** A random id, new at each start of the process. */
  readonly process: string;
}

export const settings = [telemetry];

export function install(gateway: Installer): void {
  gateway.observe(observeSpans);
  gateway.on(hooks.secrets, (config) => {
    const settings = telemetry.of(config);
    return settings ? secretsOf(settings.otlp) : [];
  });
  const addUp = createSums();
  gateway.on(hooks.status, (reports, config) =>
    telemetry.of(config) ? { telemetry: addUp(reports) } : {},
  );
}

/** Sums up the reports. Includes processes that have died, because counters must never fall. */
function createSums() {
  const previousReport = createLastReports<Report>();
  const sums = { spans_sent: 0, spans_dropped: 0 };
  return (reports: readonly unknown[]): object => {
    for (const report of (reports as readonly (Report | undefined)[]).flatMap((one) => one ?? [])) {
      const { sent, dropped } = previousReport(report.process, report) ?? { sent: 0, dropped: 0 };
      sums.spans_sent += report.sent - sent;
      sums.spans_dropped += report.dropped - dropped;
    }
    return { ...sums };
  };
}

function observeSpans(context: GatewayContext): Observe | undefined {
  const { config, current, clock, diagnose, on } = context;
  const settings = telemetry.of(config);
  if (!settings) return undefined;
  const process = randomHex(16);
  const envelope = createEnvelope({
    "service.name": settings.otlp.service_name,
    "service.instance.id": process,
  });
  const send = createSend(settings.otlp, envelope, clock);
  const exporter = createExporter(send, clock, diagnose);
  on("report", (): Report => ({ process, ...exporter.report() }));
  on("close", exporter.close);
  return createRequestSpans({
    clock,
    emit: exporter.add,
    models: () => current().catalog.models,
  });
}
