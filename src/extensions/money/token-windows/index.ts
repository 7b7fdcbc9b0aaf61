// Limits of tokens per minute: a sliding window of admissions for each account and key.
export { secondsIn, setTokenHeaders } from "./headers.ts";
export {
  createTokenWindows,
  leastLeft,
  type Admission,
  type TokenLimit,
  type TokenState,
} from "./token-windows.ts";
