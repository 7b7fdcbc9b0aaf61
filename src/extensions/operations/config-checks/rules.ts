// Rules for a provider's settings that follow from its vendor, beyond their shape. They look at the
// raw JSON, so that an issue of shape elsewhere hides none.
import { vendorPreset } from "../../../config/vendors.ts";
import type { ValidationIssue } from "../../../core/schema/checker.ts";
import { asObject } from "../../../core/schema/untrusted-json.ts";
import type { Formats } from "../../../config/vendors.ts";
import { invalid } from "../../../config/references.ts";

/** A provider as it is written. */
interface ProviderJson {
  readonly vendor?: unknown;
  readonly dialect?: unknown;
  readonly base_url?: unknown;
  readonly api_key?: unknown;
  readonly api_keys?: unknown;
  readonly credentials?: unknown;
}

export function ruleIssues(json: unknown, formats: Formats): ValidationIssue[] {
  return Object.entries(asObject(asObject(json)["providers"])).flatMap(([name, provider]) =>
    providerIssues(["providers", name], asObject(provider), formats),
  );
}

function providerIssues(
  path: ValidationIssue["path"],
  provider: ProviderJson,
  { dialects }: Formats,
): ValidationIssue[] {
  const preset = vendorPreset(provider);
  if (!preset) return []; // an issue of shape already
  const issues: ValidationIssue[] = [];
  const { base_url } = provider;
  const key = provider.api_key ?? provider.api_keys ?? provider.credentials ?? null;
  const address = typeof base_url === "string" ? base_url.replace(/\/+$/, "") : "";
  // Behind another address a proxy may have the key.
  const isVendors = address === "" || address === preset.base_url;
  if (isVendors && preset.needs_key && key === null) {
    const message = `is required: ${preset.title} answers nobody without one`;
    issues.push(invalid([...path, "api_key"], message));
  }
  const { path: own } = preset.traits;
  const pathname = URL.canParse(address) ? new URL(address).pathname : "/";
  if (pathname !== "/" && own?.startsWith(pathname)) {
    const message = `must not end in ${pathname}: ${own} is appended to it`;
    issues.push(invalid([...path, "base_url"], message));
    return issues;
  }
  const appended = own === undefined ? dialects.get(preset.dialect)?.appended : undefined;
  const end = appended?.end.exec(address)?.[0];
  if (appended && end !== undefined) {
    const message = `must not end in ${end}: ${appended.path} is appended to it`;
    issues.push(invalid([...path, "base_url"], message));
  }
  return issues;
}
