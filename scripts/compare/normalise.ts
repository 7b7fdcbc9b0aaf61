// Takes out of a transcript what differs from run to run: ids, times, durations, ports. What
// depends on a secret of the installation, the system fingerprint, is taken out too.

const RULES: readonly (readonly [pattern: RegExp, name: string])[] = [
  [/\bchatcmpl-[0-9a-f]{32}\b/g, "CHATCMPL"],
  [/\breq_[0-9a-f]{32}\b/g, "REQ"],
  [/\bsp_[0-9a-f]{32}\b/g, "SP"],
  [/\bcall_[0-9a-f]{24}\b/g, "CALL"],
  [/\bfp_[0-9a-f]+\b/g, "FP"],
  [/"created":\d+/g, '"created":0'],
  [/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, "TIME"],
  [/"(duration_ms|first_token_ms)":[\d.]+/g, '"$1":0'],
  [/\r\nDate: [^\r]+/g, "\r\nDate: DATE"],
  [/127\.0\.0\.1:\d+/g, "127.0.0.1:PORT"],
  [/ at \S+\.m?js:\d+:\d+| at [^\n]*\([^)]*:\d+:\d+\)/g, " at PLACE"],
];

export function normalise(text: string): string {
  let replaced = text;
  for (const [pattern, name] of RULES) replaced = replaced.replaceAll(pattern, name);
  return replaced;
}
