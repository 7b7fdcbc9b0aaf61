// Looks at the line of a usage record without parsing it: most lines are passed over. Inside of a
// text quotes are escaped, so the name of a member is never found in one.
import type { ReadFilter } from "../records/index.ts";

const SEGMENT = '"log":{"segment":"';

/** The segment from which the record of a line comes. */
export function segmentIn(line: string): string {
  const at = line.lastIndexOf(SEGMENT) + SEGMENT.length;
  return line.slice(at, line.indexOf('"', at));
}

/** Whether the record of a line matches a filter, but for its days. */
export function lineMatcher(filter: ReadFilter): (line: string) => boolean {
  const { account, model, keyId, provider, requestId } = filter;
  const columns = {
    account,
    model,
    key_id: keyId,
    // A record of which nobody served has no provider.
    provider: provider === "" ? null : provider,
    gateway_request_id: requestId,
  };
  const texts = Object.entries(columns)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `"${name}":${JSON.stringify(value)}`);
  return (line) => texts.every((text) => line.includes(text));
}
