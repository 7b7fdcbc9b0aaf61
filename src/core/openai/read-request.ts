// A large body is checked in steps: its messages first, one after the other.
import { checkInSteps, type Check } from "../schema/checker.ts";
import { asObject } from "../schema/untrusted-json.ts";
import type { Steps } from "../turns.ts";
import { message, type ChatRequest } from "./request.ts";

/** `check`: that of the whole request, with what extensions add to it. */
export const readChatRequest = (json: unknown, check: Check<ChatRequest>): Steps<ChatRequest> =>
  checkInSteps(check, json, asObject(json)["messages"], message);
