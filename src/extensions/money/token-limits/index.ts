// Limits of tokens per minute: exact sliding windows in the memory of one process.
export {
  createTokenLimits,
  leastLeft,
  type TokenLimit,
  type TokenLimits,
  type TokenState,
} from "./token-limits.ts";
