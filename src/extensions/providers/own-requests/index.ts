// A library: which parts of a client's own Messages request pass to a provider of that format.
export { firstUnlisted, notPassed, refuseUnlisted, withoutUnlisted } from "./passes.ts";
