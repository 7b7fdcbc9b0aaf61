// Passwords in the addresses of stores: what must not show in a log.

/**
 * The password in the address of a store, as it is written there and as it is decoded. Empty in
 * `memory` or `file`.
 */
export function passwordsIn(address: string): string[] {
  const written = URL.canParse(address) ? new URL(address).password : "";
  try {
    return [written, decodeURIComponent(written)];
  } catch {
    return [written]; // a stray `%`
  }
}
