// The network that an address belongs to, as far as one subscriber has all of it.
import { isIP } from "node:net";

/** Of IPv6 the /64, because one subscriber has at least that many addresses;
 * of IPv4, also where it is mapped into IPv6, the address. */
export function networkOf(address: string): string {
  const [bare = ""] = address.split("%"); // without the zone of a link-local address
  if (isIP(bare) !== 6) return bare;
  const groups = groupsOf(bare);
  const [high, low] = groups.slice(6) as [number, number];
  const isMapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff;
  if (isMapped) return [high >> 8, high & 255, low >> 8, low & 255].join(".");
  return `${groups
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(":")}::/64`;
}

/** The eight groups of an IPv6 address. */
function groupsOf(address: string): number[] {
  const [head = "", tail] = address.split("::");
  const before = numbersOf(head);
  if (tail === undefined) return before;
  const after = numbersOf(tail);
  const zeros = Array<number>(8 - before.length - after.length).fill(0);
  return [...before, ...zeros, ...after];
}

/** The groups that are written out; the last two may be written as an IPv4 address. */
function numbersOf(text: string): number[] {
  if (text === "") return [];
  return text.split(":").flatMap((group) => {
    if (!group.includes(".")) return [Number.parseInt(group, 16)];
    const [a = 0, b = 0, c = 0, d = 0] = group.split(".").map(Number);
    return [a * 256 + b, c * 256 + d];
  });
}
