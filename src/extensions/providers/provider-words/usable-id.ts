// The ids of tool calls.
import { randomHex } from "../../../core/ids.ts";

/**
 * Whether every provider accepts a call with this id in a later turn. Some refuse other characters,
 * or longer ids. A shorter id may be repeated for another call: some providers count from 0 in each
 * reply.
 */
export const isUsableId = (id: string): boolean => /^[\w-]{9,64}$/.test(id);

const WRAPPED = /^toolu_[\w-]{4}_([\w-]+)$/;
const encoded = (id: string): string => Buffer.from(id).toString("base64url");

/** An id for a client that wants usable ones, in which statedId() finds the provider's own. */
export function usableId(id: string): string {
  // 24 bits: of 100 conversations with a thousand calls of one id each, 97 have no repetition.
  const distinct = Buffer.from(randomHex(3), "hex").toString("base64url");
  const wrapped = `toolu_${distinct}_${encoded(id)}`;
  return isUsableId(wrapped) && id !== "" ? wrapped : `toolu_${randomHex(12)}`;
}

/** The provider's own id of a call, which usableId() may have wrapped in this one. */
export function statedId(id: string): string {
  const [, wrapped = ""] = isUsableId(id) ? (WRAPPED.exec(id) ?? []) : [];
  const stated = Buffer.from(wrapped, "base64url").toString();
  return /^[\x21-\x7e]+$/.test(stated) && encoded(stated) === wrapped ? stated : id;
}
