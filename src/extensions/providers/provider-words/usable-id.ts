// The ids of tool calls.
import { randomHex } from "../../../core/ids.ts";

/**
 * Whether a later turn can go to any provider with a call of this id. Some refuse other characters,
 * or more of them. A shorter id may be that of another call: some providers count from 0 in each
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

/** The id that the provider stated of a call: its own again if usableId() made this one. */
export function statedId(id: string): string {
  const [, wrapped = ""] = isUsableId(id) ? (WRAPPED.exec(id) ?? []) : [];
  const stated = Buffer.from(wrapped, "base64url").toString();
  return /^[\x21-\x7e]+$/.test(stated) && encoded(stated) === wrapped ? stated : id;
}
