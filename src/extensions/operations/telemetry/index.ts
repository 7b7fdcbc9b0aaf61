// Traces for an OpenTelemetry collector: a span for each chat request and each attempt at a
// provider, over OTLP/HTTP with JSON. Each process that serves sends its own.
import type { ConfigExtension } from "../../../config/extension.ts";
import type { Config } from "../../../core/config.ts";
import type { Extension, GatewayContext, GatewayPart } from "../../../core/extension/extension.ts";
import { randomHex } from "../../../core/ids.ts";
import { createExporter, type Exported } from "./exporter.ts";
import { createEnvelope } from "./otlp.ts";
import { createSend } from "./post.ts";
import { createRequestSpans, type ServerAddress } from "./request-spans.ts";
import { secretsOf, telemetry } from "./settings.ts";

export const extension: ConfigExtension = {
  name: "telemetry",
  settings: [telemetry],
  secrets(config) {
    const settings = telemetry.of(config);
    return settings ? secretsOf(settings.otlp) : [];
  },
  start,
  status(reports, config) {
    if (!telemetry.of(config)) return {};
    const sum = (figure: keyof Exported): number =>
      reports.reduce<number>(
        (all, each) => all + ((each as Exported | undefined)?.[figure] ?? 0),
        0,
      );
    return { telemetry: { spans_sent: sum("sent"), spans_dropped: sum("dropped") } };
  },
};

function start({ config, extensions, clock, diagnose }: GatewayContext): GatewayPart {
  const settings = telemetry.of(config);
  if (!settings) return {};
  const envelope = createEnvelope({
    "service.name": settings.otlp.service_name,
    "service.instance.id": randomHex(16),
  });
  const send = createSend(settings.otlp, envelope, clock);
  const exporter = createExporter({ send, clock, diagnose });
  let addresses = serverAddresses(config, extensions);
  return {
    trace: createRequestSpans({
      clock,
      emit: exporter.add,
      addressOf: (provider) => addresses.get(provider),
    }),
    report: exporter.report,
    reload(changed) {
      const renewed = serverAddresses(changed, extensions);
      return () => {
        addresses = renewed;
      };
    },
    close: exporter.close,
  };
}

/**
 * The hosts of the providers. One in whose name a secret stands is left out, and all of them where
 * no extension knows the secrets.
 */
function serverAddresses(
  config: Config,
  extensions: readonly Extension[],
): ReadonlyMap<string, ServerAddress> {
  const redaction = extensions.find((extension) => extension.createRedact);
  const redact = redaction?.createRedact?.(config, extensions);
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
