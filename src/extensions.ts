// All extensions, and when each is loaded. This is the only file that names them: without its line
// here, and without its folder, the program has no such extension. The order is that of `help`, and
// that in which their parts of a gateway are opened.
import type { ExtensionEntry } from "./config/extension.ts";

export const extensions: readonly ExtensionEntry[] = [
  {
    name: "config-checks",
    checks: true,
    load: () => import("./extensions/operations/config-checks/index.ts"),
  },
  { name: "init", commands: ["init"], load: () => import("./extensions/operations/init/index.ts") },
  {
    name: "commands",
    commands: ["check", "explain"],
    load: () => import("./extensions/operations/commands/index.ts"),
  },
  {
    name: "status",
    commands: ["status", "top"],
    load: () => import("./extensions/operations/status/index.ts"),
  },
  {
    name: "keys",
    commands: ["keys create", "keys list", "keys revoke"],
    serves: true,
    load: () => import("./extensions/operations/keys/index.ts"),
  },
  {
    name: "admin-keys",
    serves: true,
    load: () => import("./extensions/operations/admin-keys/index.ts"),
  },
  {
    // Before the books: parts are closed in the reverse order, and the last requests are settled
    // when the books close.
    name: "telemetry",
    settings: ["telemetry"],
    load: () => import("./extensions/operations/telemetry/index.ts"),
  },
  {
    name: "books",
    settings: ["spend", "usage"],
    commands: ["usage sync"],
    serves: true,
    load: () => import("./extensions/money/books/index.ts"),
  },
  {
    // Before the APIs, so that what their guards refuse has its headers too.
    name: "cors",
    settings: ["server.cors"],
    load: () => import("./extensions/apis/cors/index.ts"),
  },
  {
    name: "client-apis",
    settings: ["apis"],
    load: () => import("./extensions/apis/client-apis/index.ts"),
  },
  {
    name: "messages-api",
    settings: ["apis"],
    load: () => import("./extensions/apis/messages-api/index.ts"),
  },
  {
    name: "responses-api",
    settings: ["apis"],
    load: () => import("./extensions/apis/responses-api/index.ts"),
  },
  {
    // After the books, which have settled by then what a dead process left open.
    name: "budgets",
    settings: [
      "accounts.*.budget",
      "accounts.*.tokens_per_minute",
      "keys.*.budget",
      "keys.*.tokens_per_minute",
      "limits.assumed_output_tokens",
    ],
    commands: ["budget show"],
    serves: true,
    load: () => import("./extensions/money/budgets/index.ts"),
  },
  {
    name: "shared-budgets",
    loadUnless: { setting: "limits.store", value: "memory" },
    load: () => import("./extensions/money/shared-budgets/index.ts"),
  },
  { name: "model-list", serves: true, load: () => import("./extensions/apis/model-list/index.ts") },
  {
    // Around recovery: it recognises a conversation by what the client sent, without the beginning
    // of an answer that recovery asks a model to continue.
    name: "sticky",
    settings: ["aliases.*.sticky"],
    load: () => import("./extensions/routing/sticky/index.ts"),
  },
  {
    // Around all that follow, so that a stream that is continued passes through them again.
    name: "recovery",
    settings: ["aliases.*.recovery", "models.*.recovery", "retry.max_recoveries"],
    load: () => import("./extensions/routing/recovery/index.ts"),
  },
  {
    name: "patience",
    settings: ["aliases.*.timeouts", "models.*.timeouts"],
    load: () => import("./extensions/routing/patience/index.ts"),
  },
  {
    name: "chat-fields",
    serves: true,
    load: () => import("./extensions/apis/chat-fields/index.ts"),
  },
  {
    name: "cache-marks",
    serves: true,
    load: () => import("./extensions/providers/cache-marks/index.ts"),
  },
  { name: "openapi", serves: true, load: () => import("./extensions/apis/openapi/index.ts") },
  { name: "breaker", serves: true, load: () => import("./extensions/routing/breaker/index.ts") },
  {
    name: "capabilities",
    serves: true,
    load: () => import("./extensions/routing/capabilities/index.ts"),
  },
  {
    name: "context-room",
    serves: true,
    load: () => import("./extensions/routing/context-room/index.ts"),
  },
  {
    name: "left-streams",
    serves: true,
    load: () => import("./extensions/routing/left-streams/index.ts"),
  },
  {
    name: "billing",
    commands: ["billing statement", "billing trace"],
    serves: true,
    load: () => import("./extensions/money/billing/index.ts"),
  },
  { name: "costs", serves: true, load: () => import("./extensions/operations/costs/index.ts") },
  { name: "receipts", serves: true, load: () => import("./extensions/money/receipts/index.ts") },
  {
    name: "seals",
    settings: ["seals"],
    commands: ["seal head", "seal public-key", "seal verify"],
    serves: true,
    load: () => import("./extensions/money/seals/index.ts"),
  },
  {
    name: "audit",
    commands: ["audit", "books rebuild"],
    load: () => import("./extensions/money/audit/index.ts"),
  },
  {
    name: "postgres",
    loadUnless: { setting: "usage.store", value: "file" },
    load: () => import("./extensions/money/postgres/index.ts"),
  },
  {
    name: "fingerprint",
    serves: true,
    load: () => import("./extensions/apis/fingerprint/index.ts"),
  },
  { name: "reload", serves: true, load: () => import("./extensions/operations/reload/index.ts") },
  {
    name: "pooled-client",
    settings: ["upstream"],
    serves: true,
    load: () => import("./extensions/providers/pooled-client/index.ts"),
  },
  {
    name: "redis",
    settings: ["limits.on_error"],
    loadUnless: { setting: "limits.store", value: "memory" },
    load: () => import("./extensions/scale/redis/index.ts"),
  },
  {
    name: "installation",
    serves: true,
    load: () => import("./extensions/scale/installation/index.ts"),
  },
  {
    name: "media-tokens",
    serves: true,
    load: () => import("./extensions/providers/media-tokens/index.ts"),
  },
  {
    name: "pipelining",
    serves: true,
    load: () => import("./extensions/bounds/pipelining/index.ts"),
  },
  {
    name: "capacity",
    settings: ["server.max_bytes_in_flight", "server.max_connections"],
    serves: true,
    load: () => import("./extensions/bounds/capacity/index.ts"),
  },
  {
    name: "json-bounds",
    serves: true,
    load: () => import("./extensions/bounds/json-bounds/index.ts"),
  },
  {
    name: "log-bounds",
    serves: true,
    load: () => import("./extensions/bounds/log-bounds/index.ts"),
  },
  { name: "redaction", serves: true, load: () => import("./extensions/bounds/redaction/index.ts") },
  { name: "history", serves: true, load: () => import("./extensions/operations/history/index.ts") },
  { name: "metrics", serves: true, load: () => import("./extensions/operations/metrics/index.ts") },
  {
    name: "tls",
    settings: ["server.tls", "admin.tls"],
    load: () => import("./extensions/bounds/tls/index.ts"),
  },
  {
    name: "cluster",
    settings: ["server.workers"],
    startsProcesses: true,
    load: () => import("./extensions/scale/cluster/index.ts"),
  },
  {
    name: "compatible",
    dialects: ["openai"],
    load: () => import("./extensions/providers/compatible/index.ts"),
  },
  {
    name: "anthropic",
    dialects: ["anthropic"],
    load: () => import("./extensions/providers/anthropic/index.ts"),
  },
  {
    name: "gemini",
    dialects: ["gemini"],
    load: () => import("./extensions/providers/gemini/index.ts"),
  },
  {
    name: "demo",
    settings: ["providers.*.pace_ms"],
    dialects: ["demo"],
    hasConfig: true,
    load: () => import("./extensions/providers/demo/index.ts"),
  },
  {
    name: "manual",
    hasManual: true,
    serves: true,
    load: () => import("./extensions/operations/manual/index.ts"),
  },
  { name: "console", serves: true, load: () => import("./extensions/operations/console/index.ts") },
  {
    name: "admin",
    settings: ["admin"],
    serves: true,
    load: () => import("./extensions/operations/admin/index.ts"),
  },
  {
    name: "metrics-listener",
    settings: ["admin.metrics"],
    load: () => import("./extensions/operations/metrics-listener/index.ts"),
  },
];
