// Traces for an OpenTelemetry collector: a span for each chat request and each attempt at a
// provider, over OTLP/HTTP with JSON. Each process that serves sends its own.
import type { ConfigExtension } from "../../../config/extension.ts";
import type { Config } from "../../../core/config.ts";
import type { GatewayContext, Installed, Observe } from "../../../core/extension/installer.ts";
import { moments, slots } from "../../../core/extension/places.ts";
import { randomHex } from "../../../core/ids.ts";
import { createExporter, type Exported } from "./exporter.ts";
import { createEnvelope } from "./otlp.ts";
import { createSend } from "./post.ts";
import { createRequestSpans, type ServerAddress } from "./request-spans.ts";
import { secretsOf, telemetry } from "./settings.ts";

export const extension: ConfigExtension = {
  name: "telemetry",
  settings: [telemetry],
  install(gateway) {
    gateway.observe(observeSpans);
    gateway.on(moments.secrets, (config) => {
      const settings = telemetry.of(config);
      return settings ? secretsOf(settings.otlp) : [];
    });
    gateway.on(moments.status, statusOf);
  },
};

function statusOf(reports: readonly unknown[], config: Config): object {
  if (!telemetry.of(config)) return {};
  const sum = (figure: keyof Exported): number =>
    reports.reduce<number>((all, each) => all + ((each as Exported | undefined)?.[figure] ?? 0), 0);
  return { telemetry: { spans_sent: sum("sent"), spans_dropped: sum("dropped") } };
}

function observeSpans(context: GatewayContext): Observe | undefined {
  const { config, installed, clock, diagnose, on } = context;
  const settings = telemetry.of(config);
  if (!settings) return undefined;
  const envelope = createEnvelope({
    "service.name": settings.otlp.service_name,
    "service.instance.id": randomHex(16),
  });
  const send = createSend(settings.otlp, envelope, clock);
  const exporter = createExporter({ send, clock, diagnose });
  let addresses = serverAddresses(config, installed);
  on("report", exporter.report);
  on("reload", (changed) => {
    const renewed = serverAddresses(changed, installed);
    return () => {
      addresses = renewed;
    };
  });
  on("close", exporter.close);
  return createRequestSpans({
    clock,
    emit: exporter.add,
    addressOf: (provider) => addresses.get(provider),
  });
}

/**
 * The hosts of the providers. One in whose name a secret stands is left out, and all of them where
 * no extension knows the secrets.
 */
function serverAddresses(config: Config, installed: Installed): ReadonlyMap<string, ServerAddress> {
  const redact = installed.filled(slots.redact)?.(config, installed);
  const addresses = new Map<string, ServerAddress>();
  for (const [name, { base_url }] of config.providers) {
    if (!redact || !URL.canParse(base_url)) continue;
    const { hostname, port } = new URL(base_url);
    if (hostname === "" || redact(hostname) !== hostname) continue;
    const address = hostname.replace(/^\[|\]$/g, "");
    addresses.set(name, { address, port: port === "" ? undefined : Number(port) });
  }
  return addresses;
}
