// A library for the native formats of providers, which see a conversation as turns of a user and an
// assistant. wire.md "Turns".
export { forgetting } from "./forgetting.ts";
export { findMediaLack, mediaOf, type MediaRule } from "./media.ts";
export {
  createSignatureStore,
  modelStore,
  scopedStore,
  shareSignatures,
  type SignatureStore,
} from "./signatures.ts";
export { asUserMessage, joinedSystem, paragraphs, type SystemMessage } from "./system.ts";
export {
  argumentsIn,
  createTextCounter,
  objectIn,
  type TextCounter,
  withParsableArguments,
} from "./text-objects.ts";
export { sumOf } from "./token-sums.ts";
export {
  calledNames,
  hashedId,
  textPart,
  turnsOf,
  type Call,
  type Conversation,
  type Item,
  OPENING,
  type Turn,
} from "./turns.ts";
