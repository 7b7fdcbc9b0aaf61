// The network that an address belongs to, as far as one subscriber has all of it.

/**
 * Of IPv6 the /64, because one subscriber has at least that many addresses; of IPv4, also where it
 * is mapped into IPv6, the address. `address` is as Node has it: in its shortest form.
 */
export function networkOf(address: string): string {
  const bare = address.replace(/%.*$/s, "").replace(/^::ffff:(?=\d+\.)/i, "");
  if (!bare.includes(":")) return bare;
  const [before = [], after = []] = bare.split("::").map((part) => part.split(":").filter(Boolean));
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => "0");
  return `${[...before, ...zeros, ...after].slice(0, 4).join(":")}::/64`;
}
