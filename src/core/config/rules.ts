// What the parts of a configuration demand of each other and of the provider's vendor, beyond their shape: faults, with which no gateway
// starts. They look at the raw JSON, so that a fault of shape elsewhere hides none.
import { vendorPreset, type DialectName } from "../providers/traits.ts";
import type { ValidationIssue } from "../schema/checker.ts";
import { asObject } from "../schema/untrusted-json.ts";

type Path = ValidationIssue["path"];
const fault = (path: Path, message: string): ValidationIssue => ({
  path,
  code: "invalid_value",
  message,
});

export function ruleIssues(json: unknown): ValidationIssue[] {
  const root = asObject(json);
  return [
    ...Object.entries(asObject(root["providers"])).flatMap(([name, provider]) =>
      providerFaults(["providers", name], asObject(provider)),
    ),
  ];
}

/** What a dialect appends to base_url, and an end of base_url that already has a part of it. */
const APPENDED: {
  readonly [dialect in DialectName]?: { readonly path: string; readonly end: RegExp };
} = {
  openai: { path: "/chat/completions", end: /\/(chat|chat\/completions)$/ },
  anthropic: { path: "/v1/messages", end: /\/(v1|v1\/messages)$/ },
  gemini: { path: "/v1beta/models/...", end: /\/v1beta(\/.*)?$/ },
};

function providerFaults(path: Path, provider: Record<string, unknown>): ValidationIssue[] {
  const row = vendorPreset(provider);
  if (!row) return []; // a fault of shape already
  const faults: ValidationIssue[] = [];
  if (usesVendorsAddress(provider) && lacksKey(provider))
    faults.push(
      fault([...path, "api_key"], `is required: ${row.title} answers nobody without one`),
    );
  const appended = APPENDED[row.dialect];
  const end = appended?.end.exec(addressOf(provider))?.[0];
  if (appended && end !== undefined)
    faults.push(
      fault([...path, "base_url"], `must not end in ${end}: ${appended.path} is appended to it`),
    );
  return faults;
}

/** Whether a provider's vendor refuses requests without a key, and none is given. */
export const lacksKey = (provider: Readonly<Record<string, unknown>>): boolean =>
  vendorPreset(provider)?.needs_key === true && (provider["api_key"] ?? undefined) === undefined;

/** Whether requests go to the vendor itself, and not to a proxy, which may have the key. */
export function usesVendorsAddress(provider: Readonly<Record<string, unknown>>): boolean {
  const address = addressOf(provider);
  return address === "" || address === vendorPreset(provider)?.base_url;
}

const addressOf = ({ base_url }: Readonly<Record<string, unknown>>): string =>
  typeof base_url === "string" ? base_url.replace(/\/+$/, "") : "";

