// Rules for a provider's settings that follow from its vendor, beyond their shape. They look at the
// raw JSON, so that an issue of shape elsewhere hides none.
import { vendorPreset, type VendorPreset } from "../../../config/vendors.ts";
import type { ValidationIssue } from "../../../core/schema/checker.ts";
import { asObject } from "../../../core/schema/untrusted-json.ts";
import type { Formats } from "../../../config/formats.ts";
import { invalid } from "../../../config/references.ts";

/** A provider as it is written. */
interface ProviderJson {
  readonly vendor?: unknown;
  readonly dialect?: unknown;
  readonly base_url?: unknown;
  readonly api_key?: unknown;
}

export function ruleIssues(json: unknown, formats: Formats): ValidationIssue[] {
  return Object.entries(asObject(asObject(json)["providers"])).flatMap(([name, provider]) =>
    providerIssues(["providers", name], asObject(provider), formats),
  );
}

function providerIssues(
  path: ValidationIssue["path"],
  provider: ProviderJson,
  { presets, dialects }: Formats,
): ValidationIssue[] {
  const preset = vendorPreset(presets, provider);
  if (!preset) return []; // an issue of shape already
  const issues: ValidationIssue[] = [];
  if (usesVendorsAddress(provider, preset) && lacksKey(provider, preset)) {
    const message = `is required: ${preset.title} answers nobody without one`;
    issues.push(invalid([...path, "api_key"], message));
  }
  const appended = dialects.get(preset.dialect)?.appended;
  const end = appended?.end.exec(addressOf(provider))?.[0];
  if (appended && end !== undefined) {
    const message = `must not end in ${end}: ${appended.path} is appended to it`;
    issues.push(invalid([...path, "base_url"], message));
  }
  return issues;
}

/** Whether the vendor refuses requests without a key, and none is given. */
export const lacksKey = ({ api_key = null }: ProviderJson, preset: VendorPreset): boolean =>
  preset.needs_key === true && api_key === null;

/** Whether requests go to the vendor itself, and not to a proxy, which may have the key. */
export function usesVendorsAddress(provider: ProviderJson, preset: VendorPreset): boolean {
  const address = addressOf(provider);
  return address === "" || address === preset.base_url;
}

const addressOf = ({ base_url }: ProviderJson): string =>
  typeof base_url === "string" ? base_url.replace(/\/+$/, "") : "";
