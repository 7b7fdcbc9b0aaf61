// What a request can take at most: its cost, its tokens, and the bound of its reply.
export * from "./estimate.ts";
