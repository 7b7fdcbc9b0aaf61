// Traces for an OpenTelemetry collector: a span for each chat request and each attempt at a
// provider, over OTLP/HTTP with JSON. Each process that serves sends its own.
import type { GatewayContext, Observe, Installer } from "../../../core/extension/installer.ts";
import { moments } from "../../../core/extension/places.ts";
import { randomHex } from "../../../core/ids.ts";
import { createExporter } from "./exporter.ts";
import { createEnvelope } from "./otlp.ts";
import { createSend } from "./post.ts";
import { createRequestSpans } from "./request-spans.ts";
import { secretsOf, telemetry } from "./settings.ts";

interface Report extends ReturnType<ReturnType<typeof createExporter>["report"]> {
  /** Tells processes apart, also from those of an earlier start. */
  readonly process: string;
}

/** Processes whose counts are kept apart: all of server.workers (256), and as many dead ones. */
const MAX_PROCESSES = 512;

export const settings = [telemetry];

export function install(gateway: Installer): void {
  gateway.observe(observeSpans);
  gateway.on(moments.secrets, (config) => {
    const settings = telemetry.of(config);
    return settings ? secretsOf(settings.otlp) : [];
  });
  const addUp = createSums();
  gateway.on(moments.status, (reports, config) =>
    telemetry.of(config) ? { telemetry: addUp(reports) } : {},
  );
}

/** Adds the reports up. One of a process that has died stays: metrics are made of the sums. */
function createSums() {
  const shares = new Map<string, Report>();
  const dead = { spans_sent: 0, spans_dropped: 0 };
  const addTo = (sums: typeof dead, { sent, dropped }: Report): void => {
    sums.spans_sent += sent;
    sums.spans_dropped += dropped;
  };
  return (reports: readonly unknown[]): typeof dead => {
    for (const report of (reports as readonly (Report | undefined)[]).flatMap((one) => one ?? [])) {
      shares.delete(report.process);
      shares.set(report.process, report);
    }
    for (const [process, report] of [...shares].slice(0, -MAX_PROCESSES)) {
      shares.delete(process);
      addTo(dead, report);
    }
    const sums = { ...dead };
    for (const report of shares.values()) addTo(sums, report);
    return sums;
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
  const exporter = createExporter({ send, clock, diagnose });
  on("report", (): Report => ({ process, ...exporter.report() }));
  on("close", exporter.close);
  return createRequestSpans({
    clock,
    emit: exporter.add,
    providerOf: (model) => current().catalog.models.get(model)?.provider,
  });
}
