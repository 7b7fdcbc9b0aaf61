// What a request can take at most: its cost, its tokens, and the bound of its reply.
export { assumedOutputTokens, estimateOf, type Estimate, type Offer } from "./estimate.ts";
export { aroundBounds, longestReply } from "./reply-bound.ts";
