// All extensions, and when each is loaded. This is the only file that names them: delete an
// extension's line here and its folder, and the extension is gone. `help` lists commands in this
// order, and the parts of a gateway open in this order.
import type { ExtensionEntry } from "./config/extension.ts";

/**
 * Makes an entry. `when` absent: the extension is loaded whenever a gateway serves. Exported so
 * that the linter accepts a table without entries.
 */
export const entry = (
  name: string,
  load: ExtensionEntry["load"],
  when: Omit<ExtensionEntry, "name" | "load"> = { serves: true },
): ExtensionEntry => ({ ...when, name, load });

export const extensions: readonly ExtensionEntry[] = [
  entry("config-checks", () => import("./extensions/operations/config-checks/index.ts"), {
    checks: true,
  }),
  entry("init", () => import("./extensions/operations/init/index.ts"), { commands: ["init"] }),
  entry("commands", () => import("./extensions/operations/commands/index.ts"), {
    commands: ["check", "explain"],
  }),
  entry("status", () => import("./extensions/operations/status/index.ts"), {
    commands: ["status", "top"],
  }),
  entry("keys", () => import("./extensions/operations/keys/index.ts"), {
    commands: ["keys create", "keys list", "keys revoke"],
    serves: true,
  }),
  entry("admin-keys", () => import("./extensions/operations/admin-keys/index.ts")),
  // Before the books: parts close in reverse order, and telemetry must still be open when the books
  // close and settle the last requests. Always loaded, so that a reload cannot start it.
  entry("telemetry", () => import("./extensions/operations/telemetry/index.ts"), {
    settings: ["telemetry"],
    serves: true,
  }),
  entry("books", () => import("./extensions/money/books/index.ts"), {
    settings: ["spend", "usage"],
    commands: ["usage sync"],
    serves: true,
  }),
  // Before the APIs, so that the responses of their guards have CORS headers, too.
  entry("cors", () => import("./extensions/apis/cors/index.ts"), { settings: ["server.cors"] }),
  entry("client-apis", () => import("./extensions/apis/client-apis/index.ts"), {
    settings: ["apis"],
  }),
  entry("messages-api", () => import("./extensions/apis/messages-api/index.ts"), {
    loadIf: { setting: "apis.*", test: (api) => api === "messages" },
  }),
  entry("responses-api", () => import("./extensions/apis/responses-api/index.ts"), {
    loadIf: { setting: "apis.*", test: (api) => api === "responses" },
  }),
  // After the books, which first settle the requests that a dead process left open.
  entry("budgets", () => import("./extensions/money/budgets/index.ts"), {
    settings: [
      "accounts.*.budget",
      "accounts.*.tokens_per_minute",
      "keys.*.budget",
      "keys.*.tokens_per_minute",
      "limits.assumed_output_tokens",
    ],
    commands: ["budget show"],
    serves: true,
  }),
  entry("shared-budgets", () => import("./extensions/money/shared-budgets/index.ts"), {
    loadIf: { setting: "limits.store", test: (store) => store !== "memory" },
  }),
  entry("model-list", () => import("./extensions/apis/model-list/index.ts")),
  entry("sticky", () => import("./extensions/routing/sticky/index.ts"), {
    settings: ["aliases.*.sticky"],
  }),
  entry("shares", () => import("./extensions/routing/shares/index.ts"), {
    settings: ["aliases.*.weights"],
  }),
  entry("prices", () => import("./extensions/routing/prices/index.ts"), {
    settings: ["models.*.long_prompts", "models.*.service_tiers"],
  }),
  // Always loaded: GET /status asks only extensions of the start, and a reload may set the policy.
  entry("fastest", () => import("./extensions/routing/fastest/index.ts")),
  // Always loaded, as is "key-pool": the first of several processes starts its part only once, and
  // a reload may add its settings.
  entry("provider-limits", () => import("./extensions/routing/provider-limits/index.ts"), {
    settings: ["providers.*.limits", "models.*.limits"],
    serves: true,
  }),
  entry("recovery", () => import("./extensions/routing/recovery/index.ts"), {
    settings: ["aliases.*.recovery", "models.*.recovery", "retry.max_recoveries"],
  }),
  entry("patience", () => import("./extensions/routing/patience/index.ts"), {
    settings: ["aliases.*.timeouts", "models.*.timeouts"],
  }),
  entry("chat-fields", () => import("./extensions/apis/chat-fields/index.ts")),
  entry("cache-marks", () => import("./extensions/providers/cache-marks/index.ts")),
  entry("cache-hints", () => import("./extensions/providers/cache-hints/index.ts")),
  entry("openapi", () => import("./extensions/apis/openapi/index.ts")),
  entry("breaker", () => import("./extensions/routing/breaker/index.ts")),
  entry("capabilities", () => import("./extensions/routing/capabilities/index.ts")),
  entry("context-room", () => import("./extensions/routing/context-room/index.ts")),
  entry("left-streams", () => import("./extensions/routing/left-streams/index.ts")),
  entry("billing", () => import("./extensions/money/billing/index.ts"), {
    commands: ["billing statement", "billing trace"],
  }),
  entry("costs", () => import("./extensions/operations/costs/index.ts")),
  entry("receipts", () => import("./extensions/money/receipts/index.ts")),
  entry("seals", () => import("./extensions/money/seals/index.ts"), {
    settings: ["seals"],
    commands: ["seal head", "seal public-key", "seal verify"],
    serves: true,
  }),
  entry("audit", () => import("./extensions/money/audit/index.ts"), {
    commands: ["audit", "books rebuild"],
  }),
  entry("postgres", () => import("./extensions/money/postgres/index.ts"), {
    loadIf: { setting: "usage.store", test: (store) => store !== "file" },
  }),
  entry("fingerprint", () => import("./extensions/apis/fingerprint/index.ts")),
  entry("reload", () => import("./extensions/operations/reload/index.ts")),
  entry("pooled-client", () => import("./extensions/providers/pooled-client/index.ts"), {
    settings: ["upstream", "upstream.client", "upstream.max_connections"],
    serves: true,
  }),
  entry("network", () => import("./extensions/providers/network/index.ts"), {
    settings: [
      "upstream.proxy",
      "upstream.ca_file",
      "providers.*.proxy",
      "providers.*.ca_file",
      "providers.*.cert_file",
      "providers.*.key_file",
    ],
  }),
  // After the client, so that token services are called through the same client as the provider.
  entry("credentials", () => import("./extensions/providers/credentials/index.ts"), {
    settings: ["providers.*.credentials"],
  }),
  entry("key-pool", () => import("./extensions/providers/key-pool/index.ts"), {
    settings: ["providers.*.api_keys"],
    serves: true,
  }),
  entry("redis", () => import("./extensions/scale/redis/index.ts"), {
    settings: ["limits.on_error"],
    loadIf: { setting: "limits.store", test: (store) => store !== "memory" },
  }),
  entry("installation", () => import("./extensions/scale/installation/index.ts")),
  entry("media-tokens", () => import("./extensions/providers/media-tokens/index.ts")),
  entry("pipelining", () => import("./extensions/bounds/pipelining/index.ts")),
  entry("capacity", () => import("./extensions/bounds/capacity/index.ts"), {
    settings: ["server.max_bytes_in_flight", "server.max_connections"],
    serves: true,
  }),
  entry("json-bounds", () => import("./extensions/bounds/json-bounds/index.ts")),
  entry("log-bounds", () => import("./extensions/bounds/log-bounds/index.ts")),
  entry("redaction", () => import("./extensions/bounds/redaction/index.ts"), {
    settings: ["logs"],
    serves: true,
  }),
  entry("history", () => import("./extensions/operations/history/index.ts")),
  entry("metrics", () => import("./extensions/operations/metrics/index.ts")),
  entry("tls", () => import("./extensions/bounds/tls/index.ts"), {
    settings: ["server.tls", "admin.tls"],
  }),
  entry("cluster", () => import("./extensions/scale/cluster/index.ts"), {
    settings: ["server.workers"],
    startsProcesses: true,
  }),
  entry("shared-signatures", () => import("./extensions/providers/shared-signatures/index.ts"), {
    loadIf: { setting: "server.workers", test: (count) => count !== 1 },
  }),
  entry("compatible", () => import("./extensions/providers/compatible/index.ts"), {
    dialects: ["openai"],
  }),
  entry("anthropic", () => import("./extensions/providers/anthropic/index.ts"), {
    dialects: ["anthropic"],
  }),
  entry("gemini", () => import("./extensions/providers/gemini/index.ts"), { dialects: ["gemini"] }),
  entry("converse", () => import("./extensions/providers/converse/index.ts"), {
    dialects: ["converse"],
  }),
  entry("responses", () => import("./extensions/providers/responses/index.ts"), {
    dialects: ["responses"],
  }),
  entry("ollama", () => import("./extensions/providers/ollama/index.ts"), { dialects: ["ollama"] }),
  entry("demo", () => import("./extensions/providers/demo/index.ts"), {
    settings: ["providers.*.pace_ms"],
    dialects: ["demo"],
    hasConfig: true,
  }),
  entry("manual", () => import("./extensions/operations/manual/index.ts"), {
    hasManual: true,
    serves: true,
  }),
  entry("console", () => import("./extensions/operations/console/index.ts")),
  entry("admin", () => import("./extensions/operations/admin/index.ts"), {
    settings: ["admin"],
    serves: true,
  }),
  entry("metrics-listener", () => import("./extensions/operations/metrics-listener/index.ts"), {
    settings: ["admin.metrics"],
  }),
];
